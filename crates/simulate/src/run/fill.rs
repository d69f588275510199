//! Sequential fill of a drive before the workload, without directives, in extents of up to 1 MiB. A
//! drive of an array gets its part of the fill of the array.

use experiment::error::LabError;
use ssd::{Lpn, Nanos};

use super::array_member::MemberFill;
use super::drive::RunDrive;
use super::plan::RunPlan;
use super::progress::ProgressObserver;

pub(super) struct Fill {
    member: Option<MemberFill>,
    /// Completion times of the extents in flight, if the device has timing.
    completions: [Nanos; Fill::IN_FLIGHT],
    now: Nanos,
    pub(super) filled: FillSummary,
    pages_left: u64,
    next_lpn: u32,
}

/// Writes before the workload.
#[derive(Clone, Copy, Default)]
pub(super) struct FillSummary {
    pub(super) bytes: u64,
    pub(super) extents: u64,
    /// Device time when the workload began. 0 before, and without timing.
    pub(super) until: Nanos,
}

impl Fill {
    /// Extents in flight, if the device has timing.
    const IN_FLIGHT: usize = 32;
    /// Idle time, longer than any buffer program or reclaim unit erase.
    const REST_NS: Nanos = 10_000_000_000;
    /// Maximum extents of a step.
    const STEP_EXTENTS: u64 = 1024;

    pub(super) fn new(plan: &RunPlan) -> Result<Fill, LabError> {
        Ok(Fill {
            member: plan.member_fill()?,
            completions: [0; Fill::IN_FLIGHT],
            now: 0,
            filled: FillSummary::default(),
            pages_left: (plan.cell().run.precondition_drive_writes * f64::from(plan.layout.logical_pages)) as u64,
            next_lpn: 0,
        })
    }

    /// Writes up to `extents` extents. Returns false once the drive is filled.
    pub(super) fn advance(
        &mut self,
        drive: &mut RunDrive,
        plan: &RunPlan,
        extents: u64,
        watch: &dyn ProgressObserver,
    ) -> bool {
        if self.member.is_some() {
            return self.advance_member(drive, extents, watch);
        }
        let (page_bytes, logical_pages) = (plan.layout.page_bytes, plan.layout.logical_pages);
        let extent = ((1 << 20) / page_bytes).max(1) as u32;
        for _ in 0..extents.min(Fill::STEP_EXTENTS) {
            if self.pages_left == 0 || watch.should_stop() {
                drive.write_out();
                return false;
            }
            assert!(self.next_lpn < logical_pages, "an extent begins within the drive");
            let pages = extent.min(logical_pages - self.next_lpn).min(self.pages_left.min(u64::from(u32::MAX)) as u32);
            assert!(pages > 0, "an extent at page {} has no pages, and {} are left", self.next_lpn, self.pages_left);
            let write = drive.fill_write(Lpn(self.next_lpn), pages);
            if plan.is_timed() {
                let slot = &mut self.completions[self.filled.extents as usize % Fill::IN_FLIGHT];
                self.now = self.now.max(*slot);
                let done = drive.device.write(self.now, &write);
                *slot = done.expect("the extent is within the device").at;
                assert!(*slot >= self.now, "a write is done after it was sent");
            } else {
                drive.queue(write);
            }
            watch.add_completed(write.host_bytes);
            self.filled.extents += 1;
            self.filled.bytes += write.host_bytes;
            self.next_lpn = (self.next_lpn + pages) % logical_pages;
            self.pages_left -= u64::from(pages);
        }
        drive.write_out();
        true
    }

    fn advance_member(&mut self, drive: &mut RunDrive, extents: u64, watch: &dyn ProgressObserver) -> bool {
        let requests = self.member.iter_mut().flatten();
        let taken = requests.take(extents.min(Fill::STEP_EXTENTS) as usize);
        let before = self.filled.extents;
        for request in taken.take_while(|_| !watch.should_stop()) {
            let bytes = drive.execute(&request);
            watch.add_completed(bytes);
            self.filled.extents += 1;
            self.filled.bytes += bytes;
        }
        drive.write_out();
        self.filled.extents > before
    }

    /// Ends the fill. A device with timing idles to complete deferred work before the workload.
    pub(super) fn end(&self, drive: &RunDrive, plan: &RunPlan) -> FillSummary {
        drive.assert_written(self.filled.bytes);
        let until = match self.completions.into_iter().max() {
            Some(last) if self.filled.extents > 0 && plan.is_timed() => last + Fill::REST_NS,
            _ => 0,
        };
        FillSummary { until, ..self.filled }
    }
}
