//! Whether the machine's memory can hold a drive. Asked once, before anything is made.

use bytesize::ByteSize;
use thiserror::Error;

/// The machine is too small for the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the drive needs {} of memory ({} for its data, {} for the device model's maps), this machine has {} available; serve a \
     smaller capacity, or keep the data elsewhere", ByteSize(*data_bytes + *maps_bytes), ByteSize(*data_bytes),
     ByteSize(*maps_bytes), ByteSize(*available_bytes)
)]
pub struct TooLittleMemory {
    /// For data (or what stands for it).
    pub data_bytes: u64,
    /// For the maps.
    pub maps_bytes: u64,
    /// What there is.
    pub available_bytes: u64,
}

/// Bytes of memory that a drive may take: nine tenths of what the system says is available, or no limit where it does not
/// say.
pub fn memory_available_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024 / 10 * 9)
}

/// Refuses a drive that is larger than the memory.
///
/// # Errors
/// It is.
pub fn check(data_bytes: u64, maps_bytes: u64, available_bytes: u64) -> Result<(), TooLittleMemory> {
    if data_bytes.saturating_add(maps_bytes) > available_bytes {
        return Err(TooLittleMemory {
            data_bytes,
            maps_bytes,
            available_bytes,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_maps_must_fit_together() {
        assert_eq!(check(6 << 30, 2 << 30, 8 << 30), Ok(()));
        let error = check(7 << 30, 2 << 30, 8 << 30).unwrap_err().to_string();
        assert!(
            error.contains("9.0 GiB of memory (7.0 GiB for its data, 2.0 GiB"),
            "{error}"
        );
        assert!(check(u64::MAX, 1, u64::MAX - 1).is_err());
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_available_bytes() > 1 << 20);
    }
}
