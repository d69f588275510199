//! A drive after a crash: the mapping, counters, namespaces and events.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rustix::fs::SeekFrom;
use target::{SharedSubsystem, lock};
use zerocopy::FromZeros;

use crate::crash::{copy_sparse, crash};
use crate::small_drive::{
    CAPACITY_BYTES, Client, MIB, PAGE_BYTES, admin, beside, check_mapping, config, folder, generation, open, set_fdp,
    write_pages,
};
use crate::stop;

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
    assert_eq!((opened.pages_mapped_again, opened.pages_deallocated, opened.bytes_given_back), (31, 4, 0));
    let sentence = opened.to_string();
    assert!(
        sentence.starts_with("drive of 64 MiB, which was not shut down cleanly. Its mapping and counters"),
        "{sentence}"
    );
    assert!(sentence.ends_with("31 pages were mapped again and 4 were deallocated"), "{sentence}");
    let mapped =
        |page| (100..140).contains(&page) || (144..150).contains(&page) || (200..230).contains(&page) || page == 16_383;
    check_mapping(&shared, mapped);
    let client = Client::connect(&shared);
    for (page, expected) in [(99, 0), (100, 2), (109, 2), (110, 1), (140, 0), (144, 1), (200, 3), (229, 3), (16_383, 4)]
    {
        assert_eq!(generation(&client, page), expected, "page {page}");
    }
    let smart = lock(&shared).state().smart.clone();
    assert_eq!((smart.power_cycles, smart.unsafe_shutdowns), (2, 1));
    // The recovered state is stored, so a second crash needs no repairs.
    let again = crash(&copy, "again.img");
    stop(shared, drive);
    let (shared, _drive, opened) = open(&again, config(0)).unwrap();
    assert_eq!((opened.clean, opened.pages_mapped_again, opened.pages_deallocated), (false, 0, 0));
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
    let cases =
        [("a.img", &early, &data, (0, 0)), ("b.img", &data, &early, (40, 8)), ("c.img", &early, &early, (40, 8))];
    for (name, state, snapshot, rebuilt) in cases {
        let (shared, _drive, opened) = open(&files(name, state, snapshot), config(0)).unwrap();
        assert!(!opened.clean, "{name}");
        assert_eq!((opened.pages_mapped_again, opened.pages_deallocated), rebuilt, "{name}");
        check_mapping(&shared, |page| (8..80).contains(&page));
        let client = Client::connect(&shared);
        assert_eq!((generation(&client, 7), generation(&client, 8), generation(&client, 79)), (0, 1, 2));
    }
    // A missing snapshot is equivalent to a drive without a checkpoint.
    let removed = files("d.img", &data, &data);
    std::fs::remove_file(beside(&removed, ".ftl")).unwrap();
    let (shared, _drive, opened) = open(&removed, config(0)).unwrap();
    assert_eq!((opened.clean, opened.snapshot, opened.pages_mapped_again), (false, false, 72));
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
        let erases = subsystem.device().block_erase_counts().iter().map(|&count| u64::from(count)).sum();
        (subsystem.device().stats().host_bytes_written(), erases)
    };
    let before = history(&shared);
    assert!(before.1 > 0);
    // Deletes the namespace, then disables Flexible Data Placement. The drive is empty afterwards.
    admin(&client, AdminOpcode::NamespaceManagement, 1, 1, 0, 0);
    set_fdp(&client, false);
    let copy = crash(&data, "copy.img");
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!((opened.clean, opened.snapshot, opened.pages_mapped_again), (false, true, 0));
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
    // The same applies to metadata.
    file.write_all_at(&vec![7; 65536], CAPACITY_BYTES + 65536).unwrap();
    let (shared, _drive, opened) = open(&copy, config(0)).unwrap();
    assert_eq!((opened.bytes_given_back, opened.pages_mapped_again, opened.pages_deallocated), (MIB, 0, 512));
    assert!(opened.to_string().ends_with(". 1 MiB outside namespaces were freed"), "{opened}");
    assert!(rustix::fs::seek(&file, SeekFrom::Data(0)).is_err(), "the file is one hole");
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
        lock(shared).state().fdp.events.host().iter().map(|event| event.kind).collect()
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
    let others = [".drive.img.ftl-2.img.state-abc123.part", ".other.img.ftl-abc123.part", "notes.part"];
    for name in left.iter().chain(&others) {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let _open = open(&data, config(0)).unwrap();
    assert!(left.iter().all(|name| !folder.path().join(name).exists()));
    assert!(others.iter().all(|name| folder.path().join(name).exists()));
}
