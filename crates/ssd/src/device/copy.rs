//! Incremental copies of a drive's tables, for checkpoints of a drive in use.

use super::blocks::{self, BlockTable, BlockUndoLog, UndoBuffer};
use super::state::{DeviceState, Superblock};
use crate::cast::{count, index, narrow};
use crate::layout::DeviceLayout;
use crate::unit::ReclaimUnit;

/// Preallocated memory for a copy of the state, except for lists of reclaim units and the
/// windows of written pages. The memory is already touched, so the copy causes no page faults.
pub(crate) struct StateBuffer {
    units: Vec<ReclaimUnit>,
    unit_of_slice: Vec<u32>,
    superblocks: Vec<Superblock>,
    block_at: Vec<u32>,
    erase_counts: Vec<u32>,
    undo_buffers: [UndoBuffer; 2],
}

impl StateBuffer {
    pub(crate) fn new(layout: &DeviceLayout) -> StateBuffer {
        // Any value but zero, because the system maps zeroed memory lazily.
        const TOUCHED: u32 = u32::MAX;
        let slices = index(layout.slices());
        let divided = layout.slices_per_superblock > 1;
        let blocks = index(narrow(layout.blocks()));
        let superblock = Superblock { class: u8::MAX, parts_used: TOUCHED };
        StateBuffer {
            units: vec![ReclaimUnit::FREE; slices],
            unit_of_slice: vec![TOUCHED; if divided { slices } else { 0 }],
            superblocks: vec![superblock; index(layout.superblocks())],
            block_at: vec![TOUCHED; blocks],
            erase_counts: vec![TOUCHED; blocks],
            undo_buffers: [UndoBuffer::new(), UndoBuffer::new()],
        }
    }
}

/// Copy of a state, complete once its block tables are copied.
pub(crate) struct StateCopy {
    pub(crate) state: DeviceState,
    blocks_copied: u32,
}

impl StateCopy {
    pub(crate) fn blocks_left(&self) -> u32 {
        count(self.state.erase_counts.len()) - self.blocks_copied
    }

    /// Copies the next blocks. Returns false if the undo log has overflowed.
    pub(crate) fn copy_blocks(&mut self, source: &mut DeviceState) -> bool {
        let blocks = count(source.erase_counts.len());
        let part = self.blocks_copied..blocks.min(self.blocks_copied + blocks::PART_BLOCKS);
        assert!(!part.is_empty(), "blocks are copied while there are some left");
        self.blocks_copied = part.end;
        self.state.erase_counts.copy_part(&source.erase_counts, part.clone());
        if !source.block_at.is_empty() {
            self.state.block_at.copy_part(&source.block_at, part);
        }
        if self.blocks_copied < blocks {
            return true;
        }
        let logs = source.end_copy().map(|log| log.expect("each table has a log while it is copied"));
        self.state.erase_counts.revert(&logs[0]) && self.state.block_at.revert(&logs[1])
    }
}

impl DeviceState {
    /// Copies the state into preallocated memory, except for the block tables.
    /// [`StateCopy::copy_blocks`] copies those.
    pub(crate) fn begin_copy(&mut self, mut buffer: StateBuffer) -> StateCopy {
        buffer.units.clone_from(&self.units);
        buffer.unit_of_slice.clone_from(&self.unit_of_slice);
        buffer.superblocks.clone_from(&self.superblocks);
        buffer.block_at.resize(self.block_at.len(), 0);
        buffer.erase_counts.resize(self.erase_counts.len(), 0);
        let [erases_log, places_log] = buffer.undo_buffers;
        self.erase_counts.begin_copy(erases_log);
        self.block_at.begin_copy(places_log);
        let state = DeviceState {
            units: buffer.units,
            unit_of_slice: buffer.unit_of_slice,
            superblocks: buffer.superblocks,
            groups: self.groups.clone(),
            default_group: self.default_group,
            stats: self.stats.clone(),
            host_pages_written: self.host_pages_written,
            units_closed: self.units_closed,
            random: self.random.clone(),
            block_at: BlockTable::from(buffer.block_at),
            erase_counts: BlockTable::from(buffer.erase_counts),
            recency: self.recency.clone(),
            absorbing: self.absorbing.clone(),
        };
        StateCopy { state, blocks_copied: 0 }
    }

    /// Ends the copy that [`DeviceState::begin_copy`] began.
    pub(crate) fn end_copy(&mut self) -> [Option<BlockUndoLog>; 2] {
        [self.erase_counts.end_copy(), self.block_at.end_copy()]
    }
}
