//! Reads the files of a drive without opening it, for `warp drive inspect`. The drive may be in
//! use. The result then shows its last checkpoint.

use std::fmt::{Display, Formatter};
use std::path::Path;

use base::HumanBytes;
use nvme::{Namespace, NonVolatileState};
use serde::Serialize;
use ssd::device::Occupancy;
use ssd::{Device, DeviceConfig, DeviceStats, SnapshotError};

use super::error::DriveError;
use super::files::DriveFiles;
use super::state_file;

/// A stored drive, or a snapshot of a device alone.
#[derive(Clone, Debug, Serialize)]
pub struct StoredDrive {
    /// Content of the state file, `None` for a snapshot alone.
    pub state: Option<StoredState>,
    /// Content of the snapshot, `None` before the first checkpoint.
    pub device: Option<StoredDevice>,
}

/// The device of a snapshot.
#[derive(Clone, Debug, Serialize)]
pub struct StoredDevice {
    pub config: DeviceConfig,
    /// Logical capacity.
    pub capacity_bytes: u64,
    /// Over-provisioning after rounding: (physical - logical) / logical.
    pub effective_over_provisioning: f64,
    pub page_bytes: u64,
    /// Pages that hold data.
    pub live_pages: u64,
    pub logical_pages: u32,
    pub stats: DeviceStats,
    /// MBMW / HBMW, `None` before any write.
    pub write_amplification: Option<f64>,
    /// Occupancy by each handle and the shared pool.
    pub occupancy: Vec<Occupancy>,
}

/// The non-volatile state of a served drive.
#[derive(Clone, Debug, Serialize)]
pub struct StoredState {
    /// True after an orderly shutdown, until the drive is opened again.
    pub clean: bool,
    /// Length of the data file.
    pub file_bytes: u64,
    pub checksums: bool,
    /// Namespaces, with their identifiers.
    pub namespaces: Vec<(u32, Namespace)>,
    /// All other state: Flexible Data Placement with its events, saved features, SMART counters.
    pub state: NonVolatileState,
}

/// Reads a stored drive by its data file, or a snapshot of a device.
///
/// # Errors
/// The file is neither.
pub fn stored(path: &Path) -> Result<StoredDrive, DriveError> {
    let files = DriveFiles::new(path)?;
    if !files.state.exists() {
        return Ok(StoredDrive { state: None, device: Some(StoredDevice::new(&Device::load(path)?)) });
    }
    let contents = state_file::read(&files.state)?;
    let state = NonVolatileState::from_bytes(&contents.state)
        .map_err(|error| DriveError::unusable_state(files.state.path(), &error))?;
    let device = match Device::load_in(&files.snapshot) {
        Ok(device) => Some(StoredDevice::new(&device)),
        Err(SnapshotError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    Ok(StoredDrive {
        state: Some(StoredState {
            clean: contents.header.clean.is_some(),
            file_bytes: contents.header.file_bytes,
            checksums: files.checksums.exists(),
            namespaces: state.namespaces.iter().map(|(nsid, namespace)| (nsid, namespace.clone())).collect(),
            state,
        }),
        device,
    })
}

impl StoredDevice {
    fn new(device: &Device) -> StoredDevice {
        let layout = device.layout();
        StoredDevice {
            config: device.config().clone(),
            capacity_bytes: u64::from(layout.logical_pages) * layout.page_bytes,
            effective_over_provisioning: layout.effective_over_provisioning(),
            page_bytes: layout.page_bytes,
            live_pages: device.live_pages(),
            logical_pages: layout.logical_pages,
            stats: device.stats().clone(),
            write_amplification: device.stats().write_amplification(),
            occupancy: device.occupancy(),
        }
    }
}

impl Display for StoredDrive {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        if let Some(state) = &self.state {
            write!(out, "{state}")?;
        }
        match &self.device {
            Some(device) => write!(out, "{device}"),
            None => out.write_str("no checkpoint of the device yet\n"),
        }
    }
}

impl Display for StoredState {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let how = if self.clean { "shut down cleanly" } else { "in use or not shut down cleanly" };
        let sums = if self.checksums { "with" } else { "without" };
        writeln!(out, "data file of {} {sums} checksums, {how}", HumanBytes(self.file_bytes))?;
        for (nsid, namespace) in &self.namespaces {
            let handles: Vec<String> = namespace.placement_handles.iter().map(|handle| handle.0.to_string()).collect();
            let bytes = HumanBytes(namespace.blocks * namespace.block_bytes());
            let metadata = match (namespace.metadata_bytes(), namespace.extended_metadata) {
                (0, _) => String::new(),
                (metadata_bytes, true) => format!(" extended by {metadata_bytes} of metadata"),
                (metadata_bytes, false) => format!(" with {metadata_bytes} of separate metadata"),
            };
            writeln!(
                out,
                "namespace {nsid}: {bytes} in {} blocks of {} bytes{metadata}, placement handles on RUH {}, {} \
                 written by hosts",
                namespace.blocks,
                namespace.block_bytes(),
                handles.join(" "),
                HumanBytes(namespace.host_bytes_written)
            )?;
        }
        let fdp = &self.state.fdp;
        if fdp.enabled {
            writeln!(
                out,
                "Flexible Data Placement: configuration {}, {} host events, {} controller events",
                fdp.configuration,
                fdp.events.host().iter().len(),
                fdp.events.controller().iter().len()
            )?;
        } else {
            writeln!(out, "Flexible Data Placement: disabled")?;
        }
        let smart = &self.state.smart;
        writeln!(
            out,
            "{} read and {} written by hosts, {} starts ({} after an unclean shutdown), {} media errors",
            HumanBytes(smart.host_bytes_read),
            HumanBytes(smart.host_bytes_written),
            smart.power_cycles,
            smart.unsafe_shutdowns,
            smart.media_errors
        )
    }
}

impl Display for StoredDevice {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let (stats, share) = (&self.stats, 100.0 * self.live_pages as f64 / f64::from(self.logical_pages.max(1)));
        let waf = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.3}"));
        writeln!(
            out,
            "device of {}, over-provisioning {:.1} %, {share:.1} % full",
            HumanBytes(self.capacity_bytes),
            100.0 * self.effective_over_provisioning
        )?;
        writeln!(
            out,
            "HBMW {} bytes, MBMW {} bytes, MBE {} bytes, write amplification {}",
            stats.host_bytes_written(),
            stats.media_bytes_written(),
            stats.media_bytes_erased(),
            waf(self.write_amplification)
        )?;
        for held in self.occupancy.iter().filter(|held| held.units > 0) {
            writeln!(
                out,
                "{}: {} reclaim units, {} of {} pages valid, write amplification {}",
                held.owner,
                held.units,
                held.valid_pages,
                held.pages,
                waf(stats.owner(held.owner).write_amplification())
            )?;
        }
        Ok(())
    }
}
