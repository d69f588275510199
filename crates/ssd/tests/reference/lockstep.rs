//! Runs a device and the reference in lockstep and compares them after each command.
//!
//! After every command it compares the result, events, counters and the pages of the command. After
//! every few commands, more often if they reclaim units, it compares the whole state. This includes
//! the map, every reclaim unit, erase counts, occupancy, available media writes, and the isolation
//! of each page. Occasionally and at the end it runs the device's own full scan.

use std::collections::BTreeMap;

use ssd::config::{GcDestination, Isolation, ReclaimUnitSize, UnitOpenPolicy, WatermarkBase};
use ssd::event::{CloseReason, Trigger};
use ssd::unit::UnitState;
use ssd::{Device, DeviceConfig, DeviceEvent, DeviceLayout, EventSink, HostError, Lpn, Placement, Ppn, UnitOwner};
use ssd::{DeviceStats, RgId, RuId, RuhId};

use super::model::{Reference, Unit};
use super::workload::Operation;

/// Commands between two comparisons of the whole state, and the same for commands that reclaimed a
/// unit.
const STATE_EVERY: usize = 64;
const STATE_EVERY_RECLAIMING: usize = 8;
/// Commands between two full scans of the device by itself.
const CHECK_EVERY: usize = 128;

/// Number of times each feature was exercised.
#[derive(Clone, Debug, Default)]
pub struct Coverage(pub BTreeMap<String, u64>);

impl Coverage {
    pub fn add(&mut self, feature: &str, times: u64) {
        *self.0.entry(feature.to_string()).or_default() += times;
    }

    pub fn get(&self, feature: &str) -> u64 {
        self.0.get(feature).copied().unwrap_or(0)
    }

    pub fn merge(&mut self, other: &Coverage) {
        for (feature, times) in &other.0 {
            self.add(feature, *times);
        }
    }
}

/// Records the events of one command. A number beyond the need of any command indicates an endless
/// loop.
#[derive(Clone)]
struct Recorder {
    events: Vec<DeviceEvent>,
    most: usize,
}

impl EventSink for Recorder {
    fn event(&mut self, event: &DeviceEvent) {
        self.events.push(event.clone());
        assert!(
            self.events.len() < self.most,
            "one command caused {} events: the device does not come to an end",
            self.most
        );
    }
}

/// A device and the reference in lockstep.
pub struct Lockstep {
    device: Device<Recorder>,
    reference: Reference,
    /// Counters derived from events, as a cross-check.
    folded: DeviceStats,
    /// Pages that must be mapped, derived from the commands alone.
    mapped: Vec<bool>,
    commands: usize,
    /// Number of commands that reclaimed a unit.
    reclaiming: usize,
    pub coverage: Coverage,
}

/// Runs a case to its end. Calls `progress` with the index of each command before it executes.
///
/// # Errors
/// The first difference, in words. A panic of the device passes through.
pub fn run(
    config: &DeviceConfig,
    layout: &DeviceLayout,
    operations: &[Operation],
    progress: &std::cell::Cell<usize>,
) -> Result<Coverage, String> {
    let mut lockstep = Lockstep::new(config, layout)?;
    for (index, operation) in operations.iter().enumerate() {
        progress.set(index);
        lockstep.step(operation)?;
    }
    lockstep.compare_state()?;
    lockstep.device.check()?;
    lockstep.count_configuration();
    Ok(lockstep.coverage)
}

impl Lockstep {
    /// Creates the device and the reference.
    ///
    /// # Errors
    /// They differ from the start.
    pub fn new(config: &DeviceConfig, layout: &DeviceLayout) -> Result<Lockstep, String> {
        let recorder =
            Recorder { events: Vec::new(), most: 1_000 + 100 * (layout.slices() + layout.logical_pages) as usize };
        let mut device = Device::with_sink(config, recorder).map_err(|error| error.to_string())?;
        // Most of these drives are too small for it (`compact.rs`).
        if !config.seed.is_multiple_of(4) {
            device.make_compact().map_err(|error| error.to_string())?;
        }
        let mut lockstep = Lockstep {
            reference: Reference::new(config, layout.clone()),
            folded: DeviceStats::new(layout.page_bytes, layout.handles.len() as u16)
                .with_overhead(config.geometry.media_overhead()),
            mapped: vec![false; layout.logical_pages as usize],
            commands: 0,
            reclaiming: 0,
            coverage: Coverage::default(),
            device,
        };
        lockstep.compare_events()?;
        lockstep.compare_state()?;
        Ok(lockstep)
    }

    /// Executes one command on both and compares.
    ///
    /// # Errors
    /// The first difference.
    pub fn step(&mut self, operation: &Operation) -> Result<(), String> {
        self.commands += 1;
        let now = 10 * self.commands as u64;
        let (device, reference) = (&mut self.device, &mut self.reference);
        let done = |result: Result<ssd::CompletionTime, HostError>| result.map(|_| 0);
        let (got, expected) = match operation {
            Operation::Write(write) => (done(device.write(now, write)), reference.write(now, write).map(|()| 0)),
            Operation::Batch(writes) => {
                (done(device.write_batch(now, writes)), reference.write_batch(now, writes).map(|()| 0))
            }
            Operation::Deallocate { first, pages } => (
                done(device.deallocate(now, Lpn(*first), *pages)),
                reference.deallocate(Lpn(*first), *pages).map(|()| 0),
            ),
            Operation::Zeroes { write, deallocate } => (
                done(device.write_zeroes(now, write, *deallocate)),
                reference.write_zeroes(now, write, *deallocate).map(|()| 0),
            ),
            Operation::Update(placement) => {
                (device.update_handle(now, *placement), reference.update_handle(now, *placement))
            }
            Operation::Fork => {
                let copy = device.clone();
                *device = copy;
                (Ok(0), Ok(0))
            }
        };
        if got != expected {
            return Err(format!("the device answers {got:?}, the reference {expected:?}"));
        }
        self.coverage.add("command refused", u64::from(got.is_err()));
        if got.is_ok() {
            self.note_mapping(operation);
        }
        let reclaimed = self.compare_events()?;
        self.compare_pages(operation)?;
        self.reclaiming += usize::from(reclaimed);
        let after_reclaim = reclaimed && self.reclaiming.is_multiple_of(STATE_EVERY_RECLAIMING);
        if after_reclaim || self.commands.is_multiple_of(STATE_EVERY) {
            self.compare_state()?;
        }
        if self.commands.is_multiple_of(CHECK_EVERY) {
            self.device.check()?;
        }
        Ok(())
    }

    /// Updates `mapped` from the command alone.
    fn note_mapping(&mut self, operation: &Operation) {
        let mut set = |first: u32, pages: u32, mapped| self.mapped[first as usize..][..pages as usize].fill(mapped);
        match operation {
            Operation::Write(write) => set(write.first.0, write.pages, true),
            Operation::Zeroes { write, deallocate } => set(write.first.0, write.pages, !deallocate),
            Operation::Batch(writes) => writes.iter().for_each(|write| set(write.first.0, write.pages, true)),
            Operation::Deallocate { first, pages } => set(*first, *pages, false),
            Operation::Update(_) | Operation::Fork => {}
        }
    }

    /// Checks that events are equal and add up to the counters. Returns true if a unit was
    /// reclaimed.
    fn compare_events(&mut self) -> Result<bool, String> {
        let got = std::mem::take(&mut self.device.sink_mut().events);
        let expected = std::mem::take(&mut self.reference.events);
        let pairs = got.iter().map(Some).chain(std::iter::repeat(None));
        let pairs = pairs.zip(expected.iter().map(Some).chain(std::iter::repeat(None)));
        for (index, (got, expected)) in pairs.take(got.len().max(expected.len())).enumerate() {
            if got != expected {
                return Err(format!("event {index} is {got:?}, in the reference {expected:?}"));
            }
        }
        for event in &got {
            self.folded.apply(event);
            self.count(event);
        }
        same("counters", self.device.stats(), &self.reference.stats)?;
        same("folded events", &self.folded, self.device.stats())?;
        let (stats, overhead_pages) = (self.device.stats(), self.reference.overhead_pages);
        same("overhead pages", &stats.overhead_pages(), &overhead_pages)?;
        let media_bytes = (self.reference.data_pages + overhead_pages) * stats.page_bytes;
        same("media bytes", &stats.media_bytes_written(), &media_bytes)?;
        Ok(got.iter().any(|event| matches!(event, DeviceEvent::Reclaim(_))))
    }

    /// Checks the physical location of the command's pages against the reference.
    fn compare_pages(&self, operation: &Operation) -> Result<(), String> {
        let (first, pages) = match operation {
            Operation::Write(write) | Operation::Zeroes { write, .. } => (write.first.0, write.pages),
            Operation::Deallocate { first, pages } => (*first, *pages),
            Operation::Batch(_) | Operation::Update(_) | Operation::Fork => return Ok(()),
        };
        let capacity = self.reference.layout.logical_pages;
        for page in first.min(capacity)..first.saturating_add(pages).min(capacity) {
            self.compare_page(page)?;
        }
        Ok(())
    }

    fn compare_page(&self, page: u32) -> Result<(), String> {
        let expected = self.reference.map[page as usize];
        let got = self.device.lookup(Lpn(page)).map(|Ppn(physical)| physical);
        if got != expected {
            return Err(format!("logical page {page} is at {got:?}, in the reference at {expected:?}"));
        }
        if got.is_some() != self.mapped[page as usize] {
            return Err(format!("logical page {page} is at {got:?}, but the host made that impossible"));
        }
        Ok(())
    }

    /// Checks that all visible state is equal.
    pub fn compare_state(&mut self) -> Result<(), String> {
        let (device, reference) = (&self.device, &self.reference);
        for page in 0..reference.layout.logical_pages {
            self.compare_page(page)?;
            self.check_isolation(page)?;
        }
        for slice in 0..reference.layout.slices() {
            let unit = device.unit(RuId(slice));
            let got = (unit.state(), unit.owner(), unit.pages(), unit.valid_pages());
            let expected = match &reference.units[slice as usize] {
                Some(entry) => {
                    let (pages, valid) = (reference.unit_pages(slice), reference.valid_pages(slice));
                    (entry.state, entry.owner, pages, valid)
                }
                None => (UnitState::Free, unit.owner(), unit.pages(), 0),
            };
            same(&format!("reclaim unit {slice}"), &got, &expected)?;
        }
        let live_pages = self.mapped.iter().filter(|mapped| **mapped).count() as u64;
        same("live pages", &device.live_pages(), &live_pages)?;
        same("host pages", &device.host_pages_written(), &reference.host_pages_written)?;
        same("erase counts", &device.block_erase_counts(), &&reference.erase_counts[..])?;
        self.compare_reports()?;
        if live_pages == u64::from(self.reference.layout.logical_pages) {
            self.coverage.add("full drive", 1);
        }
        Ok(())
    }

    /// Compares the device's reports about handles.
    fn compare_reports(&self) -> Result<(), String> {
        let (device, reference) = (&self.device, &self.reference);
        for row in device.occupancy() {
            let of_owner = |entry: &Option<Unit>| entry.as_ref().is_some_and(|entry| entry.owner == row.owner);
            let slices = 0..reference.layout.slices();
            let units: Vec<u32> = slices.filter(|&slice| of_owner(&reference.units[slice as usize])).collect();
            let sum = |count: &dyn Fn(u32) -> u32| units.iter().map(|&unit| u64::from(count(unit))).sum::<u64>();
            let expected =
                (units.len() as u64, sum(&|unit| reference.unit_pages(unit)), sum(&|unit| reference.valid_pages(unit)));
            let got = (row.units, row.pages, row.valid_pages);
            same(&format!("occupancy of {}", row.owner), &got, &expected)?;
        }
        for group in 0..reference.groups.len() {
            for handle in 0..reference.layout.handles.len() {
                let placement = Placement { group: RgId(group as u16), handle: RuhId(handle as u16) };
                let got = device.available_media_writes(placement);
                let expected = Ok(reference.available_media_writes(group, handle));
                same(&format!("available media writes of {placement:?}"), &got, &expected)?;
            }
        }
        Ok(())
    }

    /// Checks that a page lies in a unit of its handle or, unless the handle is persistently
    /// isolated, of the shared pool.
    fn check_isolation(&self, page: u32) -> Result<(), String> {
        let Some(physical) = self.reference.map[page as usize] else {
            return Ok(());
        };
        let unit = self.device.unit_of(Ppn(physical));
        same("reclaim unit of a page", &unit.0, &self.reference.unit_at(physical))?;
        let handle = self.reference.written_through[page as usize].expect("mapped pages were written");
        let owner = self.device.unit(unit).owner();
        let isolation = self.reference.layout.handles[usize::from(handle)].isolation;
        let may_be_shared = isolation != Isolation::PersistentlyIsolated;
        let in_pool = || self.reference.row_index(owner) == self.reference.pool();
        if owner == UnitOwner(handle) || (may_be_shared && in_pool()) {
            return Ok(());
        }
        Err(format!(
            "logical page {page} was written through RUH {handle} ({isolation:?}) and lies in a unit of {owner}"
        ))
    }

    fn count(&mut self, event: &DeviceEvent) {
        let feature = match event {
            DeviceEvent::Redirect { .. } => "redirect",
            DeviceEvent::Absorb { .. } => "absorbed write",
            DeviceEvent::LevelWear { .. } => "wear levelling",
            DeviceEvent::Deallocate { pages } if *pages > 0 => "deallocation",
            DeviceEvent::Close { reason, .. } => match reason {
                CloseReason::Full => "close: full",
                CloseReason::HostUpdate => "close: handle update",
                CloseReason::RoomNeeded => "close: room needed",
                CloseReason::IsolationChanged => "close: isolation changed",
            },
            DeviceEvent::Open { owner, for_collection, .. } => {
                self.count_open(*owner, *for_collection);
                return;
            }
            DeviceEvent::Reclaim(reclaim) => {
                self.coverage.add("remapped block", u64::from(reclaim.blocks_remapped));
                if reclaim.trigger != Trigger::Forced {
                    self.coverage.add(&format!("reclaim by {}", reclaim.policy), 1);
                    let order = self.reference.config.gc.source_policy;
                    self.coverage.add(&format!("reclaim in order {order:?}"), 1);
                }
                match reclaim.trigger {
                    Trigger::Background => "reclaim: background",
                    Trigger::Foreground => "reclaim: foreground",
                    Trigger::Forced => "reclaim: forced",
                }
            }
            DeviceEvent::HostWrite(_) | DeviceEvent::Deallocate { .. } => return,
        };
        self.coverage.add(feature, 1);
    }

    fn count_open(&mut self, owner: UnitOwner, for_collection: bool) {
        let layout = &self.reference.layout;
        let handle = owner.handle().map(|handle| layout.handles[usize::from(handle.0)]);
        let Some(handle) = handle else { return };
        let size = match handle.reclaim_unit {
            ReclaimUnitSize::Superblock => "superblock",
            ReclaimUnitSize::Fraction(_) => "fraction",
            ReclaimUnitSize::Channel => "channel",
            ReclaimUnitSize::Die => "die",
        };
        self.coverage.add(&format!("open: {size}"), 1);
        if for_collection {
            self.coverage.add(&format!("open for copies: {:?}", handle.isolation), 1);
        }
    }

    /// Counts features that apply to a whole case.
    fn count_configuration(&mut self) {
        let (config, layout) = (&self.reference.config, &self.reference.layout);
        let several = layout.handles.iter().any(|handle| handle.open_reclaim_units > 1);
        let mut fuller = config.clone();
        fuller.geometry.over_provisioning -= 0.001;
        let counted = self.device.stats().total().units_reclaimed > 0;
        let cases = [
            ("case", true),
            ("case with collection", counted),
            ("case with compact maps", counted && self.device.is_compact()),
            ("case at the refusal border", counted && DeviceLayout::new(&fuller).is_err()),
            ("case with forced collection", self.device.stats().forced_collections > 0),
            ("case with eager opening", counted && config.handles.opening == UnitOpenPolicy::Eager),
            ("case with several open units", counted && several),
            ("case with a reserve", counted && layout.reserve_superblocks > 0),
            ("case with copies among host data", counted && config.gc.copies == GcDestination::WithHost),
            ("case with marks of all", counted && config.gc.watermark_base == WatermarkBase::All),
            ("case with separation", counted && layout.separation_pages > 0),
            ("case with absorption", counted && layout.absorption_pages > 0),
            ("case with several groups", counted && layout.groups > 1),
            ("case with overhead", self.reference.overhead_pages > 0),
            ("case with several sizes", counted && layout.classes.len() > 1),
        ];
        for (feature, here) in cases {
            self.coverage.add(feature, u64::from(here));
        }
        self.coverage.add("fully valid parts moved", self.reference.moved_full_parts);
        self.coverage.add("victim not affordable", self.reference.refused_victims);
        self.coverage.add("unit begun by copies", self.reference.begun_by_copies);
        self.coverage.add("commands", self.commands as u64);
        self.coverage.add("host pages", self.reference.host_pages_written);
    }
}

/// Describes a difference.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what}: the device has {got:?}, expected is {expected:?}"))
}
