//! Where a page is: its die, channel, page type; and how long that place takes.
//!
//! A reclaim unit is filled one program unit after the other, going round its blocks. Blocks that follow each other are
//! the planes of a die (programmed together), then the dies; a reclaim unit of whole channels goes round the channels
//! first, so that what follows each other is on different channels. A part of a superblock has the dies of its part.

use std::ops::Range;

use crate::cast::{index, narrow};
use crate::config::Geometry;
use crate::divisor::Divisor;
use crate::layout::{Layout, SizeClass, gcd};
use crate::types::{Nanos, Ppn};

use super::TimingConfig;

/// A reclaim unit, as far as times depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitPlace {
    /// Its first page.
    pub(crate) first: Ppn,
    /// Its reclaim group.
    pub(crate) group: u16,
    /// Its size class.
    pub(crate) class: u8,
    /// Which part of its superblock it is.
    pub(crate) part: u32,
}

/// A flash page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlashPage {
    pub(super) die: u32,
    pub(super) channel: u32,
    /// Number of the page among those of a one-shot program.
    page_in_program: u32,
    /// Number of the program unit in its block.
    row: u32,
}

/// What the planes of a die sense at once: pages at the same place of their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sensing {
    unit: Ppn,
    page: FlashPage,
}

impl FlashPage {
    pub(super) fn sensing(self, unit: UnitPlace) -> Sensing {
        Sensing {
            unit: unit.first,
            page: self,
        }
    }
}

/// How a size class lies on the dies.
#[derive(Clone, Copy, Debug)]
struct Class {
    blocks: Divisor,
    /// Whole channels that it goes round; 1 if it has no more.
    channels: Divisor,
    /// Pages of a program operation: a program unit on each of the planes that are programmed together.
    operation_pages: u32,
}

/// The geometry, divided out.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Pages (mapping units) of a flash page.
    flash_pages: Divisor,
    program_unit_pages: Divisor,
    planes_per_die: Divisor,
    dies_per_group: u32,
    dies_per_channel: Divisor,
    /// Dies of a channel that belong to the same reclaim group.
    dies_per_channel_and_group: u32,
    classes: Vec<Class>,
    read_ns: Vec<Nanos>,
    /// Of one program unit on each of the planes that are programmed together.
    program_ns: Nanos,
}

impl Places {
    pub(super) fn new(geometry: &Geometry, layout: &Layout, timing: &TimingConfig) -> Places {
        let groups = u32::from(layout.groups);
        let dies_per_group = geometry.channels * geometry.dies_per_channel / groups;
        let dies_per_channel_and_group = geometry.dies_per_channel.min(dies_per_group);
        let planes = geometry.planes_per_die;
        let class = |class: &SizeClass| {
            let together = if class.blocks.is_multiple_of(planes) { planes } else { 1 };
            let dies = class.blocks / planes;
            let channels = if dies.is_multiple_of(dies_per_channel_and_group) {
                (dies / dies_per_channel_and_group).max(1)
            } else {
                1
            };
            Class {
                blocks: Divisor::new(class.blocks),
                channels: Divisor::new(channels),
                operation_pages: layout.program_unit_pages * together,
            }
        };
        let program_unit_bytes = u64::from(layout.program_unit_pages) * layout.page_bytes;
        // A program unit of another size than one shot (that of a twin is smaller) takes its share of the time.
        let program_ns = u128::from(timing.nand.program_ns) * u128::from(program_unit_bytes);
        let program_ns = Nanos::try_from(program_ns.div_ceil(u128::from(timing.one_shot_bytes())));
        let program_ns = program_ns.expect("a program unit has 2^34 bytes at most, a program takes a minute at most");
        let flash_pages = narrow(timing.nand.page_bytes / layout.page_bytes);
        Places {
            flash_pages: Divisor::new(gcd(flash_pages, layout.program_unit_pages)),
            program_unit_pages: Divisor::new(layout.program_unit_pages),
            planes_per_die: Divisor::new(planes),
            dies_per_group,
            dies_per_channel: Divisor::new(geometry.dies_per_channel),
            dies_per_channel_and_group,
            classes: layout.classes.iter().map(class).collect(),
            read_ns: timing.nand.read_ns.clone(),
            program_ns,
        }
    }

    /// Pages of a program operation: a program unit on each of the planes that are programmed together.
    #[inline]
    pub(super) fn operation_pages(&self, unit: UnitPlace) -> u32 {
        self.classes[usize::from(unit.class)].operation_pages
    }

    /// Pages (mapping units) of a flash page.
    #[inline]
    pub(super) fn flash_pages(&self) -> u32 {
        self.flash_pages.get()
    }

    /// Number of the flash page that a physical page belongs to, over the whole drive.
    #[inline]
    pub(super) fn flash_page(&self, ppn: Ppn) -> u32 {
        self.flash_pages.divide(ppn.0)
    }

    /// Time of a program operation.
    #[inline]
    pub(super) fn program_ns(&self) -> Nanos {
        self.program_ns
    }

    /// Time to sense a flash page.
    #[inline]
    pub(super) fn read_ns(&self, page: FlashPage) -> Nanos {
        self.read_ns[index(page.page_in_program) % self.read_ns.len()]
    }

    /// End of the flash page that a page at an offset in a reclaim unit belongs to.
    #[inline]
    pub(super) fn flash_page_end(&self, offset: u32) -> u32 {
        (self.flash_pages.divide(offset) + 1) * self.flash_pages.get()
    }

    /// The flash page at an offset in a reclaim unit.
    #[inline(always)]
    pub(super) fn of(&self, unit: UnitPlace, offset: u32) -> FlashPage {
        let class = self.classes[usize::from(unit.class)];
        let (program_unit, page) = self.program_unit_pages.split(offset);
        let (row, block) = class.blocks.split(program_unit);
        let turn = self.planes_per_die.divide(block);
        let (in_channel, channel) = class.channels.split(turn);
        let die = self.first_die(unit) + channel * self.dies_per_channel_and_group + in_channel;
        FlashPage {
            die,
            channel: self.dies_per_channel.divide(die),
            page_in_program: self.flash_pages.divide(page),
            row,
        }
    }

    #[inline]
    fn first_die(&self, unit: UnitPlace) -> u32 {
        let blocks = self.classes[usize::from(unit.class)].blocks;
        u32::from(unit.group) * self.dies_per_group + self.planes_per_die.divide(unit.part * blocks.get())
    }

    /// The dies of a reclaim unit.
    pub(super) fn dies_of(&self, unit: UnitPlace) -> Range<u32> {
        let blocks = self.classes[usize::from(unit.class)].blocks;
        let first = self.first_die(unit);
        first..first + blocks.get().div_ceil(self.planes_per_die.get())
    }

    /// The channels of a range of dies.
    pub(super) fn channels_of(&self, dies: Range<u32>) -> Range<usize> {
        let (first, last) = (
            self.dies_per_channel.divide(dies.start),
            self.dies_per_channel.divide(dies.end - 1),
        );
        index(first)..index(last) + 1
    }

    /// The dies of a reclaim group.
    pub(super) fn dies_of_group(&self, group: u16) -> Range<u32> {
        let first = u32::from(group) * self.dies_per_group;
        first..first + self.dies_per_group
    }
}
