//! The thread of a connection, which moves bytes between its socket and its [`TcpSession`], and
//! waits.
//!
//! I/O connections spin for input for some microseconds if spinning has paid lately (`eagerness`),
//! then wait in a blocking read. Admin connections, and all connections with a deadline, wait in
//! `poll` for the socket and an eventfd. Other threads write to the eventfd to announce events.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_congestion, set_tcp_quickack};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use ssd::Nanos;

use super::TargetContext;
use super::adaptive_spin::AdaptiveSpin;
use super::association::ConnectionHandle;
use super::session::{ConnectionInfo, DisconnectReason, SessionTask, TcpSession};
use crate::clock::sleep_before;

/// Longest time for which a host may refuse to receive.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Limits of the wait for a host to read the reason for its disconnection: time, and bytes that it
/// may still send.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;
/// Spin-loop hints between two checks for input, some tens of nanoseconds each. The second value
/// applies while large data arrives, because each read is acknowledged to the host, and few large
/// reads cost less.
const PAUSES: u32 = 8;
const PAUSES_FOR_MUCH: u32 = 200;
/// Congestion control that never delays sending. Every Linux has it and lets any user choose it.
const UNPACED: &str = "reno";
/// On a connection of the machine with itself, a read of at least this many bytes is acknowledged
/// immediately.
const PROMPT_BYTES: usize = 16 << 10;

/// Wakes a connection thread that waits in `poll`. Wraps an eventfd.
pub struct ThreadWaker(OwnedFd);

impl ThreadWaker {
    /// Creates the eventfd.
    pub fn new() -> std::io::Result<Arc<ThreadWaker>> {
        Ok(Arc::new(ThreadWaker(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    pub fn wake(&self) {
        // The write fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Returns whether the bell was rung since the last call.
    fn answer(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

/// Handle through which other threads control the socket.
pub struct SocketHandle {
    stream: TcpStream,
    hung_up: AtomicBool,
}

impl SocketHandle {
    pub fn new(stream: TcpStream) -> Arc<SocketHandle> {
        let hung_up = AtomicBool::new(false);
        Arc::new(SocketHandle { stream, hung_up })
    }
}

impl ConnectionHandle for SocketHandle {
    fn disconnect(&self) {
        self.hung_up.store(true, Ordering::Release);
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn is_disconnected(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    fn is_closed_by_host(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec::default();
        poll(&mut descriptors, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

/// Serves a connection until it ends.
pub fn serve(
    context: Arc<TargetContext>,
    stream: TcpStream,
    line: Arc<SocketHandle>,
    bell: Arc<ThreadWaker>,
    established: Arc<AtomicBool>,
) {
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else {
        return;
    };
    let is_own = local.ip() == peer.ip();
    if is_own {
        // A connection within one machine crosses no network that could be congested. The default
        // of many systems (BBR) paces by timers at a measured rate. A failure to change it is no
        // error.
        let _ = set_tcp_congestion(&stream, UNPACED);
    }
    let waker = Arc::clone(&bell);
    let surroundings =
        ConnectionInfo { local, peer: peer.ip(), connection: line, waker: Arc::new(move || waker.wake()) };
    let now = Instant::now();
    let limits = &context.options.limits;
    let mut connection = ConnectionWorker {
        connected_until: now + limits.connect.min(limits.handshake),
        established_until: now + limits.handshake,
        session: TcpSession::new(Arc::clone(&context), surroundings),
        context,
        stream,
        waker: bell,
        established,
        spin: AdaptiveSpin::default(),
        is_own,
    };
    let reason = connection.run();
    connection.session.close();
    if reason == Some(DisconnectReason::Ended) || reason.is_none() {
        let _ = connection.stream.shutdown(Shutdown::Both);
    } else {
        connection.linger();
    }
}

struct ConnectionWorker {
    context: Arc<TargetContext>,
    session: TcpSession,
    stream: TcpStream,
    waker: Arc<ThreadWaker>,
    connected_until: Instant,
    /// Deadline for authentication.
    established_until: Instant,
    /// Tells the server that the connection is no longer half open.
    established: Arc<AtomicBool>,
    spin: AdaptiveSpin,
    /// The host is on this machine.
    is_own: bool,
}

impl ConnectionWorker {
    /// Serves until the connection must close and returns the reason, or `None` if the connection
    /// is lost.
    fn run(&mut self) -> Option<DisconnectReason> {
        // A host that does not read blocks only its own thread, and only for this time.
        self.stream.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
        loop {
            match self.session.advance() {
                Ok(SessionTask::Send) => self.send()?,
                Ok(SessionTask::Sync) => self.session.sync(),
                Ok(SessionTask::Compute) => {
                    // A reauthentication has the same time limit as the first authentication.
                    let until = if self.session.is_established() {
                        Instant::now() + self.context.options.limits.handshake
                    } else {
                        self.established_until
                    };
                    self.session.run_dh(until);
                }
                Ok(SessionTask::Wait { input, until }) => {
                    if !self.wait(input, until)? {
                        continue;
                    }
                    let bytes = match self.read_soon()? {
                        Some(bytes) => bytes,
                        None => match self.stream.read_vectored(&mut self.session.input()) {
                            Ok(bytes) => bytes,
                            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                            Err(_) => return None,
                        },
                    };
                    if bytes == 0 {
                        return None;
                    }
                    if self.is_own && bytes >= PROMPT_BYTES {
                        // The host's congestion control derives its rate from acknowledgements,
                        // which the system delays in order to send them with an answer. After a
                        // small read the answer follows soon, and a separate acknowledgement costs
                        // more.
                        let _ = set_tcp_quickack(&self.stream, true);
                    }
                    self.session.received(bytes);
                }
                Err(closing) => {
                    self.send()?;
                    return Some(closing);
                }
            }
        }
    }

    /// Reads available input, spinning for a while if that is worthwhile. Returns `Some(None)` if
    /// no input came.
    fn read_soon(&mut self) -> Option<Option<usize>> {
        let stream = &self.stream;
        let pauses = if self.session.expects_large_data() { PAUSES_FOR_MUCH } else { PAUSES };
        let mut input = self.session.input();
        let mut read = || match recvmsg(stream, &mut input, &mut RecvAncillaryBuffer::default(), RecvFlags::DONTWAIT) {
            Ok(received) => Some(Some(received.bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Some(None),
            Err(_) => None,
        };
        // Reading takes the socket's lock, which the sender of the input also needs.
        let comes = || poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&Timespec::default())) != Ok(0);
        self.spin.read_spinning(pauses, comes, &mut read)
    }

    /// Waits for input if `input` is set, for events, or until a deadline. Returns whether input is
    /// available.
    fn wait(&mut self, input: bool, until: Option<Nanos>) -> Option<bool> {
        let established = self.session.is_established();
        if established && until.is_none() && !self.session.has_events() {
            self.established.store(true, Ordering::Release);
            return Some(true);
        }
        self.established.store(established, Ordering::Release);
        let handshake = (!established).then(|| self.deadline().saturating_duration_since(Instant::now()));
        if handshake == Some(Duration::ZERO) {
            return None;
        }
        let now = self.context.clock.now();
        let due = until.map(|at| sleep_before(at, now).unwrap_or(Duration::ZERO));
        let wait = [due, handshake].into_iter().flatten().min();
        let timeout = wait.map(|wait| Timespec::try_from(wait).expect("the time to wait is a number of seconds"));
        let wanted = if input { PollFlags::IN } else { PollFlags::empty() };
        let mut descriptors = [PollFd::new(&self.stream, wanted), PollFd::new(self.waker.descriptor(), PollFlags::IN)];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        // The next read reports errors and hang-ups.
        let readable = !descriptors[0].revents().is_empty();
        let rung = !descriptors[1].revents().is_empty();
        if rung && self.waker.answer() {
            self.session.deliver_events();
        }
        Some(readable)
    }

    /// Deadline for the next step of a connection that is not established.
    fn deadline(&self) -> Instant {
        if self.session.is_connected() { self.established_until } else { self.connected_until }
    }

    fn send(&mut self) -> Option<()> {
        let output = self.session.output();
        let mut slices = output.slices();
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        let mut sent = 0;
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(0) => return None,
                Ok(bytes) => {
                    IoSlice::advance_slices(&mut rest, bytes);
                    sent += bytes;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        assert_eq!(sent, output.bytes(), "the socket takes as many bytes as the session counts");
        self.session.sent();
        Some(())
    }

    /// Closes so that the last output still arrives. Unread input would make the system reset the
    /// connection.
    fn linger(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let end = Instant::now() + LINGER;
        let mut scratch = vec![0; 64 << 10];
        let mut left = LINGER_BYTES;
        loop {
            let wait = end.saturating_duration_since(Instant::now());
            if wait.is_zero() || left == 0 || self.stream.set_read_timeout(Some(wait)).is_err() {
                break;
            }
            match self.stream.read(&mut scratch) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => left = left.saturating_sub(bytes),
            }
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
