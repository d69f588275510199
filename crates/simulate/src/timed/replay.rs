//! Block trace replay at recorded times, an open loop.
//!
//! ```text
//! TimedSource -> requests and arrivals -> due times -> Lane (at most queue_depth in flight) -> Device
//!                                      -> latencies by volume, process and size; lateness; bursts
//! ```
//!
//! A request due while the queue is full waits in the host in first-come, first-served order. Its
//! latency begins at its due time, so it shows when a drive falls behind. Memory does not depend on
//! the length of the trace. The drive does not influence the times. A real program would wait for
//! its reads and issue later requests later.

use ssd::{CompletionTime, Nanos};
use workload::trace::Arrival;
use workload::{IoRequest, RequestOperation};

use super::latency::{GcWaits, LatencyDistribution};
use super::measure::job_bytes_max;

/// Maximum volumes and maximum processes with separate measurements. The rest is measured together.
const NAMED_MAX: usize = 32;
/// Largest request of each size class but the last, bytes.
const SIZES_BYTES: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Names of the size classes.
const SIZE_NAMES: [&str; 5] = ["to 4 KiB", "to 16 KiB", "to 64 KiB", "to 256 KiB", "above 256 KiB"];
/// Windows that count arrivals to find the largest burst, ns.
const WINDOWS_NS: [Nanos; 2] = [1_000_000_000, 10_000_000];

pub(super) const fn memory_bytes_max() -> u64 {
    let groups = 2 * (NAMED_MAX + 1) + SIZE_NAMES.len() + 1;
    // Simulated and recorded latencies. The result receives a copy.
    2 * 2 * groups as u64 * job_bytes_max()
}

/// Measurements of one group of requests in one direction.
#[derive(Clone, Debug, Default)]
pub struct ResponseTimes {
    pub bytes: u64,
    /// Time from due time to completion.
    pub latencies: LatencyDistribution,
    /// Recorded latencies. A record of several requests counts once.
    pub recorded: LatencyDistribution,
    /// Waits in the host for a queue slot.
    pub late: GcWaits,
    /// Waits for garbage collection.
    pub collections: GcWaits,
}

impl ResponseTimes {
    fn record(&mut self, one: &ReplayRequest) {
        self.bytes += u64::from(one.bytes);
        self.latencies.record([one.latency_ns]);
        self.recorded.record(Some(one.recorded_ns).filter(|recorded_ns| *recorded_ns > 0));
        self.late.record([one.late_ns].into_iter());
        self.collections.record([one.waited_ns].into_iter());
    }

    /// Adds the counts of another response.
    pub fn add(&mut self, other: &ResponseTimes) {
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
        self.recorded.add(&other.recorded);
        self.late.add(&other.late);
        self.collections.add(&other.collections);
    }
}

/// Three directions: reads, writes, trims.
type Directions = [ResponseTimes; 3];

/// Key that separates requests into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// No key: all requests.
    All,
    Volume,
    Process,
    Size,
}

impl GroupBy {
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::All => "all",
            GroupBy::Volume => "volume",
            GroupBy::Process => "process",
            GroupBy::Size => "size",
        }
    }
}

/// Requests with a common property.
#[derive(Clone, Debug)]
pub struct RequestGroup {
    pub by: GroupBy,
    /// Name of the volume, process or size class.
    pub name: String,
    pub directions: Directions,
}

impl RequestGroup {
    pub fn requests(&self) -> u64 {
        self.directions.iter().map(|response| response.latencies.count()).sum()
    }
}

/// Requests that were due in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    pub window_ns: Nanos,
    /// Start of the window since the start of the replay.
    pub from_ns: Nanos,
    /// Requests due in the window.
    pub requests: u64,
    pub bytes: u64,
    pub latency_sum_ns: u128,
    pub latency_max_ns: Nanos,
    pub late: GcWaits,
    /// Requests that waited for garbage collection.
    pub collections: GcWaits,
}

/// Measurements of a replay at recorded times.
#[derive(Clone, Debug)]
pub struct ReplayResult {
    /// Factor of the recorded speed.
    pub speed: f64,
    /// Maximum requests in flight.
    pub queue_depth: u64,
    /// All requests, then groups by volume, process and size. Groups of a kind are in order of
    /// appearance.
    pub groups: Vec<RequestGroup>,
    /// Submission delays of all requests, including zero.
    pub lateness: LatencyDistribution,
    /// Delay of the last request.
    pub last_late_ns: Nanos,
    /// Due time of the last request since the start of the replay.
    pub last_due_ns: Nanos,
    /// Requests recorded before their predecessor in the trace, and by how much. They are due with
    /// it.
    pub out_of_order: GcWaits,
    /// Common divisor of all recorded times. 0 if all times are 0.
    pub tick_ns: Nanos,
    /// Windows with most arrivals, one of each length.
    pub bursts: Vec<Burst>,
}

impl ReplayResult {
    /// Sum over all requests: reads, writes and trims.
    pub fn total(&self) -> ResponseTimes {
        let mut total = ResponseTimes::default();
        let all = self.groups.iter().filter(|group| group.by == GroupBy::All);
        all.flat_map(|group| &group.directions).for_each(|response| total.add(response));
        total
    }
}

#[derive(Clone, Copy)]
struct ReplayRequest {
    operation: RequestOperation,
    bytes: u32,
    due_ns: Nanos,
    latency_ns: Nanos,
    late_ns: Nanos,
    waited_ns: Nanos,
    recorded_ns: Nanos,
}

/// Arrivals of the sliding window, and the fullest window so far.
#[derive(Clone, Copy, Default)]
struct ArrivalWindow {
    now: Burst,
    fullest: Burst,
}

impl ArrivalWindow {
    fn new(window_ns: Nanos) -> ArrivalWindow {
        let empty = Burst { window_ns, ..Burst::default() };
        ArrivalWindow { now: empty, fullest: empty }
    }

    fn record(&mut self, one: &ReplayRequest) {
        let from_ns = one.due_ns - one.due_ns % self.now.window_ns;
        assert!(
            from_ns >= self.now.from_ns,
            "an arrival in the window from {from_ns} ns follows one in that from {} ns",
            self.now.from_ns
        );
        if from_ns != self.now.from_ns {
            self.fullest = self.fullest();
            self.now = Burst { window_ns: self.now.window_ns, from_ns, ..Burst::default() };
        }
        self.now.requests += 1;
        self.now.bytes += u64::from(one.bytes);
        self.now.latency_sum_ns += u128::from(one.latency_ns);
        self.now.latency_max_ns = self.now.latency_max_ns.max(one.latency_ns);
        self.now.late.record([one.late_ns].into_iter());
        self.now.collections.record([one.waited_ns].into_iter());
    }

    /// First window with most arrivals.
    fn fullest(&self) -> Burst {
        match self.now.requests > self.fullest.requests {
            true => self.now,
            false => self.fullest,
        }
    }
}

/// Measurements of requests by number of their property.
type Numbered = Vec<Option<Box<Directions>>>;

/// Due times and measurements of a lane's requests. Times count from the start of the lane.
#[derive(Default)]
pub(super) struct Replay {
    speed: f64,
    /// Arrivals of the lane's ready requests. `later`: of those after them.
    ready: Vec<Arrival>,
    pub(super) later: Vec<Arrival>,
    latest_ns: Nanos,
    last_due_ns: Nanos,
    last_late_ns: Nanos,
    lateness: LatencyDistribution,
    out_of_order: GcWaits,
    tick_ns: Nanos,
    windows: [ArrivalWindow; WINDOWS_NS.len()],
    volumes: Numbered,
    processes: Numbered,
    sizes: Numbered,
}

impl Replay {
    pub(super) fn new(speed: f64) -> Replay {
        assert!(speed > 0.0, "time goes on");
        Replay { speed, windows: WINDOWS_NS.map(ArrivalWindow::new), ..Replay::default() }
    }

    /// Makes the later requests ready.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.ready, &mut self.later);
        self.later.clear();
    }

    /// Due time of a ready request: its recorded time, or the due time of its predecessor if later.
    pub(super) fn due_ns(&self, index: usize) -> Nanos {
        let time_ns = self.ready[index].time_ns;
        // At the recorded speed no nanosecond is lost.
        let due_ns = match self.speed == 1.0 {
            true => time_ns,
            false => (time_ns as f64 / self.speed) as Nanos,
        };
        due_ns.max(self.last_due_ns)
    }

    /// Counts the submission of a ready request.
    pub(super) fn submitted(
        &mut self,
        index: usize,
        now_ns: Nanos,
        latency_ns: Nanos,
        done: CompletionTime,
        request: &IoRequest,
    ) {
        let arrival = self.ready[index];
        let due_ns = self.due_ns(index);
        assert!(now_ns >= due_ns, "no request is submitted before it is due");
        let late_ns = now_ns - due_ns;
        let one = ReplayRequest {
            operation: request.operation,
            bytes: request.bytes,
            due_ns,
            latency_ns: late_ns + latency_ns,
            late_ns,
            waited_ns: done.waited_for_collection_ns,
            recorded_ns: arrival.latency_ns,
        };
        self.out_of_order.record([self.latest_ns.saturating_sub(arrival.time_ns)].into_iter());
        self.latest_ns = self.latest_ns.max(arrival.time_ns);
        if self.tick_ns == 0 || !arrival.time_ns.is_multiple_of(self.tick_ns) {
            self.tick_ns = base::gcd(self.tick_ns, arrival.time_ns);
        }
        (self.last_due_ns, self.last_late_ns) = (due_ns, late_ns);
        self.lateness.record([late_ns]);
        self.windows.iter_mut().for_each(|window| window.record(&one));
        let named = |number: u32| (number as usize).min(NAMED_MAX);
        record_group(&mut self.volumes, named(arrival.volume), &one);
        record_group(&mut self.processes, named(arrival.process), &one);
        let size = SIZES_BYTES.partition_point(|most| *most < request.bytes);
        record_group(&mut self.sizes, size, &one);
    }

    /// Number of volume and process names in the result.
    pub(super) const NAMES: usize = NAMED_MAX;

    /// Measurements so far. `names` are those of volumes and processes.
    pub(super) fn result(&self, queue_depth: u64, names: &[Vec<String>; 2]) -> ReplayResult {
        let mut all = Directions::default();
        for sized in self.sizes.iter().flatten() {
            all.iter_mut().zip(&**sized).for_each(|(sum, one)| sum.add(one));
        }
        let mut groups = vec![RequestGroup { by: GroupBy::All, name: "all".to_string(), directions: all }];
        assert_eq!(
            self.lateness.count(),
            groups[0].requests(),
            "the size classes count other requests than the delays"
        );
        let numbered = |names: &[String], number: usize| match names.get(number) {
            Some(name) if !name.is_empty() => name.clone(),
            _ if number == NAMED_MAX => "all others".to_string(),
            _ => (number + 1).to_string(),
        };
        let sizes = SIZE_NAMES.map(str::to_string);
        let kinds = [
            (GroupBy::Volume, &self.volumes, names[0].as_slice()),
            (GroupBy::Process, &self.processes, names[1].as_slice()),
            (GroupBy::Size, &self.sizes, sizes.as_slice()),
        ];
        for (by, measured, names) in kinds {
            let found = measured.iter().enumerate();
            groups.extend(found.filter_map(|(number, directions)| {
                Some(RequestGroup { by, name: numbered(names, number), directions: (**directions.as_ref()?).clone() })
            }));
        }
        ReplayResult {
            speed: self.speed,
            queue_depth,
            groups,
            lateness: self.lateness.clone(),
            last_late_ns: self.last_late_ns,
            last_due_ns: self.last_due_ns,
            out_of_order: self.out_of_order,
            tick_ns: self.tick_ns,
            bursts: self.windows.iter().map(ArrivalWindow::fullest).collect(),
        }
    }
}

fn record_group(numbered: &mut Numbered, number: usize, one: &ReplayRequest) {
    if number >= numbered.len() {
        numbered.resize_with(number + 1, || None);
    }
    let directions = numbered[number].get_or_insert_default();
    directions[one.operation as usize].record(one);
}

#[derive(Clone, Debug)]
pub enum TracePace {
    /// A request after each completion. Recorded times are ignored.
    ClosedLoop {
        /// Requests in flight.
        queue_depth: u64,
    },
    /// Requests at their recorded times.
    Recorded(Box<ReplayResult>),
}

impl TracePace {
    /// Returns the measurements of a replay at recorded times.
    pub fn replay(&self) -> Option<&ReplayResult> {
        match self {
            TracePace::ClosedLoop { .. } => None,
            TracePace::Recorded(replay) => Some(replay),
        }
    }
}

/// Label beside every latency of the trace.
impl std::fmt::Display for TracePace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TracePace::ClosedLoop { queue_depth } => {
                write!(out, "closed loop, queue depth {queue_depth}, recorded times ignored")
            }
            TracePace::Recorded(replay) => {
                write!(out, "open loop at the recorded times")?;
                if replay.speed != 1.0 {
                    write!(out, ", {}x as fast", replay.speed)?;
                }
                write!(out, ", queue depth {}", replay.queue_depth)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_is_the_first_of_those_with_most_arrivals() {
        let mut window = ArrivalWindow::new(10);
        for due_ns in [1, 2, 11, 25, 26, 27, 31, 32, 33, 90] {
            window.record(&ReplayRequest {
                operation: RequestOperation::Read,
                bytes: 100,
                due_ns,
                latency_ns: due_ns,
                late_ns: 0,
                waited_ns: due_ns % 2,
                recorded_ns: 0,
            });
        }
        let fullest = window.fullest();
        assert_eq!((fullest.from_ns, fullest.requests, fullest.bytes), (20, 3, 300));
        assert_eq!((fullest.latency_sum_ns, fullest.latency_max_ns), (78, 27));
        assert_eq!((fullest.late.requests, fullest.collections.requests), (0, 2));
    }
}
