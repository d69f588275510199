//! Tests of the PCI Express side of a controller without a transport. Host memory is a vector,
//! doorbells are numbers, and interrupts are counted. Every malformed queue command, PRP and SGL
//! has its exact status.

mod common;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use base::table;
use common::{CAPACITY_BYTES, Drive, MIB, admin, config, get_log, identify, io};
use nvme::pcie::{Bus, HostMemory, Interrupts, MemoryFault, PcieController, QUEUES_MAX};
use nvme::{ControllerKind, HostIdentity, HostTransport, Subsystem, SubsystemConfig};
use nvme_spec::command::{
    CompletionEntry, CreateIoCompletionQueueCdw11, CreateIoSubmissionQueueCdw11, CreateQueueCdw10, SGL_SUBTYPE_ADDRESS,
    SGL_SUBTYPE_OFFSET, SglDescriptor, SglIdentifier, SglType, SubmissionEntry,
};
use nvme_spec::register::{self, Cap, Csts, NSSR_RESET};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use zerocopy::{FromBytes, IntoBytes};

const PAGE: u64 = 4096;
const RAM_BYTES: u64 = 8 * MIB;
/// Address of test data. Queues have lower addresses.
const DATA: u64 = 4 * MIB;
const VECTORS: u16 = 3;
const ADMIN_ENTRIES: u16 = 16;

struct Ram(RefCell<Vec<u8>>);

impl Ram {
    fn range(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, MemoryFault> {
        let end = address.checked_add(bytes as u64).filter(|end| *end <= RAM_BYTES);
        end.map(|end| address as usize..end as usize)
            .ok_or(MemoryFault { address })
    }
}

impl HostMemory for Ram {
    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), MemoryFault> {
        data.copy_from_slice(&self.0.borrow()[self.range(address, data.len())?]);
        Ok(())
    }

    fn check_readable(&self, address: u64, bytes: usize) -> Result<(), MemoryFault> {
        self.range(address, bytes).map(|_| ())
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), MemoryFault> {
        let range = self.range(address, data.len())?;
        self.0.borrow_mut()[range].copy_from_slice(data);
        Ok(())
    }

    fn load(&self, address: u64) -> Result<u32, MemoryFault> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        self.write(address, &value.to_le_bytes())
    }
}

#[derive(Default)]
struct Raised(RefCell<Vec<u16>>);

impl Interrupts for Raised {
    fn raise(&self, vector: u16) {
        assert!(vector < VECTORS);
        self.0.borrow_mut().push(vector);
    }
}

/// A pair of queues as the host sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    submission: u64,
    completion: u64,
    entries: u16,
    tail: u16,
    head: u16,
    wraps: u16,
}

/// A host with a controller.
struct Machine {
    drive: Drive,
    controller: PcieController,
    ram: Ram,
    raised: Raised,
    doorbells: Vec<AtomicU32>,
    pairs: [Pair; 5],
    next_cid: u16,
}

fn with_namespace() -> SubsystemConfig {
    SubsystemConfig {
        namespace: true,
        ..config()
    }
}

impl Machine {
    /// Enabled, without I/O queues.
    fn new() -> Machine {
        Machine::on(Drive::on(with_namespace(), false))
    }

    /// The same with one I/O queue pair.
    fn with_queue() -> Machine {
        let mut machine = Machine::new();
        machine.create_pair(1, 64, Some(1));
        machine
    }

    fn on(mut drive: Drive) -> Machine {
        let connected = drive
            .subsystem
            .connect(0, HostTransport::Pcie, ControllerKind::Io, HostIdentity::default());
        let id = connected.expect("room for a controller");
        let mut machine = Machine {
            drive,
            controller: PcieController::new(id, 4, VECTORS),
            ram: Ram(RefCell::new(vec![0; RAM_BYTES as usize])),
            raised: Raised::default(),
            doorbells: (0..usize::from(QUEUES_MAX) * 2).map(|_| AtomicU32::new(0)).collect(),
            pairs: [Pair::default(); 5],
            next_cid: 0,
        };
        machine.enable();
        machine
    }

    fn with<T>(&mut self, call: impl FnOnce(&mut PcieController, &mut Subsystem, Bus<'_>) -> T) -> T {
        let bus = Bus {
            memory: &self.ram,
            interrupts: &self.raised,
            doorbells: &self.doorbells,
        };
        call(&mut self.controller, &mut self.drive.subsystem, bus)
    }

    fn write_register(&mut self, offset: u32, data: &[u8]) {
        self.with(|controller, subsystem, bus| controller.write_register(subsystem, bus, 0, u64::from(offset), data));
    }

    fn read_register<const N: usize>(&mut self, offset: u32) -> [u8; N] {
        let mut data = [0xee; N];
        self.controller
            .read_register(&self.drive.subsystem, u64::from(offset), &mut data);
        data
    }

    fn csts(&mut self) -> Csts {
        Csts::from_bits(u32::from_le_bytes(self.read_register(register::CSTS)))
    }

    fn enable(&mut self) {
        self.pairs = [Pair::default(); 5];
        self.pairs[0] = Pair {
            submission: PAGE,
            completion: 2 * PAGE,
            entries: ADMIN_ENTRIES,
            ..Pair::default()
        };
        self.ram.write(2 * PAGE, &[0; PAGE as usize]).unwrap();
        let size = u32::from(ADMIN_ENTRIES - 1);
        self.write_register(register::AQA, &(size << 16 | size).to_le_bytes());
        self.write_register(register::ASQ, &PAGE.to_le_bytes());
        self.write_register(register::ACQ, &(2 * PAGE).to_le_bytes());
        self.write_register(register::CC, &0x0046_0001u32.to_le_bytes());
        assert!(self.csts().rdy(), "{:?}", self.csts());
    }

    fn disable(&mut self) {
        self.write_register(register::CC, &0x0046_0000u32.to_le_bytes());
        assert!(!self.csts().rdy());
    }

    fn place(queue: u16) -> (u64, u64) {
        let base = (0x10 + u64::from(queue) * 0x80) * PAGE;
        (base, base + 0x40 * PAGE)
    }

    fn create_completion(queue: u16, entries: u32, vector: Option<u16>) -> SubmissionEntry {
        let mut entry = admin(AdminOpcode::CreateIoCompletionQueue, 0);
        entry.set_prps(Machine::place(queue).1, 0);
        let size = entries.wrapping_sub(1) as u16;
        entry
            .cdw10
            .set(CreateQueueCdw10::new().with_qid(queue).with_qsize(size).into_bits());
        let dword11 = CreateIoCompletionQueueCdw11::new()
            .with_pc(true)
            .with_ien(vector.is_some())
            .with_iv(vector.unwrap_or(0));
        entry.cdw11.set(dword11.into_bits());
        entry
    }

    fn create_submission(queue: u16, entries: u32, target: u16) -> SubmissionEntry {
        let mut entry = admin(AdminOpcode::CreateIoSubmissionQueue, 0);
        entry.set_prps(Machine::place(queue).0, 0);
        let size = entries.wrapping_sub(1) as u16;
        entry
            .cdw10
            .set(CreateQueueCdw10::new().with_qid(queue).with_qsize(size).into_bits());
        entry.cdw11.set(
            CreateIoSubmissionQueueCdw11::new()
                .with_pc(true)
                .with_cqid(target)
                .into_bits(),
        );
        entry
    }

    fn delete(opcode: AdminOpcode, queue: u16) -> SubmissionEntry {
        let mut entry = admin(opcode, 0);
        entry.cdw10.set(u32::from(queue));
        entry
    }

    #[track_caller]
    fn create_pair(&mut self, queue: u16, entries: u16, vector: Option<u16>) {
        let (submission, completion) = Machine::place(queue);
        self.ram.write(completion, &vec![0; usize::from(entries) * 16]).unwrap();
        self.succeeds(0, Machine::create_completion(queue, u32::from(entries), vector));
        self.succeeds(0, Machine::create_submission(queue, u32::from(entries), queue));
        self.pairs[usize::from(queue)] = Pair {
            submission,
            completion,
            entries,
            ..Pair::default()
        };
    }

    /// Adds an entry to a queue. `ring` writes the doorbell.
    fn submit(&mut self, queue: u16, mut entry: SubmissionEntry) -> u16 {
        let cid = self.next_cid;
        self.next_cid += 1;
        entry.cid.set(cid);
        let pair = &mut self.pairs[usize::from(queue)];
        let address = pair.submission + u64::from(pair.tail) * 64;
        pair.tail = (pair.tail + 1) % pair.entries;
        self.ram.write(address, entry.as_bytes()).unwrap();
        cid
    }

    fn doorbell(&self, index: u16, value: u32) {
        self.doorbells[usize::from(index)].store(value, Ordering::Release);
    }

    fn ring(&mut self, queue: u16) {
        self.doorbell(queue * 2, u32::from(self.pairs[usize::from(queue)].tail));
    }

    /// Lets the controller run until it is idle. Returns the commands of each batch.
    fn run(&mut self) -> Vec<usize> {
        let mut batches = Vec::new();
        while self.with(|controller, _, bus| controller.has_work(bus)) {
            let batch = self.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
            batches.push(batch);
            assert!(batches.len() < 1000, "work that never ends");
        }
        batches
    }

    /// Takes a completion, without telling the controller.
    fn take(&mut self, queue: u16) -> Option<CompletionEntry> {
        let pair = &mut self.pairs[usize::from(queue)];
        let mut bytes = [0; 16];
        self.ram
            .read(pair.completion + u64::from(pair.head) * 16, &mut bytes)
            .unwrap();
        let entry = CompletionEntry::read_from_bytes(&bytes).unwrap();
        if entry.status.p() != pair.wraps.is_multiple_of(2) {
            return None;
        }
        pair.head += 1;
        if pair.head == pair.entries {
            pair.head = 0;
            pair.wraps += 1;
        }
        Some(entry)
    }

    fn take_all(&mut self, queue: u16) -> Vec<CompletionEntry> {
        std::iter::from_fn(|| self.take(queue)).collect()
    }

    fn ring_head(&mut self, queue: u16) {
        self.doorbell(queue * 2 + 1, u32::from(self.pairs[usize::from(queue)].head));
    }

    /// A command from submission to completion.
    #[track_caller]
    fn command(&mut self, queue: u16, entry: SubmissionEntry) -> CompletionEntry {
        let cid = self.submit(queue, entry);
        self.ring(queue);
        self.run();
        let completion = self.take(queue).expect("a completion");
        self.ring_head(queue);
        assert_eq!((completion.cid.get(), completion.sqid.get()), (cid, queue));
        assert_eq!(completion.sqhd.get(), self.pairs[usize::from(queue)].tail);
        completion
    }

    #[track_caller]
    fn succeeds(&mut self, queue: u16, entry: SubmissionEntry) -> CompletionEntry {
        let completion = self.command(queue, entry);
        assert_eq!(completion.status.status(), Status::SUCCESS);
        completion
    }

    /// Expects a host mistake, which has this status, is not retryable and adds an error log entry.
    #[track_caller]
    fn refuses(&mut self, queue: u16, entry: SubmissionEntry, status: Status) {
        let errors = self.drive.subsystem.state().smart.error_log_entries;
        let completion = self.command(queue, entry);
        assert_eq!(completion.status.status(), status);
        assert!(completion.status.dnr(), "the same command would fail again");
        assert_eq!(self.drive.subsystem.state().smart.error_log_entries, errors + 1);
    }

    /// Expects each invalid command to end with its status.
    fn refuses_each(&mut self, queue: u16, cases: &[(&str, SubmissionEntry, Status)]) {
        for (what, entry, status) in cases {
            println!("{what}");
            self.refuses(queue, *entry, *status);
        }
    }

    fn fill(&self, address: u64, bytes: u64, seed: u8) -> Vec<u8> {
        let data: Vec<u8> = (0..bytes).map(|at| (at ^ at >> 8) as u8 ^ seed).collect();
        self.ram.write(address, &data).unwrap();
        data
    }

    fn ram(&self, address: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        self.ram.read(address, &mut data).unwrap();
        data
    }

    fn write_numbers(&self, address: u64, numbers: &[u64]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.ram.write(address, &bytes).unwrap();
    }
}

fn prps(mut entry: SubmissionEntry, prp1: u64, prp2: u64) -> SubmissionEntry {
    entry.set_prps(prp1, prp2);
    entry
}

fn write(blocks: u64, prp1: u64, prp2: u64) -> SubmissionEntry {
    prps(io(IoOpcode::Write, 1, 0, blocks), prp1, prp2)
}

fn read(blocks: u64, prp1: u64, prp2: u64) -> SubmissionEntry {
    prps(io(IoOpcode::Read, 1, 0, blocks), prp1, prp2)
}

// ---------------------------------------------------------------------------------- registers --

#[test]
fn registers_read_at_any_size_and_write_as_dwords_and_qwords() {
    let mut machine = Machine::new();
    let cap = Cap::from_bits(u64::from_le_bytes(machine.read_register(register::CAP)));
    assert_eq!((cap.mqes(), cap.cqr(), cap.dstrd()), (4095, true, 0));
    assert_eq!(u32::from_le_bytes(machine.read_register(register::VS)), 0x0002_0100);
    assert_eq!(machine.read_register(register::VS + 1), [1], "one byte of it");
    assert_eq!(machine.read_register(register::ASQ), PAGE.to_le_bytes());
    assert_eq!(machine.read_register(register::DOORBELLS), [0; 8]);
    assert_eq!(machine.read_register(0xffc), [0; 8]);

    machine.write_register(register::ASQ, &(8 * PAGE).to_le_bytes());
    assert_eq!(
        machine.read_register(register::ASQ),
        PAGE.to_le_bytes(),
        "fixed while enabled"
    );
    machine.disable();
    machine.write_register(register::ASQ, &0x5000u32.to_le_bytes());
    machine.write_register(register::ASQ + 4, &7u32.to_le_bytes());
    assert_eq!(machine.read_register(register::ASQ), 0x7_0000_5000u64.to_le_bytes());
    machine.write_register(register::ASQ, &[0xff; 2]);
    machine.write_register(register::ASQ + 2, &[0xff; 4]);
    assert_eq!(
        machine.read_register(register::ASQ),
        0x7_0000_5000u64.to_le_bytes(),
        "odd accesses do nothing"
    );

    machine.write_register(register::INTMS, &5u32.to_le_bytes());
    machine.write_register(register::INTMC, &4u32.to_le_bytes());
    assert_eq!(u32::from_le_bytes(machine.read_register(register::INTMS)), 1);
}

#[test]
fn admin_queues_that_cannot_be_are_a_fatal_status() {
    let cases: [(u32, u64, u64); 5] = [
        (0x000f_0000, PAGE, 2 * PAGE), // a submission queue of one entry
        (0x0000_000f, PAGE, 2 * PAGE), // a completion queue of one entry
        (0x000f_000f, PAGE + 8, 2 * PAGE),
        (0x000f_000f, PAGE, 2 * PAGE + 8),
        (0x000f_000f, 0, 2 * PAGE),
    ];
    for (attributes, submission, completion) in cases {
        let mut machine = Machine::new();
        machine.disable();
        machine.write_register(register::AQA, &attributes.to_le_bytes());
        machine.write_register(register::ASQ, &submission.to_le_bytes());
        machine.write_register(register::ACQ, &completion.to_le_bytes());
        machine.write_register(register::CC, &0x0046_0001u32.to_le_bytes());
        let csts = machine.csts();
        assert!(
            csts.cfs() && !csts.rdy(),
            "{attributes:#x} {submission:#x} {completion:#x}: {csts:?}"
        );
        machine.disable();
        assert!(!machine.csts().cfs(), "a reset helps");
        machine.enable();
    }
}

#[test]
fn a_queue_whose_memory_is_gone_is_a_fatal_status() {
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    let mut entry = Machine::create_submission(2, 64, 1);
    entry.set_prps(RAM_BYTES, 0);
    machine.succeeds(0, entry);
    machine.doorbell(4, 1);
    machine.run();
    assert!(machine.csts().cfs());
    machine.disable();
    machine.enable();
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));
}

// --------------------------------------------------------------------------- queue management --

#[test]
fn completion_queues_are_created_only_as_the_standard_allows() {
    let mut machine = Machine::new();
    let good = || Machine::create_completion(1, 64, Some(1));
    let with_cdw11 = |dword11: u32| SubmissionEntry {
        cdw11: dword11.into(),
        ..good()
    };
    let refused = table! {
        "no identifier": Machine::create_completion(0, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "more than there are": Machine::create_completion(5, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "the largest identifier": Machine::create_completion(0xffff, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "one entry": Machine::create_completion(1, 1, None) => Status::INVALID_QUEUE_SIZE,
        "more entries than MQES": Machine::create_completion(1, 4097, None) => Status::INVALID_QUEUE_SIZE,
        "as many as the field can say": Machine::create_completion(1, 65536, None) => Status::INVALID_QUEUE_SIZE,
        "no such vector": Machine::create_completion(1, 64, Some(VECTORS)) => Status::INVALID_INTERRUPT_VECTOR,
        "in pieces": with_cdw11(1 << 16 | 2) => Status::INVALID_FIELD,
        "an offset in a page": prps(good(), 0x5008, 0) => Status::PRP_OFFSET_INVALID,
        "no address": prps(good(), 0, 0) => Status::INVALID_FIELD,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, good());
    machine.refuses(0, good(), Status::INVALID_QUEUE_IDENTIFIER);
    machine.succeeds(0, Machine::create_completion(2, 4096, Some(VECTORS - 1)));
}

#[test]
fn submission_queues_are_created_only_as_the_standard_allows() {
    let mut machine = Machine::new();
    machine.succeeds(0, Machine::create_completion(1, 64, None));
    let good = || Machine::create_submission(1, 64, 1);
    let in_pieces = SubmissionEntry {
        cdw11: (1 << 16).into(),
        ..good()
    };
    let refused = table! {
        "no identifier": Machine::create_submission(0, 64, 1) => Status::INVALID_QUEUE_IDENTIFIER,
        "more than there are": Machine::create_submission(5, 64, 1) => Status::INVALID_QUEUE_IDENTIFIER,
        "the admin completion queue": Machine::create_submission(1, 64, 0) => Status::INVALID_QUEUE_IDENTIFIER,
        "a completion queue that cannot be": Machine::create_submission(1, 64, 5) => Status::INVALID_QUEUE_IDENTIFIER,
        "a completion queue that is not there": Machine::create_submission(1, 64, 2) => Status::COMPLETION_QUEUE_INVALID,
        "one entry": Machine::create_submission(1, 1, 1) => Status::INVALID_QUEUE_SIZE,
        "more entries than MQES": Machine::create_submission(1, 4097, 1) => Status::INVALID_QUEUE_SIZE,
        "in pieces": in_pieces => Status::INVALID_FIELD,
        "an offset in a page": prps(good(), 0x5008, 0) => Status::PRP_OFFSET_INVALID,
        "no address": prps(good(), 0, 0) => Status::INVALID_FIELD,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, good());
    machine.refuses(0, good(), Status::INVALID_QUEUE_IDENTIFIER);
}

#[test]
fn queues_are_deleted_in_order() {
    let mut machine = Machine::with_queue();
    machine.succeeds(0, Machine::create_submission(2, 64, 1));
    let (submission, completion) = (
        AdminOpcode::DeleteIoSubmissionQueue,
        AdminOpcode::DeleteIoCompletionQueue,
    );
    for (opcode, queue) in [
        (submission, 0),
        (submission, 3),
        (submission, 0xffff),
        (completion, 0),
        (completion, 2),
    ] {
        machine.refuses(0, Machine::delete(opcode, queue), Status::INVALID_QUEUE_IDENTIFIER);
    }
    machine.refuses(0, Machine::delete(completion, 1), Status::INVALID_QUEUE_DELETION);
    machine.succeeds(0, Machine::delete(submission, 2));
    machine.refuses(0, Machine::delete(completion, 1), Status::INVALID_QUEUE_DELETION);
    machine.succeeds(0, Machine::delete(submission, 1));
    machine.succeeds(0, Machine::delete(completion, 1));
    machine.create_pair(1, 8, Some(1));
    machine.succeeds(1, write(1, DATA, 0));
}

#[test]
fn the_number_of_queues_is_what_was_granted() {
    let mut machine = Machine::new();
    let set = |number: u32| SubmissionEntry {
        cdw10: 7.into(),
        cdw11: number.into(),
        ..admin(AdminOpcode::SetFeatures, 0)
    };
    // Two submission and three completion queues.
    assert_eq!(machine.succeeds(0, set(2 << 16 | 1)).dw0.get(), 2 << 16 | 1);
    machine.succeeds(0, Machine::create_completion(3, 64, None));
    let refused = table! {
        "a fourth completion queue": Machine::create_completion(4, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "a third submission queue": Machine::create_submission(3, 64, 3) => Status::INVALID_QUEUE_IDENTIFIER,
        "one for a fourth": Machine::create_submission(2, 64, 4) => Status::INVALID_QUEUE_IDENTIFIER,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, Machine::create_submission(2, 64, 3));
    machine.refuses(0, set(0), Status::COMMAND_SEQUENCE_ERROR);
    // Other features are unaffected.
    machine.succeeds(
        0,
        SubmissionEntry {
            cdw10: 1.into(),
            ..set(3)
        },
    );
    machine.disable();
    machine.enable();
    machine.succeeds(0, set(0));
}

#[test]
fn entry_sizes_that_were_not_chosen_make_no_queues() {
    let mut machine = Machine::new();
    for (cc, entry) in [
        (0x0006_0001u32, Machine::create_completion(1, 64, None)),
        (0x0040_0001, Machine::create_submission(1, 64, 1)),
    ] {
        machine.disable();
        machine.enable();
        machine.succeeds(0, Machine::create_completion(1, 64, None));
        machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoCompletionQueue, 1));
        if entry.opcode == AdminOpcode::CreateIoSubmissionQueue.code() {
            machine.succeeds(0, Machine::create_completion(1, 64, None));
        }
        machine.write_register(register::CC, &cc.to_le_bytes());
        machine.refuses(0, entry, Status::INVALID_QUEUE_SIZE);
    }
}

// ---------------------------------------------------------------------------------------- PRPs --

#[test]
fn prps_describe_data_in_pages() {
    let mut machine = Machine::with_queue();
    // In one page with an offset, and over a page boundary with a second entry.
    let data = machine.fill(DATA + 0x10, 3 * PAGE, 3);
    machine.write_numbers(DATA - PAGE, &[DATA + PAGE, DATA + 2 * PAGE, DATA + 3 * PAGE]);
    machine.succeeds(1, write(3, DATA + 0x10, DATA - PAGE));
    machine.succeeds(1, read(1, DATA + 0x10_0000, 0));
    assert_eq!(machine.ram(DATA + 0x10_0000, PAGE), data[..PAGE as usize]);
    machine.succeeds(1, read(2, DATA + 0x10_0ffc, DATA - PAGE + 8));
    assert_eq!(machine.ram(DATA + 0x10_0ffc, 4), data[..4]);
    assert_eq!(machine.ram(DATA + 2 * PAGE, PAGE), data[4..4 + PAGE as usize]);
    // Two whole pages that are not neighbours.
    machine.succeeds(1, read(2, DATA + 0x11_0000, DATA + 0x12_0000));
    assert_eq!(machine.ram(DATA + 0x11_0000, PAGE), data[..PAGE as usize]);
    assert_eq!(
        machine.ram(DATA + 0x12_0000, PAGE),
        data[PAGE as usize..2 * PAGE as usize]
    );
}

#[test]
fn a_prp_list_goes_on_in_other_pages() {
    let mut machine = Machine::with_queue();
    // 1 MiB from the middle of a page needs 256 list entries. The first list page has room for 2,
    // the next one for all.
    let data = machine.fill(DATA, MIB, 9);
    let (first_list, second_list) = (DATA - 3 * PAGE + PAGE - 24, DATA - PAGE);
    let start = DATA + 2048;
    let aligned: Vec<u64> = (1..=256).map(|page| DATA + page * PAGE).collect();
    machine.write_numbers(first_list, &[aligned[0], aligned[1], second_list]);
    machine.write_numbers(second_list, &aligned[2..]);
    machine.fill(DATA + MIB, 2048, 9);
    let expected = [&data[2048..], &machine.ram(DATA + MIB, 2048)[..]].concat();
    machine.succeeds(1, write(256, start, first_list));

    // A list at the last entry of its page, which can only point to the next page.
    let target = DATA + 2 * MIB;
    let back: Vec<u64> = (1..256).map(|page| target + page * PAGE).collect();
    machine.write_numbers(DATA - PAGE - 8, &[second_list]);
    machine.write_numbers(second_list, &back);
    machine.succeeds(1, read(256, target, DATA - PAGE - 8));
    assert!(machine.ram(target, MIB) == expected, "the data came back");
}

#[test]
fn malformed_prps_are_refused() {
    let mut machine = Machine::with_queue();
    let list = DATA - PAGE;
    machine.write_numbers(list, &[DATA + 8, DATA + PAGE]);
    machine.write_numbers(list + 0x100, &[DATA, DATA + PAGE + 4]);
    machine.write_numbers(list + 0x200, &[DATA, RAM_BYTES]);
    machine.write_numbers(list + PAGE - 8, &[list + 0x200]);
    let far = 1 << 60;
    let refused = table! {
        "not dword aligned": write(1, DATA + 2, 0) => Status::PRP_OFFSET_INVALID,
        "second entry with an offset": write(2, DATA, DATA + 16) => Status::PRP_OFFSET_INVALID,
        "second entry missing": write(2, DATA, 0) => Status::INVALID_FIELD,
        "list missing": write(3, DATA, 0) => Status::INVALID_FIELD,
        "list not qword aligned": write(3, DATA, list + 4) => Status::PRP_OFFSET_INVALID,
        "first list entry with an offset": write(3, DATA, list) => Status::PRP_OFFSET_INVALID,
        "second list entry with an offset": write(3, DATA, list + 0x100) => Status::PRP_OFFSET_INVALID,
        "next list with an offset": write(3, DATA, list + PAGE - 8) => Status::PRP_OFFSET_INVALID,
        "list entry without memory": write(3, DATA, list + 0x200) => Status::DATA_TRANSFER_ERROR,
        "no memory": write(1, far, 0) => Status::DATA_TRANSFER_ERROR,
        "no memory, at the end of addresses": write(1, u64::MAX - 3, 0) => Status::INVALID_FIELD,
        "no memory for the list": write(3, DATA, far) => Status::DATA_TRANSFER_ERROR,
        "no memory to read to": read(1, far, 0) => Status::DATA_TRANSFER_ERROR,
        "no memory behind the first page": read(2, RAM_BYTES - PAGE, RAM_BYTES) => Status::DATA_TRANSFER_ERROR,
    };
    machine.refuses_each(1, &refused);
    machine.refuses(0, prps(identify(1, 0), DATA + 2, 0), Status::PRP_OFFSET_INVALID);
    machine.succeeds(1, read(1, DATA, 0));
    assert_eq!(machine.ram(DATA, PAGE), vec![0; PAGE as usize], "nothing was written");
}

// ---------------------------------------------------------------------------------------- SGLs --

fn descriptor(kind: SglType, subtype: u8, address: u64, bytes: u32) -> SglDescriptor {
    SglDescriptor {
        addr: address.into(),
        length: bytes.into(),
        id: SglIdentifier::new().with_sgl_type(kind.code()).with_subtype(subtype),
        ..SglDescriptor::default()
    }
}

fn block(address: u64, bytes: u32) -> SglDescriptor {
    descriptor(SglType::DataBlock, SGL_SUBTYPE_ADDRESS, address, bytes)
}

fn bucket(bytes: u32) -> SglDescriptor {
    descriptor(SglType::BitBucket, SGL_SUBTYPE_ADDRESS, 0, bytes)
}

fn segment(address: u64, descriptors: u32) -> SglDescriptor {
    descriptor(SglType::Segment, SGL_SUBTYPE_ADDRESS, address, descriptors * 16)
}

fn last_segment(address: u64, descriptors: u32) -> SglDescriptor {
    descriptor(SglType::LastSegment, SGL_SUBTYPE_ADDRESS, address, descriptors * 16)
}

fn sgl(mut entry: SubmissionEntry, sgl1: SglDescriptor) -> SubmissionEntry {
    entry.flags.set_psdt(1);
    entry.set_sgl1(sgl1);
    entry
}

impl Machine {
    fn put(&self, address: u64, descriptors: &[SglDescriptor]) {
        self.ram.write(address, descriptors.as_bytes()).unwrap();
    }
}

#[test]
fn sgls_describe_data_in_pieces() {
    let mut machine = Machine::with_queue();
    let page = PAGE as u32;
    let data = machine.fill(DATA, 2 * PAGE, 5);
    let (list, more) = (DATA - PAGE, DATA - 2 * PAGE);

    // One block at any address, longer than needed.
    machine.succeeds(1, sgl(write(2, 0, 0), block(DATA, 2 * page)));
    machine.succeeds(1, sgl(read(2, 0, 0), block(DATA + 0x10_0001, 3 * page)));
    assert_eq!(machine.ram(DATA + 0x10_0001, 2 * PAGE), data);

    // Pieces of odd sizes in two segments. A bit bucket has no length in data for the controller.
    machine.put(
        list,
        &[block(DATA, 1), block(DATA + 1, 0), bucket(77), segment(more, 2)],
    );
    machine.put(more, &[block(DATA + 1, page), last_segment(list + 0x800, 1)]);
    machine.put(list + 0x800, &[block(DATA + 1 + PAGE, page - 1)]);
    let write_other = |sgl1| sgl(io(IoOpcode::Write, 1, 10, 2), sgl1);
    machine.succeeds(1, write_other(segment(list, 4)));

    // Data for the host goes past a bit bucket.
    machine.put(
        list,
        &[
            block(DATA + 0x20_0000, 100),
            bucket(page),
            block(DATA + 0x20_0064, page - 100),
        ],
    );
    let mut read_other = sgl(io(IoOpcode::Read, 1, 10, 2), last_segment(list, 3));
    read_other.flags.set_psdt(2);
    machine.succeeds(1, read_other);
    assert_eq!(machine.ram(DATA + 0x20_0000, 100), data[..100]);
    assert_eq!(machine.ram(DATA + 0x20_0064, PAGE - 100), data[100 + PAGE as usize..]);
}

#[test]
fn malformed_sgls_are_refused() {
    let mut machine = Machine::with_queue();
    let page = PAGE as u32;
    let at = |number: u64| DATA - PAGE + number * 0x100;
    machine.put(at(0), &[block(DATA, page / 2), block(DATA, page / 2 - 1)]);
    machine.put(at(1), &[segment(at(2), 1), block(DATA, page)]);
    machine.put(at(2), &[block(DATA, page)]);
    machine.put(at(3), &[last_segment(at(2), 1)]);
    machine.put(at(4), &[descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, DATA, page)]);
    machine.put(at(5), &[segment(at(5), 1)]); // a chain without an end
    machine.put(at(6), &[block(DATA, 0), segment(at(6), 2)]);
    let odd = |kind, address, bytes| descriptor(kind, SGL_SUBTYPE_ADDRESS, address, bytes);
    let refused = table! {
        "too short": block(DATA, page - 1) => Status::DATA_SGL_LENGTH_INVALID,
        "too short in a segment": last_segment(at(0), 2) => Status::DATA_SGL_LENGTH_INVALID,
        "nothing but a bucket": bucket(page) => Status::DATA_SGL_LENGTH_INVALID,
        "keyed": odd(SglType::KeyedDataBlock, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "of a transport": odd(SglType::TransportDataBlock, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "of a vendor": odd(SglType::VendorSpecific, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an offset": descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, 0, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an offset in a segment": last_segment(at(4), 1) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an empty segment": segment(at(2), 0) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "half a descriptor": odd(SglType::LastSegment, at(2), 24) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment that is not aligned": last_segment(at(2) + 4, 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment that leads nowhere": segment(at(2), 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a last segment that leads on": last_segment(at(3), 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment in the middle": segment(at(1), 2) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "a chain without an end": segment(at(5), 1) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "the same with data in it": segment(at(6), 2) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "a segment of 4 GiB": odd(SglType::LastSegment, at(2), 0xffff_fff0)
            => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "no memory for a segment": last_segment(1 << 60, 1) => Status::DATA_TRANSFER_ERROR,
        "a segment at the end of addresses": last_segment(u64::MAX - 7, 100) => Status::DATA_TRANSFER_ERROR,
        "no memory for data": block(u64::MAX - 100, page) => Status::DATA_TRANSFER_ERROR,
    };
    let refused = refused.map(|(what, sgl1, status)| (what, sgl(write(1, 0, 0), sgl1), status));
    machine.refuses_each(1, &refused);
    let mut reserved = write(1, DATA, 0);
    reserved.flags.set_psdt(3);
    machine.refuses(1, reserved, Status::INVALID_FIELD);
    machine.refuses(0, sgl(identify(1, 0), block(DATA, page)), Status::INVALID_FIELD);
}

// ------------------------------------------------------------------------------------ metadata --

impl Machine {
    /// A machine whose namespace has 4 KiB blocks with 64 bytes of metadata in a separate buffer.
    fn with_metadata() -> Machine {
        let mut machine = Machine::with_queue();
        let mut format = admin(AdminOpcode::FormatNvm, 1);
        format.cdw10.set(2);
        machine.succeeds(0, format);
        machine
    }
}

fn metadata(mut entry: SubmissionEntry, psdt: u8, mptr: u64) -> SubmissionEntry {
    entry.flags.set_psdt(psdt);
    entry.mptr.set(mptr);
    entry
}

#[test]
fn the_metadata_pointer_is_an_address_or_an_sgl() {
    let mut machine = Machine::with_metadata();
    let (meta, list, more) = (DATA - PAGE, DATA - 2 * PAGE, DATA - 2 * PAGE + 0x100);
    let data = machine.fill(DATA, 2 * PAGE, 9);
    let sent = machine.fill(meta, 128, 0x55);
    let (to, to_meta) = (DATA + 0x10_0000, DATA + 0x20_0004);
    let check = |machine: &mut Machine, what: &str| {
        assert_eq!(machine.ram(to, 2 * PAGE), data, "{what}: data");
        assert_eq!(machine.ram(to_meta, 128), sent, "{what}: metadata");
        assert_eq!(machine.ram(to_meta - 4, 4), [0; 4], "{what}: before");
        assert_eq!(machine.ram(to_meta + 128, 64), [0; 64], "{what}: behind");
        machine.ram.write(to, &[0; 2 * PAGE as usize]).unwrap();
        machine.ram.write(to_meta, &[0; 128]).unwrap();
    };

    // PRPs, and a contiguous buffer at a multiple of 4.
    machine.succeeds(1, metadata(write(2, DATA, DATA + PAGE), 0, meta));
    machine.succeeds(1, metadata(read(2, to, to + PAGE), 0, to_meta));
    check(&mut machine, "PRPs");

    // An SGL, and a contiguous buffer that follows the data in memory.
    machine.ram.write(DATA + 2 * PAGE, &sent).unwrap();
    let block_of = |address| block(address, 2 * PAGE as u32);
    let write_other = |sgl1| sgl(io(IoOpcode::Write, 1, 10, 2), sgl1);
    let read_other = |sgl1| sgl(io(IoOpcode::Read, 1, 10, 2), sgl1);
    machine.succeeds(1, metadata(write_other(block_of(DATA)), 1, DATA + 2 * PAGE));
    machine.succeeds(1, metadata(read_other(block_of(to)), 1, to_meta));
    check(&mut machine, "an SGL and a buffer");

    // An SGL with an SGL descriptor at the metadata pointer. The descriptor is a block that is too
    // long, or a segment of pieces.
    machine.put(list, &[block(meta, 200)]);
    machine.succeeds(1, metadata(sgl(write(2, 0, 0), block_of(DATA)), 2, list));
    machine.put(list, &[last_segment(more, 3)]);
    machine.put(
        more,
        &[block(to_meta, 1), block(to_meta + 1, 100), block(to_meta + 101, 27)],
    );
    machine.succeeds(1, metadata(sgl(read(2, 0, 0), block_of(to)), 2, list));
    check(&mut machine, "SGLs for both");

    // Compare sees a difference in the metadata.
    let compare = metadata(prps(io(IoOpcode::Compare, 1, 10, 2), DATA, DATA + PAGE), 0, meta);
    machine.succeeds(1, compare);
    machine.ram.write(meta + 127, &[!sent[127]]).unwrap();
    machine.refuses(1, compare, Status::COMPARE_FAILURE);
}

#[test]
fn malformed_metadata_pointers_are_refused() {
    let mut machine = Machine::with_metadata();
    let list = DATA - PAGE;
    machine.put(list, &[block(DATA + PAGE, 63)]);
    machine.put(
        list + 0x10,
        &[descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, 0, 64)],
    );
    machine.put(list + 0x20, &[last_segment(DATA + 4, 1)]);
    machine.put(list + 0x30, &[block(u64::MAX - 10, 64)]);
    let writes = |psdt, mptr| match psdt {
        0 => metadata(write(1, DATA, 0), psdt, mptr),
        _ => metadata(sgl(write(1, 0, 0), block(DATA, PAGE as u32)), psdt, mptr),
    };
    let refused = table! {
        "an odd address": writes(0, DATA + 2) => Status::INVALID_FIELD,
        "an odd address beside an SGL": writes(1, DATA + 1) => Status::INVALID_FIELD,
        "no address, which is 0": writes(0, 0) => Status::INVALID_FIELD,
        "no address beside an SGL": writes(1, 0) => Status::INVALID_FIELD,
        "no memory": writes(0, u64::MAX - 63) => Status::DATA_TRANSFER_ERROR,
        "memory for a part": writes(1, RAM_BYTES - 60) => Status::DATA_TRANSFER_ERROR,
        "an SGL that is not aligned": writes(2, list + 4) => Status::INVALID_FIELD,
        "no memory for an SGL": writes(2, 1 << 60) => Status::DATA_TRANSFER_ERROR,
        "an SGL that is too short": writes(2, list) => Status::METADATA_SGL_LENGTH_INVALID,
        "an offset": writes(2, list + 0x10) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "a segment that is not aligned": writes(2, list + 0x20) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "an SGL without memory": writes(2, list + 0x30) => Status::DATA_TRANSFER_ERROR,
    };
    machine.refuses_each(1, &refused);
    assert_eq!(
        machine.drive.subsystem.state().smart.host_bytes_written,
        0,
        "nothing was changed"
    );
    // Without separate metadata the pointer is ignored.
    let mut format = admin(AdminOpcode::FormatNvm, 1);
    format.cdw10.set(0);
    machine.succeeds(0, format);
    machine.succeeds(1, metadata(write(1, DATA, 0), 0, 3));
}

#[test]
fn a_range_beyond_the_namespace_is_refused_before_its_data_pointer() {
    let mut machine = Machine::with_queue();
    let end = common::CAPACITY_BYTES / PAGE;
    for opcode in [IoOpcode::Read, IoOpcode::Write, IoOpcode::Compare] {
        for (prp1, prp2) in [(1, 0), (u64::MAX - 3, 0), (DATA, 0), (DATA, 3)] {
            let entry = prps(io(opcode, 1, end - 1, 2), prp1, prp2);
            machine.refuses(1, entry, Status::LBA_OUT_OF_RANGE);
        }
    }
}

/// A tenant whose commands take long gets a part of the drive's time, not all of it.
#[test]
fn between_the_parts_of_a_long_command_others_have_the_drive() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, None);
    let blocks = common::CAPACITY_BYTES / PAGE;
    let whole = nvme_spec::command::Range {
        nlb: (blocks as u32).into(),
        ..nvme_spec::command::Range::default()
    };
    machine.ram.write(DATA, [whole; 256].as_bytes()).unwrap();
    let mut deallocate = prps(io(IoOpcode::DatasetManagement, 1, 0, 1), DATA, 0);
    deallocate.cdw10.set(255);
    deallocate.cdw11.set(4);
    let zeroes = io(IoOpcode::WriteZeroes, 1, 0, blocks);
    for (long, parts_min) in [(io(IoOpcode::Verify, 1, 0, blocks), 64), (deallocate, 256), (zeroes, 4)] {
        let cid = machine.submit(1, long);
        machine.ring(1);
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        let mut batches = 1;
        while machine.with(|controller, _, bus| controller.has_work(bus)) {
            let other = machine.submit(2, read(1, DATA + PAGE, 0));
            machine.ring(2);
            machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
            let done = machine.take(2).expect("the other's is complete in its batch");
            assert_eq!((done.cid.get(), done.status.status()), (other, Status::SUCCESS));
            machine.ring_head(2);
            batches += 1;
        }
        assert!(batches >= parts_min, "{batches} batches");
        let done = machine.take(1).expect("complete at the end");
        assert_eq!((done.cid.get(), done.status.status()), (cid, Status::SUCCESS));
        machine.ring_head(1);
    }
    let verified = machine.drive.subsystem.state().smart.host_bytes_read;
    assert!(verified >= common::CAPACITY_BYTES);
}

/// Storing the state writes all of it, so a command does so once, not for each of its ranges.
#[test]
fn a_list_of_ranges_stores_the_state_once() {
    let mut machine = Machine::with_queue();
    let ranges = [0u64, 2, 4].map(|first| nvme_spec::command::Range {
        nlb: 1.into(),
        slba: first.into(),
        ..nvme_spec::command::Range::default()
    });
    for range in &ranges {
        machine.succeeds(1, io(IoOpcode::WriteUncorrectable, 1, range.slba.get(), 1));
    }
    machine.ram.write(DATA, ranges.as_bytes()).unwrap();
    let mut deallocate = prps(io(IoOpcode::DatasetManagement, 1, 0, 1), DATA, 0);
    deallocate.cdw10.set(2);
    deallocate.cdw11.set(4);
    let before = machine.drive.memory.keeps.load(Ordering::Relaxed);
    machine.succeeds(1, deallocate);
    assert_eq!(machine.drive.memory.keeps.load(Ordering::Relaxed), before + 1);
    machine.succeeds(1, io(IoOpcode::Verify, 1, 0, 8));
}

/// The controller starts a bounded number of long commands, each in a separate batch, and serves
/// the admin queue in between.
#[test]
fn long_commands_are_begun_one_a_batch_and_not_without_end() {
    const LONG: u16 = 80;
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    machine.create_pair(2, 64, None);
    for queue in [1, 2] {
        for _ in 0..LONG / 2 {
            machine.submit(queue, io(IoOpcode::Verify, 1, 0, common::CAPACITY_BYTES / PAGE));
        }
        machine.ring(queue);
    }
    let mut begun = 0;
    while begun < LONG {
        let batch = machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        if batch == 0 {
            break;
        }
        assert_eq!(batch, 1, "the subsystem is locked for one of them");
        begun += 1;
    }
    assert_eq!(begun, 64, "others wait in their queues");
    let mut queues = admin(AdminOpcode::GetFeatures, 0);
    queues.cdw10.set(7);
    machine.submit(0, queues);
    machine.ring(0);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert_eq!(machine.take(0).expect("done at once").status.status(), Status::SUCCESS);
    machine.ring_head(0);
    for queue in [1, 2] {
        machine.submit(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, queue));
    }
    machine.ring(0);
    machine.run();
    assert_eq!(machine.take_all(0).len(), 2);
    let aborted = machine.take_all(1).len() + machine.take_all(2).len();
    assert!((64..=66).contains(&aborted), "{aborted} of them were begun");
}

#[test]
fn a_long_command_ends_with_its_queue_its_namespace_and_its_controller() {
    let mut machine = Machine::with_queue();
    let verify = io(IoOpcode::Verify, 1, 0, common::CAPACITY_BYTES / PAGE);
    let begin = |machine: &mut Machine| {
        machine.submit(1, verify);
        machine.ring(1);
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        assert!(machine.take(1).is_none(), "it goes on");
    };
    begin(&mut machine);
    let deleted = machine.submit(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 1));
    machine.ring(0);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert_eq!(machine.take(0).unwrap().cid.get(), deleted);
    machine.ring_head(0);
    assert_eq!(machine.take(1).unwrap().status.status(), Status::ABORTED_SQ_DELETION);

    let mut machine = Machine::with_queue();
    begin(&mut machine);
    let mut delete = admin(AdminOpcode::NamespaceManagement, 1);
    delete.cdw10.set(1);
    machine.submit(0, delete);
    machine.ring(0);
    machine.run();
    assert_eq!(machine.take(0).unwrap().status.status(), Status::SUCCESS);
    assert_eq!(
        machine.take(1).unwrap().status.status(),
        Status::INVALID_FIELD,
        "no such namespace"
    );

    let mut machine = Machine::with_queue();
    begin(&mut machine);
    machine.disable();
    machine.enable();
    machine.create_pair(1, 64, None);
    assert_eq!(machine.run(), [], "nothing goes on");
}

#[test]
fn completions_that_were_not_taken_are_announced_again() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, Some(2));
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    machine.run();
    machine.raised.0.borrow_mut().clear();
    machine.with(|controller, _, bus| controller.raise_pending(bus));
    assert_eq!(*machine.raised.0.borrow(), [1], "and not queue 2, which has none");
    machine.take(1).unwrap();
    machine.ring_head(1);
    machine.with(|controller, _, bus| controller.raise_pending(bus));
    assert_eq!(*machine.raised.0.borrow(), [1], "taken by now");
}

// ----------------------------------------------------------------------------------- doorbells --

#[test]
fn a_batch_raises_a_vector_once() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, None);
    machine.raised.0.borrow_mut().clear();
    for queue in [1, 2] {
        for _ in 0..10 {
            machine.submit(queue, read(1, DATA, 0));
        }
        machine.ring(queue);
    }
    assert_eq!(machine.run(), [20]);
    assert_eq!(*machine.raised.0.borrow(), [1], "queue 1 only: queue 2 is polled");
    assert_eq!((machine.take_all(1).len(), machine.take_all(2).len()), (10, 10));
}

#[test]
fn a_busy_queue_does_not_hold_up_the_others() {
    let mut machine = Machine::new();
    for queue in 1..=3 {
        machine.create_pair(queue, 256, None);
    }
    for queue in 1..=3 {
        for _ in 0..100 {
            machine.submit(queue, read(1, DATA, 0));
        }
        machine.ring(queue);
    }
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    let first: Vec<usize> = (1..=3).map(|queue| machine.take_all(queue).len()).collect();
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    let second: Vec<usize> = (1..=3).map(|queue| machine.take_all(queue).len()).collect();
    assert_eq!((first, second), (vec![32, 32, 0], vec![32, 0, 32]));
    machine.run();
    let rest: usize = (1..=3).map(|queue| machine.take_all(queue).len()).sum();
    assert_eq!(rest, 300 - 128);
}

#[test]
fn a_full_completion_queue_stops_its_submission_queues_until_the_host_takes_some() {
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    // Queue 2 gets a small completion queue.
    machine.create_pair(2, 8, None);
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 2));
    machine.succeeds(0, Machine::create_submission(2, 64, 2));
    machine.pairs[2].entries = 64;
    let cids: Vec<u16> = (0..30).map(|_| machine.submit(2, read(1, DATA, 0))).collect();
    machine.ring(2);
    machine.pairs[2].entries = 8; // of the completion queue from here on
    let mut seen = Vec::new();
    let mut rounds = 0;
    while seen.len() < 30 {
        machine.run();
        let taken = machine.take_all(2);
        assert!(taken.len() <= 7, "one entry of a ring stays empty");
        seen.extend(taken.iter().map(|entry| entry.cid.get()));
        machine.succeeds(1, read(1, DATA, 0));
        machine.ring_head(2);
        rounds += 1;
    }
    assert_eq!((seen, rounds), (cids, 5));
}

#[test]
fn wrong_doorbells_are_events_and_nothing_else() {
    let mut machine = Machine::with_queue();
    let request = || admin(AdminOpcode::AsynchronousEventRequest, 0);
    let read_error_log = || prps(get_log(1, 0, 64), DATA, 0);
    let event_of = |machine: &mut Machine, mistake: &dyn Fn(&mut Machine)| -> u32 {
        let cid = machine.submit(0, request());
        machine.ring(0);
        machine.run();
        assert!(machine.take(0).is_none(), "it waits for an event");
        mistake(machine);
        machine.run();
        // One more poll, because the next batch reports mistakes found while polling for work.
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        let completion = machine.take(0).expect("an event");
        machine.ring_head(0);
        assert_eq!(completion.cid.get(), cid);
        machine.succeeds(0, read_error_log());
        completion.dw0.get()
    };
    // Error events have type 0 and log page 1.
    let tail = event_of(&mut machine, &|machine| machine.doorbell(2, 64));
    assert_eq!(tail, 0x0001_0100, "an entry that the queue does not have");
    machine.doorbell(2, 0);
    let head = event_of(&mut machine, &|machine| {
        machine.doorbell(3, 64);
        // The controller reads the head when room is short. 63 commands fill the queue.
        for _ in 0..63 {
            machine.submit(1, read(1, DATA, 0));
        }
        machine.ring(1);
        machine.run();
        machine.submit(1, read(1, DATA, 0));
        machine.ring(1);
    });
    assert_eq!(head, 0x0001_0100, "an entry that the completion queue does not have");
    let register = event_of(&mut machine, &|machine| {
        machine.write_register(0x1000 + 4 * 2 * 3, &[1, 0, 0, 0])
    });
    assert_eq!(register, 0x0001_0000, "queue 3 does not exist");
    assert_eq!(machine.take_all(1).len(), 63);
    machine.ring_head(1);
    machine.run();
    assert_eq!(machine.take_all(1).len(), 1, "with a right head it goes on");
}

#[test]
fn doorbells_can_be_written_like_registers() {
    let mut machine = Machine::with_queue();
    let cid = machine.submit(1, read(1, DATA, 0));
    machine.write_register(0x1000 + 8, &1u32.to_le_bytes());
    machine.run();
    assert_eq!(machine.take(1).unwrap().cid.get(), cid);
    machine.write_register(0x1000 + 12, &1u32.to_le_bytes());
    machine.write_register(0x1000 + 0x1000, &[1; 4]);
    machine.write_register(u32::MAX - 3, &[1; 8]);
    assert_eq!(machine.run(), []);
}

// ---------------------------------------------------------------------------- shadow doorbells --

#[test]
fn shadow_doorbells_stand_in_for_those_of_io_queues() {
    let mut machine = Machine::with_queue();
    let (values, indexes) = (DATA - PAGE, DATA - 2 * PAGE);
    let configure = |prp1, prp2| prps(admin(AdminOpcode::DoorbellBufferConfig, 0), prp1, prp2);
    for (prp1, prp2) in [
        (values + 4, indexes),
        (values, indexes + 8),
        (0, indexes),
        (values, 0),
        (1 << 60, indexes),
    ] {
        machine.refuses(0, configure(prp1, prp2), Status::INVALID_FIELD);
    }
    assert!(!machine.controller.has_shadow_doorbells());
    machine.succeeds(0, configure(values, indexes));
    assert!(machine.controller.has_shadow_doorbells());

    // For queue 1 the shadow counts instead of the real doorbell. The admin queue uses the real
    // one.
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    assert_eq!(machine.run(), []);
    machine.ram.store(values + 8, 1).unwrap();
    assert_eq!(machine.run(), [1]);
    assert_eq!(machine.take_all(1).len(), 1);
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));

    // While awake, the controller requests no doorbell. Before sleeping it requests one at the next
    // change.
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 0);
    assert!(!machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 1);
    assert_eq!(machine.ram.load(indexes).unwrap(), 0, "not the admin queue's");
    // Commands that came before the announcement are work.
    machine.submit(1, read(1, DATA, 0));
    machine.ram.store(values + 8, 2).unwrap();
    assert!(machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 1, "the tail that was known");

    // A reset ends the use of shadow doorbells.
    machine.disable();
    machine.enable();
    assert!(!machine.controller.has_shadow_doorbells());
    machine.create_pair(1, 64, None);
    machine.succeeds(1, read(1, DATA, 0));
}

#[test]
fn a_full_completion_queue_asks_for_its_shadow_head() {
    let mut machine = Machine::new();
    machine.create_pair(1, 4, None);
    let (values, indexes) = (DATA - PAGE, DATA - 2 * PAGE);
    machine.succeeds(0, prps(admin(AdminOpcode::DoorbellBufferConfig, 0), values, indexes));
    for tail in 1..=3 {
        machine.submit(1, read(1, DATA, 0));
        machine.ram.store(values + 8, tail).unwrap();
    }
    machine.run();
    machine.ram.store(indexes + 12, 0xffff).unwrap();
    assert!(!machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 12).unwrap(), 0);
    machine.submit(1, read(1, DATA, 0));
    machine.ram.store(values + 8, 0).unwrap();
    assert_eq!(machine.run(), [], "no room");
    machine.ram.store(values + 12, 2).unwrap();
    assert_eq!(machine.run(), [1]);
}

// ---------------------------------------------------------------------- durability, lifecycle --

fn with_cache() -> Machine {
    let mut machine = Machine::on(Drive::on(with_namespace(), true));
    machine.create_pair(1, 64, Some(1));
    machine
}

impl Machine {
    /// Runs a sync if the controller needs one. Returns true if it did.
    fn sync(&mut self) -> bool {
        let Some(durable) = self.controller.start_sync() else {
            return false;
        };
        let result = durable.flush();
        self.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
        true
    }
}

fn flush() -> SubmissionEntry {
    let mut entry = io(IoOpcode::Flush, 1, 0, 1);
    entry.cdw12.set(0);
    entry
}

/// An aborted request completes before its Abort, unless only the batch's commands have room.
#[test]
fn what_is_aborted_completes_before_its_abort() {
    let mut machine = Machine::new();
    let request = machine.submit(0, admin(AdminOpcode::AsynchronousEventRequest, 0));
    machine.ring(0);
    machine.run();
    let mut abort = admin(AdminOpcode::Abort, 0);
    abort.cdw10.set(u32::from(request) << 16);
    let mut expected = vec![(request, Status::ABORT_REQUESTED)];
    expected.push((machine.submit(0, abort), Status::SUCCESS));
    machine.ring(0);
    machine.run();
    let found = |machine: &mut Machine| -> Vec<(u16, Status)> {
        let completions = machine.take_all(0).into_iter();
        completions
            .map(|entry| (entry.cid.get(), entry.status.status()))
            .collect()
    };
    assert_eq!(found(&mut machine), expected);
    machine.ring_head(0);

    // As many commands as the queue has room for. The aborted one waits until the host consumes
    // some.
    let request = machine.submit(0, admin(AdminOpcode::AsynchronousEventRequest, 0));
    machine.ring(0);
    machine.run();
    abort.cdw10.set(u32::from(request) << 16);
    let mut expected = vec![(machine.submit(0, abort), Status::SUCCESS)];
    for _ in 2..ADMIN_ENTRIES {
        let identify = prps(identify(1, 0), DATA, 0);
        expected.push((machine.submit(0, identify), Status::SUCCESS));
    }
    machine.ring(0);
    machine.run();
    assert_eq!(found(&mut machine), expected);
    machine.ring_head(0);
    machine.run();
    assert_eq!(found(&mut machine), [(request, Status::ABORT_REQUESTED)]);
}

/// Stuck commands keep their places until they are aborted, or their queue is deleted.
#[test]
fn a_stuck_command_ends_when_it_is_aborted() {
    let mut machine = Machine::with_queue();
    let plan = "[[fault]]\nkind = \"stuck\"\ncommands = [\"flush\"]\ntimes = 3\n";
    let plan = nvme::fault::FaultPlan::parse(plan).expect("a plan");
    machine
        .drive
        .subsystem
        .set_faults(0, Some(plan))
        .expect("it can fail so");
    let stuck: Vec<u16> = (0..3).map(|_| machine.submit(1, flush())).collect();
    let well = machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    let completed = |machine: &mut Machine| -> Vec<(u16, Status)> {
        let taken = machine.take_all(1).into_iter();
        let told = taken.map(|entry| (entry.cid.get(), entry.status.status())).collect();
        machine.ring_head(1);
        told
    };
    assert_eq!(completed(&mut machine), [(well, Status::SUCCESS)]);
    let abort = |machine: &mut Machine, cid: u16| {
        let mut abort = admin(AdminOpcode::Abort, 0);
        abort.cdw10.set(u32::from(cid) << 16 | 1);
        let completion = machine.command(0, abort);
        assert_eq!(completion.status.status(), Status::SUCCESS);
        completion.dw0.get()
    };
    assert_eq!(abort(&mut machine, stuck[1]), 0, "it was aborted");
    assert_eq!(completed(&mut machine), [(stuck[1], Status::ABORT_REQUESTED)]);
    assert_eq!(abort(&mut machine, stuck[1]), 1, "there is none any more");
    assert_eq!(abort(&mut machine, well), 1, "it is complete");
    assert!(completed(&mut machine).is_empty());
    let mut delete = admin(AdminOpcode::DeleteIoSubmissionQueue, 0);
    delete.cdw10.set(1);
    assert_eq!(machine.command(0, delete).status.status(), Status::SUCCESS);
    let ended = completed(&mut machine)
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>();
    assert_eq!(
        ended,
        [stuck[0], stuck[2]]
            .map(|cid| (cid, Status::ABORTED_SQ_DELETION))
            .into()
    );
}

#[test]
fn commands_complete_when_they_are_durable_and_share_the_wait() {
    let mut machine = with_cache();
    let flushed = machine.submit(1, flush());
    let written = machine.submit(1, write(1, DATA, 0));
    machine.ring(1);
    machine.run();
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, [written], "a write with a volatile cache need not wait");
    let durable = machine
        .controller
        .start_sync()
        .expect("the flush is to be made durable");
    assert!(machine.controller.start_sync().is_none(), "one at a time");
    let late = [machine.submit(1, flush()), machine.submit(1, flush())];
    machine.ring(1);
    machine.run();
    let result = durable.flush();
    machine.raised.0.borrow_mut().clear();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert_eq!(*machine.raised.0.borrow(), [1]);
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, [flushed], "what came during the sync is not covered by it");
    assert!(machine.sync());
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, late);
    assert!(!machine.sync());
}

#[test]
fn what_cannot_be_made_durable_is_a_write_fault() {
    let mut machine = with_cache();
    machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    machine.drive.memory.broken.store(true, Ordering::Relaxed);
    assert!(machine.sync());
    let completion = machine.take(1).unwrap();
    assert_eq!(completion.status.status(), Status::WRITE_FAULT);
}

#[test]
fn deleting_a_queue_completes_what_is_outstanding() {
    let mut machine = with_cache();
    let cids = [machine.submit(1, flush()), machine.submit(1, flush())];
    machine.ring(1);
    machine.run();
    let durable = machine.controller.start_sync().unwrap();
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 1));
    let aborted = machine.take_all(1);
    assert_eq!(aborted.iter().map(|entry| entry.cid.get()).collect::<Vec<_>>(), cids);
    assert!(
        aborted
            .iter()
            .all(|entry| entry.status.status() == Status::ABORTED_SQ_DELETION)
    );
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoCompletionQueue, 1));
    let result = durable.flush();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert!(machine.take(1).is_none(), "each completes once");
}

#[test]
fn outstanding_commands_keep_their_place_in_the_completion_queue() {
    let mut machine = Machine::on(Drive::on(with_namespace(), true));
    machine.create_pair(1, 4, None);
    for _ in 0..3 {
        machine.submit(1, flush());
    }
    machine.ring(1);
    assert_eq!(machine.run(), [3]);
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    assert_eq!(
        machine.run(),
        [],
        "three places are taken by commands that nobody has seen completed"
    );
    assert!(machine.sync());
    assert_eq!(machine.take_all(1).len(), 3);
    machine.ring_head(1);
    assert_eq!(machine.run(), [1]);
}

#[test]
fn a_reset_forgets_what_is_outstanding() {
    let mut machine = with_cache();
    machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    let durable = machine.controller.start_sync().unwrap();
    machine.disable();
    assert!(
        machine
            .doorbells
            .iter()
            .all(|doorbell| doorbell.load(Ordering::Relaxed) == 0)
    );
    machine.enable();
    machine.create_pair(1, 64, None);
    let result = durable.flush();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert!(machine.take(1).is_none());
    machine.succeeds(1, read(1, DATA, 0));
}

#[test]
fn a_shutdown_is_complete_when_everything_is_durable() {
    let mut machine = with_cache();
    machine.succeeds(1, write(1, DATA, 0));
    machine.write_register(register::CC, &0x0046_4001u32.to_le_bytes());
    assert_eq!(machine.csts().shst(), 1, "it occurs");
    assert!(machine.sync());
    assert_eq!(machine.csts().shst(), 2, "it is complete");
    assert!(!machine.sync());
    machine.disable();
    machine.enable();

    // Without a cache the shutdown needs no sync.
    let mut machine = Machine::new();
    machine.write_register(register::CC, &0x0046_4001u32.to_le_bytes());
    assert_eq!(machine.csts().shst(), 2);
}

#[test]
fn a_subsystem_reset_reaches_every_controller() {
    let mut machine = Machine::with_queue();
    let other = machine.drive.host();
    machine.write_register(register::NSSR, &0x1234u32.to_le_bytes());
    assert!(machine.csts().rdy(), "only the signature resets");
    machine.write_register(register::NSSR, &NSSR_RESET.to_le_bytes());
    assert!(!machine.csts().rdy() && machine.csts().nssro());
    assert!(!machine.drive.subsystem.controller(other).is_ready());
    // The bit stays set until the host clears it, even over other resets.
    machine.enable();
    machine.disable();
    machine.with(|controller, subsystem, bus| controller.reset_function(subsystem, bus));
    assert!(machine.csts().nssro());
    machine.write_register(register::CSTS, &(1u32 << 4).to_le_bytes());
    assert!(!machine.csts().nssro());

    // The queues of this controller disappear when another controller's host resets the subsystem.
    machine.enable();
    machine.create_pair(1, 64, None);
    let id = machine.controller.id();
    machine.drive.subsystem.reset_controller(id);
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert!(!machine.controller.is_running());
    assert!(machine.take(1).is_none());
}

#[test]
fn a_function_level_reset_clears_the_registers() {
    let mut machine = Machine::with_queue();
    machine.with(|controller, subsystem, bus| controller.reset_function(subsystem, bus));
    assert!(!machine.csts().rdy());
    assert_eq!(machine.read_register(register::AQA), [0; 4]);
    assert_eq!(machine.read_register(register::ASQ), [0; 8]);
    machine.enable();
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));
}

// --------------------------------------------------------------------------------- hostile host --

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
    // Mostly plausible, so that commands get far.
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
        // Not for a Read, whose counters depend on the transferred part of its data.
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
        entry
            .cdw12
            .set(entry.cdw12.get() | kind << 20 | u32::from(draw(10) == 0) << 30);
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
                let plan = nvme::fault::FaultPlan {
                    seed: 1,
                    write_cache_bytes: 0,
                    survivors: 0.0,
                    faults: Vec::new(),
                };
                machine.drive.subsystem.set_faults(0, Some(plan)).expect("nothing");
            }
            machine
        });
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut succeeded, mut failed) = (0, 0);
        for round in 0..600 {
            let count = 1 + random.next_u64() % 40;
            let entries: Vec<SubmissionEntry> = (0..count)
                .map(|slot| any_command(&mut random, DATA + slot * SLOT))
                .collect();
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
                let mut ends: Vec<_> = machine
                    .take_all(1)
                    .into_iter()
                    .map(|end| (end.cid.get(), end.status, end.dw0.get()))
                    .collect();
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
        assert!(
            succeeded > 6000 && failed > 500,
            "{succeeded} commands succeeded, {failed} failed"
        );
        let [together, one_by_one] = machines.map(|machine| {
            let Drive { subsystem, memory, .. } = machine.drive;
            let device = subsystem.device();
            let bytes = memory.bytes.lock().unwrap().clone();
            assert!(
                device.stats().media_bytes_written() > device.stats().host_bytes_written(),
                "pages were collected"
            );
            (
                bytes,
                format!("{:#?}", subsystem.state()),
                subsystem.latencies().clone(),
                device.stats().clone(),
                (0..device.layout().logical_pages)
                    .map(|page| device.lookup(ssd::Lpn(page)))
                    .collect::<Vec<_>>(),
            )
        });
        assert!(together.0 == one_by_one.0, "the data");
        assert_eq!(together.1, one_by_one.1);
        assert_eq!(together.2, one_by_one.2);
        assert_eq!(together.3, one_by_one.3);
        assert!(together.4 == one_by_one.4, "where pages are");
    }
}
