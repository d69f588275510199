//! How long a host waits for single commands over NVMe/TCP, one at a time: for what a target does beside serving.
//!
//! The commands are Write Zeroes of a page, at random: they change the drive's mapping and move no data, so the drive may be larger than disk and
//! memory. The longest wait is the machine's too: on shared processors a measurement without what is looked at belongs beside it.

use std::time::{Duration, Instant};

use nvme_spec::IoOpcode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::tcp::Target;
use crate::command::block_command;
use crate::tcp::{Controller, Data, HostOptions, InitiatorError, Queue};

/// A host that is connected to a target.
pub struct Host {
    /// Kept: a controller without its admin queue is gone.
    _controller: Controller,
    queue: Queue,
    pages: u64,
    random: Xoshiro256PlusPlus,
}

/// How long commands took.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub commands_per_second: f64,
    /// Half of them took no longer.
    pub median: Duration,
    /// All but one in a thousand took no longer.
    pub p999: Duration,
    /// None took longer.
    pub longest: Duration,
}

impl Host {
    /// Connects.
    ///
    /// # Errors
    /// The initiator and the target do not get along.
    pub fn connect(target: &Target<'_>) -> Result<Host, InitiatorError> {
        let controller = Controller::connect(&HostOptions::new(target.address, target.subsystem_nqn))?;
        Ok(Host {
            queue: controller.io_queue(1, 16)?,
            _controller: controller,
            pages: target.capacity_bytes / 4096,
            random: Xoshiro256PlusPlus::seed_from_u64(1),
        })
    }

    /// Maps every page, in order.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn fill(&mut self) -> Result<(), InitiatorError> {
        /// As many blocks as a command can have.
        const PAGES: u64 = 1 << 16;
        for first in (0..self.pages).step_by(PAGES as usize) {
            self.zero(first, PAGES.min(self.pages - first))?;
        }
        Ok(())
    }

    /// Sends commands for a time, each when the one before is complete.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn measure(&mut self, time: Duration) -> Result<Waits, InitiatorError> {
        let start = Instant::now();
        let mut waits = Vec::new();
        let mut sent = start;
        while waits.is_empty() || sent < start + time {
            let page = self.random.random_range(0..self.pages);
            self.zero(page, 1)?;
            let now = Instant::now();
            waits.push(now - sent);
            sent = now;
        }
        waits.sort_unstable();
        let rank = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        Ok(Waits {
            commands_per_second: waits.len() as f64 / (sent - start).as_secs_f64(),
            median: rank(0.5),
            p999: rank(0.999),
            longest: rank(1.0),
        })
    }

    fn zero(&mut self, first: u64, pages: u64) -> Result<(), InitiatorError> {
        let entry = block_command(IoOpcode::WriteZeroes, 1, first, pages as u32);
        self.queue.command(entry, Data::None)?.check("Write Zeroes")?;
        Ok(())
    }
}
