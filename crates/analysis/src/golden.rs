//! Golden results: expected integers of an experiment's quick form.
//!
//! `experiments/<slug>/golden.json` has a row for each cell. Runs of the same code give identical
//! bytes on every machine, so rows are compared exactly. A commit that changes a row explains the
//! reason.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use base::input::RESULT_BYTES_MAX;
use serde::{Deserialize, Serialize};

use experiment::LabError;
use experiment::definition::BuiltInExperiment;
use simulate::run::RunResult;
use simulate::timed::measure::JobResult;
use simulate::timed::result::TimedResult;
use workload::RequestOperation;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenRow {
    /// Cell and seed.
    pub cell: String,
    pub host_bytes_written: u64,
    pub media_bytes_written: u64,
    pub media_bytes_erased: u64,
    /// Pages copied out of the reclaim units of each handle and, last, of the shared pool.
    pub gc_pages_copied: Vec<u64>,
    /// Measures of the workload, and of the device for each tenant. Numbers are texts that keep
    /// every bit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, String>,
    /// Results of the jobs on a device with timing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<GoldenJob>,
}

/// The integers of one direction of one job of a timed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenJob {
    pub job: String,
    pub direction: RequestOperation,
    pub requests: u64,
    pub bytes: u64,
    /// Measured time of the job, nanoseconds.
    pub elapsed_ns: u64,
    pub latency_sum_ns: u64,
    /// Latency percentiles, nanoseconds: minimum, 50, 99, 99.9, 99.99, 99.999, maximum.
    pub latency_ns: [u64; 7],
    pub waited: u64,
    /// Total time of these waits, nanoseconds.
    pub waited_ns: u64,
}

impl GoldenJob {
    fn from_timed(timed: &TimedResult) -> Vec<GoldenJob> {
        let row = |job: &JobResult, direction: RequestOperation| {
            let measured = job.direction(direction);
            let latencies = &measured.latencies;
            let percentile = |percent| latencies.percentile_ns(percent);
            GoldenJob {
                job: job.name.clone(),
                direction,
                requests: measured.requests,
                bytes: measured.bytes,
                elapsed_ns: job.elapsed_ns(),
                latency_sum_ns: latencies.sum_ns() as u64,
                latency_ns: [
                    latencies.min_ns(),
                    percentile(50.0),
                    percentile(99.0),
                    percentile(99.9),
                    percentile(99.99),
                    percentile(99.999),
                    latencies.max_ns(),
                ],
                waited: measured.waits.requests,
                waited_ns: measured.waits.sum_ns,
            }
        };
        let rows = timed.jobs.iter().flat_map(|job| RequestOperation::ALL.map(|direction| row(job, direction)));
        rows.filter(|row| row.requests > 0).collect()
    }
}

pub fn rows(results: &[RunResult]) -> Vec<GoldenRow> {
    let row = |result: &RunResult| GoldenRow {
        cell: format!("{} | seed {}", result.key, result.seed),
        host_bytes_written: result.stats.host_bytes_written(),
        media_bytes_written: result.stats.media_bytes_written(),
        media_bytes_erased: result.stats.media_bytes_erased(),
        gc_pages_copied: (result.stats.handles.iter().chain([&result.stats.shared]))
            .map(|row| row.gc_pages_copied)
            .collect(),
        measures: result.measures.iter().map(|measure| (measure.name.clone(), measure.value.to_string())).collect(),
        jobs: result.timed.as_ref().map(GoldenJob::from_timed).unwrap_or_default(),
    };
    results.iter().map(row).collect()
}

/// Path of an experiment's golden file, from the root of the project.
pub fn path(slug: &str) -> String {
    format!("experiments/{slug}/golden.json")
}

/// Reads a golden file. Outside the project it reads the built-in one.
///
/// # Errors
/// The file does not exist, cannot be read, or is not a golden file.
pub fn read(path: &str) -> Result<Vec<GoldenRow>, LabError> {
    let built_in = || path.strip_prefix("experiments/").and_then(BuiltInExperiment::get);
    let text = base::input::read(Path::new(path), RESULT_BYTES_MAX).or_else(|error| match built_in() {
        Some(file) if error.kind() == ErrorKind::NotFound => Ok(file.data.into_owned()),
        _ => Err(error),
    });
    let text = text.map_err(|source| LabError::Io { file: path.to_string(), source })?;
    serde_json::from_slice(&text).map_err(|error| LabError::invalid(path, base::hinted(&error.to_string())))
}

/// Writes a golden file, with one row per line.
pub fn write(path: &str, rows: &[GoldenRow]) -> Result<(), LabError> {
    let lines: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).expect("a row serializes")).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    experiment::files::write_atomically(Path::new(path), |file| file.write_all(text.as_bytes()))
}

fn measure_differences<'a>(expected: &'a GoldenRow, row: &'a GoldenRow) -> impl Iterator<Item = String> + 'a {
    let measures = row.measures.iter();
    measures.filter_map(|(name, value)| match expected.measures.get(name) {
        Some(golden) if golden == value => None,
        Some(golden) => Some(format!("{}: {name} {value} (golden {golden})", row.cell)),
        None => Some(format!("{}: {name} {value} (not golden)", row.cell)),
    })
}

fn job_differences(golden: &GoldenRow, row: &GoldenRow) -> Vec<String> {
    let pairs = golden.jobs.iter().zip(&row.jobs).filter(|(expected, job)| expected != job);
    let mut differences: Vec<String> = pairs
        .map(|(expected, job)| {
            let text = |job: &GoldenJob| serde_json::to_string(job).expect("a row serializes");
            format!("{}: {} (golden {})", row.cell, text(job), text(expected))
        })
        .collect();
    if golden.jobs.len() != row.jobs.len() {
        differences.push(format!("{}: {} rows of jobs (golden {})", row.cell, row.jobs.len(), golden.jobs.len()));
    }
    differences
}

/// The differences, one sentence for each. Empty if the rows are equal.
pub fn differences(golden: &[GoldenRow], rows: &[GoldenRow]) -> Vec<String> {
    let mut differences = Vec::new();
    for row in rows {
        match golden.iter().find(|expected| expected.cell == row.cell) {
            None => differences.push(format!("{}: there is no golden row", row.cell)),
            Some(expected) if expected != row => {
                differences.push(format!(
                    "{}: media bytes written {} (golden {}), copied pages {:?} (golden {:?})",
                    row.cell,
                    row.media_bytes_written,
                    expected.media_bytes_written,
                    row.gc_pages_copied,
                    expected.gc_pages_copied
                ));
                differences.extend(measure_differences(expected, row));
                differences.extend(job_differences(expected, row));
            }
            Some(_) => {}
        }
    }
    let missing = golden.iter().filter(|expected| rows.iter().all(|row| row.cell != expected.cell));
    differences.extend(missing.map(|expected| format!("{}: the cell was not run", expected.cell)));
    differences
}
