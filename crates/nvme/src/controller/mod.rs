//! A controller: the properties a host sees as registers, and what belongs to one host's session with the drive.
//!
//! On PCI Express the properties are registers in BAR0, on Fabrics they are read and written by Property Get and Set;
//! the state machine is the same. Queues in host memory, doorbells and interrupts are not here but in `pcie`; on
//! Fabrics the transport has connections instead.

mod async_events;
mod error_log;
mod features;
mod list;

use std::sync::Arc;

use nvme_spec::register::{self, Cap, Cc, Csts, Vs};
use serde::{Deserialize, Serialize};
use ssd::Nanos;

pub use async_events::{ASYNC_EVENT_REQUESTS_MAX, AsyncCompletion, AsyncEvents, DoorbellError};
pub use error_log::{ERROR_LOG_ENTRIES_MAX, ErrorLog};
pub use features::Features;
pub(crate) use list::Controllers;

use crate::traffic::HostTraffic;

/// How a host reaches a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Queues in host memory (vfio-user).
    Pcie,
    /// Messages (NVMe/TCP).
    Fabrics,
}

/// What a controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// Namespaces and I/O queues.
    Io,
    /// Only the discovery log.
    Discovery,
}

/// Who connects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Host NQN; empty on PCI Express.
    pub nqn: String,
    /// Host identifier.
    pub id: [u8; 16],
}

/// Called when a controller has an asynchronous completion to deliver; must not block and may be called from any
/// thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What writing a property did, for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyEffect {
    /// Nothing that concerns it.
    None,
    /// The controller was enabled: its admin queue may be used.
    Enabled,
    /// The controller was reset: queues and outstanding commands are gone.
    Reset,
    /// The host asked for a shutdown; everything must be made durable, then [`Controller::finish_shutdown`].
    Shutdown,
    /// The whole subsystem is reset (NSSR): every controller.
    SubsystemReset,
}

/// One controller of the subsystem.
pub struct Controller {
    /// CNTLID.
    pub id: u16,
    /// How its host reaches it.
    pub transport: Transport,
    /// What it is for.
    pub kind: ControllerKind,
    /// Its host.
    pub host: Host,
    /// Whether the host is who it says: it has proved that, or does not need to.
    pub established: bool,
    /// Controller Capabilities.
    pub cap: Cap,
    /// Controller Configuration.
    pub cc: Cc,
    /// Controller Status.
    pub csts: Csts,
    /// Keep alive timeout, 0 for none (KATO, milliseconds).
    pub keep_alive_ms: u32,
    /// When it was made for its host.
    pub connected_at: Nanos,
    /// When something was last heard of the host.
    pub heard_of: Nanos,
    /// I/O queues that it may have beside what the configuration says, where its transport shares what there is.
    pub io_queues_max: u16,
    /// Current values of its features.
    pub features: Features,
    /// Asynchronous event requests and events.
    pub async_events: AsyncEvents,
    /// Its error log.
    pub errors: ErrorLog,
    /// What its host has the drive do.
    pub traffic: HostTraffic,
    /// Whom to call for asynchronous completions.
    pub waker: Option<Waker>,
}

/// Most entries of a queue (MQES + 1).
pub const QUEUE_ENTRIES_MAX: u32 = 4096;
/// Keep alive timeouts are rounded up to a multiple of this (KAS, which counts it in units of 100 ms).
pub const KEEP_ALIVE_GRANULARITY_MS: u32 = 100;
/// Worst time to become ready, in units of 500 ms (CAP.TO).
const READY_TIMEOUT: u8 = 20;

/// What the controllers of a transport can do (CAP).
fn capabilities(transport: Transport) -> Cap {
    Cap::new()
        .with_mqes((QUEUE_ENTRIES_MAX - 1) as u16)
        .with_cqr(true)
        .with_to(READY_TIMEOUT)
        .with_nssrs(transport == Transport::Pcie)
        // NVM command set, and the I/O command set vectors of CNS 1Ch.
        .with_css(register::CSS_NVM | register::CSS_IOCS)
        .with_mpsmin(0)
        .with_mpsmax(0)
        // Controller ready independent of media: not offered; ready with media is.
        .with_crms(register::CRMS_CRWMS)
}

impl Controller {
    pub(crate) fn new(id: u16, transport: Transport, kind: ControllerKind, host: Host) -> Controller {
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
            heard_of: 0,
            io_queues_max: u16::MAX,
            features: Features::default(),
            async_events: AsyncEvents::default(),
            errors: ErrorLog::default(),
            traffic: HostTraffic::default(),
            waker: None,
        }
    }

    /// The version of the standard that it implements: the Version property.
    pub const VERSION: Vs = Vs::V2_1;

    /// Whether it takes commands.
    pub fn is_ready(&self) -> bool {
        self.csts.rdy()
    }

    /// Whether nothing was heard of the host for longer than its keep alive timeout.
    pub(crate) fn is_expired(&self, now: Nanos) -> bool {
        let timeout_ns = u64::from(self.keep_alive_ms) * 1_000_000;
        timeout_ns > 0 && now.saturating_sub(self.heard_of) > timeout_ns
    }

    /// Writes Controller Configuration.
    pub(crate) fn configure(&mut self, value: u32, now: Nanos) -> PropertyEffect {
        let (old, new) = (self.cc, Cc::from_bits(value));
        assert!(
            old.en() || !self.csts.rdy(),
            "a controller that is not enabled is not ready"
        );
        self.cc = new;
        if !old.en() && new.en() {
            if self.configuration_is_valid() {
                self.csts.set_rdy(true);
                self.csts.set_shst(register::SHST_NORMAL);
                self.heard_of = now;
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

    /// What the host chose is something that CAP offers (NVMe 2.1, section 3.1.4.5).
    fn configuration_is_valid(&self) -> bool {
        // IOSQES and IOCQES may be set later, before the first I/O queue is made.
        let command_sets = matches!(self.cc.css(), register::CC_CSS_NVM | register::CC_CSS_ALL);
        self.cc.mps() == 0 && command_sets && self.cc.ams() == 0
    }

    /// Controller Level Reset: everything but what the standard keeps. Saved feature values are applied by the
    /// subsystem.
    pub(crate) fn reset(&mut self) {
        // That there was an NVM Subsystem Reset stays known until the host clears it (NVMe 2.1, "Controller Status").
        self.csts = Csts::new().with_nssro(self.csts.nssro());
        self.async_events = AsyncEvents::default();
        self.features = Features::default();
        assert!(
            !self.csts.rdy() && !self.csts.cfs(),
            "a reset ends readiness and failure"
        );
        // On Fabrics the identifier is that of the Connect command, for as long as the association lasts.
        if self.transport == Transport::Pcie {
            self.host = Host::default();
        }
    }

    /// Everything is durable: the shutdown that the host asked for is complete.
    pub(crate) fn finish_shutdown(&mut self) {
        self.csts.set_shst(register::SHST_COMPLETE);
    }

    /// Tells the transport that an asynchronous completion waits.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker();
        }
    }
}
