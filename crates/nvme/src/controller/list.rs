//! The controllers of a drive, by identifier.

use std::collections::BTreeSet;

use nvme_spec::{FeatureId, LogId};
use ssd::Nanos;

use super::{Controller, ControllerKind, Transport};
use crate::namespace::Namespace;

/// See the module.
pub(crate) struct Controllers {
    /// By identifier - 1.
    slots: Vec<Option<Controller>>,
    most: u16,
}

impl Controllers {
    /// Room for so many.
    pub(crate) fn new(most: u16) -> Controllers {
        Controllers {
            slots: Vec::new(),
            most,
        }
    }

    /// A connected controller. Transports use only identifiers that they were given.
    #[inline]
    pub(crate) fn get(&self, id: u16) -> &Controller {
        self.slots[usize::from(id) - 1]
            .as_ref()
            .expect("a connected controller")
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: u16) -> &mut Controller {
        self.slots[usize::from(id) - 1]
            .as_mut()
            .expect("a connected controller")
    }

    /// Whether a controller is connected.
    pub(crate) fn is_connected(&self, id: u16) -> bool {
        let slot = self.slots.get(usize::from(id).wrapping_sub(1));
        slot.is_some_and(Option::is_some)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Controller> {
        self.slots.iter().flatten()
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.slots.iter_mut().flatten()
    }

    /// Identifiers that no connected controller has.
    pub(crate) fn free_identifiers(&self) -> impl Iterator<Item = u16> {
        (1..=self.most).filter(|&id| !self.is_connected(id))
    }

    /// Adds a controller with a free identifier.
    pub(crate) fn add(&mut self, controller: Controller) {
        let id = controller.id;
        assert!((1..=self.most).contains(&id), "controllers are limited");
        let slot = usize::from(id) - 1;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        let before = self.slots[slot].replace(controller);
        assert!(before.is_none(), "controller {id} was free");
    }

    /// A controller is gone.
    pub(crate) fn remove(&mut self, id: u16) {
        let gone = self.slots[usize::from(id) - 1].take();
        assert!(gone.is_some(), "controller {id} was connected");
    }

    /// Another I/O controller of the host that a controller on Fabrics is for. Only those count whose host is who it
    /// says.
    pub(crate) fn twin_of(&self, id: u16) -> Option<u16> {
        let controller = self.get(id);
        let is_io = |its: &Controller| (its.transport, its.kind) == (Transport::Fabrics, ControllerKind::Io);
        let is_twin = |its: &&Controller| its.id != id && its.established && is_io(its) && its.host == controller.host;
        let twin = self.iter().find(is_twin).map(|twin| twin.id);
        twin.filter(|_| controller.established && is_io(controller))
    }

    /// Whether a host has turned a feature off that is a switch. One is enough.
    pub(crate) fn any_turned_off(&self, feature: FeatureId) -> bool {
        const OFF: Option<u32> = Some(0);
        self.iter()
            .any(|controller| controller.features.value(feature, 0) == OFF)
    }

    /// The controllers whose keep alive timeout is over.
    pub(crate) fn expired(&self, now: Nanos) -> Vec<u16> {
        let expired = self.iter().filter(|controller| controller.is_expired(now));
        expired.map(|controller| controller.id).collect()
    }

    /// A namespace was deleted, attached, detached or formatted, or its attributes changed; `attached` are the
    /// controllers that had or have it (see [`Namespace::attached`]).
    pub(crate) fn note_namespace_changed(&mut self, nsid: u32, attached: &BTreeSet<u16>) {
        let has_it = |id: u16| attached.contains(&id) || attached.contains(&Namespace::EVERYONE);
        let concerned = |its: &&mut Controller| its.kind == ControllerKind::Io && has_it(its.id);
        for controller in self.iter_mut().filter(concerned) {
            controller.note_namespace_changed(nsid);
        }
    }

    /// A sanitize operation begins: events of the one before are history (Base Specification, "Sanitize Operations").
    pub(crate) fn forget_sanitize_events(&mut self) {
        for controller in self.iter_mut() {
            controller.async_events.forget(LogId::SanitizeStatus);
        }
    }

    /// A sanitize operation ended; blocks may have been `deallocated` although the host asked for the opposite.
    pub(crate) fn note_sanitize_completed(&mut self, deallocated: bool) {
        let is_io = |its: &&mut Controller| its.kind == ControllerKind::Io;
        for controller in self.iter_mut().filter(is_io) {
            controller.note_sanitize_completed(deallocated);
        }
    }
}
