//! Sections of timed runs: latencies of each job, bandwidth over time with garbage collection,
//! bandwidth over block size.

use maud::{Markup, html};
use serde_json::json;

use super::html::{self, figure, figures, note};
use super::panels::{Panel, Panels};
use super::plotly::{Plot, axis, axis_from_zero, log_axis, scatter, with};
use super::plots::{POINTS, line_entries, line_style, rounded};
use crate::rows::{self, ReportTable, variant_name};
use base::distinct;
use simulate::run::RunResult;
use simulate::timed::result::TimedResult;
use workload::RequestOperation;

/// A job and one of its directions.
type Activity = (String, RequestOperation);

/// All jobs and directions with requests in any of the runs.
fn activities<'a>(timed: impl Iterator<Item = &'a TimedResult>) -> Vec<Activity> {
    let of = |timed: &TimedResult| -> Vec<Activity> {
        let jobs = timed.jobs.iter();
        let all = jobs.flat_map(|job| RequestOperation::ALL.map(|operation| (job, operation)));
        all.filter(|(job, operation)| job.direction(*operation).requests > 0)
            .map(|(job, operation)| (job.name.clone(), operation))
            .collect()
    };
    distinct(timed.flat_map(of))
}

fn activity_name((job, operation): &Activity) -> String {
    format!("{job}, {}", operation.name())
}

fn of_panel<'a>(panel: &'a Panel<'_>) -> impl Iterator<Item = (usize, &'a TimedResult)> {
    let lines = panel.lines.iter();
    lines.filter_map(|line| Some((line.name, line.representative().timed.as_ref()?)))
}

/// The table of jobs, and the distributions of their latencies.
pub fn latency(panels: &Panels<'_>) -> Markup {
    let cells = panels
        .representatives()
        .filter_map(|result| Some((vec![result.key.to_string()], rows::jobs(result.timed.as_ref()?))));
    let table = ReportTable::stacked(["cell"], cells);
    let drawn = html! {
        @for (index, panel) in panels.panels.iter().enumerate() {
            @for (number, activity) in activities(of_panel(panel).map(|(_, timed)| timed)).iter().enumerate() {
                @let plot = distribution(panels, panel, activity);
                (figure(&format!("latency-{index}-{number}"), &caption([&panel.caption, &activity_name(activity)]), 260, &plot))
            }
        }
    };
    if drawn.0.is_empty() {
        return drawn;
    }
    let paces = panels.representatives().filter_map(|result| Some(result.timed.as_ref()?.trace.as_ref()?.to_string()));
    html! {
        (note(
            "From submission to completion, in virtual time, microseconds. The curves show the share of the \
             requests that completed within each latency.",
        ))
        @for pace in distinct(paces) { (note(&pace)) }
        (html::table(&table))
        (figures("", &line_entries(&panels.names), 320, &drawn))
    }
}

/// A caption of the parts that are not empty.
fn caption(parts: [&str; 2]) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// Replayed traces: latencies by volume, process and size, lateness, bursts.
pub fn replays(panels: &Panels<'_>) -> Markup {
    let of = |result: &RunResult| {
        let replay = result.timed.as_ref()?.trace.as_ref()?.replay()?;
        Some(html! {
            (note(&result.key.to_string()))
            (html::table(&rows::replay(replay)))
            (html::table(&rows::bursts(replay)))
        })
    };
    html! { @for replay in panels.representatives().filter_map(of) { (replay) } }
}

fn distribution(panels: &Panels<'_>, panel: &Panel<'_>, (job, operation): &Activity) -> Plot {
    let mut traces = Vec::new();
    let mut highest: f64 = 1.0;
    for (name, timed) in of_panel(panel) {
        for (_, measured) in timed.named(Some(job)) {
            let points = downsampled(&measured.direction(*operation).latencies.distribution());
            let text: Vec<String> = points.iter().map(|(_, share)| format!("{:.5} %", share * 100.0)).collect();
            let x: Vec<f64> = points.iter().map(|(latency_ns, _)| *latency_ns as f64 / 1e3).collect();
            // The slowest requests are drawn at the share of all faster ones, because 100 % has no
            // finite position.
            let last = points.len().saturating_sub(2);
            let share = |place: usize| points[place.min(last)].1.min(MOST_NINES);
            let y: Vec<f64> = (0..points.len()).map(|place| rounded(nines(share(place)))).collect();
            highest = y.iter().copied().fold(highest, f64::max);
            let style = json!({ "line": line_style(name), "text": text, "hovertemplate": "%{text} within %{x} us" });
            traces.push(scatter(variant_name(&panels.names[name]), "lines", x, y, style));
        }
    }
    let top = highest.ceil() as u32;
    let ticks = json!({
        "tickvals": (0..=top).collect::<Vec<u32>>(),
        "ticktext": (0..=top).map(share_text).collect::<Vec<String>>(),
        "range": [0.0, f64::from(top)],
    });
    let y = with(axis("share of requests"), ticks);
    let mut plot = Plot::new(log_axis("latency (us)"), y, json!({ "hovermode": "closest" }));
    plot.data = traces;
    plot
}

/// Upper bound of a drawn share.
const MOST_NINES: f64 = 1.0 - 1e-9;

/// Position of a share in nines: 3 is 99.9 %.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The share of this many nines.
fn share_text(nines: u32) -> String {
    let digits = nines.saturating_sub(2) as usize;
    match nines {
        0 => "0 %".to_string(),
        _ => format!("{:.digits$} %", 100.0 - 10f64.powi(2 - nines as i32)),
    }
}

/// At most [`POINTS`] steps of a distribution, including both ends. The last percent gets half of
/// them, so the tail keeps its detail.
fn downsampled(steps: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let tail = steps.partition_point(|(_, share)| *share < 0.99);
    let every = |steps: &[(u64, f64)]| -> Vec<(u64, f64)> {
        let stride = steps.len().div_ceil(POINTS / 2).max(1);
        steps.iter().copied().step_by(stride).collect()
    };
    let mut kept = every(&steps[..tail]);
    kept.extend(every(&steps[tail..]));
    if let Some(last) = steps.last().filter(|last| kept.last() != Some(last)) {
        kept.push(*last);
    }
    kept
}

/// Bandwidth of each job over time, with the intervals in which garbage was collected.
pub fn bandwidth(panels: &Panels<'_>) -> Markup {
    let names = activities(panels.representatives().filter_map(|result| result.timed.as_ref()));
    let drawn = html! {
        @for (index, (panel, line)) in panels.cells().enumerate() {
            @if let Some(timed) = &line.representative().timed {
                @let caption = caption([&panel.caption, panels.name(line)]);
                (figure(&format!("bandwidth-{index}"), &caption, 240, &over_time(timed, &names)))
            }
        }
    };
    let text = "By the time of completion. Marks at the bottom are intervals in which reclaim units were reclaimed. \
                Point at a mark to see how many pages were copied.";
    let labels: Vec<String> = names.iter().map(activity_name).collect();
    figures(text, &line_entries(&labels), 420, &drawn)
}

fn over_time(timed: &TimedResult, names: &[Activity]) -> Plot {
    let layout = json!({ "hovermode": "x unified" });
    let mut plot = Plot::new(axis_from_zero("virtual time (s)"), axis_from_zero("MB/s"), layout);
    let series = &timed.series;
    let seconds = |interval: usize| ((interval as u64 * series.interval_ns) as f64 / 1e3).round() / 1e6;
    // The last interval is incomplete, because the run ended in it.
    let intervals = series.len().saturating_sub(1).max(series.len().min(1));
    let intervals = || (0..intervals).step_by(intervals.div_ceil(POINTS).max(1));
    for (index, job) in timed.jobs.iter().enumerate() {
        for operation in RequestOperation::ALL.into_iter().filter(|one| job.direction(*one).requests > 0) {
            let name = names.iter().position(|name| *name == (job.name.clone(), operation));
            let bandwidth = |interval: usize| {
                rounded(series.counts(interval, index, operation).bytes as f64 * 1e3 / series.interval_ns as f64)
            };
            let (x, y): (Vec<f64>, Vec<f64>) = intervals().map(|one| (seconds(one), bandwidth(one))).unzip();
            let style = json!({ "line": line_style(name.unwrap_or(0)) });
            plot.data.push(scatter(&activity_name(&(job.name.clone(), operation)), "lines", x, y, style));
        }
    }
    let collected: Vec<usize> = intervals().filter(|interval| series.collections(*interval).count > 0).collect();
    if !collected.is_empty() {
        let text = |interval: &usize| {
            let collections = series.collections(*interval);
            format!("{} units, {} pages copied", collections.count, collections.pages_copied)
        };
        let x: Vec<f64> = collected.iter().map(|interval| seconds(*interval)).collect();
        let style = json!({
            "marker": { "color": "#9AA0A6", "symbol": "line-ns-open", "size": 8 },
            "text": collected.iter().map(text).collect::<Vec<String>>(),
        });
        plot.data.push(scatter("garbage collection", "markers", x, vec![0.0; collected.len()], style));
    }
    plot
}

/// Bandwidth over block size, if an axis of the grid is called `bs`.
pub fn block_sizes(results: &[RunResult], axes: &[String]) -> Markup {
    let Some(place) = axes.iter().position(|axis| axis == "bs") else {
        return Markup::default();
    };
    let others = |result: &RunResult| {
        let mut key = result.key.clone();
        key.grid.remove(place);
        key.to_string()
    };
    let timed = || results.iter().filter(|result| result.timed.is_some() && result.key.grid.len() > place);
    let names = distinct(timed().map(others));
    let activities = activities(results.iter().filter_map(|result| result.timed.as_ref()));
    let plot = |(index, activity): (usize, &Activity)| {
        let mut plot = Plot::new(log_axis("block size (KiB)"), axis_from_zero("MB/s"), json!({}));
        for (name, text) in names.iter().enumerate() {
            let mut points: Vec<(f64, f64)> = timed()
                .filter(|result| others(result) == *text)
                .filter_map(|result| Some((block_bytes(&result.key.grid[place])? / 1024.0, rate(result, activity)?)))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            if points.is_empty() {
                continue;
            }
            let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().map(|(size, rate)| (size, rounded(rate))).unzip();
            plot.data.push(scatter(text, "lines+markers", x, y, json!({ "line": line_style(name) })));
        }
        figure(&format!("block-size-{index}"), &activity_name(activity), 280, &plot)
    };
    let drawn = html! { @for activity in activities.iter().enumerate() { (plot(activity)) } };
    figures("", &line_entries(&names), 420, &drawn)
}

/// Bandwidth in MB/s.
fn rate(result: &RunResult, (job, operation): &Activity) -> Option<f64> {
    let (_, measured) = result.timed.as_ref()?.named(Some(job)).next()?;
    let bytes = measured.direction(*operation).bytes;
    (bytes > 0).then(|| bytes as f64 * 1e3 / measured.elapsed_ns().max(1) as f64)
}

/// Parses sizes as fio does, in powers of 1024: `4k`, `128 KiB`, `1m`, `4096`.
fn block_bytes(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let factor = match text[digits.len()..].trim() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some(digits.trim().parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_nines_says_shares() {
        let texts: Vec<String> = (0..5).map(share_text).collect();
        assert_eq!(texts, ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((nines(0.999) - 3.0).abs() < 1e-9 && nines(MOST_NINES) < 10.0);
    }

    #[test]
    fn block_sizes_are_read_as_fio_writes_them() {
        assert_eq!(block_bytes("4k"), Some(4096.0));
        assert_eq!(block_bytes("128 KiB"), Some(131_072.0));
        assert_eq!(block_bytes("1m"), Some(1_048_576.0));
        assert_eq!(block_bytes("512"), Some(512.0));
        assert_eq!(block_bytes("zipf 1.2"), None);
    }

    #[test]
    fn a_thinned_distribution_keeps_its_ends_and_rises() {
        let steps: Vec<(u64, f64)> = (1..=5000).map(|step| (step * 10, step as f64 / 5000.0)).collect();
        let kept = downsampled(&steps);
        assert!(kept.len() <= POINTS + 2, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (steps.first(), steps.last()));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
