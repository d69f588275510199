//! Target of a command: a drive on NVMe/TCP, a device of this machine, or a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use experiment::LabError;
use initiator::drive::{DataPort, OpenNamespace};
use initiator::inspect::passthrough::Passthrough;
use initiator::inspect::remote::{InitiatorIdentity, Remote};
use initiator::inspect::{CommandPort, FdpReport, report};
use ssd::SnapshotError;
use target::storage::{DriveError, StoredDrive, stored};

use crate::arguments::HostCredentials;
use crate::{AnyError, bad_option};

/// Namespace that commands use on NVMe/TCP.
const REMOTE_NSID: u32 = 1;
const ENDURANCE_GROUP: u16 = 1;

pub enum DriveTarget {
    /// Drive on NVMe/TCP with the host's credentials.
    Tcp(SocketAddr, InitiatorIdentity),
    Device(PathBuf),
    File(PathBuf),
}

impl DriveTarget {
    /// Parses `text`, the value of `option`.
    pub fn parse(option: &str, text: &str, host: &HostCredentials) -> Result<DriveTarget, LabError> {
        if let Some(address) = text.strip_prefix("tcp:") {
            let secret = host.secret.as_deref().map(str::parse).transpose();
            let identity = InitiatorIdentity {
                host_nqn: host.host_nqn.clone(),
                secret: secret.map_err(|error| bad_option("--secret", error))?,
            };
            let problem = || format!("{text:?} is not an address. Give tcp:ADDRESS:PORT, such as tcp:127.0.0.1:4420");
            let address = address.parse().map_err(|_| bad_option(option, problem()))?;
            return Ok(DriveTarget::Tcp(address, identity));
        }
        if host.host_nqn.is_some() {
            let problem = format!("{text} is not an NVMe/TCP target. Remove the option, or give tcp:ADDRESS:PORT");
            return Err(bad_option("--host-nqn", problem));
        }
        let path = PathBuf::from(text);
        Ok(if text.starts_with("/dev/") { DriveTarget::Device(path) } else { DriveTarget::File(path) })
    }

    /// Parses a target that must be a namespace of a drive.
    pub fn parse_drive(option: &str, text: &str, host: &HostCredentials) -> Result<DriveTarget, LabError> {
        match DriveTarget::parse(option, text, host)? {
            DriveTarget::File(_) => {
                let remedy = "Give tcp:ADDRESS:PORT, or the device of a namespace, such as /dev/nvme0n1 or \
                               /dev/ng0n1";
                Err(bad_option(option, format!("{text:?} is not a drive. {remedy}")))
            }
            drive => Ok(drive),
        }
    }

    /// Reads the drive's FDP logs. Returns the path if the target is a file.
    pub fn report(&self, endurance_group: Option<u16>) -> Result<Result<FdpReport, &Path>, AnyError> {
        let group = endurance_group.unwrap_or(ENDURANCE_GROUP);
        match self {
            DriveTarget::Tcp(address, identity) => Ok(Ok(report(&mut Remote::connect(*address, identity)?, group)?)),
            DriveTarget::Device(path) => Ok(Ok(report(&mut Passthrough::open(path)?, group)?)),
            DriveTarget::File(path) if endurance_group.is_some() => {
                let problem = format!("{} is a file, which has one endurance group. Remove the option", path.display());
                Err(bad_option("--endurance-group", problem).into())
            }
            DriveTarget::File(path) => Ok(Err(path)),
        }
    }
}

/// Open namespace of a drive that is reached in any way.
pub type AnyDrive = OpenNamespace<Box<dyn DataPort + Send>>;

/// Opens a namespace that the command overwrites. A namespace of this machine
/// must be unused, and `--overwrite` must confirm it.
pub fn open_for_writing(
    option: &str,
    text: &str,
    host: &HostCredentials,
    is_confirmed: bool,
) -> Result<AnyDrive, AnyError> {
    let (port, nsid): (Box<dyn DataPort + Send>, u32) = match DriveTarget::parse_drive(option, text, host)? {
        DriveTarget::Tcp(address, identity) => (Box::new(Remote::connect(address, &identity)?), REMOTE_NSID),
        DriveTarget::Device(path) | DriveTarget::File(path) => {
            if !is_confirmed {
                let problem = format!("the command destroys all data on {text}. Confirm this with --overwrite");
                return Err(bad_option(option, problem).into());
            }
            let port = Passthrough::open_unused(&path)?;
            let nsid = namespace_of(option, text, &port)?;
            (Box::new(port), nsid)
        }
    };
    Ok(OpenNamespace::open(port, nsid).map_err(|error| named(text, &error))?)
}

/// Opens a drive for reading, with the identifier of its namespace.
pub fn open_for_reading(
    option: &str,
    text: &str,
    host: &HostCredentials,
) -> Result<(Box<dyn CommandPort>, u32), AnyError> {
    match DriveTarget::parse_drive(option, text, host)? {
        DriveTarget::Tcp(address, identity) => Ok((Box::new(Remote::connect(address, &identity)?), REMOTE_NSID)),
        DriveTarget::Device(path) | DriveTarget::File(path) => {
            let port = Passthrough::open(&path)?;
            let nsid = namespace_of(option, text, &port)?;
            Ok((Box::new(port), nsid))
        }
    }
}

/// Message of a drive's error, with the name of the drive.
pub fn named(target: &str, error: &dyn std::fmt::Display) -> String {
    let message = error.to_string();
    if message.starts_with(target) { message } else { format!("{target}: {message}") }
}

fn namespace_of(option: &str, text: &str, port: &Passthrough) -> Result<u32, LabError> {
    port.namespace().ok_or_else(|| {
        let problem = format!("{text} is not the device of an NVMe namespace. Give one, such as /dev/nvme0n1");
        bad_option(option, problem)
    })
}

/// Reads the data file of a served drive, or a snapshot.
pub fn stored_drive(path: &Path) -> Result<StoredDrive, AnyError> {
    let problem = |problem: &str| {
        let remedy = "Give the data file of a drive (`warp serve --data FILE`), a snapshot (`warp run --save-snapshot \
                      FILE`), tcp:ADDRESS:PORT or a device such as /dev/nvme0";
        bad_option(&path.display().to_string(), format!("{problem}. {remedy}"))
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(problem("there is no such file").into());
        }
        Ok(found) if !found.is_file() => {
            if let Err(error) = base::input::open(path) {
                return Err(problem(&error.to_string()).into());
            }
        }
        Ok(found) if found.len() == 0 => return Err(problem("the file is empty").into()),
        _ => {}
    }
    match stored(path) {
        Err(DriveError::Snapshot(SnapshotError::Foreign { .. })) => {
            Err(problem("the file is neither the data of a drive nor a snapshot").into())
        }
        stored => Ok(stored?),
    }
}
