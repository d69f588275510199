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

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ssd::Nanos;

use crate::fault::NEVER;
use crate::media::FlushHandle;

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
    /// Commands that wait for durability, oldest first, with their sequence numbers.
    unsynced: VecDeque<(u64, SyncedCommand<T>)>,
    /// Commands that wait for their due time. The sequence number orders equal times.
    delayed: BTreeMap<(Nanos, u64), T>,
    sequence: u64,
    durable: Option<Arc<dyn FlushHandle>>,
    /// Present during a sync. The sync covers commands below this sequence number.
    syncing_before: Option<u64>,
    shutdown: Shutdown,
}

/// A command that waits for a sync, or whose sync has ended.
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
            delayed: BTreeMap::new(),
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
        if durable.is_some() {
            self.durable = durable;
            self.unsynced.push_back((self.sequence, SyncedCommand { delayed_at: now, due, command }));
        } else {
            self.delayed.insert((due, self.sequence), command);
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
        let next = self.delayed.first_key_value().map(|(&(due, _), _)| due);
        next.filter(|&due| due != NEVER)
    }

    /// Takes a stuck command.
    pub fn take_stuck(&mut self, matches: impl Fn(&T) -> bool) -> Option<T> {
        let mut stuck = self.delayed.range((NEVER, 0)..);
        let key = *stuck.find(|(_, command)| matches(command))?.0;
        self.delayed.remove(&key)
    }

    /// Takes a command that is due, with its due time.
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_due()? > now {
            return None;
        }
        self.delayed.pop_first().map(|((due, _), command)| (due, command))
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
        let covered = self.unsynced.partition_point(|(sequence, _)| *sequence < before);
        let shutdown = self.shutdown == Shutdown::Syncing;
        if shutdown {
            self.shutdown = Shutdown::None;
        }
        let commands = self.unsynced.drain(..covered).map(|(_, command)| command).collect();
        assert!(
            self.unsynced.front().is_none_or(|(sequence, _)| *sequence >= before),
            "no command waits for a completed sync"
        );
        SyncResult { commands, shutdown }
    }

    /// True if a command that `matches` accepts is delayed.
    pub fn holds(&self, matches: impl Fn(&T) -> bool) -> bool {
        let unsynced = self.unsynced.iter().map(|(_, waiting)| &waiting.command);
        unsynced.chain(self.delayed.values()).any(matches)
    }

    /// Takes the commands that `matches` accepts.
    pub fn take(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        let before = self.unsynced.len() + self.delayed.len();
        let all = self.unsynced.drain(..);
        let (synced, rest): (VecDeque<_>, _) = all.partition(|(_, waiting)| matches(&waiting.command));
        self.unsynced = rest;
        let all = std::mem::take(&mut self.delayed).into_iter();
        let (delayed, rest): (BTreeMap<_, _>, _) = all.partition(|(_, command)| matches(command));
        self.delayed = rest;
        let synced = synced.into_iter().map(|(_, waiting)| waiting.command);
        let taken: Vec<T> = synced.chain(delayed.into_values()).collect();
        assert!(!self.holds(matches), "all matching commands are removed");
        assert_eq!(
            taken.len() + self.unsynced.len() + self.delayed.len(),
            before,
            "each command is taken or stays delayed"
        );
        taken
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
