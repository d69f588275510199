//! Pieces of the page: text, tables, legends, figures, and the page around them.
//!
//! Every text passes [`escape`] exactly once, here; callers hand over plain text, and pieces that are HTML already only
//! where the name says so.

use plotly::Plot;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Text that a browser shows as it is.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A paragraph that explains.
pub fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escape(text))
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

/// A legend for several plots.
pub fn legend(entries: &[(String, Swatch)]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entry = |(name, swatch): &(String, Swatch)| {
        let style = match swatch {
            Swatch::Line(colour, style) => format!("class=\"line\" style=\"border-top: 3px {style} {colour}\""),
            Swatch::Area(colour) => format!("class=\"area\" style=\"background: {colour}\""),
        };
        format!("<span class=\"entry\"><i {style}></i>{}</span>\n", escape(name))
    };
    format!(
        "<p class=\"legend\">{}</p>\n",
        entries.iter().map(entry).collect::<String>()
    )
}

/// A table of text; the first `labels` columns are names, the others numbers.
pub struct Table {
    headings: Vec<String>,
    labels: usize,
    rows: Vec<(Vec<String>, &'static str)>,
    /// Columns of text among the numbers.
    texts: Vec<usize>,
}

impl Table {
    /// An empty table.
    pub fn new<H: ToString>(headings: impl IntoIterator<Item = H>, labels: usize) -> Table {
        let headings = headings.into_iter().map(|heading| heading.to_string()).collect();
        Table {
            headings,
            labels,
            rows: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Makes a column one of text.
    pub fn text_column(mut self, column: usize) -> Table {
        self.texts.push(column);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, texts: impl IntoIterator<Item = String>) {
        self.marked_row("", texts);
    }

    /// Adds a row with a class of the style sheet.
    pub fn marked_row(&mut self, class: &'static str, texts: impl IntoIterator<Item = String>) {
        self.rows.push((texts.into_iter().collect(), class));
    }

    /// The table as HTML; nothing if it has no rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let class = |column: usize| if self.is_text(column) { "" } else { " class=\"number\"" };
        let heading = |(column, text): (usize, &String)| format!("<th{}>{}</th>", class(column), escape(text));
        let head: String = self.headings.iter().enumerate().map(heading).collect();
        let body: String = (0..self.rows.len()).map(|index| self.row_html(index)).collect();
        format!(
            "<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
        )
    }

    fn is_text(&self, column: usize) -> bool {
        column < self.labels || self.texts.contains(&column)
    }

    fn row_html(&self, index: usize) -> String {
        let (texts, class) = &self.rows[index];
        let above = index.checked_sub(1).map(|above| &self.rows[above].0);
        let mut same = true;
        let mut cells = String::new();
        for (column, text) in texts.iter().enumerate() {
            // A name that repeats the row above is grey, so that groups show.
            same &= column + 1 < self.labels && above.is_some_and(|above| above[column] == *text);
            let class = match (same, self.is_text(column)) {
                (true, _) => " class=\"same\"",
                (false, true) => "",
                (false, false) => " class=\"number\"",
            };
            cells.push_str(&format!("<td{class}>{}</td>", escape(text)));
        }
        format!("<tr class=\"{class}\">{cells}</tr>\n")
    }
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

/// The plotting library, without the formula renderer that comes along: no plot of ours shows formulas.
fn library() -> String {
    let sources = Plot::offline_js_sources();
    let end = sources
        .find("</script>")
        .map_or(sources.len(), |start| start + "</script>".len());
    sources[..end].to_string()
}

/// The page: a head, a table of contents, sections.
pub struct Page {
    title: String,
    lead_html: String,
    contents_html: String,
    sections_html: String,
}

impl Page {
    /// A page without sections.
    pub fn new(title: &str) -> Page {
        Page {
            title: escape(title),
            lead_html: String::new(),
            contents_html: String::new(),
            sections_html: String::new(),
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

    /// The page as text.
    pub fn finish(&self) -> String {
        let Page {
            title,
            lead_html,
            contents_html,
            sections_html,
        } = self;
        let library = library();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n{library}\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
             <p class=\"lead\">{lead_html}</p>\n<nav aria-label=\"Contents\"><ul>\n{contents_html}</ul></nav>\n</header>\n\
             <noscript><p>The plots need JavaScript, which is part of this file.</p></noscript>\n{sections_html}</main>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_escapes_aligns_and_greys_what_repeats() {
        let mut table = Table::new(["device", "variant", "WAF"], 2);
        table.row(["a<b", "FDP", "1.000"].map(str::to_string));
        table.row(["a<b", "NoFDP", "2.000"].map(str::to_string));
        let html = table.html();
        assert!(
            html.contains("<td>a&lt;b</td><td>FDP</td><td class=\"number\">1.000</td>"),
            "{html}"
        );
        assert!(html.contains("<td class=\"same\">a&lt;b</td><td>NoFDP</td>"), "{html}");
        assert_eq!(Table::new(["device"], 1).html(), "");
    }

    #[test]
    fn the_library_is_one_script() {
        let library = library();
        assert!(library.starts_with("<script") && library.ends_with("</script>"));
        assert_eq!(library.matches("</script>").count(), 1);
    }
}
