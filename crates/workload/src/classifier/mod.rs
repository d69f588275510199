//! Placement classifiers: which writes belong together, found out by a host whose applications do not say.
//!
//! ```text
//! any Source -> Classified (asks a Classifier about each unit of each write) -> the same requests with placement
//! ```
//!
//! A [`Classifier`] sees what a host sees: which units are written and trimmed, in order. It does not see the drive: neither
//! garbage collection nor what lies in which reclaim unit. Placement indices are the drive's, from the first on; the first is for what
//! is expected to be overwritten soonest. One sees more: the [`Oracle`], which knows the future, to measure the others against.
//!
//! Every classifier keeps 4 bytes for each unit of the drive (1 GiB per TiB at 4 KiB), except those that need nothing, and the oracle.

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

use crate::{Measure, Operation, PlacementIndex, Request, Source, Target, WorkloadError};

/// Decides where writes go.
pub trait Classifier: Send {
    /// A write of so many units comes next: time to look ahead, for one that does.
    ///
    /// # Errors
    /// It cannot look ahead.
    fn prepare(&mut self, _units: u64) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// A unit is written: the placement index for it, or none.
    fn handle(&mut self, unit: u64) -> Option<PlacementIndex>;

    /// A unit is deallocated.
    fn trim(&mut self, _unit: u64) {}

    /// What it has found out, for [`Source::measures`].
    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }
}

/// `[classifier]`: which one, and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Settings {
    /// All writes without a directive.
    None(NoneSettings),
    /// By address.
    LbaRange(LbaRangeSettings),
    /// By how often a unit is written.
    UpdateFrequency(UpdateFrequencySettings),
    /// By how long a unit's last content lived.
    Sepbit(SepbitSettings),
    /// By how long a unit's last content lived, in groups that a model chooses.
    Midas(MidasSettings),
    /// By how long a unit's last content lived, in clusters.
    Warcip(WarcipSettings),
    /// By how long a unit's content will live.
    Oracle(OracleSettings),
}

impl Settings {
    /// A source with these settings' placement in place of its own. On a drive without placement indices nothing is asked,
    /// and all writes are without a directive. What looks ahead builds the source once more.
    ///
    /// # Errors
    /// A setting that is impossible on this drive, or the source cannot be built.
    pub fn classify<S: Source + 'static>(
        &self,
        build: impl Fn() -> Result<S, WorkloadError>,
        target: &Target,
    ) -> Result<ClassifiedSource<S>, WorkloadError> {
        let classifier: Box<dyn Classifier> = match self {
            _ if target.placement_count == 0 => Box::new(none::None),
            Settings::None(_) => Box::new(none::None),
            Settings::LbaRange(settings) => Box::new(settings.classifier(target)?),
            Settings::UpdateFrequency(settings) => Box::new(settings.classifier(target)?),
            Settings::Sepbit(settings) => Box::new(settings.classifier(target)?),
            Settings::Midas(settings) => Box::new(settings.classifier(target)?),
            Settings::Warcip(settings) => Box::new(settings.classifier(target)?),
            Settings::Oracle(settings) => Box::new(settings.classifier(build()?, target)?),
        };
        Ok(ClassifiedSource::new(build()?, classifier, target))
    }
}

impl Settings {
    /// Memory that placing a source takes at most, bytes, where the source takes `source_bytes`. What looks ahead has one more of it.
    pub fn memory_bytes(&self, source_bytes: u64, target: &Target) -> u64 {
        let units = units(target) as u64;
        // Books of a log are in proportion to its segments, and there are fewer of those than units.
        let (per_unit_bytes, more_bytes) = match self {
            _ if target.placement_count == 0 => (0, 0),
            Settings::None(_) | Settings::LbaRange(_) => (0, 0),
            Settings::UpdateFrequency(_) | Settings::Sepbit(_) | Settings::Midas(_) | Settings::Warcip(_) => (8, 0),
            Settings::Oracle(_) => (8, source_bytes.saturating_add(oracle::BUFFER_BYTES)),
        };
        (BATCH_BYTES + units * per_unit_bytes)
            .saturating_add(more_bytes)
            .saturating_add(source_bytes)
    }
}

/// Size of a segment where a classifier keeps the books of a log, of the drive at full size: that of SepBIT's prototype (fallfish/sepbit,
/// `prototype/src/logstore/manager.cc`).
const SEGMENT_BYTES: u64 = 512 << 20;
/// Garbage at which such a log is collected, percent of garbage and valid data: that of the same prototype.
const GARBAGE_PERCENT: f64 = 15.0;

/// Units of the drive that a classifier keeps something about.
pub(crate) fn units(target: &Target) -> usize {
    target.capacity_bytes().div_ceil(target.unit_bytes()) as usize
}

/// Units that a write touches.
pub(crate) fn written_units(write: &Request, unit_bytes: u64) -> Range<u64> {
    let end = write.offset_bytes + u64::from(write.bytes);
    write.offset_bytes / unit_bytes..end.div_ceil(unit_bytes)
}

/// Units that a trim covers; it leaves parts of units as they are.
pub(crate) fn trimmed_units(trim: &Request, unit_bytes: u64) -> Range<u64> {
    let end = trim.offset_bytes + u64::from(trim.bytes);
    trim.offset_bytes.div_ceil(unit_bytes)..end / unit_bytes
}

/// A setting with a number of placement indices; by default all that the drive has.
fn placement_count(wanted: Option<u16>, target: &Target) -> Result<u16, WorkloadError> {
    let has = target.placement_count;
    match wanted.unwrap_or(has) {
        count if (1..=has).contains(&count) => Ok(count),
        count => Err(WorkloadError::setting(
            format!("classifier.placement_count = {count}"),
            format!("the drive has {has}; use 1 to {has}"),
        )),
    }
}

/// Requests that are asked for at once.
const BATCH: usize = 1024;
/// Units of the requests of a batch: one of large requests takes no longer than one of many.
const UNITS_OF_BATCH: u64 = 1 << 20;
/// Bytes of the requests of a batch, of the parts of one, and of the rest that does not depend on the drive.
const BATCH_BYTES: u64 = 32 << 20;

/// A source whose writes are placed by a classifier. A write is split where its units go to different placement indices.
pub struct ClassifiedSource<S> {
    source: S,
    classifier: Box<dyn Classifier>,
    unit_bytes: u64,
    /// Requests of the source, and which comes next.
    asked: Vec<Request>,
    next: usize,
    /// Parts of a request that was split, last one first.
    parts: Vec<Request>,
    /// Bytes to each placement index; the last is for those without one.
    bytes: Vec<u64>,
    failed: Option<WorkloadError>,
}

impl<S: Source> ClassifiedSource<S> {
    /// Places the writes of a source.
    pub fn new(source: S, classifier: Box<dyn Classifier>, target: &Target) -> ClassifiedSource<S> {
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

    /// The next request of the source, with placement; its further parts are in `parts`.
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        if self.next == self.asked.len() {
            self.asked.clear();
            self.next = 0;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            // What came before an error is issued before it.
            if let Err(error) = self.source.next_batch(&mut self.asked, BATCH) {
                self.failed = Some(error);
            }
        }
        let Some(request) = self.asked.get(self.next).copied() else {
            return match self.failed.take() {
                Some(error) => Err(error),
                None => Ok(None),
            };
        };
        self.next += 1;
        Ok(Some(match request.operation {
            Operation::Read => request,
            Operation::Trim => {
                trimmed_units(&request, self.unit_bytes).for_each(|unit| self.classifier.trim(unit));
                request
            }
            Operation::Write => self.place(request)?,
        }))
    }

    /// Gives a write its placement; further parts of it that go elsewhere are put aside.
    #[inline]
    fn place(&mut self, write: Request) -> Result<Request, WorkloadError> {
        assert!(
            self.parts.is_empty(),
            "parts of a write are given before the next write is placed"
        );
        let end = write.offset_bytes + u64::from(write.bytes);
        let mut units = written_units(&write, self.unit_bytes);
        self.classifier.prepare(units.end - units.start)?;
        let first = units.next().expect("a write has a byte");
        let mut part = Request {
            placement: self.classifier.handle(first),
            ..write
        };
        let mut head = None;
        for unit in units {
            let placement = self.classifier.handle(unit);
            if placement != part.placement {
                let boundary = unit * self.unit_bytes;
                let rest = end - boundary;
                part.bytes = (boundary - part.offset_bytes) as u32;
                self.issue(part, &mut head);
                part = Request {
                    placement,
                    offset_bytes: boundary,
                    bytes: rest as u32,
                    ..write
                };
            }
        }
        assert_eq!(
            part.offset_bytes + u64::from(part.bytes),
            end,
            "the last part ends where the write does"
        );
        self.issue(part, &mut head);
        self.parts.reverse();
        Ok(head.expect("a write has a part"))
    }

    fn issue(&mut self, part: Request, head: &mut Option<Request>) {
        let none = self.bytes.len() - 1;
        self.bytes[part.placement.map_or(none, PlacementIndex::index)] += u64::from(part.bytes);
        match head {
            None => *head = Some(part),
            Some(_) => self.parts.push(part),
        }
    }
}

impl<S: Source> Source for ClassifiedSource<S> {
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError> {
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

    fn ranges(&self) -> Vec<crate::Range> {
        self.source.ranges()
    }

    fn owners(&self) -> Vec<crate::Range> {
        self.source.owners()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = self.source.measures();
        let total: u64 = self.bytes.iter().sum();
        let share = |bytes: u64| bytes as f64 / total.max(1) as f64;
        let (none, placed) = self
            .bytes
            .split_last()
            .expect("there is a place for those without placement");
        let name = |index| format!("classifier.share.{index}");
        measures.extend(
            placed
                .iter()
                .enumerate()
                .map(|(index, bytes)| Measure::new(name(index), share(*bytes))),
        );
        measures.push(Measure::new("classifier.share.none", share(*none)));
        measures.extend(self.classifier.measures());
        measures
    }
}
