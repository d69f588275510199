//! Tests every setting of a [`DeviceConfig`] against its documentation.
//!
//! Each test sets one setting to several values on a small device and checks an effect that only
//! this setting explains. Examples are the first victim of a crafted state, the size of a reclaim
//! unit, or the owner of pages after collection. A setting without effect, or a name with the
//! effect of another, fails here. The table in `names` checks that errors name the field.
//!
//! Other tests cover write amplification against theory (`theory.rs`), arbitrary combinations (the
//! property test) and TOML (the lab reads profiles).

mod collection;
#[path = "../common/mod.rs"]
mod common;
mod geometry;
mod handles;
mod names;
mod selection;

use std::collections::{BTreeMap, BTreeSet};

use base::table;
use common::*;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, MapAccessDeserializer, MapDeserializer};
use ssd::config::{
    Allocation, DeviceConfig, GcConfig, GcDestination, HandleOverride, HandlesConfig, Isolation, ReclaimUnitSize,
    SourcePolicy, UnitOpenPolicy, VictimRule, WatermarkBase,
};
use ssd::event::{CloseReason, Trigger};
use ssd::{
    Device, DeviceEvent, DeviceLayout, DeviceStats, EnduranceConfig, HostError, Lpn, Placement, RgId, RuId, RuhId,
    UnitOwner, WriteRequest,
};

/// Superblocks of [`Staged`] devices, and the closed reclaim units that hold their data.
const STAGED_SUPERBLOCKS: u64 = 16;
const STAGED_UNITS: u32 = 12;
/// Pages that [`Staged`] overwrites, which are three reclaim units.
const STAGED_OVERWRITES: u32 = 3 * UNIT_PAGES;

/// A device of 16 reclaim units just before the write that needs a victim.
struct Staged {
    device: Recorded,
    /// Reclaim units in the order of filling.
    units: Vec<RuId>,
}

impl Staged {
    /// Fills twelve reclaim units one after the other, the k-th with pages `256 k..256 (k + 1)`
    /// through `handle_of(k)`. Then overwrites `(k, pages)` pages of them in the given order, which
    /// fills three more reclaim units of `overwriting`. Only one unit is free then, so the next
    /// page needs a collection.
    fn new(
        config: &DeviceConfig,
        handle_of: impl Fn(u32) -> u16,
        overwrites: &[(u32, u32)],
        overwriting: u16,
    ) -> Staged {
        let total: u32 = overwrites.iter().map(|(_, pages)| pages).sum();
        assert_eq!(total, STAGED_OVERWRITES, "the overwrites fill three reclaim units");
        let mut device = recorded(config);
        for unit in 0..STAGED_UNITS {
            write(&mut device, unit * UNIT_PAGES, UNIT_PAGES, handle_of(unit));
        }
        let units = (0..STAGED_UNITS).map(|unit| unit_of(&device, unit * UNIT_PAGES)).collect();
        for (unit, pages) in overwrites {
            for page in 0..*pages {
                write(&mut device, unit * UNIT_PAGES + page, 1, overwriting);
            }
        }
        assert!(reclaims(&device).is_empty(), "nothing is reclaimed before it must be");
        Staged { device, units }
    }

    /// Writes one more page. Returns the victims of its collections, as indices into `units`.
    fn victims(&mut self, handle: u16) -> Vec<usize> {
        let before = reclaims(&self.device).len();
        write(&mut self.device, 0, 1, handle);
        let position = |unit: RuId| self.units.iter().position(|known| *known == unit);
        let reclaims = reclaims(&self.device);
        assert!(reclaims.len() > before, "the write needs a victim");
        prove(&self.device);
        let victim = |reclaim: &ssd::event::ReclaimRecord| position(reclaim.victim).unwrap_or(usize::MAX);
        reclaims[before..].iter().map(victim).collect()
    }
}

/// State in which the values of `victim_policy` choose different victims. Unit 8 has lost the most
/// pages. Unit 10 has lost pages last, unit 6 first. Unit 5 has lost many and was filled long ago.
/// Unit 3 has lost the most of the first four units with losses. Unit 1 was closed first of these.
/// Unit 0 was closed before it, but is fully valid.
const CONTESTED: [(u32, u32); 11] =
    [(6, 130), (1, 1), (2, 5), (3, 20), (4, 5), (7, 60), (9, 60), (11, 67), (5, 160), (8, 200), (10, 60)];

/// Write amplification of uniform overwrites through handle 0.
fn steady_amplification(config: &DeviceConfig) -> f64 {
    let mut device = silent(config);
    let pages = device.layout().logical_pages;
    write(&mut device, 0, pages, 0);
    let mut uniform = Uniform::new(11);
    overwrite_uniformly(&mut device, &mut uniform, (0, pages), 2 * u64::from(pages), 0);
    let before = device.stats().clone();
    overwrite_uniformly(&mut device, &mut uniform, (0, pages), 4 * u64::from(pages), 0);
    device.check().expect("every invariant holds");
    write_amplification_since(&before, device.stats())
}

/// Handles whose pages are valid in each reclaim unit, by owner of the unit.
fn handles_in_units(device: &Recorded, handles: &[u16]) -> BTreeMap<(UnitOwner, RuId), BTreeSet<u16>> {
    let mut found: BTreeMap<_, BTreeSet<u16>> = BTreeMap::new();
    for (page, handle) in handles.iter().enumerate() {
        let unit = unit_of(device, page as u32);
        found.entry((device.unit(unit).owner(), unit)).or_default().insert(*handle);
    }
    found
}

/// Override of one handle without any setting.
fn given(index: u16) -> HandleOverride {
    HandleOverride { index, isolation: None, reclaim_unit: None, open_reclaim_units: None }
}
