//! Folders and files that are renamed, removed or replaced while a drive is served.

use std::path::Path;

use nvme_spec::Status;
use target::storage::{ChecksumState, ServedDrive};
use target::{SharedSubsystem, lock};

use crate::crash::crash;
use crate::small_drive::{Client, beside, check_mapping, config, folder, generation, open, open_with, write_pages};
use crate::{contents, save_error_recovery, stop};

/// Creates a second drive at the first one's path, with 50 flushed pages.
fn another_at(data: &Path) -> (SharedSubsystem, ServedDrive) {
    let (shared, drive, opened) = open(data, config(0)).unwrap();
    assert!(opened.new);
    let client = Client::connect(&shared);
    write_pages(&client, 0, 50, 7);
    assert_eq!(client.flush(), Status::SUCCESS);
    (shared, drive)
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
    assert!(moved.join("drive.img.ftl").exists(), "the checkpoint is beside its data");
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
    assert_eq!(client.flush(), Status::SUCCESS, "the data is in its file, wherever that is");
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
    assert_eq!((opened.clean, opened.checksums, opened.pages_deallocated), (false, ChecksumState::Anew, 40));
    let said = opened.to_string();
    let why = "drive of 64 MiB, whose data file and state come from different shutdowns, as its checksums show. ";
    assert!(said.starts_with(why), "{said}");
    check_mapping(&shared, |page| page < 40);
    stop(shared, drive);
    let (shared, drive, opened) = open(&older, config(0)).unwrap();
    assert!(opened.clean, "{opened}");
    stop(shared, drive);
}
