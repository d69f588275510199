//! Folders of experiments: built in, in `./experiments`, or in the working folder.

use std::path::Path;

use rust_embed::RustEmbed;

/// Name of an experiment's file in its folder.
pub(crate) const FILE: &str = "experiment.toml";

/// Built-in experiments and their golden results.
#[derive(RustEmbed)]
#[folder = "../../experiments"]
pub struct BuiltInExperiment;

/// File of an experiment in a folder of this name, in the working folder or in `./experiments`.
pub(crate) fn file_in(name: &str) -> Option<String> {
    let folder = name.trim_end_matches('/');
    let places = [format!("experiments/{folder}/{FILE}"), format!("{folder}/{FILE}")];
    places.into_iter().find(|place| Path::new(place).exists())
}

/// Slugs of all experiments, in `./experiments` and built in.
pub(crate) fn names() -> Vec<String> {
    let built_in =
        BuiltInExperiment::iter().filter_map(|name| name.strip_suffix("/experiment.toml").map(str::to_string));
    let local = std::fs::read_dir("experiments").into_iter().flatten().flatten();
    let local = local.filter(|entry| entry.path().join("experiment.toml").exists());
    let local = local.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = built_in.chain(local).collect();
    names.sort();
    names.dedup();
    names
}
