//! The NVMe/TCP protocol of one connection without its socket: bytes of the host in, bytes for the
//! host out.
//!
//! ```text
//! host's bytes -> InputBuffer -> PDUs -> ready commands -> accept -> subsystem (batch)
//!   -> OutputQueue -> host
//!   PDUs -> data: straight into the buffer of its command
//!   write without in-capsule data -> waits for a grant -> R2T -> waits for its data -> ready
//!   completion not due yet, or to be durable first -> DelayedCompletions
//! ```
//!
//! The owner of the socket calls [`TcpSession::advance`] and executes the [`SessionTask`]
//! that it returns.
//! The memory that a host can occupy is limited. The queue size limits its commands, and
//! [`super::Limits::bytes_in_flight`] limits their data. The session grants R2Ts and executes
//! commands only within that limit. It accepts one more capsule, and a batch of commands without
//! data.
//!
//! `receive` turns bytes into commands, and `execute` turns commands into completions. The modules
//! `fabrics` and `nvme` define the meaning of commands.

mod execute;
mod receive;

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::sync::Arc;

use nvme::delayed_completions::DelayedCompletions;
use nvme::{FastIo, IoCommand, Reply};
use nvme_spec::SubmissionEntry;
use ssd::Nanos;

use super::TargetContext;
use super::auth::DhJob;
pub use super::fabrics::ConnectionInfo;
use super::fabrics::{ConnectedQueue, Endpoint, FabricsCommand};
use super::input::InputBuffer;
use super::output::OutputQueue;
use super::pdu::{Digests, TerminationError};
use crate::lock;

/// Parsing pauses at this many ready commands, which are then executed under one lock.
const BATCH_COMMANDS: usize = 64;
/// Output in bytes that is sent before more commands are executed. It is large enough to be worth
/// one write, and small enough to be in the cache when it is copied out.
const OUTPUT_BYTES: usize = 256 << 10;
/// From this size on, data is read directly into the buffer of its command, with little input
/// behind it.
const LARGE_DATA_BYTES: usize = 16 << 10;
/// Space for input behind large data, enough for a few headers.
const BEHIND_LARGE_DATA_BYTES: usize = 1 << 10;

/// The next task of the owner of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTask {
    /// Send [`TcpSession::output`], then call [`TcpSession::sent`].
    Send,
    /// Call [`TcpSession::sync`], which waits for the disk.
    Sync,
    /// Call [`TcpSession::run_dh`], which takes time.
    Compute,
    /// Wait for input, for an event, or until a time.
    Wait {
        /// True if the session has room for input.
        input: bool,
        /// Time to call [`TcpSession::advance`] again even if no input came.
        until: Option<Nanos>,
    },
}

/// Reason why the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The host made a fatal error. The output holds a C2HTermReq that should still reach it.
    Fatal(TerminationError),
    /// The connection is finished.
    Ended,
}

enum CommandStage {
    /// The capsule has arrived, with its in-capsule data. Commands of an I/O queue are parsed if
    /// possible.
    Capsule(SubmissionEntry, Option<IoCommand>),
    /// The command was accepted, and all its data has arrived.
    Transferred(FabricsCommand),
}

impl CommandStage {
    fn entry(&self) -> &SubmissionEntry {
        match self {
            CommandStage::Capsule(entry, _) => entry,
            CommandStage::Transferred(command) => &command.entry,
        }
    }
}

/// A command that is ready to be accepted or executed.
struct ReadyCommand {
    progress: CommandStage,
    data: Vec<u8>,
    /// The data digest does not match.
    damaged: bool,
}

struct ArrivingCommand {
    /// The command in its state after the last byte of data.
    ready: ReadyCommand,
    received: usize,
}

impl ArrivingCommand {
    fn is_complete(&self) -> bool {
        self.received == self.ready.data.len()
    }
}

struct ArrivingData {
    receiver: ReceiveState,
    /// Bytes that have not arrived yet.
    left: usize,
    /// CRC of the bytes so far, if the PDU has a data digest.
    digest: Option<u32>,
}

#[expect(clippy::large_enum_variant, reason = "there is one, and a box for each command costs more than the room")]
enum ReceiveState {
    Capsule(ArrivingCommand),
    /// The command with this transfer tag.
    Requested(usize),
}

impl ArrivingData {
    fn command<'a>(&'a mut self, requested: &'a mut [Option<ArrivingCommand>]) -> &'a mut ArrivingCommand {
        match &mut self.receiver {
            ReceiveState::Capsule(command) => command,
            ReceiveState::Requested(tag) => requested[*tag].as_mut().expect("it is receiving"),
        }
    }
}

/// An executed command with the content of its completion and its data.
struct SessionCompletion {
    entry: SubmissionEntry,
    reply: Reply,
    data: Vec<u8>,
}

pub struct TcpSession {
    context: Arc<TargetContext>,
    endpoint: Endpoint,
    initialized: bool,
    digests: Digests,
    /// The connection ends when the output has been sent.
    closing: bool,
    input: InputBuffer,
    output: OutputQueue,
    receiving: Option<ArrivingData>,
    ready: VecDeque<ReadyCommand>,
    /// Commands that may request their data as soon as the limit allows.
    ungranted: VecDeque<FabricsCommand>,
    /// Indexed by transfer tag.
    requested: Vec<Option<ArrivingCommand>>,
    /// Pending computation of an authentication command. No other command is executed until it
    /// completes.
    computing: Option<(SubmissionEntry, DhJob)>,
    /// A part of a long command was executed. Other threads get the drive before the next part.
    yields_to_waiters: bool,
    /// Completions that must wait before they are sent.
    backlog: DelayedCompletions<SessionCompletion>,
    /// Bytes of command data that are neither sent nor executed yet.
    bytes_in_flight: usize,
    /// Incomplete commands, without Asynchronous Event Requests.
    outstanding: usize,
    spare: BufferPool,
    /// Buffer of a batch, kept for reuse.
    fast_batch: Vec<PlacedFastIo>,
}

/// A fast-path command whose data is complete, and the offset of its data in the capsule.
struct PlacedFastIo {
    command: FastIo,
    offset: usize,
}

#[derive(Default)]
struct BufferPool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        assert!(self.bytes == 0 || !self.buffers.is_empty(), "a pool without buffers has no {} bytes", self.bytes);
        buffer
    }

    fn put(&mut self, buffer: Vec<u8>, bytes_max: usize) {
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= bytes_max {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

impl TcpSession {
    /// Session of a connection that was just accepted.
    pub fn new(context: Arc<TargetContext>, surroundings: ConnectionInfo) -> TcpSession {
        TcpSession {
            endpoint: Endpoint::new(Arc::clone(&context), surroundings),
            context,
            initialized: false,
            digests: Digests::default(),
            closing: false,
            input: InputBuffer::new(),
            output: OutputQueue::default(),
            receiving: None,
            ready: VecDeque::new(),
            ungranted: VecDeque::new(),
            requested: Vec::new(),
            computing: None,
            yields_to_waiters: false,
            backlog: DelayedCompletions::default(),
            bytes_in_flight: 0,
            outstanding: 0,
            spare: BufferPool::default(),
            fast_batch: Vec::new(),
        }
    }

    /// Returns whether the host has connected a queue and, if required, authenticated. Until then
    /// its time is limited.
    pub fn is_established(&self) -> bool {
        self.endpoint.queue.as_ref().is_some_and(ConnectedQueue::is_authenticated)
    }

    /// Returns whether the host has connected a queue.
    pub fn is_connected(&self) -> bool {
        self.endpoint.queue.is_some()
    }

    /// Returns whether this is the connection of an admin queue, which delivers events.
    pub fn has_events(&self) -> bool {
        self.endpoint.queue.as_ref().is_some_and(|queue| queue.id == 0)
    }

    // ----------------------------------------------------------------------------------------------- the bytes --

    /// Space for bytes of the host: first for the rest of the arriving data, then for all other
    /// input.
    pub fn input(&mut self) -> [IoSliceMut<'_>; 2] {
        let direct = self.direct_bytes();
        let data: &mut [u8] = match &mut self.receiving {
            Some(receiving) if direct > 0 => {
                let command = receiving.command(&mut self.requested);
                &mut command.ready.data[command.received..][..direct]
            }
            _ => &mut [],
        };
        // Input behind large data is probably more of the same data, which a later read can place
        // without a copy.
        let space = self.input.space();
        let bytes = if direct >= LARGE_DATA_BYTES { BEHIND_LARGE_DATA_BYTES } else { space.len() };
        let space = &mut space[..bytes];
        [IoSliceMut::new(data), IoSliceMut::new(space)]
    }

    /// Bytes that may bypass the input buffer on their way to their command. The result is 0 while
    /// earlier bytes are in the buffer.
    fn direct_bytes(&self) -> usize {
        match &self.receiving {
            Some(receiving) if self.input.bytes().is_empty() => receiving.left,
            _ => 0,
        }
    }

    /// Returns whether large data of one command is arriving, which takes a while.
    pub fn expects_large_data(&self) -> bool {
        self.direct_bytes() >= LARGE_DATA_BYTES
    }

    /// Reports that `bytes` were read into [`TcpSession::input`].
    pub fn received(&mut self, bytes: usize) {
        let direct = self.direct_bytes().min(bytes);
        if direct > 0 {
            self.note_data(direct);
        }
        self.input.fill(bytes - direct);
    }

    /// The bytes to send.
    pub fn output(&self) -> &OutputQueue {
        &self.output
    }

    /// Reports that all output was sent.
    pub fn sent(&mut self) {
        let limit = self.context.options.limits.bytes_in_flight;
        let spare = &mut self.spare;
        self.output.clear(|buffer| spare.put(buffer, limit));
    }

    /// Does all possible work and returns the next task.
    pub fn advance(&mut self) -> Result<SessionTask, DisconnectReason> {
        loop {
            self.release_due();
            let all_parsed = self.parse()?;
            if self.output.bytes() < OUTPUT_BYTES {
                self.carry_out_ready()?;
            }
            self.grant();
            if self.output.bytes() > 0 {
                return Ok(SessionTask::Send);
            }
            if self.closing {
                return Err(DisconnectReason::Ended);
            }
            if self.backlog.wants_sync() {
                return Ok(SessionTask::Sync);
            }
            if self.computing.is_some() {
                return Ok(SessionTask::Compute);
            }
            let nothing_to_do = if self.ready.is_empty() { all_parsed } else { !self.may_execute() };
            if nothing_to_do {
                assert!(
                    self.outstanding > 0 || self.bytes_in_flight == 0,
                    "{} bytes are in flight without a command",
                    self.bytes_in_flight
                );
                let until = self.backlog.next_due();
                let input = !self.has_enough();
                return Ok(SessionTask::Wait { input, until });
            }
        }
    }

    /// Ends the queue after the connection has closed.
    pub fn close(&mut self) {
        if self.endpoint.queue.is_some() {
            self.endpoint.leave(&mut lock(&self.context.shared));
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
    use crate::ServerClock;
    use crate::storage::backend::MemoryBackend;
    use crate::tcp::TcpOptions;

    fn session() -> TcpSession {
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
        let memory = MemoryBackend::new(nvme::media::bytes_for(capacity_bytes));
        let subsystem = Subsystem::new(config, Box::new(memory)).unwrap();
        let options = TcpOptions::new("127.0.0.1:0".parse().unwrap());
        let context = TargetContext::new(options, Arc::new(Mutex::new(subsystem)), ServerClock::start());
        let surroundings = ConnectionInfo {
            local: "127.0.0.1:4420".parse().unwrap(),
            peer: Ipv4Addr::LOCALHOST.into(),
            connection: Arc::new(()),
            waker: Arc::new(|| {}),
        };
        TcpSession::new(context, surroundings)
    }

    fn completion(cid: u16, bytes: usize) -> SessionCompletion {
        SessionCompletion {
            entry: SubmissionEntry { cid: cid.into(), ..SubmissionEntry::default() },
            reply: Reply::success(0),
            data: vec![7; bytes],
        }
    }

    /// Returns the identifiers of the completions in the output.
    fn completed(session: &TcpSession) -> Vec<u16> {
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
                SessionTask::Send => {
                    let now = clock.now();
                    for cid in completed(&session) {
                        let due = [start + 2 * step, start + step, start + step, start][usize::from(cid) - 1];
                        assert!(now >= due, "{cid} is early");
                        order.push(cid);
                    }
                    session.sent();
                }
                SessionTask::Wait { input, until } => {
                    assert!(input, "the host may go on");
                    let until = until.expect("something is held");
                    assert!(until == start + step || until == start + 2 * step);
                    while clock.now() < until {
                        std::thread::yield_now();
                    }
                }
                SessionTask::Sync | SessionTask::Compute => panic!("nothing is to be made durable or computed"),
            }
        }
        assert_eq!(order, [4, 2, 3, 1]);
        assert_eq!(session.advance(), Ok(SessionTask::Wait { input: true, until: None }));
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
