//! Parts of the page: text, tables, legends, figures, and the page around them. Only `html!`
//! converts text to HTML, and it escapes the text.

use maud::{DOCTYPE, Markup, PreEscaped, display, html};

use super::PlotLibrary;
use super::plotly::{LIBRARY, LIBRARY_FILE, Plot};
use crate::rows::{ColumnKind, Mark, ReportTable, TableRow};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Text whose parts between backticks are code.
pub fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

pub fn note(text: &str) -> Markup {
    html! { p.note { (text) } }
}

/// A line about doubtful numbers.
pub fn warning(text: &str) -> Markup {
    html! { p.warning { (prose(text)) } }
}

pub fn heading(text: &str) -> Markup {
    html! { h3 { (text) } }
}

/// Parts side by side, in columns of at least this width.
pub fn columns(least_width_pixels: u32, pieces: &Markup) -> Markup {
    html! { div.columns style={ "--least: " (least_width_pixels) "px" } { (pieces) } }
}

/// Figures side by side, below a text and a legend. Empty without figures.
pub fn figures(text: &str, entries: &[(String, Swatch)], least_width_pixels: u32, figures: &Markup) -> Markup {
    html! {
        @if !figures.0.is_empty() {
            @if !text.is_empty() { (note(text)) }
            (legend(entries))
            (columns(least_width_pixels, figures))
        }
    }
}

/// Initial state of a collapsible part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fold {
    /// Open until the reader closes it.
    Open,
    /// Closed until the reader opens it. Printing opens it.
    Closed,
    /// Closed until the reader opens it. Printing keeps its state.
    Screen,
}

pub fn fold(fold: Fold, title: &str, content: &Markup) -> Markup {
    let class = (fold == Fold::Screen).then_some("screen");
    html! { details open[fold == Fold::Open] class=[class] { summary { (title) } (content) } }
}

/// Symbol of a legend entry.
pub enum Swatch {
    /// A line of this colour and CSS style.
    Line(&'static str, &'static str),
    /// An area of this colour.
    Area(&'static str),
}

/// A colour, or its CSS variable that changes on dark screens.
fn shaded(colour: &str) -> String {
    format!("var(--c{}, {colour})", colour.trim_start_matches('#'))
}

pub fn legend(entries: &[(String, Swatch)]) -> Markup {
    let look = |swatch: &Swatch| match swatch {
        Swatch::Line(colour, style) => ("line", format!("border-top: 3px {style} {}", shaded(colour))),
        Swatch::Area(colour) => ("area", format!("background: {}", shaded(colour))),
    };
    html! {
        @if !entries.is_empty() {
            p.legend {
                @for (name, swatch) in entries {
                    @let (class, style) = look(swatch);
                    span.entry { i class=(class) style=(style) {} (name) } "\n"
                }
            }
        }
    }
}

/// A table with its notes before it. Empty without rows.
pub fn table(rows: &ReportTable) -> Markup {
    let above = [None].into_iter().chain(rows.rows.iter().map(Some));
    html! {
        @if !rows.is_empty() {
            @for text in &rows.notes { (note(text)) }
            div.scroll { table {
                thead { tr {
                    @for column in &rows.columns {
                        th class=[class(column.kind)] {
                            (column.heading)
                            @if !column.unit.is_empty() { " " span.unit { (column.unit) } }
                        }
                    }
                } }
                tbody { @for (row, above) in rows.rows.iter().zip(above) { (row_html(rows, row, above)) } }
            } }
        }
    }
}

fn class(kind: ColumnKind) -> Option<&'static str> {
    (kind == ColumnKind::Number).then_some("number")
}

fn row_html(rows: &ReportTable, row: &TableRow, above: Option<&TableRow>) -> Markup {
    let labels = rows.columns.iter().take_while(|column| column.kind == ColumnKind::Label);
    let groups = labels.count().saturating_sub(1);
    // A name that repeats the row above is grey, to show groups.
    let pairs = row.cells.iter().zip(above.into_iter().flat_map(|above| &above.cells));
    let same = pairs.take(groups).take_while(|(cell, above)| cell == above).count();
    let class_of = |index: usize| (index < same).then_some("same").or(class(rows.columns[index].kind));
    let mark = match row.mark {
        Mark::None => None,
        Mark::Holds => Some("holds"),
        Mark::Fails => Some("fails"),
    };
    html! { tr class=[mark] { @for (index, cell) in row.cells.iter().enumerate() { td class=[class_of(index)] { (display(cell)) } } } }
}

/// A plot with a caption. The script of the page draws it.
pub fn figure(id: &str, caption: &str, height_pixels: u32, plot: &Plot) -> Markup {
    // JSON reads an escaped "<" as the same character. Unescaped, it could end the script element.
    let json = PreEscaped(plot.to_json().replace('<', "\\u003c"));
    html! {
        figure {
            @if !caption.is_empty() { figcaption title=(caption) { (caption) } }
            div.plot data-plot=(id) style={ "height: " (height_pixels) "px" } {}
            script type="application/json" id=(id) { (json) }
        }
    }
}

struct HtmlSection {
    id: &'static str,
    title: &'static str,
    content: Markup,
}

#[derive(Default)]
pub struct HtmlPage {
    title: String,
    /// The result in one sentence. Empty without one.
    pub headline: String,
    /// The line under the title.
    pub lead: String,
    sections: Vec<HtmlSection>,
    /// Number of sections before the collapsed ones, and the title of the collapsed part.
    folded: Option<(usize, &'static str)>,
}

impl HtmlPage {
    pub fn new(title: impl Into<String>) -> HtmlPage {
        let title = title.into();
        HtmlPage { title, ..HtmlPage::default() }
    }

    /// Adds a section and its entry in the table of contents, unless the content is empty.
    pub fn section(&mut self, id: &'static str, title: &'static str, content: Markup) {
        if !content.0.is_empty() {
            self.sections.push(HtmlSection { id, title, content });
        }
    }

    /// Collapses all later sections under a title.
    pub fn fold_what_follows(&mut self, title: &'static str) {
        assert!(self.folded.is_none(), "it is folded once");
        self.folded = Some((self.sections.len(), title));
    }

    pub fn finish(&self, library: PlotLibrary) -> String {
        let (seen, title) = self.folded.unwrap_or((self.sections.len(), ""));
        let (seen, folded) = self.sections.split_at(seen);
        let has_plots = self.sections.iter().any(|section| section.content.0.contains("data-plot="));
        let sections = |sections: &[HtmlSection]| {
            html! {
                @for section in sections { section id=(section.id) { h2 { (section.title) } (section.content) } "\n" }
            }
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                    @if has_plots && library == PlotLibrary::Embedded { script { (PreEscaped(LIBRARY)) } }
                    @if has_plots && library == PlotLibrary::SeparateFile { script src=(LIBRARY_FILE) {} }
                }
                body {
                    main {
                        header {
                            h1 { (self.title) }
                            @if !self.headline.is_empty() { p.headline { (self.headline) } }
                            p.lead { (self.lead) }
                            nav aria-label="Contents" {
                                ul { @for one in &self.sections { li { a href={ "#" (one.id) } { (one.title) } } "\n" } }
                            }
                        }
                        noscript { p { "The plots need JavaScript." } }
                        p #missing .warning hidden {
                            "There are no plots because " (LIBRARY_FILE) " is missing. Copy it to the folder of this \
                                                                          page, or write the report with --single-file."
                        }
                        (sections(seen))
                        @if self.folded.is_some() { details.rest { summary { (title) } (sections(folded)) } }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::CellValue;

    #[test]
    fn a_table_escapes_aligns_and_greys_what_repeats() {
        let mut rows = ReportTable::default().labels(["device", "variant"]).numbers("<x>", ["WAF"]);
        rows.add(["a<b".into(), "FDP".into(), CellValue::Amplification(1.0)]);
        rows.add(["a<b".into(), "NoFDP".into(), CellValue::Amplification(2.0)]);
        let html = table(&rows.note("1 < 2")).into_string();
        assert!(html.starts_with("<p class=\"note\">1 &lt; 2</p>"), "{html}");
        assert!(html.contains("<th class=\"number\">WAF <span class=\"unit\">&lt;x&gt;</span></th>"), "{html}");
        assert!(html.contains("<td>a&lt;b</td><td>FDP</td><td class=\"number\">1.000</td>"), "{html}");
        assert!(html.contains("<td class=\"same\">a&lt;b</td><td>NoFDP</td>"), "{html}");
        assert_eq!(table(&ReportTable::default().labels(["device"])).into_string(), "");
    }

    #[test]
    fn the_library_can_stand_in_a_page() {
        assert!(!LIBRARY.contains("</script"));
    }
}
