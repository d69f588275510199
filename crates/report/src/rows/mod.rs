//! Tables as values: headings with units, typed cells, notes. All output formats share these
//! tables.
//!
//! ```text
//! results of runs -> results, grid \                / text: within the terminal's width
//! profiles, layouts -> describe     > Rows -> Value
//! the command's own tables         /                \ report::html: the page
//! ```
//!
//! A [`Value`] defines the format of its number, so terminal and report show the same digits. This
//! module neither prints, colours nor judges. `docs/reference/results.md` explains the terms.

mod claims;
mod comparison;
mod findings;
mod grid;
mod kept;
mod lifetimes;
mod refused;
mod replay;
mod results;
mod text;

use std::fmt;

use base::Bytes;

pub use claims::{comparisons, covered, verdicts};
pub use comparison::comparison;
pub use experiment::coordinates::axis_name;
pub use findings::{doubts, finding_lines, scales, warning};
pub(crate) use grid::axes_of;
pub use grid::{Grid, GridCell, GridRow, variant_name};
pub use kept::{kept_run, kept_runs};
pub use lifetimes::lifetimes;
pub use refused::refused;
pub use replay::{bursts, replay};
pub use results::{
    OwnerRow, above_the_oracle, collections, device, handles, jobs, last_collections, measures, readings, results, run,
    wear, write_amplifications,
};
pub use text::{TextFormat, wrapped};

/// A cell: its value and its format.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value, such as a ratio with denominator 0 or a cell that was not run.
    Nothing,
    Text(String),
    /// A number that is a name, such as a seed or an index.
    Index(u64),
    /// A count, with a comma for every three digits.
    Count(u64),
    /// A size in the format of [`Bytes`].
    Bytes(u64),
    /// Write amplification with three decimals.
    Amplification(f64),
    /// Write amplification with an ensemble's interval: low, high.
    Interval(f64, [f64; 2]),
    /// Write amplification of a run that was stopped early.
    Stopped(f64),
    /// A number that a finding makes doubtful. The notes below the table explain it.
    Doubtful(Box<Value>),
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

impl Value {
    /// A number, or [`Value::Nothing`].
    pub fn optional<T>(value: Option<T>, of: impl FnOnce(T) -> Value) -> Value {
        value.map_or(Value::Nothing, of)
    }

    /// Marks the value as doubtful if `is_doubtful` is true.
    pub fn doubtful_if(self, is_doubtful: bool) -> Value {
        if is_doubtful {
            Value::Doubtful(Box::new(self))
        } else {
            self
        }
    }

    /// The plain number for other programs. Its unit is in the heading of the column.
    pub(crate) fn plain(&self) -> String {
        match *self {
            Value::Nothing => String::new(),
            Value::Count(count) | Value::Bytes(count) => count.to_string(),
            Value::Amplification(number)
            | Value::Difference(number)
            | Value::Capacities(number)
            | Value::Share(number)
            | Value::Change(number)
            | Value::Significant(number) => number.to_string(),
            Value::Doubtful(ref value) => value.plain(),
            _ => self.to_string(),
        }
    }

    /// The unit of [`Value::plain`], which readers see in the cell itself.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        match self {
            Value::Bytes(_) => Some("bytes"),
            Value::Share(_) | Value::Change(_) => Some("share"),
            _ => None,
        }
    }

    /// A float that may be a count. Whole numbers have no decimals, others have `digits` digits.
    pub fn number(value: f64, digits: usize) -> Value {
        let whole = value.fract() == 0.0 && (0.0..=u64::MAX as f64).contains(&value);
        if whole {
            Value::Count(value as u64)
        } else {
            Value::Fixed(value, digits)
        }
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Value {
        Value::Text(text.into())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Nothing => out.write_str("–"),
            Value::Text(ref text) => out.write_str(text),
            Value::Index(index) => write!(out, "{index}"),
            Value::Count(count) => out.write_str(&with_commas(count)),
            Value::Bytes(bytes) => write!(out, "{}", Bytes(bytes)),
            Value::Amplification(value) => write!(out, "{value:.3}"),
            Value::Interval(value, [low, high]) => write!(out, "{value:.2} ({low:.2}-{high:.2})"),
            Value::Stopped(value) => write!(out, "{value:.3} (stopped)"),
            Value::Doubtful(ref value) => write!(out, "{value}*"),
            Value::Difference(value) => write!(out, "{value:+.3}"),
            // Small values that round to zero are shown as below the limit, because 0.00 means
            // exactly none.
            Value::Capacities(value) if value > 0.0 && value < 0.005 => out.write_str("<0.01"),
            Value::Capacities(value) => write!(out, "{value:.2}"),
            Value::Share(share) => write!(out, "{:.1} %", share * 100.0),
            Value::Change(share) => write!(out, "{:+.1} %", share * 100.0),
            Value::Significant(value) => out.write_str(&base::significant(value)),
            Value::SignificantInterval(value, ends) => {
                let [value, low, high] = [value, ends[0], ends[1]].map(Value::Significant);
                write!(out, "{value} ({low}-{high})")
            }
            Value::Fixed(value, digits) => write!(out, "{value:.digits$}"),
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
pub enum Kind {
    /// Names of the row's subject. If a table is folded, each part repeats them.
    Label,
    /// Words, aligned left.
    Text,
    /// Numbers, aligned right and never broken.
    Number,
}

/// Heading of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the content.
    pub heading: String,
    /// Unit of the cells. Empty if they have none or contain it.
    pub unit: &'static str,
    /// Kind of the content.
    pub kind: Kind,
}

impl Column {
    /// A column of names.
    pub fn label(heading: impl Into<String>) -> Column {
        Column::new(heading, "", Kind::Label)
    }

    /// A column of words.
    pub fn text(heading: impl Into<String>) -> Column {
        Column::new(heading, "", Kind::Text)
    }

    /// A column of numbers in a unit.
    pub fn number(heading: impl Into<String>, unit: &'static str) -> Column {
        Column::new(heading, unit, Kind::Number)
    }

    fn new(heading: impl Into<String>, unit: &'static str, kind: Kind) -> Column {
        Column {
            heading: heading.into(),
            unit,
            kind,
        }
    }
}

/// Mark of a row, in formats that can show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// No mark.
    #[default]
    None,
    /// The row passes.
    Holds,
    /// The row fails.
    Fails,
}

/// Row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Values, one for each column.
    pub cells: Vec<Value>,
    /// Pass or fail mark.
    pub mark: Mark,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Lines before the table.
    pub notes: Vec<String>,
    /// Headings of the columns. A table with only empty headings has no head.
    pub columns: Vec<Column>,
    /// Rows in display order.
    pub rows: Vec<Row>,
}

impl Rows {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Rows {
        Rows {
            columns: columns.into_iter().collect(),
            ..Rows::default()
        }
    }

    /// Pairs of names and values, without headings.
    pub fn pairs<N: Into<String>, T: Into<Value>>(pairs: impl IntoIterator<Item = (N, T)>) -> Rows {
        let mut rows = Rows::new([Column::label(""), Column::text("")]);
        for (name, text) in pairs {
            rows.add([Value::Text(name.into()), text.into()]);
        }
        rows
    }

    /// Adds a line before the table.
    pub fn note(mut self, note: impl Into<String>) -> Rows {
        self.notes.push(note.into());
        self
    }

    pub fn add(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.add_marked(Mark::None, cells);
    }

    /// Adds a row with a mark.
    pub fn add_marked(&mut self, mark: Mark, cells: impl IntoIterator<Item = Value>) {
        let cells: Vec<Value> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(Row { cells, mark });
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Stacks tables, with labels before the rows of each. A column that a table lacks is empty in
    /// its rows.
    pub fn stacked<L: Into<String>>(
        labels: impl IntoIterator<Item = L>,
        tables: impl IntoIterator<Item = (Vec<String>, Rows)>,
    ) -> Rows {
        let mut all = Rows::new(labels.into_iter().map(Column::label));
        let labels = all.columns.len();
        for (names, table) in tables {
            let place = |column: Column| {
                let known = all.columns[labels..].iter().position(|known| *known == column);
                labels
                    + known.unwrap_or_else(|| {
                        all.columns.push(column);
                        all.columns.len() - 1 - labels
                    })
            };
            let places: Vec<usize> = table.columns.into_iter().map(place).collect();
            for row in table.rows {
                let mut cells: Vec<Value> = names.iter().map(Value::from).collect();
                assert_eq!(cells.len(), labels, "a table has a name for each label");
                cells.resize(all.columns.len(), Value::Nothing);
                places
                    .iter()
                    .zip(row.cells)
                    .for_each(|(place, cell)| cells[*place] = cell);
                all.rows.push(Row { cells, mark: row.mark });
            }
        }
        for row in &mut all.rows {
            row.cells.resize(all.columns.len(), Value::Nothing);
        }
        all
    }

    /// Transposes the table: a row for each column.
    pub fn upright(self, heading: &str, names: impl IntoIterator<Item = String>) -> Rows {
        let columns = names.into_iter().map(|name| Column::number(name, ""));
        let mut upright = Rows::new([Column::label(heading)].into_iter().chain(columns));
        upright.notes = self.notes;
        for (index, column) in self.columns.into_iter().enumerate() {
            let cells = self.rows.iter().map(|row| row.cells[index].clone());
            upright.add([Value::Text(column.heading)].into_iter().chain(cells));
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
            (Value::Amplification(2.0), "2.000"),
            (Value::Stopped(1.5), "1.500 (stopped)"),
            (Value::Amplification(1.24).doubtful_if(true), "1.240*"),
            (Value::Interval(1.409, [1.3, 1.554]), "1.41 (1.30-1.55)"),
            (Value::Capacities(4.425), "4.42"),
            (Value::Capacities(0.0), "0.00"),
            (Value::Capacities(0.0049), "<0.01"),
            (Value::Capacities(0.0051), "0.01"),
            (Value::Share(0.1234), "12.3 %"),
            (Value::Change(-0.05), "-5.0 %"),
            (Value::Difference(0.0123), "+0.012"),
            (Value::Bytes(64 << 20), "64 MiB"),
            (Value::Significant(123.456), "123.5"),
            (Value::Significant(12_345.6), "12346"),
            (
                Value::SignificantInterval(12_345.6, [987.65, 20_000.0]),
                "12346 (987.6-20000)",
            ),
            (Value::number(3.0, 4), "3"),
            (Value::number(0.5, 4), "0.5000"),
            (Value::optional(None, Value::Share), "–"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text, "{value:?}");
        }
        let counts = [0, 12, 123, 1234, 123_456, 1_234_567].map(|count| Value::Count(count).to_string());
        assert_eq!(counts, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }

    #[test]
    fn stacked_tables_share_their_columns() {
        let one = |heading: &str, count| {
            let mut rows = Rows::new([Column::number("x", ""), Column::number(heading, "")]);
            rows.add([Value::Count(1), Value::Count(count)]);
            rows
        };
        let all = Rows::stacked(
            ["cell"],
            [(vec!["a".into()], one("y", 2)), (vec!["b".into()], one("z", 3))],
        );
        let headings: Vec<&str> = all.columns.iter().map(|column| column.heading.as_str()).collect();
        assert_eq!(headings, ["cell", "x", "y", "z"]);
        let texts = |row: &Row| row.cells.iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&all.rows[0]), ["a", "1", "2", "–"]);
        assert_eq!(texts(&all.rows[1]), ["b", "1", "–", "3"]);
        let upright = one("y", 2).upright("what", ["here".to_string()]);
        assert_eq!(texts(&upright.rows[1]), ["y", "2"]);
    }
}
