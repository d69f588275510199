//! `warp run --target`: sends the requests of a workload to a served drive and reads its FDP
//! statistics.
//!
//! ```text
//! workload -> requests, as for a model -> initiator::drive -> the drive (NVMe/TCP, or this machine's kernel)
//! FDP statistics before and after, bytes sent by placement -> table, JSON
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use analysis::export::JSON_VERSION;
use analysis::store::RunProvenance;
use experiment::{Experiment, RunChange, RunOptions, RunOverrides, RunSpec};
use initiator::drive::{DataPort, DriveOperation, DriveRequest, OpenNamespace, WearReading};
use report::rows::{CellValue, ReportTable, TextFormat};
use serde_json::json;
use simulate::run::RunProgress;
use workload::{IoRequest, RequestOperation, RequestSource, Workload as _};

use crate::arguments::{RunArgs, typed_line};
use crate::run::refuse_logs;
use crate::target::{named, open_for_writing};
use crate::{AnyError, ExitOutcome, bad_option, execute, print, results};

const BATCH_REQUESTS: usize = 256;
/// Steps of the progress bar.
const STEPS: f64 = 1000.0;

struct DriveMeasurement {
    complete: bool,
    seconds: f64,
    capacity_bytes: u64,
    /// Increase of the drive's counters during the run, in bytes (host, media, erased).
    counted: [u128; 3],
    /// Bytes sent to each reclaim unit handle.
    sent: BTreeMap<u16, u64>,
}

impl DriveMeasurement {
    fn waf(&self) -> Option<f64> {
        let [host, media, _] = self.counted;
        (host > 0).then(|| media as f64 / host as f64)
    }
}

pub fn run(command: &RunArgs) -> Result<ExitOutcome, AnyError> {
    let on = command.remote.drive.as_deref().expect("the caller checked --target");
    let name = command.target.as_deref();
    let name = name.ok_or_else(|| {
        bad_option("--target", "the workload is missing. Name a job file, a workload or a block trace before --target")
    })?;
    let cell = cell(command, name)?;
    refuse_logs(&cell, "a run with --target records no values over time".to_string())?;
    let mut drive = open_for_writing("--target", on, &command.remote.host, command.remote.overwrite)?;
    drive.placement().map_err(|error| named(on, &error))?;
    let target = workload::WorkloadTarget {
        device_bytes: drive.bytes(),
        placement_count: drive.handles().len() as u16,
        endless: cell.run.drive_writes.is_some(),
        scaled_model: None,
    };
    let source = cell.workload.source(&target, cell.seed)?;
    if !target.endless && source.share_done().is_none() {
        return Err(bad_option(name, "the workload never ends. Limit it with --drive-writes").into());
    }
    let progress = execute::stoppable();
    let limit = cell.run.drive_writes.map(|drive_writes| (drive_writes * target.device_bytes as f64) as u64);
    let measured = execute::with_bar(&progress, 1, || {
        measure(&mut drive, source, limit, &progress).map_err(|error| error.to_string())
    });
    let measured = measured.map_err(|error| format!("{name} on {on}: {error}"))?;
    let json = as_json(name, on, cell.seed, &measured);
    let origin = RunProvenance {
        target: name,
        title: on,
        options: typed_line(command.selection.command_line()),
        seconds: measured.seconds,
        cells: vec![&cell],
    };
    let stored_id = results::save_run(&command.keep, &origin, &json);
    let stored = stored_id.map_or_else(String::new, |id| format!("stored as {id} (warp results list)\n"));
    print(&if command.output.is_json() {
        format!("{json}\n")
    } else {
        let format = command.output.tables();
        as_text(name, on, &measured, format) + &format.words(&stored)
    });
    Ok(if measured.complete { ExitOutcome::Done } else { ExitOutcome::Stopped })
}

/// Cell of the workload with its changes. The cell's device model is unused.
fn cell(command: &RunArgs, name: &str) -> Result<RunSpec, AnyError> {
    let settings = &command.selection.set;
    if let Some((path, _)) = settings.iter().find(|(path, _)| !path.starts_with("workload.")) {
        let problem = format!(
            "{path} cannot be changed, because --target runs on an existing drive. Set only \
                               workload.PATH"
        );
        return Err(bad_option("--set", problem).into());
    }
    let experiment = Experiment::find_or_workload(name, Some("warp_default"))?;
    let selection = RunOverrides {
        change: RunChange::from_settings(&command.columns.overrides(name, settings)?),
        run: RunOptions { timed: Some(false), ..command.selection.run.clone() },
        ..command.selection.selection()
    };
    let mut cells = experiment.select(&selection)?.cells;
    match cells.len() {
        1 if cells[0].run.steady_state => {
            let problem = "`steadystate` is not supported with --target. Remove it and give --drive-writes";
            Err(bad_option(name, problem).into())
        }
        1 => Ok(cells.remove(0)),
        runs => Err(bad_option(
            "--target",
            format!("{name} has {runs} runs, but --target takes one. Name a job file, a workload or a block trace"),
        )
        .into()),
    }
}

/// Sends the requests until the workload ends, the limit is reached or Ctrl-C is pressed.
fn measure(
    drive: &mut OpenNamespace<impl DataPort>,
    mut source: Box<dyn RequestSource>,
    limit: Option<u64>,
    progress: &RunProgress,
) -> Result<DriveMeasurement, AnyError> {
    let before = drive.wear()?;
    let begun = Instant::now();
    progress.expected.store(STEPS as u64, Ordering::Relaxed);
    let (mut sent, mut written) = (BTreeMap::new(), 0);
    let mut requests = Vec::new();
    let is_done = |written: u64| limit.is_some_and(|limit| written >= limit);
    let mut complete = false;
    while !progress.stop.load(Ordering::Relaxed) {
        requests.clear();
        if is_done(written) || source.next_batch(&mut requests, BATCH_REQUESTS)? == 0 {
            complete = true;
            break;
        }
        for request in &requests {
            if is_done(written) {
                break;
            }
            written += execute_request(drive, request, &mut sent)?;
        }
        let share = limit.map_or_else(|| source.share_done(), |limit| Some(written as f64 / limit as f64));
        progress.completed.store((share.unwrap_or(0.0) * STEPS) as u64, Ordering::Relaxed);
    }
    Ok(DriveMeasurement {
        complete,
        seconds: begun.elapsed().as_secs_f64(),
        capacity_bytes: drive.bytes(),
        counted: difference(&before, &drive.wear()?)?,
        sent,
    })
}

/// Bytes that the drive counted between two readings.
fn difference(before: &WearReading, after: &WearReading) -> Result<[u128; 3], AnyError> {
    let of = |reading: &WearReading| {
        [reading.host_bytes, reading.media_bytes, reading.erased_bytes].map(|bytes| bytes.expect("FDP is enabled"))
    };
    let (before, after) = (of(before), of(after));
    if (0..3).any(|counter| after[counter] < before[counter]) {
        let problem = "the drive's counters of bytes written and erased decreased during the run, so the write amplification \
             is unknown. Check if another client reset the drive";
        return Err(problem.into());
    }
    Ok(std::array::from_fn(|counter| after[counter] - before[counter]))
}

/// Executes a request and returns the bytes written.
fn execute_request(
    drive: &mut OpenNamespace<impl DataPort>,
    request: &IoRequest,
    sent: &mut BTreeMap<u16, u64>,
) -> Result<u64, AnyError> {
    let (offset, bytes, block) = (request.offset_bytes, u64::from(request.bytes), drive.block_bytes());
    if !offset.is_multiple_of(block) || !bytes.is_multiple_of(block) || bytes == 0 {
        let problem = format!(
            "a request of {bytes} bytes at byte {offset} is not aligned to the drive's blocks of {block} \
                     bytes. Change the request sizes of the workload"
        );
        return Err(problem.into());
    }
    let operation = match request.operation {
        RequestOperation::Read => DriveOperation::Read,
        RequestOperation::Trim => DriveOperation::Deallocate,
        RequestOperation::Write => DriveOperation::Write(request.placement.map(|index| index.index())),
    };
    let mut request = Some(DriveRequest { operation, offset_bytes: offset, bytes });
    drive.transfer(1, || request.take(), |_, _| ())?;
    let DriveOperation::Write(placement) = operation else { return Ok(0) };
    // Writes without a directive use the namespace's first placement handle.
    let handle = drive.handles()[placement.unwrap_or(0)].reclaim_unit_handle;
    *sent.entry(handle).or_default() += bytes;
    Ok(bytes)
}

/// Formats the result like `warp run --json`, with the values that an external drive reports.
fn as_json(name: &str, on: &str, seed: u64, measured: &DriveMeasurement) -> serde_json::Value {
    let [host, media, erased] = measured.counted;
    let owner = |(handle, bytes): (&u16, &u64)| json!({ "owner": format!("RUH {handle}"), "ruh": handle, "host_bytes_written": bytes });
    json!({
        "format": "warp-results",
        "version": JSON_VERSION,
        "axes": [],
        "experiment": name,
        "cells": [{
            "device": on,
            "variant": "",
            "grid": {},
            "seed": seed,
            "complete": measured.complete,
            "capacity_bytes": measured.capacity_bytes,
            "waf": measured.waf(),
            "host_bytes_written": host,
            "media_bytes_written": media,
            "media_bytes_erased": erased,
            "seconds": measured.seconds,
            "owners": measured.sent.iter().map(owner).collect::<Vec<_>>(),
        }],
    })
}

fn as_text(name: &str, on: &str, measured: &DriveMeasurement, format: TextFormat) -> String {
    let stopped = if measured.complete { "" } else { " (stopped)" };
    let summary = ReportTable::default().labels(["device"]).numbers("", ["WAF", "host", "media", "erased"]);
    let mut summary = summary.numbers("MB/s", ["rate"]).note(format!("{name} on {on}{stopped}"));
    let [host, media, erased] = measured.counted;
    let bytes = |bytes: u128| CellValue::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX));
    summary.add([
        on.into(),
        CellValue::optional(measured.waf(), CellValue::Amplification),
        bytes(host),
        bytes(media),
        bytes(erased),
        CellValue::Significant(host as f64 / 1e6 / measured.seconds.max(1e-9)),
    ]);
    let mut handles = ReportTable::default().labels(["handle"]).numbers("x capacity", ["host"]);
    for (handle, bytes) in &measured.sent {
        let capacities = *bytes as f64 / measured.capacity_bytes as f64;
        handles.add([format!("RUH {handle}").into(), CellValue::Capacities(capacities)]);
    }
    format!("{}{}", summary.render(format), handles.render(format))
}
