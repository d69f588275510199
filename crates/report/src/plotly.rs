//! Plotly's JSON format.
//!
//! A plot is plain data: traces, a layout, and a configuration that all plots share. The page
//! embeds the library, a script in `crates/report/plotly`. Attributes have Plotly's names, and its
//! reference documents them.

use serde_json::{Value, json};

/// The library, with only scatter and bar charts.
pub const LIBRARY: &str = include_str!("../plotly/plotly-basic.min.js");

/// File name of the library beside pages.
pub const LIBRARY_FILE: &str = "plotly-basic-3.0.1.min.js";

pub const INK: &str = "#1F2933";
pub const RULE: &str = "#E4E7EB";

/// Escapes text as HTML, because Plotly interprets names as HTML.
pub fn escape(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

pub fn with(mut base: Value, attributes: Value) -> Value {
    if let (Value::Object(base), Value::Object(attributes)) = (&mut base, attributes) {
        base.extend(attributes);
    }
    base
}

/// A trace of lines, points or both, as `mode` says.
pub fn scatter(name: &str, mode: &str, x: impl Into<Value>, y: impl Into<Value>, attributes: Value) -> Value {
    let (x, y) = (x.into(), y.into());
    with(json!({ "type": "scatter", "x": x, "y": y, "name": escape(name), "mode": mode }), attributes)
}

pub fn bar(name: &str, colour: &str, x: impl Into<Value>, y: impl Into<Value>, attributes: Value) -> Value {
    let (x, y) = (x.into(), y.into());
    with(json!({ "type": "bar", "x": x, "y": y, "name": escape(name), "marker": { "color": colour } }), attributes)
}

pub fn axis(title: &str) -> Value {
    json!({
        "title": { "text": title, "font": { "size": 11, "color": "#52606D" } },
        "gridcolor": RULE,
        "linecolor": "#9AA5B1",
        "showline": true,
        "zeroline": false,
        "automargin": true,
        "tickfont": { "size": 11 },
    })
}

/// An axis that includes zero.
pub fn axis_from_zero(title: &str) -> Value {
    with(axis(title), json!({ "rangemode": "tozero" }))
}

pub fn log_axis(title: &str) -> Value {
    with(axis(title), json!({ "type": "log" }))
}

pub struct Plot {
    /// Traces in drawing order, bottom first.
    pub data: Vec<Value>,
    pub layout: Value,
}

impl Plot {
    /// An empty plot with these axes, and with further attributes of its layout.
    pub fn new(xaxis: Value, yaxis: Value, attributes: Value) -> Plot {
        let layout = json!({
            "xaxis": xaxis,
            "yaxis": yaxis,
            "font": { "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", "size": 12, "color": INK },
            "showlegend": false,
            "autosize": true,
            // The caption and the save button are in the top margin.
            "margin": { "l": 44, "r": 8, "t": 28, "b": 36 },
            "paper_bgcolor": "#FFFFFF",
            "plot_bgcolor": "#FFFFFF",
        });
        Plot { data: Vec::new(), layout: with(layout, attributes) }
    }

    /// The plot with its tool bar, which has buttons to save the plot and to zoom out. Dragging
    /// zooms in.
    pub fn to_json(&self) -> String {
        let removed = ["zoom2d", "pan2d", "select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"];
        let config = json!({
            "displaylogo": false,
            "displayModeBar": "hover",
            "modeBarButtonsToRemove": removed,
            "toImageButtonOptions": { "format": "svg", "filename": "warp" },
            "responsive": true,
            "typesetMath": false,
        });
        json!({ "data": self.data, "layout": self.layout, "config": config }).to_string()
    }
}
