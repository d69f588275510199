//! Tables of results. Reports stack the tables of single results, with the cell before each row.

use std::collections::BTreeMap;

use ssd::event::ReclaimRecord;
use ssd::{DeviceStats, Endurance, OwnerStats, UnitOwner};
use workload::classifier::ORACLE_MEASURE;
use workload::{RequestOperation, WorkloadMeasure};

use super::grid::GridCell;
use super::warnings::{SCALE_HEADINGS, scale_values};
use super::{CellValue, Grid, ReportTable, TextFormat};
use analysis::interval::{Intervals, NO_INTERVALS};
use simulate::feedback::FeedbackResult;
use simulate::run::RunResult;
use simulate::timed::measure::{Goal, JobResult};
use simulate::timed::replay::TracePace;
use simulate::timed::result::TimedResult;
use simulate::warning::{RunWarning, WarningCommand};

/// Representative write amplification of every cell, averaged over seeds. Rows are devices and
/// variants, columns are the values of the first grid axis.
pub fn write_amplifications(results: &[RunResult], axes: &[String], intervals: &Intervals) -> ReportTable {
    let grid = Grid::new(results, intervals, RunResult::headline_write_amplification);
    let rows = grid.to_rows(axes);
    let rows = if results.iter().any(|result| result.array.is_some()) { rows.note(OF_DRIVES) } else { rows };
    if grid.columns.len() > 1 { rows.note(format!("across: {}", super::axis_name(axes, 0))) } else { rows }
}

/// Note of a table of write amplifications with arrays.
const OF_DRIVES: &str = "WAF of an array is that of its drives: media bytes / bytes that they received";

/// Tables of the arrays: their figures side by side, or all tables of a single result.
fn arrays(results: &[RunResult], format: TextFormat) -> String {
    let tables = match results {
        [result] => result
            .array
            .iter()
            .flat_map(|array| {
                [super::array_causes(result, array), super::array_drives(array), super::array_rebuilds(array)]
            })
            .collect(),
        results => {
            let of_cell = |result: &RunResult| (vec![result.key.to_string()], super::array_figures(result));
            vec![ReportTable::stacked(["cell"], results.iter().map(of_cell))]
        }
    };
    tables.iter().filter(|table| !table.is_empty()).map(|table| format!("{}\n", table.render(format))).collect()
}

/// Relative excess of each variant's write amplification over that of the variant with an oracle,
/// averaged over seeds. `None` without such a pair.
pub fn above_the_oracle(results: &[RunResult], axes: &[String]) -> Option<ReportTable> {
    let is_oracle = |result: &&RunResult| result.measures.iter().any(|measure| measure.name == ORACLE_MEASURE);
    let (oracle, others): (Vec<&RunResult>, Vec<&RunResult>) = results.iter().partition(is_oracle);
    let grid = |of: Vec<&RunResult>| {
        let of: Vec<RunResult> = of.into_iter().cloned().collect();
        Grid::new(&of, &NO_INTERVALS, RunResult::headline_write_amplification)
    };
    let (oracle, mut others) = (grid(oracle), grid(others));
    for row in &mut others.rows {
        let best = oracle.rows.iter().find(|best| best.device == row.device && best.rest == row.rest);
        for (cell, column) in row.cells.iter_mut().zip(&others.columns) {
            let index = oracle.columns.iter().position(|other| other == column);
            let best = best.zip(index).and_then(|(best, index)| best.cells[index]);
            *cell = cell.zip(best).map(|(cell, best)| GridCell { value: cell.value / best.value - 1.0, ..cell });
        }
    }
    let has_any = others.rows.iter().any(|row| row.cells.iter().any(Option::is_some));
    has_any.then(|| {
        let rows = others.to_rows_of(axes, |cell| CellValue::Change(cell.value));
        rows.note("above the oracle, which knows when each page dies")
    })
}

/// Terminal output of a run: write amplifications, job results, and handles. Handles are shown on
/// request, and always for a single result. Remedies name the options of `command`.
pub fn results(
    title: &str,
    axes: &[String],
    results: &[RunResult],
    intervals: &Intervals,
    with_handles: bool,
    command: WarningCommand,
    format: TextFormat,
) -> String {
    let summary = write_amplifications(results, axes, intervals).render(format);
    let above = above_the_oracle(results, axes).map(|rows| rows.render(format)).unwrap_or_default();
    let mut text = format!(
        "{}{summary}{above}{}\n",
        format.words(&format!("{title}\n{}", super::warning(results))),
        super::warning_lines(results, command, format)
    );
    text += &arrays(results, format);
    let with_measures = |result: &&RunResult| results.len() == 1 && !result.measures.is_empty();
    for result in results.iter().filter(with_measures) {
        text += &measures(result).transposed("workload", ["measured".to_string()]).render(format);
    }
    let of_cell =
        |result: &RunResult, rows: ReportTable| format!("{}\n", rows.note(result.key.to_string()).render(format));
    for result in results {
        text += &result.timed.iter().map(|timed| of_cell(result, jobs(timed))).collect::<String>();
        let replay = result.timed.iter().filter_map(|timed| timed.trace.as_ref()?.replay());
        text += &replay
            .map(|replay| of_cell(result, super::replay(replay)) + &of_cell(result, super::bursts(replay)))
            .collect::<String>();
    }
    for result in results {
        let feedback = result.feedback.iter();
        text += &feedback.map(|feedback| of_cell(result, readings(result, feedback))).collect::<String>();
    }
    if with_handles || results.len() == 1 {
        for result in results {
            text += &format!(
                "{}{}{}\n",
                format.words(&format!("{}\n", result.key)),
                handles(result).render(format),
                format.words(&(causes(&result.stats) + &wear(result)))
            );
        }
    }
    text
}

/// A reclaim unit handle of a result, or the shared pool.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerRow {
    pub owner: UnitOwner,
    pub stats: OwnerStats,
    /// Bytes that the host wrote through it, in multiples of the capacity.
    pub host_capacities: f64,
    /// Bytes copied out of its reclaim units, in multiples of the capacity.
    pub copied_capacities: f64,
    /// Mean share of valid pages in reclaim units at the time of their reclaim. `None` before the
    /// first.
    pub mean_valid_share: Option<f64>,
}

impl OwnerRow {
    /// The used handles, and the shared pool if it was used.
    pub fn used(result: &RunResult) -> Vec<OwnerRow> {
        let owners = result.stats.owners();
        let rows = owners.map(|(owner, stats)| OwnerRow::new(result, owner, *stats));
        rows.filter(OwnerRow::is_used).collect()
    }

    fn new(result: &RunResult, owner: UnitOwner, stats: OwnerStats) -> OwnerRow {
        OwnerRow {
            owner,
            stats,
            host_capacities: stats.host_bytes_written as f64 / result.capacity_bytes as f64,
            copied_capacities: capacities(result, stats.gc_pages_copied),
            // Blocks that were remapped are not erased.
            mean_valid_share: ratio(
                stats.valid_pages_reclaimed,
                stats.pages_erased - stats.wear_levelling_pages_erased + stats.pages_remapped,
            ),
        }
    }

    /// A reclaim unit that was opened (at the start, for every handle) but never written does not
    /// count as use.
    fn is_used(&self) -> bool {
        let stats = &self.stats;
        stats.host_bytes_written + stats.gc_pages_copied + stats.gc_pages_received + stats.units_reclaimed > 0
    }
}

/// Pages in multiples of the device's logical capacity.
fn capacities(result: &RunResult, pages: u64) -> f64 {
    (pages * result.stats.page_bytes) as f64 / result.capacity_bytes as f64
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

const CAPACITIES: &str = "x capacity";

pub fn handles(result: &RunResult) -> ReportTable {
    let counters = ["own WAF", "units opened", "units reclaimed", "valid at reclaim", "blocks remapped"];
    let rows = ReportTable::default().labels(["handle"]);
    let mut rows = rows.numbers(CAPACITIES, ["host", "copied"]).numbers("", counters);
    for row in OwnerRow::used(result) {
        let stats = &row.stats;
        rows.add([
            row.owner.to_string().into(),
            CellValue::Capacities(row.host_capacities),
            CellValue::Capacities(row.copied_capacities),
            CellValue::optional(stats.write_amplification(), CellValue::Amplification),
            CellValue::Count(stats.units_opened),
            CellValue::Count(stats.units_reclaimed),
            CellValue::optional(row.mean_valid_share, CellValue::Share),
            CellValue::Count(stats.blocks_remapped),
        ]);
    }
    rows
}

/// Shares of the media writes by cause. Empty if host writes and copies are the only causes.
fn causes(stats: &DeviceStats) -> String {
    let (total, media_pages) = (stats.total(), stats.data_pages() + stats.overhead_pages());
    let causes = [
        ("host writes", total.host_pages_written - total.host_pages_absorbed),
        ("copies", total.gc_pages_copied),
        ("wear levelling", total.wear_levelling_pages),
        ("overhead", stats.overhead_pages()),
    ];
    if stats.overhead_pages() + total.wear_levelling_pages + total.host_pages_absorbed == 0 {
        return String::new();
    }
    let share = |part: u64, whole: u64| CellValue::optional(ratio(part, whole), CellValue::Share);
    let shares = causes.map(|(name, pages)| format!("{name} {}", share(pages, media_pages)));
    let absorbed = match total.host_pages_absorbed {
        0 => String::new(),
        pages => format!(". The write buffer absorbed {} of the host's pages", share(pages, total.host_pages_written)),
    };
    super::wrapped(&format!("media writes are {}{absorbed}", shares.join(", ")))
}

/// Measures of the workload, and of the device for each tenant, with a column for each.
pub fn measures(result: &RunResult) -> ReportTable {
    let columns = result.measures.iter().map(|measure| measure.name.replace('_', " "));
    let mut rows = ReportTable::default().numbers("", columns);
    if !result.measures.is_empty() {
        rows.add(result.measures.iter().map(measured));
    }
    rows
}

/// Formats a measure: bytes and counts as whole numbers, others with four digits.
fn measured(measure: &WorkloadMeasure) -> CellValue {
    let name = measure.name.rsplit('.').next().unwrap_or_default();
    if name.starts_with("bytes") || name.ends_with("bytes") {
        CellValue::Bytes(measure.value as u64)
    } else {
        CellValue::number(measure.value, 4)
    }
}

/// Readings of the drive's event log and the resulting moves. The last row covers the time after
/// the last reading.
pub fn readings(result: &RunResult, feedback: &FeedbackResult) -> ReportTable {
    let rows = ReportTable::default().labels(["reading"]).numbers(CAPACITIES, ["host"]).numbers("", ["collections"]);
    let mut rows = rows.numbers("pages / collection", ["copied"]).texts(["events that name", "moves"]);
    let mut before = 0;
    let mut add = |name: String, host_bytes: u64, until: usize, texts: [String; 2]| {
        let of = &feedback.collections[before..until];
        let pages: u64 = of.iter().flat_map(|row| &row.copied).map(|&pages| u64::from(pages)).sum();
        before = until;
        let [named, moves] = texts.map(CellValue::Text);
        rows.add([
            CellValue::Text(name),
            CellValue::Capacities(host_bytes as f64 / result.capacity_bytes as f64),
            CellValue::Count(of.len() as u64),
            CellValue::Significant(pages as f64 / of.len().max(1) as f64),
            named,
            moves,
        ]);
    };
    for (index, reading) in feedback.readings.iter().enumerate() {
        let named = reading.events.iter().enumerate().filter(|(_, events)| **events > 0);
        let named = named.map(|(owner, events)| format!("{} {events}", feedback.owner_name(owner)));
        let moves = reading
            .moves
            .iter()
            .map(|(owner, from, to, reason)| format!("{}: {from} -> {to} ({reason})", feedback.owner_name(*owner)));
        let texts = [named.collect::<Vec<_>>().join(", "), moves.collect::<Vec<_>>().join(", ")];
        add((index + 1).to_string(), reading.host_bytes, reading.collections, texts);
    }
    let all = feedback.collections.len();
    add("end".to_string(), result.stats.host_bytes_written(), all, Default::default());
    rows
}

/// Wear of a run, in a sentence. Empty if the profile has no endurance, or without writes.
pub fn wear(result: &RunResult) -> String {
    let Some(wear) = result.endurance.as_ref().filter(|_| result.stats.write_amplification().is_some()) else {
        return String::new();
    };
    let [worn, writes, left] = wear_values(Some(wear));
    super::wrapped(&format!(
        "wear is {worn} of the rated erases. At WAF {} the flash lasts {writes} drive writes a day for the \
         warranty, with {left} left to write",
        CellValue::Amplification(wear.write_amplification)
    ))
}

/// Share of the rated erases, drive writes per day, and remaining bytes.
fn wear_values(wear: Option<&Endurance>) -> [CellValue; 3] {
    let Some(wear) = wear else {
        return [CellValue::Nothing, CellValue::Nothing, CellValue::Nothing];
    };
    let used = CellValue::Share(wear.life_used);
    let worn = match wear.worn_blocks {
        0 => used,
        blocks => {
            let [blocks, of] = [blocks, wear.blocks].map(CellValue::Count);
            CellValue::Text(format!("{used} ({blocks} of {of} blocks worn out)"))
        }
    };
    let [writes, left] =
        [CellValue::Fixed(wear.drive_writes_per_day, 2), CellValue::Bytes(wear.host_bytes_left as u64)];
    [worn, writes, left]
}

/// Results of the jobs of a timed run, a row for each direction.
pub fn jobs(timed: &TimedResult) -> ReportTable {
    let latencies = ["mean", "stdev", "p50", "p99", "p99.9", "p99.99", "p99.999", "max"];
    let rows = ReportTable::default().labels(["job", ""]).numbers("", ["IOPS", "MB/s"]);
    let mut rows = rows.numbers("us", latencies).numbers("", ["waited for GC"]);
    rows.notes.extend(timed.trace.as_ref().map(TracePace::to_string));
    for job in &timed.jobs {
        rows.notes.extend(job.latency_goal.map(|goal| searched(&job.name, &goal)));
        for operation in RequestOperation::ALL {
            if job.direction(operation).requests > 0 {
                rows.add(job_values(job, operation));
            }
        }
    }
    rows
}

/// Result of the search for a queue depth (`latency_target`).
fn searched(name: &str, goal: &Goal) -> String {
    let (target_us, percent, depth) = (goal.target_ns / 1000, goal.percent, goal.depth);
    let kept = format!("{name} completes {percent} % of its requests within {target_us} us");
    if goal.found {
        format!("{kept} up to queue depth {depth}")
    } else {
        format!("{kept} at no queue depth. The last one tried was {depth}")
    }
}

fn job_values(job: &JobResult, operation: RequestOperation) -> [CellValue; 13] {
    let direction = job.direction(operation);
    let per_second = |amount: u64| amount as f64 * 1e9 / job.elapsed_ns().max(1) as f64;
    let latencies = &direction.latencies;
    let us = |nanoseconds: f64| CellValue::Significant(nanoseconds / 1e3);
    let percentile = |percent: f64| us(latencies.percentile_ns(percent) as f64);
    [
        job.name.as_str().into(),
        operation.name().into(),
        match per_second(direction.requests) {
            few if few < 1000.0 => CellValue::Significant(few),
            many => CellValue::Count(many.round() as u64),
        },
        CellValue::Significant(per_second(direction.bytes) / 1e6),
        us(latencies.mean_ns()),
        us(latencies.deviation_ns()),
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        percentile(99.99),
        percentile(99.999),
        us(latencies.max_ns() as f64),
        CellValue::Share(direction.waits.requests as f64 / direction.requests as f64),
    ]
}

/// Sums over the collections of one owner's reclaim units.
#[derive(Default)]
struct CollectionSums {
    /// Collections, in the order of [`ssd::event::Trigger`].
    by_trigger: [u64; 3],
    unit_pages: u64,
    valid_pages: u64,
    pages_copied: u64,
    pages_moved_elsewhere: u64,
    blocks_remapped: u64,
}

impl CollectionSums {
    fn add(&mut self, row: &ReclaimRecord) {
        self.by_trigger[row.trigger as usize] += 1;
        self.unit_pages += u64::from(row.unit_pages);
        self.valid_pages += u64::from(row.valid_pages);
        self.pages_copied += u64::from(row.pages_copied);
        if row.destination_owner != row.victim_owner {
            self.pages_moved_elsewhere += u64::from(row.pages_copied);
        }
        self.blocks_remapped += u64::from(row.blocks_remapped);
    }
}

/// The GC log, by owner of the victim.
pub fn collections(result: &RunResult) -> ReportTable {
    let mut rows = ReportTable::default()
        .labels(["victim"])
        .numbers("", ["background", "foreground", "forced", "valid at reclaim"])
        .numbers(CAPACITIES, ["copied"])
        .numbers("", ["to other owners", "blocks remapped"]);
    let mut owners: BTreeMap<UnitOwner, CollectionSums> = BTreeMap::new();
    for row in &result.gc_log {
        owners.entry(row.victim_owner).or_default().add(row);
    }
    for (owner, collected) in owners {
        let [background, foreground, forced] = collected.by_trigger.map(CellValue::Count);
        rows.add([
            owner.to_string().into(),
            background,
            foreground,
            forced,
            CellValue::optional(ratio(collected.valid_pages, collected.unit_pages), CellValue::Share),
            CellValue::Capacities(capacities(result, collected.pages_copied)),
            CellValue::optional(ratio(collected.pages_moved_elsewhere, collected.pages_copied), CellValue::Share),
            CellValue::Count(collected.blocks_remapped),
        ]);
    }
    rows
}

/// The last `count` collections of the GC log.
pub fn last_collections(result: &RunResult, count: usize) -> ReportTable {
    let rows = ReportTable::default().numbers(CAPACITIES, ["at"]).texts(["trigger", "policy"]);
    let rows = rows.numbers("", ["group", "unit"]).texts(["victim", "copies to"]);
    let mut rows = rows.numbers("", ["valid pages", "copied", "blocks remapped"]);
    let start = result.gc_log.len().saturating_sub(count);
    for row in &result.gc_log[start..] {
        let [valid, of] = [row.valid_pages, row.unit_pages].map(|pages| CellValue::Count(pages.into()));
        rows.add([
            CellValue::Fixed(capacities(result, row.host_pages_written), 3),
            row.trigger.name().into(),
            row.policy.into(),
            CellValue::Index(row.group.0.into()),
            CellValue::Index(row.victim.0.into()),
            row.victim_owner.to_string().into(),
            row.destination_owner.to_string().into(),
            format!("{valid} of {of}").into(),
            CellValue::Count(row.pages_copied.into()),
            CellValue::Count(row.blocks_remapped.into()),
        ]);
    }
    rows
}

/// Counters of the whole device, erase counts of its blocks, and its remaining life.
pub fn device(result: &RunResult) -> ReportTable {
    let stats = &result.stats;
    let wear = &result.wear;
    let [life_used, drive_writes, left] = wear_values(result.endurance.as_ref());
    let totals = [
        ("seed", CellValue::Index(result.seed)),
        ("host written", CellValue::Bytes(stats.host_bytes_written())),
        ("media written", CellValue::Bytes(stats.media_bytes_written())),
    ];
    // Columns of causes that most drives do not have.
    let causes = [
        ("absorbed", stats.total().host_pages_absorbed),
        ("wear levelling", stats.total().wear_levelling_pages),
        ("overhead", stats.overhead_pages()),
    ];
    let causes = causes.into_iter();
    let causes = causes.filter(|(_, pages)| *pages > 0);
    let causes = causes.map(|(heading, pages)| (heading, CellValue::Bytes(pages * stats.page_bytes)));
    let others = [
        ("media erased", CellValue::Bytes(stats.media_bytes_erased())),
        ("background GC", CellValue::Count(stats.background_collections)),
        ("foreground GC", CellValue::Count(stats.foreground_collections)),
        ("forced GC", CellValue::Count(stats.forced_collections)),
        ("closed by host", CellValue::Count(stats.units_closed_by_host)),
        ("closed early", CellValue::Count(stats.units_closed_early)),
        ("pages deallocated", CellValue::Count(stats.pages_deallocated)),
        ("pages redirected", CellValue::Count(stats.pages_redirected)),
        ("fewest erases", CellValue::Count(wear.fewest_erases.into())),
        ("mean erases", CellValue::Fixed(wear.mean_erases(), 1)),
        ("most erases", CellValue::Count(wear.most_erases.into())),
        ("life used", life_used),
        ("drive writes a day", drive_writes),
        ("left to write", left),
    ];
    let columns = totals.into_iter().chain(causes).chain(others);
    let (headings, cells): (Vec<&str>, Vec<CellValue>) = columns.unzip();
    let mut rows = ReportTable::default().numbers("", headings);
    rows.add(cells);
    rows
}

/// Parameters of a run, with "stopped" if it did not run to its end.
pub fn run(result: &RunResult) -> ReportTable {
    let written = result.stats.host_bytes_written() as f64 / result.capacity_bytes as f64;
    let end = if result.complete { "ran to its end" } else { "stopped" };
    // The other scales are those of a search.
    let scales = if result.search.is_some() { SCALE_HEADINGS.len() } else { 1 };
    let mut rows = ReportTable::default()
        .numbers("", ["seed"])
        .numbers("", SCALE_HEADINGS.into_iter().take(scales))
        .numbers("", ["capacity", "reclaim units", "handles", "mapping unit"])
        .numbers(CAPACITIES, ["written"])
        .numbers("", ["samples"])
        .texts(["", "warnings"]);
    let warnings: Vec<String> = result.warnings().iter().map(RunWarning::to_string).collect();
    let cells = [CellValue::Index(result.seed)].into_iter().chain(scale_values(result).into_iter().take(scales));
    rows.add(cells.chain([
        CellValue::Bytes(result.capacity_bytes),
        CellValue::Count(result.superblocks.into()),
        CellValue::Count(result.stats.handles.len() as u64),
        CellValue::Bytes(result.stats.page_bytes),
        CellValue::Capacities(written),
        CellValue::Count(result.samples.len() as u64),
        end.into(),
        warnings.join("; ").into(),
    ]));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::testing as sample;

    fn texts(rows: &ReportTable) -> Vec<Vec<String>> {
        let texts = |row: &crate::rows::TableRow| row.cells.iter().map(CellValue::to_string).collect();
        rows.rows.iter().map(texts).collect()
    }

    #[test]
    fn handles_that_were_never_used_are_left_out() {
        let result = &sample::results()[0];
        let rows = texts(&handles(result));
        let owners: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(owners, ["RUH 0", "RUH 1", "RUH 2", "shared"]);
        assert_eq!((rows[3][1].as_str(), rows[3][3].as_str()), ("0.00", "–"));
        let row = &OwnerRow::used(result)[1];
        assert_eq!(rows[1][2], CellValue::Capacities(row.copied_capacities).to_string());
        let valid_share = row.mean_valid_share.expect("it was reclaimed");
        assert_eq!(rows[1][6], CellValue::Share(valid_share).to_string());
        // A reclaim unit of ten valid pages, six of them in remapped blocks.
        let mut stats = row.stats;
        (stats.valid_pages_reclaimed, stats.pages_erased, stats.pages_remapped) = (10, 4, 6);
        assert_eq!(OwnerRow::new(result, row.owner, stats).mean_valid_share, Some(1.0));
    }

    #[test]
    fn numbers_are_aligned_at_the_right() {
        let text = handles(&sample::results()[0]).text_within(usize::MAX);
        let second = |line: &str| line.split('┆').nth(1).map(str::to_string);
        let cells: Vec<String> = text.lines().filter_map(second).collect();
        assert!(cells.len() > 2 && cells.iter().all(|cell| cell.ends_with(' ') && !cell.ends_with("  ")), "{text}");
    }

    #[test]
    fn collections_add_up() {
        let result = &sample::results()[2];
        let rows = collections(result).rows;
        let number = |value: &CellValue| match value {
            CellValue::Count(count) => *count,
            other => panic!("{other:?} is no count"),
        };
        let total: u64 = rows.iter().flat_map(|row| row.cells[1..4].iter().map(number)).sum();
        assert_eq!(total, result.gc_log.len() as u64);
        let texts = texts(&collections(result));
        assert_eq!((texts[0][0].as_str(), texts[1][0].as_str()), ("RUH 0", "shared"));
        // Copies from handle 0, which is initially isolated, leave the handle. Copies from the pool
        // stay in it.
        assert_eq!((texts[0][6].as_str(), texts[1][6].as_str()), ("100.0 %", "0.0 %"));
    }

    #[test]
    fn what_a_workload_measured_is_a_column_each() {
        let mut result = sample::results().remove(0);
        assert!(measures(&result).is_empty());
        result.measures = [("hit_ratio", 0.5), ("tenant.bytes_written", 4096.0), ("misses", 1234.0)]
            .map(|(name, value)| WorkloadMeasure { name: name.into(), value })
            .to_vec();
        assert_eq!(texts(&measures(&result)), [["0.5000", "4 KiB", "1,234"]]);
        let upright = measures(&result).transposed("workload", ["measured".to_string()]);
        assert_eq!(texts(&upright)[1], ["tenant.bytes written", "4 KiB"]);
    }
}
