//! A snapshot of one moment of a device that goes on meanwhile.
//!
//! ```text
//! Room::of                     memory for a copy of the state, made without the device and touched
//! Device::begin_checkpoint     the moment: configuration and state are copied, but for the tables of blocks; changes of these tables and of the
//!                              L2P map are noted from now on
//! Device::copy_part            64 Ki entries of the tables, and then of the map, as they are now, and what has been noted; again and again
//! Checkpoint::save             asks for one part after the other, takes back in it what changed since the moment, writes it
//! ```
//!
//! Whoever serves the device holds it for the second and the third. A part is 256 KiB of each table, or of the map, whatever the drive's size.
//! What is copied at the beginning is 64 bytes for each part of a superblock that a handle may have as its reclaim unit: 0.1 MB for 7.68 TB in
//! reclaim units of 6 GiB, 2 MB in such of 256 MiB. Everything else happens without the device: sorting what was noted by part, taking it back,
//! finding runs, checksums, the disk. What is written is what [`Device::save`] would have written at the moment of the beginning, byte for byte.
//!
//! What is noted is 12 bytes for each run of logical pages that is mapped anew before it is copied. It takes an eighth of the
//! L2P map's memory at most, or 64 MiB where that is more ([`memory_bytes_max`]); a checkpoint that would need more comes to nothing.

use base::FilePlace;

use crate::cast::{index, wide};
use crate::config::DeviceConfig;
use crate::device::blocks::PART_BLOCKS;
use crate::device::{Device, StateCopy, StateRoom};
use crate::error::{CheckpointEnded, SnapshotError};
use crate::event::EventSink;
use crate::layout::Layout;
use crate::maps::undo::{Beginning, Change, PART_PAGES, UndoLog, part_from, parts};
use crate::snapshot::{write_head, write_part};

/// Memory for what is noted that every checkpoint may take.
const NOTED_BYTES_MIN: u64 = 64 << 20;

/// Memory that what a checkpoint notes may take: lists that grow take up to twice what is in them.
fn noted_bytes_max(layout: &Layout) -> u64 {
    (4 * u64::from(layout.logical_pages) / 8).max(NOTED_BYTES_MIN)
}

/// Memory that a checkpoint takes, beside what is noted: the state, its stored form as that grows, parts and buffers.
fn fixed_bytes(layout: &Layout) -> u64 {
    4 * layout.table_bytes() + 64 * u64::from(layout.separation_pages) + (8 << 20)
}

/// Memory that a checkpoint of such a device takes at most, in bytes, beside the device.
pub fn memory_bytes_max(layout: &Layout) -> u64 {
    noted_bytes_max(layout) + fixed_bytes(layout)
}

/// Memory for the state of a device. That it is there already is what makes the beginning of a checkpoint short: the system hands
/// out memory more slowly than it can be copied.
pub struct Room(StateRoom);

impl Room {
    /// For a device of this layout; one of another layout takes longer to copy.
    ///
    /// # Errors
    /// There is no memory for a checkpoint.
    pub fn of(layout: &Layout) -> std::io::Result<Room> {
        // If there is room for all of it in one piece, there is for the pieces.
        let bytes = usize::try_from(fixed_bytes(layout)).unwrap_or(usize::MAX);
        let no_memory = |_| std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(no_memory)?;
        Ok(Room(StateRoom::of(layout)))
    }
}

/// See the module.
pub struct Checkpoint {
    beginning: Beginning,
    config: DeviceConfig,
    state: StateCopy,
    logical_pages: u32,
    /// Entries before this one are copied.
    copied: u32,
    /// The part that was copied last.
    entries: Vec<u32>,
    /// What was noted until then, in order.
    noted: Vec<Vec<Change>>,
    /// What was noted, by the part that it is of, in order.
    of_part: Vec<Vec<Change>>,
    /// Changes in `of_part`, and how many there may be.
    held: u64,
    held_max: u64,
    /// The device's log when it is not needed any more.
    log: Option<Box<UndoLog>>,
}

impl<S: EventSink> Device<S> {
    /// Begins a checkpoint of the device as it is now. One that was begun before comes to nothing.
    pub fn begin_checkpoint(&mut self, room: Room) -> Checkpoint {
        let layout = self.layout();
        let logical_pages = layout.logical_pages;
        let held_max = noted_bytes_max(layout) / (2 * wide(size_of::<Change>()));
        let (config, state, _) = self.parts();
        assert!(state.fits(layout), "what is stored can be loaded");
        let config = config.clone();
        let (state, maps) = self.parts_mut();
        let state = state.begin_copy(room.0);
        let beginning = maps.begin_undo(held_max);
        Checkpoint {
            beginning,
            config,
            state,
            logical_pages,
            copied: 0,
            entries: Vec::with_capacity(index(PART_PAGES)),
            noted: Vec::new(),
            of_part: Vec::new(),
            held: 0,
            held_max,
            log: None,
        }
    }

    /// Copies the next part of the tables or of the map for a checkpoint that was begun; [`Checkpoint::save`] says when.
    ///
    /// # Errors
    /// The checkpoint comes to nothing; the device notes nothing for it any more.
    pub fn copy_part(&mut self, checkpoint: &mut Checkpoint) -> Result<(), CheckpointEnded> {
        if checkpoint.state.blocks_left() > 0 {
            return self.copy_blocks(checkpoint);
        }
        let start = checkpoint.copied;
        assert!(
            start < checkpoint.logical_pages,
            "a part is asked for while there are some left"
        );
        let pages = part_from(start, checkpoint.logical_pages);
        let end = pages.end;
        let changes_max = checkpoint.held_max.saturating_sub(checkpoint.held);
        let (_, maps) = self.parts_mut();
        let copied = maps.copy_part(&checkpoint.beginning, pages, &mut checkpoint.entries, changes_max);
        let copied = copied.inspect_err(|_| self.end_checkpoint(checkpoint))?;
        checkpoint.noted = copied.changes;
        checkpoint.log = copied.log;
        checkpoint.copied = end;
        Ok(())
    }

    fn copy_blocks(&mut self, checkpoint: &mut Checkpoint) -> Result<(), CheckpointEnded> {
        let (state, maps) = self.parts_mut();
        if !maps.notes_for(&checkpoint.beginning) {
            return Err(CheckpointEnded::Replaced);
        }
        if checkpoint.state.copy_blocks(state) {
            return Ok(());
        }
        self.end_checkpoint(checkpoint);
        Err(CheckpointEnded::TooManyChanges)
    }

    /// Ends a checkpoint that is not to be completed: nothing is noted for it any more. What was noted goes when the checkpoint does,
    /// which can be when nobody waits for the device. Ending twice is ending once.
    pub fn end_checkpoint(&mut self, checkpoint: &mut Checkpoint) {
        let (state, maps) = self.parts_mut();
        if let Some(log) = maps.end_undo(&checkpoint.beginning) {
            state.end_copy();
            checkpoint.log = Some(log);
        }
    }
}

impl Checkpoint {
    /// Parts that [`Checkpoint::save`] asks for, of a checkpoint that was just begun.
    pub fn parts(&self) -> u32 {
        self.state.blocks_left().div_ceil(PART_BLOCKS) + self.logical_pages.div_ceil(PART_PAGES)
    }

    /// Writes the snapshot, replacing the file in one step. `copy` is called for each part and has to hand this to
    /// [`Device::copy_part`]. Whatever it comes to, [`Device::end_checkpoint`] follows unless all went well.
    ///
    /// # Errors
    /// The file system's, the checkpoint's, or what `copy` says; the destination is then as it was.
    pub fn save<E>(
        &mut self,
        place: &FilePlace,
        mut copy: impl FnMut(&mut Checkpoint) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<SnapshotError> + From<CheckpointEnded>,
    {
        let mut ended = None;
        let written = place.replace(|out| {
            let mut next = |checkpoint: &mut Checkpoint, part: Option<usize>| {
                let copied = copy(checkpoint)
                    .and_then(|()| part.map_or(Ok(()), |part| checkpoint.take_back(part).map_err(E::from)));
                copied.map_err(|error| {
                    ended = Some(error);
                    std::io::Error::other("the checkpoint comes to nothing")
                })
            };
            while self.state.blocks_left() > 0 {
                next(self, None)?;
            }
            write_head(out, &self.config, &[], &self.state.state)?;
            self.of_part.resize_with(parts(self.logical_pages).count(), Vec::new);
            let mut bytes = Vec::new();
            for part in 0..self.of_part.len() {
                next(self, Some(part))?;
                write_part(out, &self.entries, &mut bytes)?;
            }
            Ok(())
        });
        match (ended, written) {
            (Some(ended), _) => Err(ended),
            (None, Ok(())) => Ok(()),
            (None, Err(source)) => Err(E::from(SnapshotError::io(place.path())(source))),
        }
    }

    /// Makes the part that was copied last what it was at the moment of the checkpoint.
    fn take_back(&mut self, part: usize) -> Result<(), CheckpointEnded> {
        self.sort(part)?;
        let changes = std::mem::take(&mut self.of_part[part]);
        self.held -= wide(changes.len());
        for change in changes.iter().rev() {
            let first = index(change.lpn % PART_PAGES);
            let step = u32::from(change.before != 0);
            let entries = self.entries[first..][..index(change.pages)].iter_mut();
            for (entry, page) in entries.zip(0..) {
                *entry = change.before.wrapping_sub(step * page);
            }
        }
        Ok(())
    }

    /// Puts what was noted to the changes of the parts that it is of: of `part`, and of those that follow.
    fn sort(&mut self, part: usize) -> Result<(), CheckpointEnded> {
        for block in std::mem::take(&mut self.noted) {
            for mut change in block {
                while change.pages > 0 {
                    let of = index(change.lpn / PART_PAGES);
                    assert!(of >= part, "a change of an entry that is copied is not noted");
                    let here = change.pages.min(PART_PAGES - change.lpn % PART_PAGES);
                    let changes = &mut self.of_part[of];
                    changes.try_reserve(1).map_err(|_| CheckpointEnded::NoMemory)?;
                    changes.push(Change { pages: here, ..change });
                    self.held += 1;
                    // A long run is one change in the log and one in each part.
                    if self.held > self.held_max {
                        return Err(CheckpointEnded::TooManyChanges);
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
