//! The machine's memory.

/// Bytes of memory that may be taken: nine tenths of what the system says is available; `None` where it does not say.
pub fn memory_available_bytes() -> Option<u64> {
    Some(said_bytes("MemAvailable:")? / 10 * 9)
}

/// Bytes of memory that the machine has, whoever uses them; `None` where the system does not say.
pub fn memory_total_bytes() -> Option<u64> {
    said_bytes("MemTotal:")
}

/// What the system says under a name.
fn said_bytes(name: &str) -> Option<u64> {
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
