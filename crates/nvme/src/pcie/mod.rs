//! NVMe over PCI Express, with BAR0 registers, queues in host memory, doorbells, PRPs, SGLs and
//! interrupts.
//!
//! ```text
//! host memory --(submission entries, data, shadow doorbells)--> PcieController --> Subsystem
//! doorbells   --(tails and heads)----------------------------->      |
//! host memory <--(data, completion entries)--------------------------+--> interrupts
//! ```
//!
//! A [`PcieController`] is the PCI Express side of one controller of a
//! [`Subsystem`](crate::Subsystem). It owns no memory, no thread and no clock. The caller
//! (`target::vfio_user`, tests) lends it a [`Bus`] for each call. It calls
//! [`PcieController::process`] when [`PcieController::has_work`] returns true. Commands are fetched
//! and completed in batches. One lock of the subsystem and one interrupt therefore serve many
//! commands.
//!
//! This module also has the commands of PCI Express alone, which are creation and deletion of I/O
//! queues and Doorbell Buffer Config.
//!
//! A controller memory buffer, a persistent memory region and non-contiguous queues (CAP.CQR is 1)
//! are not supported. Neither are weighted arbitration, interrupt coalescing, pin-based interrupts
//! and memory pages other than 4 KiB.

mod admin;
mod data;
mod process;
mod queue;
mod registers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use nvme_spec::command::SubmissionEntry;
use prefetch::NonTemporalBuf;
use thiserror::Error;

pub use crate::setup::{QUEUES_MAX, VENDOR_ID};

use crate::command::AcceptedCommand;
use crate::completion::Reply;
use crate::controller::{AsyncCompletion, DoorbellError};
use crate::delayed_completions::DelayedCompletions;
use crate::io::IoCommand;
use crate::io::fast_path::FastIo;
use data::DataSegment;
use queue::{CompletionQueue, SubmissionQueue};

/// PCI device identifier.
pub const DEVICE_ID: u16 = 0x10f0;
/// Bytes of a memory page (CC.MPS is 0).
const PAGE_BYTES: u64 = 4096;
/// Bytes of the registers in BAR0. The doorbells follow.
pub const REGISTER_BYTES: u64 = nvme_spec::register::DOORBELLS as u64;
/// Bytes of the doorbells (CAP.DSTRD is 0).
pub const DOORBELL_BYTES: u64 = QUEUES_MAX as u64 * 8;

/// An access to an address without suitable host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host has no suitable memory at {address:#x}")]
pub struct MemoryFault {
    /// Address as the device sees it.
    pub address: u64,
}

/// Access to host memory.
pub trait HostMemory {
    /// Copies from host memory.
    ///
    /// # Errors
    /// A part of the range is not memory. `data` is then undefined.
    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), MemoryFault>;

    /// Copies from host memory into a buffer.
    fn read_into(&self, address: u64, buffer: NonTemporalBuf<'_>) -> Result<(), MemoryFault> {
        let mut data = vec![0; buffer.len()];
        self.read(address, &mut data)?;
        buffer.copy_from(&data);
        Ok(())
    }

    /// Appends a copy of host memory to `data`. Implementations that need no zeroed buffer are
    /// faster than `read`.
    ///
    /// # Errors
    /// A part of the range is not memory. The appended bytes are then undefined.
    fn append(&self, address: u64, bytes: usize, data: &mut Vec<u8>) -> Result<(), MemoryFault> {
        let start = data.len();
        data.resize(start + bytes, 0);
        self.read(address, &mut data[start..])
    }

    /// Checks that a range is readable.
    fn check_readable(&self, address: u64, bytes: usize) -> Result<(), MemoryFault>;

    /// Copies to host memory.
    ///
    /// # Errors
    /// A part of the range is not writable memory. Any other part may have been written, because
    /// copies run in either direction.
    fn write(&self, address: u64, data: &[u8]) -> Result<(), MemoryFault>;

    /// Copies to host memory with release semantics. A reader that sees the last dword sees the
    /// whole entry and all earlier writes.
    ///
    /// # Errors
    /// The range is not writable memory, or the last dword is not aligned to 4 bytes.
    fn publish(&self, address: u64, entry: &[u8; 16]) -> Result<(), MemoryFault> {
        let (start, last) = entry.split_last_chunk::<4>().expect("16 bytes");
        self.write(address, start)?;
        self.store(address.wrapping_add(start.len() as u64), u32::from_le_bytes(*last))
    }

    /// Publishes consecutive entries in order, each like [`HostMemory::publish`].
    ///
    /// # Errors
    /// The same as [`HostMemory::publish`]. Earlier entries may have been written.
    fn publish_all(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), MemoryFault> {
        let places = (0..).map(|place| address.wrapping_add(place * 16));
        places.zip(entries).try_for_each(|(place, entry)| self.publish(place, entry))
    }

    /// Reads a 32-bit number with acquire semantics. Earlier writes of the host are visible
    /// afterwards.
    ///
    /// # Errors
    /// The address is not memory, or not aligned to 4 bytes.
    fn load(&self, address: u64) -> Result<u32, MemoryFault>;

    /// Writes a 32-bit number with release semantics. A reader of the number sees all earlier
    /// writes.
    ///
    /// # Errors
    /// The address is not writable memory, or not aligned to 4 bytes.
    fn store(&self, address: u64, value: u32) -> Result<(), MemoryFault>;
}

/// The interrupt messages of the device (MSI-X).
pub trait Interrupts {
    /// Sends the message of a vector.
    fn raise(&self, vector: u16);
}

/// The doorbell registers, which the host writes and the controller reads. Index 2y is the tail of
/// submission queue y, and 2y + 1 the head of completion queue y. The number of doorbells is `2 *
/// QUEUES_MAX`.
pub trait Doorbells {
    /// Returns a doorbell value with acquire semantics. Earlier writes of the host are visible
    /// afterwards.
    fn load(&self, index: usize) -> u32;

    /// Sets a doorbell to a value from a message of the host, or to 0 at a reset.
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

/// Bus access of a controller.
#[derive(Clone, Copy)]
pub struct Bus<'a> {
    /// Host memory.
    pub memory: &'a dyn HostMemory,
    /// Interrupt messages.
    pub interrupts: &'a dyn Interrupts,
    /// Doorbell registers.
    pub doorbells: &'a dyn Doorbells,
}

/// Buffers in host memory that replace the doorbells of I/O queues (Doorbell Buffer Config).
#[derive(Clone, Copy, Debug)]
struct ShadowDoorbells {
    /// Address at which the host writes tails and heads.
    values: u64,
    /// Address at which the controller writes the values that need a real doorbell.
    event_indexes: u64,
}

/// An executed command with a reserved place in the completion queue.
#[derive(Debug)]
struct ReadyCompletion {
    queue: u16,
    entry: SubmissionEntry,
    reply: Reply,
}

/// A partly executed command with its data. Its place in the completion queue stays reserved.
#[derive(Debug)]
struct PartialCommand {
    queue: u16,
    command: AcceptedCommand,
    data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AdminQueueRegisters {
    attributes: u32,
    submission_base: u64,
    completion_base: u64,
    interrupt_mask: u32,
}

/// The PCI Express side of a controller. See the module documentation.
pub struct PcieController {
    id: u16,
    vectors: u16,
    registers: AdminQueueRegisters,
    /// The controller is enabled, without a failure or reset since. Queues exist.
    running: bool,
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    /// All submission queues have lower identifiers. The bound keeps the scan of few queues short.
    submission_end: u16,
    next_queue: u16,
    shadow: Option<ShadowDoorbells>,
    backlog: DelayedCompletions<ReadyCompletion>,
    /// Partly executed commands, in the order of their waiting time.
    unfinished: VecDeque<PartialCommand>,
    raise: Vec<u16>,
    /// Fatal error. The host memory of a queue does not exist.
    fault: Option<MemoryFault>,
    /// Invalid doorbell writes that were not reported to the subsystem yet.
    doorbell_errors: Vec<DoorbellError>,
    /// Completions of asynchronous event requests that wait for a free entry in the admin
    /// completion queue.
    events: VecDeque<AsyncCompletion>,
    // Reused buffers.
    entries: Vec<SubmissionEntry>,
    parsed: Vec<Option<IoCommand>>,
    fast_commands: Vec<FastIo>,
    completions: Vec<[u8; 16]>,
    segments: Vec<DataSegment>,
    host_data: Vec<u8>,
    drive_data: Vec<u8>,
}

impl PcieController {
    /// Creates the PCI Express side of controller `id`, with `queues` I/O queue pairs and `vectors`
    /// MSI-X vectors.
    ///
    /// # Panics
    /// `queues` exceeds the doorbells, or `vectors` is 0.
    pub fn new(id: u16, queues: u16, vectors: u16) -> PcieController {
        assert!(queues < QUEUES_MAX, "{queues} I/O queues, but doorbells for {}", QUEUES_MAX - 1);
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
            backlog: DelayedCompletions::default(),
            unfinished: VecDeque::new(),
            raise: Vec::new(),
            fault: None,
            doorbell_errors: Vec::new(),
            events: VecDeque::new(),
            entries: Vec::new(),
            parsed: Vec::new(),
            fast_commands: Vec::new(),
            completions: Vec::new(),
            segments: Vec::new(),
            host_data: Vec::new(),
            drive_data: Vec::new(),
        }
    }

    /// CNTLID of the controller.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// True if the host enabled the controller, so that queues exist.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// True if the host uses shadow doorbells.
    pub fn has_shadow_doorbells(&self) -> bool {
        self.shadow.is_some()
    }

    fn set_submission(&mut self, queue: u16, submission: Option<SubmissionQueue>) {
        self.submission[usize::from(queue)] = submission;
        let last = self.submission.iter().rposition(Option::is_some);
        self.submission_end = last.map_or(0, |last| last as u16 + 1);
    }

    /// Drops queues and outstanding commands, as every reset does.
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
        self.doorbell_errors.clear();
        self.events.clear();
        for index in 0..usize::from(QUEUES_MAX) * 2 {
            bus.doorbells.store(index, 0);
        }
    }
}

fn tail_index(queue: u16) -> usize {
    usize::from(queue) * 2
}

fn head_index(queue: u16) -> usize {
    usize::from(queue) * 2 + 1
}
