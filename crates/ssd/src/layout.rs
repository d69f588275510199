//! Layout of a device: all numbers derived from a configuration, and a proof that writes find
//! space.
//!
//! # Address space
//!
//! Physical pages are numbered in the order in which a reclaim unit is filled, superblock by
//! superblock:
//!
//! ```text
//! group 0                                      group 1 ...
//! | superblock 0      | superblock 1      | .. |
//! | slice | slice | ..| slice | slice | ..|        slice = superblock / slices_per_superblock
//! ```
//!
//! A *superblock* is a block on every lane (die and plane) of its reclaim group. A *size class*
//! divides it into equal parts over fewer lanes. Class 0 is the whole superblock. A reclaim unit is
//! one part of one class. It begins at a slice, the smallest part that any handle can receive.
//!
//! # Why a write always finds space
//!
//! Let a reclaim group have `n` superblocks of `p` pages after the reserve. Let `g` be the number
//! of write frontiers of collection: one for the shared pool and one for each handle that may be
//! persistently isolated. Let `c` be the number of size classes smaller than a superblock. In the
//! worst case, emergency collection removes all invalid pages. The remaining superblocks are full
//! of valid pages (at most `live / p`), except one for each frontier and one partly free superblock
//! for each smaller class. So with
//!
//! ```text
//! live / p + g + c + (1 + c) + 1 <= n
//! ```
//!
//! `1 + c` superblocks are always reserved for collection itself and one for the host. Copies go to
//! reclaim units of their victim's class, so emptying a superblock divides at most one other
//! superblock of each class. [`DeviceLayout::new`] rejects smaller configurations.
//! `DeviceCore::emergency_gc` implements the procedure and asserts the bound.
//!
//! The proof also holds for copies that share the host's open reclaim unit (`gc.copies`). The
//! frontiers are then open units of hosts. Their number is the same, and emergency collection
//! leaves them alone too. All of them are whole superblocks, so `c` is 0. Collecting a superblock
//! fills at most the rest of one frontier, begins one other and returns the superblock. The free
//! space never shrinks. If the collection opens the unit that the host waits for, the host writes
//! to that unit.

use serde::Serialize;

use base::HumanBytes;

use crate::cast::{count, narrow, to_f64, truncate, truncate32, wide};
use crate::config::{
    DeviceConfig, GcDestination, HandleConfig, Isolation, ReclaimUnitSize, UnitOpenPolicy, WatermarkBase,
};
use crate::error::ConfigError;
use crate::maps::packed::PackedShape;
use crate::types::{PlacementList, RuhId, UnitOwner};
use crate::unit::ReclaimUnit;

/// A way to divide a superblock into equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// Number of parts of a superblock.
    pub divisor: u32,
    /// Number of pages of one part.
    pub pages: u32,
    /// Number of slices of one part.
    pub slices: u32,
    /// Number of blocks of one part.
    pub blocks: u32,
}

/// Numbers derived from a [`DeviceConfig`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceLayout {
    /// Size of a page (the mapping unit) in bytes.
    pub page_bytes: u64,
    /// Number of pages that the host can address.
    pub logical_pages: u32,
    /// Number of pages of flash.
    pub physical_pages: u32,
    /// Number of reclaim groups.
    pub groups: u16,
    /// Number of superblocks of each reclaim group.
    pub superblocks_per_group: u32,
    /// Number of pages of a superblock.
    pub superblock_pages: u32,
    /// Number of blocks of a superblock, one for each die and plane of the group.
    pub blocks_per_superblock: u32,
    /// Number of pages of a block.
    pub block_pages: u32,
    /// Pages written to a block before the write continues on the next block of the reclaim unit.
    pub program_unit_pages: u32,
    /// Size classes in use. Class 0 is the superblock.
    pub classes: Vec<SizeClass>,
    /// Number of slices of a superblock.
    pub slices_per_superblock: u32,
    /// Number of pages of a slice.
    pub slice_pages: u32,
    /// Settings of each handle.
    pub handles: Vec<HandleConfig>,
    /// Size of the hot-data window in pages, 0 if disabled.
    pub separation_pages: u32,
    /// Number of host pages that wait in the write buffer, 0 if disabled.
    pub absorption_pages: u32,
    /// Owner of the copies of initially isolated handles. It is the shared pool, or the handle
    /// whose open reclaim unit they share.
    pub pooled_copies: UnitOwner,
    /// Superblocks of each group that host data never uses.
    pub reserve_superblocks: u32,
    /// Superblocks of each group beyond its share of a full drive, without the reserve.
    pub spare_superblocks: u32,
    /// Superblocks of each group that stay free for collection itself.
    pub collection_superblocks: u32,
    /// Free slices of a group up to which background collection runs.
    pub background_free_slices: u64,
    /// Free slices of a group that must remain after a handle takes its next reclaim unit. The host
    /// waits for collection below this number.
    pub foreground_free_slices: u64,
    /// Maximum live pages of a group. Further pages go to another group.
    pub group_live_pages_max: u64,
}

impl DeviceLayout {
    /// Derives the layout.
    ///
    /// # Errors
    /// Names the field that is out of range. If the parts do not fit together, names the smallest
    /// value that works.
    pub fn new(config: &DeviceConfig) -> Result<DeviceLayout, ConfigError> {
        config.check()?;
        let shape = FlashShape::new(config)?;
        let layout = shape.layout(config)?;
        let needed = layout.superblocks_needed(config);
        if layout.superblocks_per_group < needed {
            return Err(layout.too_small(config, needed));
        }
        layout.assert_whole();
        Ok(layout)
    }

    /// Asserts that the parts add up to the drive and that its groups can hold every logical page.
    fn assert_whole(&self) {
        let superblock_pages = self.superblock_pages;
        assert_eq!(self.blocks_per_superblock * self.block_pages, superblock_pages, "blocks make up a superblock");
        assert_eq!(self.slices_per_superblock * self.slice_pages, superblock_pages, "slices make up a superblock");
        assert!(self.block_pages.is_multiple_of(self.program_unit_pages), "program units make up a block");
        for class in &self.classes {
            assert_eq!(class.divisor * class.pages, superblock_pages, "parts make up a superblock");
            assert_eq!(class.slices * self.slice_pages, class.pages, "slices make up a part");
            assert_eq!(class.blocks * self.block_pages, class.pages, "blocks make up a part");
        }
        assert_eq!(self.superblocks() * superblock_pages, self.physical_pages, "superblocks make up the drive");
        assert!(self.logical_pages < self.physical_pages, "there is flash for every logical page");
        let live_pages_max = u64::from(self.groups) * self.group_live_pages_max;
        assert!(live_pages_max >= u64::from(self.logical_pages), "the groups have space for every logical page");
        assert!(self.superblocks_kept() < self.superblocks_per_group, "something is left for host data");
    }

    /// Superblocks of each group that hosts cannot use, for collection and the reserve.
    pub(crate) fn superblocks_kept(&self) -> u32 {
        self.collection_superblocks + self.reserve_superblocks
    }

    pub(crate) fn slices_per_group(&self) -> u64 {
        u64::from(self.superblocks_per_group) * u64::from(self.slices_per_superblock)
    }

    /// Number of slices of the whole device.
    pub fn slices(&self) -> u32 {
        self.superblocks() * self.slices_per_superblock
    }

    /// Number of superblocks of the whole device.
    pub fn superblocks(&self) -> u32 {
        self.superblocks_per_group * u32::from(self.groups)
    }

    /// Number of reclaim unit handles.
    pub fn handle_count(&self) -> u16 {
        u16::try_from(self.handles.len()).expect("a device has at most 128 handles")
    }

    /// Number of blocks of the whole device.
    pub fn blocks(&self) -> u64 {
        u64::from(self.superblocks()) * u64::from(self.blocks_per_superblock)
    }

    /// Capacity that the host can write, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.logical_pages) * self.page_bytes
    }

    /// Number of placement indices of a namespace that lists every handle in every reclaim group.
    pub fn placement_count(&self) -> u16 {
        PlacementList::new(&self.handle_list(), self.groups).count()
    }

    /// All handles in order, for a namespace that may use all of them.
    pub fn handle_list(&self) -> Vec<RuhId> {
        (0..).map(RuhId).take(self.handles.len()).collect()
    }

    /// Over-provisioning after rounding to whole superblocks: (physical - logical) / logical.
    pub fn effective_over_provisioning(&self) -> f64 {
        f64::from(self.physical_pages) / f64::from(self.logical_pages) - 1.0
    }

    /// Maximum memory of the page maps and block tables of such a device, in bytes. This is the
    /// case if every page is written separately. The reverse map needs 4 bytes for each run of
    /// pages, so a device with larger requests needs little more than half of it.
    pub fn memory_bytes(&self) -> u64 {
        let pages = u64::from(self.physical_pages);
        4 * u64::from(self.logical_pages) + 4 * pages + pages / 4 + self.table_bytes()
    }

    /// Maximum memory of a device with compact maps ([`DeviceCore::make_compact`]). Only the reclaim
    /// units that are open or being collected then have 4 bytes for each page in the reverse map.
    ///
    /// [`DeviceCore::make_compact`]: crate::DeviceCore::make_compact
    pub fn compact_memory_bytes(&self) -> u64 {
        let Some(shape) = PackedShape::new(self.logical_pages, self.slice_pages) else {
            return self.memory_bytes();
        };
        let host_units: u32 = self.handles.iter().map(|handle| u32::from(self.open_slots(handle))).sum();
        // Those of hosts and of copies in each group, and a victim.
        let open_units = u64::from(self.groups) * u64::from(host_units + self.frontiers()) + 1;
        let open_pages = open_units * u64::from(self.superblock_pages);
        let packed_bytes = shape.memory_bytes(self.logical_pages, self.slices(), self.superblock_pages);
        let reverse_bytes = 4 * open_pages + packed_bytes;
        self.memory_bytes().min(self.memory_bytes() - 4 * u64::from(self.physical_pages) + reverse_bytes)
    }

    /// Part of [`DeviceLayout::memory_bytes`] that belongs to the block tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        8 * self.blocks() + u64::from(self.slices()) * wide(size_of::<ReclaimUnit>())
    }

    /// Size class with this divisor.
    pub(crate) fn class_of(&self, divisor: u32) -> u8 {
        let position = self.classes.iter().position(|class| class.divisor == divisor);
        let position = position.expect("every divisor in the configuration has a class");
        u8::try_from(position).expect("there are at most 129 classes: of whole superblocks, and one for each handle")
    }

    pub(crate) fn class_of_size(&self, config: &DeviceConfig, size: ReclaimUnitSize) -> u8 {
        let shape = FlashShape::new(config).expect("a layout exists, so its shape is valid");
        self.class_of(shape.divisor(size))
    }

    fn frontiers(&self) -> u32 {
        let may_isolate = |handle: &&HandleConfig| handle.isolation != Isolation::InitiallyIsolated;
        let isolated = count(self.handles.iter().filter(may_isolate).count());
        let shared = self.handles.iter().any(|handle| handle.isolation != Isolation::PersistentlyIsolated);
        isolated + u32::from(shared)
    }

    /// Maximum reclaim units that a handle has open for host data. Host commands rotate over them.
    /// With separation, the last one is for hot pages.
    pub fn open_slots(&self, handle: &HandleConfig) -> u16 {
        handle.open_reclaim_units + u16::from(self.separation_pages > 0)
    }

    fn smaller_classes(&self) -> u32 {
        count(self.classes.len()) - 1
    }

    fn open_superblocks_if_eager(&self, config: &DeviceConfig) -> u32 {
        let host: u32 = self.handles.iter().map(|handle| u32::from(self.open_slots(handle))).sum();
        match config.gc.copies {
            GcDestination::Apart => host + self.frontiers(),
            GcDestination::WithHost => host,
        }
    }

    /// Superblocks of each group that are unavailable for live data in the worst case.
    fn overhead_superblocks(&self, config: &DeviceConfig) -> u32 {
        let after_emergency = self.frontiers() + self.smaller_classes();
        let open = match config.handles.opening {
            UnitOpenPolicy::OnFirstUse => after_emergency,
            UnitOpenPolicy::Eager => after_emergency.max(self.open_superblocks_if_eager(config)),
        };
        open + self.collection_superblocks + 1 + self.reserve_superblocks
    }

    fn superblocks_needed(&self, config: &DeviceConfig) -> u32 {
        let groups = u32::from(self.groups);
        // Groups may share the live data unevenly. One extra page each lets the last write of a
        // full drive find space.
        let live_pages = (self.logical_pages + groups).div_ceil(groups);
        live_pages / self.superblock_pages + self.overhead_superblocks(config)
    }

    fn too_small(&self, config: &DeviceConfig, needed: u32) -> ConfigError {
        let mut larger = config.clone();
        let step = 0.001;
        let mut works = None;
        let mut over_provisioning = (config.geometry.over_provisioning / step).ceil() * step;
        while over_provisioning <= 1.0 {
            larger.geometry.over_provisioning = over_provisioning;
            let fits = |layout: DeviceLayout| layout.superblocks_per_group >= layout.superblocks_needed(&larger);
            if FlashShape::new(&larger).and_then(|shape| shape.layout(&larger)).is_ok_and(fits) {
                works = Some(over_provisioning);
                break;
            }
            over_provisioning += step;
        }
        let remedy = match works {
            Some(value) => format!("The smallest over-provisioning that works here is {value:.3}"),
            None => "No over-provisioning up to 1 is enough".to_string(),
        };
        ConfigError::new(
            "geometry.over_provisioning",
            config.geometry.over_provisioning,
            format!(
                "each reclaim group has only {} superblocks of {} and needs {needed}, for the data of a full \
                 drive, the open reclaim units of {} handles and the copies of garbage collection. {remedy}. Fewer handles, a smaller \
                 geometry.reclaim_unit_bytes or a smaller gc.reserve_share also help",
                self.superblocks_per_group,
                HumanBytes(u64::from(self.superblock_pages) * self.page_bytes),
                self.handles.len(),
            ),
        )
    }
}

/// Size of a window of written bytes in pages. `field` is its setting.
fn window_pages(field: &str, bytes: u64, config: &DeviceConfig, logical_pages: u64) -> Result<u32, ConfigError> {
    let pages = bytes.div_ceil(config.geometry.mapping_unit_bytes);
    let allowed = "must be less than the capacity (0 disables it)";
    ConfigError::require(pages < logical_pages, field, bytes, allowed)?;
    Ok(narrow(pages))
}

/// Computes [`DeviceLayout::pooled_copies`].
fn pooled_copies(config: &DeviceConfig) -> UnitOwner {
    let mut handles = (0..config.handles.count).map(RuhId);
    let shares = |handle: &RuhId| config.handles.get(handle.0).isolation != Isolation::PersistentlyIsolated;
    match config.gc.copies {
        GcDestination::Apart => UnitOwner::SHARED_POOL,
        GcDestination::WithHost => handles.find(shares).map_or(UnitOwner::SHARED_POOL, UnitOwner::from_handle),
    }
}

/// Physical shape without the capacity.
struct FlashShape {
    dies_per_group: u32,
    channels_per_group: Option<u32>,
    blocks_per_superblock: u32,
    superblock_pages: u32,
    block_pages: u32,
    program_unit_pages: u32,
}

impl FlashShape {
    fn new(config: &DeviceConfig) -> Result<FlashShape, ConfigError> {
        let geometry = &config.geometry;
        let dies = geometry.channels * geometry.dies_per_channel;
        let groups = u32::from(geometry.reclaim_groups);
        if !dies.is_multiple_of(groups) {
            let allowed = format!("must divide the {dies} dies of the drive into equal reclaim groups");
            return Err(ConfigError::new("geometry.reclaim_groups", groups, allowed));
        }
        let dies_per_group = dies / groups;
        let channels_per_group = if geometry.channels.is_multiple_of(groups) {
            Some(geometry.channels / groups)
        } else if groups.is_multiple_of(geometry.channels) {
            Some(1)
        } else {
            None
        };
        let blocks_per_superblock = dies_per_group * geometry.planes_per_die;
        let page_bytes = geometry.mapping_unit_bytes;
        let stripe_bytes = geometry.stripe_bytes();
        if !geometry.reclaim_unit_bytes.is_multiple_of(stripe_bytes) {
            let allowed = format!(
                "must be a multiple of {stripe_bytes} bytes, one program unit on each of the {blocks_per_superblock} \
                 blocks of a superblock"
            );
            let value = geometry.reclaim_unit_bytes;
            return Err(ConfigError::new("geometry.reclaim_unit_bytes", value, allowed));
        }
        let superblock_pages = narrow(geometry.reclaim_unit_bytes / page_bytes);
        Ok(FlashShape {
            dies_per_group,
            channels_per_group,
            blocks_per_superblock,
            superblock_pages,
            block_pages: superblock_pages / blocks_per_superblock,
            program_unit_pages: narrow(geometry.program_unit_bytes.unwrap_or(page_bytes) / page_bytes),
        })
    }

    /// Number of parts of a superblock for a reclaim unit size.
    fn divisor(&self, size: ReclaimUnitSize) -> u32 {
        match size {
            ReclaimUnitSize::Superblock => 1,
            ReclaimUnitSize::Fraction(parts) => parts,
            ReclaimUnitSize::Channel => self.channels_per_group.unwrap_or(1),
            ReclaimUnitSize::Die => self.dies_per_group,
        }
    }

    fn check_size(&self, handle: usize, size: ReclaimUnitSize) -> Result<(), ConfigError> {
        let field = format!("handles[{handle}].reclaim_unit");
        let name = format!("{size:?}").to_lowercase();
        if size == ReclaimUnitSize::Channel && self.channels_per_group.is_none() {
            let allowed = "each reclaim group must be a whole number of channels, or each channel a whole number of \
                           reclaim groups";
            return Err(ConfigError::new(&field, name, allowed));
        }
        let parts = self.divisor(size);
        if parts == 0 || !self.blocks_per_superblock.is_multiple_of(parts) {
            let allowed = format!("must divide the {} blocks of a superblock", self.blocks_per_superblock);
            return Err(ConfigError::new(&field, name, allowed));
        }
        Ok(())
    }

    fn layout(&self, config: &DeviceConfig) -> Result<DeviceLayout, ConfigError> {
        let geometry = &config.geometry;
        let handles: Vec<_> = (0..config.handles.count).map(|index| config.handles.get(index)).collect();
        let mut divisors = vec![1];
        for (index, handle) in handles.iter().enumerate() {
            self.check_size(index, handle.reclaim_unit)?;
            let divisor = self.divisor(handle.reclaim_unit);
            if !divisors.contains(&divisor) {
                divisors.push(divisor);
            }
        }
        divisors.sort_unstable();
        let slices_per_superblock = divisors.iter().fold(1, |multiple, divisor| lcm(multiple, *divisor));
        let classes: Vec<_> = divisors
            .iter()
            .map(|&divisor| SizeClass {
                divisor,
                pages: self.superblock_pages / divisor,
                slices: slices_per_superblock / divisor,
                blocks: self.blocks_per_superblock / divisor,
            })
            .collect();

        let (logical_pages, superblocks_per_group) = self.capacity(config)?;
        let groups = u32::from(geometry.reclaim_groups);
        let physical = u64::from(superblocks_per_group) * u64::from(groups) * u64::from(self.superblock_pages);
        let group_pages = logical_pages.div_ceil(u64::from(groups));
        let data_superblocks = narrow(group_pages.div_ceil(u64::from(self.superblock_pages)));
        let all_spare = superblocks_per_group.saturating_sub(data_superblocks);
        let reserve_superblocks = truncate32(f64::from(all_spare) * config.gc.reserve_share);
        let spare_superblocks = all_spare - reserve_superblocks;
        let collection_superblocks = count(classes.len());
        let base = match config.gc.watermark_base {
            WatermarkBase::Spare => spare_superblocks,
            WatermarkBase::All => superblocks_per_group,
        };
        let slices = |superblocks: u32| u64::from(superblocks) * u64::from(slices_per_superblock);
        // The small summand makes a watermark of 0.9 leave exactly a tenth despite binary rounding.
        let free_slices =
            |watermark: f64| truncate((1.0 - watermark) * to_f64(slices(base)) + 1e-6) + slices(reserve_superblocks);
        // Free parts of divided superblocks that add up to less than a superblock are useless to a
        // request for a whole one.
        let scattered_slices = u64::from(slices_per_superblock) - 1;
        let hard_floor = slices(reserve_superblocks + collection_superblocks) + scattered_slices;
        let window = |field, bytes| window_pages(field, bytes, config, logical_pages);
        let mut layout = DeviceLayout {
            page_bytes: geometry.mapping_unit_bytes,
            logical_pages: narrow(logical_pages),
            physical_pages: narrow(physical),
            groups: geometry.reclaim_groups,
            superblocks_per_group,
            superblock_pages: self.superblock_pages,
            blocks_per_superblock: self.blocks_per_superblock,
            block_pages: self.block_pages,
            program_unit_pages: self.program_unit_pages,
            slices_per_superblock,
            slice_pages: self.superblock_pages / slices_per_superblock,
            classes,
            handles,
            separation_pages: window("handles.hot_window_bytes", config.handles.hot_window_bytes)?,
            absorption_pages: window("handles.write_absorption_bytes", config.handles.write_absorption_bytes)?,
            pooled_copies: pooled_copies(config),
            reserve_superblocks,
            spare_superblocks,
            collection_superblocks,
            background_free_slices: if config.gc.background_watermark < 1.0 {
                free_slices(config.gc.background_watermark)
            } else {
                0
            },
            foreground_free_slices: free_slices(config.gc.foreground_watermark).max(hard_floor),
            group_live_pages_max: 0,
        };
        let data_superblocks = superblocks_per_group.saturating_sub(layout.overhead_superblocks(config));
        layout.group_live_pages_max = (u64::from(data_superblocks) + 1) * u64::from(self.superblock_pages) - 1;
        Ok(layout)
    }

    /// Logical pages of the device and superblocks of each group.
    fn capacity(&self, config: &DeviceConfig) -> Result<(u64, u32), ConfigError> {
        let geometry = &config.geometry;
        let groups = u64::from(geometry.reclaim_groups);
        let page_bytes = geometry.mapping_unit_bytes;
        let group_superblock_bytes = geometry.reclaim_unit_bytes * groups;
        let (field, given) = match (geometry.capacity_bytes, geometry.physical_bytes) {
            (Some(capacity), None) => ("geometry.capacity_bytes", capacity),
            (None, Some(physical)) => ("geometry.physical_bytes", physical),
            (Some(_), Some(physical)) => {
                let allowed = "must not be combined with geometry.capacity_bytes. Give one of them, because \
                               over_provisioning links the two";
                return Err(ConfigError::new("geometry.physical_bytes", physical, allowed));
            }
            (None, None) => {
                let allowed = "this (the size for hosts) or geometry.physical_bytes (the flash) must be given";
                return Err(ConfigError::new("geometry.capacity_bytes", "missing", allowed));
            }
        };
        let (logical_pages, superblocks) = if field == "geometry.capacity_bytes" {
            let logical_pages = given / page_bytes;
            let physical_bytes = to_f64(given) * (1.0 + geometry.over_provisioning);
            (logical_pages, truncate((physical_bytes / to_f64(group_superblock_bytes)).round()))
        } else {
            let superblocks = given / group_superblock_bytes;
            let physical_pages = superblocks * groups * u64::from(self.superblock_pages);
            (
                // The small summand makes 110 MiB at 0.1 exactly 100 MiB despite binary rounding.
                truncate(to_f64(physical_pages) / (1.0 + geometry.over_provisioning) + 1e-6),
                superblocks,
            )
        };
        if logical_pages == 0 || superblocks == 0 {
            let allowed =
                format!("must be at least one superblock for each reclaim group ({group_superblock_bytes} bytes)");
            return Err(ConfigError::new(field, given, allowed));
        }
        let physical_pages = superblocks.saturating_mul(groups).saturating_mul(u64::from(self.superblock_pages));
        if physical_pages >= u64::from(u32::MAX) {
            let physical_bytes = u128::from(physical_pages) * u128::from(page_bytes);
            let large_enough = |unit: &u64| physical_bytes / u128::from(*unit) < u32::MAX.into();
            let remedy = match [8192, 16_384, 32_768, 65_536].into_iter().find(large_enough) {
                Some(unit) => format!("Use geometry.mapping_unit_bytes = {unit} or more, as drives of this size do"),
                None => "No geometry.mapping_unit_bytes is large enough, so use less flash".to_string(),
            };
            let allowed = format!(
                "{} of flash exceed the 32-bit page numbers. Mapping units of {} must total less than {}. {remedy}",
                HumanBytes(u64::try_from(physical_bytes).unwrap_or(u64::MAX)),
                HumanBytes(page_bytes),
                HumanBytes(page_bytes << 32),
            );
            return Err(ConfigError::new(field, given, allowed));
        }
        Ok((logical_pages, narrow(superblocks)))
    }
}

fn lcm(a: u32, b: u32) -> u32 {
    a / base::gcd(a, b) * b
}
