//! NVMe/TCP target (TCP Transport Specification 1.1): serves the subsystem and its discovery log to any number of
//! hosts.
//!
//! ```text
//! TcpServer: accepts -> a thread for each connection (connection) -> Session (bytes in, bytes out; no socket)
//!                                                                       -> nvme::Subsystem, shared with all others
//! ```
//!
//! * `pdu`, `input`, `output`: what the bytes mean, and how they are buffered
//! * `session`: the states of a connection and of its commands
//! * `fabrics`, `discovery`: Connect, properties, the discovery log
//! * `heads`: which completions can be left out
//! * `association`: which connections end together
//! * `auth`: in-band authentication with DH-HMAC-CHAP; `exponents`: when and where its arithmetic is done
//!
//! Without a list of hosts it serves this machine only. It does not implement TLS, several subsystems, the static
//! controller model, or Disconnect of single queues.

mod association;
pub mod auth;
mod connection;
mod discovery;
mod eagerness;
mod exponents;
mod fabrics;
mod heads;
mod input;
mod output;
mod pdu;
pub mod session;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::account::{self, Share};
use crate::half_open::{HalfOpen, oldest_of_the_busiest};
use crate::{Clock, ServeError, Shared, locked};
use association::Associations;
pub use association::Line;
use connection::{Bell, SocketLine};
pub use dhchap::{Secret, SecretError};
use exponents::Exponents;
use nvme::pacing::Pacing;
pub use nvme_spec::auth::DhGroupId;

/// A host that may connect.
#[derive(Clone, Debug)]
pub struct AllowedHost {
    pub nqn: String,
    /// What it proves its identity with; needed if the server listens on an address that other machines reach.
    pub secret: Option<Secret>,
    /// What the controller proves its identity with, if the host asks.
    pub controller_secret: Option<Secret>,
    /// The weakest DH group that it may choose; with [`DhGroupId::Null`] it may do without.
    pub group_min: DhGroupId,
}

/// What hosts may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    /// Connections that have not connected a queue or not authenticated yet. One more takes the place of the oldest of
    /// the address that has most of them, once that has had some time, so that whoever only opens connections keeps nobody
    /// else out. A host may connect all of its queues at once.
    pub half_open: usize,
    /// Connections of one host: an admin queue and I/O queues for each of its controllers. What Set Features grants of
    /// I/O queues is within this, and within the connections in all.
    pub connections_per_host: usize,
    /// Data in memory for the commands of one connection. One command is always served, whatever it moves, and one capsule taken. As much
    /// again may be kept in buffers that are used over and over.
    pub bytes_in_flight: usize,
    /// Time until a connection has to have connected its queue.
    pub connect: Duration,
    /// Time until a connection has to be established.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Two hosts that each have two paths with the most I/O queues, and some more.
            connections: 576,
            half_open: 160,
            connections_per_host: 272,
            bytes_in_flight: 4 << 20,
            connect: Duration::from_secs(3),
            handshake: Duration::from_secs(10),
        }
    }
}

/// How NVMe/TCP is served.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Where to listen; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Hosts that may connect; empty for all, which only a loopback address allows.
    pub hosts: Vec<AllowedHost>,
    /// What the discovery log says instead of the address that the host connected to, for hosts behind address
    /// translation.
    pub advertised: Option<SocketAddr>,
    /// Most data in one H2CData PDU (MAXH2CDATA), a multiple of 4, at least 4096.
    pub h2c_data_bytes_max: u32,
    /// What hosts may take.
    pub limits: Limits,
}

impl TcpOptions {
    /// The usual options.
    pub fn new(listen: SocketAddr) -> TcpOptions {
        TcpOptions {
            listen,
            hosts: Vec::new(),
            advertised: None,
            h2c_data_bytes_max: nvme::transfer::TRANSFER_BYTES_MAX as u32,
            limits: Limits::default(),
        }
    }

    /// Refuses what cannot be served, or must not.
    fn check(&self) -> Result<(), ServeError> {
        let address = self.listen;
        if !address.ip().to_canonical().is_loopback() {
            if self.hosts.is_empty() {
                return Err(ServeError::HostsRequired(address));
            }
            if let Some(host) = self.hosts.iter().find(|host| host.secret.is_none()) {
                let host = host.nqn.clone();
                return Err(ServeError::SecretRequired { address, host });
            }
        }
        if self.h2c_data_bytes_max < 4096 || !self.h2c_data_bytes_max.is_multiple_of(4) {
            let bytes = self.h2c_data_bytes_max;
            let sentence = format!("MAXH2CDATA is a multiple of 4 and at least 4096, not {bytes}");
            return Err(ServeError::TcpOption(sentence));
        }
        Ok(())
    }
}

/// What all connections share.
pub struct Context {
    shared: Shared,
    clock: Clock,
    options: TcpOptions,
    subsystem_nqn: String,
    associations: Associations,
    exponents: Exponents,
    pacing: Arc<Pacing>,
}

impl Context {
    /// For a server, or for sessions without one.
    pub fn new(options: TcpOptions, shared: Shared, clock: Clock) -> Arc<Context> {
        let (subsystem_nqn, pacing) = {
            let subsystem = locked(&shared);
            (subsystem.config().identity.nqn.clone(), Arc::clone(subsystem.pacing()))
        };
        Arc::new(Context {
            pacing,
            shared,
            clock,
            options,
            subsystem_nqn,
            associations: Associations::default(),
            exponents: Exponents::default(),
        })
    }
}

/// A connection as the server sees it.
struct ConnectionThread {
    line: Arc<SocketLine>,
    peer: IpAddr,
    since: Instant,
    established: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Of the descriptors that there are.
    _share: Share,
}

/// Whether one more connection may come.
enum Admission {
    Now,
    /// After so long, when one that is half open may have to give way.
    After(Duration),
    Never,
}

/// Descriptors of a connection: the socket twice, and the bell.
const CONNECTION_DESCRIPTORS: u64 = 3;

/// The connections that there are.
#[derive(Default)]
struct Connections {
    by_number: HashMap<u64, ConnectionThread>,
    accepted: u64,
}

impl ConnectionThread {
    fn is_half_open(&self) -> bool {
        !self.established.load(Ordering::Acquire) && !self.line.is_hung_up()
    }
}

impl Connections {
    /// Makes room for one more connection, if need be in place of one that is half open.
    fn make_room(&mut self, limits: &Limits) -> Admission {
        // Those that were hung up on are about to end; should they pile up, nobody comes in.
        if self.by_number.len() >= limits.connections + limits.half_open {
            return Admission::Never;
        }
        let there = self
            .by_number
            .values()
            .filter(|accepted| !accepted.line.is_hung_up())
            .count();
        let numbered = self.by_number.iter().filter(|(_, accepted)| accepted.is_half_open());
        let half_open = numbered.map(|(&number, accepted)| HalfOpen {
            number,
            peer: accepted.peer,
            since: accepted.since,
        });
        let half_open: Vec<HalfOpen> = half_open.collect();
        if there < limits.connections && half_open.len() < limits.half_open {
            return Admission::Now;
        }
        let Some(oldest) = oldest_of_the_busiest(&half_open) else {
            return Admission::Never;
        };
        let spared_for = oldest.spared_for(Instant::now());
        if !spared_for.is_zero() {
            return Admission::After(spared_for.min(LOOK_AGAIN));
        }
        self.by_number[&oldest.number].line.hang_up();
        Admission::Now
    }
}

/// What the server's threads share.
struct Inner {
    context: Arc<Context>,
    connections: Mutex<Connections>,
    stop: Arc<Bell>,
    stopping: AtomicBool,
}

/// A running NVMe/TCP target.
pub struct TcpServer {
    inner: Arc<Inner>,
    address: SocketAddr,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

/// What the names of the server's threads start with.
pub const THREAD_NAME: &str = "nvme-tcp";

/// How long accepting rests if the system has no descriptor or thread for another connection.
const REST: Duration = Duration::from_millis(100);
/// How long a connection waits at most before it is looked again whether there is room: others become established.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl TcpServer {
    /// Starts to listen.
    ///
    /// # Errors
    /// The options are not allowed, or the system does not let us have the address.
    pub fn start(options: TcpOptions, shared: Shared, clock: Clock) -> Result<TcpServer, ServeError> {
        options.check()?;
        let listener = listen(options.listen)?;
        let system = |action| move |source| ServeError::System { action, source };
        let address = listener.local_addr().map_err(system("asking for the address"))?;
        let inner = Arc::new(Inner {
            context: Context::new(options, shared, clock),
            connections: Mutex::default(),
            stop: Bell::new().map_err(system("making an eventfd"))?,
            stopping: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&inner);
        let acceptor = std::thread::Builder::new()
            .name(THREAD_NAME.to_string())
            .spawn(move || accepting.accept(&listener))
            .map_err(system("starting a thread"))?;
        Ok(TcpServer {
            inner,
            address,
            acceptor: Mutex::new(Some(acceptor)),
        })
    }

    /// Where it listens, with the real port if 0 was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that there are now.
    pub fn connections(&self) -> usize {
        self.inner.connections().by_number.len()
    }

    /// Ends the connections of controllers whose keep alive timeout is over, as [`nvme::Subsystem::tick`] returned
    /// them. Those that were heard of since, and those that are other controllers by now, are left alone.
    pub fn end_associations(&self, expired: &[u16]) {
        if expired.is_empty() {
            return;
        }
        let context = &self.inner.context;
        let mut subsystem = locked(&context.shared);
        let still_expired = subsystem.tick(context.clock.now());
        for &controller in expired.iter().filter(|id| still_expired.contains(id)) {
            context.associations.end_controller(&mut subsystem, controller);
        }
    }

    /// Stops accepting, closes all connections and waits for their threads. May be called again.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        self.inner.stop.ring();
        let acceptor = self
            .acceptor
            .lock()
            .expect("nothing panics while it holds the handle")
            .take();
        if let Some(acceptor) = acceptor {
            let _ = acceptor.join();
        }
        // Nothing is added from here on.
        let remaining: Vec<ConnectionThread> = self
            .inner
            .connections()
            .by_number
            .drain()
            .map(|(_, accepted)| accepted)
            .collect();
        self.inner.context.exponents.stop();
        for accepted in &remaining {
            accepted.line.hang_up();
        }
        for accepted in remaining {
            if let Some(thread) = accepted.thread {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).map_err(|source| ServeError::listening(address, source))?;
    let nonblocking = listener.set_nonblocking(true);
    nonblocking.map_err(|source| ServeError::listening(address, source))?;
    Ok(listener)
}

impl Inner {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .expect("nothing panics while it holds the connections")
    }

    fn accept(self: &Arc<Inner>, listener: &TcpListener) {
        while !self.stopping.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, peer)) => {
                    // Without room, thread or descriptor for it, the stream is closed by being dropped.
                    if self.waits_for_room() {
                        let _ = self.admit(stream, peer.ip());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.rest(Some(listener), None),
                Err(_) => self.rest(None, Some(REST)),
            }
        }
    }

    /// Makes room for a connection. Whether there is.
    fn waits_for_room(&self) -> bool {
        while !self.stopping.load(Ordering::Acquire) {
            match self.connections().make_room(&self.context.options.limits) {
                Admission::Now => return true,
                Admission::Never => return false,
                Admission::After(wait) => self.rest(None, Some(wait)),
            }
        }
        false
    }

    /// Waits for somebody to connect, for a time, or for the end.
    fn rest(&self, listener: Option<&TcpListener>, time: Option<Duration>) {
        let mut descriptors = vec![PollFd::new(self.stop.descriptor(), PollFlags::IN)];
        descriptors.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let timeout = time.map(|time| Timespec::try_from(time).expect("a short time"));
        let _ = poll(&mut descriptors, timeout.as_ref());
    }

    fn admit(self: &Arc<Inner>, stream: TcpStream, peer: IpAddr) -> std::io::Result<()> {
        let mut connections = self.connections();
        let share = account::descriptors().take(CONNECTION_DESCRIPTORS);
        let share = share.ok_or(rustix::io::Errno::MFILE)?;
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        // A host whose machine is gone is found by the system, even if it asked for no keep alive.
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        let bell = Bell::new()?;
        let established = Arc::new(AtomicBool::new(false));
        let number = connections.accepted;
        connections.accepted += 1;
        let mut accepted = ConnectionThread {
            line: SocketLine::new(stream.try_clone()?),
            peer,
            since: Instant::now(),
            _share: share,
            established: Arc::clone(&established),
            thread: None,
        };
        let (inner, line) = (Arc::clone(self), Arc::clone(&accepted.line));
        let work = move || {
            connection::serve(Arc::clone(&inner.context), stream, line, bell, established);
            inner.connections().by_number.remove(&number);
        };
        let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-{number}"));
        // The thread cannot remove its entry before it is there: the connections are locked.
        accepted.thread = Some(thread.spawn(work)?);
        let before = connections.by_number.insert(number, accepted);
        assert!(before.is_none(), "numbers of connections are not used again");
        Ok(())
    }
}
