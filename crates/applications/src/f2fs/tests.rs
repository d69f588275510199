//! Tests of the file system against an independent record of its requests, and against first
//! principles.

use super::file_system::FileSystem;
use super::layout::BLOCK_BYTES;
use super::nodes::UNWRITTEN;
use super::personality::file_count;
use super::personality::fileserver::FileSelection;
use super::*;
use crate::queue::SteppedModel;
use crate::testing::{read, reread, scaled_drive};
use workload::{IoRequest, RequestOperation, RequestSource, ScaledModel};

const GIB: u64 = 1 << 30;

/// A drive of some GiB at full scale.
fn drive(gib: u64) -> WorkloadTarget {
    WorkloadTarget { device_bytes: gib * GIB, placement_count: 8, ..WorkloadTarget::default() }
}

/// A file server that fills a drive of 2 GiB to about `used` with small files.
fn small_fileserver(used: f64) -> F2fsSettings {
    let mut settings = F2fsSettings { throughput_bytes_per_second: 1 << 20, ..F2fsSettings::default() };
    settings.fileserver.file_bytes = 100_000;
    settings.fileserver.files = Some((used * 2.0 * GIB as f64 / 0.8 / 107_000.0) as u32);
    settings.fileserver.threads = 20;
    settings
}

/// Independent record of the blocks written since their last discard.
struct Drive {
    written: Vec<bool>,
    valid_before: Vec<bool>,
}

/// Blocks that the file system considers valid, by block number of the drive.
fn valid_blocks(files: &FileSystem) -> Vec<u32> {
    let mut blocks = Vec::new();
    for segment in 0..files.layout.segments {
        let bits = files.segments.valid_bits(segment);
        let offsets =
            (0..files.layout.segment_blocks).filter(|offset| bits[(offset / 64) as usize] >> (offset % 64) & 1 == 1);
        blocks.extend(offsets.map(|offset| files.layout.main + segment * files.layout.segment_blocks + offset));
    }
    blocks
}

/// Every pointer of a file and of the NAT leads to a valid block of that owner. No other block is
/// valid.
fn check_pointers(files: &FileSystem) {
    let mut pointers = 0;
    for (id, file) in files.files.iter().enumerate() {
        for (index, block) in file.blocks.iter().enumerate().filter(|(_, block)| **block != UNWRITTEN) {
            assert_eq!(files.owner(*block), Ok((id as u32, index as u32)));
            pointers += 1;
        }
        for node in file.all_nodes() {
            let block = files.nodes.address(node);
            if block != UNWRITTEN {
                assert_eq!(files.owner(block), Err(node));
                pointers += 1;
            } else {
                assert!(files.nodes.is_dirty(node), "node {node} is nowhere");
            }
        }
    }
    assert_eq!(pointers, valid_blocks(files).len() as u64 as usize);
    assert_eq!(pointers as u64, files.segments.total_valid);
}

/// Runs operations. Checks every request, and the file system at intervals.
fn run_checked(settings: &F2fsSettings, target: &WorkloadTarget, seed: u64, operations: u32) -> F2fs {
    let mut source = settings.source(target, seed).unwrap();
    let blocks = (target.capacity_bytes() / BLOCK_BYTES) as usize;
    let mut drive = Drive { written: vec![false; blocks], valid_before: vec![false; blocks] };
    for operation in 0..operations {
        let checkpoints = source.files.counters.checkpoints;
        let in_place = source.files.counters.in_place_blocks;
        source.step().unwrap_or_else(|error| panic!("{error}; replay with seed {seed}"));
        let writes_in_place = source.files.counters.in_place_blocks > in_place;
        let checkpointed = source.files.counters.checkpoints > checkpoints;
        let trace = std::mem::take(&mut source.files.output.trace);
        // The pack is the last write of a checkpoint. Later writes belong to the next one.
        let ends_with_checkpoint =
            trace.iter().rfind(|(_, is_write)| *is_write).is_some_and(|(block, _)| *block < source.files.layout.sit);
        for (block, is_write) in trace {
            let is_main = block >= source.files.layout.main;
            if is_main && is_write && !writes_in_place && !checkpointed {
                let was_valid = drive.valid_before[block as usize];
                assert!(
                    !was_valid,
                    "block {block} of the last checkpoint is overwritten; seed {seed}, operation {operation}"
                );
            }
            drive.written[block as usize] = is_write;
        }
        if checkpointed {
            drive.valid_before.fill(false);
            for block in valid_blocks(&source.files) {
                drive.valid_before[block as usize] = ends_with_checkpoint;
                assert!(
                    drive.written[block as usize],
                    "block {block} is valid and was not written, or discarded; seed {seed}"
                );
            }
        }
        if operation % 4999 == 0 || operation + 1 == operations {
            source.files.segments.check();
            check_pointers(&source.files);
        }
    }
    source
}

/// With threaded logging, cleaning, discards and multi-segment sections, no data is lost, and no
/// block that recovery needs is overwritten.
#[test]
fn what_is_valid_was_written_and_never_discarded() {
    let base = small_fileserver(0.75);
    let lfs = F2fsSettings { logging: LogMode::Lfs, ..base.clone() };
    let sections = F2fsSettings { segments_per_section: 4, discard: DiscardPolicy::Always, ..base.clone() };
    let pauses = F2fsSettings { pause_every_seconds: 20.0, pause_seconds: 600.0, ..base.clone() };
    for (name, settings) in [("adaptive", base), ("lfs", lfs), ("sections", sections), ("pauses", pauses)] {
        let source = run_checked(&settings, &drive(2), 7, 45_000);
        let counters = &source.files.counters;
        assert!(counters.checkpoints > 20, "{name}: {counters:?}");
        match name {
            "lfs" => assert!(counters.foreground_sections > 100 && counters.threaded_blocks == 0, "{counters:?}"),
            "pauses" => {
                assert!(counters.background_sections > 0 && source.files.output.bytes_discarded > 0, "{counters:?}")
            }
            _ => assert!(counters.threaded_blocks > 10_000, "{name}: {counters:?}"),
        }
    }
}

/// A database overwrites in place, or out of place with one node per sync.
#[test]
fn synced_overwrites_stay_in_place_if_they_may() {
    let mut settings = F2fsSettings {
        personality: PersonalityName::Oltp,
        throughput_bytes_per_second: 16 << 20,
        ..F2fsSettings::default()
    };
    settings.oltp.files = Some(100);
    let written = |settings: &F2fsSettings| {
        let source = run_checked(settings, &drive(2), 3, 400);
        let made = source.files.output.bytes_written - source.files.counters.cleaned_blocks * BLOCK_BYTES;
        (source.files.counters, made)
    };
    let (counters, bytes) = written(&settings);
    assert!(counters.in_place_blocks > 64 * 100 * 100, "{counters:?}");
    let waf = bytes as f64 / counters.application_bytes as f64;
    assert!((1.0..1.005).contains(&waf), "{waf}");
    for other in [
        F2fsSettings { in_place_updates: false, ..settings.clone() },
        F2fsSettings { logging: LogMode::Lfs, ..settings.clone() },
        F2fsSettings { oltp: oltp::OltpSettings { datasync: false, ..settings.oltp.clone() }, ..settings.clone() },
    ] {
        let (counters, bytes) = written(&other);
        assert_eq!(counters.in_place_blocks, 0);
        // 64 blocks of data and their nodes: an inode or one of three direct nodes, sometimes two.
        let waf = bytes as f64 / counters.application_bytes as f64;
        assert!((1.014..1.06).contains(&waf), "{waf}: {counters:?}");
    }
    settings.oltp.write_bytes = 8 * BLOCK_BYTES;
    settings.oltp.datasync = false;
    assert!(written(&settings).0.in_place_blocks > 0, "eight blocks are a small fsync");
}

/// Data written once costs its inodes, one block per file, and almost nothing else.
#[test]
fn writing_files_once_costs_their_nodes() {
    let mut settings = small_fileserver(0.6);
    settings.fileserver.file_size_shape = 0.0;
    let files = settings.fileserver.files.expect("set above") * 8 / 10;
    let source = run_checked(&settings, &drive(2), 5, files);
    let counters = &source.files.counters;
    assert_eq!((counters.threaded_blocks, counters.cleaned_blocks), (0, 0));
    let data = source.files.output.writers[1].bytes;
    assert_eq!(data, u64::from(files - 1) * 25 * BLOCK_BYTES, "100,000 bytes are 25 blocks");
    let nodes = source.files.output.writers[4].bytes / BLOCK_BYTES;
    // Nodes changed after the last checkpoint are still in memory.
    assert!((u64::from(files) * 8 / 10..=u64::from(files)).contains(&nodes), "{nodes} nodes of {files} files");
    let waf = source.files.output.bytes_written as f64 / counters.application_bytes as f64;
    assert!((1.05..1.10).contains(&waf), "{waf}: 26 blocks and a little for 24.4");
}

/// Requests cover exactly the written and discarded blocks in order, with the placement of their
/// log.
#[test]
fn requests_say_what_was_done() {
    let mut settings = small_fileserver(0.7);
    settings.discard = DiscardPolicy::Always;
    let mut source = settings.source(&drive(2), 11).unwrap();
    let mut requests = Vec::new();
    while source.files.counters.checkpoints < 40 {
        source.step().unwrap();
    }
    while source.files.output.queue.ready() > 0 {
        source.files.output.queue.pop_batch(&mut requests, 1000);
    }
    let mut by_trace = vec![0u32; (2 * GIB / BLOCK_BYTES) as usize];
    let mut by_request = by_trace.clone();
    for (block, is_write) in &source.files.output.trace {
        by_trace[*block as usize] = if *is_write { by_trace[*block as usize] + 1 } else { 0 };
    }
    for request in &requests {
        assert!(u64::from(request.bytes) <= settings.max_request_bytes || request.operation == RequestOperation::Trim);
        let blocks =
            request.offset_bytes / BLOCK_BYTES..(request.offset_bytes + u64::from(request.bytes)) / BLOCK_BYTES;
        for block in blocks {
            let count = &mut by_request[block as usize];
            *count = if request.operation == RequestOperation::Write { *count + 1 } else { 0 };
        }
        let expected = match (request.operation, request.stream) {
            (RequestOperation::Write, 1) => Some(0),     // warm data: not set
            (RequestOperation::Write, 3 | 6) => Some(1), // hot nodes, metadata: none
            (RequestOperation::Write, 4) => Some(3),     // warm nodes: medium
            (RequestOperation::Trim, 8) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(request.placement.map(|index| index.0), expected);
    }
    assert_eq!(by_trace, by_request);
    assert!(requests.iter().filter(|request| request.operation == RequestOperation::Trim).count() > 100);
}

/// The kernel's default sends user data to one handle. Lifetime classes use all handles.
#[test]
fn user_data_goes_to_one_handle_unless_it_is_split() {
    let share = |settings: &F2fsSettings, name: &str| {
        let mut source = settings.source(&drive(2), 2).unwrap();
        let mut requests: Vec<IoRequest> = Vec::new();
        while source.files.output.bytes_written < 5 * GIB / 2 {
            requests.clear();
            source.next_batch(&mut requests, 1000).unwrap();
        }
        let measures = source.measures();
        measures.iter().find(|measure| measure.name == name).unwrap().value
    };
    let mut settings = small_fileserver(0.6);
    assert!(share(&settings, "handle.largest.data_share") > 0.95);
    assert!(share(&settings, "hint.not_set.share") > 0.9);
    settings.cold_files_percent = 30.0;
    let cold = share(&settings, "hint.extreme.data_share");
    assert!((0.27..0.33).contains(&cold), "{cold}");
    settings.cold_files_percent = 0.0;
    settings.hints = HintPolicy::Lifetime;
    settings.fileserver.choice = FileSelection::Random;
    let largest = share(&settings, "handle.largest.data_share");
    assert!((0.15..0.22).contains(&largest), "{largest} of six equal classes");
}

/// Foreground cleaning selects the section with the fewest valid blocks.
#[test]
fn greedy_cleaning_takes_the_emptiest_section() {
    let settings = F2fsSettings { logging: LogMode::Lfs, segments_per_section: 2, ..small_fileserver(0.8) };
    let source = run_checked(&settings, &drive(2), 9, 25_000);
    let segments = &source.files.segments;
    let current: Vec<u32> = hints::LogKind::ALL.iter().map(|log| segments.current(*log) / 2).collect();
    let valid = |section: u32| segments.valid(2 * section) + segments.valid(2 * section + 1);
    let candidates =
        (0..source.files.layout.sections).filter(|section| valid(*section) > 0 && !current.contains(section));
    let least = candidates.map(valid).min().unwrap();
    assert_eq!(valid(segments.greedy_victim().unwrap()), least);
}

#[test]
fn batch_sizes_do_not_matter() {
    let settings = small_fileserver(0.7);
    let collect = |batch: usize| {
        let mut source = settings.source(&drive(2), 21).unwrap();
        let mut requests = Vec::new();
        while requests.len() < 30_000 {
            source.next_batch(&mut requests, batch).unwrap();
        }
        requests.truncate(30_000);
        requests
    };
    let small = collect(7);
    assert_eq!(small, collect(4096));
    assert_ne!(small, {
        let mut other = Vec::new();
        let mut source = settings.source(&drive(2), 22).unwrap();
        while other.len() < 30_000 {
            source.next_batch(&mut other, 4096).unwrap();
        }
        other.truncate(30_000);
        other
    });
}

/// Files that outgrow the space cause one error after all successful operations.
#[test]
fn a_full_file_system_is_an_error_and_not_a_crash() {
    for logging in [LogMode::Adaptive, LogMode::Lfs] {
        let mut settings = F2fsSettings { logging, ..small_fileserver(0.9) };
        settings.fileserver.append_bytes = 10_000_000;
        let mut source = settings.source(&drive(2), 4).unwrap();
        let mut requests = Vec::new();
        let error = loop {
            requests.clear();
            match source.next_batch(&mut requests, 4096) {
                Ok(count) => assert!(count > 0, "it ended without an error"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("no room left"), "{error}");
        assert!(source.files.utilization() > 0.9, "{logging:?}: {}", source.files.utilization());
        assert_eq!(source.next_batch(&mut requests, 10).unwrap(), 0);
        source.files.segments.check();
    }
}

/// A scaled model matches the drive in shares and amplification.
#[test]
fn a_scaled_model_is_like_the_drive() {
    let measure = |denominator: u64| {
        let mut settings = small_fileserver(0.7);
        settings.fileserver.file_bytes = 540_000;
        settings.fileserver.files = Some((0.7 * 16.0 * GIB as f64 / 0.8 / 547_000.0) as u32);
        settings.throughput_bytes_per_second *= 8;
        let bytes = 16 * GIB / denominator;
        let target = WorkloadTarget {
            device_bytes: 16 * GIB,
            scaled_model: (denominator > 1).then_some(ScaledModel {
                denominator,
                device_bytes: bytes,
                mapping_unit_bytes: BLOCK_BYTES,
                keep_requests: false,
            }),
            ..drive(16)
        };
        let mut source = settings.source(&target, 1).unwrap();
        while source.files.output.bytes_written < 3 * bytes / 2 {
            source.step().unwrap();
            source.files.output.trace.clear();
        }
        let counters = source.files.counters;
        let threaded = counters.threaded_blocks as f64 / (counters.threaded_blocks + counters.appended_blocks) as f64;
        (source.files.output.bytes_written as f64 / counters.application_bytes as f64, threaded)
    };
    let (full, model) = (measure(1), measure(8));
    assert!((full.0 / model.0 - 1.0).abs() < 0.01, "{full:?} {model:?}");
    assert!((full.1 - model.1).abs() < 0.05, "{full:?} {model:?}");
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |change: fn(&mut F2fsSettings), part: &str| {
        let mut settings = small_fileserver(0.5);
        change(&mut settings);
        let error = settings.source(&drive(2), 0).err().unwrap().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(|settings| settings.lifetime_classes = 1, "from 2 to 6");
    refused(|settings| settings.hints = HintPolicy::Lifetime, "choice = \"random\"");
    refused(|settings| settings.fileserver.files = Some(40_000), "Use fewer or smaller");
    refused(|settings| settings.fileserver.files = Some(50), "100 are needed");
    refused(|settings| settings.fileserver.file_size_shape = 1.2, "steps of 0.5");
    refused(|settings| settings.fileserver.preallocated_percent = 100.0, "from 1 to 99");
    refused(|settings| settings.max_request_bytes = 5000, "multiple of 4096");
    refused(|settings| settings.checkpoint_seconds = 0.0, "checkpoint_seconds = 0");
    refused(|settings| settings.segments_per_section = 100, "too few sections");
    refused(|settings| settings.discard_granularity_blocks = 513, "from 1 to 512");
    refused(|settings| settings.cold_files_percent = 101.0, "0 to 100");
    refused(
        |settings| {
            settings.personality = PersonalityName::Oltp;
            settings.oltp.write_bytes = 1000;
        },
        "multiple of 4096",
    );
    refused(
        |settings| {
            settings.personality = PersonalityName::Oltp;
            settings.oltp.files = Some(63_000);
        },
        "does not fit",
    );
}

/// Defaults give the paper's number of files on the paper's drive, and fewer on smaller drives or
/// parts.
#[test]
fn defaults_fit_any_drive() {
    let paper = WorkloadTarget { device_bytes: 7_680_000_000_000, ..scaled_drive(7_680_000_000_000 >> 20, 1024) };
    let part = scaled_drive(240 << 10, 64).part(40.0, 100.0).0;
    for (target, files) in [(paper, 10_000_000), (drive(4), 5_726), (part, 206_158)] {
        let counted = file_count(None, 10_000_000, 72.0, 540_000, &target);
        assert_eq!(counted, files, "{target:?}");
        assert_eq!(file_count(Some(7), 10_000_000, 72.0, 540_000, &target), 7);
        for personality in [PersonalityName::Fileserver, PersonalityName::Oltp] {
            let settings = F2fsSettings { personality, ..F2fsSettings::default() };
            settings.source(&target, 0).unwrap();
        }
    }
}

#[test]
fn settings_are_read_from_toml_and_written() {
    let text = "personality = \"oltp\"\nhints = \"fs\"\ndiscard = \"always\"\n[oltp]\nfile_bytes = \"1MiB\"\n";
    let settings: F2fsSettings = read(text).unwrap();
    assert_eq!((settings.oltp.file_bytes, settings.hints), (1 << 20, HintPolicy::Fs));
    assert_eq!(reread(&settings), settings);
    assert!(read::<F2fsSettings>("no_such_setting = 1").is_err());
}
