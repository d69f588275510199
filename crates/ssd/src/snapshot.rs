//! Snapshots: a whole device in a file, save and load. (A fork is
//! [`Device::try_clone`](crate::Device::try_clone). A [`Checkpoint`](crate::checkpoint::Checkpoint)
//! stores a device that stays in use.)
//!
//! ```text
//! 8 bytes   "WARPSSD\0"
//! 4 bytes   version, little-endian
//! sections  configuration (postcard), note, state (postcard), then the L2P map in parts of 65536
//!           pages (`part.rs`). Each section: 8 bytes length, the data, 4 bytes CRC-32 of the data.
//!           All numbers are little-endian
//! ```
//!
//! The reverse map and the bitmap of valid pages follow from L2P, so the file does not contain
//! them. Loading computes both. It rejects a map that is not invertible or that disagrees with the
//! counts of the state. The note is opaque data of the caller.
//!
//! The file is written beside its destination and renamed when it is complete and on disk, so a
//! snapshot is complete or does not exist. Loading accepts only the version of this program.

mod part;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use base::FilePlace;

use crate::cast::wide;
use crate::config::DeviceConfig;
use crate::device::{Device, DeviceState};
use crate::error::SnapshotError;
use crate::event::EventSink;
use crate::layout::DeviceLayout;
use crate::maps::PageMaps;
use crate::maps::undo::parts;
use crate::types::{Lpn, Ppn};

const MAGIC: &[u8; 8] = b"WARPSSD\0";
/// Version of the format. Incremented for every change of a stored type.
pub const VERSION: u32 = 14;
/// Maximum size of a configuration or state section. A device with 2^32 pages in single-page
/// reclaim units stays below it, so larger sizes are corruption and must not be allocated.
const SECTION_BYTES_MAX: u64 = 64 << 30;
/// Number of runs whose cache misses overlap during loading.
const BATCH_RUNS: usize = 64;
/// Map entries are stored in their memory representation.
const _: () = assert!(cfg!(target_endian = "little"), "snapshots are little-endian");

/// Writes a file atomically and durably. Writes a temporary file in the same directory first, then
/// renames it.
///
/// # Errors
/// An error of the file system. The destination is then unchanged.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    FilePlace::new(path)?.replace(fill)
}

impl<S: EventSink> Device<S> {
    /// Writes the device to a file, replacing the file atomically.
    ///
    /// # Errors
    /// An error of the file system. The destination is then unchanged.
    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        self.save_with_note(path, &[])
    }

    /// Same as [`Device::save`], with a note that [`Device::read_header`] returns.
    ///
    /// # Errors
    /// Same as [`Device::save`].
    pub fn save_with_note(&self, path: &Path, note: &[u8]) -> Result<(), SnapshotError> {
        write_atomically(path, |out| self.write_to(out, note)).map_err(SnapshotError::io(path))
    }

    /// Same as [`Device::save`], for an opened place.
    ///
    /// # Errors
    /// Same as [`Device::save`].
    pub fn save_in(&self, place: &FilePlace) -> Result<(), SnapshotError> {
        let written = place.replace(|out| self.write_to(out, &[]));
        written.map_err(SnapshotError::io(place.path()))
    }

    /// Returns the bytes that [`Device::save`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes, &[]).expect("memory can be written");
        bytes
    }

    fn write_to(&self, out: &mut impl Write, note: &[u8]) -> std::io::Result<()> {
        let (config, state, maps) = self.parts();
        assert!(state.fits(self.layout()), "the state fits its layout");
        write_head(out, config, note, state)?;
        let (mut entries, mut bytes) = (Vec::new(), Vec::new());
        for pages in parts(self.layout().logical_pages) {
            maps.copy_entries(pages, &mut entries);
            write_part(out, &entries, &mut bytes)?;
        }
        Ok(())
    }
}

/// Writes the sections of a snapshot that precede the parts of its map.
pub(crate) fn write_head(
    out: &mut impl Write,
    config: &DeviceConfig,
    note: &[u8],
    state: &DeviceState,
) -> std::io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let config = postcard::to_stdvec(config).expect("a configuration serializes");
    let state = postcard::to_stdvec(state).expect("a state serializes");
    for section in [config.as_slice(), note, state.as_slice()] {
        write_section(out, section)?;
    }
    Ok(())
}

/// Writes the next part of the map. `bytes` is a scratch buffer.
pub(crate) fn write_part(out: &mut impl Write, entries: &[u32], bytes: &mut Vec<u8>) -> std::io::Result<()> {
    part::encode(entries, bytes);
    write_section(out, bytes)
}

fn write_section(out: &mut impl Write, section: &[u8]) -> std::io::Result<()> {
    out.write_all(&wide(section.len()).to_le_bytes())?;
    out.write_all(section)?;
    out.write_all(&crc32fast::hash(section).to_le_bytes())
}

impl Device {
    /// Loads a device from a file.
    ///
    /// # Errors
    /// The file system reports an error, or the file is not a snapshot, has another version, ends
    /// early, or fails a checksum.
    pub fn load(path: &Path) -> Result<Device, SnapshotError> {
        SnapshotReader::open(path)?.device()
    }

    /// Loads a device from an opened place.
    ///
    /// # Errors
    /// Same as [`Device::load`].
    pub fn load_in(place: &FilePlace) -> Result<Device, SnapshotError> {
        let file = place.open().map_err(SnapshotError::io(place.path()))?;
        SnapshotReader::new(file, place.path()).device()
    }

    /// Reads only the configuration of a stored device and the note saved with it (empty if none).
    ///
    /// # Errors
    /// Same as [`Device::load`], for the sections read.
    pub fn read_header(path: &Path) -> Result<(DeviceConfig, Vec<u8>), SnapshotError> {
        SnapshotReader::open(path)?.read_header()
    }
}

impl Device {
    /// Loads a device from bytes. `name` identifies them in messages.
    ///
    /// # Errors
    /// The bytes are not a snapshot, have another version, end early, or fail a checksum.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Device, SnapshotError> {
        SnapshotReader { input: bytes, name: name.to_string() }.device()
    }
}

struct SnapshotReader<R> {
    input: R,
    name: String,
}

const MAKE_ANEW: &str = "Create the snapshot again";

impl SnapshotReader<BufReader<File>> {
    fn open(path: &Path) -> Result<Self, SnapshotError> {
        let file = base::input::open(path).map_err(SnapshotError::io(path))?;
        Ok(SnapshotReader::new(file, path))
    }

    fn new(file: File, path: &Path) -> Self {
        SnapshotReader { input: BufReader::with_capacity(1 << 20, file), name: path.display().to_string() }
    }
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the configuration and the note.
    fn read_header(&mut self) -> Result<(DeviceConfig, Vec<u8>), SnapshotError> {
        let mut magic = Vec::new();
        let read = self.input.by_ref().take(wide(MAGIC.len())).read_to_end(&mut magic);
        if read.is_err() || !MAGIC.starts_with(&magic) {
            return Err(SnapshotError::Foreign { path: self.name.clone() });
        }
        if magic.len() < MAGIC.len() {
            return Err(self.truncated("first bytes"));
        }
        let mut version = [0; 4];
        self.fill(&mut version, "version")?;
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            let problem = format!("has format version {version}, but this program reads version {VERSION}");
            return Err(self.invalid(&problem, "Create it again with this version"));
        }
        let config = self.section("configuration")?;
        let config = self.decode(&config, "configuration")?;
        Ok((config, self.section("note")?))
    }

    fn device(mut self) -> Result<Device, SnapshotError> {
        let (config, _) = self.read_header()?;
        let layout = DeviceLayout::new(&config);
        let layout = layout.map_err(|error| self.invalid(&format!("has an impossible device ({error})"), MAKE_ANEW))?;
        let state = self.section("state")?;
        let mut state: DeviceState = self.decode(&state, "state")?;
        state.derive_watch_counts(&config, &layout);
        if !state.fits(&layout) {
            return Err(self.invalid("has a state with another geometry than its configuration", MAKE_ANEW));
        }
        let maps = self.maps(&layout)?;
        state.check(&config, &layout, &maps).map_err(|difference| {
            let problem = format!("has a state that contradicts its configuration or its L2P map ({difference})");
            self.invalid(&problem, MAKE_ANEW)
        })?;
        if self.input.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            return Err(self.invalid("has data behind its last section", MAKE_ANEW));
        }
        Ok(Device::from_parts(config, layout, maps, state))
    }

    /// Reads the L2P map and builds the reverse map.
    fn maps(&mut self, layout: &DeviceLayout) -> Result<PageMaps, SnapshotError> {
        let maps = PageMaps::new(layout.logical_pages, layout.physical_pages, layout.slice_pages);
        let mut maps = maps.map_err(|source| SnapshotError::Io { path: self.name.clone(), source })?;
        let mut bytes = Vec::new();
        for (number, pages) in (1..).zip(parts(layout.logical_pages)) {
            let what = format!("L2P map (part {number})");
            let part_pages = pages.end - pages.start;
            self.section_of(&mut bytes, &what, part::bytes_max(part_pages))?;
            let runs = part::decode(&bytes, part_pages)
                .ok_or_else(|| self.invalid(&format!("has an {what} that cannot be decoded"), MAKE_ANEW))?;
            let mut lpn = pages.start;
            for batch in runs.chunks(BATCH_RUNS) {
                maps.prefetch_restored(batch);
                for &[entry, run] in batch {
                    if entry != 0 {
                        let restored = maps.restore(Lpn(lpn), Ppn(!entry), run);
                        restored.map_err(|problem| self.invalid(&problem, MAKE_ANEW))?;
                    }
                    lpn += run;
                }
            }
            assert_eq!(lpn, pages.end, "the runs of a part cover it");
        }
        maps.restore_reverse();
        Ok(maps)
    }

    fn section(&mut self, what: &str) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        self.section_of(&mut bytes, what, SECTION_BYTES_MAX)?;
        Ok(bytes)
    }

    /// Reads a section into `bytes`.
    fn section_of(&mut self, bytes: &mut Vec<u8>, what: &str, bytes_max: u64) -> Result<(), SnapshotError> {
        let mut length = [0; 8];
        self.fill(&mut length, what)?;
        let length = u64::from_le_bytes(length);
        if length > bytes_max {
            let problem = format!("claims {length} bytes for its {what}, but the maximum is {bytes_max}");
            return Err(self.invalid(&problem, MAKE_ANEW));
        }
        bytes.clear();
        // Grows with the data that is present instead of allocating the size that the file claims.
        let read = self.input.by_ref().take(length).read_to_end(bytes);
        if read.is_err() || wide(bytes.len()) != length {
            return Err(self.truncated(what));
        }
        self.checksum(bytes, what)
    }

    fn checksum(&mut self, bytes: &[u8], what: &str) -> Result<(), SnapshotError> {
        let mut stored = [0; 4];
        self.fill(&mut stored, what)?;
        if u32::from_le_bytes(stored) != crc32fast::hash(bytes) {
            return Err(
                self.invalid(&format!("is corrupt, because the checksum of its {what} does not match"), MAKE_ANEW)
            );
        }
        Ok(())
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, bytes: &[u8], what: &str) -> Result<T, SnapshotError> {
        let decoded = postcard::from_bytes(bytes);
        decoded.map_err(|error| self.invalid(&format!("has a {what} that cannot be decoded ({error})"), MAKE_ANEW))
    }

    fn fill(&mut self, bytes: &mut [u8], what: &str) -> Result<(), SnapshotError> {
        let read = self.input.read_exact(bytes);
        read.map_err(|_| self.truncated(what))
    }

    fn truncated(&self, what: &str) -> SnapshotError {
        self.invalid(&format!("ends in the middle of its {what}"), "Copy the whole file, or create it again")
    }

    fn invalid(&self, problem: &str, remedy: &'static str) -> SnapshotError {
        SnapshotError::Invalid { path: self.name.clone(), problem: problem.to_string(), remedy }
    }
}
