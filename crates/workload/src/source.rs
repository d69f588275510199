//! Where requests come from: the trait of all workloads, and what they see of the drive.

use crate::{Request, WorkloadError};

/// Produces the requests of a workload, in the order in which the host submits them.
///
/// A source is deterministic: what it produces depends on its settings, its [`Target`] and its seed, not on the sizes of the
/// batches. It never looks at the device, so the same source gives the same requests to every device of a size; only one that is
/// [`PacedHost`] is told in virtual time when they are complete.
pub trait Source: Send {
    /// Appends up to `limit` requests; returns how many. 0 means that the workload has ended.
    ///
    /// # Errors
    /// What it reads cannot be read or understood: names file and line. The source then stays at its end.
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError>;

    /// Names of its streams, in the order of [`Request::stream`].
    fn streams(&self) -> Vec<String>;

    /// Share of it that is done, 0 to 1; `None` if it does not know, or never ends.
    fn share_done(&self) -> Option<f64> {
        None
    }

    /// Parts of the drive that belong to somebody, whose share of the write amplification is of interest: ascending, not
    /// overlapping.
    fn ranges(&self) -> Vec<Range> {
        Vec::new()
    }

    /// Parts of the drive whose data has a lifetime of its own and can be placed as a whole; not overlapping. Those of
    /// [`Source::ranges`] if it does not say more.
    fn owners(&self) -> Vec<Range> {
        self.ranges()
    }

    /// What it has measured of itself so far: hit ratios, amplification by the application.
    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    /// Its host, if that has a pace of its own. Whoever runs it in virtual time asks before the first request, and then takes all
    /// requests from there.
    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        None
    }
}

/// A workload whose host decides by the time, and by what of its requests is complete, what it submits.
///
/// It is deterministic: what it does depends on its settings, its seed, and the times that it is told.
pub trait PacedHost {
    /// What the host does at this time since it began, which never goes back: appends what it submits and says when to ask again. It is asked
    /// after every completion too.
    ///
    /// # Errors
    /// What it reads cannot be read or understood: names file and line. The workload has then ended.
    fn act(&mut self, now_ns: u64, requests: &mut Vec<TaggedRequest>) -> Result<Next, WorkloadError>;

    /// The request with this tag is complete.
    fn completed(&mut self, tag: u16);

    /// Requests in flight at most.
    fn depth(&self) -> u64;
}

/// A request, and what it is called until it is complete: no two in flight have the same tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaggedRequest {
    /// Says which request is complete.
    pub tag: u16,
    /// The request.
    pub request: Request,
}

/// When a [`PacedHost`] host wants to be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At this time since it began, nanoseconds, or when a request completes before.
    At(u64),
    /// When a request completes.
    Completion,
    /// Not any more: it has ended, and nothing is in flight.
    Never,
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError> {
        (**self).next_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        (**self).streams()
    }

    fn share_done(&self) -> Option<f64> {
        (**self).share_done()
    }

    fn ranges(&self) -> Vec<Range> {
        (**self).ranges()
    }

    fn owners(&self) -> Vec<Range> {
        (**self).owners()
    }

    fn measures(&self) -> Vec<Measure> {
        (**self).measures()
    }

    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        (**self).paced()
    }
}

/// A part of the drive that belongs to somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Whose it is.
    pub name: String,
    /// First byte.
    pub start_bytes: u64,
    /// First byte after it.
    pub end_bytes: u64,
}

/// A figure that a workload measures of itself.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Measure {
    /// Its name, in dotted parts, as claims use it; `docs/workloads.md` lists the names of each kind of workload.
    pub name: String,
    /// Its value: a ratio, or a count.
    pub value: f64,
}

impl Measure {
    /// A figure with a name.
    pub fn new(name: impl Into<String>, value: f64) -> Measure {
        Measure {
            name: name.into(),
            value,
        }
    }
}

/// What a workload sees of the drive that it is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Target {
    /// Capacity that the host sees, bytes; of the drive at full size, if there is a twin.
    pub device_bytes: u64,
    /// Number of placement indices that the namespace offers; 0 for a drive without FDP, which ignores directives.
    pub placement_count: u16,
    /// The workload (of a job file: its last group) goes on for ever; whoever runs it decides when it is enough.
    pub endless: bool,
    /// Build it for a smaller model of the drive.
    pub twin: Option<Twin>,
}

/// Parts of a drive begin at multiples of this.
const PART_ALIGNMENT_BYTES: u64 = 1 << 20;

impl Target {
    /// Capacity that requests may use, bytes: the twin's, if there is one.
    pub fn capacity_bytes(&self) -> u64 {
        self.twin.map_or(self.device_bytes, |twin| twin.device_bytes)
    }

    /// What lies between two shares of the drive, percent, as a drive of its own; and the bytes from which and up to which it lies on this one (on its
    /// twin, if there is one).
    pub fn part(&self, from_percent: f64, to_percent: f64) -> (Target, std::ops::Range<u64>) {
        assert!(
            (0.0..=to_percent).contains(&from_percent),
            "a part begins before it ends: {from_percent} to {to_percent} %"
        );
        let full = |percent: f64| {
            let bytes = (self.device_bytes as f64 * (percent / 100.0).min(1.0)) as u64;
            bytes / PART_ALIGNMENT_BYTES * PART_ALIGNMENT_BYTES
        };
        let (start, end) = (full(from_percent), full(to_percent));
        let position = |bytes: u64| self.twin.map_or(bytes, |twin| twin.position(bytes, self.device_bytes));
        let range = position(start)..position(end);
        let twin = self.twin.map(|twin| Twin {
            device_bytes: range.end - range.start,
            ..twin
        });
        let part = Target {
            device_bytes: end - start,
            twin,
            ..*self
        };
        (part, range)
    }

    /// How many times smaller everything is; 1 without a twin.
    pub fn denominator(&self) -> u64 {
        self.twin.map_or(1, |twin| twin.denominator)
    }

    /// The size of a request of so many bytes: on a twin smaller, unless requests keep their sizes there, or it takes a part of a mapping unit.
    pub fn request_bytes(&self, bytes: u64) -> u64 {
        match self.twin {
            Some(twin) if !twin.keep_requests && twin.is_whole(bytes) => twin.size(bytes),
            _ => bytes,
        }
    }

    /// Smallest unit that a request should be made of, bytes: 4 KiB, or the twin's mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.twin.map_or(4096, |twin| twin.mapping_unit_bytes)
    }
}

/// A smaller model of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// d: the twin stands for a drive of about d times its capacity.
    pub denominator: u64,
    /// Capacity of the twin, bytes: the full capacity / d, as the twin's geometry rounds it.
    pub device_bytes: u64,
    /// Mapping unit of the twin, bytes, which is the drive's: no request that shrinks becomes smaller.
    pub mapping_unit_bytes: u64,
    /// Sizes and numbers of requests stay as they are, because times depend on them; regions and bytes shrink all the same.
    pub keep_requests: bool,
}

impl Twin {
    /// A position on a drive of `full_bytes` as the position on the twin, aligned down to the mapping unit.
    pub fn position(&self, bytes: u64, full_bytes: u64) -> u64 {
        let scaled = (u128::from(bytes) * u128::from(self.device_bytes) / u128::from(full_bytes)) as u64;
        scaled - scaled % self.mapping_unit_bytes
    }

    /// Whether a size or a position is a number of whole mapping units. A write of a part of one programs all of it, which would change if
    /// it shrank.
    pub fn is_whole(&self, bytes: u64) -> bool {
        bytes.is_multiple_of(self.mapping_unit_bytes)
    }

    /// An amount of bytes, d times smaller.
    pub fn amount(&self, bytes: u64) -> u64 {
        bytes / self.denominator
    }

    /// The size of a request, d times smaller in whole mapping units, at least one.
    pub fn size(&self, bytes: u64) -> u64 {
        let scaled = self.amount(bytes);
        (scaled - scaled % self.mapping_unit_bytes).max(self.mapping_unit_bytes)
    }
}
