//! What a run keeps of its device's events: the GC log, collections for the time series, copies of each part of the
//! drive that belongs to somebody, and the log of events that the drive keeps for its host.

use ssd::event::{Interest, Reclaim};
use ssd::{Event, MappedRun, Nanos, RecentEvents};
use workload::Range;

use crate::feedback::DriveLog;

/// See the module.
#[derive(Default)]
pub(crate) struct Recorder {
    keep: bool,
    pub(crate) gc_log: Vec<Reclaim>,
    /// On a device with timing: collections that nobody has taken notice of, when and how many pages were copied.
    pub(crate) recent: Vec<(Nanos, u32)>,
    timed: bool,
    /// Parts of the drive that belong to somebody, with the page after each and the pages copied of it.
    ranges: Vec<(Range, u32, u64)>,
    /// The events that the drive keeps for who listens.
    pub(crate) drive_log: Option<DriveLog>,
    /// What happened lately, for who watches.
    pub(crate) live_log: Option<RecentEvents>,
}

impl Recorder {
    /// A recorder of a run that begins.
    pub(crate) fn new(keep_gc_log: bool, timed: bool) -> Recorder {
        Recorder {
            keep: keep_gc_log,
            timed,
            ..Recorder::default()
        }
    }

    /// Counts from now on how many pages of each of these parts of the drive are copied.
    pub(crate) fn watch_ranges(&mut self, ranges: Vec<Range>, page_bytes: u64) {
        let end = |range: &Range| range.end_bytes.div_ceil(page_bytes) as u32;
        self.ranges = ranges
            .into_iter()
            .map(|range| (range.clone(), end(&range), 0))
            .collect();
    }

    /// What it counts, for a run that is set back to now. The logs are not part of it.
    pub(crate) fn counts(&self) -> Recorder {
        Recorder {
            timed: self.timed,
            ranges: self.ranges.clone(),
            ..Recorder::default()
        }
    }

    /// What was copied of each of these parts.
    pub(crate) fn copies(&self) -> impl Iterator<Item = (&Range, u64)> {
        self.ranges.iter().map(|(range, _, copied)| (range, *copied))
    }
}

impl ssd::EventSink for Recorder {
    fn interest(&self) -> Interest {
        Interest::ReclaimUnits
    }

    fn event(&mut self, event: &Event) {
        if let Some(log) = &mut self.live_log {
            log.note(event);
        }
        let Event::Reclaim(reclaim) = event else { return };
        if self.keep {
            assert!(
                self.gc_log
                    .last()
                    .is_none_or(|before| before.host_pages_written <= reclaim.host_pages_written),
                "collections are told of in their order"
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
