//! Lifecycle of controllers, from the connection of a host through configuration and reset to
//! disconnection.
//!
//! PCI Express register accesses and Fabrics Property Get and Set use the same functions here.
//! `controller` contains the controller itself.

use std::sync::Arc;

use nvme_spec::command::SelfTestCode;
use nvme_spec::feature::NumberOfQueues;
use nvme_spec::register::{self, Property};
use nvme_spec::{FeatureId, Status};
use ssd::Nanos;

use crate::controller::{
    AsyncCompletion, Controller, ControllerKind, DoorbellError, EventWaker, HostIdentity, HostTransport,
    KEEP_ALIVE_GRANULARITY_MS, PropertyEffect,
};
use crate::error::Failure;
use crate::media::{FlushHandle, Media};
use crate::subsystem::Subsystem;

impl Subsystem {
    /// Creates a controller for a host that connects. On Fabrics the controller gets the namespaces
    /// of its host only with [`Subsystem::establish`]. Any client could have claimed the host's
    /// name before.
    ///
    /// # Errors
    /// All controllers are in use ("Connect Controller Busy").
    pub fn connect(
        &mut self,
        now: Nanos,
        transport: HostTransport,
        kind: ControllerKind,
        host: HostIdentity,
    ) -> Result<u16, Failure> {
        self.clock.advance(now);
        let Some(id) = self.free_controller(transport, kind, &host) else {
            let cause = format!("all {} controllers are in use", self.config.controllers_max);
            return Err(Failure::new(Status::CONNECT_CONTROLLER_BUSY, cause).retryable());
        };
        let mut controller = Controller::new(id, transport, kind, host);
        controller.connected_at = self.clock.now();
        controller.last_message_at = self.clock.now();
        controller.features = self.initial_features();
        self.controllers.add(controller);
        if transport == HostTransport::Pcie {
            self.establish(id);
        }
        Ok(id)
    }

    /// Chooses the identifier of a new controller. It prefers an identifier that the host had
    /// before, then one without a previous host. Namespaces stay attached to the identifier of a
    /// controller.
    fn free_controller(&self, transport: HostTransport, kind: ControllerKind, host: &HostIdentity) -> Option<u16> {
        let free = || self.controllers.free_identifiers();
        let is_own = |id: &u16| {
            let holder = self.state.holders.get(id);
            kind == ControllerKind::Io
                && holder.is_some_and(|(held_over, held_by)| *held_over == transport && held_by == host)
        };
        let unused = || free().find(|id| !self.state.holders.contains_key(id));
        free().find(is_own).or_else(unused).or_else(|| free().next())
    }

    /// Attaches the namespaces of its host to a controller. Call it after the host has
    /// authenticated, or at once if no authentication is required.
    pub fn establish(&mut self, id: u16) {
        let controller = self.controllers.get_mut(id);
        if std::mem::replace(&mut controller.established, true) || controller.kind != ControllerKind::Io {
            return;
        }
        let holder = (controller.transport, controller.host.clone());
        self.reclaim_namespaces(id, &holder);
        self.state.holders.insert(id, holder);
        self.attach_as_peer(id);
    }

    /// Moves private namespaces from disconnected controllers of the same host to this one.
    fn reclaim_namespaces(&mut self, id: u16, holder: &(HostTransport, HostIdentity)) {
        if holder.0 != HostTransport::Fabrics {
            return;
        }
        let of_host = self.state.holders.iter().filter(|(_, of)| *of == holder).map(|(&other, _)| other);
        let is_in_use = |other: u16| self.is_connected(other) && self.controller(other).established;
        let disconnected: Vec<u16> = of_host.filter(|&other| other != id && !is_in_use(other)).collect();
        for (_, namespace) in self.state.namespaces.iter_mut().filter(|(_, its)| !its.shared) {
            if disconnected.iter().any(|other| namespace.attached.remove(other)) {
                namespace.attached.insert(id);
                assert_eq!(namespace.attached.len(), 1, "a private namespace has one controller");
            }
        }
    }

    /// Attaches the shared namespaces that another controller of the same host has. "The initial
    /// set of attached namespaces should be the same for all controllers that are allocated to a
    /// specific host" (Base Specification 2.1, dynamic controller model). The attachment ends with
    /// the controller. Private namespaces do not move.
    fn attach_as_peer(&mut self, id: u16) {
        let Some(peer) = self.controllers.peer_of(id) else {
            return;
        };
        for (nsid, namespace) in self.state.namespaces.iter_mut().filter(|(_, its)| its.shared) {
            if namespace.attached.contains(&peer) && namespace.attached.insert(id) {
                self.state.inherited.insert((nsid, id));
            }
        }
    }

    fn detach_as_peer(&mut self, id: u16) {
        for (nsid, namespace) in self.state.namespaces.iter_mut() {
            if self.state.inherited.remove(&(nsid, id)) {
                namespace.attached.remove(&id);
            }
        }
        assert!(
            self.state.inherited.iter().all(|(_, its)| *its != id),
            "an inherited attachment ends with its namespace"
        );
    }

    /// Removes a controller after its host has disconnected. Its private namespaces move to another
    /// controller of the host, if one exists. Such a host reconnected before the drive detected the
    /// loss of the old connection.
    pub fn disconnect(&mut self, id: u16) {
        if !self.is_connected(id) {
            return;
        }
        if let Some(peer) = self.controllers.peer_of(id) {
            for (nsid, namespace) in self.state.namespaces.iter_mut().filter(|(_, its)| !its.shared) {
                if namespace.attached.remove(&id) {
                    namespace.attached.insert(peer);
                    assert_eq!(namespace.attached.len(), 1, "a private namespace has one controller");
                    self.controllers.note_namespace_changed(nsid, &[peer].into());
                }
            }
        }
        self.detach_as_peer(id);
        self.continue_self_test();
        self.end_self_test_by_reset(id);
        self.controllers.remove(id);
        let test = self.background.self_test.as_ref();
        assert!(
            test.is_none_or(|test| test.controller != id || test.code != SelfTestCode::Short),
            "a short self-test ends with its controller"
        );
    }

    /// Returns a controller.
    ///
    /// # Panics
    /// The controller does not exist. Transports use only identifiers from `connect`.
    pub fn controller(&self, id: u16) -> &Controller {
        self.controllers.get(id)
    }

    /// True if a controller exists. A keep alive timeout may have removed it.
    pub fn is_connected(&self, id: u16) -> bool {
        self.controllers.is_connected(id)
    }

    /// All controllers.
    pub fn controllers(&self) -> impl Iterator<Item = &Controller> {
        self.controllers.iter()
    }

    /// Sets the callback for asynchronous completions of a controller.
    pub fn set_waker(&mut self, id: u16, waker: EventWaker) {
        self.controllers.get_mut(id).waker = Some(waker);
    }

    /// Sets the keep alive timeout (Connect command, or Set Features 0Fh), rounded up to the
    /// granularity (KAS). 0 means no timeout.
    pub fn set_keep_alive(&mut self, id: u16, timeout_ms: u32) {
        let rounded = timeout_ms.checked_next_multiple_of(KEEP_ALIVE_GRANULARITY_MS);
        let rounded = rounded.unwrap_or(timeout_ms);
        assert!(rounded >= timeout_ms, "the Keep Alive Timeout is the requested one");
        self.controllers.get_mut(id).keep_alive_ms = rounded;
    }

    /// Reads a property. Properties of the transport (AQA, ASQ, ACQ, interrupt masks) read as 0
    /// here.
    pub fn property_get(&self, id: u16, property: Property) -> u64 {
        let controller = self.controller(id);
        match property {
            Property::Cap => controller.cap.into_bits(),
            Property::Vs => u64::from(Controller::VERSION.into_bits()),
            Property::Cc => u64::from(controller.cc.into_bits()),
            Property::Csts => u64::from(controller.csts.into_bits()),
            Property::Crto => {
                // Both ready timeouts are those of CAP.TO, in units of 500 ms.
                let to = u64::from(controller.cap.to());
                to << 16 | to
            }
            _ => 0,
        }
    }

    /// Writes a property. Writes to read-only properties have no effect.
    pub fn property_set(&mut self, now: Nanos, id: u16, property: Property, value: u64) -> PropertyEffect {
        self.clock.advance(now);
        let now = self.clock.now();
        match property {
            Property::Cc => {
                let effect = self.controllers.get_mut(id).configure(value as u32, now);
                if effect == PropertyEffect::Reset {
                    self.after_reset(id);
                }
                effect
            }
            Property::Csts => {
                // Writing 1 clears NSSRO.
                let controller = self.controllers.get_mut(id);
                if register::Csts::from_bits(value as u32).nssro() {
                    controller.csts.set_nssro(false);
                }
                PropertyEffect::None
            }
            Property::Nssr if value == u64::from(register::NSSR_RESET) => PropertyEffect::SubsystemReset,
            _ => PropertyEffect::None,
        }
    }

    /// Limits the I/O queues that a controller grants its host, to at least one.
    pub fn limit_io_queues(&mut self, id: u16, most: u16) {
        self.controllers.get_mut(id).io_queues_max = most.max(1);
    }

    /// I/O submission and completion queues granted to a controller's host. `None` before its first
    /// request.
    pub fn io_queues_granted(&self, id: u16) -> Option<(u16, u16)> {
        let value = self.controller(id).features.value(FeatureId::NumberOfQueues, 0)?;
        let granted = NumberOfQueues::from_bits(value);
        Some((granted.nsq() + 1, granted.ncq() + 1))
    }

    /// True if an NVM Subsystem Reset has reset a controller. On Fabrics the reset ends the
    /// association, because hosts cannot clear the bit (CAP.NSSRS is 0).
    pub fn is_subsystem_reset(&self, id: u16) -> bool {
        self.controller(id).csts.nssro()
    }

    /// Resets a controller without a request of its host (function level reset, lost connection,
    /// subsystem reset).
    pub fn reset_controller(&mut self, id: u16) {
        let controller = self.controllers.get_mut(id);
        controller.cc = Default::default();
        controller.reset();
        self.after_reset(id);
    }

    fn after_reset(&mut self, id: u16) {
        self.continue_self_test();
        self.end_self_test_by_reset(id);
        let features = self.initial_features();
        let controller = self.controllers.get_mut(id);
        assert!(!controller.cc.en() && !controller.is_ready(), "controller {id} was reset");
        controller.features = features;
        controller.keep_alive_ms = 0;
    }

    /// Handle that makes the volatile write cache durable. Use it before
    /// [`Subsystem::finish_shutdown`].
    pub fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        self.media.flush_handle()
    }

    /// Completes a shutdown that the host requested.
    pub fn finish_shutdown(&mut self, id: u16) {
        if self.is_connected(id) {
            self.controllers.get_mut(id).finish_shutdown();
        }
    }

    /// Takes the pending completions of asynchronous event requests.
    pub fn async_completions(&mut self, id: u16) -> Vec<AsyncCompletion> {
        self.controllers.get_mut(id).async_events.take_completions()
    }

    /// Reports an invalid doorbell write of the host.
    pub fn note_doorbell_error(&mut self, id: u16, error: DoorbellError) {
        self.controllers.get_mut(id).note_doorbell_error(error);
    }

    /// Records a message from the host, for keep alive.
    pub fn record_message(&mut self, now: Nanos, id: u16) {
        if self.is_connected(id) {
            self.controllers.get_mut(id).last_message_at = now;
        }
    }
}
