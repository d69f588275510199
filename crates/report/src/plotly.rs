//! What Plotly draws, as its JSON: those of its attributes that our plots set, under its names.
//!
//! A plot is plain data: traces, a layout, and a configuration that is the same for all. The library itself is the
//! script in `crates/report/plotly`, of which the page embeds one copy; whether an attribute is one is for Plotly's
//! reference to say.

use serde::Serialize;
use serde_json::Value;

/// The library: scatter and bar charts, which is all that is drawn here.
pub const LIBRARY: &str = include_str!("../plotly/plotly-basic.min.js");

/// Name of the library's file, beside pages that have it not in them.
pub const LIBRARY_FILE: &str = "plotly-basic-3.0.1.min.js";

/// Text as HTML, which is what Plotly takes names as.
pub fn escape(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

#[derive(Serialize)]
pub struct Plot {
    /// What is drawn, first the undermost.
    pub data: Vec<Trace>,
    /// Axes, margins, and how traces are put together.
    pub layout: Layout,
    config: Configuration,
}

impl Plot {
    /// An empty plot with these axes.
    pub fn new(xaxis: Axis, yaxis: Axis, font: Font) -> Plot {
        let layout = Layout {
            xaxis,
            yaxis,
            font,
            autosize: true,
            // The caption and the button for saving stand in the margin at the top.
            margin: Margin {
                l: 44,
                r: 8,
                t: 28,
                b: 36,
            },
            paper_bgcolor: "#FFFFFF",
            plot_bgcolor: "#FFFFFF",
            ..Layout::default()
        };
        Plot {
            data: Vec::new(),
            layout,
            config: Configuration::default(),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text only")
    }
}

/// One button saves the plot for a paper, one zooms out again; dragging zooms in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
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

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
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
            to_image_button_options: ImageOptions {
                format: "svg",
                filename: "warp",
            },
            responsive: true,
            typeset_math: false,
        }
    }
}

/// Everything around the traces.
#[derive(Default, Serialize)]
pub struct Layout {
    xaxis: Axis,
    yaxis: Axis,
    font: Font,
    showlegend: bool,
    autosize: bool,
    margin: Margin,
    paper_bgcolor: &'static str,
    plot_bgcolor: &'static str,
    /// How bars at one place are put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barmode: Option<BarMode>,
    /// The part of a bar's room that stays free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bargap: Option<f64>,
    /// What the pointer shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hovermode: Option<HoverMode>,
    /// Lines across the plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<Shape>,
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
    /// In order of preference; the plot's, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    pub size: u32,
    /// The plot's, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<&'static str>,
}

#[derive(Default, Serialize)]
pub struct Axis {
    /// What is counted, and in which unit.
    pub title: AxisTitle,
    /// Linear, if none.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<AxisKind>,
    /// Least and greatest value; as the traces need, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// How the range is found where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rangemode: Option<RangeMode>,
    /// Whether lines are drawn across the plot; yes, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub showgrid: Option<bool>,
    /// Colour of these lines.
    pub gridcolor: &'static str,
    /// Colour of the lines between groups of categories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dividercolor: Option<&'static str>,
    /// Colour of the axis.
    pub linecolor: &'static str,
    /// Whether the axis is drawn.
    pub showline: bool,
    /// Whether zero is marked.
    pub zeroline: bool,
    /// Whether the margin grows with the numbers.
    pub automargin: bool,
    /// Of the numbers.
    pub tickfont: Font,
    /// Where marks stand; as it fits, if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tickvals: Vec<u32>,
    /// What they say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticktext: Vec<String>,
}

#[derive(Default, Serialize)]
pub struct AxisTitle {
    /// HTML.
    pub text: String,
    pub font: Font,
}

/// What the places of an axis are.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisKind {
    /// Numbers, evenly in their logarithm.
    Log,
    Category,
    /// Names in groups.
    MultiCategory,
}

/// How a range is found.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeMode {
    /// It begins or ends at zero.
    ToZero,
}

/// How bars at one place are put together.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BarMode {
    /// Side by side.
    Group,
    /// One on the other.
    Stack,
}

/// What the pointer shows.
#[derive(Clone, Copy, Serialize)]
pub enum HoverMode {
    /// The nearest point.
    #[serde(rename = "closest")]
    Closest,
    /// All traces at its place.
    #[serde(rename = "x unified")]
    XUnified,
}

/// A line across the plot, from its lower to its upper end.
#[derive(Serialize)]
pub struct Shape {
    #[serde(rename = "type")]
    kind: &'static str,
    x0: f64,
    x1: f64,
    yref: &'static str,
    y0: f64,
    y1: f64,
    line: Stroke,
}

impl Shape {
    pub fn vertical(x: f64, line: Stroke) -> Shape {
        Shape {
            kind: "line",
            x0: x,
            x1: x,
            yref: "paper",
            y0: 0.0,
            y1: 1.0,
            line,
        }
    }
}

/// What is drawn from the same values.
#[derive(Default, Serialize)]
pub struct Trace {
    /// How it is drawn.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where, from left to right.
    pub x: Value,
    pub y: Value,
    /// HTML.
    pub name: String,
    /// Lines, points or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How lines look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<Stroke>,
    /// How points or bars look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// A text for each point or bar.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    /// Where a bar's text stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub textposition: Option<&'static str>,
    /// Whether what stands out of the axes is cut off; yes, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cliponaxis: Option<bool>,
    /// Traces of one group stand one on the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stackgroup: Option<&'static str>,
    /// Up to where the area under a line is filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<&'static str>,
    /// The area's colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fillcolor: Option<String>,
    /// How much covers what is below; all, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opacity: Option<f64>,
    /// What the pointer shows of a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hovertemplate: Option<&'static str>,
}

impl Trace {
    /// Points and the lines between them.
    pub fn scatter(x: impl Into<Value>, y: impl Into<Value>, mode: Mode) -> Trace {
        Trace {
            kind: "scatter",
            x: x.into(),
            y: y.into(),
            mode: Some(mode),
            ..Trace::default()
        }
    }

    pub fn bar(x: impl Into<Value>, y: impl Into<Value>, color: &'static str) -> Trace {
        Trace {
            kind: "bar",
            x: x.into(),
            y: y.into(),
            marker: Some(Marker {
                color,
                ..Marker::default()
            }),
            ..Trace::default()
        }
    }

    /// With a name, which is text.
    pub fn named(self, text: &str) -> Trace {
        Trace {
            name: escape(text),
            ..self
        }
    }

    /// With lines of this look.
    pub fn drawn(self, line: Stroke) -> Trace {
        Trace {
            line: Some(line),
            ..self
        }
    }
}

/// Lines, points or both.
#[derive(Clone, Copy, Serialize)]
pub enum Mode {
    /// Lines between the points.
    #[serde(rename = "lines")]
    Lines,
    #[serde(rename = "lines+markers")]
    LinesMarkers,
    #[serde(rename = "markers")]
    Markers,
}

/// How a line looks.
#[derive(Clone, Copy, Serialize)]
pub struct Stroke {
    pub color: &'static str,
    pub width: f64,
    /// Drawn through, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dash: Option<Interruption>,
}

/// How a line is interrupted.
#[derive(Clone, Copy, Serialize)]
pub enum Interruption {
    /// It is not.
    #[serde(rename = "solid")]
    Solid,
    #[serde(rename = "dash")]
    Dashed,
    #[serde(rename = "dot")]
    Dotted,
}

/// How a point or a bar looks.
#[derive(Default, Serialize)]
pub struct Marker {
    pub color: &'static str,
    /// The shape of a point; a disc, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<&'static str>,
    /// Of a point, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}
