//! Sections of the page: text, tables and plots. Empty sections are omitted.

use maud::{Markup, html};

use super::html::{self, Fold, columns, figure, figures, fold, heading, legend, note};
use super::panels::{LineCoordinate, Panel, PanelLine, Panels};
use super::{Report, plots};
use crate::rows::{self, Grid, GridRow, ReportTable, variant_name};
use simulate::run::RunResult;
use simulate::warning::WarningCommand;

/// Maximum number of panels that are open at first.
const OPEN_FOLDS: usize = 6;

fn fold_of_panel(index: usize) -> Fold {
    if index < OPEN_FOLDS { Fold::Open } else { Fold::Closed }
}

/// Number of collections shown at the end of a GC log.
const TAIL_ROWS: usize = 10;

pub fn summary(report: &Report<'_>, panels: &Panels<'_>) -> Markup {
    if report.results.is_empty() {
        return note("Nothing was run.");
    }
    let whole = Grid::new(report.results, report.intervals, RunResult::headline_write_amplification);
    let is_steady = report.results.iter().any(RunResult::is_steady);
    let of_what = if is_steady { "Steady, or over the whole run" } else { "Over the whole run" };
    let tail =
        Grid::new(report.results, report.intervals, |result| result.tail_write_amplification(report.tail_drive_writes));
    let across = if whole.columns.len() > 1 {
        format!(" Columns show {}.", rows::axis_name(report.axes, 0))
    } else {
        String::new()
    };
    // Side by side if both are narrow.
    let least_width_pixels = 100 * whole.labels() as u32 + 70 * whole.columns.len() as u32;
    let tables = html! {
        div { (heading(of_what)) (html::table(&whole.to_rows(report.axes))) }
        div {
            (heading(&format!("Over the last {} x capacity", report.tail_drive_writes)))
            (html::table(&tail.to_rows(report.axes)))
        }
    };
    html! {
        (note(&format!(
            "WAF is media bytes written / host bytes written over the whole run{}, without the preconditioning.{across} {}",
            if is_steady { ", or over the last drive writes of a run that became steady" } else { "" },
            seeds(report.results)
        )))
        (warnings_section(report.results, report.command))
        (summary_plots(report, panels, &whole))
        (columns(least_width_pixels, &tables))
    }
}

/// The result in a sentence. Empty without writes.
pub fn headline(panels: &Panels<'_>) -> String {
    let of_name = |name: usize| {
        let lines = panels.cells().filter(|(_, line)| line.name == name);
        let wafs = lines.map(|(_, line)| {
            let seeds = line.seeds.iter().filter(|seed| seed.stats.host_bytes_written() > 0);
            let wafs: Vec<f64> = seeds.map(|seed| seed.headline_write_amplification()).collect();
            wafs.iter().sum::<f64>() / wafs.len() as f64
        });
        let wafs = wafs.filter(|waf| waf.is_finite());
        wafs.fold(None, |range: Option<(f64, f64)>, waf| {
            let (low, high) = range.unwrap_or((waf, waf));
            Some((low.min(waf), high.max(waf)))
        })
    };
    let names = panels.names.iter().enumerate();
    let found: Vec<(&str, f64, f64)> =
        names.filter_map(|(index, name)| of_name(index).map(|(low, high)| (variant_name(name), low, high))).collect();
    let range = |low: f64, high: f64| match format!("{low:.2}") == format!("{high:.2}") {
        true => format!("{low:.2}"),
        false => format!("{low:.2} to {high:.2}"),
    };
    match found.as_slice() {
        [] => String::new(),
        [(_, low, high)] => format!("The drive writes {} times what the host writes.", range(*low, *high)),
        [(first, low, high), others @ ..] if others.len() < 6 => {
            let others: Vec<String> =
                others.iter().map(|(name, low, high)| format!("{name} {}", range(*low, *high))).collect();
            let first = format!("{first} writes {} times what the host writes", range(*low, *high));
            format!("{first}, {}.", others.join(", "))
        }
        many => {
            let least = many.iter().min_by(|one, other| one.1.total_cmp(&other.1)).expect("there are some");
            let most = many.iter().max_by(|one, other| one.2.total_cmp(&other.2)).expect("there are some");
            format!(
                "Of {}, {} writes least, {:.2} times what the host writes, and {} most, {:.2} times.",
                many.len(),
                least.0,
                least.1,
                most.0,
                most.2
            )
        }
    }
}

/// Warnings that make numbers doubtful, and the scales from searches.
fn warnings_section(results: &[RunResult], command: WarningCommand) -> Markup {
    let is_marked = results.iter().any(RunResult::is_doubtful);
    let lines = rows::warning_sentences(is_marked, results, command);
    html! { @for line in lines { (html::warning(&line)) } (html::table(&rows::scales(results))) }
}

fn seeds(results: &[RunResult]) -> String {
    match base::distinct(results.iter().map(|result| result.seed)).len() {
        1 => format!("One run for each cell, seed {}.", results[0].seed),
        seeds => format!("Averages over {seeds} seeds."),
    }
}

/// A plot for each device and value of further axes, if the grid has an axis to plot along.
fn summary_plots(report: &Report<'_>, panels: &Panels<'_>, grid: &Grid) -> Markup {
    if panels.lines == LineCoordinate::Devices || grid.columns.len() < 2 {
        return Markup::default();
    }
    let key = |row: &GridRow| [std::slice::from_ref(&row.device), row.rest.as_slice()].concat();
    let keys = base::distinct(grid.rows.iter().map(key));
    let plot = |(index, parts): (usize, &Vec<String>)| {
        let rows: Vec<&GridRow> = grid.rows.iter().filter(|row| key(row) == *parts).collect();
        let plot = plots::summary(panels, grid, &rows, &rows::axis_name(report.axes, 0));
        figure(&format!("summary-{index}"), &parts.join(" · "), 280, &plot)
    };
    let drawn = html! { @for key in keys.iter().enumerate() { (plot(key)) } };
    let entries =
        if panels.lines == LineCoordinate::Variants { plots::summary_entries(panels, grid) } else { Vec::new() };
    figures("", &entries, 460, &drawn)
}

/// The stacked tables of all results, with the coordinates of each cell.
fn per_cell_tables<'a>(
    report: &Report<'_>,
    results: impl Iterator<Item = &'a RunResult>,
    table: fn(&RunResult) -> ReportTable,
) -> Markup {
    let axes = rows::axes_of(report.results, report.axes);
    let of_cell = |result: &RunResult| {
        let key = &result.key;
        let mut names = vec![key.device.clone()];
        names.extend((0..axes.len()).map(|axis| key.grid.get(axis).cloned().unwrap_or_default()));
        names.push(rows::variant_name(&key.variant).to_string());
        (names, table(result))
    };
    let labels = ["device"].into_iter().chain(axes.iter().map(String::as_str)).chain(["variant"]);
    html::table(&ReportTable::stacked(labels, results.map(of_cell)))
}

pub fn measures(report: &Report<'_>) -> Markup {
    per_cell_tables(report, report.results.iter(), rows::measures)
}

pub fn arrays(report: &Report<'_>) -> Markup {
    let arrays = || report.results.iter().filter_map(|result| Some((result, result.array.as_ref()?)));
    html! {
        @if arrays().next().is_some() {
            (note("Array WAF is bytes that the drives received / bytes of the host. Drive WAF is media bytes / bytes \
                   that the drives received, as in all other sections. Total WAF is media bytes / bytes of the host."))
            (per_cell_tables(report, report.results.iter(), rows::array_figures))
            @for (result, array) in arrays() {
                @let tables = [rows::array_causes(result, array), rows::array_drives(array), rows::array_rebuilds(array)];
                (fold(Fold::Closed, &result.key.to_string(), &html! { @for table in tables { (html::table(&table)) } }))
            }
        }
    }
}

pub fn over_time(report: &Report<'_>, panels: &Panels<'_>) -> Markup {
    let window = report.tail_drive_writes;
    let drawn =
        |panel: &&Panel<'_>| panel.lines.iter().any(|line| line.seeds.iter().any(|seed| !seed.samples.is_empty()));
    let plot = |(index, panel): (usize, &Panel<'_>)| {
        let plot = plots::over_time(panels, panel, plots::AxisRange::over_time(panels, &panel.device, window), window);
        figure(&format!("over-time-{index}"), &panel.caption, 260, &plot)
    };
    let text = format!(
        "Media bytes / host bytes since the start. The thin line covers the last {window} x capacity, which a drive \
         converges to. Several seeds are shown as their mean, with a band from minimum to maximum. A triangle marks \
         the first collection. Plots of a device have the same vertical axis."
    );
    let drawn = html! { @for panel in panels.panels.iter().filter(drawn).enumerate() { (plot(panel)) } };
    figures(&text, &plots::line_entries(&panels.names), 320, &drawn)
}

pub fn handles(panels: &Panels<'_>) -> Markup {
    if panels.panels.is_empty() {
        return Markup::default();
    }
    let plot = |(index, panel): (usize, &Panel<'_>)| {
        let plot = plots::written(panels, panel, plots::AxisRange::written(panels, &panel.device));
        figure(&format!("handles-{index}"), &panel.caption, 300, &plot)
    };
    let drawn = html! { @for panel in panels.panels.iter().enumerate() { (plot(panel)) } };
    let text = "Bytes that the host wrote through each handle, and bytes copied out of its reclaim units. \
                \"shared\" is the pool for copies of initially isolated handles. Unused handles are left out.";
    let of_tables = "Own WAF is (host + copied) / host of one handle. Valid at reclaim is the mean share of a reclaim unit's pages \
                     that were valid when it was reclaimed.";
    html! {
        (figures(text, &plots::written_entries(), 480, &drawn))
        (note(of_tables))
        @for (index, panel) in panels.panels.iter().enumerate() {
            (fold(fold_of_panel(index), &panel.caption, &handle_table(panels, panel)))
        }
    }
}

fn handle_table(panels: &Panels<'_>, panel: &Panel<'_>) -> Markup {
    let lines = panel.lines.iter();
    let tables = lines.map(|line| (vec![panels.name(line).to_string()], rows::handles(line.representative())));
    html::table(&ReportTable::stacked([line_heading(panels)], tables))
}

fn line_heading(panels: &Panels<'_>) -> &'static str {
    match panels.lines {
        LineCoordinate::Variants => "variant",
        LineCoordinate::FirstAxis => "value",
        LineCoordinate::Devices => "device",
    }
}

pub fn occupancy(panels: &Panels<'_>) -> Markup {
    if panels.representatives().all(|result| result.samples.is_empty()) {
        return Markup::default();
    }
    let panel_html = |(index, panel): (usize, &Panel<'_>)| {
        let lines = panel.lines.iter().filter(|line| !line.representative().samples.is_empty());
        let plot = |line: &PanelLine<'_>| {
            let plot = plots::occupancy(line.representative());
            figure(&format!("occupancy-{index}-{}", line.name), panels.name(line), 220, &plot)
        };
        let drawn = html! { @for line in lines { (plot(line)) } };
        fold(fold_of_panel(index), &panel.caption, &columns(300, &drawn))
    };
    html! {
        (note("Reclaim units by owner of their data, at every sample."))
        (legend(&plots::owner_entries(panels)))
        @for panel in panels.panels.iter().enumerate() { (panel_html(panel)) }
    }
}

/// The GC log in numbers, and its last collections.
pub fn collections(report: &Report<'_>, panels: &Panels<'_>) -> Markup {
    let table = per_cell_tables(report, panels.representatives(), rows::collections);
    if table.0.is_empty() {
        return table;
    }
    let logged = panels.representatives().filter(|result| !result.gc_log.is_empty());
    let tails = html! { @for result in logged { (tail(result)) } };
    html! {
        (note("Collections by owner of the victim and by trigger, from the GC log."))
        (table)
        (fold(Fold::Screen, &format!("The last {TAIL_ROWS} collections of each run"), &tails))
    }
}

fn tail(result: &RunResult) -> Markup {
    html! { (heading(&result.key.to_string())) (html::table(&rows::last_collections(result, TAIL_ROWS))) }
}

/// A table for each run, collapsed below a text.
fn per_run_tables(report: &Report<'_>, text: &str, title: &str, table: fn(&RunResult) -> ReportTable) -> Markup {
    html! {
        @if !report.results.is_empty() {
            (note(text))
            (fold(Fold::Closed, title, &per_cell_tables(report, report.results.iter(), table)))
        }
    }
}

pub fn device(report: &Report<'_>) -> Markup {
    let text = "Absorbed host writes replaced data in the write buffer, so the drive did not program them. Media writes \
                include the copies of static wear levelling, and overhead, which the drive wrote beside data. GC \
                columns count collections. \"closed\" columns count reclaim units closed before they were full. \
                Erases are for each block. Life used is the share of the rated erases. Drive writes a day are those \
                that the flash survives for the warranty at this write amplification. Both need an [endurance] in \
                the profile.";
    per_run_tables(report, text, "Counters of each run", rows::device)
}

pub fn runs(report: &Report<'_>) -> Markup {
    let text = "Scale 1/d is a scaled model of the drive. It has the same number of reclaim units, each with 1/d of \
                the pages. Capacity is that of the model. Mapping unit is the size of a page. Warnings are reasons \
                to doubt the write amplification.";
    per_run_tables(report, text, "Settings of each run", rows::run)
}

pub fn notes(notes: &str) -> Markup {
    let paragraphs = notes.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    html! { @for paragraph in paragraphs { p { (paragraph) } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::testing as sample;

    #[test]
    fn the_log_of_each_run_is_optional() {
        let (mut results, axes) = (sample::results(), sample::axes());
        for result in &mut results {
            result.gc_log.clear();
        }
        let panels = Panels::new(&results, &axes);
        let report = Report {
            title: "",
            front: None,
            refused: &[],
            command: WarningCommand::Run,
            source: "",
            notes: "",
            axes: &axes,
            tail_drive_writes: 1.0,
            results: &results,
            intervals: &analysis::interval::NO_INTERVALS,
            comparisons: &[],
            verdicts: &[],
            regression: &[],
        };
        assert_eq!(collections(&report, &panels).into_string(), "");
        let empty = [html::table(&rows::verdicts("claim", &[])), html::table(&rows::comparisons(&[])), notes(" \n\n ")];
        assert!(empty.iter().all(|section| section.0.is_empty()));
    }

    #[test]
    fn claims_say_whether_they_hold() {
        let verdict = |holds| analysis::claim_checker::ClaimVerdict {
            what: "A < B".into(),
            source: "Fig. 3".into(),
            holds: Some(holds),
            found: "1".into(),
        };
        let html = html::table(&rows::verdicts("claim", &[verdict(true), verdict(false)])).into_string();
        assert!(html.contains("<tr class=\"holds\"><td>holds</td><td>A &lt; B</td>"), "{html}");
        assert!(html.contains("<tr class=\"fails\"><td>FAILS</td>"), "{html}");
    }
}
