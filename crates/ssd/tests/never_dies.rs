//! No workload may crash a device. A seeded swarm runs random valid devices and adversarial
//! workloads in lockstep with a naive reference model. Invalid configurations must give an error
//! with a remedy that works.
//!
//! Without settings the cases are the same everywhere. `WARP_SWARM_SECONDS` runs as many as fit in a
//! time, `WARP_SWARM_SEED` sets the first case and `WARP_SWARM_CASES` the maximum number. A failure
//! prints the command that reproduces it and the shortest list of commands that was found to cause
//! it. The search for that list takes at most `WARP_SWARM_SHRINK_SECONDS`.

mod reference;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use reference::lockstep::{self, Coverage};
use reference::workload::{self, Operation};
use reference::{Entropy, Seeded, generate};
use ssd::config::{
    GcConfig, Geometry, HandleOverride, HandlesConfig, Isolation, ReclaimUnitSize, VictimRule, WatermarkBase,
};
use ssd::{ConfigError, DeviceConfig, DeviceLayout};

const CASES_DEFAULT: u64 = 250;
/// Maximum host pages of a case. Many short cases find more than few long ones.
const PAGES_MAX: u64 = 10_000;
/// Time limit for shrinking a failure, in seconds.
const SHRINK_SECONDS_DEFAULT: u64 = 30;
/// Number of commands of a shrunk failure that are printed.
const COMMANDS_SHOWN: usize = 60;

/// Features that [`CASES_DEFAULT`] cases must exercise, to guarantee the coverage of the swarm.
const FEATURES: &[&str] = &[
    "case at the refusal border",
    "case with eager opening",
    "case with several open units",
    "case with a reserve",
    "case with copies among host data",
    "case with marks of all",
    "absorbed write",
    "case with absorption",
    "case with separation",
    "case with overhead",
    "case with several groups",
    "case with several sizes",
    "case with forced collection",
    "close: full",
    "close: handle update",
    "close: isolation changed",
    "close: room needed",
    "command refused",
    "deallocation",
    "full drive",
    "open for copies: Adaptive",
    "open for copies: PersistentlyIsolated",
    "open: channel",
    "open: die",
    "open: fraction",
    "open: superblock",
    "reclaim by benefit_cost",
    "reclaim by benefit_cost_since_invalidation",
    "reclaim by cost_age",
    "reclaim by d_choices",
    "reclaim by fifo",
    "reclaim by greedy",
    "reclaim by random",
    "reclaim by windowed_greedy",
    "reclaim in order Global",
    "reclaim in order HighestPressure",
    "reclaim: background",
    "reclaim: forced",
    "reclaim: foreground",
    "redirect",
    "remapped block",
    "unit begun by copies",
    "victim not affordable",
    "wear levelling",
];

/// One case of the swarm, determined by its seed.
struct Case {
    seed: u64,
    config: DeviceConfig,
    layout: DeviceLayout,
    operations: Vec<Operation>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut entropy = Seeded::new(seed);
        let (config, layout) = generate::configuration(&mut entropy);
        let drive_writes = entropy.between(1, 8);
        let budget = (u64::from(layout.logical_pages) * drive_writes).min(PAGES_MAX);
        let operations = workload::operations(&mut entropy, &layout, budget);
        Case { seed, config, layout, operations }
    }

    fn run(&self) -> Result<Coverage, Failure> {
        run_caught(&self.config, &self.layout, &self.operations)
    }
}

/// Description of a failure, and the index of its command.
struct Failure {
    command: usize,
    message: String,
}

fn run_caught(config: &DeviceConfig, layout: &DeviceLayout, operations: &[Operation]) -> Result<Coverage, Failure> {
    let progress = Cell::new(0);
    let run = || lockstep::run(config, layout, operations, &progress);
    let result = QUIET.with(|quiet| {
        *quiet.borrow_mut() = Some(String::new());
        let result = catch_unwind(AssertUnwindSafe(run));
        (result, quiet.borrow_mut().take().unwrap_or_default())
    });
    let message = match result {
        (Ok(Ok(coverage)), _) => return Ok(coverage),
        (Ok(Err(difference)), _) => difference,
        (Err(_), panic) => panic,
    };
    Err(Failure { command: progress.get(), message })
}

thread_local! {
    /// Captures the message of a panic on this thread instead of printing it, while set.
    static QUIET: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn keep_panics_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(install_quiet_hook);
}

fn install_quiet_hook() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        let kept = QUIET.with(|quiet| quiet.borrow_mut().as_mut().map(|message| *message = information.to_string()));
        if kept.is_none() {
            print(information);
        }
    }));
}

/// Removes commands as long as the rest still fails in any way.
fn shrink(case: &Case, failure: Failure) -> (Vec<Operation>, Failure) {
    let start = Instant::now();
    let seconds = environment("WARP_SWARM_SHRINK_SECONDS").unwrap_or(SHRINK_SECONDS_DEFAULT);
    let budget = Duration::from_secs(seconds);
    let mut operations = case.operations[..case.operations.len().min(failure.command + 1)].to_vec();
    let mut failure = failure;
    let mut chunk = operations.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        let before = operations.len();
        while at < operations.len() && start.elapsed() < budget {
            let mut fewer = operations.clone();
            fewer.drain(at..(at + chunk).min(operations.len()));
            match run_caught(&case.config, &case.layout, &fewer) {
                Err(shorter) => {
                    fewer.truncate(shorter.command + 1);
                    (operations, failure) = (fewer, shorter);
                }
                Ok(_) => at += chunk,
            }
        }
        if start.elapsed() >= budget {
            break;
        }
        if operations.len() == before || chunk > 1 {
            chunk /= 2;
        }
    }
    (operations, failure)
}

/// All information needed to reproduce a failure.
fn report(case: &Case, failure: Failure) -> String {
    let first = format!("command {} of {}", failure.command, case.operations.len());
    let message = failure.message.clone();
    let (operations, shrunk) = shrink(case, failure);
    let mut report = format!(
        "{message}\n  at {first}. Replay:\n  WARP_SWARM_SEED={} WARP_SWARM_CASES=1 cargo test -p warp-ssd --test \
         never_dies -- swarm --nocapture\n{:#?}\nlayout: {:?}\nshrunk to {} commands: {}\n",
        case.seed,
        case.config,
        case.layout,
        operations.len(),
        shrunk.message
    );
    let hidden = operations.len().saturating_sub(COMMANDS_SHOWN);
    if hidden > 0 {
        report += &format!("  ({hidden} more)\n");
    }
    for operation in &operations[hidden..] {
        report += &format!("  {operation:?}\n");
    }
    report
}

fn environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} = {value}: must be a whole number")))
}

#[test]
fn swarm() {
    keep_panics_quiet();
    let budget = environment("WARP_SWARM_SECONDS").map(Duration::from_secs);
    let first = environment("WARP_SWARM_SEED").unwrap_or(1);
    let most = environment("WARP_SWARM_CASES").unwrap_or(if budget.is_some() { u64::MAX } else { CASES_DEFAULT });
    let start = Instant::now();
    let mut coverage = Coverage::default();
    let mut cases = 0;
    while cases < most && (cases == 0 || budget.is_none_or(|budget| start.elapsed() < budget)) {
        let case = Case::new(first.wrapping_add(cases));
        match case.run() {
            Ok(covered) => coverage.merge(&covered),
            Err(failure) => panic!("{}", report(&case, failure)),
        }
        cases += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    for (feature, times) in &coverage.0 {
        println!("{times:>12} {feature}");
    }
    println!(
        "{cases} cases from seed {first} in {seconds:.1} s: {:.1} cases/s, {:.0} commands/s, {:.0} host pages/s",
        cases as f64 / seconds,
        coverage.get("commands") as f64 / seconds,
        coverage.get("host pages") as f64 / seconds
    );
    if cases >= CASES_DEFAULT {
        let missing: Vec<_> = FEATURES.iter().filter(|feature| coverage.get(feature) == 0).collect();
        assert!(missing.is_empty(), "in {cases} cases this never happened: {missing:?}");
    }
}

/// All pages are valid and space is short. Only merging the parts of partly free superblocks gives
/// a whole one.
#[test]
fn valid_parts_of_partly_free_superblocks_are_moved_together() {
    let mut config = small_config(2);
    // Foreground collection continues as long as any page is invalid.
    config.gc.foreground_watermark = 0.0;
    config.gc.watermark_base = WatermarkBase::All;
    config.handles.overrides.push(HandleOverride {
        index: 0,
        isolation: Some(Isolation::PersistentlyIsolated),
        reclaim_unit: Some(ReclaimUnitSize::Channel),
        open_reclaim_units: None,
    });
    let layout = with_least_spare(&mut config);
    let part = layout.superblock_pages / 4;
    let parts = (0..layout.logical_pages - part).step_by(part as usize);
    let mut operations: Vec<Operation> =
        parts.clone().map(|first| workload::whole(&layout, first, part, 0, 0)).collect();
    for kept in [2, 4] {
        // Each round moves half of the remaining small parts to the handle with whole superblocks.
        for first in parts.clone().filter(|first| first / part % kept == kept / 2) {
            operations.push(workload::whole(&layout, first, part, 0, 1));
        }
    }
    let coverage = must_pass(&config, &layout, &operations);
    assert!(coverage.get("fully valid parts moved") > 0, "the case no longer needs what it tests");
}

/// A drive of 24 superblocks of 16 pages, on four channels.
fn small_config(handles: u16) -> DeviceConfig {
    let geometry = Geometry {
        physical_bytes: Some(24 << 20),
        over_provisioning: 0.01,
        reclaim_unit_bytes: 1 << 20,
        mapping_unit_bytes: 64 << 10,
        channels: 4,
        dies_per_channel: 1,
        ..Geometry::default()
    };
    let handles = HandlesConfig { count: handles, ..HandlesConfig::default() };
    let gc = GcConfig {
        background_watermark: 1.0,
        foreground_watermark: 1.0,
        block_remapping: false,
        ..GcConfig::default()
    };
    DeviceConfig { geometry, handles, gc, seed: 0, ..DeviceConfig::default() }
}

/// Sets the smallest over-provisioning that the error of a configuration names.
fn with_least_spare(config: &mut DeviceConfig) -> DeviceLayout {
    if let Err(refusal) = DeviceLayout::new(config) {
        let works = generate::smallest_over_provisioning(&refusal).expect("some over-provisioning works");
        config.geometry.over_provisioning = works;
    }
    DeviceLayout::new(config).expect("the remedy works")
}

fn must_pass(config: &DeviceConfig, layout: &DeviceLayout, operations: &[Operation]) -> Coverage {
    keep_panics_quiet();
    run_caught(config, layout, operations).unwrap_or_else(|failure| {
        let command = &operations[failure.command];
        panic!("{}\n  at command {}: {command:?}", failure.message, failure.command)
    })
}

/// Mistake, its field, and the text that the error must contain.
type Refused = (&'static str, &'static str, fn(&mut DeviceConfig));

const REFUSED: &[Refused] = &[
    ("geometry.mapping_unit_bytes", "4096, 8192", |config| config.geometry.mapping_unit_bytes = 6000),
    ("geometry.mapping_unit_bytes", "65536", |config| config.geometry.mapping_unit_bytes = 2048),
    ("geometry.mapping_unit_bytes", "65536", |config| config.geometry.mapping_unit_bytes = 1 << 17),
    ("geometry.over_provisioning", "between 0.01 and 1", |config| config.geometry.over_provisioning = 0.0),
    ("geometry.over_provisioning", "between 0.01 and 1", |config| config.geometry.over_provisioning = 1.5),
    ("geometry.over_provisioning", "between 0.01 and 1", |config| config.geometry.over_provisioning = f64::NAN),
    ("geometry.media_overhead_share", "between 0 and 0.5", |config| config.geometry.media_overhead_share = 0.6),
    ("geometry.reclaim_unit_bytes", "at most 16 GiB", |config| config.geometry.reclaim_unit_bytes = 1 << 15),
    ("geometry.reclaim_unit_bytes", "at most 16 GiB", |config| config.geometry.reclaim_unit_bytes = 1 << 35),
    ("geometry.reclaim_unit_bytes", "multiple of 786432", |config| {
        config.geometry.channels = 6;
        config.geometry.program_unit_bytes = Some(128 << 10);
    }),
    ("geometry.program_unit_bytes", "multiple of", |config| config.geometry.program_unit_bytes = Some(1000)),
    ("geometry.program_unit_bytes", "multiple of", |config| config.geometry.program_unit_bytes = Some(0)),
    ("geometry.channels", "between 1 and", |config| config.geometry.channels = 0),
    ("geometry.dies_per_channel", "between 1 and", |config| config.geometry.dies_per_channel = 0),
    ("geometry.planes_per_die", "between 1 and", |config| config.geometry.planes_per_die = 0),
    ("geometry.reclaim_groups", "between 1 and", |config| config.geometry.reclaim_groups = 0),
    ("geometry.reclaim_groups", "divide the 4 dies", |config| config.geometry.reclaim_groups = 3),
    ("geometry.physical_bytes", "geometry.capacity_bytes", |config| config.geometry.capacity_bytes = Some(1 << 24)),
    ("geometry.capacity_bytes", "geometry.physical_bytes", |config| config.geometry.physical_bytes = None),
    ("geometry.physical_bytes", "at least one superblock", |config| config.geometry.physical_bytes = Some(1000)),
    ("geometry.physical_bytes", "geometry.mapping_unit_bytes", |config| config.geometry.physical_bytes = Some(1 << 60)),
    ("handles.count", "between 1 and 128", |config| config.handles.count = 0),
    ("handles.count", "between 1 and 128", |config| config.handles.count = 129),
    ("handles.overrides.index", "0 to 1", |config| config.handles.overrides = vec![for_handle(2)]),
    ("handles.overrides.index", "at most once", |config| config.handles.overrides = vec![for_handle(1); 2]),
    ("handles[0].open_reclaim_units", "between 1 and 64", |config| config.handles.open_reclaim_units = 0),
    ("handles[0].open_reclaim_units", "between 1 and 64", |config| config.handles.open_reclaim_units = 65),
    ("handles[0].reclaim_unit", "divide the 4 blocks", |config| {
        config.handles.reclaim_unit = ReclaimUnitSize::Fraction(3);
    }),
    ("handles[0].reclaim_unit", "divide the 4 blocks", |config| {
        config.handles.reclaim_unit = ReclaimUnitSize::Fraction(0);
    }),
    ("handles[0].reclaim_unit", "whole number of channels", |config| {
        config.geometry.channels = 3;
        config.geometry.dies_per_channel = 2;
        config.geometry.reclaim_groups = 2;
        config.geometry.reclaim_unit_bytes = 3 << 20;
        config.handles.reclaim_unit = ReclaimUnitSize::Channel;
    }),
    ("gc.lazy_valid_share", "between 0 and 1", |config| config.gc.lazy_valid_share = -0.1),
    ("gc.background_watermark", "between 0 and 1", |config| config.gc.background_watermark = 1.1),
    ("gc.foreground_watermark", "between 0 and 1", |config| config.gc.foreground_watermark = f64::NAN),
    ("gc.adaptive_isolation_spare", "0 or more", |config| config.gc.adaptive_isolation_spare = f64::INFINITY),
    ("gc.reserve_share", "between 0 and 0.9", |config| config.gc.reserve_share = 1.0),
    ("gc.victim_policy", "1 to 4096", |config| config.gc.victim_policy = VictimRule::DChoices(0)),
    ("gc.victim_policy", "1 reclaim unit or more", |config| {
        config.gc.victim_policy = VictimRule::WindowedGreedy(0);
    }),
];

fn for_handle(index: u16) -> HandleOverride {
    HandleOverride { index, isolation: None, reclaim_unit: None, open_reclaim_units: None }
}

/// An invalid configuration gives an error that names the field and the allowed values.
#[test]
fn invalid_configurations_are_refused() {
    let mut fine = small_config(2);
    with_least_spare(&mut fine);
    for (field, allowed, change) in REFUSED {
        let mut config = fine.clone();
        change(&mut config);
        let ConfigError { field: named, allowed: remedy, .. } = match ssd::Device::new(&config) {
            Err(refusal) => refusal,
            Ok(_) => panic!("accepted, but {field} is wrong: {config:#?}"),
        };
        assert_eq!((named.as_str(), remedy.contains(allowed)), (*field, true), "{named}: {remedy}");
    }
}

/// The remedy of an error is the smallest value that works. Clearly less does not work.
#[test]
fn refusals_name_the_smallest_over_provisioning() {
    let mut refused = 0;
    for seed in 0..400 {
        let mut entropy = Seeded::new(seed);
        let (mut config, _) = generate::configuration(&mut entropy);
        config.geometry.over_provisioning = 0.01;
        let Err(refusal) = DeviceLayout::new(&config) else {
            continue;
        };
        let Some(works) = generate::smallest_over_provisioning(&refusal) else {
            continue;
        };
        refused += 1;
        assert_eq!(refusal.field, "geometry.over_provisioning", "{refusal}");
        config.geometry.over_provisioning = works;
        assert!(DeviceLayout::new(&config).is_ok(), "seed {seed}: {refusal}");
        // Rounding the flash to superblocks accepts single smaller values if the capacity is given,
        // but not here.
        if config.geometry.physical_bytes.is_some() {
            config.geometry.over_provisioning = works - 0.0011;
            assert!(DeviceLayout::new(&config).is_err(), "seed {seed}: less works as well: {refusal}");
        }
    }
    assert!(refused > 50, "only {refused} configurations were refused");
}
