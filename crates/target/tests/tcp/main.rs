//! NVMe/TCP: whole sessions through real sockets, and all kinds of errors by hosts.
//!
//! Every target listens on a separate port of 127.0.0.1, with data in memory. `initiator::tcp` acts
//! as a correct host. Hosts that violate the protocol write raw bytes ([`Raw`]).

mod any_bytes;
mod attacks;
mod authentication;
mod connect;
mod limits;
mod lost;
mod pdus;
mod sessions;
#[path = "../small_drive/mod.rs"]
mod small_drive;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use initiator::command::block_command;
use initiator::tcp::{CommandData, HostOptions, TcpQueue, connect_command};
use nvme::{Media, Subsystem, SubsystemConfig};
use nvme_spec::command::PSDT_SGL_MPTR_CONTIGUOUS;
use nvme_spec::fabrics::{CNTLID_DYNAMIC, FabricsCommandType, OPCODE};
use nvme_spec::register::{Cc, Property};
use nvme_spec::tcp::{
    CapsuleCmd, CommonHeader, DigestFlags, FatalErrorStatus, IcReq, IcResp, PduFlags, PduType, TermReq,
};
use nvme_spec::{CompletionEntry, IoOpcode, SglDescriptor, Status, SubmissionEntry};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::CAPACITY_BYTES;
use target::storage::backend::MemoryBackend;
use target::tcp::{Limits, TcpOptions, TcpServer};
use target::{ServerClock, SharedSubsystem, lock};
use zerocopy::{FromBytes, IntoBytes};

/// Most data in a capsule of an I/O queue.
const IO_IN_CAPSULE_BYTES: usize = nvme::admin::identify::IN_CAPSULE_DATA_BYTES as usize;

/// NQN of the small drive.
const NQN: &str = "nqn.2026-01.io.warp:test";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000a";
/// Time limit for activity of the other side.
const PATIENCE: Duration = Duration::from_secs(20);

/// A served drive.
struct Target {
    shared: SharedSubsystem,
    clock: ServerClock,
    server: TcpServer,
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

impl Target {
    fn start() -> Target {
        Target::with(TcpOptions::new(loopback()))
    }

    fn with(options: TcpOptions) -> Target {
        Target::of(options, Box::new(MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES))))
    }

    fn of(options: TcpOptions, media: Box<dyn Media>) -> Target {
        let shared = Arc::new(Mutex::new(Subsystem::new(small_drive::config(0), media).unwrap()));
        let clock = ServerClock::start();
        let server = TcpServer::start(options, Arc::clone(&shared), clock).unwrap();
        Target { shared, clock, server }
    }

    /// A target with more I/O queues than most tests need, and longer time limits for connecting
    /// them.
    fn with_queues(io_queues_max: u16) -> Target {
        let media = Box::new(MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES)));
        let config = SubsystemConfig { io_queues_max, ..small_drive::config(0) };
        let shared = Arc::new(Mutex::new(Subsystem::new(config, media).unwrap()));
        let clock = ServerClock::start();
        let options = TcpOptions {
            limits: Limits { connect: PATIENCE, handshake: PATIENCE, ..Limits::default() },
            ..TcpOptions::new(loopback())
        };
        let server = TcpServer::start(options, Arc::clone(&shared), clock).unwrap();
        Target { shared, clock, server }
    }

    fn limited(limits: Limits) -> Target {
        Target::with(TcpOptions { limits, ..TcpOptions::new(loopback()) })
    }

    fn address(&self) -> SocketAddr {
        self.server.local_address()
    }

    fn host(&self) -> HostOptions {
        HostOptions { host_nqn: HOST.to_string(), timeout: PATIENCE, ..HostOptions::new(self.address(), NQN) }
    }

    fn controllers(&self) -> usize {
        lock(&self.shared).controllers().count()
    }
}

/// Waits for a condition that another thread will fulfil.
fn eventually(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::yield_now();
    }
}

fn write(queue: &mut TcpQueue, first: u64, data: &[u8]) {
    let entry = block_command(IoOpcode::Write, 1, first, (data.len() / 4096) as u32);
    let done = queue.command(entry, CommandData::ToController(data.to_vec())).unwrap();
    assert_eq!(done.status(), Status::SUCCESS);
}

fn read(queue: &mut TcpQueue, first: u64, bytes: usize) -> Vec<u8> {
    let entry = block_command(IoOpcode::Read, 1, first, (bytes / 4096) as u32);
    let done = queue.command(entry, CommandData::ToHost(vec![0xee; bytes])).unwrap();
    assert_eq!((done.status(), done.received), (Status::SUCCESS, bytes));
    done.data
}

fn random_bytes(seed: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut data);
    data
}

// ------------------------------------------------------------------------------------------------- hosts that lie --

/// A host that sends raw bytes.
struct Raw {
    stream: TcpStream,
    header_digest: bool,
    cid: u16,
}

fn as_entry<T: IntoBytes + zerocopy::Immutable>(command: &T) -> SubmissionEntry {
    SubmissionEntry::read_from_bytes(command.as_bytes()).unwrap()
}

fn header(kind: PduType, flags: PduFlags, pdo: usize, length: usize) -> CommonHeader {
    CommonHeader::new(kind, flags, pdo as u8, length as u32)
}

fn initialize(digests: DigestFlags) -> IcReq {
    IcReq { ch: header(PduType::IcReq, PduFlags::new(), 0, 128), dgst: digests, ..IcReq::default() }
}

/// The SGL of data in the capsule, or (`in_capsule` false) in separate PDUs.
fn sgl(bytes: usize, in_capsule: bool) -> SglDescriptor {
    let id = if in_capsule { 0x01 } else { 0x5a };
    let mut descriptor = SglDescriptor { length: (bytes as u32).into(), ..SglDescriptor::default() };
    descriptor.id = id.into();
    descriptor
}

impl Raw {
    fn plain(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw { stream, header_digest: false, cid: 0 }
    }

    fn open(address: SocketAddr, digests: DigestFlags) -> Raw {
        let mut raw = Raw::plain(address);
        raw.send(initialize(digests).as_bytes());
        let response = raw.pdu().unwrap();
        let response = IcResp::read_from_bytes(&response).unwrap();
        assert_eq!(response.ch, header(PduType::IcResp, PduFlags::new(), 0, 128));
        assert_eq!((response.dgst, response.cpda), (digests, 0));
        raw.header_digest = digests.hdgst_enable();
        raw
    }

    /// A host connected to the admin queue of an enabled controller.
    fn connected(target: &Target, digests: DigestFlags) -> Raw {
        let mut raw = Raw::open(target.address(), digests);
        let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
        let mut entry = as_entry(&command);
        entry.cid = 100.into();
        raw.send(&raw.capsule(entry, data.as_bytes(), digests.ddgst_enable()));
        assert_eq!(raw.completion().status.status(), Status::SUCCESS);
        let mut enable = nvme_spec::fabrics::PropertySetCommand {
            opcode: OPCODE,
            fctype: FabricsCommandType::PropertySet.code(),
            ..Default::default()
        };
        enable.ofst = Property::Cc.code().into();
        enable.value = u64::from(Cc::new().with_en(true).with_iosqes(6).with_iocqes(4).into_bits()).into();
        raw.send(&raw.capsule(as_entry(&enable), &[], false));
        assert_eq!(raw.completion().status.status(), Status::SUCCESS);
        raw
    }

    fn send(&self, bytes: &[u8]) {
        (&self.stream).write_all(bytes).unwrap();
    }

    /// The next PDU, `None` at the end of the connection.
    fn pdu(&mut self) -> Option<Vec<u8>> {
        let mut pdu = vec![0; 8];
        match self.stream.read_exact(&mut pdu) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("{error}"),
        }
        let length = CommonHeader::read_from_bytes(&pdu).unwrap().plen.get() as usize;
        pdu.resize(length, 0);
        self.stream.read_exact(&mut pdu[8..]).unwrap();
        Some(pdu)
    }

    fn completion(&mut self) -> CompletionEntry {
        let pdu = self.pdu().expect("a completion");
        assert_eq!(pdu[0], PduType::CapsuleResp.code(), "{pdu:?}");
        CompletionEntry::read_from_bytes(&pdu[8..24]).unwrap()
    }

    /// A capsule with data and with the negotiated digests.
    fn capsule(&self, mut entry: SubmissionEntry, data: &[u8], data_digest: bool) -> Vec<u8> {
        let offset = 72 + if self.header_digest { 4 } else { 0 };
        let data_digest = data_digest && !data.is_empty();
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        if !data.is_empty() {
            entry.set_sgl1(sgl(data.len(), true));
        }
        let flags = PduFlags::new().with_hdgst(self.header_digest).with_ddgst(data_digest);
        let length = offset + data.len() + if data_digest { 4 } else { 0 };
        let capsule = CapsuleCmd {
            ch: header(PduType::CapsuleCmd, flags, if data.is_empty() { 0 } else { offset }, length),
            ccsqe: entry,
        };
        let mut pdu = capsule.as_bytes().to_vec();
        if self.header_digest {
            pdu.extend(crc32c::crc32c(capsule.as_bytes()).to_le_bytes());
        }
        pdu.extend(data);
        if data_digest {
            pdu.extend(crc32c::crc32c(data).to_le_bytes());
        }
        pdu
    }

    fn command(&mut self, mut entry: SubmissionEntry, data: &[u8]) -> CompletionEntry {
        self.cid += 1;
        entry.cid = self.cid.into();
        self.send(&self.capsule(entry, data, false));
        let completion = self.completion();
        assert_eq!(completion.cid.get(), self.cid);
        completion
    }

    /// Expects that the controller ends the connection for this reason and repeats the wrong
    /// header.
    fn expect_end(&mut self, status: FatalErrorStatus, information: u32, wrong: &[u8], what: &str) {
        let pdu = self.pdu().unwrap_or_else(|| panic!("{what}: closed without a reason"));
        let (request, header) = TermReq::read_from_prefix(&pdu).unwrap();
        assert_eq!(request.ch.pdu_type, PduType::C2hTermReq.code(), "{what}: {pdu:?}");
        let got = (FatalErrorStatus::from_u16(request.fes.get()), request.fei.get());
        assert_eq!(got, (Some(status), information), "{what}");
        let said = usize::from(wrong[2]).min(wrong.len()).min(128);
        assert_eq!(header, &wrong[..said], "{what}: the header that is wrong");
        assert_eq!(self.pdu(), None, "{what}");
    }
}

/// A Property Get or Set, or a similar command.
fn property(kind: FabricsCommandType, size: u8, offset: u32) -> SubmissionEntry {
    SubmissionEntry {
        opcode: OPCODE,
        nsid: u32::from(kind.code()).into(),
        cdw10: u32::from(size).into(),
        cdw11: offset.into(),
        ..SubmissionEntry::default()
    }
}
