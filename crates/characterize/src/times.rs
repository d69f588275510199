//! Rates and latencies of a full drive.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use initiator::drive::{DataPort, DriveOperation, DriveRequest, OpenNamespace};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::CharacterizeError;
use crate::journal::TimeResult;

/// Pause before a burst, in which the drive empties its write buffer.
const PAUSE: Duration = Duration::from_secs(1);
/// Parts of a burst, in which its rate is measured, bytes.
const BURST_PART_BYTES: u64 = 1 << 20;
/// Rate behind a burst, as a share of its first rate, below which the buffer was full.
const BURST_FALL: f64 = 0.6;
/// Longest latency that the histogram keeps, 100 s.
const LATENCY_NS_MAX: u64 = 100_000_000_000;
/// Digits of a latency that the histogram keeps.
const DIGITS: u8 = 3;

struct Load {
    operation: DriveOperation,
    bytes: u64,
    depth: usize,
    is_random: bool,
    /// Measures latency instead of a rate.
    is_latency: bool,
}

const fn load(operation: DriveOperation, bytes: u64, depth: usize, is_random: bool, is_latency: bool) -> Load {
    Load { operation, bytes, depth, is_random, is_latency }
}

const READ: DriveOperation = DriveOperation::Read;
const WRITE: DriveOperation = DriveOperation::Write(None);

/// Loads in their order. Reads come first, while the drive is idle and in order.
const LOADS: [Load; 12] = [
    load(READ, 4096, 1, true, true),
    load(READ, 4096, 32, true, false),
    load(READ, 4096, 32, true, true),
    load(READ, 16 << 10, 16, false, false),
    load(READ, 128 << 10, 16, false, false),
    load(READ, 1 << 20, 16, false, false),
    load(WRITE, 4096, 1, false, true),
    load(WRITE, 4096, 32, false, false),
    load(WRITE, 16 << 10, 16, false, false),
    load(WRITE, 128 << 10, 16, false, false),
    load(WRITE, 1 << 20, 16, false, false),
    load(WRITE, 4096, 32, true, true),
];

/// Measures all loads, `seconds` each. `report` receives the completed share. Returns
/// `None` if `should_stop` stopped it.
pub fn measure(
    drive: &mut OpenNamespace<impl DataPort>,
    seconds: f64,
    report: &dyn Fn(f64),
    should_stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Vec<TimeResult>>, CharacterizeError> {
    let mut rows = Vec::new();
    for (index, load) in LOADS.iter().enumerate() {
        if should_stop() {
            return Ok(None);
        }
        report(index as f64 / (LOADS.len() + 1) as f64);
        if load.bytes < drive.block_bytes() || load.bytes > drive.bytes() {
            continue;
        }
        run(drive, load, seconds, should_stop, &mut rows)?;
    }
    if let Some(bytes) = buffer_bytes(drive, seconds, should_stop)? {
        rows.push(row("buffer_bytes", "bytes", bytes as f64, 128 << 10, 16));
    }
    Ok(Some(rows))
}

fn row(what: &str, unit: &str, value: f64, block_bytes: u64, depth: usize) -> TimeResult {
    TimeResult { what: what.to_string(), unit: unit.to_string(), value, block_bytes, queue_depth: depth as u32 }
}

fn run(
    drive: &mut OpenNamespace<impl DataPort>,
    load: &Load,
    seconds: f64,
    should_stop: &(dyn Fn() -> bool + Sync),
    rows: &mut Vec<TimeResult>,
) -> Result<(), CharacterizeError> {
    let mut latencies = Histogram::<u64>::new_with_max(LATENCY_NS_MAX, DIGITS).expect("valid bounds");
    let mut commands = 0_u64;
    let mut places = Places::new(drive.bytes(), load);
    let begun = Instant::now();
    // The first request is always sent, however busy the machine is.
    let mut is_first = true;
    let next = || {
        let goes_on = std::mem::take(&mut is_first) || begun.elapsed().as_secs_f64() < seconds && !should_stop();
        goes_on.then(|| places.next(load.operation))
    };
    let mut bytes_completed = 0;
    drive.transfer(load.depth, next, |bytes, latency| {
        commands += 1;
        bytes_completed += bytes;
        latencies.saturating_record(latency.as_nanos().try_into().unwrap_or(u64::MAX));
    })?;
    let elapsed = begun.elapsed().as_secs_f64();
    assert!(commands > 0, "a load sends at least one command");
    let name = if load.operation == READ { "read" } else { "write" };
    let mut add = |what: &str, unit: &str, value: f64| {
        rows.push(row(&format!("{name}_{what}"), unit, value, load.bytes, load.depth));
    };
    if load.is_latency {
        add("latency_mean", "us", latencies.mean() / 1e3);
        add("latency_p99", "us", latencies.value_at_quantile(0.99) as f64 / 1e3);
    } else {
        add("rate", "MB/s", bytes_completed as f64 / 1e6 / elapsed);
        add("iops", "1/s", bytes_completed as f64 / load.bytes as f64 / elapsed);
    }
    Ok(())
}

/// Offsets of a load's requests.
struct Places {
    random: Option<Xoshiro256PlusPlus>,
    bytes: u64,
    count: u64,
    next: u64,
}

impl Places {
    fn new(capacity_bytes: u64, load: &Load) -> Places {
        let random = load.is_random.then(|| Xoshiro256PlusPlus::seed_from_u64(1));
        Places { random, bytes: load.bytes, count: capacity_bytes / load.bytes, next: 0 }
    }

    fn next(&mut self, operation: DriveOperation) -> DriveRequest {
        let place = match &mut self.random {
            Some(random) => random.random_range(0..self.count),
            None => self.next % self.count,
        };
        self.next += 1;
        DriveRequest { operation, offset_bytes: place * self.bytes, bytes: self.bytes }
    }
}

/// Bytes of a burst of writes until its rate falls. `None` if it does not.
fn buffer_bytes(
    drive: &mut OpenNamespace<impl DataPort>,
    seconds: f64,
    should_stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<u64>, CharacterizeError> {
    std::thread::sleep(PAUSE);
    let burst = load(WRITE, 128 << 10, 16, false, false);
    let mut places = Places::new(drive.bytes(), &burst);
    let begun = Instant::now();
    // Times at which each part was complete.
    let (mut parts, mut bytes_completed) = (Vec::new(), 0);
    let goes_on = || begun.elapsed().as_secs_f64() < seconds && !should_stop();
    let next = || goes_on().then(|| places.next(burst.operation));
    drive.transfer(burst.depth, next, |bytes, _| {
        bytes_completed += bytes;
        while bytes_completed / BURST_PART_BYTES > parts.len() as u64 {
            parts.push(begun.elapsed().as_secs_f64());
        }
    })?;
    Ok(fall(&parts).map(|part| part as u64 * BURST_PART_BYTES))
}

/// Part after which the rate stays below a share of the first rate.
fn fall(parts: &[f64]) -> Option<usize> {
    const FIRST: usize = 4;
    let last = parts.len().checked_sub(1).filter(|last| *last >= 4 * FIRST)?;
    let rate = |from: usize, to: usize| (to - from) as f64 / (parts[to] - parts[from]).max(1e-9);
    let first = rate(0, FIRST);
    let is_slow = |part: &usize| rate(*part, last) < BURST_FALL * first;
    // The rate of the rest falls before the burst ends, so the largest slope is the corner.
    let corner = (FIRST..last - FIRST).find(is_slow)?;
    let rest = rate(corner, last);
    (corner..last - FIRST).find(|part| rate(*part, part + FIRST) < (first + rest) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corner_of_a_burst_is_found() {
        let fast_then_slow: Vec<f64> =
            (0..200).map(|part| if part < 64 { part as f64 } else { 64.0 + 5.0 * (part - 64) as f64 }).collect();
        let corner = fall(&fast_then_slow).expect("the rate falls");
        assert!((58..=66).contains(&corner), "{corner}");
        assert_eq!(fall(&(0..200).map(f64::from).collect::<Vec<_>>()), None, "an even rate");
        assert_eq!(fall(&[0.0, 1.0]), None, "a short burst");
    }
}
