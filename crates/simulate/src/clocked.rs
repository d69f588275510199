//! Device with a virtual clock and a GC log, for callers that issue their own commands.
//!
//! ```text
//! writes, reads (closed loop with a queue depth) -> Device -> latencies, DeviceStats, GC log
//! ```
//!
//! On a device without timing, commands take no time and only [`ClockedDevice::step`] advances the
//! clock. This module has no workload and reads no real clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use ssd::event::{EventFilter, ReclaimRecord};
use ssd::{
    CompletionTime, Device, DeviceConfig, DeviceEvent, EventSink, HostError, Lpn, Nanos, SnapshotError, WriteRequest,
};

use experiment::error::LabError;

/// Pages between two calls of `go_on`, some milliseconds.
const PAGES_BETWEEN_LOOKS: u64 = 1 << 16;

/// Sink that keeps the collections of a device, if enabled.
#[derive(Clone, Debug, Default)]
pub struct CollectionLog {
    keep: bool,
    rows: Vec<ReclaimRecord>,
}

impl EventSink for CollectionLog {
    fn event_filter(&self) -> EventFilter {
        EventFilter::ReclaimUnits
    }

    fn event(&mut self, event: &DeviceEvent) {
        if let (true, DeviceEvent::Reclaim(reclaim)) = (self.keep, event) {
            self.rows.push(reclaim.clone());
        }
    }
}

/// Device with a virtual clock. A clone is a fork: another drive in the same state, without the
/// victim policy.
#[derive(Clone)]
pub struct ClockedDevice {
    device: Device<CollectionLog>,
    now: Nanos,
    /// Completion times of the commands in flight.
    in_flight: BinaryHeap<Reverse<Nanos>>,
}

impl ClockedDevice {
    /// Creates an empty drive. `device` is its name in messages.
    ///
    /// # Errors
    /// The device is impossible. The error names the field and the allowed values.
    pub fn new(device: &str, config: &DeviceConfig, keep_gc_log: bool) -> Result<ClockedDevice, LabError> {
        let made = Device::new(config).map_err(|error| LabError::Device { device: device.to_string(), error })?;
        Ok(ClockedDevice::from_device(made, keep_gc_log))
    }

    /// Wraps an existing, idle device.
    pub fn from_device(device: Device, keep_gc_log: bool) -> ClockedDevice {
        let log = CollectionLog { keep: keep_gc_log, rows: Vec::new() };
        ClockedDevice { device: device.replace_sink(log).0, now: 0, in_flight: BinaryHeap::new() }
    }

    /// Loads a saved drive, idle and at time 0.
    ///
    /// # Errors
    /// The file cannot be read, or is no snapshot.
    pub fn load(path: &Path, keep_gc_log: bool) -> Result<ClockedDevice, SnapshotError> {
        Ok(ClockedDevice::from_device(Device::load(path)?, keep_gc_log))
    }

    pub fn device(&self) -> &Device<CollectionLog> {
        &self.device
    }

    /// Returns the device for changes.
    pub fn device_mut(&mut self) -> &mut Device<CollectionLog> {
        &mut self.device
    }

    /// Virtual time of the device.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Advances the virtual time.
    pub fn step(&mut self, idle_ns: Nanos) {
        self.now += idle_ns;
    }

    /// Collections so far, if enabled.
    pub fn gc_log(&self) -> &[ReclaimRecord] {
        &self.device.sink().rows
    }

    /// Writes extents with `queue_depth` in flight and waits for the last one. Stops early once
    /// `go_on` returns false. Returns the latency of each, or an empty list without timing.
    ///
    /// # Errors
    /// An extent is outside the drive. No extent was written.
    pub fn write(
        &mut self,
        writes: &[WriteRequest],
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
        self.in_flight(writes, |write| write.pages, queue_depth, go_on, |device, now, write| device.write(now, write))
    }

    /// Reads extents like [`ClockedDevice::write`].
    ///
    /// # Errors
    /// An extent is outside the drive. No extent was read.
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
    /// An extent is outside the drive. No extent was deallocated.
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

    /// Runs commands in a closed loop.
    fn in_flight<C>(
        &mut self,
        commands: &[C],
        pages: impl Fn(&C) -> u32,
        queue_depth: u32,
        go_on: &mut dyn FnMut() -> bool,
        carry_out: impl Fn(&mut Device<CollectionLog>, Nanos, &C) -> Result<CompletionTime, HostError>,
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
                assert!(done.at >= self.now, "a command sent at {} ns completes at {} ns", self.now, done.at);
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

/// Splits commands into groups of about [`PAGES_BETWEEN_LOOKS`].
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
    use experiment::profile::{Profile, SettingOverrides};
    use experiment::scaled_model::{Scale, scaled_config};
    use ssd::Placement;

    fn clocked(profile: &str) -> ClockedDevice {
        let config = Profile::find(profile).and_then(|profile| profile.config(&SettingOverrides::new()));
        let (config, _) = scaled_config(profile, &config.expect("a profile"), Scale(1024)).expect("a scaled model");
        ClockedDevice::new(profile, &config, true).expect("a drive")
    }

    fn writes(drive: &ClockedDevice, count: u32, pages: u32) -> Vec<WriteRequest> {
        let extents = drive.device().layout().logical_pages / pages;
        let write = |index: u32| WriteRequest {
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
        assert_eq!(drive.device().stats().total().host_pages_written, 2 * PAGES_BETWEEN_LOOKS);
    }
}
