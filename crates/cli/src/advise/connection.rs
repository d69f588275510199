//! Connection of `warp drive advise` to the drive, re-established after a short loss.

use std::net::SocketAddr;
use std::time::Duration;

use initiator::inspect::passthrough::Passthrough;
use initiator::inspect::remote::{Remote, Visitor};
use initiator::inspect::watch::{Namespace, Sample, WatchError};
use initiator::inspect::{CommandPort, InspectError, identify};
use nvme_spec::fdp::FdpEventType;
use nvme_spec::identify::Cns;

use super::Interrupt;
use crate::arguments::Advise;
use crate::target::Target;
use crate::{AnyError, bad_option};

/// Delays before each attempt to reconnect. A restart of `warp serve` takes seconds.
const RECONNECT_AFTER: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// Connection to a namespace of a drive.
pub struct DriveConnection {
    name: String,
    target: Target,
    port: Box<dyn CommandPort>,
    pub namespace: Namespace,
}

/// Result of an attempt to read the logs.
pub enum Reading {
    /// The logs were read, after this number of attempts to reconnect.
    Taken { sample: Box<Sample>, attempts: usize },
    /// Ctrl-C was pressed during a reconnection.
    Stopped,
}

impl DriveConnection {
    pub fn open(command: &Advise) -> Result<DriveConnection, AnyError> {
        let name = command.target.as_str();
        let target = Target::parse_drive("warp drive advise", name, &command.host)?;
        match &target {
            Target::Tcp(address, visitor) => {
                let port = Box::new(Remote::connect(*address, visitor)?);
                DriveConnection::found(command, target, port, command.namespace.unwrap_or(1))
            }
            Target::Device(path) | Target::File(path) => {
                let mut port = Passthrough::open(path)?;
                let Some(nsid) = command.namespace.or_else(|| port.namespace()) else {
                    // A file that is not an NVMe device fails here.
                    identify(&mut port, Cns::Controller, 0)?;
                    let problem = format!("{name} is a controller. Give the device of a namespace, such as {name}n1");
                    return Err(bad_option("warp drive advise", problem).into());
                };
                DriveConnection::found(command, target, Box::new(port), nsid)
            }
        }
    }

    fn found(
        command: &Advise,
        target: Target,
        mut port: Box<dyn CommandPort>,
        nsid: u32,
    ) -> Result<DriveConnection, AnyError> {
        let name = command.target.clone();
        let namespace =
            Namespace::find(&mut port, nsid, command.endurance_group).map_err(|error| named(&name, error))?;
        Ok(DriveConnection {
            name,
            target,
            port,
            namespace,
        })
    }

    /// Target as given on the command line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Block device of the namespace on this machine, `None` over NVMe/TCP.
    pub fn block_device(&self) -> Option<String> {
        let Target::Device(path) = &self.target else {
            return None;
        };
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(match name.strip_prefix("ng") {
            Some(numbers) => format!("nvme{numbers}"),
            None => name,
        })
    }

    /// Device name for nvme-cli commands.
    pub fn device(&self) -> String {
        self.block_device()
            .map_or_else(|| "DEVICE".to_string(), |name| format!("/dev/{name}"))
    }

    /// Placement handles for which an event is not enabled, `None` if the drive does not answer. A
    /// lost drive is detected by the next reading, which may reconnect.
    pub fn handles_without_event(&mut self, event: FdpEventType) -> Option<Vec<u16>> {
        self.namespace.handles_without_event(&mut self.port, event).ok()
    }

    /// Reads the logs. If a drive over NVMe/TCP does not answer, this function tries to reconnect
    /// for some seconds.
    pub fn sample(&mut self, stop: &Interrupt) -> Result<Reading, AnyError> {
        let error = match self.namespace.sample(&mut self.port) {
            Ok(sample) => {
                return Ok(Reading::Taken {
                    sample: Box::new(sample),
                    attempts: 0,
                });
            }
            Err(error) => error,
        };
        match (&self.target, &error) {
            (Target::Tcp(address, visitor), WatchError::Inspect(InspectError::Unreachable { .. })) => {
                let (address, visitor) = (*address, visitor.clone());
                self.reach_again(address, &visitor, stop)
            }
            _ => Err(named(&self.name, error)),
        }
    }

    fn reach_again(&mut self, address: SocketAddr, visitor: &Visitor, stop: &Interrupt) -> Result<Reading, AnyError> {
        let mut last = String::new();
        for (attempt, wait) in RECONNECT_AFTER.into_iter().enumerate() {
            if stop.within(wait) {
                return Ok(Reading::Stopped);
            }
            match self.reconnect(address, visitor) {
                Ok(sample) => {
                    return Ok(Reading::Taken {
                        sample: Box::new(sample),
                        attempts: attempt + 1,
                    });
                }
                Err(WatchError::Inspect(InspectError::Unreachable { problem, .. })) => last = problem,
                Err(error) => return Err(named(&self.name, error)),
            }
        }
        let waited: Duration = RECONNECT_AFTER.iter().sum();
        Err(format!(
            "{}: the connection to the drive is lost, and {} attempts to reconnect in {:.0} s failed. The last \
             attempt failed with \"{last}\"",
            self.name,
            RECONNECT_AFTER.len(),
            waited.as_secs_f64(),
        )
        .into())
    }

    fn reconnect(&mut self, address: SocketAddr, visitor: &Visitor) -> Result<Sample, WatchError> {
        let mut port = Remote::connect(address, visitor)?;
        let found = Namespace::find(&mut port, self.namespace.nsid, Some(self.namespace.endurance_group))?;
        if found != self.namespace {
            return Err(WatchError::Changed(self.namespace.nsid));
        }
        let sample = found.sample(&mut port)?;
        self.port = Box::new(port);
        Ok(sample)
    }
}

/// Prefixes an error with the drive's name, unless the error begins with the name.
fn named(name: &str, error: WatchError) -> AnyError {
    let text = error.to_string();
    if text.starts_with(name) {
        text.into()
    } else {
        format!("{name}: {text}").into()
    }
}
