//! Event sink of a run's device. It keeps the GC log, collections for the time series, copies per
//! owned range, and the drive's event log for its host.

use ssd::event::{EventFilter, ReclaimRecord};
use ssd::{DeviceEvent, MappedRun, Nanos, RecentEvents};
use workload::OwnedRange;

use crate::feedback::DriveLog;

/// Event sink of a run. See the module.
#[derive(Default)]
pub(crate) struct RunRecorder {
    keep: bool,
    pub(crate) gc_log: Vec<ReclaimRecord>,
    /// On a device with timing: unprocessed collections, each with time and copied pages.
    pub(crate) recent: Vec<(Nanos, u32)>,
    timed: bool,
    /// Owned ranges of the drive, each with its end page and the number of pages copied.
    ranges: Vec<(OwnedRange, u32, u64)>,
    /// FDP event log that feedback reads.
    pub(crate) drive_log: Option<DriveLog>,
    /// Recent events, for observers.
    pub(crate) live_log: Option<RecentEvents>,
}

impl RunRecorder {
    pub(crate) fn new(keep_gc_log: bool, timed: bool) -> RunRecorder {
        RunRecorder { keep: keep_gc_log, timed, ..RunRecorder::default() }
    }

    /// Starts to count the copied pages of these ranges of the drive.
    pub(crate) fn watch_ranges(&mut self, ranges: Vec<OwnedRange>, page_bytes: u64) {
        assert!(
            ranges.is_sorted_by(|one, next| one.end_bytes <= next.start_bytes),
            "the {} owned ranges of a drive overlap or do not ascend",
            ranges.len()
        );
        let end = |range: &OwnedRange| range.end_bytes.div_ceil(page_bytes) as u32;
        self.ranges = ranges.into_iter().map(|range| (range.clone(), end(&range), 0)).collect();
    }

    /// Copies the counts for a checkpoint, without the logs.
    pub(crate) fn counts(&self) -> RunRecorder {
        RunRecorder { timed: self.timed, ranges: self.ranges.clone(), ..RunRecorder::default() }
    }

    pub(crate) fn copies(&self) -> impl Iterator<Item = (&OwnedRange, u64)> {
        self.ranges.iter().map(|(range, _, copied)| (range, *copied))
    }
}

impl ssd::EventSink for RunRecorder {
    fn event_filter(&self) -> EventFilter {
        EventFilter::ReclaimUnits
    }

    fn event(&mut self, event: &DeviceEvent) {
        if let Some(log) = &mut self.live_log {
            log.record(event);
        }
        let DeviceEvent::Reclaim(reclaim) = event else { return };
        if self.keep {
            assert!(
                self.gc_log.last().is_none_or(|before| before.host_pages_written <= reclaim.host_pages_written),
                "collections are reported in their order"
            );
            self.gc_log.push(reclaim.clone());
        }
        if let Some(log) = &mut self.drive_log {
            log.reclaimed(reclaim);
        }
        if self.timed {
            self.recent.push((reclaim.now, reclaim.pages_copied));
        }
    }

    fn copied(&mut self, runs: &[MappedRun]) {
        if let Some(log) = &mut self.drive_log {
            log.copied(runs);
        }
        for run in runs {
            let (mut first, run_end) = (run.lpn.0, run.lpn.0 + run.pages);
            let mut range = self.ranges.partition_point(|(_, end, _)| *end <= first);
            while first < run_end
                && let Some((_, end, copied)) = self.ranges.get_mut(range)
            {
                let here = run_end.min(*end) - first;
                *copied += u64::from(here);
                first += here;
                range += 1;
            }
        }
    }
}
