//! Tests of the PCI Express side of a controller without a transport. Host memory is a vector,
//! doorbells are numbers, and interrupts are counted. Every malformed queue command, PRP and SGL
//! has its exact status.

#[path = "../common/mod.rs"]
mod common;
mod doorbells;
mod durability;
mod long_commands;
mod pointers;
mod queues;
mod random;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Drive, MIB, admin, config, io};
use nvme::pcie::{Bus, HostMemory, Interrupts, MemoryFault, PcieController, QUEUES_MAX};
use nvme::{ControllerKind, HostIdentity, HostTransport, Subsystem, SubsystemConfig};
use nvme_spec::command::{
    CompletionEntry, CreateIoCompletionQueueCdw11, CreateIoSubmissionQueueCdw11, CreateQueueCdw10, SglDescriptor,
    SglIdentifier, SglType, SubmissionEntry,
};
use nvme_spec::register::{self, Csts};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
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
        end.map(|end| address as usize..end as usize).ok_or(MemoryFault { address })
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
    SubsystemConfig { namespace: true, ..config() }
}

impl Machine {
    /// Machine with an enabled controller and without I/O queues.
    fn new() -> Machine {
        Machine::on(Drive::on(with_namespace(), false))
    }

    /// Machine with one I/O queue pair.
    fn with_queue() -> Machine {
        let mut machine = Machine::new();
        machine.create_pair(1, 64, Some(1));
        machine
    }

    fn on(mut drive: Drive) -> Machine {
        let connected = drive.subsystem.connect(0, HostTransport::Pcie, ControllerKind::Io, HostIdentity::default());
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
        let bus = Bus { memory: &self.ram, interrupts: &self.raised, doorbells: &self.doorbells };
        call(&mut self.controller, &mut self.drive.subsystem, bus)
    }

    fn write_register(&mut self, offset: u32, data: &[u8]) {
        self.with(|controller, subsystem, bus| controller.write_register(subsystem, bus, 0, u64::from(offset), data));
    }

    fn read_register<const N: usize>(&mut self, offset: u32) -> [u8; N] {
        let mut data = [0xee; N];
        self.controller.read_register(&self.drive.subsystem, u64::from(offset), &mut data);
        data
    }

    fn csts(&mut self) -> Csts {
        Csts::from_bits(u32::from_le_bytes(self.read_register(register::CSTS)))
    }

    fn enable(&mut self) {
        self.pairs = [Pair::default(); 5];
        self.pairs[0] = Pair { submission: PAGE, completion: 2 * PAGE, entries: ADMIN_ENTRIES, ..Pair::default() };
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
        entry.cdw10.set(CreateQueueCdw10::new().with_qid(queue).with_qsize(size).into_bits());
        let dword11 =
            CreateIoCompletionQueueCdw11::new().with_pc(true).with_ien(vector.is_some()).with_iv(vector.unwrap_or(0));
        entry.cdw11.set(dword11.into_bits());
        entry
    }

    fn create_submission(queue: u16, entries: u32, target: u16) -> SubmissionEntry {
        let mut entry = admin(AdminOpcode::CreateIoSubmissionQueue, 0);
        entry.set_prps(Machine::place(queue).0, 0);
        let size = entries.wrapping_sub(1) as u16;
        entry.cdw10.set(CreateQueueCdw10::new().with_qid(queue).with_qsize(size).into_bits());
        entry.cdw11.set(CreateIoSubmissionQueueCdw11::new().with_pc(true).with_cqid(target).into_bits());
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
        self.pairs[usize::from(queue)] = Pair { submission, completion, entries, ..Pair::default() };
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
        self.ram.read(pair.completion + u64::from(pair.head) * 16, &mut bytes).unwrap();
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

fn descriptor(kind: SglType, subtype: u8, address: u64, bytes: u32) -> SglDescriptor {
    SglDescriptor {
        addr: address.into(),
        length: bytes.into(),
        id: SglIdentifier::new().with_sgl_type(kind.code()).with_subtype(subtype),
        ..SglDescriptor::default()
    }
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
