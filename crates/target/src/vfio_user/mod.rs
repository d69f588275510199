//! A vfio-user server on a Unix socket, which gives stock QEMU a controller.
//!
//! ```text
//! QEMU -> socket -> connection (messages, configuration space)
//!   |                 \-> worker (queues, guest memory, interrupts) -> Subsystem
//!   \-> doorbell page ------^   (shared memory)
//! ```
//!
//! A server is one PCI function with one controller of the drive. It serves one client at a time.
//! The next client waits until the current one leaves, which resets the function. A server has
//! three threads: one for the socket, one that executes commands, one that makes data durable.
//! Doorbells arrive in three ways: as messages, in the mapped page that the worker polls, and as
//! shadow doorbells in guest memory.
//!
//! The module does not use the server of the `vfio_user` crate. That server trusts sizes from the
//! peer, and cannot stop while a client is connected. Some malformed messages make it panic, and
//! some make it lose its place in the stream. The tests and the benchmark use that crate's client,
//! so that two implementations test each other.
//!
//! Not implemented: INTx and MSI, migration, DMA by messages (the client must share its memory by
//! file descriptors), several functions on a socket.

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
use nvme::{ControllerKind, HostIdentity, HostTransport};

use crate::{ServeError, ServerClock, SharedSubsystem, lock};
use config_space::BarLayout;
use connection::SharedDevice;
use doorbells::DoorbellPage;
use socket::Socket;
use worker::{QueueWorker, WorkerHandle, WorkerParts};

/// Name of the thread that executes commands.
pub const WORKER_THREAD: &str = "vfio-worker";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfioUserOptions {
    /// True if clients may map the doorbells, which the worker then polls. Otherwise each doorbell
    /// is a message.
    pub map_doorbells: bool,
    /// Longest time until a client sends its version. The next client waits until then.
    pub greeting: Duration,
}

impl Default for VfioUserOptions {
    fn default() -> VfioUserOptions {
        VfioUserOptions { map_doorbells: true, greeting: Duration::from_secs(5) }
    }
}

pub struct VfioUserServer {
    shared: SharedSubsystem,
    controller: u16,
    requests: WorkerHandle,
    doorbell_messages: Arc<AtomicU64>,
    clients: Arc<Clients>,
    socket_thread: Option<JoinHandle<()>>,
    worker_threads: Vec<JoinHandle<()>>,
    /// Removed last, because the file announces a server.
    socket: Arc<Socket>,
}

/// The current client, shared with the thread that stops the server.
#[derive(Default)]
struct Clients {
    stopping: AtomicBool,
    current: Mutex<Option<UnixStream>>,
}

impl VfioUserServer {
    /// Starts to serve a controller of the drive on a socket.
    pub fn start(
        path: &Path,
        shared: SharedSubsystem,
        clock: ServerClock,
        options: VfioUserOptions,
    ) -> Result<VfioUserServer, ServeError> {
        let socket = Arc::new(Socket::bind(path)?);
        let (page, file) = DoorbellPage::new().map_err(|source| system("creating the doorbell page", source))?;
        let (controller, queues) = connect(&shared, clock)?;
        let layout = BarLayout { vectors: queues + 1 };
        let (worker, requests, to_sync) = QueueWorker::new(WorkerParts {
            controller: PcieController::new(controller, queues, layout.vectors),
            layout,
            doorbells: page,
            polls: options.map_doorbells,
            shared: Arc::clone(&shared),
            clock,
        });
        let waker = requests.clone();
        lock(&shared).set_waker(controller, Arc::new(move || waker.wake()));

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
        let device = SharedDevice {
            layout,
            requests: server.requests.clone(),
            doorbells: options.map_doorbells.then_some(file),
            doorbell_messages: Arc::clone(&server.doorbell_messages),
            greeting: options.greeting,
        };
        // An error below drops the server, which ends the threads started so far.
        server.worker_threads.push(spawn(WORKER_THREAD, move || worker.run())?);
        let requests = server.requests.clone();
        server.worker_threads.push(spawn("vfio-syncer", move || worker::run_syncer(&to_sync, &requests))?);
        let (socket, clients) = (Arc::clone(&server.socket), Arc::clone(&server.clients));
        server.socket_thread = Some(spawn("vfio-socket", move || accept_clients(&socket.listener, &device, &clients))?);
        Ok(server)
    }

    pub fn doorbell_messages(&self) -> u64 {
        self.doorbell_messages.load(Ordering::Relaxed)
    }

    /// Ends the connection and the threads, frees the controller and removes the socket. Durability
    /// of the clients' writes does not change. The caller must close the drive.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for VfioUserServer {
    fn drop(&mut self) {
        self.clients.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a client or a message. An error means that the socket is
        // already closed.
        let _ = rustix::net::shutdown(&self.socket.listener, rustix::net::Shutdown::Both);
        if let Some(client) = &*self.clients.current.lock().expect("no thread panics while it holds the lock") {
            let _ = client.shutdown(Shutdown::Both);
        }
        self.requests.stop();
        for thread in self.socket_thread.take().into_iter().chain(self.worker_threads.drain(..)) {
            if thread.join().is_err() {
                eprintln!("warp: a thread of the vfio-user server ended with the panic above");
            }
        }
        // After a panic with the drive locked, the controller cannot be freed.
        if let Ok(mut subsystem) = self.shared.lock() {
            subsystem.disconnect(self.controller);
        }
    }
}

/// Connects a controller of the drive. Returns its identifier and its number of I/O queue pairs.
fn connect(shared: &SharedSubsystem, clock: ServerClock) -> Result<(u16, u16), ServeError> {
    let mut subsystem = lock(shared);
    let queues = subsystem.config().io_queues_max.min(QUEUES_MAX - 1);
    let connected = subsystem.connect(clock.now(), HostTransport::Pcie, ControllerKind::Io, HostIdentity::default());
    match connected {
        Ok(controller) => Ok((controller, queues)),
        Err(failure) => Err(system("creating a controller", io::Error::other(failure.cause))),
    }
}

fn system(action: &'static str, source: io::Error) -> ServeError {
    ServeError::System { action, source }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ServeError> {
    let thread = std::thread::Builder::new().name(name.to_string()).spawn(work);
    thread.map_err(|source| system("starting a thread", source))
}

/// Serves clients one after the other, until the server stops.
fn accept_clients(listener: &UnixListener, device: &SharedDevice, clients: &Clients) {
    while let Some(stream) = next_client(listener, clients) {
        if let Err(error) = connection::serve(device, &stream)
            && !clients.stopping.load(Ordering::SeqCst)
        {
            eprintln!("warp: the vfio-user client was disconnected: {error}. Another client may connect");
        }
        *clients.current.lock().expect("no thread panics while it holds the lock") = None;
        if device.requests.request(QueueWorker::forget_client).is_err() {
            return;
        }
    }
}

/// Waits for a client. Returns `None` when the server stops.
fn next_client(listener: &UnixListener, clients: &Clients) -> Option<UnixStream> {
    loop {
        let accepted = listener.accept();
        if clients.stopping.load(Ordering::SeqCst) {
            return None;
        }
        let kept = accepted.and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
        match kept {
            Ok((copy, stream)) => {
                let before = clients.current.lock().expect("no thread panics while it holds the lock").replace(copy);
                assert!(before.is_none(), "a socket serves one client at a time");
                // `drop` sets `stopping` before it reads `current`, and this thread does the
                // opposite. One of the two threads always sees the other.
                if clients.stopping.load(Ordering::SeqCst) {
                    return None;
                }
                return Some(stream);
            }
            Err(error) => {
                // The most likely cause is a lack of file descriptors. Others may be closed soon.
                eprintln!("warp: a vfio-user client could not connect: {error}");
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }
}
