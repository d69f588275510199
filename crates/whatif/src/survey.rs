//! Surveys a workload before the runs: the bytes that it touches and writes, and the placement it
//! requests.
//!
//! A trace is read completely, once. Other workloads are read for the first full drive writes of a
//! small scaled model.

use ssd::DeviceLayout;
use workload::{IoRequest, RequestOperation, RequestSource, ScaledModel, UnitSet, Workload as _, WorkloadTarget};

use super::{ModelledDrive, WhatIfQuestion};
use experiment::{LabError, RunChange, WorkloadChanges, scaled_model};

/// Requests per batch.
const BATCH: usize = 4096;
/// Length of the survey on a scaled model, full drive writes.
const SURVEY_CAPACITIES: u64 = 2;
/// Bound of the requests in a survey, for workloads that rarely write.
const REQUESTS_MAX: u64 = 8_000_000;
/// The largest drive that a trace can be laid out on. It fits any trace, because memory is
/// allocated only for touched units.
const TRACE_DRIVE_BYTES_MAX: u64 = (u32::MAX as u64 - 1) * 4096;
/// Length of a trace, in seconds, below which its rate is not extrapolated to a day.
const SECONDS_MIN: f64 = 60.0;

/// Result of a survey. Bytes are those of the drive at full scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Survey {
    /// Kind of the workload in words: "trace", "job file" or "workload".
    pub(super) what: &'static str,
    pub(super) is_trace: bool,
    /// Bytes of the drive that are read or written.
    pub(super) touched_bytes: u64,
    /// Bytes that a trace writes in one pass.
    pub(super) pass_bytes_written: u64,
    /// Bytes of `pass_bytes_written` that overwrite data written earlier in the same pass.
    pub(super) overwritten_bytes: u64,
    /// Seconds from a trace's first request to its last. 0 if it has no times.
    pub(super) seconds: f64,
    /// Volumes, processes and files of a trace. 0 for other workloads.
    pub(super) volumes: u64,
    pub(super) processes: u64,
    pub(super) files: u64,
    pub(super) has_directives: bool,
}

impl Survey {
    pub(super) fn new(question: &WhatIfQuestion, table: &toml::Table, drive: &ModelledDrive) -> Result<Self, LabError> {
        let settings = RunChange::from_settings(&question.overrides).settings;
        let what = match table.get("kind").and_then(toml::Value::as_str) {
            Some("trace") => "trace",
            Some("fio") => "job file",
            _ => "workload",
        };
        let is_trace = what == "trace";
        let changes = WorkloadChanges { settings, ..WorkloadChanges::default() };
        let spec = experiment::workloads::read_workload(&question.workload, &changes)?;
        let target = if is_trace { any_trace(drive) } else { small_model(question, drive)? };
        let mut source = spec.source(&target, question.seed)?;
        let mut totals = SurveyTotals::new(&target, is_trace);
        let capacity = if is_trace { u64::MAX } else { SURVEY_CAPACITIES * target.capacity_bytes() };
        let requests_max = if is_trace { u64::MAX } else { REQUESTS_MAX };
        let mut batch = Vec::with_capacity(BATCH);
        while totals.bytes_written < capacity && totals.requests < requests_max {
            batch.clear();
            if source.next_batch(&mut batch, BATCH)? == 0 {
                break;
            }
            batch.iter().for_each(|request| totals.add(request));
        }
        if totals.bytes_written == 0 {
            return Err(LabError::invalid(
                &question.workload,
                "the workload writes nothing, so placement has no effect",
            ));
        }
        Ok(if is_trace { totals.trace_survey(&*source, &target) } else { totals.scaled_survey(what, &target) })
    }

    /// Bytes that a trace writes per second. `None` if the trace is too short.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds >= SECONDS_MIN).then(|| self.pass_bytes_written as f64 / self.seconds)
    }

    /// Share of a trace's written bytes that are overwrites.
    pub(super) fn overwritten_share(&self) -> f64 {
        self.overwritten_bytes as f64 / self.pass_bytes_written as f64
    }

    /// The error for a trace that is too small for any drive.
    pub(super) fn too_small(&self, question: &WhatIfQuestion) -> LabError {
        let problem = format!(
            "the trace touches only {}, too little for a drive with reclaim units. Use a longer trace",
            base::HumanBytes(self.touched_bytes)
        );
        LabError::invalid(&question.workload, problem)
    }
}

/// A target that fits any trace.
fn any_trace(drive: &ModelledDrive) -> WorkloadTarget {
    WorkloadTarget {
        device_bytes: TRACE_DRIVE_BYTES_MAX,
        placement_count: u16::try_from(drive.handles).unwrap_or(u16::MAX),
        ..WorkloadTarget::default()
    }
}

/// The smallest scaled model that behaves like the drive.
fn small_model(question: &WhatIfQuestion, drive: &ModelledDrive) -> Result<WorkloadTarget, LabError> {
    let scale = scaled_model::sizes(&question.device, &drive.config, None)?[0];
    let (_, layout): (_, DeviceLayout) = scaled_model::scaled_config(&question.device, &drive.config, scale)?;
    Ok(WorkloadTarget {
        device_bytes: drive.capacity_bytes,
        endless: true,
        placement_count: u16::try_from(drive.handles).unwrap_or(u16::MAX),
        scaled_model: Some(ScaledModel {
            denominator: u64::from(scale.0),
            device_bytes: layout.capacity_bytes(),
            mapping_unit_bytes: layout.page_bytes,
            keep_requests: false,
        }),
    })
}

/// Running totals of the surveyed requests.
struct SurveyTotals {
    unit_bytes: u64,
    /// Touched units. `None` for a trace, which counts them itself.
    touched: Option<UnitSet>,
    written: UnitSet,
    requests: u64,
    bytes_written: u64,
    overwritten_bytes: u64,
    has_directives: bool,
}

impl SurveyTotals {
    fn new(target: &WorkloadTarget, is_trace: bool) -> SurveyTotals {
        SurveyTotals {
            unit_bytes: target.unit_bytes(),
            touched: (!is_trace).then(UnitSet::default),
            written: UnitSet::default(),
            requests: 0,
            bytes_written: 0,
            overwritten_bytes: 0,
            has_directives: false,
        }
    }

    fn add(&mut self, request: &IoRequest) {
        self.requests += 1;
        let end = request.offset_bytes + u64::from(request.bytes);
        let units = request.offset_bytes / self.unit_bytes..end.div_ceil(self.unit_bytes);
        if request.operation == RequestOperation::Write {
            self.bytes_written += u64::from(request.bytes);
            self.has_directives |= request.placement.is_some();
            for unit in units.clone() {
                let from = request.offset_bytes.max(unit * self.unit_bytes);
                let to = end.min((unit + 1) * self.unit_bytes);
                if !self.written.insert(unit) {
                    self.overwritten_bytes += to - from;
                }
            }
        }
        if let Some(touched) = self.touched.as_mut().filter(|_| request.operation != RequestOperation::Trim) {
            units.for_each(|unit| _ = touched.insert(unit));
        }
    }

    fn scaled_survey(&self, what: &'static str, target: &WorkloadTarget) -> Survey {
        let denominator = target.scaled_model.map_or(1, |scaled| scaled.denominator);
        Survey {
            what,
            touched_bytes: self.touched.as_ref().map_or(0, UnitSet::len) * self.unit_bytes * denominator,
            has_directives: self.has_directives,
            ..Survey::default()
        }
    }

    fn trace_survey(&self, source: &dyn RequestSource, target: &WorkloadTarget) -> Survey {
        let measures = source.measures();
        let value = |name: &str| {
            let found = measures.iter().find(|measure| measure.name == name);
            found.map_or(0.0, |measure| measure.value)
        };
        Survey {
            what: "trace",
            is_trace: true,
            touched_bytes: value("trace.touched_units") as u64 * target.unit_bytes(),
            pass_bytes_written: self.bytes_written,
            overwritten_bytes: self.overwritten_bytes,
            seconds: value("trace.seconds"),
            volumes: value("trace.volumes") as u64,
            processes: value("trace.processes") as u64,
            files: value("trace.files") as u64,
            has_directives: self.has_directives,
        }
    }
}
