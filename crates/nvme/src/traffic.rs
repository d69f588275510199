//! Counters and latencies of host commands, for monitoring. They cost each command a few additions.
//!
//! ```text
//! command is done (Subsystem::note_latency) -> LatencyHistogram of its kind, all hosts together
//!                                           -> NamespaceTraffic of its host and its namespace
//! a transport takes commands of a queue     -> QueueDepth of the queue
//! ```
//!
//! Latencies are those of the latency monitor, from the execution of a command until it may
//! complete. With timing, the model determines the latency. Without timing it is zero, unless data
//! has to become durable.
//!
//! The counters include only successful I/O commands. They count from the opening of the drive or
//! the connection of a host, and only grow. They are not stored.

use nvme_spec::IoOpcode;
use ssd::Nanos;

/// Kind of command, by its effect on the data of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Read commands.
    Read,
    /// Write commands.
    Write,
    /// All other commands.
    Other,
}

impl CommandKind {
    /// All kinds, in the order of the counters.
    pub const ALL: [CommandKind; 3] = [CommandKind::Read, CommandKind::Write, CommandKind::Other];

    /// Kind of an I/O command.
    #[inline]
    pub fn from_opcode(opcode: u8) -> CommandKind {
        match opcode {
            READ => CommandKind::Read,
            WRITE => CommandKind::Write,
            _ => CommandKind::Other,
        }
    }

    /// Name of the kind in tables.
    pub fn name(self) -> &'static str {
        match self {
            CommandKind::Read => "read",
            CommandKind::Write => "write",
            CommandKind::Other => "other",
        }
    }
}

const READ: u8 = IoOpcode::Read as u8;
const WRITE: u8 = IoOpcode::Write as u8;

/// Buckets of each doubling of a latency, and log2 of the number. The resolution is an eighth.
const BUCKETS_PER_DOUBLING: usize = 1 << DOUBLING_LOG2;
const DOUBLING_LOG2: u32 = 3;
/// Doublings of a microsecond up to the longest bucket bound, 16.8 s. Longer latencies share one
/// bucket.
pub const DOUBLINGS: u32 = 24;
/// Number of buckets. They are one microsecond wide up to 8 us. Each doubling above has eight, and
/// one bucket has the rest.
const BUCKETS: usize = first_above(DOUBLINGS) + 1;

const fn first_above(doublings: u32) -> usize {
    match doublings.checked_sub(DOUBLING_LOG2) {
        None => 1 << doublings,
        Some(more) => (more as usize + 1) * BUCKETS_PER_DOUBLING,
    }
}

/// Latency histogram with buckets of logarithmic width. [`crate::completion_lag`] uses a library's
/// histogram of this shape, because not every command passes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u64; BUCKETS],
    sum_ns: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { counts: [0; BUCKETS], sum_ns: 0 }
    }
}

impl LatencyHistogram {
    /// Bucket of a latency. A bucket includes its upper bound and excludes its lower one.
    #[inline]
    fn bucket(latency_ns: Nanos) -> usize {
        let whole_us = latency_ns.saturating_sub(1) / 1000;
        if whole_us < BUCKETS_PER_DOUBLING as u64 {
            return whole_us as usize;
        }
        let doublings = whole_us.ilog2();
        let within = (whole_us >> (doublings - DOUBLING_LOG2)) as usize % BUCKETS_PER_DOUBLING;
        (first_above(doublings) + within).min(BUCKETS - 1)
    }

    /// Upper bound of a bucket. For the last bucket, its lower bound.
    fn upper_ns(bucket: usize) -> Nanos {
        let (doubling, within) = (bucket / BUCKETS_PER_DOUBLING, bucket % BUCKETS_PER_DOUBLING);
        let us = match doubling.checked_sub(1) {
            None => within as u64 + 1,
            Some(_) if bucket == BUCKETS - 1 => 1 << DOUBLINGS,
            Some(more) => ((BUCKETS_PER_DOUBLING + within + 1) as u64) << more,
        };
        us * 1000
    }

    #[inline]
    pub(crate) fn record(&mut self, latency_ns: Nanos, commands: u64) {
        self.counts[LatencyHistogram::bucket(latency_ns)] += commands;
        self.sum_ns = self.sum_ns.saturating_add(latency_ns.saturating_mul(commands));
    }

    /// Number of recorded commands.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all recorded latencies.
    pub fn sum_ns(&self) -> Nanos {
        self.sum_ns
    }

    /// Number of commands that took at most 2^`doublings` us.
    ///
    /// # Panics
    /// `doublings` exceeds [`DOUBLINGS`].
    pub fn count_within(&self, doublings: u32) -> u64 {
        assert!(doublings <= DOUBLINGS, "2^{doublings} us is not a bucket limit");
        self.counts[..first_above(doublings)].iter().sum()
    }

    /// Latency that the fraction `share` of the commands does not exceed. The value is up to an
    /// eighth too high, and never above 2^[`DOUBLINGS`] us. `None` without commands.
    pub fn quantile_ns(&self, share: f64) -> Option<Nanos> {
        assert!((0.0..=1.0).contains(&share), "{share} is not a share between 0 and 1");
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|commands| {
            seen += commands;
            seen >= rank
        })?;
        Some(LatencyHistogram::upper_ns(bucket))
    }

    /// Difference to `earlier`, a copy of the same histogram.
    pub fn since(&self, earlier: &LatencyHistogram) -> LatencyHistogram {
        let mut since = self.clone();
        for (count, before) in since.counts.iter_mut().zip(&earlier.counts) {
            *count = count.checked_sub(*before).expect("no counter falls");
        }
        assert!(self.sum_ns >= earlier.sum_ns, "no counter falls");
        since.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        since
    }
}

/// Counters of one host and one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceTraffic {
    /// Commands of each kind, in the order of [`CommandKind::ALL`].
    pub commands: [u64; 3],
    /// Bytes of logical blocks read or written. Always 0 for other commands.
    pub bytes: [u64; 3],
    /// Latencies of all kinds of commands.
    pub latency: LatencyHistogram,
}

impl NamespaceTraffic {
    /// Difference to `earlier`, a copy of the same counters.
    pub fn since(&self, earlier: &NamespaceTraffic) -> NamespaceTraffic {
        let less = |now: [u64; 3], then: [u64; 3]| {
            let mut less = now;
            for (now, then) in less.iter_mut().zip(then) {
                *now = now.checked_sub(then).expect("no counter falls");
            }
            less
        };
        NamespaceTraffic {
            commands: less(self.commands, earlier.commands),
            bytes: less(self.bytes, earlier.bytes),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

/// Outstanding commands of a queue, sampled when the drive fetches commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Number of samples.
    pub samples: u64,
    /// Sum of the outstanding commands over all samples.
    pub commands: u64,
}

/// Counters of the commands of a controller's host. A row exists for each used namespace and queue.
/// The limits on namespaces and queues bound the size.
#[derive(Clone, Debug, Default)]
pub struct HostTraffic {
    /// Rows by namespace identifier - 1.
    namespaces: Vec<Option<Box<NamespaceTraffic>>>,
    queues: Vec<QueueDepth>,
}

impl HostTraffic {
    /// Counts `commands` completed commands of an existing namespace. Each took `latency_ns`, and
    /// together they moved `bytes`.
    #[inline]
    pub(crate) fn note(&mut self, nsid: u32, kind: CommandKind, commands: u64, bytes: u64, latency_ns: Nanos) {
        assert!(nsid > 0, "a namespace that exists has an identifier");
        let place = nsid as usize - 1;
        if place >= self.namespaces.len() {
            self.namespaces.resize_with(place + 1, || None);
        }
        let row = self.namespaces[place].get_or_insert_default();
        row.commands[kind as usize] += commands;
        row.bytes[kind as usize] += bytes;
        row.latency.record(latency_ns, commands);
    }

    #[inline]
    pub(crate) fn note_depth(&mut self, queue: u16, commands: u64) {
        let place = usize::from(queue);
        if place >= self.queues.len() {
            self.queues.resize(place + 1, QueueDepth::default());
        }
        let depth = &mut self.queues[place];
        depth.samples += 1;
        depth.commands += commands;
    }

    /// Used namespaces with their identifiers.
    pub fn namespaces(&self) -> impl Iterator<Item = (u32, &NamespaceTraffic)> {
        (1..).zip(&self.namespaces).filter_map(|(nsid, row)| Some((nsid, &**row.as_ref()?)))
    }

    /// Queues by identifier. Unused queues and the admin queue are all zero.
    pub fn queues(&self) -> &[QueueDepth] {
        &self.queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_what_they_say() {
        let mut last = 0;
        for bucket in 0..BUCKETS - 1 {
            let upper_ns = LatencyHistogram::upper_ns(bucket);
            assert!(upper_ns > last, "bucket {bucket} ends at {upper_ns} ns");
            assert!(upper_ns - last <= (upper_ns / 8).max(1000), "bucket {bucket} is {} ns wide", upper_ns - last);
            assert_eq!(LatencyHistogram::bucket(last + 1), bucket);
            assert_eq!(LatencyHistogram::bucket(upper_ns), bucket);
            last = upper_ns;
        }
        assert_eq!(last, 1000 << DOUBLINGS);
        assert_eq!([last + 1, u64::MAX].map(LatencyHistogram::bucket), [BUCKETS - 1; 2]);
        assert_eq!(LatencyHistogram::bucket(0), 0);
    }

    #[test]
    fn counts_within_a_doubling_are_exact() {
        let mut histogram = LatencyHistogram::default();
        for doublings in 0..=DOUBLINGS + 1 {
            histogram.record(1000 << doublings, 1);
            histogram.record((1000 << doublings) + 1, 1);
        }
        for doublings in 0..=DOUBLINGS {
            assert_eq!(histogram.count_within(doublings), u64::from(doublings) * 2 + 1);
        }
        assert_eq!(histogram.count(), u64::from(DOUBLINGS) * 2 + 4);
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!(histogram.quantile_ns(0.5), None);
        (1..=1000).for_each(|us| histogram.record(us * 1000, 1));
        assert_eq!(histogram.sum_ns(), 500_500_000);
        for (share, exact_us) in [(0.0, 1), (0.001, 1), (0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            let found = histogram.quantile_ns(share).expect("commands");
            let exact = exact_us * 1000;
            assert!((exact..=exact + exact / 8).contains(&found), "{share}: {found} ns");
        }
        let earlier = histogram.clone();
        histogram.record(u64::MAX, 1);
        let since = histogram.since(&earlier);
        assert_eq!((since.count(), since.quantile_ns(0.5)), (1, Some(1000 << DOUBLINGS)));
    }

    #[test]
    fn rows_are_of_what_was_used() {
        let mut traffic = HostTraffic::default();
        traffic.note(3, CommandKind::from_opcode(READ), 1, 4096, 7000);
        traffic.note(3, CommandKind::from_opcode(WRITE), 1, 512, 0);
        let earlier = traffic.namespaces().next().expect("a row").1.clone();
        traffic.note(3, CommandKind::from_opcode(0), 1, 0, 9000);
        traffic.note_depth(2, 5);
        traffic.note_depth(2, 1);
        let rows: Vec<_> = traffic.namespaces().collect();
        let [(3, row)] = rows[..] else { panic!("one namespace: {rows:?}") };
        assert_eq!((row.commands, row.bytes), ([1, 1, 1], [4096, 512, 0]));
        let since = row.since(&earlier);
        assert_eq!((since.commands, since.latency.count(), since.latency.sum_ns()), ([0, 0, 1], 1, 9000));
        let used = QueueDepth { samples: 2, commands: 6 };
        assert_eq!(traffic.queues(), [QueueDepth::default(), QueueDepth::default(), used]);
    }
}
