//! Answers how much the parity of an array costs a workload, and how much a placement of the parity
//! saves.
//!
//! Each row is a run on a variant of the array, and all have the same data drives. The first row has
//! no parity. The cost of a row is its total write amplification (bytes of flash / bytes of the
//! host) relative to that of the first.

use array::{ArrayLevel, ArraySettings};
use experiment::{
    Experiment, LabError, RunChange, RunOptions, RunOverrides, RunSet, Scale, ScaleChoice, SettingOverrides, Variant,
};
use report::rows::{self, CellValue, ReportTable};
use serde::Serialize;
use simulate::run::{self, ProgressObserver, RunPlan, RunResult};
use simulate::warning::WarningCommand;
use toml::Value;

use super::DRIVE_WRITES_MAX;

/// Scale of the drives, unless given. Small models distort the stripes, because chunks keep their
/// size.
const SCALE: Scale = Scale(64);

/// Name of the variant without parity.
const NO_PARITY: &str = "no parity";
const WITH_DATA: &str = "parity with data";
const OWN_HANDLE: &str = "parity on its own handle";
const LOG_STRUCTURED: &str = "log-structured";

/// A workload, a drive and an array of such drives.
#[derive(Clone, Debug)]
pub struct ArrayQuestion {
    pub workload: String,
    pub device: String,
    /// Settings of the array by path, as `experiment::change::parse_array` returns them.
    pub array: SettingOverrides,
    /// Settings of device and workload by path.
    pub overrides: SettingOverrides,
    pub scale: Option<Scale>,
    pub drive_writes: Option<f64>,
    pub seed: u64,
}

/// A variant of the array.
#[derive(Clone, Debug, Serialize)]
pub struct ArrayRow {
    pub name: String,
    /// Bytes that the drives received / bytes of the host.
    pub host_write_amplification: f64,
    /// Bytes of flash / bytes that the drives received.
    pub device_write_amplification: f64,
    /// Bytes of flash / bytes of the host, at the end of the run.
    pub total_write_amplification: f64,
    /// Total write amplification relative to that without parity.
    pub cost: f64,
    /// True if a warning casts doubt on the write amplification.
    pub is_doubtful: bool,
    /// Names of the warnings of the run.
    pub warnings: Vec<String>,
}

/// Answer to an [`ArrayQuestion`].
#[derive(Clone, Debug, Serialize)]
pub struct ArrayAnswer {
    pub headline: String,
    pub rows: Vec<ArrayRow>,
    pub notes: Vec<String>,
}

impl ArrayQuestion {
    /// Plans the runs. Returns them with a sentence for each variant that is impossible.
    ///
    /// # Errors
    /// The workload or device is unknown, the level has no parity, or no variant is possible.
    pub fn prepare(&self) -> Result<(Vec<RunPlan>, Vec<String>), LabError> {
        let mut experiment = Experiment::from_workload(&self.workload, &self.device);
        let own = self.settings()?;
        experiment.variants = self.variants(&own)?;
        experiment.run = RunOptions {
            timed: Some(false),
            drive_writes: Some(self.drive_writes.unwrap_or(DRIVE_WRITES_MAX)),
            steady_state: Some(self.drive_writes.is_none()),
            precondition_drive_writes: Some(1.0),
            seeds: Some(vec![self.seed]),
            scale: Some(ScaleChoice::Fixed(self.scale.unwrap_or(SCALE))),
            ..RunOptions::default()
        };
        let change = RunChange::from_settings(&self.overrides);
        let selection = RunOverrides { change, ..RunOverrides::default() };
        let RunSet { cells, .. } = experiment.select(&selection)?;
        let (plans, refused) = run::prepare_possible(cells)?;
        let notes = refused.into_iter().map(|cell| format!("There is no row {}. {}.", cell.key.variant, cell.error));
        Ok((plans, notes.collect()))
    }

    fn settings(&self) -> Result<ArraySettings, LabError> {
        let table = RunChange::from_settings(&self.array).array;
        let settings: ArraySettings = experiment::find::deserialize("array (--array)", Value::Table(table))?;
        settings.check().map_err(|problem| LabError::invalid("array (--array)", problem))?;
        if settings.parity_drives() == 0 {
            let problem = format!(
                "{} has no parity whose cost could be compared. Give raid5, raid6 or a code such as ec(8+3)",
                settings.level
            );
            return Err(LabError::invalid("array (--array)", problem));
        }
        Ok(settings)
    }

    fn variants(&self, own: &ArraySettings) -> Result<Vec<Variant>, LabError> {
        let variant = |name: &str, changes: &[(&str, Value)]| {
            let mut change = RunChange::from_settings(&self.array);
            change.array.extend(changes.iter().map(|(path, value)| ((*path).to_string(), value.clone())));
            Variant { name: name.to_string(), change }
        };
        let mut without = variant(NO_PARITY, &[("level", String::from(ArrayLevel::Raid0).into())]);
        let data = i64::from(own.drives - own.parity_drives());
        without.change.array.retain(|name, _| matches!(name, "level" | "drives" | "chunk" | "data_placement"));
        without.change.array.insert("drives".to_string(), data.into());
        if data == 1 {
            return Err(LabError::invalid("array (--array)", "one data drive makes no stripes. Give more drives"));
        }
        let in_place = |name: &str, placement: &str| {
            let mut variant = variant(name, &[("parity_placement", placement.into())]);
            if own.is_log_structured() {
                variant.change.array.retain(|name, _| !matches!(name, "write_policy" | "over_provisioning"));
            }
            variant
        };
        let log_structured = variant(LOG_STRUCTURED, &[("write_policy", "full_stripe".into())]);
        Ok(vec![without, in_place(WITH_DATA, "with_data"), in_place(OWN_HANDLE, "own_handle"), log_structured])
    }

    /// Settings that hold for one row only, because the rows compare their values.
    fn setting_notes(&self, own: &ArraySettings) -> impl Iterator<Item = String> {
        let placement = self.array.contains_key("array.parity_placement").then_some("parity_placement");
        let policy = own.is_log_structured().then_some("write_policy = full_stripe");
        let names = [policy, placement].into_iter().flatten();
        names.map(|name| format!("{name} holds only for the row {LOG_STRUCTURED}. The other rows compare its values."))
    }

    /// Runs the plans and answers the question.
    ///
    /// # Errors
    /// A run fails.
    pub fn answer(
        &self,
        (plans, mut notes): (Vec<RunPlan>, Vec<String>),
        watch: &dyn ProgressObserver,
    ) -> Result<Option<ArrayAnswer>, LabError> {
        let results = run::run_all(&plans, false, run::memory_available(), watch)?;
        if results.len() < plans.len() || results.iter().any(|result| !result.complete) {
            return Ok(None);
        }
        let settings = self.settings()?;
        notes.extend(self.setting_notes(&settings));
        let rows = ArrayQuestion::rows(&results);
        let is_doubtful = rows.iter().any(|row| row.is_doubtful);
        notes.extend(rows::warning_sentences(is_doubtful, &results, WarningCommand::WhatIf));
        let scale = plans[0].scale();
        notes.push(format!("The drives are models of {scale}, and chunks and requests keep their size (`--scale`)."));
        notes.push(
            "WAF at the end of the run: the last drive write, on an array that was filled before. The log-structured \
             layer has over-provisioning of its own, so its array holds less."
                .to_string(),
        );
        let headline = sentence(&settings, &plans[0].cell().workload_name, &rows);
        Ok(Some(ArrayAnswer { headline, rows, notes }))
    }

    fn rows(results: &[RunResult]) -> Vec<ArrayRow> {
        let measure = |result: &RunResult, name: &str| {
            let name = format!("array.{name}_write_amplification");
            let found = result.measures.iter().find(|measure| measure.name == name);
            found.expect("an array measures its write amplification").value
        };
        let base = measure(&results[0], "tail_total");
        let row = |result: &RunResult| {
            let doubts = result.warnings().into_iter().filter(|warning| warning.is_doubt(WarningCommand::WhatIf));
            let warnings: Vec<String> = doubts.map(|warning| warning.name().to_string()).collect();
            ArrayRow {
                name: result.key.variant.clone(),
                is_doubtful: !warnings.is_empty(),
                warnings,
                host_write_amplification: measure(result, "host"),
                device_write_amplification: measure(result, "device"),
                total_write_amplification: measure(result, "tail_total"),
                cost: measure(result, "tail_total") / base,
            }
        };
        results.iter().map(row).collect()
    }
}

fn sentence(settings: &ArraySettings, workload: &str, rows: &[ArrayRow]) -> String {
    let cost = |name: &str| rows.iter().find(|row| row.name == name).map(|row| format!("{:.1}x", row.cost));
    let of = |name: &str, phrase: &str| cost(name).map(|cost| format!("{phrase} {cost}"));
    let parts = [
        of(WITH_DATA, "parity costs"),
        of(OWN_HANDLE, "on a handle of its own"),
        of(LOG_STRUCTURED, "in a log-structured layer"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{workload} on {} of {} drives: {}.", settings.level, settings.drives, parts.join(", "))
}

impl ArrayAnswer {
    /// The rows as a table.
    pub fn table(&self) -> ReportTable {
        let rows = ReportTable::default().labels(["array"]);
        let mut rows = rows.numbers("", ["array WAF", "drive WAF", "total WAF at the end", "cost"]);
        for row in &self.rows {
            rows.add([
                CellValue::Text(row.name.clone()),
                CellValue::Amplification(row.host_write_amplification),
                CellValue::Amplification(row.device_write_amplification),
                CellValue::Amplification(row.total_write_amplification).mark_doubtful(row.is_doubtful),
                CellValue::Text(format!("{:.2}x", row.cost)),
            ]);
        }
        rows
    }
}
