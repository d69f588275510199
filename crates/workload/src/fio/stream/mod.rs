//! The requests of one job instance, in the order in which fio would issue them.
//!
//! A [`JobStream`] runs fio's job loop without its I/O: choose a direction, an offset, a size and a placement, count, and start
//! over when a pass is done (`io_u.c` and `backend.c`: `get_rw_ddir`, `get_next_offset`, `get_next_buflen`, `do_io`, `keep_running`).
//! Every decision comes from the generator that fio uses for it, so the sequence is fio's, request by request.
//!
//! It has no clock and does not know about other jobs; `schedule` merges streams.

use crate::{Operation, PlacementIndex, Request};

use super::job::Operations;
use super::plan::{AddressPlan, Plan, StridePlan};
use super::random::{Generator, Purpose, Taus88};
use super::value::PerDirection;

mod addresses;
mod placement;
mod read_back;
mod sizes;
#[cfg(test)]
mod tests;
mod write_mode;

use addresses::Addresses;
use placement::Placement;
use read_back::{Piece, ReadBack};
use sizes::{DRAWS_MAX, Sizes, size_generator};
use write_mode::WriteModes;

/// What all requests of a plain stream have in common: one operation, one size, no decision but the address.
#[derive(Debug, Clone, Copy)]
struct Plain {
    operation: Operation,
    bytes: u64,
    placement: Option<PlacementIndex>,
}

/// Requests that are drawn ahead so that their cache misses in the random map overlap.
const LOOKAHEAD: usize = 64;

/// The requests of one instance of a job.
#[derive(Debug, Clone)]
pub struct JobStream {
    stream: u16,
    plan: Plan,
    plain: Option<Plain>,
    addresses: Addresses,
    sizes: PerDirection<Sizes>,
    placement: Placement,
    write_modes: Option<Box<WriteModes>>,
    offset_generator: Generator,
    mix_generator: Taus88,
    sequential_or_random: PerDirection<Taus88>,
    /// Where the last request of a direction started and ended, in the region. `u64::MAX`: there was none.
    last_start: PerDirection<u64>,
    last_end: PerDirection<u64>,
    /// Direction of a read/write mix, and how many requests it keeps it.
    mix: Operation,
    mix_until: u64,
    requests: PerDirection<u64>,
    /// What `verify` reads back, and how many such reads there were; they are not counted in `requests`.
    read_back: Option<Box<ReadBack>>,
    reads_back: u64,
    /// Requests until an address is drawn again, that one included.
    until_draw: u64,
    /// Where the zone of `zonemode=strided` begins in the region, and what was issued in it, bytes.
    zone_start: u64,
    zone_issued: u64,
    /// Ranges that the trim begun last may still have.
    ranges_left: u64,
    /// Bytes of all requests, and of those that `size` and `io_size` count.
    bytes: u64,
    counted_bytes: u64,
    /// Value of `bytes` when this pass began and at which it ends; none before the first.
    pass: Option<(u64, u64)>,
    loops_left: u64,
    region_done: bool,
    limit_bytes: u64,
    limit_requests: u64,
}

impl JobStream {
    /// A stream that carries out a plan under this number.
    pub fn new(plan: Plan, stream: u16) -> Self {
        let seeds = plan.seeds;
        let loops = plan.loops;
        let twice = u64::from(plan.access.operations == Operations::TrimWrite) + 1;
        let sizes = Operation::ALL.map(|operation| Sizes::new(&plan, operation));
        let placement = Placement::new(&plan);
        let read_back = ReadBack::new(&plan);
        let takes_notes = read_back.as_ref().is_some_and(|back| back.takes_notes());
        Self {
            stream,
            plain: Plain::of(&plan, &placement).filter(|_| !takes_notes),
            addresses: Addresses::new(&plan),
            sizes,
            placement,
            write_modes: WriteModes::new(&plan),
            offset_generator: Generator::new(seeds.of(Purpose::Block), plan.offsets_64),
            mix_generator: Taus88::new(seeds.of(Purpose::Mix)),
            sequential_or_random: [(); 3].map(|()| Taus88::new(seeds.of(Purpose::SequentialOrRandom))),
            last_start: [u64::MAX; 3],
            last_end: [0; 3],
            mix: Operation::Read,
            mix_until: 0,
            requests: [0; 3],
            read_back,
            reads_back: 0,
            until_draw: 1,
            zone_start: 0,
            zone_issued: 0,
            ranges_left: 0,
            bytes: 0,
            counted_bytes: 0,
            pass: None,
            loops_left: loops,
            region_done: false,
            limit_bytes: plan.io_size_bytes.unwrap_or(plan.size_bytes).saturating_mul(loops),
            // In a trim-and-write job fio counts a pair as one.
            limit_requests: plan
                .number_ios
                .map_or(u64::MAX, |count| count.saturating_mul(loops).saturating_mul(twice)),
            plan,
        }
    }

    /// The plan that the stream carries out.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Share of its bytes that it has issued, 0 to 1; `None` if it never ends.
    pub fn share_done(&self) -> Option<f64> {
        (!self.plan.endless).then(|| (self.counted_bytes as f64 / self.limit_bytes.max(1) as f64).min(1.0))
    }

    /// Bytes issued so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests issued so far.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum::<u64>() + self.reads_back
    }

    /// Appends up to `limit` requests, the same that [`Self::next`] would return; returns how many. Fewer: the job is done.
    pub fn fill(&mut self, out: &mut Vec<Request>, limit: usize) -> usize {
        let before = out.len();
        let full = before + limit;
        while out.len() < full {
            if let Some(plain) = self.plain
                && self.pass_goes_on()
                && self.fill_plainly(plain, out, (full - out.len()) as u64) > 0
            {
                continue;
            }
            let Some(request) = self.next() else { break };
            out.push(request);
        }
        out.len() - before
    }

    /// The next request; `None` once and for all when the job is done.
    #[inline]
    #[allow(clippy::should_implement_trait)] // `Iterator` would promise adaptors that the merging never uses.
    pub fn next(&mut self) -> Option<Request> {
        loop {
            let goes_on = self.ranges_left > 0 || self.pass_goes_on();
            if let Some(back) = &mut self.read_back
                && let Some(piece) = back.next(goes_on)
            {
                return Some(self.read_back(piece));
            }
            if goes_on {
                if let Some(request) = self.issue() {
                    if let Some(modes) = &mut self.write_modes
                        && request.operation == Operation::Write
                    {
                        match modes.next(request) {
                            Some(request) => return Some(request),
                            None => continue,
                        }
                    }
                    if let Some(back) = &mut self.read_back {
                        let offset = request.offset_bytes - self.plan.start_bytes;
                        back.note(request.operation, (offset, u64::from(request.bytes)));
                    }
                    return Some(request);
                }
                // A trim whose next range is not found has fewer; the job ends where its first is not found.
                if std::mem::take(&mut self.ranges_left) > 0 {
                    continue;
                }
                self.region_done = true;
            }
            let reads_on = self.pass.is_some() && self.read_back.as_mut().is_some_and(|back| back.end_pass());
            if !reads_on && !self.begin_pass() {
                return None;
            }
        }
    }

    /// The read of a piece that was written.
    #[cold]
    fn read_back(&mut self, (offset, bytes): Piece) -> Request {
        self.reads_back += 1;
        self.bytes += bytes;
        Request {
            stream: self.stream,
            operation: Operation::Read,
            offset_bytes: self.plan.start_bytes + offset,
            bytes: bytes as u32,
            placement: None,
        }
    }

    /// The next write of the pass that goes on, if any comes.
    fn next_write_of_pass(&mut self) -> Option<Piece> {
        while self.pass_goes_on() {
            let request = self.issue()?;
            if request.operation == Operation::Write {
                return Some((request.offset_bytes - self.plan.start_bytes, u64::from(request.bytes)));
            }
        }
        None
    }

    /// Whether a pass has no end. One that is verified has, as in fio.
    #[inline]
    fn is_unbounded(&self) -> bool {
        self.plan.endless && !self.plan.verifies
    }

    #[inline]
    fn pass_goes_on(&self) -> bool {
        let Some((_, end)) = self.pass else { return false };
        !self.region_done
            && (self.is_unbounded()
                || (self.bytes < end
                    && (self.plan.endless
                        || (self.counted_bytes < self.limit_bytes && self.requests() < self.limit_requests))))
    }

    /// fio's `keep_running`: whether there is another pass, which is then prepared.
    #[cold]
    fn begin_pass(&mut self) -> bool {
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
        let largest = self
            .sizes
            .iter()
            .map(|sizes| sizes.max_bytes)
            .max()
            .expect("three directions");
        self.requests() < self.limit_requests
            && limit.saturating_sub(self.bytes) >= largest
            && (!self.region_done || self.plan.io_size_bytes.is_some() || self.plan.reads_back)
    }

    /// Bytes after which one pass ends (`total_bytes` of fio's `do_io`).
    fn pass_bytes(&self) -> u64 {
        let plan = &self.plan;
        let writes = plan.access.operations.include(Operation::Write);
        let may_overlap = !plan.access.random || !matches!(plan.addresses, AddressPlan::Uniform { map: true });
        let mut bytes = plan.size_bytes;
        if writes && may_overlap {
            bytes = bytes.max(plan.io_size_bytes.unwrap_or(0));
        }
        if plan.access.operations == Operations::TrimWrite {
            bytes = bytes.saturating_add(self.limit_bytes);
        }
        if plan.has_backlog {
            bytes = bytes.saturating_add(plan.size_bytes);
        }
        bytes
    }

    /// Back to the start of the region.
    fn rewind(&mut self) {
        self.mix_until = 0;
        (self.zone_start, self.zone_issued) = (0, 0);
        self.forget_addresses();
    }

    /// As if no request had been issued (`fio_file_reset`).
    fn forget_addresses(&mut self) {
        self.last_start = [u64::MAX; 3];
        self.last_end = [0; 3];
        if let Addresses::Uniform(Some(map)) = &mut self.addresses {
            map.reset();
        }
    }

    /// Starts the generators again. fio leaves those of zipf, pareto and normal as they are.
    fn reseed(&mut self) {
        let seeds = self.plan.seeds;
        for operation in Operation::ALL {
            self.sizes[operation as usize].generator = size_generator(&self.plan, operation);
            self.sequential_or_random[operation as usize] = Taus88::new(seeds.of(Purpose::SequentialOrRandom));
        }
        self.offset_generator = Generator::new(seeds.of(Purpose::Block), self.plan.offsets_64);
        self.mix_generator = Taus88::new(seeds.of(Purpose::Mix));
        if let Addresses::Zoned(_, generator) = &mut self.addresses {
            *generator = Taus88::new(seeds.of(Purpose::Zone));
        }
        if let Placement::Random(_, generator) = &mut self.placement {
            *generator = Taus88::new(seeds.of(Purpose::Placement));
        }
    }

    /// Requests that no limit can cut short.
    fn requests_within_limits(&self, bytes: u64) -> u64 {
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

    /// Appends up to `limit` requests of a plain stream while its pass goes on; 0 leaves the next one to [`Self::issue`].
    fn fill_plainly(&mut self, plain: Plain, out: &mut Vec<Request>, limit: u64) -> u64 {
        let Plain {
            operation,
            bytes,
            placement,
        } = plain;
        let limit = limit.min(self.requests_within_limits(bytes));
        let (stream, start_bytes) = (self.stream, self.plan.start_bytes);
        let request = |offset: u64| Request {
            stream,
            operation,
            offset_bytes: start_bytes + offset,
            bytes: bytes as u32,
            placement,
        };
        let before = out.len();
        let align_bytes = self.sizes[operation as usize].align_bytes;
        let last_block = self.sizes[operation as usize].last_block;
        // Of the region, which has fewer than 2^63: the signed conversion is one instruction.
        let block = |fraction: f64| (last_block * fraction) as i64 as u64;
        match &mut self.addresses {
            Addresses::Sequential => {
                let first = self.last_end[operation as usize];
                let starts_in_region = self.plan.region_bytes.saturating_sub(first).div_ceil(bytes);
                let ends_on_drive = (self.plan.device_bytes - start_bytes - first) / bytes;
                let count = limit.min(starts_in_region).min(ends_on_drive);
                out.extend((0..count).map(|index| request(first + index * bytes)));
            }
            Addresses::Uniform(None) => {
                let mut fractions = [0.0; LOOKAHEAD];
                let fractions = &mut fractions[..limit.min(LOOKAHEAD as u64) as usize];
                self.offset_generator.next_fractions(fractions);
                let requests = fractions.iter().map(|fraction| request(block(*fraction) * align_bytes));
                out.extend(requests);
            }
            Addresses::Uniform(Some(map)) => {
                // With as many untouched blocks as draws none of them fails, so that none is drawn in vain.
                let count = limit.min(map.free_blocks()).min(LOOKAHEAD as u64) as usize;
                let mut fractions = [0.0; LOOKAHEAD];
                let fractions = &mut fractions[..count];
                self.offset_generator.next_fractions(fractions);
                let mut drawn = [0; LOOKAHEAD];
                let drawn = &mut drawn[..count];
                let mut words = 0;
                for (drawn, fraction) in drawn.iter_mut().zip(fractions) {
                    *drawn = block(*fraction);
                    words |= map.word(*drawn);
                }
                std::hint::black_box(words);
                for block in drawn {
                    let free = map.free_from(*block).expect("some are untouched");
                    map.set(free);
                    out.push(request(free * align_bytes));
                }
            }
            Addresses::Skewed(..) | Addresses::Zoned(..) | Addresses::Sequence(..) => {
                for _ in 0..limit {
                    let Some(block) = self.next_block(operation) else { break };
                    out.push(request(block * align_bytes));
                }
            }
        }
        let count = (out.len() - before) as u64;
        if let Some(last) = out[before..].last() {
            self.last_start[operation as usize] = last.offset_bytes - start_bytes;
            self.last_end[operation as usize] = last.offset_bytes - start_bytes + bytes;
        }
        self.requests[operation as usize] += count;
        self.bytes += count * bytes;
        self.counted_bytes += count * bytes;
        count
    }

    #[inline]
    fn issue(&mut self) -> Option<Request> {
        let operation = match self.plan.access.operations {
            Operations::Only(operation) => operation,
            Operations::ReadWrite => self.next_of_mix(),
            Operations::TrimWrite => self.next_of_pair(),
        };
        if let Some(strides) = self.plan.strides {
            self.enter_zone(strides, operation);
        }
        let (offset, map_block) = self.next_offset(operation)?;
        if offset >= self.plan.region_bytes {
            return None;
        }
        self.tell_pairs_apart(operation, offset);
        let mut bytes = self.next_size(operation, self.zone_start + offset)?;
        let offset_bytes = self.start_bytes() + offset;
        let placement = if operation == Operation::Write {
            self.placement.of(offset_bytes)
        } else {
            None
        };
        if offset_bytes + bytes > self.plan.device_bytes {
            return None;
        }
        if let (Some(block), Addresses::Uniform(Some(map))) = (map_block, &mut self.addresses) {
            let unit = self.sizes[operation as usize].min_bytes;
            if bytes == unit {
                map.set(block);
            } else {
                let run_bytes = map.set_run(block, bytes.div_ceil(unit)) * unit;
                // fio does not shorten the ranges of a trim.
                if self.plan.ranges_per_trim == 1 {
                    bytes = bytes.min(run_bytes);
                }
            }
        }
        self.last_start[operation as usize] = offset;
        self.last_end[operation as usize] = offset + bytes;
        self.zone_issued += bytes;
        if self.ranges_left == 0 {
            self.requests[operation as usize] += 1;
            self.ranges_left = self.plan.ranges_per_trim;
        }
        self.ranges_left -= 1;
        self.bytes += bytes;
        if operation == Operation::Write || self.plan.access.operations != Operations::TrimWrite {
            self.counted_bytes += bytes;
        }
        Some(Request {
            stream: self.stream,
            operation,
            offset_bytes,
            bytes: bytes as u32,
            placement,
        })
    }

    /// What offsets count from: the region's first byte, or that of the zone.
    #[inline]
    fn start_bytes(&self) -> u64 {
        self.plan.start_bytes + self.zone_start
    }

    /// Goes to the next zone when enough was issued in this one, or back to its start at its end (`setup_strided_zone_mode`).
    #[cold]
    fn enter_zone(&mut self, strides: StridePlan, operation: Operation) {
        if self.zone_issued >= strides.issued_bytes {
            self.zone_issued = 0;
            let next = self
                .zone_start
                .saturating_add(strides.zone_bytes)
                .saturating_add(strides.skipped_bytes);
            let is_on_drive = next < self.plan.device_bytes - self.plan.start_bytes;
            self.zone_start = if is_on_drive { next } else { 0 };
            self.last_end[operation as usize] = 0;
        }
        if self.last_end[operation as usize] >= strides.zone_bytes {
            self.last_end[operation as usize] = 0;
        }
        if self.zone_issued.is_multiple_of(strides.zone_bytes) {
            self.forget_addresses();
        }
    }

    /// Direction of the next request of a read/write mix.
    fn next_of_mix(&mut self) -> Operation {
        if self.requests[self.mix as usize] >= self.mix_until {
            let reads = self.mix_generator.between(1, 100) <= self.plan.rwmixread;
            let drawn = if reads { Operation::Read } else { Operation::Write };
            if drawn != self.mix {
                let other_percent = if self.mix == Operation::Read {
                    100 - self.plan.rwmixread
                } else {
                    self.plan.rwmixread
                };
                self.mix_until = self.requests[self.mix as usize] * u64::from(other_percent) / 100;
            }
            self.mix = drawn;
        }
        self.mix
    }

    /// Trim, then write of the same block.
    fn next_of_pair(&self) -> Operation {
        let same = self.last_start[Operation::Write as usize] == self.last_start[Operation::Trim as usize];
        if same { Operation::Trim } else { Operation::Write }
    }

    /// A random trim that hits the last block again must not look like a finished pair.
    #[inline]
    fn tell_pairs_apart(&mut self, operation: Operation, offset: u64) {
        let pairs = self.plan.access.operations == Operations::TrimWrite && self.plan.access.random;
        if pairs && operation == Operation::Trim && self.last_start[Operation::Trim as usize] == offset {
            self.last_start[Operation::Write as usize] = offset.wrapping_sub(1);
        }
    }

    /// Whether the next request's address is drawn: that of each so many, beginning with the first.
    fn is_drawn(&mut self) -> bool {
        self.until_draw -= 1;
        let is_drawn = self.until_draw == 0;
        if is_drawn {
            self.until_draw = self.plan.requests_per_draw;
        }
        is_drawn
    }

    /// Offset in the region, and the block to note in the random map, if there is one and the request counts in it.
    #[inline]
    fn next_offset(&mut self, operation: Operation) -> Option<(u64, Option<u64>)> {
        if !self.plan.access.random {
            return Some((self.next_sequential(operation)?, None));
        }
        if self.plan.access.operations == Operations::TrimWrite && operation == Operation::Write {
            return Some((self.last_start[Operation::Trim as usize], None));
        }
        if self.plan.requests_per_draw > 1 && !self.is_drawn() {
            let last = self.last_start[operation as usize];
            let offset = match (self.plan.repeats_address, last) {
                (true, u64::MAX) => Some(0),
                (true, last) => Some(last),
                (false, _) => self.next_sequential(operation),
            };
            // Where the region ends a block is drawn, which as in fio the random map does not learn of.
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
        Some((
            block * self.sizes[operation as usize].align_bytes,
            (!sequential).then_some(block),
        ))
    }

    #[inline]
    fn next_sequential(&mut self, operation: Operation) -> Option<u64> {
        if self.plan.step_bytes != 0 {
            return self.next_with_holes(operation);
        }
        self.wrap(operation);
        let end = self.last_end[operation as usize];
        (self.start_bytes() + end < self.plan.device_bytes).then_some(end)
    }

    /// Goes back to the start of the region behind its end, if the job goes on there.
    #[inline]
    fn wrap(&mut self, operation: Operation) {
        let end = &mut self.last_end[operation as usize];
        if self.zone_start + *end >= self.plan.region_bytes {
            let overlaps = self
                .plan
                .io_size_bytes
                .is_some_and(|bytes| bytes > self.plan.size_bytes);
            if self.plan.endless || (overlaps && self.plan.access.operations.include(Operation::Write)) {
                *end = 0;
            }
        }
    }

    /// The next offset of `rw=read:-8k`: the step counts from the end of the last request, forwards it wraps at the end of the drive
    /// and backwards at its start (`io_u.c`: `get_next_seq_offset`). As in fio a step forwards beyond the drive leads to twice the
    /// start of the region, and a region that does not start at 0 is read backwards from the byte that has its length as number.
    #[cold]
    fn next_with_holes(&mut self, operation: Operation) -> Option<u64> {
        self.wrap(operation);
        let start_bytes = self.start_bytes();
        let Plan {
            region_bytes,
            device_bytes,
            step_bytes,
            ..
        } = self.plan;
        let end = self.last_end[operation as usize];
        if start_bytes + end >= device_bytes {
            return None;
        }
        let length = region_bytes.min(device_bytes);
        let from = if end == 0 && start_bytes > 0 && step_bytes < 0 {
            length.wrapping_sub(start_bytes)
        } else {
            end
        };
        if from == 0 {
            return Some(0);
        }
        Some(match from.wrapping_add_signed(step_bytes) {
            offset if offset < device_bytes => offset,
            _ if step_bytes > 0 => start_bytes,
            _ => length.wrapping_add_signed(step_bytes),
        })
    }

    /// Random block of the region.
    #[inline]
    fn next_block(&mut self, operation: Operation) -> Option<u64> {
        let last_block = self.sizes[operation as usize].last_block;
        match &mut self.addresses {
            Addresses::Sequential => unreachable!("a sequential job draws no blocks"),
            Addresses::Uniform(map) => {
                let drawn = (last_block * self.offset_generator.next_fraction()) as u64;
                match map {
                    None => Some(drawn),
                    Some(map) => map.free_from(drawn).or_else(|| {
                        // A full map ends the pass, unless the job goes on for ever: then it starts the map over at once.
                        self.plan.endless.then(|| self.next_block_of_new_map(operation))
                    }),
                }
            }
            Addresses::Skewed(skew) => {
                let sizes = &self.sizes[operation as usize];
                for _ in 0..DRAWS_MAX {
                    let block = skew.next();
                    // fio can draw a block beyond the region (a part of a block at the end of the drive counts as one; `ba` and
                    // unequal sizes of reads and writes stretch the numbers) and ends the job when it does. A stream that ends by
                    // chance is no workload, so such a draw is repeated.
                    let offset = block * sizes.align_bytes;
                    let end = self.plan.start_bytes + self.zone_start + offset + sizes.min_bytes;
                    if offset < self.plan.region_bytes && end <= self.plan.device_bytes {
                        return Some(block);
                    }
                }
                // Nearly all of what is drawn lies beyond the region: fold the next one into it.
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
    fn next_block_of_new_map(&mut self, operation: Operation) -> u64 {
        self.last_start = [u64::MAX; 3];
        self.last_end = [0; 3];
        let Addresses::Uniform(Some(map)) = &mut self.addresses else {
            unreachable!("only full maps are started over")
        };
        map.reset();
        (self.sizes[operation as usize].last_block * self.offset_generator.next_fraction()) as u64
    }

    #[inline]
    fn next_size(&mut self, operation: Operation, offset: u64) -> Option<u64> {
        let random_pair = self.plan.access.operations == Operations::TrimWrite && self.plan.access.random;
        if random_pair && operation == Operation::Write {
            let trim = Operation::Trim as usize;
            return Some(self.last_end[trim] - self.last_start[trim]);
        }
        let sizes = &mut self.sizes[operation as usize];
        if sizes.min_bytes == sizes.max_bytes {
            return Some(sizes.min_bytes);
        }
        sizes.draw(self.plan.region_bytes.saturating_sub(offset))
    }
}

impl Plain {
    fn of(plan: &Plan, placement: &Placement) -> Option<Self> {
        let Operations::Only(operation) = plan.access.operations else {
            return None;
        };
        let block = &plan.blocks[operation as usize];
        let placement = match placement {
            _ if operation != Operation::Write => None,
            Placement::None => None,
            Placement::Fixed(index) => Some(*index),
            Placement::RoundRobin(..) | Placement::Random(..) | Placement::Scheme(_) => return None,
        };
        // A map of smaller blocks than the requests finds blocks beyond the region.
        let one_size = block.min_bytes == block.max_bytes
            && (block.min_bytes == plan.min_bytes() || plan.addresses != AddressPlan::Uniform { map: true });
        let one_order = plan.requests_per_draw == 1
            && plan.step_bytes == 0
            && plan.strides.is_none()
            && !matches!(plan.addresses, AddressPlan::Sequence { .. })
            && (!plan.access.random || plan.percentage_random[operation as usize] == 100);
        let one_command = plan.ranges_per_trim == 1 && (operation != Operation::Write || plan.write_modes.is_empty());
        (one_size && one_order && one_command).then_some(Self {
            operation,
            bytes: block.min_bytes,
            placement,
        })
    }
}
