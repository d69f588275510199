//! Column families: the settings of a family and its defaults from the database.
//!
//! ```text
//! [workload] + [workload.families.NAME] -> complete settings of each family -> one tree each
//! ```
//!
//! A family inherits all settings that it omits. A database without families is one unnamed family.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workload::{WorkloadError, within};

use super::{Compaction, LsmPlacement, LsmSettings, Mix, RecordPopularity};

const MOST_FAMILIES: usize = 64;

/// Table `[workload.families.NAME]`: the family's share of data and operations, and its own values
/// of [`LsmSettings`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Family {
    /// Bytes of records, relative to other families. Default 1.
    pub data_share: f64,
    /// Operations after the load, relative to other families. Default 1. 0 means none.
    pub operation_share: f64,
    /// With `placement = "table"`, the placement indices of level 0, level 1 and so on. All deeper
    /// levels use the last one. If left out, the workload's indices apply.
    pub level_placements: Option<Vec<u16>>,
    pub mix: Option<Mix>,
    pub popularity: Option<RecordPopularity>,
    pub zipf_exponent: Option<f64>,
    pub key_bytes: Option<u32>,
    pub value_bytes: Option<u32>,
    pub compaction: Option<Compaction>,
    #[serde(with = "base::size")]
    pub memtable_bytes: Option<u64>,
    #[serde(with = "base::size")]
    pub table_bytes: Option<u64>,
    #[serde(with = "base::size")]
    pub base_level_bytes: Option<u64>,
    pub level_multiplier: Option<u64>,
    pub levels: Option<u32>,
    pub level_zero_tables: Option<u32>,
    pub dynamic_levels: Option<bool>,
    pub size_ratio_percent: Option<u64>,
    pub space_amplification_percent: Option<u64>,
}

impl Default for Family {
    fn default() -> Family {
        Family {
            data_share: 1.0,
            operation_share: 1.0,
            level_placements: None,
            mix: None,
            popularity: None,
            zipf_exponent: None,
            key_bytes: None,
            value_bytes: None,
            compaction: None,
            memtable_bytes: None,
            table_bytes: None,
            base_level_bytes: None,
            level_multiplier: None,
            levels: None,
            level_zero_tables: None,
            dynamic_levels: None,
            size_ratio_percent: None,
            space_amplification_percent: None,
        }
    }
}

impl Family {
    fn standalone_settings(&self, database: &LsmSettings) -> LsmSettings {
        LsmSettings {
            mix: self.mix.unwrap_or(database.mix),
            popularity: self.popularity.or(database.popularity),
            zipf_exponent: self.zipf_exponent.unwrap_or(database.zipf_exponent),
            key_bytes: self.key_bytes.unwrap_or(database.key_bytes),
            value_bytes: self.value_bytes.unwrap_or(database.value_bytes),
            compaction: self.compaction.unwrap_or(database.compaction),
            memtable_bytes: self.memtable_bytes.unwrap_or(database.memtable_bytes),
            table_bytes: self.table_bytes.unwrap_or(database.table_bytes),
            base_level_bytes: self.base_level_bytes.unwrap_or(database.base_level_bytes),
            level_multiplier: self.level_multiplier.unwrap_or(database.level_multiplier),
            levels: self.levels.unwrap_or(database.levels),
            level_zero_tables: self.level_zero_tables.unwrap_or(database.level_zero_tables),
            dynamic_levels: self.dynamic_levels.unwrap_or(database.dynamic_levels),
            size_ratio_percent: self.size_ratio_percent.unwrap_or(database.size_ratio_percent),
            space_amplification_percent: self
                .space_amplification_percent
                .unwrap_or(database.space_amplification_percent),
            families: BTreeMap::new(),
            ..database.clone()
        }
    }

    fn check(&self, place: &str, placement: LsmPlacement) -> Result<(), WorkloadError> {
        within(&format!("{place}data_share"), self.data_share, 1e-6..=1e6)?;
        within(&format!("{place}operation_share"), self.operation_share, 0.0..=1e6)?;
        let problem = match &self.level_placements {
            Some(levels) if levels.is_empty() => {
                "is empty. Give the placement index of level 0, of level 1, and so \
                                                  on"
            }
            Some(_) if placement != LsmPlacement::Table => "has no effect. Set placement = \"table\", or remove it",
            _ => return Ok(()),
        };
        Err(WorkloadError::setting(format!("{place}level_placements"), problem))
    }
}

/// A family with its complete settings.
pub(super) struct FamilyMember {
    /// Name of the family. `None` in a database without families.
    pub name: Option<String>,
    /// Prefix of the setting names in error messages.
    pub place: String,
    pub settings: LsmSettings,
    /// Fraction of all data.
    pub data_share: f64,
    /// Operations, relative to other families.
    pub operation_share: f64,
    /// Placement indices of its levels.
    pub level_placements: Vec<u16>,
}

impl LsmSettings {
    /// All families in the order of their names, or the whole database as one family.
    pub(super) fn members(&self) -> Vec<FamilyMember> {
        // All deeper levels use the last index, even if it is the log's.
        let of_levels = match &self.placement_table[..] {
            [_, levels @ ..] if !levels.is_empty() => levels,
            all => all,
        };
        if self.families.is_empty() {
            return vec![FamilyMember {
                name: None,
                place: String::new(),
                settings: self.clone(),
                data_share: 1.0,
                operation_share: 1.0,
                level_placements: of_levels.to_vec(),
            }];
        }
        let all_data: f64 = self.families.values().map(|family| family.data_share).sum();
        let families = self.families.iter();
        families
            .map(|(name, family)| FamilyMember {
                name: Some(name.clone()),
                place: format!("families.{name}."),
                settings: family.standalone_settings(self),
                data_share: family.data_share / all_data,
                operation_share: family.operation_share,
                level_placements: family.level_placements.clone().unwrap_or_else(|| of_levels.to_vec()),
            })
            .collect()
    }

    pub(super) fn check_families(&self) -> Result<(), WorkloadError> {
        within("the number of families", self.families.len(), 0..=MOST_FAMILIES)?;
        let needs = |setting: String, what: &str| {
            let problem = format!("has no effect without {what}. Define them as [workload.families.NAME]");
            Err(WorkloadError::setting(setting, problem))
        };
        if self.placement == LsmPlacement::Family && self.families.is_empty() {
            return needs("placement = \"family\"".to_string(), "families");
        }
        if self.families.len() < 2 && self.atomic_flush {
            return needs("atomic_flush = true".to_string(), "two families");
        }
        if self.families.len() < 2 && self.max_total_wal_bytes > 0 {
            let setting = format!("max_total_wal_bytes = {}", self.max_total_wal_bytes);
            return needs(setting, "two families");
        }
        if !self.wal && self.max_total_wal_bytes > 0 {
            let setting = format!("max_total_wal_bytes = {}", self.max_total_wal_bytes);
            return Err(WorkloadError::setting(setting, "has no effect with wal = false"));
        }
        for (name, family) in &self.families {
            family.check(&format!("families.{name}."), self.placement)?;
        }
        let has_operations = self.families.values().any(|family| family.operation_share > 0.0);
        if !self.families.is_empty() && !has_operations {
            let problem = "have no operations. Give one of them an operation_share above 0";
            return Err(WorkloadError::setting("families", problem));
        }
        Ok(())
    }
}
