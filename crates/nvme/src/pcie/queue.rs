//! Submission and completion queues as rings in host memory, with their positions and accesses.

use nvme_spec::command::{CompletionEntry, SubmissionEntry};
use zerocopy::IntoBytes;

use super::{HostMemory, MemoryFault};

const SUBMISSION_ENTRY_BYTES: u64 = size_of::<SubmissionEntry>() as u64;
const COMPLETION_ENTRY_BYTES: u64 = size_of::<CompletionEntry>() as u64;

/// A ring that the host fills with commands.
#[derive(Debug)]
pub(super) struct SubmissionQueue {
    base: u64,
    size: u16,
    head: u16,
    /// First entry that is not a command yet.
    tail: u16,
    pub completion_queue: u16,
    /// Last invalid doorbell value, so that it is reported once.
    pub refused: Option<u32>,
}

/// A ring that the controller fills with completions.
#[derive(Debug, Default)]
pub(super) struct CompletionQueue {
    base: u64,
    size: u16,
    /// Next entry that the host will take.
    head: u16,
    tail: u16,
    phase: bool,
    /// Interrupt vector, or `None` if the host polls.
    pub vector: Option<u16>,
    /// Entries reserved for executing commands.
    pub reserved: u16,
    /// Submission queues that complete here.
    pub users: u16,
    /// The vector will be raised at the end of the batch.
    pub raised: bool,
    /// Last invalid doorbell value, so that it is reported once.
    pub refused: Option<u32>,
}

impl SubmissionQueue {
    pub fn new(base: u64, size: u16, completion_queue: u16) -> SubmissionQueue {
        assert!(size >= 2, "one of a ring's entries always stays empty");
        SubmissionQueue { base, size, head: 0, tail: 0, completion_queue, refused: None }
    }

    /// Next entry to fetch, which completions report (SQHD).
    pub fn head(&self) -> u16 {
        self.head
    }

    /// The last valid doorbell value.
    pub fn tail(&self) -> u16 {
        self.tail
    }

    /// Applies a doorbell value. Returns `false` if it is out of range.
    #[inline]
    pub fn set_tail(&mut self, value: u32) -> bool {
        if value >= u32::from(self.size) {
            return false;
        }
        self.tail = value as u16;
        true
    }

    /// Number of unfetched commands.
    #[inline]
    pub fn pending(&self) -> u16 {
        distance(self.head, self.tail, self.size)
    }

    /// Fetches `entries.len()` commands, at most the pending ones. They stay in the queue until
    /// [`SubmissionQueue::pass`].
    ///
    /// # Errors
    /// The queue's memory no longer exists.
    pub fn fetch(&self, memory: &dyn HostMemory, entries: &mut [SubmissionEntry]) -> Result<(), MemoryFault> {
        assert!(entries.len() <= usize::from(self.pending()), "only commands are fetched");
        let until_end = usize::from(self.size - self.head).min(entries.len());
        let (first, rest) = entries.split_at_mut(until_end);
        memory.read(self.base + u64::from(self.head) * SUBMISSION_ENTRY_BYTES, first.as_mut_bytes())?;
        if !rest.is_empty() {
            memory.read(self.base, rest.as_mut_bytes())?;
        }
        Ok(())
    }

    /// Returns the entries of executed commands to the host.
    #[inline]
    pub fn pass(&mut self, commands: u16) {
        assert!(self.pending() >= commands, "the commands were fetched");
        self.head = advance(self.head, commands, self.size);
    }
}

impl CompletionQueue {
    pub fn new(base: u64, size: u16, vector: Option<u16>) -> CompletionQueue {
        assert!(size >= 2, "one of a ring's entries always stays empty");
        CompletionQueue { base, size, phase: true, vector, ..CompletionQueue::default() }
    }

    /// The last valid doorbell value.
    pub fn head(&self) -> u16 {
        self.head
    }

    /// The phase of the next entry.
    pub fn phase(&self) -> bool {
        self.phase
    }

    /// Applies a doorbell value. Returns `false` if it frees entries that were never filled.
    #[inline]
    pub fn set_head(&mut self, value: u32) -> bool {
        if value >= u32::from(self.size) {
            return false;
        }
        let freed = distance(self.head, value as u16, self.size);
        if freed > self.used() {
            return false;
        }
        self.head = value as u16;
        true
    }

    fn used(&self) -> u16 {
        distance(self.head, self.tail, self.size)
    }

    /// Entries that are neither filled nor reserved. One of a ring's entries always stays empty.
    #[inline]
    pub fn room(&self) -> u16 {
        (self.size - 1 - self.used()).saturating_sub(self.reserved)
    }

    /// True if the host has entries to consume.
    pub fn has_unconsumed(&self) -> bool {
        self.used() > 0
    }

    /// True if an entry is neither filled nor reserved.
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Fills the next entry. The caller has checked that an entry is free and used
    /// [`CompletionQueue::phase`].
    ///
    /// # Errors
    /// The queue's memory no longer exists.
    #[inline]
    pub fn post(&mut self, memory: &dyn HostMemory, entry: &CompletionEntry) -> Result<(), MemoryFault> {
        debug_assert!(self.used() < self.size - 1, "the ring has a free entry");
        let address = self.base + u64::from(self.tail) * COMPLETION_ENTRY_BYTES;
        // The host consumes the entry as soon as it sees the phase, so the dword with the phase is
        // written last.
        memory.publish(address, zerocopy::transmute_ref!(entry))?;
        self.take_entries(1);
        Ok(())
    }

    /// Fills entries for successful commands without a result. `filled` is a reused buffer.
    ///
    /// # Errors
    /// The queue's memory no longer exists.
    pub fn post_successes(
        &mut self,
        memory: &dyn HostMemory,
        successes: impl Iterator<Item = CompletionEntry>,
        filled: &mut Vec<[u8; 16]>,
    ) -> Result<(), MemoryFault> {
        filled.clear();
        let mut phase = self.phase;
        let until_end = usize::from(self.size - self.tail);
        for mut entry in successes {
            if filled.len() == until_end {
                phase = !phase;
            }
            entry.status.set_p(phase);
            filled.push(zerocopy::transmute!(entry));
        }
        assert!(
            filled.len() < usize::from(self.size - self.used()),
            "the ring has free entries for {} completions",
            filled.len()
        );
        let (first, rest) = filled.split_at(until_end.min(filled.len()));
        for part in [first, rest] {
            if !part.is_empty() {
                let address = self.base + u64::from(self.tail) * COMPLETION_ENTRY_BYTES;
                memory.publish_all(address, part)?;
                self.take_entries(part.len() as u16);
            }
        }
        Ok(())
    }

    /// Advances the tail over filled entries, at most to the end of the ring.
    #[inline]
    fn take_entries(&mut self, count: u16) {
        self.tail = advance(self.tail, count, self.size);
        if self.tail == 0 {
            self.phase = !self.phase;
        }
    }
}

/// Position `count` entries later in a ring of `size`.
#[inline]
fn advance(position: u16, count: u16, size: u16) -> u16 {
    let next = u32::from(position) + u32::from(count);
    if next >= u32::from(size) { (next - u32::from(size)) as u16 } else { next as u16 }
}

#[inline]
fn distance(from: u16, to: u16, size: u16) -> u16 {
    if to >= from { to - from } else { size - from + to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_wrap() {
        assert_eq!(advance(6, 1, 8), 7);
        assert_eq!(advance(6, 3, 8), 1);
        assert_eq!(advance(4095, 4095, 4096), 4094);
        assert_eq!(distance(6, 1, 8), 3);
        assert_eq!(distance(1, 6, 8), 5);
        assert_eq!(distance(3, 3, 8), 0);
    }

    #[test]
    fn a_head_may_not_free_what_was_never_filled() {
        let mut queue = CompletionQueue::new(0, 4, None);
        assert!(!queue.set_head(1), "nothing was posted");
        assert!(!queue.set_head(4), "there is no entry 4");
        queue.tail = 2;
        assert_eq!(queue.room(), 1);
        assert!(!queue.set_head(3));
        assert!(queue.set_head(2));
        assert_eq!(queue.room(), 3);
    }
}
