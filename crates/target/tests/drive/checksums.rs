//! Checksums of the data: damage, reboots and the scrub.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nvme_spec::Status;
use target::lock;
use target::storage::{ChecksumState, DriveError, scrub};

use crate::crash::crash;
use crate::small_drive::{Client, PAGE_BYTES, beside, config, folder, generation, open, open_with, write_pages};
use crate::stop;

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
    assert_eq!(opened.checksums, ChecksumState::Current, "a drive that has some keeps them");
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
    for (copy, checksums, read) in [(killed, ChecksumState::Current, 0), (power_lost, ChecksumState::Anew, 1)] {
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
        (after.pages_checked - before.pages_checked, after.pages_damaged - before.pages_damaged)
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
