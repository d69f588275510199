//! Exports of a session: a report, results, an experiment, a Python program, a trace.
//!
//! ```text
//! SessionEngine -> ExportData (owned, so that the engine continues) -> a file, on the thread of the request
//! ```
//!
//! Each export uses the same code as the command line, such as the report, the JSON of results and
//! the format of experiments. Unfinished runs are included with their results so far.

mod experiment;
mod trace;

use std::sync::Arc;

use ::experiment::LabError;
use analysis::export;
use analysis::interval::NO_INTERVALS;
use report::{PlotLibrary, Report};
use simulate::live::RecentActivity;
use simulate::run::RunResult;

use crate::lane::{LaneEvents, LaneFork};
use crate::series::LaneSeries;
use crate::session_spec::{LanePlan, SessionPlan, SessionSpec};

pub struct ExportData {
    /// Resolved order of the session.
    pub prepared: Arc<SessionPlan>,
    pub order: SessionSpec,
    pub lanes: Vec<ExportLane>,
}

pub struct ExportLane {
    pub plan: LanePlan,
    pub branch: Option<LaneFork>,
    /// Results so far, `None` for a waiting lane.
    pub result: Option<RunResult>,
    pub log: LaneEvents,
    pub series: LaneSeries,
    /// Recent work of dies and channels, in virtual time.
    pub activity: RecentActivity,
}

/// File name of an export, its media type, and the function that makes its text.
type ExportFormat = (&'static str, &'static str, fn(&ExportData) -> Result<String, LabError>);

pub const FORMATS: [ExportFormat; 5] = [
    ("report.html", "text/html; charset=utf-8", ExportData::report),
    ("result.json", "application/json", ExportData::results_json),
    ("experiment.toml", "application/toml; charset=utf-8", |data| Ok(experiment::text(data))),
    ("run.py", "text/x-python; charset=utf-8", |data| Ok(data.program())),
    ("trace.json", "application/json", |data| Ok(trace::text(data))),
];

impl ExportData {
    fn results(&self) -> Result<Vec<RunResult>, LabError> {
        let named = |lane: &ExportLane| {
            let mut result = lane.result.clone()?;
            result.key.variant.clone_from(&lane.plan.order.name);
            Some(result)
        };
        let results: Vec<RunResult> = self.lanes.iter().filter_map(named).collect();
        if results.is_empty() {
            return Err(LabError::invalid("export", "the session has no measurements yet. Let it run first"));
        }
        Ok(results)
    }

    fn tail_drive_writes(&self) -> f64 {
        self.lanes[0].plan.settings.tail_drive_writes
    }

    fn results_json(&self) -> Result<String, LabError> {
        let axes = self.prepared.experiment.axes();
        let json = export::to_json(&axes, self.tail_drive_writes(), &self.results()?, true);
        Ok(json.to_string())
    }

    /// Python program that runs the experiment. Python understands JSON's escapes. serde_json writes
    /// characters above 16 bits unescaped.
    fn program(&self) -> String {
        let toml = experiment::text(self);
        let quoted = |line| serde_json::to_string(line).expect("text is JSON");
        let lines: Vec<String> = toml.split_inclusive('\n').map(quoted).collect();
        format!(
            r#"# Made by `warp studio`. Runs the lanes of a session with the Python package (pip install warp-ssd).
# The integers of the results are the same.
import tomllib

import warp_ssd

EXPERIMENT = tomllib.loads(
    {}
)

result = warp_ssd.run(EXPERIMENT)
print(result.summary())
"#,
            lines.join("\n    ")
        )
    }

    fn report(&self) -> Result<String, LabError> {
        let experiment = &self.prepared.experiment;
        let report = Report {
            title: &experiment.title,
            front: None,
            refused: &[],
            command: simulate::warning::WarningCommand::Run,
            source: &experiment.source,
            notes: &experiment.notes,
            axes: &experiment.axes(),
            tail_drive_writes: self.tail_drive_writes(),
            results: &self.results()?,
            intervals: &NO_INTERVALS,
            comparisons: &[],
            verdicts: &[],
            regression: &[],
        };
        Ok(report.html(PlotLibrary::Embedded))
    }
}
