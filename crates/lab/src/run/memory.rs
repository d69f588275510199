//! How much memory there is for runs.

/// Bytes of memory that runs may use: nine tenths of what the system says is available, or 8 GiB where it does not say.
pub fn memory_available() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(8 << 30, |kib| kib * 1024 / 10 * 9)
}
