//! A snapshot is the device: what is loaded goes on exactly as what was saved, and a damaged file is refused in a
//! sentence.
//!
//! The device under test has everything that a snapshot could forget: divided superblocks, persistently isolated
//! handles, victims drawn at random, remapped blocks. Damage is done to every part of the file.
//!
//! It does not cover: the command line's `--save` and `--from` (`crates/cli/tests/command.rs`).

mod common;

use std::path::{Path, PathBuf};

use common::*;
use ssd::config::{DeviceConfig, Isolation, ReclaimUnitSize};
use ssd::snapshot::VERSION;
use ssd::{Device, RuhId, SnapshotError};
use tempfile::TempDir;

/// Length of magic and version.
const HEADER_BYTES: usize = 12;
/// Position of the version.
const VERSION_AT: usize = 8;
/// What the sections of a file are called in errors, in their order.
const SECTIONS: [&str; 4] = ["configuration", "note", "state", "L2P map (part 1)"];
/// What is saved beside the device.
const NOTE: &[u8] = b"a note of thirty bytes, or so..";

/// A device of this configuration that was overwritten until it collected a lot.
fn used(config: &DeviceConfig) -> (Device, Uniform) {
    let mut device = silent(config);
    let mut uniform = Uniform::new(7);
    work(&mut device, &mut uniform, 12_000);
    assert!(
        device.stats().write_amplification().expect("something was written") > 1.05,
        "the device collected"
    );
    (device, uniform)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be listed")
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    files.sort();
    files
}

/// A snapshot of a used device, as bytes, and a folder to damage copies of it in.
struct SavedSnapshot {
    folder: TempDir,
    bytes: Vec<u8>,
    /// Where each section begins, with its length field; last, the end of the file.
    sections: Vec<usize>,
}

impl SavedSnapshot {
    fn new() -> SavedSnapshot {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("whole.warp");
        let (device, _) = used(&everything());
        device.save_with_note(&path, NOTE).expect("the snapshot is written");
        let bytes = std::fs::read(&path).expect("the snapshot is there");
        let mut sections = vec![HEADER_BYTES];
        for _ in SECTIONS {
            let begin = *sections.last().expect("there is one");
            let length: [u8; 8] = bytes[begin..begin + 8].try_into().expect("eight bytes");
            sections.push(begin + 8 + u64::from_le_bytes(length) as usize + 4);
        }
        assert_eq!(
            sections.last(),
            Some(&bytes.len()),
            "the sections are the rest of the file"
        );
        SavedSnapshot {
            folder,
            bytes,
            sections,
        }
    }

    /// What loading a file of these bytes says; it has to refuse them, by path and with a remedy, in one line.
    fn refusal(&self, bytes: &[u8], what: &str) -> String {
        let path = self.folder.path().join("damaged.warp");
        std::fs::write(&path, bytes).expect("the damaged copy is written");
        let error = match Device::load(&path) {
            Ok(_) => panic!("{what}: the damaged snapshot was loaded"),
            Err(error) => error,
        };
        let (named, problem, remedy) = match &error {
            SnapshotError::Invalid { path, problem, remedy } => (path, problem.as_str(), *remedy),
            SnapshotError::Foreign { path } => (
                path,
                "is not a WARP snapshot",
                "give a file that `warp run --save` wrote",
            ),
            SnapshotError::Io { .. } => panic!("{what}: {error}"),
        };
        assert_eq!(named, &path.display().to_string(), "{what}");
        assert!(!problem.is_empty() && !remedy.is_empty(), "{what}: {error}");
        let text = error.to_string();
        assert_eq!(text, format!("snapshot {}: {problem}; {remedy}", path.display()));
        assert!(!text.contains('\n'), "{what}: {text}");
        text
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Saving and loading

#[test]
fn a_loaded_device_goes_on_as_the_saved_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, mut uniform) = used(&everything());
    let owners = device.stats().handles.iter().chain([&device.stats().shared]);
    assert!(
        owners.map(|row| row.blocks_remapped).sum::<u64>() > 0,
        "blocks were remapped"
    );
    assert_eq!(device.default_placement(RuhId(1)), placement(0, 1));
    device.save(&path).expect("the snapshot is written");
    let mut loaded = Device::load(&path).expect("the snapshot is loaded");
    assert_same(&device, &loaded);
    for device in [&mut device, &mut loaded] {
        // The turn of the reclaim groups goes on, whichever handle asks.
        let turns = [1, 0, 1].map(|handle| device.default_placement(RuhId(handle)).group.0);
        assert_eq!(turns, [1, 0, 1]);
    }

    let before = device.stats().clone();
    let mut same = Uniform::new(99);
    work(&mut loaded, &mut same, 6_000);
    let mut same = Uniform::new(99);
    work(&mut device, &mut same, 6_000);
    assert_same(&device, &loaded);
    assert!(
        device.stats().media_bytes_written() > before.media_bytes_written(),
        "there was something to compare"
    );

    // And once more over the same file.
    loaded.save(&path).expect("the snapshot is replaced");
    let mut again = Device::load(&path).expect("the snapshot is loaded");
    let draws = uniform.below(u32::MAX);
    work(&mut again, &mut Uniform::new(u64::from(draws)), 2_000);
    work(&mut device, &mut Uniform::new(u64::from(draws)), 2_000);
    assert_same(&device, &again);
    assert_eq!(files(folder.path()), [path]);
}

#[test]
fn the_random_numbers_of_victims_go_on_where_they_were() {
    let (device, _) = used(&everything());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    device.save(&path).expect("the snapshot is written");
    let mut loaded = Device::load(&path).expect("the snapshot is loaded");
    // The state of the generator does not follow from the configuration: after a fresh start with the same seed, the
    // generator stands elsewhere. Two continuations agree only if it was stored.
    let mut original = device.clone();
    work(&mut original, &mut Uniform::new(3), 3_000);
    work(&mut loaded, &mut Uniform::new(3), 3_000);
    assert!(physical_pages(&original) == physical_pages(&loaded));

    let mut reseeded = everything();
    reseeded.seed += 1;
    let (other, _) = used(&reseeded);
    assert!(
        physical_pages(&other) != physical_pages(&device),
        "the random policy shows in the lookups at all"
    );
}

#[test]
fn an_empty_device_and_every_isolation_survive() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for isolation in [
        Isolation::InitiallyIsolated,
        Isolation::PersistentlyIsolated,
        Isolation::Adaptive,
    ] {
        let mut config = everything();
        config.handles.isolation = isolation;
        config.handles.reclaim_unit = ReclaimUnitSize::Channel;
        let path = folder.path().join("device.warp");
        let mut device = silent(&config);
        for _ in 0..2 {
            device.save(&path).expect("the snapshot is written");
            let mut loaded = Device::load(&path).expect("the snapshot is loaded");
            work(&mut device, &mut Uniform::new(5), 5_000);
            work(&mut loaded, &mut Uniform::new(5), 5_000);
            assert_same(&device, &loaded);
        }
    }
}

#[test]
fn what_is_noted_with_a_device_is_found_again_and_changes_nothing() {
    let saved = SavedSnapshot::new();
    let path = saved.folder.path().join("whole.warp");
    let (config, note) = Device::saved(&path).expect("the snapshot is there");
    assert_eq!((&config, note.as_slice()), (&everything(), NOTE));
    let device = Device::load(&path).expect("the snapshot is loaded");
    device.save(&path).expect("the snapshot is replaced");
    let (_, note) = Device::saved(&path).expect("the snapshot is there");
    assert!(note.is_empty(), "a device does not know what was noted");
}

#[test]
fn a_fork_diverges_and_leaves_the_original_alone() {
    let (mut device, _) = used(&everything());
    let mut fork = device.clone();
    assert_same(&device, &fork);
    let (stats, pages) = (device.stats().clone(), physical_pages(&device));

    work(&mut fork, &mut Uniform::new(11), 3_000);
    assert_eq!(device.stats(), &stats);
    assert!(physical_pages(&device) == pages, "the fork wrote into the original");
    assert_ne!(fork.stats(), &stats);

    let (fork_stats, fork_pages) = (fork.stats().clone(), physical_pages(&fork));
    work(&mut device, &mut Uniform::new(12), 3_000);
    assert_eq!(fork.stats(), &fork_stats);
    assert!(physical_pages(&fork) == fork_pages, "the original wrote into the fork");
    assert!(physical_pages(&device) != fork_pages);
    device.check().expect("the original is whole");
    fork.check().expect("the fork is whole");
}

// ---------------------------------------------------------------------------------------------------------------------
// Damage

#[test]
fn a_truncated_snapshot_is_refused_wherever_it_ends() {
    let saved = SavedSnapshot::new();
    let whole = saved.bytes.len();
    let mut ends = vec![0, 1, VERSION_AT - 1, VERSION_AT, VERSION_AT + 2];
    for bounds in saved.sections.windows(2) {
        let (begin, end) = (bounds[0], bounds[1]);
        // Before the length, within it, after it, within the bytes, before and within the checksum.
        ends.extend([
            begin,
            begin + 3,
            begin + 8,
            begin + 9,
            begin.midpoint(end),
            end - 4,
            end - 1,
        ]);
    }
    ends.extend((0..100).map(|step| step * whole / 100));
    for end in ends {
        let text = saved.refusal(&saved.bytes[..end], &format!("cut at {end} of {whole}"));
        assert!(text.contains("ends in the middle of its"), "cut at {end}: {text}");
        let within = saved
            .sections
            .windows(2)
            .position(|bounds| (bounds[0]..bounds[1]).contains(&end));
        if let Some(section) = within {
            assert!(text.contains(SECTIONS[section]), "cut at {end}: {text}");
        }
    }
}

#[test]
fn every_flipped_byte_is_noticed() {
    let saved = SavedSnapshot::new();
    let mut positions: Vec<usize> = (0..HEADER_BYTES).collect();
    for bounds in saved.sections.windows(2) {
        let (begin, end) = (bounds[0], bounds[1]);
        positions.extend(begin..begin + 12);
        positions.extend(end - 8..end);
        positions.extend((1..24).map(|step| begin + step * (end - begin) / 24));
    }
    let mut uniform = Uniform::new(21);
    for position in positions {
        let mut bytes = saved.bytes.clone();
        bytes[position] ^= 1 << uniform.below(8);
        saved.refusal(&bytes, &format!("a bit of byte {position} flipped"));
        bytes[position] = !saved.bytes[position];
        saved.refusal(&bytes, &format!("byte {position} inverted"));
    }
}

#[test]
fn other_files_and_other_versions_are_named_as_such() {
    let saved = SavedSnapshot::new();
    let text = saved.refusal(b"[geometry]\ncapacity_bytes = 1\n", "a text file");
    assert!(
        text.contains("is not a WARP snapshot") && text.contains("warp run --save"),
        "{text}"
    );

    for version in [0, VERSION + 1, u32::MAX] {
        let mut bytes = saved.bytes.clone();
        bytes[VERSION_AT..HEADER_BYTES].copy_from_slice(&version.to_le_bytes());
        let text = saved.refusal(&bytes, "another version");
        assert!(
            text.contains(&format!("version {version}")) && text.contains(&format!("version {VERSION}")),
            "{text}"
        );
    }
}

#[test]
fn what_follows_the_last_section_is_refused() {
    let saved = SavedSnapshot::new();
    for rest in [&b"\0"[..], b"more", &saved.bytes] {
        let text = saved.refusal(&[&saved.bytes, rest].concat(), "trailing bytes");
        assert!(text.contains("goes on after its last section"), "{text}");
    }
}

#[test]
fn a_length_beyond_reason_is_refused_without_allocating_it() {
    let saved = SavedSnapshot::new();
    for (section, begin) in SECTIONS.iter().zip(&saved.sections) {
        for length in [u64::MAX, 1 << 60, 32 << 30] {
            let mut bytes = saved.bytes.clone();
            bytes[*begin..begin + 8].copy_from_slice(&length.to_le_bytes());
            let text = saved.refusal(&bytes, "a section of an absurd length");
            assert!(text.contains(section), "{text}");
        }
    }
}

#[test]
fn sections_of_another_device_are_refused() {
    let saved = SavedSnapshot::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("larger.warp");
    let mut larger = everything();
    larger.geometry.physical_bytes = Some(128 * MIB);
    silent(&larger).save(&path).expect("the snapshot is written");
    let other = std::fs::read(&path).expect("the snapshot is there");
    // Its header and configuration (checksum and all), then the state and the maps of the smaller device.
    let length: [u8; 8] = other[HEADER_BYTES..HEADER_BYTES + 8].try_into().expect("eight bytes");
    let configuration = HEADER_BYTES + 8 + u64::from_le_bytes(length) as usize + 4;
    let mixed = [&other[..configuration], &saved.bytes[saved.sections[1]..]].concat();
    let text = saved.refusal(&mixed, "a state of another geometry");
    assert!(text.contains("another geometry"), "{text}");
}

/// Checksums find what was damaged; what was never right is found by what the parts say of each other.
#[test]
fn a_map_that_is_no_map_of_the_state_is_refused() {
    let saved = SavedSnapshot::new();
    let section = saved.sections[SECTIONS.len() - 1];
    let (first_run, end) = (section + 9, saved.bytes.len() - 4);
    assert_eq!(saved.bytes[section + 8], 1, "the map is stored as runs");
    let runs = saved.bytes[first_run..end].chunks(8).enumerate();
    let mapped = runs.filter(|(_, run)| run[..4] != [0; 4]);
    let mapped: Vec<usize> = mapped.map(|(at, _)| first_run + 8 * at).collect();
    let with = |at: usize, entry: [u8; 4]| {
        let mut bytes = saved.bytes.clone();
        bytes[at..at + 4].copy_from_slice(&entry);
        let checksum = crc32fast::hash(&bytes[section + 8..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    let (one, other) = (mapped[3], mapped[1000]);
    let other_entry = saved.bytes[other..other + 4].try_into().expect("four bytes");
    for (entry, expected) in [
        (other_entry, "to where another one is"),
        (1_u32.to_le_bytes(), "to a page beyond its flash"),
        ([0; 4], "does not agree with its L2P map"),
    ] {
        let text = saved.refusal(&with(one, entry), expected);
        assert!(text.contains(expected), "{text}");
    }
    let mut bytes = with(one, other_entry);
    bytes[section + 8] = 7;
    let checksum = crc32fast::hash(&bytes[section + 8..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    let text = saved.refusal(&bytes, "a form that there is not");
    assert!(text.contains("L2P map (part 1) that cannot be decoded"), "{text}");
}

// ---------------------------------------------------------------------------------------------------------------------
// The file system

#[test]
fn saving_into_a_missing_folder_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("missing").join("device.warp");
    let error = silent(&everything()).save(&path).expect_err("there is no such folder");
    assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn loading_a_missing_file_names_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("missing.warp");
    let error = Device::load(&path).err().expect("there is no such file");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
}

#[test]
fn a_failed_save_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let destination = folder.path().join("folder");
    std::fs::create_dir(&destination).expect("a folder in the way");
    let inner = destination.join("older.warp");
    let (device, _) = used(&everything());
    device.save(&inner).expect("the snapshot is written");
    let before = std::fs::read(&inner).expect("the snapshot is there");

    let error = device.save(&destination).expect_err("a folder is in the way");
    assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
    assert_eq!(files(folder.path()), [destination], "no temporary file stays behind");
    assert_eq!(std::fs::read(&inner).expect("the snapshot is still there"), before);
    assert_same(&Device::load(&inner).expect("the snapshot is still whole"), &device);
}

#[cfg(unix)]
#[test]
fn a_file_where_a_folder_should_be_stays_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, mut uniform) = used(&everything());
    device.save(&path).expect("the snapshot is written");
    let before = std::fs::read(&path).expect("the snapshot is there");
    work(&mut device, &mut uniform, 1_000);
    // A file where a folder should be.
    let error = device.save(&path.join("below")).expect_err("a file is not a folder");
    assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
    assert_eq!(std::fs::read(&path).expect("the snapshot is still there"), before);
    assert_eq!(files(folder.path()), [path]);
}
