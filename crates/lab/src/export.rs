//! Results as data: the GC log and the time series as Parquet, the counters as JSON.
//!
//! ```text
//! CellResult.gc_log  -> one row for each collection            -> Parquet (zstd)
//! CellResult.samples -> one row for each sample and handle     -> Parquet (zstd)
//! CellResult.stats   -> one object for each cell, with schema  -> JSON
//! ```
//!
//! `docs/results.md` is the manual of every column and key; they are promises, and [`JSON_VERSION`] counts the broken
//! ones. A file appears whole or not at all. Nothing is rounded, nothing is averaged: one seed is one cell.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use ssd::event::Reclaim;
use ssd::{Owner, OwnerStats, RuhId};

use crate::error::LabError;
use crate::run::{CellResult, Sample};
use crate::table::axis_name;

/// Version of the schema of [`to_json`]; it grows when a key changes its meaning or goes, not when one is added.
pub const JSON_VERSION: u32 = 1;

/// Rows that are turned into columns at a time, so that a log of millions takes no second copy in memory.
const BATCH_ROWS: usize = 1 << 16;

/// Columns that every row of a file has, whatever the experiment.
const KEY_COLUMNS: [&str; 3] = ["device", "variant", "seed"];

/// Writes one row for each collection of every result that kept its GC log.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_gc_log(path: &Path, axes: &[String], results: &[CellResult]) -> Result<(), LabError> {
    write_parquet(path, gc_log_schema(axes), |write| {
        for result in results {
            for rows in result.gc_log.chunks(BATCH_ROWS) {
                write(gc_log_columns(axes, result, rows))?;
            }
        }
        Ok(())
    })
}

/// Writes one row for each sample and each handle (and the shared pool) of every result.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_series(path: &Path, axes: &[String], results: &[CellResult]) -> Result<(), LabError> {
    write_parquet(path, series_schema(axes), |write| {
        for result in results {
            // A sample has a row for each of at most 129 owners.
            for samples in result.samples.chunks(BATCH_ROWS / 129) {
                write(series_columns(axes, result, samples))?;
            }
        }
        Ok(())
    })
}

/// Writes a file that appears whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> Result<(), LabError> {
    ssd::snapshot::write_atomically(path, fill).map_err(|source| LabError::Io {
        file: path.display().to_string(),
        source,
    })
}

fn write_parquet(
    path: &Path,
    schema: Schema,
    rows: impl FnOnce(&mut dyn FnMut(Vec<ArrayRef>) -> io::Result<()>) -> io::Result<()>,
) -> Result<(), LabError> {
    let schema = Arc::new(schema);
    write_atomically(path, |file| {
        let compression = Compression::ZSTD(ZstdLevel::try_new(3).map_err(io::Error::other)?);
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(io::Error::other)?;
        rows(&mut |columns| {
            let batch = RecordBatch::try_new(schema.clone(), columns).expect("the columns are those of the schema");
            writer.write(&batch).map_err(io::Error::other)
        })?;
        writer.close().map_err(io::Error::other)?;
        Ok(())
    })
}

/// Column of a grid axis: its name, or `grid_` and its name where a column is already called that.
fn axis_columns(axes: &[String], taken: &[Field]) -> Vec<Field> {
    let is_taken = |name: &str| KEY_COLUMNS.contains(&name) || taken.iter().any(|field| field.name() == name);
    let name = |axis: &String| {
        if is_taken(axis) {
            format!("grid_{axis}")
        } else {
            axis.clone()
        }
    };
    axes.iter()
        .map(|axis| Field::new(name(axis), DataType::Utf8, false))
        .collect()
}

fn schema(axes: &[String], own: Vec<Field>) -> Schema {
    let mut fields = vec![
        Field::new("device", DataType::Utf8, false),
        Field::new("variant", DataType::Utf8, false),
    ];
    fields.extend(axis_columns(axes, &own));
    fields.push(Field::new("seed", DataType::UInt64, false));
    fields.extend(own);
    Schema::new(fields)
}

/// Device, variant, axes and seed, the same in every row of a result.
fn key_columns(axes: &[String], result: &CellResult, rows: usize) -> Vec<ArrayRef> {
    let text = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; rows])) };
    let mut columns = vec![text(&result.key.device), text(&result.key.variant)];
    columns.extend((0..axes.len()).map(|axis| text(result.key.grid.get(axis).map_or("", String::as_str))));
    columns.push(Arc::new(UInt64Array::from(vec![result.seed; rows])));
    columns
}

fn column_u64<T>(rows: &[T], value: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
}

fn column_u32<T>(rows: &[T], value: impl Fn(&T) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.iter().map(value)))
}

fn column_text<'a, T>(rows: &'a [T], value: impl Fn(&'a T) -> &'a str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}

/// The handle's number; null is the shared pool.
fn column_handle<T>(rows: &[T], owner: impl Fn(&T) -> Owner) -> ArrayRef {
    let handles = rows.iter().map(|row| owner(row).handle().map(|handle| handle.0));
    Arc::new(handles.collect::<UInt16Array>())
}

fn gc_log_schema(axes: &[String]) -> Schema {
    let own = vec![
        Field::new("host_bytes_written", DataType::UInt64, false),
        Field::new("now_ns", DataType::UInt64, false),
        Field::new("trigger", DataType::Utf8, false),
        Field::new("policy", DataType::Utf8, false),
        Field::new("reclaim_group", DataType::UInt16, false),
        Field::new("victim_unit", DataType::UInt32, false),
        Field::new("victim_ruh", DataType::UInt16, true),
        Field::new("destination_ruh", DataType::UInt16, true),
        Field::new("unit_pages", DataType::UInt32, false),
        Field::new("valid_pages", DataType::UInt32, false),
        Field::new("pages_copied", DataType::UInt32, false),
        Field::new("blocks_remapped", DataType::UInt32, false),
        Field::new("elapsed_ns", DataType::UInt64, false),
    ];
    schema(axes, own)
}

fn gc_log_columns(axes: &[String], result: &CellResult, rows: &[Reclaim]) -> Vec<ArrayRef> {
    let page_bytes = result.stats.page_bytes;
    let mut columns = key_columns(axes, result, rows.len());
    columns.extend([
        column_u64(rows, |row| row.host_pages_written * page_bytes),
        column_u64(rows, |row| row.now),
        column_text(rows, |row| row.trigger.name()),
        column_text(rows, |row| row.policy),
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|row| row.group.0))) as ArrayRef,
        column_u32(rows, |row| row.victim.0),
        column_handle(rows, |row| row.victim_owner),
        column_handle(rows, |row| row.destination_owner),
        column_u32(rows, |row| row.unit_pages),
        column_u32(rows, |row| row.valid_pages),
        column_u32(rows, |row| row.pages_copied),
        column_u32(rows, |row| row.blocks_remapped),
        column_u64(rows, |row| row.elapsed_ns),
    ]);
    columns
}

fn series_schema(axes: &[String]) -> Schema {
    let number = |name| Field::new(name, DataType::UInt64, false);
    let own = vec![
        number("capacity_bytes"),
        Field::new("complete", DataType::Boolean, false),
        number("host_bytes"),
        number("media_bytes"),
        Field::new("waf", DataType::Float64, true),
        Field::new("owner", DataType::Utf8, false),
        number("owner_host_bytes"),
        number("owner_copied_bytes"),
        number("owner_received_bytes"),
        number("owner_units_opened"),
        number("owner_units_reclaimed"),
        number("owner_units"),
        number("owner_valid_pages"),
    ];
    schema(axes, own)
}

/// One owner at one moment.
struct SeriesRow<'a> {
    sample: &'a Sample,
    owner: String,
    stats: &'a OwnerStats,
    units: u64,
    valid_pages: u64,
}

/// The owners of a sample; the last one is the shared pool.
fn series_rows(sample: &Sample) -> impl Iterator<Item = SeriesRow<'_>> {
    let shared = sample.owners.len().saturating_sub(1);
    let owner = move |index: usize| {
        if index == shared {
            Owner::SHARED
        } else {
            Owner::of(RuhId(index as u16))
        }
    };
    sample.owners.iter().enumerate().map(move |(index, stats)| SeriesRow {
        sample,
        owner: owner(index).to_string(),
        stats,
        units: sample.units[index],
        valid_pages: sample.valid_pages[index],
    })
}

fn series_columns(axes: &[String], result: &CellResult, samples: &[Sample]) -> Vec<ArrayRef> {
    let page_bytes = result.stats.page_bytes;
    let rows: Vec<SeriesRow<'_>> = samples.iter().flat_map(series_rows).collect();
    let waf = rows.iter().map(|row| waf(row.sample)).collect::<Float64Array>();
    let mut columns = key_columns(axes, result, rows.len());
    columns.extend([
        column_u64(&rows, |_| result.capacity_bytes),
        Arc::new(BooleanArray::from(vec![result.complete; rows.len()])) as ArrayRef,
        column_u64(&rows, |row| row.sample.host_bytes),
        column_u64(&rows, |row| row.sample.media_bytes),
        Arc::new(waf),
        column_text(&rows, |row| &row.owner),
        column_u64(&rows, |row| row.stats.host_bytes_written),
        column_u64(&rows, |row| row.stats.gc_pages_copied * page_bytes),
        column_u64(&rows, |row| row.stats.gc_pages_received * page_bytes),
        column_u64(&rows, |row| row.stats.units_opened),
        column_u64(&rows, |row| row.stats.units_reclaimed),
        column_u64(&rows, |row| row.units),
        column_u64(&rows, |row| row.valid_pages),
    ]);
    columns
}

fn waf(sample: &Sample) -> Option<f64> {
    (sample.host_bytes > 0).then(|| sample.media_bytes as f64 / sample.host_bytes as f64)
}

/// All results with a stable schema; `samples` adds the time series.
pub fn to_json(axes: &[String], tail_capacities: f64, results: &[CellResult], samples: bool) -> Value {
    let cells: Vec<Value> = results
        .iter()
        .map(|result| cell_json(axes, tail_capacities, result, samples))
        .collect();
    json!({
        "format": "warp-results",
        "version": JSON_VERSION,
        "axes": axes,
        "tail_capacities": tail_capacities,
        "cells": cells,
    })
}

fn cell_json(axes: &[String], tail_capacities: f64, result: &CellResult, samples: bool) -> Value {
    let stats = &result.stats;
    let grid = result.key.grid.iter().enumerate();
    let grid: serde_json::Map<String, Value> = grid
        .map(|(index, value)| (axis_name(axes, index), Value::from(value.as_str())))
        .collect();
    let handles = stats.handles.iter().enumerate();
    let handles = handles.map(|(index, row)| owner_json(Owner::of(RuhId(index as u16)), row));
    let owners: Vec<Value> = handles.chain([owner_json(Owner::SHARED, &stats.shared)]).collect();
    let (fewest, mean, most) = result.block_erases;
    let mut cell = json!({
        "device": result.key.device,
        "variant": result.key.variant,
        "grid": grid,
        "seed": result.seed,
        "scale_denominator": result.scale.0,
        "complete": result.complete,
        "capacity_bytes": result.capacity_bytes,
        "reclaim_units": result.superblocks,
        "page_bytes": stats.page_bytes,
        "waf": stats.write_amplification(),
        "tail_waf": stats.write_amplification().map(|_| result.tail_write_amplification(tail_capacities)),
        "host_bytes_written": stats.host_bytes_written(),
        "media_bytes_written": stats.media_bytes_written(),
        "media_bytes_erased": stats.media_bytes_erased(),
        "pages_deallocated": stats.pages_deallocated,
        "pages_redirected": stats.pages_redirected,
        "background_collections": stats.background_collections,
        "foreground_collections": stats.foreground_collections,
        "forced_collections": stats.forced_collections,
        "units_closed_by_host": stats.units_closed_by_host,
        "units_closed_early": stats.units_closed_early,
        "block_erases": { "fewest": fewest, "mean": mean, "most": most },
        "owners": owners,
    });
    if let Some(endurance) = &result.endurance {
        cell["endurance"] = json!(endurance);
    }
    if !result.measures.is_empty() {
        let measures = result.measures.iter();
        let measures = measures.map(|measure| (measure.name.clone(), Value::from(measure.value)));
        cell["measures"] = measures.collect::<serde_json::Map<String, Value>>().into();
    }
    if let Some(timed) = &result.timed {
        cell["fio"] = crate::timed::to_fio_json(timed);
    }
    if samples {
        cell["samples"] = result.samples.iter().map(sample_json).collect();
    }
    cell
}

/// The counters of an owner, each written out: a field renamed in the device must not rename a key.
fn owner_json(owner: Owner, row: &OwnerStats) -> Value {
    json!({
        "owner": owner.to_string(),
        "ruh": owner.handle().map(|handle| handle.0),
        "waf": row.write_amplification(),
        "host_bytes_written": row.host_bytes_written,
        "host_pages_written": row.host_pages_written,
        "gc_pages_copied": row.gc_pages_copied,
        "gc_pages_received": row.gc_pages_received,
        "blocks_remapped": row.blocks_remapped,
        "pages_remapped": row.pages_remapped,
        "units_opened": row.units_opened,
        "units_reclaimed": row.units_reclaimed,
        "pages_erased": row.pages_erased,
        "valid_pages_reclaimed": row.valid_pages_reclaimed,
    })
}

fn sample_json(sample: &Sample) -> Value {
    let owner = |row: SeriesRow<'_>| {
        json!({
            "owner": row.owner,
            "host_bytes_written": row.stats.host_bytes_written,
            "gc_pages_copied": row.stats.gc_pages_copied,
            "units": row.units,
            "valid_pages": row.valid_pages,
        })
    };
    json!({
        "host_bytes": sample.host_bytes,
        "media_bytes": sample.media_bytes,
        "owners": series_rows(sample).map(owner).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::io::Write;

    use super::*;
    use crate::report::sample;

    fn read(path: &Path) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("it was written"));
        let batches = reader
            .and_then(|builder| builder.with_batch_size(1 << 20).build())
            .expect("it is Parquet");
        batches.map(|batch| batch.expect("its rows can be read")).collect()
    }

    fn names(batch: &RecordBatch) -> Vec<String> {
        batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    fn numbers(batch: &RecordBatch, column: &str) -> Vec<u64> {
        batch[column].as_primitive::<UInt64Type>().values().to_vec()
    }

    #[test]
    fn the_gc_log_reads_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gc.parquet");
        let results = sample::results();
        write_gc_log(&path, &sample::axes(), &results).expect("it can be written");
        let batches = read(&path);
        let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).expect("the same schema");
        let expected = "device variant overwrite seed host_bytes_written now_ns trigger policy reclaim_group victim_unit \
                        victim_ruh destination_ruh unit_pages valid_pages pages_copied blocks_remapped elapsed_ns";
        assert_eq!(names(&batch).join(" "), expected);
        let rows: Vec<(&CellResult, &Reclaim)> = results
            .iter()
            .flat_map(|result| result.gc_log.iter().map(move |row| (result, row)))
            .collect();
        assert_eq!(batch.num_rows(), rows.len());
        let victims = batch["victim_ruh"].as_primitive::<UInt16Type>();
        let copied = batch["pages_copied"].as_primitive::<UInt32Type>();
        for (index, (result, row)) in rows.iter().enumerate() {
            assert_eq!(batch["variant"].as_string::<i32>().value(index), result.key.variant);
            assert_eq!(batch["overwrite"].as_string::<i32>().value(index), result.key.grid[0]);
            assert_eq!(batch["trigger"].as_string::<i32>().value(index), row.trigger.name());
            let victim = (!victims.is_null(index)).then(|| victims.value(index));
            assert_eq!(victim, row.victim_owner.handle().map(|handle| handle.0));
            assert_eq!(copied.value(index), row.pages_copied);
        }
        let bytes: Vec<u64> = rows.iter().map(|(_, row)| row.host_pages_written * 4096).collect();
        assert_eq!(numbers(&batch, "host_bytes_written"), bytes);
        assert!(
            victims.null_count() > 0 && victims.null_count() < rows.len(),
            "both kinds of victims are in the data"
        );
    }

    #[test]
    fn the_series_reads_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("series.parquet");
        let results = &sample::results()[..2];
        write_series(&path, &sample::axes(), results).expect("it can be written");
        let batches = read(&path);
        let batch = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).expect("the same schema");
        let owners = results[0].samples[0].owners.len();
        let samples: usize = results.iter().map(|result| result.samples.len()).sum();
        assert_eq!(batch.num_rows(), samples * owners);
        let last = &results[1].samples[results[1].samples.len() - 1];
        let first_row = batch.num_rows() - owners;
        let owner = batch["owner"].as_string::<i32>();
        assert_eq!(
            (owner.value(first_row), owner.value(first_row + owners - 1)),
            ("RUH 0", "shared")
        );
        for index in 0..owners {
            let row = first_row + index;
            assert_eq!(numbers(&batch, "media_bytes")[row], last.media_bytes);
            assert_eq!(
                numbers(&batch, "owner_host_bytes")[row],
                last.owners[index].host_bytes_written
            );
            assert_eq!(
                numbers(&batch, "owner_copied_bytes")[row],
                last.owners[index].gc_pages_copied * 4096
            );
            assert_eq!(numbers(&batch, "owner_units")[row], last.units[index]);
            assert_eq!(numbers(&batch, "owner_valid_pages")[row], last.valid_pages[index]);
        }
    }

    #[test]
    fn a_file_without_rows_has_its_columns_all_the_same() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gc.parquet");
        write_gc_log(&path, &[], &[]).expect("it can be written");
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).expect("it was written"));
        assert_eq!(builder.expect("it is Parquet").schema().fields().len(), 16);
    }

    #[test]
    fn an_axis_called_like_a_column_does_not_hide_it() {
        let schema = gc_log_schema(&["seed".to_string(), "policy".to_string(), "op".to_string()]);
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .skip(2)
            .take(4)
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(names, ["grid_seed", "grid_policy", "op", "seed"]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("missing").join("gc.parquet");
        let error = write_gc_log(&missing, &[], &[])
            .expect_err("its folder is missing")
            .to_string();
        assert!(error.starts_with(&missing.display().to_string()), "{error}");

        let path = folder.path().join("report.html");
        std::fs::write(&path, "before").expect("it can be written");
        let fill = |file: &mut BufWriter<&mut File>| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        };
        let error = write_atomically(&path, fill)
            .expect_err("it fails half way")
            .to_string();
        assert_eq!(error, format!("{}: the disk is full", path.display()));
        assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), "before");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_a_result() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mode = |path: &Path| std::fs::metadata(path).expect("it was written").permissions().mode() & 0o777;
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write_atomically(&ours, |file| file.write_all(b"x")).expect("it can be written");
        std::fs::write(&plain, "x").expect("it can be written");
        assert_eq!(mode(&ours), mode(&plain));
    }

    #[test]
    fn the_schema_of_the_json_is_this() {
        let results = &sample::results()[..1];
        let value = to_json(&sample::axes(), 1.0, results, true);
        assert_eq!(
            (&value["format"], &value["version"]),
            (&json!("warp-results"), &json!(1))
        );
        let cell = &value["cells"][0];
        let keys: Vec<&str> = cell
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        let expected = "device variant grid seed scale_denominator complete capacity_bytes reclaim_units page_bytes waf \
                        tail_waf host_bytes_written media_bytes_written media_bytes_erased pages_deallocated \
                        pages_redirected background_collections foreground_collections forced_collections \
                        units_closed_by_host units_closed_early block_erases owners samples";
        assert_eq!(keys.join(" "), expected);
        assert_eq!(cell["grid"], json!({ "overwrite": "zipf 2.2" }));
        assert_eq!(
            cell["media_bytes_written"],
            json!(results[0].stats.media_bytes_written())
        );
        assert_eq!(
            cell["owners"][1]["gc_pages_copied"],
            json!(results[0].stats.handles[1].gc_pages_copied)
        );
        assert_eq!(cell["owners"][8]["ruh"], Value::Null);
        assert_eq!(cell["samples"].as_array().map(Vec::len), Some(results[0].samples.len()));
        assert!(to_json(&[], 1.0, results, false)["cells"][0].get("samples").is_none());
        assert_eq!(
            to_json(&[], 1.0, results, false)["cells"][0]["grid"],
            json!({ "axis 1": "zipf 2.2" })
        );
    }
}
