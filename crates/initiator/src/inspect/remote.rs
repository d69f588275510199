//! Sends commands to a drive over NVMe/TCP.

use std::io::ErrorKind;
use std::net::SocketAddr;

use nvme_spec::Status;
use nvme_spec::command::SubmissionEntry;

use super::{CommandPort, InspectError, QueueKind};
use crate::drive::DataPort;
use crate::tcp::{self, CommandData, CompletedCommand, HostOptions, InitiatorError, RemoteController};
use dhchap::Secret;

#[derive(Clone, Debug, Default)]
pub struct InitiatorIdentity {
    /// Host NQN, `None` for the default of the initiator.
    pub host_nqn: Option<String>,
    /// DH-HMAC-CHAP secret of the host, if the drive requires authentication.
    pub secret: Option<Secret>,
}

/// Connection to the first subsystem in the discovery log of an address.
pub struct Remote {
    name: String,
    controller: RemoteController,
    io: tcp::TcpQueue,
}

impl Remote {
    /// Finds the subsystem by discovery and connects to it.
    ///
    /// # Errors
    /// The address does not answer, has no subsystem, or rejects the host.
    pub fn connect(address: SocketAddr, visitor: &InitiatorIdentity) -> Result<Remote, InspectError> {
        let name = format!("tcp:{address}");
        let unreachable = |error: InitiatorError| InspectError::Unreachable {
            target: name.clone(),
            problem: match &error {
                InitiatorError::Io { source, .. } if source.kind() == ErrorKind::ConnectionRefused => {
                    "no server listens at this address. Start `warp serve --tcp` with it, or give the address that the \
                     server prints"
                        .to_string()
                }
                _ => error.to_string(),
            },
        };
        let options = |mut options: HostOptions| {
            if let Some(nqn) = &visitor.host_nqn {
                options.host_nqn.clone_from(nqn);
            }
            options.secret.clone_from(&visitor.secret);
            options
        };
        let found = RemoteController::connect(&options(HostOptions::new(address, "").discovery()))
            .and_then(|mut discovery| discovery.discover())
            .map_err(unreachable)?;
        let Some(entry) = found.first() else {
            return Err(InspectError::Unreachable {
                target: name,
                problem: "its discovery log contains no subsystem".to_string(),
            });
        };
        let nqn = String::from_utf8_lossy(&entry.subnqn);
        let nqn = nqn.trim_end_matches(['\0', ' ']);
        let open = || {
            let mut controller = RemoteController::connect(&options(HostOptions::new(address, nqn)))?;
            controller.set_queue_count(1)?;
            let io = controller.io_queue(1, 32)?;
            Ok((controller, io))
        };
        let (controller, io) = open().map_err(unreachable)?;
        Ok(Remote { name, controller, io })
    }
}

impl Remote {
    fn command(
        &mut self,
        queue: QueueKind,
        entry: SubmissionEntry,
        data: CommandData,
    ) -> Result<CompletedCommand, InspectError> {
        let answer = match queue {
            QueueKind::Admin => self.controller.admin(entry, data),
            QueueKind::Io => self.io.command(entry, data),
        };
        let answer = answer
            .map_err(|error| InspectError::Unreachable { target: self.name.clone(), problem: error.to_string() })?;
        match answer.status() {
            Status::SUCCESS => Ok(answer),
            status => Err(InspectError::Refused {
                command: format!("{} rejected command {:#04x}", self.name, entry.opcode),
                status,
            }),
        }
    }
}

impl CommandPort for Remote {
    fn receive(&mut self, queue: QueueKind, entry: SubmissionEntry, data: &mut [u8]) -> Result<u32, InspectError> {
        let answer = self.command(queue, entry, CommandData::ToHost(vec![0; data.len()]))?;
        let bytes = answer.data.len().min(data.len());
        data[..bytes].copy_from_slice(&answer.data[..bytes]);
        Ok(answer.entry.dw0.get())
    }
}

impl DataPort for Remote {
    fn send(&mut self, entry: SubmissionEntry, data: &[u8]) -> Result<u32, InspectError> {
        let answer = self.command(QueueKind::Io, entry, CommandData::ToController(data.to_vec()))?;
        Ok(answer.entry.dw0.get())
    }
}
