//! Tables as values: headings with units, typed cells, notes. All output formats share these
//! tables.
//!
//! ```text
//! results of runs -> results, grid \                       / text: within the terminal's width
//! profiles, layouts -> describe     > ReportTable -> CellValue
//! the command's own tables         /                       \ report::html: the page
//! ```
//!
//! A [`CellValue`] defines the format of its number, so terminal and report show the same digits. This
//! module does not print, colour or check claims. `docs/reference/results.md` explains the terms.

mod array;
mod claims;
mod comparison;
mod grid;
mod lifetimes;
mod replay;
mod results;
mod stored_runs;
mod text;
mod warnings;

use std::fmt;

use base::HumanBytes;

pub use array::{array_causes, array_drives, array_figures, array_rebuilds};
pub use claims::{comparisons, covered, judged, score, verdicts};
pub use comparison::comparison;
pub use experiment::coordinates::axis_name;
pub(crate) use grid::axes_of;
pub use grid::{Grid, GridCell, GridRow, variant_name};
pub use lifetimes::lifetimes;
pub use replay::{bursts, replay};
pub use results::{
    OwnerRow, above_the_oracle, collections, device, handles, jobs, last_collections, measures, readings, results, run,
    wear, write_amplifications,
};
pub use stored_runs::{kept_run, kept_runs};
pub use text::{TextFormat, wrapped, wrapped_message};
pub use warnings::{refused, scales, warning, warning_lines, warning_sentences};

#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// No value, such as a ratio with denominator 0 or a cell that was not run.
    Nothing,
    Text(String),
    /// A number that is a name, such as a seed or an index.
    Index(u64),
    /// A count, with a comma for every three digits.
    Count(u64),
    /// A size in the format of [`HumanBytes`].
    Bytes(u64),
    /// Write amplification with three decimals.
    Amplification(f64),
    /// Write amplification with an ensemble's interval: low, high.
    Interval(f64, [f64; 2]),
    /// Write amplification of a run that was stopped early.
    Stopped(f64),
    /// A number that a warning makes doubtful. The notes below the table explain it.
    Doubtful(Box<CellValue>),
    /// A difference of write amplifications.
    Difference(f64),
    /// A multiple of the device's logical capacity, with two decimals.
    Capacities(f64),
    /// A share from 0 to 1, in percent.
    Share(f64),
    /// A relative change, in percent with its sign.
    Change(f64),
    /// Four significant digits, or all digits of a whole number, for latencies and rates.
    Significant(f64),
    /// Like `Significant`, with an ensemble's range: low, high.
    SignificantInterval(f64, [f64; 2]),
    /// A number with this many decimals.
    Fixed(f64, usize),
}

impl CellValue {
    pub fn optional<T>(value: Option<T>, of: impl FnOnce(T) -> CellValue) -> CellValue {
        value.map_or(CellValue::Nothing, of)
    }

    pub fn mark_doubtful(self, is_doubtful: bool) -> CellValue {
        if is_doubtful { CellValue::Doubtful(Box::new(self)) } else { self }
    }

    /// The plain number for other programs. Its unit is in the heading of the column.
    pub(crate) fn plain(&self) -> String {
        match *self {
            CellValue::Nothing => String::new(),
            CellValue::Count(count) | CellValue::Bytes(count) => count.to_string(),
            CellValue::Amplification(number)
            | CellValue::Difference(number)
            | CellValue::Capacities(number)
            | CellValue::Share(number)
            | CellValue::Change(number)
            | CellValue::Significant(number) => number.to_string(),
            CellValue::Doubtful(ref value) => value.plain(),
            _ => self.to_string(),
        }
    }

    /// The unit of [`CellValue::plain`], which readers see in the cell itself.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        match self {
            CellValue::Bytes(_) => Some("bytes"),
            CellValue::Share(_) | CellValue::Change(_) => Some("share"),
            _ => None,
        }
    }

    /// A float that may be a count. Whole numbers have no decimals, others have `digits` digits.
    pub fn number(value: f64, digits: usize) -> CellValue {
        let whole = value.fract() == 0.0 && (0.0..=u64::MAX as f64).contains(&value);
        if whole { CellValue::Count(value as u64) } else { CellValue::Fixed(value, digits) }
    }
}

impl<T: Into<String>> From<T> for CellValue {
    fn from(text: T) -> CellValue {
        CellValue::Text(text.into())
    }
}

impl fmt::Display for CellValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CellValue::Nothing => out.write_str("–"),
            CellValue::Text(ref text) => out.write_str(text),
            CellValue::Index(index) => write!(out, "{index}"),
            CellValue::Count(count) => out.write_str(&with_commas(count)),
            CellValue::Bytes(bytes) => write!(out, "{}", HumanBytes(bytes)),
            CellValue::Amplification(value) => write!(out, "{value:.3}"),
            CellValue::Interval(value, [low, high]) => write!(out, "{value:.2} ({low:.2}-{high:.2})"),
            CellValue::Stopped(value) => write!(out, "{value:.3} (stopped)"),
            CellValue::Doubtful(ref value) => write!(out, "{value}*"),
            CellValue::Difference(value) => write!(out, "{value:+.3}"),
            // Small values that round to zero are shown as below the limit, because 0.00 means
            // exactly none.
            CellValue::Capacities(value) if value > 0.0 && value < 0.005 => out.write_str("<0.01"),
            CellValue::Capacities(value) => write!(out, "{value:.2}"),
            CellValue::Share(share) => write!(out, "{:.1} %", share * 100.0),
            CellValue::Change(share) => write!(out, "{:+.1} %", share * 100.0),
            CellValue::Significant(value) => out.write_str(&base::significant(value)),
            CellValue::SignificantInterval(value, ends) => {
                let [value, low, high] = [value, ends[0], ends[1]].map(CellValue::Significant);
                write!(out, "{value} ({low}-{high})")
            }
            CellValue::Fixed(value, digits) => write!(out, "{value:.digits$}"),
        }
    }
}

fn with_commas(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Kind of a column's content. It decides on alignment and line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Names of the row's subject. If a table is folded, each part repeats them.
    Label,
    /// Words, aligned left.
    Text,
    /// Numbers, aligned right and never broken.
    Number,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    pub heading: String,
    /// Unit of the cells. Empty if they have none or contain it.
    pub unit: &'static str,
    pub kind: ColumnKind,
}

/// Mark of a row, in formats that can show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    None,
    Holds,
    Fails,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    pub cells: Vec<CellValue>,
    pub mark: Mark,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportTable {
    pub notes: Vec<String>,
    /// Headings of the columns. A table with only empty headings has no head.
    pub columns: Vec<TableColumn>,
    pub rows: Vec<TableRow>,
}

impl ReportTable {
    fn columns<H: Into<String>>(
        mut self,
        kind: ColumnKind,
        unit: &'static str,
        headings: impl IntoIterator<Item = H>,
    ) -> ReportTable {
        assert!(self.rows.is_empty(), "columns come before rows");
        let column = |heading: H| TableColumn { heading: heading.into(), unit, kind };
        self.columns.extend(headings.into_iter().map(column));
        self
    }

    /// Adds columns of names.
    pub fn labels<H: Into<String>>(self, headings: impl IntoIterator<Item = H>) -> ReportTable {
        self.columns(ColumnKind::Label, "", headings)
    }

    /// Adds columns of words.
    pub fn texts<H: Into<String>>(self, headings: impl IntoIterator<Item = H>) -> ReportTable {
        self.columns(ColumnKind::Text, "", headings)
    }

    /// Adds columns of numbers in a unit.
    pub fn numbers<H: Into<String>>(self, unit: &'static str, headings: impl IntoIterator<Item = H>) -> ReportTable {
        self.columns(ColumnKind::Number, unit, headings)
    }

    /// Pairs of names and values, without headings.
    pub fn pairs<N: Into<String>, T: Into<CellValue>>(pairs: impl IntoIterator<Item = (N, T)>) -> ReportTable {
        let mut rows = ReportTable::default().labels([""]).texts([""]);
        for (name, text) in pairs {
            rows.add([CellValue::Text(name.into()), text.into()]);
        }
        rows
    }

    pub fn note(mut self, note: impl Into<String>) -> ReportTable {
        self.notes.push(note.into());
        self
    }

    pub fn add(&mut self, cells: impl IntoIterator<Item = CellValue>) {
        self.add_marked(Mark::None, cells);
    }

    pub fn add_marked(&mut self, mark: Mark, cells: impl IntoIterator<Item = CellValue>) {
        let cells: Vec<CellValue> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(TableRow { cells, mark });
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Stacks tables, with labels before the rows of each. A column that a table lacks is empty in
    /// its rows.
    pub fn stacked<L: Into<String>>(
        labels: impl IntoIterator<Item = L>,
        tables: impl IntoIterator<Item = (Vec<String>, ReportTable)>,
    ) -> ReportTable {
        let mut all = ReportTable::default().labels(labels);
        let labels = all.columns.len();
        for (names, table) in tables {
            let place = |column: TableColumn| {
                let known = all.columns[labels..].iter().position(|known| *known == column);
                labels
                    + known.unwrap_or_else(|| {
                        all.columns.push(column);
                        all.columns.len() - 1 - labels
                    })
            };
            let places: Vec<usize> = table.columns.into_iter().map(place).collect();
            for row in table.rows {
                let mut cells: Vec<CellValue> = names.iter().map(CellValue::from).collect();
                assert_eq!(cells.len(), labels, "a table has a name for each label");
                cells.resize(all.columns.len(), CellValue::Nothing);
                places.iter().zip(row.cells).for_each(|(place, cell)| cells[*place] = cell);
                all.rows.push(TableRow { cells, mark: row.mark });
            }
        }
        for row in &mut all.rows {
            row.cells.resize(all.columns.len(), CellValue::Nothing);
        }
        all
    }

    /// Transposes the table: a row for each column.
    pub fn transposed(self, heading: &str, names: impl IntoIterator<Item = String>) -> ReportTable {
        let mut upright = ReportTable::default().labels([heading]).numbers("", names);
        upright.notes = self.notes;
        for (index, column) in self.columns.into_iter().enumerate() {
            let cells = self.rows.iter().map(|row| row.cells[index].clone());
            upright.add([CellValue::Text(column.heading)].into_iter().chain(cells));
        }
        upright
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let cases = [
            (CellValue::Amplification(2.0), "2.000"),
            (CellValue::Stopped(1.5), "1.500 (stopped)"),
            (CellValue::Amplification(1.24).mark_doubtful(true), "1.240*"),
            (CellValue::Interval(1.409, [1.3, 1.554]), "1.41 (1.30-1.55)"),
            (CellValue::Capacities(4.425), "4.42"),
            (CellValue::Capacities(0.0), "0.00"),
            (CellValue::Capacities(0.0049), "<0.01"),
            (CellValue::Capacities(0.0051), "0.01"),
            (CellValue::Share(0.1234), "12.3 %"),
            (CellValue::Change(-0.05), "-5.0 %"),
            (CellValue::Difference(0.0123), "+0.012"),
            (CellValue::Bytes(64 << 20), "64 MiB"),
            (CellValue::Significant(123.456), "123.5"),
            (CellValue::Significant(12_345.6), "12346"),
            (CellValue::SignificantInterval(12_345.6, [987.65, 20_000.0]), "12346 (987.6-20000)"),
            (CellValue::number(3.0, 4), "3"),
            (CellValue::number(0.5, 4), "0.5000"),
            (CellValue::optional(None, CellValue::Share), "–"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text, "{value:?}");
        }
        let counts = [0, 12, 123, 1234, 123_456, 1_234_567].map(|count| CellValue::Count(count).to_string());
        assert_eq!(counts, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }

    #[test]
    fn stacked_tables_share_their_columns() {
        let one = |heading: &str, count| {
            let mut rows = ReportTable::default().numbers("", ["x", heading]);
            rows.add([CellValue::Count(1), CellValue::Count(count)]);
            rows
        };
        let all = ReportTable::stacked(["cell"], [(vec!["a".into()], one("y", 2)), (vec!["b".into()], one("z", 3))]);
        let headings: Vec<&str> = all.columns.iter().map(|column| column.heading.as_str()).collect();
        assert_eq!(headings, ["cell", "x", "y", "z"]);
        let texts = |row: &TableRow| row.cells.iter().map(CellValue::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&all.rows[0]), ["a", "1", "2", "–"]);
        assert_eq!(texts(&all.rows[1]), ["b", "1", "–", "3"]);
        let upright = one("y", 2).transposed("what", ["here".to_string()]);
        assert_eq!(texts(&upright.rows[1]), ["y", "2"]);
    }
}
