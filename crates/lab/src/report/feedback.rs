//! The section of placement feedback: what each collection copied of whom, and what was done about it (Kang & Shin,
//! Fig. 1).

use plotly::common::{DashType, Marker};
use plotly::layout::{BarMode, HoverMode, RangeMode, Shape, ShapeLine, ShapeType};
use plotly::{Bar, Plot};

use super::html::{self, Swatch, columns, escape, figure, legend, note};
use super::panels::Panels;
use super::plots::{POINTS, axis, colour, new_plot, rounded};
use crate::feedback::FeedbackResult;
use crate::rows::{self, Rows, distinct};

/// Bars of a figure at most.
const BARS: usize = POINTS / 2;
const NOBODY: &str = "nobody's";
const NOBODY_COLOUR: &str = "#9AA0A6";

/// The readings of each cell as a table, and its collections as bars.
pub fn feedback(panels: &Panels<'_>) -> String {
    let results = || {
        panels
            .firsts()
            .filter_map(|result| Some((result, result.feedback.as_ref()?)))
    };
    let names = distinct(results().flat_map(|(_, feedback)| feedback.owners.clone()));
    if names.is_empty() {
        return String::new();
    }
    let cells = results().map(|(result, feedback)| (vec![result.key.to_string()], rows::readings(result, feedback)));
    let table = Rows::stacked(["cell"], cells);
    let mut figures = String::new();
    for (index, (result, feedback)) in results().enumerate() {
        let plot = collections(feedback, &names);
        figures.push_str(&figure(
            &format!("feedback-{index}"),
            &result.key.to_string(),
            260,
            &plot,
        ));
    }
    let entry = |(index, name): (usize, &String)| (name.clone(), Swatch::Area(colour(index)));
    let entries: Vec<(String, Swatch)> = names
        .iter()
        .enumerate()
        .map(entry)
        .chain([(NOBODY.to_string(), Swatch::Area(NOBODY_COLOUR))])
        .collect();
    note(
        "Pages copied by a collection, by the owner of the data; where there are more collections than bars, a bar is the mean of several in \
         a row. Dashed lines are readings of the event log.",
    ) + &legend(&entries)
        + &columns(460, &figures)
        + &html::table(&table)
}

fn collections(feedback: &FeedbackResult, names: &[String]) -> Plot {
    let y = axis("pages copied").range_mode(RangeMode::ToZero);
    let (mut plot, layout) = new_plot(axis("collection"), y);
    let each = feedback.collections.len().div_ceil(BARS).max(1);
    let x: Vec<usize> = (0..feedback.collections.len()).step_by(each).collect();
    for owner in 0..=feedback.owners.len() {
        let mean = |rows: &[crate::feedback::CollectionRow]| {
            let pages: u64 = rows.iter().map(|row| u64::from(row.copied[owner])).sum();
            rounded(pages as f64 / rows.len() as f64)
        };
        let bars: Vec<f64> = feedback.collections.chunks(each).map(mean).collect();
        if bars.iter().all(|pages| *pages == 0.0) {
            continue;
        }
        let place = feedback
            .owners
            .get(owner)
            .and_then(|name| names.iter().position(|known| known == name));
        let name = feedback.owners.get(owner).map_or(NOBODY, String::as_str);
        let marker = Marker::new().color(place.map_or(NOBODY_COLOUR, colour));
        plot.add_trace(Bar::new(x.clone(), bars).name(escape(name)).marker(marker));
    }
    let line = |collections: usize| {
        let stroke = ShapeLine::new().color("#1F2933").width(1.0).dash(DashType::Dash);
        let (x, shape) = (
            collections as f64,
            Shape::new().shape_type(ShapeType::Line).line(stroke),
        );
        shape.x0(x).x1(x).y_ref("paper").y0(0.0).y1(1.0)
    };
    let lines = feedback
        .readings
        .iter()
        .map(|reading| line(reading.collections))
        .collect();
    plot.set_layout(
        layout
            .bar_mode(BarMode::Stack)
            .bar_gap(0.0)
            .hover_mode(HoverMode::XUnified)
            .shapes(lines),
    );
    plot
}
