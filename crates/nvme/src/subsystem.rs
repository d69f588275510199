//! The NVM subsystem: one drive with its namespaces, its endurance group and its controllers.
//!
//! ```text
//! transport -> connect, property_get/set        -> Controller
//!           -> transfer (what a command moves)  -> the transport fetches the data
//!           -> execute (command, data)          -> admin or io -> ssd::Device, Media -> Outcome
//!           -> async_completions, tick
//! ```
//!
//! It is sans-I/O: no sockets, no threads, no clock; every call says what time it is. A command is executed at once and in
//! whole; the [`Outcome`] says when the host may see it completed. Transports share one subsystem behind a lock.

use std::sync::Arc;

use nvme_spec::command::{CompletionEntry, StatusField, SubmissionEntry};
use nvme_spec::register::{self, Property};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use ssd::{ConfigError, Device, DeviceConfig, Done, Nanos, RuhId};
use thiserror::Error;

use crate::admin;
use crate::controller::{AsyncCompletion, Controller, ControllerKind, Host, PropertyEffect, Transport, Waker};
use crate::error::{Failure, Parameter};
use crate::fdp::{self, DeviceReports};
use crate::media::{Durable, Media, MediaError};
use crate::namespace::Namespace;
use crate::pacing::Pacing;
use crate::state::Persistent;

/// Namespaces that can exist, and the largest namespace identifier (NN). Boot firmware asks for each one.
pub const NAMESPACES_MAX: u32 = 32;
/// Log2 of the most data that a command moves, in units of 4 KiB (MDTS): 1 MiB.
pub const MAX_DATA_TRANSFER_SIZE: u8 = 8;
/// The same in bytes.
pub const TRANSFER_BYTES_MAX: u64 = 4096 << MAX_DATA_TRANSFER_SIZE;
/// Endurance group identifier of the only endurance group.
pub const ENDURANCE_GROUP: u16 = 1;

/// What a drive says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Serial number, up to 20 ASCII characters.
    pub serial: String,
    /// Model number, up to 40.
    pub model: String,
    /// Firmware revision, up to 8, not empty.
    pub firmware: String,
    /// NVM subsystem NQN.
    pub nqn: String,
}

/// How a subsystem is made.
#[derive(Clone, Debug)]
pub struct SubsystemConfig {
    /// Names.
    pub identity: Identity,
    /// The device of the profile: FDP configuration 0.
    pub device: DeviceConfig,
    /// Whether a new drive has Flexible Data Placement enabled.
    pub fdp: bool,
    /// Whether a new drive has a namespace over its whole capacity.
    pub namespace: bool,
    /// LBA format of that namespace: index into [`crate::namespace::FORMATS`].
    pub format: u8,
    /// Time that a reclaim unit may stay open, in seconds; 0 for no limit (ERUTL).
    pub reclaim_unit_time_limit_s: u32,
    /// Controllers at the same time.
    pub controllers_max: u16,
    /// I/O queue pairs of each controller.
    pub io_queues_max: u16,
}

/// A subsystem that cannot be made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The device configuration does not work.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The storage does not.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// What was stored is of another drive.
    #[error("{0}")]
    Mismatch(String),
}

/// The drive. See the module.
pub struct Subsystem {
    pub(crate) config: SubsystemConfig,
    pub(crate) device: Device<DeviceReports>,
    /// FDP configurations offered, as devices.
    pub(crate) configurations: Vec<DeviceConfig>,
    pub(crate) media: Box<dyn Media>,
    pub(crate) durable: Option<Arc<dyn Durable>>,
    pub(crate) state: Persistent,
    controllers: Vec<Option<Controller>>,
    pub(crate) now: Nanos,
    /// When the device has done what the command that is carried out asked of it.
    pub(crate) done_at: Nanos,
    pacing: Arc<Pacing>,
    /// Milliseconds of the Timestamp feature at `now` = 0, and where they come from.
    pub(crate) clock: admin::features::Clock,
    /// Values of the features that all controllers share.
    pub(crate) shared_features: admin::features::Features,
    /// Media errors that were counted before this start.
    pub(crate) media_errors_before: u64,
    pub(crate) sanitize: Option<admin::sanitize::Sanitizing>,
    pub(crate) opened: crate::io::management::OpenSince,
    /// Reclaim group that takes the next write without a placement identifier.
    pub(crate) next_group: u16,
    /// For Copy and Verify.
    pub(crate) scratch: Vec<u8>,
}

/// Which way a command's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From host to controller.
    ToController,
    /// From controller to host.
    ToHost,
}

/// The data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// How much, interleaved metadata included; 0 without direction.
    pub bytes: usize,
    /// Metadata in a buffer of its own (MPTR), which follows the data in what [`Subsystem::execute`] takes and gives.
    pub metadata_bytes: usize,
}

impl Transfer {
    /// No data.
    pub const NONE: Transfer = Transfer {
        direction: Direction::None,
        bytes: 0,
        metadata_bytes: 0,
    };

    /// From host to controller.
    pub fn to_controller(bytes: u64) -> Transfer {
        Transfer {
            direction: if bytes == 0 {
                Direction::None
            } else {
                Direction::ToController
            },
            bytes: bytes as usize,
            metadata_bytes: 0,
        }
    }

    /// From controller to host.
    pub fn to_host(bytes: u64) -> Transfer {
        Transfer {
            direction: if bytes == 0 { Direction::None } else { Direction::ToHost },
            bytes: bytes as usize,
            metadata_bytes: 0,
        }
    }

    /// Data and separate metadata together.
    pub fn total_bytes(&self) -> usize {
        self.bytes + self.metadata_bytes
    }
}

/// What the host is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
    /// Status code and type.
    pub status: Status,
    /// The same command would fail again (DNR).
    pub do_not_retry: bool,
    /// The error log has more (M).
    pub more: bool,
}

impl Reply {
    /// Success with a command-specific result.
    pub const fn success(result: u64) -> Reply {
        Reply {
            result,
            status: Status::SUCCESS,
            do_not_retry: false,
            more: false,
        }
    }

    /// The completion queue entry. `phase` is false on Fabrics.
    pub fn entry(&self, cid: u16, queue: u16, head: u16, phase: bool) -> CompletionEntry {
        CompletionEntry {
            dw0: (self.result as u32).into(),
            dw1: ((self.result >> 32) as u32).into(),
            sqhd: head.into(),
            sqid: queue.into(),
            cid: cid.into(),
            status: StatusField::of(self.status)
                .with_dnr(self.do_not_retry)
                .with_m(self.more)
                .with_p(phase),
        }
    }
}

/// The result of a command.
#[must_use = "a command completes exactly once"]
pub struct Outcome {
    /// The completion; `None` if it comes later through [`Subsystem::async_completions`] (Asynchronous Event Request).
    pub reply: Option<Reply>,
    /// When the host may see it.
    pub due: Nanos,
    /// To be called, without the subsystem's lock, before the host sees it; if it fails, [`Subsystem::failed_to_sync`] has
    /// the reply instead.
    pub durable: Option<Arc<dyn Durable>>,
}

/// What an executor returns.
pub(crate) struct Success {
    pub result: u64,
    pub durable: bool,
}

impl Subsystem {
    /// How late completions are, for those who hold them back until they are due.
    pub fn pacing(&self) -> &Arc<Pacing> {
        &self.pacing
    }

    /// The device has done its part of the current command at that time.
    pub(crate) fn note_done(&mut self, done: Done) {
        self.done_at = self.done_at.max(done.at);
    }

    /// A new drive, empty.
    ///
    /// # Errors
    /// The device configuration does not work, or the storage does not take the state.
    pub fn new(config: SubsystemConfig, media: Box<dyn Media>) -> Result<Subsystem, SetupError> {
        let mut state = Persistent::default();
        state.fdp.enabled = config.fdp;
        let device_config = Subsystem::device_config(&config, &state);
        let device = Device::with_sink(&device_config, DeviceReports::default())?;
        if !fdp::is_same_flash(&config.device, &fdp::without_fdp(&config.device)) {
            let problem = "the profile's reclaim groups cannot be made one when a host switches Flexible Data Placement off: \
                           capacity or blocks would differ; give geometry.capacity_bytes instead of physical_bytes, a \
                           multiple of the reclaim unit size times the groups, or more over-provisioning";
            return Err(SetupError::Mismatch(problem.to_string()));
        }
        let mut subsystem = Subsystem::assemble(config, device, media, state);
        if subsystem.config.namespace {
            subsystem.create_whole_namespace();
        }
        subsystem.keep_state()?;
        Ok(subsystem)
    }

    /// A drive as it was: its device, and its state from [`Media::keep`].
    ///
    /// # Errors
    /// The device is not the one that the state and the configuration are of.
    pub fn restore(
        config: SubsystemConfig,
        mut device: Device,
        media: Box<dyn Media>,
        state: Persistent,
    ) -> Result<Subsystem, SetupError> {
        let expected = Subsystem::device_config(&config, &state);
        // What is stored has no times: the drive may be served with others each time.
        device.set_timing(expected.timing.clone())?;
        if *device.config() != expected {
            return Err(SetupError::Mismatch(
                "the stored device has another geometry or other handles than the profile; serve it with the profile and \
                 capacity that it was made with, or start with new data"
                    .to_string(),
            ));
        }
        let (device, ()) = device.replace_sink(DeviceReports::default());
        Ok(Subsystem::assemble(config, device, media, state))
    }

    /// The device that a drive of this configuration has in this state.
    pub fn device_config(config: &SubsystemConfig, state: &Persistent) -> DeviceConfig {
        if state.fdp.enabled {
            let mut configurations = fdp::configurations(&config.device);
            let index = usize::from(state.fdp.configuration).min(configurations.len() - 1);
            configurations.swap_remove(index)
        } else {
            fdp::without_fdp(&config.device)
        }
    }

    fn assemble(
        config: SubsystemConfig,
        device: Device<DeviceReports>,
        media: Box<dyn Media>,
        mut state: Persistent,
    ) -> Subsystem {
        state.namespaces.resize(NAMESPACES_MAX as usize, None);
        state.smart.power_cycles += 1;
        let sanitize = admin::sanitize::Sanitizing::resumed(&state.sanitize, device.layout().logical_pages);
        Subsystem {
            configurations: fdp::configurations(&config.device),
            config,
            device,
            durable: media.durable(),
            media,
            media_errors_before: state.smart.media_errors,
            shared_features: admin::features::Features::default(),
            state,
            controllers: Vec::new(),
            now: 0,
            done_at: 0,
            pacing: Arc::default(),
            clock: admin::features::Clock::default(),
            sanitize,
            opened: crate::io::management::OpenSince::default(),
            next_group: 0,
            scratch: Vec::new(),
        }
    }

    /// The namespace that a new drive comes with: everything, each handle with a placement handle.
    fn create_whole_namespace(&mut self) {
        let handles = match self.state.fdp.enabled {
            true => (0..self.device.config().handles.count).map(RuhId).collect(),
            false => fdp::default_handles(),
        };
        let pages = self.device.layout().logical_pages;
        let block_bytes_log2 = crate::namespace::FORMATS[usize::from(self.config.format)].data_bytes_log2;
        let blocks = (u64::from(pages) * self.page_bytes()) >> block_bytes_log2;
        let mut namespace = self
            .new_namespace(blocks, self.config.format, handles)
            .expect("a new drive has room for a namespace");
        // Hosts on every transport can use it like this.
        namespace.extended_metadata = namespace.metadata_bytes() > 0;
        namespace.shared = true;
        namespace.host_specified_handles = self.state.fdp.enabled;
        namespace.attached.insert(Namespace::EVERYONE);
        self.state.namespaces[0] = Some(namespace);
    }

    /// Bytes of a page of the device.
    pub fn page_bytes(&self) -> u64 {
        self.device.layout().page_bytes
    }

    /// Logical capacity of the drive.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.device.layout().logical_pages) * self.page_bytes()
    }

    /// The device behind it.
    pub fn device(&self) -> &Device<DeviceReports> {
        &self.device
    }

    /// How it was made.
    pub fn config(&self) -> &SubsystemConfig {
        &self.config
    }

    /// Its non-volatile state.
    pub fn state(&self) -> &Persistent {
        &self.state
    }

    /// The namespaces that exist, with their identifiers.
    pub fn namespaces(&self) -> impl Iterator<Item = (u32, &Namespace)> {
        let numbered = (1..).zip(&self.state.namespaces);
        numbered.filter_map(|(nsid, namespace)| Some((nsid, namespace.as_ref()?)))
    }

    /// Stores the non-volatile state; called before a command that changed it completes.
    pub(crate) fn keep_state(&mut self) -> Result<(), MediaError> {
        self.media.keep(&self.state.to_bytes())
    }

    /// The state as a checkpoint stores it, with the counters up to date.
    pub fn state_for_checkpoint(&mut self) -> &Persistent {
        self.state.smart.powered_on_ns += std::mem::replace(&mut self.clock.counted_ns, self.now).abs_diff(self.now);
        &self.state
    }

    // ------------------------------------------------------------------------------------------- controllers --

    /// Makes a controller for a host that connects.
    ///
    /// # Errors
    /// There are too many ("Connect Controller Busy").
    pub fn connect(
        &mut self,
        now: Nanos,
        transport: Transport,
        kind: ControllerKind,
        host: Host,
    ) -> Result<u16, Failure> {
        self.now = self.now.max(now);
        let slot = match self.controllers.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.controllers.len() < usize::from(self.config.controllers_max) => {
                self.controllers.push(None);
                self.controllers.len() - 1
            }
            None => {
                let cause = format!("all {} controllers are taken", self.config.controllers_max);
                return Err(Failure::new(Status::CONNECT_CONTROLLER_BUSY, cause).retryable());
            }
        };
        let id = slot as u16 + 1;
        let mut controller = Controller::new(id, transport, kind, host);
        controller.heard_of = self.now;
        controller.features = self.initial_features();
        self.controllers[slot] = Some(controller);
        Ok(id)
    }

    /// The host is gone: its controller is.
    pub fn disconnect(&mut self, id: u16) {
        if let Some(slot) = self.controllers.get_mut(usize::from(id) - 1) {
            *slot = None;
        }
    }

    /// A controller.
    ///
    /// # Panics
    /// There is no such controller: transports use only what `connect` gave them.
    pub fn controller(&self, id: u16) -> &Controller {
        self.controllers[usize::from(id) - 1]
            .as_ref()
            .expect("a connected controller")
    }

    /// The same, to change it.
    pub(crate) fn controller_mut(&mut self, id: u16) -> &mut Controller {
        self.controllers[usize::from(id) - 1]
            .as_mut()
            .expect("a connected controller")
    }

    /// Whether a controller is still there (keep alive may have ended it).
    pub fn is_connected(&self, id: u16) -> bool {
        self.controllers
            .get(usize::from(id).wrapping_sub(1))
            .is_some_and(Option::is_some)
    }

    /// All controllers.
    pub fn controllers(&self) -> impl Iterator<Item = &Controller> {
        self.controllers.iter().flatten()
    }

    pub(crate) fn controllers_mut(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.controllers.iter_mut().flatten()
    }

    /// Whom to call when the controller has asynchronous completions.
    pub fn set_waker(&mut self, id: u16, waker: Waker) {
        self.controller_mut(id).waker = Some(waker);
    }

    /// Sets the keep alive timeout (Connect command, or Set Features 0Fh), rounded up to the granularity (KAS); 0 for none.
    pub fn set_keep_alive(&mut self, id: u16, timeout_ms: u32) {
        let rounded = timeout_ms.checked_next_multiple_of(admin::features::KEEP_ALIVE_GRANULARITY_MS);
        self.controller_mut(id).keep_alive_ms = rounded.unwrap_or(timeout_ms);
    }

    /// Reads a property. What the transport keeps itself (AQA, ASQ, ACQ, interrupt masks) reads as 0 here.
    pub fn property_get(&self, id: u16, property: Property) -> u64 {
        let controller = self.controller(id);
        match property {
            Property::Cap => controller.cap.into_bits(),
            Property::Vs => u64::from(Controller::VERSION.into_bits()),
            Property::Cc => u64::from(controller.cc.into_bits()),
            Property::Csts => u64::from(controller.csts.into_bits()),
            Property::Crto => {
                // Ready timeouts in units of 500 ms: with media as CAP.TO says, independent of media the same.
                let to = u64::from(controller.cap.to());
                to << 16 | to
            }
            _ => 0,
        }
    }

    /// Writes a property; writes to read-only ones do nothing.
    pub fn property_set(&mut self, now: Nanos, id: u16, property: Property, value: u64) -> PropertyEffect {
        self.now = self.now.max(now);
        let now = self.now;
        match property {
            Property::Cc => {
                let effect = self.controller_mut(id).configure(value as u32, now);
                if effect == PropertyEffect::Reset {
                    self.after_reset(id);
                }
                effect
            }
            Property::Csts => {
                // NSSRO is cleared by writing 1.
                let controller = self.controller_mut(id);
                if register::Csts::from_bits(value as u32).nssro() {
                    controller.csts.set_nssro(false);
                }
                PropertyEffect::None
            }
            Property::Nssr if value == u64::from(register::NSSR_RESET) => PropertyEffect::SubsystemReset,
            _ => PropertyEffect::None,
        }
    }

    /// Whether an NVM Subsystem Reset has reset a controller. On Fabrics, whose hosts cannot clear this (CAP.NSSRS is 0), that
    /// ends the association.
    pub fn is_subsystem_reset(&self, id: u16) -> bool {
        self.controller(id).csts.nssro()
    }

    /// Resets a controller without its host's asking (function level reset, lost connection, subsystem reset).
    pub fn reset_controller(&mut self, id: u16) {
        let controller = self.controller_mut(id);
        controller.cc = Default::default();
        controller.reset();
        self.after_reset(id);
    }

    fn after_reset(&mut self, id: u16) {
        let features = self.initial_features();
        let controller = self.controller_mut(id);
        controller.features = features;
        controller.keep_alive_ms = 0;
    }

    /// What a shutdown needs before [`Subsystem::finish_shutdown`]: the volatile write cache made durable.
    pub fn durable(&self) -> Option<Arc<dyn Durable>> {
        self.durable.clone()
    }

    /// Completes a shutdown that the host asked for.
    pub fn finish_shutdown(&mut self, id: u16) {
        if self.is_connected(id) {
            self.controller_mut(id).finish_shutdown();
        }
    }

    // ---------------------------------------------------------------------------------------------- commands --

    /// What data a command moves. To be called again after the data has come: other hosts may have changed the format.
    ///
    /// # Errors
    /// The command cannot be carried out; [`Subsystem::fail`] makes it a reply.
    pub fn transfer(&self, id: u16, queue: u16, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        self.check_entry(id, entry)?;
        match queue {
            0 => self.admin_transfer(id, entry),
            _ => self.io_transfer(id, entry),
        }
    }

    /// Carries out a command. `data` is what it moves: the host's data, of the length that [`Subsystem::transfer`] said
    /// ([`Transfer::total_bytes`]: data, then separate metadata); or a buffer that the data for the host is put into. What is
    /// in `data` afterwards is for the host only if the transfer goes to it; its length is then what is to be sent, 0 if the
    /// command failed. The host's own data stays after a success, so that its buffer can be used again as it is.
    pub fn execute(&mut self, now: Nanos, id: u16, queue: u16, entry: &SubmissionEntry, data: &mut Vec<u8>) -> Outcome {
        self.now = self.now.max(now);
        self.done_at = self.now;
        let result = match queue {
            0 => self.execute_admin(id, entry, data),
            _ => self.execute_io(id, entry, data).map(Some),
        };
        if queue != 0 && self.done_at == self.now {
            let done = self.device.command(self.now);
            self.note_done(done);
        }
        if !self.device.sink().is_empty() {
            self.note_device_reports();
        }
        match result {
            Ok(Some(success)) => Outcome {
                reply: Some(Reply::success(success.result)),
                due: self.done_at,
                durable: if success.durable { self.durable.clone() } else { None },
            },
            Ok(None) => Outcome {
                reply: None,
                due: self.now,
                durable: None,
            },
            Err(failure) => {
                data.clear();
                Outcome {
                    reply: Some(self.fail(id, queue, entry, failure)),
                    due: self.now,
                    durable: None,
                }
            }
        }
    }

    /// The reply to a command that fails, with its entry in the error log. Also for failures that the transport finds
    /// (data pointers, transfer errors).
    pub fn fail(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, failure: Failure) -> Reply {
        let more = self.log_error(id, queue, entry, &failure);
        Reply {
            result: 0,
            status: failure.status,
            do_not_retry: failure.do_not_retry,
            more,
        }
    }

    /// The reply to a command whose data could not be made durable.
    pub fn failed_to_sync(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, error: &std::io::Error) -> Reply {
        self.state.smart.media_errors += 1;
        let failure = Failure::new(
            Status::WRITE_FAULT,
            format!("the data could not be made durable: {error}"),
        );
        self.fail(id, queue, entry, failure)
    }

    /// What is wrong with any command, whatever it is.
    pub(crate) fn check_entry(&self, id: u16, entry: &SubmissionEntry) -> Result<(), Failure> {
        let controller = self.controller(id);
        if !controller.is_ready() {
            let cause = "the controller is not enabled";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        if entry.flags.fuse() != 0 {
            let cause = "fused operations are not supported";
            return Err(Failure::invalid_field(Parameter::dword(0, 8), cause));
        }
        Ok(())
    }

    pub(crate) fn unknown_opcode(entry: &SubmissionEntry, queue: &str) -> Failure {
        let cause = format!(
            "opcode {:#04x} is not an {queue} command of this controller",
            entry.opcode
        );
        Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(Parameter::OPCODE)
    }

    pub(crate) fn admin_opcode(entry: &SubmissionEntry) -> Result<AdminOpcode, Failure> {
        AdminOpcode::from_u8(entry.opcode).ok_or_else(|| Subsystem::unknown_opcode(entry, "admin"))
    }

    pub(crate) fn io_opcode(entry: &SubmissionEntry) -> Result<IoOpcode, Failure> {
        IoOpcode::from_u8(entry.opcode).ok_or_else(|| Subsystem::unknown_opcode(entry, "I/O"))
    }

    /// Completions of asynchronous event requests that are to be delivered now.
    pub fn async_completions(&mut self, id: u16) -> Vec<AsyncCompletion> {
        self.controller_mut(id).async_events.take_completions()
    }

    /// Lets time pass: background operations go on, limits expire. Returns the controllers whose keep alive timeout is
    /// over; the transport ends their connections.
    pub fn tick(&mut self, now: Nanos) -> Vec<u16> {
        self.now = self.now.max(now);
        self.continue_sanitize();
        self.check_time_limits();
        let now = self.now;
        let expired = |controller: &&Controller| {
            let timeout_ns = u64::from(controller.keep_alive_ms) * 1_000_000;
            timeout_ns > 0 && now.saturating_sub(controller.heard_of) > timeout_ns
        };
        self.controllers()
            .filter(expired)
            .map(|controller| controller.id)
            .collect()
    }

    /// A message of the host came: it is alive.
    pub fn heard_of(&mut self, now: Nanos, id: u16) {
        if self.is_connected(id) {
            self.controller_mut(id).heard_of = now;
        }
    }

    // -------------------------------------------------------------------------------------------- namespaces --

    /// An active namespace of a controller.
    pub(crate) fn active_namespace(&self, id: u16, nsid: u32) -> Result<&Namespace, Failure> {
        match self.state.namespaces.get((nsid as usize).wrapping_sub(1)) {
            Some(Some(namespace)) if namespace.is_attached(id) => Ok(namespace),
            // An allocated but inactive, or an unallocated namespace: "Invalid Field"; beyond NN: "Invalid Namespace".
            Some(_) => {
                let cause = format!("namespace {nsid} is not attached to controller {id}");
                Err(Failure::invalid_field(Parameter::NSID, cause))
            }
            None => {
                let cause = format!("{nsid:#x} is not a namespace identifier, they go from 1 to {NAMESPACES_MAX}");
                Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID))
            }
        }
    }
}
