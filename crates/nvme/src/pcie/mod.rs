//! NVMe over PCI Express: registers in BAR0, queues in host memory, doorbells, PRPs and SGLs, interrupts.
//!
//! ```text
//! host memory --(submission entries, data, shadow doorbells)--> PcieController --> Subsystem
//! doorbells   --(tails and heads)----------------------------->      |
//! host memory <--(data, completion entries)--------------------------+--> interrupts
//! ```
//!
//! A [`PcieController`] is the PCI Express side of one controller of a [`Subsystem`](crate::Subsystem). It owns no
//! memory, no thread and no clock: whoever drives it (`target::vfio_user`, tests) lends it a [`Bus`] for each call
//! and calls [`PcieController::process`] when [`PcieController::has_work`] says so. Commands are fetched and completed
//! in batches, so that the subsystem is locked, and a vector raised, once for many of them.
//!
//! The commands that exist only on PCI Express are here too: creation and deletion of I/O queues, Doorbell Buffer
//! Config. It does not have: a controller memory buffer, a persistent memory region, queues in pieces (CAP.CQR is 1),
//! weighted arbitration, interrupt coalescing, pin-based interrupts, memory pages other than 4 KiB.

mod admin;
mod data;
mod process;
mod queue;
mod registers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use nvme_spec::command::SubmissionEntry;
use prefetch::Room;
use thiserror::Error;

pub use crate::setup::{QUEUES_MAX, VENDOR_ID};

use crate::backlog::Backlog;
use crate::command::AcceptedCommand;
use crate::completion::Reply;
use crate::controller::{AsyncCompletion, DoorbellError};
use crate::io::Command as IoCommand;
use crate::io::plain_batch::Plain;
use data::Segment;
use queue::{CompletionQueue, SubmissionQueue};

/// PCI device identifier.
pub const DEVICE_ID: u16 = 0x10f0;
/// Bytes of a memory page (CC.MPS is 0).
const PAGE_BYTES: u64 = 4096;
/// Bytes of BAR0 that are registers; the doorbells follow.
pub const REGISTER_BYTES: u64 = nvme_spec::register::DOORBELLS as u64;
/// Bytes of the doorbells (CAP.DSTRD is 0).
pub const DOORBELL_BYTES: u64 = QUEUES_MAX as u64 * 8;

/// An address at which the host has no memory, or none that may be accessed like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host has no memory for this at {address:#x}")]
pub struct Fault {
    /// The address, as the device sees it.
    pub address: u64,
}

/// The host's memory as the device reaches it.
pub trait HostMemory {
    /// Copies from host memory.
    ///
    /// # Errors
    /// A part of the range is not memory; `data` is then undefined.
    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Fault>;

    /// Copies from host memory into room for it.
    ///
    /// # Errors
    /// As [`HostMemory::read`].
    fn read_into(&self, address: u64, room: Room<'_>) -> Result<(), Fault> {
        let mut data = vec![0; room.len()];
        self.read(address, &mut data)?;
        room.put(&data);
        Ok(())
    }

    /// Appends a copy of host memory to `data`. Where the bytes need not be zeroed first this is cheaper than `read`.
    ///
    /// # Errors
    /// A part of the range is not memory; what was appended is then undefined.
    fn append(&self, address: u64, bytes: usize, data: &mut Vec<u8>) -> Result<(), Fault> {
        let start = data.len();
        data.resize(start + bytes, 0);
        self.read(address, &mut data[start..])
    }

    /// Whether a range can be read from.
    ///
    /// # Errors
    /// A part of it is not memory.
    fn check_readable(&self, address: u64, bytes: usize) -> Result<(), Fault>;

    /// Copies to host memory.
    ///
    /// # Errors
    /// A part of the range is not writable memory. Bytes of the rest may have been written, no matter which: copies go up or
    /// down.
    fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault>;

    /// Copies to host memory so that whoever sees the last dword sees all of it, and what was written before (release).
    ///
    /// # Errors
    /// It is not writable memory, or the last dword is not aligned to 4 bytes.
    fn publish(&self, address: u64, entry: &[u8; 16]) -> Result<(), Fault> {
        let (start, last) = entry.split_last_chunk::<4>().expect("16 bytes");
        self.write(address, start)?;
        self.store(address.wrapping_add(start.len() as u64), u32::from_le_bytes(*last))
    }

    /// Publishes entries that follow each other, as [`HostMemory::publish`] does one after the other.
    ///
    /// # Errors
    /// As [`HostMemory::publish`]; entries before may have been written.
    fn publish_all(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), Fault> {
        let places = (0..).map(|place| address.wrapping_add(place * 16));
        places
            .zip(entries)
            .try_for_each(|(place, entry)| self.publish(place, entry))
    }

    /// Reads a 32-bit number; what the host wrote before it is visible afterwards (acquire).
    ///
    /// # Errors
    /// It is not memory, or not aligned to 4 bytes.
    fn load(&self, address: u64) -> Result<u32, Fault>;

    /// Writes a 32-bit number; whoever sees it sees what was written before (release).
    ///
    /// # Errors
    /// It is not writable memory, or not aligned to 4 bytes.
    fn store(&self, address: u64, value: u32) -> Result<(), Fault>;
}

/// The interrupt messages of the device (MSI-X).
pub trait Interrupts {
    /// Sends the message of a vector.
    fn raise(&self, vector: u16);
}

/// The doorbell registers: written by the host, read here. Index 2y is the tail of submission queue y, 2y + 1 the head
/// of completion queue y; there are `2 * QUEUES_MAX`.
pub trait Doorbells {
    /// The value of a doorbell; what the host wrote before it is visible afterwards (acquire).
    fn load(&self, index: usize) -> u32;

    /// Sets a doorbell: the host's write that came as a message, or 0 at a reset.
    fn store(&self, index: usize, value: u32);
}

impl Doorbells for Vec<AtomicU32> {
    fn load(&self, index: usize) -> u32 {
        self[index].load(Ordering::Acquire)
    }

    fn store(&self, index: usize, value: u32) {
        self[index].store(value, Ordering::Release);
    }
}

/// What a controller reaches over the bus.
#[derive(Clone, Copy)]
pub struct Bus<'a> {
    /// The host's memory.
    pub memory: &'a dyn HostMemory,
    /// Its interrupts.
    pub interrupts: &'a dyn Interrupts,
    /// The doorbells.
    pub doorbells: &'a dyn Doorbells,
}

/// Buffers in host memory that stand in for the doorbells of I/O queues (Doorbell Buffer Config).
#[derive(Clone, Copy, Debug)]
struct ShadowDoorbells {
    /// Where the host writes tails and heads.
    values: u64,
    /// Where the controller writes which value is to be announced by a real doorbell.
    event_indexes: u64,
}

/// A command that is carried out, with its place in the completion queue.
#[derive(Debug)]
struct Completion {
    /// The submission queue.
    queue: u16,
    entry: SubmissionEntry,
    reply: Reply,
}

/// A command of which a part is done, with its data. Its place in the completion queue stays reserved.
#[derive(Debug)]
struct Unfinished {
    /// The submission queue.
    queue: u16,
    command: AcceptedCommand,
    data: Vec<u8>,
}

/// The registers that only PCI Express has.
#[derive(Clone, Copy, Debug, Default)]
struct AdminQueueRegisters {
    attributes: u32,
    submission_base: u64,
    completion_base: u64,
    interrupt_mask: u32,
}

/// The PCI Express side of a controller. See the module.
pub struct PcieController {
    /// CNTLID: which controller of the subsystem this is the front of.
    id: u16,
    /// MSI-X vectors.
    vectors: u16,
    registers: AdminQueueRegisters,
    /// Whether queues exist: enabled, and neither failed nor reset since.
    running: bool,
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// Submission queues exist below this identifier only, so that few queues are quickly looked at.
    submission_end: u16,
    /// Submission queue that is looked at first in the next batch.
    next_queue: u16,
    shadow: Option<ShadowDoorbells>,
    backlog: Backlog<Completion>,
    /// Commands of which a part is done; the one that waited longest first.
    unfinished: VecDeque<Unfinished>,
    /// Vectors to raise at the end of the batch.
    raise: Vec<u16>,
    /// Fatal: host memory of a queue is not there.
    fault: Option<Fault>,
    /// Wrong doorbell writes that the subsystem was not told of yet.
    mistakes: Vec<DoorbellError>,
    /// Completions of asynchronous event requests that found the admin completion queue full.
    events: VecDeque<AsyncCompletion>,
    // Buffers that are kept to be used again.
    entries: Vec<SubmissionEntry>,
    parsed: Vec<Option<IoCommand>>,
    plain: Vec<Plain>,
    completions: Vec<[u8; 16]>,
    segments: Vec<Segment>,
    host_data: Vec<u8>,
    drive_data: Vec<u8>,
}

impl PcieController {
    /// The front of controller `id`, with `queues` I/O queue pairs and `vectors` MSI-X vectors.
    ///
    /// # Panics
    /// There are more queues than doorbells, or no vectors.
    pub fn new(id: u16, queues: u16, vectors: u16) -> PcieController {
        assert!(
            queues < QUEUES_MAX,
            "{queues} I/O queues, but doorbells for {}",
            QUEUES_MAX - 1
        );
        assert!(vectors > 0, "a controller needs a vector");
        let slots = usize::from(queues) + 1;
        PcieController {
            id,
            vectors,
            registers: AdminQueueRegisters::default(),
            running: false,
            submission: (0..slots).map(|_| None).collect(),
            completion: (0..slots).map(|_| None).collect(),
            submission_end: 0,
            next_queue: 0,
            shadow: None,
            backlog: Backlog::default(),
            unfinished: VecDeque::new(),
            raise: Vec::new(),
            fault: None,
            mistakes: Vec::new(),
            events: VecDeque::new(),
            entries: Vec::new(),
            parsed: Vec::new(),
            plain: Vec::new(),
            completions: Vec::new(),
            segments: Vec::new(),
            host_data: Vec::new(),
            drive_data: Vec::new(),
        }
    }

    /// CNTLID.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Whether there are queues to look at: the host enabled the controller.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Whether the host uses shadow doorbells.
    pub fn has_shadow_doorbells(&self) -> bool {
        self.shadow.is_some()
    }

    /// Puts a submission queue into its place, or takes it away.
    fn set_submission(&mut self, queue: u16, submission: Option<SubmissionQueue>) {
        self.submission[usize::from(queue)] = submission;
        let last = self.submission.iter().rposition(Option::is_some);
        self.submission_end = last.map_or(0, |last| last as u16 + 1);
    }

    /// Forgets queues and outstanding commands, as every reset does.
    fn clear(&mut self, bus: Bus<'_>) {
        self.running = false;
        self.submission.fill_with(|| None);
        self.completion.fill_with(|| None);
        self.submission_end = 0;
        self.shadow = None;
        self.backlog.clear();
        self.unfinished.clear();
        self.raise.clear();
        self.fault = None;
        self.mistakes.clear();
        self.events.clear();
        for index in 0..usize::from(QUEUES_MAX) * 2 {
            bus.doorbells.store(index, 0);
        }
    }
}

/// Index of the doorbell of a submission queue's tail.
fn tail_index(queue: u16) -> usize {
    usize::from(queue) * 2
}

/// Index of the doorbell of a completion queue's head.
fn head_index(queue: u16) -> usize {
    usize::from(queue) * 2 + 1
}
