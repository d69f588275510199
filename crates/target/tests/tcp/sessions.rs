//! Sessions of correct hosts from discovery to the end, and the benchmark.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use initiator::bench::tcp as bench;
use initiator::command::{block_command, log_page_command};
use initiator::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue, connect_command};
use nvme::FlushHandle;
use nvme_spec::command::{NAMESPACE_DELETE, NamespaceManagementCdw10};
use nvme_spec::fabrics::{CNTLID_DYNAMIC, DISCOVERY_NQN, SubsystemType, TransportType};
use nvme_spec::feature::AsyncEventConfiguration;
use nvme_spec::register::{Cap, Property, Vs};
use nvme_spec::tcp::DigestFlags;
use nvme_spec::{AdminOpcode, FeatureId, IoOpcode, LogId, Status, SubmissionEntry};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use target::lock;
use target::tcp::{THREAD_NAME, TcpOptions};
use zerocopy::IntoBytes;

use crate::small_drive::{CAPACITY_BYTES, Disk, MIB};
use crate::{IO_IN_CAPSULE_BYTES, NQN, Raw, Target, as_entry, eventually, loopback, random_bytes, read, write};

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
    assert_eq!(controller.property_get(Property::Vs).unwrap(), u64::from(Vs::V2_1.into_bits()));
    let capabilities = Cap::from_bits(controller.property_get(Property::Cap).unwrap());
    assert_eq!(u32::from(capabilities.mqes()) + 1, nvme::controller::QUEUE_ENTRIES_MAX);
    let identify = controller.identify_controller().unwrap();
    assert_eq!(identify.cntlid.get(), controller.id());
    assert_eq!(trimmed(&identify.subnqn), NQN);
    assert_eq!(identify.ioccsz.get() * 16, 64 + IO_IN_CAPSULE_BYTES as u32, "what fits into a capsule is what is told");
    assert_eq!(controller.set_queue_count(4).unwrap(), 4);
    let mut queue = controller.io_queue(1, 128).unwrap();
    for (first, bytes) in [(0, 4096), (1, 8192), (100, IO_IN_CAPSULE_BYTES), (200, MIB as usize)] {
        let data = random_bytes(first, bytes);
        write(&mut queue, first, &data);
        assert_eq!(read(&mut queue, first, bytes), data, "{bytes} bytes at block {first}");
    }
    let flush = block_command(IoOpcode::Flush, 1, 0, 1);
    assert_eq!(queue.command(flush, CommandData::None).unwrap().status(), Status::SUCCESS);
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
            pieces.extend(controller.log_page(LogId::Discovery, 0, pieces.len() as u64, bytes).unwrap());
        }
        assert_eq!(pieces[..2048], whole[..2048], "in pieces of {bytes}");
    }
    let entry = controller.discover().unwrap()[0];
    assert_eq!(trimmed(&entry.traddr), "127.0.0.1");
    assert_eq!(trimmed(&entry.trsvcid), target.address().port().to_string());
    assert_eq!((entry.trtype, entry.subtype), (TransportType::Tcp.code(), SubsystemType::Nvm.code()));
    assert_eq!((entry.adrfam, entry.cntlid.get()), (1, CNTLID_DYNAMIC));
    assert_eq!(controller.log_page(LogId::Discovery, 0, 2048, 4).unwrap(), [0; 4]);

    let status = |controller: &mut RemoteController, entry, bytes: usize| {
        let done = controller.admin(entry, CommandData::ToHost(vec![0; bytes])).unwrap();
        (done.status(), done.received)
    };
    let log = |offset| log_page_command(LogId::Discovery, 0, 0, offset, 4);
    assert_eq!(status(&mut controller, log(2052), 4), (Status::INVALID_FIELD, 0));
    assert_eq!(status(&mut controller, log(u64::MAX - 3), 4), (Status::INVALID_FIELD, 0));
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
    let target =
        Target::with(TcpOptions { advertised: Some("10.0.2.2:4420".parse().unwrap()), ..TcpOptions::new(loopback()) });
    let entry = RemoteController::connect(&target.host().discovery()).unwrap().discover().unwrap()[0];
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
            if let Some(index) = expected.iter().position(|(cid, _)| *cid == done.cid && done.received > 0) {
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
        let target = Target::with(TcpOptions { h2c_data_bytes_max: 4096, ..TcpOptions::new(loopback()) });
        let options = HostOptions { header_digest, data_digest, ..target.host() };
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
    let told: Vec<u16> = (0..10).map(|_| queue.command(read, block.clone()).unwrap().entry.sqhd.get()).collect();
    assert_eq!(told, [0, 0, 0, 0, 6, 0, 0, 0, 0, 11]);
    let flush = queue.command(block_command(IoOpcode::Flush, 1, 0, 1), CommandData::None);
    assert_eq!(flush.unwrap().entry.sqhd.get(), 12);
    let past_the_end = block_command(IoOpcode::Read, 1, u64::MAX, 1);
    let refused = queue.command(past_the_end, block).unwrap();
    assert_eq!((refused.status(), refused.entry.sqhd.get()), (Status::LBA_OUT_OF_RANGE, 13));
    let without = HostOptions { flow_control: false, ..target.host() };
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&without, CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!((completion.status.status(), completion.sqhd.get()), (Status::SUCCESS, 0xffff));
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
    assert_eq!(listener.admin(enable, CommandData::None).unwrap().status(), Status::SUCCESS);
    let request =
        SubmissionEntry { opcode: AdminOpcode::AsynchronousEventRequest.code(), ..SubmissionEntry::default() };
    let cid = listener.queue().submit(request, CommandData::None);
    // The request arrives before the event.
    listener.queue().flush().unwrap();
    listener.keep_alive().unwrap();
    let delete = SubmissionEntry {
        opcode: AdminOpcode::NamespaceManagement.code(),
        nsid: 1.into(),
        cdw10: NamespaceManagementCdw10::new().with_sel(NAMESPACE_DELETE).into_bits().into(),
        ..SubmissionEntry::default()
    };
    assert_eq!(actor.admin(delete, CommandData::None).unwrap().status(), Status::SUCCESS);
    let event = listener.queue().wait().unwrap();
    assert_eq!((event.cid, event.status()), (cid, Status::SUCCESS));
    // Notice: attached namespace attribute changed. Log page 04h has the namespace.
    assert_eq!(event.entry.dw0.get(), 0x0004_0002);
    let changed = listener.log_page(LogId::ChangedAttachedNamespaceList, 0, 0, 4096).unwrap();
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
    let lost = queue.command(block_command(IoOpcode::Read, 1, 0, 1), CommandData::ToHost(vec![0; 4096]));
    assert!(matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })), "{lost:?}");
    eventually("the I/O connection's end", || target.server.connections() == 1);
    // Commands and Connect of an I/O queue require an enabled controller.
    let identify = SubmissionEntry { opcode: AdminOpcode::Identify.code(), ..SubmissionEntry::default() };
    let done = controller.admin(identify, CommandData::ToHost(vec![0; 4096])).unwrap();
    assert_eq!(done.status(), Status::COMMAND_SEQUENCE_ERROR);
    let early = controller.io_queue(1, 16).map(|_| ());
    assert!(matches!(early, Err(InitiatorError::Command { status: Status::COMMAND_SEQUENCE_ERROR, .. })), "{early:?}");
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
        let doorbells: Vec<_> =
            (0..usize::from(nvme::pcie::QUEUES_MAX) * 2).map(|_| std::sync::atomic::AtomicU32::new(0)).collect();
        let bus = nvme::pcie::Bus { memory: &NoMemory, interrupts: &NoMemory, doorbells: &doorbells };
        let signature = nvme_spec::register::NSSR_RESET.to_le_bytes();
        front.write_register(&mut subsystem, bus, 0, nvme_spec::register::NSSR.into(), &signature);
        subsystem.disconnect(pcie);
    }
    eventually("the controller's end", || !lock(&target.shared).is_connected(id));
    eventually("the connections' end", || target.server.connections() == 0);
    let lost = queue.command(block_command(IoOpcode::Read, 1, 0, 1), CommandData::ToHost(vec![0; 4096]));
    assert!(matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })), "{lost:?}");
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
    assert_eq!((aborted.cid.get(), aborted.status.status()), (77, Status::ABORT_REQUESTED));
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
    assert_eq!(queue.command(flush, CommandData::None).unwrap().status(), Status::SUCCESS);
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
        assert!(figure.commands_per_second > 100.0 && figure.limit_per_second > 100.0, "{figure:?}");
    }
}
