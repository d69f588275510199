//! Physical location of a page (die, channel, page type), and the operation times that depend on
//! it.
//!
//! A reclaim unit is filled one program unit at a time, rotating over its blocks. Consecutive
//! blocks are the planes of a die (programmed together), then the dies. A reclaim unit of whole
//! channels rotates over the channels first, so that consecutive program units are on different
//! channels. A part of a superblock has the dies of its part.

use std::ops::Range;

use strength_reduce::StrengthReducedU32;

use crate::cast::{index, narrow};
use crate::config::Geometry;
use crate::layout::{DeviceLayout, SizeClass};
use crate::types::{Nanos, Ppn};

use super::TimingConfig;
use super::die::OperationBatch;

/// Properties of a reclaim unit that its timing depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitPlace {
    pub(crate) first: Ppn,
    /// Reclaim group of the unit.
    pub(crate) group: u16,
    /// Index of the unit's size class.
    pub(crate) class: usize,
    /// Index of the unit within its superblock.
    pub(crate) part: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlashPage {
    pub(super) die: u32,
    pub(super) channel: u32,
    /// End of the flash page, in pages of its reclaim unit.
    pub(super) end: u32,
    /// First page of its program operation, in pages of its reclaim unit.
    pub(super) operation: u32,
    /// Index of the page within a one-shot program.
    page_in_program: u32,
    /// Index of the program unit within its block.
    row: u32,
}

/// One sense operation of a die. Its planes sense pages at the same position of their blocks
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SenseOp {
    pub(super) unit: Ppn,
    pub(super) die: u32,
    pub(super) page_in_program: u32,
    pub(super) row: u32,
}

/// Physical location of a page, for the time of a read.
#[derive(Clone, Copy, Debug)]
pub struct PageLocation {
    pub(crate) ppn: Ppn,
    /// First page of the reclaim unit.
    unit: Ppn,
    pub(super) flash_page: FlashPage,
}

impl PageLocation {
    #[inline]
    pub(super) fn end(&self) -> Ppn {
        Ppn(self.unit.0 + self.flash_page.end)
    }

    /// First page of the program operation.
    #[inline]
    pub(super) fn operation(&self) -> u32 {
        self.unit.0 + self.flash_page.operation
    }

    #[inline]
    pub(super) fn sensing(&self) -> SenseOp {
        SenseOp {
            unit: self.unit,
            die: self.flash_page.die,
            page_in_program: self.flash_page.page_in_program,
            row: self.flash_page.row,
        }
    }
}

/// Mapping of a size class to dies.
#[derive(Clone, Debug)]
struct DieMapping {
    blocks: u32,
    /// Pages of a row, which has one program unit on each block.
    row_pages: u32,
    row_flash_pages: StrengthReducedU32,
    spots: Vec<RowPosition>,
    /// Sense operations that read a row up to each flash page.
    senses: Vec<OperationBatch>,
    /// Pages of a program operation, which has one program unit on each of the planes programmed
    /// together.
    operation_pages: StrengthReducedU32,
}

/// Position of the flash pages at one index of all rows.
#[derive(Clone, Copy, Debug)]
struct RowPosition {
    /// Die, relative to the first die of the reclaim unit.
    die: u32,
    page_in_program: u32,
    /// First page of the program operation, relative to the row.
    operation: u32,
}

/// Precomputed geometry.
#[derive(Clone, Debug)]
pub(super) struct FlashGeometry {
    /// Pages (mapping units) of a flash page.
    flash_pages: StrengthReducedU32,
    planes_per_die: StrengthReducedU32,
    dies_per_group: u32,
    /// Channel of each die.
    channels: Vec<u32>,
    classes: Vec<DieMapping>,
    read_ns: Vec<Nanos>,
    /// Time to program one program unit on each of the planes programmed together.
    program_ns: Nanos,
}

impl DieMapping {
    fn new(
        class: &SizeClass,
        geometry: &Geometry,
        layout: &DeviceLayout,
        flash_pages: u32,
        dies_together: u32,
        read_ns: &[Nanos],
    ) -> DieMapping {
        let (planes, program_unit_pages) = (geometry.planes_per_die, layout.program_unit_pages);
        let together = if class.blocks.is_multiple_of(planes) { planes } else { 1 };
        let dies = class.blocks / planes;
        // Number of whole channels to rotate over, 1 if the unit has less than that.
        let channels = if dies.is_multiple_of(dies_together) { (dies / dies_together).max(1) } else { 1 };
        let row_pages = class.blocks * program_unit_pages;
        let spot = |page: u32| {
            let block = page / program_unit_pages;
            let turn = block / planes;
            let operation_pages = program_unit_pages * together;
            RowPosition {
                die: turn % channels * dies_together + turn / channels,
                page_in_program: page % program_unit_pages / flash_pages,
                operation: page / operation_pages * operation_pages,
            }
        };
        let spots: Vec<RowPosition> = (0..row_pages).step_by(index(flash_pages)).map(spot).collect();
        let (mut row, mut before) = (OperationBatch::default(), None);
        let mut senses = Vec::with_capacity(spots.len());
        for &RowPosition { die, page_in_program, .. } in &spots {
            if before.replace((die, page_in_program)) != Some((die, page_in_program)) {
                row.ns += read_ns[index(page_in_program) % read_ns.len()];
                row.count += 1;
            }
            senses.push(row);
        }
        DieMapping {
            blocks: class.blocks,
            row_pages,
            row_flash_pages: StrengthReducedU32::new(row_pages / flash_pages),
            spots,
            senses,
            operation_pages: StrengthReducedU32::new(program_unit_pages * together),
        }
    }
}

impl FlashGeometry {
    pub(super) fn new(geometry: &Geometry, layout: &DeviceLayout, timing: &TimingConfig) -> FlashGeometry {
        let groups = u32::from(layout.groups);
        let dies = geometry.channels * geometry.dies_per_channel;
        let dies_per_group = dies / groups;
        assert_eq!(dies_per_group * groups, dies, "reclaim groups share the dies equally");
        // Dies of a channel that belong to the same reclaim group.
        let dies_together = geometry.dies_per_channel.min(dies_per_group);
        let program_unit_bytes = u64::from(layout.program_unit_pages) * layout.page_bytes;
        // Program units of another size than a one-shot program (as in scaled models) take a
        // proportional time.
        let program_ns = u128::from(timing.nand.program_ns) * u128::from(program_unit_bytes);
        let program_ns = Nanos::try_from(program_ns.div_ceil(u128::from(timing.one_shot_bytes())));
        let program_ns = program_ns.expect("a program unit has 2^34 bytes at most, a program takes a minute at most");
        let flash_pages = narrow(timing.nand.page_bytes / layout.page_bytes);
        // Flash pages must divide program units.
        let flash_pages = base::gcd(flash_pages, layout.program_unit_pages);
        let read_ns = &timing.nand.read_ns;
        let class = |class: &SizeClass| DieMapping::new(class, geometry, layout, flash_pages, dies_together, read_ns);
        FlashGeometry {
            flash_pages: StrengthReducedU32::new(flash_pages),
            planes_per_die: StrengthReducedU32::new(geometry.planes_per_die),
            dies_per_group,
            channels: (0..dies).map(|die| die / geometry.dies_per_channel).collect(),
            classes: layout.classes.iter().map(class).collect(),
            read_ns: read_ns.clone(),
            program_ns,
        }
    }

    /// Pages of a program operation, which has one program unit on each of the planes programmed
    /// together.
    #[inline]
    pub(super) fn operation_pages(&self, unit: UnitPlace) -> StrengthReducedU32 {
        self.classes[unit.class].operation_pages
    }

    /// Pages (mapping units) of a flash page.
    #[inline]
    pub(super) fn flash_pages(&self) -> u32 {
        self.flash_pages.get()
    }

    /// Index of the flash page of a physical page, over the whole drive.
    #[inline]
    pub(super) fn flash_page(&self, ppn: Ppn) -> u32 {
        ppn.0 / self.flash_pages
    }

    #[inline]
    pub(super) fn program_ns(&self) -> Nanos {
        self.program_ns
    }

    /// Time to sense a flash page.
    #[inline]
    pub(super) fn read_ns(&self, page: FlashPage) -> Nanos {
        match self.read_ns[..] {
            [all] => all,
            _ => self.read_ns[index(page.page_in_program) % self.read_ns.len()],
        }
    }

    /// Location of a page of a reclaim unit.
    #[inline(always)]
    pub(super) fn locate(&self, ppn: Ppn, unit: UnitPlace) -> PageLocation {
        assert!(unit.first <= ppn, "a page is searched in an earlier reclaim unit");
        PageLocation { ppn, unit: unit.first, flash_page: self.flash_page_at(unit, ppn.0 - unit.first.0) }
    }

    /// Flash page at an offset in a reclaim unit.
    #[inline(always)]
    pub(super) fn flash_page_at(&self, unit: UnitPlace, offset: u32) -> FlashPage {
        let class = &self.classes[unit.class];
        let flash_page = offset / self.flash_pages;
        let (row, at) = StrengthReducedU32::div_rem(flash_page, class.row_flash_pages);
        let spot = class.spots[index(at)];
        let die = self.first_die(unit) + spot.die;
        FlashPage {
            die,
            channel: self.channels[index(die)],
            end: (flash_page + 1) * self.flash_pages.get(),
            operation: row * class.row_pages + spot.operation,
            page_in_program: spot.page_in_program,
            row,
        }
    }

    /// Sense operations for the flash pages after that of `first` up to that of `last`, both pages of
    /// one program operation. `sensed` is that of `first`, then that of `last`.
    #[inline]
    pub(super) fn sense_others(&self, unit: UnitPlace, sensed: &mut SenseOp, first: Ppn, last: Ppn) -> OperationBatch {
        let class = &self.classes[unit.class];
        let row = sensed.row * class.row_flash_pages.get();
        let [first, last] = [first, last].map(|page| index((page.0 - unit.first.0) / self.flash_pages - row));
        sensed.page_in_program = class.spots[last].page_in_program;
        let (before, all) = (class.senses[first], class.senses[last]);
        OperationBatch { ns: all.ns - before.ns, count: all.count - before.count }
    }

    /// Number of program operations of a row of a reclaim unit.
    #[inline]
    pub(super) fn row_operations(&self, unit: UnitPlace) -> u32 {
        let class = &self.classes[unit.class];
        class.row_pages / class.operation_pages
    }

    #[inline]
    fn first_die(&self, unit: UnitPlace) -> u32 {
        let first = u32::from(unit.group) * self.dies_per_group;
        match unit.part {
            0 => first,
            part => first + part * self.classes[unit.class].blocks / self.planes_per_die,
        }
    }

    /// Dies of a reclaim unit.
    pub(super) fn dies_of(&self, unit: UnitPlace) -> Range<u32> {
        let blocks = self.classes[unit.class].blocks;
        let first = self.first_die(unit);
        first..first + blocks.div_ceil(self.planes_per_die.get())
    }

    /// Die of a reclaim group that is next in turn, and its channel.
    pub(super) fn die_in_turn(&self, group: u16, turn: u32) -> (u32, u32) {
        let die = u32::from(group) * self.dies_per_group + turn % self.dies_per_group;
        (die, self.channels[index(die)])
    }

    pub(super) fn channels_of(&self, dies: Range<u32>) -> Range<usize> {
        index(self.channels[index(dies.start)])..index(self.channels[index(dies.end) - 1]) + 1
    }

    /// Dies of a reclaim group.
    pub(super) fn dies_of_group(&self, group: u16) -> Range<u32> {
        let first = u32::from(group) * self.dies_per_group;
        first..first + self.dies_per_group
    }
}
