//! The function as a client finds it, data transfers of all forms, and the benchmark.

use std::time::Duration;

use initiator::bench::vfio_user::{BenchServer, BenchWorkload, run};
use initiator::command::admin_entry;
use initiator::pcie::NvmeDriver;
use nvme_spec::command::{SglDescriptor, SglIdentifier, SglType};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use target::lock;
use target::vfio_user::WORKER_THREAD;

use crate::small_drive::{CAPACITY_BYTES, MIB};
use crate::{BLOCK, Setup, assert_reads, io, pattern, write_and_read};

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
    assert_eq!(u64::from_le_bytes(namespace[..8].try_into().unwrap()), CAPACITY_BYTES / BLOCK);

    assert!(driver.has_mapped_doorbells());
    let msix = driver.client().get_irq_info(2).unwrap();
    assert_eq!((msix.count, msix.flags), (5, 1), "a vector for each of 4 I/O queues and the admin queue");
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
    assert_eq!(driver.command(1, entry).unwrap().status.status(), Status::PRP_OFFSET_INVALID);
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

// ------------------------------------------------------------------------------------------------------- benchmark --

#[test]
fn the_benchmark_measures_something() {
    let setup = Setup::new();
    let socket = setup.socket();
    let target = BenchServer { socket: &socket, worker_thread: WORKER_THREAD, capacity_bytes: CAPACITY_BYTES };
    let workload = BenchWorkload { duration: Duration::from_millis(50), ..BenchWorkload::default() };
    let figures = run(&target, &workload).unwrap();
    assert!(figures.commands >= 32 && figures.copies_per_second > 0.0, "{figures:?}");
    let subsystem = lock(&setup.shared);
    assert!(subsystem.device().stats().write_amplification() >= Some(1.0));
}
