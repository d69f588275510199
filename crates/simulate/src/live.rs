//! Live runs for interactive use: they advance in steps, rewind and fork.
//!
//! ```text
//! RunPlan -> LiveRun -> advance -> units, events, samples, counters -> observer
//!               \-> checkpoints -> begin_seek, fork
//! ```
//!
//! A live run is the loop of [`crate::run::run_all`] in steps. Its result does not depend on their
//! length. Pauses, rewinds and observers change no integer of it. A rewind restores the nearest
//! earlier checkpoint. A checkpoint is a copy of the device and the number of requests taken. The
//! run then builds its workload again and skips that number of requests. A run in virtual time, or
//! with placement feedback, rewinds to its beginning.
//!
//! Checkpoints use memory that no run needs ([`MemoryAccount`]), and release it on demand.
//!
//! Live runs have no real clock, threads, scale search or caller policies.

mod account;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ssd::timing::BusyInterval;
use ssd::{DeviceEvent, DeviceStats, EventsSince, Nanos, UnitView};

pub use crate::run::{RunPhase, RunPosition};
pub use account::{MemoryAccount, MemoryShare};

use crate::run::{ActiveRun, ExecutionOptions, RunCheckpoint, RunPlan, RunResult, STEP_PAGES, StepLimit};
use crate::timed::result::TimedResult;
use experiment::error::LabError;

/// Initial number of checkpoints over the workload.
const CHECKPOINTS_FIRST: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkStart {
    /// Continues on the same drive from the same moment.
    Here,
    /// Restarts on another drive and must advance to that moment.
    FromStart,
}

/// Recent operations of dies and channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentActivity {
    /// Virtual time since which no operation is missing.
    pub complete_from: Nanos,
    /// Operations of each die, in channel order.
    pub dies: Vec<Vec<BusyInterval>>,
    /// Host transfers of each channel.
    pub channels: Vec<Vec<BusyInterval>>,
}

/// A run that a caller advances, rewinds and forks. See the module.
pub struct LiveRun {
    run: ActiveRun<Arc<RunPlan>>,
    checkpoints: RunCheckpoints,
    /// Fork point, if the run continues another run's drive. It has no earlier history.
    origin: Option<(Arc<RunCheckpoint>, MemoryShare)>,
}

/// Checkpoints of a run, limited by memory.
struct RunCheckpoints {
    account: MemoryAccount,
    /// Number of the run in the account.
    run: u64,
    /// Maximum memory of a checkpoint.
    each_bytes: u64,
    /// Bytes written by the host between two checkpoints.
    every_bytes: u64,
    /// Bytes written by the host at which the next checkpoint is due.
    next_bytes: u64,
}

impl RunCheckpoints {
    fn new(plan: &RunPlan, account: &MemoryAccount) -> RunCheckpoints {
        RunCheckpoints {
            account: account.clone(),
            run: account.next_run(),
            each_bytes: plan.memory_bytes,
            every_bytes: (plan.workload_work / CHECKPOINTS_FIRST).max(1),
            next_bytes: 0,
        }
    }

    /// Reserves memory for a checkpoint if one is due and memory allows.
    fn reserve(&mut self, host_bytes: u64) -> Option<MemoryShare> {
        if host_bytes < self.next_bytes {
            return None;
        }
        self.next_bytes = host_bytes.saturating_add(self.every_bytes);
        assert!(self.next_bytes > host_bytes, "the next checkpoint is due later");
        if self.account.has_near(self.run, host_bytes, self.every_bytes / 2 + 1) {
            return None;
        }
        let (share, was_halved) = self.account.take_for_checkpoint(self.run, self.each_bytes);
        self.spread(was_halved);
        share
    }

    /// Doubles the interval after the account dropped every other checkpoint.
    fn spread(&mut self, was_halved: bool) {
        if was_halved {
            self.next_bytes = self.next_bytes.saturating_add(self.every_bytes);
            self.every_bytes = self.every_bytes.saturating_mul(2);
        }
    }
}

impl Drop for RunCheckpoints {
    fn drop(&mut self) {
        self.account.drop_checkpoints(self.run);
    }
}

impl LiveRun {
    /// Creates a run at its beginning. The caller has reserved its memory. Checkpoints use the rest
    /// of the account.
    ///
    /// # Errors
    /// The plan searches for a scale, or a snapshot cannot be read.
    pub fn begin(plan: Arc<RunPlan>, account: &MemoryAccount) -> Result<LiveRun, LabError> {
        if plan.searches() {
            let problem = "a live run needs one scale. Give one, such as 1/512";
            return Err(LabError::invalid("scale", problem));
        }
        if plan.cell().whole_array().is_some() {
            let problem = "a live run has one drive. Choose a drive of the array";
            return Err(LabError::invalid("array", problem));
        }
        let checkpoints = RunCheckpoints::new(&plan, account);
        let mut run = ActiveRun::begin(plan, ExecutionOptions::default())?;
        run.enable_event_log();
        Ok(LiveRun { run, checkpoints, origin: None })
    }

    pub fn plan(&self) -> &Arc<RunPlan> {
        &self.run.plan
    }

    pub fn phase(&self) -> RunPhase {
        self.run.phase()
    }

    pub fn position(&self) -> RunPosition {
        self.run.position()
    }

    /// Advances until the host has written `host_bytes` since the workload began, until about
    /// `requests` more were taken, or to the end. During the fill, `requests` counts extents.
    ///
    /// # Errors
    /// A workload input cannot be read. The run has then ended.
    pub fn advance(&mut self, host_bytes: u64, requests: u64) -> Result<RunPhase, LabError> {
        let end = requests.saturating_add(self.progress());
        while end > self.progress() && self.phase() != RunPhase::Ended {
            let left = end - self.progress();
            self.advance_briefly(host_bytes, left)?;
            if self.phase() == RunPhase::Running && self.position().host_bytes >= host_bytes {
                break;
            }
        }
        Ok(self.phase())
    }

    /// Like [`LiveRun::advance`], but for a fraction of a second at most, for any request size.
    pub fn advance_briefly(&mut self, host_bytes: u64, requests: u64) -> Result<RunPhase, LabError> {
        let end = requests.saturating_add(self.progress());
        let pages_end = self.run.pages_named + STEP_PAGES;
        loop {
            let left = end.saturating_sub(self.progress());
            let pages = pages_end.saturating_sub(self.run.pages_named);
            let has_arrived = self.phase() == RunPhase::Running && self.position().host_bytes >= host_bytes;
            if left == 0 || pages == 0 || has_arrived || self.phase() == RunPhase::Ended {
                return Ok(self.phase());
            }
            // Requests in flight at the last written byte must complete too.
            let is_all = self.plan().write_bytes().is_some_and(|bytes| host_bytes >= bytes);
            let stride = StepLimit { requests: left, host_bytes: if is_all { u64::MAX } else { host_bytes }, pages };
            let host_bytes_before = self.position().host_bytes;
            self.run.step(stride, &())?;
            assert!(self.position().host_bytes >= host_bytes_before, "a step reduced the bytes written");
            self.keep_checkpoint();
        }
    }

    /// Progress in the unit of `requests` of [`LiveRun::advance`].
    fn progress(&self) -> u64 {
        let position = self.position();
        position.requests + self.run.extents_filled()
    }

    /// Stores a checkpoint if one is possible and due, and if memory allows.
    fn keep_checkpoint(&mut self) {
        if !self.run.can_checkpoint() {
            return;
        }
        let share = self.checkpoints.reserve(self.position().host_bytes);
        let Some(share) = share else { return };
        if let Some(checkpoint) = self.run.checkpoint() {
            let kept = &mut self.checkpoints;
            let was_halved = kept.account.store_checkpoint(kept.run, checkpoint, share);
            kept.spread(was_halved);
        }
    }

    /// Rewinds to the nearest checkpoint at or before `host_bytes`. [`LiveRun::advance`] continues
    /// from there. A goal ahead of the run changes nothing. A fork from [`ForkStart::Here`] rewinds
    /// at most to its origin.
    pub fn begin_seek(&mut self, host_bytes: u64) -> Result<(), LabError> {
        if self.phase() == RunPhase::Filling || self.position().host_bytes <= host_bytes {
            return Ok(());
        }
        let origin = || self.origin.as_ref().map(|(origin, _)| Arc::clone(origin));
        let before = self.checkpoints.account.latest_before(self.checkpoints.run, host_bytes);
        match before.or_else(origin) {
            Some(checkpoint) => self.run.restore(&checkpoint)?,
            None => {
                let plan = Arc::clone(self.plan());
                self.run = ActiveRun::begin(plan, ExecutionOptions::default())?;
                self.run.enable_event_log();
            }
        }
        let now = self.position().host_bytes;
        assert!(self.origin.is_some() || now <= host_bytes, "a rewound run is beyond its goal");
        // Checkpoints that the account released are taken again on the way.
        self.checkpoints.next_bytes = now.saturating_add(1);
        Ok(())
    }

    /// Counters since the workload began. Before, those of the fill.
    pub fn stats(&self) -> DeviceStats {
        self.run.stats()
    }

    /// All reclaim units in flash order.
    pub fn units(&self) -> impl Iterator<Item = UnitView> {
        self.run.device().units()
    }

    /// Free space in reclaim units of the largest size.
    pub fn free_units(&self) -> u64 {
        let device = self.run.device();
        device.free_slices() / u64::from(device.layout().slices_per_superblock)
    }

    /// Erases of each block, in die order.
    pub fn block_erase_counts(&self) -> &[u32] {
        self.run.device().block_erase_counts()
    }

    /// Returns the events since the last call. Times of collections count from the beginning of the
    /// workload. Earlier collections have no meaningful time.
    pub fn take_events(&mut self) -> EventsSince {
        let begun_at = self.run.begun_at();
        let mut taken = self.run.live_log().take();
        for event in &mut taken.events {
            if let DeviceEvent::Reclaim(reclaim) = &mut event.event {
                reclaim.now = reclaim.now.saturating_sub(begun_at);
            }
        }
        taken
    }

    /// Measurements in virtual time so far. `None` without a clock or before the workload.
    pub fn timed(&self) -> Option<TimedResult> {
        self.run.timed_now()
    }

    /// Recent operations of each die and channel, in rising virtual time since the workload began.
    /// The log is incomplete before `complete_from`. Without a clock it is empty.
    pub fn activity(&self) -> RecentActivity {
        let (dies, channels) = self.run.device().activity();
        let begun_at = self.run.begun_at();
        let all = dies.iter().chain(&channels);
        let cut = all.filter(|log| log.pieces().overwritten() > 0);
        let first = |log: &&ssd::timing::ActivityLog| log.pieces().iter().map(|piece| piece.from).min();
        let complete_from = cut.filter_map(first).max().unwrap_or(0).max(begun_at);
        let since = |log: &&ssd::timing::ActivityLog| {
            let pieces = log.pieces().iter().filter(|piece| piece.from >= complete_from);
            let mut pieces: Vec<BusyInterval> = pieces.copied().collect();
            for piece in &mut pieces {
                assert!(piece.until >= piece.from, "an operation ends after it began");
                piece.from -= begun_at;
                piece.until -= begun_at;
            }
            pieces.sort_unstable_by_key(|piece| piece.from);
            pieces
        };
        RecentActivity {
            complete_from: complete_from - begun_at,
            dies: dies.iter().map(since).collect(),
            channels: channels.iter().map(since).collect(),
        }
    }

    /// Result so far. It is complete only if the run ended by itself.
    pub fn result(&self) -> RunResult {
        self.run.result_now()
    }

    /// Forks the run with another plan. The fork keeps the drive if only the workload or the
    /// adjustable garbage collection rules differ. Else it restarts, and [`LiveRun::advance`]
    /// brings it to this moment.
    ///
    /// A new workload skips as many requests as the old one used. The fork thus models a host that
    /// changes its behaviour now.
    ///
    /// # Errors
    /// As [`LiveRun::begin`]. A workload input cannot be read.
    pub fn fork(&self, plan: Arc<RunPlan>, account: &MemoryAccount) -> Result<(LiveRun, ForkStart), LabError> {
        let Some(run) = self.run.fork(&plan)? else {
            return Ok((LiveRun::begin(plan, account)?, ForkStart::FromStart));
        };
        assert_eq!(run.position().host_bytes, self.position().host_bytes, "a fork begins at the position of its run");
        let mut checkpoints = RunCheckpoints::new(&plan, account);
        let share = account.reserve(checkpoints.each_bytes).ok();
        let origin = share.and_then(|share| Some((Arc::new(run.checkpoint()?), share)));
        if origin.is_none() {
            // No memory for a checkpoint means no memory for a second drive.
            return Err(LabError::invalid("fork", "there is no memory for another drive. End another session or lane"));
        }
        checkpoints.next_bytes = run.position().host_bytes + checkpoints.every_bytes;
        let fork = LiveRun { origin, checkpoints, run };
        Ok((fork, ForkStart::Here))
    }
}
