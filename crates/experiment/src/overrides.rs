//! Settings by dotted path that replace those of a profile or a workload.

/// Overrides of a device or a workload: dotted path to value.
pub type Overrides = toml::Table;

/// Settings of the device, and those of the workload, which stand behind `workload.` among them.
pub fn divided(overrides: &Overrides) -> (Overrides, Overrides) {
    let (mut device, mut workload) = (Overrides::new(), Overrides::new());
    for (path, value) in overrides {
        let (settings, path) = match path.strip_prefix("workload.") {
            Some(path) => (&mut workload, path),
            None => (&mut device, path.as_str()),
        };
        settings.insert(path.to_string(), value.clone());
    }
    (device, workload)
}
