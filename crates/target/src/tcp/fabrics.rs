//! Fabrics commands, and the commands that a connection may send before and after Connect.
//!
//! ```text
//! no queue         -> Connect only
//! queue, unproved  -> Authentication Send and Receive only
//! queue            -> properties (admin queue), discovery log (discovery controllers), rest: nvme
//! ```
//!
//! Disconnect is not implemented. It is optional, and Linux closes its connections instead.

use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;

use nvme::controller::{EventWaker, QUEUE_ENTRIES_MAX};
use nvme::{
    AcceptedCommand, ControllerKind, Failure, HostIdentity, HostTransport, IoCommand, Parameter, PendingReply,
    PropertyEffect, Reply, Subsystem, Transfer,
};
use nvme_spec::auth::{SECURITY_PROTOCOL, SECURITY_PROTOCOL_SPECIFIC};
use nvme_spec::fabrics::{
    AuthenticationCommand, AuthenticationRequirements, CNTLID_DYNAMIC, ConnectCommand, ConnectData, DISCOVERY_NQN,
    FabricsCommandType, NQN_MAX_LENGTH, OPCODE, PROPERTY_SIZE_4, PROPERTY_SIZE_8, PropertyGetCommand,
    PropertySetCommand,
};
use nvme_spec::register::Property;
use nvme_spec::{LogId, Status, SubmissionEntry};
use ssd::Nanos;
use zerocopy::FromBytes;

use super::TargetContext;
use super::association::{Association, ConnectionHandle, JoinError, Link};
use super::auth::{Authenticator, Credentials, DhJob, MESSAGE_BYTES_MAX};
use super::discovery;
use super::sq_head::SqHeadReporter;

/// Addresses and callbacks of a connection.
pub struct ConnectionInfo {
    /// The address that the host connected to.
    pub local: SocketAddr,
    /// Address of the host.
    pub peer: IpAddr,
    pub connection: Arc<dyn ConnectionHandle>,
    /// Makes the owner call
    /// [`TcpSession::deliver_events`](super::session::TcpSession::deliver_events).
    pub waker: EventWaker,
}

/// The controller's end of a connection: its queue, once connected, and the execution of Fabrics
/// commands.
pub struct Endpoint {
    context: Arc<TargetContext>,
    pub connection_info: ConnectionInfo,
    pub queue: Option<ConnectedQueue>,
    /// True if the last command shuts the controller down as soon as all data is durable.
    pub shuts_down: bool,
}

pub struct ConnectedQueue {
    pub association: Arc<Association>,
    /// Membership of this connection in the association.
    pub link: Arc<Link>,
    /// Queue identifier, 0 for the admin queue.
    pub id: u16,
    pub entries: u16,
    /// Source of the submission queue head in completions.
    pub sq_head: SqHeadReporter,
    kind: ControllerKind,
    authenticator: Option<Authenticator>,
}

impl ConnectedQueue {
    /// Returns whether the host has authenticated or need not authenticate.
    pub fn is_authenticated(&self) -> bool {
        self.authenticator.as_ref().is_none_or(Authenticator::is_authenticated)
    }
}

/// A refused Connect: status, result and retry flag of its completion.
struct ConnectRefusal {
    status: Status,
    result: u64,
    retry: bool,
}

impl ConnectRefusal {
    fn new(status: Status) -> ConnectRefusal {
        ConnectRefusal { status, result: 0, retry: false }
    }

    /// Connect Invalid Parameters, with the offset of the parameter in the command (IATTR 0).
    fn command(offset: u16) -> ConnectRefusal {
        ConnectRefusal { result: u64::from(offset), ..ConnectRefusal::new(Status::CONNECT_INVALID_PARAMETERS) }
    }

    /// Connect Invalid Parameters, with the offset of the parameter in the data (IATTR 1).
    fn data(offset: u16) -> ConnectRefusal {
        ConnectRefusal {
            result: 1 << 16 | u64::from(offset),
            ..ConnectRefusal::new(Status::CONNECT_INVALID_PARAMETERS)
        }
    }

    fn reply(&self) -> Reply {
        Reply { status: self.status, do_not_retry: !self.retry, ..Reply::success(self.result) }
    }
}

const _: () = assert!(QUEUE_ENTRIES_MAX <= u16::MAX as u32, "the number of a queue's entries fits into 16 bits");

// Offsets of the parameters that a refusal may name.
const QID: u16 = std::mem::offset_of!(ConnectCommand, qid) as u16;
const SQSIZE: u16 = std::mem::offset_of!(ConnectCommand, sqsize) as u16;
const CNTLID: u16 = std::mem::offset_of!(ConnectData, cntlid) as u16;
const SUBNQN: u16 = std::mem::offset_of!(ConnectData, subnqn) as u16;
const HOSTNQN: u16 = std::mem::offset_of!(ConnectData, hostnqn) as u16;

/// Reads an NQN from its field. Returns `None` unless the name is terminated by a zero, valid UTF-8
/// and not too long.
fn name(field: &[u8; 256]) -> Option<&str> {
    let length = field.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&field[..length]).ok()?;
    ((1..=NQN_MAX_LENGTH).contains(&length) && name.starts_with("nqn.")).then_some(name)
}

fn as_command<T: FromBytes>(entry: &SubmissionEntry) -> T {
    T::read_from_bytes(zerocopy::IntoBytes::as_bytes(entry)).expect("every command is 64 bytes")
}

/// The fabrics command type occupies the first byte of other commands' namespace identifier.
fn fabrics_type(entry: &SubmissionEntry) -> Option<FabricsCommandType> {
    FabricsCommandType::from_u8(entry.nsid.get() as u8)
}

/// Location of the fabrics command type.
const FCTYPE: Parameter = Parameter::dword(1, 0);

/// A command that was parsed once: its kind and the data that it moves.
pub struct FabricsCommand {
    pub entry: SubmissionEntry,
    pub transfer: Transfer,
    kind: FabricsKind,
}

enum FabricsKind {
    Connect(ConnectCommand),
    AuthenticationSend,
    /// With the size of the host's buffer.
    AuthenticationReceive(usize),
    PropertyGet(Property),
    PropertySet(Property, u64),
    /// A Get Log Page command for the discovery log, which the target generates.
    DiscoveryLog(AcceptedCommand),
    Drive(AcceptedCommand),
}

impl Endpoint {
    /// The connected queue, unless it is the admin queue.
    pub fn io_queue(&self) -> Option<&ConnectedQueue> {
        self.queue.as_ref().filter(|queue| queue.id > 0)
    }

    /// An endpoint without a queue.
    pub fn new(context: Arc<TargetContext>, surroundings: ConnectionInfo) -> Endpoint {
        Endpoint { context, connection_info: surroundings, queue: None, shuts_down: false }
    }

    /// Returns whether authentication has failed, so that the connection must end.
    pub fn has_failed(&self) -> bool {
        let authenticator = self.queue.as_ref().and_then(|queue| queue.authenticator.as_ref());
        authenticator.is_some_and(Authenticator::has_failed)
    }

    /// Leaves the association after the connection has closed.
    pub fn leave(&mut self, subsystem: &mut Subsystem) {
        if let Some(queue) = self.queue.take() {
            let associations = &self.context.associations;
            associations.leave(subsystem, &queue.association, &queue.link);
            assert!(queue.link.has_ended(), "the connection of queue {} ends when it leaves its association", queue.id);
        }
    }

    /// Checks a command and determines its kind and the data that it moves. `parsed` is the command
    /// as parsed for an I/O queue.
    pub fn accept(
        &self,
        subsystem: &Subsystem,
        entry: &SubmissionEntry,
        parsed: Option<IoCommand>,
    ) -> Result<FabricsCommand, Failure> {
        let fabrics = entry.opcode == OPCODE;
        let (transfer, kind) = match &self.queue {
            None if fabrics && fabrics_type(entry) == Some(FabricsCommandType::Connect) => {
                let transfer = Transfer::to_controller(size_of::<ConnectData>() as u64);
                (transfer, FabricsKind::Connect(as_command(entry)))
            }
            None => {
                let cause = "the queue is not connected";
                return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
            }
            Some(queue) if fabrics => accept_fabrics(queue, entry)?,
            Some(queue) if !queue.is_authenticated() => return Err(unauthenticated()),
            Some(queue) => {
                let controller = queue.association.controller();
                let accepted = subsystem.accept_parsed(controller, queue.id, entry, parsed)?;
                accepted.check_queues(queue.association.has_io_queues())?;
                let discovery = queue.kind == ControllerKind::Discovery && accepted.reads_log(LogId::Discovery);
                let kind = if discovery { FabricsKind::DiscoveryLog } else { FabricsKind::Drive };
                (accepted.transfer(), kind(accepted))
            }
        };
        Ok(FabricsCommand { entry: *entry, transfer, kind })
    }

    /// Executes an accepted command with its data, or a part of it.
    pub fn execute(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        command: FabricsCommand,
        data: &mut Vec<u8>,
    ) -> ControlFlow<PendingReply, FabricsCommand> {
        let FabricsCommand { entry, transfer, kind } = command;
        if let (FabricsKind::Drive(accepted), Some(queue)) = (&kind, &self.queue)
            && accepted.sets_number_of_queues()
        {
            let (associations, limits) = (&self.context.associations, &self.context.options.limits);
            let left = associations.io_queues_left(subsystem, &queue.association, limits);
            subsystem.limit_io_queues(queue.association.controller(), left);
        }
        let kind = match kind {
            FabricsKind::Drive(accepted) => match subsystem.execute_part(now, accepted, data) {
                ControlFlow::Break(outcome) => return ControlFlow::Break(outcome),
                ControlFlow::Continue(accepted) => FabricsKind::Drive(accepted),
            },
            kind => return ControlFlow::Break(self.execute_here(subsystem, now, &entry, kind, data)),
        };
        ControlFlow::Continue(FabricsCommand { entry, transfer, kind })
    }

    /// Executes a command that has only one part.
    fn execute_here(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        entry: &SubmissionEntry,
        kind: FabricsKind,
        data: &mut Vec<u8>,
    ) -> PendingReply {
        let reply = match kind {
            FabricsKind::Drive(accepted) => return subsystem.execute(now, accepted, data),
            FabricsKind::DiscoveryLog(accepted) => {
                let log = discovery::log(&self.context, self.connection_info.local);
                return subsystem.execute_with_page(now, accepted, &log, data);
            }
            FabricsKind::Connect(connect) => self.connect(subsystem, now, &connect, data),
            FabricsKind::AuthenticationSend => {
                let before = self.is_authenticated();
                self.authenticator().send(data);
                self.after_authentication(subsystem, before);
                Reply::success(0)
            }
            FabricsKind::AuthenticationReceive(bytes) => self.receive_authentication(subsystem, entry, bytes, data),
            FabricsKind::PropertyGet(property) => Reply::success(subsystem.property_get(self.controller(), property)),
            FabricsKind::PropertySet(property, value) => return self.property_set(subsystem, now, property, value),
        };
        PendingReply::at(now, reply)
    }

    /// The controller of a connected queue.
    fn controller(&self) -> u16 {
        self.queue.as_ref().expect("a connected queue").association.controller()
    }

    /// The authenticator of a connected queue.
    fn authenticator(&mut self) -> &mut Authenticator {
        let queue = self.queue.as_mut().expect("a connected queue");
        queue.authenticator.as_mut().expect("found when the command was accepted")
    }

    fn receive_authentication(
        &mut self,
        subsystem: &mut Subsystem,
        entry: &SubmissionEntry,
        bytes: usize,
        data: &mut Vec<u8>,
    ) -> Reply {
        let before = self.is_authenticated();
        *data = self.authenticator().receive();
        let fits = data.len() <= bytes;
        data.resize(bytes, 0);
        self.after_authentication(subsystem, before);
        if fits {
            return Reply::success(0);
        }
        data.clear();
        let cause = "the message is longer than the host has room for";
        self.fail(subsystem, entry, Failure::invalid_field(Parameter::dword(11, 0), cause))
    }

    pub fn fail(&self, subsystem: &mut Subsystem, entry: &SubmissionEntry, failure: Failure) -> Reply {
        match &self.queue {
            Some(queue) if queue.link.is_established() => {
                subsystem.fail(queue.association.controller(), queue.id, entry, failure)
            }
            // A host that merely claims a name must not write into the error log.
            _ => Reply { more: false, ..Reply::failed(&failure) },
        }
    }

    /// The computation that the current authentication command needs before it is complete.
    pub fn take_dh_job(&mut self) -> Option<DhJob> {
        self.queue.as_mut()?.authenticator.as_mut()?.take_dh_job()
    }

    /// Continues authentication with the result of a computation.
    pub fn finish_dh_job(&mut self, subsystem: &mut Subsystem, work: DhJob) {
        let before = self.is_authenticated();
        self.authenticator().finish_dh_job(work);
        self.after_authentication(subsystem, before);
    }

    fn is_authenticated(&self) -> bool {
        self.queue.as_ref().is_some_and(ConnectedQueue::is_authenticated)
    }

    /// Establishes the connection after an authentication message, if the host was not
    /// authenticated `before` and now is.
    fn after_authentication(&self, subsystem: &mut Subsystem, before: bool) {
        let queue = self.queue.as_ref().expect("a connected queue");
        if queue.is_authenticated() && !before {
            self.context.exponents.restore_allowance(self.connection_info.peer);
            self.establish(subsystem, queue);
        }
    }

    /// Counts the connection for its host, or refuses it beyond the host's limit.
    fn establish(&self, subsystem: &mut Subsystem, queue: &ConnectedQueue) {
        let (associations, association) = (&self.context.associations, &queue.association);
        let connections = associations.connections_of(association.host_nqn());
        if queue.link.is_established() || connections < self.context.options.limits.connections_per_host {
            association.establish(subsystem, &queue.link);
        } else {
            associations.refuse(subsystem, association, &queue.link);
        }
        assert!(
            queue.link.is_established() || queue.link.has_ended(),
            "an authenticated connection of queue {} is established or ended",
            queue.id
        );
    }

    // ------------------------------------------------------------------------------------------------- Connect --

    fn connect(&mut self, subsystem: &mut Subsystem, now: Nanos, command: &ConnectCommand, data: &[u8]) -> Reply {
        assert!(self.queue.is_none(), "one command at a time until the queue is connected");
        let data = ConnectData::ref_from_bytes(data).expect("the length was checked with the data pointer");
        match self.try_connect(subsystem, now, command, data) {
            Err(refusal) => refusal.reply(),
            Ok(queue) => {
                assert!(
                    queue.id == 0 || queue.kind == ControllerKind::Io,
                    "a discovery controller has no I/O queue {}",
                    queue.id
                );
                assert!(
                    !queue.link.has_ended(),
                    "the connection of queue {} is live when its Connect succeeds",
                    queue.id
                );
                let requirements = AuthenticationRequirements::new().with_atr(queue.authenticator.is_some());
                let requirements = u64::from(requirements.into_bits().get());
                let controller = u64::from(queue.association.controller());
                if queue.is_authenticated() {
                    self.establish(subsystem, &queue);
                }
                self.queue = Some(queue);
                Reply::success(controller | requirements << 16)
            }
        }
    }

    /// The checks of Connect (Base Specification, "Connect Command and Response"). They check the
    /// host first, then the request, then the available room.
    fn try_connect(
        &mut self,
        subsystem: &mut Subsystem,
        now: Nanos,
        command: &ConnectCommand,
        data: &ConnectData,
    ) -> Result<ConnectedQueue, ConnectRefusal> {
        if command.recfmt.get() != 0 {
            return Err(ConnectRefusal::new(Status::CONNECT_INCOMPATIBLE_FORMAT));
        }
        let host_nqn = self.host_name(data).ok_or(ConnectRefusal::data(HOSTNQN))?;
        let subsystem_nqn = name(&data.subnqn).ok_or(ConnectRefusal::data(SUBNQN))?;
        let kind = match subsystem_nqn {
            DISCOVERY_NQN => ControllerKind::Discovery,
            other if other == self.context.subsystem_nqn => ControllerKind::Io,
            _ => return Err(ConnectRefusal::data(SUBNQN)),
        };
        let authenticator = self.new_authenticator(host_nqn, subsystem_nqn)?;
        let queue_id = command.qid.get();
        let entries = u32::from(command.sqsize.get()) + 1;
        if !(2..=QUEUE_ENTRIES_MAX).contains(&entries) {
            return Err(ConnectRefusal::command(SQSIZE));
        }
        let io_queues = match kind {
            ControllerKind::Io => subsystem.config().io_queues_max,
            ControllerKind::Discovery => 0,
        };
        if queue_id > io_queues {
            return Err(ConnectRefusal::command(QID));
        }
        if self.context.associations.connections_of(host_nqn) >= self.context.options.limits.connections_per_host {
            return Err(ConnectRefusal { retry: true, ..ConnectRefusal::new(Status::CONNECT_CONTROLLER_BUSY) });
        }
        let host = HostIdentity { nqn: host_nqn.to_string(), id: data.hostid };
        let link = Link::new(queue_id, Arc::clone(&self.connection_info.connection));
        let association = match queue_id {
            0 => self.connect_admin(subsystem, now, kind, host, &link, command, data)?,
            _ => self.connect_io(subsystem, &host, &link, data)?,
        };
        Ok(ConnectedQueue {
            association,
            link,
            id: queue_id,
            entries: entries as u16,
            sq_head: SqHeadReporter::new(queue_id, entries as u16, !command.cattr.dissqfc()),
            kind,
            authenticator,
        })
    }

    /// The host's NQN. Without a list of hosts it may be empty, as that of SPDK's programs is. An
    /// empty NQN identifies no host, so the host identifier tells hosts apart.
    fn host_name<'a>(&self, data: &'a ConnectData) -> Option<&'a str> {
        let is_nameless = data.hostnqn[0] == 0 && self.context.options.hosts.is_empty();
        if is_nameless { Some("") } else { name(&data.hostnqn) }
    }

    /// The authenticator of a host, `None` if the host need not authenticate.
    fn new_authenticator(&self, host_nqn: &str, subsystem_nqn: &str) -> Result<Option<Authenticator>, ConnectRefusal> {
        let options = &self.context.options;
        if options.hosts.is_empty() {
            return Ok(None);
        }
        let allowed = options.hosts.iter().find(|allowed| allowed.nqn == host_nqn);
        let allowed = allowed.ok_or(ConnectRefusal::new(Status::CONNECT_INVALID_HOST))?;
        let Some(secret) = &allowed.secret else {
            return Ok(None);
        };
        let controller_secret = allowed.controller_secret.as_ref();
        Ok(Some(Authenticator::new(Credentials {
            host_nqn: host_nqn.to_string(),
            subsystem_nqn: subsystem_nqn.to_string(),
            host_key: secret.key_of(host_nqn),
            controller_key: controller_secret.map(|secret| secret.key_of(subsystem_nqn)),
            group_min: allowed.group_min,
        })))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one Connect")]
    fn connect_admin(
        &self,
        subsystem: &mut Subsystem,
        now: Nanos,
        kind: ControllerKind,
        host: HostIdentity,
        link: &Arc<Link>,
        command: &ConnectCommand,
        data: &ConnectData,
    ) -> Result<Arc<Association>, ConnectRefusal> {
        // Controllers are created on Connect (dynamic controller model).
        if data.cntlid.get() != CNTLID_DYNAMIC {
            return Err(ConnectRefusal::data(CNTLID));
        }
        let associations = &self.context.associations;
        associations.end_departed(subsystem, &host);
        let mut connected = subsystem.connect(now, HostTransport::Fabrics, kind, host.clone());
        if connected.is_err() && associations.end_unauthenticated(subsystem) {
            connected = subsystem.connect(now, HostTransport::Fabrics, kind, host.clone());
        }
        let controller = connected.map_err(|failure| ConnectRefusal {
            retry: !failure.do_not_retry,
            ..ConnectRefusal::new(failure.status)
        })?;
        subsystem.set_keep_alive(controller, command.kato.get());
        subsystem.set_waker(controller, Arc::clone(&self.connection_info.waker));
        Ok(associations.begin(subsystem, controller, host, Arc::clone(link)))
    }

    fn connect_io(
        &self,
        subsystem: &mut Subsystem,
        host: &HostIdentity,
        link: &Arc<Link>,
        data: &ConnectData,
    ) -> Result<Arc<Association>, ConnectRefusal> {
        let controller = data.cntlid.get();
        let associations = &self.context.associations;
        let joined = associations.join(subsystem, controller, host, Arc::clone(link));
        joined.map_err(|error| match error {
            JoinError::NoController => ConnectRefusal::data(CNTLID),
            JoinError::NoQueue => ConnectRefusal::command(QID),
            JoinError::QueueInUse | JoinError::NotReady => ConnectRefusal::new(Status::COMMAND_SEQUENCE_ERROR),
        })
    }

    // ---------------------------------------------------------------------------------------------- properties --

    fn property_set(&mut self, subsystem: &mut Subsystem, now: Nanos, property: Property, value: u64) -> PendingReply {
        let association = &self.queue.as_ref().expect("a connected queue").association;
        let controller = association.controller();
        match subsystem.property_set(now, controller, property, value) {
            PropertyEffect::Reset => self.context.associations.reset(subsystem, association),
            PropertyEffect::Shutdown => return self.shut_down(subsystem, now, controller),
            PropertyEffect::None | PropertyEffect::Enabled | PropertyEffect::SubsystemReset => {}
        }
        PendingReply::at(now, Reply::success(0))
    }

    /// Shuts the controller down. The host sees the shutdown complete only when all data is
    /// durable.
    fn shut_down(&mut self, subsystem: &mut Subsystem, now: Nanos, controller: u16) -> PendingReply {
        assert!(!self.shuts_down, "controller {controller} begins one shutdown at a time");
        let durable = subsystem.flush_handle();
        match &durable {
            None => subsystem.finish_shutdown(controller),
            Some(_) => self.shuts_down = true,
        }
        PendingReply { durable, ..PendingReply::at(now, Reply::success(0)) }
    }
}

fn accept_fabrics(queue: &ConnectedQueue, entry: &SubmissionEntry) -> Result<(Transfer, FabricsKind), Failure> {
    let unknown = |cause| Err(Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(FCTYPE));
    Ok(match fabrics_type(entry) {
        Some(FabricsCommandType::Connect) => {
            let cause = "the queue is already connected";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        Some(FabricsCommandType::AuthenticationSend) => {
            let bytes = authentication_bytes(queue, entry)?;
            (Transfer::to_controller(bytes), FabricsKind::AuthenticationSend)
        }
        Some(FabricsCommandType::AuthenticationReceive) => {
            let bytes = authentication_bytes(queue, entry)?;
            (Transfer::to_host(bytes), FabricsKind::AuthenticationReceive(bytes as usize))
        }
        _ if !queue.is_authenticated() => return Err(unauthenticated()),
        Some(FabricsCommandType::PropertyGet | FabricsCommandType::PropertySet) if queue.id != 0 => {
            return unknown("properties belong to the admin queue");
        }
        Some(FabricsCommandType::PropertyGet) => {
            let command: PropertyGetCommand = as_command(entry);
            let property = property(command.attrib.size(), command.ofst.get(), &READABLE)?;
            (Transfer::NONE, FabricsKind::PropertyGet(property))
        }
        Some(FabricsCommandType::PropertySet) => {
            let command: PropertySetCommand = as_command(entry);
            let property = property(command.attrib.size(), command.ofst.get(), &[Property::Cc])?;
            (Transfer::NONE, FabricsKind::PropertySet(property, command.value.get()))
        }
        _ => return unknown("this fabrics command type is not supported"),
    })
}

fn unauthenticated() -> Failure {
    let cause = "the host has not authenticated";
    Failure::new(Status::AUTHENTICATION_REQUIRED, cause)
}

/// The length field of an authentication command, if the command is valid.
fn authentication_bytes(queue: &ConnectedQueue, entry: &SubmissionEntry) -> Result<u64, Failure> {
    let command: AuthenticationCommand = as_command(entry);
    if queue.authenticator.is_none() {
        let cause = "this host has no secret for authentication";
        return Err(Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(FCTYPE));
    }
    let invalid = |parameter, cause| Err(Failure::invalid_field(parameter, cause));
    if command.secp != SECURITY_PROTOCOL {
        return invalid(Parameter::dword(10, 24), "the security protocol is not the one of NVMe");
    }
    if command.spsp0 != SECURITY_PROTOCOL_SPECIFIC || command.spsp1 != SECURITY_PROTOCOL_SPECIFIC {
        return invalid(Parameter::dword(10, 8), "the security protocol is not DH-HMAC-CHAP");
    }
    match command.length.get() as usize {
        bytes @ 1..=MESSAGE_BYTES_MAX => Ok(bytes as u64),
        _ => invalid(Parameter::dword(11, 0), "the length of the authentication message is invalid"),
    }
}

fn property(size: u8, offset: u32, known: &[Property]) -> Result<Property, Failure> {
    let property = Property::from_u32(offset).filter(|property| known.contains(property));
    let Some(property) = property else {
        let cause = format!("property {offset:#x} does not exist or does not allow this access");
        return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
    };
    let expected = if property.is_64_bit() { PROPERTY_SIZE_8 } else { PROPERTY_SIZE_4 };
    if size != expected {
        let cause = format!("{property} has another size");
        return Err(Failure::invalid_field(Parameter::dword(10, 0), cause));
    }
    Ok(property)
}

/// Properties that a host may read over fabrics.
const READABLE: [Property; 5] = [Property::Cap, Property::Vs, Property::Cc, Property::Csts, Property::Crto];
