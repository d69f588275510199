//! Builds a table column by column. Name, type and value of a column are defined in one place.
//!
//! ```text
//! rows -> ColumnBuilder (a closure for each column) -> Vec<Column> -> parquet (files)
//!                                                                 -> Arrow, in crates/py
//! ```
//!
//! Values have Arrow's memory layout, so Python gets them without a copy. This module is
//! independent of file formats and libraries.

use ssd::UnitOwner;

use experiment::CellKey;

/// A column of a table, with the values of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportColumn {
    pub name: String,
    /// A value for each row. Rows without a value have a placeholder.
    pub values: Values,
    /// Rows that have a value. `None` if all rows must have one.
    pub valid: Option<Vec<bool>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Bool(Vec<bool>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
    Text(Texts),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Texts {
    /// All texts without separators.
    pub text: String,
    /// Start offset of each text, and end of the last, bytes.
    pub bounds: Vec<i32>,
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Texts {
        let (mut text, mut bounds) = (String::new(), vec![0]);
        for one in texts {
            text.push_str(one.as_ref());
            bounds.push(i32::try_from(text.len()).expect("a batch has less than 2 GiB of text"));
        }
        Texts { text, bounds }
    }
}

impl ExportColumn {
    pub fn rows(&self) -> usize {
        match &self.values {
            Values::Bool(values) => values.len(),
            Values::U16(values) => values.len(),
            Values::U32(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Text(texts) => texts.bounds.len() - 1,
        }
    }
}

/// A table: its columns, and its rows in batches. Batches are made one at a time, so a log of
/// millions of rows is not copied as a whole.
pub struct ExportTable<'a> {
    /// The columns without rows. They are the same for a table without rows.
    pub columns: Vec<ExportColumn>,
    /// Batches of rows: the same columns with values.
    pub batches: Box<dyn Iterator<Item = Vec<ExportColumn>> + 'a>,
}

impl<'a> ExportTable<'a> {
    /// Creates a table, of which `batch` makes the columns for each chunk of rows. A table without
    /// rows has its columns too.
    pub fn new<T>(
        chunks: impl Iterator<Item = Vec<T>> + 'a,
        columns: impl for<'r> Fn(ColumnBuilder<'r, T>) -> ColumnBuilder<'r, T> + 'a,
    ) -> ExportTable<'a>
    where
        T: 'a,
    {
        let batch = move |rows: &[T]| columns(ColumnBuilder::new(rows)).columns;
        ExportTable { columns: batch(&[]), batches: Box::new(chunks.map(move |rows| batch(&rows))) }
    }

    /// Creates a table of one batch. Its columns may depend on its rows.
    pub fn single_batch<T>(rows: &[T], columns: impl for<'r> Fn(ColumnBuilder<'r, T>) -> ColumnBuilder<'r, T>) -> Self {
        let batch = columns(ColumnBuilder::new(rows)).columns;
        let without_rows = |column: &ExportColumn| ExportColumn {
            name: column.name.clone(),
            values: column.values.without_rows(),
            valid: column.valid.as_ref().map(|_| Vec::new()),
        };
        ExportTable { columns: batch.iter().map(without_rows).collect(), batches: Box::new(std::iter::once(batch)) }
    }
}

impl Values {
    fn without_rows(&self) -> Values {
        match self {
            Values::Bool(_) => Values::Bool(Vec::new()),
            Values::U16(_) => Values::U16(Vec::new()),
            Values::U32(_) => Values::U32(Vec::new()),
            Values::U64(_) => Values::U64(Vec::new()),
            Values::F64(_) => Values::F64(Vec::new()),
            Values::Text(_) => Values::Text(Texts::from_iter([""; 0])),
        }
    }
}

pub struct ColumnBuilder<'a, T> {
    rows: &'a [T],
    columns: Vec<ExportColumn>,
}

impl<'a, T> ColumnBuilder<'a, T> {
    fn new(rows: &'a [T]) -> ColumnBuilder<'a, T> {
        ColumnBuilder { rows, columns: Vec::new() }
    }

    fn add<V: FromIterator<X>, X>(mut self, name: &str, of: fn(V) -> Values, value: impl Fn(&'a T) -> X) -> Self {
        let values = of(self.rows.iter().map(value).collect());
        self.push(name, values, None);
        self
    }

    fn add_optional<V: FromIterator<X>, X: Default>(
        mut self,
        name: &str,
        of: fn(V) -> Values,
        value: impl Fn(&'a T) -> Option<X>,
    ) -> Self {
        let mut valid = Vec::with_capacity(self.rows.len());
        let values = self.rows.iter().map(|row| {
            let value = value(row);
            valid.push(value.is_some());
            value.unwrap_or_default()
        });
        let values = of(values.collect());
        self.push(name, values, Some(valid));
        self
    }

    fn push(&mut self, name: &str, values: Values, valid: Option<Vec<bool>>) {
        let column = ExportColumn { name: name.to_string(), values, valid };
        assert_eq!(column.rows(), self.rows.len(), "every row has its place in the column {name}");
        self.columns.push(column);
    }

    pub fn u64(self, name: &str, value: impl Fn(&T) -> u64) -> Self {
        self.add(name, Values::U64, value)
    }

    pub fn u32(self, name: &str, value: impl Fn(&T) -> u32) -> Self {
        self.add(name, Values::U32, value)
    }

    pub fn u16(self, name: &str, value: impl Fn(&T) -> u16) -> Self {
        self.add(name, Values::U16, value)
    }

    pub fn f64(self, name: &str, value: impl Fn(&T) -> f64) -> Self {
        self.add(name, Values::F64, value)
    }

    pub fn optional_f64(self, name: &str, value: impl Fn(&T) -> Option<f64>) -> Self {
        self.add_optional(name, Values::F64, value)
    }

    pub fn optional_u64(self, name: &str, value: impl Fn(&T) -> Option<u64>) -> Self {
        self.add_optional(name, Values::U64, value)
    }

    pub fn boolean(self, name: &str, value: impl Fn(&T) -> bool) -> Self {
        self.add(name, Values::Bool, value)
    }

    pub fn optional_boolean(self, name: &str, value: impl Fn(&T) -> Option<bool>) -> Self {
        self.add_optional(name, Values::Bool, value)
    }

    pub fn text(self, name: &str, value: impl Fn(&'a T) -> &'a str) -> Self {
        self.add(name, Values::Text, value)
    }

    pub fn optional_text(self, name: &str, value: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        self.add_optional(name, Values::Text, value)
    }

    pub fn owned_text(self, name: &str, value: impl Fn(&T) -> String) -> Self {
        self.add(name, Values::Text, value)
    }

    /// Adds a column with the handle's number. Null is the shared pool.
    pub fn handle(self, name: &str, owner: impl Fn(&T) -> UnitOwner) -> Self {
        let handle = |row: &'a T| owner(row).handle().map(|handle| handle.0);
        self.add_optional(name, Values::U16, handle)
    }

    /// Finishes the table. The key of each row's cell comes first: device, variant, and the axes.
    /// An axis with the name of another column gets the prefix `grid_`.
    pub fn with_key(self, axes: &[String], key: impl Fn(&'a T) -> &'a CellKey) -> Self {
        let taken =
            |name: &str| ["device", "variant"].contains(&name) || self.columns.iter().any(|own| own.name == name);
        let mut all = ColumnBuilder::new(self.rows)
            .text("device", |row| &key(row).device)
            .text("variant", |row| &key(row).variant);
        for (index, axis) in axes.iter().enumerate() {
            let name = if taken(axis) { format!("grid_{axis}") } else { axis.clone() };
            all = all.text(&name, |row| key(row).grid.get(index).map_or("", String::as_str));
        }
        all.columns.extend(self.columns);
        all
    }
}
