//! The trait of all workload sources, and the properties of the drive that a source can see.

use crate::{IoRequest, WorkloadError};

/// Produces the requests of a workload, in the order in which the host submits them.
///
/// A source is deterministic. Its requests depend on its settings, its [`WorkloadTarget`] and its
/// seed, not on the sizes of the batches. It never looks at the device, so it gives the same
/// requests to every device of a size. Only a [`PacedHost`] learns in virtual time when its
/// requests complete.
///
/// # Examples
///
/// A log that goes around on the whole drive causes no copies. `examples/workload_source.rs` has a
/// workload of two streams.
///
/// ```
/// use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};
/// use workload::{RequestOperation, PlacementIndex, IoRequest, RequestSource, WorkloadError};
///
/// struct Log {
///     unit: u64,
///     units: u64,
/// }
///
/// impl RequestSource for Log {
///     fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
///         for _ in 0..limit {
///             requests.push(IoRequest {
///                 stream: 0,
///                 operation: RequestOperation::Write,
///                 offset_bytes: self.unit * 4096,
///                 bytes: 4096,
///                 placement: Some(PlacementIndex(0)),
///             });
///             self.unit = (self.unit + 1) % self.units;
///         }
///         Ok(limit)
///     }
///
///     fn streams(&self) -> Vec<String> {
///         vec!["log".into()]
///     }
/// }
///
/// let mut config = DeviceConfig::default();
/// config.geometry.capacity_bytes = Some(16 << 20);
/// config.geometry.reclaim_unit_bytes = 256 << 10;
/// let mut device = Device::new(&config)?;
/// let pages = device.layout().logical_pages;
/// let mut log = Log { unit: 0, units: u64::from(pages) };
/// let mut requests = Vec::new();
/// log.next_batch(&mut requests, 3 * pages as usize)?;
/// for request in &requests {
///     let write = WriteRequest {
///         first: Lpn((request.offset_bytes / 4096) as u32),
///         pages: request.bytes / 4096,
///         host_bytes: u64::from(request.bytes),
///         placement: Placement::handle(request.placement.map_or(0, |index| index.0)),
///     };
///     let _ = device.write(0, &write)?;
/// }
/// assert_eq!(device.stats().handles[0].host_pages_written, 3 * u64::from(pages));
/// assert_eq!(device.stats().write_amplification(), Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RequestSource: Send {
    /// Appends up to `limit` requests and returns their number. 0 means that the workload has
    /// ended.
    ///
    /// # Errors
    /// Fails if a file cannot be read or parsed. The error names file and line. The source then
    /// stays at its end.
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError>;

    /// Lets a thread of its own prepare the next requests, from the first call of
    /// [`RequestSource::next_batch`] on. Requests, measures and errors stay the same. A run calls it
    /// if a processor is free. A source that prepares nothing ignores it.
    fn read_ahead(&mut self) {}

    /// Names of the source's streams, in the order of [`IoRequest::stream`].
    fn streams(&self) -> Vec<String>;

    /// Completed share of the workload, 0 to 1. `None` if unknown or endless.
    fn share_done(&self) -> Option<f64> {
        None
    }

    /// Parts of the drive with an owner whose share of the write amplification is of interest. They
    /// ascend and do not overlap.
    fn ranges(&self) -> Vec<OwnedRange> {
        Vec::new()
    }

    /// Parts of the drive whose data has a lifetime of its own and can be placed as a whole. They
    /// do not overlap. Defaults to [`RequestSource::ranges`].
    fn owners(&self) -> Vec<OwnedRange> {
        self.ranges()
    }

    /// Figures that the source has measured so far, such as hit ratios or application-level write
    /// amplification.
    fn measures(&self) -> Vec<WorkloadMeasure> {
        Vec::new()
    }

    /// Returns the source's host if that host has a pace of its own. A run in virtual time calls
    /// this before the first request and then takes all requests from the host.
    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        None
    }
}

/// A workload whose host chooses requests by the time and by the completions so far.
///
/// A host is deterministic. Its actions depend on its settings, its seed and the times passed to
/// it.
pub trait PacedHost {
    /// Advances the host to `now_ns` since its start, appends the requests that it submits, and
    /// returns the time of the next call. `now_ns` never decreases. The caller also calls after
    /// each completion.
    ///
    /// # Errors
    /// Fails if a file cannot be read or parsed. The error names file and line. The workload has
    /// then ended.
    fn poll_requests(&mut self, now_ns: u64, requests: &mut Vec<TaggedRequest>) -> Result<NextCall, WorkloadError>;

    /// Reports that the request with this tag is complete.
    fn complete_request(&mut self, tag: u16);

    /// Maximum number of requests in flight.
    fn depth(&self) -> u64;
}

/// A request with its tag. No two requests in flight have the same tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaggedRequest {
    /// Identifies the request on completion.
    pub tag: u16,
    /// The request to submit.
    pub request: IoRequest,
}

/// Time of the next call to a [`PacedHost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextCall {
    /// At this time since the start, nanoseconds, or at an earlier completion.
    At(u64),
    /// At the next completion.
    Completion,
    /// Never. The host has ended and has no request in flight.
    Never,
}

impl<S: RequestSource + ?Sized> RequestSource for Box<S> {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        (**self).next_batch(requests, limit)
    }

    fn read_ahead(&mut self) {
        (**self).read_ahead();
    }

    fn streams(&self) -> Vec<String> {
        (**self).streams()
    }

    fn share_done(&self) -> Option<f64> {
        (**self).share_done()
    }

    fn ranges(&self) -> Vec<OwnedRange> {
        (**self).ranges()
    }

    fn owners(&self) -> Vec<OwnedRange> {
        (**self).owners()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        (**self).measures()
    }

    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        (**self).paced()
    }
}

/// A part of the drive that has an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRange {
    /// Name of the owner.
    pub name: String,
    /// First byte of the part.
    pub start_bytes: u64,
    /// First byte after the part.
    pub end_bytes: u64,
}

/// A figure that a workload measures about itself.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WorkloadMeasure {
    /// Name in dotted parts, as claims use it. `docs/reference/workloads.md` lists the names of
    /// each workload kind.
    pub name: String,
    /// A ratio or a count.
    pub value: f64,
}

impl WorkloadMeasure {
    /// Creates a figure with a name.
    pub fn new(name: impl Into<String>, value: f64) -> WorkloadMeasure {
        WorkloadMeasure { name: name.into(), value }
    }
}

/// The drive as a workload sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadTarget {
    /// Capacity that the host sees, bytes. With a scaled model, the capacity of the full-size
    /// drive.
    pub device_bytes: u64,
    /// Number of placement indices of the namespace. 0 for a drive without FDP, which ignores
    /// directives.
    pub placement_count: u16,
    /// True if the workload (in a job file, its last group) never ends. The caller then decides
    /// when to stop.
    pub endless: bool,
    /// The scaled model of the drive to build the workload for, if any.
    pub scaled_model: Option<ScaledModel>,
}

/// Alignment of parts of a drive, bytes.
const PART_ALIGNMENT_BYTES: u64 = 1 << 20;

impl WorkloadTarget {
    /// Capacity that requests may use, bytes. With a scaled model, the capacity of the model.
    pub fn capacity_bytes(&self) -> u64 {
        self.scaled_model.map_or(self.device_bytes, |model| model.device_bytes)
    }

    /// Returns the space between two percentages of the capacity as a drive of its own. The byte
    /// range is its location on this drive, or on the scaled model, if any.
    pub fn part(&self, from_percent: f64, to_percent: f64) -> (WorkloadTarget, std::ops::Range<u64>) {
        assert!(
            (0.0..=to_percent).contains(&from_percent),
            "a part begins before it ends: {from_percent} to {to_percent} %"
        );
        let full = |percent: f64| {
            let bytes = (self.device_bytes as f64 * (percent / 100.0).min(1.0)) as u64;
            bytes / PART_ALIGNMENT_BYTES * PART_ALIGNMENT_BYTES
        };
        let (start, end) = (full(from_percent), full(to_percent));
        let position = |bytes: u64| self.scaled_model.map_or(bytes, |model| model.position(bytes, self.device_bytes));
        let range = position(start)..position(end);
        assert!(start <= end && range.start <= range.end, "a part goes back: {start} to {end}, on the model {range:?}");
        assert!(range.end <= self.capacity_bytes(), "a part ends at {} of {} bytes", range.end, self.capacity_bytes());
        let model = self.scaled_model.map(|model| ScaledModel { device_bytes: range.end - range.start, ..model });
        let part = WorkloadTarget { device_bytes: end - start, scaled_model: model, ..*self };
        (part, range)
    }

    /// Scale factor d of the model. 1 without a scaled model.
    pub fn denominator(&self) -> u64 {
        self.scaled_model.map_or(1, |model| model.denominator)
    }

    /// Returns the size of a request of `bytes` bytes on this drive. A scaled model shrinks
    /// requests, unless it keeps their sizes or the request covers part of a mapping unit.
    pub fn request_bytes(&self, bytes: u64) -> u64 {
        match self.scaled_model {
            Some(model) if !model.keep_requests && model.is_whole(bytes) => model.size(bytes),
            _ => bytes,
        }
    }

    /// Smallest sensible unit of a request, bytes. 4 KiB, or the mapping unit of the scaled model.
    pub fn unit_bytes(&self) -> u64 {
        self.scaled_model.map_or(4096, |model| model.mapping_unit_bytes)
    }
}

/// A scaled model, smaller than the drive that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaledModel {
    /// Scale factor d. The model stands for a drive of about d times its capacity.
    pub denominator: u64,
    /// Capacity of the model, bytes. The full capacity / d, as the model's geometry rounds it.
    pub device_bytes: u64,
    /// Mapping unit of the model and of the drive, bytes. Scaled requests are at least this large.
    pub mapping_unit_bytes: u64,
    /// True if sizes and numbers of requests stay unscaled, because times depend on them. Regions
    /// and amounts of bytes still shrink.
    pub keep_requests: bool,
}

impl ScaledModel {
    /// Converts a position on a drive of `full_bytes` to the model, aligned down to the mapping
    /// unit.
    pub fn position(&self, bytes: u64, full_bytes: u64) -> u64 {
        let scaled = (u128::from(bytes) * u128::from(self.device_bytes) / u128::from(full_bytes)) as u64;
        scaled - scaled % self.mapping_unit_bytes
    }

    /// True if a size or position is a multiple of the mapping unit. A write of part of a unit
    /// programs the whole unit, so scaling it would change its cost.
    pub fn is_whole(&self, bytes: u64) -> bool {
        bytes.is_multiple_of(self.mapping_unit_bytes)
    }

    /// Divides an amount of bytes by d.
    pub fn amount(&self, bytes: u64) -> u64 {
        bytes / self.denominator
    }

    /// Divides the size of a request by d, in whole mapping units, at least one.
    pub fn size(&self, bytes: u64) -> u64 {
        let scaled = self.amount(bytes);
        (scaled - scaled % self.mapping_unit_bytes).max(self.mapping_unit_bytes)
    }
}
