//! Several threads for one drive, with the same outcome as one.
//!
//! ```text
//! this thread    where each write goes; when a reclaim unit is closed, opened, reclaimed
//! the others     L2P, and which pages are valid      } for thousands of extents together:
//! this thread    reverse map, counts of units        } ["settled"] before anybody looks
//! ```
//!
//! Where an extent goes depends on what is open and how far it is written, and not on where its pages were. So writes are given
//! their places first, and what they have left is seen to later, before the next thing that depends on it: before a reclaim unit is closed,
//! opened or reclaimed, before one may become worth a background collection, where a reclaim group may be full.
//! Collections move their pages in the same way.
//!
//! How many valid pages a reclaim unit has decides when it moves among the candidates, and which of two was there first decides between equal ones.
//! So those that move are counted one extent after the other, in the order of writes; the many that do not, in a sum.

use crate::cast::{index, wide};
use crate::device::{Device, Engine, Write};
use crate::event::{EventSink, Events};
use crate::maps::shards::{Chosen, Left, Shards};
use crate::types::{Lpn, MappedRun, Nanos, Ppn, RgId, RuId};

use super::write::Carry;

/// Extents that are settled together at most.
const RUNS_MAX: usize = 1 << 14;
/// Pages of a victim that are moved together at most.
pub(super) const MOVED_PAGES_MAX: u32 = 1 << 18;
/// Most threads of a drive.
const THREADS_MAX: usize = 64;

/// See the module.
#[derive(Clone)]
pub(super) struct Sharing {
    shards: Shards,
    /// Shorter writes are one thread's: it does not wait for memory as long as the others would look through all that is to be done.
    write_pages_min: u32,
    /// Extents that have their places, not settled.
    runs: Vec<MappedRun>,
    /// Host pages written before the first of them.
    began: u64,
    /// Pages that each reclaim unit loses.
    lost: Vec<u32>,
    /// Which of them lose some.
    losers: Vec<RuId>,
    /// Whether somebody was going to look at the maps and counts, and perhaps to close, open or reclaim a reclaim unit.
    was_looked_at: bool,
}

/// Extents have their places, and the rest is done later.
struct Later;

impl Carry for Later {
    fn append(&mut self, engine: &mut Engine, group: RgId, unit: RuId, position: u32, lpn: Lpn, pages: u32) {
        let ppn = Ppn(engine.first_page(unit).0 + position);
        let sharing = engine.sharing.as_mut().expect("work is put off to be shared");
        if sharing.runs.is_empty() {
            sharing.began = engine.state.host_pages_written;
        }
        sharing.runs.push(MappedRun { ppn, lpn, pages });
        engine.count_written(group, unit, pages);
        engine.state.units[unit.index()].last_write = engine.state.host_pages_written;
    }

    fn settle(&mut self, engine: &mut Engine) {
        engine.settle();
        engine
            .sharing
            .as_mut()
            .expect("work is put off to be shared")
            .was_looked_at = true;
    }
}

impl<S: EventSink> Device<S> {
    /// Lets collections, and batches of writes of so many pages or more each on average, use so many threads of the pool that they are called from.
    /// Nothing but the time depends on it. It can pay on large drives, for batches of thousands of writes; in virtual time one thread does
    /// all of it.
    ///
    /// # Panics
    /// Without a thread nothing is done.
    pub fn share_work(&mut self, threads: usize, write_pages_min: u32) {
        self.engine.share_work(threads, write_pages_min);
    }

    /// Has the system give the memory of the mapping table now, 4 bytes a logical page, by all threads of the pool that it is called from. Worth it
    /// where the whole of a large drive is going to be written: a kernel in a virtual machine may take seconds for a GiB. Nothing but the time
    /// depends on it.
    pub fn populate(&self) {
        self.engine.maps.populate();
    }
}

impl Engine {
    fn share_work(&mut self, threads: usize, write_pages_min: u32) {
        assert!(threads > 0, "somebody has to do the work");
        let shards = threads.min(THREADS_MAX).next_power_of_two();
        self.sharing = (threads > 1).then(|| {
            Box::new(Sharing {
                shards: Shards::new(shards),
                write_pages_min,
                runs: Vec::new(),
                began: 0,
                lost: vec![0; self.state.units.len()],
                losers: Vec::new(),
                was_looked_at: false,
            })
        });
    }

    /// Whether several threads do the work now.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing.is_some() && self.timing.is_none() && !self.maps.is_noted()
    }

    /// Whether they carry out these writes.
    pub(super) fn shares(&self, writes: &[Write]) -> bool {
        let are_long = |sharing: &Sharing| {
            let pages: u64 = writes.iter().map(|write| u64::from(write.pages)).sum();
            pages >= u64::from(sharing.write_pages_min) * wide(writes.len())
        };
        self.is_shared() && self.sharing.as_deref().is_some_and(are_long)
    }

    /// Carries out writes one after the other, as far as anybody can see afterwards.
    pub(super) fn write_shared(&mut self, events: &mut Events<'_>, now: Nanos, writes: &[Write]) {
        /// Writes of this thread alone, where a reclaim unit may become worth a collection by each of them.
        const ALONE: usize = 32;
        let mut left = writes;
        while !left.is_empty() {
            let pages_max = self.pages_until_lazy();
            let mut carried_out = 0;
            while let Some(write) = left.get(carried_out)
                && !self.is_settling_due(write, pages_max)
            {
                let group = self.write_placed(events, now, write, &mut Later);
                carried_out += 1;
                let sharing = self.sharing.as_mut().expect("work is shared");
                if std::mem::take(&mut sharing.was_looked_at) {
                    self.settle();
                    self.collect_in_background(events, now, group);
                    break;
                }
            }
            self.settle();
            if carried_out == 0 {
                carried_out = left.len().min(ALONE);
                let _ = self.write_together(events, now, &left[..carried_out]);
            }
            left = &left[carried_out..];
        }
    }

    /// Whether a write has to wait until those before it are settled, as so many pages may be written before.
    fn is_settling_due(&self, write: &Write, pages_max: u64) -> bool {
        let sharing = self.sharing.as_ref().expect("work is shared");
        let put_off_pages = match sharing.runs.len() {
            0 => 0,
            RUNS_MAX.. => return true,
            _ => self.state.host_pages_written - sharing.began,
        };
        put_off_pages + u64::from(write.pages) > pages_max
    }

    /// Pages that can be written at least before background collection takes a reclaim unit that it would not take now; 0 if it takes one
    /// at once.
    fn pages_until_lazy(&self) -> u64 {
        let until = |group: &super::Group| {
            if group.free_slices > self.layout.background_free_slices {
                return u64::MAX;
            }
            if group.lazy_units > 0 {
                return 0;
            }
            let sets = group.closed.iter().flatten();
            sets.map(|set| u64::from(set.pages_until_lazy()))
                .min()
                .unwrap_or(u64::MAX)
        };
        self.state.groups.iter().map(until).min().expect("a device has a group")
    }

    /// Does what was put off.
    fn settle(&mut self) {
        let Some(mut sharing) = self.sharing.take() else { return };
        if !sharing.runs.is_empty() {
            self.maps.map_in_shards(&sharing.runs, &mut sharing.shards);
            let Sharing {
                shards, lost, losers, ..
            } = &mut *sharing;
            let Engine {
                maps,
                state,
                slice_divisor,
                layout,
                ..
            } = self;
            maps.clear_left(shards, |left| {
                for left in left.iter().flat_map(Chosen::get) {
                    for (unit, pages) in state.units_of(*slice_divisor, layout, left.ppn, left.pages) {
                        let lost = &mut lost[unit.index()];
                        if *lost == 0 {
                            losers.push(unit);
                        }
                        *lost += pages;
                    }
                }
            });
            self.count_lost(&mut sharing);
            sharing.runs.clear();
            for (number, group) in self.state.groups.iter().enumerate() {
                assert!(
                    group.live_pages <= self.layout.group_live_pages_max,
                    "group {number} holds more than it may"
                );
            }
        }
        self.sharing = Some(sharing);
    }

    /// Takes from reclaim units what they have lost.
    fn count_lost(&mut self, sharing: &mut Sharing) {
        let Sharing {
            shards,
            runs,
            began,
            lost,
            losers,
            ..
        } = sharing;
        let mut moving = 0;
        for unit in losers.drain(..) {
            let pages = lost[unit.index()];
            let entry = &self.state.units[unit.index()];
            if entry
                .valid_pages
                .checked_sub(pages)
                .is_some_and(|valid| valid >= entry.watch)
            {
                self.lose_pages(unit, pages, *began);
                lost[unit.index()] = 0;
            } else {
                moving += 1;
            }
        }
        if moving == 0 {
            return;
        }
        // The few that move among the candidates do so in the order of writes.
        let mut parts: Vec<(Left, RuId, u32)> = Vec::new();
        for left in shards.left() {
            for (unit, pages) in self
                .state
                .units_of(self.slice_divisor, &self.layout, left.ppn, left.pages)
            {
                if lost[unit.index()] > 0 {
                    parts.push((*left, unit, pages));
                }
            }
        }
        parts.sort_by_key(|(left, _, _)| (left.run, left.lpn));
        let (mut now, mut passed) = (*began, 0);
        for (left, unit, pages) in parts {
            let before = &runs[passed..index(left.run)];
            now += before.iter().map(|run| u64::from(run.pages)).sum::<u64>();
            passed = index(left.run);
            self.lose_pages(unit, pages, now);
            lost[unit.index()] -= pages;
        }
    }

    /// Moves runs as [`crate::maps::Maps::relocate`].
    pub(super) fn relocate(&mut self, runs: &[MappedRun], to: Ppn) -> u32 {
        if !self.is_shared() {
            return self.maps.relocate(runs, to);
        }
        let sharing = self.sharing.as_mut().expect("work is shared");
        assert!(sharing.runs.is_empty(), "what was put off is done before a collection");
        self.maps.relocate_in_shards(runs, to, &mut sharing.shards)
    }
}
