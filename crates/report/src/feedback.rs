//! The section of placement feedback: pages copied by each collection per owner, and the resulting
//! moves (Kang & Shin, Fig. 1).

use maud::{Markup, html};
use serde_json::{Value, json};

use super::html::{self, Swatch, figure, figures};
use super::panels::Panels;
use super::plotly::{INK, Plot, axis, axis_from_zero, bar};
use super::plots::{POINTS, colour, rounded};
use crate::rows::{self, ReportTable};
use base::distinct;
use simulate::feedback::{CollectionRow, FeedbackResult, ReadingRow};

/// Maximum number of bars in a figure.
const BARS: usize = POINTS / 2;
const NOBODY: &str = "nobody's";
const NOBODY_COLOUR: &str = "#9AA0A6";

/// Readings of each cell as a table, and its collections as bars.
pub fn feedback(panels: &Panels<'_>) -> Markup {
    let results = || panels.representatives().filter_map(|result| Some((result, result.feedback.as_ref()?)));
    let names = distinct(results().flat_map(|(_, feedback)| feedback.owners.clone()));
    if names.is_empty() {
        return Markup::default();
    }
    let cells = results().map(|(result, feedback)| (vec![result.key.to_string()], rows::readings(result, feedback)));
    let table = ReportTable::stacked(["cell"], cells);
    let drawn = html! {
        @for (index, (result, feedback)) in results().enumerate() {
            (figure(&format!("feedback-{index}"), &result.key.to_string(), 260, &collections(feedback, &names)))
        }
    };
    let entry = |(index, name): (usize, &String)| (name.clone(), Swatch::Area(colour(index)));
    let entries: Vec<(String, Swatch)> =
        names.iter().enumerate().map(entry).chain([(NOBODY.to_string(), Swatch::Area(NOBODY_COLOUR))]).collect();
    html! {
        (figures(
            "Pages copied by each collection, by owner of the data. If there are more collections than bars, a bar \
             is the mean of several consecutive ones. Dashed lines are readings of the event log.",
            &entries, 460, &drawn,
        ))
        (html::table(&table))
    }
}

fn collections(feedback: &FeedbackResult, names: &[String]) -> Plot {
    let stroke = json!({ "color": INK, "width": 1.0, "dash": "dash" });
    let reading = |reading: &ReadingRow| {
        let x = reading.collections as f64;
        json!({ "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0.0, "y1": 1.0, "line": stroke })
    };
    let mut layout = json!({ "barmode": "stack", "bargap": 0.0, "hovermode": "x unified" });
    if !feedback.readings.is_empty() {
        layout["shapes"] = feedback.readings.iter().map(reading).collect::<Value>();
    }
    let mut plot = Plot::new(axis("collection"), axis_from_zero("pages copied"), layout);
    let each = feedback.collections.len().div_ceil(BARS).max(1);
    let x: Vec<usize> = (0..feedback.collections.len()).step_by(each).collect();
    for owner in 0..=feedback.owners.len() {
        let mean = |rows: &[CollectionRow]| {
            let pages: u64 = rows.iter().map(|row| u64::from(row.copied[owner])).sum();
            rounded(pages as f64 / rows.len() as f64)
        };
        let bars: Vec<f64> = feedback.collections.chunks(each).map(mean).collect();
        if bars.iter().all(|pages| *pages == 0.0) {
            continue;
        }
        let place = feedback.owners.get(owner).and_then(|name| names.iter().position(|known| known == name));
        let name = feedback.owners.get(owner).map_or(NOBODY, String::as_str);
        let colour = place.map_or(NOBODY_COLOUR, colour);
        plot.data.push(bar(name, colour, x.clone(), bars, json!({})));
    }
    plot
}
