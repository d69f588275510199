//! The counter file of a drive, with the counters that hosts last read, for a start after the
//! server was killed.
//!
//! The file is small and written in place, without waiting for the disk, because written data
//! survives the end of the process. After a power loss, or if the file is damaged or missing, the
//! counters of the last checkpoint apply. The file has no other purpose.
//!
//! Format: "WARPCNT2", the drive's identity (16 bytes, as in its state), then seven counters (8
//! bytes each, little-endian) and the CRC-32 of all previous bytes. The counters are HBMW, MBMW and
//! MBE, and from the SMART log bytes read, bytes written, read commands and write commands.

use std::fs::File;
use std::os::unix::fs::FileExt;

use base::FilePlace;
use nvme::MonotonicCounters;
use ssd::FdpTotals;

use crate::storage::backend::checksum_file::DriveId;
use crate::storage::backend::file::CounterRecorder;

const MAGIC: &[u8; 8] = b"WARPCNT2";
const NUMBERS: usize = 7;
const CHECKED_BYTES: usize = MAGIC.len() + size_of::<DriveId>() + NUMBERS * 8;
const BYTES: usize = CHECKED_BYTES + 4;

/// Largest plausible value of a counter.
const COUNT_MAX: u64 = 1 << 62;

/// Counters from the file, `None` if the file is damaged, implausible, or belongs to another drive.
pub(super) fn read(place: &FilePlace, drive: DriveId) -> Option<MonotonicCounters> {
    let bytes = base::input::read_all(place.open().ok()?, BYTES as u64).ok()?;
    let bytes: [u8; BYTES] = bytes.try_into().ok()?;
    let (checked, checksum) = bytes.split_at(CHECKED_BYTES);
    let numbers = checked.strip_prefix(MAGIC)?.strip_prefix(&drive)?;
    if crc32fast::hash(checked).to_le_bytes() != checksum {
        return None;
    }
    let numbers: Vec<u64> = numbers.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
    if numbers.iter().any(|number| *number > COUNT_MAX) {
        return None;
    }
    assert_eq!(numbers.len(), NUMBERS, "a file of {BYTES} bytes has all counters");
    let mut numbers = numbers.into_iter();
    let mut next = || numbers.next().expect("there are as many");
    Some(MonotonicCounters {
        totals: FdpTotals { host_bytes_written: next(), media_bytes_written: next(), media_bytes_erased: next() },
        host_bytes_read: next(),
        host_bytes_written: next(),
        read_commands: next(),
        write_commands: next(),
    })
}

fn bytes_of(drive: DriveId, counters: &MonotonicCounters) -> [u8; BYTES] {
    let numbers: [u64; NUMBERS] = [
        counters.totals.host_bytes_written,
        counters.totals.media_bytes_written,
        counters.totals.media_bytes_erased,
        counters.host_bytes_read,
        counters.host_bytes_written,
        counters.read_commands,
        counters.write_commands,
    ];
    let mut bytes = MAGIC.to_vec();
    bytes.extend(drive);
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    assert_eq!(bytes.len(), CHECKED_BYTES, "the checksum covers the whole form");
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.try_into().expect("as many as there are numbers")
}

/// Writes counters of a drive to a file, which the first write creates.
pub(super) fn writer(place: FilePlace, drive: DriveId) -> CounterRecorder {
    let mut file: Option<File> = None;
    Box::new(move |counters| {
        if file.is_none() {
            file = place.open_or_make().ok();
        }
        if let Some(file) = &file {
            // A failure loses no information that a checkpoint has.
            let _ = file.write_all_at(&bytes_of(drive, counters), 0);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: DriveId = [7; 16];

    #[test]
    fn counters_are_read_as_they_were_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.img.counters");
        let place = FilePlace::new(&path).unwrap();
        assert_eq!(read(&place, DRIVE), None);
        let mut write = writer(place.clone(), DRIVE);
        let counters = MonotonicCounters {
            totals: FdpTotals { host_bytes_written: 1, media_bytes_written: 2, media_bytes_erased: 3 },
            host_bytes_read: 4,
            host_bytes_written: 5,
            read_commands: 6,
            write_commands: COUNT_MAX,
        };
        write(&MonotonicCounters::default());
        write(&counters);
        assert_eq!(read(&place, DRIVE), Some(counters));
        assert_eq!(read(&place, [8; 16]), None, "of another drive");
        write(&MonotonicCounters { read_commands: COUNT_MAX + 1, ..counters });
        assert_eq!(read(&place, DRIVE), None, "more than can be");
        write(&counters);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&place, DRIVE), None, "damaged");
        std::fs::write(&path, &bytes[..30]).unwrap();
        assert_eq!(read(&place, DRIVE), None, "cut off");
    }
}
