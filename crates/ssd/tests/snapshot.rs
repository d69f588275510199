//! Snapshots preserve the whole device: a loaded device continues exactly as the saved one, and a
//! damaged file gives a clear error.
//!
//! The device under test has all state that a snapshot could miss: divided superblocks,
//! persistently isolated handles, random victims, remapped blocks. The tests damage every part of
//! the file.
//!
//! `crates/cli/tests/command/` covers the command line's `--save-snapshot` and `--load-snapshot`.

mod common;

use std::path::{Path, PathBuf};

use common::*;
use ssd::config::{DeviceConfig, EnduranceConfig, GcDestination, Isolation, ReclaimUnitSize, SourcePolicy, VictimRule};
use ssd::snapshot::VERSION;
use ssd::timing::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming, TimingConfig};
use ssd::{Device, FdpTotals, Lpn, RuhId, SnapshotError};
use tempfile::TempDir;

/// Length of magic and version.
const HEADER_BYTES: usize = 12;
/// Position of the version.
const VERSION_AT: usize = 8;
/// Names of the sections in errors, in file order.
const SECTIONS: [&str; 4] = ["configuration", "note", "state", "L2P map (part 1)"];
/// Note saved with the device.
const NOTE: &[u8] = b"a note of thirty bytes, or so..";

/// A device of this configuration, overwritten until it has collected many units.
fn used(config: &DeviceConfig) -> (Device, Uniform) {
    let mut device = silent(config);
    let mut uniform = Uniform::new(7);
    work(&mut device, &mut uniform, 12_000);
    assert!(device.stats().write_amplification().expect("something was written") > 1.05, "the device collected");
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

/// Snapshot of a used device, as bytes, and a folder for damaged copies.
struct SavedSnapshot {
    folder: TempDir,
    bytes: Vec<u8>,
    /// Start of each section, at its length field. The last entry is the end of the file.
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
        assert_eq!(sections.last(), Some(&bytes.len()), "the sections are the rest of the file");
        SavedSnapshot { folder, bytes, sections }
    }

    /// Error of loading a file of these bytes. Asserts that it names the path and a remedy, in one
    /// line.
    fn refusal(&self, bytes: &[u8], what: &str) -> String {
        let path = self.folder.path().join("damaged.warp");
        std::fs::write(&path, bytes).expect("the damaged copy is written");
        let error = match Device::load(&path) {
            Ok(_) => panic!("{what}: the damaged snapshot was loaded"),
            Err(error) => error,
        };
        let (named, problem, remedy) = match &error {
            SnapshotError::Invalid { path, problem, remedy } => (path, problem.as_str(), *remedy),
            SnapshotError::Foreign { path } => {
                (path, "is not a WARP snapshot", "Give a file that `warp run --save-snapshot` wrote")
            }
            SnapshotError::Io { .. } => panic!("{what}: {error}"),
        };
        assert_eq!(named, &path.display().to_string(), "{what}");
        assert!(!problem.is_empty() && !remedy.is_empty(), "{what}: {error}");
        let text = error.to_string();
        let whole = match &error {
            SnapshotError::Foreign { .. } => format!("{} {problem}. {remedy}", path.display()),
            _ => format!("the snapshot {} {problem}. {remedy}", path.display()),
        };
        assert_eq!(text, whole);
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
    assert!(owners.map(|row| row.blocks_remapped).sum::<u64>() > 0, "blocks were remapped");
    assert_eq!(device.default_placement(RuhId(1)), placement(0, 1));
    device.save(&path).expect("the snapshot is written");
    let mut loaded = Device::load(&path).expect("the snapshot is loaded");
    assert_same(&device, &loaded);
    for device in [&mut device, &mut loaded] {
        // The rotation over reclaim groups continues, for any handle.
        let turns = [1, 0, 1].map(|handle| device.default_placement(RuhId(handle)).group.0);
        assert_eq!(turns, [1, 0, 1]);
    }

    let before = device.stats().clone();
    let mut same = Uniform::new(99);
    work(&mut loaded, &mut same, 6_000);
    let mut same = Uniform::new(99);
    work(&mut device, &mut same, 6_000);
    assert_same(&device, &loaded);
    assert!(device.stats().media_bytes_written() > before.media_bytes_written(), "there was something to compare");

    // Saves again over the same file.
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
    // The state of the random generator is not derived from the configuration. A fresh generator
    // with the same seed would differ here. Two continuations agree only if the snapshot contains
    // the state.
    let mut original = device.clone();
    work(&mut original, &mut Uniform::new(3), 3_000);
    work(&mut loaded, &mut Uniform::new(3), 3_000);
    assert!(physical_pages(&original) == physical_pages(&loaded));

    let mut reseeded = everything();
    reseeded.seed += 1;
    let (other, _) = used(&reseeded);
    assert!(physical_pages(&other) != physical_pages(&device), "the random policy shows in the lookups at all");
}

#[test]
fn an_empty_device_and_every_isolation_survive() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for isolation in [Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated, Isolation::Adaptive] {
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
    let (config, note) = Device::read_header(&path).expect("the snapshot is there");
    assert_eq!((&config, note.as_slice()), (&everything(), NOTE));
    let device = Device::load(&path).expect("the snapshot is loaded");
    device.save(&path).expect("the snapshot is replaced");
    let (_, note) = Device::read_header(&path).expect("the snapshot is there");
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
        ends.extend([begin, begin + 3, begin + 8, begin + 9, begin.midpoint(end), end - 4, end - 1]);
    }
    ends.extend((0..100).map(|step| step * whole / 100));
    for end in ends {
        let text = saved.refusal(&saved.bytes[..end], &format!("cut at {end} of {whole}"));
        assert!(text.contains("ends in the middle of its"), "cut at {end}: {text}");
        let within = saved.sections.windows(2).position(|bounds| (bounds[0]..bounds[1]).contains(&end));
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
    assert!(text.contains("is not a WARP snapshot") && text.contains("warp run --save-snapshot"), "{text}");

    for version in [0, VERSION + 1, u32::MAX] {
        let mut bytes = saved.bytes.clone();
        bytes[VERSION_AT..HEADER_BYTES].copy_from_slice(&version.to_le_bytes());
        let text = saved.refusal(&bytes, "another version");
        assert!(text.contains(&format!("version {version}")) && text.contains(&format!("version {VERSION}")), "{text}");
    }
}

#[test]
fn what_follows_the_last_section_is_refused() {
    let saved = SavedSnapshot::new();
    for rest in [&b"\0"[..], b"more", &saved.bytes] {
        let text = saved.refusal(&[&saved.bytes, rest].concat(), "trailing bytes");
        assert!(text.contains("has data behind its last section"), "{text}");
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
    // Header and configuration of this file (with checksum), then the state and the maps of the
    // smaller device.
    let length: [u8; 8] = other[HEADER_BYTES..HEADER_BYTES + 8].try_into().expect("eight bytes");
    let configuration = HEADER_BYTES + 8 + u64::from_le_bytes(length) as usize + 4;
    let mixed = [&other[..configuration], &saved.bytes[saved.sections[1]..]].concat();
    let text = saved.refusal(&mixed, "a state of another geometry");
    assert!(text.contains("another geometry"), "{text}");
}

/// Checksums detect damage. Consistency checks detect content that was never valid.
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
        (other_entry, "to the physical page of another one"),
        (1_u32.to_le_bytes(), "to a page beyond its flash"),
        ([0; 4], "a state that contradicts its configuration"),
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

/// A number in postcard encoding.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A number near a limit of a type or a power of two.
fn extreme(uniform: &mut Uniform) -> u64 {
    let power = 1_u64 << uniform.below(64);
    match uniform.below(6) {
        0 => u64::from(uniform.below(4)),
        1 => u64::MAX,
        2 => u64::from(u32::MAX),
        3 => power,
        4 => power.wrapping_sub(1),
        _ => power.wrapping_add(u64::from(uniform.below(3))),
    }
}

/// Returns the section with one number changed.
fn changed(section: &[u8], uniform: &mut Uniform) -> Vec<u8> {
    let length = section.len() as u32;
    // Tables are most of a state. All other fields are at its start and end.
    let at = match uniform.below(4) {
        0 => uniform.below(length.min(200)),
        1 => length - 1 - uniform.below(length.min(2000)),
        _ => uniform.below(length),
    } as usize;
    let mut bytes = section.to_vec();
    match uniform.below(4) {
        0 => bytes[at] = uniform.below(256) as u8,
        1 => bytes[at] = bytes[at].wrapping_add(1),
        2 => bytes[at] = bytes[at].wrapping_sub(1),
        _ => {
            let end = bytes[at..].iter().position(|byte| byte & 0x80 == 0).map_or(at, |last| at + last);
            bytes.splice(at..=end, varint(extreme(uniform)));
        }
    }
    bytes
}

/// Uses every operation of a drive.
fn use_of(device: &mut Device, seed: u64) {
    work(device, &mut Uniform::new(seed), 160);
    let pages = device.layout().logical_pages;
    let _ = device.read(0, Lpn(0), pages.min(100)).expect("the pages are there");
    let _ = (device.default_placement(RuhId(0)), device.occupancy(), device.endurance());
    assert!(device.units().count() > 0 && device.stats().write_amplification().is_some());
    assert!(device.stats().totals().media_bytes_written > 0);
    let counted = device.stats().totals();
    device.raise_totals(&FdpTotals { host_bytes_written: u64::MAX, ..counted });
    device.raise_totals(&FdpTotals { media_bytes_erased: 1 << 40, ..counted });
    match device.check() {
        // The counter was at its limit before.
        Err(problem) if problem == "a counter has an impossible value" => return,
        checked => checked.expect("what was loaded is whole, and stays so"),
    }
    let again = Device::from_bytes("again", &device.to_bytes()).expect("what is used can be saved");
    assert_same(device, &again);
}

/// A device with timing.
fn timed() -> DeviceConfig {
    let mut config = small(60, 0.4);
    config.timing = Some(TimingConfig {
        nand: NandTiming {
            page_bytes: 4096,
            bits_per_cell: 3,
            read_ns: vec![40_000, 50_000, 60_000],
            program_ns: 600_000,
            erase_ns: 3_000_000,
            suspend_ns: Some(10_000),
        },
        channel: ChannelTiming { bytes_per_second: 1_000_000_000, command_ns: 200 },
        controller: ControllerTiming {
            cores: 4,
            read_ns: 2_000,
            write_ns: 3_000,
            page_ns: 100,
            read_pipeline_ns: 5_000,
            write_pipeline_ns: 7_000,
        },
        link: LinkTiming { generation: 1, lanes: 4, payload_share: 0.9 },
        write_buffer_bytes: 4 * MIB,
        read_cache_bytes: MIB,
        tails: Vec::new(),
    });
    config.geometry.program_unit_bytes = Some(12_288);
    config.geometry.reclaim_unit_bytes = 4 * 12_288 * 20;
    config
}

/// A loaded drive has the incomplete program operation of the saved drive in its buffer, and the
/// operation leaves it once.
#[test]
fn an_operation_that_is_not_full_is_in_the_buffer_of_a_loaded_drive() {
    let mut device = silent(&timed());
    write(&mut device, 0, 5, 0);
    write(&mut device, 100, 4, 1);
    let mut loaded = Device::from_bytes("timed", &device.to_bytes()).expect("it is whole");
    loaded.update_handle(0, placement(0, 1)).expect("the handle is there");
    for step in 1..200 {
        let now = u64::from(step) * 1_000_000_000;
        let done = loaded.write(now, &extent(200 + step, 1, placement(0, 0)));
        assert!(done.expect("the page is there").at > now);
    }
    loaded.check().expect("the device is whole");
}

/// Invalid content with the right checksum is rejected or harmless.
#[test]
fn numbers_that_were_changed_under_a_right_checksum_never_end_the_program() {
    let configs = [
        everything(),
        {
            let mut config = everything();
            config.handles.isolation = Isolation::Adaptive;
            config.handles.hot_window_bytes = 4 * MIB;
            config.gc.victim_policy = VictimRule::CostAge;
            config.gc.background_watermark = 0.5;
            config.gc.lazy_valid_share = 0.5;
            config
        },
        {
            let mut config = small(40, 0.3);
            config.gc.copies = GcDestination::WithHost;
            config.gc.block_remapping = true;
            config.gc.source_policy = SourcePolicy::HighestPressure;
            config.gc.victim_policy = VictimRule::WindowedGreedy(7);
            config.endurance = Some(EnduranceConfig { rated_erases: 3000, spread: 0.1, warranty_years: 5.0 });
            config
        },
        timed(),
    ];
    for (number, config) in (0..).zip(configs) {
        let mut device = silent(&config);
        work(&mut device, &mut Uniform::new(number), 6_000);
        let bytes = device.to_bytes();
        let mut sections = Vec::new();
        let mut at = HEADER_BYTES;
        while at < bytes.len() {
            let length: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
            let end = at + 8 + u64::from_le_bytes(length) as usize;
            sections.push(&bytes[at + 8..end]);
            at = end + 4;
        }
        let (mut loaded, mut refused) = (0, 0);
        for case in 0..1200 {
            println!("device {number}, case {case}");
            let mut uniform = Uniform::new(number << 32 | case);
            // The configuration, the state, or the map.
            let which = [0, 2, 2, 2, 2, 3][uniform.below(6) as usize];
            let section = changed(sections[which], &mut uniform);
            let mut wrong = bytes[..HEADER_BYTES].to_vec();
            for (position, whole) in sections.iter().enumerate() {
                let section = if position == which { &section[..] } else { whole };
                wrong.extend((section.len() as u64).to_le_bytes());
                wrong.extend(section);
                wrong.extend(crc32fast::hash(section).to_le_bytes());
            }
            match Device::from_bytes("wrong", &wrong) {
                Ok(mut device) => {
                    use_of(&mut device, case);
                    loaded += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().contains('\n'), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(loaded > 20 && refused > 600, "{loaded} were loaded, {refused} refused");
    }
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
    // A file at the place of a folder.
    let error = device.save(&path.join("below")).expect_err("a file is not a folder");
    assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
    assert_eq!(std::fs::read(&path).expect("the snapshot is still there"), before);
    assert_eq!(files(folder.path()), [path]);
}
