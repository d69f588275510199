//! The NVM subsystem, which is one drive with its namespaces, endurance group and controllers.
//!
//! ```text
//! transport -> connect, property_get/set -> Controller                     (controller_commands)
//!           -> accept (parse, data size) -> the transport fetches the data (command)
//!           -> execute (command, data)   -> admin or io -> ssd::Device, Media -> PendingReply
//!           -> async_completions, tick
//! ```
//!
//! The subsystem is sans-I/O. It has no sockets, threads or clock. The caller passes the time with
//! every call.
//! A command is executed immediately and completely. The [`PendingReply`](crate::PendingReply)
//! contains the time at which the host may see the completion. Transports share one subsystem
//! behind a lock.

use std::sync::Arc;

use nvme_spec::Status;
use ssd::checkpoint::CheckpointBuffer;
use ssd::{Checkpoint, CheckpointAbort, Device, DeviceConfig, RuhId, WriteRequest};

use crate::background::BackgroundOperations;
use crate::clock::DriveClock;
use crate::completion_lag::LagRecorder;
use crate::controller::{Controllers, Features};
use crate::error::Failure;
use crate::fault::FaultState;
use crate::fault::cache::CachedMedia;
use crate::fdp::{self, FdpEventSink, FdpRuntime};
use crate::media::{Media, MediaError, MonotonicCounters, ScrubResults};
use crate::namespace::{FORMATS, Namespace};
use crate::setup::{SetupError, SubsystemConfig};
use crate::state::NonVolatileState;
use crate::traffic::LatencyHistogram;

/// The drive. See the module documentation.
pub struct Subsystem {
    pub(crate) config: SubsystemConfig,
    pub(crate) device: Device<FdpEventSink>,
    pub(crate) media: CachedMedia,
    pub(crate) state: NonVolatileState,
    pub(crate) controllers: Controllers,
    pub(crate) clock: DriveClock,
    pub(crate) fdp: FdpRuntime,
    pub(crate) faults: FaultState,
    pub(crate) background: BackgroundOperations,
    pub(crate) shared_features: Features,
    /// Latencies of I/O commands of each kind since the drive was opened, all hosts together.
    pub(crate) latencies: [LatencyHistogram; 3],
    /// Buffer for data that no host sees, used by Copy, Compare and Verify.
    pub(crate) scratch: Vec<u8>,
    /// Writes of a fast-path batch that the device has not executed yet.
    pub(crate) writes: Vec<WriteRequest>,
    pacing: Arc<LagRecorder>,
}

impl Subsystem {
    /// Lateness statistics, shared with the code that delays completions until they are due.
    pub fn pacing(&self) -> &Arc<LagRecorder> {
        &self.pacing
    }

    /// Creates a new, empty drive.
    ///
    /// # Errors
    /// The device configuration is invalid, or the storage cannot store the state.
    pub fn new(config: SubsystemConfig, media: Box<dyn Media>) -> Result<Subsystem, SetupError> {
        let mut state = NonVolatileState::default();
        state.fdp.enabled = config.fdp;
        let device_config = Subsystem::device_config(&config, &state);
        let device = Device::with_sink(&device_config, FdpEventSink::default())?;
        if !fdp::is_same_flash(&config.device, &fdp::without_fdp(&config.device)) {
            let problem = "the drive cannot keep its capacity and blocks when a host disables Flexible Data Placement. \
                           Set geometry.capacity_bytes instead of physical_bytes, to a multiple of the reclaim unit \
                           size times the groups, or raise over_provisioning";
            return Err(SetupError::Mismatch(problem.to_string()));
        }
        let mut subsystem = Subsystem::assemble(config, device, media, state);
        if subsystem.config.namespace {
            subsystem.create_whole_namespace();
        }
        subsystem.persist_state()?;
        Ok(subsystem)
    }

    /// Keeps the maps of a new drive's devices in little memory ([`ssd::DeviceCore::make_compact`]).
    ///
    /// # Errors
    /// The system has no address space for it.
    pub fn make_compact(&mut self) -> Result<(), SetupError> {
        Ok(self.device.make_compact()?)
    }

    /// Restores a drive from its device and the state that [`Media::store_state`] stored.
    ///
    /// # Errors
    /// The device does not match the state and the configuration.
    pub fn restore(
        config: SubsystemConfig,
        mut device: Device,
        media: Box<dyn Media>,
        state: NonVolatileState,
    ) -> Result<Subsystem, SetupError> {
        let expected = Subsystem::device_config(&config, &state);
        // The stored device has no timing, because each start may use another one.
        device.set_timing(expected.timing.clone())?;
        if *device.config() != expected {
            return Err(SetupError::Mismatch(
                "the stored device has another geometry or other handles than the profile. Serve it with the original \
                 profile and capacity, or start with new data"
                    .to_string(),
            ));
        }
        state.namespaces.check(device.layout()).map_err(|problem| {
            SetupError::Mismatch(format!(
                "the stored state belongs to another device, because {problem}. Restore it from a copy"
            ))
        })?;
        let (device, ()) = device.replace_sink(FdpEventSink::default());
        Ok(Subsystem::assemble(config, device, media, state))
    }

    /// Configuration of the device for a drive in this state.
    pub fn device_config(config: &SubsystemConfig, state: &NonVolatileState) -> DeviceConfig {
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
        device: Device<FdpEventSink>,
        media: Box<dyn Media>,
        mut state: NonVolatileState,
    ) -> Subsystem {
        state.namespaces.allocate_slots();
        state.smart.start();
        state.end_inheritances();
        let mut background = BackgroundOperations::default();
        background.begin_sanitize(&state.sanitize, device.layout().logical_pages);
        Subsystem {
            fdp: FdpRuntime::new(&config.device, config.reclaim_unit_time_limit_s),
            controllers: Controllers::new(config.controllers_max),
            config,
            device,
            media: CachedMedia::new(media),
            state,
            clock: DriveClock::default(),
            faults: FaultState::default(),
            background,
            shared_features: Features::default(),
            latencies: Default::default(),
            scratch: Vec::new(),
            writes: Vec::new(),
            pacing: Arc::default(),
        }
    }

    /// Creates the namespace of a new drive. It covers the whole capacity, and each reclaim unit
    /// handle gets a placement handle.
    fn create_whole_namespace(&mut self) {
        let handles = if self.state.fdp.enabled {
            (0..self.device.config().handles.count).map(RuhId).collect()
        } else {
            fdp::default_handles()
        };
        let pages = self.device.layout().logical_pages;
        let block_bytes_log2 = FORMATS[usize::from(self.config.format)].data_bytes_log2;
        let blocks = (u64::from(pages) * self.page_bytes()) >> block_bytes_log2;
        let mut namespace =
            self.new_namespace(blocks, self.config.format, handles).expect("a new drive has space for a namespace");
        assert_eq!(namespace.pages(), u64::from(pages), "it has the whole drive");
        // These settings let hosts on every transport use the namespace.
        namespace.extended_metadata = namespace.metadata_bytes() > 0;
        namespace.shared = true;
        namespace.host_specified_handles = self.state.fdp.enabled;
        namespace.attached.insert(Namespace::EVERYONE);
        self.state.namespaces.add(1, namespace);
        assert_eq!(self.state.namespaces.check(self.device.layout()), Ok(()), "a new drive can be restored");
    }

    /// Size of a device page, in bytes.
    pub fn page_bytes(&self) -> u64 {
        self.device.layout().page_bytes
    }

    /// Logical capacity of the drive, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.device.layout().logical_pages) * self.page_bytes()
    }

    /// The device model behind the drive.
    pub fn device(&self) -> &Device<FdpEventSink> {
        &self.device
    }

    /// Latencies of I/O commands of all hosts since the drive was opened. One histogram for each
    /// kind, in the order of [`CommandKind::ALL`](crate::traffic::CommandKind::ALL).
    pub fn latencies(&self) -> &[LatencyHistogram; 3] {
        &self.latencies
    }

    /// Results of storage scrubs, if the storage has any.
    pub fn scrub_results(&self) -> Option<ScrubResults> {
        self.media.scrub_results()
    }

    /// Configuration of the subsystem.
    pub fn config(&self) -> &SubsystemConfig {
        &self.config
    }

    /// Non-volatile state of the drive.
    pub fn state(&self) -> &NonVolatileState {
        &self.state
    }

    /// The namespaces that exist, with their identifiers.
    pub fn namespaces(&self) -> impl Iterator<Item = (u32, &Namespace)> {
        self.state.namespaces.iter()
    }

    /// Stores the non-volatile state. Called before a command that changed it completes.
    pub(crate) fn persist_state(&mut self) -> Result<(), MediaError> {
        self.media.store_state(&self.state.to_bytes())
    }

    /// Stores the non-volatile state for a command.
    ///
    /// # Errors
    /// The storage failed. The host gets Internal Error and may retry the command.
    pub(crate) fn store_state(&mut self) -> Result<(), Failure> {
        self.persist_state().map_err(|error| {
            Failure::new(Status::INTERNAL_ERROR, format!("the drive's state could not be stored ({error})")).retryable()
        })
    }

    pub(crate) fn store_state_or(&mut self, undo: impl FnOnce(&mut Subsystem)) -> Result<(), Failure> {
        let stored = self.store_state();
        if stored.is_err() {
            undo(self);
        }
        stored
    }

    /// State for a checkpoint, with current counters.
    pub fn state_for_checkpoint(&mut self) -> &NonVolatileState {
        self.state.smart.powered_on_ns += self.clock.take_uncounted_ns();
        &self.state
    }

    /// Begins a checkpoint of the current device state ([`Device::begin_checkpoint`]).
    pub fn begin_checkpoint(&mut self, buffer: CheckpointBuffer) -> Checkpoint {
        self.device.begin_checkpoint(buffer)
    }

    /// Copies the next part of the device's map for a checkpoint.
    ///
    /// # Errors
    /// The same as [`Device::copy_part`].
    pub fn copy_part(&mut self, checkpoint: &mut Checkpoint) -> Result<(), CheckpointAbort> {
        self.device.copy_part(checkpoint)
    }

    /// Abandons a checkpoint ([`Device::end_checkpoint`]).
    pub fn end_checkpoint(&mut self, checkpoint: &mut Checkpoint) {
        self.device.end_checkpoint(checkpoint);
    }

    /// Advances time. Background operations continue and time limits expire. Returns the
    /// controllers whose keep alive timeout has passed. The transport ends their connections.
    pub fn tick(&mut self, now: ssd::Nanos) -> Vec<u16> {
        self.clock.advance(now);
        self.continue_sanitize();
        self.continue_self_test();
        self.store_test_results();
        self.check_time_limits();
        self.continue_faults();
        self.state.latency_monitor.advance(self.clock.now());
        self.record_counters();
        self.controllers.expired(self.clock.now())
    }

    pub(crate) fn record_counters(&mut self) {
        let smart = &self.state.smart;
        self.media.record_counters(&MonotonicCounters {
            totals: self.device.stats().totals(),
            host_bytes_read: smart.host_bytes_read,
            host_bytes_written: smart.host_bytes_written,
            read_commands: smart.read_commands,
            write_commands: smart.write_commands,
        });
    }
}
