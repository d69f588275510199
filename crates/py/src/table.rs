//! Tables: Arrow record batches that Python libraries read in place.

use std::sync::Arc;

use analysis::export::{self, ExportColumn, Values};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::convert::{render, warp_error};

/// A table of results.
///
/// Libraries with the Arrow PyCapsule interface read it in place, without a copy:
/// ``pyarrow.table(table)``, ``polars.DataFrame(table)``,
/// ``duckdb.from_arrow(table.to_pyarrow())``.
#[pyclass(frozen, name = "Table", module = "warp_ssd")]
pub struct PyTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl From<export::ExportTable<'_>> for PyTable {
    fn from(table: export::ExportTable<'_>) -> PyTable {
        PyTable { schema: record_batch(table.columns).schema(), batches: table.batches.map(record_batch).collect() }
    }
}

/// Converts columns to Arrow without copying their values. Booleans are copied, because Arrow
/// stores them as bits.
fn record_batch(columns: Vec<ExportColumn>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().map(array).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("every column has a value for every row")
}

fn array(column: ExportColumn) -> (Field, ArrayRef) {
    let nullable = column.valid.is_some();
    let nulls = column.valid.map(NullBuffer::from);
    let array: ArrayRef = match column.values {
        Values::Bool(values) => Arc::new(BooleanArray::new(values.into(), nulls)),
        Values::U16(values) => Arc::new(UInt16Array::new(values.into(), nulls)),
        Values::U32(values) => Arc::new(UInt32Array::new(values.into(), nulls)),
        Values::U64(values) => Arc::new(UInt64Array::new(values.into(), nulls)),
        Values::F64(values) => Arc::new(Float64Array::new(values.into(), nulls)),
        Values::Text(texts) => {
            let bounds = OffsetBuffer::new(texts.bounds.into());
            Arc::new(StringArray::new(bounds, texts.text.into_bytes().into(), nulls))
        }
    };
    (Field::new(column.name, array.data_type().clone(), nullable), array)
}

/// Imports an optional data-frame library.
#[pyfunction]
pub fn frames<'py>(py: Python<'py>, library: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(library).map_err(|error| {
        let problem = format!("to_{library} needs {library}. Run pip install \"warp_ssd[frames]\"");
        let refused = warp_error(problem);
        refused.set_cause(py, Some(error));
        refused
    })
}

#[pymethods]
impl PyTable {
    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Arrow type of each column, by name.
    #[getter]
    fn schema(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        let types = fields.map(|field| (field.name().clone(), field.data_type().to_string()));
        types.collect()
    }

    /// Export the table through the Arrow PyCapsule interface, without a copy. The reader has to
    /// apply ``requested_schema``.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Return a ``pyarrow.Table``, without a copy.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Return a ``pandas.DataFrame``.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames(slf.py(), "pandas")?;
        PyTable::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// Return a ``polars.DataFrame``.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        render(slf, "warp_ssd.notebook", "table")
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.num_rows(), self.column_names().join(", "))
    }
}
