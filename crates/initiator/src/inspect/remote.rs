//! Sends commands to a drive over NVMe/TCP.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Instant;

use nvme_spec::Status;
use nvme_spec::command::SubmissionEntry;

use super::{CommandPort, InspectError, QueueKind};
use crate::drive::{CommandSource, CompletionSink, DataPort, TransferCommand, TransferData};
use crate::tcp::{self, CommandData, CompletedCommand, HostOptions, InitiatorError, RemoteController};
use dhchap::Secret;

#[derive(Clone, Debug, Default)]
pub struct InitiatorIdentity {
    /// Host NQN, `None` for the default of the initiator.
    pub host_nqn: Option<String>,
    /// DH-HMAC-CHAP secret of the host, if the drive requires authentication.
    pub secret: Option<Secret>,
}

/// Maximum length of an NVMe Qualified Name.
const NQN_BYTES_MAX: usize = 223;
const IO_ENTRIES: u16 = 128;

/// Connection to the first subsystem in the discovery log of an address.
pub struct Remote {
    name: String,
    controller: RemoteController,
    io: tcp::TcpQueue,
}

impl Remote {
    /// Finds the subsystem by discovery and connects to it.
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
        let too_long = |what: &str| InspectError::Unreachable {
            target: name.clone(),
            problem: format!("{what} has more than {NQN_BYTES_MAX} bytes, the maximum of the standard"),
        };
        if visitor.host_nqn.as_ref().is_some_and(|nqn| nqn.len() > NQN_BYTES_MAX) {
            return Err(too_long("the host NQN"));
        }
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
        if nqn.len() > NQN_BYTES_MAX {
            return Err(too_long("the subsystem NQN of its discovery log"));
        }
        let open = || {
            let mut controller = RemoteController::connect(&options(HostOptions::new(address, nqn)))?;
            controller.set_queue_count(1)?;
            let io = controller.io_queue(1, IO_ENTRIES)?;
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
            status => Err(self.refused(entry.opcode, status)),
        }
    }

    fn refused(&self, opcode: u8, status: Status) -> InspectError {
        InspectError::Refused { command: format!("{} rejected command {opcode:#04x}", self.name), status }
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
    fn transfer(
        &mut self,
        depth: usize,
        write_data: &[u8],
        next: &mut CommandSource<'_>,
        completed: &mut CompletionSink<'_>,
    ) -> Result<(), InspectError> {
        let unreachable =
            |error: InitiatorError| InspectError::Unreachable { target: self.name.clone(), problem: error.to_string() };
        let depth = depth.min(usize::from(IO_ENTRIES) - 1);
        // Commands in flight with their times, by command identifier.
        let mut in_flight: HashMap<u16, (TransferCommand, Instant)> = HashMap::new();
        // Used buffers of writes, by length.
        let mut buffers: HashMap<usize, Vec<Vec<u8>>> = HashMap::new();
        let (mut refused, mut ended) = (None, false);
        loop {
            while !ended && refused.is_none() && in_flight.len() < depth {
                let Some(command) = next() else {
                    ended = true;
                    break;
                };
                let data = match command.data {
                    TransferData::Write { bytes } => {
                        let used = buffers.get_mut(&bytes).and_then(Vec::pop);
                        CommandData::ToController(used.unwrap_or_else(|| write_data[..bytes].to_vec()))
                    }
                    TransferData::Read { bytes } => CommandData::ToHost(vec![0; bytes]),
                    TransferData::Ranges(ranges) => CommandData::ToController(ranges.to_vec()),
                };
                let cid = self.io.submit(command.entry, data);
                in_flight.insert(cid, (command, Instant::now()));
            }
            if in_flight.is_empty() {
                return refused.map_or(Ok(()), Err);
            }
            let mut answer = Some(self.io.wait().map_err(unreachable)?);
            while let Some(done) = answer {
                let (command, sent) = in_flight.remove(&done.cid).expect("the queue returns what it was given");
                match done.status() {
                    Status::SUCCESS => completed(&command, sent.elapsed()),
                    status => refused = Some(self.refused(command.entry.opcode, status)),
                }
                if let TransferData::Write { bytes } = command.data {
                    buffers.entry(bytes).or_default().push(done.data);
                }
                answer = self.io.poll();
            }
        }
    }
}
