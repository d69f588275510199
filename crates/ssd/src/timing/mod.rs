//! Timing model: completion times of commands, from the controller's core to the flash and back.
//!
//! ```text
//! read    core -> (buffer or cache | die -> channel) -> link -> pipeline
//! write   core -> link -> space in the buffer -> pipeline           later: channel -> die
//! collect                                                           die, channel, die: in the gaps
//! ```
//!
//! The device changes its state immediately and asks this module for the completion time. The model
//! has no event queue. Cores have next-free times, channels and link directions have timelines of
//! busy intervals (`busy_timeline.rs`), and dies have reads and a backlog of work (`die.rs`). A
//! command therefore costs only some additions.
//!
//! Simplifications: completion times are final. The model reports the end of a program when it
//! schedules the program on its die. Later reads delay later programs instead. While garbage
//! collection uses a channel, transfers of hosts slow down by its share. Snapshots contain no
//! timing state, so a loaded drive is idle, with only the incomplete operations in its buffer.

mod activity;
mod buffer;
mod busy_timeline;
mod channel;
mod collection;
pub(crate) mod config;
mod cores;
mod die;
mod flash_geometry;
mod sensed_pages;

use std::ops::Range;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rustc_hash::FxHashMap;

use crate::cast::index;
use crate::config::DeviceConfig;
use crate::layout::DeviceLayout;
use crate::types::{Nanos, Ppn};

pub use activity::{ActivityLog, BusyInterval, WorkKind};
use buffer::WriteBuffer;
use busy_timeline::BusyTimeline;
use channel::{Channel, TransferRate};
pub use config::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming, Tail, TailOf, TimingConfig};
use cores::ControllerCores;
use die::{Die, OperationBatch, ReadSlot};
pub use flash_geometry::PageLocation;
pub(crate) use flash_geometry::UnitPlace;
use flash_geometry::{FlashGeometry, SenseOp};
use sensed_pages::SensedPages;

/// Separates the random numbers of the timing from those of the policies.
const SEED_OF_TIMING: u64 = 0x7469_6d69_6e67;

/// Completion time of a command, and its delay by garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct CompletionTime {
    /// Completion time in the clock of the caller's `now`. Equal to `now` if the device has no
    /// timing.
    pub at: Nanos,
    /// Part of the latency spent waiting for garbage collection.
    pub waited_for_collection_ns: Nanos,
}

impl CompletionTime {
    /// Immediate completion.
    #[inline]
    pub(crate) fn now(now: Nanos) -> CompletionTime {
        CompletionTime { at: now, waited_for_collection_ns: 0 }
    }

    /// Completion of both.
    #[inline]
    pub(crate) fn and(self, other: CompletionTime) -> CompletionTime {
        CompletionTime {
            at: self.at.max(other.at),
            waited_for_collection_ns: self.waited_for_collection_ns.max(other.waited_for_collection_ns),
        }
    }
}

/// Timing state of all resources that a command may wait for.
#[derive(Clone)]
pub(crate) struct TimingModel {
    config: TimingConfig,
    geometry: FlashGeometry,
    page_bytes: u64,
    /// Speeds of a link direction and of a channel.
    link_speed: TransferRate,
    channel_speed: TransferRate,
    /// Bytes of the last operation and the channel time for them.
    last_operation: (u64, Nanos),
    cores: ControllerCores,
    to_host: BusyTimeline,
    from_host: BusyTimeline,
    channels: Vec<Channel>,
    dies: Vec<Die>,
    buffer: WriteBuffer,
    cache: Option<lru::LruCache<u32, ()>>,
    random: Xoshiro256PlusPlus,
    /// Time at which the erase of each open reclaim unit ends, while the erase is pending.
    erased_at: FxHashMap<u32, Nanos>,
    /// End of the erase of each reclaimed superblock, as a position in the collection backlog of
    /// each die.
    erase_positions: FxHashMap<u32, Box<[u64]>>,
    collection: CollectionWork,
    overhead: OverheadPrograms,
    /// Submission time of the current command. Later requests have no earlier time.
    submitted_at: Nanos,
    /// Flash pages that the current command has sensed, if it may sense several.
    sensed: SensedPages,
    senses_several: bool,
    unmapped_pages_read: u64,
}

/// Work of the current collection, by die and channel.
#[derive(Clone, Default)]
struct CollectionWork {
    dies: Vec<OperationBatch>,
    /// Transfer time on each channel, nanoseconds.
    channels: Vec<Nanos>,
    last_sensed: Option<SenseOp>,
}

impl CollectionWork {
    /// Adds `count` operations. They take `work_ns` of a die, and its channel for `transfer_ns` of
    /// that.
    #[inline(always)]
    fn add(&mut self, (die, channel): (u32, u32), count: u32, work_ns: Nanos, transfer_ns: Nanos) {
        let die = &mut self.dies[index(die)];
        die.ns += work_ns;
        die.count += count;
        self.channels[index(channel)] += transfer_ns;
    }
}

/// Programs of the drive's own data (`geometry.media_overhead_share`). They follow the programs of
/// data and go to the dies of a reclaim group in turn.
#[derive(Clone)]
struct OverheadPrograms {
    millionths: u64,
    /// Overhead not yet programmed, in millionths of a page.
    due: u64,
    turn: u32,
}

impl OverheadPrograms {
    /// Adds programmed data pages. Returns a number for the choice of the die if an operation of
    /// overhead is due.
    #[inline]
    fn next(&mut self, data_pages: u32, operation_pages: u32) -> Option<u32> {
        self.due += u64::from(data_pages) * self.millionths;
        let operation = u64::from(operation_pages) * 1_000_000;
        if self.due < operation {
            return None;
        }
        self.due -= operation;
        self.turn = self.turn.wrapping_add(1);
        Some(self.turn)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct WriteProgress {
    now: Nanos,
    /// Time at which the controller has the data.
    arrived_at: Nanos,
    done: CompletionTime,
}

impl TimingModel {
    pub(crate) fn new(config: &DeviceConfig, layout: &DeviceLayout) -> Option<Box<TimingModel>> {
        let timing = config.timing.clone()?;
        let geometry = &config.geometry;
        let dies = index(geometry.channels * geometry.dies_per_channel);
        let page_bytes = layout.page_bytes;
        let places = FlashGeometry::new(geometry, layout, &timing);
        let cached_pages = timing.read_cache_bytes / (u64::from(places.flash_pages()) * page_bytes);
        let cached_pages = usize::try_from(cached_pages).expect("the cache is in the memory of this machine");
        Some(Box::new(TimingModel {
            page_bytes,
            link_speed: TransferRate::new(timing.link.bytes_per_second()),
            channel_speed: TransferRate::new(timing.channel.bytes_per_second),
            last_operation: (0, 0),
            cores: ControllerCores::new(timing.controller.cores),
            to_host: BusyTimeline::default(),
            from_host: BusyTimeline::default(),
            channels: vec![Channel::default(); index(geometry.channels)],
            dies: vec![Die::default(); dies],
            buffer: WriteBuffer::new(timing.write_buffer_bytes),
            cache: std::num::NonZeroUsize::new(cached_pages).map(lru::LruCache::new),
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed ^ SEED_OF_TIMING),
            erased_at: FxHashMap::default(),
            erase_positions: FxHashMap::default(),
            collection: CollectionWork {
                dies: vec![OperationBatch::default(); dies],
                channels: vec![0; index(geometry.channels)],
                last_sensed: None,
            },
            overhead: OverheadPrograms {
                millionths: u64::from(geometry.media_overhead().millionths()),
                due: 0,
                turn: 0,
            },
            submitted_at: 0,
            sensed: SensedPages::default(),
            senses_several: false,
            unmapped_pages_read: 0,
            config: timing,
            geometry: places,
        }))
    }

    /// Enables the activity log of dies and channels. Keeps the last `pieces` entries, divided
    /// equally.
    pub(crate) fn enable_activity_log(&mut self, pieces: usize) {
        let each = (pieces / (self.dies.len() + self.channels.len())).max(1);
        let activity = || Some(Box::new(ActivityLog::new(each)));
        self.dies.iter_mut().for_each(|die| die.activity = activity());
        self.channels.iter_mut().for_each(|channel| channel.activity = activity());
    }

    /// Logged activity of each die, and of each channel.
    pub(crate) fn activity(&self) -> (Vec<&ActivityLog>, Vec<&ActivityLog>) {
        let dies = self.dies.iter().filter_map(|die| die.activity.as_deref());
        let channels = self.channels.iter().filter_map(|channel| channel.activity.as_deref());
        (dies.collect(), channels.collect())
    }

    /// Times a command that transfers no data.
    pub(crate) fn command(&mut self, now: Nanos) -> CompletionTime {
        let controller = &self.config.controller;
        let (busy, pipeline) = (controller.write_ns, controller.write_pipeline_ns);
        CompletionTime::now(self.cores.work(now, busy) + pipeline)
    }

    /// Random extra time of a command.
    #[inline]
    fn tail(&mut self, of: TailOf) -> Nanos {
        if self.has_tails() { self.drawn_tail(of) } else { 0 }
    }

    #[inline(never)]
    fn drawn_tail(&mut self, of: TailOf) -> Nanos {
        let mut extra = 0;
        for tail in self.config.tails.iter().filter(|tail| tail.of == of) {
            if self.random.random::<f64>() < tail.share {
                extra += self.random.random_range(tail.least_ns..=tail.most_ns);
            }
        }
        extra
    }

    #[inline]
    fn advance(&mut self, now: Nanos, pages: u32) {
        assert!(now < busy_timeline::FREE, "the time overflows after 292 years");
        self.submitted_at = now;
        self.sensed.clear();
        self.senses_several = pages > 1;
        self.buffer.release_until(now);
    }

    // ---- writes

    /// Starts a write. The controller takes the command and its data.
    pub(crate) fn begin_write(&mut self, now: Nanos, pages: u32, host_bytes: u64) -> WriteProgress {
        let controller = &self.config.controller;
        let busy = controller.write_ns + controller.page_ns * u64::from(pages - 1);
        let length = self.link_speed.transfer_ns(host_bytes);
        let at = self.take_data(now, pages, busy, length);
        WriteProgress { now, arrived_at: at, done: CompletionTime::now(at) }
    }

    /// Starts a write that occupies a core for `busy` and the link for `length`. Returns the time
    /// at which its data has arrived.
    #[inline(always)]
    fn take_data(&mut self, now: Nanos, pages: u32, busy: Nanos, length: Nanos) -> Nanos {
        self.advance(now, pages);
        let at = self.cores.work(now, busy);
        self.from_host.take(now, at, length) + length
    }

    /// Reads a page that the write covers only partially, before it enters the buffer.
    pub(crate) fn read_before_write(&mut self, writing: &mut WriteProgress, ppn: Ppn, unit: UnitPlace) {
        let location = self.geometry.locate(ppn, unit);
        let done = self.fetch(writing.arrived_at, self.page_bytes, &location);
        writing.done = writing.done.and(done);
    }

    /// Appends pages to a reclaim unit. Pages go into the buffer, and to flash when their program
    /// operation is complete.
    pub(crate) fn append(&mut self, writing: &mut WriteProgress, unit: UnitPlace, position: u32, pages: u32) {
        assert!(writing.done.at >= writing.arrived_at, "data is in the buffer before it came");
        assert!(pages > 0, "an extent without pages is appended");
        let operation_pages = self.geometry.operation_pages(unit);
        let end = position + pages;
        let mut at = position;
        while at < end {
            let operation = at / operation_pages * operation_pages.get();
            let until = (operation + operation_pages.get()).min(end);
            self.append_to(writing.now, &mut writing.done, &unit, operation, at..until);
            at = until;
        }
    }

    /// Puts pages of one operation into the buffer. Programs the operation with its last page.
    #[inline(always)]
    fn append_to(
        &mut self,
        now: Nanos,
        done: &mut CompletionTime,
        unit: &UnitPlace,
        operation: u32,
        pages: Range<u32>,
    ) {
        let operation_pages = self.geometry.operation_pages(*unit).get();
        assert!(
            operation <= pages.start && pages.end <= operation + operation_pages,
            "pages of another program operation go to the buffer with this one"
        );
        let bytes = u64::from(pages.end - pages.start) * self.page_bytes;
        let admitted = self.buffer.admit(done.at, bytes);
        done.at = admitted.at;
        done.waited_for_collection_ns += admitted.waited_for_collection_ns;
        let is_part = pages.end - pages.start < operation_pages;
        if is_part {
            self.buffer.fill(unit.first.0 + operation);
        }
        if pages.end == operation + operation_pages {
            self.program(now, admitted.at, unit, operation, operation_pages, is_part);
        }
    }

    /// Times single-page writes, at times that do not decrease, appended to a reclaim unit from
    /// `position` on. Equivalent to [`TimingModel::begin_write`], [`TimingModel::append`] and
    /// [`TimingModel::end_write`] for each. Requires a timing without tails
    /// ([`TimingModel::has_tails`]).
    pub(crate) fn write_pages(
        &mut self,
        times: &[Nanos],
        unit: UnitPlace,
        position: u32,
        done: &mut Vec<CompletionTime>,
    ) {
        assert!(!self.has_tails(), "random draws come in the order of the commands");
        let controller = &self.config.controller;
        let (busy, pipeline) = (controller.write_ns, controller.write_pipeline_ns);
        let length = self.link_speed.transfer_ns(self.page_bytes);
        let operation_pages = self.geometry.operation_pages(unit);
        let mut operation = position / operation_pages * operation_pages.get();
        for (page, now) in (position..).zip(times) {
            assert!(*now >= self.submitted_at, "time does not go back");
            if page == operation + operation_pages.get() {
                operation = page;
            }
            let mut written = CompletionTime::now(self.take_data(*now, 1, busy, length));
            self.append_to(*now, &mut written, &unit, operation, page..page + 1);
            written.at += pipeline;
            done.push(written);
        }
    }

    /// Returns true if commands may have random extra time.
    #[inline]
    pub(crate) fn has_tails(&self) -> bool {
        !self.config.tails.is_empty()
    }

    /// Lower bound of the completion time of a write submitted at `now`. An absorbed write needs no
    /// room in the buffer.
    #[inline]
    pub(crate) fn soonest_write(&self, now: Nanos, needs_room: bool) -> Nanos {
        let controller = &self.config.controller;
        let room_at = if needs_room { self.buffer.room_at() } else { 0 };
        (now + controller.write_ns).max(room_at) + controller.write_pipeline_ns
    }

    /// Resumes a loaded drive's open reclaim unit that is written up to `position`. The pages of
    /// its last, incomplete operation are in the buffer.
    pub(crate) fn resume(&mut self, unit: UnitPlace, position: u32) {
        let rest = position % self.geometry.operation_pages(unit);
        if rest > 0 {
            let operation = unit.first.0 + position - rest;
            self.buffer.resume(operation, u64::from(rest) * self.page_bytes);
        }
    }

    /// Closes a reclaim unit before it is full. Programs its last, incomplete operation.
    pub(crate) fn close(&mut self, now: Nanos, unit: UnitPlace, position: u32) {
        let operation_pages = self.geometry.operation_pages(unit);
        let rest = position % operation_pages;
        if rest > 0 {
            self.program(now, now, &unit, position - rest, rest, true);
        }
        self.erased_at.remove(&unit.first.0);
    }

    /// Programs pages in the buffer. `is_filling` is false if they were admitted at once.
    fn program(&mut self, now: Nanos, at: Nanos, unit: &UnitPlace, operation: u32, pages: u32, is_filling: bool) {
        let erased_at = if self.erased_at.is_empty() {
            at
        } else {
            let known = self.erased_at.get(&unit.first.0);
            known.map_or(at, |erased_at| at.max(*erased_at))
        };
        let place = self.geometry.flash_page_at(*unit, operation);
        let bytes = u64::from(pages) * self.page_bytes;
        let end = self.program_on((place.die, place.channel), now, erased_at, bytes);
        if let Some(cache) = &mut self.cache {
            for page in (0..pages).step_by(index(self.geometry.flash_pages())) {
                cache.pop(&self.geometry.flash_page(Ppn(unit.first.0 + operation + page)));
            }
        }
        let first = unit.first.0 + operation;
        self.buffer.programmed(first, is_filling, bytes, end, erased_at - at);
        let operation_pages = self.geometry.operation_pages(*unit).get();
        if let Some(turn) = self.overhead.next(pages, operation_pages) {
            let place = self.geometry.die_in_turn(unit.group, turn);
            let _ = self.program_on(place, now, at, u64::from(operation_pages) * self.page_bytes);
        }
    }

    /// Transfers the data of an operation to a die and programs it, not before `from`. Returns the
    /// end.
    #[inline(always)]
    fn program_on(&mut self, (die, channel): (u32, u32), now: Nanos, from: Nanos, bytes: u64) -> Nanos {
        let length = self.operation_transfer_ns(bytes);
        let die = &mut self.dies[index(die)];
        // The channel transfer for a die's next program starts only shortly before the die is free,
        // so that it blocks no earlier transfer.
        let from = from.max(die.programmed_at(now).saturating_sub(length));
        let there = self.channels[index(channel)].transfer(now, from, length, WorkKind::Program);
        let end = die.program(now, there, self.geometry.program_ns());
        assert!(end >= there, "a program ends after its data came");
        end
    }

    /// Ends a write. The write is complete when all of its data is in the buffer.
    pub(crate) fn end_write(&mut self, writing: WriteProgress) -> CompletionTime {
        assert!(
            writing.done.at >= writing.arrived_at && writing.arrived_at >= writing.now,
            "a write completes after its data, and its data arrives after the command"
        );
        let extra = self.tail(TailOf::Write) + self.config.controller.write_pipeline_ns;
        CompletionTime { at: writing.done.at + extra, ..writing.done }
    }

    // ---- reads

    /// Lower bound of the completion time of a read submitted at `now`.
    #[inline]
    pub(crate) fn soonest_read(&self, now: Nanos) -> Nanos {
        let controller = &self.config.controller;
        now + controller.read_ns + controller.read_pipeline_ns
    }

    /// Starts a read. Returns the time at which the controller looks up the pages.
    #[inline]
    pub(crate) fn begin_read(&mut self, now: Nanos, pages: u32) -> Nanos {
        self.advance(now, pages);
        let controller = &self.config.controller;
        let busy = controller.read_ns + controller.page_ns * u64::from(pages - 1);
        self.cores.work(now, busy)
    }

    /// Reads consecutive pages of a reclaim unit and sends them to the host.
    #[inline(always)]
    pub(crate) fn read(&mut self, at: Nanos, first: Ppn, pages: u32, unit: UnitPlace) -> CompletionTime {
        let end = Ppn(first.0 + pages);
        let (done, next) = self.read_flash_page(at, first, end, unit);
        if next < end {
            return done.and(self.read_flash_pages(at, next, end, &unit));
        }
        done
    }

    #[inline(never)]
    fn read_flash_pages(&mut self, at: Nanos, mut ppn: Ppn, end: Ppn, unit: &UnitPlace) -> CompletionTime {
        let mut done = CompletionTime::now(at);
        while ppn < end {
            let (sent, next) = self.read_flash_page(at, ppn, end, *unit);
            done = done.and(sent);
            ppn = next;
        }
        done
    }

    /// Reads the pages of one flash page and sends them to the host. Also returns the page after
    /// them.
    #[inline(always)]
    fn read_flash_page(&mut self, at: Nanos, ppn: Ppn, end: Ppn, unit: UnitPlace) -> (CompletionTime, Ppn) {
        let location = self.geometry.locate(ppn, unit);
        let until = end.min(location.end());
        (self.read_located(at, until.0 - ppn.0, &location), until)
    }

    /// Location of a page of a reclaim unit.
    #[inline(always)]
    pub(crate) fn locate(&self, ppn: Ppn, unit: UnitPlace) -> PageLocation {
        self.geometry.locate(ppn, unit)
    }

    /// Reads pages of one flash page from `location` on, and sends them to the host.
    #[inline(always)]
    pub(crate) fn read_located(&mut self, at: Nanos, pages: u32, location: &PageLocation) -> CompletionTime {
        let bytes = u64::from(pages) * self.page_bytes;
        let fetched = self.fetch(at, bytes, location);
        let length = self.link_speed.transfer_ns(bytes);
        assert!(fetched.at >= at, "a page is fetched after its request");
        let sent = self.to_host.take(self.submitted_at, fetched.at, length) + length;
        CompletionTime { at: sent, ..fetched }
    }

    /// Sends zeroes for unmapped pages to the host.
    pub(crate) fn send_unmapped(&mut self, at: Nanos, pages: u32) -> CompletionTime {
        self.unmapped_pages_read += u64::from(pages);
        let length = self.link_speed.transfer_ns(u64::from(pages) * self.page_bytes);
        CompletionTime::now(self.to_host.take(self.submitted_at, at, length) + length)
    }

    /// Number of unmapped pages sent to the host.
    pub(crate) fn unmapped_pages_read(&self) -> u64 {
        self.unmapped_pages_read
    }

    /// Ends a read. The read is complete when all of its data has been sent.
    #[inline]
    pub(crate) fn end_read(&mut self, done: CompletionTime) -> CompletionTime {
        let extra = self.tail(TailOf::Read) + self.config.controller.read_pipeline_ns;
        CompletionTime { at: done.at + extra, ..done }
    }

    /// Transfers bytes of one flash page into the controller.
    #[inline(always)]
    fn fetch(&mut self, at: Nanos, bytes: u64, location: &PageLocation) -> CompletionTime {
        if self.buffer.holds(location.operation(), at) {
            return CompletionTime::now(at);
        }
        if let Some(cache) = &mut self.cache {
            let flash_page = self.geometry.flash_page(location.ppn);
            if cache.get(&flash_page).is_some() {
                return CompletionTime::now(at);
            }
            cache.put(flash_page, ());
        }
        let sensed = self.sense(at, location);
        let length = self.channel_speed.transfer_ns(bytes) + self.config.channel.command_ns;
        CompletionTime {
            at: self.channels[index(location.flash_page.channel)].urgent_transfer(
                self.submitted_at,
                sensed.end,
                length,
            ),
            waited_for_collection_ns: sensed.waited_for_collection_ns,
        }
    }

    /// Senses a flash page. The planes of a die sense pages of the same position together.
    #[inline(always)]
    fn sense(&mut self, at: Nanos, location: &PageLocation) -> ReadSlot {
        if self.senses_several
            && let Some(end) = self.sensed.end_of(location.sensing())
        {
            return ReadSlot { end, waited_for_collection_ns: 0 };
        }
        let length = self.geometry.read_ns(location.flash_page) + self.tail(TailOf::Sense);
        let sensed = self.dies[index(location.flash_page.die)].read(at, length, self.config.nand.suspend_ns);
        if self.senses_several {
            self.sensed.record(location.sensing(), sensed.end);
        }
        sensed
    }

    /// Channel time for data and its commands.
    #[inline]
    fn operation_transfer_ns(&mut self, bytes: u64) -> Nanos {
        if bytes != self.last_operation.0 {
            let flash_page_bytes = u64::from(self.geometry.flash_pages()) * self.page_bytes;
            let commands = bytes.div_ceil(flash_page_bytes);
            let ns = self.channel_speed.transfer_ns(bytes) + commands * self.config.channel.command_ns;
            self.last_operation = (bytes, ns);
        }
        self.last_operation.1
    }
}
