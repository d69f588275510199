//! A block trace at its own times: an open loop whose requests are due when they were recorded.
//!
//! ```text
//! TimedSource -> requests and arrivals -> due times -> Lane (at most queue_depth in flight) -> Device
//!                                                   -> latencies by volume, process and size; lateness; bursts
//! ```
//!
//! A request that is due while the queue is full waits in the host, first come first served, and so do those behind it. Its latency
//! begins when it is due, so that a drive that falls behind shows. Memory does not depend on the length of the trace. There is no
//! feedback from the drive to the times: a program that waited for its reads would have asked later.

use ssd::{Completion, Nanos};
use workload::trace::Arrival;
use workload::{Operation, Request};

use super::latency::{Latencies, Waits};
use super::measure::job_bytes_max;

/// Volumes, and processes, that are measured each by itself; the others are measured together.
const NAMED_MAX: usize = 32;
/// Largest request of each class of sizes but the last, bytes.
const SIZES_BYTES: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Names of the classes of sizes.
const SIZE_NAMES: [&str; 5] = ["to 4 KiB", "to 16 KiB", "to 64 KiB", "to 256 KiB", "above 256 KiB"];
/// Windows in which arrivals are counted to find the largest burst.
const WINDOWS_NS: [Nanos; 2] = [1_000_000_000, 10_000_000];

/// Memory of what a replay measures, bytes, at most.
pub(super) const fn memory_bytes_max() -> u64 {
    let groups = 2 * (NAMED_MAX + 1) + SIZE_NAMES.len() + 1;
    // Simulated and recorded latencies; a copy is made for the result.
    2 * 2 * groups as u64 * job_bytes_max()
}

/// What requests of one kind and direction came to.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// Bytes of the requests.
    pub bytes: u64,
    /// From when a request was due to its completion.
    pub latencies: Latencies,
    /// Those that the trace recorded; a record of several requests counts once.
    pub recorded: Latencies,
    /// Waits in the host for a place in the queue.
    pub late: Waits,
    /// Waits for garbage collection.
    pub collections: Waits,
}

impl Response {
    fn take(&mut self, one: &Measured) {
        self.bytes += u64::from(one.bytes);
        self.latencies.record([one.latency_ns]);
        self.recorded
            .record(Some(one.recorded_ns).filter(|recorded_ns| *recorded_ns > 0));
        self.late.record([one.late_ns].into_iter());
        self.collections.record([one.waited_ns].into_iter());
    }

    /// Takes all of another.
    pub fn add(&mut self, other: &Response) {
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
        self.recorded.add(&other.recorded);
        self.late.add(&other.late);
        self.collections.add(&other.collections);
    }
}

/// Three directions: reads, writes, trims.
type Directions = [Response; 3];

/// What requests are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Nothing: all of them.
    All,
    /// The trace's volume.
    Volume,
    /// The trace's process.
    Process,
    /// Bytes of the request.
    Size,
}

impl GroupBy {
    /// Its name in data.
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::All => "all",
            GroupBy::Volume => "volume",
            GroupBy::Process => "process",
            GroupBy::Size => "size",
        }
    }
}

/// Requests that have something in common.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they are told apart by.
    pub by: GroupBy,
    /// Their volume, process or class of sizes.
    pub name: String,
    /// What they came to.
    pub directions: Directions,
}

impl Group {
    pub fn requests(&self) -> u64 {
        self.directions.iter().map(|response| response.latencies.count()).sum()
    }
}

/// The requests that were due in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Length of the window.
    pub window_ns: Nanos,
    /// When it begins, since the replay began.
    pub from_ns: Nanos,
    /// How many requests were due.
    pub requests: u64,
    pub bytes: u64,
    /// Their latencies together.
    pub latency_sum_ns: u128,
    /// The longest.
    pub latency_max_ns: Nanos,
    /// Those that waited in the host.
    pub late: Waits,
    /// Those that waited for garbage collection.
    pub collections: Waits,
}

/// What a replay at the trace's own times measured.
#[derive(Clone, Debug)]
pub struct ReplayResult {
    /// How many times as fast as recorded.
    pub speed: f64,
    /// Requests in flight at most.
    pub queue_depth: u64,
    /// All requests, then by volume, process and size; the first of each kind as they first appear.
    pub groups: Vec<Group>,
    /// How late requests were submitted, those in time too.
    pub lateness: Latencies,
    /// How late the last one was.
    pub last_late_ns: Nanos,
    /// When the last one was due, since the replay began.
    pub last_due_ns: Nanos,
    /// Requests that were recorded before one that stands before them in the trace, and how long before. They are due with that one.
    pub out_of_order: Waits,
    /// All recorded times are multiples of this; 0 if there is but one time.
    pub tick_ns: Nanos,
    /// The windows with most arrivals, one of each length.
    pub bursts: Vec<Burst>,
}

impl ReplayResult {
    /// All requests, both ways and trims together.
    pub fn total(&self) -> Response {
        let mut total = Response::default();
        let all = self.groups.iter().filter(|group| group.by == GroupBy::All);
        all.flat_map(|group| &group.directions)
            .for_each(|response| total.add(response));
        total
    }
}

/// A request on its way.
#[derive(Clone, Copy)]
struct Measured {
    operation: Operation,
    bytes: u32,
    due_ns: Nanos,
    latency_ns: Nanos,
    late_ns: Nanos,
    waited_ns: Nanos,
    recorded_ns: Nanos,
}

/// The arrivals of a window as it passes, and the fullest window so far.
#[derive(Clone, Copy, Default)]
struct Window {
    now: Burst,
    fullest: Burst,
}

impl Window {
    fn new(window_ns: Nanos) -> Window {
        let empty = Burst {
            window_ns,
            ..Burst::default()
        };
        Window {
            now: empty,
            fullest: empty,
        }
    }

    fn take(&mut self, one: &Measured) {
        let from_ns = one.due_ns - one.due_ns % self.now.window_ns;
        if from_ns != self.now.from_ns {
            self.fullest = self.fullest();
            self.now = Burst {
                window_ns: self.now.window_ns,
                from_ns,
                ..Burst::default()
            };
        }
        self.now.requests += 1;
        self.now.bytes += u64::from(one.bytes);
        self.now.latency_sum_ns += u128::from(one.latency_ns);
        self.now.latency_max_ns = self.now.latency_max_ns.max(one.latency_ns);
        self.now.late.record([one.late_ns].into_iter());
        self.now.collections.record([one.waited_ns].into_iter());
    }

    /// The first of those with most arrivals.
    fn fullest(&self) -> Burst {
        match self.now.requests > self.fullest.requests {
            true => self.now,
            false => self.fullest,
        }
    }
}

/// What is measured of requests with one property in common, by its number.
type Numbered = Vec<Option<Box<Directions>>>;

/// The times of a lane's requests, and what is measured of them. Times are since the lane began.
pub(super) struct Replay {
    speed: f64,
    /// Arrivals of the lane's requests that are ready, and of those after them.
    ready: Vec<Arrival>,
    pub(super) later: Vec<Arrival>,
    /// The latest time in the trace, and when the last request was due.
    latest_ns: Nanos,
    last_due_ns: Nanos,
    last_late_ns: Nanos,
    lateness: Latencies,
    out_of_order: Waits,
    tick_ns: Nanos,
    windows: [Window; WINDOWS_NS.len()],
    volumes: Numbered,
    processes: Numbered,
    sizes: Numbered,
}

impl Replay {
    pub(super) fn new(speed: f64) -> Replay {
        assert!(speed > 0.0, "time goes on");
        Replay {
            speed,
            ready: Vec::new(),
            later: Vec::new(),
            latest_ns: 0,
            last_due_ns: 0,
            last_late_ns: 0,
            lateness: Latencies::default(),
            out_of_order: Waits::default(),
            tick_ns: 0,
            windows: WINDOWS_NS.map(Window::new),
            volumes: Vec::new(),
            processes: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Those that come later are ready now.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.ready, &mut self.later);
        self.later.clear();
    }

    /// When a request that is ready is due: when it was recorded, or with the one before it.
    pub(super) fn due_ns(&self, index: usize) -> Nanos {
        let time_ns = self.ready[index].time_ns;
        // At the recorded speed no nanosecond is lost.
        let due_ns = match self.speed == 1.0 {
            true => time_ns,
            false => (time_ns as f64 / self.speed) as Nanos,
        };
        due_ns.max(self.last_due_ns)
    }

    /// A request that is ready was submitted now.
    pub(super) fn submitted(
        &mut self,
        index: usize,
        now_ns: Nanos,
        latency_ns: Nanos,
        done: Completion,
        request: &Request,
    ) {
        let arrival = self.ready[index];
        let due_ns = self.due_ns(index);
        assert!(now_ns >= due_ns, "no request is submitted before it is due");
        let late_ns = now_ns - due_ns;
        let one = Measured {
            operation: request.operation,
            bytes: request.bytes,
            due_ns,
            latency_ns: late_ns + latency_ns,
            late_ns,
            waited_ns: done.waited_for_collection_ns,
            recorded_ns: arrival.latency_ns,
        };
        self.out_of_order
            .record([self.latest_ns.saturating_sub(arrival.time_ns)].into_iter());
        self.latest_ns = self.latest_ns.max(arrival.time_ns);
        if self.tick_ns == 0 || !arrival.time_ns.is_multiple_of(self.tick_ns) {
            self.tick_ns = base::gcd(self.tick_ns, arrival.time_ns);
        }
        (self.last_due_ns, self.last_late_ns) = (due_ns, late_ns);
        self.lateness.record([late_ns]);
        self.windows.iter_mut().for_each(|window| window.take(&one));
        let named = |number: u32| (number as usize).min(NAMED_MAX);
        take(&mut self.volumes, named(arrival.volume), &one);
        take(&mut self.processes, named(arrival.process), &one);
        let size = SIZES_BYTES.partition_point(|most| *most < request.bytes);
        take(&mut self.sizes, size, &one);
    }

    /// How many names of volumes and processes the result has use for.
    pub(super) const NAMES: usize = NAMED_MAX;

    /// What was measured so far; `names` are those of volumes and processes.
    pub(super) fn result(&self, queue_depth: u64, names: &[Vec<String>; 2]) -> ReplayResult {
        let mut all = Directions::default();
        for sized in self.sizes.iter().flatten() {
            all.iter_mut().zip(&**sized).for_each(|(sum, one)| sum.add(one));
        }
        let mut groups = vec![Group {
            by: GroupBy::All,
            name: "all".to_string(),
            directions: all,
        }];
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
                Some(Group {
                    by,
                    name: numbered(names, number),
                    directions: (**directions.as_ref()?).clone(),
                })
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
            bursts: self.windows.iter().map(Window::fullest).collect(),
        }
    }
}

fn take(numbered: &mut Numbered, number: usize, one: &Measured) {
    if number >= numbered.len() {
        numbered.resize_with(number + 1, || None);
    }
    let directions = numbered[number].get_or_insert_default();
    directions[one.operation as usize].take(one);
}

/// How the requests of a block trace came to the device.
#[derive(Clone, Debug)]
pub enum TracePace {
    /// Each as soon as another one was complete, whatever the trace says.
    ClosedLoop {
        /// Requests in flight.
        queue_depth: u64,
    },
    /// When they were recorded.
    Recorded(Box<ReplayResult>),
}

impl TracePace {
    /// What was measured of a replay at the recorded times.
    pub fn replay(&self) -> Option<&ReplayResult> {
        match self {
            TracePace::ClosedLoop { .. } => None,
            TracePace::Recorded(replay) => Some(replay),
        }
    }
}

/// What stands beside every latency of the trace.
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
        let mut window = Window::new(10);
        for due_ns in [1, 2, 11, 25, 26, 27, 31, 32, 33, 90] {
            window.take(&Measured {
                operation: Operation::Read,
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
