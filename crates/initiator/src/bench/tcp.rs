//! Benchmark of NVMe/TCP on loopback, compared with plain TCP between the same two threads.
//!
//! Both are measured in one run on one machine, so the ratios are more meaningful than the absolute
//! figures. A ratio is the share of the loopback speed that remains with the protocol, the
//! controller, the device model and the data.
//!
//! For the throughput limit, one thread writes blocks into a socket as fast as another reads them.
//! For the limit of commands, one thread sends requests of the size of a command and another
//! answers with the size of a block. Both use the same queue depth and do no other work.
//!
//! With two or more cores, each side runs on its own core for queue depths above 1. By default the
//! scheduler often places a woken thread on the waker's core, and the two sides take turns. At
//! queue depth 1 they take turns anyway.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nvme_spec::IoOpcode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::threads;
use crate::command::block_command;
use crate::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue};

/// Target in this process. Its drive has one namespace in blocks of 4 KiB over the whole capacity.
#[derive(Clone, Copy, Debug)]
pub struct LoopbackTarget<'a> {
    pub address: SocketAddr,
    pub subsystem_nqn: &'a str,
    /// Name prefix of the target's threads.
    pub thread_name: &'a str,
    /// Capacity of the drive, bytes. The benchmark writes it once before the measurements.
    pub capacity_bytes: u64,
}

/// Measured figure with the limit of the same machine.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: &'static str,
    pub commands_per_second: f64,
    pub block_bytes: u32,
    /// Rate of plain TCP, in the same unit.
    pub limit_per_second: f64,
}

impl Figure {
    pub fn bytes_per_second(&self) -> f64 {
        self.commands_per_second * f64::from(self.block_bytes)
    }

    pub fn ratio(&self) -> f64 {
        self.commands_per_second / self.limit_per_second
    }
}

#[derive(Clone, Copy)]
struct LoopbackLoad {
    name: &'static str,
    opcode: IoOpcode,
    block_bytes: u32,
    queue_depth: u16,
    random: bool,
}

const fn load(name: &'static str, opcode: IoOpcode, block_bytes: u32, queue_depth: u16, random: bool) -> LoopbackLoad {
    LoopbackLoad { name, opcode, block_bytes, queue_depth, random }
}

const LOADS: [LoopbackLoad; 6] = [
    load("random read 4 KiB QD 1", IoOpcode::Read, 4096, 1, true),
    load("random write 4 KiB QD 1", IoOpcode::Write, 4096, 1, true),
    load("random read 4 KiB QD 32", IoOpcode::Read, 4096, 32, true),
    load("random write 4 KiB QD 32", IoOpcode::Write, 4096, 32, true),
    load("read 128 KiB QD 16", IoOpcode::Read, 128 << 10, 16, false),
    load("write 128 KiB QD 16", IoOpcode::Write, 128 << 10, 16, false),
];

/// Runs each workload for this time.
///
/// # Errors
/// The initiator reports a protocol error or a failed command.
///
/// # Panics
/// The machine has no loopback, or a thread cannot start.
pub fn run(target: &LoopbackTarget<'_>, time: Duration) -> Result<Vec<Figure>, InitiatorError> {
    let cores = ThreadCores::of_this_thread();
    let options = HostOptions {
        // Hosts that are tuned for speed disable flow control too (`nvme connect
        // --disable-sqflow`).
        flow_control: false,
        ..HostOptions::new(target.address, target.subsystem_nqn)
    };
    let controller = RemoteController::connect(&options)?;
    let mut queue = controller.io_queue(1, 64)?;
    fill(&mut queue, target.capacity_bytes)?;
    let mut figures = Vec::new();
    for load in LOADS {
        cores.assign(target, load.queue_depth > 1);
        let limit_per_second = limit(&load, time, &cores);
        let (commands, elapsed) = measure(&mut queue, &load, target.capacity_bytes, time)?;
        figures.push(Figure {
            name: load.name,
            commands_per_second: commands as f64 / elapsed.as_secs_f64(),
            block_bytes: load.block_bytes,
            limit_per_second,
        });
    }
    drop((queue, controller));
    cores.assign(target, false);
    Ok(figures)
}

/// Writes the whole drive once, so that reads find data.
fn fill(queue: &mut TcpQueue, capacity_bytes: u64) -> Result<(), InitiatorError> {
    const BYTES: u64 = 1 << 20;
    for offset in (0..capacity_bytes).step_by(BYTES as usize) {
        let bytes = BYTES.min(capacity_bytes - offset);
        let entry = block_command(IoOpcode::Write, 1, offset / 4096, (bytes / 4096) as u32);
        let data = CommandData::ToController(vec![offset as u8; bytes as usize]);
        queue.command(entry, data)?.check("Write")?;
    }
    Ok(())
}

struct ThreadCores {
    all: Option<CpuSet>,
    /// A core for each side, if there are two.
    sides: Option<[CpuSet; 2]>,
}

impl ThreadCores {
    fn of_this_thread() -> ThreadCores {
        let all = sched_getaffinity(None).ok();
        let numbers: Vec<usize> = match &all {
            Some(all) => (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core)).take(2).collect(),
            None => Vec::new(),
        };
        let sides = <[usize; 2]>::try_from(numbers).ok().map(|numbers| {
            numbers.map(|number| {
                let mut side = CpuSet::new();
                side.set(number);
                side
            })
        });
        ThreadCores { all, sides }
    }

    /// Cores of a side: its own core if divided, any core if not.
    fn side(&self, target: bool, divided: bool) -> Option<&CpuSet> {
        match &self.sides {
            Some(sides) if divided => Some(&sides[usize::from(target)]),
            _ => self.all.as_ref(),
        }
    }

    /// Assigns cores to this thread and the target's threads. A failure is ignored, because the
    /// figures are valid without it.
    fn assign(&self, target: &LoopbackTarget<'_>, divided: bool) {
        if let Some(set) = self.side(true, divided) {
            for thread in threads(target.thread_name) {
                let number = thread.file_name().and_then(|name| name.to_str()?.parse().ok());
                if let Some(number) = number.and_then(Pid::from_raw) {
                    let _ = sched_setaffinity(Some(number), set);
                }
            }
        }
        if let Some(set) = self.side(false, divided) {
            let _ = sched_setaffinity(None, set);
        }
    }

    fn join_target(&self, divided: bool) {
        if let Some(set) = self.side(true, divided) {
            let _ = sched_setaffinity(None, set);
        }
    }
}

fn measure(
    queue: &mut TcpQueue,
    load: &LoopbackLoad,
    capacity_bytes: u64,
    time: Duration,
) -> Result<(u64, Duration), InitiatorError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let places = capacity_bytes / u64::from(load.block_bytes);
    let blocks = load.block_bytes / 4096;
    let mut next = 0;
    let mut submit = |queue: &mut TcpQueue, buffer: Vec<u8>| {
        let place = if load.random { random.random_range(0..places) } else { next % places };
        next += 1;
        let entry = block_command(load.opcode, 1, place * u64::from(blocks), blocks);
        let data = match load.opcode {
            IoOpcode::Read => CommandData::ToHost(buffer),
            _ => CommandData::ToController(buffer),
        };
        queue.submit(entry, data);
    };
    for _ in 0..load.queue_depth {
        submit(queue, vec![7; load.block_bytes as usize]);
    }
    let start = Instant::now();
    let mut commands = 0u64;
    // The clock is read once per 64 commands.
    while !commands.is_multiple_of(64) || start.elapsed() < time {
        let completed = queue.wait()?;
        completed.check(load.name)?;
        submit(queue, completed.data);
        commands += 1;
        // Further completions are resubmitted in the same flush.
        while let Some(completed) = queue.poll() {
            completed.check(load.name)?;
            submit(queue, completed.data);
            commands += 1;
        }
    }
    let elapsed = start.elapsed();
    while queue.outstanding() > 0 {
        queue.wait()?;
    }
    while queue.poll().is_some() {}
    Ok((commands, elapsed))
}

/// Rate of plain TCP for a workload.
fn limit(load: &LoopbackLoad, time: Duration, cores: &ThreadCores) -> f64 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback can be listened on");
    let address = listener.local_addr().expect("it has an address");
    let (request, response) = match load.opcode {
        IoOpcode::Read => (72, load.block_bytes as usize + 24),
        _ => (72 + load.block_bytes as usize, 24),
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cores.join_target(load.queue_depth > 1);
            let (stream, _) = listener.accept().expect("the other side connects");
            answer(stream, request, response);
        });
        ask(TcpStream::connect(address).expect("the other side listens"), load.queue_depth, request, response, time)
    })
}

/// Answers requests of one size with responses of another size until the peer disconnects.
fn answer(mut stream: TcpStream, request: usize, response: usize) {
    stream.set_nodelay(true).expect("a socket");
    let mut input = vec![0; 256 << 10];
    let output = vec![1; response.max(256 << 10)];
    let (mut received, mut answered) = (0, 0);
    while let Ok(bytes @ 1..) = stream.read(&mut input) {
        received += bytes;
        let mut owed = (received / request - answered) * response;
        answered = received / request;
        while owed > 0 {
            let bytes = owed.min(output.len());
            if stream.write_all(&output[..bytes]).is_err() {
                return;
            }
            owed -= bytes;
        }
    }
}

const ANSWERS_MIN: usize = 64;

/// Keeps `depth` requests outstanding for this time and returns the answers per second.
fn ask(mut stream: TcpStream, depth: u16, request: usize, response: usize, time: Duration) -> f64 {
    stream.set_nodelay(true).expect("a socket");
    let output = vec![1; request * usize::from(depth)];
    let mut input = vec![0; 256 << 10];
    let start = Instant::now();
    stream.write_all(&output).expect("the other side reads");
    let (mut received, mut answered) = (0, 0);
    // A busy machine may give no answer in this time, and a rate needs some.
    while answered < ANSWERS_MIN || start.elapsed() < time {
        received += stream.read(&mut input).expect("the other side answers");
        let more = received / response - answered;
        answered = received / response;
        stream.write_all(&output[..more * request]).expect("the other side reads");
    }
    answered as f64 / start.elapsed().as_secs_f64()
}
