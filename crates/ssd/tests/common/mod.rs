//! Shared helpers of the behaviour tests: small devices without optional features, short names for
//! host calls, and bookkeeping from events. Contains no expectations.

#![allow(dead_code)] // Every test binary uses its own part.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ssd::config::{
    Allocation, DeviceConfig, GcConfig, GcDestination, Geometry, HandleOverride, HandlesConfig, Isolation,
    ReclaimUnitSize, SourcePolicy, UnitOpenPolicy, VictimRule, WatermarkBase,
};
use ssd::event::{ReclaimRecord, Trigger};
use ssd::{Device, DeviceEvent, EventSink, Lpn, Placement, Ppn, RgId, RuId, RuhId, UnitOwner, WriteRequest};

pub const MIB: u64 = 1 << 20;

/// Pages of a reclaim unit of [`small`] devices.
pub const UNIT_PAGES: u32 = 256;

/// A device that records its events.
pub type Recorded = Device<Vec<DeviceEvent>>;

/// A drive of `superblocks` reclaim units of 1 MiB (256 pages in 4 blocks on 2 channels of 2 dies)
/// with four initially isolated handles. Collects only for lack of space, and only by copying.
pub fn small(superblocks: u64, over_provisioning: f64) -> DeviceConfig {
    DeviceConfig {
        geometry: Geometry {
            physical_bytes: Some(superblocks * MIB),
            over_provisioning,
            reclaim_unit_bytes: MIB,
            channels: 2,
            dies_per_channel: 2,
            ..Geometry::default()
        },
        handles: HandlesConfig {
            count: 4,
            isolation: Isolation::InitiallyIsolated,
            reclaim_unit: ReclaimUnitSize::Superblock,
            open_reclaim_units: 1,
            opening: UnitOpenPolicy::OnFirstUse,
            hot_window_bytes: 0,
            write_absorption_bytes: 0,
            overrides: Vec::new(),
        },
        gc: GcConfig {
            source_policy: SourcePolicy::Global,
            victim_policy: VictimRule::Greedy,
            lazy_valid_share: 0.05,
            background_watermark: 1.0,
            foreground_watermark: 1.0,
            watermark_base: WatermarkBase::Spare,
            copies: GcDestination::Apart,
            block_remapping: false,
            allocation: Allocation::Oldest,
            wear_levelling_erases: 0,
            reserve_share: 0.0,
            adaptive_isolation_spare: 16.0,
        },
        seed: 1,
        ..DeviceConfig::default()
    }
}

/// Creates a device that records its events.
pub fn recorded(config: &DeviceConfig) -> Recorded {
    Device::with_sink(config, Vec::new()).expect("the configuration is valid")
}

/// Creates a device without events.
pub fn silent(config: &DeviceConfig) -> Device {
    Device::new(config).expect("the configuration is valid")
}

/// A host write of whole pages.
pub fn extent(first: u32, pages: u32, placement: Placement) -> WriteRequest {
    WriteRequest { first: Lpn(first), pages, host_bytes: u64::from(pages) * 4096, placement }
}

/// Writes whole pages through a handle of reclaim group 0.
pub fn write<S: EventSink>(device: &mut Device<S>, first: u32, pages: u32, handle: u16) {
    let _ = device.write(0, &extent(first, pages, Placement::handle(handle))).expect("the extent and the handle exist");
}

/// Placement from its numbers.
pub fn placement(group: u16, handle: u16) -> Placement {
    Placement { group: RgId(group), handle: RuhId(handle) }
}

/// Owner of handle `index`.
pub fn owner(index: u16) -> UnitOwner {
    UnitOwner::from_handle(RuhId(index))
}

/// Reclaim unit that holds a logical page.
pub fn unit_of<S: EventSink>(device: &Device<S>, lpn: u32) -> RuId {
    device.unit_of(device.lookup(Lpn(lpn)).expect("the page is mapped"))
}

/// Owner of the reclaim unit that holds a logical page.
pub fn owner_of<S: EventSink>(device: &Device<S>, lpn: u32) -> UnitOwner {
    device.unit(unit_of(device, lpn)).owner()
}

/// Collections so far.
pub fn reclaims(device: &Recorded) -> Vec<ReclaimRecord> {
    let reclaim = |event: &DeviceEvent| match event {
        DeviceEvent::Reclaim(reclaim) => Some(reclaim.clone()),
        _ => None,
    };
    device.sink().iter().filter_map(reclaim).collect()
}

/// Sizes in pages of the reclaim units opened so far for host writes of this owner.
pub fn opened_pages(device: &Recorded, by: UnitOwner) -> Vec<u32> {
    let opened = |event: &DeviceEvent| match event {
        DeviceEvent::Open { owner, unit_pages, for_collection: false, .. } if *owner == by => Some(*unit_pages),
        _ => None,
    };
    device.sink().iter().filter_map(opened).collect()
}

/// Pages of free reclaim units at the start of each collection, with its trigger. Supports a single
/// reclaim group.
///
/// A `Reclaim` event follows the `Open` events of its own destination, so the function reverts
/// those after the previous event.
pub fn free_pages_at_reclaims(device: &Recorded) -> Vec<(Trigger, u64)> {
    let mut free = u64::from(device.layout().physical_pages);
    let mut opened_for_copies = 0;
    let mut rows = Vec::new();
    for event in device.sink() {
        match event {
            DeviceEvent::Open { unit_pages, for_collection, .. } => {
                free -= u64::from(*unit_pages);
                opened_for_copies += if *for_collection { u64::from(*unit_pages) } else { 0 };
            }
            DeviceEvent::Reclaim(reclaim) => {
                rows.push((reclaim.trigger, free + opened_for_copies));
                free += u64::from(reclaim.unit_pages);
                opened_for_copies = 0;
            }
            _ => {}
        }
    }
    rows
}

/// Checks the device's invariants, and that its events add up to its counters.
pub fn prove(device: &Recorded) {
    device.check().expect("every invariant holds");
    let folded = ssd::DeviceStats::new(device.layout().page_bytes, device.layout().handles.len() as u16);
    let mut folded = folded.with_overhead(device.config().geometry.media_overhead());
    for event in device.sink() {
        folded.apply(event);
    }
    assert_eq!(&folded, device.stats(), "the events do not fold to the device's counters");
}

/// Logical pages drawn uniformly, from a seed.
pub struct Uniform {
    random: Xoshiro256PlusPlus,
}

impl Uniform {
    pub fn new(seed: u64) -> Uniform {
        Uniform { random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Draws one of `0..below`.
    pub fn below(&mut self, below: u32) -> u32 {
        ((u64::from(self.random.next_u64() as u32) * u64::from(below)) >> 32) as u32
    }
}

/// Overwrites `count` pages of `first..first + span`, drawn uniformly, through a handle of group 0.
pub fn overwrite_uniformly<S: EventSink>(
    device: &mut Device<S>,
    uniform: &mut Uniform,
    (first, span): (u32, u32),
    count: u64,
    handle: u16,
) {
    const BATCH: u64 = 64;
    let mut batch = Vec::with_capacity(BATCH as usize);
    let mut left = count;
    while left > 0 {
        batch.clear();
        for _ in 0..left.min(BATCH) {
            batch.push(extent(first + uniform.below(span), 1, Placement::handle(handle)));
        }
        left -= batch.len() as u64;
        let _ = device.write_batch(0, &batch).expect("the pages exist");
    }
}

/// Media pages written for each host page between two moments.
pub fn write_amplification_since(before: &ssd::DeviceStats, after: &ssd::DeviceStats) -> f64 {
    let host = after.host_bytes_written() - before.host_bytes_written();
    (after.media_bytes_written() - before.media_bytes_written()) as f64 / host as f64
}

/// Divided superblocks, persistent isolation, random victims, block remapping, two reclaim groups,
/// overhead, absorption, wear levelling.
pub fn everything() -> DeviceConfig {
    let mut config = small(96, 0.3);
    config.geometry.reclaim_groups = 2;
    config.geometry.media_overhead_share = 0.07;
    config.handles.write_absorption_bytes = 2 * 4096;
    config.gc.wear_levelling_erases = 1;
    config.gc.victim_policy = VictimRule::Random;
    config.gc.block_remapping = true;
    config.handles.isolation = Isolation::PersistentlyIsolated;
    let size = |index, reclaim_unit| HandleOverride {
        index,
        isolation: None,
        reclaim_unit: Some(reclaim_unit),
        open_reclaim_units: None,
    };
    config.handles.overrides = vec![size(1, ReclaimUnitSize::Die), size(2, ReclaimUnitSize::Fraction(2))];
    config.handles.overrides[1].isolation = Some(Isolation::InitiallyIsolated);
    config.handles.overrides[1].open_reclaim_units = Some(2);
    config
}

/// Overwrites pages drawn uniformly in short runs through all handles and groups. Occasionally
/// deallocates pages, updates a handle or writes a long extent.
pub fn work(device: &mut Device, uniform: &mut Uniform, commands: u32) {
    let pages = device.layout().logical_pages;
    let groups = u32::from(device.layout().groups);
    let handles = device.layout().handles.len() as u32;
    for command in 0..commands {
        let first = uniform.below(pages - UNIT_PAGES);
        let placement = placement(uniform.below(groups) as u16, uniform.below(handles) as u16);
        let length = match command % 16 {
            0 => UNIT_PAGES,
            _ => 1 + uniform.below(8),
        };
        let _ = device.write(0, &extent(first, length, placement)).expect("the extent and the placement exist");
        if command % 50 == 7 {
            let _ = device.deallocate(0, Lpn(first), 4).expect("the extent exists");
        }
        if command % 200 == 11 {
            device.update_handle(0, placement).expect("the placement exists");
        }
    }
}

pub fn physical_pages(device: &Device) -> Vec<Option<Ppn>> {
    (0..device.layout().logical_pages).map(|page| device.lookup(Lpn(page))).collect()
}

/// Asserts that all visible state of two devices is equal.
pub fn assert_same(one: &Device, other: &Device) {
    assert_eq!(one.config(), other.config());
    assert_eq!(one.stats(), other.stats());
    assert!(physical_pages(one) == physical_pages(other), "the lookups differ");
    assert_eq!(one.host_pages_written(), other.host_pages_written());
    assert_eq!(one.block_erase_counts(), other.block_erase_counts());
    assert_eq!(one.occupancy(), other.occupancy());
    for handle in 0..one.layout().handles.len() as u16 {
        let placement = Placement::handle(handle);
        assert_eq!(one.available_media_writes(placement), other.available_media_writes(placement));
    }
    one.check().expect("every invariant of the one holds");
    other.check().expect("every invariant of the other holds");
}
