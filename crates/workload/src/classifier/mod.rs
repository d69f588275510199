//! Placement classifiers, which guess the placement of each write from the history of its
//! addresses. Hosts use them if their applications give no placement.
//!
//! ```text
//! any RequestSource -> ClassifiedSource -> the same requests with placement
//!                       calls a Classifier for each unit of each write
//! ```
//!
//! A [`Classifier`] sees the same as a host, namely the order in which units are written and
//! trimmed. It does not see garbage collection or the contents of reclaim units. It uses the
//! drive's placement indices in order. Index 0 is for the data with the shortest expected
//! lifetime. The [`Oracle`] also knows the future and serves as a reference for the rest.
//!
//! Every classifier needs 4 bytes for each unit of the drive (1 GiB per TiB at 4 KiB). Exceptions
//! are the oracle and the classifiers without memory.

mod last_writes;
mod lba_range;
mod midas;
mod none;
mod oracle;
mod sepbit;
mod update_frequency;
mod warcip;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use lba_range::LbaRangeSettings;
pub use midas::{Midas, MidasSettings};
pub use none::NoneSettings;
pub use oracle::{ORACLE_MEASURE, Oracle, OracleSettings};
pub use sepbit::{Sepbit, SepbitSettings};
pub use update_frequency::{UpdateFrequency, UpdateFrequencySettings};
pub use warcip::{Warcip, WarcipSettings};

use crate::{
    IoRequest, PlacementIndex, RequestOperation, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget,
};

/// Decides the placement of writes.
///
/// # Examples
///
/// This classifier places first writes on index 1 and overwrites on index 0. A [`ClassifiedSource`]
/// applies it to a job file. `examples/placement_classifier.rs` runs a classifier on a drive.
///
/// ```
/// use std::collections::HashSet;
/// use workload::classifier::{ClassifiedSource, Classifier};
/// use workload::{PlacementIndex, RequestSource, WorkloadTarget, Workload};
///
/// #[derive(Default)]
/// struct OverwritesApart {
///     written: HashSet<u64>,
/// }
///
/// impl Classifier for OverwritesApart {
///     fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
///         let is_first = self.written.insert(unit);
///         Some(PlacementIndex(u16::from(is_first)))
///     }
///
///     fn trim(&mut self, unit: u64) {
///         self.written.remove(&unit);
///     }
/// }
///
/// let target = WorkloadTarget {
///     device_bytes: 16 << 20,
///     placement_count: 2,
///     ..WorkloadTarget::default()
/// };
/// let job = workload::fio::parse("[twice]\nrw=write\nbs=4k\nsize=1m\nloops=2\n", "twice.fio")?;
/// let source = job.source(&target, 1)?;
/// let mut source = ClassifiedSource::new(source, Box::new(OverwritesApart::default()), &target);
/// let mut requests = Vec::new();
/// while source.next_batch(&mut requests, 1024)? > 0 {}
/// let (first, second) = requests.split_at(256);
/// assert!(first.iter().all(|request| request.placement == Some(PlacementIndex(1))));
/// assert!(second.iter().all(|request| request.placement == Some(PlacementIndex(0))));
/// assert_eq!(second.len(), 256);
/// # Ok::<(), workload::WorkloadError>(())
/// ```
pub trait Classifier: Send {
    /// Announces a write of `units` units, so that the classifier can look ahead if it needs to.
    ///
    /// # Errors
    /// Fails if the classifier cannot look ahead.
    fn prepare(&mut self, _units: u64) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Prefetches the memory of a unit that is written soon. It changes nothing but the timing.
    fn prefetch(&self, _unit: u64) {}

    /// Returns the placement index, if any, for a write of this unit.
    fn handle(&mut self, unit: u64) -> Option<PlacementIndex>;

    /// Reports that a unit is deallocated.
    fn trim(&mut self, _unit: u64) {}

    /// Figures that the classifier has measured, for [`RequestSource::measures`].
    fn measures(&self) -> Vec<WorkloadMeasure> {
        Vec::new()
    }
}

/// `[classifier]`, the kind and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClassifierSettings {
    /// All writes without a directive.
    None(NoneSettings),
    /// By address.
    LbaRange(LbaRangeSettings),
    /// By write frequency of the unit.
    UpdateFrequency(UpdateFrequencySettings),
    /// By lifetime of the unit's previous content.
    Sepbit(SepbitSettings),
    /// By lifetime of the unit's previous content, in groups that a model chooses.
    Midas(MidasSettings),
    /// By lifetime of the unit's previous content, in clusters.
    Warcip(WarcipSettings),
    /// By future lifetime of the new content.
    Oracle(OracleSettings),
}

impl ClassifierSettings {
    /// Wraps a source and replaces its placement. On a drive without placement indices, no
    /// classifier runs and no write has a directive. A classifier that looks ahead builds the
    /// source a second time.
    ///
    /// # Errors
    /// Fails if a setting is impossible on this drive or the source cannot be built.
    pub fn classify<S: RequestSource + 'static>(
        &self,
        build: impl Fn() -> Result<S, WorkloadError>,
        target: &WorkloadTarget,
    ) -> Result<ClassifiedSource<S>, WorkloadError> {
        let classifier: Box<dyn Classifier> = match self {
            _ if target.placement_count == 0 => Box::new(none::NoClassifier),
            ClassifierSettings::None(_) => Box::new(none::NoClassifier),
            ClassifierSettings::LbaRange(settings) => Box::new(settings.classifier(target)?),
            ClassifierSettings::UpdateFrequency(settings) => Box::new(settings.classifier(target)?),
            ClassifierSettings::Sepbit(settings) => Box::new(settings.classifier(target)?),
            ClassifierSettings::Midas(settings) => Box::new(settings.classifier(target)?),
            ClassifierSettings::Warcip(settings) => Box::new(settings.classifier(target)?),
            ClassifierSettings::Oracle(settings) => Box::new(settings.classifier(build()?, target)?),
        };
        Ok(ClassifiedSource::new(build()?, classifier, target))
    }

    /// Maximum memory of a classified source, bytes, if the source alone takes `source_bytes`. A
    /// classifier that looks ahead holds a second source.
    pub fn memory_bytes(&self, source_bytes: u64, target: &WorkloadTarget) -> u64 {
        let units = units(target) as u64;
        // Log accounting is proportional to the number of segments, which is smaller than that of
        // units.
        let (per_unit_bytes, more_bytes) = match self {
            _ if target.placement_count == 0 => (0, 0),
            ClassifierSettings::None(_) | ClassifierSettings::LbaRange(_) => (0, 0),
            ClassifierSettings::UpdateFrequency(_)
            | ClassifierSettings::Sepbit(_)
            | ClassifierSettings::Midas(_)
            | ClassifierSettings::Warcip(_) => (8, 0),
            ClassifierSettings::Oracle(_) => (8, source_bytes.saturating_add(oracle::BUFFER_BYTES)),
        };
        (BATCH_BYTES + units * per_unit_bytes).saturating_add(more_bytes).saturating_add(source_bytes)
    }
}

/// Default segment size of log accounting, bytes of the drive at full size. From SepBIT's prototype
/// (fallfish/sepbit, `prototype/src/logstore/manager.cc`).
const SEGMENT_BYTES: u64 = 512 << 20;
/// Garbage at which such a log is collected, percent of garbage and valid data, from the same
/// prototype.
const GARBAGE_PERCENT: f64 = 15.0;

/// Number of mapping units of the drive.
pub(crate) fn units(target: &WorkloadTarget) -> usize {
    target.capacity_bytes().div_ceil(target.unit_bytes()) as usize
}

pub(crate) fn written_units(write: &IoRequest, unit_bytes: u64) -> Range<u64> {
    let end = write.offset_bytes + u64::from(write.bytes);
    write.offset_bytes / unit_bytes..end.div_ceil(unit_bytes)
}

/// Units that a trim covers. A trim leaves partly covered units unchanged.
pub(crate) fn trimmed_units(trim: &IoRequest, unit_bytes: u64) -> Range<u64> {
    let end = trim.offset_bytes + u64::from(trim.bytes);
    trim.offset_bytes.div_ceil(unit_bytes)..end / unit_bytes
}

/// Checks a setting with a number of placement indices. The default is all indices of the drive.
fn placement_count(wanted: Option<u16>, target: &WorkloadTarget) -> Result<u16, WorkloadError> {
    let has = target.placement_count;
    match wanted.unwrap_or(has) {
        count if (1..=has).contains(&count) => Ok(count),
        count => Err(WorkloadError::setting(
            format!("classifier.placement_count = {count}"),
            format!("is not possible on a drive with {has} placement indices. Use 1 to {has}"),
        )),
    }
}

/// Requests per batch.
const BATCH: usize = 1024;
/// Requests between the prefetch of a unit and its write.
pub(super) const PREFETCH_DISTANCE: usize = 16;
/// Maximum units of a batch, so that batches of large requests take no longer than those of small
/// ones.
const UNITS_OF_BATCH: u64 = 1 << 20;
/// Bytes of the batch, of the parts of one request, and of all other drive-independent state.
const BATCH_BYTES: u64 = 32 << 20;

/// A source whose writes a classifier places. Writes whose units differ in placement are split.
pub struct ClassifiedSource<S> {
    source: S,
    classifier: Box<dyn Classifier>,
    unit_bytes: u64,
    /// Requests of the source, and the index of the next one.
    asked: Vec<IoRequest>,
    next: usize,
    /// Parts of a request that was split, last one first.
    parts: Vec<IoRequest>,
    /// Bytes to each placement index. The last element counts writes without an index.
    bytes: Vec<u64>,
    failed: Option<WorkloadError>,
}

impl<S: RequestSource> ClassifiedSource<S> {
    /// Places the writes of a source with a classifier.
    pub fn new(source: S, classifier: Box<dyn Classifier>, target: &WorkloadTarget) -> ClassifiedSource<S> {
        ClassifiedSource {
            source,
            classifier,
            unit_bytes: target.unit_bytes(),
            asked: Vec::with_capacity(BATCH),
            next: 0,
            parts: Vec::new(),
            bytes: vec![0; usize::from(target.placement_count) + 1],
            failed: None,
        }
    }

    /// Returns the next request of the source, placed. Its further parts are in `parts`.
    fn next_request(&mut self) -> Result<Option<IoRequest>, WorkloadError> {
        if self.next == self.asked.len() {
            self.asked.clear();
            self.next = 0;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            // Requests in front of an error are issued before the error is returned.
            if let Err(error) = self.source.next_batch(&mut self.asked, BATCH) {
                self.failed = Some(error);
            }
            assert!(
                self.asked.len() <= BATCH,
                "the source gives {} requests, at most {BATCH} are wanted",
                self.asked.len()
            );
        }
        let Some(request) = self.asked.get(self.next).copied() else {
            return match self.failed.take() {
                Some(error) => Err(error),
                None => Ok(None),
            };
        };
        if let Some(soon) = self.asked.get(self.next + PREFETCH_DISTANCE) {
            self.classifier.prefetch(soon.offset_bytes / self.unit_bytes);
        }
        self.next += 1;
        Ok(Some(match request.operation {
            RequestOperation::Read => request,
            RequestOperation::Trim => {
                trimmed_units(&request, self.unit_bytes).for_each(|unit| self.classifier.trim(unit));
                request
            }
            RequestOperation::Write => self.place(request)?,
        }))
    }

    /// Places a write. Further parts with other indices are queued in `parts`.
    #[inline]
    fn place(&mut self, write: IoRequest) -> Result<IoRequest, WorkloadError> {
        assert!(self.parts.is_empty(), "parts of a write are given before the next write is placed");
        let end = write.offset_bytes + u64::from(write.bytes);
        let mut units = written_units(&write, self.unit_bytes);
        self.classifier.prepare(units.end - units.start)?;
        let first = units.next().expect("a write has a byte");
        let mut part = IoRequest { placement: self.classifier.handle(first), ..write };
        let mut head = None;
        for unit in units {
            let placement = self.classifier.handle(unit);
            if placement != part.placement {
                let boundary = unit * self.unit_bytes;
                let rest = end - boundary;
                part.bytes = (boundary - part.offset_bytes) as u32;
                self.issue(part, &mut head);
                part = IoRequest { placement, offset_bytes: boundary, bytes: rest as u32, ..write };
            }
        }
        assert_eq!(part.offset_bytes + u64::from(part.bytes), end, "the last part ends where the write does");
        self.issue(part, &mut head);
        self.parts.reverse();
        Ok(head.expect("a write has a part"))
    }

    fn issue(&mut self, part: IoRequest, head: &mut Option<IoRequest>) {
        assert!(part.bytes > 0, "a part of a write at {} has no bytes", part.offset_bytes);
        let none = self.bytes.len() - 1;
        self.bytes[part.placement.map_or(none, PlacementIndex::index)] += u64::from(part.bytes);
        match head {
            None => *head = Some(part),
            Some(_) => self.parts.push(part),
        }
    }
}

impl<S: RequestSource> RequestSource for ClassifiedSource<S> {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        let (mut issued, mut bytes) = (0, 0);
        while issued < limit && bytes < UNITS_OF_BATCH * self.unit_bytes {
            let request = match self.parts.pop() {
                Some(part) => Some(part),
                None => self.next_request()?,
            };
            let Some(request) = request else { break };
            bytes += u64::from(request.bytes);
            requests.push(request);
            issued += 1;
        }
        Ok(issued)
    }

    fn streams(&self) -> Vec<String> {
        self.source.streams()
    }

    fn share_done(&self) -> Option<f64> {
        self.source.share_done()
    }

    fn ranges(&self) -> Vec<crate::OwnedRange> {
        self.source.ranges()
    }

    fn owners(&self) -> Vec<crate::OwnedRange> {
        self.source.owners()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let mut measures = self.source.measures();
        let total: u64 = self.bytes.iter().sum();
        let share = |bytes: u64| bytes as f64 / total.max(1) as f64;
        let (none, placed) = self.bytes.split_last().expect("there is a place for those without placement");
        let name = |index| format!("classifier.share.{index}");
        measures
            .extend(placed.iter().enumerate().map(|(index, bytes)| WorkloadMeasure::new(name(index), share(*bytes))));
        measures.push(WorkloadMeasure::new("classifier.share.none", share(*none)));
        measures.extend(self.classifier.measures());
        measures
    }
}
