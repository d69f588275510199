//! The state file beside a data file: the drive's identity, its clean mark and its non-volatile
//! state.
//!
//! ```text
//! 8 bytes   "WARPDRV\0"
//! 4 bytes   version, little-endian
//! sections  header (JSON), state (`nvme::NonVolatileState::to_bytes`)
//!           each: 8 bytes length, the bytes, their CRC-32
//! ```
//!
//! The file is small, because each change replaces it durably as a whole in one step. It is read
//! once, before the drive is served.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base::FilePlace;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssd::{Device, DeviceConfig};
use uuid::Uuid;

use super::error::DriveError;

const MAGIC: &[u8; 8] = b"WARPDRV\0";
/// Version of the format. Each change of the format increases it.
const VERSION: u32 = 2;
/// Most bytes of a state file. Even maximally fragmented namespaces need only a small part.
const BYTES_MAX: u64 = 256 << 20;

/// Identity of the drive and its clean mark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StateHeader {
    /// Identity of the drive. Files with another identity are not its own.
    pub drive: Uuid,
    /// Length of the data file.
    pub file_bytes: u64,
    /// Device configuration at the drive's creation, as JSON, so that messages can name a
    /// difference.
    pub device: Value,
    /// Mark of the last orderly shutdown, if the drive was not opened since.
    pub clean: Option<CleanMark>,
}

/// Values that identify the snapshot of an orderly shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CleanMark {
    host_pages_written: u64,
    pages_deallocated: u64,
    units_closed_by_host: u64,
    live_pages: u64,
}

impl CleanMark {
    /// Digest of a shutdown for the checksum file, never 0.
    pub fn digest(&self) -> u32 {
        let text = serde_json::to_vec(self).expect("numbers serialize");
        crc32fast::hash(&text).max(1)
    }

    pub fn new<S: ssd::EventSink>(device: &Device<S>) -> CleanMark {
        CleanMark {
            host_pages_written: device.host_pages_written(),
            pages_deallocated: device.stats().pages_deallocated,
            units_closed_by_host: device.stats().units_closed_by_host,
            live_pages: device.live_pages(),
        }
    }
}

/// A device configuration in the header's format.
pub(super) fn described(device: &DeviceConfig) -> Value {
    // Converted through text, so that numbers compare as after reading.
    let text = serde_json::to_string(device).expect("a configuration serializes");
    serde_json::from_str(&text).expect("the written configuration reads back")
}

/// First field in which two configurations differ: its path and both values.
pub(super) fn difference(stored: &Value, given: &Value) -> Option<(String, String, String)> {
    if stored == given {
        return None;
    }
    if let (Value::Object(stored), Value::Object(given)) = (stored, given) {
        for key in stored.keys().chain(given.keys()) {
            let field = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
            if let Some((inner, before, now)) = difference(&field(stored), &field(given)) {
                let path = if inner.is_empty() { key.clone() } else { format!("{key}.{inner}") };
                return Some((path, before, now));
            }
        }
    }
    Some((String::new(), stored.to_string(), given.to_string()))
}

pub(super) struct Contents {
    pub header: StateHeader,
    pub state: Vec<u8>,
}

/// Reads a state file.
///
/// # Errors
/// The file cannot be read, or this version did not write its format.
pub(super) fn read(place: &FilePlace) -> Result<Contents, DriveError> {
    let bytes = place.open().and_then(|file| base::input::read_all(file, BYTES_MAX));
    let bytes = bytes.map_err(DriveError::io(place.path(), "the drive's state cannot be read"))?;
    parse(&bytes).map_err(|(problem, remedy)| DriveError::State { path: place.path().to_path_buf(), problem, remedy })
}

/// Identity in a state file, `None` if the file is missing or damaged.
pub(super) fn drive_of(place: &FilePlace) -> Option<Uuid> {
    read(place).ok().map(|contents| contents.header.drive)
}

const RESTORE: &str = "Restore it from a copy";

type Problem = (String, &'static str);

fn parse(bytes: &[u8]) -> Result<Contents, Problem> {
    let damaged = |what: &str| (format!("is damaged ({what})"), RESTORE);
    let rest = bytes.strip_prefix(MAGIC.as_slice());
    let rest = rest.ok_or_else(|| ("was not written by this program".to_string(), "Give another data file"))?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it ends early"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let problem = format!("has version {version}, but this program reads version {VERSION}");
        return Err((problem, "Serve the drive with the program that wrote it"));
    }
    let (header, rest) = section(rest).map_err(damaged)?;
    let (state, rest) = section(rest).map_err(damaged)?;
    if !rest.is_empty() {
        return Err(damaged("it has data behind its last section"));
    }
    let header = serde_json::from_slice(header).map_err(|error| damaged(&error.to_string()))?;
    Ok(Contents { header, state: state.to_vec() })
}

/// Splits `bytes` into their first section and the rest.
fn section(bytes: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let early = "it ends early";
    let (length, rest) = bytes.split_first_chunk().ok_or(early)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| early)?;
    let (content, rest) = rest.split_at_checked(length).ok_or(early)?;
    let (checksum, rest) = rest.split_first_chunk().ok_or(early)?;
    if u32::from_le_bytes(*checksum) != crc32fast::hash(content) {
        return Err("a checksum does not match");
    }
    Ok((content, rest))
}

pub(super) struct StateFile {
    place: FilePlace,
    drive: Uuid,
    file_bytes: u64,
    device: Value,
    tickets: AtomicU64,
    /// Ticket of the file's content.
    written: Mutex<u64>,
}

/// Right to write the current state. It is taken under the subsystem's lock, so later tickets
/// belong to later states.
pub(super) struct Ticket(u64);

impl StateFile {
    pub fn new(place: FilePlace, drive: Uuid, file_bytes: u64, device: &DeviceConfig) -> StateFile {
        StateFile {
            place,
            drive,
            file_bytes,
            device: described(device),
            tickets: AtomicU64::new(0),
            written: Mutex::new(0),
        }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    pub fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Replaces the file durably in one step. Does nothing if the file already has a later state.
    pub fn write(&self, ticket: Ticket, state: &[u8], clean: Option<CleanMark>) -> std::io::Result<()> {
        assert!(ticket.0 <= self.tickets.load(Ordering::Relaxed), "a ticket is of this state file");
        let header = StateHeader { drive: self.drive, file_bytes: self.file_bytes, device: self.device.clone(), clean };
        let header = serde_json::to_vec(&header).expect("a header serializes");
        let sections_bytes = (header.len() + state.len()) as u64;
        assert!(
            sections_bytes < BYTES_MAX - 64,
            "a state of {sections_bytes} bytes can be read again, the limit is {BYTES_MAX}"
        );
        let mut written = self.written.lock().expect("nothing panics between lock and unlock");
        if *written > ticket.0 {
            return Ok(());
        }
        self.place.replace(|out| {
            out.write_all(MAGIC)?;
            out.write_all(&VERSION.to_le_bytes())?;
            for section in [header.as_slice(), state] {
                out.write_all(&(section.len() as u64).to_le_bytes())?;
                out.write_all(section)?;
                out.write_all(&crc32fast::hash(section).to_le_bytes())?;
            }
            Ok(())
        })?;
        *written = ticket.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let one = serde_json::json!({"geometry": {"capacity_bytes": 1, "channels": 8}, "seed": 0});
        let other = serde_json::json!({"geometry": {"capacity_bytes": 1, "channels": 4}, "seed": 0});
        assert_eq!(difference(&one, &one), None);
        let expected = ("geometry.channels".to_string(), "8".to_string(), "4".to_string());
        assert_eq!(difference(&one, &other), Some(expected));
        let absent = serde_json::json!({"geometry": {"capacity_bytes": 1, "channels": 8}});
        let expected = ("seed".to_string(), "0".to_string(), "null".to_string());
        assert_eq!(difference(&one, &absent), Some(expected.clone()));
        let expected = (expected.0, expected.2, expected.1);
        assert_eq!(difference(&absent, &one), Some(expected));
    }

    /// A file with any single byte changed, or bytes missing at the end, is rejected.
    #[test]
    fn damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.state");
        let file = StateFile {
            place: FilePlace::new(&path).unwrap(),
            drive: Uuid::from_bytes([7; 16]),
            file_bytes: 4096,
            device: serde_json::json!({"seed": 1}),
            tickets: AtomicU64::new(0),
            written: Mutex::new(0),
        };
        file.write(file.ticket(), b"the state", None).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let contents = parse(&bytes).unwrap_or_else(|(problem, _)| panic!("{problem}"));
        assert_eq!((contents.header.file_bytes, contents.state.as_slice()), (4096, b"the state".as_slice()));
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x20;
            assert!(parse(&wrong).is_err(), "byte {at} was changed");
            assert!(parse(&bytes[..at]).is_err(), "the file ends after {at} bytes");
        }
    }

    #[test]
    fn an_earlier_state_does_not_replace_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile {
            place: FilePlace::new(&folder.path().join("drive.state")).unwrap(),
            drive: Uuid::from_bytes([7; 16]),
            file_bytes: 4096,
            device: Value::Null,
            tickets: AtomicU64::new(0),
            written: Mutex::new(0),
        };
        let (earlier, later) = (file.ticket(), file.ticket());
        file.write(later, b"later", None).unwrap();
        file.write(earlier, b"earlier", None).unwrap();
        let stored = read(&file.place).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stored.state, b"later");
    }
}
