//! Persistence of a drive. Opens it with its data, mapping and state, stores them while it is
//! served, closes it, and recovers it after an unclean end.
//!
//! ```text
//! drive.img            data (backend::file), written by commands, durable with Flush and FUA
//! drive.img.state      identity, clean mark, non-volatile state, replaced on change, checkpoint
//! drive.img.ftl        snapshot of the device, replaced at checkpoints and at the end
//! drive.img.counters   counters reported to hosts, written every 50 ms and before host reads
//! drive.img.sums       checksums (optional), written with the data, durable at shutdown
//!
//! open  -> lock, check, load -> (not closed the last time: recover) -> mark as in use -> Subsystem
//! close -> data durable -> snapshot -> state with the clean mark
//! ```
//!
//! Closing writes the clean mark last, and opening removes it first, so an interruption at any
//! point is detected. The mark names its snapshot by the snapshot's counters. A drive in memory or
//! without data has no files and is new at each start.
//!
//! The module starts no threads. The server calls [`ServedDrive::checkpoint`] periodically.

pub mod backend;
mod checkpoint;
mod counters;
mod error;
mod files;
mod offline;
mod recover;
mod scrub;
mod state_file;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::{FilePlace, HumanBytes};
use nvme::fault::PowerLoss;
use nvme::{FlushHandle, Media, MediaError, NonVolatileState, SetupError, Subsystem, SubsystemConfig};
use serde::Serialize;
use ssd::{Device, DeviceConfig, DeviceLayout, SnapshotError};
use uuid::Uuid;

use crate::clock::unix_ms;
pub use crate::storage::backend::DataChoice;
use crate::storage::backend::checksum_file::{ChecksumFile, ChecksumStatus};
use crate::storage::backend::file::OpenDataFile;
use crate::storage::backend::{MemoryBackend, NullBackend, PatternBackend, memory_check};
use crate::{ServerClock, SharedSubsystem, lock, lock_result};
pub use checkpoint::{CheckpointMonitor, CheckpointStatus};
pub use error::DriveError;
use files::{DataFileLock, DriveFiles};
pub use offline::{StoredDrive, stored};
use recover::Repairs;
pub use scrub::{ScrubReport, Scrubber, scrub};
use state_file::{CleanMark, Contents, StateFile};

/// Current state of a file of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredFile {
    /// File name without its folder.
    pub name: String,
    pub bytes: u64,
    /// Time of the last write, in milliseconds since 1970.
    pub at_unix_ms: u64,
}

#[derive(Clone, Debug)]
pub struct DriveOptions {
    pub subsystem: SubsystemConfig,
    pub data: DataChoice,
    /// True if the pages of a data file get checksums. A drive that already has checksums keeps
    /// them.
    pub checksums: bool,
}

/// Result of opening a drive, with the repairs made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The drive was created by this start.
    pub new: bool,
    /// The drive is new or was shut down in order.
    pub clean: bool,
    /// Logical capacity.
    pub capacity_bytes: u64,
    /// Pages with data that the stored mapping did not contain.
    pub pages_mapped_again: u64,
    /// Pages in the stored mapping that no longer had data.
    pub pages_deallocated: u64,
    /// Bytes of data outside all namespaces, returned to the file system.
    pub bytes_given_back: u64,
    /// True if a snapshot of the mapping existed. Otherwise the whole mapping was rebuilt from the
    /// data.
    pub snapshot: bool,
    /// Age of an unclean drive's snapshot relative to the last write, as far as the file system
    /// reports it.
    pub snapshot_age: Option<Duration>,
    pub checksums: ChecksumState,
    /// The checksums belong to another shutdown than the state. So does the data, and the drive was
    /// recovered.
    pub other_shutdown: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumState {
    #[default]
    None,
    /// The checksums begin anew. None existed, or the machine lost power, so that they may not
    /// match the data.
    Anew,
    /// The existing checksums stay valid.
    Current,
}

impl std::fmt::Display for OpenReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write_drive(out)?;
        match self.checksums {
            ChecksumState::None => Ok(()),
            ChecksumState::Anew if self.new => write!(out, ", with checksums"),
            ChecksumState::Anew => write!(out, ". Its checksums start again"),
            ChecksumState::Current => write!(out, ". Its checksums are valid"),
        }
    }
}

impl OpenReport {
    fn write_drive(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let capacity = HumanBytes(self.capacity_bytes);
        if self.new {
            return write!(out, "new drive of {capacity}");
        }
        if self.clean {
            return write!(out, "drive of {capacity}, shut down cleanly");
        }
        let why = if self.other_shutdown {
            "whose data file and state come from different shutdowns, as its checksums show"
        } else {
            "which was not shut down cleanly"
        };
        write!(out, "drive of {capacity}, {why}. ")?;
        match (self.snapshot, self.snapshot_age) {
            (false, _) => write!(out, "Without a checkpoint the mapping was rebuilt from the data")?,
            (true, None) => write!(out, "Its mapping and counters come from the last checkpoint")?,
            (true, Some(age)) => {
                let age_s = age.as_secs_f64();
                write!(out, "Its mapping and counters come from a checkpoint {age_s:.1} s before the last write")?;
            }
        }
        write!(
            out,
            ". {} pages were mapped again and {} were deallocated",
            self.pages_mapped_again, self.pages_deallocated
        )?;
        if self.bytes_given_back > 0 {
            write!(out, ". {} outside namespaces were freed", HumanBytes(self.bytes_given_back))?;
        }
        Ok(())
    }
}

/// The persistence of an open drive. Dropping it closes the drive as far as possible.
pub struct ServedDrive {
    shared: SharedSubsystem,
    /// `None` for a drive without files.
    persistence: Option<FilePersistence>,
    checkpoints: Arc<CheckpointMonitor>,
}

/// Resources for storing a drive with files.
struct FilePersistence {
    storage: Arc<OpenDataFile>,
    state_file: Arc<StateFile>,
    files: DriveFiles,
    /// State of the device and number of commands at the last checkpoint.
    stored_device: Option<CleanMark>,
    stored_commands: u64,
}

impl ServedDrive {
    /// Opens a drive, or creates it if it does not exist.
    ///
    /// # Errors
    /// One sentence. Existing files stay unchanged.
    pub fn open(
        options: DriveOptions,
        clock: ServerClock,
    ) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
        let config = options.subsystem;
        // Large drives without data are larger than the machine. Compact maps take less memory and more
        // time.
        let has_data = !matches!(options.data, DataChoice::Null | DataChoice::Pattern);
        let full = DriveSize::new(&config, false)?;
        let is_compact = !has_data && full.maps_bytes > FULL_MAPS_BYTES_MAX;
        let size = if is_compact { DriveSize::new(&config, true)? } else { full };
        let available_bytes = base::memory_available_bytes().unwrap_or(u64::MAX);
        let capacity_bytes = size.data_bytes;
        let media: Box<dyn Media> = match options.data {
            DataChoice::Memory => {
                memory_check::check(size.data_bytes, size.maps_bytes, available_bytes)?;
                Box::new(MemoryBackend::new(capacity_bytes))
            }
            DataChoice::Null => {
                memory_check::check(0, size.maps_bytes, available_bytes)?;
                Box::new(NullBackend { capacity_bytes })
            }
            DataChoice::Pattern => {
                memory_check::check(PatternBackend::memory_bytes(capacity_bytes), size.maps_bytes, available_bytes)?;
                let pattern = PatternBackend::new(capacity_bytes).map_err(|source| MediaError {
                    action: "reserving address space for",
                    offset: 0,
                    bytes: capacity_bytes,
                    source,
                });
                Box::new(pattern.map_err(SetupError::Media)?)
            }
            DataChoice::File(path) => {
                memory_check::check(0, size.maps_bytes + size.checkpoint_bytes, available_bytes)?;
                return ServedDrive::open_files(config, &path, size, options.checksums, clock);
            }
        };
        let (mut subsystem, opened) = ServedDrive::make(config, media)?;
        if is_compact {
            subsystem.make_compact()?;
        }
        let shared = Arc::new(Mutex::new(subsystem));
        let drive = ServedDrive { shared: Arc::clone(&shared), persistence: None, checkpoints: Arc::default() };
        Ok((shared, drive, opened))
    }

    fn open_files(
        config: SubsystemConfig,
        path: &Path,
        size: DriveSize,
        checksums: bool,
        clock: ServerClock,
    ) -> Result<(SharedSubsystem, ServedDrive, OpenReport), DriveError> {
        let files = DriveFiles::new(path)?;
        let DataFileLock { file, stored, made } =
            files.claim(size.data_bytes, &state_file::described(&config.device))?;
        let drive = match &stored {
            Some(stored) => stored.header.drive,
            None => new_identity(&files).inspect_err(|_| files.undo(made))?,
        };
        let failed = DriveError::io(path, "the data file cannot be examined");
        let files = files.guarded(&file, drive).map_err(failed)?;
        let (sums, checksums, other_shutdown) =
            open_sums(&files, drive, size.data_bytes, checksums, stored.as_ref()).inspect_err(|_| files.undo(made))?;
        assert!(stored.is_some() || !other_shutdown, "a new drive has no earlier shutdown");
        let storage = OpenDataFile::with_sums(file, sums);
        let state_file = Arc::new(StateFile::new(files.state.clone(), drive, size.data_bytes, &config.device));
        let keep: backend::file::StateWriter = {
            let state_file = Arc::clone(&state_file);
            Box::new(move |state| state_file.write(state_file.ticket(), state, None))
        };
        let media = backend::FileBackend::new(Arc::clone(&storage), keep);
        let media = media.map_err(DriveError::io(path, "the data file cannot be examined"))?;
        let media = Box::new(media.with_counter_recorder(counters::writer(files.counters.clone(), drive.into_bytes())));
        let (subsystem, mut opened) = match stored {
            None => ServedDrive::make(config, media).inspect_err(|_| files.undo(made))?,
            Some(mut stored) => {
                if other_shutdown {
                    stored.header.clean = None;
                }
                ServedDrive::restore(config, media, &files, &storage, &stored)?
            }
        };
        (opened.checksums, opened.other_shutdown) = (checksums, other_shutdown);
        let shared = Arc::new(Mutex::new(subsystem));
        let mut drive = ServedDrive {
            shared: Arc::clone(&shared),
            persistence: Some(FilePersistence { storage, state_file, files, stored_device: None, stored_commands: 0 }),
            checkpoints: Arc::default(),
        };
        drive.begin(&opened, clock)?;
        Ok((shared, drive, opened))
    }

    /// Creates a new drive. If it has files, the subsystem stores its state.
    fn make(config: SubsystemConfig, media: Box<dyn Media>) -> Result<(Subsystem, OpenReport), DriveError> {
        let subsystem = Subsystem::new(config, media)?;
        let opened =
            OpenReport { new: true, clean: true, capacity_bytes: subsystem.capacity_bytes(), ..OpenReport::default() };
        Ok((subsystem, opened))
    }

    /// Restores a stored drive. Its files stay unchanged, except that data outside all namespaces
    /// is returned to the file system.
    fn restore(
        config: SubsystemConfig,
        media: Box<dyn Media>,
        files: &DriveFiles,
        storage: &OpenDataFile,
        stored: &Contents,
    ) -> Result<(Subsystem, OpenReport), DriveError> {
        let state = NonVolatileState::from_bytes(&stored.state);
        let mut state = state.map_err(|error| DriveError::unusable_state(files.state.path(), &error))?;
        let (mut device, snapshot) = load_device(&config, &state, files)?;
        // Checked before the recovery uses the namespaces.
        let fits = state.namespaces.check(device.layout());
        fits.map_err(|problem| DriveError::state_of_another(files.state.path(), &problem))?;
        let clean = snapshot && stored.header.clean == Some(CleanMark::new(&device));
        let mut opened = OpenReport { clean, snapshot, ..OpenReport::default() };
        if !clean {
            opened.snapshot_age = snapshot_age(files);
            let namespaces = state.namespaces.iter().map(|(_, namespace)| namespace);
            let rebuilt = recover::reconcile(&mut device, namespaces, storage);
            let failed = DriveError::io(files.data.path(), "the data file cannot be searched for data");
            let Repairs { pages_mapped_again, pages_deallocated, bytes_given_back } = rebuilt.map_err(failed)?;
            opened.pages_mapped_again = pages_mapped_again;
            opened.pages_deallocated = pages_deallocated;
            opened.bytes_given_back = bytes_given_back;
            state.smart.unsafe_shutdowns += 1;
            if let Some(reported) = counters::read(&files.counters, stored.header.drive.into_bytes()) {
                device.raise_totals(&reported.totals);
                state.smart.raise(&reported);
            }
        }
        let recovered = CleanMark::new(&device);
        let mut subsystem = Subsystem::restore(config, device, media, state)?;
        opened.capacity_bytes = subsystem.capacity_bytes();
        assert_eq!(CleanMark::new(subsystem.device()), recovered, "the drive continues from the recovered state");
        if !clean {
            subsystem.note_handles_modified_by_reset();
        }
        Ok((subsystem, opened))
    }

    /// Marks the drive as in use before it is served. After a recovery, also stores the result.
    fn begin(&mut self, opened: &OpenReport, clock: ServerClock) -> Result<(), DriveError> {
        let Some(persistence) = &mut self.persistence else {
            return Ok(());
        };
        assert!(!persistence.storage.is_closed(), "a drive is served while its data file is open");
        assert!(persistence.stored_device.is_none(), "a drive begins once");
        assert!(opened.clean || !opened.new, "a new drive has nothing to recover");
        if !opened.new {
            let mut subsystem = lock_drive(&self.shared)?;
            subsystem.tick(clock.now());
            persistence.write_state(&mut subsystem, None)?;
        }
        if opened.clean {
            persistence.note_stored(&*lock_drive(&self.shared)?);
            return Ok(());
        }
        // A full file system does not prevent serving. The next checkpoint reports the problem.
        let _ = self.checkpoint(|| {});
        Ok(())
    }

    /// Sets the handler for a power loss by a fault plan. The drive is not stored afterwards, so
    /// that the next start finds the state of a real power loss. `notify` runs with the drive locked.
    pub fn on_power_loss(&self, notify: Option<fn(&PowerLoss)>) {
        let storage = self.persistence.as_ref().map(|persistence| Arc::clone(&persistence.storage));
        lock(&self.shared).on_power_loss(Box::new(move |loss| {
            if let Some(storage) = &storage {
                storage.close();
            }
            if let Some(notify) = notify {
                notify(loss);
            }
        }));
    }

    /// Creates a scrubber for the drive's data, `None` without checksums.
    pub fn scrubber(&self) -> Option<Scrubber> {
        let storage = &self.persistence.as_ref()?.storage;
        storage.checksums()?;
        Some(Scrubber::new(Arc::clone(storage), Arc::clone(&self.shared)))
    }

    /// Returns whether the drive has files for checkpoints.
    pub fn has_files(&self) -> bool {
        self.persistence.is_some()
    }

    /// Returns whether the drive was closed or lost its power, so that storing has ended. Always
    /// false for a drive without files.
    pub fn is_closed(&self) -> bool {
        let persistence = self.persistence.as_ref();
        persistence.is_some_and(|persistence| persistence.storage.is_closed())
    }

    /// Existing files of the newest checkpoint, the snapshot first.
    pub fn stored_files(&self) -> Vec<StoredFile> {
        let Some(persistence) = &self.persistence else {
            return Vec::new();
        };
        let look = |place: &FilePlace| {
            let metadata = place.metadata().ok()?;
            Some(StoredFile {
                name: place.name().to_string_lossy().into_owned(),
                bytes: metadata.len(),
                at_unix_ms: unix_ms(metadata.modified().ok()?),
            })
        };
        let files = [&persistence.files.snapshot, &persistence.files.state];
        files.into_iter().filter_map(look).collect()
    }

    /// Stores the whole drive and releases the data file. Later commands fail. Closing again has no
    /// effect.
    ///
    /// # Errors
    /// A system call failed, or an earlier command panicked. The next start recovers.
    pub fn close(&mut self) -> Result<(), DriveError> {
        let Some(persistence) = &mut self.persistence else {
            return Ok(());
        };
        if persistence.storage.is_closed() {
            return Ok(());
        }
        let mut subsystem = lock_drive(&self.shared)?;
        let durable = persistence.storage.flush();
        durable.map_err(DriveError::io(persistence.files.data.path(), "the data cannot be made durable"))?;
        subsystem.device().save_in(&persistence.files.snapshot)?;
        let clean = CleanMark::new(subsystem.device());
        let not_durable = "the checksums cannot be made durable";
        if let Some(sums) = persistence.storage.checksums() {
            sums.make_durable().map_err(DriveError::io(persistence.files.checksums.path(), not_durable))?;
        }
        persistence.write_state(&mut subsystem, Some(clean))?;
        // Written after the state with this shutdown, because the next start discards sums of a
        // shutdown that the state does not contain.
        if let Some(sums) = persistence.storage.checksums() {
            sums.close(clean.digest()).map_err(DriveError::io(persistence.files.checksums.path(), not_durable))?;
        }
        assert_eq!(CleanMark::new(subsystem.device()), clean, "nothing is written while the drive closes");
        persistence.storage.close();
        assert!(persistence.storage.is_closed(), "commands that come later fail");
        let unlocked = persistence.storage.file().unlock();
        unlocked.map_err(DriveError::io(persistence.files.data.path(), "the data file cannot be unlocked"))
    }
}

impl Drop for ServedDrive {
    fn drop(&mut self) {
        // The next start detects and reports any problem.
        let _ = self.close();
    }
}

impl FilePersistence {
    fn write_state(&self, subsystem: &mut Subsystem, clean: Option<CleanMark>) -> Result<(), DriveError> {
        let state = subsystem.state_for_checkpoint().to_bytes();
        let written = self.state_file.write(self.state_file.ticket(), &state, clean);
        written.map_err(|source| DriveError::state_not_stored(self.state_file.path(), source))
    }

    fn note_stored(&mut self, subsystem: &Subsystem) {
        self.stored_device = Some(CleanMark::new(subsystem.device()));
        self.stored_commands = commands(subsystem);
    }
}

fn new_identity(files: &DriveFiles) -> Result<Uuid, DriveError> {
    let mut random = [0; 16];
    let drawn = getrandom::fill(&mut random).map_err(std::io::Error::other);
    drawn.map_err(DriveError::io(files.data.path(), "there are no random numbers for the drive's identity"))?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid())
}

/// Opens the checksums of a drive that has or requests them. The last value is true if existing
/// checksums show that the data belongs to another shutdown.
fn open_sums(
    files: &DriveFiles,
    drive: Uuid,
    data_bytes: u64,
    wanted: bool,
    stored: Option<&Contents>,
) -> Result<(Option<ChecksumFile>, ChecksumState, bool), DriveError> {
    if stored.is_none() {
        // Leftovers of another drive. They may not exist.
        for other in [&files.checksums, &files.counters] {
            let _ = other.remove();
        }
    }
    if !wanted && !files.checksums.exists() {
        return Ok((None, ChecksumState::None, false));
    }
    let closed = stored.and_then(|stored| stored.header.clean.as_ref().map(CleanMark::digest));
    let opened = ChecksumFile::open(&files.checksums, drive.into_bytes(), data_bytes, closed);
    let (sums, standing) = opened.map_err(DriveError::io(files.checksums.path(), "the checksums cannot be opened"))?;
    let checksums = match standing {
        ChecksumStatus::Current => ChecksumState::Current,
        ChecksumStatus::Unusable | ChecksumStatus::OfAnotherShutdown => ChecksumState::Anew,
    };
    Ok((Some(sums), checksums, standing == ChecksumStatus::OfAnotherShutdown))
}

/// Number of commands that change counters of the state.
fn commands(subsystem: &Subsystem) -> u64 {
    let smart = &subsystem.state().smart;
    smart.read_commands + smart.write_commands
}

fn lock_drive(shared: &SharedSubsystem) -> Result<MutexGuard<'_, Subsystem>, DriveError> {
    lock_result(shared).map_err(|_| DriveError::Failed)
}

/// Maps of a drive without data that are not compact, at most. Drives of about 500 GB have as much.
const FULL_MAPS_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Copy)]
struct DriveSize {
    /// Length of the data file, for data and metadata.
    data_bytes: u64,
    maps_bytes: u64,
    /// Memory for a checkpoint in progress, in addition to the maps.
    checkpoint_bytes: u64,
}

impl DriveSize {
    /// Maximum over all placement configurations that a host can select.
    fn new(config: &SubsystemConfig, is_compact: bool) -> Result<DriveSize, DriveError> {
        let mut first = NonVolatileState::default();
        first.fdp.enabled = config.fdp;
        let first = Subsystem::device_config(config, &first);
        let mut layouts = vec![DeviceLayout::new(&first).map_err(SetupError::Device)?];
        layouts.extend(possible_devices(config).iter().filter_map(|device| DeviceLayout::new(device).ok()));
        let data_bytes =
            |layout: &DeviceLayout| nvme::media::bytes_for(u64::from(layout.logical_pages) * layout.page_bytes);
        let maps_bytes = if is_compact { DeviceLayout::compact_memory_bytes } else { DeviceLayout::memory_bytes };
        let size = DriveSize {
            data_bytes: layouts.iter().map(data_bytes).max().unwrap_or(0),
            maps_bytes: layouts.iter().map(maps_bytes).max().unwrap_or(0),
            checkpoint_bytes: layouts.iter().map(ssd::checkpoint::memory_bytes_max).max().unwrap_or(0),
        };
        assert!(
            size.data_bytes > 0 && size.maps_bytes > 0,
            "a drive needs room for its data ({} bytes) and its maps ({} bytes)",
            size.data_bytes,
            size.maps_bytes
        );
        Ok(size)
    }
}

/// Possible device configurations of a drive: with each of its placement configurations, and
/// without FDP.
fn possible_devices(config: &SubsystemConfig) -> Vec<DeviceConfig> {
    let mut devices = nvme::fdp::configurations(&config.device);
    devices.push(nvme::fdp::without_fdp(&config.device));
    devices
}

/// Loads the device of a stored drive. The second value is false if no snapshot exists.
fn load_device(
    config: &SubsystemConfig,
    state: &NonVolatileState,
    files: &DriveFiles,
) -> Result<(Device, bool), DriveError> {
    let wanted = Subsystem::device_config(config, state);
    let new = || Device::new(&wanted).map_err(SetupError::Device);
    let snapshot = match Device::load_in(&files.snapshot) {
        Ok(snapshot) => snapshot,
        Err(SnapshotError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok((new()?, false));
        }
        Err(error) => return Err(error.into()),
    };
    if *snapshot.config() == wanted {
        return Ok((snapshot, true));
    }
    if !possible_devices(config).contains(snapshot.config()) {
        return Err(DriveError::OtherGeometry(files.snapshot.path().to_path_buf()));
    }
    // The host has since selected another placement configuration. Its data is gone, but counters
    // and wear remain.
    let mut device = new()?;
    device.continue_counters(&snapshot);
    Ok((device, true))
}

/// Age of the snapshot relative to the last write.
fn snapshot_age(files: &DriveFiles) -> Option<Duration> {
    let modified = |place: &FilePlace| place.metadata().ok()?.modified().ok();
    modified(&files.data)?.duration_since(modified(&files.snapshot)?).ok()
}
