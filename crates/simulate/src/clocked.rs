//! A device with a clock, for callers that write to it themselves: its time, and the log of its collections.
//!
//! ```text
//! writes, reads (a closed loop of so many in flight) -> Device<Log> -> latencies, Stats, GC log
//! ```
//!
//! On a device without timing all is done at once and time passes only where it is said to. There is no workload here
//! and no clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use ssd::event::{Interest, Reclaim};
use ssd::{Completion, Device, DeviceConfig, Event, EventSink, HostError, Lpn, Nanos, SnapshotError, Write};

use experiment::error::LabError;

/// Pages between two looks at whether to go on: some milliseconds.
const PAGES_BETWEEN_LOOKS: u64 = 1 << 16;

/// Keeps the collections of a device, if it is told to.
#[derive(Clone, Debug, Default)]
pub struct Log {
    keep: bool,
    rows: Vec<Reclaim>,
}

impl EventSink for Log {
    fn interest(&self) -> Interest {
        Interest::ReclaimUnits
    }

    fn event(&mut self, event: &Event) {
        if let (true, Event::Reclaim(reclaim)) = (self.keep, event) {
            self.rows.push(reclaim.clone());
        }
    }
}

/// See the module. A clone is a fork: another drive in the same state, without the victim policy.
#[derive(Clone)]
pub struct ClockedDevice {
    device: Device<Log>,
    now: Nanos,
    /// Completions of what is in flight.
    in_flight: BinaryHeap<Reverse<Nanos>>,
}

impl ClockedDevice {
    /// An empty drive; `device` is what messages call it.
    ///
    /// # Errors
    /// It cannot be: names the field and what is allowed.
    pub fn new(device: &str, config: &DeviceConfig, keep_gc_log: bool) -> Result<ClockedDevice, LabError> {
        let made = Device::new(config).map_err(|error| LabError::Device {
            device: device.to_string(),
            error,
        })?;
        Ok(ClockedDevice::of(made, keep_gc_log))
    }

    /// A device that is there, idle.
    pub fn of(device: Device, keep_gc_log: bool) -> ClockedDevice {
        let log = Log {
            keep: keep_gc_log,
            rows: Vec::new(),
        };
        ClockedDevice {
            device: device.replace_sink(log).0,
            now: 0,
            in_flight: BinaryHeap::new(),
        }
    }

    /// Loads a drive that was saved; it is idle and at time 0.
    ///
    /// # Errors
    /// The file cannot be read, or is no snapshot.
    pub fn load(path: &Path, keep_gc_log: bool) -> Result<ClockedDevice, SnapshotError> {
        Ok(ClockedDevice::of(Device::load(path)?, keep_gc_log))
    }

    pub fn device(&self) -> &Device<Log> {
        &self.device
    }

    /// The device, to change it.
    pub fn device_mut(&mut self) -> &mut Device<Log> {
        &mut self.device
    }

    /// Its time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Lets time pass.
    pub fn step(&mut self, idle_ns: Nanos) {
        self.now += idle_ns;
    }

    /// Its collections so far, if they are kept.
    pub fn gc_log(&self) -> &[Reclaim] {
        &self.device.sink().rows
    }

    /// Writes extents, `queue_depth` of them in flight, and waits for the last one; as long as `go_on` says so. Returns
    /// the latency of each, nothing on a device without timing.
    ///
    /// # Errors
    /// One of them does not exist; nothing was written.
    pub fn write(
        &mut self,
        writes: &[Write],
        queue_depth: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Nanos>, HostError> {
        for write in writes {
            self.device.check_write(write)?;
        }
        if self.device.config().timing.is_none() {
            for together in chunks(writes, |write| write.pages) {
                if !go_on() {
                    break;
                }
                let _ = self.device.write_batch(self.now, together)?;
            }
            return Ok(Vec::new());
        }
        self.in_flight(
            writes,
            |write| write.pages,
            queue_depth,
            go_on,
            |device, now, write| device.write(now, write),
        )
    }

    /// Reads extents; as [`ClockedDevice::write`].
    ///
    /// # Errors
    /// One of them does not exist; nothing was read.
    pub fn read(
        &mut self,
        extents: &[(Lpn, u32)],
        queue_depth: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Nanos>, HostError> {
        for (first, pages) in extents {
            self.device.check_extent(*first, *pages)?;
        }
        if self.device.config().timing.is_none() {
            return Ok(Vec::new());
        }
        self.in_flight(
            extents,
            |(_, pages)| *pages,
            queue_depth,
            go_on,
            |device, now, (first, pages)| device.read(now, *first, *pages),
        )
    }

    /// Deallocates extents, one after another.
    ///
    /// # Errors
    /// One of them does not exist; nothing was deallocated.
    pub fn deallocate(&mut self, extents: &[(Lpn, u32)], go_on: &mut dyn FnMut() -> bool) -> Result<(), HostError> {
        for (first, pages) in extents {
            self.device.check_extent(*first, *pages)?;
        }
        self.in_flight(
            extents,
            |(_, pages)| *pages,
            1,
            go_on,
            |device, now, (first, pages)| device.deallocate(now, *first, *pages),
        )?;
        Ok(())
    }

    /// A closed loop over commands.
    fn in_flight<C>(
        &mut self,
        commands: &[C],
        pages: impl Fn(&C) -> u32,
        queue_depth: u32,
        go_on: &mut dyn FnMut() -> bool,
        carry_out: impl Fn(&mut Device<Log>, Nanos, &C) -> Result<Completion, HostError>,
    ) -> Result<Vec<Nanos>, HostError> {
        assert!(self.in_flight.is_empty(), "a call ends with nothing in flight");
        let mut latencies = Vec::with_capacity(commands.len());
        for together in chunks(commands, pages) {
            if !go_on() {
                break;
            }
            for command in together {
                if self.in_flight.len() >= queue_depth.max(1) as usize {
                    let Reverse(first) = self.in_flight.pop().expect("there is one");
                    self.now = self.now.max(first);
                }
                let done = carry_out(&mut self.device, self.now, command)?;
                latencies.push(done.at - self.now);
                self.in_flight.push(Reverse(done.at));
                assert!(
                    self.in_flight.len() <= queue_depth.max(1) as usize,
                    "more commands are in flight than the queue is deep"
                );
            }
        }
        let last = self.in_flight.drain().map(|Reverse(at)| at).max();
        self.now = self.now.max(last.unwrap_or(0));
        Ok(latencies)
    }
}

/// Commands in runs of about [`PAGES_BETWEEN_LOOKS`].
fn chunks<C>(commands: &[C], pages: impl Fn(&C) -> u32) -> impl Iterator<Item = &[C]> {
    let mut left = commands;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let within = left.iter().take_while(|command| {
            let begins_within = sum < PAGES_BETWEEN_LOOKS;
            sum += u64::from(pages(command));
            begins_within
        });
        let (together, rest) = left.split_at(within.count());
        left = rest;
        (!together.is_empty()).then_some(together)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::profile::{Overrides, Profile};
    use experiment::twin::{Scale, twin};
    use ssd::Placement;

    fn clocked(profile: &str) -> ClockedDevice {
        let config = Profile::find(profile).and_then(|profile| profile.config(&Overrides::new()));
        let (config, _) = twin(profile, &config.expect("a profile"), Scale(1024)).expect("a twin");
        ClockedDevice::new(profile, &config, true).expect("a drive")
    }

    fn writes(drive: &ClockedDevice, count: u32, pages: u32) -> Vec<Write> {
        let extents = drive.device().layout().logical_pages / pages;
        let write = |index: u32| Write {
            first: Lpn(index.wrapping_mul(2_654_435_761) % extents * pages),
            pages,
            host_bytes: u64::from(pages) * drive.device().layout().page_bytes,
            placement: Placement::handle(0),
        };
        (0..count).map(write).collect()
    }

    #[test]
    fn runs_of_commands_lose_none() {
        let commands: Vec<u32> = (0..1000).map(|index| index * 97 % 4096 + 1).collect();
        let runs: Vec<&[u32]> = chunks(&commands, |pages| *pages).collect();
        assert_eq!(runs.concat(), commands);
        assert!(runs.len() > 20, "{} runs", runs.len());
        assert_eq!(chunks(&[u32::MAX, 1], |pages| *pages).count(), 2);
    }

    #[test]
    fn a_fork_goes_on_as_its_drive_does() {
        let mut drive = clocked("warp_default");
        let all = writes(&drive, 200_000, 1);
        drive.write(&all[..150_000], 1, &mut || true).expect("they exist");
        let mut fork = drive.clone();
        for one in [&mut drive, &mut fork] {
            one.write(&all[150_000..], 1, &mut || true).expect("they exist");
        }
        assert_eq!(drive.device().stats(), fork.device().stats());
        assert_eq!(drive.gc_log(), fork.gc_log());
        assert!(!drive.gc_log().is_empty());
    }

    #[test]
    fn more_in_flight_take_less_time_together() {
        let elapsed = |queue_depth| {
            let mut drive = clocked("pm9d3a");
            let all = writes(&drive, 5000, 1);
            let latencies = drive.write(&all, queue_depth, &mut || true).expect("they exist");
            assert_eq!(latencies.len(), all.len());
            assert!(latencies.iter().all(|latency_ns| *latency_ns > 0));
            drive.now()
        };
        assert!(elapsed(16) < elapsed(1));
    }

    #[test]
    fn a_mistake_is_found_before_anything_is_written() {
        let mut drive = clocked("warp_default");
        let mut all = writes(&drive, 10, 1);
        all[9].first = Lpn(u32::MAX - 1);
        drive.write(&all, 1, &mut || true).expect_err("beyond the end");
        assert_eq!(drive.device().stats().host_bytes_written(), 0);
    }

    #[test]
    fn writing_stops_when_it_is_told_to() {
        let mut drive = clocked("warp_default");
        let all = writes(&drive, 300_000, 1);
        let mut looks = 0;
        let mut go_on = || {
            looks += 1;
            looks <= 2
        };
        drive.write(&all, 1, &mut go_on).expect("they exist");
        assert_eq!(
            drive.device().stats().total().host_pages_written,
            2 * PAGES_BETWEEN_LOOKS
        );
    }
}
