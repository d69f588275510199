//! Shared parts of the drive tests: a small drive, its files in a temporary folder, and a host that
//! sends commands. The module makes no assertions about the drive's behaviour.

#![allow(dead_code)] // Every test binary uses its own part.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvme::{
    ControllerKind, FlushHandle, HostIdentity, HostTransport, Identity, Media, MediaError, PendingReply,
    SubsystemConfig,
};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register::{Cc, Property};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use ssd::config::{Geometry, HandlesConfig};
use ssd::{DeviceConfig, Lpn};
use target::storage::backend::{MemoryBackend, pattern};
use target::storage::{DataChoice, DriveError, DriveOptions, OpenReport, ServedDrive};
use target::{ServerClock, SharedSubsystem, lock};
use tempfile::TempDir;
use zerocopy::FromZeros;

pub const MIB: u64 = 1 << 20;
/// Logical capacity of [`config`].
pub const CAPACITY_BYTES: u64 = 64 * MIB;
pub const PAGE_BYTES: u64 = 4096;
/// Length of its data file: the data, and a sixty-fourth of it for metadata.
pub const FILE_BYTES: u64 = 65 * MIB;

/// A drive of 64 MiB in reclaim units of 1 MiB with two handles, one namespace and Flexible Data
/// Placement. `format` is 0 for logical blocks of 4 KiB, 1 for 512 bytes.
pub fn config(format: u8) -> SubsystemConfig {
    SubsystemConfig {
        identity: Identity {
            serial: "TEST0001".to_string(),
            model: "WARP test drive".to_string(),
            firmware: "1".to_string(),
            nqn: "nqn.2026-01.io.warp:test".to_string(),
        },
        device: DeviceConfig {
            geometry: Geometry {
                capacity_bytes: Some(CAPACITY_BYTES),
                over_provisioning: 0.25,
                reclaim_unit_bytes: MIB,
                mapping_unit_bytes: PAGE_BYTES,
                channels: 2,
                dies_per_channel: 2,
                ..Geometry::default()
            },
            handles: HandlesConfig { count: 2, ..HandlesConfig::default() },
            seed: 1,
            ..DeviceConfig::default()
        },
        fdp: true,
        namespace: true,
        format,
        reclaim_unit_time_limit_s: 0,
        controllers_max: 4,
        io_queues_max: 4,
    }
}

/// Opens the drive with data in a file.
pub fn open(path: &Path, config: SubsystemConfig) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
    open_with(path, config, false)
}

/// Like [`open`], with checksums if `checksums`. A drive with checksums keeps them.
pub fn open_with(
    path: &Path,
    config: SubsystemConfig,
    checksums: bool,
) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
    let data = DataChoice::File(path.to_path_buf());
    ServedDrive::open(DriveOptions { subsystem: config, data, checksums }, ServerClock::start())
}

pub fn beside(data: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}{extension}", data.display()))
}

pub fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("drive.img");
    (folder, data)
}

/// Writes `pages` pages of a generation from `first` on.
pub fn write_pages(client: &Client, first: u64, pages: u64, generation: u32) {
    let mut data = vec![0; (pages * PAGE_BYTES) as usize];
    pattern::fill(first * PAGE_BYTES, generation, &mut data);
    // The most data that one command may move.
    for (number, part) in (0..).zip(data.chunks(MIB as usize)) {
        let first = first + number * MIB / PAGE_BYTES;
        assert_eq!(client.write(first, PAGE_BYTES, part, false), Status::SUCCESS);
    }
}

pub fn generation(client: &Client, page: u64) -> u32 {
    let data = client.read(page, 1, PAGE_BYTES).unwrap();
    pattern::verify(page * PAGE_BYTES, &data).unwrap()
}

/// Checks the device's invariants, and that exactly these pages are mapped.
pub fn check_mapping(shared: &SharedSubsystem, mapped: impl Fn(u32) -> bool) {
    let subsystem = lock(shared);
    subsystem.device().check().unwrap();
    for page in 0..subsystem.device().layout().logical_pages {
        let is_mapped = subsystem.device().lookup(Lpn(page)).is_some();
        assert_eq!(is_mapped, mapped(page), "page {page}");
    }
}

/// Sends an admin command without data that must succeed.
pub fn admin(client: &Client, opcode: AdminOpcode, nsid: u32, dword10: u32, dword11: u32, dword12: u32) {
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = opcode as u8;
    entry.nsid = nsid.into();
    entry.cdw10 = dword10.into();
    entry.cdw11 = dword11.into();
    entry.cdw12 = dword12.into();
    assert_eq!(client.execute(0, &entry, &mut Vec::new()), Status::SUCCESS, "{opcode:?}");
}

/// Set Features 1Dh with the save bit.
pub fn set_fdp(client: &Client, enabled: bool) {
    admin(client, AdminOpcode::SetFeatures, 0, 0x1d | 1 << 31, 1, u32::from(enabled));
}

/// Runs one test of this binary in a child process with the variable set, for tests that change the
/// limits of their process. `test` is its name with its modules.
pub fn run_in_child(test: &str, variable: &str) {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let output = child.env(variable, "1").output().unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}{errors}");
    assert!(printed.contains("1 passed"), "{test} must be a test of this binary: {printed}");
}

/// The small drive's storage in memory, with a custom sync.
pub struct Disk {
    memory: MemoryBackend,
    durable: Arc<dyn FlushHandle>,
}

impl Disk {
    pub fn new(durable: Arc<dyn FlushHandle>) -> Disk {
        let memory = MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES));
        Disk { memory, durable }
    }
}

impl Media for Disk {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        self.memory.read(offset, data)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        self.memory.write(offset, data)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.memory.discard(offset, bytes)
    }

    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError> {
        self.memory.store_state(state)
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        Some(Arc::clone(&self.durable))
    }
}

/// A host with a separate controller.
pub struct Client {
    shared: SharedSubsystem,
    id: u16,
    pub clock: ServerClock,
}

impl Client {
    pub fn connect(shared: &SharedSubsystem) -> Client {
        let clock = ServerClock::start();
        let mut subsystem = lock(shared);
        let id = subsystem
            .connect(clock.now(), HostTransport::Fabrics, ControllerKind::Io, HostIdentity::default())
            .expect("a controller");
        let enable = Cc::new().with_en(true).with_iosqes(6).with_iocqes(4);
        subsystem.property_set(clock.now(), id, Property::Cc, u64::from(enable.into_bits()));
        assert!(subsystem.controller(id).is_ready());
        drop(subsystem);
        Client { shared: shared.clone(), id, clock }
    }

    /// Executes a command like a transport does, and makes its data durable first.
    pub fn execute(&self, queue: u16, entry: &SubmissionEntry, data: &mut Vec<u8>) -> Status {
        let mut subsystem = lock(&self.shared);
        let PendingReply { reply, durable, .. } = match subsystem.accept(self.id, queue, entry) {
            Ok(accepted) => subsystem.execute(self.clock.now(), accepted, data),
            Err(failure) => return subsystem.fail(self.id, queue, entry, failure).status,
        };
        drop(subsystem);
        let reply = reply.expect("no test sends an asynchronous event request");
        let began = self.clock.now();
        match durable.map(|durable| durable.flush()) {
            Some(Ok(())) => {
                let now = self.clock.now();
                lock(&self.shared).note_latency(self.id, queue, entry, began, now);
                reply.status
            }
            Some(Err(error)) => lock(&self.shared).failed_to_sync(self.id, queue, entry, &error).status,
            _ => reply.status,
        }
    }

    /// Executes an I/O command that must succeed. Returns whether its completion waits for the
    /// disk.
    pub fn is_made_durable(&self, entry: &SubmissionEntry, data: &mut Vec<u8>) -> bool {
        let mut subsystem = lock(&self.shared);
        let accepted = subsystem.accept(self.id, 1, entry).expect("an acceptable command");
        let outcome = subsystem.execute(self.clock.now(), accepted, data);
        assert_eq!(outcome.reply.expect("a reply").status, Status::SUCCESS);
        outcome.durable.is_some()
    }

    /// Executes a write of a block. Returns whether it has a reply.
    pub fn is_answered(&self, first: u32) -> bool {
        let mut entry = SubmissionEntry::new_zeroed();
        entry.opcode = IoOpcode::Write as u8;
        entry.nsid = 1.into();
        entry.cdw10 = first.into();
        let mut subsystem = lock(&self.shared);
        let accepted = subsystem.accept(self.id, 1, &entry).expect("an acceptable command");
        let outcome = subsystem.execute(self.clock.now(), accepted, &mut vec![1; PAGE_BYTES as usize]);
        outcome.reply.is_some()
    }

    fn io(&self, opcode: IoOpcode, nsid: u32, first: u64, dword12: u32, data: &mut Vec<u8>) -> Status {
        let mut entry = SubmissionEntry::new_zeroed();
        entry.opcode = opcode as u8;
        entry.nsid = nsid.into();
        entry.cdw10 = (first as u32).into();
        entry.cdw11 = ((first >> 32) as u32).into();
        entry.cdw12 = dword12.into();
        self.execute(1, &entry, data)
    }

    /// Writes whole blocks of `block_bytes` bytes.
    pub fn write(&self, first: u64, block_bytes: u64, data: &[u8], force_unit_access: bool) -> Status {
        let count = data.len() as u64 / block_bytes;
        let dword12 = (count as u32 - 1) | (u32::from(force_unit_access) << 30);
        self.io(IoOpcode::Write, 1, first, dword12, &mut data.to_vec())
    }

    pub fn read(&self, first: u64, count: u64, block_bytes: u64) -> Result<Vec<u8>, Status> {
        let mut data = vec![0xee; (count * block_bytes) as usize];
        let status = self.io(IoOpcode::Read, 1, first, count as u32 - 1, &mut data);
        if status == Status::SUCCESS { Ok(data) } else { Err(status) }
    }

    /// Write Zeroes, with the Deallocate bit.
    pub fn deallocate(&self, first: u64, count: u64) -> Status {
        self.io(IoOpcode::WriteZeroes, 1, first, (count as u32 - 1) | (1 << 25), &mut Vec::new())
    }

    /// Write Zeroes without the Deallocate bit.
    pub fn write_zeroes(&self, first: u64, count: u64) -> Status {
        self.io(IoOpcode::WriteZeroes, 1, first, count as u32 - 1, &mut Vec::new())
    }

    /// Verify.
    pub fn verify(&self, first: u64, count: u64) -> Status {
        self.io(IoOpcode::Verify, 1, first, count as u32 - 1, &mut Vec::new())
    }

    pub fn flush(&self) -> Status {
        self.io(IoOpcode::Flush, 1, 0, 0, &mut Vec::new())
    }
}
