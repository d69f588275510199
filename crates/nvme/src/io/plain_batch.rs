//! Reads and Writes of a queue that are carried out together, because what each of them would ask of the drive is the same.
//!
//! ```text
//! begin_plain_batch (what holds for all: namespace, features) -> plain (what one of them moves, and where)
//!     -> read_plain, write_plain (its data) -> end_plain_batch (the device, counters and events, once for all) -> settle
//! ```
//!
//! A command is plain if it succeeds for certain, unless its data does not come or the storage fails, and may complete at once. All others
//! go the road of every command (`command`), which decides what they fail with: nothing is refused here. One after the other or together, the
//! drive is the same afterwards; the subsystem is held from the first to the last, so nobody sees what is between.

use nvme_spec::Status;
use prefetch::Room;
use ssd::{Lpn, Nanos, Placement};

use super::context::media_failure;
use super::read_write::{device_write, unread};
use super::{Blocks, Command, Operation};
use crate::error::Failure;
use crate::fdp::{named_or_default, named_placement};
use crate::media::{ByteRange, Media};
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{TRANSFER_BYTES_MAX, Transfer};

/// Commands behind one that is carried out of which something is asked for.
pub const EXPECTED_COMMANDS: usize = 2;
/// So much of what a Read touches is asked for that many commands before it.
const BEGINNING_BYTES: u64 = 1024;

/// A Read or Write that was found plain.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    blocks: Blocks,
    /// Where its data lies in the drive, in one piece.
    piece: ByteRange,
    access: Access,
}

/// What a plain command does.
#[derive(Clone, Copy, Debug)]
enum Access {
    Read,
    /// To the placement that it names, if it names one.
    Write(Option<Placement>),
}

impl Command {
    /// Whether it can be plain: all others need not be looked at more closely.
    #[inline]
    pub fn may_be_plain(&self) -> bool {
        matches!(self.operation, Operation::Read(_) | Operation::Write { .. })
    }
}

impl Plain {
    /// What data it moves.
    #[inline]
    pub fn transfer(&self) -> Transfer {
        match self.access {
            Access::Read => Transfer::to_host(self.piece.bytes),
            Access::Write(_) => Transfer::to_controller(self.piece.bytes),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.access, Access::Read)
    }
}

/// Commands of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    commands: u64,
    bytes: u64,
}

/// Plain commands of a controller and a namespace, and what they add up to.
#[derive(Debug)]
#[must_use = "what was written has to reach the device"]
pub struct PlainBatch {
    controller: u16,
    nsid: u32,
    /// Whether Writes can be plain, and those that force unit access.
    takes_writes: bool,
    takes_forced: bool,
    block_bytes_log2: u8,
    reads: Sum,
    writes: Sum,
    unaligned_writes: u64,
}

impl PlainBatch {
    /// Bytes that were moved so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }
}

impl Subsystem {
    /// Begins with commands of a namespace; `None` if none of them can be plain now.
    pub fn begin_plain_batch(&mut self, id: u16, now: Nanos, nsid: u32) -> Option<PlainBatch> {
        assert!(
            self.writes.is_empty(),
            "what was written together has reached the device"
        );
        let controller = self.controller(id);
        // Where commands take time, meet faults, or are looked at one by one, each is a case of its own.
        let is_alike = controller.is_ready()
            && !self.faults.are_planned()
            && !self.faults.has_lost_power()
            && self.device.config().timing.is_none()
            && self.config.reclaim_unit_time_limit_s == 0
            && !self.state.latency_monitor.is_long(0)
            && self.check_no_sanitize().is_ok();
        if !is_alike {
            return None;
        }
        let namespace = self.state.namespaces.find(nsid)?;
        if !namespace.is_attached(id) || namespace.metadata_bytes() > 0 || !namespace.uncorrectable.is_empty() {
            return None;
        }
        self.clock.advance(now);
        self.clock.begin_command(0);
        let is_cached = self.write_cache_enabled();
        Some(PlainBatch {
            controller: id,
            nsid,
            takes_writes: !namespace.write_protected
                && !self.state.sanitize.notes_writes()
                && (!self.media.has_write_cache() || is_cached),
            takes_forced: !self.media.has_write_cache(),
            block_bytes_log2: namespace.block_bytes_log2(),
            reads: Sum::default(),
            writes: Sum::default(),
            unaligned_writes: 0,
        })
    }

    /// What a command moves, if it is plain and of this namespace. What it touches in the device is asked for.
    #[inline]
    pub fn plain(&self, together: &PlainBatch, command: &Command) -> Option<Plain> {
        if command.nsid != together.nsid {
            return None;
        }
        let namespace = self.state.namespaces.get(together.nsid);
        let (blocks, access) = match command.operation {
            Operation::Read(blocks) => (blocks, Access::Read),
            Operation::Write {
                blocks,
                force_unit_access,
                directive,
            } => {
                let is_plain = together.takes_writes && (together.takes_forced || !force_unit_access);
                if !is_plain {
                    return None;
                }
                let groups = self.device.layout().groups;
                let named = named_placement(&self.state.fdp, namespace, groups, directive).ok()?;
                (blocks, Access::Write(named))
            }
            _ => return None,
        };
        let bytes = blocks.count << together.block_bytes_log2;
        if !namespace.contains(blocks.first, blocks.count) || bytes > TRANSFER_BYTES_MAX {
            return None;
        }
        let page_bytes = self.page_bytes();
        let mut pieces = namespace.locate(blocks.first, blocks.count, page_bytes);
        let piece = pieces.next().filter(|piece| piece.bytes == bytes)?;
        let plain = Plain { blocks, piece, access };
        if !plain.is_read() {
            self.device
                .expect(std::iter::once(Lpn((piece.offset / page_bytes) as u32)));
        }
        Some(plain)
    }

    /// While a plain command is carried out: asks for what Reads behind it touch. Of the one after the next that is the beginning, for which
    /// the processor also finds out where its page is; of the next it is the rest. What is written anew is not waited for, and costs more if
    /// it was read before.
    #[inline]
    pub fn expect_plain<'a>(&self, mut behind: impl Iterator<Item = &'a Plain>) {
        let (next, after_next) = (behind.next(), behind.next());
        let read = |plain: Option<&Plain>| plain.filter(|plain| plain.is_read()).map(|plain| plain.piece);
        if let Some(piece) = read(after_next) {
            self.media.expect(piece.offset, piece.bytes.min(BEGINNING_BYTES));
        }
        if let Some(piece) = read(next).filter(|piece| piece.bytes > BEGINNING_BYTES) {
            self.media
                .expect(piece.offset + BEGINNING_BYTES, piece.bytes - BEGINNING_BYTES);
        }
    }

    /// Reads for a plain command, in pieces that `take` is given.
    ///
    /// # Errors
    /// The storage failed, or `take` did: the command failed.
    #[inline]
    pub fn read_plain(
        &mut self,
        together: &mut PlainBatch,
        plain: &Plain,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        assert!(plain.is_read(), "{plain:?} is no Read");
        let Plain { blocks, piece, .. } = *plain;
        let mut room = std::mem::take(&mut self.scratch);
        let mut taken = Ok(());
        let lent = self.media.lend(piece.offset, piece.bytes, &mut room, &mut |part| {
            if taken.is_ok() {
                taken = take(part);
            }
        });
        self.scratch = room;
        lent.map_err(|error| {
            let media_errors = &mut self.state.smart.media_errors;
            unread(media_errors, blocks, together.block_bytes_log2, 0, piece, &error)
        })?;
        taken?;
        together.reads.commands += 1;
        together.reads.bytes += piece.bytes;
        Ok(())
    }

    /// Has `give` put the data of a plain command into the storage, in pieces; the device hears of it at the end.
    ///
    /// # Errors
    /// The storage failed, or `give` did: the command failed, and some of its blocks may have been written.
    #[inline]
    pub fn write_plain(
        &mut self,
        together: &mut PlainBatch,
        plain: &Plain,
        give: &mut dyn FnMut(Room<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Plain { piece, access, .. } = *plain;
        let Access::Write(named) = access else {
            panic!("{plain:?} is no Write");
        };
        let namespace = self.state.namespaces.get(together.nsid);
        let placement = named_or_default(&mut self.device, namespace, named);
        let mut room = std::mem::take(&mut self.scratch);
        let mut given = Ok(());
        let filled = self.media.fill(piece.offset, piece.bytes, &mut room, &mut |part| {
            given = give(part);
            given.is_ok()
        });
        self.scratch = room;
        filled.map_err(|error| media_failure(&mut self.state.smart.media_errors, Status::WRITE_FAULT, &error))?;
        given?;
        let page_bytes = self.page_bytes();
        self.writes.push(device_write(piece, page_bytes, placement));
        together.writes.commands += 1;
        together.writes.bytes += piece.bytes;
        together.unaligned_writes += u64::from(!piece.is_whole_pages(page_bytes));
        Ok(())
    }

    /// Before another thread has the drive: what was written together is there for it. It waits for that, so it is done once, after hosts are
    /// told: nobody can look before.
    #[inline]
    pub fn settle(&mut self) {
        self.media.settle();
    }

    /// Ends what was begun: the device carries out what was written, and everything is counted. [`Subsystem::settle`] follows, sooner or later.
    pub fn end_plain_batch(&mut self, together: PlainBatch) {
        let PlainBatch {
            controller,
            nsid,
            reads,
            writes,
            unaligned_writes,
            ..
        } = together;
        assert_eq!(self.writes.len() as u64, writes.commands, "a piece for each Write");
        if writes.commands > 0 {
            let done = self.device.write_batch(self.clock.now(), &self.writes);
            let done = done.expect("namespaces lie inside the device");
            assert!(done.at <= self.clock.now(), "a device without times is done at once");
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
