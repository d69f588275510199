//! A connection without its socket: bytes of the host in, bytes for the host out.
//!
//! ```text
//! host's bytes -> Input -> PDUs -> ready commands -> accepted -> subsystem (one lock for a batch) -> Output -> host
//!                            \-> data: straight into the buffer of its command
//!   write without in-capsule data -> waits for a grant -> R2T -> waits for its data -> ready
//!   completion not due yet, or to be durable first -> backlog
//! ```
//!
//! The owner of the socket calls [`Session::advance`] and does what [`Next`] says. What a host can make it keep is
//! limited: commands by the queue's size, data by [`super::Limits::bytes_in_flight`] (R2Ts are only granted and
//! commands only executed within it; of capsules one more is taken, and a batch of the commands without data).
//!
//! `receive` goes from bytes to commands, `carry_out` from commands to completions. What a command means is not decided
//! here but in `fabrics` and in `nvme`.

mod carry_out;
mod receive;

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::sync::Arc;

use nvme::backlog::Backlog;
use nvme::{IoCommand, Plain, Reply};
use nvme_spec::SubmissionEntry;
use ssd::Nanos;

use super::Context;
use super::auth::Exponentiation;
pub use super::fabrics::Surroundings;
use super::fabrics::{Command, Endpoint, Queue};
use super::input::Input;
use super::output::Output;
use super::pdu::{Digests, Fault};
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
    /// Call [`Session::compute`], which takes time.
    Compute,
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
pub enum CloseReason {
    /// The host made a fatal mistake; the output holds a C2HTermReq that should still reach it.
    Fatal(Fault),
    /// There is nothing more to say.
    Ended,
}

/// How far a command is.
enum Progress {
    /// It came, with what data there was in its capsule. On an I/O queue it is parsed, if it is a command.
    Capsule(SubmissionEntry, Option<IoCommand>),
    /// It was accepted, and all its data has come.
    Transferred(Command),
}

impl Progress {
    fn entry(&self) -> &SubmissionEntry {
        match self {
            Progress::Capsule(entry, _) => entry,
            Progress::Transferred(command) => &command.entry,
        }
    }
}

/// A command that can be looked at, or carried out.
struct ReadyCommand {
    progress: Progress,
    data: Vec<u8>,
    /// The data digest does not match.
    damaged: bool,
}

/// A command whose data is coming.
struct ArrivingCommand {
    /// What it is when all data is there.
    ready: ReadyCommand,
    received: usize,
}

impl ArrivingCommand {
    fn is_complete(&self) -> bool {
        self.received == self.ready.data.len()
    }
}

/// Data of a PDU that is coming in.
struct IncomingData {
    receiver: Receiver,
    /// Bytes of it that are still to come.
    left: usize,
    /// CRC of its bytes so far, if it ends with a digest.
    digest: Option<u32>,
}

/// Whose data it is.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and a box for each command costs more than the room"
)]
enum Receiver {
    /// The command's whose capsule it is.
    Capsule(ArrivingCommand),
    /// The command's that has this transfer tag.
    Requested(usize),
}

impl IncomingData {
    fn command<'a>(&'a mut self, requested: &'a mut [Option<ArrivingCommand>]) -> &'a mut ArrivingCommand {
        match &mut self.receiver {
            Receiver::Capsule(command) => command,
            Receiver::Requested(tag) => requested[*tag].as_mut().expect("it is receiving"),
        }
    }
}

/// A command that is carried out, with what its completion says and sends.
struct Completion {
    entry: SubmissionEntry,
    reply: Reply,
    data: Vec<u8>,
}

/// See the module.
pub struct Session {
    context: Arc<Context>,
    endpoint: Endpoint,
    initialized: bool,
    digests: Digests,
    /// The connection ends when the output has been sent.
    closing: bool,
    input: Input,
    output: Output,
    receiving: Option<IncomingData>,
    ready: VecDeque<ReadyCommand>,
    /// Commands that may ask for their data as soon as there is room.
    ungranted: VecDeque<Command>,
    /// By transfer tag.
    requested: Vec<Option<ArrivingCommand>>,
    /// What an authentication command needs to be complete. Nothing else is carried out meanwhile.
    computing: Option<(SubmissionEntry, Exponentiation)>,
    /// A part of a long command was carried out: others have the drive before the next.
    gives_way: bool,
    /// Completions that are not to be sent yet.
    backlog: Backlog<Completion>,
    /// Bytes of data that commands have and that were not sent or executed yet.
    bytes_in_flight: usize,
    /// Commands that came and are not complete, without Asynchronous Event Requests.
    outstanding: usize,
    spare: BufferPool,
    /// Kept to be used again.
    plain: Vec<PlacedPlain>,
}

/// A plain command that came in one piece, and where in its capsule its data begins.
struct PlacedPlain {
    command: Plain,
    offset: usize,
}

/// Buffers to use again.
#[derive(Default)]
struct BufferPool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
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
            endpoint: Endpoint::new(Arc::clone(&context), surroundings),
            context,
            initialized: false,
            digests: Digests::default(),
            closing: false,
            input: Input::new(),
            output: Output::default(),
            receiving: None,
            ready: VecDeque::new(),
            ungranted: VecDeque::new(),
            requested: Vec::new(),
            computing: None,
            gives_way: false,
            backlog: Backlog::default(),
            bytes_in_flight: 0,
            outstanding: 0,
            spare: BufferPool::default(),
            plain: Vec::new(),
        }
    }

    /// Whether the host has connected a queue and, where that is asked for, proved who it is. Until then its time is
    /// limited.
    pub fn is_established(&self) -> bool {
        self.endpoint.queue.as_ref().is_some_and(Queue::is_authenticated)
    }

    /// Whether the host has connected a queue.
    pub fn is_connected(&self) -> bool {
        self.endpoint.queue.is_some()
    }

    /// Whether this is the connection of an admin queue, which has to be told of events.
    pub fn has_events(&self) -> bool {
        self.endpoint.queue.as_ref().is_some_and(|queue| queue.id == 0)
    }

    // ----------------------------------------------------------------------------------------------- the bytes --

    /// Where bytes of the host go: first the rest of the data that is coming in, then everything else.
    pub fn input(&mut self) -> [IoSliceMut<'_>; 2] {
        let direct = self.direct_bytes();
        let data: &mut [u8] = match &mut self.receiving {
            Some(receiving) if direct > 0 => {
                let command = receiving.command(&mut self.requested);
                &mut command.ready.data[command.received..][..direct]
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

    /// Bytes that may go to the command that is receiving without passing the input buffer: none while there are
    /// earlier ones in it.
    fn direct_bytes(&self) -> usize {
        match &self.receiving {
            Some(receiving) if self.input.bytes().is_empty() => receiving.left,
            _ => 0,
        }
    }

    /// Whether much data of one command is coming in, which takes a while.
    pub fn expects_much(&self) -> bool {
        self.direct_bytes() >= LARGE_DATA_BYTES
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
    pub fn advance(&mut self) -> Result<Next, CloseReason> {
        loop {
            self.release_due();
            let all_parsed = self.parse()?;
            if self.output.bytes() < OUTPUT_BYTES {
                self.carry_out_ready()?;
            }
            self.grant();
            if self.output.bytes() > 0 {
                return Ok(Next::Send);
            }
            if self.closing {
                return Err(CloseReason::Ended);
            }
            if self.backlog.wants_sync() {
                return Ok(Next::Sync);
            }
            if self.computing.is_some() {
                return Ok(Next::Compute);
            }
            let nothing_to_do = if self.ready.is_empty() {
                all_parsed
            } else {
                !self.may_execute()
            };
            if nothing_to_do {
                let until = self.backlog.next_due();
                let input = !self.has_enough();
                return Ok(Next::Wait { input, until });
            }
        }
    }

    /// The connection is closed: what belonged to it ends.
    pub fn close(&mut self) {
        if self.endpoint.queue.is_some() {
            self.endpoint.leave(&mut locked(&self.context.shared));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Mutex;

    use nvme::{Identity, Subsystem, SubsystemConfig};
    use nvme_spec::Status;
    use nvme_spec::tcp::CapsuleResp;
    use ssd::DeviceConfig;
    use ssd::config::Geometry;
    use zerocopy::FromBytes;

    use super::*;
    use crate::Clock;
    use crate::storage::backend::Memory;
    use crate::tcp::TcpOptions;

    fn session() -> Session {
        let capacity_bytes = 64 << 20;
        let config = SubsystemConfig {
            identity: Identity {
                serial: "S".to_string(),
                model: "M".to_string(),
                firmware: "1".to_string(),
                nqn: "nqn.2026-01.io.warp:session".to_string(),
            },
            device: DeviceConfig {
                geometry: Geometry {
                    capacity_bytes: Some(capacity_bytes),
                    over_provisioning: 0.25,
                    reclaim_unit_bytes: 1 << 20,
                    channels: 2,
                    dies_per_channel: 2,
                    ..Geometry::default()
                },
                seed: 1,
                ..DeviceConfig::default()
            },
            fdp: false,
            namespace: true,
            format: 0,
            reclaim_unit_time_limit_s: 0,
            controllers_max: 1,
            io_queues_max: 1,
        };
        let memory = Memory::new(nvme::media::bytes_for(capacity_bytes));
        let subsystem = Subsystem::new(config, Box::new(memory)).unwrap();
        let options = TcpOptions::new("127.0.0.1:0".parse().unwrap());
        let context = Context::new(options, Arc::new(Mutex::new(subsystem)), Clock::start());
        let surroundings = Surroundings {
            local: "127.0.0.1:4420".parse().unwrap(),
            peer: Ipv4Addr::LOCALHOST.into(),
            line: Arc::new(()),
            waker: Arc::new(|| {}),
        };
        Session::new(context, surroundings)
    }

    fn completion(cid: u16, bytes: usize) -> Completion {
        Completion {
            entry: SubmissionEntry {
                cid: cid.into(),
                ..SubmissionEntry::default()
            },
            reply: Reply::success(0),
            data: vec![7; bytes],
        }
    }

    /// The identifiers of the completions in the output.
    fn completed(session: &Session) -> Vec<u16> {
        let slices = session.output().slices();
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let responses = bytes.chunks(24).map(|pdu| CapsuleResp::read_from_bytes(pdu).unwrap());
        let cid = |response: CapsuleResp| {
            assert_eq!(response.rccqe.status.status(), Status::SUCCESS);
            response.rccqe.cid.get()
        };
        responses.map(cid).collect()
    }

    #[test]
    fn completions_are_held_until_they_are_due_and_come_in_that_order() {
        let mut session = session();
        let clock = session.context.clock;
        let start = clock.now();
        let step = 5_000_000;
        session.outstanding = 4;
        for (cid, due) in [(1, start + 2 * step), (2, start + step), (3, start + step), (4, start)] {
            session.complete_when_due(completion(cid, 0), due, None, start);
        }
        let mut order = Vec::new();
        while order.len() < 4 {
            match session.advance().unwrap() {
                Next::Send => {
                    let now = clock.now();
                    for cid in completed(&session) {
                        let due = [start + 2 * step, start + step, start + step, start][usize::from(cid) - 1];
                        assert!(now >= due, "{cid} is early");
                        order.push(cid);
                    }
                    session.sent();
                }
                Next::Wait { input, until } => {
                    assert!(input, "the host may go on");
                    let until = until.expect("something is held");
                    assert!(until == start + step || until == start + 2 * step);
                    while clock.now() < until {
                        std::thread::yield_now();
                    }
                }
                Next::Sync | Next::Compute => panic!("nothing is to be made durable or computed"),
            }
        }
        assert_eq!(order, [4, 2, 3, 1]);
        assert_eq!(
            session.advance(),
            Ok(Next::Wait {
                input: true,
                until: None
            })
        );
    }

    #[test]
    fn data_of_held_completions_counts() {
        let mut session = session();
        let limit = session.context.options.limits.bytes_in_flight;
        let later = session.context.clock.now() + 3_600_000_000_000;
        session.outstanding = 2;
        session.complete_when_due(completion(1, limit / 2), later, None, 0);
        assert!(session.may_execute());
        session.complete_when_due(completion(2, limit / 2), later, None, 0);
        assert!(!session.may_execute(), "reads could go on for ever otherwise");
    }
}
