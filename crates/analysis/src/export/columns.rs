//! Building a table a column at a time: name, type and value of a column stand in one place.
//!
//! ```text
//! rows -> Columns (a closure for each column) -> Vec<Column> -> parquet (files)
//!                                                            -> Arrow, in crates/py
//! ```
//!
//! Values lie as Arrow lays them out, so that Python gets them without a copy. Which file format or library they end in
//! is not known here.

use ssd::Owner;

use experiment::cell::CellKey;

/// A column of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    /// A value for each row; where there is none, any.
    pub values: Values,
    /// Which rows have a value, if not every row must have one.
    pub valid: Option<Vec<bool>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Bool(Vec<bool>),
    /// Unsigned numbers of 16 bits.
    U16(Vec<u16>),
    /// Unsigned numbers of 32 bits.
    U32(Vec<u32>),
    /// Unsigned numbers of 64 bits.
    U64(Vec<u64>),
    /// Floating point numbers of 64 bits.
    F64(Vec<f64>),
    Text(Texts),
}

/// Texts one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Texts {
    /// All of them.
    pub text: String,
    /// Where each begins, and where the last ends, in bytes.
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

impl Column {
    /// How many rows there are.
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

/// A table: its columns, and its rows in batches that are made one at a time, so that a log of millions takes no second
/// copy in memory.
pub struct Table<'a> {
    /// The columns without a row; the same whether there are rows or not.
    pub columns: Vec<Column>,
    /// The rows: the same columns with values.
    pub batches: Box<dyn Iterator<Item = Vec<Column>> + 'a>,
}

impl<'a> Table<'a> {
    /// A table of which `batch` makes the columns of some rows; without rows it has its columns all the same.
    pub fn new<T>(chunks: impl Iterator<Item = Vec<T>> + 'a, batch: impl Fn(&[T]) -> Vec<Column> + 'a) -> Table<'a>
    where
        T: 'a,
    {
        Table {
            columns: batch(&[]),
            batches: Box::new(chunks.map(move |rows| batch(&rows))),
        }
    }

    /// A table that fits into one batch. Its columns may depend on its rows.
    pub fn of<T>(rows: &[T], batch: impl Fn(&[T]) -> Vec<Column>) -> Table<'a> {
        let batch = batch(rows);
        let without_rows = |column: &Column| Column {
            name: column.name.clone(),
            values: column.values.without_rows(),
            valid: column.valid.as_ref().map(|_| Vec::new()),
        };
        Table {
            columns: batch.iter().map(without_rows).collect(),
            batches: Box::new(std::iter::once(batch)),
        }
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

/// The columns of some rows.
pub struct Columns<'a, T> {
    rows: &'a [T],
    columns: Vec<Column>,
}

impl<'a, T> Columns<'a, T> {
    /// No columns yet, of these rows.
    pub fn of(rows: &'a [T]) -> Columns<'a, T> {
        Columns {
            rows,
            columns: Vec::new(),
        }
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
        let column = Column {
            name: name.to_string(),
            values,
            valid,
        };
        assert_eq!(
            column.rows(),
            self.rows.len(),
            "every row has its place in the column {name}"
        );
        self.columns.push(column);
    }

    /// Adds a column of unsigned numbers of 64 bits.
    pub fn u64(self, name: &str, value: impl Fn(&T) -> u64) -> Self {
        self.add(name, Values::U64, value)
    }

    /// Adds a column of unsigned numbers of 32 bits.
    pub fn u32(self, name: &str, value: impl Fn(&T) -> u32) -> Self {
        self.add(name, Values::U32, value)
    }

    /// Adds a column of unsigned numbers of 16 bits.
    pub fn u16(self, name: &str, value: impl Fn(&T) -> u16) -> Self {
        self.add(name, Values::U16, value)
    }

    /// Adds a column of floating point numbers.
    pub fn f64(self, name: &str, value: impl Fn(&T) -> f64) -> Self {
        self.add(name, Values::F64, value)
    }

    /// Adds a column of floating point numbers, some of which may be missing.
    pub fn optional_f64(self, name: &str, value: impl Fn(&T) -> Option<f64>) -> Self {
        self.add_optional(name, Values::F64, value)
    }

    /// Adds a column of unsigned numbers, some of which may be missing.
    pub fn optional_u64(self, name: &str, value: impl Fn(&T) -> Option<u64>) -> Self {
        self.add_optional(name, Values::U64, value)
    }

    /// Adds a column of truth values.
    pub fn boolean(self, name: &str, value: impl Fn(&T) -> bool) -> Self {
        self.add(name, Values::Bool, value)
    }

    /// Adds a column of truth values, some of which may be missing.
    pub fn optional_boolean(self, name: &str, value: impl Fn(&T) -> Option<bool>) -> Self {
        self.add_optional(name, Values::Bool, value)
    }

    /// Adds a column of borrowed text.
    pub fn text(self, name: &str, value: impl Fn(&'a T) -> &'a str) -> Self {
        self.add(name, Values::Text, value)
    }

    /// Adds a column of borrowed text that may be missing.
    pub fn optional_text(self, name: &str, value: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        self.add_optional(name, Values::Text, value)
    }

    /// Adds a column of text.
    pub fn owned_text(self, name: &str, value: impl Fn(&T) -> String) -> Self {
        self.add(name, Values::Text, value)
    }

    /// The handle's number; null is the shared pool.
    pub fn handle(self, name: &str, owner: impl Fn(&T) -> Owner) -> Self {
        let handle = |row: &'a T| owner(row).handle().map(|handle| handle.0);
        self.add_optional(name, Values::U16, handle)
    }

    /// The table, with the cell of each row before its own columns: device, variant, and the axes. An axis that is
    /// called like another column becomes `grid_` and its name.
    pub fn with_key(self, axes: &[String], key: impl Fn(&'a T) -> &'a CellKey) -> Vec<Column> {
        let taken =
            |name: &str| ["device", "variant"].contains(&name) || self.columns.iter().any(|own| own.name == name);
        let mut all = Columns::of(self.rows)
            .text("device", |row| &key(row).device)
            .text("variant", |row| &key(row).variant);
        for (index, axis) in axes.iter().enumerate() {
            let name = if taken(axis) {
                format!("grid_{axis}")
            } else {
                axis.clone()
            };
            all = all.text(&name, |row| key(row).grid.get(index).map_or("", String::as_str));
        }
        all.columns.extend(self.columns);
        all.columns
    }

    pub fn batch(self) -> Vec<Column> {
        self.columns
    }
}
