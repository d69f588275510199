//! Addresses of the requests of a stream.

use super::JobStream;
use super::addresses::Addresses;
use super::sizes::DRAWS_MAX;
use crate::RequestOperation;
use crate::fio::job::JobOperations;
use crate::fio::plan::{JobPlan, StridePlan};

impl JobStream {
    /// Base of the offsets, which is the first byte of the region or zone.
    #[inline]
    pub(super) fn start_bytes(&self) -> u64 {
        self.plan.start_bytes + self.zone_start
    }

    /// Enters the next zone once this zone has enough requests. At its end, returns to the zone's
    /// start (`setup_strided_zone_mode`).
    #[cold]
    pub(super) fn enter_zone(&mut self, strides: StridePlan, operation: RequestOperation) {
        if self.zone_issued >= strides.issued_bytes {
            self.zone_issued = 0;
            let next = self.zone_start.saturating_add(strides.zone_bytes).saturating_add(strides.skipped_bytes);
            let is_on_drive = next < self.plan.device_bytes - self.plan.start_bytes;
            self.zone_start = if is_on_drive { next } else { 0 };
            assert!(self.start_bytes() < self.plan.device_bytes, "a zone begins on the drive");
            self.last_end[operation as usize] = 0;
        }
        if self.last_end[operation as usize] >= strides.zone_bytes {
            self.last_end[operation as usize] = 0;
        }
        if self.zone_issued.is_multiple_of(strides.zone_bytes) {
            self.forget_addresses();
        }
    }

    /// True if the next request draws an address. The first of every `requests_per_draw` requests
    /// does.
    fn is_drawn(&mut self) -> bool {
        assert!(self.until_draw > 0, "no request is left before the next drawn address");
        self.until_draw -= 1;
        let is_drawn = self.until_draw == 0;
        if is_drawn {
            self.until_draw = self.plan.requests_per_draw;
        }
        is_drawn
    }

    /// Returns an offset in the region. The second value is the block to mark in the random map, if
    /// the request counts in a map.
    #[inline]
    pub(super) fn next_offset(&mut self, operation: RequestOperation) -> Option<(u64, Option<u64>)> {
        if !self.plan.access.random {
            return Some((self.next_sequential(operation)?, None));
        }
        if self.plan.access.operations == JobOperations::TrimWrite && operation == RequestOperation::Write {
            return Some((self.last_start[RequestOperation::Trim as usize], None));
        }
        if self.plan.requests_per_draw > 1 && !self.is_drawn() {
            let last = self.last_start[operation as usize];
            let offset = match (self.plan.repeats_address, last) {
                (true, u64::MAX) => Some(0),
                (true, last) => Some(last),
                (false, _) => self.next_sequential(operation),
            };
            // At the end of the region, a block is drawn. As in fio, the random map does not record
            // it.
            let offset =
                offset.or_else(|| Some(self.next_block(operation)? * self.sizes[operation as usize].align_bytes));
            return Some((offset?, None));
        }
        let percent = self.plan.percentage_random[operation as usize];
        let sequential = percent < 100 && self.sequential_or_random[operation as usize].between(1, 100) > percent;
        if sequential && let Some(offset) = self.next_sequential(operation) {
            return Some((offset, None));
        }
        let block = self.next_block(operation)?;
        Some((block * self.sizes[operation as usize].align_bytes, (!sequential).then_some(block)))
    }

    #[inline]
    fn next_sequential(&mut self, operation: RequestOperation) -> Option<u64> {
        if self.plan.step_bytes != 0 {
            return self.next_with_holes(operation);
        }
        self.wrap(operation);
        let end = self.last_end[operation as usize];
        (self.start_bytes() + end < self.plan.device_bytes).then_some(end)
    }

    /// Returns from behind the end of the region to its start if the job goes on there.
    #[inline]
    fn wrap(&mut self, operation: RequestOperation) {
        let end = &mut self.last_end[operation as usize];
        if self.zone_start + *end >= self.plan.region_bytes {
            let overlaps = self.plan.io_size_bytes.is_some_and(|bytes| bytes > self.plan.size_bytes);
            if self.plan.endless || (overlaps && self.plan.access.operations.include(RequestOperation::Write)) {
                *end = 0;
            }
        }
    }

    /// Returns the next offset of a job such as `rw=read:-8k`. The step counts from the end of the
    /// last request. Forwards it wraps at the end of the drive, backwards at its start (`io_u.c`:
    /// `get_next_seq_offset`). As in fio, a forward step beyond the drive leads to twice the
    /// region's start. A backward job on a region that does not start at 0 begins at the byte
    /// of the drive whose number is the region's length.
    #[cold]
    fn next_with_holes(&mut self, operation: RequestOperation) -> Option<u64> {
        self.wrap(operation);
        let start_bytes = self.start_bytes();
        let JobPlan { region_bytes, device_bytes, step_bytes, .. } = self.plan;
        let end = self.last_end[operation as usize];
        if start_bytes + end >= device_bytes {
            return None;
        }
        let length = region_bytes.min(device_bytes);
        let from = if end == 0 && start_bytes > 0 && step_bytes < 0 { length.wrapping_sub(start_bytes) } else { end };
        if from == 0 {
            return Some(0);
        }
        Some(match from.wrapping_add_signed(step_bytes) {
            offset if offset < device_bytes => offset,
            _ if step_bytes > 0 => start_bytes,
            _ => length.wrapping_add_signed(step_bytes),
        })
    }

    /// Draws a random block of the region.
    #[inline]
    pub(super) fn next_block(&mut self, operation: RequestOperation) -> Option<u64> {
        let last_block = self.sizes[operation as usize].last_block;
        match &mut self.addresses {
            Addresses::Sequential => unreachable!("a sequential job draws no blocks"),
            Addresses::Uniform(map) => {
                let drawn = (last_block * self.offset_generator.next_fraction()) as u64;
                match map {
                    None => Some(drawn),
                    Some(map) => map.free_from(drawn).or_else(|| {
                        // A full map ends the pass. An endless job restarts the map instead.
                        self.plan.endless.then(|| self.next_block_of_new_map(operation))
                    }),
                }
            }
            Addresses::Skewed(skew) => {
                let sizes = &self.sizes[operation as usize];
                for _ in 0..DRAWS_MAX {
                    let block = skew.next();
                    // fio can draw a block beyond the region, and then ends the job. A partial
                    // block at the end of the drive counts as a block. `ba` and unequal sizes of
                    // reads and writes stretch the numbers. A stream that ends by chance is no
                    // workload, so the draw is repeated.
                    let offset = block * sizes.align_bytes;
                    let end = self.plan.start_bytes + self.zone_start + offset + sizes.min_bytes;
                    if offset < self.plan.region_bytes && end <= self.plan.device_bytes {
                        return Some(block);
                    }
                }
                // Nearly all draws lie beyond the region, so the next one is folded into it.
                let left = (self.plan.device_bytes - self.plan.start_bytes)
                    .saturating_sub(self.zone_start + sizes.min_bytes)
                    + 1;
                let end = self.plan.region_bytes.min(left);
                Some(skew.next() % end.div_ceil(sizes.align_bytes).max(1))
            }
            Addresses::Sequence(blocks, strides) => {
                let issued = self.requests[operation as usize];
                let length = blocks.len() as u64;
                let round = if *strides { issued / length * length } else { 0 };
                let block = round + blocks[(issued % length) as usize];
                (block < self.plan.region_bytes / self.sizes[operation as usize].min_bytes).then_some(block)
            }
            Addresses::Zoned(tables, generator) => match &tables[operation as usize] {
                Some(table) => {
                    let (first, count) = table.next(generator);
                    Some(first + (count as f64 * self.offset_generator.next_fraction()) as u64)
                }
                None => Some((last_block * self.offset_generator.next_fraction()) as u64),
            },
        }
    }

    #[cold]
    fn next_block_of_new_map(&mut self, operation: RequestOperation) -> u64 {
        self.last_start = [u64::MAX; 3];
        self.last_end = [0; 3];
        let Addresses::Uniform(Some(map)) = &mut self.addresses else {
            unreachable!("only full maps are started over")
        };
        map.reset();
        (self.sizes[operation as usize].last_block * self.offset_generator.next_fraction()) as u64
    }
}
