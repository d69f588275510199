//! Benchmark of random reads and writes over a vfio-user socket. The driver of [`crate::pcie`]
//! replaces a guest.
//!
//! The drive is in memory without timing, so the figure is the cost of the path: command fetch from
//! guest memory, controller, device model with garbage collection, data copy and completion. The
//! driver runs on its own thread and does the minimum of work. The same run measures the best copy
//! rate of a core.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use nvme_spec::IoOpcode;
use nvme_spec::command::SubmissionEntry;
use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

use super::ThreadTimes;
use crate::command::block_command;
use crate::pcie::{DriverError, DriverOptions, NvmeDriver};

const BLOCK_BYTES: u64 = 4096;
/// Bytes of each command that fills the drive.
const FILL_BYTES: u64 = 128 << 10;
/// Divisor of the queue depth. The queue is refilled when this part of it is free, as in a program
/// that takes completions in batches. With a doorbell per command the driver would limit the
/// figure.
const REFILLS: usize = 4;
const QUEUE: u16 = 1;

/// Server in this process. Its drive has one namespace in blocks of 4 KiB over the whole capacity.
pub struct BenchServer<'a> {
    pub socket: &'a Path,
    pub worker_thread: &'a str,
    /// Capacity of the drive, bytes. The benchmark writes it once before the measurement.
    pub capacity_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct BenchWorkload {
    pub queue_depth: u16,
    /// Ring doorbells in the mapped page instead of by messages.
    pub map_doorbells: bool,
    /// Ring doorbells in a buffer of the host (Doorbell Buffer Config). Messages only wake the
    /// server.
    pub shadow_doorbells: bool,
    pub write: bool,
    /// Bytes per command, a multiple of the logical block size and at most `FILL_BYTES`.
    pub bytes: u64,
    pub duration: Duration,
    pub seed: u64,
}

impl Default for BenchWorkload {
    fn default() -> BenchWorkload {
        BenchWorkload {
            queue_depth: 32,
            map_doorbells: true,
            shadow_doorbells: false,
            write: true,
            bytes: BLOCK_BYTES,
            duration: Duration::from_secs(5),
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub commands: u64,
    /// Processor time of the server's worker, less than the elapsed time on a busy machine.
    pub worker_busy: Duration,
    /// Random copies of a command's length per second of a core's processor time, to memory of the
    /// drive's size.
    pub copies_per_second: f64,
}

impl Figures {
    pub fn commands_per_busy_second(&self) -> f64 {
        self.commands as f64 / self.worker_busy.as_secs_f64()
    }
}

#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("a command failed with {0}")]
    Command(nvme_spec::Status),
    #[error("there is no memory to measure copies: {0}")]
    Memory(#[from] std::io::Error),
    #[error("the system does not report the CPU time of the server's thread")]
    ProcessorTime,
}

pub fn run(target: &BenchServer<'_>, workload: &BenchWorkload) -> Result<Figures, BenchError> {
    let mut run = BenchRun::start(target, workload)?;
    run.fill()?;

    let worker = ThreadTimes::until_now(target.worker_thread);
    run.measure(Instant::now() + workload.duration)?;
    let worker_busy = worker.since();
    if worker_busy.is_zero() {
        return Err(BenchError::ProcessorTime);
    }
    Ok(Figures {
        commands: run.completed,
        worker_busy,
        copies_per_second: copies_per_second(target.capacity_bytes, workload.bytes, workload.seed)?,
    })
}

/// Driver with its outstanding commands. A command identifier is the index of its buffer.
struct BenchRun {
    driver: NvmeDriver,
    capacity_bytes: u64,
    workload: BenchWorkload,
    /// Command for each buffer. The address is set before submission.
    entries: Vec<SubmissionEntry>,
    random: SplitMix64,
    completed: u64,
}

impl BenchRun {
    fn start(target: &BenchServer<'_>, workload: &BenchWorkload) -> Result<BenchRun, BenchError> {
        let options = DriverOptions { ram_bytes: 64 << 20, map_doorbells: workload.map_doorbells, vectors: 1 };
        let mut driver = NvmeDriver::start(target.socket, options)?;
        driver.create_queues(QUEUE, 1024, None)?;
        if workload.shadow_doorbells {
            driver.use_shadow_doorbells()?;
        }
        let pattern: Vec<u8> = (0..FILL_BYTES).map(|at| at as u8).collect();
        let opcode = if workload.write { IoOpcode::Write } else { IoOpcode::Read };
        let mut entry = |buffer: u16| {
            let address = driver.allocate_with(&pattern);
            let mut entry = block_command(opcode, 1, 0, (workload.bytes / BLOCK_BYTES) as u32);
            entry.cid.set(buffer);
            driver.set_prps(&mut entry, address, workload.bytes);
            entry
        };
        let entries = (0..workload.queue_depth).map(&mut entry).collect();
        Ok(BenchRun {
            driver,
            capacity_bytes: target.capacity_bytes,
            workload: *workload,
            entries,
            random: SplitMix64::seed_from_u64(workload.seed),
            completed: 0,
        })
    }

    /// Writes the whole drive once, with one command at a time.
    fn fill(&mut self) -> Result<(), BenchError> {
        let pattern: Vec<u8> = (0..FILL_BYTES).map(|at| at as u8).collect();
        let address = self.driver.allocate_with(&pattern);
        let mut entry = block_command(IoOpcode::Write, 1, 0, (FILL_BYTES / BLOCK_BYTES) as u32);
        self.driver.set_prps(&mut entry, address, FILL_BYTES);
        for address in (0..self.capacity_bytes).step_by(FILL_BYTES as usize) {
            entry.cdw10.set((address / BLOCK_BYTES) as u32);
            self.driver.submit_raw(QUEUE, &entry);
            self.driver.ring(QUEUE)?;
            let completion = self.driver.wait_completion(QUEUE)?;
            if !completion.status.status().is_success() {
                return Err(BenchError::Command(completion.status.status()));
            }
        }
        Ok(())
    }

    /// Keeps the queue between three quarters full and full until the deadline. Then waits for the
    /// outstanding commands.
    fn measure(&mut self, deadline: Instant) -> Result<(), BenchError> {
        let mut free: Vec<u16> = (0..self.workload.queue_depth).collect();
        let depth = free.len();
        let batch = depth.div_ceil(REFILLS);
        let mut rounds = 0u32;
        let mut over = false;
        while !over || free.len() < depth {
            if !over && free.len() >= batch {
                while let Some(buffer) = free.pop() {
                    self.submit(buffer);
                }
                self.driver.ring(QUEUE)?;
            }
            let before = free.len();
            while let Some(completion) = self.driver.take_completion(QUEUE) {
                if !completion.status.status().is_success() {
                    return Err(BenchError::Command(completion.status.status()));
                }
                free.push(completion.cid.get());
            }
            if free.len() > before {
                self.completed += (free.len() - before) as u64;
                self.driver.ring_head(QUEUE)?;
            } else {
                std::hint::spin_loop();
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(256) {
                over = over || Instant::now() >= deadline;
            }
        }
        Ok(())
    }

    fn submit(&mut self, buffer: u16) {
        let places = self.capacity_bytes / self.workload.bytes;
        let address = self.random.next_u64() % places * self.workload.bytes;
        let entry = &mut self.entries[usize::from(buffer)];
        let block = address / BLOCK_BYTES;
        entry.cdw10.set(block as u32);
        entry.cdw11.set((block >> 32) as u32);
        let entry = *entry;
        self.driver.submit_raw(QUEUE, &entry);
    }
}

/// Random copies of `piece_bytes` bytes per second of a core. This is the machine's limit for data
/// that is written once.
fn copies_per_second(bytes: u64, piece_bytes: u64, seed: u64) -> std::io::Result<f64> {
    const COPIED_BYTES: u64 = 2 << 30;
    const SOURCES: usize = 32;
    let copies = COPIED_BYTES / piece_bytes;
    let piece = piece_bytes as usize;
    // Whole pages, like the buffers of guests and of the drive.
    let mut source = MmapMut::map_anon(SOURCES * piece)?;
    source.fill(1);
    // The fill touches all pages, so that no page fault occurs later.
    let mut target = MmapMut::map_anon(bytes as usize)?;
    target.fill(2);
    let mut random = SplitMix64::seed_from_u64(seed);
    // Processor time as for the worker, because other programs may use this machine too.
    let start = processor_time();
    for copy in 0..copies {
        let from = (copy as usize % SOURCES) * piece;
        let to = (random.next_u64() % (bytes / piece_bytes)) as usize * piece;
        target[to..to + piece].copy_from_slice(&source[from..from + piece]);
    }
    black_box(&target);
    Ok(copies as f64 / (processor_time() - start).as_secs_f64())
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
