//! Names of settings, and errors of invalid settings.

use super::*;

fn by_name<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, ValueError> {
    T::deserialize(name.into_deserializer())
}

fn with_number<'de, T: Deserialize<'de>>(name: &'de str, number: u32) -> Result<T, ValueError> {
    T::deserialize(MapAccessDeserializer::new(MapDeserializer::new([(name, number)].into_iter())))
}

#[test]
fn each_name_is_its_own_variant_and_no_other_is_accepted() {
    use SourcePolicy::{Global, HighestPressure};
    use VictimRule::{
        BenefitCost, BenefitCostSinceInvalidation, CostAge, DChoices, Fifo, Greedy, Random, WindowedGreedy,
    };
    for policy in [Greedy, CostAge, BenefitCost, BenefitCostSinceInvalidation, Fifo, Random] {
        assert_eq!(by_name(policy.name()), Ok(policy), "the log has the names of the configuration");
    }
    for policy in [DChoices(3), WindowedGreedy(3)] {
        assert_eq!(with_number(policy.name(), 3), Ok(policy));
    }
    assert_eq!(by_name("global"), Ok(Global));
    assert_eq!(by_name("highest_pressure"), Ok(HighestPressure));
    assert_eq!(by_name("initially_isolated"), Ok(Isolation::InitiallyIsolated));
    assert_eq!(by_name("persistently_isolated"), Ok(Isolation::PersistentlyIsolated));
    assert_eq!(by_name("adaptive"), Ok(Isolation::Adaptive));
    assert_eq!(by_name("superblock"), Ok(ReclaimUnitSize::Superblock));
    assert_eq!(by_name("channel"), Ok(ReclaimUnitSize::Channel));
    assert_eq!(by_name("die"), Ok(ReclaimUnitSize::Die));
    assert!(by_name::<ReclaimUnitSize>("adaptive").is_err());
    assert_eq!(with_number("fraction", 4), Ok(ReclaimUnitSize::Fraction(4)));
    assert_eq!(by_name("on_first_use"), Ok(UnitOpenPolicy::OnFirstUse));
    assert_eq!(by_name("eager"), Ok(UnitOpenPolicy::Eager));
    assert_eq!(by_name("spare"), Ok(WatermarkBase::Spare));
    assert_eq!(by_name("all"), Ok(WatermarkBase::All));
    assert_eq!(by_name("apart"), Ok(GcDestination::Apart));
    assert_eq!(by_name("with_host"), Ok(GcDestination::WithHost));
    assert!(by_name::<VictimRule>("cost_benefit").is_err());
    assert!(by_name::<SourcePolicy>("greedy").is_err());
}

#[test]
fn each_key_sets_its_own_field_and_unknown_ones_are_refused() {
    fn read<T: for<'de> Deserialize<'de>>(key: &str, value: f64) -> Result<T, ValueError> {
        T::deserialize(MapDeserializer::new([(key, value)].into_iter()))
    }
    let gc = |change: fn(&mut GcConfig)| {
        let mut expected = GcConfig::default();
        change(&mut expected);
        Ok(expected)
    };
    assert_eq!(read("lazy_valid_share", 0.3), gc(|gc| gc.lazy_valid_share = 0.3));
    assert_eq!(read("background_watermark", 0.3), gc(|gc| gc.background_watermark = 0.3));
    assert_eq!(read("foreground_watermark", 0.3), gc(|gc| gc.foreground_watermark = 0.3));
    assert_eq!(read("reserve_share", 0.3), gc(|gc| gc.reserve_share = 0.3));
    assert_eq!(read("adaptive_isolation_spare", 0.3), gc(|gc| gc.adaptive_isolation_spare = 0.3));
    for key in ["lazy_threshold", "Background_mark", ""] {
        let error = read::<GcConfig>(key, 0.3).expect_err("the key is unknown").to_string();
        assert!(error.contains("lazy_valid_share"), "the refusal lists what is known: {error}");
    }
    assert!(read::<HandlesConfig>("number", 8.0).is_err());
}

#[test]
fn defaults_are_the_published_ones() {
    let handles = HandlesConfig::default();
    assert_eq!((handles.count, handles.open_reclaim_units), (8, 1));
    assert_eq!(handles.isolation, Isolation::InitiallyIsolated);
    assert_eq!(handles.opening, UnitOpenPolicy::OnFirstUse);
    let gc = GcConfig::default();
    assert_eq!((gc.background_watermark, gc.foreground_watermark, gc.lazy_valid_share), (0.90, 0.99, 0.05));
    assert_eq!((gc.victim_policy, gc.source_policy), (VictimRule::Greedy, SourcePolicy::Global));
    assert_eq!((gc.watermark_base, gc.block_remapping, gc.reserve_share), (WatermarkBase::Spare, true, 0.0));
    assert_eq!(gc.copies, GcDestination::Apart);
}

// ---------------------------------------------------------------------------------------------------------------------
// Refusals

/// A change to a configuration.
type Change = fn(&mut DeviceConfig);

/// Field that an error must name, the invalid change to a valid configuration, and words that the
/// remedy must contain.
type Refusal = (&'static str, Change, &'static str);

const GIB: u64 = 1 << 30;

/// Reclaim groups that are neither whole channels nor parts of one, with this size of reclaim
/// units.
fn split_channels(config: &mut DeviceConfig, size: ReclaimUnitSize) {
    let geometry = &mut config.geometry;
    (geometry.channels, geometry.dies_per_channel, geometry.reclaim_groups) = (4, 3, 6);
    geometry.reclaim_unit_bytes = 3 * MIB;
    config.handles.reclaim_unit = size;
}

const REFUSALS: &[Refusal] = &table! {
    "geometry.mapping_unit_bytes": |c| c.geometry.mapping_unit_bytes = 2048 => "must be 4096",
    "geometry.mapping_unit_bytes": |c| c.geometry.mapping_unit_bytes = 131_072 => "65536",
    "geometry.mapping_unit_bytes": |c| c.geometry.mapping_unit_bytes = 12_288 => "must be 4096",
    "geometry.mapping_unit_bytes": |c| c.geometry.mapping_unit_bytes = 0 => "must be 4096",
    "geometry.over_provisioning": |c| c.geometry.over_provisioning = 0.009 => "between 0.01 and 1",
    "geometry.over_provisioning": |c| c.geometry.over_provisioning = 1.01 => "between 0.01 and 1",
    "geometry.over_provisioning": |c| c.geometry.over_provisioning = -0.1 => "between 0.01 and 1",
    "geometry.over_provisioning": |c| c.geometry.over_provisioning = f64::NAN => "between 0.01 and 1",
    "geometry.media_overhead_share": |c| c.geometry.media_overhead_share = 0.51 => "between 0 and 0.5",
    "geometry.media_overhead_share": |c| c.geometry.media_overhead_share = -0.01 => "between 0 and 0.5",
    "geometry.media_overhead_share": |c| c.geometry.media_overhead_share = f64::NAN => "between 0 and 0.5",
    "geometry.over_provisioning": |c| c.geometry.over_provisioning = 0.01 => "smallest over-provisioning that works",
    "geometry.over_provisioning": |c| c.geometry.physical_bytes = Some(3 * MIB) => "No over-provisioning up to 1",
    "geometry.reclaim_unit_bytes": |c| c.geometry.reclaim_unit_bytes = 2048 => "at most 16 GiB",
    "geometry.reclaim_unit_bytes": |c| c.geometry.reclaim_unit_bytes = 16 * GIB + MIB => "at most 16 GiB",
    "geometry.reclaim_unit_bytes": |c| c.geometry.reclaim_unit_bytes = MIB + 4096 => "must be a multiple of 16384",
    "geometry.reclaim_unit_bytes": |c| c.geometry.program_unit_bytes = Some(3 * 4096) => "must be a multiple of 49152",
    "geometry.program_unit_bytes": |c| c.geometry.program_unit_bytes = Some(2048) => "multiple of",
    "geometry.program_unit_bytes": |c| c.geometry.program_unit_bytes = Some(1 << 62)
        => "at most geometry.reclaim_unit_bytes",
    "geometry.program_unit_bytes": |c| c.geometry.program_unit_bytes = Some(4097) => "multiple of",
    "geometry.program_unit_bytes": |c| c.geometry.program_unit_bytes = Some(0) => "multiple of",
    "geometry.channels": |c| c.geometry.channels = 0 => "between 1 and 1024",
    "geometry.channels": |c| c.geometry.channels = 1025 => "between 1 and 1024",
    "geometry.dies_per_channel": |c| c.geometry.dies_per_channel = 0 => "between 1 and 1024",
    "geometry.dies_per_channel": |c| c.geometry.dies_per_channel = 1025 => "between 1 and 1024",
    "geometry.planes_per_die": |c| c.geometry.planes_per_die = 0 => "between 1 and 64",
    "geometry.planes_per_die": |c| c.geometry.planes_per_die = 65 => "between 1 and 64",
    "geometry.reclaim_groups": |c| c.geometry.reclaim_groups = 0 => "between 1 and 65535",
    "geometry.reclaim_groups": |c| c.geometry.reclaim_groups = 3 => "must divide the 4 dies",
    "geometry.physical_bytes": |c| c.geometry.capacity_bytes = Some(MIB) => "not be combined with geometry.capacity_bytes",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(MIB - 1) => "at least one superblock",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(0) => "at least one superblock",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(16 << 40) => "mapping_unit_bytes = 8192",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(50 << 40) => "mapping_unit_bytes = 16384",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(32 << 40) => "mapping_unit_bytes = 16384",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(200 << 40) => "mapping_unit_bytes = 65536",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(300 << 40) => "use less flash",
    "geometry.physical_bytes": |c| c.geometry.physical_bytes = Some(u64::MAX) => "use less flash",
    "geometry.capacity_bytes": |c| c.geometry.physical_bytes = None => "or geometry.physical_bytes",
    "geometry.capacity_bytes": |c| (c.geometry.physical_bytes, c.geometry.capacity_bytes) = (None, Some(100))
        => "at least one superblock",
    "geometry.capacity_bytes": |c| {
        (c.geometry.physical_bytes, c.geometry.capacity_bytes) = (None, Some(u64::MAX));
        c.geometry.over_provisioning = 1.0;
    } => "use less flash",
    "handles.count": |c| c.handles.count = 0 => "between 1 and 128",
    "handles.count": |c| c.handles.count = 129 => "between 1 and 128",
    "handles.overrides.index": |c| c.handles.overrides = vec![given(4)] => "0 to 3",
    "handles.overrides.index": |c| c.handles.overrides = vec![given(2), given(2)] => "at most once",
    "handles[0].open_reclaim_units": |c| c.handles.open_reclaim_units = 0 => "between 1 and 64",
    "handles[0].open_reclaim_units": |c| c.handles.open_reclaim_units = 65 => "between 1 and 64",
    "handles[3].open_reclaim_units": |c| {
        let mut override_of_3 = given(3);
        override_of_3.open_reclaim_units = Some(65);
        c.handles.overrides = vec![override_of_3];
    } => "between 1 and 64",
    "handles[0].reclaim_unit": |c| c.handles.reclaim_unit = ReclaimUnitSize::Fraction(0) => "must divide the 4 blocks",
    "handles[0].reclaim_unit": |c| split_channels(c, ReclaimUnitSize::Channel) => "a whole number of channels",
    "handles[3].reclaim_unit": |c| {
        let mut override_of_3 = given(3);
        override_of_3.reclaim_unit = Some(ReclaimUnitSize::Fraction(3));
        c.handles.overrides = vec![override_of_3];
    } => "must divide the 4 blocks",
    "gc.lazy_valid_share": |c| c.gc.lazy_valid_share = -0.01 => "between 0 and 1",
    "gc.lazy_valid_share": |c| c.gc.lazy_valid_share = 1.01 => "between 0 and 1",
    "gc.background_watermark": |c| c.gc.background_watermark = 1.01 => "between 0 and 1",
    "gc.background_watermark": |c| c.gc.background_watermark = f64::NAN => "between 0 and 1",
    "gc.foreground_watermark": |c| c.gc.foreground_watermark = -0.5 => "between 0 and 1",
    "gc.foreground_watermark": |c| c.gc.foreground_watermark = 95.0 => "between 0 and 1",
    "gc.reserve_share": |c| c.gc.reserve_share = -0.1 => "between 0 and 0.9",
    "gc.reserve_share": |c| c.gc.reserve_share = 0.91 => "between 0 and 0.9",
    "gc.adaptive_isolation_spare": |c| c.gc.adaptive_isolation_spare = -1.0 => "0 or more",
    "gc.adaptive_isolation_spare": |c| c.gc.adaptive_isolation_spare = f64::INFINITY => "0 or more",
    "gc.copies": |c| (c.gc.copies, c.handles.reclaim_unit) = (GcDestination::WithHost, ReclaimUnitSize::Channel)
        => "whole superblocks",
    "gc.copies": |c| (c.gc.copies, c.handles.isolation) = (GcDestination::WithHost, Isolation::Adaptive)
        => "a fixed isolation",
    "gc.victim_policy": |c| c.gc.victim_policy = VictimRule::DChoices(0) => "1 to 4096",
    "gc.victim_policy": |c| c.gc.victim_policy = VictimRule::WindowedGreedy(0) => "1 reclaim unit or more",
};

#[test]
fn each_impossible_configuration_is_refused_by_field_and_with_a_remedy() {
    for (position, (field, change, remedy)) in REFUSALS.iter().enumerate() {
        let mut config = small(64, 0.25);
        assert!(Device::new(&config).is_ok());
        change(&mut config);
        let Err(error) = Device::new(&config) else {
            panic!("row {position}, {field}: the configuration is accepted");
        };
        assert_eq!(&error.field, field, "row {position}: {error}");
        assert!(error.allowed.contains(remedy), "row {position}: {error}");
        let sentence = error.to_string();
        assert!(sentence.starts_with(&format!("{field} is {}, but ", error.value)), "row {position}: {sentence}");
        assert!(!sentence.contains('\n') && error.allowed.len() > 10, "row {position}: {sentence}");
    }
}

#[test]
fn the_over_provisioning_named_as_the_smallest_that_works_is() {
    let changes: [Change; 9] = [
        |_| (),
        |c| c.handles.count = 40,
        |c| c.handles.isolation = Isolation::PersistentlyIsolated,
        |c| c.handles.opening = UnitOpenPolicy::Eager,
        |c| c.handles.open_reclaim_units = 3,
        |c| c.handles.reclaim_unit = ReclaimUnitSize::Die,
        |c| c.gc.reserve_share = 0.7,
        |c| c.geometry.reclaim_groups = 4,
        |c| (c.geometry.physical_bytes, c.geometry.capacity_bytes) = (None, Some(100 * MIB)),
    ];
    let mut named = 0;
    for (position, change) in changes.iter().enumerate() {
        for superblocks in [61, 100, 128, 333] {
            let mut config = small(superblocks, 0.01);
            change(&mut config);
            let Err(error) = DeviceLayout::new(&config) else {
                continue;
            };
            assert_eq!(error.field, "geometry.over_provisioning");
            let words: Vec<&str> = error.allowed.split("works here is ").collect();
            let Some(value) = words.get(1).and_then(|rest| rest.split(". ").next()) else {
                panic!("change {position}, {superblocks} superblocks: no remedy: {error}");
            };
            config.geometry.over_provisioning = value.parse().expect("a number");
            let result = DeviceLayout::new(&config);
            assert!(result.is_ok(), "change {position}, {superblocks} superblocks: {value}: {result:?}");
            config.geometry.over_provisioning -= 0.001;
            assert!(
                DeviceLayout::new(&config).is_err(),
                "change {position}, {superblocks} superblocks: less works too"
            );
            named += 1;
        }
    }
    assert!(named > 20, "only {named} were refused");
}
