//! Tests of the vfio-user server with the `vfio_user` crate's client and with raw bytes. They cover
//! probing, I/O, doorbells of all three kinds, interrupts, resets, disconnects, stops, and invalid
//! messages.

mod clients;
mod doorbells;
mod hostile;
mod io;
mod memory;
mod resets;
#[path = "../small_drive/mod.rs"]
mod small_drive;

use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use initiator::command::block_command;
use initiator::pcie::{DriverOptions, NvmeDriver};
use nvme::media::bytes_for;
use nvme::{Media, Subsystem, SubsystemConfig};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{IoOpcode, Status};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use small_drive::CAPACITY_BYTES;
use ssd::config::HandlesConfig;
use target::storage::backend::MemoryBackend;
use target::vfio_user::{VfioUserOptions, VfioUserServer};
use target::{ServeError, ServerClock, SharedSubsystem};
use tempfile::TempDir;

const BLOCK: u64 = 4096;

/// The small drive with more over-provisioning, default handles, and controllers for two servers.
fn config() -> SubsystemConfig {
    let mut config = small_drive::config(0);
    config.device.geometry.over_provisioning = 0.5;
    config.device.handles = HandlesConfig::default();
    config.controllers_max = 2;
    config
}

/// A drive, a directory for sockets, and a server.
struct Setup {
    directory: TempDir,
    shared: SharedSubsystem,
    clock: ServerClock,
    server: Option<VfioUserServer>,
}

impl Setup {
    fn new() -> Setup {
        Setup::with(Box::new(MemoryBackend::new(bytes_for(CAPACITY_BYTES))), VfioUserOptions::default())
    }

    fn with(media: Box<dyn Media>, options: VfioUserOptions) -> Setup {
        let subsystem = Subsystem::new(config(), media).expect("the drive works");
        let mut setup = Setup {
            directory: tempfile::tempdir().unwrap(),
            shared: Arc::new(Mutex::new(subsystem)),
            clock: ServerClock::start(),
            server: None,
        };
        setup.server = Some(setup.serve("nvme.sock", options).expect("a server"));
        setup
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn serve(&self, name: &str, options: VfioUserOptions) -> Result<VfioUserServer, ServeError> {
        VfioUserServer::start(&self.path(name), Arc::clone(&self.shared), self.clock, options)
    }

    fn socket(&self) -> PathBuf {
        self.path("nvme.sock")
    }

    fn driver(&self) -> NvmeDriver {
        NvmeDriver::start(&self.socket(), DriverOptions::default()).expect("the drive comes up")
    }

    /// A driver with an I/O queue pair.
    fn driver_with_queue(&self) -> NvmeDriver {
        let mut driver = self.driver();
        driver.create_queues(1, 64, Some(1)).unwrap();
        driver
    }

    fn messages(&self) -> u64 {
        self.server.as_ref().unwrap().doorbell_messages()
    }
}

fn io(opcode: IoOpcode, first: u64, blocks: u64) -> SubmissionEntry {
    block_command(opcode, 1, first, blocks as u32)
}

fn flush() -> SubmissionEntry {
    io(IoOpcode::Flush, 0, 1)
}

fn pattern(bytes: u64, seed: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ at >> 8 ^ at >> 16) as u8 ^ seed).collect()
}

/// Writes or reads `bytes` of RAM at `address` with PRPs.
#[track_caller]
fn transfer(driver: &mut NvmeDriver, opcode: IoOpcode, first: u64, address: u64, bytes: u64) {
    let mut entry = io(opcode, first, bytes / BLOCK);
    driver.set_prps(&mut entry, address, bytes);
    let completion = driver.command(1, entry).unwrap();
    assert_eq!(completion.status.status(), Status::SUCCESS);
}

#[track_caller]
fn write_and_read(driver: &mut NvmeDriver, first: u64, bytes: u64, seed: u8) {
    let data = pattern(bytes, seed);
    let from = driver.allocate_with(&data);
    transfer(driver, IoOpcode::Write, first, from, bytes);
    assert_reads(driver, first, &data);
}

#[track_caller]
fn assert_reads(driver: &mut NvmeDriver, first: u64, expected: &[u8]) {
    let bytes = expected.len() as u64;
    let to = driver.allocate(bytes);
    transfer(driver, IoOpcode::Read, first, to, bytes);
    let mut data = vec![0; expected.len()];
    driver.read_ram(to, &mut data);
    assert!(data == expected, "what was written at block {first}");
}

/// Submits commands until the queue is full, without waiting.
fn flood(driver: &mut NvmeDriver, buffer: u64) {
    for block in 0..63 {
        let mut entry = io(IoOpcode::Write, block, 1);
        entry.set_prps(buffer, 0);
        driver.submit(1, entry);
    }
    driver.ring(1).unwrap();
}

/// A connection that sends raw bytes.
struct Raw(UnixStream);

impl Raw {
    fn connect(path: &Path) -> Raw {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Raw(stream)
    }

    fn negotiated(path: &Path) -> Raw {
        let mut raw = Raw::connect(path);
        let (error, body) = raw.ask(1, b"\0\0\0\0{}\0");
        assert_eq!(error, 0);
        assert!(body[4..].starts_with(b"{\"capabilities\""));
        raw
    }

    fn send(&mut self, command: u16, bytes: u32, flags: u32, body: &[u8]) {
        let mut message = Vec::new();
        message.extend_from_slice(&7u16.to_le_bytes());
        message.extend_from_slice(&command.to_le_bytes());
        message.extend_from_slice(&bytes.to_le_bytes());
        message.extend_from_slice(&flags.to_le_bytes());
        message.extend_from_slice(&0u32.to_le_bytes());
        message.extend_from_slice(body);
        self.0.write_all(&message).unwrap();
    }

    /// The error and the body of the reply.
    fn reply(&mut self) -> (u32, Vec<u8>) {
        let mut header = [0; 16];
        self.0.read_exact(&mut header).unwrap();
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(header[..2], 7u16.to_le_bytes());
        assert_eq!(number(8) & 1, 1, "a reply");
        assert_eq!(number(8) & 0x20 != 0, number(12) != 0, "an error has a number");
        let mut body = vec![0; number(4) as usize - 16];
        self.0.read_exact(&mut body).unwrap();
        (number(12), body)
    }

    fn ask(&mut self, command: u16, body: &[u8]) -> (u32, Vec<u8>) {
        self.send(command, 16 + body.len() as u32, 0, body);
        self.reply()
    }

    /// Maps the beginning of a file. Returns the error code.
    fn map(&mut self, address: u64, bytes: u64, file: &OwnedFd) -> u32 {
        let mut message = words(&[2 << 16 | 7, 16 + 32, 0, 0, 32, 0b11]);
        message.extend([0, address, bytes].iter().flat_map(|number| number.to_le_bytes()));
        let descriptors = [file.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let sent = sendmsg(&self.0, &[IoSlice::new(&message)], &mut ancillary, SendFlags::empty());
        assert_eq!(sent, Ok(message.len()));
        self.reply().0
    }

    /// Unmaps ranges. Returns the error code.
    fn unmap(&mut self, address: u64, bytes: u64) -> u32 {
        let mut body = words(&[24, 0]);
        body.extend([address, bytes].iter().flat_map(|number| number.to_le_bytes()));
        self.ask(3, &body).0
    }

    fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
        [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes(), data].concat()
    }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
