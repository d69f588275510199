//! Settings, keys and values of older builds, and the names that they have now.

/// Old name, new name.
const RENAMED: [(&str, &str); 16] = [
    ("apart", "own_threads"),
    ("background_mark", "background_watermark"),
    ("foreground_mark", "foreground_watermark"),
    ("handle_selection", "source_policy"),
    ("marks_of", "watermark_base"),
    ("only", "variants"),
    ("prefill", "precondition_drive_writes"),
    ("prefill_capacities", "precondition_drive_writes"),
    ("sample_capacities", "sample_drive_writes"),
    ("separation_bytes", "hot_window_bytes"),
    ("tail_capacities", "tail_drive_writes"),
    ("together", "shared_threads"),
    ("unit_selection", "victim_policy"),
    ("until", "steady_state"),
    ("write", "drive_writes"),
    ("write_capacities", "drive_writes"),
];

/// New name of a setting or key, `None` if it was not renamed. A path such as `gc.marks_of` keeps
/// its table.
pub fn renamed(name: &str) -> Option<String> {
    let (table, key) = name.rsplit_once('.').map_or(("", name), |(table, key)| (table, key));
    let (_, new) = RENAMED.iter().find(|(old, _)| *old == key)?;
    Some(match table {
        "" => (*new).to_string(),
        table => format!("{table}.{new}"),
    })
}
