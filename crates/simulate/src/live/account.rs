//! Memory account shared by runs and their checkpoints.
//!
//! ```text
//! take -> the share of a run, until it is dropped \
//! keep -> a checkpoint, until a run needs its memory  > never more than one sum
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
    /// Number of runs with a number.
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
    /// Creates an account of `bytes`.
    pub fn new(bytes: u64) -> MemoryAccount {
        MemoryAccount(Arc::new(Mutex::new(AccountState {
            free_bytes: bytes,
            checkpoints: VecDeque::new(),
            runs: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        // Sums are consistent between any two statements that can panic.
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
        let mut sums = self.lock();
        let available = sums.available_bytes();
        if available < bytes {
            return Err(available);
        }
        while sums.free_bytes < bytes {
            assert!(sums.drop_oldest(None), "what is available can be taken");
        }
        Ok(sums.share(self, bytes))
    }

    /// Returns a number for a run with checkpoints.
    pub(super) fn next_run(&self) -> u64 {
        let mut sums = self.lock();
        sums.runs += 1;
        sums.runs
    }

    /// Takes memory for a checkpoint of a run. If memory is short, a run with at least as many
    /// checkpoints as any other drops every other one of its own. A run with fewer takes the memory
    /// of the oldest. The second value is true if the run dropped its own.
    pub(super) fn take_for_checkpoint(&self, run: u64, bytes: u64) -> (Option<MemoryShare>, bool) {
        let mut sums = self.lock();
        let own = sums.count(run);
        let gives_up = sums.free_bytes < bytes && own > 1 && own >= sums.most_of_another(run);
        if gives_up {
            sums.drop_every_other(run);
        }
        while sums.free_bytes < bytes && sums.drop_oldest(Some(run)) {}
        let share = (sums.free_bytes >= bytes).then(|| sums.share(self, bytes));
        (share, gives_up)
    }

    /// Keeps a checkpoint in memory taken for it. Returns true if the run exceeded its limit and
    /// dropped every other one.
    pub(super) fn store_checkpoint(&self, run: u64, checkpoint: RunCheckpoint, mut share: MemoryShare) -> bool {
        let bytes = std::mem::take(&mut share.bytes);
        let mut sums = self.lock();
        sums.checkpoints.push_back(StoredCheckpoint {
            run,
            bytes,
            checkpoint: Arc::new(checkpoint),
        });
        let are_too_many = sums.count(run) > CHECKPOINTS_MAX;
        if are_too_many {
            sums.drop_every_other(run);
        }
        assert!(
            sums.count(run) <= CHECKPOINTS_MAX,
            "run {run} has {} checkpoints, at most {CHECKPOINTS_MAX}",
            sums.count(run)
        );
        are_too_many
    }

    /// Last checkpoint of a run at or before a moment. A reference retains its memory.
    pub(super) fn latest_before(&self, run: u64, host_bytes: u64) -> Option<Arc<RunCheckpoint>> {
        let sums = self.lock();
        let before = sums
            .checkpoints_of(run)
            .filter(|checkpoint| checkpoint.host_bytes() <= host_bytes);
        before.max_by_key(|checkpoint| checkpoint.host_bytes()).cloned()
    }

    /// Returns true if a run has a checkpoint closer than `within_bytes`.
    pub(super) fn has_near(&self, run: u64, host_bytes: u64, within_bytes: u64) -> bool {
        let sums = self.lock();
        sums.checkpoints_of(run)
            .any(|checkpoint| checkpoint.host_bytes().abs_diff(host_bytes) < within_bytes)
    }

    /// Drops all checkpoints of a run.
    pub(super) fn drop_checkpoints(&self, run: u64) {
        self.lock().retain(|kept| kept.run != run);
    }

    /// Checkpoints of a run.
    #[cfg(test)]
    pub(super) fn count(&self, run: u64) -> usize {
        self.lock().count(run)
    }
}

impl AccountState {
    fn share(&mut self, account: &MemoryAccount, bytes: u64) -> MemoryShare {
        self.free_bytes = self.free_bytes.checked_sub(bytes).expect("the caller has looked");
        MemoryShare {
            account: account.clone(),
            bytes,
        }
    }

    fn checkpoints_of(&self, run: u64) -> impl Iterator<Item = &Arc<RunCheckpoint>> {
        let own = self.checkpoints.iter().filter(move |kept| kept.run == run);
        own.map(|kept| &kept.checkpoint)
    }

    fn count(&self, run: u64) -> usize {
        self.checkpoints_of(run).count()
    }

    /// Largest number of checkpoints of another run.
    fn most_of_another(&self, run: u64) -> usize {
        let mut counts = HashMap::new();
        for kept in self.checkpoints.iter().filter(|kept| kept.run != run) {
            *counts.entry(kept.run).or_insert(0) += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    fn available_bytes(&self) -> u64 {
        let free = self
            .checkpoints
            .iter()
            .filter(|kept| kept.is_free())
            .map(|kept| kept.bytes);
        self.free_bytes + free.sum::<u64>()
    }

    /// Drops the oldest unused checkpoint of another run. Returns false if none exists.
    fn drop_oldest(&mut self, but_of: Option<u64>) -> bool {
        let oldest = self
            .checkpoints
            .iter()
            .position(|kept| kept.is_free() && Some(kept.run) != but_of);
        let kept = oldest.and_then(|oldest| self.checkpoints.remove(oldest));
        self.free_bytes += kept.as_ref().map_or(0, |kept| kept.bytes);
        kept.is_some()
    }

    /// Drops every other checkpoint of a run, except the first.
    fn drop_every_other(&mut self, run: u64) {
        let mut moments: Vec<u64> = self
            .checkpoints_of(run)
            .map(|checkpoint| checkpoint.host_bytes())
            .collect();
        moments.sort_unstable();
        let gone: Vec<u64> = moments.into_iter().skip(1).step_by(2).collect();
        self.retain(|kept| kept.run != run || gone.binary_search(&kept.checkpoint.host_bytes()).is_err());
    }

    fn retain(&mut self, stays: impl Fn(&StoredCheckpoint) -> bool) {
        let before = std::mem::take(&mut self.checkpoints);
        for kept in before {
            if stays(&kept) {
                self.checkpoints.push_back(kept);
            } else {
                self.free_bytes += kept.bytes;
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
