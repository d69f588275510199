//! The state of a drive according to the standard, which determines every completion.
//!
//! The model follows NVM Express 2.1 and the drive's own reports, and does not call the code under
//! test. A namespace is a vector with the tag of every logical block. A tag stands for the block's
//! bytes ([`content`]). `judge` finds objections to a command, `apply` carries it out, and `pages`
//! checks log pages and Identify.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::operation::{Directive, Kind};
use super::storage::Fault;
use super::wire::u16_at;

/// Status values, with the status code type in bits 10:8 and the status code in bits 7:0.
pub mod status {
    pub const INVALID_OPCODE: u16 = 0x001;
    pub const INVALID_FIELD: u16 = 0x002;
    pub const COMMAND_ID_CONFLICT: u16 = 0x003;
    pub const DATA_TRANSFER_ERROR: u16 = 0x004;
    pub const INTERNAL_ERROR: u16 = 0x006;
    pub const ABORT_REQUESTED: u16 = 0x007;
    pub const ABORTED_SQ_DELETION: u16 = 0x008;
    pub const INVALID_NAMESPACE: u16 = 0x00b;
    pub const SEQUENCE_ERROR: u16 = 0x00c;
    pub const PRP_OFFSET_INVALID: u16 = 0x013;
    pub const SGL_DATA_LENGTH_INVALID: u16 = 0x00f;
    pub const SGL_TYPE_INVALID: u16 = 0x011;
    pub const SANITIZE_FAILED: u16 = 0x01c;
    pub const SANITIZE_IN_PROGRESS: u16 = 0x01d;
    pub const SELF_TEST_IN_PROGRESS: u16 = 0x11d;
    pub const WRITE_PROTECTED: u16 = 0x020;
    pub const FDP_DISABLED: u16 = 0x029;
    pub const INVALID_HANDLE_LIST: u16 = 0x02a;
    pub const LBA_OUT_OF_RANGE: u16 = 0x080;
    pub const COMPLETION_QUEUE_INVALID: u16 = 0x100;
    pub const INVALID_QUEUE_IDENTIFIER: u16 = 0x101;
    pub const INVALID_QUEUE_SIZE: u16 = 0x102;
    pub const EVENT_LIMIT_EXCEEDED: u16 = 0x105;
    pub const INVALID_VECTOR: u16 = 0x108;
    pub const INVALID_LOG_PAGE: u16 = 0x109;
    pub const INVALID_FORMAT: u16 = 0x10a;
    pub const INVALID_QUEUE_DELETION: u16 = 0x10c;
    pub const NOT_SAVEABLE: u16 = 0x10d;
    pub const NOT_NAMESPACE_SPECIFIC: u16 = 0x10f;
    pub const INSUFFICIENT_CAPACITY: u16 = 0x115;
    pub const IDENTIFIER_UNAVAILABLE: u16 = 0x116;
    pub const ALREADY_ATTACHED: u16 = 0x118;
    pub const IS_PRIVATE: u16 = 0x119;
    pub const NOT_ATTACHED: u16 = 0x11a;
    pub const THIN_PROVISIONING: u16 = 0x11b;
    pub const CONTROLLER_LIST_INVALID: u16 = 0x11c;
    pub const ANA_GROUP_INVALID: u16 = 0x124;
    pub const COMMAND_SET_NOT_SUPPORTED: u16 = 0x129;
    pub const CONNECT_BUSY: u16 = 0x181;
    pub const SIZE_LIMIT_EXCEEDED: u16 = 0x183;
    pub const OVERLAPPING_RANGE: u16 = 0x187;
    pub const WRITE_FAULT: u16 = 0x280;
    pub const UNRECOVERED_READ: u16 = 0x281;
    pub const COMPARE_FAILURE: u16 = 0x285;

    /// All status values. Each is expected in some runs.
    pub const ALL: [u16; 44] = [
        INVALID_OPCODE,
        INVALID_FIELD,
        COMMAND_ID_CONFLICT,
        DATA_TRANSFER_ERROR,
        INTERNAL_ERROR,
        ABORT_REQUESTED,
        ABORTED_SQ_DELETION,
        INVALID_NAMESPACE,
        SEQUENCE_ERROR,
        PRP_OFFSET_INVALID,
        SGL_DATA_LENGTH_INVALID,
        SGL_TYPE_INVALID,
        SANITIZE_FAILED,
        SANITIZE_IN_PROGRESS,
        SELF_TEST_IN_PROGRESS,
        WRITE_PROTECTED,
        FDP_DISABLED,
        INVALID_HANDLE_LIST,
        LBA_OUT_OF_RANGE,
        COMPLETION_QUEUE_INVALID,
        INVALID_QUEUE_IDENTIFIER,
        INVALID_QUEUE_SIZE,
        EVENT_LIMIT_EXCEEDED,
        INVALID_VECTOR,
        INVALID_LOG_PAGE,
        INVALID_FORMAT,
        INVALID_QUEUE_DELETION,
        NOT_SAVEABLE,
        NOT_NAMESPACE_SPECIFIC,
        INSUFFICIENT_CAPACITY,
        IDENTIFIER_UNAVAILABLE,
        ALREADY_ATTACHED,
        IS_PRIVATE,
        NOT_ATTACHED,
        THIN_PROVISIONING,
        CONTROLLER_LIST_INVALID,
        ANA_GROUP_INVALID,
        COMMAND_SET_NOT_SUPPORTED,
        CONNECT_BUSY,
        SIZE_LIMIT_EXCEEDED,
        OVERLAPPING_RANGE,
        WRITE_FAULT,
        UNRECOVERED_READ,
        COMPARE_FAILURE,
    ];
}

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

/// Fills a block with the bytes that its tag stands for.
pub fn fill(tag: u64, block: &mut [u8]) {
    if tag == ZEROES {
        block.fill(0);
        return;
    }
    let mut state = tag;
    for word in block.chunks_exact_mut(8) {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
}

/// Data, or metadata, of blocks.
fn content(tags: &[u64], block_bytes: u64) -> Vec<u8> {
    let mut bytes = vec![0; tags.len() * block_bytes as usize];
    for (block, &tag) in bytes.chunks_exact_mut(block_bytes as usize).zip(tags) {
        fill(tag, block);
    }
    bytes
}

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

/// A namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub format: u8,
    /// Metadata follows each block (FLBAS bit 4) instead of using a separate buffer.
    pub extended: bool,
    /// Number of pages of the drive.
    pub pages: u64,
    /// Tags of its logical blocks.
    pub blocks: Vec<u64>,
    pub handles: Vec<u16>,
    pub host_specified: bool,
    /// Attached to all present and future controllers.
    pub everyone: bool,
    pub attached: BTreeSet<u16>,
    /// Controllers that inherited the attachment from another controller of their host.
    pub inherited: BTreeSet<u16>,
    pub shared: bool,
    pub protected: bool,
    /// Event types that each placement handle logs.
    pub events: Vec<BTreeSet<u8>>,
    /// NGUID, once it was seen.
    pub identifier: Option<[u8; 16]>,
}

impl Namespace {
    pub fn block_bytes(&self) -> u64 {
        BLOCK_BYTES[usize::from(self.format)]
    }

    pub fn metadata_bytes(&self) -> u64 {
        METADATA_BYTES[usize::from(self.format)]
    }

    /// True if metadata has a separate buffer.
    pub fn has_separate_metadata(&self) -> bool {
        self.metadata_bytes() > 0 && !self.extended
    }

    /// Bytes that a host transfers for blocks, in the data buffer and in the metadata buffer.
    pub fn transfer_bytes(&self, blocks: u64) -> (u64, u64) {
        let (data, metadata) = (blocks * self.block_bytes(), blocks * self.metadata_bytes());
        if self.extended {
            (data + metadata, 0)
        } else {
            (data, metadata)
        }
    }

    /// Bytes of data and metadata together.
    pub fn total_bytes(&self, blocks: u64) -> u64 {
        blocks * (self.block_bytes() + self.metadata_bytes())
    }

    /// Bytes of blocks in the host's form. The metadata follows each block, or all data precedes
    /// all metadata.
    pub fn content(&self, tags: &[u64]) -> Vec<u8> {
        let data = content(tags, self.block_bytes());
        if self.metadata_bytes() == 0 {
            return data;
        }
        let of_metadata = |&tag: &u64| if tag == ZEROES { ZEROES } else { !tag };
        let tags: Vec<u64> = tags.iter().map(of_metadata).collect();
        let metadata = content(&tags, self.metadata_bytes());
        if !self.extended {
            return [data, metadata].concat();
        }
        let mut together = Vec::with_capacity(data.len() + metadata.len());
        let blocks = data.chunks_exact(self.block_bytes() as usize);
        for (data, metadata) in blocks.zip(metadata.chunks_exact(self.metadata_bytes() as usize)) {
            together.extend_from_slice(data);
            together.extend_from_slice(metadata);
        }
        together
    }

    pub fn is_attached(&self, controller: u16) -> bool {
        self.everyone || self.attached.contains(&controller)
    }
}

/// An asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    pub kind: u8,
    pub information: u8,
    pub log: u8,
}

impl AsyncEvent {
    pub const NAMESPACE_CHANGED: AsyncEvent = AsyncEvent::new(2, 0, 0x04);
    pub const GROUP_CHANGED: AsyncEvent = AsyncEvent::new(2, 6, 0x0f);
    pub const SANITIZED: AsyncEvent = AsyncEvent::new(6, 1, 0x81);
    pub const SANITIZED_DEALLOCATED: AsyncEvent = AsyncEvent::new(6, 2, 0x81);
    pub const TEMPERATURE: AsyncEvent = AsyncEvent::new(1, 1, 0x02);
    pub const RELIABILITY: AsyncEvent = AsyncEvent::new(1, 0, 0x02);
    pub const DOORBELL_REGISTER: AsyncEvent = AsyncEvent::new(0, 0, 0x01);
    pub const DOORBELL_VALUE: AsyncEvent = AsyncEvent::new(0, 1, 0x01);

    const fn new(kind: u8, information: u8, log: u8) -> AsyncEvent {
        AsyncEvent { kind, information, log }
    }

    /// Dword 0 of the completion.
    pub fn result(self) -> u64 {
        u64::from(self.kind) | u64::from(self.information) << 8 | u64::from(self.log) << 16
    }
}

/// A completion, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub cid: u16,
    pub status: u16,
    pub do_not_retry: bool,
    pub result: u64,
}

/// An entry of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    pub count: u64,
    pub queue: u16,
    pub cid: u16,
    pub status: u16,
    pub do_not_retry: bool,
    pub nsid: u32,
    pub opcode: u8,
}

/// A controller and its host.
#[derive(Clone, Debug)]
pub struct Controller {
    pub kind: Kind,
    pub host: [u8; 16],
    pub ready: bool,
    pub keep_alive_ms: u32,
    pub heard_ns: u64,
    /// Current values of features of the controller, by feature and instance.
    pub features: BTreeMap<(u8, u32), u32>,
    pub host_behavior: Vec<u8>,
    /// Outstanding Asynchronous Event Requests.
    pub requests: VecDeque<u16>,
    pub waiting: VecDeque<AsyncEvent>,
    pub masked: Vec<AsyncEvent>,
    /// Completions that the drive must deliver without a command.
    pub owed: VecDeque<Completion>,
    pub changed_namespaces: BTreeSet<u32>,
    pub announced: u8,
    pub group_announced: u8,
    pub group_event: bool,
    /// Newest first.
    pub errors: VecDeque<Error>,
}

impl Controller {
    pub fn is_io(&self) -> bool {
        self.kind != Kind::Discovery
    }

    /// An event happens.
    pub fn raise(&mut self, event: AsyncEvent) {
        if !self.waiting.contains(&event) {
            self.waiting.push_back(event);
        }
        self.deliver();
    }

    /// Completes requests with events whose type is not masked.
    pub fn deliver(&mut self) {
        while !self.requests.is_empty() {
            let Some(event) = self.take_event() else { return };
            let cid = self.requests.pop_front().expect("not empty");
            self.owed.push_back(Completion {
                cid,
                status: 0,
                do_not_retry: false,
                result: event.result(),
            });
        }
    }

    /// Takes the oldest event with an unmasked type, and masks the type.
    pub fn take_event(&mut self) -> Option<AsyncEvent> {
        let masked = |event: &AsyncEvent| self.masked.iter().any(|reported| reported.kind == event.kind);
        let index = self.waiting.iter().position(|event| !masked(event))?;
        let event = self.waiting.remove(index)?;
        self.masked.push(event);
        Some(event)
    }

    /// The host reads a log page with RAE = 0.
    pub fn read_log(&mut self, log: u8) {
        self.waiting.retain(|event| event.log != log);
        self.masked.retain(|event| event.log != log);
        match log {
            0x04 => self.changed_namespaces.clear(),
            0x09 => self.group_event = false,
            _ => {}
        }
        self.deliver();
    }
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
            None => Configuration {
                groups: 1,
                group_bits: 0,
                ..self.drive.configurations[0].clone()
            },
        }
    }

    pub fn pages_free(&self) -> u64 {
        self.drive.pages - self.namespaces.values().map(|namespace| namespace.pages).sum::<u64>()
    }

    /// A namespace that a controller may use.
    pub fn active(&self, controller: u16, nsid: u32) -> Option<&Namespace> {
        self.namespaces
            .get(&nsid)
            .filter(|namespace| namespace.is_attached(controller))
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
        let enabled = self.namespaces[&nsid]
            .events
            .get(index)
            .is_some_and(|events| events.contains(&kind));
        if !enabled {
            return;
        }
        let timestamp = self.timestamp();
        if self.host_events.len() == EVENTS_MAX {
            self.host_events.pop_front();
        }
        self.host_events_total += 1;
        self.host_events.push_back(HostEvent {
            kind,
            pid,
            nsid,
            location,
            timestamp,
        });
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
        self.controllers
            .keys()
            .copied()
            .filter(|&id| namespace.is_attached(id))
            .collect()
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
        current
            .copied()
            .unwrap_or_else(|| self.default_value(feature, instance))
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

    /// Feature values of a controller after creation or reset.
    pub fn initial_features(&self) -> BTreeMap<(u8, u32), u32> {
        let of_controller = |feature: u8| matches!(feature, 0x01 | 0x02 | 0x04 | 0x06 | 0x08 | 0x09 | 0x0a | 0x0b);
        let saved = self
            .saved_features
            .iter()
            .filter(|((feature, _), _)| of_controller(*feature));
        saved.map(|(&key, &value)| (key, value)).collect()
    }

    /// A host connects.
    pub fn connect(&mut self, id: u16, kind: Kind, host: [u8; 16]) {
        let controller = Controller {
            kind,
            host,
            ready: false,
            keep_alive_ms: 0,
            heard_ns: self.now,
            features: self.initial_features(),
            host_behavior: vec![0; 512],
            requests: VecDeque::new(),
            waiting: VecDeque::new(),
            masked: Vec::new(),
            owed: VecDeque::new(),
            changed_namespaces: BTreeSet::new(),
            announced: 0,
            group_announced: 0,
            group_event: false,
            errors: VecDeque::new(),
        };
        self.controllers.insert(id, controller);
    }

    /// First other controller of the same host on Fabrics.
    fn peer(&self, id: u16) -> Option<u16> {
        let its = &self.controllers[&id];
        let mut all = self.controllers.iter();
        let found = all.find(|(other, peer)| **other != id && peer.kind == Kind::Fabrics && peer.host == its.host);
        found.filter(|_| its.kind == Kind::Fabrics).map(|(peer, _)| *peer)
    }

    /// The host of a new controller has authenticated.
    pub fn establish(&mut self, id: u16) {
        let its = &self.controllers[&id];
        let holder = (its.kind, its.host);
        if holder.0 == Kind::Discovery {
            return;
        }
        let had = |other: &u16| self.holders.get(other) == Some(&holder) && !self.controllers.contains_key(other);
        for namespace in self.namespaces.values_mut() {
            if holder.0 == Kind::Fabrics && !namespace.shared && namespace.attached.iter().any(had) {
                namespace.attached = [id].into();
            }
        }
        self.holders.insert(id, holder);
        self.attach_as_peer(id);
    }

    /// A new controller begins with the shared namespaces of its host.
    fn attach_as_peer(&mut self, id: u16) {
        let Some(peer) = self.peer(id) else {
            return;
        };
        for namespace in self.namespaces.values_mut() {
            if namespace.shared && namespace.attached.contains(&peer) && namespace.attached.insert(id) {
                namespace.inherited.insert(id);
            }
        }
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

    /// Handles a lost connection. Private namespaces of its controller move to another controller
    /// of the host.
    pub fn disconnect(&mut self, id: u16) {
        if let Some(peer) = self.peer(id) {
            let mut moved = Vec::new();
            for (&nsid, namespace) in &mut self.namespaces {
                if !namespace.shared && namespace.attached.remove(&id) {
                    namespace.attached.insert(peer);
                    moved.push(nsid);
                }
            }
            for nsid in moved {
                self.note_changed(nsid, &[peer]);
            }
        }
        for namespace in self.namespaces.values_mut() {
            if namespace.inherited.remove(&id) {
                namespace.attached.remove(&id);
            }
        }
        self.controllers.remove(&id);
        self.end_test(2, |test| test.controller == id && test.code == 1);
    }

    /// Controller Level Reset.
    pub fn reset(&mut self, id: u16) {
        self.end_test(2, |test| test.controller == id && test.code == 1);
        let features = self.initial_features();
        let before = self.controllers.remove(&id).expect("a controller that is there");
        // On Fabrics the Connect command sets the host identifier. On PCI Express a reset clears
        // it.
        let host = if before.kind == Kind::Pcie {
            [0; 16]
        } else {
            before.host
        };
        self.connect(id, before.kind, host);
        let controller = self.controllers.get_mut(&id).expect("just put in");
        controller.features = features;
        controller.heard_ns = before.heard_ns;
        controller.errors = before.errors;
    }

    /// Adds a failed command to the error log.
    pub fn note_failure(&mut self, controller: u16, error: Error) {
        self.counters.errors += 1;
        let errors = &mut self
            .controllers
            .get_mut(&controller)
            .expect("it sent the command")
            .errors;
        errors.push_front(Error {
            count: self.counters.errors,
            ..error
        });
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
        let expired: Vec<(u16, u16)> = self
            .units
            .iter()
            .filter(|(_, unit)| expired(unit))
            .map(|(&placement, _)| placement)
            .collect();
        for placement in expired {
            let index_in = |namespace: &Namespace| namespace.handles.iter().position(|&handle| handle == placement.1);
            let user = self
                .namespaces
                .iter()
                .find_map(|(&nsid, namespace)| Some((nsid, index_in(namespace)?)));
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
