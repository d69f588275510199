//! Building an Arrow table a column at a time: name, type and value of a column stand in one place.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema, SchemaRef};
use ssd::Owner;

use crate::cell::CellKey;

/// A table: its columns, and its rows in batches that are made one at a time, so that a log of millions takes no second copy in
/// memory.
pub struct Table<'a> {
    /// The columns; the same whether there are rows or not.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Box<dyn Iterator<Item = RecordBatch> + 'a>,
}

impl<'a> Table<'a> {
    /// A table of which `batch` makes the columns of some rows; without rows it has its columns all the same.
    pub(super) fn new<T>(
        chunks: impl Iterator<Item = Vec<T>> + 'a,
        batch: impl Fn(&[T]) -> RecordBatch + 'a,
    ) -> Table<'a>
    where
        T: 'a,
    {
        Table {
            schema: batch(&[]).schema(),
            batches: Box::new(chunks.map(move |rows| batch(&rows))),
        }
    }

    /// A table that fits into one batch.
    pub(super) fn of<T>(rows: &[T], batch: impl Fn(&[T]) -> RecordBatch) -> Table<'a> {
        let batch = batch(rows);
        Table {
            schema: batch.schema(),
            batches: Box::new(std::iter::once(batch)),
        }
    }
}

/// The columns of some rows.
pub(super) struct Columns<'a, T> {
    rows: &'a [T],
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<'a, T> Columns<'a, T> {
    pub(super) fn of(rows: &'a [T]) -> Columns<'a, T> {
        Columns {
            rows,
            fields: Vec::new(),
            arrays: Vec::new(),
        }
    }

    fn add(mut self, name: &str, array: ArrayRef, nullable: bool) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
        self
    }

    pub(super) fn u64(self, name: &str, value: impl Fn(&T) -> u64) -> Self {
        let array = UInt64Array::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn u32(self, name: &str, value: impl Fn(&T) -> u32) -> Self {
        let array = UInt32Array::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn u16(self, name: &str, value: impl Fn(&T) -> u16) -> Self {
        let array = UInt16Array::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn f64(self, name: &str, value: impl Fn(&T) -> f64) -> Self {
        let array = Float64Array::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn optional_f64(self, name: &str, value: impl Fn(&T) -> Option<f64>) -> Self {
        let array: Float64Array = self.rows.iter().map(value).collect();
        self.add(name, Arc::new(array), true)
    }

    pub(super) fn optional_u64(self, name: &str, value: impl Fn(&T) -> Option<u64>) -> Self {
        let array: UInt64Array = self.rows.iter().map(value).collect();
        self.add(name, Arc::new(array), true)
    }

    pub(super) fn boolean(self, name: &str, value: impl Fn(&T) -> bool) -> Self {
        let array: BooleanArray = self.rows.iter().map(|row| Some(value(row))).collect();
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn text(self, name: &str, value: impl Fn(&'a T) -> &'a str) -> Self {
        let array = StringArray::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    pub(super) fn optional_text(self, name: &str, value: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        let array: StringArray = self.rows.iter().map(value).collect();
        self.add(name, Arc::new(array), true)
    }

    pub(super) fn owned_text(self, name: &str, value: impl Fn(&T) -> String) -> Self {
        let array = StringArray::from_iter_values(self.rows.iter().map(value));
        self.add(name, Arc::new(array), false)
    }

    /// The handle's number; null is the shared pool.
    pub(super) fn handle(self, name: &str, owner: impl Fn(&T) -> Owner) -> Self {
        let handles = self.rows.iter().map(|row| owner(row).handle().map(|handle| handle.0));
        let array: UInt16Array = handles.collect();
        self.add(name, Arc::new(array), true)
    }

    /// The table, with the cell of each row before its own columns: device, variant, and the axes. An axis that is called like
    /// another column becomes `grid_` and its name.
    pub(super) fn with_key(self, axes: &[String], key: impl Fn(&'a T) -> &'a CellKey) -> RecordBatch {
        let taken =
            |name: &str| ["device", "variant"].contains(&name) || self.fields.iter().any(|own| own.name() == name);
        let mut all = Columns::of(self.rows)
            .text("device", |row| &key(row).device)
            .text("variant", |row| &key(row).variant);
        for (index, axis) in axes.iter().enumerate() {
            let name = match taken(axis) {
                true => format!("grid_{axis}"),
                false => axis.clone(),
            };
            all = all.text(&name, |row| key(row).grid.get(index).map_or("", String::as_str));
        }
        all.fields.extend(self.fields);
        all.arrays.extend(self.arrays);
        all.batch()
    }

    /// The table.
    pub(super) fn batch(self) -> RecordBatch {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).expect("every column has a value for every row")
    }
}
