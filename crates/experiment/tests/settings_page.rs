//! The page of devices has a row for each setting, and no row for anything else.

use std::collections::BTreeSet;

use experiment::profile::{Profile, SettingOverrides};
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/reference/devices.md");

/// Adds the paths of all settings below a value.
fn add_paths(path: &str, value: &Value, paths: &mut BTreeSet<String>) {
    match value {
        // An absent table, for example of a drive without timing.
        Value::Null if !path.contains('.') => {}
        // A value with a parameter, such as `{ d_choices = 8 }`, is a table too.
        Value::Object(fields) if path != "gc.victim_policy" && path.matches('.').count() < 2 => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                add_paths(&path, value, paths);
            }
        }
        _ => _ = paths.insert(path.to_string()),
    }
}

#[test]
fn each_setting_has_a_row() {
    let mut settings = BTreeSet::new();
    for name in Profile::names() {
        let profile = Profile::find(&name).expect("it is built in");
        let config = profile.config(&SettingOverrides::new()).expect("it is valid");
        let config = serde_json::to_value(&config).expect("settings are JSON");
        add_paths("", &config, &mut settings);
    }
    // The seed is an option of a run.
    settings.remove("seed");
    let rows: BTreeSet<String> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_string())
        .filter(|name| name.contains('.') && !name.contains('['))
        .collect();
    let missing: Vec<&String> = settings.difference(&rows).collect();
    let unknown: Vec<&String> = rows.difference(&settings).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "docs/reference/devices.md has no row for {missing:?}, and rows for {unknown:?}"
    );
}
