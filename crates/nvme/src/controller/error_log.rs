//! The Error Information log, with one entry for each failed command, newest first.
//!
//! Each controller has its own entries in memory. The error count that numbers them survives power
//! cycles.

use std::borrow::Cow;

use nvme_spec::command::SubmissionEntry;
use nvme_spec::log::ErrorInformationEntry;
use ssd::BoundedLog;
use zerocopy::IntoBytes;

use crate::completion::Reply;
use crate::error::Failure;

/// Most entries of the log (ELPE + 1).
pub const ERROR_LOG_ENTRIES_MAX: usize = 64;
/// Log Page Version of entries with command set and opcode.
const ENTRY_VERSION: u8 = 1;
const NO_PLACE: u16 = 0xffff;

/// Error log of one controller. See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    entries: BoundedLog<(ErrorInformationEntry, Cow<'static, str>)>,
}

impl ErrorLog {
    /// Entries, newest first, each with its cause. The host does not see the cause.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ErrorInformationEntry, &str)> {
        self.entries.iter().rev().map(|(entry, cause)| (entry, &**cause))
    }

    /// Adds an entry for a failed command of `queue`, the `count`th failure of the drive.
    pub(crate) fn note(&mut self, count: u64, queue: u16, entry: &SubmissionEntry, failure: &Failure) {
        let place = failure.parameter.map_or(NO_PLACE, |place| u16::from(place.bit) << 8 | u16::from(place.byte));
        let logged = ErrorInformationEntry {
            ecnt: count.into(),
            sqid: queue.into(),
            cid: entry.cid,
            status: Reply::failed(failure).status_field(),
            pel: place.into(),
            lba: failure.lba.unwrap_or(0).into(),
            nsid: entry.nsid,
            opcode: entry.opcode,
            csinfo: failure.specific.into(),
            lpver: ENTRY_VERSION,
            ..ErrorInformationEntry::default()
        };
        let newest = self.iter().next().map(|(newest, _)| newest.ecnt.get());
        assert!(newest.is_none_or(|newest| newest < count), "errors are counted in their order");
        self.push(logged, failure.cause.clone());
    }

    fn push(&mut self, entry: ErrorInformationEntry, cause: Cow<'static, str>) {
        self.entries.push((entry, cause), ERROR_LOG_ENTRIES_MAX);
    }

    /// The log page at its full length, with zeroes for unused entries.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.iter().flat_map(|(entry, _)| entry.as_bytes()).copied().collect();
        assert!(page.len() <= ERROR_LOG_ENTRIES_MAX * size_of::<ErrorInformationEntry>(), "entries are limited");
        page.resize(ERROR_LOG_ENTRIES_MAX * size_of::<ErrorInformationEntry>(), 0);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_forgets_the_oldest() {
        let mut log = ErrorLog::default();
        for count in 1..=100u64 {
            let entry = ErrorInformationEntry { ecnt: count.into(), ..ErrorInformationEntry::default() };
            log.push(entry, format!("error {count}").into());
        }
        assert_eq!(log.iter().len(), 64);
        let counts: Vec<u64> = log.iter().map(|(entry, _)| entry.ecnt.get()).collect();
        assert_eq!((counts[0], counts[63]), (100, 37));
        assert_eq!(log.iter().next().unwrap().1, "error 100");
        let page = log.page();
        assert_eq!(page.len(), 64 * 64);
        assert_eq!((page[0], page[64]), (100, 99));
    }
}
