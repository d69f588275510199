//! Parts of tests: times of a simple drive, and results in the form of the three-stream experiment,
//! computed from formulas.

use ssd::event::{ReclaimRecord, Trigger};
use ssd::{DeviceStats, OwnerStats, RgId, RuId, RuhId, UnitOwner, WearSummary};

use crate::run::{RunResult, RunSample};
use experiment::cell::CellKey;
use experiment::scaled_model::Scale;

/// Times of a simple drive.
pub const TIMING: &str = r#"
[timing]
write_buffer_bytes = "1MiB"
[timing.nand]
page_bytes = "4KiB"
bits_per_cell = 1
read_ns = [50000]
program_ns = 200000
erase_ns = 2000000
suspend_ns = 10000
[timing.channel]
bytes_per_second = 1000000000
[timing.controller]
cores = 4
read_ns = 2000
write_ns = 2000
[timing.link]
generation = 4
lanes = 4
payload_share = 1.0
"#;

const PAGE_BYTES: u64 = 4096;
const UNIT_PAGES: u64 = 4096;
const UNITS: u64 = 896;
const CAPACITY_BYTES: u64 = 700 * UNIT_PAGES * PAGE_BYTES;
const HANDLES: usize = 8;
const SAMPLES: u64 = 100;
/// Total writes in multiples of the capacity.
const WRITTEN: f64 = 5.0;

/// Names of the axes of [`results`].
pub fn axes() -> Vec<String> {
    vec!["overwrite".to_string()]
}

/// Two devices, three values of one axis, three variants.
pub fn results() -> Vec<RunResult> {
    let values = [("zipf 2.2", 0.0), ("zipf 1.2", 0.25), ("80/20", 0.65)];
    let variants = [("FDP", 0.04, 3), ("Mixed", 0.5, 2), ("NoFDP", 1.0, 1)];
    let mut results = Vec::new();
    for (device, factor) in [("ssd_a", 1.0), ("ssd_b", 2.1)] {
        for (value, more) in values {
            for (variant, copies, handles) in variants {
                let key = CellKey { device: device.into(), variant: variant.into(), grid: vec![value.into()] };
                results.push(result(key, factor * (copies + more) * 0.8, handles));
            }
        }
    }
    results
}

/// A cell with final write amplification near 1 + `copies` and this many handles in use.
fn result(key: CellKey, copies: f64, handles: usize) -> RunResult {
    let samples: Vec<RunSample> =
        (1..=SAMPLES).map(|index| sample(index as f64 / SAMPLES as f64, copies, handles)).collect();
    let last = samples.last().expect("there are samples");
    let mut stats = DeviceStats::new(PAGE_BYTES, HANDLES as u16);
    stats.handles = last.owners[..HANDLES].to_vec();
    stats.shared = last.owners[HANDLES];
    stats.background_collections = stats.total().units_reclaimed;
    let erases = (stats.total().units_reclaimed / UNITS) as u32;
    RunResult {
        key,
        seed: 1,
        ensemble: None,
        scale: Scale(64),
        search: None,
        unsaved: None,
        complete: true,
        capacity_bytes: CAPACITY_BYTES,
        superblocks: UNITS as u32,
        unit_pages: UNIT_PAGES,
        open_unit_share: 0.05,
        steady_state: false,
        steady: None,
        without_effect: Vec::new(),
        pages_read: [0; 2],
        gc_log: gc_log(&stats),
        stats,
        samples,
        wear: WearSummary::from_erases(&[erases, erases, erases + 3]),
        endurance: None,
        measures: Vec::new(),
        timed: None,
        array: None,
        feedback: None,
    }
}

/// Shares of the host's bytes by handle: sequential, random, overwrite. Streams without a handle
/// use handle 0.
fn shares(handles: usize) -> Vec<f64> {
    match handles {
        1 => vec![1.0],
        2 => vec![0.88, 0.12],
        _ => vec![0.88, 0.06, 0.06],
    }
}

fn sample(progress: f64, copies: f64, handles: usize) -> RunSample {
    let host_pages = progress * WRITTEN * (CAPACITY_BYTES / PAGE_BYTES) as f64;
    // Collection starts when the drive is full and settles towards its steady state.
    let converged = 1.0 - (-((progress * WRITTEN - 1.0).max(0.0)) * 1.5).exp();
    let copied = host_pages * copies * converged;
    let mut owners = vec![OwnerStats::default(); HANDLES + 1];
    let mut units = vec![0; HANDLES + 1];
    let mut held = UNITS as f64 * (0.08 + 0.88 * (progress * WRITTEN).min(1.0));
    let pool = held * 0.35 * converged * copies.min(1.2);
    held -= pool;
    for (handle, share) in shares(handles).into_iter().enumerate() {
        let own = copied * 0.4 * if handle == 0 { 1.0 } else { share };
        owners[handle] = owner(host_pages * share, own, 0.0);
        let wobble = 1.0 + 0.05 * (progress * 40.0 + handle as f64).sin() * f64::from(handle > 0);
        units[handle] = (held * share * wobble) as u64;
    }
    let from_handles: u64 = owners.iter().map(|row| row.gc_pages_copied).sum();
    owners[HANDLES] = owner(0.0, copied - from_handles as f64, copied);
    units[HANDLES] = pool as u64;
    let media: u64 = owners.iter().map(OwnerStats::data_pages).sum();
    let host: u64 = owners.iter().map(|row| row.host_bytes_written).sum();
    let valid_pages = units.iter().map(|units| units * UNIT_PAGES * 3 / 4).collect();
    RunSample { host_bytes: host, media_bytes: media * PAGE_BYTES, owners, units, valid_pages }
}

fn owner(host_pages: f64, copied: f64, received: f64) -> OwnerStats {
    let (host_pages, copied) = (host_pages as u64, copied as u64);
    let reclaimed = (host_pages + received as u64) / UNIT_PAGES;
    OwnerStats {
        host_bytes_written: host_pages * PAGE_BYTES,
        host_pages_written: host_pages,
        host_pages_absorbed: 0,
        gc_pages_copied: copied,
        gc_pages_received: received as u64,
        wear_levelling_pages: 0,
        wear_levelling_pages_erased: 0,
        blocks_remapped: 0,
        pages_remapped: 0,
        units_opened: reclaimed + 1,
        units_reclaimed: reclaimed,
        pages_erased: reclaimed * UNIT_PAGES,
        valid_pages_reclaimed: copied,
    }
}

/// Some collections of each handle and of the shared pool.
fn gc_log(stats: &DeviceStats) -> Vec<ReclaimRecord> {
    let used = (0..HANDLES as u16).filter(|handle| stats.handles[usize::from(*handle)].host_pages_written > 0);
    let owners: Vec<UnitOwner> =
        used.map(|handle| UnitOwner::from_handle(RuhId(handle))).chain([UnitOwner::SHARED_POOL]).collect();
    let row = |index: u64| ReclaimRecord {
        host_pages_written: 700 * UNIT_PAGES + index * 97,
        now: 0,
        trigger: if index % 11 == 10 { Trigger::Foreground } else { Trigger::Background },
        policy: "cost_benefit",
        group: RgId(0),
        victim: RuId((index * 37 % UNITS) as u32),
        victim_owner: owners[index as usize % owners.len()],
        destination_owner: UnitOwner::SHARED_POOL,
        unit_pages: UNIT_PAGES as u32,
        valid_pages: (300 + index * 53 % 900) as u32,
        pages_copied: (300 + index * 53 % 900) as u32,
        moved: None,
        blocks_remapped: 0,
        elapsed_ns: 0,
    };
    (0..60).map(row).collect()
}
