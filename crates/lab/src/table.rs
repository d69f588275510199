//! Results as terminal tables, and the words and digits that every form of them shares.
//!
//! ```text
//! CellResult -> Grid (cells by key, averaged over seeds)  -> text; report.rs makes the same rows HTML
//!            -> OwnerRow (one reclaim unit handle)        ->
//! ```
//!
//! Tables fit the terminal's width if there is one. It prints nothing, uses no colours, and judges nothing: claims and
//! comparisons come from [`crate::judge`]. `docs/results.md` explains every word.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use ssd::{Endurance, Owner, OwnerStats, RuhId};

use crate::cell::CellKey;
use crate::feedback::FeedbackResult;
use crate::judge::{Comparison, Verdict};
use crate::run::CellResult;
use crate::timed::measure::{JobResult, TimedResult};
use workload::{Measure, Operation};

/// Stands where there is nothing to say: a ratio of nothing, a cell that was not run.
pub const NOTHING: &str = "–";

/// Write amplification, in three digits after the point.
pub fn write_amplification(value: f64) -> String {
    format!("{value:.3}")
}

/// Four significant digits, and all of a whole number: for latencies and rates.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A multiple of the device's logical capacity, in two digits after the point.
pub fn capacities(value: f64) -> String {
    // What rounds to zero without being zero is said to be small: 0.00 means none at all.
    if value > 0.0 && value < 0.005 {
        "<0.01".to_string()
    } else {
        format!("{value:.2}")
    }
}

/// A share of one, in percent.
pub fn share(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

/// Bytes in the largest decimal unit that leaves a digit before the point, as drive makers count.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] = [
        ("PB", 1_000_000_000_000_000),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
    ];
    let unit = UNITS.iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(name, size)| format!("{:.2} {name}", bytes as f64 / *size as f64),
    )
}

/// A count, with a comma for every three digits.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups = tail
        .as_bytes()
        .chunks(3)
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"));
    let groups: Vec<&str> = [head]
        .into_iter()
        .filter(|head| !head.is_empty())
        .chain(groups)
        .collect();
    groups.join(",")
}

/// A value, or [`NOTHING`].
pub fn optional(value: Option<f64>, print: fn(f64) -> String) -> String {
    value.map_or_else(|| NOTHING.to_string(), print)
}

/// Name of a grid axis; experiments know it, results carry values only.
pub fn axis_name(axes: &[String], index: usize) -> String {
    axes.get(index)
        .cloned()
        .unwrap_or_else(|| format!("axis {}", index + 1))
}

/// A variant's name; experiments without variants have one that is empty.
pub fn variant_name(variant: &str) -> &str {
    if variant.is_empty() { "all" } else { variant }
}

/// Results by coordinates: devices, variants and the values of the other axes down, values of the first axis across.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Values of the first grid axis; one empty string if there is no axis.
    pub columns: Vec<String>,
    /// In the order in which the results come.
    pub rows: Vec<GridRow>,
}

/// A row of a [`Grid`].
#[derive(Clone, Debug, PartialEq)]
pub struct GridRow {
    /// Device profile.
    pub device: String,
    /// Variant; empty if the experiment has none.
    pub variant: String,
    /// Values of the second and further axes.
    pub rest: Vec<String>,
    /// One for each column; `None` if it was not run.
    pub cells: Vec<Option<GridCell>>,
}

/// A cell of a [`Grid`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridCell {
    /// Mean over the seeds that ran to their end; over the stopped ones if none did.
    pub value: f64,
    /// Whether all seeds ran to their end.
    pub complete: bool,
}

impl Grid {
    /// Sorts results by their keys and averages `measure` over seeds.
    pub fn new(results: &[CellResult], measure: impl Fn(&CellResult) -> f64) -> Grid {
        let columns = distinct(results.iter().map(|result| column_of(&result.key)));
        let row_of = |key: &CellKey| {
            (
                key.device.clone(),
                key.variant.clone(),
                key.grid.iter().skip(1).cloned().collect(),
            )
        };
        let keys: Vec<(String, String, Vec<String>)> = distinct(results.iter().map(|result| row_of(&result.key)));
        let rows = keys.into_iter().map(|row| {
            let of_row: Vec<&CellResult> = results.iter().filter(|result| row_of(&result.key) == row).collect();
            let cell = |column: &String| {
                let seeds = of_row.iter().filter(|result| column_of(&result.key) == *column);
                GridCell::over(&seeds.copied().collect::<Vec<_>>(), &measure)
            };
            let cells = columns.iter().map(cell).collect();
            let (device, variant, rest) = row;
            GridRow {
                device,
                variant,
                rest,
                cells,
            }
        });
        let rows = rows.collect();
        Grid { columns, rows }
    }
}

impl GridCell {
    fn over(seeds: &[&CellResult], measure: &impl Fn(&CellResult) -> f64) -> Option<GridCell> {
        let complete: Vec<f64> = seeds
            .iter()
            .filter(|seed| seed.complete)
            .map(|seed| measure(seed))
            .collect();
        let all = complete.len() == seeds.len();
        let values = if complete.is_empty() {
            seeds.iter().map(|seed| measure(seed)).collect()
        } else {
            complete
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then_some(GridCell {
            value: mean,
            complete: all,
        })
    }
}

impl std::fmt::Display for GridCell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stopped = if self.complete { "" } else { " (stopped)" };
        write!(formatter, "{}{stopped}", write_amplification(self.value))
    }
}

fn column_of(key: &CellKey) -> String {
    key.grid.first().cloned().unwrap_or_default()
}

/// Values in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

/// One reclaim unit handle of a result, or the shared pool.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerRow {
    /// Which.
    pub owner: Owner,
    /// Its counters.
    pub stats: OwnerStats,
    /// Bytes that the host wrote through it, in multiples of the capacity.
    pub host_capacities: f64,
    /// Bytes copied out of its reclaim units, in multiples of the capacity.
    pub copied_capacities: f64,
    /// Valid pages in a reclaim unit when it was reclaimed, as a share of its pages; `None` before the first.
    pub mean_valid_share: Option<f64>,
}

impl OwnerRow {
    /// The handles that were used, and the shared pool if anything went there.
    pub fn used(result: &CellResult) -> Vec<OwnerRow> {
        let handles = result.stats.handles.iter().enumerate();
        let handles = handles.map(|(index, stats)| (Owner::of(RuhId(index as u16)), *stats));
        let owners = handles.chain([(Owner::SHARED, result.stats.shared)]);
        let rows = owners.map(|(owner, stats)| OwnerRow::new(result, owner, stats));
        rows.filter(OwnerRow::is_used).collect()
    }

    fn new(result: &CellResult, owner: Owner, stats: OwnerStats) -> OwnerRow {
        let capacity = result.capacity_bytes as f64;
        let erased = stats.pages_erased;
        OwnerRow {
            owner,
            stats,
            host_capacities: stats.host_bytes_written as f64 / capacity,
            copied_capacities: (stats.gc_pages_copied * result.stats.page_bytes) as f64 / capacity,
            mean_valid_share: (erased > 0).then(|| stats.valid_pages_reclaimed as f64 / erased as f64),
        }
    }

    /// A reclaim unit that was opened (at the start, for every handle) and never written is no use.
    fn is_used(&self) -> bool {
        let stats = &self.stats;
        stats.host_bytes_written + stats.gc_pages_copied + stats.gc_pages_received + stats.units_reclaimed > 0
    }

    /// Headings of [`OwnerRow::texts`].
    pub const HEADINGS: [&str; 8] = [
        "handle",
        "host (x capacity)",
        "copied (x capacity)",
        "own WAF",
        "units opened",
        "units reclaimed",
        "valid at reclaim",
        "blocks remapped",
    ];

    /// The row in words and digits.
    pub fn texts(&self) -> [String; 8] {
        [
            self.owner.to_string(),
            capacities(self.host_capacities),
            capacities(self.copied_capacities),
            optional(self.stats.write_amplification(), write_amplification),
            count(self.stats.units_opened),
            count(self.stats.units_reclaimed),
            optional(self.mean_valid_share, share),
            count(self.stats.blocks_remapped),
        ]
    }
}

/// Write amplification of every cell: devices and variants down, the first grid axis across, averages over seeds.
///
/// `measure` is what is averaged: [`CellResult::write_amplification`], or that of the end of the run.
pub fn summary(results: &[CellResult], axes: &[String], measure: impl Fn(&CellResult) -> f64) -> String {
    let grid = Grid::new(results, measure);
    let mut table = new_table(grid_headings(&grid, axes), grid_labels(&grid));
    for row in &grid.rows {
        table.add_row(grid_texts(&grid, row));
    }
    let across = if grid.columns.len() > 1 {
        format!("across: {}\n", axis_name(axes, 0))
    } else {
        String::new()
    };
    format!("{across}{}", fitted(&table))
}

/// Columns of a [`Grid`] that are names, not numbers.
pub(crate) fn grid_labels(grid: &Grid) -> usize {
    let rest = grid.rows.iter().map(|row| row.rest.len()).max().unwrap_or(0);
    1 + usize::from(has_variants(grid)) + rest
}

/// Headings of a [`Grid`].
pub(crate) fn grid_headings(grid: &Grid, axes: &[String]) -> Vec<String> {
    let mut headings = vec!["device".to_string()];
    if has_variants(grid) {
        headings.push("variant".to_string());
    }
    let rest = grid.rows.iter().map(|row| row.rest.len()).max().unwrap_or(0);
    headings.extend((1..=rest).map(|index| axis_name(axes, index)));
    let waf = |column: &String| {
        if column.is_empty() {
            "WAF".to_string()
        } else {
            column.clone()
        }
    };
    headings.extend(grid.columns.iter().map(waf));
    headings
}

/// A row of a [`Grid`] under [`grid_headings`].
pub(crate) fn grid_texts(grid: &Grid, row: &GridRow) -> Vec<String> {
    let mut texts = vec![row.device.clone()];
    if has_variants(grid) {
        texts.push(variant_name(&row.variant).to_string());
    }
    texts.extend(row.rest.iter().cloned());
    let cell = |cell: &Option<GridCell>| cell.map_or_else(|| NOTHING.to_string(), |cell| cell.to_string());
    texts.extend(row.cells.iter().map(cell));
    texts
}

/// The table of write amplifications of whole runs.
pub fn write_amplifications(results: &[CellResult], axes: &[String]) -> String {
    summary(results, axes, CellResult::write_amplification)
}

/// Everything that a run shows in a terminal: write amplifications, what jobs got from the drive, and, if that is asked for or there is
/// but one result, the handles.
pub fn results(title: &str, axes: &[String], results: &[CellResult], with_handles: bool) -> String {
    let mut text = format!("{title}\n{}\n", write_amplifications(results, axes));
    if let [result] = results {
        text += &measures(result);
    }
    for result in results {
        if let Some(timed) = &result.timed {
            text += &format!("{}\n{}\n", result.key, jobs(timed));
        }
    }
    for result in results.iter().filter(|result| result.feedback.is_some()) {
        text += &format!("{}\n{}\n", result.key, readings(result));
    }
    if with_handles || results.len() == 1 {
        for result in results {
            text += &format!("{}\n{}{}\n", result.key, handles(result), wear(result));
        }
    }
    text
}

fn has_variants(grid: &Grid) -> bool {
    grid.rows.iter().any(|row| !row.variant.is_empty())
}

/// The reclaim unit handles of one result.
pub fn handles(result: &CellResult) -> String {
    let mut table = new_table(OwnerRow::HEADINGS.map(str::to_string).to_vec(), 1);
    for row in OwnerRow::used(result) {
        table.add_row(row.texts());
    }
    fitted(&table)
}

/// What a workload measured, and the device for each tenant; empty if there is nothing.
pub fn measures(result: &CellResult) -> String {
    if result.measures.is_empty() {
        return String::new();
    }
    let mut table = new_table(["workload", "measured"].map(str::to_string).to_vec(), 1);
    for measure in &result.measures {
        table.add_row([measure.name.replace('_', " "), measured(measure)]);
    }
    fitted(&table)
}

/// A reading of the drive's events as a row of a table.
pub(crate) struct ReadingTexts(pub(crate) [String; 6]);

impl ReadingTexts {
    /// Headings of the columns.
    pub(crate) const HEADINGS: [&str; 6] = [
        "reading",
        "host (x capacity)",
        "collections",
        "copied / collection",
        "events that name",
        "moves",
    ];

    /// All readings of a run; the last row is what came after them.
    pub(crate) fn all(result: &CellResult, feedback: &FeedbackResult) -> Vec<ReadingTexts> {
        let mut before = 0;
        let mut rows = Vec::new();
        let mut copied = |until: usize| {
            let of = &feedback.collections[before..until];
            let pages: u64 = of
                .iter()
                .flat_map(|row| &row.copied)
                .map(|&pages| u64::from(pages))
                .sum();
            before = until;
            (of.len(), pages as f64 / of.len().max(1) as f64)
        };
        for (index, reading) in feedback.readings.iter().enumerate() {
            let (collections, pages) = copied(reading.collections);
            let named = reading.events.iter().enumerate().filter(|(_, events)| **events > 0);
            let named = named.map(|(owner, events)| format!("{} {events}", feedback.owner_name(owner)));
            let moves = reading
                .moves
                .iter()
                .map(|(owner, from, to, reason)| format!("{}: {from} -> {to} ({reason})", feedback.owner_name(*owner)));
            rows.push(ReadingTexts([
                (index + 1).to_string(),
                capacities(reading.host_bytes as f64 / result.capacity_bytes as f64),
                count(collections as u64),
                significant(pages),
                named.collect::<Vec<_>>().join(", "),
                moves.collect::<Vec<_>>().join(", "),
            ]));
        }
        let (collections, pages) = copied(feedback.collections.len());
        let host = result.stats.host_bytes_written() as f64 / result.capacity_bytes as f64;
        let texts = [
            "end".to_string(),
            capacities(host),
            count(collections as u64),
            significant(pages),
        ];
        let [end, host, collections, pages] = texts;
        rows.push(ReadingTexts([
            end,
            host,
            collections,
            pages,
            String::new(),
            String::new(),
        ]));
        rows
    }
}

/// What was read of the drive's events, and what followed.
pub fn readings(result: &CellResult) -> String {
    let Some(feedback) = &result.feedback else {
        return String::new();
    };
    let mut table = new_table(ReadingTexts::HEADINGS.map(str::to_string).to_vec(), 1);
    set_left(&mut table, 4);
    set_left(&mut table, 5);
    for texts in ReadingTexts::all(result, feedback) {
        table.add_row(texts.0);
    }
    fitted(&table)
}

/// A measure: a count or bytes in whole numbers, anything else in four digits.
pub fn measured(measure: &Measure) -> String {
    let value = measure.value;
    let name = measure.name.rsplit('.').next().unwrap_or_default();
    if name.starts_with("bytes") || name.ends_with("bytes") {
        return bytes(value as u64);
    }
    match value.fract() == 0.0 {
        true => count(value as u64),
        false => format!("{value:.4}"),
    }
}

/// What the wear of a run comes to, in a line; empty if the profile does not say what the flash survives.
pub fn wear(result: &CellResult) -> String {
    let Some(wear) = &result.endurance else {
        return String::new();
    };
    let [worn, writes, left] = wear_texts(wear);
    format!(
        "wear: {worn} of the rated erases; {writes} drive-writes a day for the warranty at this WAF, {left} left to write\n"
    )
}

/// Share of the rated erases, drive-writes a day, bytes left to write.
pub fn wear_texts(wear: &Endurance) -> [String; 3] {
    let worn = match wear.worn_blocks {
        0 => share(wear.life_used),
        blocks => format!(
            "{} ({} of {} blocks worn out)",
            share(wear.life_used),
            count(blocks),
            count(wear.blocks)
        ),
    };
    [
        worn,
        format!("{:.2}", wear.drive_writes_per_day),
        bytes(wear.host_bytes_left as u64),
    ]
}

/// One direction of a job of a timed run.
pub struct JobRow<'a> {
    job: &'a JobResult,
    operation: Operation,
}

impl<'a> JobRow<'a> {
    /// Headings of [`JobRow::texts`].
    pub const HEADINGS: [&'static str; 13] = [
        "job",
        "",
        "IOPS",
        "MB/s",
        "mean, us",
        "stdev",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "p99.999",
        "max",
        "waited for GC",
    ];

    /// Everything that was done.
    pub fn all(timed: &'a TimedResult) -> Vec<JobRow<'a>> {
        let rows = timed
            .jobs
            .iter()
            .flat_map(|job| Operation::ALL.map(|operation| JobRow { job, operation }));
        rows.filter(|row| row.job.direction(row.operation).requests > 0)
            .collect()
    }

    /// The row in words and digits; latencies in microseconds.
    pub fn texts(&self) -> [String; 13] {
        let direction = self.job.direction(self.operation);
        let per_second = |amount: u64| amount as f64 * 1e9 / self.job.elapsed_ns().max(1) as f64;
        let latencies = &direction.latencies;
        let us = |nanoseconds: f64| significant(nanoseconds / 1e3);
        let percentile = |percent: f64| us(latencies.percentile_ns(percent) as f64);
        [
            self.job.name.clone(),
            OPERATIONS[self.operation as usize].to_string(),
            count(per_second(direction.requests).round() as u64),
            significant(per_second(direction.bytes) / 1e6),
            us(latencies.mean_ns()),
            us(latencies.deviation_ns()),
            percentile(50.0),
            percentile(99.0),
            percentile(99.9),
            percentile(99.99),
            percentile(99.999),
            us(latencies.max_ns() as f64),
            share(direction.waits.requests as f64 / direction.requests as f64),
        ]
    }
}

/// Directions, in fio's order.
pub(crate) const OPERATIONS: [&str; 3] = ["read", "write", "trim"];

/// What the jobs of a timed run got from the drive.
pub fn jobs(timed: &TimedResult) -> String {
    let mut table = new_table(JobRow::HEADINGS.map(str::to_string).to_vec(), 2);
    for row in JobRow::all(timed) {
        table.add_row(row.texts());
    }
    fitted(&table)
}

/// Headings of [`comparison_texts`].
pub(crate) const COMPARISON_HEADINGS: [&str; 7] = [
    "cell",
    "measured",
    "paper's drive",
    "paper's emulator",
    "ours",
    "error",
    "source",
];

/// A published number beside ours, in words and digits.
pub(crate) fn comparison_texts(comparison: &Comparison) -> [String; 7] {
    let is_relative = comparison.metric.is_relative();
    let print: fn(f64) -> String = if is_relative { significant } else { write_amplification };
    let error = match is_relative {
        true => optional(comparison.relative_error(), |error| format!("{:+.1} %", error * 100.0)),
        false => optional(comparison.error(), |error| format!("{error:+.3}")),
    };
    [
        comparison.key.to_string(),
        comparison.metric.name(),
        optional(comparison.drive, print),
        optional(comparison.emulator, print),
        optional(comparison.ours, print),
        error,
        comparison.source.clone(),
    ]
}

/// Published numbers beside ours.
pub fn comparisons(comparisons: &[Comparison]) -> String {
    let mut table = new_table(COMPARISON_HEADINGS.map(str::to_string).to_vec(), 2);
    set_left(&mut table, 6);
    for comparison in comparisons {
        table.add_row(comparison_texts(comparison));
    }
    fitted(&table)
}

/// Claims and whether they hold.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let headings = ["", "claim", "found", "source"].map(str::to_string);
    let mut table = new_table(headings.to_vec(), 4);
    for verdict in verdicts {
        table.add_row([holds(verdict), &verdict.what, &verdict.found, &verdict.source]);
    }
    fitted(&table)
}

/// The verdict in a word.
pub(crate) fn holds(verdict: &Verdict) -> &'static str {
    if verdict.holds { "holds" } else { "FAILS" }
}

/// A table whose first `labels` columns are names and whose others are numbers.
fn new_table(headings: Vec<String>, labels: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    let columns = headings.len();
    table.set_header(headings.into_iter().map(Cell::new));
    for index in labels..columns {
        table
            .column_mut(index)
            .expect("the header made it")
            .set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn set_left(table: &mut Table, column: usize) {
    table
        .column_mut(column)
        .expect("the header made it")
        .set_cell_alignment(CellAlignment::Left);
}

/// Text without blanks at the ends of lines, ending in a line break.
fn fitted(table: &Table) -> String {
    format!("{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn lines(text: &str) -> Vec<Vec<String>> {
        let split = |line: &str| {
            line.split(['│', '┆'])
                .map(|cell| cell.trim().to_string())
                .filter(|cell| !cell.is_empty())
                .collect()
        };
        text.lines().filter(|line| line.contains('│')).map(split).collect()
    }

    #[test]
    fn digits() {
        assert_eq!(write_amplification(2.0), "2.000");
        assert_eq!(capacities(4.425), "4.42");
        assert_eq!(
            (capacities(0.0), capacities(0.0049), capacities(0.0051)),
            ("0.00".into(), "<0.01".into(), "0.01".into())
        );
        assert_eq!(share(0.1234), "12.3 %");
        assert_eq!(bytes(7_680_000_000_000), "7.68 TB");
        assert_eq!(
            (bytes(999), bytes(1000), bytes(119_999_999_488)),
            ("999 B".into(), "1.00 kB".into(), "120.00 GB".into())
        );
        let counts = [0, 12, 123, 1234, 123_456, 1_234_567].map(count);
        assert_eq!(counts, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }

    #[test]
    fn the_summary_has_a_row_for_each_variant_and_a_column_for_each_value() {
        let results = sample::results();
        let rows = lines(&summary(&results, &sample::axes(), CellResult::write_amplification));
        assert_eq!(rows[0], ["device", "variant", "zipf 2.2", "zipf 1.2", "80/20"]);
        let first = summary(&results, &sample::axes(), CellResult::write_amplification);
        assert_eq!(first.lines().next(), Some("across: overwrite"));
        assert_eq!(rows.len(), 1 + 6);
        assert_eq!(rows[1][..2], ["ssd_a", "FDP"]);
        assert_eq!(rows[1][2], write_amplification(results[0].write_amplification()));
        assert_eq!(rows[6][4], write_amplification(results[17].write_amplification()));
    }

    #[test]
    fn seeds_are_averaged_and_stopped_runs_left_out_and_marked() {
        let mut results: Vec<_> = sample::results().into_iter().take(1).collect();
        results.push(CellResult {
            seed: 2,
            ..results[0].clone()
        });
        let by_seed = |result: &CellResult| result.seed as f64;
        let cell = |results: &[CellResult]| {
            Grid::new(results, by_seed).rows[0].cells[0]
                .expect("it was run")
                .to_string()
        };
        assert_eq!(cell(&results), "1.500");
        results[1].complete = false;
        assert_eq!(cell(&results), "1.000 (stopped)");
        results[0].complete = false;
        assert_eq!(cell(&results), "1.500 (stopped)");
    }

    #[test]
    fn a_cell_that_was_not_run_is_a_dash_and_further_axes_are_rows() {
        let mut results = sample::results();
        results.truncate(4);
        for result in &mut results {
            result.key.grid.push("256 MiB".to_string());
        }
        let axes = ["overwrite".to_string(), "reclaim unit".to_string()];
        let rows = lines(&summary(&results, &axes, CellResult::write_amplification));
        assert_eq!(rows[0], ["device", "variant", "reclaim unit", "zipf 2.2", "zipf 1.2"]);
        assert_eq!(rows[2][..3], ["ssd_a", "Mixed", "256 MiB"]);
        assert_eq!(rows[2][4], NOTHING);
    }

    #[test]
    fn handles_that_were_never_used_are_left_out() {
        let result = &sample::results()[0];
        let rows = lines(&handles(result));
        let owners: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
        assert_eq!(owners, ["RUH 0", "RUH 1", "RUH 2", "shared"]);
        assert_eq!(rows[4][1], "0.00");
        assert_eq!(rows[4][3], NOTHING);
        let row = &OwnerRow::used(result)[1];
        assert_eq!(rows[2][2], capacities(row.copied_capacities));
        assert_eq!(rows[2][6], share(row.mean_valid_share.expect("it was reclaimed")));
    }

    #[test]
    fn numbers_are_aligned_at_the_right() {
        let text = handles(&sample::results()[0]);
        let second = |line: &str| line.split('┆').nth(1).map(str::to_string);
        let cells: Vec<String> = text.lines().filter_map(second).collect();
        assert!(
            cells.len() > 2 && cells.iter().all(|cell| cell.ends_with(' ') && !cell.ends_with("  ")),
            "{text}"
        );
    }
}
