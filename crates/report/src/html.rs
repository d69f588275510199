//! Pieces of the page: text, tables, legends, figures, and the page around them.
//!
//! Every text passes [`escape`] exactly once, here; callers hand over plain text, and pieces that are HTML already only
//! where the name says so.

use super::Library;
pub use super::escape::escape;
use super::plotly::{LIBRARY, LIBRARY_FILE, Plot};

use crate::rows::{Column, Kind, Mark, Row, Rows};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Text whose parts between backticks are code.
pub fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect()
}

/// A paragraph that explains.
pub fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escape(text))
}

/// A line that says what makes numbers doubtful.
pub fn finding(text: &str) -> String {
    format!("<p class=\"finding\">{}</p>\n", prose(text))
}

/// A heading within a section.
pub fn heading(text: &str) -> String {
    format!("<h3>{}</h3>\n", escape(text))
}

/// Pieces side by side, in as many columns of at least this width as there is room for.
pub fn columns(least_width_pixels: u32, pieces_html: &str) -> String {
    format!("<div class=\"columns\" style=\"--least: {least_width_pixels}px\">\n{pieces_html}</div>\n")
}

/// What becomes of a fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fold {
    /// Open until the reader closes it.
    Open,
    /// Closed until the reader opens it or prints the page.
    Closed,
    /// Closed until the reader opens it, printed as it is then.
    Screen,
}

/// Something that can be folded away.
pub fn fold(fold: Fold, title: &str, content_html: &str) -> String {
    let attribute = match fold {
        Fold::Open => " open",
        Fold::Closed => "",
        Fold::Screen => " class=\"screen\"",
    };
    format!(
        "<details{attribute}><summary>{}</summary>\n{content_html}</details>\n",
        escape(title)
    )
}

/// How an entry of a legend looks.
pub enum Swatch {
    /// A line of this colour and CSS style.
    Line(&'static str, &'static str),
    /// An area of this colour.
    Area(&'static str),
}

/// A colour, or what the style has in its place on dark screens.
fn shaded(colour: &str) -> String {
    format!("var(--c{}, {colour})", colour.trim_start_matches('#'))
}

/// A legend for several plots.
pub fn legend(entries: &[(String, Swatch)]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entry = |(name, swatch): &(String, Swatch)| {
        let style = match swatch {
            Swatch::Line(colour, style) => {
                format!("class=\"line\" style=\"border-top: 3px {style} {}\"", shaded(colour))
            }
            Swatch::Area(colour) => format!("class=\"area\" style=\"background: {}\"", shaded(colour)),
        };
        format!("<span class=\"entry\"><i {style}></i>{}</span>\n", escape(name))
    };
    format!(
        "<p class=\"legend\">{}</p>\n",
        entries.iter().map(entry).collect::<String>()
    )
}

/// A table; nothing if it has no rows. Its notes stand before it.
pub fn table(rows: &Rows) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = |column: &Column| {
        let unit = match column.unit {
            "" => String::new(),
            unit => format!(" <span class=\"unit\">{}</span>", escape(unit)),
        };
        format!("<th{}>{}{unit}</th>", class(column.kind), escape(&column.heading))
    };
    let head: String = rows.columns.iter().map(heading).collect();
    let above = [None].into_iter().chain(rows.rows.iter().map(Some));
    let body: String = rows
        .rows
        .iter()
        .zip(above)
        .map(|(row, above)| row_html(rows, row, above))
        .collect();
    let notes: String = rows.notes.iter().map(|text| note(text)).collect();
    format!(
        "{notes}<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Label | Kind::Text => "",
        Kind::Number => " class=\"number\"",
    }
}

fn row_html(rows: &Rows, row: &Row, above: Option<&Row>) -> String {
    let labels = rows
        .columns
        .iter()
        .take_while(|column| column.kind == Kind::Label)
        .count();
    let mut same = true;
    let mut cells = String::new();
    for (index, (column, cell)) in rows.columns.iter().zip(&row.cells).enumerate() {
        // A name that repeats the row above is grey, so that groups show.
        same &= index + 1 < labels && above.is_some_and(|above| above.cells[index] == *cell);
        let class = if same { " class=\"same\"" } else { class(column.kind) };
        cells.push_str(&format!("<td{class}>{}</td>", escape(&cell.to_string())));
    }
    let class = match row.mark {
        Mark::None => "",
        Mark::Holds => " class=\"holds\"",
        Mark::Fails => " class=\"fails\"",
    };
    format!("<tr{class}>{cells}</tr>\n")
}

/// A plot under a caption. The script of the page draws it.
pub fn figure(id: &str, caption: &str, height_pixels: u32, plot: &Plot) -> String {
    // In JSON, an escaped "<" is the same character; in HTML it would end the script.
    let json = plot.to_json().replace('<', "\\u003c");
    let caption = match escape(caption) {
        caption if caption.is_empty() => caption,
        caption => format!("<figcaption title=\"{caption}\">{caption}</figcaption>"),
    };
    format!(
        "<figure>{caption}<div class=\"plot\" data-plot=\"{id}\" style=\"height: {height_pixels}px\"></div>\
         <script type=\"application/json\" id=\"{id}\">{json}</script></figure>\n"
    )
}

/// The page: a head, a table of contents, sections.
pub struct Page {
    title: String,
    headline_html: String,
    lead_html: String,
    contents_html: String,
    sections_html: String,
    end_html: &'static str,
}

impl Page {
    /// A page without sections.
    pub fn new(title: &str) -> Page {
        Page {
            title: escape(title),
            headline_html: String::new(),
            lead_html: String::new(),
            contents_html: String::new(),
            sections_html: String::new(),
            end_html: "",
        }
    }

    /// Sets the sentence that says what came out.
    pub fn headline(&mut self, text: &str) {
        if !text.is_empty() {
            self.headline_html = format!("<p class=\"headline\">{}</p>\n", escape(text));
        }
    }

    /// Sets the line under the title.
    pub fn lead(&mut self, html: &str) {
        self.lead_html = html.to_string();
    }

    /// Adds a section and its entry in the table of contents; nothing if there is nothing to show.
    pub fn section(&mut self, id: &str, title: &str, html: &str) {
        if html.is_empty() {
            return;
        }
        let title = escape(title);
        self.contents_html
            .push_str(&format!("<li><a href=\"#{id}\">{title}</a></li>\n"));
        self.sections_html
            .push_str(&format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{html}</section>\n"));
    }

    /// Folds away the sections that follow.
    pub fn fold_what_follows(&mut self, title: &str) {
        assert!(self.end_html.is_empty(), "it is folded once");
        let title = escape(title);
        self.sections_html
            .push_str(&format!("<details class=\"rest\"><summary>{title}</summary>\n"));
        self.end_html = "</details>\n";
    }

    /// The page as text.
    pub fn finish(&self, library: Library) -> String {
        let Page {
            title,
            headline_html,
            lead_html,
            contents_html,
            sections_html,
            end_html,
        } = self;
        let library = match (library, sections_html.contains("data-plot=")) {
            (_, false) => String::new(),
            (Library::Inside, true) => format!("<script>{LIBRARY}</script>\n"),
            (Library::Beside, true) => format!("<script src=\"{LIBRARY_FILE}\"></script>\n"),
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n{library}</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n{headline_html}\
             <p class=\"lead\">{lead_html}</p>\n<nav aria-label=\"Contents\"><ul>\n{contents_html}</ul></nav>\n</header>\n\
             <noscript><p>The plots need JavaScript.</p></noscript>\n\
             <p id=\"missing\" class=\"finding\" hidden>There are no plots because {LIBRARY_FILE} is missing, which was written beside this page: \
             copy it here too, or write the report with --single-file.</p>\n{sections_html}{end_html}</main>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Value;

    #[test]
    fn a_table_escapes_aligns_and_greys_what_repeats() {
        let columns = ["device", "variant"].map(Column::label);
        let mut rows = Rows::new(columns.into_iter().chain([Column::number("WAF", "<x>")]));
        rows.add(["a<b".into(), "FDP".into(), Value::Amplification(1.0)]);
        rows.add(["a<b".into(), "NoFDP".into(), Value::Amplification(2.0)]);
        let html = table(&rows.note("1 < 2"));
        assert!(html.starts_with("<p class=\"note\">1 &lt; 2</p>"), "{html}");
        assert!(
            html.contains("<th class=\"number\">WAF <span class=\"unit\">&lt;x&gt;</span></th>"),
            "{html}"
        );
        assert!(
            html.contains("<td>a&lt;b</td><td>FDP</td><td class=\"number\">1.000</td>"),
            "{html}"
        );
        assert!(html.contains("<td class=\"same\">a&lt;b</td><td>NoFDP</td>"), "{html}");
        assert_eq!(table(&Rows::new([Column::label("device")])), "");
    }

    #[test]
    fn the_library_can_stand_in_a_page() {
        assert!(!LIBRARY.contains("</script"));
    }
}
