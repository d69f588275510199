//! Drives over server runs: the state that survives a shutdown or a crash, and the requests that
//! are refused without any change.
//!
//! A crash is a copy of an open drive's files, which equals the files after a kill at that moment.

mod crash;
mod small_drive;

use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crash::{copy_sparse, crash};
use nvme::{NonVolatileState, Subsystem};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::SeekFrom;
use small_drive::{
    CAPACITY_BYTES, Client, FILE_BYTES, MIB, PAGE_BYTES, admin, beside, check_mapping, config, folder, generation,
    open, open_with, set_fdp, write_pages,
};
use ssd::Lpn;
use target::actions::{Actions, CheckpointRefusal};
use target::storage::backend::MemoryBackend;
use target::storage::backend::file::OpenDataFile;
use target::storage::{ChecksumState, DataChoice, DriveError, DriveOptions, OpenReport, ServedDrive, scrub, stored};
use target::{ServerClock, SharedSubsystem, lock};
use tempfile::TempDir;
use zerocopy::FromZeros;

/// Names, lengths and contents of all files in a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    let with_contents = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).unwrap();
        let bytes = if metadata.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        (path, metadata.len(), bytes)
    };
    all.into_iter().map(with_contents).collect()
}

fn stop(shared: SharedSubsystem, mut drive: ServedDrive) {
    drive.close().unwrap();
    drop(shared);
}

// --------------------------------------------------------------------------------------------------------- shutdown --

#[test]
fn a_drive_that_is_shut_down_comes_back_as_it_was() {
    let (_folder, data) = folder();
    let (shared, drive, opened) = open(&data, config(0)).unwrap();
    assert_eq!(
        (opened.new, opened.clean, opened.capacity_bytes),
        (true, true, CAPACITY_BYTES)
    );
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
    assert_eq!(
        (opened.clean, opened.pages_mapped_again, opened.pages_deallocated),
        (false, 0, 0)
    );
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
    assert!(
        matches!(actions.checkpoint(), Err(CheckpointRefusal::Closed)),
        "it is not kept open for actions"
    );
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
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "a_device_without_memory_for_its_maps_is_refused_with_a_sentence";
        let output = child.args(["--exact", name]).env(NO_ADDRESSES, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let mut large = config(0).device;
    large.geometry.capacity_bytes = Some(4 << 40);
    large.geometry.reclaim_unit_bytes = 64 * MIB;
    let before = getrlimit(Resource::As);
    let tight = Rlimit {
        current: Some(4 << 30),
        ..before
    };
    setrlimit(Resource::As, tight).unwrap();
    let refused = ssd::Device::new(&large).map(|_| ()).unwrap_err().to_string();
    setrlimit(Resource::As, before).unwrap();
    assert!(
        refused.starts_with("geometry.capacity_bytes is 4 TiB, but the system refuses"),
        "{refused}"
    );
    assert!(refused.contains("ulimit -v"), "{refused}");
}

/// Set for the child process with little memory.
const TIGHT: &str = "WARP_TEST_TIGHT_MEMORY";

/// Without memory a checkpoint fails, with no other effect.
#[test]
fn a_checkpoint_without_memory_leaves_the_drive_as_it_is() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(TIGHT).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "a_checkpoint_without_memory_leaves_the_drive_as_it_is";
        child
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(TIGHT, "1");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
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
        let tight = Rlimit {
            current: Some(used_bytes + room_bytes),
            ..before
        };
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
        assert_eq!(
            client.is_made_durable(&entry, &mut vec![1; bytes]),
            waits,
            "{opcode:?} {dword12:#x}"
        );
    }
}

// ------------------------------------------------------------------------------------------------------------ crash --

#[test]
fn after_a_crash_the_mapping_follows_the_data() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 100, 50, 1);
    drive.checkpoint(|| {}).unwrap();
    // Pages that are overwritten, new, and deallocated.
    write_pages(&client, 100, 10, 2);
    write_pages(&client, 200, 30, 3);
    write_pages(&client, 16_383, 1, 4);
    assert_eq!(client.deallocate(140, 4), Status::SUCCESS);
    let copy = crash(&data, "copy.img");

    let (shared, drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!((opened.new, opened.clean, opened.snapshot), (false, false, true));
    assert_eq!(
        (
            opened.pages_mapped_again,
            opened.pages_deallocated,
            opened.bytes_given_back
        ),
        (31, 4, 0)
    );
    let sentence = opened.to_string();
    assert!(
        sentence.starts_with("drive of 64 MiB, which was not shut down cleanly. Its mapping and counters"),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("31 pages were mapped again and 4 were deallocated"),
        "{sentence}"
    );
    let mapped =
        |page| (100..140).contains(&page) || (144..150).contains(&page) || (200..230).contains(&page) || page == 16_383;
    check_mapping(&shared, mapped);
    let client = Client::connect(&shared);
    for (page, expected) in [
        (99, 0),
        (100, 2),
        (109, 2),
        (110, 1),
        (140, 0),
        (144, 1),
        (200, 3),
        (229, 3),
        (16_383, 4),
    ] {
        assert_eq!(generation(&client, page), expected, "page {page}");
    }
    let smart = lock(&shared).state().smart.clone();
    assert_eq!((smart.power_cycles, smart.unsafe_shutdowns), (2, 1));
    // The recovered state is stored, so a second crash needs no repairs.
    let again = crash(&copy, "again.img");
    stop(shared, drive);
    let (shared, _drive, opened) = open(&again, config(0)).unwrap();
    assert_eq!(
        (opened.clean, opened.pages_mapped_again, opened.pages_deallocated),
        (false, 0, 0)
    );
    assert_eq!(lock(&shared).state().smart.unsafe_shutdowns, 2);
}

#[test]
fn before_the_first_checkpoint_the_mapping_is_made_anew() {
    let (_folder, data) = folder();
    let (shared, _drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 200, 1);
    let copy = crash(&data, "copy.img");
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!((opened.snapshot, opened.pages_mapped_again), (false, 200));
    assert!(opened.to_string().contains("Without a checkpoint"), "{opened}");
    check_mapping(&shared, |page| page < 200);
    assert_eq!(generation(&Client::connect(&shared), 199), 1);
}

/// Closing writes data, snapshot and state. After any interruption, and with any older file, the
/// data decides.
#[test]
fn files_of_different_moments_are_recognised() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 40, 1);
    drive.checkpoint(|| {}).unwrap();
    let early = crash(&data, "early.img");
    write_pages(&client, 40, 40, 2);
    assert_eq!(client.deallocate(0, 8), Status::SUCCESS);
    stop(shared, drive);
    let files = |name: &str, state: &Path, snapshot: &Path| {
        let mixed = data.with_file_name(name);
        copy_sparse(&data, &mixed);
        std::fs::copy(beside(state, ".state"), beside(&mixed, ".state")).unwrap();
        std::fs::copy(beside(snapshot, ".ftl"), beside(&mixed, ".ftl")).unwrap();
        mixed
    };
    // The snapshot of the shutdown without its state, the state with an earlier snapshot, and
    // neither.
    let cases = [
        ("a.img", &early, &data, (0, 0)),
        ("b.img", &data, &early, (40, 8)),
        ("c.img", &early, &early, (40, 8)),
    ];
    for (name, state, snapshot, rebuilt) in cases {
        let (shared, _drive, opened) = open(&files(name, state, snapshot), config(0)).unwrap();
        assert!(!opened.clean, "{name}");
        assert_eq!((opened.pages_mapped_again, opened.pages_deallocated), rebuilt, "{name}");
        check_mapping(&shared, |page| (8..80).contains(&page));
        let client = Client::connect(&shared);
        assert_eq!(
            (generation(&client, 7), generation(&client, 8), generation(&client, 79)),
            (0, 1, 2)
        );
    }
    // A missing snapshot is equivalent to a drive without a checkpoint.
    let removed = files("d.img", &data, &data);
    std::fs::remove_file(beside(&removed, ".ftl")).unwrap();
    let (shared, _drive, opened) = open(&removed, config(0)).unwrap();
    assert_eq!(
        (opened.clean, opened.snapshot, opened.pages_mapped_again),
        (false, false, 72)
    );
    check_mapping(&shared, |page| (8..80).contains(&page));
}

#[test]
fn a_crash_after_the_placement_configuration_was_switched_keeps_counters_and_wear() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    for round in 1..6 {
        for first in (0..CAPACITY_BYTES / PAGE_BYTES).step_by(256) {
            write_pages(&client, first, 256, round);
        }
    }
    drive.checkpoint(|| {}).unwrap();
    let history = |shared: &SharedSubsystem| -> (u64, u64) {
        let subsystem = lock(shared);
        let erases = subsystem
            .device()
            .block_erase_counts()
            .iter()
            .map(|&count| u64::from(count))
            .sum();
        (subsystem.device().stats().host_bytes_written(), erases)
    };
    let before = history(&shared);
    assert!(before.1 > 0);
    // Deletes the namespace, then disables Flexible Data Placement. The drive is empty afterwards.
    admin(&client, AdminOpcode::NamespaceManagement, 1, 1, 0, 0);
    set_fdp(&client, false);
    let copy = crash(&data, "copy.img");
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!(
        (opened.clean, opened.snapshot, opened.pages_mapped_again),
        (false, true, 0)
    );
    assert!(!lock(&shared).state().fdp.enabled);
    assert_eq!(lock(&shared).namespaces().count(), 0);
    assert_eq!(history(&shared), before);
    check_mapping(&shared, |_| false);
}

/// A server died between the deletion of a namespace's state and of its data, or the file system
/// restored data.
#[test]
fn data_outside_namespaces_is_given_back() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 512, 1);
    drive.checkpoint(|| {}).unwrap();
    admin(&client, AdminOpcode::NamespaceManagement, 1, 1, 0, 0);
    let copy = crash(&data, "copy.img");
    let file = OpenOptions::new().write(true).open(&copy).unwrap();
    file.write_all_at(&vec![7; MIB as usize], 8 * MIB).unwrap();
    // The same for metadata.
    file.write_all_at(&vec![7; 65536], CAPACITY_BYTES + 65536).unwrap();
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!(
        (
            opened.bytes_given_back,
            opened.pages_mapped_again,
            opened.pages_deallocated
        ),
        (MIB, 0, 512)
    );
    assert!(
        opened.to_string().ends_with(". 1 MiB outside namespaces were freed"),
        "{opened}"
    );
    assert!(
        rustix::fs::seek(&file, SeekFrom::Data(0)).is_err(),
        "the file is one hole"
    );
    check_mapping(&shared, |_| false);
}

/// Hosts that enabled FDP event 02h learn that handles reference other reclaim units.
#[test]
fn a_crash_is_an_event_for_hosts_that_enabled_it() {
    let (_folder, data) = folder();
    let (shared, _drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = AdminOpcode::SetFeatures as u8;
    entry.nsid = 1.into();
    entry.cdw10 = 0x1e.into();
    // Enables one event type of placement handle 0.
    entry.cdw11 = (1 << 16).into();
    entry.cdw12 = 1.into();
    assert_eq!(client.execute(0, &entry, &mut vec![0x02]), Status::SUCCESS);
    let events = |shared: &SharedSubsystem| -> Vec<u8> {
        lock(shared)
            .state()
            .fdp
            .events
            .host()
            .iter()
            .map(|event| event.kind)
            .collect()
    };
    let copy = crash(&data, "copy.img");
    let (after_crash, _drive, _) = open(&copy, config(0)).unwrap();
    assert_eq!(events(&after_crash), [0x02]);
    assert!(events(&shared).is_empty());
}

/// A block marked by Write Uncorrectable and written later is readable after a crash, as before.
#[test]
fn a_crash_does_not_bring_uncorrectable_blocks_back() {
    let (_folder, data) = folder();
    let (shared, _drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = IoOpcode::WriteUncorrectable as u8;
    entry.nsid = 1.into();
    entry.cdw10 = 50.into();
    entry.cdw12 = 3.into();
    assert_eq!(client.execute(1, &entry, &mut Vec::new()), Status::SUCCESS);
    assert_eq!(client.read(51, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
    write_pages(&client, 51, 1, 1);
    assert_eq!(client.flush(), Status::SUCCESS);
    let copy = crash(&data, "copy.img");
    let (shared, _drive, _) = open(&copy, config(0)).unwrap();
    let client = Client::connect(&shared);
    assert_eq!(generation(&client, 51), 1);
    assert_eq!(client.read(52, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
}

#[test]
fn parts_of_files_that_a_crash_left_are_removed_and_nothing_else_is() {
    let (folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    stop(shared, drive);
    let left = [".drive.img.ftl-abc123.part", ".drive.img.state-Xyz789.part"];
    let others = [
        ".drive.img.ftl-2.img.state-abc123.part",
        ".other.img.ftl-abc123.part",
        "notes.part",
    ];
    for name in left.iter().chain(&others) {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let _open = open(&data, config(0)).unwrap();
    assert!(left.iter().all(|name| !folder.path().join(name).exists()));
    assert!(others.iter().all(|name| folder.path().join(name).exists()));
}

// ---------------------------------------------------------------------------------------------------------- refusals
// --

/// Checks that opening fails with a message that contains all of `words`, and changes no file in
/// the folder.
fn refuses(data: &Path, config: nvme::SubsystemConfig, words: &[&str]) {
    let folder = data.parent().unwrap();
    let before = contents(folder);
    let error = open(data, config)
        .err()
        .expect("this drive must be refused")
        .to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
    assert!(
        !error.contains('\n') && !error.ends_with('.'),
        "one sentence: {error:?}"
    );
    assert!(contents(folder) == before, "the refused drive was changed: {error}");
}

/// A drive that was shut down, with some data.
fn existing() -> (TempDir, PathBuf) {
    let (folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 8, 1);
    stop(shared, drive);
    (folder, data)
}

fn overwrite(path: &Path, at: std::io::SeekFrom, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(at).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_file_that_is_served_is_refused() {
    let (_folder, data) = folder();
    let (_shared, _drive, _) = open(&data, config(0)).unwrap();
    refuses(&data, config(0), &["drive.img", "another server uses", "Stop it"]);
}

#[test]
fn files_that_no_drive_wrote_are_refused() {
    let (folder, data) = folder();
    std::fs::write(&data, "a letter to my aunt").unwrap();
    refuses(
        &data,
        config(0),
        &["drive.img", "contains data, but", "drive.img.state"],
    );
    std::fs::write(&data, vec![1; FILE_BYTES as usize]).unwrap();
    refuses(&data, config(0), &["contains data, but"]);
    let file = File::create(&data).unwrap();
    file.set_len(CAPACITY_BYTES).unwrap();
    refuses(&data, config(0), &["has 67108864 bytes, but this drive needs 68157440"]);
    std::fs::remove_file(&data).unwrap();
    std::fs::create_dir(&data).unwrap();
    refuses(&data, config(0), &["not a regular file"]);
    std::fs::remove_dir(&data).unwrap();
    std::fs::write(beside(&data, ".ftl"), "").unwrap();
    refuses(&data, config(0), &["is missing, but", "drive.img.ftl"]);
    let nowhere = folder.path().join("no/drive.img");
    let error = open(&nowhere, config(0)).err().unwrap().to_string();
    assert!(error.contains("the data file cannot be opened"), "{error}");
}

#[test]
fn empty_files_are_new_drives() {
    let (_folder, data) = folder();
    File::create(&data).unwrap();
    let (shared, drive, opened) = open(&data, config(0)).unwrap();
    assert!(opened.new);
    stop(shared, drive);
    for extension in ["", ".state", ".ftl"] {
        std::fs::remove_file(beside(&data, extension)).unwrap();
    }
    File::create(&data).unwrap().set_len(FILE_BYTES).unwrap();
    assert!(open(&data, config(0)).unwrap().2.new);
}

#[test]
fn a_drive_that_cannot_be_made_leaves_no_file() {
    let (folder, data) = folder();
    let mut impossible = config(0);
    impossible.device.geometry.over_provisioning = 0.001;
    refuses(&data, impossible, &["over_provisioning"]);
    // The name fits the data file, but is too long for the state file beside it.
    let long = folder.path().join("d".repeat(252));
    refuses(&long, config(0), &["storing the drive's state"]);
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn a_data_file_of_the_wrong_size_is_refused() {
    for length in [FILE_BYTES - 4096, FILE_BYTES + 1, 0] {
        let (_folder, data) = existing();
        OpenOptions::new()
            .write(true)
            .open(&data)
            .unwrap()
            .set_len(length)
            .unwrap();
        let found = format!("has {length} bytes, but this drive needs 68157440");
        refuses(&data, config(0), &["drive.img", &found, "Restore the file"]);
    }
    let (_folder, data) = existing();
    std::fs::remove_file(&data).unwrap();
    refuses(&data, config(0), &["is missing, but", "drive.img.state"]);
}

#[test]
fn another_profile_is_refused_by_the_field_that_differs() {
    let (_folder, data) = existing();
    let mut other = config(0);
    other.device.geometry.capacity_bytes = Some(32 * MIB);
    refuses(
        &data,
        other,
        &["created with geometry.capacity_bytes = 67108864, but 33554432 was given"],
    );
    let mut other = config(0);
    other.device.handles.count = 4;
    refuses(&data, other, &["created with handles.count = 2, but 4 was given"]);
}

#[test]
fn damaged_and_foreign_state_files_are_refused() {
    let (_folder, data) = existing();
    let state = beside(&data, ".state");
    let good = std::fs::read(&state).unwrap();
    std::fs::write(&state, &good[..good.len() - 1]).unwrap();
    refuses(
        &data,
        config(0),
        &["drive.img.state", "is damaged", "Restore it from a copy"],
    );
    std::fs::write(&state, "something else").unwrap();
    refuses(&data, config(0), &["was not written by this program"]);
    std::fs::write(&state, [&good[..8], &[9, 0, 0, 0], &good[12..]].concat()).unwrap();
    refuses(&data, config(0), &["has version 9, but this program reads version 2"]);
    std::fs::write(&state, &good).unwrap();
    assert!(open(&data, config(0)).unwrap().2.clean);
}

#[test]
fn damaged_and_foreign_snapshots_are_refused() {
    let (folder, data) = existing();
    let snapshot = beside(&data, ".ftl");
    overwrite(&snapshot, std::io::SeekFrom::End(-100), &[0x55; 8]);
    refuses(&data, config(0), &["drive.img.ftl", "checksum"]);
    let other_data = folder.path().join("other.img");
    let mut other = config(0);
    other.device.geometry.capacity_bytes = Some(32 * MIB);
    let (shared, drive, _) = open(&other_data, other).unwrap();
    stop(shared, drive);
    std::fs::copy(beside(&other_data, ".ftl"), &snapshot).unwrap();
    refuses(&data, config(0), &["drive.img.ftl", "another geometry", "move it away"]);
    // The remedy of the message.
    std::fs::remove_file(&snapshot).unwrap();
    let (shared, _drive, opened) = open(&data, config(0)).unwrap();
    assert_eq!(opened.pages_mapped_again, 8);
    check_mapping(&shared, |page| page < 8);
}

// ---------------------------------------------------------------------------------------------------- failing storage
// --

/// A full file system causes a Write Fault for the host, and the server continues.
#[test]
fn a_file_that_cannot_be_written_is_a_write_fault() {
    let (_folder, data) = folder();
    let file = File::create(&data).unwrap();
    file.set_len(FILE_BYTES).unwrap();
    file.write_all_at(&[3; 4096], 0).unwrap();
    let read_only = OpenDataFile::new(File::open(&data).unwrap());
    let media = target::storage::backend::FileBackend::new(read_only, Box::new(|_| Ok(()))).unwrap();
    let subsystem = Subsystem::new(config(0), Box::new(media)).unwrap();
    let shared = Arc::new(std::sync::Mutex::new(subsystem));
    let client = Client::connect(&shared);
    assert_eq!(client.write(5, PAGE_BYTES, &[1; 4096], false), Status::WRITE_FAULT);
    assert_eq!(client.deallocate(5, 1), Status::WRITE_FAULT);
    assert_eq!(client.read(0, 1, PAGE_BYTES).unwrap(), vec![3; 4096]);
    assert_eq!(lock(&shared).state().smart.media_errors, 2);
    lock(&shared).device().check().unwrap();
}

// ---------------------------------------------------------------------- states with right checksums and impossible numbers --

/// Returns a state with one number changed, as a postcard varint or a byte.
fn changed(bytes: &[u8], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    // Behind the version field.
    let at = random.random_range(4..bytes.len());
    let power = 1u64 << random.random_range(0..64);
    let mut number = match random.random_range(0..7) {
        0 => {
            changed[at] = random.random();
            return changed;
        }
        1 => random.random_range(0..40),
        2 => u64::MAX,
        3 => u64::from(u32::MAX),
        4 => power - 1,
        _ => power,
    };
    let mut varint = Vec::new();
    while number >= 0x80 {
        varint.push(number as u8 | 0x80);
        number >>= 7;
    }
    varint.push(number as u8);
    let end = bytes[at..]
        .iter()
        .position(|byte| byte & 0x80 == 0)
        .map_or(at, |last| at + last);
    changed.splice(at..=end, varint);
    changed
}

/// Sends all kinds of host commands, regardless of their results.
fn use_of(shared: &SharedSubsystem) {
    let client = Client::connect(shared);
    let ask = |opcode: u8, nsid: u32, dwords: [u32; 3], data: Vec<u8>| {
        let mut entry = SubmissionEntry::new_zeroed();
        (entry.opcode, entry.nsid) = (opcode, nsid.into());
        (entry.cdw10, entry.cdw11, entry.cdw12) = (dwords[0].into(), dwords[1].into(), dwords[2].into());
        let _ = client.execute(0, &entry, &mut { data });
    };
    for cns in [0, 1, 2, 3, 5, 6, 8, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15] {
        for nsid in [0, 1, 2, 3] {
            ask(AdminOpcode::Identify as u8, nsid, [cns, 0, 0], vec![0; 4096]);
        }
    }
    for log in [1, 2, 3, 4, 5, 6, 9, 0x20, 0x21, 0x22, 0x23, 0x81, 0xc0, 0xc3] {
        ask(
            AdminOpcode::GetLogPage as u8,
            1,
            [log | 0x3ff << 16, 1 << 16, 0],
            vec![0; 4096],
        );
    }
    for feature in 1..=0x20 {
        for select in 0..4 {
            ask(
                AdminOpcode::GetFeatures as u8,
                1,
                [feature | select << 8, 1, 0],
                vec![0; 4096],
            );
        }
    }
    for page in [0, 40, 16000] {
        let _ = client.write(page, PAGE_BYTES, &vec![1; PAGE_BYTES as usize], true);
        let _ = (
            client.read(page, 1, PAGE_BYTES),
            client.verify(page, 1),
            client.deallocate(page, 1),
        );
    }
    // Device Self-test, deletion and creation of a namespace, and a switch of the placement
    // configuration.
    ask(AdminOpcode::DeviceSelfTest as u8, 1, [1, 0, 0], Vec::new());
    for tick in 1..4 {
        lock(shared).tick(tick << 34);
    }
    ask(AdminOpcode::NamespaceManagement as u8, 2, [1, 0, 0], Vec::new());
    let mut wanted = vec![0; 4096];
    (wanted[0], wanted[8]) = (16, 16);
    ask(AdminOpcode::NamespaceManagement as u8, 0, [0, 0, 0], wanted);
    let state = lock(shared).state_for_checkpoint().to_bytes();
    if let Err(error) = NonVolatileState::from_bytes(&state) {
        let said = error.to_string();
        assert!(
            said.contains("which is impossible"),
            "what is stored can be read, but for a counter at its end: {said}"
        );
    }
    lock(shared).device().check().expect("the device is whole");
}

/// A state with entries of every kind, and its device.
fn full_state() -> (Vec<u8>, ssd::Device) {
    let (_folder, data) = folder();
    let mut small = config(1);
    small.namespace = false;
    let (shared, drive, _) = open(&data, small).unwrap();
    let client = Client::connect(&shared);
    for (blocks, format) in [(40_000u64, 1u8), (4096, 1), (64, 1)] {
        let mut entry = SubmissionEntry::new_zeroed();
        entry.opcode = AdminOpcode::NamespaceManagement as u8;
        let mut wanted = vec![0; 4096];
        wanted[..8].copy_from_slice(&blocks.to_le_bytes());
        wanted[8..16].copy_from_slice(&blocks.to_le_bytes());
        (wanted[26], wanted[30]) = (format, 1);
        assert_eq!(client.execute(0, &entry, &mut wanted), Status::SUCCESS);
    }
    for nsid in 1..4 {
        let mut entry = SubmissionEntry::new_zeroed();
        (entry.opcode, entry.nsid) = (AdminOpcode::NamespaceAttachment as u8, nsid.into());
        let mut controllers = vec![0; 4096];
        (controllers[0], controllers[2]) = (1, 1);
        assert_eq!(client.execute(0, &entry, &mut controllers), Status::SUCCESS);
    }
    for block in (0..4000).step_by(8) {
        let _ = client.write(block, 512, &[1; 4096], false);
    }
    let mut entry = SubmissionEntry::new_zeroed();
    (entry.opcode, entry.nsid, entry.cdw10) = (IoOpcode::WriteUncorrectable as u8, 1.into(), 800.into());
    assert_eq!(client.execute(1, &entry, &mut Vec::new()), Status::SUCCESS);
    admin(&client, AdminOpcode::DeviceSelfTest, 1, 1, 0, 0);
    assert_eq!(save_error_recovery(&client), Status::SUCCESS);
    let state = lock(&shared).state_for_checkpoint().to_bytes();
    let device = lock(&shared).device().try_clone().unwrap();
    drop(client);
    stop(shared, drive);
    (state, device)
}

#[test]
fn numbers_of_a_state_that_were_changed_never_end_the_server() {
    let (state, device) = full_state();
    let (mut used, mut refused) = (0, 0);
    for seed in 0..2500 {
        println!("seed {seed}");
        let bytes = changed(&state, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let media = Box::new(MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES)));
        let restored = NonVolatileState::from_bytes(&bytes).map_err(|error| error.to_string());
        let restored = restored.and_then(|state| {
            let device = device.try_clone().unwrap();
            Subsystem::restore(config(1), device, media, state).map_err(|error| error.to_string())
        });
        match restored {
            Ok(subsystem) => {
                use_of(&Arc::new(Mutex::new(subsystem)));
                used += 1;
            }
            Err(said) => {
                assert!(!said.contains('\n'), "{said}");
                refused += 1;
            }
        }
    }
    assert!(used > 300 && refused > 300, "{used} were used, {refused} refused");
}

#[test]
fn a_state_file_with_impossible_numbers_is_refused_or_served() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open_with(&data, config(0), true).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    stop(shared, drive);
    let paths = [".state", ".ftl", ".sums"].map(|extension| beside(&data, extension));
    let before = paths.clone().map(|path| std::fs::read(path).unwrap());
    let section = |at: usize| {
        let length: [u8; 8] = before[0][at..at + 8].try_into().unwrap();
        at + 8..at + 8 + u64::from_le_bytes(length) as usize
    };
    let header = section(12);
    let state = section(header.end + 4);
    for seed in 0..150 {
        println!("seed {seed}");
        for (path, bytes) in paths.iter().zip(&before) {
            std::fs::write(path, bytes).unwrap();
        }
        let wrong = changed(&before[0][state.clone()], &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut bytes = before[0][..header.end + 4].to_vec();
        bytes.extend((wrong.len() as u64).to_le_bytes());
        bytes.extend(&wrong);
        bytes.extend(crc32fast::hash(&wrong).to_le_bytes());
        std::fs::write(&paths[0], bytes).unwrap();
        let looked = stored(&data).map(|drive| drive.to_string());
        match open(&data, config(0)) {
            Ok((shared, drive, _)) => {
                assert!(looked.is_ok());
                use_of(&shared);
                stop(shared, drive);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

/// Counters with a valid checksum but implausible values.
#[test]
fn counters_that_there_cannot_be_are_passed_over() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    lock(&shared).tick(1 << 30);
    for (number, value) in [
        (0, 1 << 61),
        (1, u64::MAX),
        (1, 1 << 60),
        (2, 1 << 57),
        (3, u64::MAX),
        (6, u64::MAX),
    ] {
        let copy = crash(&data, "copy.img");
        let mut bytes = std::fs::read(beside(&copy, ".counters")).unwrap();
        let at = 24 + 8 * number;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..80]).to_le_bytes();
        bytes[80..].copy_from_slice(&checksum);
        std::fs::write(beside(&copy, ".counters"), bytes).unwrap();
        let (copy_shared, copy_drive, _) = open(&copy, config(0)).unwrap();
        use_of(&copy_shared);
        stop(copy_shared, copy_drive);
        let (copy_shared, copy_drive, opened) = open(&copy, config(0)).unwrap();
        assert!(opened.clean, "{opened}");
        stop(copy_shared, copy_drive);
    }
    stop(shared, drive);
}

// ---------------------------------------------------------------------------------- folders and files that are moved --

/// Creates a second drive at the first one's path, with 50 flushed pages.
fn another_at(data: &Path) -> (SharedSubsystem, ServedDrive) {
    let (shared, drive, opened) = open(data, config(0)).unwrap();
    assert!(opened.new);
    let client = Client::connect(&shared);
    write_pages(&client, 0, 50, 7);
    assert_eq!(client.flush(), Status::SUCCESS);
    (shared, drive)
}

/// Set Features 05h with the save bit: a command that changes the non-volatile state.
fn save_error_recovery(client: &Client) -> Status {
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = AdminOpcode::SetFeatures as u8;
    entry.nsid = 1.into();
    (entry.cdw10, entry.cdw11) = ((0x05 | 1 << 31).into(), 7.into());
    client.execute(0, &entry, &mut Vec::new())
}

/// Checks that after a kill the second drive has all flushed data.
fn is_whole_after_a_kill(data: &Path) {
    let (shared, drive, opened) = open(&crash(data, "killed.img"), config(0)).unwrap();
    assert_eq!((opened.clean, opened.bytes_given_back), (false, 0));
    check_mapping(&shared, |page| page < 50);
    assert_eq!(generation(&Client::connect(&shared), 49), 7);
    stop(shared, drive);
}

#[test]
fn a_drive_whose_folder_is_renamed_stores_itself_in_that_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (old, moved) = (folder.path().join("old"), folder.path().join("moved"));
    std::fs::create_dir(&old).unwrap();
    let data = old.join("drive.img");
    let (shared, mut drive, _) = open_with(&data, config(0), true).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 100, 20, 1);
    std::fs::rename(&old, &moved).unwrap();
    std::fs::create_dir(&old).unwrap();
    let (other_shared, other_drive) = another_at(&data);
    let before = contents(&old);

    write_pages(&client, 120, 20, 2);
    assert_eq!(client.flush(), Status::SUCCESS);
    lock(&shared).tick(1 << 30);
    assert!(drive.checkpoint(|| {}).unwrap());
    assert!(
        moved.join("drive.img.ftl").exists(),
        "the checkpoint is beside its data"
    );
    assert_eq!(drive.stored_files().len(), 2);
    assert_eq!(save_error_recovery(&client), Status::SUCCESS);
    drop(client);
    stop(shared, drive);
    assert!(contents(&old) == before, "nothing of the other drive was touched");
    is_whole_after_a_kill(&data);
    stop(other_shared, other_drive);

    let (shared, drive, opened) = open(&moved.join("drive.img"), config(0)).unwrap();
    assert_eq!((opened.clean, opened.checksums), (true, ChecksumState::Current));
    stop(shared, drive);
}

#[test]
fn a_drive_whose_data_file_is_moved_away_overwrites_nothing_of_the_one_that_takes_its_place() {
    let (folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 100, 20, 1);
    assert!(drive.checkpoint(|| {}).unwrap());
    let kept = data.with_file_name("kept.img");
    for extension in ["", ".state", ".ftl"] {
        std::fs::rename(beside(&data, extension), beside(&kept, extension)).unwrap();
    }
    let (other_shared, other_drive) = another_at(&data);
    let others = || -> Vec<_> {
        let all = contents(folder.path());
        all.into_iter().filter(|(path, ..)| !path.starts_with(&kept)).collect()
    };
    let before = others();

    write_pages(&client, 120, 20, 2);
    assert_eq!(
        client.flush(),
        Status::SUCCESS,
        "the data is in its file, wherever that is"
    );
    lock(&shared).tick(1 << 30);
    let said = drive.checkpoint(|| {}).unwrap_err().to_string();
    assert!(said.contains("another file has its path"), "{said}");
    let status = save_error_recovery(&client);
    assert_ne!(status, Status::SUCCESS, "what cannot be stored is not promised");
    let said = drive.close().unwrap_err().to_string();
    assert!(said.contains("another file has its path"), "{said}");
    drop((client, drive, shared));
    assert!(others() == before, "nothing of the other drive was touched");
    is_whole_after_a_kill(&data);
    stop(other_shared, other_drive);

    let (shared, drive, opened) = open(&kept, config(0)).unwrap();
    assert_eq!((opened.clean, opened.pages_mapped_again), (false, 20));
    check_mapping(&shared, |page| (100..140).contains(&page));
    stop(shared, drive);
}

#[test]
fn a_flush_to_a_data_file_that_was_removed_fails() {
    let (folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 5, 1);
    std::fs::remove_file(&data).unwrap();
    write_pages(&client, 5, 5, 1);
    assert_ne!(client.flush(), Status::SUCCESS);
    let said = drive.checkpoint(|| {}).unwrap_err().to_string();
    assert!(said.contains("its data file is no longer at its path"), "{said}");
    assert!(drive.close().is_err());
    drop((drive, shared));
    assert!(!beside(&data, ".ftl").exists());
    drop(folder);
}

#[test]
fn a_state_of_another_drive_is_not_replaced() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, config(0)).unwrap();
    let other = data.with_file_name("other.img");
    let (other_shared, other_drive) = another_at(&other);
    stop(other_shared, other_drive);
    std::fs::rename(beside(&other, ".state"), beside(&data, ".state")).unwrap();
    let before = std::fs::read(beside(&data, ".state")).unwrap();
    write_pages(&Client::connect(&shared), 0, 5, 1);
    let said = drive.checkpoint(|| {}).unwrap_err().to_string();
    assert!(said.contains("the state of another drive replaced its own"), "{said}");
    drop((drive, shared));
    assert!(std::fs::read(beside(&data, ".state")).unwrap() == before);
    assert!(!beside(&data, ".ftl").exists());
}

/// An older copy of the data and its checksums, beside a newer state and snapshot.
#[test]
fn data_of_another_shutdown_than_the_state_is_recovered() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open_with(&data, config(0), true).unwrap();
    write_pages(&Client::connect(&shared), 0, 40, 1);
    stop(shared, drive);
    let older = crash(&data, "older.img");
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 40, 40, 2);
    stop(shared, drive);
    for extension in [".state", ".ftl"] {
        std::fs::copy(beside(&data, extension), beside(&older, extension)).unwrap();
    }
    let (shared, drive, opened) = open(&older, config(0)).unwrap();
    assert_eq!(
        (opened.clean, opened.checksums, opened.pages_deallocated),
        (false, ChecksumState::Anew, 40)
    );
    let said = opened.to_string();
    let why = "drive of 64 MiB, whose data file and state come from different shutdowns, as its checksums show. ";
    assert!(said.starts_with(why), "{said}");
    check_mapping(&shared, |page| page < 40);
    stop(shared, drive);
    let (shared, drive, opened) = open(&older, config(0)).unwrap();
    assert!(opened.clean, "{opened}");
    stop(shared, drive);
}

// ------------------------------------------------------------------------------------------------- without any files
// --

fn forgetful(data: DataChoice) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
    let options = DriveOptions {
        subsystem: config(0),
        data,
        checksums: false,
    };
    ServedDrive::open(options, ServerClock::start())
}

#[test]
fn drives_without_files_are_new_each_time() {
    for data in [DataChoice::Memory, DataChoice::Null] {
        for _ in 0..2 {
            let (shared, mut drive, opened) = forgetful(data.clone()).unwrap();
            assert!(opened.new && opened.clean);
            let client = Client::connect(&shared);
            assert_eq!(generation(&client, 9), 0);
            write_pages(&client, 8, 4, 6);
            assert_eq!((generation(&client, 9), client.flush()), (6, Status::SUCCESS));
            assert_eq!(client.deallocate(9, 1), Status::SUCCESS);
            assert_eq!((generation(&client, 8), generation(&client, 9)), (6, 0));
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
    let options = DriveOptions {
        subsystem: large,
        data: DataChoice::Memory,
        checksums: false,
    };
    let error = ServedDrive::open(options, ServerClock::start())
        .err()
        .expect("no machine has that")
        .to_string();
    assert!(
        error.contains("65 TiB for its data") && error.contains("Serve a smaller capacity"),
        "{error}"
    );
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
    assert_eq!(
        (state.clean, state.file_bytes, state.namespaces.len()),
        (false, FILE_BYTES, 1)
    );
    assert_eq!(
        (device.live_pages, device.stats.host_bytes_written()),
        (16, 16 * PAGE_BYTES)
    );
    let text = seen.to_string();
    assert!(
        text.contains("in use or not shut down cleanly") && text.contains("HBMW 65536 bytes"),
        "{text}"
    );
    stop(shared, drive);
    assert!(stored(&data).unwrap().state.unwrap().clean);
    // A snapshot alone, and a file of another kind.
    let snapshot = stored(&beside(&data, ".ftl")).unwrap();
    assert!(snapshot.state.is_none() && snapshot.device.unwrap().live_pages == 16);
    assert!(stored(&beside(&data, ".state")).is_err());
}

// -------------------------------------------------------------------------------------------------------- checksums --

/// Changes a byte of a file.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn a_flipped_bit_is_not_served() {
    let (_folder, data) = folder();
    let (shared, drive, opened) = open_with(&data, config(0), true).unwrap();
    assert_eq!(opened.to_string(), "new drive of 64 MiB, with checksums");
    let client = Client::connect(&shared);
    write_pages(&client, 0, 300, 1);
    flip(&data, 3 * PAGE_BYTES + 100);
    let media_errors = || lock(&shared).state().smart.media_errors;
    assert_eq!((generation(&client, 2), media_errors()), (1, 0));
    assert_eq!(client.read(3, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
    assert_eq!(client.read(0, 256, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
    assert_eq!(client.verify(0, 300), Status::UNRECOVERED_READ_ERROR);
    assert_eq!((client.verify(4, 296), media_errors()), (Status::SUCCESS, 3));
    write_pages(&client, 3, 1, 2);
    assert_eq!((generation(&client, 3), client.verify(0, 300)), (2, Status::SUCCESS));
    flip(&data, 7 * PAGE_BYTES);
    assert_eq!(client.deallocate(7, 1), Status::SUCCESS);
    assert_eq!(client.verify(0, 300), Status::SUCCESS, "what is gone is not damaged");
    flip(&data, 9 * PAGE_BYTES);
    stop(shared, drive);
    let (shared, drive, opened) = open(&data, config(0)).unwrap();
    assert_eq!(
        opened.checksums,
        ChecksumState::Current,
        "a drive that has some keeps them"
    );
    let client = Client::connect(&shared);
    assert_eq!(client.read(9, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
    stop(shared, drive);
}

#[test]
fn sums_of_another_boot_begin_anew() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open_with(&data, config(0), true).unwrap();
    let client = Client::connect(&shared);
    write_pages(&client, 0, 100, 1);
    let (killed, power_lost) = (crash(&data, "killed.img"), crash(&data, "power.img"));
    // The header of another boot, and a disk with one page but not its sum.
    let mut header = std::fs::read(beside(&power_lost, ".sums")).unwrap();
    header[32..48].fill(9);
    let checksum = crc32fast::hash(&header[..52]).to_le_bytes();
    header[52..56].copy_from_slice(&checksum);
    std::fs::write(beside(&power_lost, ".sums"), header).unwrap();
    for (copy, checksums, read) in [
        (killed, ChecksumState::Current, 0),
        (power_lost, ChecksumState::Anew, 1),
    ] {
        flip(&copy, 5 * PAGE_BYTES);
        let (shared, drive, opened) = open(&copy, config(0)).unwrap();
        assert_eq!((opened.clean, opened.checksums), (false, checksums));
        let client = Client::connect(&shared);
        assert_eq!(client.verify(0, 5), Status::SUCCESS);
        assert_eq!(u32::from(client.read(5, 1, PAGE_BYTES).is_ok()), read);
        stop(shared, drive);
    }
    stop(shared, drive);
}

/// A kill during the shutdown keeps all sums, both before and after the state records the shutdown.
#[test]
fn a_shutdown_that_is_cut_short_keeps_the_sums() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open_with(&data, config(0), true).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    let state = beside(&data, ".state");
    let in_use = std::fs::read(&state).unwrap();
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    drive.close().expect_err("the state cannot be stored");
    std::fs::remove_dir(&state).unwrap();
    std::fs::write(&state, in_use).unwrap();
    let before = crash(&data, "before.img");
    let sums_in_use = std::fs::read(beside(&data, ".sums")).unwrap();
    stop(shared, drive);
    let after = crash(&data, "after.img");
    std::fs::write(beside(&after, ".sums"), sums_in_use).unwrap();
    for (copy, clean) in [(before, false), (after, true)] {
        flip(&copy, 5 * PAGE_BYTES);
        let (shared, drive, opened) = open(&copy, config(0)).unwrap();
        assert_eq!((opened.clean, opened.checksums), (clean, ChecksumState::Current));
        let client = Client::connect(&shared);
        assert_eq!(client.verify(0, 5), Status::SUCCESS);
        assert_eq!(client.read(5, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
        stop(shared, drive);
    }
}

#[test]
fn a_scrub_finds_damage_and_what_has_no_sum() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 200, 1);
    assert!(drive.scrubber().is_none());
    stop(shared, drive);
    let error = scrub(&data).unwrap_err().to_string();
    assert!(error.contains("has no checksums"), "{error}");
    let (shared, drive, opened) = open_with(&data, config(0), true).unwrap();
    assert_eq!(opened.checksums, ChecksumState::Anew);
    let mut said = Vec::new();
    let mut scrubber = drive.scrubber().unwrap();
    let mut pass = |said: &mut Vec<String>| {
        let before = lock(&shared).scrub_results().unwrap();
        while lock(&shared).scrub_results().unwrap().passes == before.passes {
            let mut say = |found: &str| said.push(found.to_string());
            scrubber.slice(std::time::Duration::ZERO, &mut say).unwrap();
        }
        let after = lock(&shared).scrub_results().unwrap();
        (
            after.pages_checked - before.pages_checked,
            after.pages_damaged - before.pages_damaged,
        )
    };
    assert_eq!(pass(&mut said), (200, 0));
    assert!(said.is_empty(), "they have sums from now on: {said:?}");
    flip(&data, 70 * PAGE_BYTES);
    assert_eq!(pass(&mut said), (200, 1));
    let page = format!("the scrub found a damaged page at byte {}", 70 * PAGE_BYTES);
    assert_eq!(said, [page, "the scrub found 1 damaged pages".to_string()]);
    assert!(matches!(scrub(&data), Err(DriveError::InUse(_))));
    stop(shared, drive);
    let report = scrub(&data).unwrap();
    assert_eq!((report.pages, report.pages_unknown, report.pages_damaged), (200, 0, 1));
    assert_eq!(report.damaged_at_bytes, [70 * PAGE_BYTES]);
}

#[test]
fn counters_and_sums_of_another_drive_are_none() {
    let (folder, data) = folder();
    let (shared, drive, _) = open_with(&data, config(0), true).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    lock(&shared).tick(1 << 30);
    let other = folder.path().join("other.img");
    let (other_shared, other_drive, _) = open_with(&other, config(0), true).unwrap();
    write_pages(&Client::connect(&other_shared), 0, 10, 1);
    let copy = crash(&other, "copy.img");
    for extension in [".counters", ".sums"] {
        std::fs::copy(beside(&data, extension), beside(&copy, extension)).unwrap();
    }
    let (copy_shared, copy_drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!(opened.checksums, ChecksumState::Anew);
    let hbmw = lock(&copy_shared).device().stats().host_bytes_written();
    assert!(hbmw <= 10 * PAGE_BYTES, "{hbmw} bytes are those of the other drive");
    stop(copy_shared, copy_drive);
    stop(other_shared, other_drive);
    stop(shared, drive);
}
