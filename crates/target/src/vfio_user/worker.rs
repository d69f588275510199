//! The worker: the thread that owns the controller's queues, the guest's memory and the interrupts, and carries out
//! commands.
//!
//! ```text
//! connection --requests--> worker --(locked, for a batch)--> Subsystem
//! doorbells  --polled----->   |  \--> syncer (makes data durable, meanwhile others are served) --request--> worker
//! Subsystem  --waker------>   |
//!                             +--> completions, interrupts
//! ```
//!
//! The connection never waits for a command: its requests are answered between two batches. Without requests and
//! doorbells the worker first spins, then sleeps, the longer the longer nothing happens; a request wakes it at once.
//! (It does not yield: where others want its processor it would get it back a time slice later.) If nobody can map the
//! doorbells every doorbell is a request, and it sleeps until one comes.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nvme::Durable;
use nvme::pcie::{Bus, PcieController};

use super::config_space::Layout;
use super::doorbells::DoorbellPage;
use super::memory::{GuestMemory, Range};
use super::vectors::{Change, Vectors};
use crate::clock::sleep_before;
use crate::{Clock, Shared, give_way, locked, pause_between_parts};

/// How long the worker spins before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Looks at the doorbells for one at everything else, while it spins.
const LOOKS_PER_ROUND: usize = 8;
/// Then it sleeps for this part of the time that it has been idle, so that a command after a pause waits at most 6 % of
/// the pause for it, within these bounds.
const IDLE_PER_SLEEP: u32 = 16;
const SLEEP_MIN: Duration = Duration::from_micros(5);
const SLEEP_MAX: Duration = Duration::from_micros(50);
/// After this time it sleeps longer.
const LONG_IDLE: Duration = Duration::from_secs(1);
const SLEEP_LONG: Duration = Duration::from_millis(1);
/// How much later than asked the kernel may end a sleep, in nanoseconds; 50 000 if nobody says.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::new(1000).expect("not 0");
/// What a user is told whose QEMU cannot work.
const NO_MEMORY: &str = "warp: vfio-user: the client enables the controller but shares no memory with it, so no \
    command can be read; start QEMU with -object memory-backend-memfd,id=ram,size=...,share=on -machine \
    memory-backend=ram";
/// Requests that can wait; then who makes them does.
const REQUESTS_MAX: usize = 256;

/// What the connection, the syncer and the subsystem want of the worker.
pub enum Request {
    /// BAR0 is read.
    Read {
        offset: u64,
        bytes: usize,
        answer: SyncSender<Vec<u8>>,
    },
    /// BAR0 is written.
    Write {
        offset: u64,
        data: Vec<u8>,
        answer: Option<SyncSender<()>>,
    },
    Map {
        range: Range,
        answer: SyncSender<io::Result<()>>,
    },
    Unmap {
        address: u64,
        bytes: u64,
        answer: SyncSender<io::Result<()>>,
    },
    UnmapAll {
        answer: SyncSender<()>,
    },
    Vectors {
        first: usize,
        change: Change,
        answer: SyncSender<io::Result<()>>,
    },
    /// Whether the client's memory may be accessed from now on. A reset, and a client's leaving, take that back.
    BusMaster {
        enabled: bool,
        answer: SyncSender<()>,
    },
    /// Function level reset, or the bus's.
    Reset {
        answer: SyncSender<()>,
    },
    /// The client is gone, with its memory and its interrupts.
    ClientGone {
        answer: SyncSender<()>,
    },
    /// The syncer has finished.
    SyncResult(io::Result<()>),
    /// Look at what was set before this was sent.
    Wake,
    Stop,
}

/// How to reach the worker.
#[derive(Clone)]
pub struct Requests {
    sender: SyncSender<Request>,
    woken: Arc<AtomicBool>,
}

impl Requests {
    /// Sends a request that nobody waits for.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn send(&self, request: Request) -> io::Result<()> {
        self.sender.send(request).map_err(|_| ended())
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn ask<T>(&self, request: impl FnOnce(SyncSender<T>) -> Request) -> io::Result<T> {
        let (answer, answered) = sync_channel(1);
        self.send(request(answer))?;
        answered.recv().map_err(|_| ended())
    }

    /// Makes the worker look for asynchronous completions. Never waits: it may be called with the subsystem locked.
    pub fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        match self.sender.try_send(Request::Wake) {
            // With requests waiting it is awake, and looks when it has answered them.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the drive's worker has ended")
}

/// See the module.
pub struct Worker {
    controller: PcieController,
    layout: Layout,
    memory: GuestMemory,
    vectors: Vectors,
    doorbells: DoorbellPage,
    /// Whether a client can map the doorbells.
    polls: bool,
    /// Whether the client's memory may be accessed (Bus Master Enable). Otherwise no command is looked at or completed.
    bus_master: bool,
    /// What the syncer has finished while it might not.
    synced: Option<io::Result<()>>,
    shared: Shared,
    clock: Clock,
    requests: Receiver<Request>,
    woken: Arc<AtomicBool>,
    syncer: Sender<Arc<dyn Durable>>,
}

/// What a worker is made of.
pub struct Parts {
    pub controller: PcieController,
    pub layout: Layout,
    pub doorbells: DoorbellPage,
    pub polls: bool,
    pub shared: Shared,
    pub clock: Clock,
}

impl Worker {
    /// A worker, how to reach it, and what its syncer gets.
    pub fn new(parts: Parts) -> (Worker, Requests, Receiver<Arc<dyn Durable>>) {
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let (syncer, to_sync) = mpsc::channel();
        let woken = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            controller: parts.controller,
            layout: parts.layout,
            memory: GuestMemory::default(),
            vectors: Vectors::new(parts.layout.vectors),
            doorbells: parts.doorbells,
            polls: parts.polls,
            bus_master: false,
            synced: None,
            shared: parts.shared,
            clock: parts.clock,
            requests,
            woken: Arc::clone(&woken),
            syncer,
        };
        (worker, Requests { sender, woken }, to_sync)
    }

    /// Works until it is stopped.
    pub fn run(mut self) {
        // Without it the short sleeps are longer; that is all.
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
        let mut idle_since = None;
        loop {
            match self.requests.try_recv() {
                Ok(Request::Stop) | Err(TryRecvError::Disconnected) => return,
                Ok(request) => {
                    self.carry_out(request);
                    idle_since = None;
                    continue;
                }
                Err(TryRecvError::Empty) => {}
            }
            if self.step() {
                idle_since = None;
                continue;
            }
            let idle = idle_since.get_or_insert_with(Instant::now).elapsed();
            if let Some(request) = self.pause(idle) {
                if matches!(request, Request::Stop) {
                    return;
                }
                self.carry_out(request);
                idle_since = None;
            }
        }
    }

    /// Carries out a batch of commands, if there are any.
    fn step(&mut self) -> bool {
        if !self.bus_master {
            return false;
        }
        let bus = bus(&self.memory, &self.vectors, &self.doorbells);
        let woken = self.woken.load(Ordering::Relaxed) && self.woken.swap(false, Ordering::Acquire);
        let due = self.controller.next_due().is_some_and(|due| due <= self.clock.now());
        if !self.controller.has_work(bus) && !woken && !due {
            return false;
        }
        // Between two batches there is less time than a thread takes to wake up that waits for the drive.
        match self.controller.is_in_parts() {
            true => pause_between_parts(),
            false => give_way(),
        }
        self.controller
            .process(&mut locked(&self.shared), bus, self.clock.now());
        self.start_sync();
        true
    }

    fn start_sync(&mut self) {
        if let Some(durable) = self.controller.start_sync() {
            let sent = self.syncer.send(durable);
            sent.expect("the syncer ends after the worker");
        }
    }

    /// Completes what was made durable, as soon as that is allowed; after a reset there is nothing that could be
    /// completed.
    fn finish_sync(&mut self) {
        if !self.bus_master && self.controller.is_running() {
            return;
        }
        if let Some(result) = self.synced.take() {
            let bus = bus(&self.memory, &self.vectors, &self.doorbells);
            self.controller
                .finish_sync(&mut locked(&self.shared), bus, self.clock.now(), &result);
            self.start_sync();
        }
    }

    /// Spends a moment without work. Returns a request that ends it.
    fn pause(&mut self, idle: Duration) -> Option<Request> {
        if !self.bus_master {
            return Some(self.requests.recv().unwrap_or(Request::Stop));
        }
        let bus = bus(&self.memory, &self.vectors, &self.doorbells);
        if self.polls && idle < SPIN {
            // Requests and the clock take longer to look at than doorbells, and are less urgent.
            for _ in 0..LOOKS_PER_ROUND {
                std::hint::spin_loop();
                if self.controller.has_work(bus) {
                    break;
                }
            }
            return None;
        }
        if self.controller.announce_sleep(bus) {
            return None;
        }
        let doze = (self.polls && self.controller.is_running()).then(|| {
            if idle < LONG_IDLE {
                (idle / IDLE_PER_SLEEP).clamp(SLEEP_MIN, SLEEP_MAX)
            } else {
                SLEEP_LONG
            }
        });
        let until_due = match self.controller.next_due() {
            None => None,
            Some(due) => match sleep_before(due, self.clock.now()) {
                None => return None,
                sleep => sleep,
            },
        };
        match [doze, until_due].into_iter().flatten().min() {
            None => Some(self.requests.recv().unwrap_or(Request::Stop)),
            Some(time) => match self.requests.recv_timeout(time) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Request::Stop),
            },
        }
    }

    /// Answers a request. Who asked may be gone; that is no concern of the worker's.
    fn carry_out(&mut self, request: Request) {
        match request {
            Request::Read { offset, bytes, answer } => {
                let _ = answer.send(self.read(offset, bytes));
            }
            Request::Write { offset, data, answer } => {
                self.write(offset, &data);
                if let Some(answer) = answer {
                    let _ = answer.send(());
                }
            }
            Request::Map { range, answer } => {
                let _ = answer.send(self.memory.add(range));
            }
            Request::Unmap { address, bytes, answer } => {
                let _ = answer.send(self.memory.remove(address, bytes));
            }
            Request::UnmapAll { answer } => {
                self.memory.clear();
                let _ = answer.send(());
            }
            Request::Vectors { first, change, answer } => {
                let _ = answer.send(self.vectors.change(first, change));
            }
            Request::BusMaster { enabled, answer } => {
                self.bus_master = enabled;
                if enabled && self.controller.is_running() {
                    let bus = bus(&self.memory, &self.vectors, &self.doorbells);
                    self.controller.raise_again(bus);
                }
                self.finish_sync();
                let _ = answer.send(());
            }
            Request::Reset { answer } => {
                self.reset();
                let _ = answer.send(());
            }
            Request::ClientGone { answer } => {
                self.reset();
                self.memory.clear();
                self.vectors = Vectors::new(self.layout.vectors);
                let _ = answer.send(());
            }
            Request::SyncResult(result) => {
                let before = self.synced.replace(result);
                assert!(before.is_none(), "only one thing at a time is made durable");
                self.finish_sync();
            }
            Request::Wake => {}
            Request::Stop => unreachable!("the caller has looked for it"),
        }
    }

    fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        match offset {
            offset if offset >= self.layout.pending() => {
                self.vectors.read_pending(offset - self.layout.pending(), &mut data)
            }
            offset if offset >= Layout::TABLE => self.vectors.read_table(offset - Layout::TABLE, &mut data),
            _ => self.controller.read_register(&locked(&self.shared), offset, &mut data),
        }
        data
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        match offset {
            // Pending bits are read-only.
            offset if offset >= self.layout.pending() => {}
            offset if offset >= Layout::TABLE => self.vectors.write_table(offset - Layout::TABLE, data),
            _ => {
                let bus = bus(&self.memory, &self.vectors, &self.doorbells);
                let was_running = self.controller.is_running();
                let now = self.clock.now();
                self.controller
                    .write_register(&mut locked(&self.shared), bus, now, offset, data);
                self.start_sync();
                if !was_running && self.controller.is_running() && self.memory.is_empty() {
                    eprintln!("{NO_MEMORY}");
                }
            }
        }
    }

    fn reset(&mut self) {
        let bus = bus(&self.memory, &self.vectors, &self.doorbells);
        self.controller.reset_function(&mut locked(&self.shared), bus);
        assert!(!self.controller.is_running(), "a reset leaves no queues");
        self.vectors.reset();
        self.bus_master = false;
        self.finish_sync();
    }
}

fn bus<'a>(memory: &'a GuestMemory, interrupts: &'a Vectors, doorbells: &'a DoorbellPage) -> Bus<'a> {
    Bus {
        memory,
        interrupts,
        doorbells,
    }
}

/// Makes durable what the worker asks for, until the worker ends.
pub fn run_syncer(to_sync: &Receiver<Arc<dyn Durable>>, requests: &Requests) {
    for durable in to_sync {
        if requests.send(Request::SyncResult(durable.make_durable())).is_err() {
            return;
        }
    }
}
