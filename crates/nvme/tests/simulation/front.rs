//! A host on PCI Express in front of `nvme::pcie`, with queues in its memory, doorbells, data
//! pointers and interrupts.
//!
//! ```text
//! put (entry and data into memory) -> ring (doorbell)
//!     -> work (the controller executes commands, the host collects completions)
//! ```
//!
//! The host tracks its queues, and predicts the errors of queue commands and data pointers. The
//! command identifier determines the layout of data and the wrong pointers. A repeated operation
//! therefore has the same meaning.

use std::collections::{BTreeMap, BTreeSet};

use nvme::Subsystem;
use nvme::pcie::PcieController;
use nvme_spec::command::SubmissionEntry;
use zerocopy::IntoBytes;

use super::apply::{Check, Way, equal};
use super::host::PciHost;
use super::judge::Submission;
use super::model::status;
use super::operation::QueueCommand;
use super::wire::{u16_at, u32_at};

const PAGE: u64 = 4096;
/// Entries of the admin queues.
const ADMIN_ENTRIES: u16 = 32;
/// Commands with a place for their data.
pub const SLOTS: usize = 6;
const SLOT_BYTES: u64 = 2 << 20;
const SUBMISSION_QUEUES: u64 = 0x1_0000;
const COMPLETION_QUEUES: u64 = 0x4_0000;
const SHADOW_DOORBELLS: u64 = 0x6_0000;
const SLOTS_AT: u64 = 0x10_0000;
/// Places of metadata and pointer lists in a slot.
const METADATA: u64 = 0x14_0000;
const LISTS: u64 = 0x18_0000;
/// Most entries of an I/O queue, limited by its place in memory.
pub const ENTRIES_MAX: u32 = 64;

/// Registers.
const CC: u64 = 0x14;
const CSTS: u64 = 0x1c;
const NSSR: u64 = 0x20;
const AQA: u64 = 0x24;
const ASQ: u64 = 0x28;
const ACQ: u64 = 0x30;
const DOORBELLS: u64 = 0x1000;

struct SubmissionRing {
    entries: u16,
    tail: u16,
    completion: u16,
}

struct CompletionRing {
    entries: u16,
    head: u16,
    phase: bool,
    vector: Option<u16>,
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub queue: u16,
    pub cid: u16,
    pub status: u16,
    pub do_not_retry: bool,
    pub more: bool,
    pub result: u64,
    /// The completion came after a sync.
    pub synced: bool,
}

/// A command in memory.
pub struct PlacedCommand {
    pub submission: Submission,
    /// Addresses and bytes of its data, then of its metadata.
    data: Vec<(u64, usize)>,
}

/// A host on PCI Express. See the module documentation.
pub struct Front {
    host: PciHost,
    pci: PcieController,
    submission: BTreeMap<u16, SubmissionRing>,
    completion: BTreeMap<u16, CompletionRing>,
    vectors: u16,
    shadow: bool,
    /// Queue of the incomplete commands, and these commands.
    pub queue: u16,
    pub sent: Vec<PlacedCommand>,
    /// Number of invalid doorbell values used so far. Each is reported once.
    wrong: u32,
    /// Observed events, for the coverage.
    pub seen: BTreeSet<&'static str>,
}

impl Front {
    pub fn new(id: u16, io_queues: u16) -> Front {
        let vectors = io_queues + 1;
        Front {
            host: PciHost::new((SLOTS_AT + SLOTS as u64 * SLOT_BYTES) as usize),
            pci: PcieController::new(id, io_queues, vectors),
            submission: BTreeMap::new(),
            completion: BTreeMap::new(),
            vectors,
            shadow: false,
            queue: 0,
            sent: Vec::new(),
            wrong: 0,
            seen: BTreeSet::new(),
        }
    }

    // -------------------------------------------------------------------------- registers --

    fn write(&mut self, subsystem: &mut Subsystem, now: u64, offset: u64, value: u32) {
        let data = value.to_le_bytes();
        self.pci.write_register(subsystem, self.host.bus(), now, offset, &data);
    }

    /// CSTS.
    pub fn status(&self, subsystem: &Subsystem) -> u32 {
        let mut data = [0; 4];
        self.pci.read_register(subsystem, CSTS, &mut data);
        u32::from_le_bytes(data)
    }

    /// Writes CC. When enabling, it sets up the admin queues first.
    pub fn configure(&mut self, subsystem: &mut Subsystem, now: u64, value: u32, enables: bool) {
        if enables {
            let entries = u32::from(ADMIN_ENTRIES) - 1;
            self.write(subsystem, now, AQA, entries << 16 | entries);
            // In two halves, as a 32-bit host does.
            for (register, base) in [(ASQ, SUBMISSION_QUEUES), (ACQ, COMPLETION_QUEUES)] {
                self.write(subsystem, now, register, base as u32);
                self.write(subsystem, now, register + 4, 0);
            }
            self.forget();
            self.add_submission(0, ADMIN_ENTRIES, 0);
            self.add_completion(0, ADMIN_ENTRIES, Some(0));
        }
        self.write(subsystem, now, CC, value);
    }

    /// Drops all state that a reset clears.
    pub fn forget(&mut self) {
        self.submission.clear();
        self.completion.clear();
        self.sent.clear();
        self.shadow = false;
    }

    /// Function level reset.
    pub fn reset_function(&mut self, subsystem: &mut Subsystem) {
        self.pci.reset_function(subsystem, self.host.bus());
        self.forget();
    }

    /// NVM Subsystem Reset, with the value "NVMe".
    pub fn reset_subsystem(&mut self, subsystem: &mut Subsystem, now: u64) {
        self.write(subsystem, now, NSSR, 0x4e56_4d65);
    }

    // ------------------------------------------------------------------------------ queues --

    fn add_submission(&mut self, id: u16, entries: u16, completion: u16) {
        let ring = SubmissionRing { entries, tail: 0, completion };
        self.submission.insert(id, ring);
    }

    fn add_completion(&mut self, id: u16, entries: u16, vector: Option<u16>) {
        // Entries of an earlier queue must not look like new ones.
        self.host.ram.put(completion_base(id), &[0; ENTRIES_MAX as usize * 16]);
        let ring = CompletionRing { entries, head: 0, phase: true, vector };
        self.completion.insert(id, ring);
    }

    /// I/O submission queues.
    pub fn io_queues(&self) -> Vec<u16> {
        self.submission.keys().copied().filter(|&id| id > 0).collect()
    }

    /// I/O completion queues.
    pub fn io_completions(&self) -> Vec<u16> {
        self.completion.keys().copied().filter(|&id| id > 0).collect()
    }

    /// True if a queue has a free entry for another command.
    pub fn has_room(&self, queue: u16) -> bool {
        let usable = usize::from(self.submission[&queue].entries - 1);
        self.sent.len() < usable.min(SLOTS)
    }

    /// True if the completion queue has free entries for all pending commands.
    pub fn can_complete_all(&self) -> bool {
        let completion = self.submission[&self.queue].completion;
        self.sent.len() < usize::from(self.completion[&completion].entries)
    }

    /// Errors of a command that creates or deletes a queue.
    pub fn judge(&self, command: &QueueCommand, granted: (u16, u16)) -> Vec<u16> {
        let mut found = Vec::new();
        let mut must = |condition: bool, status: u16| {
            if condition {
                found.push(status);
            }
        };
        match *command {
            QueueCommand::CreateCompletion { id, entries, vector, contiguous, misaligned, .. } => {
                let taken = id == 0 || id > granted.1 || self.completion.contains_key(&id);
                must(taken, status::INVALID_QUEUE_IDENTIFIER);
                must(!(2..=4096).contains(&entries), status::INVALID_QUEUE_SIZE);
                must(vector >= self.vectors, status::INVALID_VECTOR);
                must(!contiguous, status::INVALID_FIELD);
                must(misaligned, status::PRP_OFFSET_INVALID);
            }
            QueueCommand::CreateSubmission { id, entries, completion, contiguous, misaligned } => {
                let taken = id == 0 || id > granted.0 || self.submission.contains_key(&id);
                let impossible = completion == 0 || completion > granted.1;
                must(taken || impossible, status::INVALID_QUEUE_IDENTIFIER);
                must(!impossible && !self.completion.contains_key(&completion), status::COMPLETION_QUEUE_INVALID);
                must(!(2..=4096).contains(&entries), status::INVALID_QUEUE_SIZE);
                must(!contiguous, status::INVALID_FIELD);
                must(misaligned, status::PRP_OFFSET_INVALID);
            }
            QueueCommand::DeleteSubmission { id } => {
                must(id == 0 || !self.submission.contains_key(&id), status::INVALID_QUEUE_IDENTIFIER);
            }
            QueueCommand::DeleteCompletion { id } => {
                must(id == 0 || !self.completion.contains_key(&id), status::INVALID_QUEUE_IDENTIFIER);
                let used = self.submission.values().any(|ring| ring.completion == id);
                must(id != 0 && used, status::INVALID_QUEUE_DELETION);
            }
            QueueCommand::Shadow { misaligned } => must(misaligned, status::INVALID_FIELD),
        }
        found
    }

    /// Applies a successful command that creates or deletes a queue.
    pub fn apply(&mut self, command: &QueueCommand) {
        match *command {
            QueueCommand::CreateCompletion { id, entries, vector, interrupts, .. } => {
                self.add_completion(id, entries as u16, interrupts.then_some(vector));
            }
            QueueCommand::CreateSubmission { id, entries, completion, .. } => {
                self.add_submission(id, entries as u16, completion);
            }
            QueueCommand::DeleteSubmission { id } => {
                self.submission.remove(&id);
            }
            QueueCommand::DeleteCompletion { id } => {
                self.completion.remove(&id);
            }
            QueueCommand::Shadow { .. } => self.shadow = true,
        }
    }

    /// Writes the shadow doorbells. Before the host enables them it writes its current doorbell
    /// values, and before it creates a queue it writes 0. The places of invalid queue identifiers
    /// follow those of the valid ones.
    fn prepare_shadow(&self, command: &QueueCommand) {
        let put = |queue: u16, half: u64| self.host.ram.put(SHADOW_DOORBELLS + u64::from(queue) * 8 + half, &[0; 4]);
        match *command {
            QueueCommand::CreateSubmission { id, .. } if !self.submission.contains_key(&id) => return put(id, 0),
            QueueCommand::CreateCompletion { id, .. } if !self.completion.contains_key(&id) => return put(id, 4),
            QueueCommand::Shadow { .. } if !self.shadow => {}
            _ => return,
        }
        for (&id, ring) in &self.submission {
            self.host.ram.put(SHADOW_DOORBELLS + u64::from(id) * 8, &u32::from(ring.tail).to_le_bytes());
        }
        for (&id, ring) in &self.completion {
            self.host.ram.put(SHADOW_DOORBELLS + u64::from(id) * 8 + 4, &u32::from(ring.head).to_le_bytes());
        }
    }

    fn set_shadow(&mut self, queue: u16, tail: u16) {
        if self.shadow {
            self.host.ram.put(SHADOW_DOORBELLS + u64::from(queue) * 8, &u32::from(tail).to_le_bytes());
        }
    }

    // ---------------------------------------------------------------------------- commands --

    /// Adds a command with its data to a queue. `transfer` is its data transfer.
    pub fn put(&mut self, queue: u16, mut submission: Submission, transfer: (Way, u64, u64)) {
        let mut entry = submission.command.wire().entry(submission.cid);
        if let super::operation::Command::Queue(command) = &submission.command {
            point_at_queue(&mut entry, command);
            self.prepare_shadow(command);
        }
        let slot = SLOTS_AT + self.sent.len() as u64 * SLOT_BYTES;
        let mut places = Places::new(&self.host, slot, submission.cid, queue == 0);
        let (way, bytes, metadata) = transfer;
        let mut data = Vec::new();
        if way != Way::None {
            data = places.describe(&mut entry, bytes as usize, way, &mut submission.pointer);
            self.seen.insert(places.layout);
        }
        if metadata > 0 {
            entry.mptr = (slot + METADATA).into();
            data.push((slot + METADATA, metadata as usize));
        }
        let mut rest = submission.data.as_slice();
        for &(address, bytes) in &data {
            let (now, later) = rest.split_at(bytes.min(rest.len()));
            self.host.ram.put(address, now);
            rest = later;
        }
        let ring = self.submission.get_mut(&queue).expect("a queue that exists");
        self.host.ram.put(submission_base(queue) + u64::from(ring.tail) * 64, entry.as_bytes());
        ring.tail = (ring.tail + 1) % ring.entries;
        self.queue = queue;
        self.sent.push(PlacedCommand { submission, data });
    }

    /// Announces new commands of a queue to the controller.
    pub fn ring(&mut self, subsystem: &mut Subsystem, now: u64, queue: u16) {
        let tail = self.submission[&queue].tail;
        if self.shadow && queue > 0 {
            self.set_shadow(queue, tail)
        } else {
            self.write(subsystem, now, DOORBELLS + u64::from(queue) * 8, tail.into())
        }
    }

    /// Rings a doorbell of a nonexistent queue (`true`), or writes an invalid value to that of the
    /// admin queue.
    pub fn ring_wrongly(&mut self, subsystem: &mut Subsystem, now: u64, no_queue: bool) {
        if no_queue {
            self.write(subsystem, now, DOORBELLS + 400 * 8, 1);
            return;
        }
        self.wrong += 1;
        self.write(subsystem, now, DOORBELLS, u32::from(ADMIN_ENTRIES) + self.wrong);
        self.pci.process(subsystem, self.host.bus(), now);
        self.ring(subsystem, now, 0);
    }

    /// Lets the controller execute announced commands once.
    pub fn process(&mut self, subsystem: &mut Subsystem, now: u64) -> Result<Vec<Entry>, String> {
        self.pci.process(subsystem, self.host.bus(), now);
        self.collect(subsystem, now, false)
    }

    /// Lets the controller run until it is idle.
    pub fn work(&mut self, subsystem: &mut Subsystem, now: u64) -> Result<Vec<Entry>, String> {
        let mut all = Vec::new();
        loop {
            let before = all.len();
            all.extend(self.process(subsystem, now)?);
            if let Some(durable) = self.pci.start_sync() {
                let result = durable.flush();
                self.pci.finish_sync(subsystem, self.host.bus(), now, &result);
                all.extend(self.collect(subsystem, now, true)?);
            }
            self.pci.prepare_sleep(self.host.bus());
            if all.len() == before && !self.pci.has_work(self.host.bus()) {
                return Ok(all);
            }
        }
    }

    /// Takes new completions, and checks phases, heads and vectors.
    fn collect(&mut self, subsystem: &mut Subsystem, now: u64, synced: bool) -> Result<Vec<Entry>, String> {
        let mut found = Vec::new();
        let mut vectors = BTreeSet::new();
        let ids: Vec<u16> = self.completion.keys().copied().collect();
        for id in ids {
            let ring = self.completion.get_mut(&id).expect("listed");
            let before = found.len();
            loop {
                let bytes = self.host.ram.get(completion_base(id) + u64::from(ring.head) * 16, 16);
                let field = u16_at(&bytes, 14);
                if (field & 1 == 1) != ring.phase {
                    break;
                }
                let queue = u16_at(&bytes, 10);
                found.push(Entry {
                    queue,
                    cid: u16_at(&bytes, 12),
                    status: field >> 1 & 0x7ff,
                    do_not_retry: field >> 15 == 1,
                    more: field >> 14 & 1 == 1,
                    result: u64::from(u32_at(&bytes, 0)) | u64::from(u32_at(&bytes, 4)) << 32,
                    synced,
                });
                let of = self.submission.get(&queue).filter(|of| of.completion == id);
                let of = of.ok_or_else(|| format!("a completion of queue {queue} in completion queue {id}"))?;
                if u16_at(&bytes, 8) >= of.entries {
                    return Err(format!("SQHD {} of queue {queue}, which has {}", u16_at(&bytes, 8), of.entries));
                }
                ring.head = (ring.head + 1) % ring.entries;
                ring.phase ^= ring.head == 0;
            }
            if found.len() > before {
                vectors.extend(ring.vector);
                let (head, at) = (ring.head, u64::from(id) * 8 + 4);
                if self.shadow && id > 0 {
                    self.host.ram.put(SHADOW_DOORBELLS + at, &u32::from(head).to_le_bytes())
                } else {
                    self.write(subsystem, now, DOORBELLS + at, head.into())
                }
            }
        }
        let raised: BTreeSet<u16> = self.host.vectors.take().into_iter().collect();
        equal("vectors raised", raised, vectors)?;
        Ok(found)
    }

    /// Data in the buffers of a command.
    pub fn data_of(&self, sent: &PlacedCommand) -> Vec<u8> {
        sent.data.iter().flat_map(|&(address, bytes)| self.host.ram.get(address, bytes)).collect()
    }

    /// Runs the sync that a shutdown needs.
    pub fn finish_shutdown(&mut self, subsystem: &mut Subsystem, now: u64) -> Check {
        self.work(subsystem, now).map(|_| ())
    }
}

fn submission_base(queue: u16) -> u64 {
    SUBMISSION_QUEUES + u64::from(queue) * PAGE
}

fn completion_base(queue: u16) -> u64 {
    COMPLETION_QUEUES + u64::from(queue) * PAGE
}

/// PRP entry 1, or both, of a command about queues.
fn point_at_queue(entry: &mut SubmissionEntry, command: &QueueCommand) {
    let wrong = |misaligned: bool| if misaligned { 8 } else { 0 };
    match *command {
        QueueCommand::CreateCompletion { id, misaligned, .. } => {
            entry.set_prps(COMPLETION_QUEUES + u64::from(id % 16) * PAGE + wrong(misaligned), 0);
        }
        QueueCommand::CreateSubmission { id, misaligned, .. } => {
            entry.set_prps(SUBMISSION_QUEUES + u64::from(id % 16) * PAGE + wrong(misaligned), 0);
        }
        QueueCommand::Shadow { misaligned } => {
            entry.set_prps(SHADOW_DOORBELLS, SHADOW_DOORBELLS + PAGE + wrong(misaligned));
        }
        QueueCommand::DeleteSubmission { .. } | QueueCommand::DeleteCompletion { .. } => {}
    }
}

/// Places of a command's data, and their pointers.
struct Places<'a> {
    host: &'a PciHost,
    slot: u64,
    /// Number that selects the layout.
    choice: u64,
    admin: bool,
    layout: &'static str,
}

impl<'a> Places<'a> {
    fn new(host: &'a PciHost, slot: u64, cid: u16, admin: bool) -> Places<'a> {
        let choice = u64::from(cid).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        Places { host, slot, choice, admin, layout: "" }
    }

    fn choose(&mut self, among: u64) -> u64 {
        let chosen = self.choice % among;
        self.choice /= among;
        chosen
    }

    /// Sets the data pointer. `wrong` is the status of an invalid one.
    fn describe(
        &mut self,
        entry: &mut SubmissionEntry,
        bytes: usize,
        way: Way,
        wrong: &mut Option<u16>,
    ) -> Vec<(u64, usize)> {
        let mistake = self.choose(24);
        if self.admin && mistake == 1 {
            entry.flags.set_psdt(1);
            *wrong = Some(status::INVALID_FIELD);
            self.layout = "data pointer: SGL of an admin command";
        }
        let prps = self.admin || self.choose(2) == 0;
        if prps { self.prps(entry, bytes, way, mistake, wrong) } else { self.sgl(entry, bytes, mistake, wrong) }
    }

    fn prps(
        &mut self,
        entry: &mut SubmissionEntry,
        bytes: usize,
        way: Way,
        mistake: u64,
        wrong: &mut Option<u16>,
    ) -> Vec<(u64, usize)> {
        let offset = self.choose(3) * 4 * self.choose(300);
        // Later pages have lower addresses, so that the data is not contiguous.
        let pages = 320;
        let page = |index: u64| self.slot + if index == 0 { 0 } else { (pages - index) * PAGE };
        let first = bytes.min((PAGE - offset) as usize);
        let mut data = vec![(page(0) + offset, first)];
        let mut rest = bytes - first;
        let mut list = Vec::new();
        while rest > 0 {
            let at = page(list.len() as u64 + 1);
            list.push(at);
            data.push((at, rest.min(PAGE as usize)));
            rest -= rest.min(PAGE as usize);
        }
        let (mut prp1, mut prp2) = (page(0) + offset, 0);
        self.layout = "data pointer: PRP 1";
        if list.len() == 1 {
            (prp2, self.layout) = (list[0], "data pointer: PRP 2");
        } else if list.len() > 1 {
            (prp2, self.layout) = (self.put_prp_list(&list), "data pointer: PRP list");
        }
        if mistake == 2 {
            prp1 += 2;
            *wrong = wrong.or(Some(status::PRP_OFFSET_INVALID));
        } else if mistake == 3 && !list.is_empty() {
            prp2 += 4;
            *wrong = wrong.or(Some(status::PRP_OFFSET_INVALID));
        } else if mistake == 4 && way == Way::ToDrive {
            prp1 = (1 << 40) + offset;
            *wrong = wrong.or(Some(status::DATA_TRANSFER_ERROR));
        }
        entry.set_prps(prp1, prp2);
        data
    }

    /// A list that starts near the end or at the beginning of a page, and continues in the next
    /// pages.
    fn put_prp_list(&mut self, list: &[u64]) -> u64 {
        let in_first = [512, 3, 2, 200][self.choose(4) as usize];
        let start = self.slot + LISTS + PAGE - in_first * 8;
        let mut at = start;
        for (index, &entry) in list.iter().enumerate() {
            let last_of_page = at % PAGE == PAGE - 8;
            if last_of_page && index + 1 < list.len() {
                self.host.ram.put(at, &(at + 8).to_le_bytes());
                at += 8;
            }
            self.host.ram.put(at, &entry.to_le_bytes());
            at += 8;
        }
        start
    }

    fn sgl(
        &mut self,
        entry: &mut SubmissionEntry,
        bytes: usize,
        mistake: u64,
        wrong: &mut Option<u16>,
    ) -> Vec<(u64, usize)> {
        entry.flags.set_psdt(1);
        let start = self.slot + self.choose(5000);
        let parts = [1, 1, 2, 5, 9][self.choose(5) as usize].min(bytes);
        let mut data = Vec::new();
        let mut left = bytes;
        let mut at = start;
        for part in 0..parts {
            let take = if part + 1 == parts { left } else { left.div_ceil(parts - part) };
            data.push((at, take));
            // A gap between the pieces.
            at += take as u64 + 3;
            left -= take;
        }
        let mut descriptors: Vec<[u8; 16]> =
            data.iter().map(|&(address, bytes)| sgl_descriptor(address, bytes as u32, 0x00)).collect();
        if mistake == 5 {
            let last = descriptors.last_mut().expect("there is a piece");
            let bytes = u32_at(last, 8);
            last[8..12].copy_from_slice(&(bytes - 1).to_le_bytes());
            *wrong = Some(status::SGL_DATA_LENGTH_INVALID);
        } else if mistake == 6 {
            descriptors[0][15] = 0xf0;
            *wrong = Some(status::SGL_TYPE_INVALID);
        }
        self.layout = "data pointer: SGL data block";
        let mut pointer = descriptors[0];
        if descriptors.len() > 1 {
            self.layout = "data pointer: SGL segments";
            pointer = self.put_sgl_segments(&descriptors);
        }
        entry.dptr = pointer;
        data
    }

    /// The descriptors in two segments, the second of which is the last.
    fn put_sgl_segments(&self, descriptors: &[[u8; 16]]) -> [u8; 16] {
        let lists = self.slot + LISTS;
        let (first, last) = descriptors.split_at(descriptors.len() / 2);
        let put = |at: u64, descriptors: &[[u8; 16]]| self.host.ram.put(at, descriptors.concat().as_slice());
        let (first_at, last_at) = (lists, lists + PAGE + 64);
        put(last_at, last);
        let to_last = sgl_descriptor(last_at, last.len() as u32 * 16, 0x30);
        put(first_at, &[first, &[to_last]].concat());
        sgl_descriptor(first_at, (first.len() as u32 + 1) * 16, 0x20)
    }
}

/// SGL descriptor with address, length, and the type in the last byte.
fn sgl_descriptor(address: u64, bytes: u32, kind: u8) -> [u8; 16] {
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&address.to_le_bytes());
    descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
    descriptor[15] = kind;
    descriptor
}
