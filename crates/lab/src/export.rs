//! Results as data: Arrow tables, in memory and as Parquet files; the counters as JSON too.
//!
//! ```text
//! CellResult.gc_log  -> one row for each collection            -> tables -> Parquet (zstd), Python
//! CellResult.samples -> one row for each sample and handle     -> tables -> Parquet (zstd), Python
//! CellResult.stats   -> one row for each cell                  -> tables -> Python
//!                    -> one object for each cell, with schema  -> json   -> JSON
//! Device             -> handles, reclaim units, collections    -> device -> Python
//! ```
//!
//! `docs/results.md` is the manual of every column and key; they are promises, and [`JSON_VERSION`] counts the broken
//! ones. A file appears whole or not at all. Nothing is rounded, nothing is averaged: one seed is one cell.

mod columns;
pub mod device;
mod json;
pub mod tables;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::error::LabError;
use crate::run::CellResult;
pub use columns::Table;
pub use json::{JSON_VERSION, judged_json, to_json};

/// Writes one row for each collection of every result that kept its GC log.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_gc_log(path: &Path, axes: &[String], results: &[CellResult]) -> Result<(), LabError> {
    write_parquet(path, tables::gc_log(axes, results))
}

/// Writes one row for each sample and each handle (and the shared pool) of every result.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_series(path: &Path, axes: &[String], results: &[CellResult]) -> Result<(), LabError> {
    write_parquet(path, tables::samples(axes, results))
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

fn write_parquet(path: &Path, table: Table<'_>) -> Result<(), LabError> {
    write_atomically(path, |file| {
        let compression = Compression::ZSTD(ZstdLevel::try_new(3).map_err(io::Error::other)?);
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer = ArrowWriter::try_new(file, table.schema, Some(properties)).map_err(io::Error::other)?;
        for batch in table.batches {
            writer.write(&batch).map_err(io::Error::other)?;
        }
        writer.close().map_err(io::Error::other)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
    use arrow_array::{Array, RecordBatch};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use ssd::event::Reclaim;
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
        let axes = ["seed", "policy", "op"].map(str::to_string);
        let table = tables::gc_log(&axes, &[]);
        let names: Vec<&str> = table
            .schema
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
}
