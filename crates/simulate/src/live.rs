//! Runs that somebody watches and steers: they go on in steps, go back, and are forked.
//!
//! ```text
//! RunPlan -> LiveRun -> advance -> units, events, samples, counters -> who watches
//!               \-> checkpoints -> begin_seek, fork
//! ```
//!
//! It is the loop of [`crate::run::run_all`], taken in steps; what comes out does not depend on their length, so a run that was paused,
//! set back and watched ends with the integers of one that was not. Going back takes the nearest checkpoint before: a copy of the device and the number of
//! requests that were taken, which a new workload gives again. A run in virtual time, or one whose host listens to the drive, goes back to its
//! beginning.
//!
//! Checkpoints take the memory that no run needs ([`MemoryAccount`]), and give way when one does.
//!
//! It has no clock and no threads, searches no scale, and asks no policies of a caller.

mod account;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ssd::timing::Piece;
use ssd::{Event, EventsSince, Lpn, Nanos, RuId, Stats, UnitView};

pub use crate::run::{Phase, Position};
pub use account::{MemoryAccount, MemoryShare};

use crate::run::{CellResult, Checkpoint, Options, Run, RunPlan, STEP_PAGES, Sample, Stride};
use crate::timed::result::TimedResult;
use experiment::error::LabError;

/// Shares of the workload between two checkpoints, at first.
const CHECKPOINTS_FIRST: u64 = 32;

/// Which way a fork went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// It goes on with the same drive from the same moment.
    Here,
    /// The drive is another one, so it begins anew and has yet to come to that moment.
    FromStart,
}

/// What dies and channels did lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Virtual time from which on nothing is missing.
    pub complete_from: Nanos,
    /// Of each die, in the order of channels.
    pub dies: Vec<Vec<Piece>>,
    /// Of each channel: transfers of hosts.
    pub channels: Vec<Vec<Piece>>,
}

/// See the module.
pub struct LiveRun {
    run: Run<Arc<RunPlan>>,
    checkpoints: Checkpoints,
    /// Where it was forked, if it goes on with the drive of another one: it knows nothing of the time before.
    origin: Option<(Arc<Checkpoint>, MemoryShare)>,
}

/// Moments that a run can be set back to, as many as there is memory for.
struct Checkpoints {
    account: MemoryAccount,
    /// Its number there.
    run: u64,
    /// Memory of each, at most.
    each_bytes: u64,
    every_bytes: u64,
    next_bytes: u64,
}

impl Checkpoints {
    fn new(plan: &RunPlan, account: &MemoryAccount) -> Checkpoints {
        Checkpoints {
            account: account.clone(),
            run: account.next_run(),
            each_bytes: plan.memory_bytes,
            every_bytes: (plan.workload_bytes() / CHECKPOINTS_FIRST).max(1),
            next_bytes: 0,
        }
    }

    /// Memory for a checkpoint of this moment, if one is due and there is room for it.
    fn room(&mut self, host_bytes: u64) -> Option<MemoryShare> {
        if host_bytes < self.next_bytes {
            return None;
        }
        self.next_bytes = host_bytes.saturating_add(self.every_bytes);
        assert!(self.next_bytes > host_bytes, "the next moment to keep is still to come");
        if self.account.has_near(self.run, host_bytes, self.every_bytes / 2 + 1) {
            return None;
        }
        let (room, gave_up) = self.account.take_for_checkpoint(self.run, self.each_bytes);
        self.spread(gave_up);
        room
    }

    fn keep(&mut self, checkpoint: Checkpoint, room: MemoryShare) {
        let were_too_many = self.account.keep(self.run, checkpoint, room);
        self.spread(were_too_many);
    }

    /// Takes half as many from now on, where every other one is gone.
    fn spread(&mut self, are_half_gone: bool) {
        if are_half_gone {
            self.next_bytes = self.next_bytes.saturating_add(self.every_bytes);
            self.every_bytes = self.every_bytes.saturating_mul(2);
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.account.forget(self.run);
    }
}

impl LiveRun {
    /// A run at its beginning, whose own memory is taken already. Copies of its device take what is left of the account.
    ///
    /// # Errors
    /// The scale is to be searched for, or a snapshot cannot be read.
    pub fn begin(plan: Arc<RunPlan>, account: &MemoryAccount) -> Result<LiveRun, LabError> {
        if plan.searches() {
            let problem = "a run that is watched has one scale; give one, such as 1/512";
            return Err(LabError::invalid("scale", problem));
        }
        let checkpoints = Checkpoints::new(&plan, account);
        let mut run = Run::begin(plan, Options::default())?;
        run.keep_live_log();
        Ok(LiveRun {
            run,
            checkpoints,
            origin: None,
        })
    }

    pub fn plan(&self) -> &Arc<RunPlan> {
        self.run.plan()
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.run.phase()
    }

    /// How far it is.
    pub fn position(&self) -> Position {
        self.run.position()
    }

    /// Goes on until the host has written so much since the workload began, or about `requests` more were taken, or it has ended; while the drive is
    /// filled, `requests` are its extents.
    ///
    /// # Errors
    /// What the workload reads cannot be read; the run has then ended.
    pub fn advance(&mut self, host_bytes: u64, requests: u64) -> Result<Phase, LabError> {
        let end = requests.saturating_add(self.taken());
        while end > self.taken() && self.phase() != Phase::Ended {
            let left = end - self.taken();
            self.advance_briefly(host_bytes, left)?;
            if self.phase() == Phase::Running && self.position().host_bytes >= host_bytes {
                break;
            }
        }
        Ok(self.phase())
    }

    /// As [`LiveRun::advance`], but no further than takes a fraction of a second, however large requests are.
    ///
    /// # Errors
    /// As [`LiveRun::advance`].
    pub fn advance_briefly(&mut self, host_bytes: u64, requests: u64) -> Result<Phase, LabError> {
        let end = requests.saturating_add(self.taken());
        let pages_end = self.run.pages_named() + STEP_PAGES;
        loop {
            let left = end.saturating_sub(self.taken());
            let pages = pages_end.saturating_sub(self.run.pages_named());
            let is_there = self.phase() == Phase::Running && self.position().host_bytes >= host_bytes;
            if left == 0 || pages == 0 || is_there || self.phase() == Phase::Ended {
                return Ok(self.phase());
            }
            // What was in flight when the last byte was written completes too.
            let is_all = self.plan().write_bytes().is_some_and(|bytes| host_bytes >= bytes);
            let stride = Stride {
                requests: left,
                host_bytes: if is_all { u64::MAX } else { host_bytes },
                pages,
            };
            let host_bytes_before = self.position().host_bytes;
            self.run.step(stride, &())?;
            assert!(
                self.position().host_bytes >= host_bytes_before,
                "a step takes back what was written"
            );
            self.keep_checkpoint();
        }
    }

    /// What `advance` counts.
    fn taken(&self) -> u64 {
        let position = self.position();
        position.requests + self.run.extents_filled()
    }

    fn keep_checkpoint(&mut self) {
        if !self.run.can_checkpoint() {
            return;
        }
        let room = self.checkpoints.room(self.position().host_bytes);
        let Some(room) = room else { return };
        if let Some(checkpoint) = self.run.checkpoint() {
            self.checkpoints.keep(checkpoint, room);
        }
    }

    /// Sets it back to a moment at or before the one at which the host had written so much, as near as there is one; [`LiveRun::advance`] goes on from there. Where that moment is still to come, nothing is changed; a run that was forked here goes back no further than that.
    ///
    /// # Errors
    /// As [`LiveRun::begin`].
    pub fn begin_seek(&mut self, host_bytes: u64) -> Result<(), LabError> {
        if self.phase() == Phase::Filling || self.position().host_bytes <= host_bytes {
            return Ok(());
        }
        let origin = || self.origin.as_ref().map(|(origin, _)| Arc::clone(origin));
        let before = self.checkpoints.account.before(self.checkpoints.run, host_bytes);
        match before.or_else(origin) {
            Some(checkpoint) => self.run.set_back(&checkpoint)?,
            None => {
                let plan = Arc::clone(self.plan());
                self.run = Run::begin(plan, Options::default())?;
                self.run.keep_live_log();
            }
        }
        let now = self.position().host_bytes;
        assert!(
            self.origin.is_some() || now <= host_bytes,
            "a run that is set back is not beyond its goal"
        );
        // Those that gave way are taken again on the way.
        self.checkpoints.next_bytes = now.saturating_add(1);
        Ok(())
    }

    /// The counters since the workload began; before that, those of the filling.
    pub fn stats(&self) -> Stats {
        self.run.stats()
    }

    /// Every reclaim unit, in the order of the flash.
    pub fn units(&self) -> impl Iterator<Item = UnitView> {
        self.run.device().units()
    }

    /// Reclaim units of the largest size that the free room would make.
    pub fn free_units(&self) -> u64 {
        let device = self.run.device();
        device.free_slices() / u64::from(device.layout().slices_per_superblock)
    }

    /// Erases of each block, in the order of the dies.
    pub fn block_erase_counts(&self) -> &[u32] {
        self.run.device().block_erase_counts()
    }

    /// Where a logical page is; `None` where it is not mapped, or not on the drive.
    pub fn unit_of_page(&self, page: Lpn) -> Option<RuId> {
        let device = self.run.device();
        let place = (page.0 < device.layout().logical_pages).then(|| device.lookup(page))??;
        Some(device.unit_of(place))
    }

    /// What happened since it was last asked. Collections have the time since the workload began; those before it have none.
    pub fn take_events(&mut self) -> EventsSince {
        let begun_at = self.run.begun_at();
        let mut taken = self.run.live_log().take();
        for event in &mut taken.events {
            if let Event::Reclaim(reclaim) = &mut event.event {
                reclaim.now = reclaim.now.saturating_sub(begun_at);
            }
        }
        taken
    }

    /// What was measured in virtual time so far, if it has a clock and has begun.
    pub fn timed(&self) -> Option<TimedResult> {
        self.run.timed_now()
    }

    /// What each die and each channel did lately, in virtual time since the workload began, rising, and from when on that is complete: before, some
    /// of it is not kept any more. Nothing of a run without a clock.
    pub fn activity(&self) -> Activity {
        let (dies, channels) = self.run.device().activity();
        let begun_at = self.run.begun_at();
        let all = dies.iter().chain(&channels);
        let cut = all.filter(|kept| kept.pieces().overwritten() > 0);
        let first = |kept: &&ssd::timing::Activity| kept.pieces().iter().map(|piece| piece.from).min();
        let complete_from = cut.filter_map(first).max().unwrap_or(0).max(begun_at);
        let since = |kept: &&ssd::timing::Activity| {
            let pieces = kept.pieces().iter().filter(|piece| piece.from >= complete_from);
            let mut pieces: Vec<Piece> = pieces.copied().collect();
            for piece in &mut pieces {
                assert!(piece.until >= piece.from, "an operation ends after it began");
                piece.from -= begun_at;
                piece.until -= begun_at;
            }
            pieces.sort_unstable_by_key(|piece| piece.from);
            pieces
        };
        Activity {
            complete_from: complete_from - begun_at,
            dies: dies.iter().map(since).collect(),
            channels: channels.iter().map(since).collect(),
        }
    }

    /// The time series so far, as the run's result will have it.
    pub fn samples(&self) -> &[Sample] {
        self.run.samples()
    }

    /// What was measured so far. Complete only where it has ended by itself.
    pub fn result(&self) -> CellResult {
        self.run.result_now()
    }

    /// The same run with another plan from this moment on, where that can be: where the plan differs in its workload, or in rules of collection that can
    /// change while a drive is in use. Otherwise the run from its beginning, which [`LiveRun::advance`] brings to this moment.
    ///
    /// Of another workload as many requests are passed over as were taken so far: a host that works otherwise from now on.
    ///
    /// # Errors
    /// As [`LiveRun::begin`]; or what the workload reads cannot be read.
    pub fn fork(&self, plan: Arc<RunPlan>, account: &MemoryAccount) -> Result<(LiveRun, Forked), LabError> {
        let Some(run) = self.run.fork(&plan)? else {
            return Ok((LiveRun::begin(plan, account)?, Forked::FromStart));
        };
        assert_eq!(
            run.position().host_bytes,
            self.position().host_bytes,
            "a fork begins where its run is"
        );
        let mut checkpoints = Checkpoints::new(&plan, account);
        let room = account.take(checkpoints.each_bytes).ok();
        let origin = room.and_then(|room| Some((Arc::new(run.checkpoint()?), room)));
        if origin.is_none() {
            // There is no memory for a moment to go back to, so there is none for a second drive.
            return Err(LabError::invalid(
                "fork",
                "there is no memory for another drive; end another session or lane",
            ));
        }
        checkpoints.next_bytes = run.position().host_bytes + checkpoints.every_bytes;
        let fork = LiveRun {
            origin,
            checkpoints,
            run,
        };
        Ok((fork, Forked::Here))
    }
}
