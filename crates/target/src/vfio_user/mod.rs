//! A controller for stock QEMU: a vfio-user server on a Unix socket.
//!
//! ```text
//! QEMU -> socket -> connection (messages, configuration space)
//!   |                 \-> worker (queues, guest memory, interrupts) -> Subsystem
//!   \-> doorbell page ------^   (shared memory)
//! ```
//!
//! A server is one PCI function with one controller of the drive. It serves one client at a time; the next one waits
//! until that has left, which resets the function. Three threads belong to it: one for the socket, one that carries out
//! commands, one that makes data durable. Doorbells come three ways: as messages, through the mapped page that the
//! worker looks at, and through shadow doorbells in guest memory.
//!
//! The messages are handled here rather than by the `vfio_user` crate's server, which trusts the sizes that a peer
//! names, panics at some malformed messages, loses its place in the stream after others, and cannot be stopped while a
//! client is connected. Its client is what the tests and the benchmark use, so that two implementations meet.
//!
//! Not here: INTx and MSI, migration, DMA by messages (the client must share its memory by file descriptors), several
//! functions on a socket.

pub mod config_space;
mod connection;
mod doorbells;
mod memory;
mod socket;
mod vectors;
mod wire;
mod worker;

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nvme::pcie::{PcieController, QUEUES_MAX};
use nvme::{ControllerKind, Host, Transport};

use crate::{Clock, ServeError, Shared, locked};
use config_space::Layout;
use connection::Device;
use doorbells::DoorbellPage;
use socket::Socket;
use worker::{Parts, Request, Requests, Worker};

/// Name of the thread that carries out commands.
pub const WORKER_THREAD: &str = "vfio-worker";

/// How a vfio-user server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfioUserOptions {
    /// Whether clients may map the doorbells, which the worker then polls. Without that each doorbell is a message.
    pub map_doorbells: bool,
    /// How long a client may take to say which version it speaks; until it has left the next one waits.
    pub greeting: Duration,
}

impl Default for VfioUserOptions {
    fn default() -> VfioUserOptions {
        VfioUserOptions {
            map_doorbells: true,
            greeting: Duration::from_secs(5),
        }
    }
}

/// A running vfio-user server. See the module.
pub struct VfioUserServer {
    shared: Shared,
    controller: u16,
    requests: Requests,
    doorbell_messages: Arc<AtomicU64>,
    clients: Arc<Clients>,
    socket_thread: Option<JoinHandle<()>>,
    worker_threads: Vec<JoinHandle<()>>,
    /// Removed last: while it exists somebody serves it.
    socket: Arc<Socket>,
}

/// Who is connected, for the thread that ends it.
#[derive(Default)]
struct Clients {
    stopping: AtomicBool,
    current: Mutex<Option<UnixStream>>,
}

impl VfioUserServer {
    /// Starts to serve a controller of the drive on a socket.
    ///
    /// # Errors
    /// The socket cannot be had, the drive has no controller left, or the system refuses what a server needs.
    pub fn start(
        path: &Path,
        shared: Shared,
        clock: Clock,
        options: VfioUserOptions,
    ) -> Result<VfioUserServer, ServeError> {
        let socket = Arc::new(Socket::bind(path)?);
        let (page, file) = DoorbellPage::new().map_err(|source| system("making the doorbell page", source))?;
        let (controller, queues) = connect(&shared, clock)?;
        let layout = Layout { vectors: queues + 1 };
        let (worker, requests, to_sync) = Worker::new(Parts {
            controller: PcieController::new(controller, queues, layout.vectors),
            layout,
            doorbells: page,
            polls: options.map_doorbells,
            shared: Arc::clone(&shared),
            clock,
        });
        let waker = requests.clone();
        locked(&shared).set_waker(controller, Arc::new(move || waker.wake()));

        let mut server = VfioUserServer {
            shared,
            controller,
            requests,
            doorbell_messages: Arc::default(),
            clients: Arc::default(),
            socket_thread: None,
            worker_threads: Vec::new(),
            socket,
        };
        let device = Device {
            layout,
            requests: server.requests.clone(),
            doorbells: options.map_doorbells.then_some(file),
            doorbell_messages: Arc::clone(&server.doorbell_messages),
            greeting: options.greeting,
        };
        // An error below drops the server, which ends the threads that there are.
        server.worker_threads.push(spawn(WORKER_THREAD, move || worker.run())?);
        let requests = server.requests.clone();
        server
            .worker_threads
            .push(spawn("vfio-syncer", move || worker::run_syncer(&to_sync, &requests))?);
        let (socket, clients) = (Arc::clone(&server.socket), Arc::clone(&server.clients));
        server.socket_thread = Some(spawn("vfio-socket", move || {
            accept_clients(&socket.listener, &device, &clients)
        })?);
        Ok(server)
    }

    /// Identifier of its controller.
    pub fn controller(&self) -> u16 {
        self.controller
    }

    /// Messages that wrote a doorbell, of all clients.
    pub fn doorbell_messages(&self) -> u64 {
        self.doorbell_messages.load(Ordering::Relaxed)
    }

    /// Ends the connection and the threads, gives the controller back and removes the socket. What clients wrote is as
    /// durable as it was; closing the drive is the caller's.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for VfioUserServer {
    fn drop(&mut self) {
        self.clients.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a client or for a message. That they are closed already is as good.
        let _ = rustix::net::shutdown(&self.socket.listener, rustix::net::Shutdown::Both);
        if let Some(client) = &*self.clients.current.lock().expect("nobody panics with it") {
            let _ = client.shutdown(Shutdown::Both);
        }
        let _ = self.requests.send(Request::Stop);
        for thread in self
            .socket_thread
            .take()
            .into_iter()
            .chain(self.worker_threads.drain(..))
        {
            if thread.join().is_err() {
                eprintln!("warp: a thread of the vfio-user server ended with a panic, see above");
            }
        }
        // A thread that panicked while it had the drive leaves nothing to give the controller back to.
        if let Ok(mut subsystem) = self.shared.lock() {
            subsystem.disconnect(self.controller);
        }
    }
}

/// Takes a controller of the drive; returns its identifier and its I/O queue pairs.
fn connect(shared: &Shared, clock: Clock) -> Result<(u16, u16), ServeError> {
    let mut subsystem = locked(shared);
    let queues = subsystem.config().io_queues_max.min(QUEUES_MAX - 1);
    let connected = subsystem.connect(clock.now(), Transport::Pcie, ControllerKind::Io, Host::default());
    match connected {
        Ok(controller) => Ok((controller, queues)),
        Err(failure) => Err(system("making a controller", io::Error::other(failure.cause))),
    }
}

fn system(action: &'static str, source: io::Error) -> ServeError {
    ServeError::System { action, source }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ServeError> {
    let thread = std::thread::Builder::new().name(name.to_string()).spawn(work);
    thread.map_err(|source| system("starting a thread", source))
}

/// Serves clients, one after the other, until the server stops.
fn accept_clients(listener: &UnixListener, device: &Device, clients: &Clients) {
    while let Some(stream) = next_client(listener, clients) {
        if let Err(error) = connection::serve(device, &stream)
            && !clients.stopping.load(Ordering::SeqCst)
        {
            eprintln!("warp: vfio-user: {error}; the client is disconnected, the next one may come");
        }
        *clients.current.lock().expect("nobody panics with it") = None;
        if device.requests.ask(|answer| Request::ClientGone { answer }).is_err() {
            return;
        }
    }
}

/// Waits for a client. `None` when the server stops.
fn next_client(listener: &UnixListener, clients: &Clients) -> Option<UnixStream> {
    loop {
        let accepted = listener.accept();
        if clients.stopping.load(Ordering::SeqCst) {
            return None;
        }
        let kept = accepted.and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
        match kept {
            Ok((copy, stream)) => {
                *clients.current.lock().expect("nobody panics with it") = Some(copy);
                // Stopping looks for the current client after it has said so: one of the two sees the other.
                if clients.stopping.load(Ordering::SeqCst) {
                    return None;
                }
                return Some(stream);
            }
            Err(error) => {
                // Out of file descriptors, most likely; others may give some back.
                eprintln!("warp: vfio-user: a client could not be accepted: {error}");
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }
}
