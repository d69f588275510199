//! Notes below a summary: warnings that make numbers doubtful, refused cells, scales from searches.

use super::{CellValue, ReportTable, TextFormat};
use simulate::run::{AGREEMENT, RefusedCell, RunResult};
use simulate::steady::ROUNDS;
use simulate::warning::{self, RunWarning, WarningCommand};

/// Explanation of the star at doubtful numbers in a table.
const MARK: &str = "* doubtful for the reasons below";

/// A line for each kind of warning, preceded by the explanation of the star if the table has one.
pub fn warning_sentences(
    has_stars: bool,
    results: &[RunResult],
    command: WarningCommand,
) -> impl Iterator<Item = String> {
    let mark = has_stars.then(|| MARK.to_string());
    mark.into_iter().chain(warning::lines(results, command))
}

/// A line for each kind of warning, and the scale of each run that searched for one.
pub fn warning_lines(results: &[RunResult], command: WarningCommand, format: TextFormat) -> String {
    let has_stars = results.iter().any(RunResult::is_doubtful);
    let lines = warning_sentences(has_stars, results, command);
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let lines = format.words(&super::wrapped(&format!("{}{lines}", steady(results))));
    let scales = scales(results);
    if scales.is_empty() {
        return lines;
    }
    format!("{}{lines}", scales.render(format))
}

/// Results of runs that reached the steady state.
fn steady(results: &[RunResult]) -> String {
    let of = |result: &RunResult| {
        let state = result.steady.filter(|state| state.reached)?;
        let cell = if results.len() > 1 { format!("{}: ", result.key) } else { String::new() };
        Some(format!(
            "{cell}steady: WAF is {:.3} +- {:.3} (95 %) over {ROUNDS} drive writes, after {:.1} others. Over the \
             whole run it is {:.3}\n",
            state.waf,
            state.half_width,
            state.after_capacities,
            result.write_amplification()
        ))
    };
    results.iter().filter_map(of).collect()
}

/// A warning before the numbers. Empty if none applies.
pub fn warning(results: &[RunResult]) -> String {
    let has_writes = |result: &RunResult| result.stats.total().host_bytes_written > 0;
    if !results.is_empty() && !results.iter().any(has_writes) {
        super::wrapped("The host wrote nothing, so there is no write amplification.")
    } else if warning::is_empty_of_meaning(results) {
        let is_partial = |warning: &RunWarning| matches!(warning, RunWarning::PartialWrites { .. });
        let source = if results.iter().any(|result| result.warnings().iter().any(is_partial)) {
            "of requests smaller than its mapping unit"
        } else {
            "of a new drive"
        };
        super::wrapped(&format!(
            "! This drive never collected. Its WAF is that {source} and does not include garbage collection."
        ))
    } else {
        String::new()
    }
}

/// A row for each cell with the reason, independently of its seeds. No rows if all cells ran.
pub fn refused(cells: &[RefusedCell]) -> ReportTable {
    let mut rows = ReportTable::default().labels(["refused"]).texts(["why"]);
    for (key, error) in base::distinct(cells.iter().map(|cell| (cell.key.to_string(), cell.error.clone()))) {
        rows.add([key.into(), error.into()]);
    }
    rows
}

/// The scale of each run that searched for one, and its difference from the next smaller model.
pub fn scales(results: &[RunResult]) -> ReportTable {
    let seeds = base::distinct(results.iter().map(|result| result.seed)).len() > 1;
    let rows = ReportTable::default().labels(["cell"]);
    let mut rows = rows.numbers("", seeds.then_some("seed")).numbers("", SCALE_HEADINGS);
    for result in results.iter().filter(|result| result.search.is_some()) {
        let seed = seeds.then_some(CellValue::Index(result.seed));
        let cells = [CellValue::Text(result.key.to_string())].into_iter().chain(seed);
        rows.add(cells.chain(scale_values(result)));
    }
    rows.note(format!("scale auto is the first scaled model within {:.0} % of the next smaller one", AGREEMENT * 100.0))
}

pub(super) const SCALE_HEADINGS: [&str; 3] = ["scale", "next smaller", "difference"];

/// The scale of a run, the next smaller scale that was run, and the difference of their results.
pub(super) fn scale_values(result: &RunResult) -> [CellValue; 3] {
    let compared = result.search.and_then(|search| search.compared);
    [
        result.scale.to_string().into(),
        CellValue::optional(compared, |compared| compared.smaller.to_string().into()),
        CellValue::optional(compared, |compared| CellValue::Share(compared.difference)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::scaled_model::Scale;
    use simulate::run::{ScaleComparison, ScaleSearch};
    use simulate::testing as sample;

    #[test]
    fn a_write_amplification_of_small_requests_is_not_called_that_of_a_new_drive() {
        let mut result = sample::results().remove(0);
        result.stats = ssd::DeviceStats::new(4096, 1);
        result.stats.handles[0].host_bytes_written = 4_096_000;
        result.stats.handles[0].host_pages_written = 1000;
        let new = warning(std::slice::from_ref(&result)).replace('\n', " ");
        assert!(new.contains("Its WAF is that of a new drive"), "{new}");
        result.stats.handles[0].host_bytes_written = 512_000;
        let small = warning(&[result]).replace('\n', " ");
        assert!(small.contains("Its WAF is that of requests smaller than its mapping unit"), "{small}");
    }

    #[test]
    fn the_scale_of_each_cell_stands_above_the_warnings() {
        let mut results = sample::results();
        results.truncate(2);
        assert!(scales(&results).is_empty());
        let lines = warning_lines(&results, WarningCommand::Run, TextFormat::Lines);
        assert_eq!(lines.lines().count(), 2, "{lines}");
        for (result, difference) in results.iter_mut().zip([0.004, 0.02]) {
            let compared = Some(ScaleComparison { smaller: Scale(256), difference });
            result.search = Some(ScaleSearch { compared });
        }
        let text = warning_lines(&results, WarningCommand::Run, TextFormat::Lines);
        let is_there = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(is_there(&["ssd_a | FDP | zipf 2.2", "1/64", "1/256", "0.4 %"]), "{text}");
        assert!(text.starts_with("scale auto is the first scaled model within 1 %"), "{text}");
        let last = "not converged (1 of 2 cells): WAF differs by 2.0 % from that of the next smaller scaled model\n";
        assert!(text.ends_with(last), "{text}");
        results[1].search = Some(ScaleSearch { compared: None });
        assert!(warning_lines(&results, WarningCommand::Run, TextFormat::Lines).contains("–"));
    }
}
