//! Memory of the machine.

/// Usable memory in bytes, nine tenths of the available memory that the system reports. `None` if
/// unknown.
pub fn memory_available_bytes() -> Option<u64> {
    Some(reported_bytes("MemAvailable:")? / 10 * 9)
}

/// Total memory of the machine in bytes, `None` if unknown.
pub fn memory_total_bytes() -> Option<u64> {
    reported_bytes("MemTotal:")
}

/// The value that the system reports under a name, in bytes.
fn reported_bytes(name: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let [available, total] = [memory_available_bytes(), memory_total_bytes()];
        assert!(available.is_some_and(|bytes| bytes > 1 << 20));
        assert!(total > available, "not all of it is available");
    }
}
