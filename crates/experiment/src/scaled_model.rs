//! Scaled models: small drives that behave like a large one.
//!
//! A model at scale 1/d has the same number of reclaim units, each with 1/d of the pages. Valid
//! shares, and thus write amplification, depend on that number and on the spread of the workload.
//! They hardly depend on the pages per unit above about a thousand.
//! `crates/simulate/tests/scaled_models.rs` limits the error to 2 %. The workload shrinks by the same
//! factor (see [`workload::fio`]). In virtual time, requests and flash operations keep their sizes.
//!
//! A search measures the smallest sufficient model (`run::search`). [`sizes`] returns its models,
//! each several times larger than the one before.

use base::HumanBytes;
use ssd::DeviceConfig;
use ssd::config::{HandlesConfig, MAPPING_UNIT_BYTES_MAX, RECLAIM_UNIT_BYTES_MAX};
use ssd::layout::DeviceLayout;

use crate::change::SettingOverrides;
use crate::error::LabError;

/// Path of the setting for the size of reclaim units.
const RECLAIM_UNIT_BYTES: &str = "geometry.reclaim_unit_bytes";

/// The denominator d of a scale 1/d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(pub u32);

impl Scale {
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

/// Origin of a saved device, stored in the note of the snapshot. A continued workload must shrink
/// by the same scale.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScaledOrigin {
    pub scale: Scale,
    pub device: DeviceConfig,
}

impl ScaledOrigin {
    pub fn to_note(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a device serializes")
    }

    /// Parses a note. `None` if [`ScaledOrigin::to_note`] did not write it.
    pub fn from_note(note: &[u8]) -> Option<ScaledOrigin> {
        serde_json::from_slice(note).ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleChoice {
    Fixed(Scale),
    /// Scale of the first model that agrees with the next smaller one.
    Auto {
        /// Largest allowed model. `None`: the largest whose page maps fit in half of the machine's
        /// memory.
        largest: Option<Scale>,
    },
}

impl ScaleChoice {
    pub const FULL: ScaleChoice = ScaleChoice::Fixed(Scale::FULL);
    /// The smallest reliable model.
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

/// Minimum pages of a model's reclaim units, above which write amplification hardly depends on
/// them.
pub const UNIT_PAGES_MIN: u64 = 1024;

/// Minimum ratio of the sizes of two compared models.
const STEP: u32 = 4;

/// Pages of the smallest reclaim units of a device.
pub fn unit_pages(layout: &DeviceLayout) -> u64 {
    let pages = layout.classes.iter().map(|class| u64::from(class.pages));
    pages.min().expect("a device has reclaim units of a size")
}

/// Scaled models of a search, at least one, smallest first. The first has reclaim units of
/// [`UNIT_PAGES_MIN`] pages or more. Each next one is at least [`STEP`] times larger, and the last
/// is the full-size drive. The search ends at `largest`. The default limit is half of the machine's
/// memory for page maps, which is the same in each run.
pub fn sizes(device: &str, config: &DeviceConfig, largest: Option<Scale>) -> Result<Vec<Scale>, LabError> {
    let (_, full) = scaled_config(device, config, Scale::FULL)?;
    let enough = |layout: &DeviceLayout| unit_pages(layout) >= UNIT_PAGES_MIN;
    // A divisor can still be impossible, because parts of a small block must hold the device's
    // reserves.
    let layout_of = |divisor: &u32| Some(scaled_config(device, config, Scale(*divisor)).ok()?.1).filter(enough);
    let divisors = (2..=full.block_pages).rev().filter(|d| full.block_pages.is_multiple_of(*d));
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
            "the smallest scaled model with reclaim units of {UNIT_PAGES_MIN} pages is {smallest}. Give \
             auto:{smallest}, or a fixed scale"
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

/// Returns the scaled model of a device.
///
/// # Errors
/// The device is impossible, or the scale does not divide its reclaim units. The error names a
/// valid scale.
pub fn scaled_config(
    device: &str,
    config: &DeviceConfig,
    scale: Scale,
) -> Result<(DeviceConfig, DeviceLayout), LabError> {
    let impossible = |error| LabError::Device { device: device.to_string(), error };
    let full = DeviceLayout::new(config).map_err(impossible)?;
    if scale == Scale::FULL {
        return Ok((config.clone(), full));
    }
    let divisor = u64::from(scale.0);
    let page_bytes = full.page_bytes;
    let block_bytes = u64::from(full.block_pages) * page_bytes;
    if block_bytes % divisor != 0 || (block_bytes / divisor) % page_bytes != 0 {
        let largest = (1..=full.block_pages).rev().find(|d| full.block_pages.is_multiple_of(*d) && *d <= scale.0);
        return Err(LabError::invalid(
            &format!("scale {scale} of {device}"),
            format!(
                "a block of {} pages cannot be divided by {}. The nearest possible scale is 1/{}",
                full.block_pages,
                scale.0,
                largest.unwrap_or(1)
            ),
        ));
    }
    let mut config = config.clone();
    let geometry = &mut config.geometry;
    geometry.reclaim_unit_bytes /= divisor;
    // Times belong to operations. Operations keep the drive's size while a block holds one. Erases
    // cover fewer pages and take less time, so both keep their share of the time.
    let program_divisor = if config.timing.is_some() { 1 } else { divisor };
    geometry.program_unit_bytes = geometry
        .program_unit_bytes
        .map(|bytes| scaled_program_unit(bytes / program_divisor, page_bytes, block_bytes / divisor));
    for window_bytes in windows(&mut config.handles) {
        *window_bytes = scaled_window(*window_bytes, *window_bytes / divisor, page_bytes);
    }
    if let Some(timing) = &mut config.timing {
        timing.nand.erase_ns /= divisor;
    }
    // Both sizes follow the full drive's page count, to keep the number of reclaim units.
    geometry.capacity_bytes = Some(u64::from(full.logical_pages) * page_bytes / divisor / page_bytes * page_bytes);
    geometry.physical_bytes = None;
    geometry.over_provisioning = full.effective_over_provisioning();
    let layout = DeviceLayout::new(&config).map_err(impossible)?;
    assert_eq!(layout.superblocks(), full.superblocks(), "a scaled model has as many reclaim units as the drive");
    Ok((config, layout))
}

#[derive(Clone, Debug)]
pub struct DriveOfCapacity {
    pub config: DeviceConfig,
    /// False if the reclaim units have the size that the user set.
    pub is_resized: bool,
    /// Number and size of its reclaim units, in a sentence.
    pub note: String,
}

/// Returns a drive like `config` with the capacity of `--capacity` or `--drive`. A size of reclaim
/// units in `settings` is kept if it fits the capacity. Otherwise [`resized`] chooses the size.
pub fn with_capacity(
    device: &str,
    config: &DeviceConfig,
    capacity_bytes: u64,
    settings: &SettingOverrides,
) -> Result<DriveOfCapacity, LabError> {
    let is_set = settings.contains_key(RECLAIM_UNIT_BYTES);
    let kept = || {
        let mut kept = config.clone();
        let page_bytes = kept.geometry.mapping_unit_bytes;
        kept.geometry.capacity_bytes = Some(capacity_bytes / page_bytes * page_bytes);
        kept.geometry.physical_bytes = None;
        DeviceLayout::new(&kept).is_ok().then_some(kept)
    };
    let kept = if is_set { kept() } else { None };
    let is_resized = kept.is_none();
    let sized = kept.map_or_else(|| resized(device, config, capacity_bytes), Ok)?;
    let layout = DeviceLayout::new(&sized).map_err(|error| LabError::Device { device: device.to_string(), error })?;
    let (own, geometry) = (&config.geometry, &sized.geometry);
    let (own_bytes, unit_bytes) = (HumanBytes(own.reclaim_unit_bytes), HumanBytes(geometry.reclaim_unit_bytes));
    let reason = match own.reclaim_unit_bytes == geometry.reclaim_unit_bytes {
        true => String::new(),
        false if is_set => format!(" instead of {own_bytes}, which do not fit"),
        false => format!(
            " instead of {own_bytes}, because a superblock spans all dies of the drive. Set another size with `--set \
             {RECLAIM_UNIT_BYTES}=SIZE`"
        ),
    };
    let mapping = match own.mapping_unit_bytes == geometry.mapping_unit_bytes {
        true => String::new(),
        false => format!(
            " Its mapping units have {} instead of {}. Drives of this size have larger ones to save memory.",
            HumanBytes(geometry.mapping_unit_bytes),
            HumanBytes(own.mapping_unit_bytes)
        ),
    };
    let capacity_bytes = layout.capacity_bytes();
    let capacity = match capacity_bytes >= 100_000_000_000 {
        true => format!("{:.3} TB", capacity_bytes as f64 / 1e12),
        false => HumanBytes(capacity_bytes).to_string(),
    };
    let units = layout.superblocks();
    let note = format!("A drive of {capacity} has {units} reclaim units of {unit_bytes}{reason}.{mapping}");
    Ok(DriveOfCapacity { config: sized, is_resized, note })
}

/// Returns a drive like `config` with another capacity. It has the same over-provisioning and
/// nearly the same number of reclaim units. Unlike a scaled model it may have any capacity. Results
/// are those of a similar drive, not of the same one.
///
/// A superblock is dies x planes x block. Drives of one series differ in the number of equal dies.
/// So the superblock size scales with the capacity and the number of superblocks stays. A Micron
/// 7450 of 800 GB has superblocks of 1 to 2 GiB by its measured curves. The rule gives 0.8 GiB from
/// the 8 GiB of ssd_a at 7.68 TB. Drives whose mapping units exceed 32-bit numbers get larger
/// mapping units, like real ones.
pub fn resized(device: &str, config: &DeviceConfig, capacity_bytes: u64) -> Result<DeviceConfig, LabError> {
    let impossible = |error| LabError::Device { device: device.to_string(), error };
    let mut config = config.clone();
    config.geometry.mapping_unit_bytes = mapping_unit_bytes(&config, capacity_bytes);
    let nand_page_bytes = config.timing.as_ref().map_or(MAPPING_UNIT_BYTES_MAX, |timing| timing.nand.page_bytes);
    let most_bytes =
        nand_page_bytes as f64 * f64::from(u32::MAX) / (1.0 + config.geometry.over_provisioning) / ROUNDING;
    if capacity_bytes as f64 > most_bytes {
        let problem = format!(
            "a drive like {device} has at most {}, because its mapping units are numbered with 32 bits. Give a \
             smaller capacity",
            HumanBytes(most_bytes as u64)
        );
        return Err(LabError::invalid(&format!("capacity of {}", HumanBytes(capacity_bytes)), problem));
    }
    let full = DeviceLayout::new(&config).map_err(impossible)?;
    let ratio = capacity_bytes as f64 / full.capacity_bytes() as f64;
    let geometry = &mut config.geometry;
    let program_ratio = if config.timing.is_some() { 1.0 } else { ratio };
    let blocks = geometry.reclaim_unit_bytes / (u64::from(full.block_pages) * full.page_bytes);
    let block_pages = divisible(((f64::from(full.block_pages) * ratio).round() as u64).max(1));
    let block_pages = block_pages.min(RECLAIM_UNIT_BYTES_MAX / full.page_bytes / blocks);
    let block_bytes = block_pages * full.page_bytes;
    geometry.reclaim_unit_bytes = block_bytes * blocks;
    geometry.program_unit_bytes = geometry
        .program_unit_bytes
        .map(|bytes| scaled_program_unit((bytes as f64 * program_ratio.min(1.0)) as u64, full.page_bytes, block_bytes));
    if let Some(timing) = &mut config.timing {
        // More dies do not slow an erase.
        timing.nand.erase_ns = (timing.nand.erase_ns as f64 * ratio.min(1.0)) as u64;
    }
    geometry.capacity_bytes = Some(capacity_bytes / full.page_bytes * full.page_bytes);
    geometry.physical_bytes = None;
    for window_bytes in windows(&mut config.handles) {
        let shrunk_bytes = (*window_bytes as f64 * ratio) as u64;
        *window_bytes = scaled_window(*window_bytes, shrunk_bytes, full.page_bytes);
    }
    DeviceLayout::new(&config).map_err(impossible)?;
    Ok(config)
}

/// Smallest mapping unit, at least that of `config`, for which 32-bit numbers suffice at this
/// capacity.
fn mapping_unit_bytes(config: &DeviceConfig, capacity_bytes: u64) -> u64 {
    let physical_bytes = capacity_bytes as f64 * (1.0 + config.geometry.over_provisioning) * ROUNDING;
    let mut unit_bytes = config.geometry.mapping_unit_bytes;
    while physical_bytes / unit_bytes as f64 >= f64::from(u32::MAX) && unit_bytes < MAPPING_UNIT_BYTES_MAX {
        unit_bytes *= 2;
    }
    unit_bytes
}

/// Margin for superblocks that are rounded up.
const ROUNDING: f64 = 1.05;

/// Rounds the pages of a block to five binary digits, which allows scaled models of the drive.
fn divisible(pages: u64) -> u64 {
    let shift = (pages.ilog2() + 1).saturating_sub(5);
    ((pages + (1 << shift >> 1)) >> shift) << shift
}

/// Windows of written bytes, which shrink with the drive.
fn windows(handles: &mut HandlesConfig) -> [&mut u64; 2] {
    [&mut handles.hot_window_bytes, &mut handles.write_absorption_bytes]
}

/// Scales a window of host bytes to a model: the same share of the drive, at least one page unless
/// it is 0.
fn scaled_window(bytes: u64, shrunk_bytes: u64, page_bytes: u64) -> u64 {
    let at_least = if bytes == 0 { 0 } else { page_bytes };
    shrunk_bytes.max(at_least)
}

/// Largest part of a block, in whole pages, up to the scaled program unit.
fn scaled_program_unit(bytes: u64, page_bytes: u64, block_bytes: u64) -> u64 {
    let most = (bytes / page_bytes).max(1);
    let pages = (1..=most).rev().find(|pages| (block_bytes / page_bytes).is_multiple_of(*pages));
    pages.unwrap_or(1) * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::SettingOverrides;
    use crate::profile::Profile;

    fn config(device: &str) -> DeviceConfig {
        let profile = Profile::find(device).expect("it is built in");
        profile.config(&SettingOverrides::new()).expect("it is right")
    }

    #[test]
    fn a_scale_is_given_or_searched_for() {
        for text in ["1/64", "1/1", "auto", "auto:1/16"] {
            let choice: ScaleChoice = text.parse().expect("a scale");
            assert_eq!(choice.to_string(), text);
            let json = serde_json::to_string(&choice).expect("it serializes");
            assert_eq!(serde_json::from_str::<ScaleChoice>(&json).expect("it comes back"), choice);
        }
        assert_eq!("64".parse(), Ok(ScaleChoice::Fixed(Scale(64))));
        for text in ["half", "automatic", "auto:", "auto:all", "1/0", ""] {
            let error = text.parse::<ScaleChoice>().expect_err("no scale");
            assert_eq!(error, format!("scale {text:?} is not of the form 1/64, auto or auto:1/4"));
        }
    }

    #[test]
    fn a_search_goes_from_small_scaled_models_to_the_drive() {
        for device in Profile::names() {
            let config = config(&device);
            let full = DeviceLayout::new(&config).expect("a drive");
            let scales = sizes(&device, &config, Some(Scale::FULL)).expect("scaled models");
            assert_eq!(scales.last(), Some(&Scale::FULL), "{device}");
            for pair in scales.windows(2) {
                assert!(pair[1] == Scale::FULL || pair[1].0 * STEP <= pair[0].0, "{device}: {scales:?}");
            }
            for &scale in &scales[..scales.len() - 1] {
                let (_, layout) = scaled_config(&device, &config, scale).expect("it is possible");
                assert!(unit_pages(&layout) >= UNIT_PAGES_MIN, "{device}: {scale}");
            }
            // No smaller model is valid.
            let smaller = Scale(scales[0].0 * 2);
            let smaller = scaled_config(&device, &config, smaller).map(|(_, layout)| unit_pages(&layout));
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
        let all: Vec<u32> = scales(Some(Scale::FULL)).expect("scaled models");
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(scales(Some(Scale(all[1]))).expect("scaled models"), all[..2]);
        assert_eq!(scales(Some(Scale(all[1] + 1))).expect("scaled models"), all[..1]);
        let most = scales(None).expect("scaled models");
        assert_eq!(most, all[..most.len()], "memory only ends it earlier");
        let error = scales(Some(Scale(2 * all[0]))).expect_err("no scaled model is so small").to_string();
        assert!(
            error.contains(&format!("the smallest scaled model with reclaim units of 1024 pages is 1/{}", all[0])),
            "{error}"
        );
    }

    #[test]
    fn windows_of_written_bytes_shrink_with_the_drive() {
        let mut full = config("ssd_b");
        full.handles.hot_window_bytes = 384 << 20;
        let capacity_bytes = full.geometry.capacity_bytes.expect("it is given");
        full.handles.write_absorption_bytes = 8192;
        let (small, _) = scaled_config("ssd_b", &full, Scale(64)).expect("it is possible");
        let similar = resized("ssd_b", &full, capacity_bytes / 64).expect("it is possible");
        assert_eq!(small.handles.hot_window_bytes, 6 << 20);
        assert_eq!(similar.handles.hot_window_bytes, 6 << 20);
        // Less than a page would be none.
        assert_eq!(small.handles.write_absorption_bytes, 4096);
        assert_eq!(similar.handles.write_absorption_bytes, 4096);
        full.handles.hot_window_bytes = 0;
        let without = resized("ssd_b", &full, capacity_bytes / 64).expect("it is possible");
        assert_eq!(without.handles.hot_window_bytes, 0);
    }

    #[test]
    fn reclaim_units_scale_with_the_capacity_unless_the_user_sets_their_size() {
        let drive = |settings: &[(&str, &str)]| {
            let set = |(path, value): &(&str, &str)| ((*path).to_string(), toml::Value::from(*value));
            let settings: SettingOverrides = settings.iter().map(set).collect();
            let own = Profile::find("warp_default").expect("it is built in").config(&settings).expect("it is right");
            let drive = with_capacity("warp_default", &own, 1 << 30, &settings).expect("it is possible");
            let layout = DeviceLayout::new(&drive.config).expect("it is possible");
            assert_eq!(layout.capacity_bytes(), 1 << 30);
            (drive.config.geometry.reclaim_unit_bytes, drive.is_resized, drive.note)
        };
        let (unit_bytes, is_resized, note) = drive(&[]);
        assert_eq!((unit_bytes, is_resized), (5 << 18, true));
        let said = "A drive of 1 GiB has 901 reclaim units of 1.25 MiB instead of 256 MiB, because a superblock";
        assert!(note.starts_with(said), "{note}");
        let (unit_bytes, is_resized, note) = drive(&[(RECLAIM_UNIT_BYTES, "8MiB")]);
        assert_eq!((unit_bytes, is_resized), (8 << 20, false));
        assert_eq!(note, "A drive of 1 GiB has 141 reclaim units of 8 MiB.");
        let (unit_bytes, is_resized, note) = drive(&[(RECLAIM_UNIT_BYTES, "1GiB")]);
        assert_eq!((unit_bytes, is_resized), (5 << 20, true));
        assert!(note.ends_with("reclaim units of 5 MiB instead of 1 GiB, which do not fit."), "{note}");
    }
}
