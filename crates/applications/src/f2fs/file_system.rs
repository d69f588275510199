//! The file system: effects of file operations on blocks, nodes and logs.
//!
//! ```text
//! personality -> write, overwrite, delete -> logs (append, or threaded into dirty segments) ->
//! requests
//!                      |  nodes become dirty                  ^            ^
//!                      +-> checkpoint: nodes, NAT, SIT, SSA --+            |
//!                      +-> too few free sections: cleaning ----------------+
//! ```
//!
//! Data goes to the drive in the order of file writes. The page cache writes back a file as a
//! whole, so the interleaving of threads inside a file does not matter. Nodes and directory entries
//! stay in memory until a checkpoint or an fsync.

use super::discard::Discards;
use super::hints::{F2fsWriter, LogKind};
use super::layout::{BLOCK_BYTES, F2fsLayout};
use super::nodes::{INODE_POINTERS, NODE_POINTERS, Nodes, UNWRITTEN};
use super::output::F2fsOutput;
use super::rules::F2fsRules;
use super::segments::{NOWHERE, SegmentTable};
use crate::bitmap::Bitmap;

/// Error of a file system without room for the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemFull;

/// Marks a node block in place of a block's index in its file.
const NODE: u32 = u32::MAX;
/// Directory entries that fit into the inode (`NR_INLINE_DENTRY`).
const INLINE_ENTRIES: u32 = 182;
/// Directory entries of a block (`NR_DENTRY_IN_BLOCK`).
const BLOCK_ENTRIES: u32 = 214;

/// Owner of a block of the main area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockOwner {
    /// Number of a file or of a node.
    pub id: u32,
    /// Index of the block in its file, or [`NODE`].
    pub index: u32,
}

/// A file or directory.
#[derive(Debug, Clone, Default)]
pub struct F2fsFile {
    /// Blocks of the file in the main area.
    pub blocks: Vec<u32>,
    exists: bool,
    /// The inode, then the direct nodes. On a scaled model, some files have none.
    pub nodes: Vec<u32>,
    indirect: Vec<u32>,
    /// Log or lifetime class of the data.
    pub class: u8,
    /// Blocks of unwritten entries, for a directory.
    dirty_entries: u64,
}

#[cfg(test)]
impl F2fsFile {
    pub fn all_nodes(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().chain(&self.indirect).copied()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct F2fsCounters {
    pub application_bytes: u64,
    /// Blocks written into free segments.
    pub appended_blocks: u64,
    /// Blocks written into gaps of dirty segments.
    pub threaded_blocks: u64,
    pub in_place_blocks: u64,
    /// Part of the blocks above moved by cleaning.
    pub cleaned_blocks: u64,
    /// Sections cleaned because free sections were too few.
    pub foreground_sections: u64,
    /// Sections cleaned while idle.
    pub background_sections: u64,
    pub checkpoints: u64,
}

pub struct FileSystem {
    pub(super) layout: F2fsLayout,
    pub(super) rules: F2fsRules,
    pub(super) segments: SegmentTable,
    pub(super) nodes: Nodes,
    pub(super) files: Vec<F2fsFile>,
    pub(super) owners: Vec<BlockOwner>,
    pub(super) output: F2fsOutput,
    pub(super) discards: Discards,
    pub(super) counters: F2fsCounters,
    /// Directories with unwritten entries, and their number of unwritten blocks.
    pub(super) dirty_directories: Vec<u32>,
    pub(super) dirty_entry_blocks: u32,
    /// Segments that logs have left since the last checkpoint. Their summaries are unwritten.
    pub(super) summaries: Bitmap,
    /// Next offset of each log in its segment, and whether the log fills gaps there.
    next_offset: [u32; 6],
    threaded: [bool; 6],
    /// Blocks allocated since the last checkpoint, and blocks valid at that time.
    pub(super) allocated: u64,
    pub(super) valid_at_checkpoint: u64,
    /// Bytes written before the last checkpoint, and before the last pause.
    pub(super) checkpointed_at: u64,
    pub(super) paused_at: u64,
    /// Newer copy of each NAT block, each SIT block and the checkpoint.
    pub(super) nat_copy: Bitmap,
    pub(super) sit_copy: Bitmap,
}

impl FileSystem {
    /// Creates an empty file system. As after mkfs, the whole drive is discarded.
    pub fn new(layout: F2fsLayout, rules: F2fsRules, output: F2fsOutput) -> FileSystem {
        let discards = Discards::new(&layout, rules.settings.discard.is_enabled());
        let mut segments = SegmentTable::new(&layout);
        // Same order as mkfs.
        for log in [
            LogKind::HotNode,
            LogKind::WarmNode,
            LogKind::ColdNode,
            LogKind::HotData,
            LogKind::ColdData,
            LogKind::WarmData,
        ] {
            let section = segments.next_free_section().expect("a layout has room for the logs");
            segments.switch_segment(log, section * layout.section_segments);
        }
        FileSystem {
            nodes: Nodes::new(layout.nodes()),
            files: Vec::new(),
            owners: vec![BlockOwner { id: 0, index: NODE }; layout.main_blocks() as usize],
            output,
            discards,
            counters: F2fsCounters::default(),
            dirty_directories: Vec::new(),
            dirty_entry_blocks: 0,
            summaries: Bitmap::new(layout.segments as usize),
            next_offset: [0; 6],
            threaded: [false; 6],
            allocated: 0,
            valid_at_checkpoint: 0,
            checkpointed_at: 0,
            paused_at: 0,
            nat_copy: Bitmap::new(layout.nat_blocks as usize),
            sit_copy: Bitmap::new(layout.sit_blocks as usize),
            segments,
            layout,
            rules,
        }
    }

    /// Reserves a file or directory that does not exist yet and returns its number.
    pub fn add_file(&mut self) -> u32 {
        self.files.push(F2fsFile::default());
        (self.files.len() - 1) as u32
    }

    /// Creates a directory for up to `entries` files. Its own parent is not modelled.
    pub fn create_directory(&mut self, entries: u32) -> Result<u32, FileSystemFull> {
        let id = self.add_file();
        self.create_inode(id, LogKind::HotNode)?;
        let file = &mut self.files[id as usize];
        if entries > INLINE_ENTRIES {
            file.blocks = vec![UNWRITTEN; entries.div_ceil(BLOCK_ENTRIES).min(64) as usize];
        }
        Ok(id)
    }

    pub fn create(&mut self, id: u32, directory: u32, class: u8) -> Result<(), FileSystemFull> {
        self.make_room()?;
        self.check_room(1)?;
        self.create_inode(id, LogKind::WarmNode)?;
        self.files[id as usize].class = class;
        self.change_entry(directory, id);
        Ok(())
    }

    /// Creates the inode of a new file. If sizes are shrunk, only one file in s has an inode, so
    /// that nodes keep their share of the blocks.
    fn create_inode(&mut self, id: u32, log: LogKind) -> Result<(), FileSystemFull> {
        let file = &mut self.files[id as usize];
        assert!(!file.exists, "file {id} exists");
        file.exists = true;
        if id.is_multiple_of(self.layout.shrink) {
            file.nodes.push(self.nodes.create(log).ok_or(FileSystemFull)?);
        }
        Ok(())
    }

    pub fn has_inode(&self, id: u32) -> bool {
        !self.files[id as usize].nodes.is_empty()
    }

    fn change_entry(&mut self, directory: u32, id: u32) {
        let file = &mut self.files[directory as usize];
        if let Some(inode) = file.nodes.first() {
            self.nodes.mark_dirty(*inode);
        }
        if file.blocks.is_empty() {
            return;
        }
        // A hash distributes the entries over the blocks.
        let hash = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let bit = 1 << (hash % file.blocks.len() as u64);
        if file.dirty_entries == 0 {
            self.dirty_directories.push(directory);
        }
        if file.dirty_entries & bit == 0 {
            file.dirty_entries |= bit;
            self.dirty_entry_blocks += 1;
        }
    }

    /// Writes blocks of a file to its log. `bytes` of them belong to the application.
    pub fn write(&mut self, id: u32, first: u32, blocks: u32, bytes: u64) -> Result<(), FileSystemFull> {
        self.make_room()?;
        let end = first + blocks;
        let grows = end.saturating_sub(self.files[id as usize].blocks.len() as u32);
        self.check_room(u64::from(grows))?;
        self.extend(id, end)?;
        self.counters.application_bytes += bytes;
        let log = self.rules.data_log(self.files[id as usize].class);
        self.write_data(id, first, blocks, log)?;
        self.output.flush();
        Ok(())
    }

    /// Adds pointers and nodes for a file of this many blocks.
    fn extend(&mut self, id: u32, blocks: u32) -> Result<(), FileSystemFull> {
        let file = &mut self.files[id as usize];
        if blocks as usize > file.blocks.len() {
            file.blocks.resize(blocks as usize, UNWRITTEN);
        }
        if file.nodes.is_empty() {
            return Ok(());
        }
        self.nodes.mark_dirty(file.nodes[0]);
        let direct = blocks.saturating_sub(INODE_POINTERS).div_ceil(NODE_POINTERS);
        while (file.nodes.len() as u32) < 1 + direct {
            // The inode points to two direct nodes. Indirect nodes point to all others.
            let beyond = (file.nodes.len() as u32 - 1).checked_sub(2);
            if let Some(place) = beyond {
                let parent = (place / NODE_POINTERS) as usize;
                if parent == file.indirect.len() {
                    file.indirect.push(self.nodes.create(LogKind::ColdNode).ok_or(FileSystemFull)?);
                }
                self.nodes.mark_dirty(file.indirect[parent]);
            }
            file.nodes.push(self.nodes.create(LogKind::WarmNode).ok_or(FileSystemFull)?);
        }
        Ok(())
    }

    pub(super) fn write_data(&mut self, id: u32, first: u32, blocks: u32, log: LogKind) -> Result<(), FileSystemFull> {
        let time = self.output.bytes_written;
        let (mut index, mut left) = (first, blocks);
        while left > 0 {
            let (block, run) = self.allocate(log, left)?;
            let file = &mut self.files[id as usize];
            let places = &mut file.blocks[index as usize..(index + run) as usize];
            for (old, blocks) in runs(places) {
                self.segments.invalidate(old, blocks, time);
            }
            self.segments.write(block, run, time);
            self.discards.remove(block, run);
            let owners = &mut self.owners[block as usize..(block + run) as usize];
            for (step, (place, owner)) in (0..).zip(places.iter_mut().zip(owners)) {
                *place = block + step;
                *owner = BlockOwner { id, index: index + step };
            }
            let class = file.class;
            self.output.write(F2fsWriter::Log(log), class, self.layout.main + block, run);
            index += run;
            left -= run;
        }
        let file = &self.files[id as usize];
        let node_of = |index: u32| match index.checked_sub(INODE_POINTERS) {
            None => 0,
            Some(beyond) => 1 + beyond / NODE_POINTERS,
        };
        if !file.nodes.is_empty() {
            for node in node_of(first)..=node_of(first + blocks - 1) {
                self.nodes.mark_dirty(file.nodes[node as usize]);
            }
        }
        Ok(())
    }

    /// Overwrites blocks of a file and syncs them (`f2fs_do_sync_file`). Depending on the rules,
    /// the write happens in place or goes to the log with the changed nodes.
    pub fn overwrite_synced(&mut self, id: u32, first: u32, blocks: u32, datasync: bool) -> Result<(), FileSystemFull> {
        let in_place = self.rules.in_place && (datasync || blocks <= self.rules.settings.min_fsync_blocks);
        if !in_place {
            self.write(id, first, blocks, u64::from(blocks) * BLOCK_BYTES)?;
            return self.sync_nodes(id);
        }
        self.counters.application_bytes += u64::from(blocks) * BLOCK_BYTES;
        self.counters.in_place_blocks += u64::from(blocks);
        let file = &self.files[id as usize];
        let log = self.rules.data_log(file.class);
        for (block, run) in runs(&file.blocks[first as usize..(first + blocks) as usize]) {
            self.output.write(F2fsWriter::Log(log), file.class, self.layout.main + block, run);
        }
        self.output.flush();
        Ok(())
    }

    /// Writes the nodes of a file, so that recovery finds its data. If recovery would lack room,
    /// writes a checkpoint instead.
    fn sync_nodes(&mut self, id: u32) -> Result<(), FileSystemFull> {
        if self.valid_at_checkpoint + self.allocated > self.layout.user_blocks() {
            return self.checkpoint();
        }
        for place in 0..self.files[id as usize].nodes.len() {
            let node = self.files[id as usize].nodes[place];
            if self.nodes.is_dirty(node) {
                self.write_node(node)?;
            }
        }
        self.output.flush();
        Ok(())
    }

    pub(super) fn write_node(&mut self, node: u32) -> Result<(), FileSystemFull> {
        let time = self.output.bytes_written;
        let log = self.nodes.log(node);
        let (block, _) = self.allocate(log, 1)?;
        let old = self.nodes.address(node);
        if old != UNWRITTEN {
            self.segments.invalidate(old, 1, time);
        }
        self.segments.write(block, 1, time);
        self.discards.remove(block, 1);
        self.owners[block as usize] = BlockOwner { id: node, index: NODE };
        self.nodes.wrote(node, block);
        self.output.write(F2fsWriter::Log(log), 0, self.layout.main + block, 1);
        Ok(())
    }

    pub fn delete(&mut self, id: u32, directory: u32) {
        let time = self.output.bytes_written;
        let file = &mut self.files[id as usize];
        assert!(std::mem::take(&mut file.exists), "file {id} does not exist");
        for (block, blocks) in runs(&file.blocks) {
            self.segments.invalidate(block, blocks, time);
        }
        file.blocks.clear();
        for node in file.nodes.drain(..).chain(file.indirect.drain(..)) {
            let block = self.nodes.delete(node);
            if block != UNWRITTEN {
                self.segments.invalidate(block, 1, time);
            }
        }
        self.change_entry(directory, id);
    }

    pub fn read(&mut self, id: u32) {
        let file = &self.files[id as usize];
        for (block, blocks) in runs(&file.blocks) {
            self.output.read(self.layout.main + block, blocks);
        }
        self.output.flush();
    }

    /// Owner of a block, for cleaning: a file and the index of the block, or a node.
    pub(super) fn owner(&self, block: u32) -> Result<(u32, u32), u32> {
        let owner = self.owners[block as usize];
        if owner.index == NODE { Err(owner.id) } else { Ok((owner.id, owner.index)) }
    }

    /// Checks that users may have `blocks` more blocks.
    fn check_room(&self, blocks: u64) -> Result<(), FileSystemFull> {
        let wanted = self.segments.total_valid + u64::from(self.nodes.dirty_count()) + blocks;
        if wanted > self.layout.user_blocks() { Err(FileSystemFull) } else { Ok(()) }
    }

    /// Valid blocks as a fraction of the user blocks.
    pub fn utilization(&self) -> f64 {
        self.segments.total_valid as f64 / self.layout.user_blocks() as f64
    }

    /// Allocates the next blocks of a log. Returns the first block and their number, at most
    /// `limit`.
    fn allocate(&mut self, log: LogKind, limit: u32) -> Result<(u32, u32), FileSystemFull> {
        loop {
            let segment = self.segments.current(log);
            let from = self.next_offset[log as usize];
            let run =
                if from < self.layout.segment_blocks { self.segments.writable_run(segment, from, limit) } else { None };
            if let Some((first, blocks)) = run {
                self.next_offset[log as usize] = first + blocks;
                self.allocated += u64::from(blocks);
                let count = if self.threaded[log as usize] {
                    &mut self.counters.threaded_blocks
                } else {
                    &mut self.counters.appended_blocks
                };
                *count += u64::from(blocks);
                return Ok((segment * self.layout.segment_blocks + first, blocks));
            }
            self.change_segment(log)?;
        }
    }

    /// Moves a log to another segment. Selects a dirty segment if free sections are few
    /// (`need_SSR`), otherwise a free one.
    fn change_segment(&mut self, log: LogKind) -> Result<(), FileSystemFull> {
        let left = self.segments.current(log);
        assert!(left != NOWHERE, "every log has a segment");
        self.summaries.set(left as usize);
        let few = self.segments.free_sections() <= 2 * self.layout.reserved_sections + self.dirty_sections();
        let dirty = if self.rules.threaded && few { self.find_dirty(log) } else { None };
        let (segment, threaded) = match dirty {
            Some(segment) => (segment, true),
            None => (self.segments.next_free(log).ok_or(FileSystemFull)?, false),
        };
        self.segments.switch_segment(log, segment);
        self.next_offset[log as usize] = 0;
        self.threaded[log as usize] = threaded;
        Ok(())
    }

    /// Finds a dirty segment for threaded logging. Prefers the log's own kind over the other
    /// temperatures (`get_ssr_segment`).
    fn find_dirty(&mut self, log: LogKind) -> Option<u32> {
        use LogKind::{ColdData, ColdNode, HotData, HotNode, WarmData, WarmNode};
        let order = match log {
            HotData => [HotData, WarmData, ColdData],
            WarmData => [WarmData, ColdData, HotData],
            ColdData => [ColdData, WarmData, HotData],
            HotNode => [HotNode, WarmNode, ColdNode],
            WarmNode => [WarmNode, ColdNode, HotNode],
            ColdNode => [ColdNode, WarmNode, HotNode],
        };
        order.into_iter().find_map(|kind| self.segments.roomiest(kind))
    }

    /// Sections that a checkpoint would need now for nodes and directory entries. Entries count
    /// twice, because they dirty nodes.
    pub(super) fn dirty_sections(&self) -> u32 {
        let section_blocks = self.layout.section_segments * self.layout.segment_blocks;
        self.nodes.dirty_count().div_ceil(section_blocks) + 2 * self.dirty_entry_blocks.div_ceil(section_blocks)
    }

    /// True if free sections are so few that cleaning must run (`has_not_enough_free_secs`).
    pub(super) fn needs_sections(&self) -> bool {
        self.segments.free_sections() <= self.layout.reserved_sections + self.dirty_sections()
    }

    /// Frees sections before an operation if there are too few (`f2fs_balance_fs`).
    fn make_room(&mut self) -> Result<(), FileSystemFull> {
        if self.needs_sections() { self.clean() } else { Ok(()) }
    }

    pub(super) fn write_entries(&mut self) -> Result<(), FileSystemFull> {
        for directory in std::mem::take(&mut self.dirty_directories) {
            let mut dirty = std::mem::take(&mut self.files[directory as usize].dirty_entries);
            while dirty != 0 {
                self.write_data(directory, dirty.trailing_zeros(), 1, LogKind::HotData)?;
                dirty &= dirty - 1;
            }
        }
        self.dirty_entry_blocks = 0;
        Ok(())
    }
}

/// Runs of consecutive blocks among the existing blocks of a list, as first block and number.
fn runs(list: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let groups = list.chunk_by(|block, next| *block != UNWRITTEN && block + 1 == *next);
    groups.filter(|group| group[0] != UNWRITTEN).map(|group| (group[0], group.len() as u32))
}
