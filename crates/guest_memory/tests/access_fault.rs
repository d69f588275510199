//! Tests of shared memory that disappears during its use.

use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use guest_memory::{AccessFault, SharedMapping};
use prefetch::NonTemporalBuf;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

const PAGE: usize = 4096;

fn file(bytes: usize) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes as u64).unwrap();
    file
}

fn mapping(file: &OwnedFd, offset: usize, bytes: usize) -> SharedMapping {
    SharedMapping::new(file.try_clone().unwrap(), offset as u64, bytes as u64, true).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let file = file(4 * PAGE);
    let (one, other) = (mapping(&file, 0, 4 * PAGE), mapping(&file, PAGE, 2 * PAGE));
    one.write(PAGE - 2, &[1, 2, 3, 4]).unwrap();
    let mut data = [0; 2];
    other.read(0, &mut data).unwrap();
    assert_eq!(data, [3, 4]);
    let mut appended = vec![9];
    one.append(PAGE - 2, 4, &mut appended).unwrap();
    assert_eq!(appended, [9, 1, 2, 3, 4]);
    other.store(8, 77).unwrap();
    assert_eq!(one.load(PAGE + 8), Ok(77));
    let entry = std::array::from_fn(|at| at as u8);
    one.publish(PAGE + 16, std::slice::from_ref(&entry)).unwrap();
    let mut published = [0; 16];
    other.read(16, &mut published).unwrap();
    assert_eq!(published, entry);
    one.read(4 * PAGE, &mut []).unwrap();
}

#[test]
fn memory_that_is_gone_is_an_error_until_it_is_back() {
    let file = file(4 * PAGE);
    let map = mapping(&file, 0, 4 * PAGE);
    map.write(0, &[5; 4 * PAGE]).unwrap();
    ftruncate(&file, 2 * PAGE as u64).unwrap();
    let mut data = vec![0; 4 * PAGE];
    for _ in 0..3 {
        assert_eq!(map.read(0, &mut data), Err(AccessFault));
        assert_eq!(map.write(PAGE, &[6; 2 * PAGE]), Err(AccessFault));
        assert_eq!(map.append(3 * PAGE, 1, &mut vec![]), Err(AccessFault));
        assert_eq!(map.load(2 * PAGE), Err(AccessFault));
        assert_eq!(map.store(2 * PAGE, 1), Err(AccessFault));
        assert_eq!(map.publish(2 * PAGE, &[[1; 16]]), Err(AccessFault));
        map.read(0, &mut data[..2 * PAGE]).unwrap();
        assert_eq!(data[0], 5, "what is there is there");
    }
    ftruncate(&file, 4 * PAGE as u64).unwrap();
    map.read(0, &mut data).unwrap();
    assert_eq!((data[0], data[2 * PAGE], data[4 * PAGE - 1]), (5, 0, 0));
    map.write(2 * PAGE, &[7; 8]).unwrap();
    let again = mapping(&file, 0, 4 * PAGE);
    again.read(2 * PAGE, &mut data[..8]).unwrap();
    assert_eq!(data[..8], [7; 8], "it is the file that is mapped again");
}

/// The library chooses the direction of a copy by the low 12 bits of both addresses.
#[test]
fn whatever_way_a_copy_goes_an_error_leaves_only_old_and_new_bytes_and_none_elsewhere() {
    const OLD: u8 = 5;
    const NEW: u8 = 6;
    const BYTES: usize = PAGE + 512;
    let shifts: Vec<usize> = (0..PAGE).step_by(240).collect();
    let source = vec![NEW; 3 * PAGE];
    for &from in &shifts {
        for &to in &shifts {
            let case = format!("from ..{from:#x} to ..{to:#x}");
            let file = file(4 * PAGE);
            let map = mapping(&file, 0, 4 * PAGE);
            map.write(0, &[OLD; 4 * PAGE]).unwrap();
            ftruncate(&file, 2 * PAGE as u64).unwrap();
            let start = PAGE + to;
            assert_eq!(map.write(start, &source[from..from + BYTES]), Err(AccessFault), "{case}");
            let mut left = vec![0; 2 * PAGE];
            map.read(0, &mut left).unwrap();
            assert!(left[..start].iter().all(|byte| *byte == OLD), "{case}");
            assert!(left[start..].iter().all(|byte| [OLD, NEW].contains(byte)), "{case}");

            map.write(0, &[OLD; 2 * PAGE]).unwrap();
            let mut data = vec![NEW; 3 * PAGE];
            assert_eq!(map.read(start, &mut data[from..from + BYTES]), Err(AccessFault), "{case}");
            assert!(data[..from].iter().all(|byte| *byte == NEW), "{case}");
            assert!(data[from + BYTES..].iter().all(|byte| *byte == NEW), "{case}");
            assert!(data.iter().all(|byte| [OLD, NEW].contains(byte)), "{case}");
            assert_eq!(map.read_into(start, NonTemporalBuf::from(&mut data[from..from + BYTES])), Err(AccessFault));
            assert!(data.iter().all(|byte| [OLD, NEW].contains(byte)), "{case}");
            let mut appended = vec![NEW];
            assert_eq!(map.append(start, BYTES, &mut appended), Err(AccessFault), "{case}");
            assert_eq!(appended, [NEW], "{case}");
        }
    }
}

#[test]
fn an_entry_whose_end_is_seen_is_there_with_those_before_it() {
    let entries: [[u8; 16]; 8] = std::array::from_fn(|entry| [entry as u8 + 1; 16]);
    for start in (2 * PAGE - 128..2 * PAGE).step_by(4) {
        let file = file(4 * PAGE);
        let map = mapping(&file, 0, 4 * PAGE);
        ftruncate(&file, 2 * PAGE as u64).unwrap();
        let fits = 2 * PAGE - start == 128;
        assert_eq!(map.publish(start, &entries).is_ok(), fits, "{start}");
        let mut left = vec![0; 2 * PAGE - start];
        map.read(start, &mut left).unwrap();
        let whole = left.len() / 16;
        for (entry, found) in entries.iter().zip(left.chunks(16)).take(whole) {
            assert_eq!(found, entry, "{start}");
        }
        for byte in &left[whole * 16..] {
            assert!([0, whole as u8 + 1].contains(byte), "{start}");
        }
    }
}

/// Set for the child process that takes all available mappings.
const TO_FILL: &str = "WARP_TEST_TAKES_ALL_MAPPINGS";

/// The number of a process's mappings is limited, and those of guests count.
#[test]
#[expect(unsafe_code, reason = "mappings that nobody uses")]
fn memory_that_is_gone_is_an_error_where_the_system_maps_nothing_more() {
    const LEAST: usize = 200_000;
    if std::env::var_os(TO_FILL).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let name = "memory_that_is_gone_is_an_error_where_the_system_maps_nothing_more";
        let output = child.args(["--exact", name]).env(TO_FILL, "1").output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        return;
    }
    let file = file(8 * PAGE);
    let map = mapping(&file, 0, 8 * PAGE);
    ftruncate(&file, 4 * PAGE as u64).unwrap();
    let flags = rustix::mm::MapFlags::PRIVATE;
    // Different protections keep the kernel from merging neighbours.
    let protections = [rustix::mm::ProtFlags::READ, rustix::mm::ProtFlags::empty()].into_iter();
    let taken = protections.cycle().take(LEAST).take_while(|&protection| {
        // SAFETY: a new mapping.
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), PAGE, protection, flags) }.is_ok()
    });
    assert!(taken.count() > 1000);
    let mut data = [0; PAGE];
    let result = map.read(5 * PAGE, &mut data);
    let again = map.store(7 * PAGE, 1);
    let there = map.read(3 * PAGE, &mut data);
    assert_eq!((result, again, there), (Err(AccessFault), Err(AccessFault), Ok(())));
}

#[test]
fn threads_do_not_disturb_each_other() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..5 {
            let done = &done;
            scope.spawn(move || {
                let file = file(8 * PAGE);
                let map = mapping(&file, 0, 8 * PAGE);
                let mut data = vec![0; 8 * PAGE];
                for round in 0..500 {
                    map.write(0, &[seed; 8 * PAGE]).unwrap();
                    if seed % 2 == 0 {
                        ftruncate(&file, (round % 8 * PAGE) as u64).unwrap();
                        assert_eq!(map.read(0, &mut data), Err(AccessFault));
                        ftruncate(&file, 8 * PAGE as u64).unwrap();
                    } else {
                        map.read(0, &mut data).unwrap();
                        assert!(data.iter().all(|byte| *byte == seed));
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
        }
    });
    assert!(done.load(Ordering::Relaxed));
}

#[test]
fn a_mapping_is_inside_its_file() {
    let file = file(PAGE);
    let map = |offset, bytes| SharedMapping::new(file.try_clone().unwrap(), offset, bytes, true);
    assert!(map(0, 2 * PAGE as u64).is_err());
    assert!(map(0, 0).is_err());
    assert!(map(u64::MAX, 2).is_err());
    assert!(map(0, PAGE as u64).is_ok());
}

/// Set for the child process that must die.
const TO_DIE: &str = "WARP_TEST_TOUCHES_WHAT_IS_GONE";

/// An access outside `Mapping` is a bug, and must end the process.
#[test]
#[expect(unsafe_code, reason = "the bug")]
fn other_accesses_end_the_process() {
    use std::os::unix::process::ExitStatusExt;
    if std::env::var_os(TO_DIE).is_none() {
        let this = std::env::current_exe().unwrap();
        let mut child = Command::new(this);
        child.args(["--exact", "other_accesses_end_the_process", "--nocapture"]).env(TO_DIE, "1");
        let status = child.output().unwrap().status;
        assert_eq!(status.signal(), Some(7), "SIGBUS: {status}");
        return;
    }
    let file = file(PAGE);
    let map = mapping(&file, 0, PAGE);
    let flags = rustix::mm::MapFlags::SHARED;
    let protection = rustix::mm::ProtFlags::READ;
    // SAFETY: a new mapping.
    let other = unsafe { rustix::mm::mmap(std::ptr::null_mut(), PAGE, protection, flags, &file, 0) }.unwrap();
    ftruncate(&file, 0).unwrap();
    assert_eq!(map.load(0), Err(AccessFault));
    // SAFETY: none; the process ends here.
    let byte = unsafe { std::ptr::read_volatile(other.cast::<u8>()) };
    panic!("it goes on with {byte}");
}
