//! Memory that runs share with the moments that they can be set back to.
//!
//! ```text
//! take -> the share of a run, until it is dropped    \
//! keep -> a checkpoint, until a run needs its memory  > never more than one sum
//! ```
//!
//! Bytes are counted before they are used. Checkpoints take only what no run has: a run that needs more gets that of the oldest ones,
//! whose run then begins from an earlier moment when it is set back. It knows no sessions and reads no sizes of the machine.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::run::Checkpoint;

/// Checkpoints of a run, at most.
const CHECKPOINTS_MAX: usize = 64;

/// An account of memory. Clones are the same one.
#[derive(Clone)]
pub struct MemoryAccount(Arc<Mutex<Sums>>);

struct Sums {
    left_bytes: u64,
    /// Checkpoints of all runs, the oldest first.
    kept: VecDeque<Kept>,
    /// Runs that were given a number.
    runs: u64,
}

struct Kept {
    run: u64,
    bytes: u64,
    checkpoint: Arc<Checkpoint>,
}

/// Memory of one run; given back when dropped.
pub struct MemoryShare {
    account: MemoryAccount,
    bytes: u64,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.account.sums().left_bytes += self.bytes;
    }
}

impl MemoryAccount {
    /// An account of so many bytes.
    pub fn new(bytes: u64) -> MemoryAccount {
        MemoryAccount(Arc::new(Mutex::new(Sums {
            left_bytes: bytes,
            kept: VecDeque::new(),
            runs: 0,
        })))
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        // Sums are whole between any two statements that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a run can take: what is left, and what checkpoints have.
    pub fn available_bytes(&self) -> u64 {
        self.sums().available_bytes()
    }

    /// Takes memory for a run, from the oldest checkpoints if there is not enough left.
    ///
    /// # Errors
    /// There is not as much. Returns the bytes that there are.
    pub fn take(&self, bytes: u64) -> Result<MemoryShare, u64> {
        let mut sums = self.sums();
        let available = sums.available_bytes();
        if available < bytes {
            return Err(available);
        }
        while sums.left_bytes < bytes {
            assert!(sums.drop_oldest(None), "what is available can be taken");
        }
        Ok(sums.share(self, bytes))
    }

    /// A number for a run that keeps checkpoints.
    pub(super) fn next_run(&self) -> u64 {
        let mut sums = self.sums();
        sums.runs += 1;
        sums.runs
    }

    /// Takes memory for a checkpoint of a run. Where too little is left, a run that has as many as any other gives up every other
    /// one of its own, and one that has fewer takes the memory of the oldest. The second value says whether the run gave some up.
    pub(super) fn take_for_checkpoint(&self, run: u64, bytes: u64) -> (Option<MemoryShare>, bool) {
        let mut sums = self.sums();
        let own = sums.count(run);
        let gives_up = sums.left_bytes < bytes && own > 1 && own >= sums.most_of_another(run);
        if gives_up {
            sums.thin(run);
        }
        while sums.left_bytes < bytes && sums.drop_oldest(Some(run)) {}
        let share = (sums.left_bytes >= bytes).then(|| sums.share(self, bytes));
        (share, gives_up)
    }

    /// Keeps a checkpoint in memory that was taken for it. Returns whether the run had too many, so that every other one is gone.
    pub(super) fn keep(&self, run: u64, checkpoint: Checkpoint, mut share: MemoryShare) -> bool {
        let bytes = std::mem::take(&mut share.bytes);
        let mut sums = self.sums();
        sums.kept.push_back(Kept {
            run,
            bytes,
            checkpoint: Arc::new(checkpoint),
        });
        let are_too_many = sums.count(run) > CHECKPOINTS_MAX;
        if are_too_many {
            sums.thin(run);
        }
        are_too_many
    }

    /// The last checkpoint of a run at or before a moment. It keeps its memory while it is held.
    pub(super) fn before(&self, run: u64, host_bytes: u64) -> Option<Arc<Checkpoint>> {
        let sums = self.sums();
        let before = sums.of(run).filter(|checkpoint| checkpoint.host_bytes() <= host_bytes);
        before.max_by_key(|checkpoint| checkpoint.host_bytes()).cloned()
    }

    /// Whether a run has a checkpoint that is nearer than this to a moment.
    pub(super) fn has_near(&self, run: u64, host_bytes: u64, within_bytes: u64) -> bool {
        let sums = self.sums();
        sums.of(run)
            .any(|checkpoint| checkpoint.host_bytes().abs_diff(host_bytes) < within_bytes)
    }

    /// Lets go of all checkpoints of a run.
    pub(super) fn forget(&self, run: u64) {
        self.sums().retain(|kept| kept.run != run);
    }

    /// Checkpoints of a run.
    #[cfg(test)]
    pub(super) fn count(&self, run: u64) -> usize {
        self.sums().count(run)
    }
}

impl Sums {
    fn share(&mut self, account: &MemoryAccount, bytes: u64) -> MemoryShare {
        self.left_bytes = self.left_bytes.checked_sub(bytes).expect("the caller has looked");
        MemoryShare {
            account: account.clone(),
            bytes,
        }
    }

    fn of(&self, run: u64) -> impl Iterator<Item = &Arc<Checkpoint>> {
        let own = self.kept.iter().filter(move |kept| kept.run == run);
        own.map(|kept| &kept.checkpoint)
    }

    fn count(&self, run: u64) -> usize {
        self.of(run).count()
    }

    /// The most checkpoints that another run has.
    fn most_of_another(&self, run: u64) -> usize {
        let mut counts = HashMap::new();
        for kept in self.kept.iter().filter(|kept| kept.run != run) {
            *counts.entry(kept.run).or_insert(0) += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    fn available_bytes(&self) -> u64 {
        let free = self.kept.iter().filter(|kept| kept.is_free()).map(|kept| kept.bytes);
        self.left_bytes + free.sum::<u64>()
    }

    /// Lets go of the oldest checkpoint that is not of this run and that nobody is set back to; says whether there was one.
    fn drop_oldest(&mut self, but_of: Option<u64>) -> bool {
        let oldest = self
            .kept
            .iter()
            .position(|kept| kept.is_free() && Some(kept.run) != but_of);
        let kept = oldest.and_then(|oldest| self.kept.remove(oldest));
        self.left_bytes += kept.as_ref().map_or(0, |kept| kept.bytes);
        kept.is_some()
    }

    /// Lets go of every other checkpoint of a run, but not of the first.
    fn thin(&mut self, run: u64) {
        let mut moments: Vec<u64> = self.of(run).map(|checkpoint| checkpoint.host_bytes()).collect();
        moments.sort_unstable();
        let gone: Vec<u64> = moments.into_iter().skip(1).step_by(2).collect();
        self.retain(|kept| kept.run != run || gone.binary_search(&kept.checkpoint.host_bytes()).is_err());
    }

    fn retain(&mut self, stays: impl Fn(&Kept) -> bool) {
        let before = std::mem::take(&mut self.kept);
        for kept in before {
            if stays(&kept) {
                self.kept.push_back(kept);
            } else {
                self.left_bytes += kept.bytes;
            }
        }
    }
}

impl Kept {
    /// Whether no run is being set back to it. Only the account gives out copies, while it is locked.
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
        let share = account.take(60).expect("there is enough");
        assert_eq!(account.available_bytes(), 40);
        assert_eq!(account.take(41).err(), Some(40));
        drop(share);
        assert_eq!(account.available_bytes(), 100);
    }
}
