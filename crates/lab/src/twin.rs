//! Scaled twins: a smaller drive that behaves like a large one.
//!
//! A twin at scale 1/d has the same number of reclaim units, each of 1/d of the pages. Valid shares, and with them
//! write amplification, depend on the number of reclaim units and on how the workload spreads over them, hardly on the
//! pages in each (from about a thousand pages on; `crates/lab/tests/twins.rs` holds the error below 2 %). The workload
//! is shrunk by the same factor (see [`workload::fio`]). In virtual time requests and flash operations keep their
//! sizes.

use ssd::DeviceConfig;
use ssd::layout::Layout;

use crate::error::LabError;

/// The denominator d of a scale 1/d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(pub u32);

impl Scale {
    /// The drive itself.
    pub const FULL: Scale = Scale(1);
}

impl std::fmt::Display for Scale {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "1/{}", self.0)
    }
}

impl std::str::FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let denominator = text.trim().strip_prefix("1/").unwrap_or(text.trim());
        match denominator.trim().parse() {
            Ok(denominator) if denominator >= 1 => Ok(Scale(denominator)),
            _ => Err(format!("scale {text:?} is not of the form 1/64")),
        }
    }
}

impl serde::Serialize for Scale {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Scale {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Scale, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The twin of a device.
///
/// # Errors
/// The device is impossible, or its reclaim units cannot be divided by the scale: says which scale works.
pub fn twin(device: &str, config: &DeviceConfig, scale: Scale) -> Result<(DeviceConfig, Layout), LabError> {
    let impossible = |error| LabError::Device {
        device: device.to_string(),
        error,
    };
    let full = Layout::new(config).map_err(impossible)?;
    if scale == Scale::FULL {
        return Ok((config.clone(), full));
    }
    let divisor = u64::from(scale.0);
    let page_bytes = full.page_bytes;
    let block_bytes = u64::from(full.block_pages) * page_bytes;
    if block_bytes % divisor != 0 || (block_bytes / divisor) % page_bytes != 0 {
        let largest = (1..=full.block_pages)
            .rev()
            .find(|d| full.block_pages.is_multiple_of(*d) && *d <= scale.0);
        return Err(LabError::invalid(
            &format!("scale {scale} of {device}"),
            format!(
                "a block of {} pages cannot be divided by {}; the nearest scale that works is 1/{}",
                full.block_pages,
                scale.0,
                largest.unwrap_or(1)
            ),
        ));
    }
    let mut config = config.clone();
    let geometry = &mut config.geometry;
    geometry.reclaim_unit_bytes /= divisor;
    // Times go with operations: those stay as large as the drive's where a block still holds one, and erasing fewer
    // pages takes less, so that both have the same share of the time.
    let program_divisor = if config.timing.is_some() { 1 } else { divisor };
    geometry.program_unit_bytes = geometry
        .program_unit_bytes
        .map(|bytes| twin_program_unit(bytes / program_divisor, page_bytes, block_bytes / divisor));
    config.handles.separation_bytes = twin_window(config.handles.separation_bytes, scale.0, page_bytes);
    if let Some(timing) = &mut config.timing {
        timing.nand.erase_ns /= divisor;
    }
    // Both sizes follow the pages that the full drive came to, so that the number of reclaim units is the same.
    geometry.capacity_bytes = Some(u64::from(full.logical_pages) * page_bytes / divisor / page_bytes * page_bytes);
    geometry.physical_bytes = None;
    geometry.over_provisioning = full.effective_over_provisioning();
    let layout = Layout::new(&config).map_err(impossible)?;
    assert_eq!(
        layout.superblocks(),
        full.superblocks(),
        "a twin has as many reclaim units as the drive"
    );
    Ok((config, layout))
}

/// A drive like `config` of about another capacity: the same over-provisioning and, if it is smaller, as nearly as
/// possible the same number of reclaim units. Unlike a twin it may have any capacity; unlike on a twin, results are
/// those of a similar drive, not of the same one.
///
/// # Errors
/// The device is impossible at that size.
pub fn resized(device: &str, config: &DeviceConfig, capacity_bytes: u64) -> Result<DeviceConfig, LabError> {
    let impossible = |error| LabError::Device {
        device: device.to_string(),
        error,
    };
    let full = Layout::new(config).map_err(impossible)?;
    let full_bytes = u64::from(full.logical_pages) * full.page_bytes;
    let mut config = config.clone();
    let geometry = &mut config.geometry;
    if capacity_bytes < full_bytes {
        let ratio = capacity_bytes as f64 / full_bytes as f64;
        let program_ratio = if config.timing.is_some() { 1.0 } else { ratio };
        let block_pages = ((f64::from(full.block_pages) * ratio).round() as u64).max(1);
        let block_bytes = block_pages * full.page_bytes;
        let blocks = geometry.reclaim_unit_bytes / (u64::from(full.block_pages) * full.page_bytes);
        geometry.reclaim_unit_bytes = block_bytes * blocks;
        geometry.program_unit_bytes = geometry
            .program_unit_bytes
            .map(|bytes| twin_program_unit((bytes as f64 * program_ratio) as u64, full.page_bytes, block_bytes));
        if let Some(timing) = &mut config.timing {
            timing.nand.erase_ns = (timing.nand.erase_ns as f64 * ratio) as u64;
        }
    }
    geometry.capacity_bytes = Some(capacity_bytes / full.page_bytes * full.page_bytes);
    geometry.physical_bytes = None;
    Layout::new(&config).map_err(impossible)?;
    Ok(config)
}

/// A window of bytes that the host writes, on a twin: as large a part of the drive, but some of it.
fn twin_window(bytes: u64, divisor: u32, page_bytes: u64) -> u64 {
    let at_least = if bytes == 0 { 0 } else { page_bytes };
    (bytes / u64::from(divisor)).max(at_least)
}

/// The largest part of a block, in whole pages, that is no larger than the shrunk program unit.
fn twin_program_unit(bytes: u64, page_bytes: u64, block_bytes: u64) -> u64 {
    let most = (bytes / page_bytes).max(1);
    let pages = (1..=most)
        .rev()
        .find(|pages| (block_bytes / page_bytes).is_multiple_of(*pages));
    pages.unwrap_or(1) * page_bytes
}
