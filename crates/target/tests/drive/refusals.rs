//! Files that a drive refuses, and storage that fails.

use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvme::Subsystem;
use nvme_spec::Status;
use target::lock;
use target::storage::backend::file::OpenDataFile;
use tempfile::TempDir;

use crate::small_drive::{
    CAPACITY_BYTES, Client, FILE_BYTES, MIB, PAGE_BYTES, beside, check_mapping, config, folder, open, write_pages,
};
use crate::{contents, stop};

/// Checks that opening fails with a message that contains all of `words`, and changes no file in
/// the folder.
fn refuses(data: &Path, config: nvme::SubsystemConfig, words: &[&str]) {
    let folder = data.parent().unwrap();
    let before = contents(folder);
    let error = open(data, config).err().expect("this drive must be refused").to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
    assert!(!error.contains('\n') && !error.ends_with('.'), "one sentence: {error:?}");
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
    refuses(&data, config(0), &["drive.img", "contains data, but", "drive.img.state"]);
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
        OpenOptions::new().write(true).open(&data).unwrap().set_len(length).unwrap();
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
    refuses(&data, other, &["created with geometry.capacity_bytes = 67108864, but 33554432 was given"]);
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
    refuses(&data, config(0), &["drive.img.state", "is damaged", "Restore it from a copy"]);
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
