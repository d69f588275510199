//! Resets of a controller and of the subsystem, and a normal shutdown.

use initiator::pcie::{DriverOptions, NvmeDriver};
use nvme_spec::IoOpcode;
use nvme_spec::register::{self, NSSR_RESET};
use target::vfio_user::VfioUserOptions;

use crate::{BLOCK, Setup, assert_reads, flood, io, pattern, write_and_read};

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
