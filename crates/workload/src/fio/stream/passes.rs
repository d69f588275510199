//! Passes of a stream, with their ends, restarts and resets.

use super::JobStream;
use super::addresses::Addresses;
use super::placement::PlacementSource;
use super::sizes::size_generator;
use crate::RequestOperation;
use crate::fio::job::JobOperations;
use crate::fio::plan::AddressPlan;
use crate::fio::random::{OffsetGenerator, Purpose, Taus88};

impl JobStream {
    /// True if passes are endless. Passes with `verify` end, as in fio.
    #[inline]
    fn is_unbounded(&self) -> bool {
        self.plan.endless && !self.plan.verifies
    }

    #[inline]
    pub(super) fn pass_continues(&self) -> bool {
        let Some((_, end)) = self.pass else { return false };
        !self.region_done
            && (self.is_unbounded()
                || (self.bytes < end
                    && (self.plan.endless
                        || (self.counted_bytes < self.limit_bytes && self.requests() < self.limit_requests))))
    }

    /// Prepares the next pass and returns true if one follows (fio's `keep_running`).
    #[cold]
    pub(super) fn begin_pass(&mut self) -> bool {
        if self.pass.is_some_and(|(start, _)| start == self.bytes) || !self.wants_another_pass() {
            self.pass = Some((self.bytes, self.bytes));
            return false;
        }
        if self.pass.is_some() {
            self.rewind();
            if self.plan.repeat_randomness {
                self.reseed();
            }
        }
        self.pass = Some((self.bytes, self.bytes.saturating_add(self.pass_bytes())));
        assert!(self.pass.is_some_and(|(start, end)| start < end), "a pass without bytes would follow itself for ever");
        self.region_done = false;
        if let Some(mut back) = self.read_back.take() {
            back.begin_pass(self);
            self.read_back = Some(back);
        }
        true
    }

    fn wants_another_pass(&mut self) -> bool {
        if self.plan.endless {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return true;
        }
        let limit = self.plan.io_size_bytes.unwrap_or(self.plan.size_bytes);
        let largest = self.sizes.iter().map(|sizes| sizes.max_bytes).max().expect("three directions");
        self.requests() < self.limit_requests
            && limit.saturating_sub(self.bytes) >= largest
            && (!self.region_done || self.plan.io_size_bytes.is_some() || self.plan.reads_back)
    }

    /// Bytes after which one pass ends (`total_bytes` of fio's `do_io`).
    fn pass_bytes(&self) -> u64 {
        let plan = &self.plan;
        let writes = plan.access.operations.include(RequestOperation::Write);
        let may_overlap = !plan.access.random || !matches!(plan.addresses, AddressPlan::Uniform { map: true });
        let mut bytes = plan.size_bytes;
        if writes && may_overlap {
            bytes = bytes.max(plan.io_size_bytes.unwrap_or(0));
        }
        if plan.access.operations == JobOperations::TrimWrite {
            bytes = bytes.saturating_add(self.limit_bytes);
        }
        if plan.has_backlog {
            bytes = bytes.saturating_add(plan.size_bytes);
        }
        bytes
    }

    /// Returns to the start of the region.
    fn rewind(&mut self) {
        self.mix_until = 0;
        (self.zone_start, self.zone_issued) = (0, 0);
        self.forget_addresses();
    }

    /// Resets the addresses as if no request had been issued (`fio_file_reset`).
    pub(super) fn forget_addresses(&mut self) {
        self.last_start = [u64::MAX; 3];
        self.last_end = [0; 3];
        if let Addresses::Uniform(Some(map)) = &mut self.addresses {
            map.reset();
        }
    }

    /// Restarts the generators. fio does not restart those of zipf, pareto and normal.
    fn reseed(&mut self) {
        let seeds = self.plan.seeds;
        for operation in RequestOperation::ALL {
            self.sizes[operation as usize].generator = size_generator(&self.plan, operation);
            self.sequential_or_random[operation as usize] = Taus88::new(seeds.seed(Purpose::SequentialOrRandom));
        }
        self.offset_generator = OffsetGenerator::new(seeds.seed(Purpose::Block), self.plan.offsets_64);
        self.mix_generator = Taus88::new(seeds.seed(Purpose::Mix));
        if let Addresses::Zoned(_, generator) = &mut self.addresses {
            *generator = Taus88::new(seeds.seed(Purpose::Zone));
        }
        if let PlacementSource::Random(_, generator) = &mut self.placement {
            *generator = Taus88::new(seeds.seed(Purpose::Placement));
        }
    }

    /// Number of requests of this size before a limit can cut one short.
    pub(super) fn requests_within_limits(&self, bytes: u64) -> u64 {
        if self.is_unbounded() {
            return u64::MAX;
        }
        let room_bytes = self.pass.map_or(0, |(_, end)| end) - self.bytes;
        if self.plan.endless {
            return room_bytes.div_ceil(bytes);
        }
        let room_bytes = room_bytes.min(self.limit_bytes - self.counted_bytes);
        room_bytes.div_ceil(bytes).min(self.limit_requests - self.requests())
    }
}
