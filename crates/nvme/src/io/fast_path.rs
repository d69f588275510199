//! Fast-path batches, which carry out reads and writes of a queue together and check the drive once
//! for all of them.
//!
//! ```text
//! begin_fast_path_batch (common checks: namespace, features)
//!     -> classify_fast (transfer and location of a command's data)
//!     -> read_fast, write_fast (data of a command)
//!     -> end_fast_path_batch (device, counters and events, once for all) -> flush_nontemporal
//! ```
//!
//! A Read or Write is a fast-path command if it may complete immediately and can fail only in its
//! data transfer or in the storage. All other commands take the normal path (`command`), which
//! decides their status. This module refuses no command.
//!
//! A batch leaves the drive in the same state as single commands. The subsystem stays locked for
//! the whole batch, so no thread sees a state in between.

use nvme_spec::Status;
use prefetch::NonTemporalBuf;
use ssd::{Lpn, Nanos, Placement};

use super::context::media_failure;
use super::read_write::{device_write, unread};
use super::{BlockRange, IoCommand, NvmOperation};
use crate::error::Failure;
use crate::fdp::{named_or_default, named_placement};
use crate::media::{ByteRange, Media};
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{TRANSFER_BYTES_MAX, Transfer};

/// Number of later commands whose memory is prefetched during a command.
pub const PREFETCH_COMMANDS: usize = 2;
/// Bytes at the start of a Read that are prefetched [`PREFETCH_COMMANDS`] commands earlier.
const BEGINNING_BYTES: u64 = 1024;

/// A Read or Write that qualifies for the fast path.
#[derive(Clone, Copy, Debug)]
pub struct FastIo {
    blocks: BlockRange,
    /// Bytes of the drive that hold the data, one contiguous range.
    piece: ByteRange,
    operation: FastOperation,
}

#[derive(Clone, Copy, Debug)]
enum FastOperation {
    Read,
    /// Write to the named placement, if the command names one.
    Write(Option<Placement>),
}

impl IoCommand {
    /// True if the command may qualify for the fast path. [`Subsystem::classify_fast`] decides.
    #[inline]
    pub fn may_be_fast(&self) -> bool {
        matches!(self.operation, NvmOperation::Read(_) | NvmOperation::Write { .. })
    }
}

impl FastIo {
    /// Data that the command moves.
    #[inline]
    pub fn transfer(&self) -> Transfer {
        match self.operation {
            FastOperation::Read => Transfer::to_host(self.piece.bytes),
            FastOperation::Write(_) => Transfer::to_controller(self.piece.bytes),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.operation, FastOperation::Read)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FastIoTotals {
    commands: u64,
    bytes: u64,
}

/// Batch of fast-path commands of a controller and a namespace, with their totals.
#[derive(Debug)]
#[must_use = "the batch must reach the device"]
pub struct FastPathBatch {
    controller: u16,
    nsid: u32,
    /// Writes may take the fast path, and so may writes with Force Unit Access.
    takes_writes: bool,
    takes_forced: bool,
    block_bytes_log2: u8,
    reads: FastIoTotals,
    writes: FastIoTotals,
    unaligned_writes: u64,
}

impl FastPathBatch {
    /// Bytes moved so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }
}

impl Subsystem {
    /// Begins a batch for a namespace. `None` if no command of it can take the fast path now.
    pub fn begin_fast_path_batch(&mut self, id: u16, now: Nanos, nsid: u32) -> Option<FastPathBatch> {
        assert!(self.writes.is_empty(), "the batch has reached the device");
        let controller = self.controller(id);
        // Commands need the normal path if they take time, meet faults or are monitored one by one.
        let fast_path_applies = controller.is_ready()
            && !self.faults.are_planned()
            && !self.faults.has_lost_power
            && self.device.config().timing.is_none()
            && self.config.reclaim_unit_time_limit_s == 0
            && !self.state.latency_monitor.is_long(0)
            && self.check_no_sanitize().is_ok();
        if !fast_path_applies {
            return None;
        }
        let namespace = self.state.namespaces.find(nsid)?;
        if !namespace.is_attached(id) || namespace.metadata_bytes() > 0 || !namespace.uncorrectable.is_empty() {
            return None;
        }
        self.clock.advance(now);
        self.clock.begin_command(0);
        let is_cached = self.write_cache_enabled();
        Some(FastPathBatch {
            controller: id,
            nsid,
            takes_writes: !namespace.write_protected
                && !self.state.sanitize.notes_writes()
                && (!self.media.has_write_cache() || is_cached),
            takes_forced: !self.media.has_write_cache(),
            block_bytes_log2: namespace.block_bytes_log2(),
            reads: FastIoTotals::default(),
            writes: FastIoTotals::default(),
            unaligned_writes: 0,
        })
    }

    /// Returns the command as a fast-path command if it qualifies and belongs to the batch's
    /// namespace. Prefetches device memory for a Write.
    #[inline]
    pub fn classify_fast(&self, batch: &FastPathBatch, command: &IoCommand) -> Option<FastIo> {
        if command.nsid != batch.nsid {
            return None;
        }
        let namespace = self.state.namespaces.get(batch.nsid);
        let (blocks, operation) = match command.operation {
            NvmOperation::Read(blocks) => (blocks, FastOperation::Read),
            NvmOperation::Write { blocks, force_unit_access, directive } => {
                let qualifies = batch.takes_writes && (batch.takes_forced || !force_unit_access);
                if !qualifies {
                    return None;
                }
                let groups = self.device.layout().groups;
                let named = named_placement(&self.state.fdp, namespace, groups, directive).ok()?;
                (blocks, FastOperation::Write(named))
            }
            _ => return None,
        };
        let bytes = blocks.count << batch.block_bytes_log2;
        if !namespace.contains(blocks.first, blocks.count) || bytes > TRANSFER_BYTES_MAX {
            return None;
        }
        let page_bytes = self.page_bytes();
        let mut pieces = namespace.locate(blocks.first, blocks.count, page_bytes);
        let piece = pieces.next().filter(|piece| piece.bytes == bytes)?;
        let fast = FastIo { blocks, piece, operation };
        if !fast.is_read() {
            self.device.prefetch(std::iter::once(Lpn((piece.offset / page_bytes) as u32)));
        }
        Some(fast)
    }

    /// Prefetches data of the next reads while a fast-path command runs. The start is prefetched
    /// for the command after the next one, so that the processor also translates the page address.
    /// The rest is prefetched for the next command. Writes are not prefetched, because a write does
    /// not wait for old data and prefetching makes it slower.
    #[inline]
    pub fn prefetch_fast<'a>(&self, mut behind: impl Iterator<Item = &'a FastIo>) {
        let (next, after_next) = (behind.next(), behind.next());
        let read = |command: Option<&FastIo>| command.filter(|command| command.is_read()).map(|command| command.piece);
        if let Some(piece) = read(after_next) {
            self.media.prefetch(piece.offset, piece.bytes.min(BEGINNING_BYTES));
        }
        if let Some(piece) = read(next).filter(|piece| piece.bytes > BEGINNING_BYTES) {
            self.media.prefetch(piece.offset + BEGINNING_BYTES, piece.bytes - BEGINNING_BYTES);
        }
    }

    /// Reads the data of a fast-path command and passes it to `take` in pieces.
    ///
    /// # Errors
    /// The storage or `take` failed, and so did the command.
    #[inline]
    pub fn read_fast(
        &mut self,
        batch: &mut FastPathBatch,
        command: &FastIo,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        assert!(command.is_read(), "{command:?} is not a Read");
        let FastIo { blocks, piece, .. } = *command;
        let mut buffer = std::mem::take(&mut self.scratch);
        let mut taken = Ok(());
        let read = self.media.read_with(piece.offset, piece.bytes, &mut buffer, &mut |part| {
            if taken.is_ok() {
                taken = take(part);
            }
        });
        self.scratch = buffer;
        read.map_err(|error| {
            let media_errors = &mut self.state.smart.media_errors;
            unread(media_errors, blocks, batch.block_bytes_log2, 0, piece, &error)
        })?;
        taken?;
        batch.reads.commands += 1;
        batch.reads.bytes += piece.bytes;
        Ok(())
    }

    /// Lets `give` put the data of a fast-path command into the storage, in pieces. The device
    /// model executes the write at the end of the batch.
    ///
    /// # Errors
    /// The storage or `give` failed, and so did the command. Some of its blocks may have been
    /// written.
    #[inline]
    pub fn write_fast(
        &mut self,
        batch: &mut FastPathBatch,
        command: &FastIo,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let FastIo { piece, operation, .. } = *command;
        let FastOperation::Write(named) = operation else {
            panic!("{command:?} is not a Write");
        };
        let namespace = self.state.namespaces.get(batch.nsid);
        let placement = named_or_default(&mut self.device, namespace, named);
        let mut buffer = std::mem::take(&mut self.scratch);
        let mut given = Ok(());
        let written = self.media.write_with(piece.offset, piece.bytes, &mut buffer, &mut |part| {
            given = give(part);
            given.is_ok()
        });
        self.scratch = buffer;
        written.map_err(|error| media_failure(&mut self.state.smart.media_errors, Status::WRITE_FAULT, &error))?;
        given?;
        let page_bytes = self.page_bytes();
        self.writes.push(device_write(piece, page_bytes, placement));
        batch.writes.commands += 1;
        batch.writes.bytes += piece.bytes;
        batch.unaligned_writes += u64::from(!piece.is_whole_pages(page_bytes));
        Ok(())
    }

    /// Makes written data visible to all threads. Call it before another thread locks the drive.
    /// The call stalls, so call it once, after the completions are sent. No other thread can read
    /// the data earlier, because the drive is locked.
    #[inline]
    pub fn flush_nontemporal(&mut self) {
        self.media.flush_nontemporal();
    }

    /// Ends a batch. The device model executes the writes, and all commands are counted.
    /// [`Subsystem::flush_nontemporal`] must follow before the drive is unlocked.
    pub fn end_fast_path_batch(&mut self, batch: FastPathBatch) {
        let FastPathBatch { controller, nsid, reads, writes, unaligned_writes, .. } = batch;
        assert_eq!(self.writes.len() as u64, writes.commands, "a piece for each Write");
        assert!(unaligned_writes <= writes.commands, "{unaligned_writes} of {} writes are unaligned", writes.commands);
        if writes.commands > 0 {
            let done = self.device.write_batch(self.clock.now(), &self.writes);
            let done = done.expect("namespaces lie inside the device");
            assert!(done.at <= self.clock.now(), "a device without timing completes immediately");
            self.writes.clear();
            self.device.sink_mut().forget_redirected();
            self.state.namespaces.get_mut(nsid).host_bytes_written += writes.bytes;
            if !self.device.sink().is_empty() {
                self.note_device_events();
            }
        }
        let smart = &mut self.state.smart;
        smart.read_commands += reads.commands;
        smart.host_bytes_read += reads.bytes;
        smart.write_commands += writes.commands;
        smart.host_bytes_written += writes.bytes;
        smart.unaligned_writes += unaligned_writes;
        for (kind, sum) in [(CommandKind::Read, reads), (CommandKind::Write, writes)] {
            if sum.commands > 0 {
                self.latencies[kind as usize].record(0, sum.commands);
                let traffic = &mut self.controllers.get_mut(controller).traffic;
                traffic.note(nsid, kind, sum.commands, sum.bytes, 0);
            }
        }
    }
}
