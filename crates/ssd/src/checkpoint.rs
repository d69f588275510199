//! Checkpoints: consistent snapshots of a device that stays in use.
//!
//! ```text
//! CheckpointBuffer::new     allocates and touches memory for the state, without the device
//! Device::begin_checkpoint  fixes the moment of the snapshot: copies the configuration and the
//!                           state except for the block tables, and starts the undo logs of these
//!                           tables and of the L2P map
//! Device::copy_part         copies the current values of 64 Ki entries of the tables, later of the
//!                           map, and takes the changes logged so far, repeated for each part
//! Checkpoint::save          requests the parts, reverts later changes in them and writes them
//! ```
//!
//! The caller must hold the device lock for `begin_checkpoint` and `copy_part`. A part is 256 KiB
//! of each table, or of the map, for every size of drive. The initial copy is 64 bytes for each
//! slice. That is 0.1 MB for 7.68 TB in reclaim units of 6 GiB, and 2 MB with reclaim units of
//! 256 MiB. Sorting changes by part, reverting them, finding runs, checksums and disk I/O need no
//! device lock. The file equals, byte for byte, the output of [`Device::save`] at the moment of
//! `begin_checkpoint`.
//!
//! The log takes 12 bytes for each run of logical pages that is remapped before it is copied. Its
//! memory is limited to an eighth of the L2P map's or to 64 MiB, whichever is more
//! ([`memory_bytes_max`]). A checkpoint that would need more is abandoned.

use base::FilePlace;

use crate::cast::{index, wide};
use crate::config::DeviceConfig;
use crate::device::blocks::PART_BLOCKS;
use crate::device::{Device, StateBuffer, StateCopy};
use crate::error::{CheckpointAbort, SnapshotError};
use crate::event::EventSink;
use crate::layout::DeviceLayout;
use crate::maps::undo::{MapChange, PART_PAGES, UndoEpoch, UndoLog, part_from, parts};
use crate::snapshot::{write_head, write_part};

/// Maximum memory of the log on drives whose eighth of the L2P map is smaller.
const SMALL_DRIVE_LOG_BYTES_MAX: u64 = 64 << 20;

/// Maximum memory of the log. Growing lists take up to twice their contents.
fn log_bytes_max(layout: &DeviceLayout) -> u64 {
    (4 * u64::from(layout.logical_pages) / 8).max(SMALL_DRIVE_LOG_BYTES_MAX)
}

/// Memory of a checkpoint without the log: the state, its encoding while it grows, parts and
/// buffers.
fn fixed_bytes(layout: &DeviceLayout) -> u64 {
    4 * layout.table_bytes()
        + 64 * (u64::from(layout.separation_pages) + u64::from(layout.absorption_pages))
        + (8 << 20)
}

/// Maximum memory of a checkpoint of such a device, in bytes, in addition to the device itself.
pub fn memory_bytes_max(layout: &DeviceLayout) -> u64 {
    log_bytes_max(layout) + fixed_bytes(layout)
}

/// Preallocated memory for the state of a device. It shortens the start of a checkpoint, because
/// the system allocates memory more slowly than the device copies it.
pub struct CheckpointBuffer(StateBuffer);

impl CheckpointBuffer {
    /// Allocates memory for a device of this layout. Copies of another layout take longer.
    ///
    /// # Errors
    /// The system has no memory for a checkpoint.
    pub fn new(layout: &DeviceLayout) -> std::io::Result<CheckpointBuffer> {
        // If one allocation of this size succeeds, so will the smaller allocations.
        let bytes = usize::try_from(fixed_bytes(layout)).unwrap_or(usize::MAX);
        let no_memory = |_| std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(no_memory)?;
        Ok(CheckpointBuffer(StateBuffer::new(layout)))
    }
}

/// A checkpoint in progress.
pub struct Checkpoint {
    epoch: UndoEpoch,
    config: DeviceConfig,
    state: StateCopy,
    logical_pages: u32,
    /// Number of copied entries.
    copied: u32,
    /// Entries of the part that was copied last.
    entries: Vec<u32>,
    /// Changes logged up to that copy, in order.
    undo_blocks: Vec<Vec<MapChange>>,
    /// Changes of each part, in order.
    part_changes: Vec<Vec<MapChange>>,
    /// Number of changes in `part_changes`, and its limit.
    changes: u64,
    changes_max: u64,
    /// The device's log after it has ended.
    log: Option<Box<UndoLog>>,
}

impl<S: EventSink> Device<S> {
    /// Starts a checkpoint of the current device. Abandons any previous checkpoint.
    pub fn begin_checkpoint(&mut self, buffer: CheckpointBuffer) -> Checkpoint {
        let layout = self.layout();
        let logical_pages = layout.logical_pages;
        let changes_max = log_bytes_max(layout) / (2 * wide(size_of::<MapChange>()));
        let (config, state, _) = self.parts();
        assert!(state.fits(layout), "the state fits its layout");
        let config = config.clone();
        let (state, maps) = self.parts_mut();
        let state = state.begin_copy(buffer.0);
        let epoch = maps.begin_undo(changes_max);
        Checkpoint {
            epoch,
            config,
            state,
            logical_pages,
            copied: 0,
            entries: Vec::with_capacity(index(PART_PAGES)),
            undo_blocks: Vec::new(),
            part_changes: Vec::new(),
            changes: 0,
            changes_max,
            log: None,
        }
    }

    /// Copies the next part of the tables or of the map, on request of [`Checkpoint::save`].
    ///
    /// # Errors
    /// The checkpoint is abandoned and its log has ended.
    pub fn copy_part(&mut self, checkpoint: &mut Checkpoint) -> Result<(), CheckpointAbort> {
        if checkpoint.state.blocks_left() > 0 {
            return self.copy_blocks(checkpoint);
        }
        let start = checkpoint.copied;
        assert!(start < checkpoint.logical_pages, "a requested part is within the map");
        let pages = part_from(start, checkpoint.logical_pages);
        let end = pages.end;
        let changes_max = checkpoint.changes_max.saturating_sub(checkpoint.changes);
        let (_, maps) = self.parts_mut();
        let copied = maps.copy_part(&checkpoint.epoch, pages, &mut checkpoint.entries, changes_max);
        let copied = copied.inspect_err(|_| self.end_checkpoint(checkpoint))?;
        checkpoint.undo_blocks = copied.changes;
        checkpoint.log = copied.log;
        checkpoint.copied = end;
        assert_eq!(checkpoint.entries.len(), index(end - start), "a part is copied completely");
        Ok(())
    }

    fn copy_blocks(&mut self, checkpoint: &mut Checkpoint) -> Result<(), CheckpointAbort> {
        let (state, maps) = self.parts_mut();
        if !maps.logs_for(&checkpoint.epoch) {
            return Err(CheckpointAbort::Replaced);
        }
        if checkpoint.state.copy_blocks(state) {
            return Ok(());
        }
        self.end_checkpoint(checkpoint);
        Err(CheckpointAbort::TooManyChanges)
    }

    /// Ends an incomplete checkpoint and its log. The log's memory is freed with the checkpoint, so
    /// the caller can drop it after it releases the device lock. Further calls have no effect.
    pub fn end_checkpoint(&mut self, checkpoint: &mut Checkpoint) {
        let (state, maps) = self.parts_mut();
        if let Some(log) = maps.end_undo(&checkpoint.epoch) {
            state.end_copy();
            checkpoint.log = Some(log);
        }
    }
}

impl Checkpoint {
    /// Number of parts that [`Checkpoint::save`] requests for a new checkpoint.
    pub fn parts(&self) -> u32 {
        self.state.blocks_left().div_ceil(PART_BLOCKS) + self.logical_pages.div_ceil(PART_PAGES)
    }

    /// Writes the snapshot and replaces the file atomically. Calls `copy` for each part, which must
    /// pass the checkpoint to [`Device::copy_part`]. After an error the caller must call
    /// [`Device::end_checkpoint`].
    ///
    /// # Errors
    /// An error of the file system, the checkpoint or `copy`. The destination is then unchanged.
    pub fn save<E>(
        &mut self,
        place: &FilePlace,
        mut copy: impl FnMut(&mut Checkpoint) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<SnapshotError> + From<CheckpointAbort>,
    {
        let mut abort = None;
        let written = place.replace(|out| {
            let mut next = |checkpoint: &mut Checkpoint, part: Option<usize>| {
                let copied = copy(checkpoint)
                    .and_then(|()| part.map_or(Ok(()), |part| checkpoint.revert_part(part).map_err(E::from)));
                copied.map_err(|error| {
                    abort = Some(error);
                    std::io::Error::other("the checkpoint ended early")
                })
            };
            while self.state.blocks_left() > 0 {
                next(self, None)?;
            }
            write_head(out, &self.config, &[], &self.state.state)?;
            self.part_changes.resize_with(parts(self.logical_pages).count(), Vec::new);
            let mut bytes = Vec::new();
            for part in 0..self.part_changes.len() {
                next(self, Some(part))?;
                write_part(out, &self.entries, &mut bytes)?;
            }
            Ok(())
        });
        match (abort, written) {
            (Some(abort), _) => Err(abort),
            (None, Ok(())) => Ok(()),
            (None, Err(source)) => Err(E::from(SnapshotError::io(place.path())(source))),
        }
    }

    /// Reverts the part that was copied last to the moment of the checkpoint.
    fn revert_part(&mut self, part: usize) -> Result<(), CheckpointAbort> {
        self.sort(part)?;
        let changes = std::mem::take(&mut self.part_changes[part]);
        self.changes -= wide(changes.len());
        for change in changes.iter().rev() {
            assert_eq!(index(change.lpn / PART_PAGES), part, "a change belongs to the part that is reverted");
            let first = index(change.lpn % PART_PAGES);
            let step = u32::from(change.before != 0);
            let entries = self.entries[first..][..index(change.pages)].iter_mut();
            for (entry, page) in entries.zip(0..) {
                *entry = change.before.wrapping_sub(step * page);
            }
        }
        Ok(())
    }

    /// Sorts logged changes into `part` and the later parts.
    fn sort(&mut self, part: usize) -> Result<(), CheckpointAbort> {
        for block in std::mem::take(&mut self.undo_blocks) {
            for mut change in block {
                while change.pages > 0 {
                    let target = index(change.lpn / PART_PAGES);
                    assert!(target >= part, "the log has a change of a part that is copied already");
                    let here = change.pages.min(PART_PAGES - change.lpn % PART_PAGES);
                    let changes = &mut self.part_changes[target];
                    changes.try_reserve(1).map_err(|_| CheckpointAbort::NoMemory)?;
                    changes.push(MapChange { pages: here, ..change });
                    self.changes += 1;
                    // A long run is one change in the log and one change in each part.
                    if self.changes > self.changes_max {
                        return Err(CheckpointAbort::TooManyChanges);
                    }
                    let step = if change.before == 0 { 0 } else { here };
                    change.lpn += here;
                    change.before = change.before.wrapping_sub(step);
                    change.pages -= here;
                }
            }
        }
        Ok(())
    }
}
