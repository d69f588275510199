//! Plan of a job on a drive of a given capacity, in bytes. All percentages and defaults are
//! resolved.
//!
//! [`JobPlan::new`] does for one instance of a job the same as fio's setup of files (`filesetup.c`:
//! `get_start_offset`, `setup_files`, `__init_rand_distribution`). The returned plan is valid. Its
//! region lies on the drive and holds at least one block.
//!
//! This module draws no random numbers and produces no requests (see `stream`). `scaled_jobs` scales a
//! plan before it becomes a stream.

use crate::{PlacementIndex, RequestOperation, WorkloadTarget};

use super::JobError;
use super::distribution::{AccessZone, SkewKind};
use super::job::{
    AccessMode, BlockDistribution, DataPlacement, Job, JobOperations, PlacementSelection, SchemeEntry, WriteMode,
};
use super::random::{MAX_BLOCKS_OF_32_BIT_GENERATOR, OffsetGenerator, Purpose, Seeds};
use super::value::{Amount, PerDirection};

/// Maximum blocks of the random map per request.
const MAP_BLOCKS_OF_REQUEST_MAX: u64 = 1 << 20;

/// The request sizes of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockPlan {
    /// Smallest request, bytes.
    pub min_bytes: u64,
    /// Largest request, bytes.
    pub max_bytes: u64,
    /// Alignment of random requests, bytes.
    pub align_bytes: u64,
    /// Sizes and their percent of the requests (`bssplit`), rarest first. Empty for one size or a
    /// range.
    pub split: Vec<(u64, f64)>,
}

/// Source of the addresses of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum AddressPlan {
    /// Consecutive blocks.
    Sequential,
    /// Uniform. With a random map, each block comes once per pass.
    Uniform {
        /// True if a random map is used.
        map: bool,
    },
    /// zipf, pareto or normal.
    Skewed {
        /// Kind of the distribution.
        kind: SkewKind,
        /// fio's centre, as a share of the region.
        center: Option<f64>,
        /// Blocks that the formula draws from.
        drawn_blocks: u64,
        /// Blocks that the draws are mapped to. Differs from `drawn_blocks` on scaled models only.
        blocks: u64,
    },
    /// Zones in percent of the region.
    Zoned(PerDirection<Vec<AccessZone>>),
    /// Zones in bytes.
    ZonedAbsolute(PerDirection<Vec<AccessZone>>),
    /// A fixed sequence of blocks, repeated.
    Sequence {
        /// Numbers of the blocks.
        blocks: Vec<u64>,
        /// True if each round begins behind the blocks of the last one.
        strides: bool,
    },
}

/// Parts of the region that `zonemode=strided` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridePlan {
    /// Bytes that are issued in one zone.
    pub issued_bytes: u64,
    /// Length of a zone, bytes.
    pub zone_bytes: u64,
    /// Bytes between two zones.
    pub skipped_bytes: u64,
}

/// Placement index of the writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementPlan {
    /// No directive.
    None,
    /// These indices in turn.
    RoundRobin(Vec<PlacementIndex>),
    /// A random index of these.
    Random(Vec<PlacementIndex>),
    /// By the write's first byte on the drive.
    Scheme(Vec<SchemeEntry>),
}

/// Order and time of the reads with which `verify` reads back a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBackPlan {
    /// True to read by address, without overwritten pieces, because writes may overlap. False to
    /// read in the order of the writes.
    pub sorted: bool,
    /// `verify_backlog` and `verify_backlog_batch`. After the first number of writes, the second
    /// number of writes is read back before the pass goes on.
    pub backlog: Option<(u64, u64)>,
}

/// One instance of a job on a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// Order and operations.
    pub access: AccessMode,
    /// Number of requests per drawn address.
    pub requests_per_draw: u64,
    /// Distance from the end of the last request of a sequential job to the next request, bytes.
    pub step_bytes: i64,
    /// True if requests between two draws repeat the address. False if they continue from it.
    pub repeats_address: bool,
    /// First byte of the region on the drive.
    pub start_bytes: u64,
    /// Length of the region, bytes.
    pub region_bytes: u64,
    /// The zones of `zonemode=strided`.
    pub strides: Option<StridePlan>,
    /// Capacity of the drive, bytes.
    pub device_bytes: u64,
    /// Request sizes for reads, writes, trims.
    pub blocks: PerDirection<BlockPlan>,
    /// Bytes that one loop issues.
    pub size_bytes: u64,
    /// `io_size`, bytes.
    pub io_size_bytes: Option<u64>,
    /// `number_ios`
    pub number_ios: Option<u64>,
    /// `loops`
    pub loops: u64,
    /// True if the stream never ends by itself.
    pub endless: bool,
    /// Percent of random requests.
    pub percentage_random: PerDirection<u32>,
    /// Percent of reads in a mix.
    pub rwmixread: u32,
    /// Trims that fio sends as the ranges of one command and counts as one request.
    pub ranges_per_trim: u64,
    /// Commands that replace writes, with their percent. Empty for writes alone.
    pub write_modes: Vec<(WriteMode, u32)>,
    /// True if Write Zeroes deallocates.
    pub deallocates: bool,
    /// Delay before the first request, microseconds.
    pub delay_us: u64,
    /// True if `verify` is on. Reads and writes then draw the same sizes, and passes of a
    /// `time_based` job end.
    pub verifies: bool,
    /// True if each pass ends with a read-back phase, even without writes.
    pub reads_back: bool,
    /// True for a writing job with `verify_backlog`. A pass may then be twice as long.
    pub has_backlog: bool,
    /// Read-back plan of a writing job.
    pub read_back: Option<ReadBackPlan>,
    /// Source of the addresses.
    pub addresses: AddressPlan,
    /// Placement of the writes.
    pub placement: PlacementPlan,
    /// Seeds of the instance.
    pub seeds: Seeds,
    /// Seed of the zipf, pareto and normal distributions.
    pub distribution_seed: u64,
    /// True if every pass repeats the random numbers of the first.
    pub repeat_randomness: bool,
    /// True if offsets come from the 64-bit generator.
    pub offsets_64: bool,
    /// True if request sizes come from the 64-bit generator.
    pub sizes_64: bool,
}

impl JobPlan {
    /// Resolves one instance (0 is the first) of a job for a drive.
    pub fn new(job: &Job, instance: u32, target: WorkloadTarget) -> Result<Self, JobError> {
        assert!(instance < job.numjobs, "{} has {} instances", job.name, job.numjobs);
        let device_bytes = target.device_bytes;
        let subjob = subjob_number(job, instance);
        let thread_number = job.first_thread_number + instance;
        let blocks = RequestOperation::ALL.map(|operation| plan_blocks(job, operation));
        let min_bytes = smallest_block(&blocks);
        let start_bytes = start_offset(job, subjob, device_bytes, min_bytes);
        if start_bytes >= device_bytes {
            let problem = format!("the region starts at {start_bytes} of {device_bytes} bytes");
            return Err(job.error("offset", problem, "Start it on the drive, for example with a percentage"));
        }
        let region_bytes = region_length(job, start_bytes, device_bytes, min_bytes)?;
        let size_bytes = match job.io_size {
            Some(Amount::Percent(percent)) => share(region_bytes, percent),
            _ => region_bytes,
        };
        let size_bytes = match job.size {
            Some(Amount::Bytes(bytes)) => size_bytes.min(bytes),
            _ => size_bytes,
        };
        if size_bytes < min_bytes {
            let problem = format!("the region has {size_bytes} bytes, less than one block of {min_bytes}");
            return Err(job.error("size", problem, "Enlarge the region, or use a smaller bs"));
        }
        assert!(
            region_bytes <= device_bytes - start_bytes,
            "a region of {region_bytes} bytes at {start_bytes} exceeds a drive of {device_bytes}"
        );
        assert!(size_bytes <= region_bytes, "a loop issues {size_bytes} bytes of a region of {region_bytes}");
        let seeds = Seeds::new(job.seed(), thread_number);
        let smallest_used = blocks.iter().map(|block| block.min_bytes).min().expect("three directions");
        let addresses = plan_addresses(job, &blocks, region_bytes);
        let plan = Self {
            access: job.access,
            requests_per_draw: job.requests_per_draw,
            step_bytes: job.step_bytes,
            repeats_address: job.repeats_address,
            start_bytes,
            region_bytes,
            strides: plan_strides(job, min_bytes)?,
            device_bytes,
            size_bytes,
            io_size_bytes: match job.io_size {
                Some(Amount::Bytes(bytes)) => Some(bytes),
                _ => None,
            },
            number_ios: job.number_ios,
            loops: job.loops,
            endless: job.time_based,
            percentage_random: job.percentage_random,
            rwmixread: job.rwmixread,
            ranges_per_trim: match job.access.operations {
                JobOperations::Only(RequestOperation::Trim) => job.ranges_per_trim,
                _ => 1,
            },
            write_modes: job.write_modes.clone(),
            deallocates: job.deallocates,
            delay_us: start_delay(job, instance),
            verifies: job.verify,
            reads_back: job.verify && job.do_verify,
            has_backlog: job.verify && job.verify_backlog > 0 && job.access.operations.include(RequestOperation::Write),
            read_back: plan_read_back(job, &addresses, size_bytes),
            addresses,
            placement: plan_placement(job, target)?,
            seeds,
            distribution_seed: seeds.of_distribution(&job.target_name(subjob)),
            repeat_randomness: job.repeats_randomness(),
            // With more blocks than 32 bits can number, fio itself switches to the 64-bit
            // generator.
            offsets_64: job.generator_64 || region_bytes / smallest_used > MAX_BLOCKS_OF_32_BIT_GENERATOR,
            sizes_64: job.generator_64,
            blocks,
        };
        plan.check_zones(job)?;
        plan.check_split(job)?;
        Ok(plan)
    }

    /// Blocks that random requests of a direction are drawn from (fio's `last_block`).
    pub fn last_block(&self, operation: RequestOperation) -> u64 {
        let block = &self.blocks[operation as usize];
        let usable = self.drawn_bytes();
        usable.saturating_sub(block.min_bytes.saturating_sub(block.align_bytes)) / block.align_bytes
    }

    /// Bytes that random requests are drawn from, either the region or one of its zones.
    pub fn drawn_bytes(&self) -> u64 {
        let whole = self.region_bytes.min(self.device_bytes);
        self.strides.map_or(whole, |strides| strides.zone_bytes)
    }

    /// Mean bytes of a request, over sizes and operations.
    pub fn mean_request_bytes(&self) -> f64 {
        let mean = |operation: RequestOperation| self.blocks[operation as usize].mean_bytes();
        match self.access.operations {
            JobOperations::Only(operation) => mean(operation),
            JobOperations::ReadWrite => {
                let reads = f64::from(self.rwmixread) / 100.0;
                reads * mean(RequestOperation::Read) + (1.0 - reads) * mean(RequestOperation::Write)
            }
            JobOperations::TrimWrite => f64::midpoint(mean(RequestOperation::Trim), mean(RequestOperation::Write)),
        }
    }

    /// True if the plan writes. A job with another `write_mode` may not.
    pub fn writes(&self) -> bool {
        let writes = |(mode, percent): &(WriteMode, u32)| {
            *percent > 0 && (*mode == WriteMode::Write || *mode == WriteMode::Zeroes && !self.deallocates)
        };
        self.access.operations.include(RequestOperation::Write)
            && (self.write_modes.is_empty() || self.write_modes.iter().any(writes))
    }

    /// Smallest request of any direction, used or not, as fio counts it.
    pub fn min_bytes(&self) -> u64 {
        smallest_block(&self.blocks)
    }

    /// Refuses requests that touch too many blocks of the random map. A few of them would take
    /// seconds.
    pub(super) fn check_map(&self, job: &Job) -> Result<(), JobError> {
        let most = |block: &BlockPlan| block.max_bytes / block.min_bytes;
        let blocks = self.blocks.iter().map(most).max().expect("three directions");
        if self.map_blocks().is_none() || blocks <= MAP_BLOCKS_OF_REQUEST_MAX {
            return Ok(());
        }
        let problem = format!(
            "the largest request covers {blocks} blocks of the random map, but at most {MAP_BLOCKS_OF_REQUEST_MAX} \
             are supported. A block has the size of the smallest request"
        );
        Err(job.error("bsrange", problem, "Enlarge the smallest request, or add norandommap"))
    }

    /// Refuses sizes of `bssplit` below the smallest request, which a later `bsrange` sets. fio
    /// would draw requests without bytes.
    fn check_split(&self, job: &Job) -> Result<(), JobError> {
        for block in &self.blocks {
            if let Some((bytes, _)) = block.split.iter().find(|(bytes, _)| *bytes < block.min_bytes) {
                let problem =
                    format!("{bytes} bytes of bssplit are below the smallest request, {} bytes", block.min_bytes);
                return Err(job.error("bsrange", problem, "Leave out bssplit or bsrange"));
            }
        }
        Ok(())
    }

    fn check_zones(&self, job: &Job) -> Result<(), JobError> {
        let AddressPlan::ZonedAbsolute(zones) = &self.addresses else {
            return Ok(());
        };
        for operation in self.access.operations.iter() {
            let bytes: u64 = zones[operation as usize].iter().map(|zone| zone.size).sum();
            if bytes / self.blocks[operation as usize].align_bytes > self.last_block(operation) {
                let problem = format!("the zones of {bytes} bytes exceed the region of {} bytes", self.region_bytes);
                return Err(job.error(
                    "random_distribution",
                    problem,
                    "Shorten the zones, or give percentages with zoned:",
                ));
            }
        }
        Ok(())
    }
}

impl BlockPlan {
    fn mean_bytes(&self) -> f64 {
        if self.split.is_empty() {
            return f64::midpoint(self.min_bytes as f64, self.max_bytes as f64);
        }
        let weights: f64 = self.shares().map(|(_, percent)| percent).sum();
        self.shares().map(|(bytes, percent)| bytes as f64 * percent).sum::<f64>() / weights
    }

    /// Sizes and the percent of the draws that take them. Percentages beyond 100 in total are never
    /// drawn.
    pub fn shares(&self) -> impl Iterator<Item = (u64, f64)> {
        let cut = |before: &mut f64, (bytes, percent): &(u64, f64)| {
            let share = percent.min(100.0 - *before);
            *before += share;
            Some((*bytes, share))
        };
        self.split.iter().scan(0.0, cut)
    }
}

/// fio's number of an instance within its job. The first has 0, and the rest count down from
/// `numjobs` - 1.
fn subjob_number(job: &Job, instance: u32) -> u32 {
    if instance == 0 { 0 } else { job.numjobs - instance }
}

fn share(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

fn plan_strides(job: &Job, min_bytes: u64) -> Result<Option<StridePlan>, JobError> {
    if job.zone_size == 0 {
        return Ok(None);
    }
    let zone_bytes = if job.zone_range > 0 { job.zone_range } else { job.zone_size };
    if zone_bytes < min_bytes {
        let problem = format!("a zone of {zone_bytes} bytes holds no block of {min_bytes}");
        return Err(job.error("zonesize", problem, "Enlarge zonesize or zonerange, or use a smaller bs"));
    }
    Ok(Some(StridePlan { issued_bytes: job.zone_size, zone_bytes, skipped_bytes: job.zone_skip }))
}

fn smallest_block(blocks: &PerDirection<BlockPlan>) -> u64 {
    blocks.iter().map(|block| block.min_bytes).min().expect("three directions")
}

fn plan_blocks(job: &Job, operation: RequestOperation) -> BlockPlan {
    let (min_bytes, max_bytes) = job.block_range(operation);
    assert!(min_bytes <= max_bytes, "requests of {} have {min_bytes} to {max_bytes} bytes", job.name);
    let align = job.blockalign[operation as usize].filter(|_| job.access.random);
    let split = job.bssplit[operation as usize].iter().map(|share| (share.bytes, f64::from(share.percent)));
    let mut split: Vec<(u64, f64)> = split.collect();
    let given: f64 = split.iter().map(|(_, percent)| percent).sum();
    // fio gives draws outside all percentages the last size, which is the most frequent one.
    if let Some((_, percent)) = split.last_mut().filter(|_| given < 100.0) {
        *percent += 100.0 - given;
    }
    BlockPlan { min_bytes, max_bytes, align_bytes: align.unwrap_or(min_bytes), split }
}

/// Start delay of an instance. If the range begins at 0, further instances draw from a range that
/// begins at the delay of the first instance, as in fio.
fn start_delay(job: &Job, instance: u32) -> u64 {
    let draw = |earliest: u64, instance: u32| {
        let seeds = Seeds::new(job.seed(), job.first_thread_number + instance);
        OffsetGenerator::new(seeds.seed(Purpose::StartDelay), job.generator_64)
            .between(earliest, job.startdelay_latest_us)
    };
    match job.startdelay_us {
        earliest if job.startdelay_latest_us <= earliest => earliest,
        0 if instance > 0 => draw(draw(0, 0), instance),
        earliest => draw(earliest, instance),
    }
}

fn start_offset(job: &Job, subjob: u32, device_bytes: u64, min_bytes: u64) -> u64 {
    let bytes = |amount| match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => share(device_bytes, percent),
    };
    let offset = bytes(job.offset).saturating_add(bytes(job.offset_increment).saturating_mul(u64::from(subjob)));
    let is_share = |amount| matches!(amount, Amount::Percent(1..));
    if is_share(job.offset) || is_share(job.offset_increment) {
        return offset.next_multiple_of(job.offset_align.unwrap_or(min_bytes));
    }
    offset
}

fn region_length(job: &Job, start_bytes: u64, device_bytes: u64, min_bytes: u64) -> Result<u64, JobError> {
    let rest = device_bytes - start_bytes;
    if let Some(end_bytes) = job.filesize {
        if end_bytes <= start_bytes || end_bytes > device_bytes {
            let problem = format!(
                "a file of {end_bytes} bytes does not fit a region from {start_bytes} on a drive of {device_bytes} \
                 bytes"
            );
            return Err(job.error(
                "filesize",
                problem,
                "Start the region within the file, and end the file within the drive",
            ));
        }
        let rest = end_bytes - start_bytes;
        return Ok(match job.size {
            Some(Amount::Percent(percent)) if percent != 100 => {
                let bytes = share(end_bytes, percent).min(rest);
                bytes - bytes % min_bytes
            }
            _ => rest,
        });
    }
    match job.size {
        None | Some(Amount::Percent(100)) => Ok(rest),
        Some(Amount::Percent(percent)) => {
            let bytes = share(device_bytes, percent).min(rest);
            Ok(bytes - bytes % min_bytes)
        }
        Some(Amount::Bytes(bytes)) if bytes <= rest => Ok(bytes),
        Some(Amount::Bytes(bytes)) => {
            let problem = format!("{bytes} bytes from {start_bytes} exceed the drive's {device_bytes}");
            Err(job.error("size", problem, "Give a smaller size or a percentage"))
        }
    }
}

fn plan_addresses(job: &Job, blocks: &PerDirection<BlockPlan>, region_bytes: u64) -> AddressPlan {
    if !job.access.random {
        return AddressPlan::Sequential;
    }
    match &job.distribution {
        BlockDistribution::Uniform => {
            // In fio, an alignment other than the block size switches the map off.
            let aligned = blocks.iter().all(|block| block.align_bytes == block.min_bytes);
            AddressPlan::Uniform { map: !job.norandommap && aligned }
        }
        BlockDistribution::Skewed { kind, center } => {
            let reads_and_writes =
                [RequestOperation::Read, RequestOperation::Write].map(|operation| blocks[operation as usize].min_bytes);
            let count = region_bytes.div_ceil(reads_and_writes[0].min(reads_and_writes[1]));
            AddressPlan::Skewed { kind: *kind, center: *center, drawn_blocks: count, blocks: count }
        }
        BlockDistribution::Zoned(zones) => AddressPlan::Zoned(zones.clone()),
        BlockDistribution::ZonedAbsolute(zones) => AddressPlan::ZonedAbsolute(zones.clone()),
        BlockDistribution::Sequence(blocks) => {
            AddressPlan::Sequence { blocks: blocks.clone(), strides: job.sequence_strides }
        }
    }
}

/// Plans the read-back. fio sorts the list if writes may overlap (`fio_offset_overlap_risk`).
fn plan_read_back(job: &Job, addresses: &AddressPlan, size_bytes: u64) -> Option<ReadBackPlan> {
    let overlaps = match addresses {
        AddressPlan::Sequential | AddressPlan::Uniform { map: true } => job.norandommap,
        _ => true,
    };
    let writes_more = matches!(job.io_size, Some(Amount::Bytes(bytes)) if bytes > size_bytes);
    let is_read = job.verify && job.do_verify && job.access.operations.include(RequestOperation::Write);
    is_read.then(|| ReadBackPlan {
        sorted: overlaps || writes_more || job.requests_per_draw > 1 || job.step_bytes != 0,
        backlog: (job.verify_backlog > 0).then(|| {
            let batch = job.verify_backlog_batch;
            (job.verify_backlog, if batch > 0 { batch } else { job.verify_backlog })
        }),
    })
}

fn plan_placement(job: &Job, target: WorkloadTarget) -> Result<PlacementPlan, JobError> {
    if job.placement() == DataPlacement::None || target.placement_count == 0 {
        return Ok(PlacementPlan::None);
    }
    let count = target.placement_count;
    let by_scheme = job.plid_select == PlacementSelection::Scheme;
    let (option, used) = if by_scheme {
        ("dp_scheme", job.dp_scheme.iter().map(|entry| entry.index).max())
    } else {
        ("plids", job.plids.last().copied())
    };
    if let Some(index) = used.filter(|index| index.0 >= count) {
        let problem = format!("the drive has {count} placement indices, and index {index} is not one of them");
        return Err(job.error(option, problem, format!("Use indices from 0 to {}", count - 1)));
    }
    // Without `plids`, fio takes all indices that the drive lists, but at most 128.
    let indices =
        if job.plids.is_empty() { (0..count.min(128)).map(PlacementIndex).collect() } else { job.plids.clone() };
    assert!(by_scheme || !indices.is_empty(), "{} has no placement index on a drive with {count}", job.name);
    Ok(match job.plid_select {
        PlacementSelection::RoundRobin => PlacementPlan::RoundRobin(indices),
        PlacementSelection::Random => PlacementPlan::Random(indices),
        PlacementSelection::Scheme => PlacementPlan::Scheme(job.dp_scheme.clone()),
    })
}
