//! Computes the submission queue head (SQHD) of completions. The host may reuse the entries before
//! the head.
//!
//! A successful Read needs no completion, because its last C2HData PDU can report success. The
//! controller must support disabling SQ flow control (TCP Transport Specification, "Controller to
//! Host Command Data Buffer Transfers"). The host then learns no new head. With flow control it
//! must learn the head often enough (Base Specification, "Submission Queue Head Pointer Update
//! Optimization"). One in every (queue size / 10) completions is therefore sent, and all while nine
//! tenths of the queue are in use. Failed commands and commands without data for the host always
//! send a completion. An admin queue with flow control sends all of them, because leaving some out
//! would gain no time.

/// State of a queue's head.
#[derive(Debug)]
pub struct SqHeadReporter {
    entries: u16,
    flow_control: bool,
    head: u16,
    /// At least one in this many completions reports the head.
    report_interval: u16,
    /// Completions left out since the last one that reported the head.
    omitted: u16,
}

impl SqHeadReporter {
    /// State of a queue that is being connected. Connect is its first command.
    pub fn new(queue: u16, entries: u16, flow_control: bool) -> SqHeadReporter {
        assert!(entries >= 2, "queue {queue} has {entries} entries, one of which always stays empty");
        SqHeadReporter {
            entries,
            flow_control,
            head: if flow_control { 0 } else { u16::MAX },
            report_interval: if queue == 0 { 1 } else { (entries / 10).max(1) },
            omitted: 0,
        }
    }

    /// Returns whether the completion of a successful command may be left out if its data carries
    /// the SUCCESS flag. `outstanding` counts the incomplete commands of the queue, this one
    /// included.
    pub fn may_omit_completion(&self, outstanding: usize) -> bool {
        let unknown = outstanding + usize::from(self.omitted);
        let entries = usize::from(self.entries);
        !self.flow_control || self.omitted + 1 < self.report_interval && unknown * 10 < entries * 9
    }

    /// Advances the head by one completed command and returns it for the completion. Without flow
    /// control the result is FFFFh for Connect, which confirms this mode, and 0 afterwards.
    pub fn next(&mut self, is_left_out: bool) -> u16 {
        if !self.flow_control {
            return std::mem::take(&mut self.head);
        }
        self.omitted = if is_left_out { self.omitted + 1 } else { 0 };
        assert!(self.omitted < self.report_interval, "the host regularly receives the queue head");
        self.head = (self.head + 1) % self.entries;
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest run of completions left out among `completions`, and their total.
    fn left_out(heads: &mut SqHeadReporter, completions: usize, outstanding: usize) -> (usize, usize) {
        let (mut row, mut longest, mut all) = (0, 0, 0);
        for _ in 0..completions {
            let leaves_out = heads.may_omit_completion(outstanding);
            heads.next(leaves_out);
            row = if leaves_out { row + 1 } else { 0 };
            longest = longest.max(row);
            all += usize::from(leaves_out);
        }
        (longest, all)
    }

    #[test]
    fn one_in_a_tenth_of_the_queue_is_told_and_all_when_it_is_nearly_full() {
        assert_eq!(left_out(&mut SqHeadReporter::new(1, 128, true), 120, 32), (11, 110));
        assert_eq!(
            left_out(&mut SqHeadReporter::new(1, 128, true), 120, 110),
            (6, 103),
            "with those that are left out"
        );
        assert_eq!(left_out(&mut SqHeadReporter::new(1, 128, true), 120, 116), (0, 0));
        assert_eq!(
            left_out(&mut SqHeadReporter::new(1, 19, true), 100, 1),
            (0, 0),
            "two of a small queue are too many"
        );
        assert_eq!(left_out(&mut SqHeadReporter::new(1, 20, true), 100, 1), (1, 50));
        assert_eq!(left_out(&mut SqHeadReporter::new(1, 2, false), 100, 2), (100, 100), "nobody wants to know");
    }

    #[test]
    fn heads_go_on_where_nothing_is_said_of_them() {
        let mut heads = SqHeadReporter::new(1, 40, true);
        let told: Vec<u16> = [false, true, true, false].map(|is_left_out| heads.next(is_left_out)).into();
        assert_eq!(told, [1, 2, 3, 4]);
        assert_eq!((4..100).map(|_| heads.next(false)).last(), Some(100 % 40));
        let mut without = SqHeadReporter::new(1, 40, false);
        assert_eq!([false, false, true].map(|is_left_out| without.next(is_left_out)), [u16::MAX, 0, 0]);
    }
}
