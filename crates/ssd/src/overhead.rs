//! Overhead: pages that a drive writes beside data (mapping journal, parity, tables).
//!
//! After n data pages a drive has written exactly floor(n * share) overhead pages. The number
//! follows from the counters of data, so the device has no further state for it.

use serde::{Deserialize, Serialize};

use crate::cast::truncate32;

/// Millionths of a page in a page.
const PAGE: u128 = 1_000_000;

/// Overhead pages as a function of data pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaOverhead {
    /// Overhead pages for a million data pages.
    millionths: u32,
    /// Overhead that was due when counting began, in millionths of a page, less than a page. 0 for
    /// the counters since a device's creation.
    due: u32,
}

impl MediaOverhead {
    /// Overhead of `share` pages for each data page, rounded to millionths.
    pub(crate) fn new(share: f64) -> MediaOverhead {
        MediaOverhead { millionths: truncate32((share * 1e6).round()), due: 0 }
    }

    /// Overhead pages for each data page.
    pub fn share(self) -> f64 {
        f64::from(self.millionths) / 1e6
    }

    /// Overhead pages after this many data pages.
    pub fn pages(self, data_pages: u64) -> u64 {
        let pages = self.millionths_after(data_pages) / PAGE;
        u64::try_from(pages).expect("overhead is at most half of the data")
    }

    /// Overhead for counting from now on, after this many data pages. The pages of both parts add
    /// up to those of the whole.
    #[must_use]
    pub(crate) fn counting_from(self, data_pages: u64) -> MediaOverhead {
        let due = u32::try_from(self.millionths_after(data_pages) % PAGE);
        MediaOverhead { due: due.expect("less than a page is due"), ..self }
    }

    /// Data pages that are at least this many media pages with their overhead.
    pub(crate) fn data_pages(self, media_pages: u64) -> u64 {
        let pages = (u128::from(media_pages) * PAGE).div_ceil(PAGE + u128::from(self.millionths));
        u64::try_from(pages).expect("data pages are at most the media pages")
    }

    /// Overhead pages for a million data pages.
    pub(crate) fn millionths(self) -> u32 {
        self.millionths
    }

    fn millionths_after(self, data_pages: u64) -> u128 {
        u128::from(data_pages) * u128::from(self.millionths) + u128::from(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole_to_the_page() {
        for share in [0.0, 0.000_001, 0.025, 0.1, 1.0 / 3.0, 0.5] {
            let overhead = MediaOverhead::new(share);
            let mut rest = overhead;
            let mut pages = 0;
            for (data_pages, step) in [0, 1, 9, 17, 1_000_003, 1 << 40].into_iter().zip(1..) {
                pages += rest.pages(data_pages);
                rest = rest.counting_from(data_pages);
                let whole = [0, 1, 9, 17, 1_000_003, 1 << 40].iter().take(step).sum();
                assert_eq!(pages, overhead.pages(whole), "{share}, {step} parts");
            }
        }
        assert_eq!(MediaOverhead::new(0.1).pages(9), 0);
        assert_eq!(MediaOverhead::new(0.1).pages(10), 1);
        assert_eq!(MediaOverhead::new(0.1).pages(u64::MAX / 4), u64::MAX / 40);
    }

    #[test]
    fn data_pages_reach_the_media_pages() {
        for share in [0.0, 0.1, 0.25, 0.5] {
            let overhead = MediaOverhead::new(share);
            for media_pages in 0..100 {
                let data_pages = overhead.data_pages(media_pages);
                assert!(data_pages + overhead.pages(data_pages) >= media_pages);
                let fewer = data_pages.saturating_sub(1);
                assert!(media_pages == 0 || fewer + overhead.pages(fewer) < media_pages);
            }
        }
    }
}
