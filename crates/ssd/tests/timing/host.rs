//! A simulated host: fills the drive, and keeps a number of commands in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssd::{CompletionTime, Device, DeviceConfig, EventSink, Lpn, Placement};

use crate::common::{Uniform, extent};

/// A time long after all earlier commands.
pub const LATER: u64 = 1_000_000_000_000;

/// A host command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCommand {
    Read { first: u32, pages: u32 },
    Write { first: u32, pages: u32, handle: u16 },
    Deallocate { first: u32, pages: u32 },
}

/// Submits a command to the drive.
pub fn ask<S: EventSink>(device: &mut Device<S>, now: u64, ask: HostCommand) -> CompletionTime {
    match ask {
        HostCommand::Read { first, pages } => device.read(now, Lpn(first), pages),
        HostCommand::Write { first, pages, handle } => {
            device.write(now, &extent(first, pages, Placement::handle(handle)))
        }
        HostCommand::Deallocate { first, pages } => device.deallocate(now, Lpn(first), pages),
    }
    .expect("the extent and the handle exist")
}

/// Writes the whole drive once, in order, and waits until the flash is idle. Returns that time.
pub fn fill<S: EventSink>(device: &mut Device<S>) -> u64 {
    let pages = device.layout().logical_pages;
    fill_pages(device, pages)
}

/// Writes the first pages once, in order, and waits until the flash is idle. Returns that time.
pub fn fill_pages<S: EventSink>(device: &mut Device<S>, pages: u32) -> u64 {
    let mut now = 0;
    for first in (0..pages).step_by(32) {
        let pages = 32.min(pages - first);
        let handle = 0;
        now = ask(device, now, HostCommand::Write { first, pages, handle }).at;
    }
    now + LATER
}

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub ask: HostCommand,
    pub submitted: u64,
    pub done: CompletionTime,
}

impl Observation {
    pub fn latency(&self) -> u64 {
        self.done.at - self.submitted
    }
}

/// Keeps `depth` commands in flight from `start` on, until `count` are complete. Submits the next
/// command at each completion.
pub fn closed_loop<S: EventSink>(
    device: &mut Device<S>,
    start: u64,
    depth: usize,
    count: usize,
    mut next: impl FnMut() -> HostCommand,
) -> Vec<Observation> {
    let mut in_flight: BinaryHeap<Reverse<u64>> = (0..depth).map(|_| Reverse(start)).collect();
    let mut completions = Vec::with_capacity(count);
    for _ in 0..count {
        let Reverse(submitted) = in_flight.pop().expect("a loop has commands in flight");
        let asked = next();
        let done = ask(device, submitted, asked);
        in_flight.push(Reverse(done.at));
        completions.push(Observation { ask: asked, submitted, done });
    }
    completions
}

/// Completion time of the last command.
pub fn end(completions: &[Observation]) -> u64 {
    completions.iter().map(|completion| completion.done.at).max().unwrap_or(0)
}

/// A mixed workload over the whole drive: reads, writes of 1 to 16 pages, and occasional
/// deallocations.
pub fn mixed(config: &DeviceConfig, seed: u64) -> impl FnMut() -> HostCommand + use<> {
    let pages = ssd::DeviceLayout::new(config).expect("the configuration is valid").logical_pages;
    let handles = u32::from(config.handles.count);
    let mut uniform = Uniform::new(seed);
    move || {
        let length = 1 + uniform.below(16);
        let first = uniform.below(pages - 16);
        match uniform.below(100) {
            0..48 => HostCommand::Read { first, pages: length },
            48..98 => HostCommand::Write { first, pages: length, handle: uniform.below(handles) as u16 },
            _ => HostCommand::Deallocate { first, pages: length },
        }
    }
}
