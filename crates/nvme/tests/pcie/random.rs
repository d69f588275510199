//! Random commands: each completes exactly once, with the same results in a batch and alone.

use nvme_spec::IoOpcode;
use nvme_spec::command::{SglType, SubmissionEntry};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use zerocopy::IntoBytes;

use crate::common::{CAPACITY_BYTES, Drive, MIB, io};
use crate::{DATA, Machine, PAGE, RAM_BYTES, descriptor, with_namespace};

/// Random entries with random data pointers into random memory. Each completes exactly once.
#[test]
fn every_entry_completes_exactly_once() {
    for seed in 1..=20 {
        println!("seed {seed}");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut machine = Machine::on(Drive::on(with_namespace(), seed % 2 == 0));
        machine.create_pair(1, 64, Some(1));
        random.fill_bytes(&mut machine.ram.0.borrow_mut()[DATA as usize..][..MIB as usize]);
        for _ in 0..50 {
            let mut expected: Vec<u16> = (0..20).map(|_| machine.submit(1, random_entry(&mut random))).collect();
            machine.ring(1);
            machine.run();
            while machine.sync() {}
            let mut completed: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
            machine.ring_head(1);
            expected.sort_unstable();
            completed.sort_unstable();
            assert_eq!(completed, expected, "seed {seed}");
        }
    }
}

fn random_entry(random: &mut Xoshiro256PlusPlus) -> SubmissionEntry {
    const OPCODES: [u8; 12] = [0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c, 0x12, 0x19, 0x1d, 0x7f];
    let mut entry = SubmissionEntry::default();
    random.fill_bytes(entry.as_mut_bytes());
    entry.opcode = OPCODES[random.next_u32() as usize % OPCODES.len()];
    // Most fields are plausible, so that commands get far.
    if !random.next_u32().is_multiple_of(8) {
        entry.flags.set_fuse(0);
        entry.nsid.set(1);
        entry.cdw10.set(random.next_u32() % 16384);
        entry.cdw11.set(0);
        entry.cdw12.set(random.next_u32() % 32);
    }
    if !random.next_u32().is_multiple_of(4) {
        let near = |random: &mut Xoshiro256PlusPlus| DATA + u64::from(random.next_u32() % 256) * 4096;
        let (first, second) = (near(random), near(random));
        entry.flags.set_psdt(random.next_u32() as u8 % 3);
        match entry.flags.psdt() {
            0 => entry.set_prps(first, second),
            _ => {
                let kind = SglType::from_u8(random.next_u32() as u8 % 4).unwrap();
                entry.set_sgl1(descriptor(kind, 0, first, random.next_u32() % 65536));
            }
        }
    }
    entry
}

// ----------------------------------------------------------------------------------- together --

/// A Read or Write, occasionally another command or an invalid one. Its data is 32 KiB at `data`.
fn any_command(random: &mut Xoshiro256PlusPlus, data: u64) -> SubmissionEntry {
    let mut draw = |below: u64| random.next_u64() % below;
    let blocks = CAPACITY_BYTES / PAGE;
    let count = 1 + draw(8);
    let first = match draw(50) {
        0 => blocks - draw(count + 1),
        1 => u64::MAX - draw(3),
        _ => draw(blocks - count),
    };
    let opcode = match draw(40) {
        0 => IoOpcode::Flush,
        1 => IoOpcode::Compare,
        2 => IoOpcode::WriteUncorrectable,
        3 => IoOpcode::WriteZeroes,
        4..12 => IoOpcode::Read,
        _ => IoOpcode::Write,
    };
    let nsid = match draw(100) {
        0 => 0,
        1 => 2,
        2 => u32::MAX,
        _ => 1,
    };
    let mut entry = io(opcode, nsid, first, count);
    let list = data + 7 * PAGE;
    let second = match count {
        1 => 0,
        2 => data + PAGE,
        _ => list,
    };
    entry.set_prps(data, second);
    match draw(60) {
        0 => entry.set_prps(data + 1, second),
        // A Read is excluded, because its counters depend on the transferred part of its data.
        1 if opcode != IoOpcode::Read => entry.set_prps(RAM_BYTES - PAGE, RAM_BYTES),
        2 => entry.set_prps(data + 8, second),
        3 => entry.flags.set_fuse(1),
        4 => entry.flags.set_psdt(3),
        _ => {}
    }
    if opcode == IoOpcode::Write {
        // Force unit access and directives. The directives are none, placement with valid and
        // invalid identifiers, and an unsupported one.
        let directive = draw(3) + u64::from(draw(20) == 0);
        let kind = if directive == 1 { 0 } else { directive as u32 };
        entry.cdw12.set(entry.cdw12.get() | kind << 20 | u32::from(draw(10) == 0) << 30);
        entry.cdw13.set((draw(5) as u32) << 16);
    }
    entry
}

/// A fast-path batch leaves the drive in the same state as single commands. A fault plan, even an
/// empty one, forces single commands.
#[test]
fn together_or_one_by_one_is_the_same() {
    const SLOT: u64 = 8 * PAGE;
    for cached in [false, true] {
        let mut machines = [true, false].map(|together| {
            let mut machine = Machine::on(Drive::on(with_namespace(), cached));
            machine.create_pair(1, 48, Some(1));
            if !together {
                let plan = nvme::fault::FaultPlan::parse("").expect("a plan without faults");
                machine.drive.subsystem.set_faults(0, Some(plan)).expect("nothing");
            }
            machine
        });
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut succeeded, mut failed) = (0, 0);
        for round in 0..600 {
            let count = 1 + random.next_u64() % 40;
            let entries: Vec<SubmissionEntry> =
                (0..count).map(|slot| any_command(&mut random, DATA + slot * SLOT)).collect();
            let ends = machines.each_mut().map(|machine| {
                for (slot, entry) in (0..).zip(&entries) {
                    let data = DATA + slot * SLOT;
                    machine.fill(data, SLOT, (round + slot) as u8);
                    let pages: Vec<u64> = (1..8).map(|page| data + page * PAGE).collect();
                    // The list is data too, and a Read may overwrite it without effect.
                    machine.write_numbers(data + 7 * PAGE, &pages);
                    machine.submit(1, *entry);
                }
                machine.ring(1);
                machine.run();
                if let Some(durable) = machine.controller.start_sync() {
                    durable.flush().expect("it is memory");
                    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 1, &Ok(())));
                }
                let mut ends: Vec<_> =
                    machine.take_all(1).into_iter().map(|end| (end.cid.get(), end.status, end.dw0.get())).collect();
                machine.ring_head(1);
                ends.sort_by_key(|end| end.0);
                (ends, machine.ram(DATA, 40 * SLOT))
            });
            let [(together, ram), (one_by_one, ram_of_one_by_one)] = ends;
            assert_eq!(together.len(), entries.len(), "round {round}");
            // The phase depends on the completion's time.
            for (end, other) in together.iter().zip(&one_by_one) {
                assert_eq!(
                    (end.0, end.1.status(), end.1.dnr(), end.2),
                    (other.0, other.1.status(), other.1.dnr(), other.2),
                    "round {round}"
                );
                match end.1.status().is_success() {
                    true => succeeded += 1,
                    false => failed += 1,
                }
            }
            assert!(ram == ram_of_one_by_one, "the host's memory, round {round}");
        }
        assert!(succeeded > 6000 && failed > 500, "{succeeded} commands succeeded, {failed} failed");
        let [together, one_by_one] = machines.map(|machine| {
            let Drive { subsystem, memory, .. } = machine.drive;
            let device = subsystem.device();
            let bytes = memory.bytes.lock().unwrap().clone();
            assert!(device.stats().media_bytes_written() > device.stats().host_bytes_written(), "pages were collected");
            (
                bytes,
                format!("{:#?}", subsystem.state()),
                subsystem.latencies().clone(),
                device.stats().clone(),
                (0..device.layout().logical_pages).map(|page| device.lookup(ssd::Lpn(page))).collect::<Vec<_>>(),
            )
        });
        assert!(together.0 == one_by_one.0, "the data");
        assert_eq!(together.1, one_by_one.1);
        assert_eq!(together.2, one_by_one.2);
        assert_eq!(together.3, one_by_one.3);
        assert!(together.4 == one_by_one.4, "where pages are");
    }
}
