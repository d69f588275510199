//! Guest memory that a client maps, shortens and takes away.

use std::os::fd::{AsRawFd, OwnedFd};

use initiator::command::admin_entry;
use initiator::pcie::{DriverError, DriverOptions, NvmeDriver, RAM_BASE};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use target::vfio_user::VfioUserOptions;

use crate::small_drive::{MIB, run_in_child};
use crate::{BLOCK, Raw, Setup, flood, flush, io, pattern, transfer, write_and_read};

const EMFILE: u32 = 24;
const ENOSPC: u32 = 28;

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
    driver.client().dma_map(0, RAM_BASE, ram_bytes, file.as_raw_fd()).unwrap();
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
    for (opcode, bytes) in [(IoOpcode::Write, BLOCK), (IoOpcode::Read, 128 << 10), (IoOpcode::Read, MIB)] {
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
        // The ranges have gaps between them.
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
        return run_in_child("memory::a_map_whose_descriptor_got_lost_is_refused", TO_RUN_OUT);
    }
    let setup = Setup::new();
    let mut raw = Raw::negotiated(&setup.socket());
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, MIB).unwrap();
    let before = getrlimit(Resource::Nofile);
    let none_left = Rlimit { current: Some(0), maximum: before.maximum };
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
            assert_eq!(driver.wait_completion(1).unwrap().status.status(), Status::SUCCESS, "round {round}");
        }
    }
}
