//! Cleaning: moves the valid blocks of a section to the logs, so that a checkpoint can free it.
//!
//! Foreground cleaning runs when free sections are few. It selects the section with the fewest
//! valid blocks. Background cleaning runs when the file system is idle, and weighs age against
//! valid blocks. Moved data goes to the cold log (`move_data_page`, `set_cold_data`). Moved nodes
//! go to their own log. The rules come from the kernel, `fs/f2fs/gc.c`.

use super::discard::next_run;
use super::file_system::{FileSystem, FileSystemFull};
use super::hints::LogKind;
use super::segments::NOWHERE;

impl FileSystem {
    /// Frees sections until there are enough.
    ///
    /// # Errors
    /// All blocks are valid, so no section can be freed.
    pub(super) fn clean(&mut self) -> Result<(), FileSystemFull> {
        // Every victim has at least one invalid block, so a round over all sections must free some.
        let mut patience = 2 * self.layout.sections;
        while self.needs_sections() {
            let prefree = self.segments.prefree() / self.layout.section_segments;
            let soon = self.segments.free_sections() + prefree;
            let enough = self.layout.reserved_sections + self.dirty_sections();
            if prefree > 0 && (soon > enough || prefree >= self.layout.reserved_sections / 4) {
                self.checkpoint()?;
                continue;
            }
            patience = patience.checked_sub(1).ok_or(FileSystemFull)?;
            match self.segments.greedy_victim() {
                Some(section) => self.clean_section(section)?,
                None if self.segments.prefree() > 0 => self.checkpoint()?,
                None => return Err(FileSystemFull),
            }
            self.counters.foreground_sections += 1;
        }
        Ok(())
    }

    /// Cleans one section while idle.
    pub(super) fn clean_in_background(&mut self) -> Result<(), FileSystemFull> {
        if let Some(section) = self.segments.cost_benefit_victim() {
            self.counters.background_sections += 1;
            self.clean_section(section)?;
        }
        Ok(())
    }

    fn clean_section(&mut self, section: u32) -> Result<(), FileSystemFull> {
        self.segments.set_victim(section);
        for segment in self.segments.of_section(section) {
            let bits = *self.segments.valid_bits(segment);
            let mut offset = 0;
            while let Some((first, blocks)) = next_run(&bits, offset) {
                offset = first + blocks;
                self.move_blocks(segment * self.layout.segment_blocks + first, blocks)?;
            }
        }
        self.segments.set_victim(NOWHERE);
        self.output.flush();
        Ok(())
    }

    /// Moves a run of blocks. Blocks that are also consecutive in their file move together.
    fn move_blocks(&mut self, first: u32, blocks: u32) -> Result<(), FileSystemFull> {
        let end = first + blocks;
        let mut block = first;
        while block < end {
            match self.owner(block) {
                Err(node) => {
                    self.write_node(node)?;
                    block += 1;
                    self.counters.cleaned_blocks += 1;
                }
                Ok((file, index)) => {
                    let follows = |step: u32| self.owner(block + step) == Ok((file, index + step));
                    let run = (1..end - block).find(|step| !follows(*step)).unwrap_or(end - block);
                    self.write_data(file, index, run, LogKind::ColdData)?;
                    block += run;
                    self.counters.cleaned_blocks += u64::from(run);
                }
            }
        }
        Ok(())
    }
}
