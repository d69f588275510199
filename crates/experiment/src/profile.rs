//! Device profiles: TOML files in which every value names its source.
//!
//! ```toml
//! title = "SSD_A, an effective model"
//! [geometry]
//! capacity_bytes = { value = "7.68TB", source = "WARP, section 3.1" }
//! over_provisioning = { value = 0.21, source = "fitted to Table 2", fitted = true }
//! ```
//!
//! A calibrated profile may also have an [`Ensemble`].
//!
//! A profile is searched by path, in `./devices`, and among the built-in ones. Overrides by an
//! experiment or by `--set` are bare values at the same paths.

use std::collections::BTreeMap;

use rust_embed::RustEmbed;
use serde::Serialize;
use ssd::{DeviceConfig, DeviceLayout};
use toml::Value;

use crate::ensemble::{self, Ensemble};
use crate::error::LabError;
use crate::find::{self, TextFile};

pub use crate::change::SettingOverrides;

/// Sections that describe the device. Other sections describe the profile.
const DEVICE_TABLES: [&str; 6] = ["geometry", "handles", "gc", "seed", "timing", "endurance"];

/// Sections about the profile as a whole.
const OWN_KEYS: [&str; 2] = ["title", "notes"];

#[derive(RustEmbed)]
#[folder = "../../devices"]
struct BuiltInProfile;

#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Name of the file without extension.
    pub name: String,
    pub file: String,
    pub title: String,
    pub notes: String,
    /// Source of each value, by path.
    pub sources: BTreeMap<String, ValueSource>,
    /// Alternative settings that explain the fitted measurements.
    pub ensemble: Option<Ensemble>,
    /// Values without sources, the base of overrides.
    values: toml::Table,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueSource {
    /// The value in TOML.
    pub value: String,
    /// A publication with section, or the fitted data.
    pub source: String,
    pub fitted: bool,
}

impl Profile {
    /// Finds a profile by name or path.
    ///
    /// # Errors
    /// No such file exists, or it is not a profile. The error names file and field.
    pub fn find(name: &str) -> Result<Profile, LabError> {
        let found = find::find::<BuiltInProfile>("device", "devices", name, "toml")?;
        Profile::parse(&found)
    }

    /// Names of the profiles in `./devices` and built in.
    pub fn names() -> Vec<String> {
        find::names::<BuiltInProfile>("devices", "toml")
    }

    /// Reads a profile from text.
    pub fn parse(found: &TextFile) -> Result<Profile, LabError> {
        let invalid = |problem: String| LabError::invalid(&found.file, problem);
        let mut table: toml::Table =
            toml::from_str(&found.text).map_err(|error| invalid(find::toml_problem(&error)))?;
        let mut profile = Profile::empty(&found.name, &found.file);
        let ensemble = Ensemble::take(&found.file, &mut table)?;
        for (key, value) in table {
            match (key.as_str(), value) {
                ("title", Value::String(title)) => profile.title = title,
                ("notes", Value::String(notes)) => profile.notes = notes,
                (name, value) if DEVICE_TABLES.contains(&name) => {
                    let value = profile.take_sources(&key, value).map_err(invalid)?;
                    profile.values.insert(key, value);
                }
                (name, _) => return Err(invalid(find::unknown_key(name, known_keys()))),
            }
        }
        profile.config(&SettingOverrides::new())?;
        if let Some(ensemble) = &ensemble {
            profile.check_members(ensemble)?;
        }
        profile.ensemble = ensemble;
        Ok(profile)
    }

    /// Rejects ensemble members that are no devices.
    fn check_members(&self, ensemble: &Ensemble) -> Result<(), LabError> {
        for (index, member) in ensemble.members.iter().enumerate() {
            let place = format!("{}, ensemble[{index}].settings", self.file);
            let mut config = self.config_at(&place, &member.settings)?;
            // Timed members are checked with timing in their own run.
            config.timing = None;
            DeviceLayout::new(&config).map_err(|error| LabError::invalid(&place, error.to_string()))?;
        }
        Ok(())
    }

    /// Creates a profile from values without sources, such as [`Profile::values`]. Ignores sources.
    ///
    /// # Errors
    /// As [`Profile::find`]. `name` stands for the file.
    pub fn from_values(name: &str, table: toml::Table) -> Result<Profile, LabError> {
        let mut profile = Profile::empty(name, name);
        for (key, value) in table {
            match key.as_str() {
                key if OWN_KEYS.contains(&key) || ensemble::KEYS.contains(&key) => {}
                known if DEVICE_TABLES.contains(&known) => {
                    profile.values.insert(key, without_sources(value));
                }
                unknown => return Err(LabError::invalid(name, find::unknown_key(unknown, known_keys()))),
            }
        }
        profile.config(&SettingOverrides::new())?;
        Ok(profile)
    }

    pub fn text(name: &str) -> Result<String, LabError> {
        Ok(find::find::<BuiltInProfile>("device", "devices", name, "toml")?.text)
    }

    fn empty(name: &str, file: &str) -> Profile {
        Profile { name: name.to_string(), file: file.to_string(), ..Profile::default() }
    }

    /// Splits `{ value, source, fitted }` leaves into values and sources.
    fn take_sources(&mut self, path: &str, value: Value) -> Result<Value, String> {
        match value {
            Value::Table(mut leaf) if leaf.contains_key("value") => {
                let value = leaf.remove("value").expect("just seen");
                let source = match leaf.remove("source") {
                    Some(Value::String(source)) if !source.trim().is_empty() => source,
                    _ => {
                        return Err(format!(
                            "{path} has no source. Write {path} = {{ value = {value}, source = \"...\" }}"
                        ));
                    }
                };
                let fitted = match leaf.remove("fitted") {
                    None => false,
                    Some(Value::Boolean(fitted)) => fitted,
                    Some(other) => return Err(format!("{path}.fitted = {other} must be true or false")),
                };
                if let Some(key) = leaf.keys().next() {
                    return Err(format!("{path}: {}", find::unknown_key(key, ["value", "source", "fitted"])));
                }
                let entry = ValueSource { value: value.to_string(), source, fitted };
                self.sources.insert(path.to_string(), entry);
                Ok(value)
            }
            Value::Table(table) => {
                let entries = table.into_iter().map(|(key, value)| {
                    let value = self.take_sources(&format!("{path}.{key}"), value)?;
                    Ok((key, value))
                });
                entries.collect::<Result<toml::Table, String>>().map(Value::Table)
            }
            Value::Array(array) if array.iter().all(Value::is_table) => {
                let entries = array.into_iter().enumerate();
                let entries = entries.map(|(index, value)| self.take_sources(&format!("{path}[{index}]"), value));
                entries.collect::<Result<Vec<_>, String>>().map(Value::Array)
            }
            // The index selects the handle and needs no citation.
            value if path.ends_with("].index") => Ok(value),
            value => Err(format!("{path} = {value} has no source. Write {{ value = {value}, source = \"...\" }}")),
        }
    }

    pub fn values(&self) -> &toml::Table {
        &self.values
    }

    pub fn value(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.values.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    }

    /// Returns the device, with overrides. Rounds a reclaim unit to the nearest whole number of
    /// stripes.
    ///
    /// # Errors
    /// A field is unknown or a value has the wrong kind. The error names file (or override) and
    /// field.
    pub fn config(&self, overrides: &SettingOverrides) -> Result<DeviceConfig, LabError> {
        self.config_at(&self.file, overrides)
    }

    /// Like [`Profile::config`]. Messages name `place` instead of the file.
    pub(crate) fn config_at(&self, place: &str, overrides: &SettingOverrides) -> Result<DeviceConfig, LabError> {
        let changed = self.values_with(place, overrides)?;
        let mut config: DeviceConfig = base::read_value(Value::Table(changed)).map_err(|misfit| {
            match overrides.iter().find(|(set, _)| is_within(&misfit.path, set)) {
                Some((set, value)) if place == self.file => self.wrong_override(set, value, &misfit.problem),
                _ => LabError::invalid(place, misfit.message()),
            }
        })?;
        // Published sizes are round numbers. Those of a drive are whole stripes.
        let geometry = &mut config.geometry;
        geometry.reclaim_unit_bytes = geometry.nearest_reclaim_unit_bytes(geometry.reclaim_unit_bytes);
        Ok(config)
    }

    /// Returns the profile with other values, such as those of an ensemble member.
    pub(crate) fn changed(&self, overrides: &SettingOverrides) -> Result<Profile, LabError> {
        Ok(Profile { values: self.values_with(&self.file, overrides)?, ..self.clone() })
    }

    fn values_with(&self, place: &str, overrides: &SettingOverrides) -> Result<toml::Table, LabError> {
        let mut values = self.values.clone();
        for (path, value) in overrides {
            if let Some(other) = other_capacity(path) {
                find::remove(&mut values, other);
            }
            find::insert(&mut values, path, value.clone())
                .map_err(|problem| LabError::invalid(place, format!("override {path} = {value}: {problem}")))?;
        }
        Ok(values)
    }

    /// Error for an unknown setting or an impossible value, by its path, with the nearest known
    /// setting.
    fn wrong_override(&self, set: &str, value: &Value, problem: &str) -> LabError {
        let hint = match problem.starts_with("unknown field") {
            true if !problem.contains("did you mean") => self.nearest_setting(set),
            _ => String::new(),
        };
        LabError::invalid(&format!("{set} = {value}"), format!("{problem}{hint}"))
    }

    /// Hint for an unknown setting: a setting of that name in another table.
    fn nearest_setting(&self, set: &str) -> String {
        let Ok(config) = self.config(&SettingOverrides::new()) else {
            return String::new();
        };
        let mut known = Vec::new();
        let config = serde_json::to_value(config).expect("a device is JSON");
        paths_of(&config, "", &mut known);
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_string();
        let lasts: Vec<String> = known.iter().map(|path| last(path)).collect();
        let nearest = base::nearest(&last(set), lasts.iter().map(String::as_str));
        // A single word may be a workload setting. Typing errors are rare in the first letter.
        let nearest = nearest.filter(|name| set.contains('.') || name.chars().next() == set.chars().next());
        // A short word resembles the beginning of any long one.
        let nearest = nearest.filter(|name| name.len() <= 2 * last(set).len());
        let found = nearest.and_then(|nearest| lasts.iter().position(|name| name == nearest));
        found.map_or_else(
            || ". Settings of a workload begin with `workload.`".to_string(),
            |index| format!(". Did you mean {}?", known[index]),
        )
    }
}

/// Returns true if a path is a setting or lies within it.
fn is_within(path: &str, set: &str) -> bool {
    path.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn paths_of(value: &serde_json::Value, path: &str, paths: &mut Vec<String>) {
    let Some(table) = value.as_object() else {
        return paths.push(path.to_string());
    };
    for (key, value) in table {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        paths_of(value, &inner, paths);
    }
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    OWN_KEYS.into_iter().chain(ensemble::KEYS).chain(DEVICE_TABLES)
}

/// Replaces `{ value, source }` leaves by their values.
fn without_sources(value: Value) -> Value {
    match value {
        Value::Table(mut leaf) if leaf.contains_key("value") => leaf.remove("value").expect("just seen"),
        Value::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| (key, without_sources(value)));
            Value::Table(entries.collect())
        }
        Value::Array(array) => Value::Array(array.into_iter().map(without_sources).collect()),
        value => value,
    }
}

/// Capacity and flash size exclude each other. An override of one replaces the other.
fn other_capacity(path: &str) -> Option<&'static str> {
    match path {
        "geometry.capacity_bytes" => Some("geometry.physical_bytes"),
        "geometry.physical_bytes" => Some("geometry.capacity_bytes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 dies of 48 KiB make stripes of 3 MiB. No power of two is a multiple of 3 MiB.
    #[test]
    fn a_reclaim_unit_is_as_near_as_stripes_allow() {
        let profile = Profile::find("pm9d3a").expect("it is built in");
        for (wanted, found) in [
            ("16GiB", 5461 * (3 << 20)),
            ("8GiB", 2731 * (3 << 20)),
            ("6GiB", 6 << 30),
            ("4MiB", 3 << 20),
            ("2MiB", 2 << 20),
        ] {
            let overrides =
                SettingOverrides::from_iter([("geometry.reclaim_unit_bytes".to_string(), Value::from(wanted))]);
            let config = profile.config(&overrides).expect("it can be read");
            assert_eq!(config.geometry.reclaim_unit_bytes, found, "{wanted}");
        }
    }
}
