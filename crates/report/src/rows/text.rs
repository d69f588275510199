//! Formats tables as text, for a terminal or for a file of any width.
//!
//! Numbers are never broken. In a narrow terminal, words are broken over several lines. If this
//! does not suffice, the table is folded: it shows the columns that fit, and further tables with
//! the same row names show the others.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width, presets};

use super::{CellValue, ColumnKind, ReportTable, TableColumn};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextFormat {
    /// With lines between cells, within the terminal's width.
    #[default]
    Lines,
    /// Columns without lines, as wide as needed, for other programs of a shell.
    Plain,
    /// Comma-separated values with units in the headings (RFC 4180). Lines outside tables begin
    /// with `#`.
    Csv,
    /// Tables of GitHub's Markdown.
    Markdown,
}

impl TextFormat {
    pub fn words(self, text: &str) -> String {
        match self {
            TextFormat::Lines | TextFormat::Plain => text.to_string(),
            TextFormat::Csv => text.lines().filter(|line| !line.is_empty()).map(|line| format!("# {line}\n")).collect(),
            // Each line becomes a paragraph.
            TextFormat::Markdown => {
                text.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n\n")).collect()
            }
        }
    }
}

/// Minimum width of a column whose words are broken.
const WORDS_WIDTH_MIN: usize = 16;

/// Width of the blanks around a cell and the line beside it.
const BESIDE_CELL: usize = 3;

/// Width of the terminal at standard output. `None` if it is not a terminal.
fn terminal_width() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// Breaks lines between words at the terminal's width. The terminal itself would break numbers.
pub fn wrapped(text: &str) -> String {
    wrapped_within(text, terminal_width().unwrap_or(usize::MAX))
}

/// Breaks the lines of a message at the width of the terminal at standard error.
pub fn wrapped_message(text: &str) -> String {
    // Some terminals report no width.
    let width = Table::new().use_stderr().width().map(usize::from).filter(|width| *width > WORDS_WIDTH_MIN);
    wrapped_within(text, width.unwrap_or(usize::MAX))
}

fn wrapped_within(text: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut out = String::new();
    for line in text.lines() {
        let mut length = 0;
        for (index, word) in line.split(' ').enumerate() {
            let letters = word.chars().count();
            if index > 0 && length + 1 + letters > width {
                out.push('\n');
                out.push_str(INDENT);
                length = INDENT.len();
            } else if index > 0 {
                out.push(' ');
                length += 1;
            }
            out.push_str(word);
            length += letters;
        }
        out.push('\n');
    }
    out
}

impl ReportTable {
    /// The table in a format, ending in a line break.
    pub fn render(&self, format: TextFormat) -> String {
        match format {
            TextFormat::Lines => self.text(),
            TextFormat::Plain => self.text_of(usize::MAX, presets::NOTHING),
            TextFormat::Csv => self.csv(),
            TextFormat::Markdown => self.markdown(),
        }
    }

    /// Cells are plain numbers without commas and units. The headings have the units.
    fn csv(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| quoted(&cell).into_owned()).collect();
            format!("{}\n", cells.join(","))
        };
        let notes: String = self.notes.iter().map(|note| TextFormat::Csv.words(note)).collect();
        let head =
            self.has_head().then(|| line(&mut self.columns.iter().enumerate().map(|(index, _)| self.head(index))));
        let rows = self.rows.iter().map(|row| line(&mut row.cells.iter().map(CellValue::plain)));
        notes + &head.into_iter().chain(rows).collect::<String>()
    }

    /// The heading of a column with its unit, also where the cells contain the unit.
    fn head(&self, index: usize) -> String {
        let column = &self.columns[index];
        let unit = match column.unit {
            "" => self.rows.iter().find_map(|row| row.cells[index].unit()).unwrap_or_default(),
            unit => unit,
        };
        match unit {
            "" => column.heading.clone(),
            unit => format!("{} ({unit})", column.heading),
        }
    }

    fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.heading.is_empty())
    }

    fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let notes: String = self.notes.iter().map(|note| TextFormat::Markdown.words(note)).collect();
        let heads = line(&mut self.columns.iter().map(heading));
        let rules = line(&mut self.columns.iter().map(|column| {
            let rule = if column.kind == ColumnKind::Number { "--:" } else { "---" };
            rule.to_string()
        }));
        let rows = self.rows.iter().map(|row| line(&mut row.cells.iter().map(CellValue::to_string)));
        notes + &[heads, rules].into_iter().chain(rows).collect::<String>() + "\n"
    }

    /// The table as text with a final line break, within the terminal's width if standard output is
    /// one.
    pub fn text(&self) -> String {
        self.text_within(terminal_width().unwrap_or(usize::MAX))
    }

    pub fn text_within(&self, width: usize) -> String {
        self.text_of(width, presets::UTF8_FULL_CONDENSED)
    }

    fn text_of(&self, width: usize, style: TableStyle) -> String {
        let mut text: String = self.notes.iter().map(|note| wrapped_within(note, width)).collect();
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let (labels, others): (Vec<usize>, Vec<usize>) =
            all.iter().partition(|&&column| self.columns[column].kind == ColumnKind::Label);
        let mut left = if self.is_too_wide(&all, width) { others } else { all.clone() };
        let labels = if left.len() == all.len() { Vec::new() } else { labels };
        while !left.is_empty() {
            // At least one column, however narrow the terminal is.
            let fits = |&count: &usize| count == 1 || !self.is_too_wide(&[&labels[..], &left[..count]].concat(), width);
            let count = (1..=left.len()).rev().find(fits).expect("one always fits");
            let shown = [labels.clone(), left.drain(..count).collect()].concat();
            text += &format!("{}\n", self.table(&shown, width, style).trim_fmt());
        }
        text
    }

    fn is_too_wide(&self, columns: &[usize], width: usize) -> bool {
        let least: usize = columns.iter().map(|&column| self.widths(column).0 + BESIDE_CELL).sum();
        least + 1 > width
    }

    /// Minimum and maximum width of a column.
    fn widths(&self, column: usize) -> (usize, usize) {
        let length = |text: &str| text.chars().count();
        let head = &self.columns[column];
        let words = head.heading.split_whitespace().chain([head.unit]);
        let heading_least = words.map(length).max().unwrap_or(0);
        let heading = length(&head.heading).max(length(head.unit));
        let cells = self.rows.iter().map(|row| length(&row.cells[column].to_string()));
        let cells = cells.max().unwrap_or(0);
        let least = match head.kind {
            ColumnKind::Number => cells.max(heading_least),
            ColumnKind::Label | ColumnKind::Text => cells.max(heading).min(WORDS_WIDTH_MIN.max(heading_least)),
        };
        (least, cells.max(heading).max(least))
    }

    /// Widths of columns that fit together. The widest columns shrink first.
    fn fitted(&self, columns: &[usize], width: usize) -> Vec<usize> {
        let (least, mut widths): (Vec<usize>, Vec<usize>) = columns.iter().map(|&column| self.widths(column)).unzip();
        let whole = |widths: &[usize]| widths.iter().map(|width| width + BESIDE_CELL).sum::<usize>() + 1;
        while whole(&widths) > width {
            let wide = (0..widths.len()).filter(|&column| widths[column] > least[column]);
            match wide.max_by_key(|&column| widths[column]) {
                Some(widest) => widths[widest] -= 1,
                None => break,
            }
        }
        widths
    }

    fn table(&self, columns: &[usize], width: usize, style: TableStyle) -> Table {
        let mut table = Table::new();
        table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        if self.has_head() {
            table.set_header(columns.iter().map(|&column| heading(&self.columns[column])));
        }
        for row in &self.rows {
            table.add_row(columns.iter().map(|&column| row.cells[column].to_string()));
        }
        let widths = self.fitted(columns, width);
        for ((&column, fitted), shown) in columns.iter().zip(widths).zip(table.column_iter_mut()) {
            let with_blanks = u16::try_from(fitted + 2).unwrap_or(u16::MAX);
            shown.set_constraint(ColumnConstraint::Absolute(Width::Fixed(with_blanks)));
            if self.columns[column].kind == ColumnKind::Number {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

fn quoted(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    }
}

/// The heading, with its unit below.
fn heading(column: &TableColumn) -> String {
    match column.unit {
        "" => column.heading.clone(),
        unit => format!("{}\n{unit}", column.heading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::CellValue;

    fn wide() -> ReportTable {
        let mut rows =
            ReportTable::default().labels(["job"]).numbers("us", ["first", "second", "third"]).texts(["why"]);
        let words = "because a sentence may be long and is broken between words";
        rows.add(["a".into(), CellValue::Count(1), CellValue::Count(2_000_000), CellValue::Count(3), words.into()]);
        rows.add(["b".into(), CellValue::Count(10), CellValue::Count(20), CellValue::Count(30), "".into()]);
        rows.note("before")
    }

    #[test]
    fn what_is_wide_enough_is_in_one_line_with_units_below_the_headings() {
        let text = wide().text_within(usize::MAX);
        let expected = "\
before
┌─────┬───────┬───────────┬───────┬────────────────────────────────────────────────────────────┐
│ job ┆ first ┆    second ┆ third ┆ why                                                        │
│     ┆    us ┆        us ┆    us ┆                                                            │
╞═════╪═══════╪═══════════╪═══════╪════════════════════════════════════════════════════════════╡
│ a   ┆     1 ┆ 2,000,000 ┆     3 ┆ because a sentence may be long and is broken between words │
│ b   ┆    10 ┆        20 ┆    30 ┆                                                            │
└─────┴───────┴───────────┴───────┴────────────────────────────────────────────────────────────┘
";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn tables_are_written_for_other_programs() {
        let mut rows = ReportTable::default()
            .labels(["cell"])
            .numbers("", ["WAF", "written"])
            .numbers("us", ["mean"])
            .texts(["why"])
            .note("before");
        rows.add([
            "a, b".into(),
            CellValue::Amplification(1.25),
            CellValue::Bytes(64 << 20),
            CellValue::Significant(12_345.6),
            "\"x\" | y".into(),
        ]);
        rows.add(["c".into(), CellValue::Nothing, CellValue::Bytes(1), CellValue::Count(2_000_000), "".into()]);
        assert_eq!(
            rows.render(TextFormat::Csv),
            "# before\ncell,WAF,written (bytes),mean (us),why\n\"a, b\",1.25,67108864,12345.6,\"\"\"x\"\" | y\"\nc,,1,2000000,\n"
        );
        assert_eq!(
            rows.render(TextFormat::Markdown),
            "before\n\n| cell | WAF | written | mean us | why |\n| --- | --: | --: | --: | --- |\n| a, b | 1.250 | 64 MiB | 12346 | \"x\" \\| y \
             |\n| c | – | 1 B | 2,000,000 |  |\n\n"
        );
        let plain = rows.render(TextFormat::Plain);
        assert!(!plain.contains(['│', '┆', '─', '═', '|']) || plain.matches('|').count() == 1, "{plain}");
        let second = plain.lines().last().expect("a line");
        let words: Vec<&str> = second.split_whitespace().collect();
        assert_eq!(words, ["c", "–", "1", "B", "2,000,000"]);
        assert_eq!(TextFormat::Csv.words("one\n\ntwo\n"), "# one\n# two\n");
    }

    #[test]
    fn words_are_broken_before_a_table_is_folded_and_numbers_never() {
        for (width, tables) in [(95, 1), (60, 1), (40, 2), (20, 4)] {
            let text = wide().text_within(width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            // The minimum is 26: text of 16 columns, and the names beside it.
            assert!(widest <= Some(width.max(26)), "{width}: {text}");
            assert_eq!(text.matches("│ job").count(), tables, "{width}: {text}");
            assert!(text.contains("2,000,000"), "{text}");
        }
    }

    #[test]
    fn no_number_of_a_result_is_cut_at_80_and_60_columns() {
        let (results, axes) = (simulate::testing::results(), simulate::testing::axes());
        let intervals = &analysis::interval::NO_INTERVALS;
        let tables = [
            crate::rows::write_amplifications(&results, &axes, intervals),
            crate::rows::handles(&results[0]),
            crate::rows::device(&results[0]),
            crate::rows::run(&results[0]),
            crate::rows::collections(&results[0]),
        ];
        for (table, width) in tables.iter().flat_map(|table| [(table, 80), (table, 60)]) {
            let text = table.text_within(width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {text}");
            let numbers = table.columns.iter().enumerate().filter(|(_, column)| column.kind == ColumnKind::Number);
            for (column, row) in numbers.flat_map(|(column, _)| table.rows.iter().map(move |row| (column, row))) {
                let number = row.cells[column].to_string();
                assert!(text.contains(&number), "{number} at {width}: {text}");
            }
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        let line = "not steady: WAF 1.701 over the run, 2.227 over its end";
        let text = wrapped_within(line, 30);
        assert_eq!(text, "not steady: WAF 1.701 over the\n  run, 2.227 over its end\n");
        assert_eq!(wrapped_within(line, usize::MAX), format!("{line}\n"));
        assert_eq!(wrapped_within("", 30), "");
    }
}
