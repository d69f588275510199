//! The machine's memory.

/// Bytes of memory that may be taken: nine tenths of what the system says is available; `None` where it does not say.
pub fn memory_available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024 / 10 * 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
