//! Writes tables as Parquet files.
//!
//! Batches are collected until a row group has a useful size, and then written column by column.
//! The types are those of Arrow's own writer, so every reader sees the same schema.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};

use super::columns::{ExportColumn, ExportTable, Texts, Values};

/// Minimum rows of a row group. Readers skip and decode whole groups, and each group repeats its
/// columns' dictionaries.
const GROUP_ROWS: usize = 1 << 18;

pub fn write(file: impl Write + Send, table: ExportTable<'_>) -> io::Result<()> {
    write_groups(file, table).map_err(|error| match error {
        // Keeps the system's error, so that callers can distinguish a closed pipe from a full disk.
        ParquetError::External(source) => source.downcast().map_or_else(io::Error::other, |error| *error),
        error => io::Error::other(error),
    })
}

fn write_groups(file: impl Write + Send, table: ExportTable<'_>) -> Result<()> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(file, schema(&table.columns)?, Arc::new(properties))?;
    let mut batches = table.batches.peekable();
    while batches.peek().is_some() {
        let (mut group, mut rows) = (Vec::new(), 0);
        while rows < GROUP_ROWS
            && let Some(batch) = batches.next()
        {
            rows += batch.first().map_or(0, ExportColumn::rows);
            group.push(batch);
        }
        if rows > 0 {
            write_group(&mut writer, &group)?;
        }
    }
    writer.close()?;
    Ok(())
}

fn schema(columns: &[ExportColumn]) -> Result<TypePtr> {
    let field = |column: &ExportColumn| {
        let (physical, logical) = match column.values {
            Values::Bool(_) => (Physical::BOOLEAN, None),
            Values::U16(_) => (Physical::INT32, Some(LogicalType::integer(16, false))),
            Values::U32(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Values::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Values::F64(_) => (Physical::DOUBLE, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.valid.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&column.name, physical);
        field.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<TypePtr>>>()?;
    Type::group_type_builder("schema").with_fields(fields).build().map(Arc::new)
}

fn write_group(writer: &mut SerializedFileWriter<impl Write + Send>, batches: &[Vec<ExportColumn>]) -> Result<()> {
    let mut group = writer.next_row_group()?;
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        for batch in batches {
            write_values(column.untyped(), &batch[index])?;
        }
        column.close()?;
        index += 1;
    }
    assert!(batches.iter().all(|batch| batch.len() == index), "every column is written");
    group.close()?;
    Ok(())
}

/// Appends the values of a batch. For nulls, only the definition level is written.
fn write_values(writer: &mut ColumnWriter<'_>, column: &ExportColumn) -> Result<()> {
    let levels: Option<Vec<i16>> =
        column.valid.as_ref().map(|valid| valid.iter().map(|valid| i16::from(*valid)).collect());
    let levels = levels.as_deref();
    // Parquet integers are signed. Their logical type defines the interpretation of the bits.
    match (writer, &column.values) {
        (ColumnWriter::BoolColumnWriter(writer), Values::Bool(values)) => {
            writer.write_batch(&present(column, values.iter().copied()), levels, None)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::U16(values)) => {
            writer.write_batch(&present(column, values.iter().map(|value| i32::from(*value))), levels, None)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::U32(values)) => {
            writer.write_batch(&present(column, values.iter().map(|value| value.cast_signed())), levels, None)
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::U64(values)) => {
            writer.write_batch(&present(column, values.iter().map(|value| value.cast_signed())), levels, None)
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::F64(values)) => {
            writer.write_batch(&present(column, values.iter().copied()), levels, None)
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text(texts)) => {
            writer.write_batch(&present(column, byte_arrays(texts)), levels, None)
        }
        _ => unreachable!("the schema was made of the same columns"),
    }?;
    Ok(())
}

/// Non-null values of a column.
fn present<V>(column: &ExportColumn, values: impl Iterator<Item = V>) -> Vec<V> {
    match &column.valid {
        Some(valid) => values.zip(valid).filter_map(|(value, valid)| valid.then_some(value)).collect(),
        None => values.collect(),
    }
}

fn byte_arrays(texts: &Texts) -> impl Iterator<Item = ByteArray> {
    let all = bytes::Bytes::copy_from_slice(texts.text.as_bytes());
    texts.bounds.windows(2).map(move |bounds| {
        let place = |bound: i32| usize::try_from(bound).expect("bounds are not negative");
        ByteArray::from(all.slice(place(bounds[0])..place(bounds[1])))
    })
}
