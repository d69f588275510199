//! Connection of `warp drive advise` to the drive, re-established after a short loss.

use std::net::SocketAddr;
use std::time::Duration;

use initiator::inspect::feedback_logs::{LogSample, MonitoredNamespace, WatchError};
use initiator::inspect::passthrough::Passthrough;
use initiator::inspect::remote::{InitiatorIdentity, Remote};
use initiator::inspect::{CommandPort, InspectError, identify};
use nvme_spec::fdp::FdpEventType;
use nvme_spec::identify::Cns;

use super::InterruptFlag;
use crate::arguments::AdviseArgs;
use crate::target::{DriveTarget, named};
use crate::{AnyError, bad_option};

/// Delays before each attempt to reconnect. A restart of `warp serve` takes seconds.
const RECONNECT_AFTER: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

pub struct DriveConnection {
    /// Target as given on the command line.
    pub name: String,
    target: DriveTarget,
    port: Box<dyn CommandPort>,
    pub namespace: MonitoredNamespace,
}

impl DriveConnection {
    pub fn open(command: &AdviseArgs) -> Result<DriveConnection, AnyError> {
        let name = command.target.as_str();
        let target = DriveTarget::parse_drive("warp drive advise", name, &command.host)?;
        match &target {
            DriveTarget::Tcp(address, identity) => {
                let port = Box::new(Remote::connect(*address, identity)?);
                DriveConnection::new(command, target, port, command.namespace.unwrap_or(1))
            }
            DriveTarget::Device(path) | DriveTarget::File(path) => {
                let mut port = Passthrough::open(path)?;
                let Some(nsid) = command.namespace.or_else(|| port.namespace()) else {
                    // A file that is not an NVMe device fails here.
                    identify(&mut port, Cns::Controller, 0)?;
                    let problem = format!("{name} is a controller. Give the device of a namespace, such as {name}n1");
                    return Err(bad_option("warp drive advise", problem).into());
                };
                DriveConnection::new(command, target, Box::new(port), nsid)
            }
        }
    }

    fn new(
        command: &AdviseArgs,
        target: DriveTarget,
        mut port: Box<dyn CommandPort>,
        nsid: u32,
    ) -> Result<DriveConnection, AnyError> {
        let name = command.target.clone();
        let namespace = MonitoredNamespace::find(&mut port, nsid, command.endurance_group);
        let namespace = namespace.map_err(|error| named(&name, &error))?;
        Ok(DriveConnection { name, target, port, namespace })
    }

    /// Block device of the namespace on this machine, `None` over NVMe/TCP.
    pub fn block_device(&self) -> Option<String> {
        let DriveTarget::Device(path) = &self.target else {
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
        self.block_device().map_or_else(|| "DEVICE".to_string(), |name| format!("/dev/{name}"))
    }

    /// Placement handles for which an event is not enabled, `None` if the drive does not answer. A
    /// lost drive is detected by the next reading, which may reconnect.
    pub fn handles_without_event(&mut self, event: FdpEventType) -> Option<Vec<u16>> {
        self.namespace.handles_without_event(&mut self.port, event).ok()
    }

    /// Reads the logs. Returns them with the number of attempts to reconnect, or `None` after Ctrl-C. If
    /// a drive over NVMe/TCP does not answer, this function tries to reconnect for some seconds.
    pub fn sample(&mut self, stop: &InterruptFlag) -> Result<Option<(LogSample, usize)>, AnyError> {
        match (&self.target, self.namespace.sample(&mut self.port)) {
            (_, Ok(sample)) => Ok(Some((sample, 0))),
            (DriveTarget::Tcp(address, identity), Err(WatchError::Inspect(InspectError::Unreachable { .. }))) => {
                let (address, identity) = (*address, identity.clone());
                self.reconnect_tcp(address, &identity, stop)
            }
            (_, Err(error)) => Err(named(&self.name, &error).into()),
        }
    }

    fn reconnect_tcp(
        &mut self,
        address: SocketAddr,
        identity: &InitiatorIdentity,
        stop: &InterruptFlag,
    ) -> Result<Option<(LogSample, usize)>, AnyError> {
        let mut last = String::new();
        for (attempt, wait) in RECONNECT_AFTER.into_iter().enumerate() {
            if stop.is_pressed_within(wait) {
                return Ok(None);
            }
            match self.reconnect(address, identity) {
                Ok(sample) => return Ok(Some((sample, attempt + 1))),
                Err(WatchError::Inspect(InspectError::Unreachable { problem, .. })) => last = problem,
                Err(error) => return Err(named(&self.name, &error).into()),
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

    fn reconnect(&mut self, address: SocketAddr, identity: &InitiatorIdentity) -> Result<LogSample, WatchError> {
        let mut port = Remote::connect(address, identity)?;
        let namespace = MonitoredNamespace::find(&mut port, self.namespace.nsid, Some(self.namespace.endurance_group))?;
        if namespace != self.namespace {
            return Err(WatchError::Changed(self.namespace.nsid));
        }
        let sample = namespace.sample(&mut port)?;
        self.port = Box::new(port);
        Ok(sample)
    }
}
