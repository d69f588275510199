//! Tables of results, for Parquet files and for Python.
//!
//! Rows of results begin with their cell: `device`, `variant`, a column for each axis, `seed`.
//! `docs/reference/results.md` describes each column.

use advise::MoveReason;
use ssd::event::ReclaimRecord;
use ssd::{Nanos, OwnerStats, UnitOwner};

use super::columns::{ColumnBuilder, ExportTable};
use crate::claim_checker::{ClaimChecker, ClaimVerdict, PaperComparison};
use crate::compare::Difference;
use crate::interval::PredictionInterval;
use crate::lifetimes::{MeasuredLifetimes, SHARES};
use crate::store::StoredRun;
use experiment::{CellKey, Metric};
use simulate::feedback::{CollectionRow, FeedbackResult, ReadingRow};
use simulate::run::{ArrayDriveResult, RunResult, RunSample, ScaleComparison};
use simulate::timed::measure::{DirectionResult, JobResult};
use simulate::timed::replay::RequestGroup;
use simulate::warning::RunWarning;
use workload::RequestOperation;
use workload::lifetimes::SurvivalCurve;

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 16;
/// Maximum number of owners of a device: 128 handles and the shared pool.
const OWNERS: usize = 129;

/// One row for each metric of each cell of a comparison. The interval is null if a side has one
/// seed.
pub fn differences(rows: &[Difference]) -> ExportTable<'static> {
    ExportTable::single_batch(rows, |columns| {
        columns
            .text("cell", |row| &row.cell)
            .text("metric", |row| &row.metric)
            .f64("a", |row| row.a)
            .f64("b", |row| row.b)
            .f64("difference", |row| row.difference)
            .optional_f64("share", |row| row.share)
            .optional_f64("low", |row| row.interval.map(|[low, _]| low))
            .optional_f64("high", |row| row.interval.map(|[_, high]| high))
            .optional_f64("a_low", |row| row.ensembles[0].map(|[low, _]| low))
            .optional_f64("a_high", |row| row.ensembles[0].map(|[_, high]| high))
            .optional_f64("b_low", |row| row.ensembles[1].map(|[low, _]| low))
            .optional_f64("b_high", |row| row.ensembles[1].map(|[_, high]| high))
            .u64("seeds_a", |row| row.seeds[0] as u64)
            .u64("seeds_b", |row| row.seeds[1] as u64)
            .text("verdict", |row| row.verdict.words())
    })
}

pub fn kept_runs(runs: &[StoredRun]) -> ExportTable<'static> {
    ExportTable::single_batch(runs, |columns| {
        columns
            .text("id", |run| &run.id)
            .text("at", |run| run.text("at"))
            .text("target", |run| run.text("target"))
            .text("title", |run| run.text("title"))
            .owned_text("devices", |run| run.devices().join(", "))
            .u64("runs", |run| run.cells().len() as u64)
            .optional_f64("write_amplification", StoredRun::write_amplification)
            .optional_f64("seconds", |run| run.document["seconds"].as_f64())
            .text("engine", |run| run.text("engine"))
    })
}

/// One row for each cell and seed: the counters of the device, and a column for each measure of
/// workloads. `tail_drive_writes` is the window of `tail_write_amplification`, in multiples of the
/// capacity.
pub fn cells<'a>(axes: &[String], tail_drive_writes: f64, results: &[RunResult]) -> ExportTable<'a> {
    ExportTable::single_batch(results, |columns| {
        let total = |result: &RunResult| result.stats.total();
        let columns = columns
            .u64("seed", |result| result.seed)
            .u32("scale_denominator", |result| result.scale.0)
            .optional_u64("smaller_scale_denominator", |result| {
                compared(result).map(|compared| compared.smaller.0.into())
            })
            .optional_f64("scale_difference", |result| compared(result).map(|compared| compared.difference))
            .boolean("complete", |result| result.complete)
            .owned_text("warnings", warning_names)
            .u64("capacity_bytes", |result| result.capacity_bytes)
            .u64("page_bytes", |result| result.stats.page_bytes)
            .u32("reclaim_units", |result| result.superblocks)
            .optional_f64("write_amplification", |result| result.stats.write_amplification())
            .optional_f64("tail_write_amplification", |result| {
                let tail = |_| result.tail_write_amplification(tail_drive_writes);
                result.stats.write_amplification().map(tail)
            })
            .u64("host_bytes_written", |result| result.stats.host_bytes_written())
            .u64("media_bytes_written", |result| result.stats.media_bytes_written())
            .u64("media_bytes_erased", |result| result.stats.media_bytes_erased())
            .u64("gc_bytes_copied", |result| total(result).gc_pages_copied * result.stats.page_bytes)
            .u64("overhead_pages", |result| result.stats.overhead_pages());
        // A column has the bytes of the host. The pages received are those copied.
        let is_new = |name: &str| !["host_bytes_written", "gc_pages_received"].contains(&name);
        let mut columns = counter_columns(columns, is_new, total)
            .u64("pages_deallocated", |result| result.stats.pages_deallocated)
            .u64("pages_redirected", |result| result.stats.pages_redirected)
            .u64("background_collections", |result| result.stats.background_collections)
            .u64("foreground_collections", |result| result.stats.foreground_collections)
            .u64("forced_collections", |result| result.stats.forced_collections)
            .u64("units_closed_by_host", |result| result.stats.units_closed_by_host)
            .u64("units_closed_early", |result| result.stats.units_closed_early)
            .u32("block_erases_min", |result| result.wear.fewest_erases)
            .f64("block_erases_avg", |result| result.wear.mean_erases())
            .u32("block_erases_max", |result| result.wear.most_erases)
            .optional_f64("life_used", |result| result.endurance.as_ref().map(|wear| wear.life_used))
            .optional_f64("most_worn", |result| result.endurance.as_ref().map(|wear| wear.most_worn))
            .optional_f64("host_bytes_left", |result| result.endurance.as_ref().map(|wear| wear.host_bytes_left))
            .optional_f64("drive_writes_per_day", |result| {
                result.endurance.as_ref().map(|wear| wear.drive_writes_per_day)
            });
        for name in measure_names(results) {
            columns = columns.optional_f64(&name, |result| {
                let measure = result.measures.iter().find(|measure| measure.name == name);
                measure.map(|measure| measure.value)
            });
        }
        columns.with_key(axes, |result| &result.key)
    })
}

/// The next smaller scaled model, if the run searched for a scale.
fn compared(result: &RunResult) -> Option<ScaleComparison> {
    result.search.and_then(|search| search.compared)
}

/// Names of the warnings that make a result doubtful, separated by commas.
fn warning_names(result: &RunResult) -> String {
    let names: Vec<&str> = result.warnings().iter().map(RunWarning::name).collect();
    names.join(", ")
}

/// Names of all measures, in order of first appearance.
fn measure_names(results: &[RunResult]) -> Vec<String> {
    let measures = results.iter().flat_map(|result| &result.measures);
    base::distinct(measures.map(|measure| measure.name.clone()))
}

/// One row for each cell, seed and drive of an array, also for drives that failed.
pub fn array_drives<'a>(axes: &[String], results: &[RunResult]) -> ExportTable<'a> {
    let rows: Vec<(&RunResult, &ArrayDriveResult)> = results
        .iter()
        .flat_map(|result| {
            result.array.iter().flat_map(move |array| array.drives.iter().map(move |drive| (result, drive)))
        })
        .collect();
    ExportTable::single_batch(&rows, |columns| {
        columns
            .u64("seed", |(result, _)| result.seed)
            .u32("drive", |(_, drive)| drive.drive.into())
            .text("state", |(_, drive)| drive.state)
            .u64("host_bytes_written", |(_, drive)| drive.stats.host_bytes_written())
            .u64("media_bytes_written", |(_, drive)| drive.stats.media_bytes_written())
            .optional_f64("write_amplification", |(_, drive)| drive.stats.write_amplification())
            .u32("block_erases_min", |(_, drive)| drive.wear.fewest_erases)
            .f64("block_erases_avg", |(_, drive)| drive.wear.mean_erases())
            .u32("block_erases_max", |(_, drive)| drive.wear.most_erases)
            .optional_f64("life_used", |(_, drive)| drive.life_used)
            .with_key(axes, |(result, _)| &result.key)
    })
}

/// One row for each cell, seed and owner: the counters of a handle, or of the shared pool.
pub fn owners<'a>(axes: &[String], results: &[RunResult]) -> ExportTable<'a> {
    let rows: Vec<(&RunResult, UnitOwner, &OwnerStats)> =
        results.iter().flat_map(|result| result.stats.owners().map(move |(owner, row)| (result, owner, row))).collect();
    ExportTable::single_batch(&rows, |columns| {
        let columns = columns.u64("seed", |(result, _, _)| result.seed);
        let columns = owner_columns(columns, |(_, owner, row)| (*owner, *row));
        columns.with_key(axes, |(result, _, _)| &result.key)
    })
}

/// The counters of an owner. A renamed field of the device must not rename a column or a key.
pub(super) fn owner_counters(row: &OwnerStats) -> [(&'static str, u64); 13] {
    [
        ("host_bytes_written", row.host_bytes_written),
        ("host_pages_written", row.host_pages_written),
        ("host_pages_absorbed", row.host_pages_absorbed),
        ("gc_pages_copied", row.gc_pages_copied),
        ("gc_pages_received", row.gc_pages_received),
        ("wear_levelling_pages", row.wear_levelling_pages),
        ("wear_levelling_pages_erased", row.wear_levelling_pages_erased),
        ("blocks_remapped", row.blocks_remapped),
        ("pages_remapped", row.pages_remapped),
        ("units_opened", row.units_opened),
        ("units_reclaimed", row.units_reclaimed),
        ("pages_erased", row.pages_erased),
        ("valid_pages_reclaimed", row.valid_pages_reclaimed),
    ]
}

/// Adds the counters of an owner, as far as `is_added` selects their names.
fn counter_columns<'a, T>(
    mut columns: ColumnBuilder<'a, T>,
    is_added: impl Fn(&str) -> bool,
    of: impl Fn(&T) -> OwnerStats,
) -> ColumnBuilder<'a, T> {
    for (index, (name, _)) in owner_counters(&OwnerStats::default()).into_iter().enumerate() {
        if is_added(name) {
            columns = columns.u64(name, |row| owner_counters(&of(row))[index].1);
        }
    }
    columns
}

pub(super) fn owner_columns<'a, T>(
    columns: ColumnBuilder<'a, T>,
    of: impl Fn(&T) -> (UnitOwner, &OwnerStats),
) -> ColumnBuilder<'a, T> {
    let columns = columns
        .owned_text("owner", |row| of(row).0.to_string())
        .handle("ruh", |row| of(row).0)
        .optional_f64("write_amplification", |row| of(row).1.write_amplification());
    counter_columns(columns, |_| true, |row| *of(row).1)
}

/// One row for each collection of every result that kept its GC log.
pub fn gc_log<'a>(axes: &'a [String], results: &'a [RunResult]) -> ExportTable<'a> {
    let rows = |result: &'a RunResult| {
        let with_result = move |rows: &'a [ReclaimRecord]| rows.iter().map(|row| (result, row)).collect();
        result.gc_log.chunks(BATCH_ROWS).map(with_result)
    };
    ExportTable::new(results.iter().flat_map(rows), move |columns| {
        let columns = columns.u64("seed", |(result, _)| result.seed);
        let columns = reclaim_columns(columns, |(result, row)| (result.stats.page_bytes, *row));
        columns.with_key(axes, |(result, _)| &result.key)
    })
}

/// Columns of a collection. `of` returns the bytes of a page and the event.
pub(super) fn reclaim_columns<'a, T>(
    columns: ColumnBuilder<'a, T>,
    of: impl Fn(&T) -> (u64, &ReclaimRecord),
) -> ColumnBuilder<'a, T> {
    columns
        .u64("host_bytes_written", |value| of(value).0 * of(value).1.host_pages_written)
        .u64("now_ns", |value| of(value).1.now)
        .text("trigger", |value| of(value).1.trigger.name())
        .text("policy", |value| of(value).1.policy)
        .u16("reclaim_group", |value| of(value).1.group.0)
        .u32("victim_unit", |value| of(value).1.victim.0)
        .handle("victim_ruh", |value| of(value).1.victim_owner)
        .handle("destination_ruh", |value| of(value).1.destination_owner)
        .u32("unit_pages", |value| of(value).1.unit_pages)
        .u32("valid_pages", |value| of(value).1.valid_pages)
        .u32("pages_copied", |value| of(value).1.pages_copied)
        .u32("blocks_remapped", |value| of(value).1.blocks_remapped)
        .u64("elapsed_ns", |value| of(value).1.elapsed_ns)
}

/// State of an owner at a sample.
pub(super) struct SampleRow<'a> {
    result: &'a RunResult,
    sample: &'a RunSample,
    pub(super) owner: String,
    pub(super) stats: &'a OwnerStats,
    pub(super) units: u64,
    pub(super) valid_pages: u64,
}

/// The owners of a sample. The last one is the shared pool.
pub(super) fn sample_rows<'a>(result: &'a RunResult, sample: &'a RunSample) -> impl Iterator<Item = SampleRow<'a>> {
    let owners = result.stats.owners().zip(&sample.owners).enumerate();
    owners.map(move |(index, ((owner, _), stats))| SampleRow {
        result,
        sample,
        owner: owner.to_string(),
        stats,
        units: sample.units[index],
        valid_pages: sample.valid_pages[index],
    })
}

/// One row for each sample of the time series and each handle (and the shared pool).
pub fn samples<'a>(axes: &'a [String], results: &'a [RunResult]) -> ExportTable<'a> {
    let rows = |result: &'a RunResult| {
        let rows_of = move |samples: &'a [RunSample]| {
            let rows = samples.iter().flat_map(|sample| sample_rows(result, sample));
            rows.collect()
        };
        result.samples.chunks(BATCH_ROWS / OWNERS).map(rows_of)
    };
    ExportTable::new(results.iter().flat_map(rows), move |columns| sample_columns(axes, columns))
}

fn sample_columns<'a, 'r>(
    axes: &[String],
    columns: ColumnBuilder<'a, SampleRow<'r>>,
) -> ColumnBuilder<'a, SampleRow<'r>> {
    let waf = |sample: &RunSample| sample.media_bytes as f64 / sample.host_bytes as f64;
    columns
        .u64("seed", |row| row.result.seed)
        .u64("capacity_bytes", |row| row.result.capacity_bytes)
        .boolean("complete", |row| row.result.complete)
        .u64("host_bytes", |row| row.sample.host_bytes)
        .u64("media_bytes", |row| row.sample.media_bytes)
        .optional_f64("waf", |row| (row.sample.host_bytes > 0).then(|| waf(row.sample)))
        .text("owner", |row| &row.owner)
        .u64("owner_host_bytes", |row| row.stats.host_bytes_written)
        .u64("owner_copied_bytes", |row| row.stats.gc_pages_copied * row.result.stats.page_bytes)
        .u64("owner_received_bytes", |row| row.stats.gc_pages_received * row.result.stats.page_bytes)
        .u64("owner_units_opened", |row| row.stats.units_opened)
        .u64("owner_units_reclaimed", |row| row.stats.units_reclaimed)
        .u64("owner_units", |row| row.units)
        .u64("owner_valid_pages", |row| row.valid_pages)
        .with_key(axes, |row| &row.result.key)
}

/// One direction of one job of a timed run.
struct JobRow<'a> {
    result: &'a RunResult,
    job: &'a JobResult,
    operation: RequestOperation,
    measured: &'a DirectionResult,
}

impl JobRow<'_> {
    fn direction(&self) -> &'static str {
        self.operation.name()
    }

    fn per_second(&self, amount: u64) -> f64 {
        amount as f64 / self.job.elapsed_ns().max(1) as f64 * 1e9
    }

    fn percentile(&self, percent: f64) -> Nanos {
        self.measured.latencies.percentile_ns(percent)
    }
}

fn job_rows(results: &[RunResult]) -> impl Iterator<Item = JobRow<'_>> {
    let of_result = |result| -> Vec<JobRow<'_>> {
        let result: &RunResult = result;
        let jobs = result.timed.iter().flat_map(|timed| &timed.jobs);
        let rows = jobs.flat_map(|job| {
            RequestOperation::ALL.map(|operation| JobRow { result, job, operation, measured: job.direction(operation) })
        });
        rows.filter(|row| row.measured.requests > 0).collect()
    };
    results.iter().flat_map(of_result)
}

/// One row for each job and direction of every timed result: rates and latencies.
pub fn jobs<'a>(axes: &[String], results: &[RunResult]) -> ExportTable<'a> {
    let rows: Vec<JobRow<'_>> = job_rows(results).collect();
    ExportTable::single_batch(&rows, |columns| {
        columns
            .u64("seed", |row| row.result.seed)
            .text("job", |row| &row.job.name)
            .text("direction", |row| row.direction())
            .u64("requests", |row| row.measured.requests)
            .u64("bytes", |row| row.measured.bytes)
            .u64("elapsed_ns", |row| row.job.elapsed_ns())
            .f64("iops", |row| row.per_second(row.measured.requests))
            .f64("bytes_per_second", |row| row.per_second(row.measured.bytes))
            .f64("mean_ns", |row| row.measured.latencies.mean_ns())
            .f64("stdev_ns", |row| row.measured.latencies.deviation_ns())
            .u64("min_ns", |row| row.measured.latencies.min_ns())
            .u64("p50_ns", |row| row.percentile(50.0))
            .u64("p99_ns", |row| row.percentile(99.0))
            .u64("p99_9_ns", |row| row.percentile(99.9))
            .u64("p99_99_ns", |row| row.percentile(99.99))
            .u64("p99_999_ns", |row| row.percentile(99.999))
            .u64("max_ns", |row| row.measured.latencies.max_ns())
            .u64("gc_waits", |row| row.measured.waits.requests)
            .u64("gc_wait_sum_ns", |row| row.measured.waits.sum_ns)
            .u64("gc_wait_max_ns", |row| row.measured.waits.max_ns)
            .with_key(axes, |row| &row.result.key)
    })
}

/// The distribution of the latencies of every timed result. For each job and direction it has
/// ascending latencies, each with the share of requests up to that latency. Values have three
/// significant digits.
pub fn latencies<'a>(axes: &'a [String], results: &'a [RunResult]) -> ExportTable<'a> {
    let steps = |row: JobRow<'a>| -> Vec<(JobRow<'a>, Nanos, f64)> {
        let steps = row.measured.latencies.distribution().into_iter();
        let with_row = |(latency_ns, share)| (JobRow { ..row }, latency_ns, share);
        steps.map(with_row).collect()
    };
    ExportTable::new(job_rows(results).map(steps), move |columns| {
        columns
            .u64("seed", |(row, _, _)| row.result.seed)
            .text("job", |(row, _, _)| &row.job.name)
            .text("direction", |(row, _, _)| row.direction())
            .u64("latency_ns", |(_, latency_ns, _)| *latency_ns)
            .f64("share", |(_, _, share)| *share)
            .with_key(axes, |(row, _, _)| &row.result.key)
    })
}

/// One row for each direction of each group of requests, for traces replayed at their own times.
/// The groups are all requests, and those by volume, process and size.
pub fn replays<'a>(axes: &[String], results: &'a [RunResult]) -> ExportTable<'a> {
    type Row<'a> = (&'a RunResult, &'a RequestGroup, RequestOperation);
    let of_group = |result: &'a RunResult, group: &'a RequestGroup| -> Vec<Row<'a>> {
        let used = |operation: &RequestOperation| group.directions[*operation as usize].latencies.count() > 0;
        let directions = RequestOperation::ALL.into_iter().filter(used);
        directions.map(|operation| (result, group, operation)).collect()
    };
    let of_result = |result: &'a RunResult| -> Vec<Row<'a>> {
        let replay = result.timed.iter().filter_map(|timed| timed.trace.as_ref()?.replay());
        let groups = replay.flat_map(|replay| &replay.groups);
        groups.flat_map(|group| of_group(result, group)).collect()
    };
    let rows: Vec<Row<'a>> = results.iter().flat_map(of_result).collect();
    let response = |(_, group, operation): &Row<'a>| &group.directions[*operation as usize];
    let recorded = move |row: &Row<'a>, percent: f64| {
        let recorded = &response(row).recorded;
        (recorded.count() > 0).then(|| recorded.percentile_ns(percent))
    };
    ExportTable::single_batch(&rows, |columns| {
        columns
            .u64("seed", |(result, ..)| result.seed)
            .text("by", |(_, group, _)| group.by.name())
            .text("name", |(_, group, _)| &group.name)
            .text("direction", |(.., operation)| operation.name())
            .u64("requests", |row| response(row).latencies.count())
            .u64("bytes", |row| response(row).bytes)
            .f64("mean_ns", |row| response(row).latencies.mean_ns())
            .u64("p50_ns", |row| response(row).latencies.percentile_ns(50.0))
            .u64("p99_ns", |row| response(row).latencies.percentile_ns(99.0))
            .u64("p99_9_ns", |row| response(row).latencies.percentile_ns(99.9))
            .u64("max_ns", |row| response(row).latencies.max_ns())
            .u64("late", |row| response(row).late.requests)
            .u64("late_sum_ns", |row| response(row).late.sum_ns)
            .u64("late_max_ns", |row| response(row).late.max_ns)
            .u64("gc_waits", |row| response(row).collections.requests)
            .u64("gc_wait_sum_ns", |row| response(row).collections.sum_ns)
            .u64("gc_wait_max_ns", |row| response(row).collections.max_ns)
            .optional_u64("recorded_p50_ns", |row| recorded(row, 50.0))
            .optional_u64("recorded_p99_ns", |row| recorded(row, 99.0))
            .optional_u64("recorded_p99_9_ns", |row| recorded(row, 99.9))
            .with_key(axes, |(result, ..)| &result.key)
    })
}

fn with_feedback(results: &[RunResult]) -> impl Iterator<Item = (&RunResult, &FeedbackResult)> {
    results.iter().filter_map(|result| Some((result, result.feedback.as_ref()?)))
}

/// Placement-feedback data of an owner, at a reading or a collection.
struct FeedbackRow<'a> {
    result: &'a RunResult,
    owner: &'a str,
    /// Number of the reading (from 1) or collection (from 0).
    number: u64,
    host_bytes: u64,
    /// Collections before a reading, or readings before a collection.
    others_before: u64,
    /// Number of events or of pages.
    count: u32,
}

/// The rows, with column names for `number`, `others_before` and `count`.
fn feedback_table<'a>(
    axes: &[String],
    rows: &[FeedbackRow<'_>],
    [number, others_before, count]: [&str; 3],
) -> ExportTable<'a> {
    ExportTable::single_batch(rows, |columns| {
        columns
            .u64("seed", |row| row.result.seed)
            .u64(number, |row| row.number)
            .u64("host_bytes", |row| row.host_bytes)
            .u64(others_before, |row| row.others_before)
            .text("owner", |row| row.owner)
            .u32(count, |row| row.count)
            .with_key(axes, |row| &row.result.key)
    })
}

/// One row for each reading of the event log and each owner, for runs with feedback. The last row
/// is for data without an owner. Readings count from 1.
pub fn readings<'a>(axes: &[String], results: &[RunResult]) -> ExportTable<'a> {
    let mut rows = Vec::new();
    for (result, feedback) in with_feedback(results) {
        for (number, reading) in (1..).zip(&feedback.readings) {
            rows.extend(reading.events.iter().enumerate().map(|(owner, &count)| FeedbackRow {
                result,
                owner: feedback.owner_name(owner),
                number,
                host_bytes: reading.host_bytes,
                others_before: reading.collections as u64,
                count,
            }));
        }
    }
    feedback_table(axes, &rows, ["reading", "collections", "events"])
}

/// One row for each move that followed a reading, of runs with feedback.
pub fn moves<'a>(axes: &[String], results: &[RunResult]) -> ExportTable<'a> {
    let mut rows = Vec::new();
    for (result, feedback) in with_feedback(results) {
        for (number, reading) in (1_u64..).zip(&feedback.readings) {
            let named = |step: &(usize, u16, u16, MoveReason)| (result, feedback.owner_name(step.0), number, *step);
            rows.extend(reading.moves.iter().map(named));
        }
    }
    ExportTable::single_batch(&rows, |columns| {
        columns
            .u64("seed", |(result, ..)| result.seed)
            .u64("reading", |(_, _, number, _)| *number)
            .text("owner", |(_, owner, ..)| owner)
            .u16("from", |(.., (_, from, _, _))| *from)
            .u16("to", |(.., (_, _, to, _))| *to)
            .owned_text("reason", |(.., (.., reason))| reason.to_string())
            .with_key(axes, |(result, ..)| &result.key)
    })
}

/// One row for each collection and each owner of the copied pages, for runs with feedback. The last
/// row is for data without an owner. Collections count from 0.
pub fn collections<'a>(axes: &[String], results: &'a [RunResult]) -> ExportTable<'a> {
    let numbered = with_feedback(results).flat_map(|(result, feedback)| {
        let collections = (0..).zip(&feedback.collections);
        collections.map(move |(number, row)| (result, feedback, number, row))
    });
    let rows = |(result, feedback, number, row): (&'a RunResult, &'a FeedbackResult, u64, &'a CollectionRow)| {
        let before = |reading: &ReadingRow| reading.collections as u64 <= number;
        let others_before = feedback.readings.partition_point(before) as u64;
        let of_owner = move |(owner, &count): (usize, &u32)| FeedbackRow {
            result,
            owner: feedback.owner_name(owner),
            number,
            host_bytes: row.host_bytes,
            others_before,
            count,
        };
        row.copied.iter().enumerate().map(of_owner)
    };
    let rows: Vec<FeedbackRow<'a>> = numbered.flat_map(rows).collect();
    feedback_table(axes, &rows, ["collection", "readings", "pages_copied"])
}

/// One row for each published number, with the measured one.
pub fn published<'a>(axes: &[String], comparisons: &[PaperComparison]) -> ExportTable<'a> {
    ExportTable::single_batch(comparisons, |columns| {
        columns
            .owned_text("metric", |row| row.metric.name())
            .optional_text("column", |row| row.metric.column())
            .optional_f64("drive", |row| row.drive)
            .optional_f64("emulator", |row| row.emulator)
            .optional_f64("ours", |row| row.ours)
            .optional_f64("low", |row| Some(row.interval.as_ref()?.low))
            .optional_f64("high", |row| Some(row.interval.as_ref()?.high))
            .optional_f64("error", PaperComparison::error)
            .optional_f64("relative_error", PaperComparison::relative_error)
            .boolean("fitted", |row| row.fitted)
            .optional_text("not_comparable", |row| row.not_comparable.as_deref())
            .optional_boolean("hit", PaperComparison::is_hit)
            .text("source", |row| &row.source)
            .with_key(axes, |row| &row.key)
    })
}

/// One row for each write amplification (of the whole run and of its end) of each cell whose
/// device's ensemble was run.
pub fn intervals<'a>(axes: &[String], judge: &ClaimChecker<'_>) -> ExportTable<'a> {
    let metrics = [Metric::WriteAmplification, Metric::TailWriteAmplification];
    let of_key = |key| {
        metrics
            .iter()
            .filter_map(move |metric| Some((key, metric, judge.value(key, metric)?, judge.interval(key, metric)?)))
    };
    let rows: Vec<(&CellKey, &Metric, f64, PredictionInterval)> = judge.measured().flat_map(of_key).collect();
    ExportTable::single_batch(&rows, |columns| {
        columns
            .text("metric", |(_, metric, ..)| metric.column().expect("write amplifications are columns"))
            .f64("value", |(.., value, _)| *value)
            .f64("low", |(.., interval)| interval.low)
            .f64("high", |(.., interval)| interval.high)
            .u64("members", |(.., interval)| interval.members.len() as u64)
            .with_key(axes, |(key, ..)| key)
    })
}

/// One row for each workload, with null as stream, and one for each of several streams. The
/// quantiles are the bytes written until a share of the data has ended, null where the run did not
/// reach the share.
pub fn lifetimes<'a>(measured: &'a MeasuredLifetimes) -> ExportTable<'a> {
    let parts: Vec<(Option<&str>, &SurvivalCurve)> = measured.parts().collect();
    ExportTable::single_batch(&parts, |columns| {
        let columns = columns
            .owned_text("workload", |_| measured.name.clone())
            .optional_text("stream", |(stream, _)| *stream)
            .u64("written_bytes", |(_, survival)| measured.on_drive(survival.written_bytes()));
        let with_quantiles = SHARES.into_iter().fold(columns, |columns, share| {
            let name = format!("end_within_{:.0}", share * 100.0);
            columns.optional_u64(&name, |(_, survival)| measured.quantile(survival, share))
        });
        with_quantiles.f64("there_at_the_end", |(_, survival)| survival.open_share())
    })
}

/// The distribution of lifetimes, with one row for each distance within which data ended.
pub fn lifetime_steps<'a>(measured: &'a MeasuredLifetimes) -> ExportTable<'a> {
    let of_part = |(stream, survival): (Option<&'a str>, &'a SurvivalCurve)| {
        survival.steps().map(move |(bytes, ended)| (stream, measured.on_drive(bytes), ended))
    };
    let rows: Vec<(Option<&str>, u64, f64)> = measured.parts().flat_map(of_part).collect();
    ExportTable::single_batch(&rows, |columns| {
        columns
            .optional_text("stream", |(stream, ..)| *stream)
            .u64("bytes", |(_, bytes, _)| *bytes)
            .f64("ended_share", |(.., ended)| *ended)
    })
}

pub fn claims<'a>(verdicts: &[ClaimVerdict]) -> ExportTable<'a> {
    ExportTable::single_batch(verdicts, |columns| {
        columns
            .text("what", |row| &row.what)
            .optional_boolean("holds", |row| row.holds)
            .text("found", |row| &row.found)
            .text("source", |row| &row.source)
    })
}
