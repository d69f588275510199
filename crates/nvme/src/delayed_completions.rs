//! Delayed completions of executed commands, for both transports. A completion waits until the
//! command's data is durable and its due time has come.
//!
//! ```text
//! executed -> delay -> completes now
//!                |---> until durable -> start_sync, finish_sync -> delay again until due
//!                \---> until due     -> take_due
//! ```
//!
//! This module makes no data durable and reads no clock. The caller does both, without the
//! subsystem's lock. The transport defines the command type and the destination of completions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use ssd::Nanos;

use crate::fault::NEVER;
use crate::media::FlushHandle;

/// A delayed command. The sequence number orders equal times.
struct DelayedEntry<T> {
    /// Time of the command's execution.
    delayed_at: Nanos,
    due: Nanos,
    sequence: u64,
    command: T,
}

/// Progress of a shutdown that the host requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shutdown {
    #[default]
    None,
    /// All data must become durable.
    Wanted,
    /// The data is becoming durable.
    Syncing,
}

/// Queue of delayed completions. `T` is a command with its reply. Only one value exists for each
/// command, so a command cannot complete twice.
pub struct DelayedCompletions<T> {
    /// Commands that wait for durability, oldest first.
    unsynced: VecDeque<DelayedEntry<T>>,
    delayed: BinaryHeap<Reverse<DelayedEntry<T>>>,
    sequence: u64,
    durable: Option<Arc<dyn FlushHandle>>,
    /// Present during a sync. The sync covers commands below this sequence number.
    syncing_before: Option<u64>,
    shutdown: Shutdown,
}

/// A command whose sync has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct SyncedCommand<T> {
    /// Time at which the command was carried out.
    pub delayed_at: Nanos,
    /// Time from which the command may complete.
    pub due: Nanos,
    /// The command.
    pub command: T,
}

/// Result of a sync.
pub struct SyncResult<T> {
    /// Commands that may complete at their due time.
    pub commands: Vec<SyncedCommand<T>>,
    /// The sync completed a shutdown of the host.
    pub shutdown: bool,
}

impl<T> Default for DelayedCompletions<T> {
    fn default() -> DelayedCompletions<T> {
        DelayedCompletions {
            unsynced: VecDeque::new(),
            delayed: BinaryHeap::new(),
            sequence: 0,
            durable: None,
            syncing_before: None,
            shutdown: Shutdown::None,
        }
    }
}

impl<T> DelayedCompletions<T> {
    /// Drops all commands, as a reset does. A running sync continues, but its result no longer
    /// matters.
    pub fn clear(&mut self) {
        self.unsynced.clear();
        self.delayed.clear();
        self.shutdown = Shutdown::None;
    }

    /// Delays a command until its data is durable, if needed, and then until its due time. Returns
    /// the command if it may complete immediately.
    #[inline]
    pub fn delay(&mut self, now: Nanos, due: Nanos, durable: Option<Arc<dyn FlushHandle>>, command: T) -> Option<T> {
        if durable.is_none() && due <= now {
            return Some(command);
        }
        self.sequence += 1;
        let entry = DelayedEntry { delayed_at: now, due, sequence: self.sequence, command };
        if durable.is_some() {
            self.durable = durable;
            self.unsynced.push_back(entry);
        } else {
            self.delayed.push(Reverse(entry));
        }
        None
    }

    /// Starts a shutdown that the host requested.
    pub fn shut_down(&mut self, durable: Arc<dyn FlushHandle>) {
        self.shutdown = Shutdown::Wanted;
        self.durable = Some(durable);
    }

    /// Next due time of a command that waits for its time alone. Stuck commands have no due time.
    pub fn next_due(&self) -> Option<Nanos> {
        let next = self.delayed.peek().map(|Reverse(entry)| entry.due);
        next.filter(|&due| due != NEVER)
    }

    /// Takes a stuck command.
    pub fn take_stuck(&mut self, matches: impl Fn(&T) -> bool) -> Option<T> {
        let before = self.delayed.len();
        let (mut stuck, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.delayed)
            .into_iter()
            .partition(|Reverse(entry)| entry.due == NEVER && matches(&entry.command));
        self.delayed.extend(rest);
        let taken = stuck.pop();
        self.delayed.extend(stuck);
        assert_eq!(self.delayed.len() + taken.iter().len(), before, "at most one stuck command is removed");
        taken.map(|Reverse(entry)| entry.command)
    }

    /// Takes a command that is due, with its due time.
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_due()? > now {
            return None;
        }
        self.delayed.pop().map(|Reverse(entry)| (entry.due, entry.command))
    }

    /// True if [`DelayedCompletions::start_sync`] would start a sync.
    pub fn wants_sync(&self) -> bool {
        self.syncing_before.is_none() && (!self.unsynced.is_empty() || self.shutdown == Shutdown::Wanted)
    }

    /// Starts a sync, if one is needed. Only one sync runs at a time, so later commands share the
    /// next one.
    pub fn start_sync(&mut self) -> Option<Arc<dyn FlushHandle>> {
        if !self.wants_sync() {
            return None;
        }
        assert!(self.durable.is_some(), "a command waits only for a durable backend");
        self.syncing_before = Some(self.sequence + 1);
        if self.shutdown == Shutdown::Wanted {
            self.shutdown = Shutdown::Syncing;
        }
        self.durable.clone()
    }

    /// Ends the sync and returns the commands that it covers.
    pub fn finish_sync(&mut self) -> SyncResult<T> {
        let before = self.syncing_before.take().expect("only a started sync ends");
        let covered = self.unsynced.partition_point(|entry| entry.sequence < before);
        let shutdown = self.shutdown == Shutdown::Syncing;
        if shutdown {
            self.shutdown = Shutdown::None;
        }
        let commands = self.unsynced.drain(..covered).map(SyncedCommand::from).collect();
        assert!(
            self.unsynced.front().is_none_or(|entry| entry.sequence >= before),
            "no command waits for a completed sync"
        );
        SyncResult { commands, shutdown }
    }

    /// True if a command that `matches` accepts is delayed.
    pub fn holds(&self, matches: impl Fn(&T) -> bool) -> bool {
        let delayed = self.delayed.iter().map(|Reverse(entry)| entry);
        let mut all = self.unsynced.iter().chain(delayed);
        all.any(|entry| matches(&entry.command))
    }

    /// Takes the commands that `matches` accepts.
    pub fn take(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        let before = self.unsynced.len() + self.delayed.len();
        let (mut taken, rest): (VecDeque<_>, _) = self.unsynced.drain(..).partition(|entry| matches(&entry.command));
        self.unsynced = rest;
        for Reverse(entry) in std::mem::take(&mut self.delayed) {
            if matches(&entry.command) {
                taken.push_back(entry);
            } else {
                self.delayed.push(Reverse(entry));
            }
        }
        assert!(!self.holds(matches), "all matching commands are removed");
        assert_eq!(
            taken.len() + self.unsynced.len() + self.delayed.len(),
            before,
            "each command is taken or stays delayed"
        );
        taken.into_iter().map(|entry| entry.command).collect()
    }
}

impl<T> From<DelayedEntry<T>> for SyncedCommand<T> {
    fn from(entry: DelayedEntry<T>) -> SyncedCommand<T> {
        SyncedCommand { delayed_at: entry.delayed_at, due: entry.due, command: entry.command }
    }
}

impl<T> PartialEq for DelayedEntry<T> {
    fn eq(&self, other: &DelayedEntry<T>) -> bool {
        self.sequence == other.sequence
    }
}

impl<T> Eq for DelayedEntry<T> {}

impl<T> PartialOrd for DelayedEntry<T> {
    fn partial_cmp(&self, other: &DelayedEntry<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for DelayedEntry<T> {
    fn cmp(&self, other: &DelayedEntry<T>) -> std::cmp::Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl FlushHandle for Nothing {
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn until_durable(backlog: &mut DelayedCompletions<u16>, command: u16) {
        assert_eq!(backlog.delay(7, 9, Some(Arc::new(Nothing)), command), None);
    }

    #[test]
    fn what_comes_during_a_sync_waits_for_the_next() {
        let mut backlog = DelayedCompletions::default();
        assert!(backlog.start_sync().is_none());
        until_durable(&mut backlog, 1);
        assert!(backlog.start_sync().is_some());
        assert!(backlog.start_sync().is_none(), "one at a time");
        until_durable(&mut backlog, 2);
        let first = SyncedCommand { delayed_at: 7, due: 9, command: 1 };
        assert_eq!(backlog.finish_sync().commands, [first]);
        assert!(backlog.start_sync().is_some());
        assert_eq!(backlog.finish_sync().commands.len(), 1);
        assert!(backlog.start_sync().is_none(), "nothing is left");
    }

    #[test]
    fn a_reset_during_a_sync_leaves_nothing_to_complete() {
        let mut backlog = DelayedCompletions::default();
        until_durable(&mut backlog, 1);
        backlog.shut_down(Arc::new(Nothing));
        assert!(backlog.start_sync().is_some());
        backlog.clear();
        until_durable(&mut backlog, 2);
        let synced = backlog.finish_sync();
        assert!(synced.commands.is_empty() && !synced.shutdown);
        assert!(backlog.start_sync().is_some(), "what came after the reset needs a sync of its own");
    }

    #[test]
    fn delayed_commands_come_in_time_then_order() {
        let mut backlog = DelayedCompletions::default();
        assert_eq!(backlog.delay(10, 10, None, 0), Some(0), "it is due");
        for (command, due) in [(1, 30), (2, 10), (3, 30), (4, 20)] {
            assert_eq!(backlog.delay(0, due, None, command), None);
        }
        assert_eq!(backlog.next_due(), Some(10));
        assert!(backlog.take_due(9).is_none());
        let order: Vec<(Nanos, u16)> = std::iter::from_fn(|| backlog.take_due(30)).collect();
        assert_eq!(order, [(10, 2), (20, 4), (30, 1), (30, 3)]);
    }

    #[test]
    fn commands_of_a_kind_are_taken_wherever_they_wait() {
        let mut backlog = DelayedCompletions::default();
        until_durable(&mut backlog, 1);
        until_durable(&mut backlog, 2);
        assert_eq!(backlog.delay(0, 5, None, 3), None);
        assert_eq!(backlog.take(|command| command % 2 == 1), [1, 3]);
        assert!(backlog.holds(|&command| command == 2) && !backlog.holds(|&command| command == 1));
        assert_eq!(backlog.next_due(), None);
    }
}
