//! Settings of an array, and the events of its drives.

use serde::{Deserialize, Serialize};

use crate::PAGE_BYTES;

/// Maximum drives of an array. A stripe's drives are bits of a 64-bit word.
const DRIVES_MAX: u16 = 64;

/// Arrangement of data over the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ArrayLevel {
    /// Striping without redundancy.
    Raid0,
    /// A copy on every drive.
    Raid1,
    /// Striping with one parity chunk in each stripe.
    Raid5,
    /// Striping with two parity chunks in each stripe.
    Raid6,
    /// Striping over pairs of mirrors.
    Raid10,
    /// Striping with a code of `data` data chunks and `parity` parity chunks in each stripe.
    Erasure { data: u16, parity: u16 },
}

impl TryFrom<String> for ArrayLevel {
    type Error = String;

    fn try_from(text: String) -> Result<ArrayLevel, String> {
        let code = || {
            let (data, parity) = text.strip_prefix("ec(")?.strip_suffix(')')?.split_once('+')?;
            Some(ArrayLevel::Erasure { data: data.trim().parse().ok()?, parity: parity.trim().parse().ok()? })
        };
        match text.as_str() {
            "raid0" => Ok(ArrayLevel::Raid0),
            "raid1" => Ok(ArrayLevel::Raid1),
            "raid5" => Ok(ArrayLevel::Raid5),
            "raid6" => Ok(ArrayLevel::Raid6),
            "raid10" => Ok(ArrayLevel::Raid10),
            _ => code().ok_or_else(|| {
                format!("level {text:?} is unknown. Use raid0, raid1, raid5, raid6, raid10, or a code such as ec(8+3)")
            }),
        }
    }
}

impl From<ArrayLevel> for String {
    fn from(level: ArrayLevel) -> String {
        match level {
            ArrayLevel::Raid0 => "raid0".to_string(),
            ArrayLevel::Raid1 => "raid1".to_string(),
            ArrayLevel::Raid5 => "raid5".to_string(),
            ArrayLevel::Raid6 => "raid6".to_string(),
            ArrayLevel::Raid10 => "raid10".to_string(),
            ArrayLevel::Erasure { data, parity } => format!("ec({data}+{parity})"),
        }
    }
}

impl std::fmt::Display for ArrayLevel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match String::from(*self).strip_prefix("raid") {
            Some(number) => write!(formatter, "RAID-{number}"),
            None => formatter.write_str(&String::from(*self)),
        }
    }
}

/// Calculation of new parity for a write of part of a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// Reads the old data and the old parity.
    ReadModifyWrite,
    /// Reads the rest of the stripe.
    Reconstruct,
    /// The policy with fewer reads, reconstruction if equal, as Linux md.
    #[default]
    Cheaper,
    /// Collects writes until a stripe is full, and never updates one. The array then collects
    /// garbage itself.
    FullStripe,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParityRotation {
    /// Another drive in each stripe, data after it, as the default of Linux md.
    #[default]
    LeftSymmetric,
    /// The last drives of the array in all stripes.
    Dedicated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParityPlacement {
    /// That of the data write which changes the parity.
    #[default]
    WithData,
    /// The last placement index of each drive. The workload has the others.
    OwnHandle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPlacement {
    /// That of the host's write.
    #[default]
    Kept,
    /// None. The layer loses the directives of the host.
    Dropped,
}

/// Extent of rebuilds and scrubs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResyncExtent {
    /// Pages that were written and not deallocated since.
    #[default]
    Live,
    /// The whole drive, as Linux md.
    All,
}

/// Event of the life of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayAction {
    /// A drive fails. With a spare drive left, its rebuild begins at once.
    Fail(u16),
    /// A new drive takes the place of a drive, and is rebuilt.
    Replace(u16),
    /// All drives are read once.
    Scrub,
}

/// An event and its moment, written as `fail 2 at 1.5`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArrayEvent {
    pub action: ArrayAction,
    /// Bytes that the workload has written, in multiples of the capacity of the array.
    pub at_drive_writes: f64,
}

impl TryFrom<String> for ArrayEvent {
    type Error = String;

    fn try_from(text: String) -> Result<ArrayEvent, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let drive = |word: &str| word.parse().ok();
        let parsed = match words[..] {
            ["fail", of, "at", at] => drive(of).map(ArrayAction::Fail).zip(at.parse().ok()),
            ["replace", of, "at", at] => drive(of).map(ArrayAction::Replace).zip(at.parse().ok()),
            ["scrub", "at", at] => Some(ArrayAction::Scrub).zip(at.parse().ok()),
            _ => None,
        };
        let event = parsed.filter(|(_, at): &(ArrayAction, f64)| (0.0..=1000.0).contains(at));
        event.map(|(action, at_drive_writes)| ArrayEvent { action, at_drive_writes }).ok_or_else(|| {
            format!(
                "event {text:?} is unknown. Use \"fail 2 at 1.5\", \"replace 2 at 2\" or \"scrub at 3\", with a drive \
                 from 0 and a moment in drive writes of the array"
            )
        })
    }
}

impl From<ArrayEvent> for String {
    fn from(event: ArrayEvent) -> String {
        let at = event.at_drive_writes;
        match event.action {
            ArrayAction::Fail(drive) => format!("fail {drive} at {at}"),
            ArrayAction::Replace(drive) => format!("replace {drive} at {at}"),
            ArrayAction::Scrub => format!("scrub at {at}"),
        }
    }
}

/// An array, as `[array]` of an experiment and `--array` describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySettings {
    pub level: ArrayLevel,
    /// Drives without spares.
    pub drives: u16,
    /// Consecutive bytes on a drive.
    #[serde(default = "default_chunk", with = "base::size")]
    pub chunk: u64,
    #[serde(default)]
    pub write_policy: WritePolicy,
    #[serde(default)]
    pub parity_rotation: ParityRotation,
    #[serde(default)]
    pub parity_placement: ParityPlacement,
    #[serde(default)]
    pub data_placement: DataPlacement,
    /// Consecutive writes of a stream reach a stripe together, as through the stripe cache of md.
    /// Runs in virtual time do not merge them.
    #[serde(default = "default_coalesce")]
    pub coalesce: bool,
    /// Over-provisioning of the log-structured layer, as a share of the array's capacity.
    pub over_provisioning: Option<f64>,
    /// Drives that wait for a failure.
    #[serde(default)]
    pub spares: u16,
    #[serde(default)]
    pub resync: ResyncExtent,
    /// Stripes of a rebuild or scrub in flight, in virtual time.
    #[serde(default = "default_resync_depth")]
    pub resync_depth: u32,
    #[serde(default)]
    pub events: Vec<ArrayEvent>,
}

fn default_chunk() -> u64 {
    128 << 10
}

fn default_coalesce() -> bool {
    true
}

fn default_resync_depth() -> u32 {
    8
}

/// Over-provisioning of the log-structured layer, unless given.
const OVER_PROVISIONING: f64 = 0.1;

impl ArraySettings {
    pub fn new(level: ArrayLevel, drives: u16) -> ArraySettings {
        ArraySettings {
            level,
            drives,
            chunk: default_chunk(),
            write_policy: WritePolicy::default(),
            parity_rotation: ParityRotation::default(),
            parity_placement: ParityPlacement::default(),
            data_placement: DataPlacement::default(),
            coalesce: default_coalesce(),
            over_provisioning: None,
            spares: 0,
            resync: ResyncExtent::default(),
            resync_depth: default_resync_depth(),
            events: Vec::new(),
        }
    }

    /// Returns true if the array never updates a stripe.
    pub fn is_log_structured(&self) -> bool {
        self.write_policy == WritePolicy::FullStripe
    }

    /// Data chunks, parity chunks and copies of a stripe.
    pub(crate) fn shape(&self) -> (u16, u16, u16) {
        let n = self.drives;
        match self.level {
            ArrayLevel::Raid0 => (n, 0, 1),
            ArrayLevel::Raid1 => (1, 0, n),
            ArrayLevel::Raid5 => (n.saturating_sub(1), 1, 1),
            ArrayLevel::Raid6 => (n.saturating_sub(2), 2, 1),
            ArrayLevel::Raid10 => (n / 2, 0, 2),
            ArrayLevel::Erasure { data, parity } => (data, parity, 1),
        }
    }

    /// Returns true if consecutive writes reach a stripe together.
    pub fn coalesces(&self) -> bool {
        self.coalesce && self.parity_drives() > 0 && !self.is_log_structured()
    }

    /// Parity chunks of a stripe.
    pub fn parity_drives(&self) -> u16 {
        self.shape().1
    }

    /// Over-provisioning of the layer above the stripes. 0 without one.
    pub(crate) fn layer_over_provisioning(&self) -> f64 {
        if self.is_log_structured() { self.over_provisioning.unwrap_or(OVER_PROVISIONING) } else { 0.0 }
    }

    /// Placement indices that the workload has, of those of each drive.
    ///
    /// # Errors
    /// Parity needs an index of its own and the drives have only one.
    pub fn workload_placements(&self, of_drive: u16) -> Result<u16, String> {
        match self.parity_placement {
            ParityPlacement::WithData => Ok(of_drive),
            ParityPlacement::OwnHandle if of_drive < 2 => {
                Err("parity_placement = \"own_handle\" needs drives with two placement handles. Use with_data, or a \
                 device with FDP"
                    .to_string())
            }
            ParityPlacement::OwnHandle => Ok(of_drive - 1),
        }
    }

    /// Refuses impossible arrays.
    ///
    /// # Errors
    /// A setting is out of range or does not fit another. The message names it and the remedy.
    pub fn check(&self) -> Result<(), String> {
        let (data, parity, copies) = self.shape();
        let least = match self.level {
            ArrayLevel::Raid0 | ArrayLevel::Raid1 | ArrayLevel::Raid10 => 2,
            ArrayLevel::Raid5 => 3,
            ArrayLevel::Raid6 => 4,
            ArrayLevel::Erasure { .. } if data < 2 || parity == 0 => {
                return Err(format!(
                    "a code of {data}+{parity} is out of range. Give 2 data chunks or more, and parity"
                ));
            }
            ArrayLevel::Erasure { .. } => data.saturating_add(parity),
        };
        let n = self.drives;
        if !(least..=DRIVES_MAX).contains(&n) {
            return Err(format!("drives = {n} is out of range. {} needs {least} to {DRIVES_MAX} drives", self.level));
        }
        if n != data * copies + parity {
            let problem = if self.level == ArrayLevel::Raid10 { "an even number" } else { "as many as its chunks" };
            return Err(format!("drives = {n} does not fit {}. Give {problem}", self.level));
        }
        if !self.chunk.is_multiple_of(PAGE_BYTES) || !(PAGE_BYTES..=1 << 30).contains(&self.chunk) {
            return Err(format!("chunk = {} is out of range. Give a multiple of 4KiB, at most 1GiB", self.chunk));
        }
        if parity == 0 {
            let given = [
                ("write_policy", self.write_policy != WritePolicy::default()),
                ("parity_rotation", self.parity_rotation != ParityRotation::default()),
                ("parity_placement", self.parity_placement != ParityPlacement::default()),
                ("coalesce", self.coalesce != default_coalesce()),
            ];
            if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                return Err(format!("{name} has no effect, because {} has no parity. Leave it out", self.level));
            }
        }
        match self.over_provisioning {
            Some(_) if !self.is_log_structured() => {
                return Err(
                    "over_provisioning has no effect without write_policy = \"full_stripe\". Leave it out, or \
                            set geometry.over_provisioning for the drives"
                        .to_string(),
                );
            }
            Some(share) if !(share > 0.0 && share <= 10.0) => {
                return Err(format!("over_provisioning = {share} is out of range. Give a share above 0, such as 0.1"));
            }
            _ => {}
        }
        if self.resync_depth == 0 || self.resync_depth > 1024 {
            return Err(format!("resync_depth = {} is out of range. Give 1 to 1024", self.resync_depth));
        }
        self.check_events(parity, copies)
    }

    /// Refuses events in the wrong order, of unknown drives, and those that lose data.
    fn check_events(&self, parity: u16, copies: u16) -> Result<(), String> {
        let mut failed: Vec<u16> = Vec::new();
        let mut spares = self.spares;
        let mut before = 0.0;
        for event in &self.events {
            let name = String::from(*event);
            if event.at_drive_writes < before {
                return Err(format!("event \"{name}\" comes before the one listed before it. Sort the events"));
            }
            before = event.at_drive_writes;
            let (ArrayAction::Fail(drive) | ArrayAction::Replace(drive)) = event.action else { continue };
            if drive >= self.drives {
                return Err(format!("event \"{name}\" names drive {drive} of {}. Drives count from 0", self.drives));
            }
            let is_failed = failed.contains(&drive);
            if is_failed && matches!(event.action, ArrayAction::Fail(_)) {
                return Err(format!("event \"{name}\" names a drive that has failed before. Replace it first"));
            }
            if !is_failed {
                failed.push(drive);
            }
            let lost = match copies {
                1 => failed.len() > usize::from(parity),
                _ => {
                    let group = |drive: &u16| *drive / copies;
                    failed.iter().filter(|other| group(other) == group(&drive)).count() == usize::from(copies)
                }
            };
            if lost {
                return Err(format!("event \"{name}\" loses data, because {} survives fewer failures", self.level));
            }
            let is_rebuilt = match event.action {
                ArrayAction::Fail(_) if spares > 0 => {
                    spares -= 1;
                    true
                }
                ArrayAction::Fail(_) | ArrayAction::Scrub => false,
                ArrayAction::Replace(_) => true,
            };
            if is_rebuilt {
                failed.retain(|other| *other != drive);
            }
        }
        if self.spares > 0 && !self.events.iter().any(|event| matches!(event.action, ArrayAction::Fail(_))) {
            return Err("spares has no effect without an event such as \"fail 0 at 1\". Leave it out".to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut ArraySettings)) -> String {
        let mut settings = ArraySettings::new(ArrayLevel::Raid5, 4);
        settings.check().expect("it is possible");
        change(&mut settings);
        settings.check().expect_err("it is impossible")
    }

    fn event(text: &str) -> ArrayEvent {
        ArrayEvent::try_from(text.to_string()).expect("an event")
    }

    #[test]
    fn impossible_arrays_are_refused_in_a_sentence() {
        let cases = [
            (refusal(|array| array.drives = 2), "RAID-5 needs 3 to 64 drives"),
            (refusal(|array| array.level = ArrayLevel::Erasure { data: 3, parity: 2 }), "needs 5 to 64 drives"),
            (refusal(|array| (array.level, array.drives) = (ArrayLevel::Raid10, 5)), "Give an even number"),
            (refusal(|array| array.chunk = 1000), "a multiple of 4KiB"),
            (refusal(|array| array.over_provisioning = Some(0.1)), "full_stripe"),
            (refusal(|array| array.spares = 1), "spares has no effect"),
            (refusal(|array| array.resync_depth = 0), "Give 1 to 1024"),
            (refusal(|array| array.events = vec![event("fail 0 at 1"), event("fail 1 at 2")]), "loses data"),
            (refusal(|array| array.events = vec![event("fail 4 at 1")]), "Drives count from 0"),
            (refusal(|array| array.events = vec![event("scrub at 2"), event("scrub at 1")]), "Sort the events"),
        ];
        for (problem, part) in cases {
            assert!(problem.contains(part), "{problem}");
        }
        let mut mirror = ArraySettings::new(ArrayLevel::Raid1, 2);
        mirror.write_policy = WritePolicy::Reconstruct;
        assert!(mirror.check().expect_err("no parity").contains("write_policy has no effect"));
    }

    #[test]
    fn a_spare_or_a_replacement_lets_the_next_drive_fail() {
        let mut settings = ArraySettings::new(ArrayLevel::Raid5, 4);
        settings.spares = 1;
        settings.events = ["fail 0 at 1", "fail 1 at 2", "replace 1 at 3", "fail 0 at 4"].map(event).to_vec();
        settings.check().expect("at most one drive is missing");
        settings.spares = 0;
        assert!(settings.check().expect_err("no spare").contains("\"fail 1 at 2\" loses data"));
    }

    #[test]
    fn levels_and_events_are_written_as_they_are_read() {
        for level in ["raid0", "raid1", "raid5", "raid6", "raid10", "ec(8+3)"] {
            assert_eq!(String::from(ArrayLevel::try_from(level.to_string()).expect(level)), level);
        }
        for text in ["fail 2 at 1.5", "replace 0 at 2", "scrub at 3"] {
            assert_eq!(String::from(event(text)), text);
        }
        for text in ["fail at 1", "fail 2", "scrub 1 at 2", "fail 2 at -1", "fail 2 at NaN"] {
            assert!(ArrayEvent::try_from(text.to_string()).expect_err(text).contains("fail 2 at 1.5"));
        }
    }
}
