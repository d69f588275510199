//! Plots of results: the drawn numbers and their colours.
//!
//! A plot shows one panel or one cell. The page arranges plots and adds captions and legends.
//! Variants have strong colours (Okabe and Ito's palette) and a dash pattern each, handles have
//! light colours (Tol's). Colour-blind readers can distinguish both, and the two palettes do not
//! overlap. Long series are thinned by selection, without averaging.

use serde_json::{Value, json};
use ssd::UnitOwner;

use super::html::Swatch;
use super::panels::{Panel, Panels};
use super::plotly::{Plot, RULE, axis, axis_from_zero, bar, escape, scatter, with};
use crate::rows::{Grid, GridCell, GridRow, OwnerRow, variant_name};
use simulate::run::{RunResult, RunSample};

/// Maximum number of points of a series. A screen does not show more.
pub(super) const POINTS: usize = 400;

/// Okabe and Ito's palette without its yellow, which is hard to see on white.
const VARIANT_COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// Dash patterns with their CSS names. They distinguish variants in print.
const VARIANT_STROKES: [(&str, &str); 3] = [("solid", "solid"), ("dash", "dashed"), ("dot", "dotted")];

/// Tol's light palette without its grey.
const HANDLE_COLOURS: [&str; 8] =
    ["#77AADD", "#EE8866", "#EEDD88", "#44BB99", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00"];
const SHARED_COLOUR: &str = "#9AA0A6";
const FREE_COLOUR: &str = "#F1F3F4";

const HOST_COLOUR: &str = "#A9B8C6";
const COPIED_COLOUR: &str = "#27364A";

pub(super) fn colour(name: usize) -> &'static str {
    VARIANT_COLOURS[name % VARIANT_COLOURS.len()]
}

fn stroke(name: usize) -> &'static (&'static str, &'static str) {
    // When the colours repeat, the dash patterns shift, so that all lines differ.
    &VARIANT_STROKES[(name + name / VARIANT_COLOURS.len()) % VARIANT_STROKES.len()]
}

pub(super) fn line_style(name: usize) -> Value {
    json!({ "color": colour(name), "width": 2.0, "dash": stroke(name).0 })
}

fn owner_colour(owner: UnitOwner) -> &'static str {
    owner.handle().map_or(SHARED_COLOUR, |handle| HANDLE_COLOURS[usize::from(handle.0) % HANDLE_COLOURS.len()])
}

/// Legend of lines, in the order of their colours.
pub fn line_entries(names: &[String]) -> Vec<(String, Swatch)> {
    let entry = |(index, name): (usize, &String)| {
        (variant_name(name).to_string(), Swatch::Line(colour(index), stroke(index).1))
    };
    names.iter().enumerate().map(entry).collect()
}

pub fn written_entries() -> Vec<(String, Swatch)> {
    vec![
        ("written by the host".to_string(), Swatch::Area(HOST_COLOUR)),
        ("copied by garbage collection".to_string(), Swatch::Area(COPIED_COLOUR)),
    ]
}

/// Legend of the owners that held a reclaim unit at any time.
pub fn owner_entries(panels: &Panels<'_>) -> Vec<(String, Swatch)> {
    let mut owners: Vec<UnitOwner> =
        panels.representatives().flat_map(|result| holders(result).map(|(_, owner)| owner)).collect();
    owners.sort();
    owners.dedup();
    let entry = |owner: UnitOwner| (owner.to_string(), Swatch::Area(owner_colour(owner)));
    owners.into_iter().map(entry).chain([("free".to_string(), Swatch::Area(FREE_COLOUR))]).collect()
}

/// Range of an axis over all panels of a device, with a margin. Panels of a device are thus
/// comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisRange {
    low: f64,
    high: f64,
}

impl AxisRange {
    fn over(values: impl Iterator<Item = f64>, start: f64) -> AxisRange {
        let (low, high) = values.fold((start, start), |(low, high), value| (low.min(value), high.max(value)));
        let margin = ((high - low) * 0.06).max(0.02);
        AxisRange { low: low - margin, high: high + margin }
    }

    /// Range of write amplification over time, both cumulative and windowed.
    pub fn over_time(panels: &Panels<'_>, device: &str, window_capacities: f64) -> AxisRange {
        let of_device = panels.panels.iter().filter(|panel| panel.device == device);
        let results = of_device.flat_map(|panel| panel.lines.iter().flat_map(|line| &line.seeds));
        let drawn = |result: &&RunResult| [cumulative(result), windowed(result, window_capacities)].concat();
        let values: Vec<f64> = results.flat_map(drawn).map(|(_, waf)| waf).collect();
        AxisRange::over(values.into_iter(), 1.0)
    }

    /// Range of bytes written through a handle, from 0.
    pub fn written(panels: &Panels<'_>, device: &str) -> AxisRange {
        let of_device = panels.panels.iter().filter(|panel| panel.device == device);
        let rows =
            of_device.flat_map(|panel| panel.lines.iter().flat_map(|line| OwnerRow::used(line.representative())));
        let range = AxisRange::over(rows.map(|row| row.host_capacities + row.copied_capacities), 0.0);
        AxisRange { low: 0.0, ..range }
    }

    fn axis(self, title: &str) -> Value {
        with(axis(title), json!({ "range": [self.low, self.high] }))
    }
}

fn waf(sample: &RunSample) -> Option<f64> {
    (sample.host_bytes > 0).then(|| sample.media_bytes as f64 / sample.host_bytes as f64)
}

/// Cumulative write amplification, by host bytes written.
fn cumulative(result: &RunResult) -> Vec<(f64, f64)> {
    let point = |sample: &RunSample| Some((written_capacities(result, sample), rounded(waf(sample)?)));
    downsampled(&result.samples).filter_map(point).collect()
}

/// Write amplification over a sliding window, by host bytes written. It starts when the window is
/// full.
fn windowed(result: &RunResult, window_capacities: f64) -> Vec<(f64, f64)> {
    let window_bytes = (window_capacities * result.capacity_bytes as f64) as u64;
    let point = |sample: &RunSample| {
        let begin = sample.host_bytes.checked_sub(window_bytes)?;
        let before = result.samples.partition_point(|earlier| earlier.host_bytes <= begin);
        // Counters before the first sample are 0.
        let then = before.checked_sub(1).map(|index| &result.samples[index]);
        let (host, media) = then.map_or((0, 0), |then| (then.host_bytes, then.media_bytes));
        let host = sample.host_bytes.checked_sub(host).filter(|host| *host > 0)?;
        let waf = (sample.media_bytes - media) as f64 / host as f64;
        Some((written_capacities(result, sample), rounded(waf)))
    };
    downsampled(&result.samples).filter_map(point).collect()
}

/// Position of the first collection, unless the first sample already has collections.
fn first_collection(result: &RunResult) -> Option<(f64, f64)> {
    let collected = |sample: &RunSample| sample.owners.iter().any(|owner| owner.units_reclaimed > 0);
    let index = result.samples.iter().position(collected).filter(|index| *index > 0)?;
    let sample = &result.samples[index];
    Some((written_capacities(result, sample), rounded(waf(sample)?)))
}

/// Height of a line at a position, by linear interpolation. Outside the line it is that of the
/// nearest end.
fn height_at(line: &[(f64, f64)], x: f64) -> f64 {
    let next = line.partition_point(|(place, _)| *place < x);
    match (next.checked_sub(1).map(|before| line[before]), line.get(next)) {
        (Some((left, low)), Some((right, high))) => low + (high - low) * (x - left) / (right - left),
        (Some((_, end)), None) => end,
        (None, Some((_, begin))) => *begin,
        (None, None) => 0.0,
    }
}

/// At most [`POINTS`] evenly spaced samples, including the last one.
fn downsampled(samples: &[RunSample]) -> impl Iterator<Item = &RunSample> {
    let kept = samples.len().min(POINTS);
    let index = move |point: usize| {
        if kept < 2 { point } else { point * (samples.len() - 1) / (kept - 1) }
    };
    (0..kept).map(move |point| &samples[index(point)])
}

/// Rounds to four decimals, to keep the page small.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn written_capacities(result: &RunResult, sample: &RunSample) -> f64 {
    rounded(sample.host_bytes as f64 / result.capacity_bytes as f64)
}

/// The values of an axis as numbers. `None` unless all are numbers.
fn numbers(grid: &Grid) -> Option<Vec<f64>> {
    grid.columns.iter().map(|column| column.parse().ok()).collect()
}

pub fn summary_entries(panels: &Panels<'_>, grid: &Grid) -> Vec<(String, Swatch)> {
    if numbers(grid).is_some() {
        return line_entries(&panels.names);
    }
    let entry = |(index, name): (usize, &String)| (variant_name(name).to_string(), Swatch::Area(colour(index)));
    panels.names.iter().enumerate().map(entry).collect()
}

/// Write amplification of a device over the first grid axis: lines if its values are numbers, else
/// bars.
pub fn summary(panels: &Panels<'_>, grid: &Grid, rows: &[&GridRow], axis_name: &str) -> Plot {
    let numbers = numbers(grid);
    let mut x = axis(&escape(axis_name));
    if numbers.is_none() {
        x = with(x, json!({ "type": "category", "showgrid": false }));
    }
    // Space above the highest bar for its label.
    let values = rows.iter().flat_map(|row| row.cells.iter().flatten().map(|cell| cell.value));
    let y = with(axis("write amplification"), json!({ "range": [0.0, values.fold(1.0, f64::max) * 1.12] }));
    let mut plot = Plot::new(x, y, json!({ "barmode": "group" }));
    for row in rows {
        let name = panels.names.iter().position(|name| *name == row.variant).unwrap_or(0);
        plot.data.push(match &numbers {
            Some(numbers) => summary_line(name, numbers, row),
            None => summary_bars(name, grid, row),
        });
    }
    plot
}

fn summary_values(row: &GridRow) -> Vec<Option<f64>> {
    let values = row.cells.iter().map(|cell| cell.map(|cell| rounded(cell.value)));
    values.collect()
}

fn summary_line(name: usize, numbers: &[f64], row: &GridRow) -> Value {
    let style = json!({ "line": line_style(name) });
    scatter(variant_name(&row.variant), "lines+markers", numbers, summary_values(row), style)
}

fn summary_bars(name: usize, grid: &Grid, row: &GridRow) -> Value {
    let columns: Vec<String> = grid.columns.iter().map(|column| escape(column)).collect();
    let label = |cell: &Option<GridCell>| cell.map_or(String::new(), |cell| format!("{:.2}", cell.value));
    let labels: Vec<String> = row.cells.iter().map(label).collect();
    let style = json!({ "text": labels, "textposition": "outside", "cliponaxis": false });
    bar(variant_name(&row.variant), colour(name), columns, summary_values(row), style)
}

/// Write amplification over host bytes written. Each variant has a cumulative line and a thin
/// windowed line. Several seeds are shown as their mean, with a band from minimum to maximum.
pub fn over_time(panels: &Panels<'_>, panel: &Panel<'_>, range: AxisRange, window_capacities: f64) -> Plot {
    let x = axis_from_zero("host bytes written (x capacity)");
    let mut plot = Plot::new(x, range.axis("write amplification"), json!({ "hovermode": "x unified" }));
    for line in &panel.lines {
        let seeds: Vec<Vec<(f64, f64)>> = line.seeds.iter().map(|result| cumulative(result)).collect();
        if seeds.iter().any(|seed| !seed.is_empty()) {
            plot.data.extend(mean_and_band(panels.name(line), line.name, &seeds));
        }
    }
    for line in &panel.lines {
        let (x, y): (Vec<f64>, Vec<f64>) = windowed(line.representative(), window_capacities).into_iter().unzip();
        if !x.is_empty() {
            let name = format!("{}, last {window_capacities} x capacity", panels.name(line));
            let thin = with(line_style(line.name), json!({ "width": 1.0 }));
            plot.data.push(scatter(&name, "lines", x, y, json!({ "line": thin, "opacity": 0.65 })));
        }
        if let Some((x, y)) = first_collection(line.representative()) {
            let marker = json!({ "color": colour(line.name), "symbol": "triangle-up", "size": 9 });
            plot.data.push(scatter("collections begin", "markers", vec![x], vec![y], json!({ "marker": marker })));
        }
    }
    plot
}

/// The mean of several lines, and the area between their minimum and maximum. A single line has no
/// area.
fn mean_and_band(name: &str, index: usize, lines: &[Vec<(f64, f64)>]) -> Vec<Value> {
    let longest = lines.iter().max_by_key(|line| line.len()).expect("there is a line");
    let x: Vec<f64> = longest.iter().map(|(place, _)| *place).collect();
    let over = |fold: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        let heights = |place: &f64| -> Vec<f64> { lines.iter().map(|line| height_at(line, *place)).collect() };
        x.iter().map(|place| rounded(fold(&heights(place)))).collect()
    };
    let mean = over(&|heights| heights.iter().sum::<f64>() / heights.len() as f64);
    let mean = scatter(name, "lines", x.clone(), mean, json!({ "line": line_style(index) }));
    if lines.len() == 1 {
        return vec![mean];
    }
    let edge = json!({ "color": colour(index), "width": 0.0 });
    let least = over(&|heights| heights.iter().copied().fold(f64::MAX, f64::min));
    let most = over(&|heights| heights.iter().copied().fold(f64::MIN, f64::max));
    let band = json!({ "line": edge, "fill": "tonexty", "fillcolor": format!("{}2E", colour(index)) });
    let least = scatter(&format!("{name}, minimum of the seeds"), "lines", x.clone(), least, json!({ "line": edge }));
    vec![mean, least, scatter(&format!("{name}, maximum of the seeds"), "lines", x, most, band)]
}

/// Bytes that the host wrote through each handle, and bytes copied out of its reclaim units, a
/// group for each variant.
pub fn written(panels: &Panels<'_>, panel: &Panel<'_>, range: AxisRange) -> Plot {
    let (mut names, mut owners, mut host, mut copied) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, line) in panel.lines.iter().enumerate() {
        for row in OwnerRow::used(line.representative()) {
            names.push(escape(panels.name(line)));
            // Plotly orders positions by the first group that has a name. Invisible suffixes make
            // names unique, so each group keeps the order of its handles.
            owners.push(row.owner.to_string() + &"\u{200b}".repeat(index));
            host.push(rounded(row.host_capacities));
            copied.push(rounded(row.copied_capacities));
        }
    }
    let x = with(axis(""), json!({ "type": "multicategory", "dividercolor": RULE, "showgrid": false }));
    let y = range.axis("bytes (x capacity)");
    let mut plot = Plot::new(x, y, json!({ "barmode": "stack", "bargap": 0.25 }));
    let categories = json!([names, owners]);
    plot.data = vec![
        bar("host", HOST_COLOUR, categories.clone(), host, json!({})),
        bar("copied", COPIED_COLOUR, categories, copied, json!({})),
    ];
    plot
}

/// Owners that held a reclaim unit at any time, with their index in a sample.
fn holders(result: &RunResult) -> impl Iterator<Item = (usize, UnitOwner)> {
    let holds = |index: usize, sample: &RunSample| sample.units.get(index).is_some_and(|units| *units > 0);
    let owners = result.stats.owners().map(|(owner, _)| owner).enumerate();
    owners.filter(move |&(index, _)| result.samples.iter().any(|sample| holds(index, sample)))
}

/// Reclaim units of each owner and free ones, over host bytes written.
pub fn occupancy(result: &RunResult) -> Plot {
    let samples: Vec<&RunSample> = downsampled(&result.samples).collect();
    let x: Vec<f64> = samples.iter().map(|sample| written_capacities(result, sample)).collect();
    let held: Vec<u64> = samples.iter().map(|sample| sample.units.iter().sum()).collect();
    let all = u64::from(result.superblocks);
    // If reclaim units are smaller than a superblock, handles can hold more of them than the drive
    // has superblocks.
    let whole = held.iter().all(|units| *units <= all);
    let mut y = axis_from_zero("reclaim units");
    if whole {
        y["range"] = json!([0.0, all as f64]);
    }
    let mut plot = Plot::new(axis("host bytes written (x capacity)"), y, json!({ "hovermode": "x unified" }));
    for (index, owner) in holders(result) {
        let units: Vec<u64> = samples.iter().map(|sample| sample.units[index]).collect();
        plot.data.push(area(&x, units, &owner.to_string(), owner_colour(owner)));
    }
    if whole {
        let free = held.iter().map(|units| all - units).collect();
        plot.data.push(area(&x, free, "free", FREE_COLOUR));
    }
    plot
}

fn area(x: &[f64], units: Vec<u64>, name: &str, colour: &str) -> Value {
    let edge = json!({ "color": "#FFFFFF", "width": 0.5 });
    let style = json!({ "line": edge, "stackgroup": "units", "fill": "tonexty", "fillcolor": colour });
    scatter(name, "lines", x, units, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::testing as sample;

    #[test]
    fn long_series_are_thinned_and_keep_their_ends() {
        let sample = &sample::results()[0].samples[0];
        for length in [0, 1, 2, 399, 400, 401, 5000] {
            let samples: Vec<RunSample> =
                (0..length).map(|index| RunSample { host_bytes: index, ..sample.clone() }).collect();
            let kept: Vec<u64> = downsampled(&samples).map(|sample| sample.host_bytes).collect();
            assert_eq!(kept.len() as u64, length.min(400));
            assert_eq!(kept.first(), samples.first().map(|sample| &sample.host_bytes));
            assert_eq!(kept.last(), samples.last().map(|sample| &sample.host_bytes));
            assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn occupancy_adds_up_to_all_reclaim_units() {
        let result = &sample::results()[0];
        let plot: serde_json::Value = serde_json::from_str(&occupancy(result).to_json()).expect("JSON");
        let traces = plot["data"].as_array().expect("traces");
        let sum: u64 = traces.iter().map(|trace| trace["y"][10].as_u64().expect("a count")).sum();
        assert_eq!(sum, u64::from(result.superblocks));
        assert_eq!(traces.last().map(|trace| &trace["name"]), Some(&serde_json::json!("free")));
    }

    #[test]
    fn the_window_forgets_the_start_and_seeds_are_a_band() {
        let result = &sample::results()[2];
        let (all, late) = (cumulative(result), windowed(result, 1.0));
        assert!(late[0].0 >= 1.0 && late.len() < all.len());
        assert!(late.last() > all.last(), "what is copied grows: {late:?}");
        assert_eq!(first_collection(result), None, "it collected from the start");
        let mut later = result.clone();
        for owner in later.samples[..10].iter_mut().flat_map(|sample| &mut sample.owners) {
            owner.units_reclaimed = 0;
        }
        assert_eq!(first_collection(&later).map(|(x, _)| x), Some(all[10].0));
        let lines = [vec![(0.0, 1.0), (2.0, 3.0)], vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]];
        let traces = mean_and_band("FDP", 0, &lines);
        let heights: Vec<&serde_json::Value> = traces.iter().map(|trace| &trace["y"]).collect();
        assert_eq!(heights, [&json!([1.0, 1.5, 2.0]), &json!([1.0, 1.0, 1.0]), &json!([1.0, 2.0, 3.0])]);
    }

    #[test]
    fn no_line_is_the_double_of_another() {
        let looks: Vec<String> = (0..21).map(|name| format!("{}{}", colour(name), stroke(name).1)).collect();
        assert_eq!(base::distinct(looks.iter().cloned()).len(), looks.len());
    }

    #[test]
    fn panels_of_a_device_share_their_range() {
        let results = sample::results();
        let panels = Panels::new(&results, &sample::axes());
        let (a, b) = (AxisRange::over_time(&panels, "ssd_a", 1.0), AxisRange::over_time(&panels, "ssd_b", 1.0));
        let highest = results[17].samples.iter().filter_map(waf).fold(0.0, f64::max);
        assert!(a.high < b.high && b.high > highest && a.low < 1.0);
    }
}
