//! Sections of the page, in words, tables and plots. A section without content is the empty string and does not appear.

use std::collections::BTreeMap;

use ssd::Owner;
use ssd::event::{Reclaim, Trigger};

use super::html::{self, Fold, Table, columns, figure, fold, heading, legend, note};
use super::panels::{Line, Lines, Panel, Panels};
use super::{Report, plots};
use crate::judge::{Comparison, Verdict};
use crate::run::CellResult;
use crate::table::{self, Grid, GridRow, OwnerRow};

/// Panels whose folds are open at first; the reader opens the others.
const OPEN_FOLDS: usize = 6;

fn fold_of_panel(index: usize) -> Fold {
    if index < OPEN_FOLDS { Fold::Open } else { Fold::Closed }
}

/// Collections shown at the end of a GC log.
const TAIL_ROWS: usize = 10;

/// The tables and plots of write amplification.
pub fn summary(report: &Report<'_>, panels: &Panels<'_>) -> String {
    if report.results.is_empty() {
        return note("Nothing was run.");
    }
    let whole = Grid::new(report.results, CellResult::write_amplification);
    let tail = Grid::new(report.results, |result| {
        result.tail_write_amplification(report.tail_capacities)
    });
    let across = if whole.columns.len() > 1 {
        format!("; across: {}", table::axis_name(report.axes, 0))
    } else {
        String::new()
    };
    let mut html = note(&format!(
        "WAF is media bytes written / host bytes written over the whole run, prefill excluded{across}. {}",
        seeds(report.results)
    ));
    html.push_str(&summary_plots(report, panels, &whole));
    // Side by side if both are narrow.
    let least_width_pixels = 100 * table::grid_labels(&whole) as u32 + 70 * whole.columns.len() as u32;
    let at_the_end = format!("Over the last {} x capacity", report.tail_capacities);
    let whole = heading("Over the whole run") + &grid_table(&whole, report.axes);
    let tail = heading(&at_the_end) + &grid_table(&tail, report.axes);
    html.push_str(&columns(
        least_width_pixels,
        &format!("<div>{whole}</div>\n<div>{tail}</div>\n"),
    ));
    html
}

fn seeds(results: &[CellResult]) -> String {
    match table::distinct(results.iter().map(|result| result.seed)).len() {
        1 => format!("One run for each cell, seed {}.", results[0].seed),
        seeds => format!("Averages over {seeds} seeds."),
    }
}

fn grid_table(grid: &Grid, axes: &[String]) -> String {
    let mut html = Table::new(table::grid_headings(grid, axes), table::grid_labels(grid));
    for row in &grid.rows {
        html.row(table::grid_texts(grid, row));
    }
    html.html()
}

/// A plot for each device and further grid value, if there is an axis to plot along.
fn summary_plots(report: &Report<'_>, panels: &Panels<'_>, grid: &Grid) -> String {
    if panels.lines == Lines::Devices || grid.columns.len() < 2 {
        return String::new();
    }
    let key = |row: &GridRow| [std::slice::from_ref(&row.device), row.rest.as_slice()].concat();
    let keys = table::distinct(grid.rows.iter().map(key));
    let plot = |(index, parts): (usize, &Vec<String>)| {
        let rows: Vec<&GridRow> = grid.rows.iter().filter(|row| key(row) == *parts).collect();
        let plot = plots::summary(panels, grid, &rows, &table::axis_name(report.axes, 0));
        figure(&format!("summary-{index}"), &parts.join(" · "), 280, &plot)
    };
    let figures: String = keys.iter().enumerate().map(plot).collect();
    let entries = if panels.lines == Lines::Variants {
        plots::summary_entries(panels, grid)
    } else {
        Vec::new()
    };
    legend(&entries) + &columns(460, &figures)
}

/// What each workload measured of itself, and the device for each tenant.
pub fn measures(report: &Report<'_>) -> String {
    let names = table::distinct(report.results.iter().flat_map(|result| {
        let names = result.measures.iter().map(|measure| measure.name.clone());
        names.collect::<Vec<_>>()
    }));
    if names.is_empty() {
        return String::new();
    }
    let headings = names.iter().map(|name| name.replace('_', " "));
    let mut html = Table::new(cell_headings(report).into_iter().chain(headings), cell_labels(report));
    for result in report.results {
        let text = |name: &String| {
            let measure = result.measures.iter().find(|measure| measure.name == *name);
            measure.map_or_else(|| table::NOTHING.to_string(), table::measured)
        };
        html.row(cell_texts(report, result).into_iter().chain(names.iter().map(text)));
    }
    html.html()
}

/// Claims and whether they hold.
pub fn claims(verdicts: &[Verdict]) -> String {
    let mut html = Table::new(["", "claim", "found", "source"], 1)
        .text_column(1)
        .text_column(2)
        .text_column(3);
    for verdict in verdicts {
        let class = if verdict.holds { "holds" } else { "fails" };
        let word = table::holds(verdict).to_string();
        html.marked_row(
            class,
            [
                word,
                verdict.what.clone(),
                verdict.found.clone(),
                verdict.source.clone(),
            ],
        );
    }
    html.html()
}

/// Published numbers beside ours.
pub fn published(comparisons: &[Comparison]) -> String {
    let mut html = Table::new(table::COMPARISON_HEADINGS, 2).text_column(6);
    for comparison in comparisons {
        html.row(table::comparison_texts(comparison));
    }
    html.html()
}

/// Write amplification over time.
pub fn over_time(panels: &Panels<'_>) -> String {
    let drawn = |panel: &&Panel<'_>| {
        panel
            .lines
            .iter()
            .any(|line| line.seeds.iter().any(|seed| !seed.samples.is_empty()))
    };
    let plot = |(index, panel): (usize, &Panel<'_>)| {
        let plot = plots::over_time(panels, panel, plots::Range::over_time(panels, &panel.device));
        figure(&format!("over-time-{index}"), &panel.caption, 260, &plot)
    };
    let figures: String = panels.panels.iter().filter(drawn).enumerate().map(plot).collect();
    if figures.is_empty() {
        return figures;
    }
    note("Media bytes / host bytes since the start. Plots of a device have the same vertical axis.")
        + &legend(&plots::line_entries(panels))
        + &columns(320, &figures)
}

/// Bytes and counters of each handle.
pub fn handles(panels: &Panels<'_>) -> String {
    if panels.panels.is_empty() {
        return String::new();
    }
    let plot = |(index, panel): (usize, &Panel<'_>)| {
        let plot = plots::written(panels, panel, plots::Range::written(panels, &panel.device));
        figure(&format!("handles-{index}"), &panel.caption, 300, &plot)
    };
    let figures: String = panels.panels.iter().enumerate().map(plot).collect();
    let table =
        |(index, panel): (usize, &Panel<'_>)| fold(fold_of_panel(index), &panel.caption, &handle_table(panels, panel));
    let tables: String = panels.panels.iter().enumerate().map(table).collect();
    note(
        "Bytes that the host wrote through each handle, and bytes copied out of its reclaim units; \"shared\" is the pool \
         that copies of initially isolated handles go to. Handles that were never used are left out.",
    ) + &legend(&plots::written_entries())
        + &columns(480, &figures)
        + &note(
            "Own WAF is (host + copied) / host of one handle. Valid at reclaim is the mean share of a reclaim unit's pages \
             that were valid when it was reclaimed.",
        )
        + &tables
}

fn handle_table(panels: &Panels<'_>, panel: &Panel<'_>) -> String {
    let headings = [line_heading(panels)].into_iter().chain(OwnerRow::HEADINGS);
    let mut html = Table::new(headings, 2);
    for line in &panel.lines {
        for row in OwnerRow::used(line.first()) {
            html.row([panels.name(line).to_string()].into_iter().chain(row.texts()));
        }
    }
    html.html()
}

fn line_heading(panels: &Panels<'_>) -> &'static str {
    match panels.lines {
        Lines::Variants => "variant",
        Lines::FirstAxis => "value",
        Lines::Devices => "device",
    }
}

/// Who holds the reclaim units.
pub fn occupancy(panels: &Panels<'_>) -> String {
    if panels.firsts().all(|result| result.samples.is_empty()) {
        return String::new();
    }
    let panel_html = |(index, panel): (usize, &Panel<'_>)| {
        let lines = panel.lines.iter().filter(|line| !line.first().samples.is_empty());
        let plot = |line: &Line<'_>| {
            let plot = plots::occupancy(line.first());
            figure(
                &format!("occupancy-{index}-{}", line.name),
                panels.name(line),
                220,
                &plot,
            )
        };
        let figures: String = lines.map(plot).collect();
        fold(fold_of_panel(index), &panel.caption, &columns(300, &figures))
    };
    note("Reclaim units by whose data they hold, at every sample.")
        + &legend(&plots::owner_entries(panels))
        + &panels.panels.iter().enumerate().map(panel_html).collect::<String>()
}

/// The GC log in numbers, and its end.
pub fn collections(report: &Report<'_>, panels: &Panels<'_>) -> String {
    let mut html = Table::new(
        cell_headings(report)
            .into_iter()
            .chain(COLLECTION_HEADINGS.map(str::to_string)),
        cell_labels(report) + 1,
    );
    for result in panels.firsts() {
        for row in collection_rows(result) {
            html.row(cell_texts(report, result).into_iter().chain(row));
        }
    }
    let table = html.html();
    if table.is_empty() {
        return table;
    }
    let tails: String = panels
        .firsts()
        .filter(|result| !result.gc_log.is_empty())
        .map(tail)
        .collect();
    note("Collections by the owner of the victim and by what made them necessary, from the GC log.")
        + &table
        + &fold(
            Fold::Screen,
            &format!("The last {TAIL_ROWS} collections of each run"),
            &tails,
        )
}

const COLLECTION_HEADINGS: [&str; 8] = [
    "victim",
    "background",
    "foreground",
    "forced",
    "valid at reclaim",
    "copied (x capacity)",
    "to other owners",
    "blocks remapped",
];

/// What collections of one owner's reclaim units did.
#[derive(Default)]
struct Collected {
    by_trigger: [u64; 3],
    unit_pages: u64,
    valid_pages: u64,
    pages_copied: u64,
    pages_moved_elsewhere: u64,
    blocks_remapped: u64,
}

impl Collected {
    fn add(&mut self, row: &Reclaim) {
        let trigger = match row.trigger {
            Trigger::Background => 0,
            Trigger::Foreground => 1,
            Trigger::Forced => 2,
        };
        self.by_trigger[trigger] += 1;
        self.unit_pages += u64::from(row.unit_pages);
        self.valid_pages += u64::from(row.valid_pages);
        self.pages_copied += u64::from(row.pages_copied);
        if row.destination_owner != row.victim_owner {
            self.pages_moved_elsewhere += u64::from(row.pages_copied);
        }
        self.blocks_remapped += u64::from(row.blocks_remapped);
    }
}

fn collection_rows(result: &CellResult) -> Vec<[String; 8]> {
    let mut owners: BTreeMap<Owner, Collected> = BTreeMap::new();
    for row in &result.gc_log {
        owners.entry(row.victim_owner).or_default().add(row);
    }
    let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let capacity = |pages: u64| (pages * result.stats.page_bytes) as f64 / result.capacity_bytes as f64;
    let texts = |(owner, collected): (&Owner, &Collected)| {
        let [background, foreground, forced] = collected.by_trigger.map(table::count);
        [
            owner.to_string(),
            background,
            foreground,
            forced,
            table::optional(ratio(collected.valid_pages, collected.unit_pages), table::share),
            table::capacities(capacity(collected.pages_copied)),
            table::optional(
                ratio(collected.pages_moved_elsewhere, collected.pages_copied),
                table::share,
            ),
            table::count(collected.blocks_remapped),
        ]
    };
    owners.iter().map(texts).collect()
}

fn tail(result: &CellResult) -> String {
    let headings = [
        "at (x capacity)",
        "trigger",
        "policy",
        "group",
        "unit",
        "victim",
        "copies to",
        "valid pages",
        "copied",
        "blocks remapped",
    ];
    let mut html = Table::new(headings, 0)
        .text_column(1)
        .text_column(2)
        .text_column(5)
        .text_column(6);
    let start = result.gc_log.len().saturating_sub(TAIL_ROWS);
    for row in &result.gc_log[start..] {
        let at = (row.host_pages_written * result.stats.page_bytes) as f64 / result.capacity_bytes as f64;
        html.row([
            format!("{at:.3}"),
            row.trigger.name().to_string(),
            row.policy.to_string(),
            row.group.0.to_string(),
            row.victim.0.to_string(),
            row.victim_owner.to_string(),
            row.destination_owner.to_string(),
            format!(
                "{} of {}",
                table::count(row.valid_pages.into()),
                table::count(row.unit_pages.into())
            ),
            table::count(row.pages_copied.into()),
            table::count(row.blocks_remapped.into()),
        ]);
    }
    heading(&result.key.to_string()) + &html.html()
}

/// Headings of the coordinates of a cell.
fn cell_headings(report: &Report<'_>) -> Vec<String> {
    let axes = report
        .results
        .iter()
        .map(|result| result.key.grid.len())
        .max()
        .unwrap_or(0);
    let names = (0..axes).map(|axis| table::axis_name(report.axes, axis));
    ["device".to_string()]
        .into_iter()
        .chain(names)
        .chain(["variant".to_string()])
        .collect()
}

fn cell_labels(report: &Report<'_>) -> usize {
    cell_headings(report).len()
}

fn cell_texts(report: &Report<'_>, result: &CellResult) -> Vec<String> {
    let key = &result.key;
    let grid = (0..cell_labels(report) - 2).map(|axis| key.grid.get(axis).cloned().unwrap_or_default());
    let variant = table::variant_name(&key.variant).to_string();
    [key.device.clone()].into_iter().chain(grid).chain([variant]).collect()
}

/// Counters of the whole device, and the erase counts of its blocks.
pub fn device(report: &Report<'_>) -> String {
    let own = [
        "seed",
        "host written",
        "media written",
        "media erased",
        "background GC",
        "foreground GC",
        "forced GC",
        "closed by host",
        "closed early",
        "pages deallocated",
        "pages redirected",
        "fewest erases",
        "mean erases",
        "most erases",
        "life used",
        "drive-writes a day",
        "left to write",
    ];
    let mut html = Table::new(
        cell_headings(report).into_iter().chain(own.map(str::to_string)),
        cell_labels(report),
    );
    for result in report.results {
        html.row(cell_texts(report, result).into_iter().chain(device_texts(result)));
    }
    if report.results.is_empty() {
        return String::new();
    }
    note(
        "GC columns count collections; \"closed\" columns count reclaim units closed before they were full; erases are for each block. \
         Life used is the share of the rated erases, drive-writes a day are what the flash survives for the warranty at this write \
         amplification, both if the profile has an [endurance].",
    ) + &html.html()
}

fn device_texts(result: &CellResult) -> [String; 17] {
    let stats = &result.stats;
    let (fewest, mean, most) = result.block_erases;
    let unknown = || ["–"; 3].map(str::to_string);
    let [life_used, drive_writes, left] = result.endurance.as_ref().map_or_else(unknown, table::wear_texts);
    [
        result.seed.to_string(),
        table::bytes(stats.host_bytes_written()),
        table::bytes(stats.media_bytes_written()),
        table::bytes(stats.media_bytes_erased()),
        table::count(stats.background_collections),
        table::count(stats.foreground_collections),
        table::count(stats.forced_collections),
        table::count(stats.units_closed_by_host),
        table::count(stats.units_closed_early),
        table::count(stats.pages_deallocated),
        table::count(stats.pages_redirected),
        fewest.to_string(),
        format!("{mean:.1}"),
        most.to_string(),
        life_used,
        drive_writes,
        left,
    ]
}

/// What every number was measured with.
pub fn runs(report: &Report<'_>) -> String {
    let own = [
        "seed",
        "scale",
        "capacity",
        "reclaim units",
        "handles",
        "mapping unit",
        "written (x capacity)",
        "samples",
        "",
    ];
    let headings = cell_headings(report).into_iter().chain(own.map(str::to_string));
    let last = cell_labels(report) + own.len() - 1;
    let mut html = Table::new(headings, cell_labels(report)).text_column(last);
    for result in report.results {
        html.row(cell_texts(report, result).into_iter().chain(run_texts(result)));
    }
    if report.results.is_empty() {
        return String::new();
    }
    note(
        "Scale 1/d is a twin of the drive with the same number of reclaim units, each of 1/d of the pages; capacity is the \
         twin's. Mapping unit is the size of a page.",
    ) + &html.html()
}

fn run_texts(result: &CellResult) -> [String; 9] {
    let written = result.stats.host_bytes_written() as f64 / result.capacity_bytes as f64;
    [
        result.seed.to_string(),
        result.scale.to_string(),
        table::bytes(result.capacity_bytes),
        table::count(result.superblocks.into()),
        result.stats.handles.len().to_string(),
        format!("{} KiB", result.stats.page_bytes >> 10),
        table::capacities(written),
        result.samples.len().to_string(),
        if result.complete { "ran to its end" } else { "stopped" }.to_string(),
    ]
}

/// The experiment's notes, as paragraphs.
pub fn notes(notes: &str) -> String {
    let paragraphs = notes
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty());
    paragraphs
        .map(|paragraph| format!("<p>{}</p>\n", html::escape(paragraph)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn collections_add_up() {
        let result = &sample::results()[2];
        let rows = collection_rows(result);
        let number = |text: &String| text.replace(',', "").parse::<u64>().expect("a count");
        let total: u64 = rows.iter().flat_map(|row| row[1..4].iter().map(number)).sum();
        assert_eq!(total, result.gc_log.len() as u64);
        assert_eq!(
            rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
            ["RUH 0", "shared"]
        );
        // Copies of handle 0, initially isolated, leave it; copies of the pool stay in it.
        assert_eq!((rows[0][6].as_str(), rows[1][6].as_str()), ("100.0 %", "0.0 %"));
    }

    #[test]
    fn the_log_of_each_run_is_optional() {
        let (mut results, axes) = (sample::results(), sample::axes());
        for result in &mut results {
            result.gc_log.clear();
        }
        let panels = Panels::new(&results, &axes);
        let report = Report {
            title: "",
            source: "",
            notes: "",
            axes: &axes,
            tail_capacities: 1.0,
            results: &results,
            comparisons: &[],
            verdicts: &[],
        };
        assert_eq!(collections(&report, &panels), "");
        assert_eq!((claims(&[]), published(&[]), notes(" \n\n ")), Default::default());
    }

    #[test]
    fn claims_say_whether_they_hold() {
        let verdict = |holds| Verdict {
            what: "A < B".into(),
            source: "Fig. 3".into(),
            holds,
            found: "1".into(),
        };
        let html = claims(&[verdict(true), verdict(false)]);
        assert!(
            html.contains("<tr class=\"holds\"><td>holds</td><td>A &lt; B</td>"),
            "{html}"
        );
        assert!(html.contains("<tr class=\"fails\"><td>FAILS</td>"), "{html}");
    }
}
