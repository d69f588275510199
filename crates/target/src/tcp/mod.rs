//! NVMe/TCP target (TCP Transport Specification 1.1): serves the subsystem and its discovery log to
//! any number of hosts.
//!
//! ```text
//! TcpServer: accepts -> a thread for each connection
//!   -> TcpSession (bytes in, bytes out, no socket) -> nvme::Subsystem, shared by all
//! ```
//!
//! * `pdu`, `input`, `output`: parsing and buffering of bytes
//! * `session`: the states of a connection and of its commands
//! * `fabrics`, `discovery`: Connect, properties, the discovery log
//! * `sq_head`: selects the completions that can be left out
//! * `association`: selects the connections that end together
//! * `auth`, `dh_worker_pool`: in-band authentication with DH-HMAC-CHAP, and scheduling of its
//!   arithmetic
//!
//! Without a list of hosts it serves this machine only. It does not implement TLS, several
//! subsystems, the static controller model, or Disconnect of single queues.

mod adaptive_spin;
mod association;
pub mod auth;
mod connection;
mod dh_worker_pool;
mod discovery;
mod fabrics;
mod input;
mod output;
mod pdu;
pub mod session;
mod sq_head;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::account::{self, BudgetShare};
use crate::half_open::{HalfOpenConnection, oldest_of_the_busiest};
use crate::{ServeError, ServerClock, SharedSubsystem, lock};
use association::Associations;
pub use association::ConnectionHandle;
use connection::{SocketHandle, ThreadWaker};
use dh_worker_pool::DhWorkerPool;
pub use dhchap::{Secret, SecretError};
use nvme::completion_lag::LagRecorder;
pub use nvme_spec::auth::DhGroupId;

/// A host that may connect.
#[derive(Clone, Debug)]
pub struct AllowedHost {
    pub nqn: String,
    /// Secret of the host. Required if the server listens on an address that other machines reach.
    pub secret: Option<Secret>,
    /// Secret of the controller, with which it answers a host that asks for authentication.
    pub controller_secret: Option<Secret>,
    /// The weakest DH group that the host may choose. [`DhGroupId::Null`] allows authentication
    /// without a DH exchange.
    pub group_min: DhGroupId,
}

/// Resource limits of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    /// Connections that have not connected a queue or not authenticated yet. A new connection
    /// replaces the oldest of the address that has most of them, after a protected time. A machine
    /// that only opens connections thus locks no other out. A host may connect all of its queues in
    /// a burst.
    pub half_open: usize,
    /// Connections of one host: an admin queue and I/O queues for each of its controllers. Set
    /// Features grants I/O queues within this limit and within the limit of all connections.
    pub connections_per_host: usize,
    /// Bytes of data in memory for the commands of one connection. One command of any size is
    /// always served, and one capsule accepted. Reusable buffers may hold the same amount again.
    pub bytes_in_flight: usize,
    /// Time in which a connection must connect its queue.
    pub connect: Duration,
    /// Time in which a connection must be established.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Enough for two hosts with two paths each and the most I/O queues, and some more.
            connections: 576,
            half_open: 160,
            connections_per_host: 272,
            bytes_in_flight: 4 << 20,
            connect: Duration::from_secs(3),
            handshake: Duration::from_secs(10),
        }
    }
}

#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Address to listen on, with port 0 for any free port.
    pub listen: SocketAddr,
    /// Hosts that may connect. An empty list admits all hosts and requires a loopback address.
    pub hosts: Vec<AllowedHost>,
    /// Address that the discovery log reports instead of the one that the host connected to, for
    /// hosts behind address translation.
    pub advertised: Option<SocketAddr>,
    /// Most data in one H2CData PDU (MAXH2CDATA), a multiple of 4, at least 4096.
    pub h2c_data_bytes_max: u32,
    pub limits: Limits,
}

impl TcpOptions {
    pub fn new(listen: SocketAddr) -> TcpOptions {
        TcpOptions {
            listen,
            hosts: Vec::new(),
            advertised: None,
            h2c_data_bytes_max: nvme::transfer::TRANSFER_BYTES_MAX as u32,
            limits: Limits::default(),
        }
    }

    /// Rejects options that are invalid or unsafe.
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
            let sentence = format!("MAXH2CDATA is {bytes}, but must be a multiple of 4 and at least 4096");
            return Err(ServeError::TcpOption(sentence));
        }
        Ok(())
    }
}

/// State that all connections share.
pub struct TargetContext {
    shared: SharedSubsystem,
    clock: ServerClock,
    options: TcpOptions,
    subsystem_nqn: String,
    associations: Associations,
    exponents: DhWorkerPool,
    pacing: Arc<LagRecorder>,
}

impl TargetContext {
    /// Context for a server, or for sessions without one.
    pub fn new(options: TcpOptions, shared: SharedSubsystem, clock: ServerClock) -> Arc<TargetContext> {
        let (subsystem_nqn, pacing) = {
            let subsystem = lock(&shared);
            (subsystem.config().identity.nqn.clone(), Arc::clone(subsystem.pacing()))
        };
        Arc::new(TargetContext {
            pacing,
            shared,
            clock,
            options,
            subsystem_nqn,
            associations: Associations::default(),
            exponents: DhWorkerPool::default(),
        })
    }
}

/// A connection as the server sees it.
struct ConnectionThread {
    line: Arc<SocketHandle>,
    peer: IpAddr,
    since: Instant,
    established: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Share of the process's file descriptors.
    _share: BudgetShare,
}

/// Answer to a request for one more connection.
enum ConnectionAdmission {
    Now,
    /// Retry after this time, when a half-open connection may have to give way.
    After(Duration),
    Never,
}

/// Descriptors of a connection: the socket twice, and the eventfd.
const CONNECTION_DESCRIPTORS: u64 = 3;

#[derive(Default)]
struct Connections {
    by_number: HashMap<u64, ConnectionThread>,
    accepted: u64,
}

impl ConnectionThread {
    fn is_half_open(&self) -> bool {
        !self.established.load(Ordering::Acquire) && !self.line.is_disconnected()
    }
}

impl Connections {
    /// Makes room for one more connection, if necessary in place of a half-open one.
    fn make_room(&mut self, limits: &Limits) -> ConnectionAdmission {
        // Disconnected connections are about to end. If too many accumulate, no new one is
        // admitted.
        if self.by_number.len() >= limits.connections + limits.half_open {
            return ConnectionAdmission::Never;
        }
        let there = self.by_number.values().filter(|accepted| !accepted.line.is_disconnected()).count();
        let numbered = self.by_number.iter().filter(|(_, accepted)| accepted.is_half_open());
        let half_open = numbered.map(|(&number, accepted)| HalfOpenConnection {
            number,
            peer: accepted.peer,
            since: accepted.since,
        });
        let half_open: Vec<HalfOpenConnection> = half_open.collect();
        assert!(half_open.len() <= there, "{} of the {there} live connections are half open", half_open.len());
        if there < limits.connections && half_open.len() < limits.half_open {
            return ConnectionAdmission::Now;
        }
        let Some(oldest) = oldest_of_the_busiest(&half_open) else {
            return ConnectionAdmission::Never;
        };
        let spared_for = oldest.grace_left(Instant::now());
        if !spared_for.is_zero() {
            return ConnectionAdmission::After(spared_for.min(LOOK_AGAIN));
        }
        self.by_number[&oldest.number].line.disconnect();
        ConnectionAdmission::Now
    }
}

/// State that the server's threads share.
struct ServerState {
    context: Arc<TargetContext>,
    connections: Mutex<Connections>,
    stop: Arc<ThreadWaker>,
    stopping: AtomicBool,
}

/// A running NVMe/TCP target.
pub struct TcpServer {
    inner: Arc<ServerState>,
    address: SocketAddr,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

/// Prefix of the names of the server's threads.
pub const THREAD_NAME: &str = "nvme-tcp";

/// Pause of the acceptor if the system has no descriptor or thread for another connection.
const REST: Duration = Duration::from_millis(100);
/// Longest wait before the acceptor checks for room again, because connections become established
/// in between.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl TcpServer {
    /// Starts to listen.
    pub fn start(options: TcpOptions, shared: SharedSubsystem, clock: ServerClock) -> Result<TcpServer, ServeError> {
        options.check()?;
        let listener = listen(options.listen)?;
        let system = |action| move |source| ServeError::System { action, source };
        let address = listener.local_addr().map_err(system("reading the listening address"))?;
        let inner = Arc::new(ServerState {
            context: TargetContext::new(options, shared, clock),
            connections: Mutex::default(),
            stop: ThreadWaker::new().map_err(system("creating an eventfd"))?,
            stopping: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&inner);
        let acceptor = std::thread::Builder::new()
            .name(THREAD_NAME.to_string())
            .spawn(move || accepting.accept(&listener))
            .map_err(system("starting a thread"))?;
        Ok(TcpServer { inner, address, acceptor: Mutex::new(Some(acceptor)) })
    }

    /// Listening address, with the real port if port 0 was requested.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    pub fn connections(&self) -> usize {
        self.inner.connections().by_number.len()
    }

    /// Ends the connections of controllers whose keep alive timeout has expired, as
    /// [`nvme::Subsystem::tick`] returned them. A second tick spares controllers that received a
    /// command since then and identifiers that now belong to other controllers.
    pub fn end_associations(&self, expired: &[u16]) {
        if expired.is_empty() {
            return;
        }
        let context = &self.inner.context;
        let mut subsystem = lock(&context.shared);
        let still_expired = subsystem.tick(context.clock.now());
        for &controller in expired.iter().filter(|id| still_expired.contains(id)) {
            context.associations.end_controller(&mut subsystem, controller);
        }
    }

    /// Stops accepting, closes all connections and waits for their threads. May be called again.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        self.inner.stop.wake();
        let acceptor = self.acceptor.lock().expect("nothing panics while it holds the handle").take();
        if let Some(acceptor) = acceptor {
            let _ = acceptor.join();
        }
        // No connection is added from here on.
        let remaining: Vec<ConnectionThread> =
            self.inner.connections().by_number.drain().map(|(_, accepted)| accepted).collect();
        self.inner.context.exponents.stop();
        for accepted in &remaining {
            accepted.line.disconnect();
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

impl ServerState {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("nothing panics while it holds the connections")
    }

    fn accept(self: &Arc<ServerState>, listener: &TcpListener) {
        while !self.stopping.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, peer)) => {
                    // Without room, thread or descriptor, dropping the stream closes it.
                    if self.waits_for_room() {
                        let _ = self.admit(stream, peer.ip());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.rest(Some(listener), None),
                Err(_) => self.rest(None, Some(REST)),
            }
        }
    }

    /// Waits until one more connection fits. Returns false if none will.
    fn waits_for_room(&self) -> bool {
        while !self.stopping.load(Ordering::Acquire) {
            match self.connections().make_room(&self.context.options.limits) {
                ConnectionAdmission::Now => return true,
                ConnectionAdmission::Never => return false,
                ConnectionAdmission::After(wait) => self.rest(None, Some(wait)),
            }
        }
        false
    }

    /// Waits for a connection, a timeout, or the end of the server.
    fn rest(&self, listener: Option<&TcpListener>, time: Option<Duration>) {
        let mut descriptors = vec![PollFd::new(self.stop.descriptor(), PollFlags::IN)];
        descriptors.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let timeout = time.map(|time| Timespec::try_from(time).expect("a short time"));
        let _ = poll(&mut descriptors, timeout.as_ref());
    }

    fn admit(self: &Arc<ServerState>, stream: TcpStream, peer: IpAddr) -> std::io::Result<()> {
        let mut connections = self.connections();
        let share = account::descriptors().take(CONNECTION_DESCRIPTORS);
        let share = share.ok_or(rustix::io::Errno::MFILE)?;
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        // TCP keepalive detects a host whose machine has vanished, even without an NVMe keep alive
        // timer.
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        let bell = ThreadWaker::new()?;
        let established = Arc::new(AtomicBool::new(false));
        let number = connections.accepted;
        connections.accepted += 1;
        let mut accepted = ConnectionThread {
            line: SocketHandle::new(stream.try_clone()?),
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
        // The connections are locked, so the thread cannot remove its entry before it is inserted.
        accepted.thread = Some(thread.spawn(work)?);
        let before = connections.by_number.insert(number, accepted);
        assert!(before.is_none(), "numbers of connections are not used again");
        let (there, limits) = (connections.by_number.len(), &self.context.options.limits);
        assert!(
            there <= limits.connections + limits.half_open,
            "the server has {there} connections, at most {} and {} half-open ones",
            limits.connections,
            limits.half_open
        );
        Ok(())
    }
}
