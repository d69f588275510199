//! Memory account shared by runs and their checkpoints.
//!
//! ```text
//! reserve             -> memory of a run, until its share is dropped     \
//! take_for_checkpoint,                                                    > at most the account
//! store_checkpoint    -> memory of a checkpoint, until a run needs it    /
//! ```
//!
//! Bytes are counted before their use. Checkpoints only take memory that no run has. A run that
//! needs more takes that of the oldest checkpoints. Their run then rewinds to an earlier moment.
//! The account knows no sessions and does not query the machine.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::run::RunCheckpoint;

/// Maximum checkpoints of a run.
const CHECKPOINTS_MAX: usize = 64;

/// A memory account. Clones share it.
#[derive(Clone)]
pub struct MemoryAccount(Arc<Mutex<AccountState>>);

struct AccountState {
    free_bytes: u64,
    /// Checkpoints of all runs, oldest first.
    checkpoints: VecDeque<StoredCheckpoint>,
    /// Number of the last run, counted from 1.
    runs: u64,
}

struct StoredCheckpoint {
    run: u64,
    bytes: u64,
    checkpoint: Arc<RunCheckpoint>,
}

/// Memory of one run, released on drop.
pub struct MemoryShare {
    account: MemoryAccount,
    bytes: u64,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.account.lock().free_bytes += self.bytes;
    }
}

impl MemoryAccount {
    pub fn new(bytes: u64) -> MemoryAccount {
        MemoryAccount(Arc::new(Mutex::new(AccountState { free_bytes: bytes, checkpoints: VecDeque::new(), runs: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        // The state is consistent between any two statements that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a run can take: free memory and that of checkpoints.
    pub fn available_bytes(&self) -> u64 {
        self.lock().available_bytes()
    }

    /// Takes memory for a run, from the oldest checkpoints if necessary.
    ///
    /// # Errors
    /// Memory is too low. Returns the available bytes.
    pub fn reserve(&self, bytes: u64) -> Result<MemoryShare, u64> {
        let mut state = self.lock();
        let available = state.available_bytes();
        if available < bytes {
            return Err(available);
        }
        while state.free_bytes < bytes {
            assert!(state.drop_oldest(None), "what is available can be taken");
        }
        Ok(state.share(self, bytes))
    }

    /// Returns a number for a run with checkpoints.
    pub(super) fn next_run(&self) -> u64 {
        let mut state = self.lock();
        state.runs += 1;
        state.runs
    }

    /// Takes memory for a checkpoint of a run. If memory is short, a run with at least as many
    /// checkpoints as any other drops every other one of its own. A run with fewer takes the memory
    /// of the oldest. The second value is true if the run dropped its own.
    pub(super) fn take_for_checkpoint(&self, run: u64, bytes: u64) -> (Option<MemoryShare>, bool) {
        let mut state = self.lock();
        let own = state.count(run);
        let halves = state.free_bytes < bytes && own > 1 && own >= state.most_checkpoints_of_other_runs(run);
        if halves {
            state.drop_every_other(run);
        }
        while state.free_bytes < bytes && state.drop_oldest(Some(run)) {}
        let share = (state.free_bytes >= bytes).then(|| state.share(self, bytes));
        (share, halves)
    }

    /// Keeps a checkpoint in memory taken for it. Returns true if the run exceeded its limit and
    /// dropped every other one.
    pub(super) fn store_checkpoint(&self, run: u64, checkpoint: RunCheckpoint, mut share: MemoryShare) -> bool {
        let bytes = std::mem::take(&mut share.bytes);
        let mut state = self.lock();
        state.checkpoints.push_back(StoredCheckpoint { run, bytes, checkpoint: Arc::new(checkpoint) });
        let are_too_many = state.count(run) > CHECKPOINTS_MAX;
        if are_too_many {
            state.drop_every_other(run);
        }
        assert!(
            state.count(run) <= CHECKPOINTS_MAX,
            "run {run} has {} checkpoints, at most {CHECKPOINTS_MAX}",
            state.count(run)
        );
        are_too_many
    }

    /// Last checkpoint of a run at or before a moment. A reference retains its memory.
    pub(super) fn latest_before(&self, run: u64, host_bytes: u64) -> Option<Arc<RunCheckpoint>> {
        let state = self.lock();
        let before = state.checkpoints_of(run).filter(|checkpoint| checkpoint.host_bytes() <= host_bytes);
        before.max_by_key(|checkpoint| checkpoint.host_bytes()).cloned()
    }

    /// Returns true if a run has a checkpoint closer than `within_bytes`.
    pub(super) fn has_near(&self, run: u64, host_bytes: u64, within_bytes: u64) -> bool {
        let state = self.lock();
        state.checkpoints_of(run).any(|checkpoint| checkpoint.host_bytes().abs_diff(host_bytes) < within_bytes)
    }

    pub(super) fn drop_checkpoints(&self, run: u64) {
        self.lock().retain(|stored| stored.run != run);
    }

    /// Checkpoints of a run.
    #[cfg(test)]
    pub(super) fn count(&self, run: u64) -> usize {
        self.lock().count(run)
    }
}

impl AccountState {
    fn share(&mut self, account: &MemoryAccount, bytes: u64) -> MemoryShare {
        self.free_bytes = self.free_bytes.checked_sub(bytes).expect("the caller checked that there is enough");
        MemoryShare { account: account.clone(), bytes }
    }

    fn checkpoints_of(&self, run: u64) -> impl Iterator<Item = &Arc<RunCheckpoint>> {
        let own = self.checkpoints.iter().filter(move |stored| stored.run == run);
        own.map(|stored| &stored.checkpoint)
    }

    fn count(&self, run: u64) -> usize {
        self.checkpoints_of(run).count()
    }

    fn most_checkpoints_of_other_runs(&self, run: u64) -> usize {
        let mut counts = HashMap::new();
        for stored in self.checkpoints.iter().filter(|stored| stored.run != run) {
            *counts.entry(stored.run).or_insert(0) += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    fn available_bytes(&self) -> u64 {
        let free = self.checkpoints.iter().filter(|stored| stored.is_free()).map(|stored| stored.bytes);
        self.free_bytes + free.sum::<u64>()
    }

    /// Drops the oldest unused checkpoint of another run. Returns false if none exists.
    fn drop_oldest(&mut self, but_of: Option<u64>) -> bool {
        let oldest = self.checkpoints.iter().position(|stored| stored.is_free() && Some(stored.run) != but_of);
        let stored = oldest.and_then(|oldest| self.checkpoints.remove(oldest));
        self.free_bytes += stored.as_ref().map_or(0, |stored| stored.bytes);
        stored.is_some()
    }

    /// Drops every other checkpoint of a run, except the first.
    fn drop_every_other(&mut self, run: u64) {
        let mut moments: Vec<u64> = self.checkpoints_of(run).map(|checkpoint| checkpoint.host_bytes()).collect();
        moments.sort_unstable();
        let gone: Vec<u64> = moments.into_iter().skip(1).step_by(2).collect();
        self.retain(|stored| stored.run != run || gone.binary_search(&stored.checkpoint.host_bytes()).is_err());
    }

    fn retain(&mut self, stays: impl Fn(&StoredCheckpoint) -> bool) {
        let before = std::mem::take(&mut self.checkpoints);
        for stored in before {
            if stays(&stored) {
                self.checkpoints.push_back(stored);
            } else {
                self.free_bytes += stored.bytes;
            }
        }
    }
}

impl StoredCheckpoint {
    /// Returns true if no run uses it. Only the locked account gives out copies.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.checkpoint) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let account = MemoryAccount::new(100);
        let share = account.reserve(60).expect("there is enough");
        assert_eq!(account.available_bytes(), 40);
        assert_eq!(account.reserve(41).err(), Some(40));
        drop(share);
        assert_eq!(account.available_bytes(), 100);
    }
}
