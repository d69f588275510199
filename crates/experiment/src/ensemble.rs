//! Ensembles: settings of a drive that explain its measurements nearly as well as its profile.
//!
//! ```toml
//! ensemble_residual = 0.05
//!
//! [[ensemble]]
//! loss = 12.3
//! settings = { "geometry.over_provisioning" = 0.19, "gc.victim_policy" = "cost_age" }
//! ```
//!
//! A profile is one point in the range of settings that the measurements allow. Its ensemble covers
//! the whole range. Settings that differ between members are undetermined by the measurements, so
//! predictions that differ are uncertain. `ensemble_residual` adds a second uncertainty, the error
//! that all members share where it is known. An experiment may have an ensemble too, for settings
//! that its paper leaves open. Its members also change the workload (`workload.PATH`, as with
//! `--set`). Calibration (`warp calibrate`) writes both kinds. This module runs no cell.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::change::SettingOverrides;
use crate::error::LabError;
use crate::find;

/// Keys of the ensemble in a profile or experiment.
pub(crate) const KEYS: [&str; 2] = ["ensemble_residual", "ensemble"];

/// Alternative settings that explain the same measurements. See the module.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Ensemble {
    /// Share, 0 to 1, that widens a range of write amplifications at both ends. It is the model
    /// error for any member.
    #[serde(rename = "ensemble_residual")]
    pub residual: f64,
    /// Members, at least one.
    #[serde(rename = "ensemble")]
    pub members: Vec<EnsembleMember>,
}

/// Settings that explain the measurements nearly as well as the profile's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EnsembleMember {
    /// Differences from the profile, by dotted path. Members of an experiment may also set
    /// `workload.` paths.
    pub settings: SettingOverrides,
    /// Twice the negative log-likelihood, up to a constant. Smaller is better.
    pub loss: f64,
}

impl Ensemble {
    /// Removes the two keys from the table of a file, if present, and reads them.
    pub(crate) fn take(file: &str, table: &mut toml::Table) -> Result<Option<Ensemble>, LabError> {
        let taken = KEYS.into_iter().filter_map(|key| Some((key.to_string(), table.remove(key)?)));
        let taken: toml::Table = taken.collect();
        let is_there = !taken.is_empty();
        is_there.then(|| Ensemble::read(file, taken)).transpose()
    }

    /// Reads the two keys of a profile or an experiment. `file` is its path.
    pub(crate) fn read(file: &str, table: toml::Table) -> Result<Ensemble, LabError> {
        let ensemble: Ensemble = find::deserialize(file, Value::Table(table))?;
        let invalid = |problem: String| Err(LabError::invalid(file, problem));
        if !(0.0..=1.0).contains(&ensemble.residual) {
            return invalid(format!(
                "ensemble_residual = {} is out of range. Give a share between 0 and 1",
                ensemble.residual
            ));
        }
        if ensemble.members.is_empty() {
            return invalid("ensemble is empty. Give at least one member, or leave it out".to_string());
        }
        match ensemble.members.iter().position(|member| !member.loss.is_finite()) {
            None => Ok(ensemble),
            Some(index) => invalid(format!("ensemble[{index}].loss must be a finite number")),
        }
    }

    /// Paths of all settings that members change, in order.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> =
            self.members.iter().flat_map(|member| member.settings.keys().map(String::as_str)).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

#[cfg(test)]
mod tests {
    use crate::find::TextFile;
    use crate::profile::Profile;

    /// Default device with these lines at the top level and at the end of its profile.
    fn profile(top: &str, end: &str) -> Result<Profile, String> {
        let text = Profile::text("warp_default").expect("it is built in");
        let found =
            TextFile { name: "mine".to_string(), file: "mine.toml".to_string(), text: format!("{top}\n{text}\n{end}") };
        Profile::parse(&found).map_err(|error| error.to_string())
    }

    fn refusal(top: &str, end: &str) -> String {
        profile(top, end).expect_err("it is none")
    }

    const RESIDUAL: &str = "ensemble_residual = 0.05";

    #[test]
    fn members_are_read_and_can_be_devices() {
        let member = |settings: &str| format!("[[ensemble]]\nloss = 1.5\nsettings = {{ {settings} }}\n");
        let end = member("\"geometry.over_provisioning\" = 0.2") + &member("\"gc.victim_policy\" = \"fifo\"");
        let profile = profile(RESIDUAL, &end).expect("it is a profile");
        let ensemble = profile.ensemble.as_ref().expect("it has one");
        assert_eq!((ensemble.residual, ensemble.members.len()), (0.05, 2));
        assert_eq!(ensemble.paths(), ["gc.victim_policy", "geometry.over_provisioning"]);
        let changed = profile.config(&ensemble.members[0].settings).expect("a device");
        assert_eq!(changed.geometry.over_provisioning, 0.2);
    }

    #[test]
    fn what_is_no_ensemble_is_refused_with_its_place() {
        let good = "[[ensemble]]\nloss = 1.5\nsettings = {}\n";
        for (top, end, expected) in [
            ("", good, "ensemble_residual is missing"),
            (RESIDUAL, "", "ensemble is missing"),
            ("ensemble_residual = 1.5", good, "ensemble_residual = 1.5 is out of range. Give a share"),
            ("ensemble_residual = 0.1\nensemble = []", "", "at least one member"),
            (RESIDUAL, "[[ensemble]]\nsettings = {}\n", "ensemble[0]: loss is missing"),
            (RESIDUAL, "[[ensemble]]\nloss = inf\nsettings = {}\n", "ensemble[0].loss"),
            (RESIDUAL, "[[ensemble]]\nloss = 1\nsettings = {}\nx = 1\n", "unknown field `x`"),
            (
                RESIDUAL,
                &format!("{good}[[ensemble]]\nloss = 1.5\nsettings = {{ \"gc.victim_policy\" = \"best\" }}\n"),
                "mine.toml, ensemble[1].settings: gc.victim_policy: ",
            ),
            (
                RESIDUAL,
                "[[ensemble]]\nloss = 1.5\nsettings = { \"geometry.over_provisioning\" = 7.0 }\n",
                "mine.toml, ensemble[0].settings: geometry.over_provisioning",
            ),
        ] {
            let problem = refusal(top, end);
            assert!(problem.starts_with("mine.toml"), "{problem}");
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
