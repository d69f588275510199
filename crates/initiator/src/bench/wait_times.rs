//! Measures the wait times of a host over NVMe/TCP with one command at a time. The caller compares
//! a target with and without background work.
//!
//! The commands are random Write Zeroes of a page. They change the drive's mapping and move no
//! data, so the drive may be larger than disk and memory. On shared processors the longest wait
//! includes that of the machine, so it needs a measurement without the background work for
//! comparison.

use std::time::{Duration, Instant};

use nvme_spec::IoOpcode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::tcp::LoopbackTarget;
use crate::command::block_command;
use crate::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue};

pub struct BenchHost {
    /// Keeps the admin queue open, without which the controller disconnects.
    _controller: RemoteController,
    queue: TcpQueue,
    pages: u64,
    random: Xoshiro256PlusPlus,
}

#[derive(Clone, Copy, Debug)]
pub struct WaitTimes {
    pub commands_per_second: f64,
    pub median: Duration,
    pub p999: Duration,
    pub longest: Duration,
}

impl BenchHost {
    pub fn connect(target: &LoopbackTarget<'_>) -> Result<BenchHost, InitiatorError> {
        let controller = RemoteController::connect(&HostOptions::new(target.address, target.subsystem_nqn))?;
        Ok(BenchHost {
            queue: controller.io_queue(1, 16)?,
            _controller: controller,
            pages: target.capacity_bytes / 4096,
            random: Xoshiro256PlusPlus::seed_from_u64(1),
        })
    }

    /// Maps all pages in order.
    pub fn fill(&mut self) -> Result<(), InitiatorError> {
        /// Maximum number of blocks of a command.
        const PAGES: u64 = 1 << 16;
        for first in (0..self.pages).step_by(PAGES as usize) {
            self.write_zeroes(first, PAGES.min(self.pages - first))?;
        }
        Ok(())
    }

    /// Sends commands for this time, each after the completion of the previous one.
    pub fn measure(&mut self, time: Duration) -> Result<WaitTimes, InitiatorError> {
        let start = Instant::now();
        let mut waits = Vec::new();
        let mut sent = start;
        while waits.is_empty() || sent < start + time {
            let page = self.random.random_range(0..self.pages);
            self.write_zeroes(page, 1)?;
            let now = Instant::now();
            waits.push(now - sent);
            sent = now;
        }
        waits.sort_unstable();
        let rank = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        Ok(WaitTimes {
            commands_per_second: waits.len() as f64 / (sent - start).as_secs_f64(),
            median: rank(0.5),
            p999: rank(0.999),
            longest: rank(1.0),
        })
    }

    fn write_zeroes(&mut self, first: u64, pages: u64) -> Result<(), InitiatorError> {
        let entry = block_command(IoOpcode::WriteZeroes, 1, first, pages as u32);
        self.queue.command(entry, CommandData::None)?.check("Write Zeroes")?;
        Ok(())
    }
}
