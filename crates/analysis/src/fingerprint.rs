//! The complete input of a run as canonical JSON, and its hash, which names the result in a store.
//!
//! ```text
//! RunSpec (device, workload, settings, seed) + contents of its files + engine -> JSON -> SHA-256
//! ```
//!
//! Cells with the same hash give identical results. The name of a cell, the paths of files, the
//! seeds of other cells and the names of the grid are not part of the input. This module runs no
//! simulation and stores no result.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use base::FileState;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use ssd::DeviceConfig;

use crate::engine::{self, hex};
use crate::export::JSON_VERSION;
use applications::WorkloadSpec;
use experiment::{LabError, RunSettings, RunSpec};
use workload::Workload;
use workload::trace::spool;

/// Version of this format. It increases when the same cell gets another input.
const INPUT_VERSION: u32 = 2;

#[derive(Serialize)]
struct FingerprintInput<'a> {
    format: &'static str,
    version: u32,
    results: u32,
    /// Digest of the engine, because another engine may give other results.
    engine: &'a str,
    device: &'a DeviceConfig,
    workload: &'a WorkloadSpec,
    run: Value,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<&'a array::ArraySettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array_drive: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<&'a experiment::feedback::FeedbackSettings>,
    /// Digest of the saved device from which the run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
}

/// The settings that a single run depends on. New settings are included, except those that this
/// function removes.
fn run_of(settings: &RunSettings) -> Value {
    let mut run = serde_json::to_value(settings).expect("settings serialize");
    let fields = run.as_object_mut().expect("settings are fields");
    // These settings are resolved: the device has timing or not, and the cell and its seed are
    // already chosen.
    for name in ["timed", "seeds", "variants"] {
        fields.shift_remove(name).expect("a setting of runs");
    }
    run
}

/// The complete input of a cell's result, as JSON on one line.
///
/// # Errors
/// A file that its workload reads cannot be read.
pub fn input(cell: &RunSpec) -> Result<String, LabError> {
    input_of(cell, engine::digest())
}

fn input_of(cell: &RunSpec, engine: &str) -> Result<String, LabError> {
    let mut workload = cell.workload.clone();
    for file in workload.files_mut() {
        *file = PathBuf::from(digest_name(file)?);
    }
    let input = FingerprintInput {
        format: "warp-input",
        version: INPUT_VERSION,
        results: JSON_VERSION,
        engine,
        device: &cell.device,
        workload: &workload,
        run: run_of(&cell.run),
        seed: cell.seed,
        array: cell.array.as_ref(),
        array_drive: cell.array_drive,
        feedback: cell.feedback.as_ref(),
        snapshot: cell.snapshot.as_deref().map(digest_name).transpose()?,
    };
    Ok(serde_json::to_string(&input).expect("a cell serializes"))
}

/// The hash of [`input`], 64 hexadecimal digits.
pub fn hash(cell: &RunSpec) -> Result<String, LabError> {
    Ok(hex(Sha256::digest(input(cell)?)))
}

/// Digest of a file and its extension, which may determine its format.
fn digest_name(file: &Path) -> Result<String, LabError> {
    let ending = file.extension().map(|ending| format!(".{}", ending.display()));
    Ok(format!("sha256:{}{}", digest(file)?, ending.unwrap_or_default()))
}

/// The digest of a file's contents. Cells of a grid share their traces, so it is cached until the
/// file changes.
fn digest(file: &Path) -> Result<String, LabError> {
    if spool::is_stream(file) {
        let hashed = spool::open(file).and_then(hash_of);
        return hashed.map_err(|source| LabError::Io { file: spool::display_name(file), source });
    }
    /// Known digests, with the state of the file at that time.
    static KNOWN: LazyLock<Mutex<HashMap<PathBuf, (FileState, String)>>> = LazyLock::new(Mutex::default);
    let error = |source| LabError::Io { file: file.display().to_string(), source };
    let path = file.canonicalize().map_err(error)?;
    let state = FileState::read(&path).map_err(error)?;
    let known = KNOWN.lock().expect("nobody panics with it").get(&path).cloned();
    if let Some((_, digest)) = known.filter(|(known, _)| *known == state) {
        return Ok(digest);
    }
    let digest = base::input::open(&path).and_then(hash_of).map_err(error)?;
    let entry = (state, digest.clone());
    KNOWN.lock().expect("nobody panics with it").insert(path, entry);
    Ok(digest)
}

fn hash_of(contents: impl Read) -> io::Result<String> {
    let mut contents = BufReader::with_capacity(1 << 20, contents);
    let mut hash = Sha256::new();
    loop {
        let bytes = contents.fill_buf()?;
        if bytes.is_empty() {
            return Ok(hex(hash.finalize()));
        }
        hash.update(bytes);
        let count = bytes.len();
        contents.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::definition::Experiment;
    use experiment::run_options::RunOptions;
    use experiment::selection::RunOverrides;
    use std::collections::BTreeMap;

    /// An experiment with each kind of workload, one in virtual time and one on arrays.
    const EVERY_KIND: [&str; 11] = [
        "three_stream",
        "cachelib",
        "f2fs",
        "tenants",
        "lsm_levels",
        "btree_out_of_place",
        "kvcache_lmcache",
        "object_cache",
        "classifiers",
        "latency",
        "array_parity",
    ];

    fn cells(experiment: &str) -> Vec<RunSpec> {
        let experiment = Experiment::find(experiment).expect("it is built in");
        experiment.select(&RunOverrides::default()).expect("a selection").cells
    }

    fn leaves(value: &Value, path: String, found: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    leaves(value, format!("{path}/{}", key.replace('/', "~1")), found);
                }
            }
            Value::Array(entries) => {
                for (index, value) in entries.iter().enumerate() {
                    leaves(value, format!("{path}/{index}"), found);
                }
            }
            _ => found.push(path),
        }
    }

    /// The cell with another value at a path. `None` if the path allows no other value.
    fn changed(cell: &Value, path: &str) -> Option<RunSpec> {
        let others: Vec<Value> = match cell.pointer(path).expect("it was found there") {
            Value::Bool(value) => vec![(!value).into()],
            Value::Number(number) if number.is_u64() => {
                let number = number.as_u64().expect("just seen");
                vec![(number + 1).into(), (number / 2).into()]
            }
            Value::Number(number) => vec![(number.as_f64().expect("a number") * 0.5 + 0.015).into()],
            Value::Null => vec![7.into(), 0.5.into(), "x".into()],
            _ => ["x", "randwrite", "write", "1/4", "random", "fifo", "all", "eager", "decimal"]
                .map(Value::from)
                .to_vec(),
        };
        let with = |other: Value| {
            let mut cell = cell.clone();
            *cell.pointer_mut(path).expect("it was found there") = other;
            serde_json::from_value::<RunSpec>(cell).ok()
        };
        let now = cell.pointer(path).expect("it was found there");
        others.into_iter().filter(|other| other != now).find_map(with)
    }

    #[test]
    fn a_cell_comes_back_from_its_json_as_it_was() {
        for cell in EVERY_KIND.iter().flat_map(|name| cells(name)) {
            let json = serde_json::to_string(&cell).expect("a cell serializes");
            let again: RunSpec = serde_json::from_str(&json).expect("it is a cell");
            assert_eq!(input(&again).expect("no files"), input(&cell).expect("no files"));
            assert_eq!(json, serde_json::to_string(&again).expect("a cell serializes"));
        }
    }

    #[test]
    fn every_knob_changes_the_hash() {
        // Names of a cell and its workload, seeds of other cells, and settings that the device
        // already contains.
        let names = ["/key/", "/workload_name", "/ensemble/", "/run/seeds/", "/run/only", "/run/timed"];
        for name in EVERY_KIND {
            let cell = cells(name).remove(0);
            let own = hash(&cell).expect("no files");
            let json = serde_json::to_value(&cell).expect("a cell serializes");
            let mut paths = Vec::new();
            leaves(&json, String::new(), &mut paths);
            let mut hashes: BTreeMap<String, String> = BTreeMap::new();
            for path in paths {
                let Some(other) = changed(&json, &path) else { continue };
                let other = hash(&other).expect("no files");
                if names.iter().any(|name| path.starts_with(name)) {
                    assert_eq!(other, own, "{name}: {path} is no part of the input");
                } else {
                    assert_ne!(other, own, "{name}: {path} changes nothing");
                    let twice = hashes.insert(other, path.clone());
                    assert_eq!(twice, None, "{name}: {path} gives the hash of another knob");
                }
            }
            assert!(hashes.len() > 40, "{name}: {} knobs", hashes.len());
        }
    }

    #[test]
    fn files_count_by_what_they_hold() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cell = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("it can be written");
            let experiment = Experiment::from_workload(&path.display().to_string(), "warp_default");
            let selection = RunOverrides {
                run: RunOptions { drive_writes: Some(0.1), ..RunOptions::default() },
                ..RunOverrides::default()
            };
            experiment.select(&selection).expect("a trace").cells.remove(0)
        };
        let (one, same) = (cell("one.log", "0,W,0,4096\n"), cell("two.log", "0,W,0,4096\n"));
        assert_eq!(hash(&one).expect("it is there"), hash(&same).expect("it is there"));
        let other = cell("three.log", "0,W,4096,4096\n");
        assert_ne!(hash(&one).expect("it is there"), hash(&other).expect("it is there"));
        let missing = cell("four.log", "");
        std::fs::remove_file(folder.path().join("four.log")).expect("it was there");
        let error = hash(&missing).expect_err("it is gone").to_string();
        assert!(error.contains("four.log"), "{error}");
    }

    #[test]
    fn results_of_another_engine_have_another_name() {
        let cell = &cells("three_stream")[0];
        let whole = input(cell).expect("it reads no file");
        assert_eq!(input_of(cell, engine::digest()).expect("it reads no file"), whole);
        let other = input_of(cell, "0000").expect("it reads no file");
        assert_ne!(Sha256::digest(other), Sha256::digest(whole), "a store would not find the one for the other");
    }
}
