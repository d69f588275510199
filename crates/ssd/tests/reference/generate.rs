//! Random valid configurations: odd shapes, every policy, and often the minimum spare.

use ssd::config::{
    Allocation, EventsConfig, GcConfig, GcDestination, Geometry, HandleOverride, HandlesConfig, Isolation,
    ReclaimUnitSize, ReportedPage, SourcePolicy, UnitOpenPolicy, VictimRule, WatermarkBase,
};
use ssd::{ConfigError, DeviceConfig, DeviceLayout};

use super::Entropy;

/// Pages of the largest device. The reference scans all of them for every decision.
const PHYSICAL_PAGES_MAX: u64 = 20_000;
/// Pages of most devices, which are smaller to see many drive writes.
const PHYSICAL_PAGES_USUAL: u64 = 2_500;
const MIB: u64 = 1 << 20;

/// A configuration that [`DeviceLayout::new`] accepts, and the layout.
pub fn configuration(entropy: &mut impl Entropy) -> (DeviceConfig, DeviceLayout) {
    let mut config = DeviceConfig {
        timing: None,
        endurance: None,
        geometry: geometry(entropy),
        handles: HandlesConfig::default(),
        gc: collection(entropy),
        events: EventsConfig::default(),
        seed: entropy.below(1 << 32),
    };
    config.events.reported_page = match config.seed % 8 {
        0 => ReportedPage::First,
        1 | 2 => ReportedPage::Random,
        3 => ReportedPage::None,
        _ => ReportedPage::LongestRun,
    };
    config.handles = handles(entropy, &config.geometry);
    if entropy.percent(10) {
        isolated_channels(&mut config);
    }
    if entropy.percent(20) {
        single_frontier(entropy, &mut config);
    }
    // A small drive may have too little space for the handles. It then gets more flash, and finally
    // fewer handles.
    let most = if entropy.percent(90) { PHYSICAL_PAGES_USUAL } else { PHYSICAL_PAGES_MAX };
    let superblock_pages = config.geometry.reclaim_unit_bytes / config.geometry.mapping_unit_bytes;
    let group_row_pages = superblock_pages * u64::from(config.geometry.reclaim_groups);
    let superblocks_max = (PHYSICAL_PAGES_MAX / group_row_pages).max(4);
    let mut superblocks = entropy.between(4, (most / group_row_pages).clamp(4, 80));
    let slack = entropy.below(config.geometry.mapping_unit_bytes);
    loop {
        let bytes = superblocks * group_row_pages * config.geometry.mapping_unit_bytes;
        config.geometry.physical_bytes = Some(bytes + slack);
        if accept(entropy, &mut config) {
            break;
        }
        superblocks *= 2;
        if superblocks > superblocks_max {
            superblocks = superblocks_max;
            simplify(&mut config);
        }
    }
    if entropy.percent(50) {
        by_capacity(entropy, &mut config);
    }
    let layout = DeviceLayout::new(&config).expect("the generator only keeps accepted configurations");
    (config, layout)
}

/// Removes the settings that need most space. Ends with one default handle, which any drive of some
/// superblocks can hold.
fn simplify(config: &mut DeviceConfig) {
    config.handles.overrides.clear();
    config.handles.count = config.handles.count.div_ceil(2);
    config.handles.open_reclaim_units = 1;
    config.gc.reserve_share = 0.0;
    if config.handles.count == 1 {
        config.handles.reclaim_unit = ReclaimUnitSize::Superblock;
    }
}

/// Chooses an over-provisioning that works, half of the time the smallest one. Returns false if
/// none does.
fn accept(entropy: &mut impl Entropy, config: &mut DeviceConfig) -> bool {
    let wanted = match entropy.below(6) {
        0 => 1.0,
        1 => 0.07,
        2 => entropy.between(10, 300) as f64 / 1000.0,
        _ => 0.01,
    };
    config.geometry.over_provisioning = wanted;
    let Err(refusal) = DeviceLayout::new(config) else {
        return true;
    };
    let Some(works) = smallest_over_provisioning(&refusal) else {
        return false;
    };
    config.geometry.over_provisioning = works;
    assert!(DeviceLayout::new(config).is_ok(), "the remedy does not work: {refusal}\n{config:#?}");
    match entropy.below(4) {
        0 => {}
        1 => config.geometry.over_provisioning = (works + entropy.share()).min(1.0),
        _ => to_the_border(config, wanted, works),
    }
    DeviceLayout::new(config).is_ok()
}

/// Value that an error names as its remedy.
pub fn smallest_over_provisioning(refusal: &ConfigError) -> Option<f64> {
    let (_, after) = refusal.allowed.split_once("The smallest over-provisioning that works here is ")?;
    after.split(". ").next()?.parse().ok()
}

/// Narrows the over-provisioning down to the last page between a rejected and an accepted value.
fn to_the_border(config: &mut DeviceConfig, mut refused: f64, mut accepted: f64) {
    for _ in 0..16 {
        let between = (refused + accepted) / 2.0;
        config.geometry.over_provisioning = between;
        match DeviceLayout::new(config) {
            Ok(_) => accepted = between,
            Err(_) => refused = between,
        }
    }
    config.geometry.over_provisioning = accepted;
}

/// Specifies the capacity instead of the flash, if the rounding to superblocks gives the same
/// device.
fn by_capacity(entropy: &mut impl Entropy, config: &mut DeviceConfig) {
    let layout = DeviceLayout::new(config).expect("the generator only keeps accepted configurations");
    let unit = config.geometry.mapping_unit_bytes;
    let mut other = config.clone();
    other.geometry.physical_bytes = None;
    other.geometry.capacity_bytes = Some(u64::from(layout.logical_pages) * unit + entropy.below(unit));
    if DeviceLayout::new(&other).is_ok() {
        *config = other;
    }
}

/// Geometry whose superblock is a whole number of program units on each block and at least the
/// smallest allowed.
fn geometry(entropy: &mut impl Entropy) -> Geometry {
    let mapping_unit_bytes = entropy.pick(&[65536, 65536, 65536, 65536, 32768, 16384, 8192, 4096]);
    let channels: u32 = entropy.pick(&[1, 2, 3, 4, 5, 6, 8]);
    let dies_per_channel: u32 = entropy.pick(&[1, 1, 1, 2, 3]);
    let planes_per_die: u32 = entropy.pick(&[1, 1, 2]);
    let dies = channels * dies_per_channel;
    let possible: Vec<u16> =
        (1..=dies.min(6) as u16).filter(|groups| dies.is_multiple_of(u32::from(*groups))).collect();
    let reclaim_groups = if entropy.percent(60) { 1 } else { entropy.pick(&possible) };
    let blocks = u64::from(dies / u32::from(reclaim_groups) * planes_per_die);
    let program_unit_pages = entropy.pick(&[1, 1, 1, 2, 4]);
    let stripe_bytes = blocks * program_unit_pages * mapping_unit_bytes;
    // Drives have reclaim units of 1 MiB and more, scaled models also smaller ones.
    let least = if entropy.percent(30) { 1 } else { MIB.div_ceil(stripe_bytes) };
    let rows = least + entropy.below(4);
    Geometry {
        capacity_bytes: None,
        physical_bytes: None,
        over_provisioning: 1.0,
        media_overhead_share: overhead_share(entropy),
        reclaim_unit_bytes: rows * stripe_bytes,
        mapping_unit_bytes,
        program_unit_bytes: (program_unit_pages > 1).then_some(program_unit_pages * mapping_unit_bytes),
        channels,
        dies_per_channel,
        planes_per_die,
        reclaim_groups,
    }
}

fn overhead_share(entropy: &mut impl Entropy) -> f64 {
    let share = entropy.share() / 2.0;
    entropy.pick(&[0.0, 0.0, 0.1, 0.5, 1.0 / 3.0, share])
}

fn handles(entropy: &mut impl Entropy, geometry: &Geometry) -> HandlesConfig {
    let count = match entropy.below(16) {
        0 => entropy.between(9, 128),
        1..4 => 1,
        _ => entropy.between(2, 8),
    } as u16;
    let mut handles = HandlesConfig {
        count,
        isolation: isolation(entropy),
        reclaim_unit: unit_size(entropy, geometry),
        open_reclaim_units: open_units(entropy),
        opening: entropy.pick(&[UnitOpenPolicy::OnFirstUse, UnitOpenPolicy::OnFirstUse, UnitOpenPolicy::Eager]),
        hot_window_bytes: if entropy.percent(20) { entropy.between(1, 64) * geometry.mapping_unit_bytes } else { 0 },
        write_absorption_bytes: if entropy.percent(25) {
            entropy.between(1, 64) * geometry.mapping_unit_bytes
        } else {
            0
        },
        overrides: Vec::new(),
    };
    let different = if entropy.percent(50) { 0 } else { 40 };
    for index in 0..count {
        if entropy.percent(different) {
            handles.overrides.push(HandleOverride {
                index,
                isolation: entropy.percent(60).then(|| isolation(entropy)),
                reclaim_unit: entropy.percent(60).then(|| unit_size(entropy, geometry)),
                open_reclaim_units: entropy.percent(30).then(|| open_units(entropy)),
            });
        }
    }
    handles
}

/// Gives most handles units of a channel and persistent isolation, the maximum demand on one
/// superblock.
fn isolated_channels(config: &mut DeviceConfig) {
    let Geometry { channels, reclaim_groups, .. } = config.geometry;
    if !channels.is_multiple_of(u32::from(reclaim_groups)) {
        return;
    }
    config.handles.reclaim_unit = ReclaimUnitSize::Channel;
    config.handles.isolation = Isolation::PersistentlyIsolated;
    config.handles.count = config.handles.count.max(4);
    config.handles.overrides.truncate(1);
}

/// Puts copies among host data, with the settings that this requires.
fn single_frontier(entropy: &mut impl Entropy, config: &mut DeviceConfig) {
    config.gc.copies = GcDestination::WithHost;
    config.handles.reclaim_unit = ReclaimUnitSize::Superblock;
    let mut decide = |isolation: &mut Isolation| {
        if *isolation == Isolation::Adaptive {
            *isolation = entropy.pick(&[Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated]);
        }
    };
    decide(&mut config.handles.isolation);
    for given in &mut config.handles.overrides {
        given.reclaim_unit = None;
        given.isolation.as_mut().map(&mut decide);
    }
}

fn isolation(entropy: &mut impl Entropy) -> Isolation {
    entropy.pick(&[Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated, Isolation::Adaptive])
}

/// A size that divides the superblock of this geometry.
fn unit_size(entropy: &mut impl Entropy, geometry: &Geometry) -> ReclaimUnitSize {
    let (channels, groups) = (geometry.channels, u32::from(geometry.reclaim_groups));
    let blocks = channels * geometry.dies_per_channel / groups * geometry.planes_per_die;
    let by_channel = channels.is_multiple_of(groups) || groups.is_multiple_of(channels);
    match entropy.below(8) {
        0 => {
            let parts: Vec<u32> = (1..=blocks).filter(|parts| blocks.is_multiple_of(*parts)).collect();
            ReclaimUnitSize::Fraction(entropy.pick(&parts))
        }
        1 | 2 if by_channel => ReclaimUnitSize::Channel,
        3 => ReclaimUnitSize::Die,
        _ => ReclaimUnitSize::Superblock,
    }
}

fn open_units(entropy: &mut impl Entropy) -> u16 {
    entropy.pick(&[1, 1, 1, 2, 3, 7])
}

fn collection(entropy: &mut impl Entropy) -> GcConfig {
    let number = entropy.between(1, 9) as u32;
    let share = entropy.share();
    GcConfig {
        source_policy: entropy.pick(&[SourcePolicy::Global, SourcePolicy::HighestPressure]),
        victim_policy: entropy.pick(&[
            VictimRule::Greedy,
            VictimRule::CostAge,
            VictimRule::BenefitCost,
            VictimRule::BenefitCostSinceInvalidation,
            VictimRule::Fifo,
            VictimRule::Random,
            VictimRule::DChoices(number),
            VictimRule::WindowedGreedy(number),
        ]),
        lazy_valid_share: entropy.pick(&[0.0, 0.05, 0.29, 0.5, 0.57, 1.0, share]),
        background_watermark: entropy.pick(&[0.9, 0.9, 1.0, 0.5, 0.0, share]),
        foreground_watermark: entropy.pick(&[0.99, 0.99, 1.0, 0.9, 0.0, share]),
        watermark_base: entropy.pick(&[WatermarkBase::Spare, WatermarkBase::Spare, WatermarkBase::All]),
        copies: GcDestination::Apart,
        block_remapping: entropy.percent(60),
        allocation: entropy.pick(&[Allocation::Oldest, Allocation::LeastWorn]),
        wear_levelling_erases: entropy.pick(&[0, 0, 1, 2, 5]),
        reserve_share: entropy.pick(&[0.0, 0.0, 0.1, 0.5, 0.9]),
        adaptive_isolation_spare: entropy.pick(&[0.0, 0.5, 1.0, 2.0, 4.0, 16.0]),
    }
}
