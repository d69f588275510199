//! Exports of a session: a report, results, an experiment, a Python program, a trace.
//!
//! ```text
//! SessionEngine -> ExportData (owned, so that the engine continues) -> a file, on the thread of the request
//! ```
//!
//! Each export uses the same code as the command line, such as the report, the JSON of results and
//! the format of experiments. Unfinished runs are included with their results so far.

mod experiment;
mod python;
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
    /// Fork of the lane, if it is one.
    pub branch: Option<LaneFork>,
    /// Results so far, `None` for a waiting lane.
    pub result: Option<RunResult>,
    pub log: LaneEvents,
    pub series: LaneSeries,
    /// Recent work of dies and channels, in virtual time.
    pub activity: RecentActivity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Page with tables and plots.
    Report,
    /// Results as JSON.
    Result,
    /// Experiment file.
    Experiment,
    /// Python program.
    Python,
    /// A trace for Perfetto.
    Trace,
}

impl ExportFormat {
    /// All forms.
    pub const ALL: [ExportFormat; 5] = [
        ExportFormat::Report,
        ExportFormat::Result,
        ExportFormat::Experiment,
        ExportFormat::Python,
        ExportFormat::Trace,
    ];

    /// File name of the form.
    pub fn file_name(self) -> &'static str {
        match self {
            ExportFormat::Report => "report.html",
            ExportFormat::Result => "result.json",
            ExportFormat::Experiment => "experiment.toml",
            ExportFormat::Python => "run.py",
            ExportFormat::Trace => "trace.json",
        }
    }

    /// Form with this file name.
    pub fn from_file_name(file_name: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.into_iter().find(|form| form.file_name() == file_name)
    }

    /// Media type of the form.
    pub fn content_type(self) -> &'static str {
        match self {
            ExportFormat::Report => "text/html; charset=utf-8",
            ExportFormat::Result | ExportFormat::Trace => "application/json",
            ExportFormat::Experiment => "application/toml; charset=utf-8",
            ExportFormat::Python => "text/x-python; charset=utf-8",
        }
    }
}

impl ExportData {
    /// Contents of the file of a form.
    ///
    /// # Errors
    /// No results exist yet, or a file of the report cannot be created.
    pub fn write(&self, form: ExportFormat) -> Result<Vec<u8>, LabError> {
        match form {
            ExportFormat::Report => self.report(),
            ExportFormat::Result => {
                let axes = self.axes();
                let json = export::to_json(&axes, self.tail_drive_writes(), &self.results()?, true);
                Ok(json.to_string().into_bytes())
            }
            ExportFormat::Experiment => Ok(experiment::text(self).into_bytes()),
            ExportFormat::Python => Ok(python::text(self).into_bytes()),
            ExportFormat::Trace => Ok(trace::text(self).into_bytes()),
        }
    }

    /// Results, each with the name of its lane.
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

    fn axes(&self) -> Vec<String> {
        self.prepared.experiment.axes()
    }

    fn tail_drive_writes(&self) -> f64 {
        self.lanes[0].plan.settings.tail_drive_writes
    }

    fn report(&self) -> Result<Vec<u8>, LabError> {
        let (results, axes) = (self.results()?, self.axes());
        let experiment = &self.prepared.experiment;
        let report = Report {
            title: self.prepared.title(),
            front: None,
            refused: &[],
            command: simulate::warning::WarningCommand::Run,
            source: &experiment.source,
            notes: &experiment.notes,
            axes: &axes,
            tail_drive_writes: self.tail_drive_writes(),
            results: &results,
            intervals: &NO_INTERVALS,
            comparisons: &[],
            verdicts: &[],
            regression: &[],
        };
        let folder = tempfile::tempdir().map_err(|source| LabError::output(&std::env::temp_dir(), source))?;
        let file = folder.path().join(ExportFormat::Report.file_name());
        report.write(PlotLibrary::Embedded, &file)?;
        std::fs::read(&file).map_err(|source| LabError::output(&file, source))
    }
}
