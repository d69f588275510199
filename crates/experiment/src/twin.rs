//! Scaled twins: a smaller drive that behaves like a large one.
//!
//! A twin at scale 1/d has the same number of reclaim units, each of 1/d of the pages. Valid shares, and with them
//! write amplification, depend on the number of reclaim units and on how the workload spreads over them, hardly on the
//! pages in each (from about a thousand pages on; `crates/simulate/tests/twins.rs` holds the error below 2 %). The workload
//! is shrunk by the same factor (see [`workload::fio`]). In virtual time requests and flash operations keep their
//! sizes.
//!
//! Whether a twin is large enough for a workload is measured: [`sizes`] are the twins that a search goes through
//! (`run::search`), each several times as large as the one before.

use base::Bytes;
use ssd::DeviceConfig;
use ssd::config::{MAPPING_UNIT_BYTES_MAX, RECLAIM_UNIT_BYTES_MAX};
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

/// What a device that is saved was a twin of, so that a workload is shrunk for it again when it goes on. It stands in the
/// snapshot's note.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TwinOrigin {
    pub scale: Scale,
    /// The drive at full size.
    pub device: DeviceConfig,
}

impl TwinOrigin {
    /// A drive that is no twin.
    pub fn itself(device: DeviceConfig) -> TwinOrigin {
        TwinOrigin {
            scale: Scale::FULL,
            device,
        }
    }

    /// The note of a snapshot.
    pub fn note(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a device serializes")
    }

    /// What a note says; `None` if it is none of [`TwinOrigin::note`].
    pub fn of_note(note: &[u8]) -> Option<TwinOrigin> {
        serde_json::from_slice(note).ok()
    }
}

/// The scale that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleChoice {
    Fixed(Scale),
    /// That of the first twin that agrees with the next smaller one.
    Auto {
        /// The largest twin that may be run; `None`: the largest whose page maps fit half of the machine's memory.
        largest: Option<Scale>,
    },
}

impl ScaleChoice {
    /// The drive itself.
    pub const FULL: ScaleChoice = ScaleChoice::Fixed(Scale::FULL);
    /// The smallest twin that can be trusted.
    pub const AUTO: ScaleChoice = ScaleChoice::Auto { largest: None };
}

impl std::fmt::Display for ScaleChoice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScaleChoice::Fixed(scale) => write!(formatter, "{scale}"),
            ScaleChoice::Auto { largest: None } => formatter.write_str("auto"),
            ScaleChoice::Auto { largest: Some(scale) } => write!(formatter, "auto:{scale}"),
        }
    }
}

impl std::str::FromStr for ScaleChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ScaleChoice, String> {
        let scale = |scale: &str| {
            let scale = scale.parse::<Scale>();
            scale.map_err(|_| format!("scale {text:?} is not of the form 1/64, auto or auto:1/4"))
        };
        Ok(match text.trim().strip_prefix("auto") {
            None => ScaleChoice::Fixed(scale(text)?),
            Some("") => ScaleChoice::AUTO,
            Some(largest) => {
                let largest = scale(largest.strip_prefix(':').unwrap_or("none"))?;
                ScaleChoice::Auto { largest: Some(largest) }
            }
        })
    }
}

impl serde::Serialize for ScaleChoice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ScaleChoice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ScaleChoice, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Pages of a twin's reclaim units from which on its write amplification hardly depends on them.
pub const UNIT_PAGES_MIN: u64 = 1024;

/// How many times as large as the one before a twin is at least that is compared with it.
const STEP: u32 = 4;

/// Pages of the smallest reclaim units of a device.
pub fn unit_pages(layout: &Layout) -> u64 {
    let pages = layout.classes.iter().map(|class| u64::from(class.pages));
    pages.min().expect("a device has reclaim units of a size")
}

/// The twins that a search goes through, the smallest first: it has reclaim units of [`UNIT_PAGES_MIN`] pages or more,
/// each other one is the next that is [`STEP`] times as large or more, the last one is the drive itself. The search goes
/// as far as `largest`; if that is not said, as far as the page maps fit half of the machine's memory, which is the same
/// every time. It has one twin at least.
///
/// # Errors
/// The device is impossible.
pub fn sizes(device: &str, config: &DeviceConfig, largest: Option<Scale>) -> Result<Vec<Scale>, LabError> {
    let (_, full) = twin(device, config, Scale::FULL)?;
    let enough = |layout: &Layout| unit_pages(layout) >= UNIT_PAGES_MIN;
    // A divisor may still be refused: the parts of a small block must make room for what the device keeps free.
    let layout_of = |divisor: &u32| Some(twin(device, config, Scale(*divisor)).ok()?.1).filter(enough);
    let divisors = (2..=full.block_pages)
        .rev()
        .filter(|d| full.block_pages.is_multiple_of(*d));
    let mut sizes: Vec<(Scale, u64)> = Vec::new();
    for divisor in divisors {
        if sizes.last().is_some_and(|(before, _)| before.0 / STEP < divisor) {
            continue;
        }
        sizes.extend(layout_of(&divisor).map(|layout| (Scale(divisor), layout.memory_bytes())));
    }
    sizes.push((Scale::FULL, full.memory_bytes()));
    let smallest = sizes[0].0;
    if let Some(largest) = largest.filter(|largest| largest.0 > smallest.0) {
        let problem = format!(
            "the smallest twin with reclaim units of {UNIT_PAGES_MIN} pages is {smallest}; search up to it, or give a scale"
        );
        return Err(LabError::invalid(&format!("scale auto:{largest} of {device}"), problem));
    }
    let half_the_memory = base::memory_total_bytes().unwrap_or(16 << 30) / 2;
    let allowed = |(scale, bytes): &(Scale, u64)| match largest {
        Some(largest) => scale.0 >= largest.0,
        None => *bytes <= half_the_memory,
    };
    let count = sizes.iter().filter(|size| allowed(size)).count().max(1);
    Ok(sizes.into_iter().take(count).map(|(scale, _)| scale).collect())
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
    let window_bytes = config.handles.separation_bytes;
    config.handles.separation_bytes = twin_window(window_bytes, window_bytes / divisor, page_bytes);
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

/// A drive like `config` of another capacity: the same over-provisioning and, as nearly as possible, the same number of reclaim units. Unlike
/// a twin it may have any capacity; results are those of a similar drive, not of the same one.
///
/// A superblock is dies x planes x block. Drives of one series have the same dies, and more or fewer of them, so the size of a superblock goes
/// with the capacity and their number stays. A Micron 7450 of 800 GB has superblocks of 1 to 2 GiB by its measured curves; the rule gives 0.8 GiB from the 8 GiB of
/// ssd_a at 7.68 TB. Drives too large for 32-bit numbers of mapping units have larger mapping units, as those that are sold do.
///
/// # Errors
/// The device is impossible at that size.
pub fn resized(device: &str, config: &DeviceConfig, capacity_bytes: u64) -> Result<DeviceConfig, LabError> {
    let impossible = |error| LabError::Device {
        device: device.to_string(),
        error,
    };
    let mut config = config.clone();
    config.geometry.mapping_unit_bytes = mapping_unit_bytes(&config, capacity_bytes);
    let nand_page_bytes = config
        .timing
        .as_ref()
        .map_or(MAPPING_UNIT_BYTES_MAX, |timing| timing.nand.page_bytes);
    let most_bytes =
        nand_page_bytes as f64 * f64::from(u32::MAX) / (1.0 + config.geometry.over_provisioning) / ROUNDING;
    if capacity_bytes as f64 > most_bytes {
        let problem = format!(
            "is more than a drive like {device} can have, {}: its mapping units are numbered with 32 bits; give a smaller one",
            Bytes(most_bytes as u64)
        );
        return Err(LabError::invalid(
            &format!("capacity of {}", Bytes(capacity_bytes)),
            problem,
        ));
    }
    let full = Layout::new(&config).map_err(impossible)?;
    let ratio = capacity_bytes as f64 / full.capacity_bytes() as f64;
    let geometry = &mut config.geometry;
    let program_ratio = if config.timing.is_some() { 1.0 } else { ratio };
    let blocks = geometry.reclaim_unit_bytes / (u64::from(full.block_pages) * full.page_bytes);
    let block_pages = divisible(((f64::from(full.block_pages) * ratio).round() as u64).max(1));
    let block_pages = block_pages.min(RECLAIM_UNIT_BYTES_MAX / full.page_bytes / blocks);
    let block_bytes = block_pages * full.page_bytes;
    geometry.reclaim_unit_bytes = block_bytes * blocks;
    geometry.program_unit_bytes = geometry.program_unit_bytes.map(|bytes| {
        twin_program_unit(
            (bytes as f64 * program_ratio.min(1.0)) as u64,
            full.page_bytes,
            block_bytes,
        )
    });
    if let Some(timing) = &mut config.timing {
        // A drive of more dies erases no longer.
        timing.nand.erase_ns = (timing.nand.erase_ns as f64 * ratio.min(1.0)) as u64;
    }
    let window_bytes = config.handles.separation_bytes;
    config.handles.separation_bytes = twin_window(window_bytes, (window_bytes as f64 * ratio) as u64, full.page_bytes);
    geometry.capacity_bytes = Some(capacity_bytes / full.page_bytes * full.page_bytes);
    geometry.physical_bytes = None;
    Layout::new(&config).map_err(impossible)?;
    Ok(config)
}

/// The smallest mapping unit, not below that of `config`, with which a drive of another capacity can number its flash.
fn mapping_unit_bytes(config: &DeviceConfig, capacity_bytes: u64) -> u64 {
    let physical_bytes = capacity_bytes as f64 * (1.0 + config.geometry.over_provisioning) * ROUNDING;
    let mut unit_bytes = config.geometry.mapping_unit_bytes;
    while physical_bytes / unit_bytes as f64 >= f64::from(u32::MAX) && unit_bytes < MAPPING_UNIT_BYTES_MAX {
        unit_bytes *= 2;
    }
    unit_bytes
}

/// Room for superblocks that are rounded up.
const ROUNDING: f64 = 1.05;

/// Pages of a block to five binary digits, so that twins of the drive can be made.
fn divisible(pages: u64) -> u64 {
    let shift = (pages.ilog2() + 1).saturating_sub(5);
    ((pages + (1 << shift >> 1)) >> shift) << shift
}

/// A window of bytes that the host writes, on a twin: as large a part of the drive, but some of it.
fn twin_window(bytes: u64, shrunk_bytes: u64, page_bytes: u64) -> u64 {
    let at_least = if bytes == 0 { 0 } else { page_bytes };
    shrunk_bytes.max(at_least)
}

/// The largest part of a block, in whole pages, that is no larger than the shrunk program unit.
fn twin_program_unit(bytes: u64, page_bytes: u64, block_bytes: u64) -> u64 {
    let most = (bytes / page_bytes).max(1);
    let pages = (1..=most)
        .rev()
        .find(|pages| (block_bytes / page_bytes).is_multiple_of(*pages));
    pages.unwrap_or(1) * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Overrides;
    use crate::profile::Profile;

    fn config(device: &str) -> DeviceConfig {
        let profile = Profile::find(device).expect("it is built in");
        profile.config(&Overrides::new()).expect("it is right")
    }

    #[test]
    fn a_scale_is_given_or_searched_for() {
        for text in ["1/64", "1/1", "auto", "auto:1/16"] {
            let choice: ScaleChoice = text.parse().expect("a scale");
            assert_eq!(choice.to_string(), text);
            let json = serde_json::to_string(&choice).expect("it serializes");
            assert_eq!(
                serde_json::from_str::<ScaleChoice>(&json).expect("it comes back"),
                choice
            );
        }
        assert_eq!("64".parse(), Ok(ScaleChoice::Fixed(Scale(64))));
        for text in ["half", "automatic", "auto:", "auto:all", "1/0", ""] {
            let error = text.parse::<ScaleChoice>().expect_err("no scale");
            assert_eq!(
                error,
                format!("scale {text:?} is not of the form 1/64, auto or auto:1/4")
            );
        }
    }

    #[test]
    fn a_search_goes_from_small_twins_to_the_drive() {
        for device in Profile::names() {
            let config = config(&device);
            let full = Layout::new(&config).expect("a drive");
            let scales = sizes(&device, &config, Some(Scale::FULL)).expect("twins");
            assert_eq!(scales.last(), Some(&Scale::FULL), "{device}");
            for pair in scales.windows(2) {
                assert!(
                    pair[1] == Scale::FULL || pair[1].0 * STEP <= pair[0].0,
                    "{device}: {scales:?}"
                );
            }
            for &scale in &scales[..scales.len() - 1] {
                let (_, layout) = twin(&device, &config, scale).expect("it is possible");
                assert!(unit_pages(&layout) >= UNIT_PAGES_MIN, "{device}: {scale}");
            }
            // No smaller twin would do.
            let smaller = Scale(scales[0].0 * 2);
            let smaller = twin(&device, &config, smaller).map(|(_, layout)| unit_pages(&layout));
            assert!(
                smaller.is_err()
                    || smaller.is_ok_and(|pages| pages < UNIT_PAGES_MIN)
                    || scales[0].0 == full.block_pages,
                "{device}: {scales:?}"
            );
        }
    }

    #[test]
    fn a_search_goes_no_further_than_it_may() {
        let config = config("ssd_a");
        let scales =
            |largest| sizes("ssd_a", &config, largest).map(|scales| scales.iter().map(|scale| scale.0).collect());
        let all: Vec<u32> = scales(Some(Scale::FULL)).expect("twins");
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(scales(Some(Scale(all[1]))).expect("twins"), all[..2]);
        assert_eq!(scales(Some(Scale(all[1] + 1))).expect("twins"), all[..1]);
        let most = scales(None).expect("twins");
        assert_eq!(most, all[..most.len()], "memory only ends it earlier");
        let error = scales(Some(Scale(2 * all[0])))
            .expect_err("no twin is so small")
            .to_string();
        assert!(
            error.contains(&format!(
                "the smallest twin with reclaim units of 1024 pages is 1/{}",
                all[0]
            )),
            "{error}"
        );
    }

    #[test]
    fn a_window_of_separation_shrinks_with_the_drive() {
        let mut full = config("ssd_b");
        full.handles.separation_bytes = 384 << 20;
        let capacity_bytes = full.geometry.capacity_bytes.expect("it is given");
        let (small, _) = twin("ssd_b", &full, Scale(64)).expect("it is possible");
        let similar = resized("ssd_b", &full, capacity_bytes / 64).expect("it is possible");
        assert_eq!(small.handles.separation_bytes, 6 << 20);
        assert_eq!(similar.handles.separation_bytes, 6 << 20);
        full.handles.separation_bytes = 0;
        let without = resized("ssd_b", &full, capacity_bytes / 64).expect("it is possible");
        assert_eq!(without.handles.separation_bytes, 0);
    }
}
