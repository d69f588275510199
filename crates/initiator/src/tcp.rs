//! Small NVMe/TCP host for tests, benchmarks and drives that no kernel has attached.
//!
//! ```text
//! RemoteController: admin queue (Connect, authentication, properties, admin commands)
//!   -> io_queue -> TcpQueue
//! TcpQueue: submit -> capsules and data are gathered -> flush -> [socket]
//!   -> wait -> completions with their data
//! ```
//!
//! A [`TcpQueue`] is a connection. It keeps up to as many commands outstanding as it has entries.
//! It never blocks forever, because it reads while it cannot write and gives up after
//! [`HostOptions::timeout`]. It is not a block layer and has no retries, reconnection, multipath or
//! TLS.

mod auth;
mod queue;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nvme_spec::auth::{DhGroupId, HashId};
use nvme_spec::command::SetFeaturesCdw10;
use nvme_spec::fabrics::{
    CNTLID_DYNAMIC, ConnectAttributes, ConnectCommand, ConnectData, DISCOVERY_NQN, FabricsCommandType, OPCODE,
    PROPERTY_SIZE_4, PROPERTY_SIZE_8, PropertyAttributes, PropertyGetCommand, PropertySetCommand,
};
use nvme_spec::log::{DiscoveryEntry, DiscoveryHeader};
use nvme_spec::register::{CC_CSS_ALL, CC_CSS_NVM, CSS_IOCS, Cap, Cc, Csts, Property};
use nvme_spec::{
    AdminOpcode, Cns, CompletionEntry, FeatureId, IDENTIFY_SIZE, IdentifyController, LogId, Status, SubmissionEntry,
};
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use crate::command::{admin_entry, identify_command, log_page_command};
pub use dhchap::Secret;
pub use queue::{CommandData, CompletedCommand, TcpQueue};

#[derive(Debug, Error)]
pub enum InitiatorError {
    #[error("{action} failed with {source}")]
    Io { action: &'static str, source: std::io::Error },
    #[error("the controller closed the connection")]
    Closed,
    #[error("the controller ended the connection with fatal error status {status:#x} and information {information:#x}")]
    Terminated { status: u16, information: u32 },
    #[error("the controller violates the protocol, because {0}")]
    Protocol(String),
    #[error("{command} failed with {}", status.name_for_fabrics())]
    Command { command: &'static str, status: Status, result: u64 },
    #[error("authentication failed, because {0}")]
    Authentication(String),
    #[error("the controller did not {0} within {1:?}")]
    NotReady(&'static str, Duration),
}

#[derive(Clone, Debug)]
pub struct HostOptions {
    pub address: SocketAddr,
    pub subsystem_nqn: String,
    pub host_nqn: String,
    /// Host identifier, equal for all connections of a host.
    pub host_id: [u8; 16],
    /// Keep alive timeout, milliseconds, 0 for none. The initiator never sends Keep Alive by
    /// itself.
    pub keep_alive_ms: u32,
    pub admin_entries: u16,
    pub header_digest: bool,
    pub data_digest: bool,
    /// Data alignment in PDUs to the host, dwords, 0-based (HPDA).
    pub data_alignment: u8,
    /// Enable submission queue flow control, so that the controller reports the queue heads
    /// regularly. Without it, the controller may omit all completions of reads.
    pub flow_control: bool,
    /// Maximum in-capsule data of a write, bytes. The controller may set a lower limit.
    pub in_capsule_bytes: usize,
    pub secret: Option<Secret>,
    /// Secret of the controller, `None` to skip the controller's authentication.
    pub controller_secret: Option<Secret>,
    pub hashes: Vec<HashId>,
    pub groups: Vec<DhGroupId>,
    pub timeout: Duration,
}

impl HostOptions {
    pub fn new(address: SocketAddr, subsystem_nqn: &str) -> HostOptions {
        HostOptions {
            address,
            subsystem_nqn: subsystem_nqn.to_string(),
            host_nqn: "nqn.2014-08.org.nvmexpress:uuid:5e1f0c1e-6f5d-4f0b-9a53-1b7c2f8f6a01".to_string(),
            host_id: *b"warp initiator 1",
            keep_alive_ms: 0,
            admin_entries: 32,
            header_digest: false,
            data_digest: false,
            data_alignment: 0,
            flow_control: true,
            in_capsule_bytes: usize::MAX,
            secret: None,
            controller_secret: None,
            hashes: HashId::ALL.to_vec(),
            groups: DhGroupId::ALL.to_vec(),
            timeout: Duration::from_secs(10),
        }
    }

    pub fn discovery(mut self) -> HostOptions {
        self.subsystem_nqn = DISCOVERY_NQN.to_string();
        self
    }
}

pub struct RemoteController {
    options: HostOptions,
    admin: TcpQueue,
    id: u16,
    /// Maximum in-capsule data of I/O queues, bytes, 0 until the controller reports it.
    in_capsule_bytes: usize,
}

fn as_entry<T: IntoBytes + zerocopy::Immutable>(command: &T) -> SubmissionEntry {
    SubmissionEntry::read_from_bytes(command.as_bytes()).expect("every command is 64 bytes")
}

fn text_field(text: &str) -> [u8; 256] {
    let mut field = [0; 256];
    field[..text.len()].copy_from_slice(text.as_bytes());
    field
}

/// Command and data of Connect for queue `id` of a controller.
pub fn connect_command(options: &HostOptions, controller: u16, id: u16, entries: u16) -> (ConnectCommand, ConnectData) {
    let command = ConnectCommand {
        opcode: OPCODE,
        fctype: FabricsCommandType::Connect.code(),
        qid: id.into(),
        sqsize: (entries - 1).into(),
        cattr: ConnectAttributes::new().with_dissqfc(!options.flow_control),
        kato: if id == 0 { options.keep_alive_ms } else { 0 }.into(),
        ..ConnectCommand::default()
    };
    let data = ConnectData {
        hostid: options.host_id,
        cntlid: controller.into(),
        subnqn: text_field(&options.subsystem_nqn),
        hostnqn: text_field(&options.host_nqn),
        ..ConnectData::default()
    };
    (command, data)
}

/// Opens a connection and connects it to a queue, with authentication if the controller requires
/// it. Also returns the controller identifier.
fn connect_queue(
    options: &HostOptions,
    controller: u16,
    id: u16,
    entries: u16,
) -> Result<(TcpQueue, u16), InitiatorError> {
    let mut queue = TcpQueue::open(options, entries)?;
    let (command, data) = connect_command(options, controller, id, entries);
    let done = queue.command(as_entry(&command), CommandData::ToController(data.as_bytes().to_vec()))?;
    let result = done.check("Connect")?;
    // Bit 1 of the second word (AUTHREQ) means that an authentication transaction is required.
    if result >> 17 & 1 == 1 {
        auth::authenticate(&mut queue, options)?;
    }
    Ok((queue, result as u16))
}

impl RemoteController {
    /// Connects an admin queue, enables the controller and reads its limit of in-capsule data.
    pub fn connect(options: &HostOptions) -> Result<RemoteController, InitiatorError> {
        let mut controller = RemoteController::connect_disabled(options)?;
        controller.enable()?;
        let capsule_bytes = controller.identify_controller()?.ioccsz.get() as usize * 16;
        controller.in_capsule_bytes = capsule_bytes.saturating_sub(size_of::<SubmissionEntry>());
        Ok(controller)
    }

    /// Connects an admin queue without enabling the controller.
    pub fn connect_disabled(options: &HostOptions) -> Result<RemoteController, InitiatorError> {
        let (admin, id) = connect_queue(options, CNTLID_DYNAMIC, 0, options.admin_entries)?;
        Ok(RemoteController { options: options.clone(), admin, id, in_capsule_bytes: 0 })
    }

    pub fn id(&self) -> u16 {
        self.id
    }

    pub fn queue(&mut self) -> &mut TcpQueue {
        &mut self.admin
    }

    pub fn property_get(&mut self, property: Property) -> Result<u64, InitiatorError> {
        let command = PropertyGetCommand {
            opcode: OPCODE,
            fctype: FabricsCommandType::PropertyGet.code(),
            attrib: PropertyAttributes::new().with_size(size_of_property(property)),
            ofst: property.code().into(),
            ..PropertyGetCommand::default()
        };
        self.admin.command(as_entry(&command), CommandData::None)?.check("Property Get")
    }

    pub fn property_set(&mut self, property: Property, value: u64) -> Result<(), InitiatorError> {
        let command = PropertySetCommand {
            opcode: OPCODE,
            fctype: FabricsCommandType::PropertySet.code(),
            attrib: PropertyAttributes::new().with_size(size_of_property(property)),
            ofst: property.code().into(),
            value: value.into(),
            ..PropertySetCommand::default()
        };
        self.admin.command(as_entry(&command), CommandData::None)?.check("Property Set").map(|_| ())
    }

    /// Enables the controller and waits until it is ready.
    pub fn enable(&mut self) -> Result<(), InitiatorError> {
        let capabilities = Cap::from_bits(self.property_get(Property::Cap)?);
        let all_sets = capabilities.css() & CSS_IOCS != 0;
        let configuration = Cc::new()
            .with_css(if all_sets { CC_CSS_ALL } else { CC_CSS_NVM })
            .with_iosqes(6)
            .with_iocqes(4)
            .with_en(true);
        self.property_set(Property::Cc, configuration.into_bits().into())?;
        self.await_status("become ready", |status| status.rdy())
    }

    /// Requests a shutdown and waits for its end.
    pub fn shut_down(&mut self) -> Result<(), InitiatorError> {
        use nvme_spec::register::{SHN_NORMAL, SHST_COMPLETE};
        let configuration = Cc::from_bits(self.property_get(Property::Cc)? as u32).with_shn(SHN_NORMAL);
        self.property_set(Property::Cc, configuration.into_bits().into())?;
        self.await_status("shut down", |status| status.shst() == SHST_COMPLETE)
    }

    fn await_status(&mut self, what: &'static str, is: impl Fn(Csts) -> bool) -> Result<(), InitiatorError> {
        let start = Instant::now();
        loop {
            let status = Csts::from_bits(self.property_get(Property::Csts)? as u32);
            if is(status) {
                return Ok(());
            }
            if status.cfs() || start.elapsed() > self.options.timeout {
                return Err(InitiatorError::NotReady(what, start.elapsed()));
            }
        }
    }

    /// Sends an admin command and waits for its completion. A failed command is not an error but a
    /// completion.
    pub fn admin(&mut self, entry: SubmissionEntry, data: CommandData) -> Result<CompletedCommand, InitiatorError> {
        self.admin.command(entry, data)
    }

    /// Reads the whole Identify structure of a CNS value.
    pub fn identify(&mut self, cns: Cns, nsid: u32) -> Result<Vec<u8>, InitiatorError> {
        let entry = identify_command(cns, nsid);
        let done = self.admin.command(entry, CommandData::ToHost(vec![0; IDENTIFY_SIZE]))?;
        done.check("Identify")?;
        Ok(done.data)
    }

    pub fn identify_controller(&mut self) -> Result<IdentifyController, InitiatorError> {
        let data = self.identify(Cns::Controller, 0)?;
        Ok(IdentifyController::read_from_bytes(&data).expect("the answer has the requested length"))
    }

    /// Reads a part of a log page. `bytes` is a multiple of 4. `group` is the endurance group, or 0
    /// if the page has none.
    pub fn log_page(&mut self, log: LogId, group: u16, offset: u64, bytes: u32) -> Result<Vec<u8>, InitiatorError> {
        let entry = log_page_command(log, 0, group, offset, bytes);
        let done = self.admin.command(entry, CommandData::ToHost(vec![0; bytes as usize]))?;
        done.check("Get Log Page")?;
        Ok(done.data)
    }

    /// Reads the entries of the discovery log in parts, as hosts do. The order is a part of the
    /// header for the number of entries, each entry, and the generation again.
    pub fn discover(&mut self) -> Result<Vec<DiscoveryEntry>, InitiatorError> {
        const ATTEMPTS: usize = 10;
        const HEADER_PART: u32 = 20;
        const DISCOVERY_ENTRIES_MAX: u64 = 1024;
        for _ in 0..ATTEMPTS {
            let mut part = self.log_page(LogId::Discovery, 0, 0, HEADER_PART)?;
            part.resize(size_of::<DiscoveryHeader>(), 0);
            let header = DiscoveryHeader::read_from_bytes(&part).expect("the length of a header");
            let count = header.numrec.get();
            if count > DISCOVERY_ENTRIES_MAX {
                let problem = format!("its discovery log has {count} entries, more than {DISCOVERY_ENTRIES_MAX}");
                return Err(InitiatorError::Protocol(problem));
            }
            let mut entries = Vec::new();
            for index in 0..count {
                let bytes = size_of::<DiscoveryEntry>() as u64;
                let offset = size_of::<DiscoveryHeader>() as u64 + index * bytes;
                let entry = self.log_page(LogId::Discovery, 0, offset, bytes as u32)?;
                entries.push(DiscoveryEntry::read_from_bytes(&entry).expect("the length of an entry"));
            }
            let generation = self.log_page(LogId::Discovery, 0, 0, 8)?;
            if generation == header.genctr.as_bytes() {
                return Ok(entries);
            }
        }
        Err(InitiatorError::Protocol("the discovery log changed during each read".to_string()))
    }

    /// Requests I/O queues and returns the number granted.
    pub fn set_queue_count(&mut self, queues: u16) -> Result<u16, InitiatorError> {
        let count = u32::from(queues - 1);
        let entry = SubmissionEntry {
            opcode: AdminOpcode::SetFeatures.code(),
            cdw10: SetFeaturesCdw10::new().with_fid(FeatureId::NumberOfQueues.code()).into_bits().into(),
            cdw11: (count << 16 | count).into(),
            ..SubmissionEntry::default()
        };
        let result = self.admin.command(entry, CommandData::None)?.check("Set Features, Number of Queues")?;
        Ok((result as u16).saturating_add(1))
    }

    /// Connects an I/O queue.
    pub fn io_queue(&self, id: u16, entries: u16) -> Result<TcpQueue, InitiatorError> {
        let (mut queue, _) = connect_queue(&self.options, self.id, id, entries)?;
        queue.limit_in_capsule_bytes(self.in_capsule_bytes);
        Ok(queue)
    }

    pub fn keep_alive(&mut self) -> Result<(), InitiatorError> {
        self.admin.command(admin_entry(AdminOpcode::KeepAlive), CommandData::None)?.check("Keep Alive").map(|_| ())
    }
}

fn size_of_property(property: Property) -> u8 {
    if property.is_64_bit() { PROPERTY_SIZE_8 } else { PROPERTY_SIZE_4 }
}

impl CompletedCommand {
    /// Dwords 0 and 1 of a successful completion.
    pub fn check(&self, command: &'static str) -> Result<u64, InitiatorError> {
        let status = self.status();
        let result = result_of(&self.entry);
        if status.is_success() {
            return Ok(result);
        }
        Err(InitiatorError::Command { command, status, result })
    }

    pub fn status(&self) -> Status {
        self.entry.status.status()
    }
}

fn result_of(entry: &CompletionEntry) -> u64 {
    u64::from(entry.dw1.get()) << 32 | u64::from(entry.dw0.get())
}
