//! HTML reports of runs, and the tables that the command prints.
//!
//! ```text
//! RunResult -> Panels (which lines share a plot)          -> plots (plotly, as JSON) \
//! RunResult, PaperComparison, ClaimVerdict -> ReportTable -> html tables             > HtmlPage -> report.html
//! ```
//!
//! A report is a single page that loads no data from a network. The plotting library is a file
//! beside the page, one per folder, or embedded in the page ([`PlotLibrary`]). A small script draws the
//! plots one after the other, in the reader's colour scheme. Results of several seeds are averaged,
//! over time with a band. A plot or table of a single run shows the first seed. This crate does
//! not measure or check claims. `docs/reference/results.md` explains the page.

pub mod catalogue;
mod comparison;
pub mod describe;
mod feedback;
mod front_page;
mod html;
mod panels;
mod plotly;
mod plots;
pub mod rows;
mod sections;
mod timed;

use std::io::Write;
use std::path::Path;

use analysis::claim_checker::{ClaimChecker, ClaimVerdict, PaperComparison};
use analysis::interval::Intervals;
use experiment::LabError;
use experiment::files::write_atomically;
use simulate::run::{RefusedCell, RunResult};
use simulate::warning::WarningCommand;

pub use comparison::write_comparison;
pub use front_page::{Bar, FrontPage};
use html::HtmlPage;
use panels::Panels;

/// Location of the plotting library (a megabyte) for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotLibrary {
    /// A file beside the page, shared by all pages of a folder. The page shows a message if the
    /// file is missing.
    SeparateFile,
    /// Embedded in the page, so that the page is a single file.
    Embedded,
}

fn is_library(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.len() == plotly::LIBRARY.len() as u64)
}

#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub title: &'a str,
    /// First screen of the page. The other sections are then collapsed.
    pub front: Option<&'a FrontPage>,
    pub refused: &'a [RefusedCell],
    /// Command that made the report. Remedies name its options.
    pub command: WarningCommand,
    /// Figure or table that the experiment follows. Empty if it follows none.
    pub source: &'a str,
    /// Notes of the experiment. Blank lines separate paragraphs.
    pub notes: &'a str,
    /// Names of the grid axes, in the order of the values in a cell's key.
    pub axes: &'a [String],
    /// Window of the write amplification at the end, in multiples of the capacity.
    pub tail_drive_writes: f64,
    /// Results of the cells. Several seeds of a cell are several results.
    pub results: &'a [RunResult],
    pub intervals: &'a Intervals,
    pub comparisons: &'a [PaperComparison],
    pub verdicts: &'a [ClaimVerdict],
    pub regression: &'a [ClaimVerdict],
}

/// Writes the report of an experiment, for the command and for Python.
pub fn write_judged(judge: &ClaimChecker<'_>, library: PlotLibrary, path: &Path) -> Result<(), LabError> {
    let ClaimChecker { experiment, results, intervals, refused, tail_drive_writes, .. } = *judge;
    let report = Report {
        title: &experiment.title,
        front: None,
        command: WarningCommand::Run,
        refused,
        source: &experiment.source,
        notes: &experiment.notes,
        axes: &experiment.axes(),
        tail_drive_writes,
        results,
        intervals,
        comparisons: &judge.comparisons(),
        verdicts: &judge.verdicts(),
        regression: &judge.regression(),
    };
    report.write(library, path)
}

impl Report<'_> {
    /// Writes the page, and the plotting library beside it if needed and missing. Both are written
    /// atomically.
    pub fn write(&self, library: PlotLibrary, path: &Path) -> Result<(), LabError> {
        let page = self.html(library);
        let beside = path.with_file_name(plotly::LIBRARY_FILE);
        if library == PlotLibrary::SeparateFile && page.contains(plotly::LIBRARY_FILE) && !is_library(&beside) {
            write_atomically(&beside, |file| file.write_all(plotly::LIBRARY.as_bytes()))?;
        }
        write_atomically(path, |file| file.write_all(page.as_bytes()))
    }

    pub fn html(&self, library: PlotLibrary) -> String {
        let panels = Panels::new(self.results, self.axes);
        let mut page = HtmlPage::new(self.title);
        page.lead = self.lead();
        match self.front {
            None => page.headline = sections::headline(&panels),
            Some(front) => {
                page.headline.clone_from(&front.headline);
                let (heading, table) = &front.table;
                page.section("answer", heading, maud::html! { (front.chart()) (html::table(table)) });
                page.section("remedy", "Steps", front.remedy());
                page.section("assumed", "Assumptions and doubts", front.notes());
                page.fold_what_follows("All runs and measurements");
            }
        }
        if !self.refused.is_empty() {
            page.section("refused", "Refused", html::table(&rows::refused(self.refused)));
        }
        page.section("summary", "Write amplification", sections::summary(self, &panels));
        page.section("claims", "Claims", html::table(&rows::verdicts("claim", self.verdicts)));
        let regression = rows::verdicts("regression test", self.regression);
        page.section("regression", "Regression tests", html::table(&regression));
        page.section("published", "Published numbers", html::table(&rows::comparisons(self.comparisons)));
        page.section("array", "Array", sections::arrays(self));
        page.section("workload", "The workload's own figures", sections::measures(self));
        page.section("latency", "Latency", timed::latency(&panels));
        page.section("replay", "Replay at the recorded times", timed::replays(&panels));
        page.section("bandwidth", "Bandwidth over time", timed::bandwidth(&panels));
        page.section("block-size", "Bandwidth over block size", timed::block_sizes(self.results, self.axes));
        page.section("over-time", "Write amplification over written volume", sections::over_time(self, &panels));
        page.section("feedback", "Placement feedback", feedback::feedback(&panels));
        page.section("handles", "Reclaim unit handles", sections::handles(&panels));
        page.section("occupancy", "Reclaim unit occupancy", sections::occupancy(&panels));
        page.section("collections", "Garbage collection", sections::collections(self, &panels));
        page.section("device", "Device totals and wear", sections::device(self));
        page.section("runs", "Settings of the runs", sections::runs(self));
        page.section("notes", "Notes", sections::notes(self.notes));
        page.finish(library)
    }

    fn lead(&self) -> String {
        let stopped = self.results.iter().filter(|result| !result.complete).count();
        let mut parts = vec![match self.results.len() {
            1 => "1 run".to_string(),
            runs => format!("{runs} runs"),
        }];
        if !self.source.is_empty() {
            parts.insert(0, self.source.to_string());
        }
        if stopped > 0 {
            parts.push(format!("{stopped} stopped before the end"));
        }
        for (name, verdicts) in [("claims", self.verdicts), ("regression tests", self.regression)] {
            let (held, judged) = ClaimVerdict::count(verdicts);
            if judged > 0 {
                parts.push(format!("{held} of {judged} {name} hold"));
            }
            if judged < verdicts.len() {
                parts.push(format!("{} {name} not judged", verdicts.len() - judged));
            }
        }
        parts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use simulate::testing;

    use super::*;
    use crate::rows::ReportTable;

    fn report<'a>(results: &'a [RunResult], axes: &'a [String]) -> Report<'a> {
        Report {
            title: "Three <streams>",
            front: None,
            refused: &[],
            command: WarningCommand::Run,
            source: "Fig. 3",
            notes: "First.\n\nA & B.",
            axes,
            tail_drive_writes: 1.0,
            results,
            intervals: &analysis::interval::NO_INTERVALS,
            comparisons: &[],
            verdicts: &[],
            regression: &[],
        }
    }

    /// The page without the plotting library.
    fn body(page: &str) -> &str {
        let start = page.find("<main").expect("the page has a main part");
        &page[start..]
    }

    #[test]
    fn the_library_is_embedded_once_and_nothing_is_loaded() {
        let (results, axes) = (testing::results(), testing::axes());
        let page = report(&results, &axes).html(PlotLibrary::Embedded);
        assert_eq!(page.matches("* plotly.js (basic").count(), 1);
        assert!(!page.contains("MathJax.loader"), "the formula renderer is dead weight");
        let body = body(&page);
        assert!(!body.contains("src=") && !body.contains("http") && !page.contains("<link"), "it loads something");
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
    }

    #[test]
    fn the_library_stands_once_beside_the_pages_of_a_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (results, axes) = (testing::results(), testing::axes());
        for name in ["one.html", "two.html"] {
            let path = folder.path().join(name);
            report(&results, &axes).write(PlotLibrary::SeparateFile, &path).expect("it can be written");
            let page = std::fs::read_to_string(&path).expect("it was written");
            assert!(page.contains(&format!("<script src=\"{}\">", plotly::LIBRARY_FILE)));
            assert!(page.contains("id=\"missing\"") && page.len() < 500_000, "{} bytes", page.len());
        }
        let library = folder.path().join(plotly::LIBRARY_FILE);
        assert!(is_library(&library) && std::fs::read_dir(folder.path()).expect("a folder").count() == 3);
        let version = plotly::LIBRARY_FILE.trim_start_matches("plotly-basic-").trim_end_matches(".min.js");
        assert!(plotly::LIBRARY[..200].contains(&format!("v{version}\n")), "the file is named by its version");
    }

    #[test]
    fn the_first_sentence_says_what_came_out() {
        let (results, axes) = (testing::results(), testing::axes());
        let page = report(&results, &axes).html(PlotLibrary::Embedded);
        assert!(body(&page).contains("<p class=\"headline\">FDP writes 1."), "no headline");
        let front = FrontPage {
            headline: "It <works>.".to_string(),
            bars: Vec::new(),
            remedy: None,
            table: ("Placements", ReportTable::default()),
            notes: vec!["`--fill` sets it.".to_string()],
        };
        let whole = Report { front: Some(&front), ..report(&results[..1], &axes) };
        let page = whole.html(PlotLibrary::Embedded);
        assert!(page.contains("<p class=\"headline\">It &lt;works&gt;.</p>"));
        assert!(page.contains("<p><code>--fill</code> sets it.</p>"));
        let folded = page.find("<details class=\"rest\">").expect("the rest is folded away");
        assert!(folded < page.find("<section id=\"summary\">").expect("and is there"));
    }

    #[test]
    fn every_cell_is_plotted() {
        let (results, axes) = (testing::results(), testing::axes());
        let page = report(&results, &axes).html(PlotLibrary::Embedded);
        let plots: Vec<serde_json::Value> = body(&page)
            .split("<script type=\"application/json\"")
            .skip(1)
            .map(|rest| &rest[rest.find('>').expect("a tag") + 1..rest.find("</script>").expect("an end")])
            .map(|json| serde_json::from_str(json).expect("plots are JSON"))
            .collect();
        let drawn = body(&page).matches("class=\"plot\"").count();
        // Two summaries, six panels over time, six panels of handles, 18 panels of occupancy.
        assert_eq!((plots.len(), drawn), (2 + 6 + 6 + 18, 2 + 6 + 6 + 18));
        assert!(plots.iter().all(|plot| plot["data"].as_array().is_some_and(|traces| !traces.is_empty())));
        let last = &plots[2]["data"][0]["y"];
        let waf = results[0].write_amplification();
        let drawn = last.as_array().and_then(|values| values.last()).and_then(|value| value.as_f64());
        assert!((drawn.expect("a number") - waf).abs() < 1e-3);
    }

    #[test]
    fn text_is_escaped() {
        let (mut results, axes) = (testing::results(), testing::axes());
        for result in &mut results {
            result.key.variant = format!("</script><b>{}", result.key.variant);
        }
        let page = report(&results, &axes).html(PlotLibrary::Embedded);
        assert!(page.contains("<h1>Three &lt;streams&gt;</h1>"));
        assert!(page.contains("<p>A &amp; B.</p>"));
        assert!(!body(&page).contains("<b>"));
    }

    #[test]
    fn odd_results_make_a_page_too() {
        let page = report(&[], &[]).html(PlotLibrary::Embedded);
        assert!(page.contains("Nothing was run."));
        let mut results = testing::results();
        results.truncate(1);
        results[0].key.grid.clear();
        results[0].key.variant.clear();
        results[0].samples.clear();
        results[0].gc_log.clear();
        results[0].complete = false;
        let page = report(&results, &[]).html(PlotLibrary::Embedded);
        assert!(page.contains("(stopped)") && page.contains("1 stopped before the end"));
    }

    #[test]
    fn the_file_appears_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("report.html");
        let (results, axes) = (testing::results(), testing::axes());
        report(&results, &axes).write(PlotLibrary::Embedded, &path).expect("it can be written");
        let page = std::fs::read_to_string(&path).expect("it was written");
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    }
}
