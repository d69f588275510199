//! Helpers of the behavior tests, which are a small drive on in-memory storage, a host that
//! connects to it, and commands in one call. It checks no expectations.

#![allow(dead_code)] // Every test binary uses its own part.

pub mod commands;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nvme::{
    ControllerKind, FlushHandle, HostIdentity, HostTransport, Identity, Media, MediaError, NonVolatileState,
    PendingReply, PropertyEffect, Reply, Subsystem, SubsystemConfig, Transfer, TransferDirection,
};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register::{CC_CSS_ALL, Cc, Property};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use ssd::config::{DeviceConfig, Geometry, HandlesConfig, Isolation};
use ssd::{Device, Nanos};

pub const MIB: u64 = 1 << 20;
/// Logical capacity of [`device`] in bytes.
pub const CAPACITY_BYTES: u64 = 64 * MIB;
/// Bytes of a reclaim unit of [`device`].
pub const RECLAIM_UNIT_BYTES: u64 = MIB;
/// Bytes of a page of [`device`].
pub const PAGE_BYTES: u64 = 4096;

/// A drive of 64 MiB with reclaim units of 1 MiB (4 dies), four initially isolated handles and one
/// reclaim group.
pub fn device() -> DeviceConfig {
    DeviceConfig {
        geometry: Geometry {
            capacity_bytes: Some(CAPACITY_BYTES),
            over_provisioning: 0.5,
            reclaim_unit_bytes: RECLAIM_UNIT_BYTES,
            mapping_unit_bytes: PAGE_BYTES,
            channels: 2,
            dies_per_channel: 2,
            ..Geometry::default()
        },
        handles: HandlesConfig { count: 4, isolation: Isolation::InitiallyIsolated, ..HandlesConfig::default() },
        seed: 1,
        ..DeviceConfig::default()
    }
}

/// Configuration with Flexible Data Placement and without a namespace.
pub fn config() -> SubsystemConfig {
    SubsystemConfig {
        identity: Identity {
            serial: "WARP0001".to_string(),
            model: "WARP test drive".to_string(),
            firmware: "1.0".to_string(),
            nqn: "nqn.2014-08.org.nvmexpress:uuid:7b1d6a44-3c2b-4b57-8d4e-0d1f5f0c2a11".to_string(),
        },
        device: device(),
        fdp: true,
        namespace: false,
        format: 0,
        reclaim_unit_time_limit_s: 0,
        controllers_max: 4,
        io_queues_max: 4,
    }
}

/// In-memory storage with test observations and injected failures.
#[derive(Default)]
pub struct Memory {
    pub bytes: Mutex<Vec<u8>>,
    /// Last stored state.
    pub kept: Mutex<Option<Vec<u8>>>,
    /// Number of stored states.
    pub keeps: AtomicU64,
    /// Every call fails.
    pub broken: AtomicBool,
    /// Only keeping the state fails.
    pub forgetful: AtomicBool,
    /// Number of syncs.
    pub syncs: AtomicU64,
    /// Prefetched ranges, each with offset and bytes.
    pub prefetched: Mutex<Vec<(u64, u64)>>,
}

impl Memory {
    fn check(&self, action: &'static str, offset: u64, bytes: u64) -> Result<(), MediaError> {
        let forgets = action == "keeping" && self.forgetful.load(Ordering::Relaxed);
        if forgets || self.broken.load(Ordering::Relaxed) {
            return Err(MediaError { action, offset, bytes, source: std::io::Error::other("broken by the test") });
        }
        Ok(())
    }

    /// True if the storage has only zeroes.
    pub fn is_zero(&self) -> bool {
        self.bytes.lock().unwrap().iter().all(|&byte| byte == 0)
    }

    /// Last stored state.
    pub fn state(&self) -> NonVolatileState {
        NonVolatileState::from_bytes(self.kept.lock().unwrap().as_deref().expect("a state was kept")).unwrap()
    }
}

/// The subsystem's end of a [`Memory`].
struct MemoryMedia {
    memory: Arc<Memory>,
    cached: bool,
}

impl Media for MemoryMedia {
    fn prefetch(&self, offset: u64, bytes: u64) {
        self.memory.prefetched.lock().unwrap().push((offset, bytes));
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        self.memory.check("reading", offset, data.len() as u64)?;
        let bytes = self.memory.bytes.lock().unwrap();
        data.copy_from_slice(&bytes[offset as usize..][..data.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        self.memory.check("writing", offset, data.len() as u64)?;
        let mut bytes = self.memory.bytes.lock().unwrap();
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.memory.check("discarding", offset, bytes)?;
        self.memory.bytes.lock().unwrap()[offset as usize..][..bytes as usize].fill(0);
        Ok(())
    }

    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError> {
        self.memory.check("keeping", 0, state.len() as u64)?;
        *self.memory.kept.lock().unwrap() = Some(state.to_vec());
        self.memory.keeps.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        self.cached.then(|| Arc::new(Sync(self.memory.clone())) as Arc<dyn FlushHandle>)
    }
}

struct Sync(Arc<Memory>);

impl FlushHandle for Sync {
    fn flush(&self) -> std::io::Result<()> {
        if self.0.broken.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("broken by the test"));
        }
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A command's completion.
#[derive(Debug)]
pub struct CommandResult {
    pub reply: Reply,
    /// Data that the host received.
    pub data: Vec<u8>,
    /// The data had to be made durable first.
    pub synced: bool,
}

/// A drive and its clock.
pub struct Drive {
    pub subsystem: Subsystem,
    pub memory: Arc<Memory>,
    pub now: Nanos,
    cached: bool,
}

impl Drive {
    /// A new drive of [`config`].
    pub fn new() -> Drive {
        Drive::of(config())
    }

    /// A new drive, with a volatile write cache.
    pub fn of(config: SubsystemConfig) -> Drive {
        Drive::on(config, true)
    }

    /// A new drive. `cached` adds a volatile write cache.
    pub fn on(config: SubsystemConfig, cached: bool) -> Drive {
        let memory = Arc::new(Memory::default());
        let layout = ssd::DeviceLayout::new(&config.device).expect("the device works");
        let bytes = nvme::media::bytes_for(u64::from(layout.logical_pages) * layout.page_bytes);
        memory.bytes.lock().unwrap().resize(bytes as usize, 0);
        let media = Box::new(MemoryMedia { memory: memory.clone(), cached });
        Drive { subsystem: Subsystem::new(config, media).expect("the drive works"), memory, now: 0, cached }
    }

    /// The drive after a restart. The storage and the stored state remain, the device starts empty.
    pub fn restart(self) -> Drive {
        let config = self.subsystem.config().clone();
        let state = self.memory.state();
        let device = Device::new(&Subsystem::device_config(&config, &state)).expect("the device works");
        let media = Box::new(MemoryMedia { memory: self.memory.clone(), cached: self.cached });
        Drive {
            subsystem: Subsystem::restore(config, device, media, state).expect("the state fits"),
            memory: self.memory,
            now: 0,
            cached: self.cached,
        }
    }

    /// Connects a host over PCI Express and enables its controller.
    pub fn host(&mut self) -> u16 {
        self.connect(HostTransport::Pcie, ControllerKind::Io)
    }

    /// Connects a host and enables its controller.
    pub fn connect(&mut self, transport: HostTransport, kind: ControllerKind) -> u16 {
        let id =
            self.subsystem.connect(self.now, transport, kind, HostIdentity::default()).expect("room for a controller");
        self.enable(id);
        id
    }

    /// Enables a controller as Linux does.
    pub fn enable(&mut self, id: u16) {
        let cc = Cc::new().with_en(true).with_css(CC_CSS_ALL).with_iosqes(6).with_iocqes(4);
        let effect = self.subsystem.property_set(self.now, id, Property::Cc, u64::from(cc.into_bits()));
        assert_eq!(effect, PropertyEffect::Enabled);
    }

    /// Runs the background work once.
    pub fn tick(&mut self) {
        self.now += 50_000_000;
        let expired = self.subsystem.tick(self.now);
        assert!(expired.is_empty());
    }

    /// Carries out a command like a transport. `None` if it completes later.
    pub fn try_command(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, sent: &[u8]) -> Option<CommandResult> {
        let accepted = match self.subsystem.accept(id, queue, entry) {
            Ok(accepted) => accepted,
            Err(failure) => {
                return Some(CommandResult {
                    reply: self.subsystem.fail(id, queue, entry, failure),
                    data: Vec::new(),
                    synced: false,
                });
            }
        };
        let transfer = accepted.transfer();
        let mut data = Vec::new();
        if transfer.direction == TransferDirection::ToController {
            data.extend_from_slice(sent);
            data.resize(transfer.total_bytes(), 0);
        }
        let outcome = self.subsystem.execute(self.now, accepted, &mut data);
        if let Some(durable) = &outcome.durable {
            durable.flush().expect("the storage works");
        }
        let reply = outcome.reply?;
        match transfer.direction {
            TransferDirection::ToHost if reply.status.is_success() => assert!(data.len() <= transfer.total_bytes()),
            _ => data.clear(),
        }
        Some(CommandResult { reply, data, synced: outcome.durable.is_some() })
    }

    /// Executes an acceptable command with exactly this data, as the subsystem returns it.
    pub fn execute(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, data: &mut Vec<u8>) -> PendingReply {
        let accepted = self.subsystem.accept(id, queue, entry).expect("an acceptable command");
        self.subsystem.execute(self.now, accepted, data)
    }

    /// Data that an acceptable command moves.
    pub fn transfer(&self, id: u16, queue: u16, entry: &SubmissionEntry) -> Transfer {
        let accepted = self.subsystem.accept(id, queue, entry).expect("an acceptable command");
        accepted.transfer()
    }

    /// Carries out a command that completes immediately.
    pub fn command(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, sent: &[u8]) -> CommandResult {
        self.try_command(id, queue, entry, sent).expect("a completion")
    }

    /// Carries out an admin command.
    pub fn admin(&mut self, id: u16, entry: &SubmissionEntry, sent: &[u8]) -> CommandResult {
        self.command(id, 0, entry, sent)
    }

    /// Runs an admin command that must succeed. Returns its result and data.
    #[track_caller]
    pub fn succeeds(&mut self, id: u16, entry: &SubmissionEntry, sent: &[u8]) -> (u64, Vec<u8>) {
        let done = self.admin(id, entry, sent);
        assert!(done.reply.status.is_success(), "{}", done.reply.status);
        (done.reply.result, done.data)
    }

    /// Runs an admin command that must fail with this status. Returns its reply.
    #[track_caller]
    pub fn refuses(&mut self, id: u16, entry: &SubmissionEntry, sent: &[u8], status: Status) -> Reply {
        let done = self.admin(id, entry, sent);
        assert_eq!(done.reply.status, status);
        done.reply
    }

    /// Writes blocks that must be written.
    #[track_caller]
    pub fn write(&mut self, id: u16, nsid: u32, first: u64, data: &[u8]) {
        let block_bytes = self.block_bytes(nsid);
        let entry = io(IoOpcode::Write, nsid, first, data.len() as u64 / block_bytes);
        let reply = self.command(id, 1, &entry, data).reply;
        assert!(reply.status.is_success(), "{}", reply.status);
    }

    /// Reads blocks that must be readable.
    #[track_caller]
    pub fn read(&mut self, id: u16, nsid: u32, first: u64, count: u64) -> Vec<u8> {
        let done = self.command(id, 1, &io(IoOpcode::Read, nsid, first, count), &[]);
        assert!(done.reply.status.is_success(), "{}", done.reply.status);
        done.data
    }

    /// Bytes of a logical block of a namespace.
    pub fn block_bytes(&self, nsid: u32) -> u64 {
        let (_, namespace) = self.subsystem.namespaces().find(|&(its, _)| its == nsid).expect("a namespace");
        namespace.block_bytes()
    }
}

/// An admin command without parameters.
pub fn admin(opcode: AdminOpcode, nsid: u32) -> SubmissionEntry {
    SubmissionEntry { opcode: opcode.code(), nsid: nsid.into(), cid: 7.into(), ..SubmissionEntry::default() }
}

/// An I/O command on a range of logical blocks. `count` is at least 1.
pub fn io(opcode: IoOpcode, nsid: u32, first: u64, count: u64) -> SubmissionEntry {
    SubmissionEntry {
        opcode: opcode.code(),
        nsid: nsid.into(),
        cid: 7.into(),
        cdw10: (first as u32).into(),
        cdw11: ((first >> 32) as u32).into(),
        cdw12: (count as u32 - 1).into(),
        ..SubmissionEntry::default()
    }
}

/// Set Features of Flexible Data Placement (1Dh), saved, as nvme-cli sends it.
pub fn set_fdp(enabled: bool, configuration: u8) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: (1 << 31 | 0x1d).into(),
        cdw11: 1.into(),
        cdw12: (u32::from(configuration) << 8 | u32::from(enabled)).into(),
        ..admin(AdminOpcode::SetFeatures, nvme_spec::NSID_ALL)
    }
}

/// Set Features of a number.
pub fn set_feature(fid: u8, nsid: u32, value: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: u32::from(fid).into(), cdw11: value.into(), ..admin(AdminOpcode::SetFeatures, nsid) }
}

/// Get Log Page of `bytes` bytes from the start.
pub fn get_log(lid: u8, specific: u16, bytes: u32) -> SubmissionEntry {
    let dwords = bytes / 4 - 1;
    SubmissionEntry {
        cdw10: (u32::from(lid) | (dwords & 0xffff) << 16).into(),
        cdw11: (dwords >> 16 | u32::from(specific) << 16).into(),
        ..admin(AdminOpcode::GetLogPage, nvme_spec::NSID_ALL)
    }
}

/// Identify.
pub fn identify(cns: u8, nsid: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: u32::from(cns).into(), ..admin(AdminOpcode::Identify, nsid) }
}
