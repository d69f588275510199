//! The state of a drive according to the standard, which determines every completion.
//!
//! The model follows NVM Express 2.1 and the drive's own reports, and does not call the code under
//! test. A namespace is a vector with the tag of every logical block. A tag stands for the block's
//! bytes (`content` in `namespace`). `judge` finds objections to a command, `apply` carries it out,
//! and `pages` checks log pages and Identify.

mod controllers;
mod namespace;
pub mod status;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::operation::{Directive, Kind};
use super::storage::Fault;
use super::wire::u16_at;

pub use controllers::{AsyncEvent, Completion, Controller, Error};
pub use namespace::Namespace;

/// Broadcast namespace identifier.
pub const ALL: u32 = u32::MAX;

/// Namespace identifiers that the drive can have (Identify Controller, NN).
pub const NN: u32 = 32;

/// Largest data transfer of a command (MDTS 8), 1 MiB.
pub const TRANSFER_MAX: u64 = 1 << 20;

/// Bytes of a logical block, by format.
pub const BLOCK_BYTES: [u64; 4] = [4096, 512, 4096, 512];

/// Bytes of metadata of a logical block, by format.
pub const METADATA_BYTES: [u64; 4] = [0, 0, 64, 8];

/// Tag of a block that reads as zeroes.
pub const ZEROES: u64 = 0;

/// Tag of a block that Write Uncorrectable made unreadable.
pub const UNREADABLE: u64 = u64::MAX;

/// FDP event types that the drive logs.
pub const EVENT_TYPES: [u8; 6] = [0x00, 0x01, 0x02, 0x03, 0x80, 0x81];

/// Events of an FDP event log.
pub const EVENTS_MAX: usize = 63;

/// Entries of the error log.
pub const ERRORS_MAX: usize = 64;

/// Unit of the timer of the latency monitor.
pub const FIVE_MINUTES_NS: u64 = 300_000_000_000;

/// Factory defaults of feature C5h.
pub const LATENCY_DEFAULTS: [u8; 13] = [0xe0, 7, 5, 0x13, 0x1e, 0x2e, 0xff, 0x0f, 10, 0, 0, 0, 1];

/// Properties that the drive reports.
#[derive(Clone, Debug)]
pub struct Drive {
    pub page_bytes: u64,
    pub pages: u64,
    /// FDP configurations (log page 20h).
    pub configurations: Vec<Configuration>,
    /// All reclaim units are alike and each handle has one open, so the model can predict RUAMW.
    pub exact_units: bool,
    /// The drive has a volatile write cache.
    pub cached: bool,
    pub time_limit_s: u32,
    pub controllers_max: u16,
    pub io_queues_max: u16,
    pub initial_fdp: bool,
    pub temperature_k: u16,
}

/// An FDP configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub groups: u16,
    pub handles: u16,
    pub unit_bytes: u64,
    pub group_bits: u32,
    pub types: Vec<u8>,
}

/// The reclaim unit that a handle writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    pub written_pages: u64,
    /// Start of its time limit, the first write.
    pub since_ns: Option<u64>,
}

/// An event of the FDP host event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEvent {
    pub kind: u8,
    pub pid: u16,
    pub nsid: u32,
    /// Group and handle. Unknown for an invalid identifier.
    pub location: Option<(u16, u16)>,
    /// The 8 bytes of the timestamp.
    pub timestamp: u64,
}

/// The last sanitize operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitize {
    Never,
    Running { dword10: u32 },
    Succeeded { dword10: u32 },
    Failed { dword10: u32, exited: bool },
}

/// Counters of the SMART log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub read_commands: u64,
    pub write_commands: u64,
    /// Write commands that did not start and end at mapping unit boundaries.
    pub unaligned_writes: u64,
    pub media_errors: u64,
    pub errors: u64,
    /// HBMW of log page 22h.
    pub host_bytes_with_metadata: u64,
}

/// Result of a self-test whose time ended when its controller was reset.
pub const COMPLETED_OR_RESET: u8 = 0x20;

/// A device self-test.
#[derive(Clone, Copy, Debug)]
pub struct RunningTest {
    pub code: u8,
    pub nsid: u32,
    pub controller: u16,
    pub since: u64,
}

impl RunningTest {
    /// Duration of the test.
    pub fn duration(&self) -> u64 {
        match self.code {
            1 => 2_000_000_000,
            _ => 10_000_000_000,
        }
    }
}

/// The whole subsystem.
#[derive(Clone, Debug)]
pub struct Model {
    pub drive: Drive,
    pub now: u64,
    /// Index of the FDP configuration, or `None` if disabled.
    pub fdp: Option<u8>,
    pub namespaces: BTreeMap<u32, Namespace>,
    pub controllers: BTreeMap<u16, Controller>,
    /// Last host of each controller.
    pub holders: BTreeMap<u16, (Kind, [u8; 16])>,
    /// Current values of features with a wider scope than a controller, by feature and namespace.
    pub shared_features: BTreeMap<(u8, u32), u32>,
    pub saved_features: BTreeMap<(u8, u32), u32>,
    pub units: BTreeMap<(u16, u16), Unit>,
    /// The reclaim group that takes the next write without placement identifier.
    pub next_group: u16,
    pub host_events: VecDeque<HostEvent>,
    /// Host events since the log began.
    pub host_events_total: u64,
    pub sanitize: Sanitize,
    /// User data was written since the last sanitize operation, certainly or possibly.
    pub written_since: bool,
    pub perhaps_written_since: bool,
    /// Self-tests with code, result and namespace, newest first. A lost connection does not advance
    /// the drive's time, so a result can be either one ([`COMPLETED_OR_RESET`]).
    pub self_tests: VecDeque<(u8, u8, u32)>,
    /// Running self-test, unless its time is over.
    pub running_test: Option<RunningTest>,
    pub counters: Counters,
    /// Timestamp feature, as the milliseconds at `now` = 0 and a flag for a host's setting.
    pub clock: (u64, bool),
    /// Last setting of feature C5h, end of the time that its monitor has counted, and the counted
    /// time.
    pub latency: [u8; 13],
    pub latency_counted: u64,
    pub latency_ns: u64,
    /// The storage fails once.
    pub fault: Option<Fault>,
    pub next_tag: u64,
    /// NGUIDs seen.
    pub identifiers: BTreeSet<[u8; 16]>,
    /// Media bytes written and erased, when last seen.
    pub media_bytes: (u128, u128),
}

impl Model {
    /// A new drive.
    pub fn new(drive: Drive) -> Model {
        let fdp = drive.initial_fdp.then_some(0);
        Model {
            drive,
            now: 0,
            fdp,
            namespaces: BTreeMap::new(),
            controllers: BTreeMap::new(),
            holders: BTreeMap::new(),
            shared_features: BTreeMap::new(),
            saved_features: BTreeMap::new(),
            units: BTreeMap::new(),
            next_group: 0,
            host_events: VecDeque::new(),
            host_events_total: 0,
            sanitize: Sanitize::Never,
            written_since: false,
            perhaps_written_since: false,
            self_tests: VecDeque::new(),
            running_test: None,
            counters: Counters::default(),
            clock: (0, false),
            latency: LATENCY_DEFAULTS,
            latency_counted: 0,
            latency_ns: 0,
            fault: None,
            next_tag: 1,
            identifiers: BTreeSet::new(),
            media_bytes: (0, 0),
        }
    }

    /// Current configuration. Without Flexible Data Placement it has one group and one relevant
    /// handle.
    pub fn configuration(&self) -> Configuration {
        match self.fdp {
            Some(index) => self.drive.configurations[usize::from(index)].clone(),
            None => Configuration { groups: 1, group_bits: 0, ..self.drive.configurations[0].clone() },
        }
    }

    pub fn pages_free(&self) -> u64 {
        self.drive.pages - self.namespaces.values().map(|namespace| namespace.pages).sum::<u64>()
    }

    /// A namespace that a controller may use.
    pub fn active(&self, controller: u16, nsid: u32) -> Option<&Namespace> {
        self.namespaces.get(&nsid).filter(|namespace| namespace.is_attached(controller))
    }

    /// The reclaim group and handle of a placement identifier of a namespace.
    pub fn placement(&self, nsid: u32, pid: u16) -> Option<(u16, u16)> {
        let configuration = self.configuration();
        let handle_bits = 16 - configuration.group_bits;
        let group = u32::from(pid) >> handle_bits;
        let index = u32::from(pid) & ((1 << handle_bits) - 1);
        let handle = *self.namespaces[&nsid].handles.get(index as usize)?;
        (group < u32::from(configuration.groups)).then_some((group as u16, handle))
    }

    /// The placement identifier of a group and a placement handle.
    pub fn identifier(&self, group: u16, index: usize) -> u16 {
        let handle_bits = 16 - self.configuration().group_bits;
        (u32::from(group) << handle_bits) as u16 | index as u16
    }

    /// The 8 bytes of the timestamp, now.
    pub fn timestamp(&self) -> u64 {
        let (start_ms, set) = self.clock;
        let ms = start_ms.wrapping_add(self.now / 1_000_000) & ((1 << 48) - 1);
        ms | u64::from(set) << 49
    }

    /// Adds an event to the host event log, if the placement handle of the namespace has the type
    /// enabled.
    pub fn log_event(&mut self, kind: u8, nsid: u32, index: usize, pid: u16, location: Option<(u16, u16)>) {
        let enabled = self.namespaces[&nsid].events.get(index).is_some_and(|events| events.contains(&kind));
        if !enabled {
            return;
        }
        let timestamp = self.timestamp();
        if self.host_events.len() == EVENTS_MAX {
            self.host_events.pop_front();
        }
        self.host_events_total += 1;
        self.host_events.push_back(HostEvent { kind, pid, nsid, location, timestamp });
    }

    /// Chooses the placement of a write. An unknown identifier adds an event.
    pub fn choose_placement(&mut self, nsid: u32, directive: Directive) -> (u16, u16) {
        if directive.kind == 2 {
            if let Some(placement) = self.placement(nsid, directive.specific) {
                return placement;
            }
            self.log_event(3, nsid, 0, directive.specific, None);
        }
        let groups = self.configuration().groups;
        let group = self.next_group;
        self.next_group = (group + 1) % groups;
        (group, self.namespaces[&nsid].handles[0])
    }

    /// Pages of a reclaim unit.
    pub fn unit_pages(&self) -> u64 {
        self.configuration().unit_bytes / self.drive.page_bytes
    }

    /// Pages are appended to the reclaim unit of a handle.
    pub fn append(&mut self, placement: (u16, u16), pages: u64) {
        let unit_pages = self.unit_pages();
        let now = self.now;
        let unit = self.units.entry(placement).or_default();
        let mut left = pages;
        while left > 0 {
            unit.since_ns.get_or_insert(now);
            let take = left.min(unit_pages - unit.written_pages);
            unit.written_pages += take;
            if unit.written_pages == unit_pages {
                *unit = Unit::default();
            }
            left -= take;
        }
    }

    /// RUAMW of a handle, in pages.
    pub fn available_pages(&self, placement: (u16, u16)) -> u64 {
        self.unit_pages() - self.units.get(&placement).map_or(0, |unit| unit.written_pages)
    }

    /// Moves a handle to another reclaim unit. Returns true if the previous one was partly written.
    pub fn leave_unit(&mut self, placement: (u16, u16)) -> bool {
        self.units.remove(&placement).is_some_and(|unit| unit.written_pages > 0)
    }

    /// A controller's view of a namespace changes.
    pub fn note_changed(&mut self, nsid: u32, controllers: &[u16]) {
        for id in controllers {
            if let Some(controller) = self.controllers.get_mut(id).filter(|controller| controller.is_io()) {
                controller.changed_namespaces.insert(nsid);
                if self_notices(&controller.features) {
                    controller.raise(AsyncEvent::NAMESPACE_CHANGED);
                }
            }
        }
    }

    /// Controllers that a namespace is attached to and that are there.
    pub fn viewers(&self, nsid: u32) -> Vec<u16> {
        let namespace = &self.namespaces[&nsid];
        self.controllers.keys().copied().filter(|&id| namespace.is_attached(id)).collect()
    }

    /// Critical warnings of a controller, as in SMART.
    pub fn warnings(&self, id: u16) -> u8 {
        let features = &self.controllers[&id].features;
        let over = features.get(&(4, 0)).copied().unwrap_or(self.default_value(4, 0)) & 0xffff;
        let under = features.get(&(4, 1)).copied().unwrap_or(0) & 0xffff;
        let temperature = u32::from(self.drive.temperature_k);
        let thermal = temperature >= over || temperature <= under;
        u8::from(thermal) << 1 | u8::from(self.counters.media_errors > 0) << 2
    }

    /// Reports new warnings to the controllers.
    pub fn note_health(&mut self) {
        let group_enabled = (self.shared_value(0x18, 0) >> 16) as u8;
        let group = (u8::from(self.counters.media_errors > 0) << 2) & group_enabled;
        let ids: Vec<u16> = self.controllers.keys().copied().collect();
        for id in ids {
            let warnings = self.warnings(id);
            let controller = self.controllers.get_mut(&id).expect("listed");
            let configuration = controller.features.get(&(0x0b, 0)).copied().unwrap_or(0);
            let wanted = warnings & configuration as u8;
            let new = wanted & !controller.announced;
            controller.announced = wanted;
            if new & 2 != 0 {
                controller.raise(AsyncEvent::TEMPERATURE);
            }
            if new & 4 != 0 {
                controller.raise(AsyncEvent::RELIABILITY);
            }
            let group_new = group & !controller.group_announced;
            controller.group_announced = group;
            if group_new != 0 {
                controller.group_event = true;
                if configuration >> 14 & 1 == 1 {
                    controller.raise(AsyncEvent::GROUP_CHANGED);
                }
            }
        }
    }

    /// Advances the time of the latency monitor's buckets.
    fn count_latency_time(&mut self) {
        if self.latency[12] == 1 {
            self.latency_ns += self.now.saturating_sub(self.latency_counted);
        }
        self.latency_counted = self.now;
        let threshold_ns = u64::from(u16_at(&self.latency, 0)) * FIVE_MINUTES_NS;
        if threshold_ns > 0 && self.latency_ns >= threshold_ns {
            self.latency_ns = 0;
        }
    }

    /// Current value of a feature of wider scope than a controller.
    pub fn shared_value(&self, feature: u8, instance: u32) -> u32 {
        let key = (feature, instance);
        let current = self.shared_features.get(&key).or_else(|| self.saved_features.get(&key));
        current.copied().unwrap_or_else(|| self.default_value(feature, instance))
    }

    /// Default value of a feature.
    pub fn default_value(&self, feature: u8, instance: u32) -> u32 {
        let queues = u32::from(self.drive.io_queues_max) - 1;
        match (feature, instance) {
            // 70 degrees Celsius over, none under (Threshold Type Select 1).
            (0x04, 0) => 343,
            (0x04, _) => 1 << 20,
            (0x06, _) => 1,
            (0x07, _) => queues << 16 | queues,
            (0x09, vector) => vector,
            (0x18, _) => 1,
            _ => 0,
        }
    }

    /// True if written data may stay in the volatile write cache. The cache exists, and no host has
    /// disabled it.
    pub fn cache_is_on(&self) -> bool {
        let off = |controller: &Controller| controller.features.get(&(6, 0)) == Some(&0);
        self.drive.cached && !self.controllers.values().any(off)
    }

    /// True if a self-test is running.
    pub fn is_testing(&self) -> bool {
        let test = self.running_test;
        test.is_some_and(|test| self.now - test.since < test.duration())
    }

    /// Ends a self-test, with success if its time ended first.
    pub fn end_test(&mut self, result: u8, is_meant: impl FnOnce(&RunningTest) -> bool) {
        let is_over = !self.is_testing();
        let Some(test) = self.running_test else { return };
        let is_meant = is_meant(&test);
        if is_over || is_meant {
            self.running_test = None;
            let result = match (is_over, is_meant && result == 2) {
                (true, true) => COMPLETED_OR_RESET,
                (true, false) => 0,
                (false, _) => result,
            };
            self.self_tests.push_front((test.code, result, test.nsid));
            self.self_tests.truncate(20);
        }
    }

    /// Adds a failed command to the error log.
    pub fn note_failure(&mut self, controller: u16, error: Error) {
        self.counters.errors += 1;
        let errors = &mut self.controllers.get_mut(&controller).expect("it sent the command").errors;
        errors.push_front(Error { count: self.counters.errors, ..error });
        errors.truncate(ERRORS_MAX);
        self.note_health();
    }

    /// Background work and time limits. Returns the controllers whose keep alive time is over.
    pub fn tick(&mut self) -> Vec<u16> {
        self.count_latency_time();
        self.sanitize_step();
        self.expire_units();
        let now = self.now;
        let expired = |controller: &Controller| {
            let timeout_ns = u64::from(controller.keep_alive_ms) * 1_000_000;
            timeout_ns > 0 && now - controller.heard_ns > timeout_ns
        };
        let ids = self.controllers.iter().filter(|(_, controller)| expired(controller));
        ids.map(|(&id, _)| id).collect()
    }

    /// A small drive is sanitized in one step.
    fn sanitize_step(&mut self) {
        let Sanitize::Running { dword10 } = self.sanitize else {
            return;
        };
        let failed = self.fault.take_if(|fault| matches!(fault, Fault::Discard)).is_some();
        self.sanitize = match failed {
            true => Sanitize::Failed { dword10, exited: false },
            false => Sanitize::Succeeded { dword10 },
        };
        let mut event = AsyncEvent::SANITIZED;
        if failed {
            self.counters.media_errors += 1;
        } else {
            (self.written_since, self.perhaps_written_since) = (false, false);
            for namespace in self.namespaces.values_mut() {
                namespace.blocks.fill(ZEROES);
            }
            if dword10 >> 9 & 1 == 1 {
                event = AsyncEvent::SANITIZED_DEALLOCATED;
            }
        }
        for controller in self.controllers.values_mut().filter(|controller| controller.is_io()) {
            controller.raise(event);
        }
    }

    fn expire_units(&mut self) {
        let limit_ns = u64::from(self.drive.time_limit_s) * 1_000_000_000;
        if limit_ns == 0 {
            return;
        }
        let now = self.now;
        let expired = |unit: &Unit| unit.since_ns.is_some_and(|since| now - since >= limit_ns);
        let expired: Vec<(u16, u16)> =
            self.units.iter().filter(|(_, unit)| expired(unit)).map(|(&placement, _)| placement).collect();
        for placement in expired {
            let index_in = |namespace: &Namespace| namespace.handles.iter().position(|&handle| handle == placement.1);
            let user = self.namespaces.iter().find_map(|(&nsid, namespace)| Some((nsid, index_in(namespace)?)));
            let Some((nsid, index)) = user else {
                // No namespace has a host to notify. The time limit starts again with the next
                // write.
                self.units.get_mut(&placement).expect("listed").since_ns = None;
                continue;
            };
            self.leave_unit(placement);
            let pid = self.identifier(placement.0, index);
            self.log_event(1, nsid, index, pid, Some(placement));
        }
    }
}

fn self_notices(features: &BTreeMap<(u8, u32), u32>) -> bool {
    features.get(&(0x0b, 0)).copied().unwrap_or(0) >> 8 & 1 == 1
}
