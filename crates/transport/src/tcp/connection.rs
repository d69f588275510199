//! The thread of a connection: moves bytes between its socket and its [`Session`], and waits.
//!
//! I/O connections wait in a blocking read. Admin connections, and all that have something to do at a certain time,
//! wait in `poll` for the socket and an eventfd, which other threads write to when there is an event to tell.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use ssd::Nanos;

use super::Context;
use super::session::{CloseReason, Next, Session, Surroundings};
use crate::clock::sleep_before;

/// How long a host may refuse to take what we send.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long we wait for a host to read the reason why it is hung up on, and how much it may still send meanwhile.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;

/// What other threads wake a thread with that waits in `poll`.
pub struct Bell(OwnedFd);

impl Bell {
    /// A new one.
    ///
    /// # Errors
    /// The system has no file descriptor for it.
    pub fn new() -> std::io::Result<Arc<Bell>> {
        Ok(Arc::new(Bell(eventfd(
            0,
            EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC,
        )?)))
    }

    /// Wakes the thread.
    pub fn ring(&self) {
        // It fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// What to wait for.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Whether it was rung since the last call.
    fn answer(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

/// Serves a connection until it ends.
pub fn serve(context: Arc<Context>, stream: TcpStream, bell: Arc<Bell>, established: Arc<AtomicBool>) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let Ok(to_hang_up) = stream.try_clone() else {
        return;
    };
    let waker = Arc::clone(&bell);
    let surroundings = Surroundings {
        local,
        hang_up: Arc::new(move || {
            let _ = to_hang_up.shutdown(Shutdown::Both);
        }),
        waker: Arc::new(move || waker.ring()),
    };
    let clock = context.clock;
    let handshake = context.options.limits.handshake;
    let mut connection = Connection {
        handshake_until: clock.now() + handshake.as_nanos() as Nanos,
        session: Session::new(Arc::clone(&context), surroundings),
        context,
        stream,
        bell,
        established,
    };
    let reason = connection.run();
    connection.session.close();
    if reason == Some(CloseReason::Ended) || reason.is_none() {
        let _ = connection.stream.shutdown(Shutdown::Both);
    } else {
        connection.linger();
    }
}

struct Connection {
    context: Arc<Context>,
    session: Session,
    stream: TcpStream,
    bell: Arc<Bell>,
    handshake_until: Nanos,
    /// Told to the server: the connection is not half open any more.
    established: Arc<AtomicBool>,
}

impl Connection {
    /// Why the connection is to be closed; `None`: it is lost.
    fn run(&mut self) -> Option<CloseReason> {
        // A host that takes nothing blocks only its own thread, and not for ever.
        self.stream.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
        loop {
            match self.session.advance() {
                Ok(Next::Send) => self.send()?,
                Ok(Next::Sync) => self.session.sync(),
                Ok(Next::Wait { input, until }) => {
                    if !self.wait(input, until)? {
                        continue;
                    }
                    let bytes = match self.stream.read_vectored(&mut self.session.input()) {
                        Ok(0) => return None,
                        Ok(bytes) => bytes,
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Err(_) => return None,
                    };
                    self.session.received(bytes);
                }
                Err(closing) => {
                    self.send()?;
                    return Some(closing);
                }
            }
        }
    }

    /// Waits until there is input, if that is wanted; returns whether there is.
    fn wait(&mut self, input: bool, until: Option<Nanos>) -> Option<bool> {
        let established = self.session.is_established();
        if established && until.is_none() && !self.session.has_events() {
            self.established.store(true, Ordering::Release);
            return Some(true);
        }
        self.established.store(established, Ordering::Release);
        let now = self.context.clock.now();
        if !established && now >= self.handshake_until {
            return None;
        }
        let handshake = (!established).then_some(self.handshake_until);
        let wake_at = [until, handshake].into_iter().flatten().min();
        let timeout = wake_at.map(|at| {
            let wait = sleep_before(at, now).unwrap_or(Duration::ZERO);
            Timespec::try_from(wait).expect("the time to wait is a number of seconds")
        });
        let wanted = if input { PollFlags::IN } else { PollFlags::empty() };
        let mut descriptors = [
            PollFd::new(&self.stream, wanted),
            PollFd::new(self.bell.descriptor(), PollFlags::IN),
        ];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        // Errors and hang-ups are reported by reading.
        let readable = !descriptors[0].revents().is_empty();
        let rung = !descriptors[1].revents().is_empty();
        if rung && self.bell.answer() {
            self.session.deliver_events();
        }
        Some(readable)
    }

    fn send(&mut self) -> Option<()> {
        let output = self.session.output();
        let mut slices = output.slices();
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(0) => return None,
                Ok(bytes) => IoSlice::advance_slices(&mut rest, bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        self.session.sent();
        Some(())
    }

    /// Closes so that what was sent last still arrives: unread input would make the system reset the connection.
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
