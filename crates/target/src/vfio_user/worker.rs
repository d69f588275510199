//! The worker thread, which owns the controller's queues, the guest's memory and the interrupts,
//! and executes commands.
//!
//! ```text
//! connection --requests--> worker --(locked, for a batch)--> Subsystem
//! doorbells  --polled----->   |  \--> syncer (makes data durable) --request--> worker
//! Subsystem  --waker------>   |
//!                             +--> completions, interrupts
//! ```
//!
//! The connection never waits for a command, because the worker answers requests between two
//! batches. Without requests and doorbells the worker first spins, then sleeps, longer after longer
//! idle times. A request wakes it immediately. It does not yield, because on a busy processor it
//! would resume only a time slice later. If no client can map the doorbells, each doorbell is a
//! request, and the worker sleeps until one arrives.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nvme::FlushHandle;
use nvme::pcie::{Bus, PcieController};

use super::config_space::BarLayout;
use super::doorbells::DoorbellPage;
use super::memory::GuestMemory;
use super::vectors::Vectors;
use crate::clock::sleep_before;
use crate::{ServerClock, SharedSubsystem, lock, pause_between_parts, yield_to_waiters};

/// Longest spin before a sleep.
const SPIN: Duration = Duration::from_micros(20);
/// Polls of the doorbells per poll of all other inputs during a spin.
const LOOKS_PER_ROUND: usize = 8;
/// A sleep lasts one part in this many of the idle time so far, within the bounds below. A command
/// after a pause therefore waits for at most 6 % of the pause.
const IDLE_PER_SLEEP: u32 = 16;
const SLEEP_MIN: Duration = Duration::from_micros(5);
const SLEEP_MAX: Duration = Duration::from_micros(50);
/// After this idle time, sleeps have the longer duration below.
const LONG_IDLE: Duration = Duration::from_secs(1);
const SLEEP_LONG: Duration = Duration::from_millis(1);
/// Timer slack in nanoseconds: the kernel may end a sleep this much late. Linux's default is 50
/// 000.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::new(1000).expect("not 0");
/// Message for a user whose QEMU cannot work.
const NO_MEMORY: &str = "warp: the vfio-user client enables the controller but shares no memory with it, so no command \
                         can be read. Start QEMU with -object memory-backend-memfd,id=ram,size=...,share=on -machine \
                         memory-backend=ram";
/// Capacity of the request channel. A sender to a full channel waits.
const REQUESTS_MAX: usize = 256;

pub enum WorkerRequest {
    /// Runs between two batches of commands.
    Run(Box<dyn FnOnce(&mut QueueWorker) + Send>),
    /// Makes the worker check the flags that were set before this request.
    Wake,
    Stop,
}

/// Handle to send requests to the worker.
#[derive(Clone)]
pub struct WorkerHandle {
    sender: SyncSender<WorkerRequest>,
    woken: Arc<AtomicBool>,
}

impl WorkerHandle {
    fn send(&self, request: WorkerRequest) -> io::Result<()> {
        self.sender.send(request).map_err(|_| ended())
    }

    pub fn stop(&self) {
        // If the worker has ended, it needs no request.
        let _ = self.send(WorkerRequest::Stop);
    }

    /// Makes the worker do `work`, without waiting for it. Requests stay in order.
    pub fn post(&self, work: impl FnOnce(&mut QueueWorker) + Send + 'static) -> io::Result<()> {
        self.send(WorkerRequest::Run(Box::new(work)))
    }

    /// Makes the worker do `work`, and waits for its result.
    pub fn request<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut QueueWorker) -> T + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = sync_channel(1);
        self.post(move |worker| {
            // If the sender of the request has gone, the answer is dropped.
            let _ = answer.send(work(worker));
        })?;
        answered.recv().map_err(|_| ended())
    }

    /// Makes the worker check for asynchronous completions. Never waits, so that a caller may have
    /// the subsystem locked.
    pub fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        match self.sender.try_send(WorkerRequest::Wake) {
            // If the channel is full, the worker is awake and checks the flag after its requests.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the drive's worker has ended")
}

pub struct QueueWorker {
    controller: PcieController,
    layout: BarLayout,
    pub memory: GuestMemory,
    pub vectors: Vectors,
    doorbells: DoorbellPage,
    /// True if clients can map the doorbells.
    polls: bool,
    /// Bus Master Enable: true if the client's memory may be accessed. Without it no command is
    /// fetched or completed.
    bus_master: bool,
    /// Result of the syncer that arrived while completions were not allowed.
    synced: Option<io::Result<()>>,
    shared: SharedSubsystem,
    clock: ServerClock,
    requests: Receiver<WorkerRequest>,
    woken: Arc<AtomicBool>,
    syncer: Sender<Arc<dyn FlushHandle>>,
}

/// Arguments of [`QueueWorker::new`].
pub struct WorkerParts {
    pub controller: PcieController,
    pub layout: BarLayout,
    pub doorbells: DoorbellPage,
    pub polls: bool,
    pub shared: SharedSubsystem,
    pub clock: ServerClock,
}

impl QueueWorker {
    /// Creates a worker, a handle for requests, and the input of its syncer.
    pub fn new(parts: WorkerParts) -> (QueueWorker, WorkerHandle, Receiver<Arc<dyn FlushHandle>>) {
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let (syncer, to_sync) = mpsc::channel();
        let woken = Arc::new(AtomicBool::new(false));
        let worker = QueueWorker {
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
        (worker, WorkerHandle { sender, woken }, to_sync)
    }

    /// Runs until a stop request.
    pub fn run(mut self) {
        // If the call fails, short sleeps last longer, without other effects.
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
        let mut idle_since = None;
        loop {
            let request = match self.requests.try_recv() {
                Ok(request) => Some(request),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) if self.step() => {
                    idle_since = None;
                    continue;
                }
                Err(TryRecvError::Empty) => self.pause(idle_since.get_or_insert_with(Instant::now).elapsed()),
            };
            if let Some(request) = request {
                if !self.carry_out(request) {
                    return;
                }
                idle_since = None;
            }
        }
    }

    /// Executes a batch of commands. Returns false if no work is pending.
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
        // The gap between two batches is shorter than the wake-up time of a thread that waits for
        // the drive.
        match self.controller.is_in_parts() {
            true => pause_between_parts(),
            false => yield_to_waiters(),
        }
        self.controller.process(&mut lock(&self.shared), bus, self.clock.now());
        self.start_sync();
        true
    }

    fn start_sync(&mut self) {
        if let Some(durable) = self.controller.start_sync() {
            let sent = self.syncer.send(durable);
            sent.expect("the syncer ends after the worker");
        }
    }

    /// Completes commands whose data is durable, as soon as memory access is allowed. A stopped
    /// controller has no such commands left.
    fn finish_sync(&mut self) {
        if !self.bus_master && self.controller.is_running() {
            return;
        }
        if let Some(result) = self.synced.take() {
            let bus = bus(&self.memory, &self.vectors, &self.doorbells);
            self.controller.finish_sync(&mut lock(&self.shared), bus, self.clock.now(), &result);
            self.start_sync();
        }
    }

    /// Spins or sleeps without work. Returns the request that ended the pause.
    fn pause(&mut self, idle: Duration) -> Option<WorkerRequest> {
        if !self.bus_master {
            return Some(self.requests.recv().unwrap_or(WorkerRequest::Stop));
        }
        let bus = bus(&self.memory, &self.vectors, &self.doorbells);
        if self.polls && idle < SPIN {
            // Polling requests and the clock takes longer than polling doorbells, and is less
            // urgent.
            for _ in 0..LOOKS_PER_ROUND {
                std::hint::spin_loop();
                if self.controller.has_work(bus) {
                    break;
                }
            }
            return None;
        }
        if self.controller.prepare_sleep(bus) {
            return None;
        }
        let doze = (self.polls && self.controller.is_running())
            .then(|| if idle < LONG_IDLE { (idle / IDLE_PER_SLEEP).clamp(SLEEP_MIN, SLEEP_MAX) } else { SLEEP_LONG });
        let until_due = match self.controller.next_due() {
            None => None,
            Some(due) => match sleep_before(due, self.clock.now()) {
                None => return None,
                sleep => sleep,
            },
        };
        match [doze, until_due].into_iter().flatten().min() {
            None => Some(self.requests.recv().unwrap_or(WorkerRequest::Stop)),
            Some(time) => match self.requests.recv_timeout(time) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(WorkerRequest::Stop),
            },
        }
    }

    /// Executes a request. Returns false for a request to stop.
    fn carry_out(&mut self, request: WorkerRequest) -> bool {
        match request {
            WorkerRequest::Run(work) => work(self),
            WorkerRequest::Wake => {}
            WorkerRequest::Stop => return false,
        }
        true
    }

    /// Sets Bus Master Enable, which permits access to the client's memory. A reset or the client's
    /// departure clears it.
    pub fn set_bus_master(&mut self, enabled: bool) {
        self.bus_master = enabled;
        if enabled && self.controller.is_running() {
            let bus = bus(&self.memory, &self.vectors, &self.doorbells);
            self.controller.raise_pending(bus);
        }
        self.finish_sync();
    }

    /// Forgets a client that has left, with its memory and its interrupts.
    pub fn forget_client(&mut self) {
        self.reset();
        self.memory.clear();
        self.vectors = Vectors::new(self.layout.vectors);
    }

    fn note_synced(&mut self, result: io::Result<()>) {
        let before = self.synced.replace(result);
        assert!(before.is_none(), "one sync at a time is in progress");
        self.finish_sync();
    }

    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        match offset {
            offset if offset >= self.layout.pending() => {
                self.vectors.read_pending(offset - self.layout.pending(), &mut data)
            }
            offset if offset >= BarLayout::TABLE => self.vectors.read_table(offset - BarLayout::TABLE, &mut data),
            _ => self.controller.read_register(&lock(&self.shared), offset, &mut data),
        }
        data
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        match offset {
            // Pending bits are read-only.
            offset if offset >= self.layout.pending() => {}
            offset if offset >= BarLayout::TABLE => self.vectors.write_table(offset - BarLayout::TABLE, data),
            _ => {
                let bus = bus(&self.memory, &self.vectors, &self.doorbells);
                let was_running = self.controller.is_running();
                let now = self.clock.now();
                self.controller.write_register(&mut lock(&self.shared), bus, now, offset, data);
                self.start_sync();
                if !was_running && self.controller.is_running() && self.memory.is_empty() {
                    eprintln!("{NO_MEMORY}");
                }
            }
        }
    }

    /// Function level reset, or a reset of the bus.
    pub fn reset(&mut self) {
        let bus = bus(&self.memory, &self.vectors, &self.doorbells);
        self.controller.reset_function(&mut lock(&self.shared), bus);
        assert!(!self.controller.is_running(), "a reset leaves no queues");
        self.vectors.reset();
        self.bus_master = false;
        self.finish_sync();
        assert!(self.synced.is_none(), "no command waits for a sync after a reset");
    }
}

fn bus<'a>(memory: &'a GuestMemory, interrupts: &'a Vectors, doorbells: &'a DoorbellPage) -> Bus<'a> {
    Bus { memory, interrupts, doorbells }
}

/// Makes data durable at the worker's request, until the worker ends.
pub fn run_syncer(to_sync: &Receiver<Arc<dyn FlushHandle>>, requests: &WorkerHandle) {
    for durable in to_sync {
        let result = durable.flush();
        if requests.post(|worker| worker.note_synced(result)).is_err() {
            return;
        }
    }
}
