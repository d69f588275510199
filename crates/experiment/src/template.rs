//! Template of a new experiment: a folder with a commented file and a job file, ready to run.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::definition::Experiment;
use crate::error::LabError;
use crate::files::write_atomically;

const FILES: [(&str, &str); 2] = [
    ("experiment.toml", include_str!("template/experiment.toml")),
    ("streams.fio", include_str!("template/streams.fio")),
];

/// Name as a word of a command line, in quotes if a shell would read it in another way.
pub fn shell_word(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:,=+@%".contains(letter);
    if name.chars().all(is_plain) { name.to_string() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Writes a new experiment into a new folder and returns its files.
///
/// # Errors
/// The name exists, here or built in, or the folder cannot be created. The error gives the name.
pub fn write(name: &str) -> Result<Vec<PathBuf>, LabError> {
    let folder = Path::new(name);
    let refuse = |problem: &str| Err(LabError::invalid(&name.replace(char::is_control, "?"), problem));
    if folder.file_name().is_none() || name.contains(char::is_control) {
        return refuse("this is not the name of a folder. Give one such as my_study");
    }
    if folder.exists() {
        return refuse("it exists already and is not overwritten. Give another name");
    }
    if Experiment::names().iter().any(|known| known == name) {
        return refuse("a built-in experiment has this name. Give another name");
    }
    std::fs::create_dir_all(folder).map_err(|source| LabError::output(folder, source))?;
    let mut written = Vec::new();
    for (file, text) in FILES {
        let path = folder.join(file);
        let text = text.replace("NAME", &shell_word(name.trim_end_matches('/')));
        write_atomically(&path, |out| out.write_all(text.as_bytes()))?;
        written.push(path);
    }
    Ok(written)
}
