//! What a workload touches, writes and asks for: a look at its requests before anything is run.
//!
//! A trace is read once, whole. Of anything else the first drive-writes on a small twin are looked at.

use ssd::Layout;
use workload::{Operation, Request, Source, Target, Twin, Workload as _};

use super::{Drive, Question};
use crate::error::LabError;
use crate::selection::divided;
use crate::twin;
use crate::workloads::WorkloadChanges;

/// Requests that are asked for at once.
const BATCH: usize = 4096;
/// Drive-writes of a twin that are looked at.
const LOOK_CAPACITIES: u64 = 2;
/// Requests that are looked at, at most, of a workload that hardly writes.
const REQUESTS_MAX: u64 = 8_000_000;
/// The largest drive that a trace can be laid out on: it holds any trace, and memory is taken for what is touched.
const ROOM_BYTES: u64 = (u32::MAX as u64 - 1) * 4096;
/// Seconds of a trace from which on its rate says something of a day.
const SECONDS_MIN: f64 = 60.0;

/// See the module. Bytes are those of the drive at full size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Survey {
    pub(super) is_trace: bool,
    /// Bytes of the drive that are read or written.
    pub(super) touched_bytes: u64,
    /// Bytes that a trace writes in one pass.
    pub(super) pass_bytes_written: u64,
    /// Seconds from a trace's first request to its last; 0 if it has no times.
    pub(super) seconds: f64,
    /// Volumes, processes and files of a trace.
    pub(super) volumes: u64,
    pub(super) processes: u64,
    pub(super) files: u64,
    /// Whether writes carry placement of their own.
    pub(super) asks: bool,
}

impl Survey {
    pub(super) fn of(question: &Question, table: &toml::Table, drive: &Drive) -> Result<Survey, LabError> {
        let (_, settings) = divided(&question.overrides);
        let is_trace = table.get("kind").and_then(toml::Value::as_str) == Some("trace");
        let changes = WorkloadChanges {
            settings,
            ..WorkloadChanges::default()
        };
        let spec = crate::workloads::read_workload(&question.workload, &changes)?;
        let target = if is_trace {
            any_trace(drive)
        } else {
            small_twin(question, drive)?
        };
        let mut source = spec.source(&target, question.seed)?;
        let mut seen = Seen::new(&target);
        let capacity = if is_trace {
            u64::MAX
        } else {
            LOOK_CAPACITIES * target.capacity_bytes()
        };
        let requests_max = if is_trace { u64::MAX } else { REQUESTS_MAX };
        let mut batch = Vec::with_capacity(BATCH);
        while seen.bytes_written < capacity && seen.requests < requests_max {
            batch.clear();
            if source.next_batch(&mut batch, BATCH)? == 0 {
                break;
            }
            batch.iter().for_each(|request| seen.add(request, !is_trace));
        }
        if seen.bytes_written == 0 {
            return Err(LabError::invalid(
                &question.workload,
                "writes nothing, so no placement matters to it",
            ));
        }
        Ok(if is_trace {
            seen.of_trace(&*source, &target)
        } else {
            seen.of_twin(&target)
        })
    }

    /// Bytes that a trace writes in a second, if it is long enough to say.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds >= SECONDS_MIN).then(|| self.pass_bytes_written as f64 / self.seconds)
    }

    /// Share of what a trace writes that overwrites what it has touched before, at most.
    pub(super) fn overwritten_share(&self) -> f64 {
        1.0 - self.touched_bytes as f64 / self.pass_bytes_written.max(self.touched_bytes) as f64
    }

    /// A trace that is too small for any drive.
    pub(super) fn too_small(&self, question: &Question) -> LabError {
        let problem = format!(
            "touches only {}, too little for a drive with reclaim units; use a longer trace",
            base::Bytes(self.touched_bytes)
        );
        LabError::invalid(&question.workload, problem)
    }
}

/// Room for a trace, whatever it touches.
fn any_trace(drive: &Drive) -> Target {
    Target {
        device_bytes: ROOM_BYTES,
        placement_count: u16::try_from(drive.handles).unwrap_or(u16::MAX),
        ..Target::default()
    }
}

/// The smallest twin that behaves like the drive.
fn small_twin(question: &Question, drive: &Drive) -> Result<Target, LabError> {
    let scale = twin::sizes(&question.device, &drive.config, None)?[0];
    let (_, layout): (_, Layout) = twin::twin(&question.device, &drive.config, scale)?;
    Ok(Target {
        device_bytes: drive.capacity_bytes,
        endless: true,
        placement_count: u16::try_from(drive.handles).unwrap_or(u16::MAX),
        twin: Some(Twin {
            denominator: u64::from(scale.0),
            device_bytes: layout.capacity_bytes(),
            mapping_unit_bytes: layout.page_bytes,
            keep_requests: false,
        }),
    })
}

/// What requests have touched.
struct Seen {
    unit_bytes: u64,
    touched: Vec<bool>,
    touched_units: u64,
    requests: u64,
    bytes_written: u64,
    asks: bool,
}

impl Seen {
    fn new(target: &Target) -> Seen {
        let units = target
            .twin
            .map_or(0, |twin| twin.device_bytes.div_ceil(target.unit_bytes()));
        Seen {
            unit_bytes: target.unit_bytes(),
            touched: vec![false; units as usize],
            touched_units: 0,
            requests: 0,
            bytes_written: 0,
            asks: false,
        }
    }

    fn add(&mut self, request: &Request, mark: bool) {
        self.requests += 1;
        if request.operation == Operation::Write {
            self.bytes_written += u64::from(request.bytes);
            self.asks |= request.placement.is_some();
        }
        if !mark || request.operation == Operation::Trim {
            return;
        }
        let last = (request.offset_bytes + u64::from(request.bytes)).saturating_sub(1) / self.unit_bytes;
        for unit in request.offset_bytes / self.unit_bytes..=last {
            if let Some(touched) = self.touched.get_mut(unit as usize) {
                self.touched_units += u64::from(!std::mem::replace(touched, true));
            }
        }
    }

    fn of_twin(&self, target: &Target) -> Survey {
        let denominator = target.twin.map_or(1, |twin| twin.denominator);
        Survey {
            is_trace: false,
            touched_bytes: self.touched_units * self.unit_bytes * denominator,
            pass_bytes_written: 0,
            seconds: 0.0,
            volumes: 1,
            processes: 1,
            files: 1,
            asks: self.asks,
        }
    }

    fn of_trace(&self, source: &dyn Source, target: &Target) -> Survey {
        let measures = source.measures();
        let value = |name: &str| {
            let found = measures.iter().find(|measure| measure.name == name);
            found.map_or(0.0, |measure| measure.value)
        };
        Survey {
            is_trace: true,
            touched_bytes: value("trace.touched_units") as u64 * target.unit_bytes(),
            pass_bytes_written: self.bytes_written,
            seconds: value("trace.seconds"),
            volumes: value("trace.volumes") as u64,
            processes: value("trace.processes") as u64,
            files: value("trace.files") as u64,
            asks: self.asks,
        }
    }
}
