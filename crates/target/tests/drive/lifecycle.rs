//! Shutdown, checkpoints, inspection, and drives without files.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{IoOpcode, Status};
use ssd::Lpn;
use target::actions::{Actions, CheckpointRefusal};
use target::storage::{DataChoice, DriveError, DriveOptions, OpenReport, ServedDrive, stored};
use target::{ServerClock, SharedSubsystem, lock};
use zerocopy::FromZeros;

use crate::crash::crash;
use crate::small_drive::{
    CAPACITY_BYTES, Client, FILE_BYTES, MIB, PAGE_BYTES, beside, check_mapping, config, folder, generation, open,
    run_in_child, write_pages,
};
use crate::{contents, stop};

#[test]
fn a_drive_that_is_shut_down_comes_back_as_it_was() {
    let (_folder, data) = folder();
    let (shared, drive, opened) = open(&data, config(0)).unwrap();
    assert_eq!((opened.new, opened.clean, opened.capacity_bytes), (true, true, CAPACITY_BYTES));
    assert_eq!(opened.to_string(), "new drive of 64 MiB");
    let mode = std::fs::metadata(&data).expect("the data file").permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else reads what is on the drive");
    let client = Client::connect(&shared);
    write_pages(&client, 10, 20, 1);
    assert_eq!(client.deallocate(12, 3), Status::SUCCESS);
    let lookup = |shared: &SharedSubsystem| -> Vec<_> {
        let subsystem = lock(shared);
        (0..64).map(|page| subsystem.device().lookup(Lpn(page))).collect()
    };
    let (places, stats) = (lookup(&shared), lock(&shared).device().stats().clone());
    let nguid = lock(&shared).namespaces().next().unwrap().1.nguid;
    stop(shared, drive);

    let (shared, drive, opened) = open(&data, config(0)).unwrap();
    assert_eq!(opened.to_string(), "drive of 64 MiB, shut down cleanly");
    assert_eq!((opened.new, opened.clean, opened.pages_mapped_again), (false, true, 0));
    assert_eq!(lookup(&shared), places);
    assert_eq!(*lock(&shared).device().stats(), stats);
    assert_eq!(lock(&shared).namespaces().next().unwrap().1.nguid, nguid);
    let smart = lock(&shared).state().smart.clone();
    assert_eq!((smart.power_cycles, smart.unsafe_shutdowns), (2, 0));
    assert_eq!((smart.host_bytes_written, smart.write_commands), (20 * PAGE_BYTES, 1));
    check_mapping(&shared, |page| (10..30).contains(&page) && !(12..15).contains(&page));
    let client = Client::connect(&shared);
    assert_eq!(generation(&client, 11), 1);
    assert_eq!(generation(&client, 12), 0);
    stop(shared, drive);
}

#[test]
fn dropping_a_drive_closes_it() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 5, 1);
    drop(drive);
    drop(shared);
    assert!(open(&data, config(0)).unwrap().2.clean);
}

#[test]
fn what_comes_after_the_shutdown_is_refused_and_changes_nothing() {
    let (folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 5, 1);
    drive.close().unwrap();
    let before = contents(folder.path());
    let page = vec![9; PAGE_BYTES as usize];
    assert_eq!(client.write(3, PAGE_BYTES, &page, false), Status::WRITE_FAULT);
    assert_eq!(client.deallocate(0, 1), Status::WRITE_FAULT);
    assert!(!drive.checkpoint(|| {}).unwrap());
    drive.close().unwrap();
    assert!(contents(folder.path()) == before);
    // The file is unlocked, although the drive object still exists.
    let (_, _, opened) = open(&data, config(0)).unwrap();
    assert!(opened.clean);
}

#[test]
fn checkpoints_are_made_when_something_changed() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    assert!(!drive.checkpoint(|| {}).unwrap());
    write_pages(&client, 0, 5, 1);
    assert!(drive.checkpoint(|| {}).unwrap());
    assert!(!drive.checkpoint(|| {}).unwrap());
    generation(&client, 0);
    assert!(drive.checkpoint(|| {}).unwrap(), "reading changes counters");
    client.deallocate(0, 1);
    assert!(drive.checkpoint(|| {}).unwrap());
    assert!(!drive.checkpoint(|| {}).unwrap());
    let copy = crash(&data, "copy.img");
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!((opened.clean, opened.pages_mapped_again, opened.pages_deallocated), (false, 0, 0));
    assert_eq!(lock(&shared).state().smart.read_commands, 1);
}

#[test]
fn a_checkpoint_that_is_asked_for_is_one_at_a_time() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    let drive = Arc::new(Mutex::new(drive));
    let actions = Actions::new(&drive, Arc::clone(&shared), client.clock);
    write_pages(&client, 0, 5, 1);
    let making = drive.lock().unwrap();
    assert!(matches!(actions.checkpoint(), Err(CheckpointRefusal::Busy)));
    drop(making);
    let made = actions.checkpoint().unwrap();
    let names: Vec<&str> = made.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!((made.written, names), (true, vec!["drive.img.ftl", "drive.img.state"]));
    // A full file system leaves the previous snapshot unchanged.
    write_pages(&client, 5, 5, 1);
    let snapshot = std::fs::read(beside(&data, ".ftl")).unwrap();
    let blocked = data.with_file_name("blocked");
    std::fs::rename(beside(&data, ".ftl"), &blocked).unwrap();
    std::fs::create_dir(beside(&data, ".ftl")).unwrap();
    assert!(matches!(actions.checkpoint(), Err(CheckpointRefusal::Drive(_))));
    std::fs::remove_dir(beside(&data, ".ftl")).unwrap();
    std::fs::rename(&blocked, beside(&data, ".ftl")).unwrap();
    assert_eq!(std::fs::read(beside(&data, ".ftl")).unwrap(), snapshot);
    assert!(actions.checkpoint().unwrap().written);
    drive.lock().unwrap().close().unwrap();
    assert!(matches!(actions.checkpoint(), Err(CheckpointRefusal::Closed)));
    drop(drive);
    assert!(matches!(actions.checkpoint(), Err(CheckpointRefusal::Closed)), "it is not kept open for actions");
}

/// Byte counters that a host has read do not fall after a kill.
#[test]
fn counters_that_hosts_were_told_never_fall() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 100, 1);
    assert!(drive.checkpoint(|| {}).unwrap());
    // Overwrites do not change the shape of the files.
    for round in 0..20 {
        write_pages(&client, 0, 100, round);
    }
    generation(&client, 0);
    lock(&shared).tick(1);
    let told = lock(&shared).device().stats().totals();
    let smart = lock(&shared).state().smart.clone();
    assert_eq!(told.host_bytes_written, 21 * 100 * PAGE_BYTES);
    let copy = crash(&data, "copy.img");
    let (shared, drive, opened) = open(&copy, config(0)).unwrap();
    assert!(!opened.clean);
    let now = lock(&shared).device().stats().totals();
    assert_eq!(now, told, "nothing had to be mapped again");
    let now = lock(&shared).state().smart.clone();
    assert_eq!(
        (now.host_bytes_written, now.write_commands, now.read_commands),
        (smart.host_bytes_written, smart.write_commands, smart.read_commands)
    );
    stop(shared, drive);
    // After an orderly shutdown no counter is raised. A new drive begins with zeroes, despite
    // leftover files.
    let (shared, drive, opened) = open(&copy, config(0)).unwrap();
    assert!(opened.clean);
    assert_eq!(lock(&shared).device().stats().totals(), told);
    stop(shared, drive);
    for extension in ["", ".state", ".ftl"] {
        std::fs::remove_file(beside(&copy, extension)).unwrap();
    }
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert!(opened.new && !beside(&copy, ".counters").exists());
    assert_eq!(lock(&shared).device().stats().host_bytes_written(), 0);
}

/// Set for the child process with little address space.
const NO_ADDRESSES: &str = "WARP_TEST_NO_ADDRESSES";

#[test]
fn a_device_without_memory_for_its_maps_is_refused_with_a_sentence() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(NO_ADDRESSES).is_none() {
        let name = "lifecycle::a_device_without_memory_for_its_maps_is_refused_with_a_sentence";
        return run_in_child(name, NO_ADDRESSES);
    }
    let mut large = config(0).device;
    large.geometry.capacity_bytes = Some(4 << 40);
    large.geometry.reclaim_unit_bytes = 64 * MIB;
    let before = getrlimit(Resource::As);
    let tight = Rlimit { current: Some(4 << 30), ..before };
    setrlimit(Resource::As, tight).unwrap();
    let refused = ssd::Device::new(&large).map(|_| ()).unwrap_err().to_string();
    setrlimit(Resource::As, before).unwrap();
    assert!(refused.starts_with("geometry.capacity_bytes is 4 TiB, but the system refuses"), "{refused}");
    assert!(refused.contains("ulimit -v"), "{refused}");
}

/// Set for the child process with little memory.
const TIGHT: &str = "WARP_TEST_TIGHT_MEMORY";

/// Without memory a checkpoint fails, with no other effect.
#[test]
fn a_checkpoint_without_memory_leaves_the_drive_as_it_is() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(TIGHT).is_none() {
        return run_in_child("lifecycle::a_checkpoint_without_memory_leaves_the_drive_as_it_is", TIGHT);
    }
    let (_folder, data) = folder();
    let mut large = config(0);
    large.device.geometry.capacity_bytes = Some(16 << 30);
    large.device.geometry.reclaim_unit_bytes = 64 * MIB;
    // A checkpoint copies the window of recently written pages, more than an allocator keeps free.
    large.device.handles.hot_window_bytes = 8 << 30;
    let (shared, mut drive, _) = open(&data, large).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 5, 1);
    let before = getrlimit(Resource::As);
    for room_bytes in [1, 30, 60, 100, 120].map(|mib| mib * MIB) {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let used_bytes = pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096;
        let tight = Rlimit { current: Some(used_bytes + room_bytes), ..before };
        setrlimit(Resource::As, tight).unwrap();
        let checkpoint = drive.checkpoint(|| {});
        setrlimit(Resource::As, before).unwrap();
        let error = checkpoint.unwrap_err().to_string();
        assert!(error.starts_with("there is no memory for a checkpoint"), "{error}");
        write_pages(&client, 5, 5, 2);
    }
    assert!(drive.checkpoint(|| {}).unwrap(), "there is memory again");
}

/// Only completions that promise durability wait for the disk.
#[test]
fn flush_and_force_unit_access_mean_the_disk() {
    let (_folder, data) = folder();
    let (shared, _drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    let mut entry = SubmissionEntry::new_zeroed();
    entry.nsid = 1.into();
    for (opcode, dword12, bytes, waits) in [
        (IoOpcode::Write, 0, 4096, false),
        (IoOpcode::Write, 1 << 30, 4096, true),
        (IoOpcode::WriteZeroes, 0, 0, false),
        (IoOpcode::WriteZeroes, 1 << 30 | 1 << 25, 0, true),
        (IoOpcode::Read, 0, 0, false),
        (IoOpcode::Flush, 0, 0, true),
    ] {
        (entry.opcode, entry.cdw12) = (opcode as u8, dword12.into());
        assert_eq!(client.is_made_durable(&entry, &mut vec![1; bytes]), waits, "{opcode:?} {dword12:#x}");
    }
}

// ------------------------------------------------------------------------------------------------- without any files
// --

fn forgetful(data: DataChoice) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
    let options = DriveOptions { subsystem: config(0), data, checksums: false };
    ServedDrive::open(options, ServerClock::start())
}

#[test]
fn drives_without_files_are_new_each_time() {
    for (data, written) in [(DataChoice::Memory, 6), (DataChoice::Pattern, 6), (DataChoice::Null, 0)] {
        for _ in 0..2 {
            let (shared, mut drive, opened) = forgetful(data.clone()).unwrap();
            assert!(opened.new && opened.clean);
            let client = Client::connect(&shared);
            assert_eq!(generation(&client, 9), 0);
            write_pages(&client, 8, 4, 6);
            assert_eq!((generation(&client, 9), client.flush()), (written, Status::SUCCESS));
            assert_eq!(client.deallocate(9, 1), Status::SUCCESS);
            assert_eq!((generation(&client, 8), generation(&client, 9)), (written, 0));
            assert!(!drive.checkpoint(|| {}).unwrap());
            drive.close().unwrap();
            lock(&shared).device().check().unwrap();
        }
    }
}

#[test]
fn a_drive_that_memory_cannot_hold_is_refused() {
    let mut large = config(0);
    large.device.geometry.capacity_bytes = Some(64 << 40);
    large.device.geometry.mapping_unit_bytes = 65536;
    large.device.geometry.reclaim_unit_bytes = 1 << 30;
    let options = DriveOptions { subsystem: large, data: DataChoice::Memory, checksums: false };
    let error = ServedDrive::open(options, ServerClock::start()).err().expect("no machine has that").to_string();
    assert!(error.contains("65 TiB for its data") && error.contains("Serve a smaller capacity"), "{error}");
}

// --------------------------------------------------------------------------------------------------------- inspection
// --

#[test]
fn stored_drives_can_be_looked_at_while_they_are_served() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 16, 1);
    let seen = stored(&data).unwrap();
    assert!(seen.device.is_none() && seen.state.is_some());
    drive.checkpoint(|| {}).unwrap();
    let seen = stored(&data).unwrap();
    let (state, device) = (seen.state.clone().unwrap(), seen.device.clone().unwrap());
    assert_eq!((state.clean, state.file_bytes, state.namespaces.len()), (false, FILE_BYTES, 1));
    assert_eq!((device.live_pages, device.stats.host_bytes_written()), (16, 16 * PAGE_BYTES));
    let text = seen.to_string();
    assert!(text.contains("in use or not shut down cleanly") && text.contains("HBMW 65536 bytes"), "{text}");
    stop(shared, drive);
    assert!(stored(&data).unwrap().state.unwrap().clean);
    // A snapshot alone, and a file of another kind.
    let snapshot = stored(&beside(&data, ".ftl")).unwrap();
    assert!(snapshot.state.is_none() && snapshot.device.unwrap().live_pages == 16);
    assert!(stored(&beside(&data, ".state")).is_err());
}
