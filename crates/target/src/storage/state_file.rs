//! The state file beside a data file: which drive it is, whether it was shut down, and its non-volatile state.
//!
//! ```text
//! 8 bytes   "WARPDRV\0"
//! 4 bytes   version, little-endian
//! sections  header (JSON), state (`nvme::Persistent::to_bytes`); each: 8 bytes length, the bytes, their CRC-32
//! ```
//!
//! The file is replaced as a whole, each time in one step and on disk, so it is small on purpose. It is read once,
//! before anything is served.

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
/// Version of the form; grows with every change of it.
const VERSION: u32 = 2;
/// Bytes of a state file, at most: namespaces of as many pieces as there can be come to a small part of it.
const BYTES_MAX: u64 = 256 << 20;

/// Which drive it is, and how it was left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// Which drive it is: files beside it that name another are not its own.
    pub drive: Uuid,
    /// Length of the data file.
    pub file_bytes: u64,
    /// The device configuration that the drive was made with, as JSON, so that a difference can be named.
    pub device: Value,
    /// The device at the orderly shutdown after which the drive was not opened again.
    pub clean: Option<CleanMark>,
}

/// What tells the snapshot of an orderly shutdown from an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CleanMark {
    host_pages_written: u64,
    pages_deallocated: u64,
    units_closed_by_host: u64,
    live_pages: u64,
}

impl CleanMark {
    /// What the checksums remember of a shutdown; never 0.
    pub fn digest(&self) -> u32 {
        let text = serde_json::to_vec(self).expect("numbers serialize");
        crc32fast::hash(&text).max(1)
    }

    pub fn of<S: ssd::EventSink>(device: &Device<S>) -> CleanMark {
        CleanMark {
            host_pages_written: device.host_pages_written(),
            pages_deallocated: device.stats().pages_deallocated,
            units_closed_by_host: device.stats().units_closed_by_host,
            live_pages: device.live_pages(),
        }
    }
}

/// The form of a device configuration in which the header has it.
pub(super) fn described(device: &DeviceConfig) -> Value {
    // Through text, so that numbers compare as they are after reading.
    let text = serde_json::to_string(device).expect("a configuration serializes");
    serde_json::from_str(&text).expect("what was just written reads back")
}

/// First field in which two configurations differ: its path, and what each says.
pub(super) fn difference(stored: &Value, given: &Value) -> Option<(String, String, String)> {
    if stored == given {
        return None;
    }
    if let (Value::Object(stored), Value::Object(given)) = (stored, given) {
        for key in stored.keys().chain(given.keys()) {
            let field = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
            if let Some((inner, before, now)) = difference(&field(stored), &field(given)) {
                let path = if inner.is_empty() {
                    key.clone()
                } else {
                    format!("{key}.{inner}")
                };
                return Some((path, before, now));
            }
        }
    }
    Some((String::new(), stored.to_string(), given.to_string()))
}

/// What a state file holds.
pub(super) struct Contents {
    pub header: Header,
    pub state: Vec<u8>,
}

/// Reads a state file.
///
/// # Errors
/// It cannot be read, or is not what this version writes.
pub(super) fn read(place: &FilePlace) -> Result<Contents, DriveError> {
    let bytes = place.open().and_then(|file| base::input::read_all(file, BYTES_MAX));
    let bytes = bytes.map_err(DriveError::io(place.path(), "the drive's state cannot be read"))?;
    parse(&bytes).map_err(|(problem, remedy)| DriveError::State {
        path: place.path().to_path_buf(),
        problem,
        remedy,
    })
}

/// Which drive a state is of, if there is one that is whole.
pub(super) fn drive_of(place: &FilePlace) -> Option<Uuid> {
    read(place).ok().map(|contents| contents.header.drive)
}

const RESTORE: &str = "restore it from a copy";

type Problem = (String, &'static str);

fn parse(bytes: &[u8]) -> Result<Contents, Problem> {
    let damaged = |what: &str| (format!("is damaged: {what}"), RESTORE);
    let rest = bytes.strip_prefix(MAGIC.as_slice());
    let rest = rest.ok_or_else(|| {
        (
            "file was not written by this program".to_string(),
            "give another data file",
        )
    })?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it ends early"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let problem = format!("has version {version}, this program reads version {VERSION}");
        return Err((problem, "serve the drive with the program that wrote it"));
    }
    let (header, rest) = section(rest).map_err(damaged)?;
    let (state, rest) = section(rest).map_err(damaged)?;
    if !rest.is_empty() {
        return Err(damaged("it goes on after its last section"));
    }
    let header = serde_json::from_slice(header).map_err(|error| damaged(&error.to_string()))?;
    Ok(Contents {
        header,
        state: state.to_vec(),
    })
}

/// The section that `bytes` begin with, and what follows it.
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

/// The place of a state file, for writing.
pub(super) struct StateFile {
    place: FilePlace,
    drive: Uuid,
    file_bytes: u64,
    device: Value,
    tickets: AtomicU64,
    /// Ticket of what the file holds.
    written: Mutex<u64>,
}

/// The right to write the state as it is at this moment; taken under the subsystem's lock, so later ones are of later
/// states.
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

    /// Replaces the file, in one step and durably; does nothing if a later state is in it already.
    pub fn write(&self, ticket: Ticket, state: &[u8], clean: Option<CleanMark>) -> std::io::Result<()> {
        assert!(
            ticket.0 <= self.tickets.load(Ordering::Relaxed),
            "a ticket is of this state file"
        );
        let header = Header {
            drive: self.drive,
            file_bytes: self.file_bytes,
            device: self.device.clone(),
            clean,
        };
        let header = serde_json::to_vec(&header).expect("a header serializes");
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

    /// Every byte matters: a file with any one of them changed, or missing at the end, is refused.
    #[test]
    fn damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.state");
        let file = StateFile {
            place: FilePlace::of(&path).unwrap(),
            drive: Uuid::from_bytes([7; 16]),
            file_bytes: 4096,
            device: serde_json::json!({"seed": 1}),
            tickets: AtomicU64::new(0),
            written: Mutex::new(0),
        };
        file.write(file.ticket(), b"the state", None).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let contents = parse(&bytes).unwrap_or_else(|(problem, _)| panic!("{problem}"));
        assert_eq!(
            (contents.header.file_bytes, contents.state.as_slice()),
            (4096, b"the state".as_slice())
        );
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
            place: FilePlace::of(&folder.path().join("drive.state")).unwrap(),
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
