//! Background operations, which are sanitize operations and device self-tests.
//!
//! Their outcomes are non-volatile state ([`crate::state`]), but their progress is not. A restart
//! begins a sanitize operation again and forgets a self-test.

use nvme_spec::command::SelfTestCode;
use ssd::Nanos;

use crate::namespace::PageExtent;
use crate::state::SanitizeOutcome;

/// Duration of a short self-test. A host that polls every second can see it.
const SHORT_SELF_TEST_NS: Nanos = 2_000_000_000;
/// Duration of an extended self-test. Identify Controller reports it in minutes (EDSTT).
pub(crate) const EXTENDED_SELF_TEST_NS: Nanos = 10_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct BackgroundOperations {
    pub(crate) sanitize: Option<SanitizeProgress>,
    pub(crate) self_test: Option<RunningTest>,
    /// A test has ended without a stored result.
    pub(crate) has_new_result: bool,
}

impl BackgroundOperations {
    #[inline]
    pub(crate) fn is_sanitizing(&self) -> bool {
        self.sanitize.is_some()
    }

    /// Begins the sanitize operation that the state reports as running, on a drive of `pages`
    /// pages.
    pub(crate) fn begin_sanitize(&mut self, outcome: &SanitizeOutcome, pages: u32) {
        assert!(self.sanitize.is_none(), "one sanitize operation at a time");
        self.sanitize = SanitizeProgress::resumed(outcome, pages);
    }

    pub(crate) fn end_self_test(&mut self, is_meant: impl FnOnce(&RunningTest) -> bool) -> Option<RunningTest> {
        let ended = self.self_test.take_if(|test| is_meant(test));
        self.has_new_result |= ended.is_some();
        ended
    }
}

/// A running self-test. A restart of the drive forgets it.
#[derive(Clone, Debug)]
pub(crate) struct RunningTest {
    pub(crate) controller: u16,
    pub(crate) nsid: u32,
    pub(crate) code: SelfTestCode,
    pub(crate) since: Nanos,
}

impl RunningTest {
    fn duration(&self) -> Nanos {
        match self.code {
            SelfTestCode::Short => SHORT_SELF_TEST_NS,
            _ => EXTENDED_SELF_TEST_NS,
        }
    }

    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.since) >= self.duration()
    }

    /// Current operation and percent of it, for the Device Self-test log.
    pub(crate) fn progress(&self, now: Nanos) -> (u8, u8) {
        let percent = now.saturating_sub(self.since).min(self.duration()) * 100 / self.duration();
        assert!(percent <= 100, "the progress is at most 100 %");
        (self.code.code(), percent as u8)
    }
}

/// Progress of a running sanitize operation. The kind of the operation is in the non-volatile
/// state.
#[derive(Debug)]
pub(crate) struct SanitizeProgress {
    /// Erased pages from the start of the drive, always fewer than `pages`.
    pages_done: u32,
    pages: u32,
}

impl SanitizeProgress {
    /// Restarts the operation that the stored state reports as running.
    fn resumed(outcome: &SanitizeOutcome, pages: u32) -> Option<SanitizeProgress> {
        let running = matches!(outcome, SanitizeOutcome::Running { .. });
        running.then_some(SanitizeProgress { pages_done: 0, pages })
    }

    /// Progress in 65536ths (SPROG). FFFFh would mean that no operation runs.
    pub(crate) fn progress(&self) -> u16 {
        assert!(self.pages_done < self.pages, "a sanitize operation in progress has pages left");
        let done = (u64::from(self.pages_done) << 16) / u64::from(self.pages);
        done.min(0xfffe) as u16
    }

    /// Returns the next piece to erase, at most `pages_max` pages, and true for the last one.
    pub(crate) fn next_piece(&mut self, pages_max: u32) -> (PageExtent, bool) {
        assert!(self.pages_done < self.pages, "a sanitize operation in progress has pages left");
        let left = self.pages - self.pages_done;
        let piece = PageExtent { first: self.pages_done, pages: left.min(pages_max) };
        assert!(piece.pages > 0, "a piece of at most {pages_max} pages has a page");
        let is_last = piece.pages == left;
        if !is_last {
            self.pages_done += piece.pages;
        }
        (piece, is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_never_says_done() {
        let progress = |pages_done, pages| SanitizeProgress { pages_done, pages }.progress();
        assert_eq!(progress(0, 7), 0);
        assert_eq!(progress(1, 2), 0x8000);
        assert_eq!(progress(u32::MAX - 1, u32::MAX), 0xfffe);
        assert!(SanitizeProgress::resumed(&SanitizeOutcome::Never, 7).is_none());
        assert!(SanitizeProgress::resumed(&SanitizeOutcome::Running { dword10: 2 }, 7).is_some());
    }
}
