//! The requests of one job instance, in the order in which fio would issue them.
//!
//! A [`JobStream`] runs fio's job loop without its I/O: choose a direction, an offset, a size and a placement, count, and start
//! over when a pass is done (`io_u.c` and `backend.c`: `get_rw_ddir`, `get_next_offset`, `get_next_buflen`, `do_io`, `keep_running`).
//! Every decision comes from the generator that fio uses for it, so the sequence is fio's, request by request.
//!
//! It has no clock and does not know about other jobs; `schedule` merges streams.

use crate::{Operation, PlacementIndex, Request};

use super::distribution::{Skew, ZoneTable};
use super::job::{Operations, SchemeEntry};
use super::plan::{AddressPlan, PlacementPlan, Plan};
use super::random::{Generator, Purpose, Taus88};
use super::random_map::RandomMap;
use super::value::PerDirection;

/// Where the next address comes from.
#[derive(Debug, Clone)]
enum Addresses {
    Sequential,
    Uniform(Option<RandomMap>),
    Skewed(Skew),
    Zoned(PerDirection<ZoneTable>, Taus88),
}

/// How the next request's size is found.
#[derive(Debug, Clone)]
struct Sizes {
    min_bytes: u64,
    max_bytes: u64,
    align_bytes: u64,
    /// Sizes with the largest draw that takes them.
    split: Vec<(u64, u64)>,
    /// Blocks that offsets are drawn from.
    last_block: f64,
    generator: Generator,
}

#[derive(Debug, Clone)]
enum Placement {
    None,
    Fixed(PlacementIndex),
    RoundRobin(Vec<PlacementIndex>, usize),
    Random(Vec<PlacementIndex>, Taus88),
    Scheme(Vec<SchemeEntry>),
}

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
        Self {
            stream,
            plain: Plain::of(&plan, &placement),
            addresses: Addresses::new(&plan),
            sizes,
            placement,
            offset_generator: Generator::new(seeds.of(Purpose::Block), plan.offsets_64),
            mix_generator: Taus88::new(seeds.of(Purpose::Mix)),
            sequential_or_random: [(); 3].map(|()| Taus88::new(seeds.of(Purpose::SequentialOrRandom))),
            last_start: [u64::MAX; 3],
            last_end: [0; 3],
            mix: Operation::Read,
            mix_until: 0,
            requests: [0; 3],
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
        self.requests.iter().sum()
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
            if self.pass_goes_on() {
                if let Some(request) = self.issue() {
                    return Some(request);
                }
                self.region_done = true;
            }
            if !self.begin_pass() {
                return None;
            }
        }
    }

    #[inline]
    fn pass_goes_on(&self) -> bool {
        let Some((_, end)) = self.pass else { return false };
        !self.region_done
            && (self.plan.endless
                || (self.bytes < end && self.counted_bytes < self.limit_bytes && self.requests() < self.limit_requests))
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
            && (!self.region_done || self.plan.io_size_bytes.is_some())
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
        bytes
    }

    /// Back to the start of the region.
    fn rewind(&mut self) {
        self.last_start = [u64::MAX; 3];
        self.last_end = [0; 3];
        self.mix_until = 0;
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
        if self.plan.endless {
            return u64::MAX;
        }
        let end = self.pass.map_or(0, |(_, end)| end);
        let room_bytes = (end - self.bytes).min(self.limit_bytes - self.counted_bytes);
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
        match &mut self.addresses {
            Addresses::Sequential => {
                let first = self.last_end[operation as usize];
                let starts_in_region = self.plan.region_bytes.saturating_sub(first).div_ceil(bytes);
                let ends_on_drive = (self.plan.device_bytes - start_bytes - first) / bytes;
                let count = limit.min(starts_in_region).min(ends_on_drive);
                out.extend((0..count).map(|index| request(first + index * bytes)));
            }
            Addresses::Uniform(None) => {
                let mut push = |fraction: f64| out.push(request((last_block * fraction) as u64 * align_bytes));
                self.offset_generator.take_fractions(limit, &mut push);
            }
            Addresses::Uniform(Some(map)) => {
                // With as many untouched blocks as draws none of them fails, so that none is drawn in vain.
                let count = limit.min(map.free_blocks()).min(LOOKAHEAD as u64) as usize;
                let mut drawn = [0; LOOKAHEAD];
                let mut next = drawn.iter_mut();
                self.offset_generator.take_fractions(count as u64, |fraction| {
                    *next.next().expect("as many places as draws") = (last_block * fraction) as u64;
                });
                std::hint::black_box(drawn[..count].iter().fold(0, |words, block| words | map.word(*block)));
                for block in &drawn[..count] {
                    let free = map.free_from(*block).expect("some are untouched");
                    map.set(free);
                    out.push(request(free * align_bytes));
                }
            }
            Addresses::Skewed(..) | Addresses::Zoned(..) => {
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
        let (offset, map_block) = self.next_offset(operation)?;
        if offset >= self.plan.region_bytes {
            return None;
        }
        self.tell_pairs_apart(operation, offset);
        let mut bytes = self.next_size(operation, offset)?;
        let offset_bytes = self.plan.start_bytes + offset;
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
                bytes = bytes.min(map.set_run(block, bytes.div_ceil(unit)) * unit);
            }
        }
        self.last_start[operation as usize] = offset;
        self.last_end[operation as usize] = offset + bytes;
        self.requests[operation as usize] += 1;
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

    /// Offset in the region, and the block to note in the random map, if there is one and the request counts in it.
    #[inline]
    fn next_offset(&mut self, operation: Operation) -> Option<(u64, Option<u64>)> {
        if !self.plan.access.random {
            return Some((self.next_sequential(operation)?, None));
        }
        if self.plan.access.operations == Operations::TrimWrite && operation == Operation::Write {
            return Some((self.last_start[Operation::Trim as usize], None));
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
        let end = &mut self.last_end[operation as usize];
        if *end >= self.plan.region_bytes {
            let overlaps = self
                .plan
                .io_size_bytes
                .is_some_and(|bytes| bytes > self.plan.size_bytes);
            if self.plan.endless || (overlaps && self.plan.access.operations.include(Operation::Write)) {
                *end = 0;
            }
        }
        (self.plan.start_bytes + *end < self.plan.device_bytes).then_some(*end)
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
                loop {
                    let block = skew.next();
                    // fio can draw a block beyond the region (a part of a block at the end of the drive counts as one; `ba` and
                    // unequal sizes of reads and writes stretch the numbers) and ends the job when it does. A stream that ends by
                    // chance is no workload, so such a draw is repeated.
                    let offset = block * sizes.align_bytes;
                    let end = self.plan.start_bytes + offset + sizes.min_bytes;
                    if offset < self.plan.region_bytes && end <= self.plan.device_bytes {
                        return Some(block);
                    }
                }
            }
            Addresses::Zoned(tables, generator) => {
                let (first, count) = tables[operation as usize].next(generator);
                Some(first + (count as f64 * self.offset_generator.next_fraction()) as u64)
            }
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
        sizes.draw(self.plan.region_bytes - offset)
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
        let one_order = !plan.access.random || plan.percentage_random[operation as usize] == 100;
        (one_size && one_order).then_some(Self {
            operation,
            bytes: block.min_bytes,
            placement,
        })
    }
}

impl Sizes {
    fn new(plan: &Plan, operation: Operation) -> Self {
        let block = &plan.blocks[operation as usize];
        let generator = size_generator(plan, operation);
        // fio compares draw / percent with max / 100, in whole numbers.
        let per_percent = generator.max() / 100 + 1;
        let mut percent = 0.0;
        let split = block
            .split
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(bytes, share)| {
                percent += share;
                let last = if percent.fract() == 0.0 {
                    u128::from(percent as u64) * u128::from(per_percent)
                } else {
                    (percent * per_percent as f64) as u128
                };
                (*bytes, u64::try_from(last - 1).unwrap_or(u64::MAX))
            });
        Self {
            min_bytes: block.min_bytes,
            max_bytes: block.max_bytes,
            align_bytes: block.align_bytes,
            split: split.collect(),
            last_block: plan.last_block(operation) as f64,
            generator,
        }
    }

    /// A random size that fits into the rest of the region; `None` when not even the smallest does.
    fn draw(&mut self, room_bytes: u64) -> Option<u64> {
        if self.min_bytes > room_bytes {
            return None;
        }
        loop {
            let bytes = if self.split.is_empty() {
                self.min_bytes + (self.max_bytes as f64 * self.generator.next_fraction()) as u64
            } else {
                let draw = self.generator.next_bits();
                let taken = self
                    .split
                    .iter()
                    .find(|(bytes, last)| draw <= *last && *bytes <= room_bytes);
                taken.or(self.split.last()).map_or(self.min_bytes, |(bytes, _)| *bytes)
            };
            let bytes = (bytes - bytes % self.min_bytes).min(self.max_bytes);
            if bytes <= room_bytes {
                return Some(bytes);
            }
        }
    }
}

fn size_generator(plan: &Plan, operation: Operation) -> Generator {
    let purpose = match operation {
        Operation::Read => Purpose::BlockSizeRead,
        Operation::Write => Purpose::BlockSizeWrite,
        // In a trim-and-write job both must take the same sizes.
        Operation::Trim if plan.access.operations == Operations::TrimWrite => Purpose::BlockSizeWrite,
        Operation::Trim => Purpose::BlockSizeTrim,
    };
    Generator::new(plan.seeds.of(purpose), plan.sizes_64)
}

impl Addresses {
    fn new(plan: &Plan) -> Self {
        match &plan.addresses {
            AddressPlan::Sequential => Self::Sequential,
            AddressPlan::Uniform { map } => {
                Self::Uniform(map.then(|| RandomMap::new(plan.region_bytes.min(plan.device_bytes) / plan.min_bytes())))
            }
            AddressPlan::Skewed {
                kind,
                center,
                drawn_blocks,
                blocks,
            } => {
                let skew = Skew::new(*kind, *drawn_blocks, *center, plan.distribution_seed);
                Self::Skewed(skew.on_twin(*blocks))
            }
            AddressPlan::Zoned(zones) => Self::Zoned(
                Operation::ALL
                    .map(|operation| ZoneTable::of_percents(&zones[operation as usize], plan.last_block(operation))),
                Taus88::new(plan.seeds.of(Purpose::Zone)),
            ),
            AddressPlan::ZonedAbsolute(zones) => Self::Zoned(
                Operation::ALL.map(|operation| {
                    ZoneTable::of_bytes(&zones[operation as usize], plan.blocks[operation as usize].align_bytes)
                }),
                Taus88::new(plan.seeds.of(Purpose::Zone)),
            ),
        }
    }
}

impl Placement {
    fn new(plan: &Plan) -> Self {
        match &plan.placement {
            PlacementPlan::None => Self::None,
            PlacementPlan::RoundRobin(indices) if indices.len() == 1 => Self::Fixed(indices[0]),
            PlacementPlan::RoundRobin(indices) => Self::RoundRobin(indices.clone(), 0),
            PlacementPlan::Random(indices) => {
                Self::Random(indices.clone(), Taus88::new(plan.seeds.of(Purpose::Placement)))
            }
            PlacementPlan::Scheme(entries) => Self::Scheme(entries.clone()),
        }
    }

    #[inline]
    fn of(&mut self, offset_bytes: u64) -> Option<PlacementIndex> {
        match self {
            Self::None => None,
            Self::Fixed(index) => Some(*index),
            Self::RoundRobin(indices, next) => {
                let index = indices[*next];
                *next = if *next + 1 == indices.len() { 0 } else { *next + 1 };
                Some(index)
            }
            Self::Random(indices, generator) => Some(indices[generator.between(0, indices.len() as u32 - 1) as usize]),
            Self::Scheme(entries) => {
                let hit = entries
                    .iter()
                    .find(|entry| (entry.start_bytes..entry.end_bytes).contains(&offset_bytes));
                Some(hit.map_or(PlacementIndex::FIRST, |entry| entry.index))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Job, parse};
    use super::*;
    use crate::Target;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn jobs(text: &str) -> Vec<Job> {
        parse(text, "test.fio").unwrap_or_else(|error| panic!("{error}")).jobs
    }

    fn stream(text: &str, device_bytes: u64) -> JobStream {
        let plan = Plan::new(
            &jobs(text)[0],
            0,
            Target {
                device_bytes,
                placement_count: 8,
                ..Target::default()
            },
        )
        .unwrap_or_else(|error| panic!("{error}"));
        JobStream::new(plan, 0)
    }

    fn all(text: &str, device_bytes: u64) -> Vec<Request> {
        let mut requests = Vec::new();
        stream(text, device_bytes).fill(&mut requests, 1_000_000);
        assert!(requests.len() < 1_000_000, "the job does not end");
        requests
    }

    fn offsets(requests: &[Request]) -> Vec<u64> {
        requests.iter().map(|request| request.offset_bytes).collect()
    }

    /// First requests (kind, offset, bytes), their number and the last offset, as fio 3.42 issues them on a target called dev.bin.
    #[test]
    fn requests_are_those_of_fio() {
        use Operation::{Read, Write};
        type Golden<'a> = (&'a str, u64, [(Operation, u64, u32); 5], usize, u64);
        let goldens: [Golden; 5] = [
            (
                "[a]\nrw=randwrite\nbssplit=4k/60:16k/40\n",
                MIB,
                [
                    (Write, 1024000, 16384),
                    (Write, 905216, 16384),
                    (Write, 688128, 16384),
                    (Write, 540672, 4096),
                    (Write, 630784, 4096),
                ],
                147,
                151552,
            ),
            (
                "[a]\nrw=randrw\nrwmixread=70\nnorandommap\nrandseed=7\n",
                MIB,
                [
                    (Write, 528384, 4096),
                    (Write, 557056, 4096),
                    (Read, 847872, 4096),
                    (Read, 1044480, 4096),
                    (Read, 36864, 4096),
                ],
                256,
                40960,
            ),
            (
                "[a]\nfilename=dev.bin\nrw=randwrite\nrandom_distribution=zipf:1.2\n",
                8 * MIB,
                [
                    (Write, 7208960, 4096),
                    (Write, 3100672, 4096),
                    (Write, 6004736, 4096),
                    (Write, 6762496, 4096),
                    (Write, 5304320, 4096),
                ],
                2048,
                2412544,
            ),
            (
                "[a]\nrw=randwrite\nrandom_distribution=zoned:80/20:20/80\nrandom_generator=tausworthe64\n",
                8 * MIB,
                [
                    (Write, 606208, 4096),
                    (Write, 253952, 4096),
                    (Write, 1236992, 4096),
                    (Write, 5251072, 4096),
                    (Write, 7397376, 4096),
                ],
                2048,
                847872,
            ),
            (
                "[a]\nrw=randread\nbsrange=1k-16k\npercentage_random=50\noffset=25%\nsize=50%\n",
                MIB,
                [
                    (Read, 774144, 3072),
                    (Read, 777216, 6144),
                    (Read, 783360, 2048),
                    (Read, 715776, 16384),
                    (Read, 732160, 3072),
                ],
                66,
                318464,
            ),
        ];
        for (text, device_bytes, first, count, last) in goldens {
            let requests = all(text, device_bytes);
            let issued: Vec<_> = requests
                .iter()
                .map(|request| (request.operation, request.offset_bytes, request.bytes))
                .collect();
            assert_eq!(issued[..5], first, "{text}");
            assert_eq!((issued.len(), issued.last().unwrap().1), (count, last), "{text}");
        }
    }

    /// Offsets of the instances of one job, as fio issues them: seeds, names and regions differ.
    #[test]
    fn instances_are_those_of_fio() {
        let text = "[x]\n[job0]\nfilename=dev.bin\nrw=randwrite\nnumjobs=4\nsize=20%\noffset_increment=20%\nnumber_ios=6\n\
                    random_distribution=zipf:1.2\n";
        let expected = [
            [0, 176128, 176128, 180224, 163840, 0],
            [671744, 815104, 638976, 802816, 802816, 827392],
            [516096, 540672, 503808, 540672, 540672, 516096],
            [339968, 356352, 229376, 323584, 241664, 253952],
        ];
        let job = &jobs(text)[1];
        for (instance, expected) in expected.into_iter().enumerate() {
            let plan = Plan::new(
                job,
                instance as u32,
                Target {
                    device_bytes: MIB,
                    placement_count: 0,
                    ..Target::default()
                },
            )
            .unwrap();
            let mut requests = Vec::new();
            JobStream::new(plan, 0).fill(&mut requests, 100);
            assert_eq!(offsets(&requests), expected, "instance {instance}");
        }
    }

    #[test]
    fn filling_and_stepping_give_the_same_requests() {
        for text in [
            "rw=write\nbs=12k\nloops=3",
            "rw=write\nbs=128k\nsize=50%\nio_size=3m",
            "rw=randwrite\nloops=3",
            "rw=randwrite\nnorandommap\nnumber_ios=100\nloops=2",
            "rw=randwrite\nbs=4k,8k",
            "rw=randwrite\nbs=8k\nrandom_distribution=zipf:0.9\nio_size=5m",
            "rw=randtrim\nrandom_distribution=zoned:60/10:40/90",
            "rw=randwrite\nfdp=1\nplids=3\ntime_based\nruntime=1",
            "rw=write\nbs=20k\ntime_based\nruntime=1",
            "rw=randwrite\nbs=8k\nrandrepeat=0\nloops=4",
        ] {
            let text = format!("[a]\n{text}\n");
            let mut stepping = stream(&text, MIB + 4 * KIB);
            let mut filling = stepping.clone();
            let mut filled = Vec::new();
            for step in 0..200 {
                let wanted = step * 7 % 90 + 1;
                if filling.fill(&mut filled, wanted) < wanted {
                    assert_eq!(filling.next(), None);
                    break;
                }
            }
            let stepped: Vec<Request> = std::iter::from_fn(|| stepping.next()).take(filled.len()).collect();
            assert_eq!(filled, stepped, "{text}");
            assert!(filled.len() > 20, "{text}");
            assert_eq!(filling.plan().endless, stepping.next().is_some(), "{text}");
        }
    }

    #[test]
    fn a_random_map_covers_each_block_once_per_pass() {
        let text = "[a]\nrw=randwrite\ntime_based\nruntime=1\n";
        let mut stream = stream(text, 1000 * 4 * KIB);
        let mut passes = Vec::new();
        for _ in 0..3 {
            let mut pass = Vec::new();
            stream.fill(&mut pass, 1000);
            let mut covered = offsets(&pass);
            covered.sort_unstable();
            assert_eq!(covered, (0..1000).map(|block| block * 4 * KIB).collect::<Vec<_>>());
            passes.push(offsets(&pass));
        }
        assert_ne!(passes[0], passes[1], "a pass of an endless job goes on drawing");
        assert_ne!(passes[0], (0..1000).map(|block| block * 4 * KIB).collect::<Vec<_>>());
    }

    #[test]
    fn without_a_map_blocks_come_again() {
        let mut drawn = offsets(&all("[a]\nrw=randwrite\nnorandommap\n", 4 * MIB));
        assert_eq!(drawn.len(), 1024);
        drawn.sort_unstable();
        drawn.dedup();
        // 1 - 1/e of the blocks.
        assert!((600..700).contains(&drawn.len()), "{} different blocks", drawn.len());
    }

    #[test]
    fn sequential_jobs_end_at_the_region_or_wrap() {
        let once = all("[a]\nrw=write\nbs=64k\noffset=128k\nsize=256k\n", MIB);
        assert_eq!(offsets(&once), [128 * KIB, 192 * KIB, 256 * KIB, 320 * KIB]);
        let mut stream = stream(
            "[a]\nrw=write\nbs=64k\noffset=128k\nsize=256k\ntime_based\nruntime=1\n",
            MIB,
        );
        let mut wrapped = Vec::new();
        stream.fill(&mut wrapped, 6);
        assert_eq!(offsets(&wrapped)[3..], [320 * KIB, 128 * KIB, 192 * KIB]);
    }

    #[test]
    fn limits_are_in_bytes_requests_and_loops() {
        let total = |options: &str| -> u64 {
            all(&format!("[a]\nrw=randwrite\nbs=8k\nnorandommap\n{options}\n"), MIB)
                .iter()
                .map(|request| u64::from(request.bytes))
                .sum()
        };
        assert_eq!(total(""), MIB);
        assert_eq!(total("loops=3"), 3 * MIB);
        assert_eq!(total("io_size=2m"), 2 * MIB);
        assert_eq!(total("io_size=25%"), MIB / 4);
        assert_eq!(total("size=512k"), MIB / 2);
        assert_eq!(total("number_ios=5"), 40 * KIB);
        assert_eq!(total("number_ios=5\nloops=2"), 80 * KIB);
    }

    #[test]
    fn loops_repeat_their_random_numbers_unless_a_seed_is_given() {
        let halves = |options: &str| {
            let drawn = offsets(&all(&format!("[a]\nrw=randwrite\nloops=2\n{options}"), MIB));
            (drawn[..256].to_vec(), drawn[256..].to_vec())
        };
        let (first, second) = halves("");
        assert_eq!(first, second);
        for options in ["randseed=9\n", "randrepeat=0\n"] {
            let (first, second) = halves(options);
            assert_ne!(first, second, "{options}");
        }
    }

    #[test]
    fn instances_draw_numbers_of_their_own() {
        let job = &jobs("[a]\nrw=randwrite\nnumjobs=2\n")[0];
        let drawn = [0, 1].map(|instance| {
            let plan = Plan::new(
                job,
                instance,
                Target {
                    device_bytes: MIB,
                    placement_count: 0,
                    ..Target::default()
                },
            )
            .unwrap();
            let mut requests = Vec::new();
            JobStream::new(plan, instance as u16).fill(&mut requests, 50);
            offsets(&requests)
        });
        assert_ne!(drawn[0], drawn[1]);
    }

    #[test]
    fn sizes_and_directions_have_their_shares() {
        let requests = all(
            "[a]\nrw=randwrite\nbssplit=4k/50:8k/30:64k/20\nnorandommap\nsize=512m\n",
            1 << 30,
        );
        let share = |bytes: u64| {
            let count = requests
                .iter()
                .filter(|request| u64::from(request.bytes) == bytes)
                .count();
            count as f64 / requests.len() as f64
        };
        for (bytes, expected) in [(4 * KIB, 0.5), (8 * KIB, 0.3), (64 * KIB, 0.2)] {
            assert!((share(bytes) - expected).abs() < 0.01, "{bytes}: {}", share(bytes));
        }
        let requests = all("[a]\nrw=randrw\nrwmixread=30\nnorandommap\n", 256 * MIB);
        let reads = requests
            .iter()
            .filter(|request| request.operation == Operation::Read)
            .count() as f64
            / requests.len() as f64;
        assert!((reads - 0.3).abs() < 0.01, "{reads} reads");
    }

    #[test]
    fn zoned_writes_go_where_the_zones_are() {
        let hot_share = |distribution: &str, hot_bytes: u64| {
            let requests = all(
                &format!("[a]\nrw=randwrite\nrandom_distribution={distribution}\n"),
                256 * MIB,
            );
            let hot = requests
                .iter()
                .filter(|request| request.offset_bytes < hot_bytes)
                .count();
            hot as f64 / requests.len() as f64
        };
        let zoned = hot_share("zoned:80/20:20/80", 256 * MIB / 5);
        assert!((zoned - 0.8).abs() < 0.005, "{zoned}");
        let absolute = hot_share("zoned_abs:60/20m:40/100m", 20 * MIB);
        assert!((absolute - 0.6).abs() < 0.005, "{absolute}");
    }

    #[test]
    fn trim_and_write_come_in_pairs() {
        for rw in ["trimwrite", "randtrimwrite"] {
            let requests = all(&format!("[a]\nrw={rw}\nbssplit=4k/50:8k/50\n"), MIB);
            assert!(requests.len() > 100, "{rw}");
            for pair in requests.chunks_exact(2) {
                assert_eq!(
                    [pair[0].operation, pair[1].operation],
                    [Operation::Trim, Operation::Write],
                    "{rw}"
                );
                assert_eq!(
                    (pair[0].offset_bytes, pair[0].bytes),
                    (pair[1].offset_bytes, pair[1].bytes),
                    "{rw}"
                );
            }
        }
    }

    #[test]
    fn placement_goes_round_at_random_or_by_address() {
        let placements = |text: &str| {
            all(text, 4 * MIB)
                .iter()
                .map(|request| request.placement)
                .collect::<Vec<_>>()
        };
        let in_turn = placements("[a]\nrw=write\nfdp=1\nplids=1,4-5\nnumber_ios=7\n");
        assert_eq!(in_turn, [1, 4, 5, 1, 4, 5, 1].map(PlacementIndex).map(Some));
        let unlisted = placements("[a]\nrw=write\ndataplacement=fdp\nnumber_ios=9\n");
        assert_eq!(
            unlisted,
            [0, 1, 2, 3, 4, 5, 6, 7, 0].map(PlacementIndex).map(Some),
            "all that the drive offers"
        );
        let random = placements("[a]\nrw=write\nfdp=1\nplids=0,7\nplid_select=random\n");
        let sevens = random
            .iter()
            .filter(|placement| **placement == Some(PlacementIndex(7)))
            .count();
        assert!((450..575).contains(&sevens), "{sevens} of 1024");
        assert!(placements("[a]\nrw=read\nfdp=1\nplids=3\n").iter().all(Option::is_none));
        assert!(placements("[a]\nrw=write\nplids=3\n").iter().all(Option::is_none));
    }

    #[test]
    fn a_scheme_places_by_the_first_byte() {
        let mut job = jobs("[a]\nrw=write\nfdp=1\nnumber_ios=4\n").remove(0);
        job.plid_select = super::super::PlacementSelection::Scheme;
        job.dp_scheme = vec![
            SchemeEntry {
                start_bytes: 4 * KIB,
                end_bytes: 8 * KIB,
                index: PlacementIndex(5),
            },
            SchemeEntry {
                start_bytes: 0,
                end_bytes: 12 * KIB,
                index: PlacementIndex(2),
            },
        ];
        let plan = Plan::new(
            &job,
            0,
            Target {
                device_bytes: MIB,
                placement_count: 8,
                ..Target::default()
            },
        )
        .unwrap();
        let mut requests = Vec::new();
        JobStream::new(plan, 0).fill(&mut requests, 10);
        assert_eq!(
            requests.iter().map(|request| request.placement).collect::<Vec<_>>(),
            [2, 5, 2, 0].map(PlacementIndex).map(Some)
        );
    }

    #[test]
    fn a_drive_without_fdp_ignores_directives_and_one_with_it_checks_them() {
        let job = &jobs("[a]\nrw=write\nfdp=1\nplids=9\n")[0];
        let without = Plan::new(
            job,
            0,
            Target {
                device_bytes: MIB,
                placement_count: 0,
                ..Target::default()
            },
        )
        .unwrap();
        assert_eq!(JobStream::new(without, 0).next().unwrap().placement, None);
        let error = Plan::new(
            job,
            0,
            Target {
                device_bytes: MIB,
                placement_count: 8,
                ..Target::default()
            },
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.starts_with("test.fio:4: plids of [a]: the drive offers 8"),
            "{error}"
        );
    }

    #[test]
    fn regions_that_do_not_fit_are_refused() {
        for (options, part) in [
            ("size=2m", "reach beyond"),
            ("offset=1m", "starts at"),
            ("bs=64k\nsize=8k", "less than one block"),
            ("rw=randwrite\nrandom_distribution=zoned_abs:50/1m:50/1m", "zones of"),
        ] {
            let job = &jobs(&format!("[a]\n{options}\n"))[0];
            let error = Plan::new(
                job,
                0,
                Target {
                    device_bytes: MIB,
                    placement_count: 0,
                    ..Target::default()
                },
            )
            .unwrap_err()
            .to_string();
            assert!(
                error.contains(part) && error.starts_with("test.fio:"),
                "{options}: {error}"
            );
        }
    }

    #[test]
    fn more_blocks_than_32_bits_can_name_are_all_reached() {
        let mut stream = stream("[a]\nrw=randwrite\nbs=512\nnorandommap\n", 1 << 45);
        assert!(stream.plan().offsets_64);
        let odd = (0..1000)
            .filter(|_| stream.next().unwrap().offset_bytes / 512 % 2 == 1)
            .count();
        assert!(
            (430..570).contains(&odd),
            "{odd} of 1000 blocks are odd: the low bits are not drawn"
        );
    }
}
