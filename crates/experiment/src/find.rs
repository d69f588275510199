//! Lookup of the project's text files (profiles, jobs, experiments): by path, in the working
//! folder, built in.

use std::path::Path;

use base::input::TEXT_BYTES_MAX;
use rust_embed::RustEmbed;
use serde::{Deserialize, Deserializer};
use toml::Value;
use workload::trace::spool::STANDARD_INPUT;

use crate::error::LabError;

#[derive(Clone, Debug)]
pub struct TextFile {
    /// Name without folder and extension.
    pub name: String,
    pub file: String,
    pub text: String,
}

/// Finds a file by path (if `name` has a slash or the extension), as `./folder/name.ending`, or
/// built in.
///
/// # Errors
/// The file does not exist or is unreadable. The error lists the searched places and the nearest
/// name.
pub fn find<B: RustEmbed>(what: &str, folder: &str, name: &str, ending: &str) -> Result<TextFile, LabError> {
    let as_path = name.contains('/') || Path::new(name).extension().is_some_and(|found| found == ending);
    let local = format!("{folder}/{name}.{ending}");
    let path = if as_path { name } else { &local };
    match base::input::read_text(Path::new(path), TEXT_BYTES_MAX) {
        Ok(text) => {
            return Ok(TextFile { name: stem(path), file: path.to_string(), text });
        }
        Err(error) if as_path && error.kind() == std::io::ErrorKind::NotFound => return Err(missing(path)),
        Err(error) if as_path || error.kind() != std::io::ErrorKind::NotFound => {
            return Err(LabError::Io { file: path.to_string(), source: error });
        }
        Err(_) => {}
    }
    if let Some(file) = B::get(&format!("{name}.{ending}")) {
        let text = String::from_utf8_lossy(&file.data).into_owned();
        return Ok(TextFile { name: name.to_string(), file: format!("{local} (built in)"), text });
    }
    let names = names::<B>(folder, ending);
    Err(LabError::unknown(what, name, names.iter().map(String::as_str)))
}

/// Rejects a missing path. A name with a folder or an extension can only be a path.
pub fn check_path(name: &str) -> Result<(), LabError> {
    let path = Path::new(name);
    let is_path = name.contains('/') || path.extension().is_some();
    match is_path && !path.exists() {
        true => Err(missing(name)),
        false => Ok(()),
    }
}

/// Error for a missing file, with the nearest name in its folder.
fn missing(path: &str) -> LabError {
    const NAMES_MAX: usize = 10_000;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let folder_read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(folder_read).into_iter().flatten().flatten().take(NAMES_MAX);
    let mut names: Vec<String> = names.map(|entry| folder.join(entry.file_name()).display().to_string()).collect();
    names.sort();
    let hint = base::hint(path, names.iter().map(String::as_str));
    LabError::invalid(path, format!("there is no such file{hint}. Give its path relative to the current folder"))
}

/// Names that [`find`] accepts without a path.
pub fn names<B: RustEmbed>(folder: &str, ending: &str) -> Vec<String> {
    let suffix = format!(".{ending}");
    let built_in = B::iter().filter_map(|name| name.strip_suffix(&suffix).map(str::to_string));
    let local = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let local = local.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(&suffix).map(str::to_string));
    let mut names: Vec<String> = built_in.chain(local).filter(|name| !name.contains('/')).collect();
    names.sort();
    names.dedup();
    names
}

/// Name of a file without folder and extension.
pub fn stem(path: &str) -> String {
    if path == STANDARD_INPUT {
        return "standard-input".to_string();
    }
    Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a value of TOML or JSON into a type. An error names the path of the field.
///
/// # Errors
/// The value does not fit the type.
pub fn deserialize<'de, T: Deserialize<'de>>(place: &str, value: impl Deserializer<'de>) -> Result<T, LabError> {
    base::read_value(value).map_err(|misfit| LabError::invalid(place, misfit.message()))
}

/// Formats a TOML syntax error as one line, with its line and column.
pub fn toml_problem(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().unwrap_or_default().trim_start_matches("TOML parse error ").to_string();
    format!("{place}: {}", base::hinted(&error.message().replace('\n', ", ")))
}

/// Sets the value at a dotted path. Creates intermediate tables.
///
/// # Errors
/// An intermediate value is not a table.
pub fn insert(table: &mut toml::Table, path: &str, value: Value) -> Result<(), String> {
    match path.split_once('.') {
        None => {
            table.insert(path.to_string(), value);
            Ok(())
        }
        Some((head, rest)) => {
            let entry = table.entry(head).or_insert_with(|| Value::Table(toml::Table::new()));
            let inner = entry.as_table_mut().ok_or_else(|| format!("{head} is not a table"))?;
            insert(inner, rest, value)
        }
    }
}

/// Removes the value at a dotted path, if present.
pub fn remove(table: &mut toml::Table, path: &str) {
    match path.split_once('.') {
        None => {
            table.remove(path);
        }
        Some((head, rest)) => {
            if let Some(inner) = table.get_mut(head).and_then(Value::as_table_mut) {
                remove(inner, rest);
            }
        }
    }
}

pub fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = base::hint(key, known.iter().copied());
    format!("{key} is not a key here{hint}. Known keys are {}", known.join(", "))
}
