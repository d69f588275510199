//! A controller, which has the properties that a host sees as registers and the state of one host's
//! session.
//!
//! On PCI Express the properties are registers in BAR0. On Fabrics, Property Get and Set access
//! them. The state machine is the same. `pcie` has the queues in host memory, doorbells and
//! interrupts. The Fabrics transport has connections instead.

mod async_events;
mod error_log;
mod list;

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme_spec::FeatureId;
use nvme_spec::feature::HostBehaviorSupport;
use nvme_spec::register::{self, Cap, Cc, Csts, Vs};
use serde::{Deserialize, Serialize};
use ssd::Nanos;

pub use async_events::{ASYNC_EVENT_REQUESTS_MAX, AsyncCompletion, AsyncEvents, DoorbellError};
pub use error_log::{ERROR_LOG_ENTRIES_MAX, ErrorLog};
pub(crate) use list::Controllers;

use crate::traffic::HostTraffic;

/// Transport between a host and a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostTransport {
    /// Queues in host memory (vfio-user).
    Pcie,
    /// Messages (NVMe/TCP).
    Fabrics,
}

/// Controller type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// Namespaces and I/O queues.
    Io,
    /// Only the discovery log.
    Discovery,
}

/// The host of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Host NQN, empty on PCI Express.
    pub nqn: String,
    /// Host identifier.
    pub id: [u8; 16],
}

/// Called when a controller has an asynchronous completion to deliver. The callback must not block
/// and must accept calls from any thread.
pub type EventWaker = Arc<dyn Fn() + Send + Sync>;

/// Effect of a property write on the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyEffect {
    /// No effect.
    None,
    /// The controller was enabled, and its admin queue may be used.
    Enabled,
    /// The controller was reset. Its queues and outstanding commands no longer exist.
    Reset,
    /// The host requested a shutdown. Make all data durable, then call
    /// [`Controller::finish_shutdown`].
    Shutdown,
    /// The whole subsystem, with every controller, is reset (NSSR).
    SubsystemReset,
}

/// One controller of the subsystem.
pub struct Controller {
    /// CNTLID.
    pub id: u16,
    /// Transport of the controller.
    pub transport: HostTransport,
    /// Type of the controller.
    pub kind: ControllerKind,
    /// Host of the controller.
    pub host: HostIdentity,
    /// The host has authenticated, or does not need to.
    pub established: bool,
    /// Controller Capabilities.
    pub cap: Cap,
    /// Controller Configuration.
    pub cc: Cc,
    /// Controller Status.
    pub csts: Csts,
    /// Keep alive timeout, 0 for none (KATO, milliseconds).
    pub keep_alive_ms: u32,
    /// Time at which the controller was created for its host.
    pub connected_at: Nanos,
    /// Time of the last message from the host.
    pub last_message_at: Nanos,
    /// Limit of the I/O queues beside the configured one, for transports that share queues between
    /// controllers.
    pub io_queues_max: u16,
    /// Current feature values of the controller.
    pub features: Features,
    /// Asynchronous event requests and events.
    pub async_events: AsyncEvents,
    /// Error log of the controller.
    pub errors: ErrorLog,
    /// Counters of the host's commands.
    pub traffic: HostTraffic,
    /// Callback for asynchronous completions.
    pub waker: Option<EventWaker>,
}

/// Current feature values of a controller or of the whole drive, by feature identifier and
/// instance. The checks of values are in `admin::features`. An instance is a namespace identifier, or stands for
/// an interrupt vector or a threshold. It is 0 for features with one value.
#[derive(Clone, Debug, Default)]
pub struct Features {
    values: BTreeMap<(u8, u32), u32>,
    pub(crate) host_behavior: HostBehaviorSupport,
}

impl Features {
    /// Current value in the form of Set Features' command dword 11, or `None` if never set.
    pub fn value(&self, id: FeatureId, instance: u32) -> Option<u32> {
        self.values.get(&(id.code(), instance)).copied()
    }

    pub(crate) fn set(&mut self, id: FeatureId, instance: u32, value: u32) {
        self.values.insert((id.code(), instance), value);
    }

    pub(crate) fn remove(&mut self, id: FeatureId, instance: u32) {
        self.values.remove(&(id.code(), instance));
    }
}

/// Most entries of a queue (MQES + 1).
pub const QUEUE_ENTRIES_MAX: u32 = 4096;
/// Granularity of keep alive timeouts, which are rounded up (KAS, in units of 100 ms).
pub const KEEP_ALIVE_GRANULARITY_MS: u32 = 100;
/// Worst time to become ready, in units of 500 ms (CAP.TO).
const READY_TIMEOUT: u8 = 20;

fn capabilities(transport: HostTransport) -> Cap {
    Cap::new()
        .with_mqes((QUEUE_ENTRIES_MAX - 1) as u16)
        .with_cqr(true)
        .with_to(READY_TIMEOUT)
        .with_nssrs(transport == HostTransport::Pcie)
        // NVM command set, and the I/O command set vectors of CNS 1Ch.
        .with_css(register::CSS_NVM | register::CSS_IOCS)
        .with_mpsmin(0)
        .with_mpsmax(0)
        // Offers only Controller Ready With Media, not Independent of Media.
        .with_crms(register::CRMS_CRWMS)
}

impl Controller {
    pub(crate) fn new(id: u16, transport: HostTransport, kind: ControllerKind, host: HostIdentity) -> Controller {
        Controller {
            id,
            transport,
            kind,
            host,
            established: false,
            cap: capabilities(transport),
            cc: Cc::new(),
            csts: Csts::new(),
            keep_alive_ms: 0,
            connected_at: 0,
            last_message_at: 0,
            io_queues_max: u16::MAX,
            features: Features::default(),
            async_events: AsyncEvents::default(),
            errors: ErrorLog::default(),
            traffic: HostTraffic::default(),
            waker: None,
        }
    }

    /// Version of the implemented standard, for the Version property.
    pub const VERSION: Vs = Vs::V2_1;

    /// True if the controller accepts commands.
    pub fn is_ready(&self) -> bool {
        self.csts.rdy()
    }

    pub(crate) fn is_expired(&self, now: Nanos) -> bool {
        let timeout_ns = u64::from(self.keep_alive_ms) * 1_000_000;
        timeout_ns > 0 && now.saturating_sub(self.last_message_at) > timeout_ns
    }

    pub(crate) fn configure(&mut self, value: u32, now: Nanos) -> PropertyEffect {
        let (old, new) = (self.cc, Cc::from_bits(value));
        assert!(old.en() || !self.csts.rdy(), "a controller that is not enabled is not ready");
        self.cc = new;
        if !old.en() && new.en() {
            if self.configuration_is_valid() {
                self.csts.set_rdy(true);
                self.csts.set_shst(register::SHST_NORMAL);
                self.last_message_at = now;
                return PropertyEffect::Enabled;
            }
            self.csts.set_cfs(true);
            return PropertyEffect::None;
        }
        if old.en() && !new.en() {
            self.reset();
            return PropertyEffect::Reset;
        }
        if old.shn() == 0 && new.shn() != 0 {
            self.csts.set_shst(register::SHST_OCCURRING);
            return PropertyEffect::Shutdown;
        }
        PropertyEffect::None
    }

    /// True if CAP offers the configuration that the host chose (NVMe 2.1, section 3.1.4.5).
    fn configuration_is_valid(&self) -> bool {
        // IOSQES and IOCQES may be set later, before the first I/O queue is made.
        let command_sets = matches!(self.cc.css(), register::CC_CSS_NVM | register::CC_CSS_ALL);
        self.cc.mps() == 0 && command_sets && self.cc.ams() == 0
    }

    /// Controller Level Reset. It clears all that the standard does not preserve. The subsystem
    /// applies the saved feature values.
    pub(crate) fn reset(&mut self) {
        // NSSRO stays set until the host clears it (NVMe 2.1, "Controller Status").
        self.csts = Csts::new().with_nssro(self.csts.nssro());
        self.async_events = AsyncEvents::default();
        self.features = Features::default();
        assert!(!self.csts.rdy() && !self.csts.cfs(), "a reset ends readiness and failure");
        // On Fabrics the Connect command sets the host identifier for the whole association.
        if self.transport == HostTransport::Pcie {
            self.host = HostIdentity::default();
        }
    }

    pub(crate) fn finish_shutdown(&mut self) {
        self.csts.set_shst(register::SHST_COMPLETE);
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker();
        }
    }
}
