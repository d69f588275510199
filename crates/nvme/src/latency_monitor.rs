//! The latency monitor, which records slow commands and their times. Source is the Datacenter NVMe
//! SSD Specification (Open Compute Project, 2.0, sections 4.8.8 and 4.12.10, appendix C).
//!
//! ```text
//! command is done -> shorter than threshold A? -> nothing (one comparison)
//!                 -> bucket by its latency     -> counter, latency, stamp, perhaps the debug log
//! tick            -> timer at its threshold?   -> the active buckets become the static ones
//! ```
//!
//! A latency is the time from the execution of a command until it may complete. With timing this is
//! the time of the model, or the real time for the parts and the sync of the command if longer.
//! Delays of the host's link and of queues before the drive are excluded.
//!
//! The specification has one monitor for each device. All controllers therefore share one monitor
//! and its configuration. Only successful commands count. Failed commands are in the error log.

use nvme_spec::IoOpcode;
use nvme_spec::command::{DatasetManagementCdw11, SubmissionEntry};
use nvme_spec::ocp::{
    LATENCY_MONITOR_GUID, LATENCY_MONITOR_VERSION, LatencyBuckets, LatencyMonitorLog, LatencyMonitorStatus,
    NO_LATENCY_STAMP,
};
use serde::{Deserialize, Serialize};
use ssd::Nanos;

use crate::setup::COUNT_MAX;

const BUCKETS: usize = 4;
const KINDS: usize = 3;
const MS_NS: u64 = 1_000_000;
const THRESHOLD_NS: u64 = 5 * MS_NS;
const WINDOW_NS: u64 = 100 * MS_NS;
const TIMER_NS: u64 = 300_000 * MS_NS;
/// A bit for each bucket and kind of command.
const COUNTER_BITS: u16 = (1 << (BUCKETS * KINDS)) - 1;

/// A kind of command, in the order of the page's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatencyClass {
    Deallocate,
    Write,
    Read,
}

impl LatencyClass {
    fn from_entry(entry: &SubmissionEntry) -> Option<LatencyClass> {
        match IoOpcode::from_u8(entry.opcode)? {
            IoOpcode::Read => Some(LatencyClass::Read),
            IoOpcode::Write => Some(LatencyClass::Write),
            IoOpcode::DatasetManagement if DatasetManagementCdw11::from_bits(entry.cdw11.get()).ad() => {
                Some(LatencyClass::Deallocate)
            }
            _ => None,
        }
    }

    /// Bit of the counter in masks, in which reads come first.
    fn bit(self, bucket: usize) -> u16 {
        1 << (bucket * KINDS + (KINDS - 1 - self as usize))
    }
}

/// Configuration of the monitor (feature C5h).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyConfiguration {
    /// Units of 5 minutes after which the active buckets become the static ones, or 0 for never.
    pub timer_threshold: u16,
    /// Thresholds A to D, rising. A value n means (n + 1) x 5 ms.
    pub thresholds: [u8; BUCKETS],
    /// Mask of counters that keep the longest latency instead of the first.
    pub longest: u16,
    /// Units of 100 ms between two changes of a longest latency.
    pub minimum_window: u8,
    /// Mask of counters whose first command writes a debug log.
    pub debug_triggers: u16,
    /// The monitor is enabled.
    pub enabled: bool,
}

impl Default for LatencyConfiguration {
    /// Factory defaults. The timer is seven days, the thresholds 30, 100, 155 and 235 ms, and the
    /// window one second.
    fn default() -> LatencyConfiguration {
        LatencyConfiguration {
            timer_threshold: 0x07e0,
            thresholds: [0x05, 0x13, 0x1e, 0x2e],
            longest: COUNTER_BITS,
            minimum_window: 0x0a,
            debug_triggers: 0,
            enabled: true,
        }
    }
}

impl LatencyConfiguration {
    /// True if the thresholds rise, as they must (LMLLOG-11).
    pub fn is_rising(&self) -> bool {
        self.thresholds.is_sorted_by(|lower, higher| lower < higher)
    }

    fn threshold_ns(&self, bucket: usize) -> Nanos {
        (u64::from(self.thresholds[bucket]) + 1) * THRESHOLD_NS
    }
}

/// Time of a command in the log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyStamp {
    /// Milliseconds of the Timestamp feature, or of power-on time.
    pub ms: u64,
    /// True if `ms` is a timestamp, false for power-on time.
    pub is_timestamp: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BucketCounter {
    commands: u32,
    /// First or longest latency, in milliseconds, with its time.
    measured: Option<(u16, LatencyStamp)>,
    /// Time of the last change of `measured`, for the minimum window. A restart ends the window.
    #[serde(skip)]
    noted_at: Option<Nanos>,
}

type Buckets = [[BucketCounter; KINDS]; BUCKETS];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DebugLog {
    latency_ms: u16,
    stamp: LatencyStamp,
    source: u16,
}

/// The latency monitor. It is part of the non-volatile state. See the module documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyMonitor {
    configuration: LatencyConfiguration,
    active: Buckets,
    frozen: Buckets,
    /// Time for which the active buckets have been counting.
    counting_ns: u64,
    debug: Option<DebugLog>,
    /// Clock time, since this start, that `counting_ns` includes.
    #[serde(skip)]
    counted_until: Nanos,
    /// Shorter latencies are ignored.
    least_ns: Nanos,
}

impl Default for LatencyMonitor {
    fn default() -> LatencyMonitor {
        LatencyMonitor::new(LatencyConfiguration::default(), None, 0)
    }
}

impl LatencyMonitor {
    fn new(configuration: LatencyConfiguration, debug: Option<DebugLog>, now: Nanos) -> LatencyMonitor {
        assert!(configuration.is_rising(), "thresholds were checked");
        let enabled = configuration.enabled;
        LatencyMonitor {
            least_ns: if enabled { configuration.threshold_ns(0) } else { Nanos::MAX },
            configuration,
            active: Buckets::default(),
            frozen: Buckets::default(),
            counting_ns: 0,
            debug,
            counted_until: now,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let configuration = &self.configuration;
        let least_ns = if configuration.enabled { configuration.threshold_ns(0) } else { Nanos::MAX };
        let is_configured = configuration.is_rising()
            && (configuration.longest | configuration.debug_triggers) & !COUNTER_BITS == 0
            && self.least_ns == least_ns;
        if is_configured && self.counting_ns <= COUNT_MAX {
            return Ok(());
        }
        Err("the latency monitor has impossible thresholds or times".to_string())
    }

    /// Current configuration.
    pub fn configuration(&self) -> &LatencyConfiguration {
        &self.configuration
    }

    /// Restarts the monitor with another configuration. The debug log stays unless
    /// `discard_debug_log` is set.
    pub(crate) fn configure(&mut self, configuration: LatencyConfiguration, discard_debug_log: bool, now: Nanos) {
        let configuration = LatencyConfiguration {
            longest: configuration.longest & COUNTER_BITS,
            debug_triggers: configuration.debug_triggers & COUNTER_BITS,
            ..configuration
        };
        let debug = self.debug.take().filter(|_| !discard_debug_log);
        *self = LatencyMonitor::new(configuration, debug, now);
        assert_eq!(self.check(), Ok(()), "a valid configuration can be stored");
    }

    pub(crate) fn discard_debug_log(&mut self) {
        self.debug = None;
    }

    #[inline]
    pub(crate) fn is_long(&self, latency_ns: Nanos) -> bool {
        latency_ns >= self.least_ns
    }

    /// Records a command that took `latency_ns` until `at`. `stamp` is the time that hosts see.
    #[cold]
    pub(crate) fn note(&mut self, entry: &SubmissionEntry, latency_ns: Nanos, at: Nanos, stamp: LatencyStamp) {
        assert!(self.is_long(latency_ns), "only long commands are recorded");
        let Some(kind) = LatencyClass::from_entry(entry) else {
            return;
        };
        let reached = (0..BUCKETS).rfind(|&bucket| latency_ns >= self.configuration.threshold_ns(bucket));
        let bucket = reached.expect("threshold A is reached");
        let bit = kind.bit(bucket);
        let latency_ms = u16::try_from(latency_ns / MS_NS).unwrap_or(u16::MAX);
        let window_ns = u64::from(self.configuration.minimum_window) * WINDOW_NS;
        let counter = &mut self.active[bucket][kind as usize];
        counter.commands = counter.commands.saturating_add(1);
        let replaces = match counter.measured {
            None => true,
            Some((longest, _)) => {
                let waited = counter.noted_at.is_none_or(|noted| at.saturating_sub(noted) >= window_ns);
                self.configuration.longest & bit != 0 && waited && latency_ms > longest
            }
        };
        if replaces {
            counter.measured = Some((latency_ms, stamp));
            counter.noted_at = Some(at);
        }
        if self.configuration.debug_triggers & bit != 0 && counter.commands == 1 && self.debug.is_none() {
            self.debug = Some(DebugLog { latency_ms, stamp, source: bit });
        }
    }

    pub(crate) fn advance(&mut self, now: Nanos) {
        if self.configuration.enabled {
            self.counting_ns += now.saturating_sub(self.counted_until);
        }
        assert!(self.counted_until <= now, "time never goes back");
        self.counted_until = now;
        let threshold_ns = u64::from(self.configuration.timer_threshold) * TIMER_NS;
        if threshold_ns > 0 && self.counting_ns >= threshold_ns {
            self.frozen = std::mem::take(&mut self.active);
            self.counting_ns = 0;
        }
    }

    pub(crate) fn page(&self) -> LatencyMonitorLog {
        let configuration = &self.configuration;
        let mut page = LatencyMonitorLog {
            status: LatencyMonitorStatus::new()
                .with_enabled(configuration.enabled)
                .with_mode_1_supported(true)
                .with_measured_supported(true),
            active_bucket_timer: u16::try_from(self.counting_ns / TIMER_NS).unwrap_or(u16::MAX).into(),
            active_bucket_timer_threshold: configuration.timer_threshold.into(),
            active_thresholds: configuration.thresholds,
            active_latency_configuration: configuration.longest.into(),
            active_latency_minimum_window: configuration.minimum_window,
            active: buckets_page(&self.active),
            frozen: buckets_page(&self.frozen),
            debug_log_trigger_enable: configuration.debug_triggers.into(),
            debug_log_latency_stamp: NO_LATENCY_STAMP.into(),
            lpv: LATENCY_MONITOR_VERSION.into(),
            lpg: LATENCY_MONITOR_GUID,
            ..LatencyMonitorLog::default()
        };
        // No telemetry log has more data, so the page contains no pointer to one.
        if let Some(debug) = &self.debug {
            page.debug_log_measured_latency = debug.latency_ms.into();
            page.debug_log_latency_stamp = debug.stamp.ms.into();
            page.debug_counter_trigger_source = debug.source.into();
            page.debug_log_stamp_units = u8::from(debug.stamp.is_timestamp);
        }
        page
    }
}

fn buckets_page(buckets: &Buckets) -> LatencyBuckets {
    let mut page = LatencyBuckets::default();
    let mut units = 0;
    for (bucket, counters) in buckets.iter().enumerate() {
        // The page has latencies and stamps from the last bucket to the first.
        let place = BUCKETS - 1 - bucket;
        for kind in [LatencyClass::Deallocate, LatencyClass::Write, LatencyClass::Read] {
            let (counter, column) = (&counters[kind as usize], kind as usize);
            page.counters[bucket].commands[column] = counter.commands.into();
            page.stamps[place][column] = counter.measured.map_or(NO_LATENCY_STAMP, |(_, stamp)| stamp.ms).into();
            page.measured[place][column] = counter.measured.map_or(0, |(latency_ms, _)| latency_ms).into();
            if counter.measured.is_some_and(|(_, stamp)| stamp.is_timestamp) {
                units |= kind.bit(bucket);
            }
        }
    }
    page.stamp_units = units.into();
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u8 = 2;

    fn note(monitor: &mut LatencyMonitor, opcode: u8, latency_ms: u64, at_ms: u64) {
        let mut entry = SubmissionEntry { opcode, ..SubmissionEntry::default() };
        entry.cdw11 = DatasetManagementCdw11::new().with_ad(true).into_bits().into();
        let stamp = LatencyStamp { ms: at_ms, is_timestamp: true };
        if monitor.is_long(latency_ms * MS_NS) {
            monitor.note(&entry, latency_ms * MS_NS, at_ms * MS_NS, stamp);
        }
    }

    /// Bucket 2 is from 40 to 400 ms, as in the specification's examples (C.2.3.6).
    fn example(longest: u16) -> LatencyMonitor {
        let configuration = LatencyConfiguration {
            thresholds: [0, 3, 7, 79],
            longest,
            minimum_window: 50,
            debug_triggers: 1 << 6 | 1 << 11,
            ..LatencyConfiguration::default()
        };
        let mut monitor = LatencyMonitor::default();
        monitor.configure(configuration, false, 0);
        monitor
    }

    /// Measured latency and stamp of reads in bucket 2.
    fn reads(monitor: &LatencyMonitor) -> (u32, u16, u64) {
        let page = monitor.page().active;
        (page.counters[2].commands[2].get(), page.measured[1][2].get(), page.stamps[1][2].get())
    }

    #[test]
    fn the_longest_latency_is_kept_with_a_window() {
        let mut monitor = example(COUNTER_BITS);
        assert_eq!(reads(&monitor), (0, 0, u64::MAX));
        note(&mut monitor, READ, 50, 500);
        note(&mut monitor, READ, 100, 5250);
        assert_eq!(reads(&monitor), (2, 50, 500));
        note(&mut monitor, READ, 75, 6000);
        assert_eq!(reads(&monitor), (3, 75, 6000));
        note(&mut monitor, READ, 60, 20_000);
        assert_eq!(reads(&monitor), (4, 75, 6000));
        let page = monitor.page();
        assert_eq!((page.debug_log_measured_latency.get(), page.debug_log_latency_stamp.get()), (50, 500));
        assert_eq!((page.debug_counter_trigger_source.get(), page.debug_log_stamp_units), (1 << 6, 1));
        note(&mut monitor, 9, 400, 20_000);
        assert_eq!(monitor.page().debug_counter_trigger_source.get(), 1 << 6, "one debug log");
        monitor.discard_debug_log();
        assert_eq!(monitor.page().debug_log_latency_stamp.get(), u64::MAX);
        assert_eq!(monitor.page().active.stamp_units.get(), 1 << 6 | 1 << 11);
    }

    #[test]
    fn or_the_first() {
        let mut monitor = example(0);
        for (latency_ms, at_ms) in [(150, 500), (200, 10_000), (75, 15_000)] {
            note(&mut monitor, READ, latency_ms, at_ms);
        }
        assert_eq!(reads(&monitor), (3, 150, 500));
    }

    #[test]
    fn buckets_are_by_threshold_and_move_when_the_timer_ends() {
        let mut monitor = example(0);
        for (opcode, latency_ms) in
            [(READ, 4), (READ, 5), (1, 19), (1, 20), (9, 39), (9, 40), (9, 399), (9, 400), (8, 500)]
        {
            note(&mut monitor, opcode, latency_ms, 1);
        }
        let counters = monitor.page().active.counters.map(|bucket| bucket.commands.map(|count| count.get()));
        assert_eq!(counters, [[0, 1, 1], [1, 1, 0], [2, 0, 0], [1, 0, 0]]);
        let threshold_ns = 0x07e0 * TIMER_NS;
        monitor.advance(threshold_ns - 1);
        assert_eq!(monitor.page().active_bucket_timer.get(), 0x07df);
        assert_eq!(monitor.page().frozen, buckets_page(&Buckets::default()));
        let active = monitor.page().active;
        monitor.advance(threshold_ns);
        assert_eq!((monitor.page().frozen, monitor.page().active_bucket_timer.get()), (active, 0));
        assert_eq!(monitor.page().active, buckets_page(&Buckets::default()));
        monitor.configure(LatencyConfiguration::default(), true, threshold_ns);
        assert_eq!(monitor.page().frozen, buckets_page(&Buckets::default()), "anew");
        let off = LatencyConfiguration { enabled: false, ..LatencyConfiguration::default() };
        monitor.configure(off, true, 0);
        assert!(!monitor.is_long(u64::MAX - 1));
    }

    #[test]
    fn thresholds_rise() {
        let thresholds = |thresholds| LatencyConfiguration { thresholds, ..LatencyConfiguration::default() };
        assert!(thresholds([0, 1, 2, 255]).is_rising());
        assert!(!thresholds([0, 1, 1, 2]).is_rising() && !thresholds([9, 8, 10, 11]).is_rising());
    }
}
