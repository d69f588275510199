//! Flash engines in virtual time: their threads, job queues and rejected inserts.
//!
//! ```text
//! get    -> caller waits -> reader (by key) -> read
//! insert -> limits of inserts in flight -> writer (by key) -> SOC: read and write of the bucket
//!                                             ^           -> LOC: copy into the open region
//! remove -------------------------------------+                --full--> flusher -> writes
//! ```
//!
//! All rules come from CacheLib's source. The cache rejects an insert, and loses the item, if the
//! inserts in flight exceed a number or an amount of bytes of keys and values. Both engines count
//! together (navy/driver/Driver.cpp, `admissionTest`; limits in allocator/nvmcache/NavyConfig.h).
//! Removals and lookups are never rejected.
//!
//! Jobs of both engines share the queues of 32 writer and 32 reader threads. The key's hash selects
//! the thread. A thread does one job after the other (navy/engine/EnginePair.cpp, `scheduleInsert`;
//! navy/scheduler/ThreadPoolJobScheduler.cpp).
//!
//! A job reads and writes a bucket (navy/bighash/BigHash.cpp). A large item is only copied. A full
//! region goes to one thread of the region manager. Each clean region has two buffers. A job that
//! needs a new region waits for a free buffer (navy/block_cache/{Allocator,RegionManager}.cpp;
//! NavyConfig.h).
//!
//! The contents of the cache change when an insert is accepted. Only the device I/O waits. The
//! model omits waits between jobs of the same key, reads of a region before its eviction, and
//! processor time.

use std::collections::VecDeque;

use super::layout::{LOC_STREAM, SOC_STREAM};
use super::pace::{EngineResources, Pace};
use workload::{IoRequest, TaggedRequest};

/// Next step of a thread.
enum ThreadStep {
    /// Submits a request and waits for its completion.
    Request(IoRequest),
    /// Completes an insert of this engine with this number of bytes.
    Inserted(u16, u32),
    /// Waits until the region with this number, counted from the start, can open. The previous
    /// region must be full and a buffer must be free.
    Open(u64),
    /// Passes the region with this number to the flusher, because it is full.
    Flush(u64, Box<[IoRequest]>),
    /// Frees the buffer of a written region.
    Flushed,
    Answer,
}

#[derive(Default)]
struct NavyThread {
    steps: VecDeque<ThreadStep>,
    /// True if the thread executes a step, waits for a buffer, or is ready.
    busy: bool,
}

/// Accepted inserts that are not yet done.
#[derive(Debug, Clone, Copy, Default)]
struct InFlightInserts {
    inserts: u64,
    bytes: u64,
}

#[derive(Default)]
pub(super) struct Navy {
    max_inserts: u64,
    max_bytes: u64,
    engines: EngineResources,
    /// Threads of the program that use the cache, and those that wait for a lookup.
    callers: u32,
    waiting_callers: u32,
    /// One entry per engine, or only the first if the engines share limits.
    in_flight: [InFlightInserts; 2],
    /// Maximum of the inserts in flight so far.
    pub(super) most_inserts: u64,
    readers: u64,
    writers: u64,
    /// Readers, then writers (SOC, then LOC, if each has its own), then the flusher.
    threads: Vec<NavyThread>,
    /// Ready threads in execution order.
    ready: VecDeque<u16>,
    /// Threads that wait for a region.
    blocked: Vec<u16>,
    /// Buffers for regions that are open or being written.
    buffers: u64,
    /// Numbers of LOC regions since the start. `open` were opened for items, `full` were passed to
    /// the flusher, `flushed` were written.
    open: u64,
    full: u64,
    flushed: u64,
}

impl Navy {
    /// Creates the threads. `denominator` is the scale of the model. `clean_regions` comes from the
    /// settings.
    pub(super) fn new(pace: &Pace, denominator: u64, clean_regions: u64) -> Navy {
        let sets = match pace.engines {
            EngineResources::SharedThreads => 1,
            EngineResources::OwnThreads => 2,
        };
        let threads = pace.reader_threads + sets * pace.writer_threads + 1;
        Navy {
            max_inserts: (pace.max_concurrent_inserts / denominator).max(1),
            max_bytes: (pace.max_parcel_bytes / denominator).max(1),
            engines: pace.engines,
            callers: pace.callers,
            readers: u64::from(pace.reader_threads),
            writers: u64::from(pace.writer_threads),
            threads: (0..threads).map(|_| NavyThread::default()).collect(),
            buffers: 2 * clean_regions,
            ..Navy::default()
        }
    }

    /// Maximum number of requests in flight, one per thread.
    pub(super) fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// True if a caller is free for the next operation.
    pub(super) fn has_caller(&self) -> bool {
        self.waiting_callers < self.callers
    }

    /// True if all threads are idle.
    pub(super) fn is_idle(&self) -> bool {
        self.threads.iter().all(|thread| !thread.busy)
    }

    /// Counts an insert of `bytes` bytes (key and value) into an engine as in flight and returns
    /// true. Returns false, and counts nothing, if a limit would be exceeded.
    pub(super) fn admits(&mut self, engine: u16, bytes: u32) -> bool {
        let in_flight = &mut self.in_flight[self.engines.index(engine)];
        let total = InFlightInserts { inserts: in_flight.inserts + 1, bytes: in_flight.bytes + u64::from(bytes) };
        if total.inserts > self.max_inserts || total.bytes > self.max_bytes {
            return false;
        }
        *in_flight = total;
        let inserts = self.in_flight.iter().map(|engine| engine.inserts).sum();
        self.most_inserts = self.most_inserts.max(inserts);
        true
    }

    /// Starts a lookup. A caller waits for these reads.
    pub(super) fn start_lookup(&mut self, key: u64, requests: impl Iterator<Item = IoRequest>) {
        self.waiting_callers += 1;
        let steps = requests.map(ThreadStep::Request).chain([ThreadStep::Answer]);
        self.enqueue((key % self.readers) as u16, steps);
    }

    /// Starts the insert of an admitted item into its bucket.
    pub(super) fn insert_small(&mut self, key: u64, bytes: u32, requests: impl Iterator<Item = IoRequest>) {
        let steps = requests.map(ThreadStep::Request).chain([ThreadStep::Inserted(SOC_STREAM, bytes)]);
        self.enqueue(self.writer(SOC_STREAM, key), steps);
    }

    /// Starts the removal of a key from its bucket.
    pub(super) fn remove(&mut self, key: u64, requests: impl Iterator<Item = IoRequest>) {
        self.enqueue(self.writer(SOC_STREAM, key), requests.map(ThreadStep::Request));
    }

    /// Starts the insert of an admitted item into the open region. If that region was too full, the
    /// requests in `full` write it and the item goes to the next region.
    pub(super) fn insert_large(&mut self, key: u64, bytes: u32, full: Option<Box<[IoRequest]>>) {
        let flush = full.map(|writes| ThreadStep::Flush(self.open, writes));
        self.open += u64::from(flush.is_some());
        let place = [ThreadStep::Open(self.open), ThreadStep::Inserted(LOC_STREAM, bytes)];
        self.enqueue(self.writer(LOC_STREAM, key), flush.into_iter().chain(place));
    }

    fn writer(&self, engine: u16, key: u64) -> u16 {
        let set = self.engines.index(engine) as u64;
        (self.readers + set * self.writers + key % self.writers) as u16
    }

    fn enqueue(&mut self, index: u16, steps: impl Iterator<Item = ThreadStep>) {
        let thread = &mut self.threads[usize::from(index)];
        thread.steps.extend(steps);
        if !thread.busy && !thread.steps.is_empty() {
            thread.busy = true;
            self.ready.push_back(index);
        }
    }

    /// Handles the completion of a thread's request.
    pub(super) fn completed(&mut self, thread: u16) {
        self.ready.push_back(thread);
    }

    /// Advances all ready threads. Submitted requests carry the number of their thread.
    pub(super) fn run(&mut self, requests: &mut Vec<TaggedRequest>) {
        while let Some(thread) = self.ready.pop_front() {
            self.resume_thread(thread, requests);
        }
    }

    /// True if the step must wait. Regions fill in order, independent of the order of the threads.
    fn must_wait(&self, step: &ThreadStep) -> bool {
        match step {
            ThreadStep::Open(region) | ThreadStep::Flush(region, _) => {
                *region > self.full || *region >= self.flushed + self.buffers
            }
            _ => false,
        }
    }

    fn resume_thread(&mut self, index: u16, requests: &mut Vec<TaggedRequest>) {
        loop {
            let Some(step) = self.threads[usize::from(index)].steps.pop_front() else {
                self.threads[usize::from(index)].busy = false;
                return;
            };
            if self.must_wait(&step) {
                self.threads[usize::from(index)].steps.push_front(step);
                return self.blocked.push(index);
            }
            match step {
                ThreadStep::Request(request) => return requests.push(TaggedRequest { tag: index, request }),
                ThreadStep::Open(_) => {}
                ThreadStep::Inserted(engine, bytes) => {
                    let in_flight = &mut self.in_flight[self.engines.index(engine)];
                    in_flight.inserts -= 1;
                    in_flight.bytes -= u64::from(bytes);
                }
                ThreadStep::Flush(_, writes) => {
                    self.full += 1;
                    self.ready.extend(self.blocked.drain(..));
                    let flusher = self.threads.len() as u16 - 1;
                    let writes = writes.into_iter().map(ThreadStep::Request);
                    self.enqueue(flusher, writes.chain([ThreadStep::Flushed]));
                }
                ThreadStep::Flushed => {
                    self.flushed += 1;
                    self.ready.extend(self.blocked.drain(..));
                }
                ThreadStep::Answer => self.waiting_callers -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::RequestOperation;

    fn navy(engines: EngineResources) -> Navy {
        let pace = Pace {
            callers: 2,
            reader_threads: 2,
            writer_threads: 2,
            max_concurrent_inserts: 3,
            max_parcel_bytes: 10_000,
            engines,
            ..Pace::at(1000.0)
        };
        Navy::new(&pace, 1, 1)
    }

    fn request(offset_bytes: u64) -> IoRequest {
        IoRequest { stream: 0, operation: RequestOperation::Write, offset_bytes, bytes: 4096, placement: None }
    }

    /// Runs all threads. Returns tags and offsets of the submitted requests.
    fn run(navy: &mut Navy) -> Vec<(u16, u64)> {
        let mut requests = Vec::new();
        navy.run(&mut requests);
        let seen = requests.iter().map(|tagged| (tagged.tag, tagged.request.offset_bytes));
        seen.collect()
    }

    #[test]
    fn the_limits_are_of_both_engines_unless_each_has_its_own() {
        let mut shared = navy(EngineResources::SharedThreads);
        assert!((0..3).all(|_| shared.admits(SOC_STREAM, 100)));
        assert!(!shared.admits(SOC_STREAM, 100) && !shared.admits(LOC_STREAM, 100));
        let mut own = navy(EngineResources::OwnThreads);
        assert!((0..3).all(|_| own.admits(SOC_STREAM, 100)));
        assert!(!own.admits(SOC_STREAM, 100) && own.admits(LOC_STREAM, 100));
        let mut bytes = navy(EngineResources::SharedThreads);
        assert!(bytes.admits(LOC_STREAM, 9_000) && !bytes.admits(LOC_STREAM, 1_001) && bytes.admits(SOC_STREAM, 1_000));
        assert_eq!(bytes.most_inserts, 2);
    }

    #[test]
    fn a_thread_does_one_job_after_the_other_and_then_makes_room() {
        let mut navy = navy(EngineResources::SharedThreads);
        for key in [2, 4, 5] {
            assert!(navy.admits(SOC_STREAM, 100));
            navy.insert_small(key, 100, [request(key * 10), request(key * 10 + 1)].into_iter());
        }
        // Thread 2, the first writer, has keys 2 and 4. The second writer has key 5.
        assert_eq!(run(&mut navy), [(2, 20), (3, 50)]);
        navy.completed(2);
        assert_eq!(run(&mut navy), [(2, 21)]);
        assert!(!navy.admits(SOC_STREAM, 100), "the insert is not done before its bucket is written");
        navy.completed(2);
        assert_eq!(run(&mut navy), [(2, 40)]);
        assert!(navy.admits(SOC_STREAM, 100));
    }

    #[test]
    fn a_large_item_waits_behind_small_ones_of_its_thread_unless_engines_are_apart() {
        for (engines, in_flight) in [(EngineResources::SharedThreads, 2), (EngineResources::OwnThreads, 1)] {
            let mut navy = navy(engines);
            assert!(navy.admits(SOC_STREAM, 100) && navy.admits(LOC_STREAM, 100));
            navy.insert_small(2, 100, [request(0)].into_iter());
            navy.insert_large(2, 100, None);
            run(&mut navy);
            let inserts: u64 = navy.in_flight.iter().map(|engine| engine.inserts).sum();
            assert_eq!(inserts, in_flight);
        }
    }

    #[test]
    fn regions_are_flushed_in_order_and_their_buffers_waited_for() {
        let mut navy = navy(EngineResources::SharedThreads);
        let region = |number: u64| Some(vec![request(number * 100), request(number * 100 + 1)].into());
        for number in 0..3 {
            assert!(navy.admits(LOC_STREAM, 100));
            navy.insert_large(number, 100, region(number));
        }
        // Region 1 has the second buffer. Regions 2 and 3 wait for the buffers of regions 0 and 1.
        let flusher = navy.threads.len() as u16 - 1;
        let mut offsets = Vec::new();
        loop {
            let submitted = run(&mut navy);
            assert!(submitted.iter().all(|(tag, _)| *tag == flusher) && submitted.len() <= 1);
            let Some((tag, offset)) = submitted.first() else { break };
            offsets.push(*offset);
            let expected = match offset / 100 {
                0 => 2,
                1 => 1,
                _ => 0,
            };
            assert_eq!(navy.in_flight[0].inserts, expected, "while {offset} is written");
            navy.completed(*tag);
        }
        assert_eq!(offsets, [0, 1, 100, 101, 200, 201]);
        assert!(navy.is_idle() && navy.flushed == 3);
    }

    #[test]
    fn callers_wait_for_their_answers() {
        let mut navy = navy(EngineResources::SharedThreads);
        navy.start_lookup(0, [request(1)].into_iter());
        assert!(navy.has_caller());
        navy.start_lookup(0, [request(2)].into_iter());
        assert!(!navy.has_caller());
        assert_eq!(run(&mut navy), [(0, 1)]);
        navy.completed(0);
        assert_eq!(run(&mut navy), [(0, 2)]);
        assert!(navy.has_caller() && !navy.is_idle());
    }
}
