//! Tests of the vfio-user server with the `vfio_user` crate's client and with raw bytes. They cover
//! probing, I/O, doorbells of all three kinds, interrupts, resets, disconnects, stops, and invalid
//! messages.

mod small_drive;

use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use initiator::bench::vfio_user::{BenchServer, BenchWorkload, run};
use initiator::command::admin_entry;
use initiator::command::block_command;
use initiator::pcie::{DriverError, DriverOptions, NvmeDriver, RAM_BASE};
use nvme::media::bytes_for;
use nvme::{FlushHandle, Media, Subsystem, SubsystemConfig};
use nvme_spec::command::{SglDescriptor, SglIdentifier, SglType, SubmissionEntry};
use nvme_spec::register::{self, NSSR_RESET};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use small_drive::{CAPACITY_BYTES, Disk, MIB};
use ssd::config::HandlesConfig;
use target::storage::backend::MemoryBackend;
use target::vfio_user::{VfioUserOptions, VfioUserServer, WORKER_THREAD};
use target::{ServeError, ServerClock, SharedSubsystem, lock};
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
        Setup::with(
            Box::new(MemoryBackend::new(bytes_for(CAPACITY_BYTES))),
            VfioUserOptions::default(),
        )
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

fn identify(driver: &mut NvmeDriver, cns: u32, nsid: u32) -> Vec<u8> {
    let page = driver.allocate(BLOCK);
    let mut entry = admin_entry(AdminOpcode::Identify);
    entry.nsid.set(nsid);
    entry.cdw10.set(cns);
    entry.set_prps(page, 0);
    assert_eq!(driver.command(0, entry).unwrap().status.status(), Status::SUCCESS);
    let mut data = vec![0; BLOCK as usize];
    driver.read_ram(page, &mut data);
    data
}

// ------------------------------------------------------------------------------------------------------ probe, I/O --

#[test]
fn a_client_finds_an_nvme_function() {
    let setup = Setup::new();
    let mut driver = setup.driver();
    let mut class = [0; 4];
    driver.read_config(8, &mut class).unwrap();
    assert_eq!(class[1..], [0x02, 0x08, 0x01]);
    let mut ids = [0; 4];
    driver.read_config(0, &mut ids).unwrap();

    let controller = identify(&mut driver, 1, 0);
    assert_eq!(controller[..2], ids[..2], "the vendor is the same everywhere");
    assert_eq!(&controller[4..8], b"TEST");
    assert_eq!(controller[257] & 1, 1, "Doorbell Buffer Config is offered");
    let namespace = identify(&mut driver, 0, 1);
    assert_eq!(
        u64::from_le_bytes(namespace[..8].try_into().unwrap()),
        CAPACITY_BYTES / BLOCK
    );

    assert!(driver.has_mapped_doorbells());
    let msix = driver.client().get_irq_info(2).unwrap();
    assert_eq!(
        (msix.count, msix.flags),
        (5, 1),
        "a vector for each of 4 I/O queues and the admin queue"
    );
    assert_eq!(driver.client().get_irq_info(0).unwrap().count, 0, "no INTx");
    assert_eq!(driver.client().region(0).unwrap().size, 0x4000);
}

#[test]
fn data_goes_and_comes_back_in_all_sizes() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    for (seed, bytes) in [(1, BLOCK), (2, 2 * BLOCK), (3, 3 * BLOCK), (4, 128 << 10), (5, MIB)] {
        write_and_read(&mut driver, 100, bytes, seed);
    }
    // Longer than MDTS.
    let entry = io(IoOpcode::Read, 0, MIB / BLOCK + 1);
    let completion = driver.command(1, entry).unwrap();
    assert_eq!(completion.status.status(), Status::INVALID_FIELD);
    assert!(completion.status.dnr());
}

#[test]
fn data_pointers_are_prps_or_sgls() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    let data = pattern(4 * BLOCK, 7);
    let from = driver.allocate_with(&data);
    let block = |address: u64, bytes: u64| SglDescriptor {
        addr: address.into(),
        length: (bytes as u32).into(),
        id: SglIdentifier::new().with_sgl_type(SglType::DataBlock.code()),
        ..SglDescriptor::default()
    };
    let mut entry = io(IoOpcode::Write, 8, 4);
    entry.flags.set_psdt(1);
    entry.set_sgl1(block(from, 4 * BLOCK));
    assert_eq!(driver.command(1, entry).unwrap().status.status(), Status::SUCCESS);
    assert_reads(&mut driver, 8, &data);

    for (sgl1, status) in [
        (block(from, 4 * BLOCK - 1), Status::DATA_SGL_LENGTH_INVALID),
        (block(1, 4 * BLOCK), Status::DATA_TRANSFER_ERROR),
    ] {
        entry.set_sgl1(sgl1);
        assert_eq!(driver.command(1, entry).unwrap().status.status(), status);
    }
    let mut entry = io(IoOpcode::Write, 8, 4);
    entry.set_prps(from + 1, 0);
    assert_eq!(
        driver.command(1, entry).unwrap().status.status(),
        Status::PRP_OFFSET_INVALID
    );
    assert_reads(&mut driver, 8, &data);
}

#[test]
fn queues_work_side_by_side() {
    let setup = Setup::new();
    let mut driver = setup.driver();
    for queue in 1..=4 {
        driver.create_queues(queue, 128, None).unwrap();
    }
    let data: Vec<Vec<u8>> = (0..4).map(|queue| pattern(BLOCK, queue)).collect();
    let buffers: Vec<u64> = data.iter().map(|data| driver.allocate_with(data)).collect();
    for round in 0..50 {
        for queue in 1..=4u16 {
            let buffer = buffers[usize::from(queue) - 1];
            for command in 0..20 {
                let mut entry = io(IoOpcode::Write, u64::from(queue) * 1000 + round * 20 + command, 1);
                entry.set_prps(buffer, 0);
                driver.submit(queue, entry);
            }
            driver.ring(queue).unwrap();
        }
        for queue in 1..=4 {
            for _ in 0..20 {
                assert_eq!(driver.wait_completion(queue).unwrap().status.status(), Status::SUCCESS);
            }
        }
    }
    driver.create_queues(1, 64, None).unwrap_err();
    for queue in 1..=4 {
        assert_reads(&mut driver, queue * 1000 + 999, &data[queue as usize - 1]);
    }
}

// ------------------------------------------------------------------------------------------- doorbells, interrupts --

#[test]
fn mapped_doorbells_need_no_messages() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 0, BLOCK, 1);
    assert_eq!(setup.messages(), 0);
    // Doorbell messages still work.
    let mut entry = io(IoOpcode::Read, 0, 1);
    let page = driver.allocate(BLOCK);
    entry.set_prps(page, 0);
    let cid = driver.submit(1, entry);
    driver.write_register(register::DOORBELLS + 8, 3).unwrap();
    assert_eq!(driver.wait_completion(1).unwrap().cid.get(), cid);
    assert_eq!(setup.messages(), 1);
}

#[test]
fn without_a_mapped_page_every_doorbell_is_a_message() {
    let setup = Setup::with(
        Box::new(MemoryBackend::new(bytes_for(CAPACITY_BYTES))),
        VfioUserOptions {
            map_doorbells: false,
            ..VfioUserOptions::default()
        },
    );
    let mut driver = setup.driver_with_queue();
    assert!(!driver.has_mapped_doorbells());
    let before = setup.messages();
    write_and_read(&mut driver, 0, BLOCK, 1);
    assert_eq!(setup.messages() - before, 4, "tail and head, for a write and a read");
}

#[test]
fn shadow_doorbells_save_messages() {
    let setup = Setup::with(
        Box::new(MemoryBackend::new(bytes_for(CAPACITY_BYTES))),
        VfioUserOptions {
            map_doorbells: false,
            ..VfioUserOptions::default()
        },
    );
    let mut driver = setup.driver();
    driver.use_shadow_doorbells().unwrap();
    driver.create_queues(1, 1024, None).unwrap();
    let data = pattern(BLOCK, 3);
    let buffer = driver.allocate_with(&data);
    let before = setup.messages();
    // A doorbell for each of many commands. The worker sleeps whenever it is idle, and each
    // doorbell must wake it.
    const COMMANDS: u64 = 20_000;
    let (mut submitted, mut completed) = (0, 0);
    while completed < COMMANDS {
        while submitted < COMMANDS && submitted - completed < 512 {
            let mut entry = io(IoOpcode::Write, submitted % 1000, 1);
            entry.set_prps(buffer, 0);
            driver.submit(1, entry);
            driver.ring(1).unwrap();
            submitted += 1;
        }
        assert_eq!(driver.wait_completion(1).unwrap().status.status(), Status::SUCCESS);
        completed += 1;
    }
    let messages = setup.messages() - before;
    println!("{messages} messages for {} doorbells", 2 * COMMANDS);
    assert!(
        messages < COMMANDS,
        "{messages} messages for {} doorbells",
        2 * COMMANDS
    );
    // One command at a time. Each finds the worker asleep or about to sleep, and must wake it.
    for block in 0..2000 {
        let mut entry = io(IoOpcode::Write, block, 1);
        entry.set_prps(buffer, 0);
        assert_eq!(driver.command(1, entry).unwrap().status.status(), Status::SUCCESS);
    }
    assert_reads(&mut driver, 999, &data);
}

/// A driver after the interrupt of a read, whose completion it has not taken yet. Also returns the
/// read.
fn interrupted(setup: &Setup) -> (NvmeDriver, SubmissionEntry) {
    let mut driver = setup.driver_with_queue();
    let page = driver.allocate(BLOCK);
    let mut entry = io(IoOpcode::Read, 0, 1);
    entry.set_prps(page, 0);
    driver.submit(1, entry);
    driver.ring(1).unwrap();
    assert_eq!(driver.wait_interrupt(1).unwrap(), 1);
    (driver, entry)
}

#[test]
fn interrupts_come_by_event_file_descriptors() {
    let setup = Setup::new();
    let (mut driver, entry) = interrupted(&setup);
    driver.wait_completion(1).unwrap();
    assert!(driver.wait_interrupt(0).unwrap() >= 1, "of the admin commands");

    // Triggered by the client, then switched off. Later interrupts stay pending.
    const MSIX: u32 = 2;
    driver.client().set_irqs(MSIX, 1 | 32, 1, 1, &[]).unwrap();
    assert_eq!(driver.wait_interrupt(1).unwrap(), 1);
    driver.client().set_irqs(MSIX, 4 | 32, 1, 1, &[]).unwrap();
    driver.command(1, entry).unwrap();
    let mut pending = [0; 8];
    driver.client().region_read(0, 0x3000, &mut pending).unwrap();
    assert_eq!(pending, [2, 0, 0, 0, 0, 0, 0, 0]);
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    driver
        .client()
        .set_irqs(MSIX, 4 | 32, 1, 1, &[event.as_raw_fd()])
        .unwrap();
    let mut count = [0; 8];
    std::fs::File::from(event).read_exact(&mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 1, "delivered when it could be");
}

/// Interrupts sent while Bus Master Enable is clear do not reach the guest, so they are raised
/// again when it is set.
#[test]
fn interrupts_that_bus_mastering_swallowed_come_again() {
    let setup = Setup::new();
    let (mut driver, _) = interrupted(&setup);
    driver.set_bus_master(false).unwrap();
    driver.set_bus_master(true).unwrap();
    assert_eq!(driver.wait_interrupt(1).unwrap(), 1, "the completion was not taken yet");
    driver.wait_completion(1).unwrap();
}

#[test]
fn events_reach_a_sleeping_worker() {
    let setup = Setup::with(
        Box::new(MemoryBackend::new(bytes_for(CAPACITY_BYTES))),
        VfioUserOptions {
            map_doorbells: false,
            ..VfioUserOptions::default()
        },
    );
    let mut driver = setup.driver();
    let second = setup.serve("second.sock", VfioUserOptions::default()).unwrap();
    let mut other = NvmeDriver::start(&setup.path("second.sock"), DriverOptions::default()).unwrap();
    // Attached Namespace Attribute Notices.
    let mut configure = admin_entry(AdminOpcode::SetFeatures);
    configure.cdw10.set(0x0b);
    configure.cdw11.set(1 << 8);
    assert_eq!(driver.command(0, configure).unwrap().status.status(), Status::SUCCESS);
    let request = driver.submit(0, admin_entry(AdminOpcode::AsynchronousEventRequest));
    driver.ring(0).unwrap();
    let mut delete = admin_entry(AdminOpcode::NamespaceManagement);
    delete.nsid.set(1);
    delete.cdw10.set(1);
    assert_eq!(other.command(0, delete).unwrap().status.status(), Status::SUCCESS);
    let event = driver.wait_completion(0).unwrap();
    assert_eq!(
        (event.cid.get(), event.dw0.get()),
        (request, 0x0004_0002),
        "notice, namespace list changed, log 4"
    );
    second.stop();
}

/// A worker that never runs out of commands regularly yields the drive to other transports.
#[test]
fn a_busy_worker_lets_others_have_the_drive() {
    const TURNS: usize = 100;
    const OUTSTANDING: usize = 1000;
    for blocks in [1, 32, 256] {
        let setup = Setup::new();
        let mut driver = setup.driver();
        driver.create_queues(1, 1024, None).unwrap();
        let buffer = driver.allocate_with(&pattern(blocks * BLOCK, 1));
        let mut entry = io(IoOpcode::Write, 0, blocks);
        driver.set_prps(&mut entry, buffer, blocks * BLOCK);
        let shared = Arc::clone(&setup.shared);
        let other = std::thread::spawn(move || {
            let turn = |_| {
                let start = Instant::now();
                drop(lock(&shared));
                let wait = start.elapsed();
                // Between two turns a transport receives a command.
                std::thread::sleep(Duration::from_millis(1));
                wait
            };
            (0..TURNS).map(turn).collect::<Vec<Duration>>()
        });
        let mut outstanding = 0;
        while !other.is_finished() {
            for _ in outstanding..OUTSTANDING {
                driver.submit(1, entry);
            }
            outstanding = OUTSTANDING;
            driver.ring(1).unwrap();
            while driver.take_completion(1).is_some() {
                outstanding -= 1;
            }
            driver.ring_head(1).unwrap();
        }
        let mut waits = other.join().unwrap();
        waits.sort();
        let (median, longest) = (waits[TURNS / 2], waits[TURNS - 1]);
        println!("commands of {blocks} blocks: median {median:?}, longest {longest:?}");
        // The limit is generous, because other jobs may use the processors. Without turns the wait
        // never ends.
        assert!(longest < Duration::from_secs(30), "{longest:?} without a turn");
    }
}

// ---------------------------------------------------------------------------------------------------------- resets --

/// Submits commands until the queue is full, without waiting.
fn flood(driver: &mut NvmeDriver, buffer: u64) {
    for block in 0..63 {
        let mut entry = io(IoOpcode::Write, block, 1);
        entry.set_prps(buffer, 0);
        driver.submit(1, entry);
    }
    driver.ring(1).unwrap();
}

#[test]
fn resets_in_the_middle_of_io_leave_a_working_controller() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 5000, BLOCK, 9);
    for round in 0..30 {
        let buffer = driver.allocate_with(&pattern(BLOCK, round));
        flood(&mut driver, buffer);
        match round % 3 {
            0 => driver.disable().unwrap(),
            1 => driver.write_config(0x69, &[0x80]).unwrap(), // Initiate Function Level Reset
            _ => driver.client().reset().unwrap(),
        }
        assert!(!driver.status().unwrap().rdy());
        driver.enable().unwrap();
        driver.create_queues(1, 64, Some(1)).unwrap();
        write_and_read(&mut driver, 6000, 4 * BLOCK, round);
    }
    assert_reads(&mut driver, 5000, &pattern(BLOCK, 9));
}

/// Without Bus Master Enable the function neither fetches nor completes commands.
#[test]
fn memory_is_left_alone_without_bus_mastering() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 0, BLOCK, 1);
    let buffer = driver.allocate(BLOCK);
    driver.set_bus_master(false).unwrap();
    let mut entry = io(IoOpcode::Read, 0, 1);
    entry.set_prps(buffer, 0);
    let command = driver.submit(1, entry);
    driver.ring(1).unwrap();
    // The worker answers requests between two batches, so it has checked the doorbell several
    // times.
    for _ in 0..100 {
        assert!(driver.status().unwrap().rdy());
    }
    assert!(driver.take_completion(1).is_none());
    driver.set_bus_master(true).unwrap();
    assert_eq!(driver.wait_completion(1).unwrap().cid.get(), command);

    // A function level reset clears it, like all of configuration space.
    driver.write_config(0x69, &[0x80]).unwrap();
    let mut command_register = [0xff; 2];
    driver.read_config(4, &mut command_register).unwrap();
    assert_eq!(command_register, [0, 0]);
    driver.enable().unwrap();
    driver.create_queues(1, 64, Some(1)).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 2);
}

#[test]
fn a_subsystem_reset_reaches_the_other_socket() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    let second = setup.serve("second.sock", VfioUserOptions::default()).unwrap();
    let mut other = NvmeDriver::start(&setup.path("second.sock"), DriverOptions::default()).unwrap();
    other.create_queues(1, 64, None).unwrap();
    write_and_read(&mut other, 10, BLOCK, 1);
    driver.write_register(register::NSSR, NSSR_RESET).unwrap();
    for driver in [&mut driver, &mut other] {
        let status = driver.status().unwrap();
        assert!(!status.rdy() && status.nssro(), "{status:?}");
        driver.enable().unwrap();
        driver.create_queues(1, 64, None).unwrap();
        assert_reads(driver, 10, &pattern(BLOCK, 1));
    }
    drop(other);
    second.stop();
    // The controller is free again.
    setup.serve("third.sock", VfioUserOptions::default()).unwrap().stop();
}

#[test]
fn a_normal_shutdown_completes() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    driver.write_register(register::CC, 0x0046_4001).unwrap();
    driver.wait_for("shut down", |status| status.shst() == 2).unwrap();
    driver.enable().unwrap();
}

#[test]
fn memory_that_is_taken_away_under_a_queue_is_a_fatal_status() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    let ram_bytes = DriverOptions::default().ram_bytes;
    driver.client().dma_unmap(RAM_BASE, ram_bytes).unwrap();
    driver.submit(1, flush());
    driver.ring(1).unwrap();
    let error = driver.wait_for("fail", |_| false).unwrap_err();
    assert!(matches!(error, DriverError::Fatal), "{error}");
    let file = driver.ram_file().try_clone().unwrap();
    driver
        .client()
        .dma_map(0, RAM_BASE, ram_bytes, file.as_raw_fd())
        .unwrap();
    driver.enable().unwrap();
    driver.create_queues(1, 64, None).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 1);
}

/// Guest memory in addition to the driver's, which the test can remove.
fn more_memory(driver: &mut NvmeDriver, bytes: u64) -> (OwnedFd, u64) {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes).unwrap();
    let address = RAM_BASE + DriverOptions::default().ram_bytes;
    driver.client().dma_map(0, address, bytes, file.as_raw_fd()).unwrap();
    (file, address)
}

#[test]
fn a_client_that_shortens_its_memory_hurts_nobody_else() {
    let setup = Setup::new();
    let mut honest = setup.driver_with_queue();
    let second = setup.serve("second.sock", VfioUserOptions::default()).unwrap();
    let mut other = NvmeDriver::start(&setup.path("second.sock"), DriverOptions::default()).unwrap();
    other.create_queues(1, 64, Some(1)).unwrap();
    let (file, address) = more_memory(&mut other, 4 * MIB);
    ftruncate(&file, MIB).unwrap();
    for (opcode, bytes) in [
        (IoOpcode::Write, BLOCK),
        (IoOpcode::Read, 128 << 10),
        (IoOpcode::Read, MIB),
    ] {
        let mut entry = io(opcode, 0, bytes / BLOCK);
        other.set_prps(&mut entry, address + MIB, bytes);
        let status = other.command(1, entry).unwrap().status.status();
        assert_eq!(status, Status::DATA_TRANSFER_ERROR, "{opcode} of {bytes} bytes");
        write_and_read(&mut honest, 0, 128 << 10, 3);
    }
    // The remaining part works.
    transfer(&mut other, IoOpcode::Write, 50, address, MIB);
    // With queues in missing memory the controller fails, until its host resets it.
    let mut create = admin_entry(AdminOpcode::CreateIoCompletionQueue);
    create.cdw10.set(63 << 16 | 2);
    create.cdw11.set(1);
    create.set_prps(address + 2 * MIB, 0);
    assert_eq!(other.command(0, create).unwrap().status.status(), Status::SUCCESS);
    let mut create = admin_entry(AdminOpcode::CreateIoSubmissionQueue);
    create.cdw10.set(63 << 16 | 2);
    create.cdw11.set(2 << 16 | 1);
    create.set_prps(address + 2 * MIB, 0);
    assert_eq!(other.command(0, create).unwrap().status.status(), Status::SUCCESS);
    other.set_doorbell(4, 1).unwrap();
    let error = other.wait_for("fail", |_| false).unwrap_err();
    assert!(matches!(error, DriverError::Fatal), "{error}");
    write_and_read(&mut honest, 0, 128 << 10, 4);
    other.enable().unwrap();
    other.create_queues(1, 64, Some(1)).unwrap();
    write_and_read(&mut other, 0, BLOCK, 1);
    drop(other);
    second.stop();
}

/// Memory of sparse files occupies only address space and mappings.
#[test]
fn a_guest_maps_a_part_of_what_there_is_and_leaves_the_rest_to_others() {
    const TIB: u64 = 1 << 40;
    let setup = Setup::new();
    let mut greedy = Raw::negotiated(&setup.socket());
    let second = setup.serve("second.sock", VfioUserOptions::default()).unwrap();
    for (bytes, most) in [(TIB, 8), (BLOCK, 4096)] {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        // With gaps between them.
        let address = |range: u64| (range + 1) * 2 * bytes;
        let maps = (0..=most).take_while(|&range| greedy.map(address(range), bytes, &file) == 0);
        let mapped = maps.count() as u64;
        assert!((1..=most).contains(&mapped), "{mapped} ranges of {bytes} bytes");
        assert_eq!(greedy.map(address(mapped), bytes, &file), ENOSPC);
        let mut other = NvmeDriver::start(&setup.path("second.sock"), DriverOptions::default()).unwrap();
        other.create_queues(1, 64, Some(1)).unwrap();
        write_and_read(&mut other, 0, 128 << 10, 1);
        drop(other);
        assert_eq!(greedy.unmap(address(0), bytes), 0);
        assert_eq!(greedy.map(address(mapped), bytes, &file), 0, "it was given back");
        assert_eq!(greedy.unmap(0, address(mapped + 1)), 0);
    }
    second.stop();
}

/// Set for the child process without free descriptors.
const TO_RUN_OUT: &str = "WARP_TEST_RUNS_OUT_OF_DESCRIPTORS";

#[test]
fn a_map_whose_descriptor_got_lost_is_refused() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(TO_RUN_OUT).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "a_map_whose_descriptor_got_lost_is_refused";
        let output = child.args(["--exact", name]).env(TO_RUN_OUT, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let setup = Setup::new();
    let mut raw = Raw::negotiated(&setup.socket());
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, MIB).unwrap();
    let before = getrlimit(Resource::Nofile);
    let none_left = Rlimit {
        current: Some(0),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, none_left).unwrap();
    let lost = raw.map(0, MIB, &file);
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!((lost, raw.map(0, MIB, &file)), (EMFILE, 0));
}

#[test]
fn maps_come_and_go_during_io() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    let buffer = driver.allocate_with(&pattern(BLOCK, 0));
    let file = driver.ram_file().try_clone().unwrap();
    let elsewhere = RAM_BASE + DriverOptions::default().ram_bytes;
    for round in 0..200 {
        flood(&mut driver, buffer);
        driver.client().dma_map(0, elsewhere, MIB, file.as_raw_fd()).unwrap();
        driver.client().dma_unmap(elsewhere, MIB).unwrap();
        for _ in 0..63 {
            assert_eq!(
                driver.wait_completion(1).unwrap().status.status(),
                Status::SUCCESS,
                "round {round}"
            );
        }
    }
}

// ------------------------------------------------------------------------------------------------------ durability --

/// A sync that blocks until the test releases it.
struct Gate {
    begun: SyncSender<()>,
    open: Mutex<Receiver<()>>,
}

impl FlushHandle for Gate {
    fn flush(&self) -> std::io::Result<()> {
        self.begun.send(()).expect("the test waits");
        self.open.lock().unwrap().recv().expect("the test opens");
        Ok(())
    }
}

#[test]
fn while_data_is_made_durable_everything_else_goes_on() {
    let (begun, has_begun) = sync_channel(16);
    let (opener, open) = sync_channel(16);
    let gate = Arc::new(Gate {
        begun,
        open: Mutex::new(open),
    });
    let setup = Setup::with(Box::new(Disk::new(gate)), VfioUserOptions::default());
    let mut driver = setup.driver();
    driver.create_queues(1, 64, None).unwrap();
    driver.create_queues(2, 64, None).unwrap();
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    has_begun.recv().unwrap();
    // Registers, other commands, and a second flush, which must wait for its own sync.
    assert!(driver.status().unwrap().rdy());
    write_and_read(&mut driver, 0, BLOCK, 1);
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 2);
    assert!(driver.take_completion(2).is_none(), "nothing is durable yet");
    opener.send(()).unwrap();
    driver.wait_completion(2).unwrap();
    has_begun.recv().unwrap();
    assert!(driver.take_completion(2).is_none());
    opener.send(()).unwrap();
    driver.wait_completion(2).unwrap();

    // A client may leave during a sync.
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    has_begun.recv().unwrap();
    drop(driver);
    let mut driver = setup.driver();
    opener.send(()).unwrap();
    driver.create_queues(1, 64, None).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 3);
}

// --------------------------------------------------------------------------------------------- clients and servers --

#[test]
fn clients_leave_and_others_come() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 77, MIB, 5);
    for round in 0..10 {
        let buffer = driver.allocate_with(&pattern(BLOCK, round));
        flood(&mut driver, buffer);
        drop(driver); // in the middle of I/O
        driver = NvmeDriver::connect(&setup.socket(), DriverOptions::default()).unwrap();
        assert!(!driver.status().unwrap().rdy(), "the function was reset");
        assert_eq!(driver.read_register(register::AQA).unwrap(), 0);
        driver.enable().unwrap();
        driver.create_queues(1, 64, Some(1)).unwrap();
        assert_reads(&mut driver, 77, &pattern(MIB, 5));
    }
}

#[test]
fn a_client_that_says_nothing_does_not_keep_the_socket() {
    let setup = Setup::new();
    let options = VfioUserOptions {
        greeting: Duration::from_millis(200),
        ..VfioUserOptions::default()
    };
    let server = setup.serve("greeting.sock", options).unwrap();
    let mut silent = UnixStream::connect(setup.path("greeting.sock")).unwrap();
    let mut driver = NvmeDriver::start(&setup.path("greeting.sock"), DriverOptions::default()).unwrap();
    driver.create_queues(1, 64, None).unwrap();
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0, "the connection has ended");
    // After its version a client may be silent.
    std::thread::sleep(3 * options.greeting);
    write_and_read(&mut driver, 0, BLOCK, 1);
    drop(driver);
    server.stop();
}

#[test]
fn a_server_stops_with_and_without_clients() {
    let mut setup = Setup::new();
    let mode = std::fs::metadata(setup.socket()).unwrap();
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 0, BLOCK, 1);
    let buffer = driver.allocate_with(&pattern(BLOCK, 2));
    flood(&mut driver, buffer);
    setup.server.take().unwrap().stop();
    assert!(!setup.socket().exists());
    assert!(driver.status().is_err(), "the connection was ended");

    for _ in 0..20 {
        setup.serve("nvme.sock", VfioUserOptions::default()).unwrap().stop();
    }
    assert!(!setup.socket().exists());
    assert_eq!(setup.shared.lock().unwrap().controllers().count(), 0);
}

#[test]
fn a_socket_is_taken_only_from_the_dead() {
    let setup = Setup::new();
    let taken = setup.serve("nvme.sock", VfioUserOptions::default()).err().unwrap();
    assert!(matches!(taken, ServeError::SocketTaken(_)), "{taken}");
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);

    std::fs::write(setup.path("file"), "text").unwrap();
    let file = setup.serve("file", VfioUserOptions::default()).err().unwrap();
    assert!(matches!(file, ServeError::NotASocket(_)), "{file}");
    assert_eq!(std::fs::read(setup.path("file")).unwrap(), b"text", "left as it was");

    drop(UnixListener::bind(setup.path("stale.sock")).unwrap());
    assert!(setup.path("stale.sock").exists());
    let server = setup.serve("stale.sock", VfioUserOptions::default()).unwrap();
    let none_left = setup.serve("fourth.sock", VfioUserOptions::default()).err().unwrap();
    assert!(none_left.to_string().contains("controllers are in use"), "{none_left}");
    assert!(!setup.path("fourth.sock").exists());
    server.stop();

    let nowhere = setup
        .serve("no/such/directory.sock", VfioUserOptions::default())
        .err()
        .unwrap();
    assert!(matches!(nowhere, ServeError::Socket { .. }), "{nowhere}");
    let long = "x".repeat(200);
    assert!(matches!(
        setup.serve(&long, VfioUserOptions::default()).err().unwrap(),
        ServeError::Socket { .. }
    ));
}

// -------------------------------------------------------------------------------------------------- hostile client --

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
        [
            &offset.to_le_bytes()[..],
            &region.to_le_bytes(),
            &count.to_le_bytes(),
            data,
        ]
        .concat()
    }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

const EINVAL: u32 = 22;
const EMFILE: u32 = 24;
const ENOSPC: u32 = 28;
const ENOTSUP: u32 = 95;

#[test]
fn impossible_requests_are_errors_and_the_connection_goes_on() {
    let setup = Setup::new();
    let mut raw = Raw::connect(&setup.socket());
    assert_eq!(raw.ask(4, &[0; 16]).0, EINVAL, "nothing before the version");
    assert_eq!(raw.ask(1, &[]).0, EINVAL, "a version without one");
    assert_eq!(raw.ask(1, &[9, 0, 0, 0]).0, EINVAL, "version 9");
    assert_eq!(
        raw.ask(1, b"\0\0\x01\0not even text\xff").0,
        0,
        "the capabilities do not matter"
    );
    for command in [0, 6, 11, 12, 14, 15, 0xffff] {
        assert_eq!(raw.ask(command, &[1; 40]).0, ENOTSUP, "command {command}");
    }
    for command in [2, 3, 4, 5, 7, 8, 9, 10] {
        assert_eq!(raw.ask(command, &[0; 3]).0, EINVAL, "command {command} cut off");
    }
    let cases = [
        (9, Raw::access(0, 1, 4, &[]), "a region that is not there"),
        (9, Raw::access(0, 0xffff_ffff, 4, &[]), "a region that cannot be"),
        (9, Raw::access(0x4000, 0, 1, &[]), "behind BAR0"),
        (9, Raw::access(u64::MAX, 0, 2, &[]), "behind all addresses"),
        (9, Raw::access(0, 0, u32::MAX, &[]), "4 GiB of it"),
        (9, Raw::access(4095, 7, 2, &[]), "behind configuration space"),
        (10, Raw::access(0, 0, 4, &[1]), "a write without its data"),
        (10, Raw::access(0, 0, u32::MAX, &[1]), "a write of 4 GiB"),
        (5, words(&[32, 0, 9, 0, 0, 0, 0, 0]), "region 9"),
        (7, words(&[16, 0, 5, 0]), "interrupts of a sixth kind"),
        (8, words(&[20, 32 | 4, 2, 5, 1]), "a sixth vector"),
        (
            8,
            words(&[20, 32 | 4, 2, u32::MAX, u32::MAX]),
            "vectors beyond counting",
        ),
        (8, words(&[20, 32 | 4, 0, 0, 1]), "INTx"),
        (8, words(&[20, 32, 2, 0, 1]), "no kind of data"),
        (8, words(&[20, 32 | 2, 2, 0, 5]), "booleans that are not there"),
        (3, [words(&[24, 0]), vec![0xff; 16]].concat(), "the end of addresses"),
    ];
    for (command, body, what) in cases {
        assert_eq!(raw.ask(command, &body).0, EINVAL, "{what}");
    }
    let unusual = [
        (
            2,
            [words(&[32, 3]), vec![0; 24]].concat(),
            "a map without a file is ignored",
        ),
        (3, [words(&[24, 4]), vec![0; 16]].concat(), "unmap everything"),
        (8, words(&[20, 32 | 1, 2, 0, 0]), "all vectors off"),
        (8, words(&[20, 32 | 1, 0, 0, 0]), "INTx off"),
        (8, [words(&[20, 32 | 2, 2, 0, 3]), vec![1, 0, 1]].concat(), "booleans"),
    ];
    for (command, body, what) in unusual {
        assert_eq!(raw.ask(command, &body).0, 0, "{what}");
    }
    // Without a request for a reply, errors get none either.
    raw.send(10, 16 + 20, 0x10, &Raw::access(0x14, 0, 4, &[0; 4]));
    raw.send(10, 16 + 20, 0x10, &Raw::access(0x14, 3, 4, &[0; 4]));
    let (error, body) = raw.ask(9, &Raw::access(8, 0, 4, &[]));
    assert_eq!((error, &body[16..]), (0, &[0, 1, 2, 0][..]), "the version register");
    drop(raw);
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);
}

#[test]
fn what_is_no_message_ends_the_connection_and_only_that() {
    let setup = Setup::new();
    for (bytes, what) in [
        (0, "nothing"),
        (15, "less than a header"),
        (u32::MAX, "4 GiB"),
        (2 << 20, "2 MiB"),
    ] {
        let mut raw = Raw::negotiated(&setup.socket());
        raw.send(9, bytes, 0, &[]);
        let mut rest = Vec::new();
        raw.0.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{what}");
    }
    // Clients that die in the middle of a header, and of a body.
    UnixStream::connect(setup.socket()).unwrap().write_all(&[1; 5]).unwrap();
    let mut raw = Raw::negotiated(&setup.socket());
    raw.send(10, 4096, 0, &[0; 100]);
    drop(raw);
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);
}

/// Random but well-formed requests. Each gets an answer, and none ends the server.
#[test]
fn random_requests_are_answered() {
    let setup = Setup::new();
    for seed in 1..=8 {
        println!("seed {seed}");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut raw = Raw::negotiated(&setup.socket());
        for _ in 0..2000 {
            let command = [2, 3, 4, 5, 7, 8, 9, 9, 9, 10, 10, 10, 10, 13][random.next_u32() as usize % 14];
            let mut body = vec![0; random.next_u32() as usize % 64];
            random.fill_bytes(&mut body);
            if matches!(command, 9 | 10) && random.next_u32() % 8 != 0 {
                let region = [0, 0, 0, 7][random.next_u32() as usize % 4];
                let count = [1, 2, 4, 4, 4, 8, 8, 64][random.next_u32() as usize % 8];
                let offset = random.next_u32() % if region == 7 { 256 } else { 0x4000 };
                let mut data = vec![0; count as usize];
                random.fill_bytes(&mut data);
                body = Raw::access(u64::from(offset), region, count, &data);
            }
            let (_, _) = raw.ask(command, &body);
        }
        drop(raw);
        write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, seed as u8);
    }
}

// ------------------------------------------------------------------------------------------------------- benchmark --

#[test]
fn the_benchmark_measures_something() {
    let setup = Setup::new();
    let socket = setup.socket();
    let target = BenchServer {
        socket: &socket,
        worker_thread: WORKER_THREAD,
        capacity_bytes: CAPACITY_BYTES,
        bytes_written: &|| {
            let subsystem = lock(&setup.shared);
            let stats = subsystem.device().stats();
            (stats.media_bytes_written(), stats.host_bytes_written())
        },
    };
    let workload = BenchWorkload {
        duration: Duration::from_millis(50),
        ..BenchWorkload::default()
    };
    let figures = run(&target, &workload).unwrap();
    assert!(
        figures.commands >= 32 && figures.write_amplification >= 1.0,
        "{figures}"
    );
}
