//! Plotly's JSON format, with the attributes that our plots set.
//!
//! A plot is plain data: traces, a layout, and a configuration that all plots share. The page
//! embeds the library, a script in `crates/report/plotly`. Attributes have Plotly's names, and its
//! reference documents them.

use serde::Serialize;
use serde_json::Value;

/// The library, with only scatter and bar charts.
pub const LIBRARY: &str = include_str!("../plotly/plotly-basic.min.js");

/// File name of the library beside pages.
pub const LIBRARY_FILE: &str = "plotly-basic-3.0.1.min.js";

/// Escapes text as HTML, because Plotly interprets names as HTML.
pub fn escape(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

#[derive(Serialize)]
pub struct Plot {
    /// Traces in drawing order, bottom first.
    pub data: Vec<PlotTrace>,
    /// Axes, margins, and arrangement of the traces.
    pub layout: PlotLayout,
    config: PlotConfig,
}

impl Plot {
    /// An empty plot with these axes.
    pub fn new(xaxis: PlotAxis, yaxis: PlotAxis, font: Font) -> Plot {
        let layout = PlotLayout {
            xaxis,
            yaxis,
            font,
            autosize: true,
            // The caption and the save button are in the top margin.
            margin: Margin { l: 44, r: 8, t: 28, b: 36 },
            paper_bgcolor: "#FFFFFF",
            plot_bgcolor: "#FFFFFF",
            ..PlotLayout::default()
        };
        Plot { data: Vec::new(), layout, config: PlotConfig::default() }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text only")
    }
}

/// Configuration of the tool bar, with buttons to save the plot and to zoom out. Dragging zooms in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlotConfig {
    #[serde(rename = "displaylogo")]
    display_logo: bool,
    display_mode_bar: &'static str,
    mode_bar_buttons_to_remove: [&'static str; 7],
    to_image_button_options: ImageOptions,
    responsive: bool,
    #[serde(rename = "typesetMath")]
    typeset_math: bool,
}

#[derive(Serialize)]
struct ImageOptions {
    format: &'static str,
    filename: &'static str,
}

impl Default for PlotConfig {
    fn default() -> PlotConfig {
        PlotConfig {
            display_logo: false,
            display_mode_bar: "hover",
            mode_bar_buttons_to_remove: [
                "zoom2d",
                "pan2d",
                "select2d",
                "lasso2d",
                "zoomIn2d",
                "zoomOut2d",
                "autoScale2d",
            ],
            to_image_button_options: ImageOptions { format: "svg", filename: "warp" },
            responsive: true,
            typeset_math: false,
        }
    }
}

/// Layout around the traces.
#[derive(Default, Serialize)]
pub struct PlotLayout {
    xaxis: PlotAxis,
    yaxis: PlotAxis,
    font: Font,
    showlegend: bool,
    autosize: bool,
    margin: Margin,
    paper_bgcolor: &'static str,
    plot_bgcolor: &'static str,
    /// Arrangement of bars at the same position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barmode: Option<BarMode>,
    /// Free share of a bar's space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bargap: Option<f64>,
    /// Content of the hover label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hovermode: Option<HoverMode>,
    /// Lines across the plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<PlotShape>,
}

#[derive(Default, Serialize)]
struct Margin {
    l: u32,
    r: u32,
    t: u32,
    b: u32,
}

#[derive(Clone, Default, Serialize)]
pub struct Font {
    /// Font families in order of preference. `None` inherits the plot's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    pub size: u32,
    /// Font colour. `None` inherits the plot's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<&'static str>,
}

#[derive(Default, Serialize)]
pub struct PlotAxis {
    /// Quantity and unit.
    pub title: AxisTitle,
    /// Scale of the axis. `None` is linear.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<AxisKind>,
    /// Minimum and maximum. `None` fits the traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Rule for the automatic range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rangemode: Option<RangeMode>,
    /// Grid lines across the plot. `None` shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub showgrid: Option<bool>,
    /// Colour of the grid lines.
    pub gridcolor: &'static str,
    /// Colour of the lines between groups of categories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dividercolor: Option<&'static str>,
    /// Colour of the axis.
    pub linecolor: &'static str,
    /// Visibility of the axis line.
    pub showline: bool,
    /// Visibility of the line at zero.
    pub zeroline: bool,
    /// Adapts the margin to the tick labels.
    pub automargin: bool,
    /// Font of the tick labels.
    pub tickfont: Font,
    /// Positions of the ticks. Empty for automatic ticks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tickvals: Vec<u32>,
    /// Labels of the ticks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticktext: Vec<String>,
}

#[derive(Default, Serialize)]
pub struct AxisTitle {
    /// Title as HTML.
    pub text: String,
    pub font: Font,
}

/// Scale of an axis.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisKind {
    /// Logarithmic numbers.
    Log,
    Category,
    /// Names in groups.
    MultiCategory,
}

/// Rule for an automatic range.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeMode {
    /// The range includes zero at one end.
    ToZero,
}

/// Arrangement of bars at the same position.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BarMode {
    /// Side by side.
    Group,
    /// Stacked.
    Stack,
}

/// Content of the hover label.
#[derive(Clone, Copy, Serialize)]
pub enum HoverMode {
    /// The nearest point.
    #[serde(rename = "closest")]
    Closest,
    /// All traces at the pointer's x position.
    #[serde(rename = "x unified")]
    XUnified,
}

/// A line across the plot, from bottom to top.
#[derive(Serialize)]
pub struct PlotShape {
    #[serde(rename = "type")]
    kind: &'static str,
    x0: f64,
    x1: f64,
    yref: &'static str,
    y0: f64,
    y1: f64,
    line: Stroke,
}

impl PlotShape {
    pub fn vertical(x: f64, line: Stroke) -> PlotShape {
        PlotShape { kind: "line", x0: x, x1: x, yref: "paper", y0: 0.0, y1: 1.0, line }
    }
}

/// A series of values in a plot.
#[derive(Default, Serialize)]
pub struct PlotTrace {
    /// Plotly's type of the trace.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Horizontal positions.
    pub x: Value,
    pub y: Value,
    /// Name as HTML.
    pub name: String,
    /// Lines, points or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<TraceMode>,
    /// Style of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<Stroke>,
    /// Style of points or bars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// A text for each point or bar.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    /// Position of a bar's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub textposition: Option<&'static str>,
    /// Clips content outside the axes. `None` clips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cliponaxis: Option<bool>,
    /// Group of traces that are stacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stackgroup: Option<&'static str>,
    /// Boundary of the filled area under a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<&'static str>,
    /// Colour of the area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fillcolor: Option<String>,
    /// Opacity. `None` is opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opacity: Option<f64>,
    /// Hover label of a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hovertemplate: Option<&'static str>,
}

impl PlotTrace {
    /// A trace of points and the lines between them.
    pub fn scatter(x: impl Into<Value>, y: impl Into<Value>, mode: TraceMode) -> PlotTrace {
        PlotTrace { kind: "scatter", x: x.into(), y: y.into(), mode: Some(mode), ..PlotTrace::default() }
    }

    pub fn bar(x: impl Into<Value>, y: impl Into<Value>, color: &'static str) -> PlotTrace {
        PlotTrace {
            kind: "bar",
            x: x.into(),
            y: y.into(),
            marker: Some(Marker { color, ..Marker::default() }),
            ..PlotTrace::default()
        }
    }

    /// Sets the name from plain text.
    pub fn named(self, text: &str) -> PlotTrace {
        PlotTrace { name: escape(text), ..self }
    }

    /// Sets the style of lines.
    pub fn drawn(self, line: Stroke) -> PlotTrace {
        PlotTrace { line: Some(line), ..self }
    }
}

/// Lines, points or both.
#[derive(Clone, Copy, Serialize)]
pub enum TraceMode {
    /// Lines between the points.
    #[serde(rename = "lines")]
    Lines,
    #[serde(rename = "lines+markers")]
    LinesMarkers,
    #[serde(rename = "markers")]
    Markers,
}

/// Style of a line.
#[derive(Clone, Copy, Serialize)]
pub struct Stroke {
    pub color: &'static str,
    pub width: f64,
    /// Dash pattern. `None` is a solid line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dash: Option<DashPattern>,
}

/// Dash pattern of a line.
#[derive(Clone, Copy, Serialize)]
pub enum DashPattern {
    /// Solid line.
    #[serde(rename = "solid")]
    Solid,
    #[serde(rename = "dash")]
    Dashed,
    #[serde(rename = "dot")]
    Dotted,
}

/// Style of a point or a bar.
#[derive(Default, Serialize)]
pub struct Marker {
    pub color: &'static str,
    /// Shape of a point. `None` is a disc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<&'static str>,
    /// Size of a point, pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}
