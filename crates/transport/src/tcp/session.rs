//! A connection without its socket: bytes of the host in, bytes for the host out.
//!
//! ```text
//! host's bytes -> Input -> PDUs -> ready commands -> subsystem (one lock for a batch) -> Output -> host
//!                            \-> H2CData: straight into the buffer of its command
//!   write without in-capsule data -> waits for a grant -> R2T -> waits for its data -> ready
//!   completion not due yet -> held        completion that must be durable first -> unsynced
//! ```
//!
//! The owner of the socket calls [`Session::advance`] and does what [`Next`] says. What a host can make it keep is
//! limited: commands by the queue's size, data by [`super::Limits::bytes_in_flight`] (R2Ts are only granted and commands
//! only executed within it), capsules by the input buffer.
//!
//! What a command means is not decided here but in `fabrics` and in `nvme`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::sync::Arc;

use nvme::controller::Waker;
use nvme::{Direction, Durable, Failure, Outcome, Parameter, Reply, Subsystem, Transfer};
use nvme_spec::command::{
    PSDT_SGL_MPTR_CONTIGUOUS, PSDT_SGL_MPTR_SGL, SGL_SUBTYPE_OFFSET, SGL_SUBTYPE_TRANSPORT_A, SglType,
};
use nvme_spec::tcp::{CapsuleCmd, CommonHeader, DIGEST_LENGTH, FatalErrorStatus, H2cData, IcReq, PFV_1_0, PduType};
use nvme_spec::{Status, SubmissionEntry};
use ssd::Nanos;
use zerocopy::FromBytes;

use super::Context;
use super::association::{HangUp, Link};
use super::fabrics::Queue;
use super::input::Input;
use super::output::{Data, Output};
use super::pdu::{self, Agreement, BUFFERED_PDU_BYTES_MAX, Digests, Fault, Layout};
use crate::locked;

/// Commands that are executed under one lock.
const BATCH_COMMANDS: usize = 64;
/// Output that is sent before more commands are executed: enough for one write to be worth it, little enough to be in
/// the cache when it is copied out.
const OUTPUT_BYTES: usize = 256 << 10;

/// Data that goes straight to its command and is so much that little else is read with it.
const LARGE_DATA_BYTES: usize = 16 << 10;
/// That little: a few headers.
const BEHIND_LARGE_DATA_BYTES: usize = 1 << 10;

/// What the owner of the socket has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send [`Session::output`], then call [`Session::sent`].
    Send,
    /// Call [`Session::sync`], which waits for the disk.
    Sync,
    /// Wait for input, for an event, or until a time.
    Wait {
        /// Whether there is room for input.
        input: bool,
        /// When to call [`Session::advance`] again even if nothing came.
        until: Option<Nanos>,
    },
}

/// The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The host made a fatal mistake; the output holds a C2HTermReq that should still reach it.
    Fatal(Fault),
    /// There is nothing more to say.
    Ended,
}

/// What a connection can do to its surroundings.
pub struct Surroundings {
    /// The address that the host connected to.
    pub local: SocketAddr,
    /// Ends the connection.
    pub hang_up: HangUp,
    /// Makes the owner call [`Session::deliver_events`].
    pub waker: Waker,
}

/// How far a command is.
enum Progress {
    /// It came, with this much data in its capsule.
    Capsule,
    /// All its data has come.
    Transferred,
    /// Its data came, but the data digest does not match.
    Damaged,
}

/// A command that can be looked at.
struct Ready {
    entry: SubmissionEntry,
    data: Vec<u8>,
    progress: Progress,
}

/// A command whose data was asked for.
struct Requested {
    entry: SubmissionEntry,
    data: Vec<u8>,
    received: usize,
    damaged: bool,
}

/// A data PDU that is coming in.
struct Receiving {
    tag: usize,
    /// Bytes of it that are still to come.
    left: usize,
    /// CRC of its bytes so far, if it ends with a digest.
    digest: Option<u32>,
}

/// A command that is done.
struct Done {
    entry: SubmissionEntry,
    reply: Reply,
    data: Vec<u8>,
    /// When the host may know.
    due: Nanos,
}

/// A completion that is not due yet, ordered by time and then by age.
struct Held {
    due: Nanos,
    number: u64,
    done: Done,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// A command that is done as soon as everything written is durable.
struct Unsynced {
    done: Done,
    /// It asked for a shutdown of the controller, which is complete then.
    shutdown: bool,
}

/// See the module.
pub struct Session {
    pub(super) context: Arc<Context>,
    pub(super) surroundings: Surroundings,
    pub(super) queue: Option<Queue>,
    initialized: bool,
    digests: Digests,
    /// The connection ends when the output has been sent.
    pub(super) closing: bool,
    input: Input,
    output: Output,
    receiving: Option<Receiving>,
    ready: VecDeque<Ready>,
    /// Commands that may ask for their data as soon as there is room, with the bytes.
    ungranted: VecDeque<(SubmissionEntry, usize)>,
    /// By transfer tag.
    requested: Vec<Option<Requested>>,
    held: BinaryHeap<Reverse<Held>>,
    held_count: u64,
    unsynced: Vec<Unsynced>,
    durable: Option<Arc<dyn Durable>>,
    /// The command that is carried out shuts the controller down.
    pub(super) shuts_down: bool,
    /// Bytes of data that commands have and that were not sent or executed yet.
    bytes_in_flight: usize,
    /// Commands that came and are not complete, without Asynchronous Event Requests.
    outstanding: usize,
    spare: Spare,
}

/// Buffers to use again.
#[derive(Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    fn give(&mut self, buffer: Vec<u8>, bytes_max: usize) {
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= bytes_max {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

impl Session {
    /// A connection that was just accepted.
    pub fn new(context: Arc<Context>, surroundings: Surroundings) -> Session {
        Session {
            context,
            surroundings,
            queue: None,
            initialized: false,
            digests: Digests::default(),
            closing: false,
            input: Input::new(),
            output: Output::default(),
            receiving: None,
            ready: VecDeque::new(),
            ungranted: VecDeque::new(),
            requested: Vec::new(),
            held: BinaryHeap::new(),
            held_count: 0,
            unsynced: Vec::new(),
            durable: None,
            shuts_down: false,
            bytes_in_flight: 0,
            outstanding: 0,
            spare: Spare::default(),
        }
    }

    /// Whether the host has connected a queue and, where that is asked for, proved who it is. Until then its time is
    /// limited.
    pub fn is_established(&self) -> bool {
        self.queue.as_ref().is_some_and(Queue::is_authenticated)
    }

    /// Whether this is the connection of an admin queue, which has to be told of events.
    pub fn has_events(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.id == 0)
    }

    // ----------------------------------------------------------------------------------------------- the bytes --

    /// Where bytes of the host go: first the rest of the data that is coming in, then everything else.
    pub fn input(&mut self) -> [IoSliceMut<'_>; 2] {
        let direct = self.direct_bytes();
        let data: &mut [u8] = match &self.receiving {
            Some(receiving) if direct > 0 => {
                let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
                &mut requested.data[requested.received..][..direct]
            }
            _ => &mut [],
        };
        // What comes behind much data is likely more of it, better read to its place than copied there.
        let space = self.input.space();
        let bytes = if direct >= LARGE_DATA_BYTES {
            BEHIND_LARGE_DATA_BYTES
        } else {
            space.len()
        };
        let space = &mut space[..bytes];
        [IoSliceMut::new(data), IoSliceMut::new(space)]
    }

    /// Bytes that may go to the command that is receiving without passing the input buffer: none while there are earlier
    /// ones in it.
    fn direct_bytes(&self) -> usize {
        match &self.receiving {
            Some(receiving) if self.input.bytes().is_empty() => receiving.left,
            _ => 0,
        }
    }

    /// So many bytes came.
    pub fn received(&mut self, bytes: usize) {
        let direct = self.direct_bytes().min(bytes);
        if direct > 0 {
            self.note_data(direct);
        }
        self.input.fill(bytes - direct);
    }

    /// What is to be sent.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// All output was sent.
    pub fn sent(&mut self) {
        let limit = self.context.options.limits.bytes_in_flight;
        let spare = &mut self.spare;
        self.output.clear(|buffer| spare.give(buffer, limit));
    }

    /// Does what can be done.
    ///
    /// # Errors
    /// The connection is to be closed.
    pub fn advance(&mut self) -> Result<Next, Closing> {
        loop {
            self.release_held();
            self.parse()?;
            if self.output.bytes() < OUTPUT_BYTES {
                self.carry_out_ready()?;
            }
            self.grant();
            if self.output.bytes() > 0 {
                return Ok(Next::Send);
            }
            if self.closing {
                return Err(Closing::Ended);
            }
            if !self.unsynced.is_empty() {
                return Ok(Next::Sync);
            }
            if self.ready.is_empty() || !self.may_execute() {
                let until = self.held.peek().map(|Reverse(held)| held.due);
                let input = self.ready.len() < BATCH_COMMANDS;
                return Ok(Next::Wait { input, until });
            }
        }
    }

    // ------------------------------------------------------------------------------------------------ the PDUs --

    /// Looks at the input until there is no whole PDU any more, or enough to do.
    fn parse(&mut self) -> Result<(), Closing> {
        while self.ready.len() < BATCH_COMMANDS {
            match self.parse_one() {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => {
                    self.terminate(fault);
                    return Err(Closing::Fatal(fault));
                }
            }
        }
        if self.closing && self.output.bytes() == 0 {
            return Err(Closing::Ended);
        }
        Ok(())
    }

    /// Adds a C2HTermReq, the last thing that the host hears.
    fn terminate(&mut self, fault: Fault) {
        // What the host sent as the header, as far as it is there.
        let bytes = self.input.bytes();
        let said = bytes.get(2).map_or(0, |&header_bytes| usize::from(header_bytes));
        let header = bytes[..said.min(bytes.len()).min(nvme_spec::tcp::TERM_REQ_MAX_DATA)].to_vec();
        self.output.terminate(fault, &header);
    }

    fn agreement(&self) -> Agreement {
        Agreement {
            initialized: self.initialized,
            digests: self.digests,
            h2c_data_bytes_max: self.context.options.h2c_data_bytes_max as usize,
        }
    }

    /// Returns whether there was something to look at.
    fn parse_one(&mut self) -> Result<bool, Fault> {
        if let Some(receiving) = &self.receiving {
            return Ok(if receiving.left > 0 {
                self.take_data()
            } else {
                self.finish_data()
            });
        }
        let Ok((common, _)) = CommonHeader::read_from_prefix(self.input.bytes()) else {
            return Ok(false);
        };
        let layout = Layout::of(&common, &self.agreement())?;
        // Data of an H2CData PDU is not waited for: it goes to its command as it comes.
        let needed = if layout.kind == PduType::H2cData {
            layout.data_offset
        } else {
            layout.total_bytes()
        };
        assert!(needed <= BUFFERED_PDU_BYTES_MAX, "it fits into the input buffer");
        if self.input.bytes().len() < needed {
            return Ok(false);
        }
        pdu::check_header_digest(&layout, self.input.bytes())?;
        match layout.kind {
            PduType::IcReq => self.initialize()?,
            PduType::CapsuleCmd => self.take_capsule(&layout)?,
            PduType::H2cData => self.begin_data(&layout)?,
            // The host ends the connection.
            _ => self.closing = true,
        }
        self.input.consume(needed);
        Ok(true)
    }

    fn initialize(&mut self) -> Result<(), Fault> {
        let (request, _) = IcReq::read_from_prefix(self.input.bytes()).expect("the whole PDU is there");
        let unsupported = |information| Fault {
            status: FatalErrorStatus::UnsupportedParameter,
            information,
        };
        if request.pfv.get() != PFV_1_0 {
            return Err(unsupported(8));
        }
        if request.hpda > 31 {
            return Err(Fault::field(10));
        }
        self.initialized = true;
        self.digests = Digests {
            header: request.dgst.hdgst_enable(),
            data: request.dgst.ddgst_enable(),
        };
        self.output
            .initialize(self.digests, self.context.options.h2c_data_bytes_max);
        self.output.digests = self.digests;
        self.output.data_alignment = (usize::from(request.hpda) + 1) * 4;
        Ok(())
    }

    fn take_capsule(&mut self, layout: &Layout) -> Result<(), Fault> {
        let queue_entries = self.queue.as_ref().map_or(1, |queue| usize::from(queue.entries));
        if self.outstanding >= queue_entries {
            // More commands than the queue has entries.
            return Err(Fault::of(FatalErrorStatus::PduSequenceError));
        }
        self.outstanding += 1;
        let mut data = if layout.data_bytes > 0 {
            self.spare.take()
        } else {
            Vec::new()
        };
        let pdu = self.input.bytes();
        let (capsule, _) = CapsuleCmd::ref_from_prefix(pdu).expect("the whole PDU is there");
        let mut progress = Progress::Capsule;
        if layout.data_bytes > 0 {
            let (in_capsule, digest) = pdu[layout.data_offset..].split_at(layout.data_bytes);
            data.clear();
            data.extend_from_slice(in_capsule);
            if layout.data_digest && crc32c::crc32c(in_capsule) != pdu::digest_at(digest) {
                progress = Progress::Damaged;
            }
        }
        let entry = capsule.ccsqe;
        self.bytes_in_flight += data.len();
        self.ready.push_back(Ready { entry, data, progress });
        Ok(())
    }

    /// The header of an H2CData PDU is there.
    fn begin_data(&mut self, layout: &Layout) -> Result<(), Fault> {
        let (header, _) = H2cData::read_from_prefix(self.input.bytes()).expect("the header is there");
        let tag = usize::from(header.ttag.get());
        let Some(Some(requested)) = self.requested.get(tag) else {
            return Err(Fault::field(10));
        };
        if requested.entry.cid != header.cccid {
            return Err(Fault::field(8));
        }
        if header.datal.get() as usize != layout.data_bytes {
            return Err(Fault::field(16));
        }
        let left = requested.data.len() - requested.received;
        if header.datao.get() as usize != requested.received || layout.data_bytes > left {
            return Err(Fault::of(FatalErrorStatus::DataTransferOutOfRange));
        }
        if header.ch.flags.last_pdu() != (layout.data_bytes == left) {
            return Err(Fault::field(1));
        }
        self.receiving = Some(Receiving {
            tag,
            left: layout.data_bytes,
            digest: layout.data_digest.then_some(0),
        });
        Ok(())
    }

    /// Moves data that is in the input buffer to its command.
    fn take_data(&mut self) -> bool {
        let receiving = self.receiving.as_ref().expect("data is coming in");
        let available = self.input.bytes();
        let bytes = available.len().min(receiving.left);
        if bytes == 0 {
            return false;
        }
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        requested.data[requested.received..][..bytes].copy_from_slice(&available[..bytes]);
        self.input.consume(bytes);
        self.note_data(bytes);
        true
    }

    /// So many bytes were added to the data of the command that is receiving.
    fn note_data(&mut self, bytes: usize) {
        let receiving = self.receiving.as_mut().expect("data is coming in");
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        if let Some(digest) = &mut receiving.digest {
            *digest = crc32c::crc32c_append(*digest, &requested.data[requested.received..][..bytes]);
        }
        requested.received += bytes;
        receiving.left -= bytes;
    }

    /// All data of the PDU is there. Returns whether its digest is as well.
    fn finish_data(&mut self) -> bool {
        let receiving = self.receiving.as_ref().expect("data is coming in");
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        if let Some(digest) = receiving.digest {
            if self.input.bytes().len() < DIGEST_LENGTH {
                return false;
            }
            requested.damaged |= pdu::digest_at(self.input.bytes()) != digest;
            self.input.consume(DIGEST_LENGTH);
        }
        if requested.received == requested.data.len() {
            let requested = self.requested[receiving.tag].take().expect("it is receiving");
            self.ready.push_back(Ready {
                entry: requested.entry,
                data: requested.data,
                progress: if requested.damaged {
                    Progress::Damaged
                } else {
                    Progress::Transferred
                },
            });
        }
        self.receiving = None;
        true
    }

    /// Asks for the data of the commands that there is room for.
    fn grant(&mut self) {
        while let Some(&(entry, bytes)) = self.ungranted.front() {
            if !self.has_room_for(bytes) {
                return;
            }
            self.ungranted.pop_front();
            self.bytes_in_flight += bytes;
            let mut data = self.spare.take();
            data.resize(bytes, 0);
            let requested = Requested {
                entry,
                data,
                received: 0,
                damaged: false,
            };
            let free = self.requested.iter().position(Option::is_none);
            let tag = free.unwrap_or_else(|| {
                self.requested.push(None);
                self.requested.len() - 1
            });
            self.requested[tag] = Some(requested);
            self.output.request_data(entry.cid.get(), tag as u16, bytes as u32);
        }
    }

    /// One command always has room, so that none waits for ever.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes_in_flight == 0 || self.bytes_in_flight + bytes <= self.context.options.limits.bytes_in_flight
    }

    // -------------------------------------------------------------------------------------------- the commands --

    /// Completions that are held keep their data; what they have must not grow without limit.
    fn may_execute(&self) -> bool {
        self.held.is_empty() || self.bytes_in_flight < self.context.options.limits.bytes_in_flight
    }

    fn carry_out_ready(&mut self) -> Result<(), Closing> {
        if self.ready.is_empty() || !self.may_execute() {
            return Ok(());
        }
        let context = Arc::clone(&self.context);
        let mut subsystem = locked(&context.shared);
        let now = context.clock.now();
        self.check_link(&mut subsystem, now)?;
        while let Some(ready) = self.ready.pop_front() {
            self.carry_out(&mut subsystem, now, ready);
            if self.output.bytes() >= OUTPUT_BYTES || !self.may_execute() || self.closing {
                break;
            }
        }
        self.take_events(&mut subsystem);
        Ok(())
    }

    /// The controller is still ours, and its host alive.
    fn check_link(&self, subsystem: &mut Subsystem, now: Nanos) -> Result<(), Closing> {
        if let Some(queue) = &self.queue {
            if queue.link.has_ended() {
                return Err(Closing::Ended);
            }
            subsystem.heard_of(now, queue.association.controller());
        }
        Ok(())
    }

    fn carry_out(&mut self, subsystem: &mut Subsystem, now: Nanos, ready: Ready) {
        let Ready {
            entry,
            mut data,
            progress,
        } = ready;
        self.bytes_in_flight -= data.len();
        let transfer = match self.transfer(subsystem, &entry) {
            Ok(transfer) => transfer,
            Err(failure) => return self.refuse(subsystem, now, &entry, data, failure),
        };
        match self.prepare(&entry, transfer, &progress, &mut data) {
            Ok(true) => {}
            Ok(false) => return self.ungranted.push_back((entry, transfer.bytes)),
            Err(failure) => return self.refuse(subsystem, now, &entry, data, failure),
        }
        if transfer.direction == Direction::ToHost && data.capacity() == 0 {
            data = self.spare.take();
        }
        let outcome = self.execute(subsystem, now, &entry, &mut data);
        self.finish(entry, outcome, data, now);
    }

    /// Brings the data of a command into the form that executing it takes. `false`: it has to be asked for first.
    fn prepare(
        &self,
        entry: &SubmissionEntry,
        transfer: Transfer,
        progress: &Progress,
        data: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        if matches!(progress, Progress::Damaged) {
            let cause = "the data digest does not match the data";
            return Err(Failure::new(Status::TRANSIENT_TRANSPORT_ERROR, cause).retryable());
        }
        if matches!(progress, Progress::Transferred) {
            if transfer.direction == Direction::ToController && transfer.bytes == data.len() {
                return Ok(true);
            }
            // The namespace was formatted while the data was on its way.
            let cause = "the length of the command's data has changed while it was transferred";
            return Err(Failure::new(Status::DATA_TRANSFER_ERROR, cause).retryable());
        }
        match (transfer.direction, place(entry, transfer, data.len())?) {
            (Direction::None, _) => data.clear(),
            (Direction::ToHost, Place::Transport) => {}
            (Direction::ToHost, Place::Capsule(_)) => {
                let cause = "data for the host cannot be in the command's capsule";
                return Err(Failure::new(Status::SGL_DESCRIPTOR_TYPE_INVALID, cause).at(Parameter::DATA_POINTER));
            }
            (Direction::ToController, Place::Capsule(offset)) => {
                data.copy_within(offset..offset + transfer.bytes, 0);
                data.truncate(transfer.bytes);
            }
            (Direction::ToController, Place::Transport) => return Ok(false),
        }
        Ok(true)
    }

    fn refuse(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        entry: &SubmissionEntry,
        data: Vec<u8>,
        failure: Failure,
    ) {
        self.recycle(data);
        let reply = self.fail(subsystem, entry, failure);
        self.complete(Done {
            entry: *entry,
            reply,
            data: Vec::new(),
            due: now,
        });
    }

    fn finish(&mut self, entry: SubmissionEntry, outcome: Outcome, data: Vec<u8>, now: Nanos) {
        let Some(reply) = outcome.reply else {
            // An Asynchronous Event Request does not count: the subsystem limits them.
            self.outstanding -= 1;
            return self.recycle(data);
        };
        let done = Done {
            entry,
            reply,
            data,
            due: outcome.due,
        };
        match outcome.durable {
            Some(durable) => {
                self.durable = Some(durable);
                let shutdown = std::mem::take(&mut self.shuts_down);
                self.unsynced.push(Unsynced { done, shutdown });
            }
            None => self.complete_when_due(done, now),
        }
    }

    fn complete_when_due(&mut self, done: Done, now: Nanos) {
        if done.due <= now {
            return self.complete(done);
        }
        self.bytes_in_flight += done.data.len();
        self.held_count += 1;
        self.held.push(Reverse(Held {
            due: done.due,
            number: self.held_count,
            done,
        }));
    }

    fn release_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let now = self.context.clock.now();
        while self.held.peek().is_some_and(|Reverse(held)| held.due <= now) && self.output.bytes() < OUTPUT_BYTES {
            let Reverse(held) = self.held.pop().expect("there is one");
            self.bytes_in_flight -= held.done.data.len();
            self.complete(held.done);
        }
    }

    /// Tells the host.
    fn complete(&mut self, done: Done) {
        self.outstanding -= 1;
        let cid = done.entry.cid.get();
        let (head, flow_control) = match &mut self.queue {
            Some(queue) => (queue.next_head(), queue.flow_control),
            None => (0, true),
        };
        // Success needs no words of its own if nothing but the command's success is to be said, the queue's head included.
        let success = !flow_control && done.reply == Reply::success(0) && !done.data.is_empty();
        if done.data.is_empty() {
            self.recycle(done.data);
        } else {
            self.output.send_data(Data {
                cid,
                bytes: done.data,
                success,
            });
        }
        if !success {
            self.output.respond(done.reply.entry(cid, 0, head, false));
        }
    }

    /// Tells the host of events, if it has asked.
    fn take_events(&mut self, subsystem: &mut Subsystem) {
        let Some(queue) = &mut self.queue else {
            return;
        };
        if queue.id != 0 || queue.link.has_ended() {
            return;
        }
        for event in subsystem.async_completions(queue.association.controller()) {
            let head = queue.next_head();
            self.output.respond(event.reply.entry(event.cid, 0, head, false));
        }
    }

    /// The waker was called.
    pub fn deliver_events(&mut self) {
        let context = Arc::clone(&self.context);
        self.take_events(&mut locked(&context.shared));
    }

    /// Makes everything written durable and completes the commands that wait for it.
    pub fn sync(&mut self) {
        let context = Arc::clone(&self.context);
        let synced = match self.durable.take() {
            Some(durable) => durable.make_durable(),
            None => Ok(()),
        };
        let unsynced = std::mem::take(&mut self.unsynced);
        let mut subsystem = locked(&context.shared);
        let now = context.clock.now();
        let Some(queue) = self.queue.as_ref().filter(|queue| !queue.link.has_ended()) else {
            self.closing = true;
            return;
        };
        let (controller, queue_id) = (queue.association.controller(), queue.id);
        for Unsynced { mut done, shutdown } in unsynced {
            match &synced {
                Ok(()) if shutdown => subsystem.finish_shutdown(controller),
                Ok(()) => {}
                Err(error) => done.reply = subsystem.failed_to_sync(controller, queue_id, &done.entry, error),
            }
            self.complete_when_due(done, now);
        }
    }

    fn recycle(&mut self, data: Vec<u8>) {
        self.spare.give(data, self.context.options.limits.bytes_in_flight);
    }

    /// The connection is closed: what belonged to it ends.
    pub fn close(&mut self) {
        if let Some(queue) = self.queue.take() {
            let context = Arc::clone(&self.context);
            let mut subsystem = locked(&context.shared);
            context
                .associations
                .leave(&mut subsystem, &queue.association, &queue.link);
        }
    }

    /// A link for a queue of this connection.
    pub(super) fn link(&self, queue: u16) -> Arc<Link> {
        Link::new(queue, Arc::clone(&self.surroundings.hang_up))
    }
}

/// Where a command's data is.
enum Place {
    /// In its capsule, from this offset on.
    Capsule(usize),
    /// In PDUs of its own.
    Transport,
}

/// Reads the data pointer of a command that came with `capsule_bytes` of data (TCP Transport, "SGL Descriptors"). It may
/// describe more than the command moves; Linux does so for Dataset Management.
fn place(entry: &SubmissionEntry, transfer: Transfer, capsule_bytes: usize) -> Result<Place, Failure> {
    if transfer.direction == Direction::None {
        return Ok(Place::Transport);
    }
    if transfer.metadata_bytes > 0 {
        let cause = "over fabrics metadata is part of the data, but this namespace has it in a separate buffer";
        return Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID));
    }
    if !matches!(entry.flags.psdt(), PSDT_SGL_MPTR_CONTIGUOUS | PSDT_SGL_MPTR_SGL) {
        let cause = "over fabrics data pointers are SGLs";
        return Err(Failure::invalid_field(Parameter::dword(0, 14), cause));
    }
    let descriptor = entry.sgl1();
    let length = descriptor.length.get() as usize;
    if length < transfer.bytes {
        let cause = format!("the SGL describes {length} bytes, the command moves {}", transfer.bytes);
        return Err(Failure::new(Status::DATA_SGL_LENGTH_INVALID, cause).at(Parameter::DATA_POINTER));
    }
    match (SglType::from_u8(descriptor.id.sgl_type()), descriptor.id.subtype()) {
        (Some(SglType::TransportDataBlock), SGL_SUBTYPE_TRANSPORT_A) => Ok(Place::Transport),
        (Some(SglType::DataBlock), SGL_SUBTYPE_OFFSET) => {
            let offset = descriptor.addr.get();
            let end = offset.saturating_add(length as u64);
            if transfer.direction == Direction::ToController && end > capsule_bytes as u64 {
                let cause = format!("the SGL reaches to byte {end} of the capsule's data, it has {capsule_bytes}");
                return Err(Failure::new(Status::SGL_OFFSET_INVALID, cause).at(Parameter::DATA_POINTER));
            }
            Ok(Place::Capsule(offset as usize))
        }
        _ => {
            let cause = "over TCP an SGL is a data block with an offset, or a transport data block";
            Err(Failure::new(Status::SGL_DESCRIPTOR_TYPE_INVALID, cause).at(Parameter::DATA_POINTER))
        }
    }
}
