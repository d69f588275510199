//! Doorbells in memory and in messages, interrupts, and the worker's share of the drive.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use initiator::command::admin_entry;
use initiator::pcie::{DriverOptions, NvmeDriver};
use nvme::media::bytes_for;
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use target::lock;
use target::storage::backend::MemoryBackend;
use target::vfio_user::VfioUserOptions;

use crate::small_drive::CAPACITY_BYTES;
use crate::{BLOCK, Setup, assert_reads, io, pattern, write_and_read};

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
        VfioUserOptions { map_doorbells: false, ..VfioUserOptions::default() },
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
        VfioUserOptions { map_doorbells: false, ..VfioUserOptions::default() },
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
    assert!(messages < COMMANDS, "{messages} messages for {} doorbells", 2 * COMMANDS);
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

    // The client triggers the interrupt, then switches it off. Later interrupts stay pending.
    const MSIX: u32 = 2;
    driver.client().set_irqs(MSIX, 1 | 32, 1, 1, &[]).unwrap();
    assert_eq!(driver.wait_interrupt(1).unwrap(), 1);
    driver.client().set_irqs(MSIX, 4 | 32, 1, 1, &[]).unwrap();
    driver.command(1, entry).unwrap();
    let mut pending = [0; 8];
    driver.client().region_read(0, 0x3000, &mut pending).unwrap();
    assert_eq!(pending, [2, 0, 0, 0, 0, 0, 0, 0]);
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    driver.client().set_irqs(MSIX, 4 | 32, 1, 1, &[event.as_raw_fd()]).unwrap();
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
        VfioUserOptions { map_doorbells: false, ..VfioUserOptions::default() },
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
    assert_eq!((event.cid.get(), event.dw0.get()), (request, 0x0004_0002), "notice, namespace list changed, log 4");
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
