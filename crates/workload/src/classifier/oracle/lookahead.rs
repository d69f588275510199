//! The oracle's first pass, which runs a copy of the source ahead of the placed one and measures
//! the lifetimes of its writes.

use std::path::Path;

use super::spill::{CHUNK_MAX, LIFETIME_BITS, Spill};
use crate::classifier::{PREFETCH_DISTANCE, trimmed_units, units, written_units};
use crate::{IoRequest, RequestOperation, RequestSource, WorkloadError, WorkloadTarget};

/// Chunks of a horizon, within the limits of a chunk's size.
const CHUNKS: u64 = 64;
/// Minimum writes in a chunk.
const CHUNK_MIN: u64 = 4096;
/// Requests per batch.
const BATCH: usize = 1024;

/// Adds a unit to an order-dependent digest of the units written so far.
pub(super) fn digest(digest: u64, unit: u64) -> u64 {
    (digest.rotate_left(5) ^ (unit + 1)).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// The copy of the source that runs ahead.
pub(super) struct Lookahead {
    source: Box<dyn RequestSource>,
    unit_bytes: u64,
    /// Length of the lookahead, in units written.
    pub(super) horizon: u64,
    chunk_writes: u64,
    /// Number of each unit's last write, from 1, or 0 for a unit without data.
    written: Vec<u64>,
    /// Units written so far.
    position: u64,
    /// Remaining units of the current write.
    rest: std::ops::Range<u64>,
    requests: Vec<IoRequest>,
    next: usize,
    has_ended: bool,
    /// Error that ended the source, if it failed. The placed source fails at the same place.
    failed: Option<WorkloadError>,
    spill: Spill,
    taken: u64,
    /// Digests of the chunks that were begun and not taken.
    digests: std::collections::VecDeque<u64>,
}

impl Lookahead {
    pub(super) fn new(source: Box<dyn RequestSource>, target: &WorkloadTarget, horizon: u64, folder: &Path) -> Self {
        assert!(2 * horizon < 1 << LIFETIME_BITS, "lifetimes have {LIFETIME_BITS} bits");
        let chunk_writes = horizon.div_ceil(CHUNKS).clamp(CHUNK_MIN, CHUNK_MAX);
        // One more is being taken and one more is begun, and neither is aligned to the horizon.
        let chunks = horizon.div_ceil(chunk_writes) + 2;
        Lookahead {
            source,
            unit_bytes: target.unit_bytes(),
            horizon,
            chunk_writes,
            written: vec![0; units(target)],
            position: 0,
            rest: 0..0,
            requests: Vec::with_capacity(BATCH),
            next: 0,
            has_ended: false,
            failed: None,
            spill: Spill::new(chunk_writes, chunks, folder),
            taken: 0,
            digests: std::collections::VecDeque::new(),
        }
    }

    /// Lifetimes of the next writes, in order, and the digest of their units. Twice the horizon
    /// stands for lifetimes beyond the horizon.
    pub(super) fn next_chunk(&mut self) -> Result<(Vec<u64>, u64), WorkloadError> {
        let end = (self.taken + 1) * self.chunk_writes;
        while self.position < end + self.horizon && !self.has_ended {
            self.step()?;
        }
        let mut lifetimes = self.spill.read_chunk(2 * self.horizon)?;
        // The last chunk of a source that ends is not full.
        lifetimes.truncate(self.position.saturating_sub(end - self.chunk_writes).min(self.chunk_writes) as usize);
        if lifetimes.is_empty() {
            return Err(self.failed.take().expect("nobody asks for more than is written"));
        }
        self.taken += 1;
        let digest = self.digests.pop_front();
        Ok((lifetimes, digest.expect("a chunk that has writes was begun")))
    }

    /// Writes one unit, or takes the next request.
    fn step(&mut self) -> Result<(), WorkloadError> {
        if let Some(unit) = self.rest.next() {
            return self.write(unit);
        }
        let Some(request) = self.next_request() else {
            return Ok(());
        };
        match request.operation {
            RequestOperation::Read => {}
            RequestOperation::Write => self.rest = written_units(&request, self.unit_bytes),
            RequestOperation::Trim => {
                for unit in trimmed_units(&request, self.unit_bytes) {
                    let last = std::mem::take(&mut self.written[unit as usize]);
                    self.record_death(last)?;
                }
            }
        }
        Ok(())
    }

    fn next_request(&mut self) -> Option<IoRequest> {
        if self.next == self.requests.len() {
            self.requests.clear();
            self.next = 0;
            // Requests in front of an error are processed before the error is returned.
            if let Err(error) = self.source.next_batch(&mut self.requests, BATCH) {
                self.failed = Some(error);
            }
            assert!(
                self.requests.len() <= BATCH,
                "the source gives {} requests, at most {BATCH} are wanted",
                self.requests.len()
            );
            self.has_ended = self.requests.is_empty();
        }
        if let Some(soon) = self.requests.get(self.next + PREFETCH_DISTANCE) {
            prefetch::prefetch(&self.written, (soon.offset_bytes / self.unit_bytes) as usize);
        }
        let request = self.requests.get(self.next).copied();
        self.next += 1;
        request
    }

    fn write(&mut self, unit: u64) -> Result<(), WorkloadError> {
        let number = self.position + 1;
        let last = std::mem::replace(&mut self.written[unit as usize], number);
        self.record_death(last)?;
        if self.position.is_multiple_of(self.chunk_writes) {
            self.digests.push_back(0);
        }
        let open = self.digests.back_mut().expect("a chunk was begun");
        *open = digest(*open, unit);
        self.position = number;
        Ok(())
    }

    /// Records that the content written by write `number` dies before the next write.
    fn record_death(&mut self, number: u64) -> Result<(), WorkloadError> {
        assert!(number <= self.position);
        let Some(write) = number.checked_sub(1) else {
            return Ok(());
        };
        match self.position - write {
            lifetime if lifetime > self.horizon => Ok(()),
            lifetime => self.spill.record(write, lifetime),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    const UNIT: u64 = 4096;

    /// Requests from a list, optionally followed by an error.
    struct Listed(Vec<IoRequest>, bool);

    impl RequestSource for Listed {
        fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
            let taken: Vec<IoRequest> = self.0.drain(..limit.min(self.0.len())).collect();
            if taken.is_empty() && self.1 {
                return Err(WorkloadError::setting("line 9", "is bad"));
            }
            requests.extend(&taken);
            Ok(taken.len())
        }

        fn streams(&self) -> Vec<String> {
            vec!["listed".into()]
        }
    }

    fn requests(units: u64, count: usize) -> Vec<IoRequest> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut below = |limit: u64| random.next_u64() % limit;
        let request = |_| IoRequest {
            stream: 0,
            operation: RequestOperation::ALL[[0, 1, 1, 1, 1, 2][below(6) as usize]],
            offset_bytes: below((units - 8) * 8) * 512,
            bytes: (below(40) as u32 + 1) * 512,
            placement: None,
        };
        (0..count).map(request).collect()
    }

    /// Lifetimes of all written units by definition. A lifetime ends with the next write that
    /// touches the unit or trim that covers it, in units written. `beyond` if it exceeds the
    /// horizon or never ends.
    fn lifetimes(requests: &[IoRequest], horizon: u64, beyond: u64) -> Vec<u64> {
        let mut events: Vec<(u64, bool)> = Vec::new();
        for request in requests {
            match request.operation {
                RequestOperation::Read => {}
                RequestOperation::Write => events.extend(written_units(request, UNIT).map(|unit| (unit, true))),
                RequestOperation::Trim => events.extend(trimmed_units(request, UNIT).map(|unit| (unit, false))),
            }
        }
        let of = |(index, (unit, is_write)): (usize, &(u64, bool))| {
            is_write.then(|| {
                let later = &events[index + 1..];
                let death = later.iter().position(|(other, _)| other == unit);
                let written = |until| 1 + later[..until].iter().filter(|(_, is_write)| *is_write).count() as u64;
                death.map(written).filter(|lifetime| *lifetime <= horizon).unwrap_or(beyond)
            })
        };
        events.iter().enumerate().filter_map(of).collect()
    }

    #[test]
    fn lifetimes_are_those_of_the_definition() {
        let units = 1000;
        let target = WorkloadTarget { device_bytes: units * UNIT, ..WorkloadTarget::default() };
        let requests = requests(units, 8000);
        for horizon in [1, 100, 3000, 100_000] {
            for fails in [false, true] {
                let source = Box::new(Listed(requests.clone(), fails));
                let mut lookahead = Lookahead::new(source, &target, horizon, Path::new("unused"));
                let wanted = lifetimes(&requests, horizon, 2 * horizon);
                let mut found = Vec::new();
                while found.len() < wanted.len() {
                    found.extend(lookahead.next_chunk().expect("there are writes left").0);
                }
                assert!(found == wanted, "horizon {horizon}");
                if fails {
                    let error = lookahead.next_chunk().expect_err("what comes next is bad");
                    assert_eq!(error.to_string(), "line 9 is bad");
                }
            }
        }
    }
}
