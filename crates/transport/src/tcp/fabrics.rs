//! Fabrics commands, and what a connection may do before and after Connect.
//!
//! ```text
//! no queue         -> Connect only
//! queue, unproved  -> Authentication Send and Receive only
//! queue            -> properties (admin queue), the discovery log (discovery controllers), everything else: nvme
//! ```
//!
//! Not implemented: Disconnect, which is optional and which Linux does not use; a host ends its connections instead.

use std::sync::Arc;

use nvme::controller::QUEUE_ENTRIES_MAX;
use nvme::{ControllerKind, Failure, Host, Outcome, Parameter, PropertyEffect, Reply, Subsystem, Transfer, Transport};
use nvme_spec::auth::{SECURITY_PROTOCOL, SECURITY_PROTOCOL_SPECIFIC};
use nvme_spec::command::GetLogPageCdw10;
use nvme_spec::fabrics::{
    AuthenticationCommand, AuthenticationRequirements, CNTLID_DYNAMIC, ConnectCommand, ConnectData, DISCOVERY_NQN,
    FabricsCommandType, NQN_MAX_LENGTH, OPCODE, PROPERTY_SIZE_4, PROPERTY_SIZE_8, PropertyGetCommand,
    PropertySetCommand,
};
use nvme_spec::register::Property;
use nvme_spec::{AdminOpcode, LogId, Status, SubmissionEntry};
use ssd::Nanos;
use zerocopy::FromBytes;

use super::association::{Association, JoinError, Link};
use super::auth::{Authenticator, Credentials, MESSAGE_BYTES_MAX};
use super::discovery;
use super::session::Session;

/// A connected queue.
pub struct Queue {
    /// Its association.
    pub association: Arc<Association>,
    /// This connection in it.
    pub link: Arc<Link>,
    /// Queue identifier; 0 is the admin queue.
    pub id: u16,
    /// Size of the queue.
    pub entries: u16,
    /// Whether the host wants to know the submission queue's head.
    pub flow_control: bool,
    kind: ControllerKind,
    head: u16,
    authenticator: Option<Authenticator>,
}

impl Queue {
    /// A command is complete: one more entry of the submission queue is free. Returns its head; without flow control
    /// FFFFh for Connect, which agrees to that, and nothing from then on.
    pub fn next_head(&mut self) -> u16 {
        if !self.flow_control {
            return std::mem::take(&mut self.head);
        }
        self.head = (self.head + 1) % self.entries;
        self.head
    }

    /// Whether the host may do what it likes.
    pub fn is_authenticated(&self) -> bool {
        self.authenticator.as_ref().is_none_or(Authenticator::is_authenticated)
    }
}

/// A Connect that is refused: what the completion says, and why.
struct Refusal {
    status: Status,
    result: u64,
    retry: bool,
}

impl Refusal {
    fn new(status: Status) -> Refusal {
        Refusal {
            status,
            result: 0,
            retry: false,
        }
    }

    /// Connect Invalid Parameters, with the offset of the parameter in the command (IATTR 0).
    fn command(offset: u16) -> Refusal {
        Refusal {
            result: u64::from(offset),
            ..Refusal::new(Status::CONNECT_INVALID_PARAMETERS)
        }
    }

    /// The same, with the offset of the parameter in the data (IATTR 1).
    fn data(offset: u16) -> Refusal {
        Refusal {
            result: 1 << 16 | u64::from(offset),
            ..Refusal::new(Status::CONNECT_INVALID_PARAMETERS)
        }
    }

    fn reply(&self) -> Reply {
        Reply {
            status: self.status,
            do_not_retry: !self.retry,
            ..Reply::success(self.result)
        }
    }
}

// Offsets of the parameters that are named in a refusal.
const QID: u16 = std::mem::offset_of!(ConnectCommand, qid) as u16;
const SQSIZE: u16 = std::mem::offset_of!(ConnectCommand, sqsize) as u16;
const CNTLID: u16 = std::mem::offset_of!(ConnectData, cntlid) as u16;
const SUBNQN: u16 = std::mem::offset_of!(ConnectData, subnqn) as u16;
const HOSTNQN: u16 = std::mem::offset_of!(ConnectData, hostnqn) as u16;

/// A name out of its field: terminated by a zero, as long as names may be, and text.
fn name(field: &[u8; 256]) -> Option<&str> {
    let length = field.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&field[..length]).ok()?;
    ((1..=NQN_MAX_LENGTH).contains(&length) && name.starts_with("nqn.")).then_some(name)
}

fn immediately(now: Nanos, reply: Reply) -> Outcome {
    Outcome {
        reply: Some(reply),
        due: now,
        durable: None,
    }
}

fn as_command<T: FromBytes>(entry: &SubmissionEntry) -> T {
    T::read_from_bytes(zerocopy::IntoBytes::as_bytes(entry)).expect("every command is 64 bytes")
}

/// The fabrics command type is in the byte where other commands have the first one of the namespace identifier.
fn fabrics_type(entry: &SubmissionEntry) -> Option<FabricsCommandType> {
    FabricsCommandType::from_u8(entry.nsid.get() as u8)
}

/// Place of the fabrics command type.
const FCTYPE: Parameter = Parameter::dword(1, 0);

impl Session {
    /// What data a command moves.
    pub(super) fn transfer(&self, subsystem: &Subsystem, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        let fabrics = entry.opcode == OPCODE;
        let Some(queue) = &self.queue else {
            if fabrics && fabrics_type(entry) == Some(FabricsCommandType::Connect) {
                return Ok(Transfer::to_controller(size_of::<ConnectData>() as u64));
            }
            let cause = "the queue is not connected";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        };
        if fabrics {
            return self.fabrics_transfer(queue, entry);
        }
        if !queue.is_authenticated() {
            return Err(unauthenticated());
        }
        subsystem.transfer(queue.association.controller(), queue.id, entry)
    }

    fn fabrics_transfer(&self, queue: &Queue, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        let unknown = |cause| Err(Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(FCTYPE));
        match fabrics_type(entry) {
            Some(FabricsCommandType::Connect) => {
                let cause = "the queue is connected already";
                Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause))
            }
            Some(FabricsCommandType::AuthenticationSend) => {
                let bytes = authentication_bytes(queue, entry)?;
                Ok(Transfer::to_controller(bytes))
            }
            Some(FabricsCommandType::AuthenticationReceive) => {
                let bytes = authentication_bytes(queue, entry)?;
                Ok(Transfer::to_host(bytes))
            }
            _ if !queue.is_authenticated() => Err(unauthenticated()),
            Some(FabricsCommandType::PropertyGet | FabricsCommandType::PropertySet) if queue.id == 0 => {
                Ok(Transfer::NONE)
            }
            Some(FabricsCommandType::PropertyGet | FabricsCommandType::PropertySet) => {
                unknown("properties belong to the admin queue")
            }
            _ => unknown("this fabrics command type is not supported"),
        }
    }

    /// Carries out a command that [`Session::transfer`] allowed.
    pub(super) fn execute(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        entry: &SubmissionEntry,
        data: &mut Vec<u8>,
    ) -> Outcome {
        let Some(queue) = &mut self.queue else {
            let reply = self.connect(subsystem, now, entry, data);
            return immediately(now, reply);
        };
        let controller = queue.association.controller();
        if entry.opcode != OPCODE {
            if queue.kind == ControllerKind::Discovery && is_discovery_log(entry) {
                let entries = discovery::log(&self.context, self.surroundings.local);
                return match discovery::read(&entries, entry, data) {
                    Ok(()) => immediately(now, Reply::success(0)),
                    Err(failure) => immediately(now, self.fail(subsystem, entry, failure)),
                };
            }
            return subsystem.execute(now, controller, queue.id, entry, data);
        }
        match fabrics_type(entry) {
            Some(FabricsCommandType::AuthenticationSend) => {
                let authenticator = queue.authenticator.as_mut().expect("checked with the transfer");
                authenticator.send(data);
                self.after_authentication();
                immediately(now, Reply::success(0))
            }
            Some(FabricsCommandType::AuthenticationReceive) => {
                let bytes = as_command::<AuthenticationCommand>(entry).length.get() as usize;
                let authenticator = queue.authenticator.as_mut().expect("checked with the transfer");
                *data = authenticator.receive();
                let fits = data.len() <= bytes;
                data.resize(bytes, 0);
                self.after_authentication();
                if fits {
                    return immediately(now, Reply::success(0));
                }
                data.clear();
                let cause = "the message is longer than the host has room for";
                let failure = Failure::invalid_field(Parameter::dword(11, 0), cause);
                immediately(now, self.fail(subsystem, entry, failure))
            }
            Some(FabricsCommandType::PropertyGet) => {
                let reply = match property_get(subsystem, controller, entry) {
                    Ok(value) => Reply::success(value),
                    Err(failure) => self.fail(subsystem, entry, failure),
                };
                immediately(now, reply)
            }
            _ => self.property_set(subsystem, now, entry),
        }
    }

    /// The reply to a command that fails.
    pub(super) fn fail(&mut self, subsystem: &mut Subsystem, entry: &SubmissionEntry, failure: Failure) -> Reply {
        match &self.queue {
            Some(queue) => subsystem.fail(queue.association.controller(), queue.id, entry, failure),
            None => Reply {
                status: failure.status,
                do_not_retry: failure.do_not_retry,
                ..Reply::success(0)
            },
        }
    }

    fn after_authentication(&mut self) {
        let queue = self.queue.as_ref().expect("a connected queue");
        let authenticator = queue.authenticator.as_ref().expect("checked with the transfer");
        if authenticator.is_authenticated() {
            queue.link.establish();
        }
        self.closing |= authenticator.has_failed();
    }

    // ------------------------------------------------------------------------------------------------- Connect --

    fn connect(&mut self, subsystem: &mut Subsystem, now: Nanos, entry: &SubmissionEntry, data: &[u8]) -> Reply {
        let command: ConnectCommand = as_command(entry);
        let data = ConnectData::ref_from_bytes(data).expect("the length was checked with the data pointer");
        match self.try_connect(subsystem, now, &command, data) {
            Err(refusal) => refusal.reply(),
            Ok(queue) => {
                let requirements = AuthenticationRequirements::new().with_atr(queue.authenticator.is_some());
                let requirements = u64::from(requirements.into_bits().get());
                let controller = u64::from(queue.association.controller());
                if queue.is_authenticated() {
                    queue.link.establish();
                }
                self.queue = Some(queue);
                Reply::success(controller | requirements << 16)
            }
        }
    }

    /// The checks of Connect (Base Specification, "Connect Command and Response"), in the order of trust: who it is, what
    /// it wants, whether there is room for it.
    fn try_connect(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        command: &ConnectCommand,
        data: &ConnectData,
    ) -> Result<Queue, Refusal> {
        if command.recfmt.get() != 0 {
            return Err(Refusal::new(Status::CONNECT_INCOMPATIBLE_FORMAT));
        }
        let host_nqn = name(&data.hostnqn).ok_or(Refusal::data(HOSTNQN))?;
        let subsystem_nqn = name(&data.subnqn).ok_or(Refusal::data(SUBNQN))?;
        let kind = match subsystem_nqn {
            DISCOVERY_NQN => ControllerKind::Discovery,
            other if other == self.context.subsystem_nqn => ControllerKind::Io,
            _ => return Err(Refusal::data(SUBNQN)),
        };
        let authenticator = self.authenticator(host_nqn, subsystem_nqn)?;
        let queue_id = command.qid.get();
        let entries = u32::from(command.sqsize.get()) + 1;
        if !(2..=QUEUE_ENTRIES_MAX).contains(&entries) {
            return Err(Refusal::command(SQSIZE));
        }
        let io_queues = match kind {
            ControllerKind::Io => subsystem.config().io_queues_max,
            ControllerKind::Discovery => 0,
        };
        if queue_id > io_queues {
            return Err(Refusal::command(QID));
        }
        if self.context.associations.connections_of(host_nqn) >= self.context.options.limits.connections_per_host {
            return Err(Refusal {
                retry: true,
                ..Refusal::new(Status::CONNECT_CONTROLLER_BUSY)
            });
        }
        let host = Host {
            nqn: host_nqn.to_string(),
            id: data.hostid,
        };
        let link = self.link(queue_id);
        let association = match queue_id {
            0 => self.connect_admin(subsystem, now, kind, host, &link, command, data)?,
            _ => self.connect_io(subsystem, &host, &link, data)?,
        };
        let flow_control = !command.cattr.dissqfc();
        Ok(Queue {
            association,
            link,
            id: queue_id,
            entries: entries as u16,
            flow_control,
            kind,
            head: if flow_control { 0 } else { u16::MAX },
            authenticator,
        })
    }

    /// How the host has to prove who it is; `None` if it does not have to.
    fn authenticator(&self, host_nqn: &str, subsystem_nqn: &str) -> Result<Option<Authenticator>, Refusal> {
        let options = &self.context.options;
        if options.hosts.is_empty() {
            return Ok(None);
        }
        let allowed = options.hosts.iter().find(|allowed| allowed.nqn == host_nqn);
        let allowed = allowed.ok_or(Refusal::new(Status::CONNECT_INVALID_HOST))?;
        let Some(secret) = &allowed.secret else {
            return Ok(None);
        };
        let controller_secret = allowed.controller_secret.as_ref();
        Ok(Some(Authenticator::new(Credentials {
            host_nqn: host_nqn.to_string(),
            subsystem_nqn: subsystem_nqn.to_string(),
            host_key: secret.key_of(host_nqn),
            controller_key: controller_secret.map(|secret| secret.key_of(subsystem_nqn)),
        })))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one Connect")]
    fn connect_admin(
        &self,
        subsystem: &mut Subsystem,
        now: Nanos,
        kind: ControllerKind,
        host: Host,
        link: &Arc<Link>,
        command: &ConnectCommand,
        data: &ConnectData,
    ) -> Result<Arc<Association>, Refusal> {
        // Controllers are made for hosts that come (dynamic controller model).
        if data.cntlid.get() != CNTLID_DYNAMIC {
            return Err(Refusal::data(CNTLID));
        }
        let connected = subsystem.connect(now, Transport::Fabrics, kind, host.clone());
        let controller = connected.map_err(|failure| Refusal {
            retry: !failure.do_not_retry,
            ..Refusal::new(failure.status)
        })?;
        subsystem.set_keep_alive(controller, command.kato.get());
        subsystem.set_waker(controller, Arc::clone(&self.surroundings.waker));
        Ok(self
            .context
            .associations
            .begin(subsystem, controller, host, Arc::clone(link)))
    }

    fn connect_io(
        &self,
        subsystem: &mut Subsystem,
        host: &Host,
        link: &Arc<Link>,
        data: &ConnectData,
    ) -> Result<Arc<Association>, Refusal> {
        let controller = data.cntlid.get();
        let associations = &self.context.associations;
        let joined = associations.join(subsystem, controller, host, Arc::clone(link));
        joined.map_err(|error| match error {
            JoinError::NoController => Refusal::data(CNTLID),
            JoinError::QueueInUse | JoinError::NotReady => Refusal::new(Status::COMMAND_SEQUENCE_ERROR),
        })
    }

    // ---------------------------------------------------------------------------------------------- properties --

    fn property_set(&mut self, subsystem: &mut Subsystem, now: Nanos, entry: &SubmissionEntry) -> Outcome {
        let command: PropertySetCommand = as_command(entry);
        let property = match property(command.attrib.size(), command.ofst.get(), &[Property::Cc]) {
            Ok(property) => property,
            Err(failure) => return immediately(now, self.fail(subsystem, entry, failure)),
        };
        let association = &self.queue.as_ref().expect("a connected queue").association;
        let controller = association.controller();
        match subsystem.property_set(now, controller, property, command.value.get()) {
            PropertyEffect::Reset => self.context.associations.reset(subsystem, association),
            PropertyEffect::Shutdown => return self.shut_down(subsystem, now, controller),
            PropertyEffect::None | PropertyEffect::Enabled | PropertyEffect::SubsystemReset => {}
        }
        immediately(now, Reply::success(0))
    }

    /// The host may see the shutdown complete when everything is durable.
    fn shut_down(&mut self, subsystem: &mut Subsystem, now: Nanos, controller: u16) -> Outcome {
        let durable = subsystem.durable();
        match &durable {
            None => subsystem.finish_shutdown(controller),
            Some(_) => self.shuts_down = true,
        }
        Outcome {
            durable,
            ..immediately(now, Reply::success(0))
        }
    }
}

fn unauthenticated() -> Failure {
    let cause = "the host has not proved who it is";
    Failure::new(Status::AUTHENTICATION_REQUIRED, cause)
}

/// The length that an authentication command says, if it is one that can be carried out.
fn authentication_bytes(queue: &Queue, entry: &SubmissionEntry) -> Result<u64, Failure> {
    let command: AuthenticationCommand = as_command(entry);
    if queue.authenticator.is_none() {
        let cause = "this host has no secret to authenticate with";
        return Err(Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(FCTYPE));
    }
    let invalid = |parameter, cause| Err(Failure::invalid_field(parameter, cause));
    if command.secp != SECURITY_PROTOCOL {
        return invalid(Parameter::dword(10, 24), "the security protocol is not that of NVMe");
    }
    if command.spsp0 != SECURITY_PROTOCOL_SPECIFIC || command.spsp1 != SECURITY_PROTOCOL_SPECIFIC {
        return invalid(Parameter::dword(10, 8), "the security protocol is not DH-HMAC-CHAP");
    }
    match command.length.get() as usize {
        bytes @ 1..=MESSAGE_BYTES_MAX => Ok(bytes as u64),
        _ => invalid(Parameter::dword(11, 0), "no authentication message has this length"),
    }
}

/// The property of a Property Get or Property Set.
fn property(size: u8, offset: u32, known: &[Property]) -> Result<Property, Failure> {
    let property = Property::from_u32(offset).filter(|property| known.contains(property));
    let Some(property) = property else {
        let cause = format!("there is no property at {offset:#x}, or it cannot be accessed this way");
        return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
    };
    let expected = if property.is_64_bit() {
        PROPERTY_SIZE_8
    } else {
        PROPERTY_SIZE_4
    };
    if size != expected {
        let cause = format!("{property} does not have this size");
        return Err(Failure::invalid_field(Parameter::dword(10, 0), cause));
    }
    Ok(property)
}

/// Properties that a host may read over fabrics.
const READABLE: [Property; 5] = [
    Property::Cap,
    Property::Vs,
    Property::Cc,
    Property::Csts,
    Property::Crto,
];

fn property_get(subsystem: &Subsystem, controller: u16, entry: &SubmissionEntry) -> Result<u64, Failure> {
    let command: PropertyGetCommand = as_command(entry);
    let property = property(command.attrib.size(), command.ofst.get(), &READABLE)?;
    Ok(subsystem.property_get(controller, property))
}

fn is_discovery_log(entry: &SubmissionEntry) -> bool {
    let page = GetLogPageCdw10::from_bits(entry.cdw10.get()).lid();
    entry.opcode == AdminOpcode::GetLogPage.code() && page == LogId::Discovery.code()
}
