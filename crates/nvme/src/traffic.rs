//! What hosts have the drive do, and how long it takes: counters that are read by whoever watches, and cost a command a few
//! additions.
//!
//! ```text
//! command is done (Subsystem::note_latency) -> LatencyHistogram of its kind, all hosts together
//!                                           -> NamespaceTraffic of its host and its namespace
//! a transport takes commands of a queue     -> QueueDepth of the queue
//! ```
//!
//! A latency is what the latency monitor means by it: the time from when a command is carried out until it may complete, which is
//! the model's where the drive has timing and nothing where it has none and nothing is made durable. I/O commands that succeeded
//! are counted. Everything counts from when the drive was opened, or from when a host connected, and only grows; nothing is stored.

use nvme_spec::IoOpcode;
use ssd::Nanos;

/// What a command does to the data of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Everything else.
    Other,
}

impl CommandKind {
    /// All kinds, in the order in which they are counted.
    pub const ALL: [CommandKind; 3] = [CommandKind::Read, CommandKind::Write, CommandKind::Other];

    /// The kind of an I/O command.
    #[inline]
    pub fn of(opcode: u8) -> CommandKind {
        match opcode {
            READ => CommandKind::Read,
            WRITE => CommandKind::Write,
            _ => CommandKind::Other,
        }
    }

    /// Its name in tables.
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

/// Buckets of each doubling of a latency, and log2 of it: a latency is known to an eighth.
const BUCKETS_PER_DOUBLING: usize = 1 << DOUBLING_LOG2;
const DOUBLING_LOG2: u32 = 3;
/// Latencies above so many doublings of a microsecond, 16.8 s, are not told apart.
pub const DOUBLINGS: u32 = 24;
/// Buckets: of one microsecond each up to eight, of each doubling from there on, and of what is longer than all.
const BUCKETS: usize = first_above(DOUBLINGS) + 1;

/// The first bucket of latencies above so many doublings of a microsecond.
const fn first_above(doublings: u32) -> usize {
    match doublings.checked_sub(DOUBLING_LOG2) {
        None => 1 << doublings,
        Some(more) => (more as usize + 1) * BUCKETS_PER_DOUBLING,
    }
}

/// How many commands took how long, in buckets of logarithmic width. Another histogram of this shape, of the library, is kept where
/// it is not in the way of every command ([`crate::pacing`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u64; BUCKETS],
    sum_ns: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram {
            counts: [0; BUCKETS],
            sum_ns: 0,
        }
    }
}

impl LatencyHistogram {
    /// The bucket of a latency. A bucket has its upper bound and not its lower one.
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

    /// The longest latency of a bucket; of the last one, what all of it is longer than.
    fn upper_ns(bucket: usize) -> Nanos {
        let (doubling, within) = (bucket / BUCKETS_PER_DOUBLING, bucket % BUCKETS_PER_DOUBLING);
        let us = match doubling.checked_sub(1) {
            None => within as u64 + 1,
            Some(_) if bucket == BUCKETS - 1 => 1 << DOUBLINGS,
            Some(more) => ((BUCKETS_PER_DOUBLING + within + 1) as u64) << more,
        };
        us * 1000
    }

    /// So many commands took so long each.
    #[inline]
    pub(crate) fn record(&mut self, latency_ns: Nanos, commands: u64) {
        self.counts[LatencyHistogram::bucket(latency_ns)] += commands;
        self.sum_ns = self.sum_ns.saturating_add(latency_ns.saturating_mul(commands));
    }

    /// Commands.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What they took together.
    pub fn sum_ns(&self) -> Nanos {
        self.sum_ns
    }

    /// Commands that took at most so many doublings of a microsecond.
    ///
    /// # Panics
    /// Beyond [`DOUBLINGS`].
    pub fn count_within(&self, doublings: u32) -> u64 {
        assert!(doublings <= DOUBLINGS, "2^{doublings} us is not told apart");
        self.counts[..first_above(doublings)].iter().sum()
    }

    /// What such a share of the commands took at most, to an eighth of it above; of those longer than 2^[`DOUBLINGS`] us, that. `None`
    /// without commands.
    pub fn quantile_ns(&self, share: f64) -> Option<Nanos> {
        assert!((0.0..=1.0).contains(&share), "{share} is no share");
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|commands| {
            seen += commands;
            seen >= rank
        })?;
        Some(LatencyHistogram::upper_ns(bucket))
    }

    /// What was counted after `earlier`, a copy of the same histogram.
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

/// What a host has a namespace do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceTraffic {
    /// Commands of each kind, in the order of [`CommandKind::ALL`].
    pub commands: [u64; 3],
    /// Bytes of logical blocks that they read or wrote; those of other kinds count as none.
    pub bytes: [u64; 3],
    /// How long they took, all kinds together.
    pub latency: LatencyHistogram,
}

impl NamespaceTraffic {
    /// What was counted after `earlier`, a copy of the same counters.
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

/// How many commands of a queue were outstanding when the drive took some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Times that it took some.
    pub looks: u64,
    /// Commands that were submitted and not completed then, over all times.
    pub commands: u64,
}

/// What the host of a controller has the drive do. There is a row for each namespace and each queue that it uses: their numbers are
/// bounded, and so is this.
#[derive(Clone, Debug, Default)]
pub struct HostTraffic {
    /// By identifier - 1.
    namespaces: Vec<Option<Box<NamespaceTraffic>>>,
    /// By identifier.
    queues: Vec<QueueDepth>,
}

impl HostTraffic {
    /// Commands of a namespace that exists are done, which took so long each and moved so much together.
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

    /// Commands of a queue that exists are taken while so many are outstanding.
    #[inline]
    pub(crate) fn note_depth(&mut self, queue: u16, commands: u64) {
        let place = usize::from(queue);
        if place >= self.queues.len() {
            self.queues.resize(place + 1, QueueDepth::default());
        }
        let depth = &mut self.queues[place];
        depth.looks += 1;
        depth.commands += commands;
    }

    /// The namespaces that it used, with their identifiers.
    pub fn namespaces(&self) -> impl Iterator<Item = (u32, &NamespaceTraffic)> {
        let numbered = (1..).zip(&self.namespaces);
        numbered.filter_map(|(nsid, row)| Some((nsid, &**row.as_ref()?)))
    }

    /// Its queues by their identifiers; those that it never used are all zero, as is the admin queue.
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
            assert!(
                upper_ns - last <= (upper_ns / 8).max(1000),
                "bucket {bucket} is {} ns wide",
                upper_ns - last
            );
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
        traffic.note(3, CommandKind::of(READ), 1, 4096, 7000);
        traffic.note(3, CommandKind::of(WRITE), 1, 512, 0);
        let earlier = traffic.namespaces().next().expect("a row").1.clone();
        traffic.note(3, CommandKind::of(0), 1, 0, 9000);
        traffic.note_depth(2, 5);
        traffic.note_depth(2, 1);
        let rows: Vec<_> = traffic.namespaces().collect();
        let [(3, row)] = rows[..] else {
            panic!("one namespace: {rows:?}")
        };
        assert_eq!((row.commands, row.bytes), ([1, 1, 1], [4096, 512, 0]));
        let since = row.since(&earlier);
        assert_eq!(
            (since.commands, since.latency.count(), since.latency.sum_ns()),
            ([0, 0, 1], 1, 9000)
        );
        let used = QueueDepth { looks: 2, commands: 6 };
        assert_eq!(traffic.queues(), [QueueDepth::default(), QueueDepth::default(), used]);
    }
}
