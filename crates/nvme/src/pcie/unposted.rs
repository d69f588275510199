//! Commands that are carried out but not completed yet: their data has to be made durable, or their time has not come.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use nvme_spec::command::SubmissionEntry;
use ssd::Nanos;

use crate::completion::Reply;
use crate::media::Durable;

/// A command whose completion is held back. There is one of each, so that it cannot complete twice.
#[derive(Debug)]
pub(super) struct Held {
    pub queue: u16,
    pub entry: SubmissionEntry,
    pub reply: Reply,
    pub due: Nanos,
}

/// Held back until a time; the sequence number keeps the order of equal times.
struct Delayed {
    sequence: u64,
    held: Held,
}

/// How far a shutdown that the host asked for has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shutdown {
    #[default]
    None,
    /// Everything is to be made durable.
    Wanted,
    /// That is under way.
    Syncing,
}

/// See the module.
#[derive(Default)]
pub(super) struct Unposted {
    /// Commands whose data is not known to be durable, with their sequence numbers, oldest first.
    unsynced: VecDeque<(u64, Held)>,
    delayed: BinaryHeap<Reverse<Delayed>>,
    sequence: u64,
    durable: Option<Arc<dyn Durable>>,
    /// While something is made durable: the commands before this sequence number are covered.
    syncing_before: Option<u64>,
    shutdown: Shutdown,
}

/// What making durable has finished.
pub(super) struct Synced {
    pub commands: Vec<Held>,
    pub shutdown: bool,
}

impl Unposted {
    /// Forgets everything, as a reset does. What is being made durable goes on, and concerns nobody afterwards.
    pub fn clear(&mut self) {
        self.unsynced.clear();
        self.delayed.clear();
        self.shutdown = Shutdown::None;
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Holds a command back until it is durable.
    pub fn until_durable(&mut self, held: Held, durable: Arc<dyn Durable>) {
        let sequence = self.next_sequence();
        self.unsynced.push_back((sequence, held));
        self.durable = Some(durable);
    }

    /// Holds a command back until its time.
    pub fn until_due(&mut self, held: Held) {
        let sequence = self.next_sequence();
        self.delayed.push(Reverse(Delayed { sequence, held }));
    }

    /// The host wants to shut down.
    pub fn shut_down(&mut self, durable: Arc<dyn Durable>) {
        self.shutdown = Shutdown::Wanted;
        self.durable = Some(durable);
    }

    /// When the next delayed command is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.delayed.peek().map(|Reverse(delayed)| delayed.held.due)
    }

    /// Takes a command that is due.
    pub fn take_due(&mut self, now: Nanos) -> Option<Held> {
        if self.next_due()? > now {
            return None;
        }
        self.delayed.pop().map(|Reverse(delayed)| delayed.held)
    }

    /// What has to be made durable now, if anything; one at a time, so that commands which come meanwhile share the next.
    pub fn start_sync(&mut self) -> Option<Arc<dyn Durable>> {
        if self.syncing_before.is_some() || (self.unsynced.is_empty() && self.shutdown != Shutdown::Wanted) {
            return None;
        }
        self.syncing_before = Some(self.sequence + 1);
        if self.shutdown == Shutdown::Wanted {
            self.shutdown = Shutdown::Syncing;
        }
        self.durable.clone()
    }

    /// What was started is finished: the commands that it covers.
    pub fn finish_sync(&mut self) -> Synced {
        let before = self.syncing_before.take().expect("only what was started is finished");
        let covered = self.unsynced.partition_point(|(sequence, _)| *sequence < before);
        let shutdown = self.shutdown == Shutdown::Syncing;
        if shutdown {
            self.shutdown = Shutdown::None;
        }
        Synced {
            commands: self.unsynced.drain(..covered).map(|(_, held)| held).collect(),
            shutdown,
        }
    }

    /// Whether a command of a submission queue is held back.
    pub fn holds(&self, queue: u16) -> bool {
        let delayed = || self.delayed.iter().map(|Reverse(delayed)| &delayed.held);
        let mut held = self.unsynced.iter().map(|(_, held)| held).chain(delayed());
        held.any(|held| held.queue == queue)
    }

    /// Takes the commands of a submission queue that is deleted.
    pub fn take_queue(&mut self, queue: u16) -> Vec<Held> {
        let (of_queue, rest) = self.unsynced.drain(..).partition(|(_, held)| held.queue == queue);
        self.unsynced = rest;
        let of_queue: VecDeque<_> = of_queue;
        let mut taken: Vec<Held> = of_queue.into_iter().map(|(_, held)| held).collect();
        for Reverse(delayed) in std::mem::take(&mut self.delayed) {
            if delayed.held.queue == queue {
                taken.push(delayed.held);
            } else {
                self.delayed.push(Reverse(delayed));
            }
        }
        taken
    }
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Delayed) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Delayed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Delayed) -> std::cmp::Ordering {
        (self.held.due, self.sequence).cmp(&(other.held.due, other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Durable for Nothing {
        fn make_durable(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn held(queue: u16, due: Nanos) -> Held {
        Held {
            queue,
            entry: SubmissionEntry::default(),
            reply: Reply::success(0),
            due,
        }
    }

    #[test]
    fn what_comes_during_a_sync_waits_for_the_next() {
        let mut unposted = Unposted::default();
        assert!(unposted.start_sync().is_none());
        unposted.until_durable(held(1, 0), Arc::new(Nothing));
        assert!(unposted.start_sync().is_some());
        assert!(unposted.start_sync().is_none(), "one at a time");
        unposted.until_durable(held(2, 0), Arc::new(Nothing));
        let first = unposted.finish_sync();
        assert_eq!(first.commands.iter().map(|held| held.queue).collect::<Vec<_>>(), [1]);
        assert!(unposted.start_sync().is_some());
        assert_eq!(unposted.finish_sync().commands.len(), 1);
        assert!(unposted.start_sync().is_none(), "nothing is left");
    }

    #[test]
    fn a_reset_during_a_sync_leaves_nothing_to_complete() {
        let mut unposted = Unposted::default();
        unposted.until_durable(held(1, 0), Arc::new(Nothing));
        unposted.shut_down(Arc::new(Nothing));
        assert!(unposted.start_sync().is_some());
        unposted.clear();
        unposted.until_durable(held(2, 0), Arc::new(Nothing));
        let synced = unposted.finish_sync();
        assert!(synced.commands.is_empty() && !synced.shutdown);
        assert!(
            unposted.start_sync().is_some(),
            "what came after the reset needs a sync of its own"
        );
    }

    #[test]
    fn delayed_commands_come_in_time_then_order() {
        let mut unposted = Unposted::default();
        for (queue, due) in [(1, 30), (2, 10), (3, 30), (4, 20)] {
            unposted.until_due(held(queue, due));
        }
        assert_eq!(unposted.next_due(), Some(10));
        assert!(unposted.take_due(9).is_none());
        let order: Vec<u16> = std::iter::from_fn(|| unposted.take_due(30))
            .map(|held| held.queue)
            .collect();
        assert_eq!(order, [2, 4, 1, 3]);
    }
}
