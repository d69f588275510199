//! The controllers of a drive, by identifier.

use std::collections::BTreeSet;

use nvme_spec::{FeatureId, LogId};
use ssd::Nanos;

use super::{Controller, ControllerKind, HostTransport};
use crate::namespace::Namespace;

pub(crate) struct Controllers {
    /// Slots by identifier - 1.
    slots: Vec<Option<Controller>>,
    most: u16,
}

impl Controllers {
    pub(crate) fn new(most: u16) -> Controllers {
        Controllers { slots: Vec::new(), most }
    }

    /// Returns a connected controller. Transports use only identifiers from `connect`.
    #[inline]
    pub(crate) fn get(&self, id: u16) -> &Controller {
        self.slots[usize::from(id) - 1].as_ref().expect("a connected controller")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u16) -> &mut Controller {
        self.slots[usize::from(id) - 1].as_mut().expect("a connected controller")
    }

    pub(crate) fn is_connected(&self, id: u16) -> bool {
        self.slots.get(usize::from(id).wrapping_sub(1)).is_some_and(Option::is_some)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Controller> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn free_identifiers(&self) -> impl Iterator<Item = u16> {
        (1..=self.most).filter(|&id| !self.is_connected(id))
    }

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

    pub(crate) fn remove(&mut self, id: u16) {
        let removed = self.slots[usize::from(id) - 1].take();
        assert!(removed.is_some(), "controller {id} was connected");
    }

    /// Another I/O controller of the same host on Fabrics. Only controllers of authenticated hosts
    /// count.
    pub(crate) fn peer_of(&self, id: u16) -> Option<u16> {
        let controller = self.get(id);
        let is_io = |its: &Controller| (its.transport, its.kind) == (HostTransport::Fabrics, ControllerKind::Io);
        let is_peer = |its: &&Controller| its.id != id && its.established && is_io(its) && its.host == controller.host;
        let peer = self.iter().find(is_peer).map(|peer| peer.id);
        peer.filter(|_| controller.established && is_io(controller))
    }

    pub(crate) fn any_turned_off(&self, feature: FeatureId) -> bool {
        const OFF: Option<u32> = Some(0);
        self.iter().any(|controller| controller.features.value(feature, 0) == OFF)
    }

    pub(crate) fn expired(&self, now: Nanos) -> Vec<u16> {
        self.iter().filter(|controller| controller.is_expired(now)).map(|controller| controller.id).collect()
    }

    /// Reports a changed namespace to its controllers. Changes are deletion, attachment,
    /// detachment, formatting and new attributes. `attached` are the controllers that had or have
    /// the namespace (see [`Namespace::attached`]).
    pub(crate) fn note_namespace_changed(&mut self, nsid: u32, attached: &BTreeSet<u16>) {
        let has_it = |id: u16| attached.contains(&id) || attached.contains(&Namespace::EVERYONE);
        let concerned = |its: &&mut Controller| its.kind == ControllerKind::Io && has_it(its.id);
        for controller in self.iter_mut().filter(concerned) {
            controller.note_namespace_changed(nsid);
        }
    }

    /// Drops events of the previous sanitize operation when a new one begins (Base Specification,
    /// "Sanitize Operations").
    pub(crate) fn forget_sanitize_events(&mut self) {
        for controller in self.iter_mut() {
            controller.async_events.forget(LogId::SanitizeStatus);
        }
    }

    /// Reports the end of a sanitize operation. `deallocated` is true if blocks were deallocated
    /// against the host's request.
    pub(crate) fn note_sanitize_completed(&mut self, deallocated: bool) {
        let is_io = |its: &&mut Controller| its.kind == ControllerKind::Io;
        for controller in self.iter_mut().filter(is_io) {
            controller.note_sanitize_completed(deallocated);
        }
    }
}
