//! An open reclaim unit, with its write position.

use serde::{Deserialize, Serialize};

use crate::cast::index;
use crate::layout::SizeClass;
use crate::types::RuId;

/// An open reclaim unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenUnit {
    pub(super) unit: RuId,
    /// Next page to write.
    pub(super) position: u32,
    /// End of the pages that can be written from `position` without interruption.
    pub(super) run_end: u32,
    /// Number of pages that hold data, including remapped blocks.
    pub(super) written: u32,
    /// Flags of the blocks that came in by remapping, which writes skip. Empty if no block was
    /// remapped.
    pub(super) remapped: Vec<bool>,
}

impl OpenUnit {
    /// Counts `pages` as written. Returns true if the run ends with them.
    #[inline]
    pub(super) fn advance(&mut self, pages: u32) -> bool {
        assert!(pages <= self.run_end - self.position, "pages are written beyond the end of a run");
        self.position += pages;
        self.written += pages;
        self.position == self.run_end
    }

    /// Finds the next run after remapped blocks, at the end of a run. Returns false if the unit is
    /// full.
    pub(super) fn find_run(&mut self, class: SizeClass, program_unit_pages: u32) -> bool {
        assert!(self.position <= class.pages, "a reclaim unit is written beyond its end");
        assert!(self.written <= class.pages, "more is written to a reclaim unit than it holds");
        if self.remapped.is_empty() {
            assert_eq!(self.position, class.pages, "a run without remapped blocks ends before its reclaim unit");
            return false;
        }
        let end_of_program_unit = |page: u32| (page / program_unit_pages + 1) * program_unit_pages;
        let is_remapped = |page: u32| self.remapped[index(page / program_unit_pages % class.blocks)];
        while self.position < class.pages && is_remapped(self.position) {
            self.position = end_of_program_unit(self.position);
        }
        self.run_end = self.position;
        while self.run_end < class.pages && !is_remapped(self.run_end) {
            self.run_end = end_of_program_unit(self.run_end);
        }
        self.position < self.run_end
    }
}
