//! Store of results on disk, for `warp results` and for sweeps.
//!
//! ```text
//! WARP_RUNS/store.json            format and version
//!           points/<hash>.parquet results of sweeps, under the hash of their complete input
//!                                 (python/warp_ssd/store.py)
//!           runs/<time>-<id>.json a complete run: experiment, options, engine, results
//! ```
//!
//! Files are written atomically. A file is never replaced, except a point by the same point. Any
//! number of processes may therefore share a store, and any of them may be killed. This module
//! deletes no file. `docs/reference/results.md` explains the keys.

use std::io::Write;
use std::path::{Path, PathBuf};

use base::input::TEXT_BYTES_MAX;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::engine::{self, hex};
use crate::fingerprint;
use experiment::files::write_atomically;
use experiment::{LabError, RunSpec};

/// Content of `store.json`. The Python package has always written the same bytes.
const MARKER: &str = r#"{"format": "warp-store", "version": 1}"#;
/// Version of a stored run. It increases when a key is removed or changes its meaning.
const RUN_VERSION: u32 = 1;
/// Size limit of a stored run, bytes. Runs of large experiments have some millions.
const RUN_BYTES_MAX: u64 = 256 << 20;
/// Digits of a run's short name.
const ID_DIGITS: usize = 8;
/// Environment variable with the path of the store.
const FOLDER_VARIABLE: &str = "WARP_RUNS";

#[derive(Clone, Debug)]
pub struct ResultStore {
    folder: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Short name. The same run with the same result always has the same name.
    pub id: String,
    pub document: Value,
}

/// Stored runs, and errors for the files that are not runs.
#[derive(Debug, Default)]
pub struct StoredRuns {
    /// The runs, newest first.
    pub runs: Vec<StoredRun>,
    /// Reasons why files are unreadable: truncated, too large, or of another program.
    pub unreadable: Vec<LabError>,
}

#[derive(Clone, Debug)]
pub struct RunProvenance<'a> {
    /// Requested experiment or workload.
    pub target: &'a str,
    pub title: &'a str,
    /// Options that change the run, in the syntax of the command line.
    pub options: String,
    /// Duration of the run, seconds.
    pub seconds: f64,
    /// The cells of the run, each with its complete input.
    pub cells: Vec<&'a RunSpec>,
}

impl ResultStore {
    /// Opens the user's store: `WARP_RUNS`, or `warp` in the user's data folder (`XDG_DATA_HOME`,
    /// or `.local/share` at home).
    ///
    /// # Errors
    /// None of these variables is set, or the errors of [`ResultStore::open`].
    pub fn for_user() -> Result<ResultStore, LabError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable(FOLDER_VARIABLE)
            .or_else(|| variable("XDG_DATA_HOME").map(|folder| folder.join("warp")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/share/warp")));
        let folder = folder.ok_or_else(|| {
            let problem = "neither this variable nor XDG_DATA_HOME or HOME is set. Set it to the folder of stored runs";
            LabError::invalid(FOLDER_VARIABLE, problem)
        })?;
        ResultStore::open(&folder).map_err(|error| match error {
            LabError::Io { file, source } => {
                let problem = format!(
                    "the folder cannot hold stored runs ({source}). Name another folder with {FOLDER_VARIABLE}"
                );
                LabError::invalid(&file, problem)
            }
            error => error,
        })
    }

    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created, or holds a store of another version. The message names it.
    pub fn open(folder: &Path) -> Result<ResultStore, LabError> {
        for part in ["points", "runs"] {
            std::fs::create_dir_all(folder.join(part)).map_err(|source| io_error(folder, source))?;
        }
        let marker = folder.join("store.json");
        match base::input::read_text(&marker, TEXT_BYTES_MAX) {
            Ok(text) if text == MARKER => {}
            Ok(_) => {
                let problem = "this is not a store of version 1. Give another folder, or delete this one";
                return Err(LabError::invalid(&marker.display().to_string(), problem));
            }
            Err(_) => write_atomically(&marker, |file| file.write_all(MARKER.as_bytes()))?,
        }
        Ok(ResultStore { folder: folder.to_path_buf() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn point(&self, key: &str) -> PathBuf {
        self.folder.join("points").join(format!("{key}.parquet"))
    }

    /// Stores the file of a point, and replaces an existing one.
    ///
    /// # Errors
    /// The file cannot be written. The message names it.
    pub fn put_point(&self, key: &str, content: &[u8]) -> Result<(), LabError> {
        write_atomically(&self.point(key), |file| file.write_all(content))
    }

    /// Stores a run with its result (of `warp run --json`). Returns its short name.
    ///
    /// # Errors
    /// The file cannot be written, or a file that a workload reads is missing.
    pub fn save(&self, origin: &RunProvenance<'_>, result: &Value) -> Result<String, LabError> {
        let inputs = origin.cells.iter().map(|cell| {
            let input: Value = serde_json::from_str(&fingerprint::input(cell)?).expect("an input is JSON");
            Ok(json!({ "hash": fingerprint::hash(cell)?, "input": input }))
        });
        let inputs: Vec<Value> = inputs.collect::<Result<_, LabError>>()?;
        let mut document = json!({
            "format": "warp-run",
            "version": RUN_VERSION,
            "target": origin.target,
            "title": origin.title,
            "warp": env!("CARGO_PKG_VERSION"),
            "engine": engine::digest(),
            "inputs": inputs,
            "result": result,
        });
        let id = hex(Sha256::digest(document.to_string()))[..ID_DIGITS].to_string();
        let now = chrono::Utc::now();
        document["id"] = id.as_str().into();
        document["at"] = now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into();
        document["seconds"] = origin.seconds.into();
        document["options"] = origin.options.as_str().into();
        // File names begin with the time, so their order is chronological.
        let name = format!("{}-{id}.json", now.format("%Y%m%dT%H%M%S%6fZ"));
        let text = format!("{document}\n");
        write_atomically(&self.folder.join("runs").join(name), |file| file.write_all(text.as_bytes()))?;
        Ok(id)
    }

    /// The latest stored runs, newest first, at most `limit`.
    pub fn runs(&self, limit: usize) -> Result<StoredRuns, LabError> {
        let mut kept = StoredRuns::default();
        for file in self.files()? {
            if kept.runs.len() == limit {
                break;
            }
            match read(&file) {
                Ok(run) => kept.runs.push(run),
                Err(error) => kept.unreadable.push(error),
            }
        }
        Ok(kept)
    }

    pub fn count(&self) -> Result<usize, LabError> {
        Ok(self.files()?.len())
    }

    /// Finds a run by its short name or a prefix of it. If the same run was stored repeatedly, it
    /// returns the newest.
    ///
    /// # Errors
    /// No run or several different runs match.
    pub fn find(&self, id: &str) -> Result<StoredRun, LabError> {
        let unknown = |problem: String| Err(LabError::invalid(&format!("run {id}"), problem));
        let files = self.files()?;
        let matches: Vec<&PathBuf> = files.iter().filter(|file| id_of(file).starts_with(id)).collect();
        let Some(newest) = matches.first().filter(|_| !id.is_empty()) else {
            return unknown(
                "there is no such run. `warp results list` lists the stored runs, and a file is named by its path"
                    .to_string(),
            );
        };
        if let Some(other) = matches.iter().find(|file| id_of(file) != id_of(newest)) {
            return unknown(format!("the name matches {} and {}. Give more digits", id_of(newest), id_of(other)));
        }
        read(newest)
    }

    /// Files of runs, newest first.
    fn files(&self) -> Result<Vec<PathBuf>, LabError> {
        let folder = self.folder.join("runs");
        let entries = std::fs::read_dir(&folder).map_err(|source| io_error(&folder, source))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| !id_of(file).is_empty());
        files.sort();
        files.reverse();
        Ok(files)
    }
}

/// The short name in the name of a run's file. Empty for other files.
fn id_of(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.strip_suffix(".json").and_then(|stem| stem.split_once('-'));
    stem.map_or("", |(_, id)| id)
}

fn read(file: &Path) -> Result<StoredRun, LabError> {
    let text = base::input::read_text(file, RUN_BYTES_MAX).map_err(|source| io_error(file, source))?;
    let invalid = |why: &str| {
        let problem = format!("this is not a stored run ({why}). Delete it, or restore it from a copy");
        LabError::invalid(&file.display().to_string(), problem)
    };
    let document: Value = serde_json::from_str(&text).map_err(|error| invalid(&error.to_string()))?;
    if document["format"] != "warp-run" {
        return Err(invalid("it has another format"));
    }
    Ok(StoredRun { id: id_of(file).to_string(), document })
}

fn io_error(path: &Path, source: std::io::Error) -> LabError {
    LabError::Io { file: path.display().to_string(), source }
}

/// Representative write amplification of a cell. Runs of older versions have only that of the whole
/// run.
pub fn headline_waf(cell: &Value) -> Option<f64> {
    cell["headline_waf"].as_f64().or_else(|| cell["waf"].as_f64())
}

impl StoredRun {
    /// A text of the document. Empty if the key is missing.
    pub fn text(&self, key: &str) -> &str {
        self.document[key].as_str().unwrap_or_default()
    }

    pub fn devices(&self) -> Vec<&str> {
        base::distinct(self.cells().iter().filter_map(|cell| cell["device"].as_str()))
    }

    /// Representative write amplification of a run with a single cell. `None` for several cells,
    /// and for a run without writes.
    pub fn write_amplification(&self) -> Option<f64> {
        match self.cells() {
            [cell] => headline_waf(cell),
            _ => None,
        }
    }

    /// Minimum and maximum write amplification of the cells with writes.
    pub fn write_amplification_range(&self) -> Option<[f64; 2]> {
        let of_cells = || self.cells().iter().filter_map(headline_waf);
        Some([of_cells().reduce(f64::min)?, of_cells().reduce(f64::max)?])
    }

    /// Summary of the run for lists, as JSON.
    pub fn row_json(&self) -> Value {
        let fields = ["id", "at", "target", "title", "options", "warp", "engine", "seconds"];
        let known = fields.map(|field| (field.to_string(), self.document[field].clone()));
        let mut known: serde_json::Map<String, Value> = known.into_iter().collect();
        known.insert("devices".to_string(), self.devices().into());
        known.insert("runs".to_string(), self.cells().len().into());
        known.insert("waf".to_string(), self.write_amplification().into());
        let range = self.write_amplification_range();
        known.insert("waf_range".to_string(), range.map_or(Value::Null, |range| json!(range)));
        Value::Object(known)
    }

    pub fn cells(&self) -> &[Value] {
        self.document["result"]["cells"].as_array().map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(target: &str) -> RunProvenance<'_> {
        RunProvenance { target, title: "a title", options: String::new(), seconds: 1.5, cells: Vec::new() }
    }

    #[test]
    fn runs_are_found_by_their_names_newest_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = ResultStore::open(folder.path()).expect("it is made");
        let keep = |target: &str| store.save(&origin(target), &json!({ "cells": [] })).expect("it is kept");
        let ids = ["one", "two", "one"].map(keep);
        assert_eq!(ids[0], ids[2], "the same run has the same name");
        assert_eq!(store.count().expect("a folder"), 3, "and replaces nothing");
        let targets = |limit| {
            let kept = store.runs(limit).expect("they can be read");
            kept.runs.iter().map(|run| run.text("target").to_string()).collect::<Vec<_>>()
        };
        assert_eq!(targets(9), ["one", "two", "one"]);
        assert_eq!(targets(2), ["one", "two"]);
        assert_eq!(store.find(&ids[1][..6]).expect("it is there").text("target"), "two");
        assert_eq!(store.find(&ids[0]).expect("it is there").document["seconds"], 1.5);
        let error = store.find("").expect_err("all begin so").to_string();
        assert!(error.contains("warp results list"), "{error}");
        let again = ResultStore::open(folder.path()).expect("it is there");
        assert_eq!(again.count().expect("a folder"), 3);
        // A temporary file of a killed process is not a run.
        std::fs::write(folder.path().join("runs/.20260101-abc.json-x.part"), "{").expect("it is written");
        assert_eq!(again.runs(9).expect("they can be read").runs.len(), 3);
    }

    #[test]
    fn files_that_are_no_runs_are_named_beside_those_that_are() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = ResultStore::open(folder.path()).expect("it is made");
        store.save(&origin("one"), &json!({ "cells": [] })).expect("it is kept");
        let at = |name: &str| folder.path().join("runs").join(name);
        std::fs::write(at("20990101T000000000000Z-torn.json"), "{\"format\":").expect("it is written");
        std::fs::write(at("20980101T000000000000Z-other.json"), "[]").expect("it is written");
        let endless = std::fs::File::create(at("20970101T000000000000Z-endless.json")).expect("it is made");
        endless.set_len(RUN_BYTES_MAX + 1).expect("it is of holes");
        std::os::unix::fs::symlink("/dev/zero", at("20960101T000000000000Z-zeroes.json")).expect("a link");
        let kept = store.runs(1).expect("they can be read");
        assert_eq!(kept.runs[0].text("target"), "one");
        let said: Vec<String> = kept.unreadable.iter().map(LabError::to_string).collect();
        for (said, wanted) in said.iter().zip(["torn", "other", "endless", "zeroes"]) {
            assert!(said.contains(&format!("Z-{wanted}.json: ")), "{said}");
        }
        assert_eq!(said.len(), 4);
    }

    #[test]
    fn a_run_of_several_cells_says_the_least_and_the_greatest_write_amplification() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = ResultStore::open(folder.path()).expect("it is made");
        let row = |cells: Value| {
            let id = store.save(&origin("cells"), &json!({ "cells": cells }));
            let run = store.find(&id.expect("it is kept")).expect("it is there");
            let row = run.row_json();
            (row["runs"].clone(), row["waf"].clone(), row["waf_range"].clone())
        };
        assert_eq!(row(json!([{ "waf": 1.5 }])), (1.into(), json!(1.5), json!([1.5, 1.5])));
        // A cell without writes has no write amplification.
        let several = json!([{ "waf": 2.25 }, { "waf": null }, { "waf": 1.5 }, { "waf": 1.75 }]);
        assert_eq!(row(several), (4.into(), Value::Null, json!([1.5, 2.25])));
        assert_eq!(row(json!([{ "waf": null }])), (1.into(), Value::Null, Value::Null));
        assert_eq!(row(json!([])), (0.into(), Value::Null, Value::Null));
    }

    #[test]
    fn a_store_of_another_version_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("store.json"), "{}").expect("it is written");
        let error = ResultStore::open(folder.path()).expect_err("it is another").to_string();
        assert!(error.contains("store.json: this is not a store of version 1"), "{error}");
    }
}
