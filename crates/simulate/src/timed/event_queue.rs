//! Event queue in time order. Events of equal time keep their insertion order.
//!
//! Time never goes back, so the queue is a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan: "Faster
//! Algorithms for the Shortest Path Problem", 1990) with digits of nine bits. An entry waits in the
//! slot of the highest digit in which its time differs from now. It moves down when that slot
//! becomes the first. Entries of equal time always share a slot, in their order. The cost of an
//! entry does not depend on their number.

use ssd::Nanos;

const DIGIT_BITS: u32 = 9;
const SLOTS_OF_DIGIT: usize = 1 << DIGIT_BITS;
/// Slots of all digits, the lowest digit first.
const SLOTS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize * SLOTS_OF_DIGIT;
/// Bits per word of the bitmap of occupied slots.
const WORD_BITS: usize = u64::BITS as usize;
/// End of a list.
const NONE: u32 = u32::MAX;

/// Event queue, a radix heap. See the module.
#[derive(Debug)]
pub(super) struct EventQueue<T> {
    /// Lower bound of the times of new entries.
    now: Nanos,
    /// Bitmap of non-empty slots. `occupied_words`: bitmap of the non-zero words of `occupied`.
    occupied: [u64; SLOTS / WORD_BITS],
    occupied_words: u64,
    lists: Box<[SlotList; SLOTS]>,
    entries: Vec<QueueEntry<T>>,
    /// First entry of the free list.
    free: u32,
}

const _: () = assert!(SLOTS / WORD_BITS <= WORD_BITS, "there is a bit for each word of the bitmap");

/// Entries of a slot in order. Undefined for an empty slot.
#[derive(Clone, Copy, Debug)]
struct SlotList {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct QueueEntry<T> {
    at: Nanos,
    next: u32,
    event: T,
}

impl<T: Copy> EventQueue<T> {
    pub(super) fn new() -> EventQueue<T> {
        let empty = SlotList { first: NONE, last: NONE };
        EventQueue {
            now: 0,
            occupied: [0; SLOTS / WORD_BITS],
            occupied_words: 0,
            lists: Box::new([empty; SLOTS]),
            entries: Vec::new(),
            free: NONE,
        }
    }

    /// Adds an event. Its time must not precede the last event taken.
    #[inline(always)]
    pub(super) fn push(&mut self, at: Nanos, event: T) {
        assert!(at >= self.now, "time does not go back");
        let index = self.free;
        match self.entries.get_mut(index as usize) {
            Some(entry) => {
                self.free = entry.next;
                // Field by field. A copy of a whole entry would be read back in different pieces
                // than written, and the processor would stall.
                entry.at = at;
                entry.next = NONE;
                entry.event = event;
                self.append(index, at);
            }
            None => self.push_another(QueueEntry { at, next: NONE, event }),
        }
    }

    #[cold]
    fn push_another(&mut self, entry: QueueEntry<T>) {
        let index = u32::try_from(self.entries.len()).expect("fewer requests are in flight than 32 bits count");
        assert!(index != NONE, "the last number ends a list");
        self.entries.push(entry);
        self.append(index, entry.at);
    }

    #[inline]
    fn append(&mut self, index: u32, at: Nanos) {
        let differing = u64::BITS - 1 - ((at ^ self.now) | 1).leading_zeros();
        let digit = differing / DIGIT_BITS;
        let slot = digit as usize * SLOTS_OF_DIGIT + (at >> (digit * DIGIT_BITS)) as usize % SLOTS_OF_DIGIT;
        let list = &mut self.lists[slot];
        let (word, bit) = (slot / WORD_BITS, 1 << (slot % WORD_BITS));
        if self.occupied[word] & bit == 0 {
            self.occupied[word] |= bit;
            self.occupied_words |= 1 << word;
            list.first = index;
        } else {
            self.entries[list.last as usize].next = index;
        }
        list.last = index;
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Nanos, T)> {
        self.pop_until(Nanos::MAX, |_, _| true)
    }

    /// Takes the next event if its time is at most `last` and it is wanted. Later additions may be
    /// as early as `last` + 1, even if earlier events remain.
    #[inline(always)]
    pub(super) fn pop_until(&mut self, last: Nanos, is_wanted: impl Fn(Nanos, &T) -> bool) -> Option<(Nanos, T)> {
        loop {
            if self.occupied_words == 0 {
                return None;
            }
            let word = self.occupied_words.trailing_zeros() as usize;
            let slot = word * WORD_BITS + self.occupied[word].trailing_zeros() as usize;
            let list = &mut self.lists[slot];
            let (first, is_last) = (list.first, list.first == list.last);
            let entry = &mut self.entries[first as usize];
            if slot >= SLOTS_OF_DIGIT && !is_last {
                let begin = Self::begin(slot, entry.at);
                if begin > last {
                    return None;
                }
                self.cascade(slot, begin);
                continue;
            }
            let (at, event) = (entry.at, entry.event);
            if at > last || !is_wanted(at, &event) {
                return None;
            }
            list.first = std::mem::replace(&mut entry.next, self.free);
            self.free = first;
            if is_last {
                self.unmark(slot);
            }
            self.now = at;
            return Some((at, event));
        }
    }

    /// Marks a slot as empty.
    #[inline]
    fn unmark(&mut self, slot: usize) {
        let word = slot / WORD_BITS;
        self.occupied[word] &= !(1 << (slot % WORD_BITS));
        if self.occupied[word] == 0 {
            self.occupied_words &= !(1 << word);
        }
    }

    #[inline]
    fn begin(slot: usize, at: Nanos) -> Nanos {
        let shift = (slot / SLOTS_OF_DIGIT) as u32 * DIGIT_BITS;
        at >> shift << shift
    }

    /// Advances to the first slot. Its entries move down to lower digits.
    fn cascade(&mut self, slot: usize, begin: Nanos) {
        self.unmark(slot);
        self.now = begin;
        let SlotList { first, last } = self.lists[slot];
        let mut index = first;
        loop {
            let QueueEntry { at, next, .. } = self.entries[index as usize];
            self.entries[index as usize].next = NONE;
            self.append(index, at);
            if index == last {
                return;
            }
            index = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use workload::random::mix;

    /// Compares with a heap at `depth` entries. Each entry comes at most `span` after its
    /// predecessor.
    fn compare(depth: usize, span: u64, start: u64) {
        let (mut turns, mut heap) = (EventQueue::new(), BinaryHeap::new());
        let (mut now, mut drawn) = (start, 0);
        let mut below = |limit: u64| {
            drawn += 1;
            mix(drawn) % limit
        };
        for number in 0..20_000 + depth {
            if number >= depth {
                let Reverse(expected) = heap.pop().expect("there are some");
                assert_eq!(turns.pop(), Some(expected), "depth {depth}, span {span}, entry {number}");
                now = expected.0;
            }
            // Some entries come much later, and many at equal times.
            let far = if below(100) == 0 { 1 << below(30) } else { 1 };
            let at = now + below(span) * far / 4 * 4;
            turns.push(at, number);
            heap.push(Reverse((at, number)));
        }
        while let Some(Reverse(expected)) = heap.pop() {
            assert_eq!(turns.pop(), Some(expected), "depth {depth}, span {span}");
        }
        assert_eq!(turns.pop(), None);
    }

    #[test]
    fn it_takes_the_order_of_a_heap_that_counts_what_was_added() {
        for depth in [1, 2, 7, 32, 1000, 65_536] {
            for span in [1, 2, 20, 1000, 100_000, 1 << 30] {
                for start in [0, 1 << 40, u64::MAX / 2] {
                    compare(depth, span, start);
                }
            }
        }
    }

    #[test]
    fn the_last_times_that_there_are_come_in_their_order() {
        let mut turns = EventQueue::new();
        turns.push(u64::MAX, 1);
        turns.push(u64::MAX - 1, 2);
        turns.push(u64::MAX, 3);
        let taken: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(taken, [(u64::MAX - 1, 2), (u64::MAX, 1), (u64::MAX, 3)]);
    }

    #[test]
    fn what_is_added_comes_before_what_was_not_taken() {
        let mut turns = EventQueue::new();
        for (number, at) in [10, 1000, 1001, 70_000, 70_500].into_iter().enumerate() {
            turns.push(at, number);
        }
        assert_eq!(turns.pop_until(9, |_, _| true), None);
        assert_eq!(turns.pop_until(10, |_, _| true), Some((10, 0)));
        assert_eq!(turns.pop_until(999, |_, _| true), None);
        turns.push(1000, 5);
        assert_eq!(turns.pop_until(1000, |_, _| false), None, "nobody wants it");
        assert_eq!(turns.pop_until(1000, |at, number| at == 1000 && *number == 1), Some((1000, 1)));
        assert_eq!(turns.pop_until(69_999, |_, _| true), Some((1000, 5)));
        assert_eq!(turns.pop_until(69_999, |_, _| true), Some((1001, 2)));
        // The other entries share a slot, which begins before `last`.
        assert_eq!(turns.pop_until(69_999, |_, _| true), None);
        turns.push(70_000, 6);
        let taken: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(taken, [(70_000, 3), (70_000, 6), (70_500, 4)]);
    }

    #[test]
    #[should_panic(expected = "time does not go back")]
    fn nothing_is_added_to_the_past() {
        let mut turns = EventQueue::new();
        turns.push(5, ());
        let _ = turns.pop();
        turns.push(4, ());
    }
}
