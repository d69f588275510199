//! NVMe/TCP: whole sessions through real sockets, and all kinds of errors by hosts.
//!
//! Every target listens on a separate port of 127.0.0.1, with data in memory. `initiator::tcp` acts
//! as a correct host. Hosts that violate the protocol write raw bytes ([`Raw`]).

mod attacks;
mod small_drive;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base::table;
use initiator::bench::tcp as bench;
use initiator::command::{block_command, log_page_command};
use initiator::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue, connect_command};
use nvme::{FlushHandle, Media, Subsystem, SubsystemConfig};
use nvme_spec::auth::{
    AUTH_TYPE_COMMON, AUTH_TYPE_DHCHAP, DhGroupId, FailureReason, HashId, MessageHeader, MessageId, SECURITY_PROTOCOL,
};
use nvme_spec::command::{NAMESPACE_DELETE, NamespaceManagementCdw10, PSDT_SGL_MPTR_CONTIGUOUS};
use nvme_spec::fabrics::{
    AuthenticationCommand, CNTLID_DYNAMIC, CNTLID_STATIC, ConnectCommand, ConnectData, DISCOVERY_NQN,
    FabricsCommandType, OPCODE, SubsystemType, TransportType,
};
use nvme_spec::feature::AsyncEventConfiguration;
use nvme_spec::register::{Cap, Cc, Property, Vs};
use nvme_spec::tcp::{
    CapsuleCmd, CommonHeader, DigestFlags, FatalErrorStatus, H2cData, IcReq, IcResp, PduFlags, PduType, R2t, TermReq,
};
use nvme_spec::{
    AdminOpcode, Cns, CompletionEntry, FeatureId, IoOpcode, LogId, SglDescriptor, Status, SubmissionEntry,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::{CAPACITY_BYTES, Disk, MIB};
use target::storage::backend::MemoryBackend;
use target::tcp::session::{ConnectionInfo, DisconnectReason, SessionTask, TcpSession};
use target::tcp::{AllowedHost, Limits, THREAD_NAME, TargetContext, TcpOptions, TcpServer};
use target::{ServeError, ServerClock, SharedSubsystem, lock};
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
        Target::of(
            options,
            Box::new(MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES))),
        )
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
        let config = SubsystemConfig {
            io_queues_max,
            ..small_drive::config(0)
        };
        let shared = Arc::new(Mutex::new(Subsystem::new(config, media).unwrap()));
        let clock = ServerClock::start();
        let options = TcpOptions {
            limits: Limits {
                connect: PATIENCE,
                handshake: PATIENCE,
                ..Limits::default()
            },
            ..TcpOptions::new(loopback())
        };
        let server = TcpServer::start(options, Arc::clone(&shared), clock).unwrap();
        Target { shared, clock, server }
    }

    fn limited(limits: Limits) -> Target {
        Target::with(TcpOptions {
            limits,
            ..TcpOptions::new(loopback())
        })
    }

    fn address(&self) -> SocketAddr {
        self.server.local_address()
    }

    fn host(&self) -> HostOptions {
        HostOptions {
            host_nqn: HOST.to_string(),
            timeout: PATIENCE,
            ..HostOptions::new(self.address(), NQN)
        }
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

fn trimmed(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap().trim_end_matches(['\0', ' '])
}

// ---------------------------------------------------------------------------------------------- well-behaved hosts --

#[test]
fn a_session_from_discovery_to_the_end() {
    let target = Target::start();
    let mut discovery = RemoteController::connect(&target.host().discovery()).unwrap();
    let entries = discovery.discover().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(trimmed(&entries[0].subnqn), NQN);
    drop(discovery);

    let mut controller = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(
        controller.property_get(Property::Vs).unwrap(),
        u64::from(Vs::V2_1.into_bits())
    );
    let capabilities = Cap::from_bits(controller.property_get(Property::Cap).unwrap());
    assert_eq!(u32::from(capabilities.mqes()) + 1, nvme::controller::QUEUE_ENTRIES_MAX);
    let identify = controller.identify_controller().unwrap();
    assert_eq!(identify.cntlid.get(), controller.id());
    assert_eq!(trimmed(&identify.subnqn), NQN);
    assert_eq!(
        identify.ioccsz.get() * 16,
        64 + IO_IN_CAPSULE_BYTES as u32,
        "what fits into a capsule is what is told"
    );
    assert_eq!(controller.set_queue_count(4).unwrap(), 4);
    let mut queue = controller.io_queue(1, 128).unwrap();
    for (first, bytes) in [(0, 4096), (1, 8192), (100, IO_IN_CAPSULE_BYTES), (200, MIB as usize)] {
        let data = random_bytes(first, bytes);
        write(&mut queue, first, &data);
        assert_eq!(read(&mut queue, first, bytes), data, "{bytes} bytes at block {first}");
    }
    let flush = block_command(IoOpcode::Flush, 1, 0, 1);
    assert_eq!(
        queue.command(flush, CommandData::None).unwrap().status(),
        Status::SUCCESS
    );
    controller.keep_alive().unwrap();
    let beyond = block_command(IoOpcode::Read, 1, CAPACITY_BYTES / 4096, 1);
    let done = queue.command(beyond, CommandData::ToHost(vec![0; 4096])).unwrap();
    assert_eq!((done.status(), done.received), (Status::LBA_OUT_OF_RANGE, 0));
    assert!(done.entry.status.dnr());
    controller.shut_down().unwrap();
    drop((queue, controller));
    eventually("the controller's end", || target.controllers() == 0);
    eventually("the connections' end", || target.server.connections() == 0);
}

#[test]
fn the_discovery_log_is_the_same_in_pieces_and_as_a_whole() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host().discovery()).unwrap();
    let whole = controller.log_page(LogId::Discovery, 0, 0, 4096).unwrap();
    assert_eq!(whole[2048..], [0; 2048], "one entry");
    for bytes in [4, 20, 64, 1000, 1024, 2048] {
        let mut pieces = Vec::new();
        while pieces.len() < 2048 {
            pieces.extend(
                controller
                    .log_page(LogId::Discovery, 0, pieces.len() as u64, bytes)
                    .unwrap(),
            );
        }
        assert_eq!(pieces[..2048], whole[..2048], "in pieces of {bytes}");
    }
    let entry = controller.discover().unwrap()[0];
    assert_eq!(trimmed(&entry.traddr), "127.0.0.1");
    assert_eq!(trimmed(&entry.trsvcid), target.address().port().to_string());
    assert_eq!(
        (entry.trtype, entry.subtype),
        (TransportType::Tcp.code(), SubsystemType::Nvm.code())
    );
    assert_eq!((entry.adrfam, entry.cntlid.get()), (1, CNTLID_DYNAMIC));
    assert_eq!(controller.log_page(LogId::Discovery, 0, 2048, 4).unwrap(), [0; 4]);

    let status = |controller: &mut RemoteController, entry, bytes: usize| {
        let done = controller.admin(entry, CommandData::ToHost(vec![0; bytes])).unwrap();
        (done.status(), done.received)
    };
    let log = |offset| log_page_command(LogId::Discovery, 0, 0, offset, 4);
    assert_eq!(status(&mut controller, log(2052), 4), (Status::INVALID_FIELD, 0));
    assert_eq!(
        status(&mut controller, log(u64::MAX - 3), 4),
        (Status::INVALID_FIELD, 0)
    );
    assert_eq!(status(&mut controller, log(2), 4), (Status::INVALID_FIELD, 0));
    let smart = log_page_command(LogId::SmartHealth, 0, 0, 0, 512);
    assert_eq!(status(&mut controller, smart, 512), (Status::INVALID_LOG_PAGE, 0));
    let identify = controller.identify_controller().unwrap();
    assert_eq!((identify.cntrltype, trimmed(&identify.subnqn)), (2, DISCOVERY_NQN));
    // An I/O controller does not support the log page.
    let mut io = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(status(&mut io, log(0), 4), (Status::INVALID_LOG_PAGE, 0));
}

#[test]
fn the_discovery_log_says_what_is_advertised() {
    let target = Target::with(TcpOptions {
        advertised: Some("10.0.2.2:4420".parse().unwrap()),
        ..TcpOptions::new(loopback())
    });
    let entry = RemoteController::connect(&target.host().discovery())
        .unwrap()
        .discover()
        .unwrap()[0];
    assert_eq!((trimmed(&entry.traddr), trimmed(&entry.trsvcid)), ("10.0.2.2", "4420"));
}

/// Several hosts with several queues in parallel. Each has separate digests, alignment, flow
/// control and part of the drive.
#[test]
fn many_hosts_and_queues_do_not_disturb_each_other() {
    let target = Target::start();
    std::thread::scope(|scope| {
        for host in 0..4u64 {
            let options = HostOptions {
                host_nqn: format!("nqn.2026-01.io.warp:host-{host}"),
                host_id: [host as u8 + 1; 16],
                header_digest: host & 1 != 0,
                data_digest: host & 2 != 0,
                data_alignment: [0, 1, 15, 31][host as usize],
                flow_control: host != 2,
                in_capsule_bytes: [usize::MAX, 4096, 0, 65536][host as usize],
                ..target.host()
            };
            scope.spawn(move || {
                let controller = RemoteController::connect(&options).unwrap();
                let mut queues: Vec<TcpQueue> = (1..=3).map(|id| controller.io_queue(id, 32).unwrap()).collect();
                std::thread::scope(|scope| {
                    for (queue, index) in queues.iter_mut().zip(0..) {
                        scope.spawn(move || exercise(queue, host * 3 + index));
                    }
                });
            });
        }
    });
    eventually("the connections' end", || target.server.connections() == 0);
    assert_eq!(target.controllers(), 0);
}

/// Random reads and writes of random sizes in a part of the drive, many in parallel, compared with
/// a copy in memory.
fn exercise(queue: &mut TcpQueue, part: u64) {
    const BLOCKS: u64 = 256;
    let first = part * BLOCKS;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(part);
    let mut copy = vec![0; BLOCKS as usize * 4096];
    let written = random_bytes(part, copy.len());
    write(queue, first, &written);
    copy.copy_from_slice(&written);
    for round in 0..60 {
        // Ranges of one round do not overlap, so their order does not matter.
        let mut at = 0;
        let mut expected = Vec::new();
        while at < BLOCKS && queue.has_room() {
            let blocks = random.random_range(1..=24.min(BLOCKS - at));
            let range = (at * 4096) as usize..((at + blocks) * 4096) as usize;
            if random.random_bool(0.5) {
                random.fill_bytes(&mut copy[range.clone()]);
                let entry = block_command(IoOpcode::Write, 1, first + at, blocks as u32);
                queue.submit(entry, CommandData::ToController(copy[range].to_vec()));
            } else {
                let entry = block_command(IoOpcode::Read, 1, first + at, blocks as u32);
                let cid = queue.submit(entry, CommandData::ToHost(vec![0; range.len()]));
                expected.push((cid, copy[range].to_vec()));
            }
            at += blocks;
        }
        while queue.outstanding() > 0 || !expected.is_empty() {
            let done = queue.wait().unwrap();
            assert_eq!(done.status(), Status::SUCCESS, "part (seed) {part}, round {round}");
            if let Some(index) = expected
                .iter()
                .position(|(cid, _)| *cid == done.cid && done.received > 0)
            {
                let (_, data) = expected.swap_remove(index);
                assert!(done.data == data, "other data, part (seed) {part}, round {round}");
            }
        }
        while queue.poll().is_some() {}
    }
}

#[test]
fn large_writes_come_in_pieces_that_the_controller_allows() {
    for (header_digest, data_digest) in [(false, false), (true, true)] {
        let target = Target::with(TcpOptions {
            h2c_data_bytes_max: 4096,
            ..TcpOptions::new(loopback())
        });
        let options = HostOptions {
            header_digest,
            data_digest,
            ..target.host()
        };
        let controller = RemoteController::connect(&options).unwrap();
        let mut queue = controller.io_queue(1, 8).unwrap();
        assert_eq!(queue.h2c_data_bytes_max(), 4096);
        for bytes in [12288, 65536, MIB as usize] {
            let data = random_bytes(bytes as u64, bytes);
            write(&mut queue, 7, &data);
            assert!(read(&mut queue, 7, bytes) == data, "{bytes} bytes");
        }
    }
}

#[test]
fn heads_count_completions_and_are_told_as_often_as_a_host_needs_them() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 4).unwrap();
    // Connect was the first command, and the queue has four entries.
    for head in [2, 3, 0, 1, 2] {
        let entry = block_command(IoOpcode::Read, 1, 0, 1);
        let done = queue.command(entry, CommandData::ToHost(vec![0; 4096])).unwrap();
        assert_eq!(done.entry.sqhd.get(), head);
    }
    // In a queue of 50 entries every fifth read has a completion, and so have all other commands. 0
    // stands for a completion left out.
    let mut queue = controller.io_queue(2, 50).unwrap();
    let block = CommandData::ToHost(vec![0; 4096]);
    let read = block_command(IoOpcode::Read, 1, 0, 1);
    let told: Vec<u16> = (0..10)
        .map(|_| queue.command(read, block.clone()).unwrap().entry.sqhd.get())
        .collect();
    assert_eq!(told, [0, 0, 0, 0, 6, 0, 0, 0, 0, 11]);
    let flush = queue.command(block_command(IoOpcode::Flush, 1, 0, 1), CommandData::None);
    assert_eq!(flush.unwrap().entry.sqhd.get(), 12);
    let past_the_end = block_command(IoOpcode::Read, 1, u64::MAX, 1);
    let refused = queue.command(past_the_end, block).unwrap();
    assert_eq!(
        (refused.status(), refused.entry.sqhd.get()),
        (Status::LBA_OUT_OF_RANGE, 13)
    );
    let without = HostOptions {
        flow_control: false,
        ..target.host()
    };
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&without, CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(
        (completion.status.status(), completion.sqhd.get()),
        (Status::SUCCESS, 0xffff)
    );
}

#[test]
fn events_reach_an_idle_admin_connection() {
    let target = Target::start();
    let mut listener = RemoteController::connect(&target.host()).unwrap();
    let mut actor = RemoteController::connect(&target.host()).unwrap();
    let enable = SubmissionEntry {
        opcode: AdminOpcode::SetFeatures.code(),
        cdw10: u32::from(FeatureId::AsynchronousEventConfiguration.code()).into(),
        cdw11: AsyncEventConfiguration::new().with_nan(true).into_bits().into(),
        ..SubmissionEntry::default()
    };
    assert_eq!(
        listener.admin(enable, CommandData::None).unwrap().status(),
        Status::SUCCESS
    );
    let request = SubmissionEntry {
        opcode: AdminOpcode::AsynchronousEventRequest.code(),
        ..SubmissionEntry::default()
    };
    let cid = listener.queue().submit(request, CommandData::None);
    // The request arrives before the event.
    listener.queue().flush().unwrap();
    listener.keep_alive().unwrap();
    let delete = SubmissionEntry {
        opcode: AdminOpcode::NamespaceManagement.code(),
        nsid: 1.into(),
        cdw10: NamespaceManagementCdw10::new()
            .with_sel(NAMESPACE_DELETE)
            .into_bits()
            .into(),
        ..SubmissionEntry::default()
    };
    assert_eq!(
        actor.admin(delete, CommandData::None).unwrap().status(),
        Status::SUCCESS
    );
    let event = listener.queue().wait().unwrap();
    assert_eq!((event.cid, event.status()), (cid, Status::SUCCESS));
    // Notice: attached namespace attribute changed. Log page 04h has the namespace.
    assert_eq!(event.entry.dw0.get(), 0x0004_0002);
    let changed = listener
        .log_page(LogId::ChangedAttachedNamespaceList, 0, 0, 4096)
        .unwrap();
    assert_eq!(changed[..4], [1, 0, 0, 0]);
}

#[test]
fn a_reset_ends_the_io_queues_and_leaves_the_admin_queue() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[1; 4096]);
    controller.property_set(Property::Cc, 0).unwrap();
    assert_eq!(controller.property_get(Property::Csts).unwrap(), 0);
    let lost = queue.command(
        block_command(IoOpcode::Read, 1, 0, 1),
        CommandData::ToHost(vec![0; 4096]),
    );
    assert!(
        matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })),
        "{lost:?}"
    );
    eventually("the I/O connection's end", || target.server.connections() == 1);
    // Commands and Connect of an I/O queue require an enabled controller.
    let identify = SubmissionEntry {
        opcode: AdminOpcode::Identify.code(),
        ..SubmissionEntry::default()
    };
    let done = controller.admin(identify, CommandData::ToHost(vec![0; 4096])).unwrap();
    assert_eq!(done.status(), Status::COMMAND_SEQUENCE_ERROR);
    let early = controller.io_queue(1, 16).map(|_| ());
    assert!(
        matches!(
            early,
            Err(InitiatorError::Command {
                status: Status::COMMAND_SEQUENCE_ERROR,
                ..
            })
        ),
        "{early:?}"
    );
    controller.enable().unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    assert_eq!(read(&mut queue, 0, 4096), [1; 4096]);
}

/// An NVM Subsystem Reset by a host on PCI Express ends every association, even an idle one.
#[test]
fn a_subsystem_reset_ends_every_association() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[1; 4096]);
    let id = controller.id();
    {
        let mut subsystem = lock(&target.shared);
        let host = nvme::HostIdentity::default();
        let pcie = subsystem.connect(0, nvme::HostTransport::Pcie, nvme::ControllerKind::Io, host);
        let pcie = pcie.unwrap();
        let mut front = nvme::pcie::PcieController::new(pcie, 1, 1);
        let doorbells: Vec<_> = (0..usize::from(nvme::pcie::QUEUES_MAX) * 2)
            .map(|_| std::sync::atomic::AtomicU32::new(0))
            .collect();
        let bus = nvme::pcie::Bus {
            memory: &NoMemory,
            interrupts: &NoMemory,
            doorbells: &doorbells,
        };
        let signature = nvme_spec::register::NSSR_RESET.to_le_bytes();
        front.write_register(&mut subsystem, bus, 0, nvme_spec::register::NSSR.into(), &signature);
        subsystem.disconnect(pcie);
    }
    eventually("the controller's end", || !lock(&target.shared).is_connected(id));
    eventually("the connections' end", || target.server.connections() == 0);
    let lost = queue.command(
        block_command(IoOpcode::Read, 1, 0, 1),
        CommandData::ToHost(vec![0; 4096]),
    );
    assert!(
        matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })),
        "{lost:?}"
    );
    assert!(controller.keep_alive().is_err());
    // The host reconnects.
    let again = RemoteController::connect(&target.host()).unwrap();
    let mut queue = again.io_queue(1, 16).unwrap();
    assert_eq!(read(&mut queue, 0, 4096), [1; 4096]);
}

/// A host on PCI Express without memory, only with registers.
struct NoMemory;

impl nvme::pcie::HostMemory for NoMemory {
    fn read(&self, address: u64, _: &mut [u8]) -> Result<(), nvme::pcie::MemoryFault> {
        Err(nvme::pcie::MemoryFault { address })
    }

    fn check_readable(&self, address: u64, _: usize) -> Result<(), nvme::pcie::MemoryFault> {
        Err(nvme::pcie::MemoryFault { address })
    }

    fn write(&self, address: u64, _: &[u8]) -> Result<(), nvme::pcie::MemoryFault> {
        Err(nvme::pcie::MemoryFault { address })
    }

    fn load(&self, address: u64) -> Result<u32, nvme::pcie::MemoryFault> {
        Err(nvme::pcie::MemoryFault { address })
    }

    fn store(&self, address: u64, _: u32) -> Result<(), nvme::pcie::MemoryFault> {
        Err(nvme::pcie::MemoryFault { address })
    }
}

impl nvme::pcie::Interrupts for NoMemory {
    fn raise(&self, _: u16) {}
}

/// An aborted request completes before the Abort.
#[test]
fn what_is_aborted_completes_before_its_abort() {
    let target = Target::start();
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let mut request = SubmissionEntry {
        opcode: AdminOpcode::AsynchronousEventRequest.code(),
        cid: 77.into(),
        ..SubmissionEntry::default()
    };
    raw.send(&raw.capsule(request, &[], false));
    request.opcode = AdminOpcode::Abort.code();
    request.cid = 78.into();
    request.cdw10 = (77 << 16).into();
    raw.send(&raw.capsule(request, &[], false));
    let aborted = raw.completion();
    assert_eq!(
        (aborted.cid.get(), aborted.status.status()),
        (77, Status::ABORT_REQUESTED)
    );
    let done = raw.completion();
    assert_eq!((done.cid.get(), done.status.status()), (78, Status::SUCCESS));
}

/// Counts the sync calls, and fails on request.
#[derive(Default)]
struct Syncs {
    count: AtomicUsize,
    fails: AtomicUsize,
}

impl FlushHandle for Syncs {
    fn flush(&self) -> std::io::Result<()> {
        self.count.fetch_add(1, Ordering::SeqCst);
        match self.fails.load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(std::io::Error::other("the disk is gone")),
        }
    }
}

#[test]
fn flush_and_shutdown_are_complete_only_when_everything_is_durable() {
    let durable = Arc::new(Syncs::default());
    let disk = Disk::new(Arc::clone(&durable) as Arc<dyn FlushHandle>);
    let target = Target::of(TcpOptions::new(loopback()), Box::new(disk));
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[5; 4096]);
    assert_eq!(durable.count.load(Ordering::SeqCst), 0, "a write may stay in the cache");
    let flush = block_command(IoOpcode::Flush, 1, 0, 1);
    assert_eq!(
        queue.command(flush, CommandData::None).unwrap().status(),
        Status::SUCCESS
    );
    assert_eq!(durable.count.load(Ordering::SeqCst), 1);
    durable.fails.store(1, Ordering::SeqCst);
    let done = queue.command(flush, CommandData::None).unwrap();
    assert_eq!(done.status(), Status::WRITE_FAULT);
    // Commands without a sync still succeed.
    assert_eq!(read(&mut queue, 0, 4096), [5; 4096]);
    durable.fails.store(0, Ordering::SeqCst);
    let before = durable.count.load(Ordering::SeqCst);
    controller.shut_down().unwrap();
    assert_eq!(durable.count.load(Ordering::SeqCst), before + 1);
}

// ------------------------------------------------------------------------------------------------------ lost hosts --

#[test]
fn a_lost_admin_connection_ends_the_association() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut other = RemoteController::connect(&target.host()).unwrap();
    let mut queues: Vec<TcpQueue> = (1..=2).map(|id| controller.io_queue(id, 16).unwrap()).collect();
    let id = controller.id();
    drop(controller);
    eventually("the controller's end", || !lock(&target.shared).is_connected(id));
    for queue in &mut queues {
        let lost = queue.command(block_command(IoOpcode::Flush, 1, 0, 1), CommandData::None);
        assert!(
            matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })),
            "{lost:?}"
        );
    }
    eventually("the connections' end", || target.server.connections() == 1);
    other.keep_alive().unwrap();
    // The new controller gets the same identifier, without the old one's queues.
    let again = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(again.id(), id);
    let mut queue = again.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[3; 4096]);
}

/// On a controller reset or disconnect, Linux first closes its I/O connections, then notifies the
/// admin connection.
#[test]
fn a_lost_io_connection_ends_only_its_queue() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let lost = controller.io_queue(1, 16).unwrap();
    let mut other = controller.io_queue(2, 16).unwrap();
    drop(lost);
    eventually("the connection's end", || target.server.connections() == 2);
    controller.keep_alive().unwrap();
    write(&mut other, 0, &[5; 4096]);
    let mut again = controller.io_queue(1, 16).unwrap();
    write(&mut again, 1, &[6; 4096]);
    assert_eq!(target.controllers(), 1);
}

#[test]
fn a_silent_host_is_ended_and_a_busy_one_is_not() {
    let target = Target::start();
    let start = Instant::now();
    let silent = RemoteController::connect(&HostOptions {
        keep_alive_ms: 40,
        ..target.host()
    });
    let silent = silent.unwrap();
    let patient = RemoteController::connect(&target.host()).unwrap();
    let mut queue = patient.io_queue(1, 16).unwrap();
    let id = silent.id();
    while lock(&target.shared).is_connected(id) {
        assert!(start.elapsed() < PATIENCE, "the silent host is not ended");
        let expired = lock(&target.shared).tick(target.clock.now());
        target.server.end_associations(&expired);
    }
    assert!(start.elapsed() >= Duration::from_millis(40));
    assert_eq!(target.controllers(), 1);
    write(&mut queue, 0, &[1; 4096]);
    // An identifier that now belongs to another host is left alone.
    target.server.end_associations(&[id, patient.id(), 77]);
    write(&mut queue, 0, &[1; 4096]);
}

#[test]
fn stopping_closes_everything_and_gives_the_port_back() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let queue = controller.io_queue(1, 16).unwrap();
    let half_open = TcpStream::connect(target.address()).unwrap();
    eventually("accepting", || target.server.connections() == 3);
    let address = target.address();
    target.server.stop();
    target.server.stop();
    assert_eq!((target.server.connections(), target.controllers()), (0, 0));
    assert!(controller.keep_alive().is_err());
    drop((queue, half_open, controller));
    let again = TcpServer::start(TcpOptions::new(address), Arc::clone(&target.shared), target.clock).unwrap();
    RemoteController::connect(&target.host()).unwrap();
    again.stop();
}

#[test]
fn what_cannot_be_served_is_one_sentence() {
    let target = Target::start();
    let start = |options| {
        let server = TcpServer::start(options, Arc::clone(&target.shared), target.clock);
        server.map(|_| ()).unwrap_err().to_string()
    };
    let busy = TcpListener::bind(loopback()).unwrap();
    let address = busy.local_addr().unwrap();
    assert_eq!(
        start(TcpOptions::new(address)),
        format!("the port of {address} is in use. Stop the other server or choose another port (0 for any free one)")
    );
    // RFC 5737: a documentation address, which no machine has.
    let elsewhere: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let with_host = |secret: Option<&str>| TcpOptions {
        hosts: vec![AllowedHost {
            nqn: HOST.to_string(),
            secret: secret.map(|secret| secret.parse().unwrap()),
            controller_secret: None,
            group_min: DhGroupId::Null,
        }],
        ..TcpOptions::new(elsewhere)
    };
    assert!(start(TcpOptions::new(elsewhere)).contains("each allowed host must be listed"));
    assert!(start(with_host(None)).contains(&format!("but host {HOST} has no DH-HMAC-CHAP secret")));
    assert!(start(with_host(Some(SECRET))).contains("no network interface of this machine has the address"));
    let small = TcpOptions {
        h2c_data_bytes_max: 4095,
        ..TcpOptions::new(loopback())
    };
    assert!(matches!(
        TcpServer::start(small, Arc::clone(&target.shared), target.clock),
        Err(ServeError::TcpOption(_))
    ));
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
    IcReq {
        ch: header(PduType::IcReq, PduFlags::new(), 0, 128),
        dgst: digests,
        ..IcReq::default()
    }
}

/// The SGL of data in the capsule, or (`in_capsule` false) in separate PDUs.
fn sgl(bytes: usize, in_capsule: bool) -> SglDescriptor {
    let id = if in_capsule { 0x01 } else { 0x5a };
    let mut descriptor = SglDescriptor {
        length: (bytes as u32).into(),
        ..SglDescriptor::default()
    };
    descriptor.id = id.into();
    descriptor
}

impl Raw {
    fn plain(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw {
            stream,
            header_digest: false,
            cid: 0,
        }
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
            ch: header(
                PduType::CapsuleCmd,
                flags,
                if data.is_empty() { 0 } else { offset },
                length,
            ),
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

/// Description of an error in a PDU, its injection, and the controller's reason.
type PduCase<T> = (&'static str, fn(&mut T), (FatalErrorStatus, u32));

const WRONG_BEGINNINGS: &[PduCase<IcReq>] = &table! {
    "a version that does not exist": |pdu| pdu.pfv = 1.into() => (FatalErrorStatus::UnsupportedParameter, 8),
    "an alignment that does not exist": |pdu| pdu.hpda = 32 => (FatalErrorStatus::InvalidPduHeaderField, 10),
    "too long": |pdu| pdu.ch.plen = 132.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "too short": |pdu| pdu.ch.plen = 64.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "another header length": |pdu| pdu.ch.hlen = 24 => (FatalErrorStatus::InvalidPduHeaderField, 2),
    "a response": |pdu| pdu.ch.pdu_type = 1 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a command first": |pdu| pdu.ch.pdu_type = 4 => (FatalErrorStatus::PduSequenceError, 0),
};

const WRONG_CAPSULES: &[PduCase<CommonHeader>] = &table! {
    "an unknown type": |ch| ch.pdu_type = 0x55 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a type of controllers": |ch| ch.pdu_type = 7 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a header digest flag": |ch| ch.flags.set_hdgst(true) => (FatalErrorStatus::InvalidPduHeaderField, 1),
    "a header length": |ch| ch.hlen = 73 => (FatalErrorStatus::InvalidPduHeaderField, 2),
    "no data offset": |ch| ch.plen = 80.into() => (FatalErrorStatus::InvalidPduHeaderField, 3),
    "a data offset that is no multiple of 4": |ch| (ch.pdo, ch.plen) = (74, 100.into())
        => (FatalErrorStatus::InvalidPduHeaderField, 3),
    "a length below the header's": |ch| ch.plen = 8.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "more data than a capsule may have": |ch| (ch.pdo, ch.plen) = (72, (72 + 8196).into())
        => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "an endless capsule": |ch| (ch.pdo, ch.plen) = (72, u32::MAX.into())
        => (FatalErrorStatus::InvalidPduHeaderField, 4),
};

const WRONG_DATA: &[PduCase<H2cData>] = &table! {
    "another command": |pdu| pdu.cccid = 9.into() => (FatalErrorStatus::InvalidPduHeaderField, 8),
    "a tag that was not given": |pdu| pdu.ttag = 7.into() => (FatalErrorStatus::InvalidPduHeaderField, 10),
    "lengths that differ": |pdu| pdu.datal = 8.into() => (FatalErrorStatus::InvalidPduHeaderField, 16),
    "an offset that is not next": |pdu| pdu.datao = 4096.into() => (FatalErrorStatus::DataTransferOutOfRange, 0),
    "not the last, but said to be": |pdu| pdu.ch.flags.set_last_pdu(true)
        => (FatalErrorStatus::InvalidPduHeaderField, 1),
    "more than MAXH2CDATA": |pdu| pdu.ch.plen = (24 + 4100).into() => (FatalErrorStatus::LimitExceeded, 0),
    "no data": |pdu| pdu.ch.plen = 24.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "a data digest flag": |pdu| pdu.ch.flags.set_ddgst(true) => (FatalErrorStatus::InvalidPduHeaderField, 1),
};

/// A target that accepts 4 KiB of data per PDU.
fn takes_small_pdus() -> Target {
    Target::with(TcpOptions {
        h2c_data_bytes_max: 4096,
        ..TcpOptions::new(loopback())
    })
}

#[track_caller]
fn nothing_is_left(target: &Target) {
    eventually("the connections' end", || target.server.connections() == 0);
    assert_eq!(target.controllers(), 0);
}

#[test]
fn every_malformed_beginning_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_BEGINNINGS {
        let mut pdu = initialize(DigestFlags::new());
        spoil(&mut pdu);
        let mut raw = Raw::plain(target.address());
        raw.send(pdu.as_bytes());
        raw.expect_end(*status, *information, pdu.as_bytes(), what);
    }
    nothing_is_left(&target);
}

#[test]
fn every_malformed_capsule_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_CAPSULES {
        let mut capsule = CapsuleCmd {
            ch: header(PduType::CapsuleCmd, PduFlags::new(), 0, 72),
            ccsqe: SubmissionEntry::default(),
        };
        spoil(&mut capsule.ch);
        let mut raw = Raw::open(target.address(), DigestFlags::new());
        raw.send(capsule.as_bytes());
        raw.expect_end(*status, *information, capsule.as_bytes(), what);
    }
    let again = initialize(DigestFlags::new());
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    raw.send(again.as_bytes());
    raw.expect_end(
        FatalErrorStatus::PduSequenceError,
        0,
        again.as_bytes(),
        "a second ICReq",
    );
    nothing_is_left(&target);
}

/// I/O queues accept the announced amount of data in a capsule, in pieces of any length, but not
/// four bytes more.
#[test]
fn capsules_of_io_queues_carry_what_they_may() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let connect = |id| {
        let mut raw = Raw::open(target.address(), DigestFlags::new());
        let (command, data) = connect_command(&target.host(), controller.id(), id, 4);
        let completion = raw.command(as_entry(&command), data.as_bytes());
        assert_eq!(completion.status.status(), Status::SUCCESS);
        raw
    };
    let mut raw = connect(1);
    let content = random_bytes(4, IO_IN_CAPSULE_BYTES);
    let entry = block_command(IoOpcode::Write, 1, 0, (IO_IN_CAPSULE_BYTES / 4096) as u32);
    let pdu = raw.capsule(entry, &content, false);
    for piece in [0, 1, 7, 8, 71, 72, 73, 5000, 70000, pdu.len()].windows(2) {
        raw.send(&pdu[piece[0]..piece[1]]);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    assert_eq!(read(&mut controller.io_queue(2, 4).unwrap(), 0, content.len()), content);
    // Extra data is ignored, and missing data is an error.
    let more = raw.command(block_command(IoOpcode::Write, 1, 50, 1), &content);
    assert_eq!(more.status.status(), Status::SUCCESS);
    let less = raw.command(block_command(IoOpcode::Write, 1, 50, 8), &content[..16384]);
    assert_eq!(less.status.status(), Status::DATA_SGL_LENGTH_INVALID);

    let mut raw = connect(3);
    let too_much = raw.capsule(entry, &[0; IO_IN_CAPSULE_BYTES + 4], false);
    raw.send(&too_much[..72]);
    raw.expect_end(
        FatalErrorStatus::InvalidPduHeaderField,
        4,
        &too_much,
        "too much in a capsule",
    );
    // The admin queue has another limit.
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    let too_much = raw.capsule(SubmissionEntry::default(), &[0; 8196], false);
    raw.send(&too_much[..72]);
    raw.expect_end(
        FatalErrorStatus::InvalidPduHeaderField,
        4,
        &too_much,
        "too much for an admin queue",
    );
}

/// Requested data follows full capsules that exceed the memory limit. Neither blocks the other.
#[test]
fn capsules_do_not_wait_for_the_data_behind_them() {
    let limits = Limits {
        bytes_in_flight: 256 << 10,
        ..Limits::default()
    };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 64);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    // One write holds the whole limit.
    const BYTES: usize = 256 << 10;
    let mut entry = block_command(IoOpcode::Write, 1, 0, (BYTES / 4096) as u32);
    entry.cid = 40.into();
    entry.set_sgl1(sgl(BYTES, false));
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    let mut message = Vec::new();
    let content = random_bytes(5, IO_IN_CAPSULE_BYTES);
    for cid in 0..20u16 {
        let blocks = (IO_IN_CAPSULE_BYTES / 4096) as u32;
        let mut entry = block_command(IoOpcode::Write, 1, (u64::from(cid) + 2) * u64::from(blocks), blocks);
        entry.cid = cid.into();
        message.extend(raw.capsule(entry, &content, false));
    }
    let data = H2cData {
        ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + BYTES),
        cccid: request.cccid,
        ttag: request.ttag,
        datal: (BYTES as u32).into(),
        ..H2cData::default()
    };
    message.extend_from_slice(data.as_bytes());
    message.extend(random_bytes(6, BYTES));
    raw.send(&message);
    let mut done: Vec<u16> = (0..21)
        .map(|_| {
            let completion = raw.completion();
            assert_eq!(completion.status.status(), Status::SUCCESS);
            completion.cid.get()
        })
        .collect();
    done.sort_unstable();
    assert_eq!(done, (0..20).chain([40]).collect::<Vec<u16>>());
}

#[test]
fn every_malformed_data_pdu_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_DATA {
        let (_controller, mut raw, request) = with_request(&target, 16384);
        let mut pdu = H2cData {
            ch: header(PduType::H2cData, PduFlags::new(), 24, 24 + 4096),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: 4096.into(),
            ..H2cData::default()
        };
        spoil(&mut pdu);
        raw.send(pdu.as_bytes());
        raw.expect_end(*status, *information, pdu.as_bytes(), what);
    }
    let what = "data that nobody asked for";
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let unasked = H2cData {
        ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 28),
        datal: 4.into(),
        ..H2cData::default()
    };
    raw.send(unasked.as_bytes());
    raw.expect_end(FatalErrorStatus::InvalidPduHeaderField, 10, unasked.as_bytes(), what);
    nothing_is_left(&target);
}

/// A host with a data request for a write, and its controller.
fn with_request(target: &Target, bytes: usize) -> (RemoteController, Raw, R2t) {
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    assert_eq!(
        raw.command(as_entry(&command), data.as_bytes()).status.status(),
        Status::SUCCESS
    );
    let mut entry = block_command(IoOpcode::Write, 1, 0, (bytes / 4096) as u32);
    entry.cid = 40.into();
    entry.set_sgl1(sgl(bytes, false));
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    assert_eq!(
        (request.cccid.get(), request.r2to.get(), request.r2tl.get()),
        (40, 0, bytes as u32)
    );
    (controller, raw, request)
}

#[test]
fn a_host_may_end_the_connection_itself() {
    let target = Target::start();
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let request = TermReq {
        ch: header(PduType::H2cTermReq, PduFlags::new(), 0, 24 + 72),
        fes: 1.into(),
        ..TermReq::default()
    };
    raw.send(request.as_bytes());
    raw.send(&[0; 72]);
    assert_eq!(raw.pdu(), None);
    eventually("the controller's end", || target.controllers() == 0);
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let target = Target::start();
    let digests = DigestFlags::new().with_hdgst_enable(true);
    let mut raw = Raw::connected(&target, digests);
    let keep_alive = SubmissionEntry {
        opcode: AdminOpcode::KeepAlive.code(),
        ..SubmissionEntry::default()
    };
    let mut pdu = raw.capsule(keep_alive, &[], false);
    raw.send(&pdu);
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    pdu[40] ^= 1;
    raw.send(&pdu);
    let digest = u32::from_le_bytes(pdu[72..76].try_into().unwrap());
    raw.expect_end(FatalErrorStatus::HeaderDigestError, digest, &pdu, "a header digest");
}

#[test]
fn a_wrong_data_digest_fails_the_command_only() {
    let target = Target::start();
    let digests = DigestFlags::new().with_ddgst_enable(true);
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut checker = controller.io_queue(2, 8).unwrap();
    write(&mut checker, 0, &[1; 16384]);
    let mut raw = Raw::open(target.address(), digests);
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    raw.send(&raw.capsule(as_entry(&command), data.as_bytes(), true));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);

    // In the capsule.
    let mut pdu = raw.capsule(block_command(IoOpcode::Write, 1, 0, 1), &[2; 4096], true);
    pdu[1000] ^= 0x80;
    raw.send(&pdu);
    let completion = raw.completion();
    assert_eq!(completion.status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    assert!(!completion.status.dnr(), "the same command may be tried again");
    // In the first of two data PDUs.
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    raw.send(&raw.capsule(entry, &[], true));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    for (offset, wrong) in [(0u32, 1), (8192, 0)] {
        let last = offset > 0;
        let data = H2cData {
            ch: header(
                PduType::H2cData,
                PduFlags::new().with_ddgst(true).with_last_pdu(last),
                24,
                24 + 8192 + 4,
            ),
            cccid: request.cccid,
            ttag: request.ttag,
            datao: offset.into(),
            datal: 8192.into(),
            ..H2cData::default()
        };
        raw.send(data.as_bytes());
        raw.send(&[2; 8192]);
        raw.send(&(crc32c::crc32c(&[2; 8192]) ^ wrong).to_le_bytes());
    }
    assert_eq!(raw.completion().status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    // In a capsule that arrives in pieces.
    let mut pdu = raw.capsule(block_command(IoOpcode::Write, 1, 0, 4), &[2; 16384], true);
    *pdu.last_mut().unwrap() ^= 1;
    for piece in pdu.chunks(6000) {
        raw.send(piece);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(raw.completion().status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    assert_eq!(read(&mut checker, 0, 16384), [1; 16384], "nothing was written");
    // A correct digest is accepted.
    raw.send(&raw.capsule(block_command(IoOpcode::Write, 1, 0, 1), &[2; 4096], true));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    assert_eq!(read(&mut checker, 0, 4096), [2; 4096]);
    controller.keep_alive().unwrap();
}

/// Description of an error in a Connect of a host whose controller has this identifier, its
/// injection, and the completion.
type ConnectCase = (
    &'static str,
    fn(&mut ConnectCommand, &mut ConnectData, u16),
    (Status, u32),
);

const INVALID_CONNECT: Status = Status::CONNECT_INVALID_PARAMETERS;
/// IATTR: the offset is in the data.
const IN_DATA: u32 = 1 << 16;

const WRONG_CONNECTS: &[ConnectCase] = &table! {
    "record format": |command, _, _| command.recfmt = 1.into() => (Status::CONNECT_INCOMPATIBLE_FORMAT, 0),
    "queue of one entry": |command, _, _| command.sqsize = 0.into() => (INVALID_CONNECT, 44),
    "queue too large": |command, _, _| command.sqsize = 4096.into() => (INVALID_CONNECT, 44),
    "another subsystem": |_, data, _| data.subnqn = name("nqn.2026-01.io.warp:other")
        => (INVALID_CONNECT, IN_DATA | 256),
    "no subsystem": |_, data, _| data.subnqn = [0; 256] => (INVALID_CONNECT, IN_DATA | 256),
    "an endless name": |_, data, _| data.subnqn = [b'n'; 256] => (INVALID_CONNECT, IN_DATA | 256),
    "a host that is no NQN": |_, data, _| data.hostnqn = name("somebody") => (INVALID_CONNECT, IN_DATA | 512),
    "a host that is no text": |_, data, _| data.hostnqn[5] = 0xff => (INVALID_CONNECT, IN_DATA | 512),
    "a host with a long name": |_, data, _| data.hostnqn[32..225].fill(b'x') => (INVALID_CONNECT, IN_DATA | 512),
    "a static controller": |_, data, _| data.cntlid = CNTLID_STATIC.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a chosen controller": |_, data, _| data.cntlid = 1.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a queue of nobody": |command, _, _| command.qid = 1.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a queue too many": |command, data, id| (command.qid, data.cntlid) = (5.into(), id.into())
        => (INVALID_CONNECT, 42),
    "another host's controller": |command, data, id| {
        (command.qid, data.cntlid, data.hostid) = (1.into(), id.into(), [9; 16]);
    } => (INVALID_CONNECT, IN_DATA | 16),
    "a controller that is not enabled": |command, data, id| (command.qid, data.cntlid) = (1.into(), id.into())
        => (Status::COMMAND_SEQUENCE_ERROR, 0),
    "an I/O queue of the discovery subsystem": |command, data, _| {
        (command.qid, data.subnqn) = (1.into(), name(DISCOVERY_NQN));
    } => (INVALID_CONNECT, 42),
};

fn name(text: &str) -> [u8; 256] {
    let mut field = [0; 256];
    field[..text.len()].copy_from_slice(text.as_bytes());
    field
}

#[test]
fn wrong_connects_are_refused_with_the_place_of_the_mistake() {
    let target = Target::start();
    let controller = RemoteController::connect_disabled(&target.host()).unwrap();
    // A single connection, because a host may repeat a refused Connect.
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    for (what, spoil, expected) in WRONG_CONNECTS {
        let (mut command, mut data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
        spoil(&mut command, &mut data, controller.id());
        let completion = raw.command(as_entry(&command), data.as_bytes());
        let got = (completion.status.status(), completion.dw0.get());
        assert_eq!(got, *expected, "{what}");
        assert!(completion.status.dnr(), "{what}");
    }
    assert_eq!(target.controllers(), 1);
}

/// A command with its data.
type Sent<'a> = (SubmissionEntry, &'a [u8]);

#[test]
fn a_queue_begins_with_one_whole_connect() {
    let target = Target::start();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let (connect, data) = (as_entry(&command), data.as_bytes());
    let identify = SubmissionEntry {
        opcode: AdminOpcode::Identify.code(),
        ..SubmissionEntry::default()
    };
    let get = property(FabricsCommandType::PropertyGet, 0, 0);
    let steps: &[(&str, Sent, Status)] = &table! {
        "short data": (connect, &data[..1020]) => Status::DATA_SGL_LENGTH_INVALID,
        "anything else before": (identify, &[]) => Status::COMMAND_SEQUENCE_ERROR,
        "a property before": (get, &[]) => Status::COMMAND_SEQUENCE_ERROR,
        "the right one": (connect, data) => Status::SUCCESS,
        "a second one": (connect, data) => Status::COMMAND_SEQUENCE_ERROR,
    };
    for (what, (entry, data), status) in steps {
        assert_eq!(raw.command(*entry, data).status.status(), *status, "{what}");
    }
}

#[test]
fn queues_are_connected_once_and_not_to_discovery_controllers() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let _queue = controller.io_queue(1, 16).unwrap();
    let twice = controller.io_queue(1, 16).map(|_| ());
    assert!(
        matches!(
            twice,
            Err(InitiatorError::Command {
                status: Status::COMMAND_SEQUENCE_ERROR,
                ..
            })
        ),
        "{twice:?}"
    );
    // A controller of the discovery subsystem has no I/O queues under any name.
    let discovery = RemoteController::connect(&target.host().discovery()).unwrap();
    let (mut command, mut data) = connect_command(&target.host(), discovery.id(), 1, 16);
    (command.qid, data.cntlid) = (1.into(), discovery.id().into());
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let completion = raw.command(as_entry(&command), data.as_bytes());
    let got = (completion.status.status(), completion.dw0.get());
    assert_eq!(got, (INVALID_CONNECT, IN_DATA | 16));
}

#[test]
fn more_controllers_than_there_are_are_refused_for_now() {
    let target = Target::start();
    let _controllers: Vec<RemoteController> = (0..4)
        .map(|_| RemoteController::connect(&target.host()).unwrap())
        .collect();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::CONNECT_CONTROLLER_BUSY);
    assert!(!completion.status.dnr());
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

#[test]
fn wrong_properties_and_fabrics_commands_have_their_statuses() {
    use FabricsCommandType::{Disconnect, PropertyGet, PropertySet};
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    let mut unknown = property(PropertyGet, 0, 0);
    unknown.nsid = 0x33.into();
    let create = SubmissionEntry {
        opcode: AdminOpcode::CreateIoSubmissionQueue.code(),
        ..SubmissionEntry::default()
    };
    let all: &[(&str, SubmissionEntry, Status)] = &table! {
        "a readable one": property(PropertyGet, 1, 0) => Status::SUCCESS,
        "of the wrong size": property(PropertyGet, 0, 0) => Status::INVALID_FIELD,
        "a small one as a large one": property(PropertyGet, 1, 0x14) => Status::INVALID_FIELD,
        "in the middle of one": property(PropertyGet, 0, 0x13) => Status::INVALID_FIELD,
        "a set of a read-only one": property(PropertySet, 1, 0) => Status::INVALID_FIELD,
        "a subsystem reset (CAP.NSSRS is 0)": property(PropertySet, 0, 0x20) => Status::INVALID_FIELD,
        "a disconnect": property(Disconnect, 0, 0) => Status::INVALID_COMMAND_OPCODE,
        "an unknown type": unknown => Status::INVALID_COMMAND_OPCODE,
        "a queue that is not connected": create => Status::INVALID_COMMAND_OPCODE,
    };
    for (what, entry, status) in all {
        assert_eq!(
            controller.admin(*entry, CommandData::None).unwrap().status(),
            *status,
            "{what}"
        );
    }
    let on_io_queue = queue.command(property(PropertyGet, 1, 0), CommandData::None).unwrap();
    assert_eq!(on_io_queue.status(), Status::INVALID_COMMAND_OPCODE);
}

#[test]
fn wrong_data_pointers_have_their_statuses() {
    let target = Target::start();
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let identify = |descriptor: SglDescriptor| {
        let mut entry = SubmissionEntry {
            opcode: AdminOpcode::Identify.code(),
            cdw10: u32::from(Cns::Controller.code()).into(),
            ..SubmissionEntry::default()
        };
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        entry.set_sgl1(descriptor);
        entry
    };
    let other = |id: u8| {
        let mut descriptor = sgl(4096, false);
        descriptor.id = id.into();
        identify(descriptor)
    };
    let mut prps = identify(sgl(4096, false));
    prps.flags.set_psdt(0);
    // Host Behavior Support needs 512 bytes, but the capsule has none.
    let mut empty = identify(sgl(512, true));
    (empty.opcode, empty.cdw10) = (AdminOpcode::SetFeatures.code(), 0x16.into());
    let all: &[(&str, SubmissionEntry, Status)] = &table! {
        "PRPs": prps => Status::INVALID_FIELD,
        "less than the command moves": identify(sgl(4092, false)) => Status::DATA_SGL_LENGTH_INVALID,
        "a data block with an address": other(0x00) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "a segment": other(0x20) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "data for the host in the capsule": identify(sgl(4096, true)) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "data that the capsule does not have": empty => Status::SGL_OFFSET_INVALID,
    };
    let send = |raw: &Raw, entry: SubmissionEntry| {
        let capsule = CapsuleCmd {
            ch: header(PduType::CapsuleCmd, PduFlags::new(), 0, 72),
            ccsqe: entry,
        };
        raw.send(capsule.as_bytes());
    };
    for (what, entry, status) in all {
        send(&raw, *entry);
        assert_eq!(raw.completion().status.status(), *status, "{what}");
    }
    // An SGL longer than the transfer is allowed (SGLS bit 18), in either direction.
    send(&raw, identify(sgl(8192, false)));
    let data = raw.pdu().unwrap();
    assert_eq!((data[0], data.len()), (PduType::C2hData.code(), 24 + 4096));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    let mut set = SubmissionEntry {
        opcode: AdminOpcode::SetFeatures.code(),
        cdw10: 0x16.into(),
        ..SubmissionEntry::default()
    };
    set.cid = 9.into();
    raw.send(&raw.capsule(set, &[0; 1024], false));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
}

// ---------------------------------------------------------------------------------------------------------- limits --

/// Behaves like Linux on a machine of 128 processors, with multipath.
#[test]
fn a_host_has_the_queues_that_it_is_granted_on_two_paths_and_more() {
    let target = Target::with_queues(128);
    let mut granted = Vec::new();
    let (mut controllers, mut connected) = (Vec::new(), Vec::new());
    for path in 0..3 {
        let mut controller = RemoteController::connect(&target.host()).unwrap();
        let queues = controller.set_queue_count(200).unwrap();
        for queue in 1..=queues {
            let queue = controller.io_queue(queue, 16);
            connected.push(queue.unwrap_or_else(|error| panic!("path {path}, of {queues} queues: {error}")));
        }
        let beyond = controller.io_queue(queues + 1, 16).map(|_| ()).unwrap_err();
        // At the host's connection limit, that limit is reported first.
        let is_right = path == 2 || beyond.to_string().contains("Invalid Parameters");
        assert!(is_right, "{beyond}");
        granted.push(queues);
        write(connected.last_mut().unwrap(), 0, &[path; 4096]);
        controllers.push(controller);
    }
    assert_eq!(granted[..2], [128, 128]);
    assert!(
        (1..128).contains(&granted[2]),
        "{} are left for a third path",
        granted[2]
    );
}

/// Behaves like SPDK's programs.
#[test]
fn a_host_may_connect_all_queues_at_once() {
    let target = Target::with_queues(128);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut begun: Vec<Raw> = (0..128)
        .map(|_| Raw::open(target.address(), DigestFlags::new()))
        .collect();
    for (queue, raw) in (1..).zip(&mut begun) {
        let (command, data) = connect_command(&target.host(), controller.id(), queue, 16);
        let completion = raw.command(as_entry(&command), data.as_bytes());
        assert_eq!(completion.status.status(), Status::SUCCESS, "queue {queue}");
    }
}

#[test]
fn the_number_of_queues_is_set_before_there_are_any() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(controller.set_queue_count(2).unwrap(), 2);
    assert_eq!(controller.set_queue_count(3).unwrap(), 3, "again");
    let queue = controller.io_queue(3, 16).unwrap();
    let late = controller.set_queue_count(2).unwrap_err();
    assert!(late.to_string().contains("Command Sequence Error"), "{late}");
    drop(queue);
    let start = Instant::now();
    while controller.set_queue_count(2).is_err() {
        assert!(start.elapsed() < PATIENCE, "the queue does not end");
    }
}

#[test]
fn connections_are_limited_in_all_and_half_open_and_for_each_host() {
    let limits = Limits {
        connections: 6,
        half_open: 2,
        connections_per_host: 3,
        ..Limits::default()
    };
    let target = Target::limited(limits);
    let refused = || {
        let mut stream = TcpStream::connect(target.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // Closed immediately, without an answer.
        matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_))
    };
    let mut half_open: Vec<Raw> = (0..3)
        .map(|_| Raw::open(target.address(), DigestFlags::new()))
        .collect();
    assert_eq!(half_open[0].pdu(), None, "the third takes the place of the first");
    drop(half_open);
    eventually("the half-open ones' end", || target.server.connections() == 0);

    // Each completed Connect counts before the next request.
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let _queues: Vec<TcpQueue> = (1..=2).map(|id| controller.io_queue(id, 16).unwrap()).collect();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 3, 16);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(
        completion.status.status(),
        Status::CONNECT_CONTROLLER_BUSY,
        "a fourth connection of the host"
    );
    drop(raw);
    eventually("its end", || target.server.connections() == 3);
    let other = HostOptions {
        host_nqn: "nqn.2026-01.io.warp:other-host".to_string(),
        ..target.host()
    };
    let others = RemoteController::connect(&other).unwrap();
    let _others_queues: Vec<TcpQueue> = (1..=2).map(|id| others.io_queue(id, 16).unwrap()).collect();
    assert!(refused(), "a seventh connection");
    controller.keep_alive().unwrap();
}

#[test]
fn a_host_that_does_not_connect_is_hung_up_on() {
    let limits = Limits {
        handshake: Duration::from_millis(50),
        ..Limits::default()
    };
    let target = Target::limited(limits);
    let start = Instant::now();
    let mut silent = Raw::plain(target.address());
    let mut initialized = Raw::open(target.address(), DigestFlags::new());
    let mut half_a_pdu = Raw::plain(target.address());
    half_a_pdu.send(&initialize(DigestFlags::new()).as_bytes()[..100]);
    assert_eq!(silent.pdu(), None);
    assert_eq!(initialized.pdu(), None);
    assert_eq!(half_a_pdu.pdu(), None);
    assert!(start.elapsed() >= limits.handshake);
    eventually("their end", || target.server.connections() == 0);
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 4);
    assert_eq!(
        raw.command(as_entry(&command), data.as_bytes()).status.status(),
        Status::SUCCESS
    );
    // Writes whose data is not sent stay outstanding.
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    for cid in 0..4u16 {
        entry.cid = cid.into();
        raw.send(&raw.capsule(entry, &[], false));
        let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
        assert_eq!(request.cccid.get(), cid);
    }
    let fifth = raw.capsule(entry, &[], false);
    raw.send(&fifth);
    raw.expect_end(FatalErrorStatus::PduSequenceError, 0, &fifth, "a fifth command");
}

#[test]
fn data_is_asked_for_only_as_far_as_there_is_room_for_it() {
    let limits = Limits {
        bytes_in_flight: 256 << 10,
        ..Limits::default()
    };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 64);
    assert_eq!(
        raw.command(as_entry(&command), data.as_bytes()).status.status(),
        Status::SUCCESS
    );
    // Five writes of 100 KiB, of which two fit into the limit. A read shows that no other data was
    // requested before its completion.
    const BYTES: usize = 100 << 10;
    let mut entry = block_command(IoOpcode::Write, 1, 0, (BYTES / 4096) as u32);
    entry.set_sgl1(sgl(BYTES, false));
    for cid in 0..5u16 {
        entry.cid = cid.into();
        entry.cdw10 = (u32::from(cid) * 32).into();
        raw.send(&raw.capsule(entry, &[], false));
    }
    let mut flush = block_command(IoOpcode::Flush, 1, 0, 1);
    flush.cid = 50.into();
    raw.send(&raw.capsule(flush, &[], false));
    let mut requests = Vec::new();
    let mut seen = loop {
        let pdu = raw.pdu().unwrap();
        match R2t::read_from_bytes(&pdu) {
            Ok(request) if request.ch.pdu_type == PduType::R2t.code() => requests.push(request),
            _ => break 1,
        }
    };
    // The granted requests may come before or after the flush, which does not wait for data.
    while requests.len() < 2 {
        requests.push(R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap());
    }
    assert_eq!(
        requests.iter().map(|request| request.cccid.get()).collect::<Vec<_>>(),
        [0, 1]
    );
    // Each finished write makes room for the next one.
    let content = random_bytes(3, BYTES);
    let mut next = 2;
    while let Some(request) = requests.pop() {
        let data = H2cData {
            ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + BYTES),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: (BYTES as u32).into(),
            ..H2cData::default()
        };
        raw.send(data.as_bytes());
        raw.send(&content);
        let mut completed = false;
        while !completed || (next < 5 && requests.len() < 2) {
            let pdu = raw.pdu().unwrap();
            if pdu[0] == PduType::R2t.code() {
                let request = R2t::read_from_bytes(&pdu).unwrap();
                assert_eq!(request.cccid.get(), next);
                requests.push(request);
                next += 1;
            } else {
                completed = true;
                seen += 1;
            }
        }
    }
    assert_eq!((seen, next), (6, 5));
    let mut checker = controller.io_queue(2, 8).unwrap();
    for cid in 0..5 {
        assert!(read(&mut checker, cid * 32, BYTES) == content);
    }
    // A write larger than the limit is served alone.
    let data = random_bytes(4, 512 << 10);
    write(&mut checker, 1000, &data);
    assert!(read(&mut checker, 1000, data.len()) == data);
}

/// More commands in one message than a batch takes. None can continue before the data behind them
/// arrives.
#[test]
fn data_behind_many_waiting_commands_is_found() {
    let limits = Limits {
        bytes_in_flight: 16384,
        ..Limits::default()
    };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 256);
    assert_eq!(
        raw.command(as_entry(&command), data.as_bytes()).status.status(),
        Status::SUCCESS
    );
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    let data_for = |request: &R2t| {
        let data = H2cData {
            ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + 16384),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: 16384.into(),
            ..H2cData::default()
        };
        [data.as_bytes(), &[4; 16384]].concat()
    };
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    let mut message = Vec::new();
    for cid in 1..200u16 {
        entry.cid = cid.into();
        message.extend(raw.capsule(entry, &[], false));
    }
    message.extend(data_for(&request));
    raw.send(&message);
    let mut completed = 0;
    while completed < 200 {
        let pdu = raw.pdu().unwrap();
        if pdu[0] == PduType::R2t.code() {
            raw.send(&data_for(&R2t::read_from_bytes(&pdu).unwrap()));
        } else {
            completed += 1;
        }
    }
}

// -------------------------------------------------------------------------------------------------- authentication --

const SECRET: &str = "DHHC-1:01:J0qR2WNHWlQcsHLbbnAJ90qQOCgwxh9SLRo7BIMIUsGJ8cUH:";
const OTHER_SECRET: &str = "DHHC-1:00:4lrDhF+MvhKAGi36WonUxV3EeQDztu3Jqe5ZDzwrkxL2ZdADnJOCi3tY8zlQvIF6ov77qA==:";
const CONTROLLER_SECRET: &str =
    "DHHC-1:03:l/KQ4OkeYQDWzmMSbhlDILpjnzQfCiuq2I9XcNP7qRwJN4osyA2MfNxVYjRaGYUZJ9iEh+4P/PxnrPl9z562aM79+jk=:";

/// A target that requires [`HOST`]'s secret, and has its own secret.
fn guarded() -> Target {
    Target::with(TcpOptions {
        hosts: vec![
            AllowedHost {
                nqn: HOST.to_string(),
                secret: Some(SECRET.parse().unwrap()),
                controller_secret: Some(CONTROLLER_SECRET.parse().unwrap()),
                group_min: DhGroupId::Null,
            },
            AllowedHost {
                nqn: "nqn.2026-01.io.warp:plain-host".to_string(),
                secret: None,
                controller_secret: None,
                group_min: DhGroupId::Null,
            },
        ],
        ..TcpOptions::new(loopback())
    })
}

fn with_secret(target: &Target, secret: &str) -> HostOptions {
    HostOptions {
        secret: Some(secret.parse().unwrap()),
        ..target.host()
    }
}

#[test]
fn hosts_authenticate_with_every_hash_and_group() {
    let target = guarded();
    for &hash in HashId::ALL {
        for &group in DhGroupId::ALL {
            let options = HostOptions {
                hashes: vec![hash],
                groups: vec![group],
                controller_secret: (group != DhGroupId::Null).then(|| CONTROLLER_SECRET.parse().unwrap()),
                ..with_secret(&target, SECRET)
            };
            let mut controller =
                RemoteController::connect(&options).unwrap_or_else(|error| panic!("{hash}, {group}: {error}"));
            controller.keep_alive().unwrap();
        }
    }
    // With every offer, on admin and I/O queues and for discovery.
    let options = with_secret(&target, SECRET);
    let controller = RemoteController::connect(&options).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[8; 4096]);
    assert_eq!(read(&mut queue, 0, 4096), [8; 4096]);
    RemoteController::connect(&options.discovery())
        .unwrap()
        .discover()
        .unwrap();
    // A host without a secret need not authenticate.
    let plain = HostOptions {
        host_nqn: "nqn.2026-01.io.warp:plain-host".to_string(),
        ..target.host()
    };
    RemoteController::connect(&plain).unwrap();
}

#[test]
fn hosts_that_cannot_prove_who_they_are_stay_out() {
    let target = guarded();
    let error = |options: &HostOptions| RemoteController::connect(options).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error(&with_secret(&target, OTHER_SECRET)),
        "authentication failed, because the controller refused it (Authentication failed)"
    );
    assert_eq!(
        error(&target.host()),
        "authentication failed, because the controller requires it but no secret was given"
    );
    let unknown = HostOptions {
        host_nqn: "nqn.2026-01.io.warp:unknown".to_string(),
        ..with_secret(&target, SECRET)
    };
    assert_eq!(error(&unknown), "Connect failed with Connect Invalid Host");
    let deceived = HostOptions {
        controller_secret: Some(OTHER_SECRET.parse().unwrap()),
        ..with_secret(&target, SECRET)
    };
    assert_eq!(
        error(&deceived),
        "authentication failed, because the controller did not prove its identity"
    );
    // An I/O queue must authenticate too, with the correct secret.
    let controller = RemoteController::connect(&with_secret(&target, SECRET)).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.dw0.get() >> 16, 2, "authentication is required (ATR)");
    let mut write = block_command(IoOpcode::Write, 1, 0, 1);
    write.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
    let completion = raw.command(write, &[1; 4096]);
    assert_eq!(completion.status.status(), Status::AUTHENTICATION_REQUIRED);
    drop((raw, controller));
    eventually("the association's end", || target.controllers() == 0);
}

/// An authentication command that sends or receives a message.
fn authentication(kind: FabricsCommandType, bytes: usize) -> AuthenticationCommand {
    AuthenticationCommand {
        opcode: OPCODE,
        fctype: kind.code(),
        spsp0: 1,
        spsp1: 1,
        secp: SECURITY_PROTOCOL,
        length: (bytes as u32).into(),
        ..AuthenticationCommand::default()
    }
}

#[test]
fn nothing_but_authentication_is_taken_before_it() {
    let target = guarded();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).dw0.get() >> 16, 2);
    let get = property(FabricsCommandType::PropertyGet, 1, 0);
    for opcode in [
        AdminOpcode::Identify,
        AdminOpcode::KeepAlive,
        AdminOpcode::AsynchronousEventRequest,
    ] {
        let entry = SubmissionEntry {
            opcode: opcode.code(),
            ..SubmissionEntry::default()
        };
        assert_eq!(
            raw.command(entry, &[]).status.status(),
            Status::AUTHENTICATION_REQUIRED,
            "{opcode}"
        );
    }
    assert_eq!(raw.command(get, &[]).status.status(), Status::AUTHENTICATION_REQUIRED);
    let mut other = authentication(FabricsCommandType::AuthenticationSend, 8);
    other.secp = 0xea;
    assert_eq!(
        raw.command(as_entry(&other), &[0; 8]).status.status(),
        Status::INVALID_FIELD
    );
    let mut other = authentication(FabricsCommandType::AuthenticationSend, 8);
    other.spsp0 = 0;
    assert_eq!(
        raw.command(as_entry(&other), &[0; 8]).status.status(),
        Status::INVALID_FIELD
    );
    for length in [0, 4097, u32::MAX as usize] {
        let other = authentication(FabricsCommandType::AuthenticationSend, length);
        assert_eq!(
            raw.command(as_entry(&other), &[0; 8]).status.status(),
            Status::INVALID_FIELD,
            "{length}"
        );
    }
    // Without a secret, authentication commands fail.
    let open = Target::start();
    let mut raw = Raw::connected(&open, DigestFlags::new());
    let send = authentication(FabricsCommandType::AuthenticationSend, 8);
    assert_eq!(
        raw.command(as_entry(&send), &[0; 8]).status.status(),
        Status::INVALID_COMMAND_OPCODE
    );
}

/// An authentication message in transaction 5.
fn message(kind: u8, id: u8, rest: &[u8]) -> Vec<u8> {
    let header = MessageHeader {
        auth_type: kind,
        auth_id: id,
        t_id: 5.into(),
        ..MessageHeader::default()
    };
    [header.as_bytes(), rest].concat()
}

/// A protocol descriptor: DH-HMAC-CHAP, hashes and groups.
fn descriptor(protocol: u8, hashes: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 66];
    (bytes[1], bytes[2], bytes[4], bytes[5]) = (1, protocol, hashes.len() as u8, groups.len() as u8);
    bytes[6..][..hashes.len()].copy_from_slice(hashes);
    bytes[36..][..groups.len()].copy_from_slice(groups);
    bytes
}

fn negotiate(rest: &[u8]) -> Vec<u8> {
    message(AUTH_TYPE_COMMON, MessageId::Negotiate.code(), rest)
}

/// A host that must authenticate.
fn unproved(target: &Target) -> Raw {
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    raw
}

#[track_caller]
fn send_message(raw: &mut Raw, message: &[u8]) {
    let send = authentication(FabricsCommandType::AuthenticationSend, message.len());
    let completion = raw.command(as_entry(&send), message);
    assert_eq!(completion.status.status(), Status::SUCCESS);
}

fn fetch_message(raw: &mut Raw) -> Vec<u8> {
    let mut receive = as_entry(&authentication(FabricsCommandType::AuthenticationReceive, 4096));
    receive.set_sgl1(sgl(4096, false));
    raw.send(&raw.capsule(receive, &[], false));
    let data = raw.pdu().unwrap();
    assert_eq!(data[0], PduType::C2hData.code());
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    data[24..].to_vec()
}

#[test]
fn wrong_authentication_messages_are_answered_with_their_reason_and_end_the_connection() {
    use FailureReason::*;
    let target = guarded();
    let mut with_tls = descriptor(1, &[1], &[0]);
    with_tls[0] = 1;
    let mut too_many = descriptor(1, &[1], &[0]);
    too_many[4] = 31;
    let all: &[(&str, Vec<u8>, FailureReason)] = &table! {
        "too short": vec![0; 4] => IncorrectPayload,
        "no descriptor": negotiate(&[0, 1]) => IncorrectPayload,
        "more hashes than there is room": negotiate(&too_many) => IncorrectPayload,
        "another protocol": negotiate(&descriptor(2, &[1], &[0])) => ProtocolNotUsable,
        "no descriptors at all": negotiate(&[0, 0]) => ProtocolNotUsable,
        "an unknown hash": negotiate(&descriptor(1, &[9], &[0])) => HashNotUsable,
        "an unknown group": negotiate(&descriptor(1, &[1], &[9])) => DhGroupNotUsable,
        "TLS": negotiate(&with_tls) => SecureChannelConcatenationMismatch,
        "a reply first": message(AUTH_TYPE_DHCHAP, MessageId::Reply.code(), &[0; 10]) => IncorrectPayload,
        "an unknown message": message(0, 0x77, &[]) => IncorrectProtocolMessage,
        "a wrong type": message(7, MessageId::Negotiate.code(), &[0; 66]) => IncorrectProtocolMessage,
    };
    for (what, message, reason) in all {
        let mut raw = unproved(&target);
        send_message(&mut raw, message);
        let failure = fetch_message(&mut raw);
        assert_eq!(failure[1], MessageId::Failure1.code(), "{what}");
        assert_eq!((failure[6], failure[7]), (1, reason.code()), "{what}");
        assert_eq!(raw.pdu(), None, "{what}: the connection ends");
    }
    eventually("the controllers' end", || target.controllers() == 0);
}

#[test]
fn authentication_out_of_order_and_wrong_answers_end_the_connection() {
    let target = guarded();
    // A receive before any message is available.
    let mut raw = unproved(&target);
    let reason = fetch_message(&mut raw)[7];
    assert_eq!(reason, FailureReason::IncorrectProtocolMessage.code());
    assert_eq!(raw.pdu(), None);
    // A random response to a challenge, and a response in another transaction.
    for (transaction, reason) in [
        (5, FailureReason::AuthenticationFailed),
        (6, FailureReason::IncorrectPayload),
    ] {
        let mut raw = unproved(&target);
        send_message(&mut raw, &negotiate(&descriptor(1, &[1], &[0])));
        let challenge = fetch_message(&mut raw);
        assert_eq!((challenge[1], challenge[6], challenge[8], challenge[9]), (1, 32, 1, 0));
        let mut reply = message(AUTH_TYPE_DHCHAP, MessageId::Reply.code(), &[0; 74]);
        (reply[4], reply[6]) = (transaction, 32);
        send_message(&mut raw, &reply);
        assert_eq!(fetch_message(&mut raw)[7], reason.code());
        assert_eq!(raw.pdu(), None);
    }
    eventually("the controllers' end", || target.controllers() == 0);
}

// ----------------------------------------------------------------------------------------------------- any bytes --

/// A session without a socket, fed with a host's bytes.
struct Feed {
    session: TcpSession,
    random: Xoshiro256PlusPlus,
    /// Number of calls of [`TcpSession::advance`].
    steps: usize,
    /// Bytes fed to the session.
    bytes: usize,
    sent: Vec<u8>,
}

impl Feed {
    /// Feeds bytes in pieces of random sizes.
    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), DisconnectReason> {
        loop {
            self.steps += 1;
            match self.session.advance() {
                Ok(SessionTask::Send) => {
                    let slices = self.session.output().slices();
                    self.sent.extend(slices.iter().flat_map(|slice| slice.iter().copied()));
                    self.session.sent();
                }
                Ok(SessionTask::Sync) => self.session.sync(),
                Ok(SessionTask::Compute) => self.session.run_dh(Instant::now() + PATIENCE),
                Ok(SessionTask::Wait { input, until }) => {
                    assert!(input && until.is_none(), "there is room, and nothing is held");
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let mut taken = 0;
                    let most = self.random.random_range(1..=bytes.len());
                    for slice in &mut self.session.input() {
                        let length = slice.len().min(most - taken);
                        slice[..length].copy_from_slice(&bytes[taken..taken + length]);
                        taken += length;
                    }
                    self.session.received(taken);
                    self.bytes += taken;
                    bytes = &bytes[taken..];
                }
                Err(closing) => return Err(closing),
            }
        }
    }

    /// Answers the data requests in the output, as far as they are valid.
    fn answers(&mut self) -> Vec<u8> {
        let mut answers = Vec::new();
        let sent = std::mem::take(&mut self.sent);
        let mut rest = sent.as_slice();
        while let Ok((common, _)) = CommonHeader::read_from_prefix(rest) {
            if let (Ok((request, _)), Some(PduType::R2t)) = (R2t::read_from_prefix(rest), PduType::from_u8(rest[0])) {
                let bytes = request.r2tl.get() as usize;
                let data = H2cData {
                    ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + bytes),
                    cccid: request.cccid,
                    ttag: request.ttag,
                    datal: request.r2tl,
                    ..H2cData::default()
                };
                answers.extend_from_slice(data.as_bytes());
                answers.resize(answers.len() + bytes, 9);
            }
            rest = &rest[common.plen.get() as usize..];
        }
        answers
    }
}

/// PDUs of a correct host: it connects, enables the controller, and sends commands of all kinds.
fn stream_of_pdus(host: &HostOptions, random: &mut Xoshiro256PlusPlus) -> Vec<Vec<u8>> {
    let capsule = |mut entry: SubmissionEntry, data: &[u8], transport_bytes: usize| {
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        entry.set_sgl1(match data.len() {
            0 => sgl(transport_bytes, false),
            bytes => sgl(bytes, true),
        });
        let offset = if data.is_empty() { 0 } else { 72 };
        let ch = header(PduType::CapsuleCmd, PduFlags::new(), offset, 72 + data.len());
        let capsule = CapsuleCmd { ch, ccsqe: entry };
        [capsule.as_bytes(), data].concat()
    };
    let (command, data) = connect_command(host, CNTLID_DYNAMIC, 0, 32);
    let mut enable = SubmissionEntry {
        opcode: OPCODE,
        cdw11: Property::Cc.code().into(),
        cdw12: Cc::new().with_en(true).with_iosqes(6).with_iocqes(4).into_bits().into(),
        ..SubmissionEntry::default()
    };
    enable.cid = 1.into();
    let mut pdus = vec![
        initialize(DigestFlags::new()).as_bytes().to_vec(),
        capsule(as_entry(&command), data.as_bytes(), 0),
        capsule(enable, &[], 0),
    ];
    for cid in 2..30u16 {
        let opcodes = [
            AdminOpcode::Identify,
            AdminOpcode::GetLogPage,
            AdminOpcode::SetFeatures,
            AdminOpcode::GetFeatures,
            AdminOpcode::Abort,
            AdminOpcode::KeepAlive,
            AdminOpcode::NamespaceAttachment,
            AdminOpcode::Fabrics,
        ];
        let mut entry = SubmissionEntry {
            opcode: opcodes[random.random_range(0..opcodes.len())].code(),
            nsid: random.random_range(0..3u32).into(),
            cdw10: random.random_range(0..0x20u32).into(),
            cdw11: random.random_range(0..4u32).into(),
            ..SubmissionEntry::default()
        };
        entry.cid = cid.into();
        let in_capsule = random_bytes(cid.into(), [0, 512, 4096, 8192][random.random_range(0..4)]);
        pdus.push(capsule(entry, &in_capsule, 4096));
    }
    pdus
}

/// Streams of PDUs with random damage, in pieces of random sizes. The session neither panics nor
/// loops, and leaves no controller behind. Undamaged streams are served completely.
#[test]
fn any_stream_of_bytes_is_survived() {
    let shared = {
        let memory = MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES));
        Arc::new(Mutex::new(
            Subsystem::new(small_drive::config(0), Box::new(memory)).unwrap(),
        ))
    };
    let clock = ServerClock::start();
    let host = HostOptions::new(loopback(), NQN);
    let context = TargetContext::new(TcpOptions::new(loopback()), Arc::clone(&shared), clock);
    let mut completed = 0;
    for seed in 0..1500u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let damage = random.random_range(0..4);
        let mut pdus = stream_of_pdus(&host, &mut random);
        for _ in 0..damage {
            let index = random.random_range(0..pdus.len());
            match random.random_range(0..5) {
                0 => {
                    pdus.remove(index);
                }
                1 => pdus.swap(0, index),
                2 => {
                    let length = random.random_range(0..pdus[index].len());
                    pdus[index].truncate(length);
                }
                _ => {
                    // Usually in the header, the most sensitive part.
                    let most = if random.random_bool(0.8) { 72 } else { pdus[index].len() };
                    let at = random.random_range(0..most.min(pdus[index].len()));
                    pdus[index][at] = random.random();
                }
            }
            if pdus.is_empty() || pdus.iter().any(Vec::is_empty) {
                break;
            }
        }
        let surroundings = ConnectionInfo {
            local: loopback(),
            peer: Ipv4Addr::LOCALHOST.into(),
            connection: Arc::new(()),
            waker: Arc::new(|| {}),
        };
        let mut feed = Feed {
            session: TcpSession::new(Arc::clone(&context), surroundings),
            random,
            steps: 0,
            bytes: 0,
            sent: Vec::new(),
        };
        let mut alive = feed.feed(&pdus.concat());
        while alive.is_ok() {
            let answers = feed.answers();
            if answers.is_empty() {
                break;
            }
            alive = feed.feed(&answers);
        }
        assert!(
            damage > 0 || alive.is_ok(),
            "seed {seed}: a good stream was refused: {alive:?}"
        );
        completed += usize::from(alive.is_ok());
        assert!(
            feed.steps <= 10 + 4 * feed.bytes,
            "seed {seed}: {} steps for {} bytes",
            feed.steps,
            feed.bytes
        );
        feed.session.close();
        assert_eq!(lock(&shared).controllers().count(), 0, "seed {seed}");
    }
    assert!(
        (400..1400).contains(&completed),
        "{completed} streams were served to the end"
    );
}

// ------------------------------------------------------------------------------------------------------ benchmark --

/// Results of a short run on a busy machine mean little. The test only checks that they exist.
#[test]
fn the_benchmark_measures() {
    let target = Target::start();
    let measured = bench::LoopbackTarget {
        address: target.address(),
        subsystem_nqn: NQN,
        thread_name: THREAD_NAME,
        capacity_bytes: CAPACITY_BYTES,
    };
    let figures = bench::run(&measured, Duration::from_millis(20)).unwrap();
    assert_eq!(figures.len(), 6);
    for figure in figures {
        assert!(
            figure.commands_per_second > 100.0 && figure.limit_per_second > 100.0,
            "{figure}"
        );
        assert!(
            figure.target_busy > Duration::ZERO && figure.initiator_busy > Duration::ZERO,
            "{figure}"
        );
    }
}
