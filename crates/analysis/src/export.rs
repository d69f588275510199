//! Export of results: tables in memory and as Parquet files, counters also as JSON.
//!
//! ```text
//! RunResult.gc_log  -> one row for each collection            -> tables -> Parquet (zstd), Python
//! RunResult.samples -> one row for each sample and handle     -> tables -> Parquet (zstd), Python
//! RunResult.stats   -> one row for each cell                  -> tables -> Python
//!                    -> one object for each cell, with schema  -> json   -> JSON
//! Device             -> handles, reclaim units, collections    -> device -> Python
//! ```
//!
//! `docs/reference/results.md` describes each column and key. They are stable, and [`JSON_VERSION`] increases
//! with each breaking change. Files are written atomically. Values are neither rounded nor
//! averaged: each seed has its own rows.

mod columns;
pub mod device;
mod json;
pub mod parquet;
pub mod tables;

use std::path::Path;

pub use columns::{ColumnBuilder, ExportColumn, ExportTable, Texts, Values};
use experiment::LabError;
use experiment::files::write_atomically;
pub use json::{JSON_VERSION, judged_json, refused_json, to_json};

pub fn write_parquet(path: &Path, table: ExportTable<'_>) -> Result<(), LabError> {
    write_atomically(path, |file| parquet::write(file, table))
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use ssd::event::ReclaimRecord;
    use std::fs::File;
    use std::io::{self, BufWriter, Write};

    use super::*;
    use simulate::run::RunResult;
    use simulate::testing as sample;

    /// The columns of a file by name, in its order.
    fn read(path: &Path) -> Vec<(String, Vec<Field>)> {
        let reader = SerializedFileReader::new(File::open(path).expect("it was written")).expect("it is Parquet");
        let schema = reader.metadata().file_metadata().schema();
        let names = schema.get_fields().iter().map(|field| field.name().to_string());
        let mut columns: Vec<(String, Vec<Field>)> = names.map(|name| (name, Vec::new())).collect();
        for row in reader.get_row_iter(None).expect("it has rows") {
            let row = row.expect("its rows can be read");
            for ((_, values), (_, value)) in columns.iter_mut().zip(row.get_column_iter()) {
                values.push(value.clone());
            }
        }
        columns
    }

    fn column<'a>(columns: &'a [(String, Vec<Field>)], name: &str) -> &'a [Field] {
        let (_, values) = columns.iter().find(|(known, _)| known == name).expect("it has the column");
        values
    }

    fn names(columns: &[(String, Vec<Field>)]) -> String {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        names.join(" ")
    }

    fn text(text: impl ToString) -> Field {
        Field::Str(text.to_string())
    }

    #[test]
    fn the_gc_log_reads_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gc.parquet");
        let results = sample::results();
        write_parquet(&path, tables::gc_log(&sample::axes(), &results)).expect("it can be written");
        let columns = read(&path);
        let expected = "device variant overwrite seed host_bytes_written now_ns trigger policy reclaim_group victim_unit \
                        victim_ruh destination_ruh unit_pages valid_pages pages_copied blocks_remapped elapsed_ns";
        assert_eq!(names(&columns), expected);
        let rows: Vec<(&RunResult, &ReclaimRecord)> =
            results.iter().flat_map(|result| result.gc_log.iter().map(move |row| (result, row))).collect();
        assert!(columns.iter().all(|(_, values)| values.len() == rows.len()));
        let handle = |handle: Option<ssd::RuhId>| handle.map_or(Field::Null, |handle| Field::UShort(handle.0));
        for (index, (result, row)) in rows.iter().enumerate() {
            let value = |name: &str| column(&columns, name)[index].clone();
            assert_eq!(value("variant"), text(&result.key.variant));
            assert_eq!(value("overwrite"), text(&result.key.grid[0]));
            assert_eq!(value("trigger"), text(row.trigger.name()));
            assert_eq!(value("victim_ruh"), handle(row.victim_owner.handle()));
            assert_eq!(value("destination_ruh"), handle(row.destination_owner.handle()));
            assert_eq!(value("pages_copied"), Field::UInt(row.pages_copied));
            assert_eq!(value("host_bytes_written"), Field::ULong(row.host_pages_written * 4096));
        }
        let shared = column(&columns, "victim_ruh").iter().filter(|value| **value == Field::Null);
        let shared = shared.count();
        assert!(shared > 0 && shared < rows.len(), "both kinds of victims are in the data");
    }

    #[test]
    fn the_series_reads_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("series.parquet");
        let results = &sample::results()[..2];
        write_parquet(&path, tables::samples(&sample::axes(), results)).expect("it can be written");
        let columns = read(&path);
        let owners = results[0].samples[0].owners.len();
        let samples: usize = results.iter().map(|result| result.samples.len()).sum();
        assert_eq!(column(&columns, "owner").len(), samples * owners);
        let last = &results[1].samples[results[1].samples.len() - 1];
        let first_row = (samples - 1) * owners;
        let owner = column(&columns, "owner");
        assert_eq!(owner[first_row], text("RUH 0"));
        assert_eq!(owner[first_row + owners - 1], text("shared"));
        for index in 0..owners {
            let value = |name: &str| column(&columns, name)[first_row + index].clone();
            assert_eq!(value("media_bytes"), Field::ULong(last.media_bytes));
            let stats = &last.owners[index];
            assert_eq!(value("owner_host_bytes"), Field::ULong(stats.host_bytes_written));
            assert_eq!(value("owner_copied_bytes"), Field::ULong(stats.gc_pages_copied * 4096));
            assert_eq!(value("owner_units"), Field::ULong(last.units[index]));
            assert_eq!(value("owner_valid_pages"), Field::ULong(last.valid_pages[index]));
            let waf = last.media_bytes as f64 / last.host_bytes as f64;
            assert_eq!(value("waf"), Field::Double(waf));
        }
    }

    #[test]
    fn a_file_without_rows_has_its_columns_all_the_same() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gc.parquet");
        write_parquet(&path, tables::gc_log(&[], &[])).expect("it can be written");
        assert_eq!(read(&path).len(), 16);
    }

    #[test]
    fn an_axis_called_like_a_column_does_not_hide_it() {
        let axes = ["seed", "policy", "op"].map(str::to_string);
        let table = tables::gc_log(&axes, &[]);
        let names: Vec<&str> = table.columns[2..6].iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["grid_seed", "grid_policy", "op", "seed"]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("missing").join("gc.parquet");
        let error = write_parquet(&missing, tables::gc_log(&[], &[])).expect_err("its folder is missing").to_string();
        assert!(error.starts_with(&missing.display().to_string()), "{error}");

        let path = folder.path().join("report.html");
        std::fs::write(&path, "before").expect("it can be written");
        let fill = |file: &mut BufWriter<&mut File>| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        };
        let error = write_atomically(&path, fill).expect_err("it fails half way").to_string();
        assert_eq!(error, format!("{} cannot be written: the disk is full", path.display()));
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
