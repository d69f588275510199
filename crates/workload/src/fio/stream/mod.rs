//! The requests of one job instance, in the order in which fio would issue them.
//!
//! A [`JobStream`] runs fio's job loop without its I/O. It chooses a direction, an offset, a size
//! and a placement, counts, and starts over after each pass (`io_u.c` and `backend.c`:
//! `get_rw_ddir`, `get_next_offset`, `get_next_buflen`, `do_io`, `keep_running`). Each decision
//! comes from the same generator as in fio, so the sequence equals fio's, request by request.
//!
//! A stream has no clock and does not know about other jobs. `schedule` merges streams.

use crate::{IoRequest, PlacementIndex, RequestOperation};

use super::job::JobOperations;
use super::plan::{AddressPlan, JobPlan};
use super::random::{OffsetGenerator, Purpose, Taus88};
use super::value::PerDirection;

mod addresses;
mod offsets;
mod passes;
mod placement;
mod read_back;
mod sizes;
#[cfg(test)]
mod tests;
mod uniform;
mod write_mode;

use addresses::Addresses;
use placement::PlacementSource;
use read_back::{ReadBack, RegionPiece};
use sizes::SizeSource;
use write_mode::WriteModes;

/// Common fields of all requests of a uniform stream. Such requests have one operation and one size,
/// and only their addresses are chosen.
#[derive(Debug, Clone, Copy)]
struct UniformFields {
    operation: RequestOperation,
    bytes: u64,
    placement: Option<PlacementIndex>,
}

/// The requests of one instance of a job.
#[derive(Debug, Clone)]
pub struct JobStream {
    stream: u16,
    plan: JobPlan,
    uniform: Option<UniformFields>,
    addresses: Addresses,
    sizes: PerDirection<SizeSource>,
    placement: PlacementSource,
    write_modes: Option<Box<WriteModes>>,
    offset_generator: OffsetGenerator,
    mix_generator: Taus88,
    sequential_or_random: PerDirection<Taus88>,
    /// Start and end of the last request of a direction, in the region. `u64::MAX` means no request
    /// yet.
    last_start: PerDirection<u64>,
    last_end: PerDirection<u64>,
    /// Current direction of a read/write mix, and the request count at which it may change.
    mix: RequestOperation,
    mix_until: u64,
    requests: PerDirection<u64>,
    /// Read-back state of `verify`, and the number of its reads. `requests` does not include them.
    read_back: Option<Box<ReadBack>>,
    reads_back: u64,
    /// Requests until the next drawn address, including that one.
    until_draw: u64,
    /// Start of the current zone of `zonemode=strided` in the region, and bytes issued in it.
    zone_start: u64,
    zone_issued: u64,
    /// Ranges that the current trim may still receive.
    ranges_left: u64,
    /// Bytes of all requests, and bytes that `size` and `io_size` count.
    bytes: u64,
    counted_bytes: u64,
    /// Values of `bytes` at the start and end of this pass. None before the first.
    pass: Option<(u64, u64)>,
    loops_left: u64,
    region_done: bool,
    limit_bytes: u64,
    limit_requests: u64,
}

impl JobStream {
    /// Creates a stream with this number for a plan.
    pub fn new(plan: JobPlan, stream: u16) -> Self {
        let seeds = plan.seeds;
        let loops = plan.loops;
        assert!(plan.start_bytes < plan.device_bytes, "the region of a stream begins on the drive");
        let twice = u64::from(plan.access.operations == JobOperations::TrimWrite) + 1;
        let sizes = RequestOperation::ALL.map(|operation| SizeSource::new(&plan, operation));
        let placement = PlacementSource::new(&plan);
        let read_back = ReadBack::new(&plan);
        let takes_notes = read_back.as_ref().is_some_and(|back| back.records_requests());
        Self {
            stream,
            uniform: UniformFields::new(&plan, &placement).filter(|_| !takes_notes),
            addresses: Addresses::new(&plan),
            sizes,
            placement,
            write_modes: WriteModes::new(&plan),
            offset_generator: OffsetGenerator::new(seeds.seed(Purpose::Block), plan.offsets_64),
            mix_generator: Taus88::new(seeds.seed(Purpose::Mix)),
            sequential_or_random: [(); 3].map(|()| Taus88::new(seeds.seed(Purpose::SequentialOrRandom))),
            last_start: [u64::MAX; 3],
            last_end: [0; 3],
            mix: RequestOperation::Read,
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
            // In a trim-and-write job, fio counts a pair as one.
            limit_requests: plan.number_ios.map_or(u64::MAX, |count| count.saturating_mul(loops).saturating_mul(twice)),
            plan,
        }
    }

    /// The plan of the stream.
    pub fn plan(&self) -> &JobPlan {
        &self.plan
    }

    /// Issued share of the stream's bytes, 0 to 1. `None` if it never ends.
    pub fn share_done(&self) -> Option<f64> {
        (!self.plan.endless).then(|| (self.counted_bytes as f64 / self.limit_bytes.max(1) as f64).min(1.0))
    }

    /// Requests issued so far.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum::<u64>() + self.reads_back
    }

    /// Appends up to `limit` requests and returns their number. The requests equal those of
    /// [`Self::next`]. A smaller number means that the job is done.
    pub fn fill(&mut self, out: &mut Vec<IoRequest>, limit: usize) -> usize {
        let before = out.len();
        let full = before + limit;
        while out.len() < full {
            if let Some(uniform) = self.uniform
                && self.pass_continues()
                && self.fill_uniform(uniform, out, (full - out.len()) as u64) > 0
            {
                continue;
            }
            let Some(request) = self.next() else { break };
            out.push(request);
        }
        assert!(out.len() <= full, "stream {} gives {} requests, {limit} are wanted", self.stream, out.len() - before);
        out.len() - before
    }

    /// Returns the next request, or `None` for good when the job is done.
    #[inline]
    #[allow(clippy::should_implement_trait)] // `Iterator` would promise adaptors that the merging never uses.
    pub fn next(&mut self) -> Option<IoRequest> {
        loop {
            let goes_on = self.ranges_left > 0 || self.pass_continues();
            if let Some(back) = &mut self.read_back
                && let Some(piece) = back.next(goes_on)
            {
                return Some(self.read_back(piece));
            }
            if goes_on {
                if let Some(request) = self.issue() {
                    if let Some(modes) = &mut self.write_modes
                        && request.operation == RequestOperation::Write
                    {
                        match modes.next(request) {
                            Some(request) => return Some(request),
                            None => continue,
                        }
                    }
                    if let Some(back) = &mut self.read_back {
                        let offset = request.offset_bytes - self.plan.start_bytes;
                        back.record_request(request.operation, (offset, u64::from(request.bytes)));
                    }
                    return Some(request);
                }
                // A trim without a next range is complete. The job ends if the first range is not
                // found.
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

    /// Builds the read of a written piece.
    #[cold]
    fn read_back(&mut self, (offset, bytes): RegionPiece) -> IoRequest {
        assert!(
            self.plan.start_bytes + offset + bytes <= self.plan.device_bytes,
            "a piece is read back that is not on the drive"
        );
        self.reads_back += 1;
        self.bytes += bytes;
        IoRequest {
            stream: self.stream,
            operation: RequestOperation::Read,
            offset_bytes: self.plan.start_bytes + offset,
            bytes: bytes as u32,
            placement: None,
        }
    }

    /// Returns the next write of the current pass, if any.
    fn next_write_of_pass(&mut self) -> Option<RegionPiece> {
        while self.pass_continues() {
            let request = self.issue()?;
            if request.operation == RequestOperation::Write {
                return Some((request.offset_bytes - self.plan.start_bytes, u64::from(request.bytes)));
            }
        }
        None
    }

    #[inline]
    fn issue(&mut self) -> Option<IoRequest> {
        let operation = match self.plan.access.operations {
            JobOperations::Only(operation) => operation,
            JobOperations::ReadWrite => self.next_of_mix(),
            JobOperations::TrimWrite => self.next_of_pair(),
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
        let placement =
            if operation == RequestOperation::Write { self.placement.next_index(offset_bytes) } else { None };
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
        assert!(bytes > 0, "a request has bytes");
        self.last_start[operation as usize] = offset;
        self.last_end[operation as usize] = offset + bytes;
        self.zone_issued += bytes;
        if self.ranges_left == 0 {
            self.requests[operation as usize] += 1;
            self.ranges_left = self.plan.ranges_per_trim;
        }
        self.ranges_left -= 1;
        self.bytes += bytes;
        if operation == RequestOperation::Write || self.plan.access.operations != JobOperations::TrimWrite {
            self.counted_bytes += bytes;
        }
        Some(IoRequest { stream: self.stream, operation, offset_bytes, bytes: bytes as u32, placement })
    }

    /// Direction of the next request of a read/write mix.
    fn next_of_mix(&mut self) -> RequestOperation {
        assert_ne!(self.mix, RequestOperation::Trim, "reads and writes are mixed");
        if self.requests[self.mix as usize] >= self.mix_until {
            let reads = self.mix_generator.between(1, 100) <= self.plan.rwmixread;
            let drawn = if reads { RequestOperation::Read } else { RequestOperation::Write };
            if drawn != self.mix {
                let other_percent =
                    if self.mix == RequestOperation::Read { 100 - self.plan.rwmixread } else { self.plan.rwmixread };
                self.mix_until = self.requests[self.mix as usize] * u64::from(other_percent) / 100;
            }
            self.mix = drawn;
        }
        self.mix
    }

    /// Operation of the next request of a pair, which is a trim and then a write of the same block.
    fn next_of_pair(&self) -> RequestOperation {
        let same =
            self.last_start[RequestOperation::Write as usize] == self.last_start[RequestOperation::Trim as usize];
        if same { RequestOperation::Trim } else { RequestOperation::Write }
    }

    /// Separates pairs. A random trim that hits the last block again must not look like a finished
    /// pair.
    #[inline]
    fn tell_pairs_apart(&mut self, operation: RequestOperation, offset: u64) {
        let pairs = self.plan.access.operations == JobOperations::TrimWrite && self.plan.access.random;
        if pairs && operation == RequestOperation::Trim && self.last_start[RequestOperation::Trim as usize] == offset {
            self.last_start[RequestOperation::Write as usize] = offset.wrapping_sub(1);
        }
    }

    #[inline]
    fn next_size(&mut self, operation: RequestOperation, offset: u64) -> Option<u64> {
        let random_pair = self.plan.access.operations == JobOperations::TrimWrite && self.plan.access.random;
        if random_pair && operation == RequestOperation::Write {
            let trim = RequestOperation::Trim as usize;
            return Some(self.last_end[trim] - self.last_start[trim]);
        }
        let sizes = &mut self.sizes[operation as usize];
        if sizes.min_bytes == sizes.max_bytes {
            return Some(sizes.min_bytes);
        }
        sizes.draw(self.plan.region_bytes.saturating_sub(offset))
    }
}

impl UniformFields {
    fn new(plan: &JobPlan, placement: &PlacementSource) -> Option<Self> {
        let JobOperations::Only(operation) = plan.access.operations else {
            return None;
        };
        let block = &plan.blocks[operation as usize];
        let placement = match placement {
            _ if operation != RequestOperation::Write => None,
            PlacementSource::None => None,
            PlacementSource::Fixed(index) => Some(*index),
            PlacementSource::RoundRobin(..) | PlacementSource::Random(..) | PlacementSource::Scheme(_) => return None,
        };
        // If the map's blocks are smaller than the requests, the map finds blocks beyond the
        // region.
        let one_size = block.min_bytes == block.max_bytes
            && (block.min_bytes == plan.min_bytes() || plan.addresses != AddressPlan::Uniform { map: true });
        let one_order = plan.requests_per_draw == 1
            && plan.step_bytes == 0
            && plan.strides.is_none()
            && !matches!(plan.addresses, AddressPlan::Sequence { .. })
            && (!plan.access.random || plan.percentage_random[operation as usize] == 100);
        let one_command =
            plan.ranges_per_trim == 1 && (operation != RequestOperation::Write || plan.write_modes.is_empty());
        (one_size && one_order && one_command).then_some(Self { operation, bytes: block.min_bytes, placement })
    }
}
