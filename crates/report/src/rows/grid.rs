//! Results by coordinates, averaged over seeds: the table of write amplifications, and coordinate
//! names for all tables.

use super::{CellValue, ReportTable};
use analysis::interval::Intervals;
use base::distinct;
use experiment::CellKey;
use experiment::coordinates::axis_name;
use simulate::run::RunResult;

/// Display name of a variant, also for the empty name in experiments without variants.
pub fn variant_name(variant: &str) -> &str {
    if variant.is_empty() { "all" } else { variant }
}

/// Names of all axes on which results have values.
pub(crate) fn axes_of(results: &[RunResult], axes: &[String]) -> Vec<String> {
    let most = results.iter().map(|result| result.key.grid.len()).max().unwrap_or(0);
    (0..most).map(|index| axis_name(axes, index)).collect()
}

/// Results by coordinates. Rows are devices, variants and the values of further axes, columns are
/// the values of the first axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Values of the first grid axis. One empty string without axes.
    pub columns: Vec<String>,
    pub rows: Vec<GridRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GridRow {
    pub device: String,
    /// Variant. Empty if the experiment has none.
    pub variant: String,
    /// Values of the second and further axes.
    pub rest: Vec<String>,
    /// Cells, one for each column. `None` if it was not run.
    pub cells: Vec<Option<GridCell>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridCell {
    /// Mean over the complete seeds, or over the stopped ones if none is complete.
    pub value: f64,
    /// True if all seeds ran to their end.
    pub complete: bool,
    /// True if the host wrote data. Without writes the write amplification is undefined.
    pub is_written: bool,
    /// Interval over the device's ensemble: low, high. `None` if it was not run.
    pub interval: Option<[f64; 2]>,
    /// True if a warning makes the value doubtful.
    pub is_doubtful: bool,
}

impl Grid {
    /// Groups results by their keys and averages `measure`, a write amplification, over seeds.
    pub fn new(results: &[RunResult], intervals: &Intervals, measure: impl Fn(&RunResult) -> f64) -> Grid {
        let columns = distinct(results.iter().map(|result| column_of(&result.key)));
        let row_of =
            |key: &CellKey| (key.device.clone(), key.variant.clone(), key.grid.iter().skip(1).cloned().collect());
        let keys: Vec<(String, String, Vec<String>)> = distinct(results.iter().map(|result| row_of(&result.key)));
        let rows = keys.into_iter().map(|row| {
            let of_row: Vec<&RunResult> = results.iter().filter(|result| row_of(&result.key) == row).collect();
            let cell = |column: &String| {
                let seeds = of_row.iter().filter(|result| column_of(&result.key) == *column);
                GridCell::over(&seeds.copied().collect::<Vec<_>>(), intervals, &measure)
            };
            let cells = columns.iter().map(cell).collect();
            let (device, variant, rest) = row;
            GridRow { device, variant, rest, cells }
        });
        let rows = rows.collect();
        Grid { columns, rows }
    }

    /// Number of columns with names.
    pub(crate) fn labels(&self) -> usize {
        1 + usize::from(self.has_variants()) + self.further_axes()
    }

    pub fn to_rows(&self, axes: &[String]) -> ReportTable {
        self.to_rows_of(axes, CellValue::from)
    }

    /// A table of the values that `value` makes from the cells.
    pub(crate) fn to_rows_of(&self, axes: &[String], value: impl Fn(GridCell) -> CellValue) -> ReportTable {
        let variant = self.has_variants().then(|| "variant".to_string());
        let further = (1..=self.further_axes()).map(|index| axis_name(axes, index));
        let labels = ["device".to_string()].into_iter().chain(variant).chain(further);
        let across = self.columns.iter().map(|value| if value.is_empty() { "WAF" } else { value });
        let mut rows = ReportTable::default().labels(labels).numbers("", across);
        for row in &self.rows {
            let variant = self.has_variants().then(|| variant_name(&row.variant).into());
            let rest = row.rest.iter().map(CellValue::from);
            let cells = row.cells.iter().map(|cell| CellValue::optional(*cell, &value));
            rows.add([CellValue::from(&row.device)].into_iter().chain(variant).chain(rest).chain(cells));
        }
        rows
    }

    fn has_variants(&self) -> bool {
        self.rows.iter().any(|row| !row.variant.is_empty())
    }

    fn further_axes(&self) -> usize {
        self.rows.iter().map(|row| row.rest.len()).max().unwrap_or(0)
    }
}

impl GridCell {
    fn over(seeds: &[&RunResult], intervals: &Intervals, measure: &impl Fn(&RunResult) -> f64) -> Option<GridCell> {
        let key = &seeds.first()?.key;
        let complete: Vec<f64> = seeds.iter().filter(|seed| seed.complete).map(|seed| measure(seed)).collect();
        let all = complete.len() == seeds.len();
        let values = if complete.is_empty() { seeds.iter().map(|seed| measure(seed)).collect() } else { complete };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let interval = intervals.of_write_amplification(key, mean, measure).filter(|_| all);
        Some(GridCell {
            value: mean,
            complete: all,
            is_written: seeds.iter().any(|seed| seed.stats.total().host_bytes_written > 0),
            interval: interval.map(|interval| [interval.low, interval.high]),
            is_doubtful: seeds.iter().any(|seed| seed.is_doubtful()),
        })
    }
}

impl From<GridCell> for CellValue {
    fn from(cell: GridCell) -> CellValue {
        let value = match cell.interval {
            _ if !cell.is_written => return "n/a".into(),
            Some(ends) => CellValue::Interval(cell.value, ends),
            None if cell.complete => CellValue::Amplification(cell.value),
            None => CellValue::Stopped(cell.value),
        };
        value.mark_doubtful(cell.is_doubtful)
    }
}

fn column_of(key: &CellKey) -> String {
    key.grid.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::interval::NO_INTERVALS;
    use simulate::testing as sample;

    fn texts(results: &[RunResult], axes: &[String]) -> Vec<Vec<String>> {
        let rows = Grid::new(results, &NO_INTERVALS, RunResult::write_amplification).to_rows(axes);
        let headings = rows.columns.iter().map(|column| column.heading.clone()).collect();
        let texts = rows.rows.iter().map(|row| row.cells.iter().map(CellValue::to_string).collect());
        [headings].into_iter().chain(texts).collect()
    }

    #[test]
    fn the_summary_has_a_row_for_each_variant_and_a_column_for_each_value() {
        let results = sample::results();
        let rows = texts(&results, &sample::axes());
        assert_eq!(rows[0], ["device", "variant", "zipf 2.2", "zipf 1.2", "80/20"]);
        assert_eq!(rows.len(), 1 + 6);
        assert_eq!(rows[1][..2], ["ssd_a", "FDP"]);
        let waf = |index: usize| {
            let result: &RunResult = &results[index];
            let value = CellValue::Amplification(result.write_amplification());
            value.mark_doubtful(result.is_doubtful()).to_string()
        };
        assert_eq!((&rows[1][2], &rows[6][4]), (&waf(0), &waf(17)));
        let text = super::super::write_amplifications(&results, &sample::axes(), &NO_INTERVALS).text_within(usize::MAX);
        assert_eq!(text.lines().next(), Some("across: overwrite"));
    }

    #[test]
    fn seeds_are_averaged_and_stopped_runs_left_out_and_marked() {
        let mut results: Vec<_> = sample::results().into_iter().take(1).collect();
        results.push(RunResult { seed: 2, ..results[0].clone() });
        let by_seed = |result: &RunResult| result.seed as f64;
        let cell = |results: &[RunResult]| {
            CellValue::from(Grid::new(results, &NO_INTERVALS, by_seed).rows[0].cells[0].expect("it was run"))
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
        let rows = texts(&results, &["overwrite".to_string(), "reclaim unit".to_string()]);
        assert_eq!(rows[0], ["device", "variant", "reclaim unit", "zipf 2.2", "zipf 1.2"]);
        assert_eq!(rows[2][..3], ["ssd_a", "Mixed", "256 MiB"]);
        assert_eq!(rows[2][4], "–");
    }
}
