//! Checks that the machine's memory can hold a drive, before it is created.

use base::HumanBytes;
use thiserror::Error;

/// The machine has too little memory for the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the drive needs {} of memory ({} for its data, {} for the device model's maps), but this machine has {} \
     available. Serve a smaller capacity, or store the data in a file",
    HumanBytes(*data_bytes + *maps_bytes), HumanBytes(*data_bytes), HumanBytes(*maps_bytes), HumanBytes(*available_bytes)
)]
pub struct TooLittleMemory {
    /// Memory for data or its substitute.
    pub data_bytes: u64,
    pub maps_bytes: u64,
    pub available_bytes: u64,
}

/// Rejects a drive that is larger than the memory.
pub fn check(data_bytes: u64, maps_bytes: u64, available_bytes: u64) -> Result<(), TooLittleMemory> {
    if data_bytes.saturating_add(maps_bytes) > available_bytes {
        return Err(TooLittleMemory { data_bytes, maps_bytes, available_bytes });
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
        assert!(error.contains("9 GiB of memory (7 GiB for its data, 2 GiB"), "{error}");
        assert!(check(u64::MAX, 1, u64::MAX - 1).is_err());
    }
}
