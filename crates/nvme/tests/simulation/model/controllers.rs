//! Controllers with their hosts and events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Model;
use crate::simulation::operation::Kind;

/// An asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    pub kind: u8,
    pub information: u8,
    pub log: u8,
}

impl AsyncEvent {
    pub const NAMESPACE_CHANGED: AsyncEvent = AsyncEvent::new(2, 0, 0x04);
    pub const GROUP_CHANGED: AsyncEvent = AsyncEvent::new(2, 6, 0x0f);
    pub const SANITIZED: AsyncEvent = AsyncEvent::new(6, 1, 0x81);
    pub const SANITIZED_DEALLOCATED: AsyncEvent = AsyncEvent::new(6, 2, 0x81);
    pub const TEMPERATURE: AsyncEvent = AsyncEvent::new(1, 1, 0x02);
    pub const RELIABILITY: AsyncEvent = AsyncEvent::new(1, 0, 0x02);
    pub const DOORBELL_REGISTER: AsyncEvent = AsyncEvent::new(0, 0, 0x01);
    pub const DOORBELL_VALUE: AsyncEvent = AsyncEvent::new(0, 1, 0x01);

    const fn new(kind: u8, information: u8, log: u8) -> AsyncEvent {
        AsyncEvent { kind, information, log }
    }

    /// Dword 0 of the completion.
    pub fn result(self) -> u64 {
        u64::from(self.kind) | u64::from(self.information) << 8 | u64::from(self.log) << 16
    }
}

/// A completion, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub cid: u16,
    pub status: u16,
    pub do_not_retry: bool,
    pub result: u64,
}

/// An entry of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    pub count: u64,
    pub queue: u16,
    pub cid: u16,
    pub status: u16,
    pub do_not_retry: bool,
    pub nsid: u32,
    pub opcode: u8,
}

/// A controller and its host.
#[derive(Clone, Debug)]
pub struct Controller {
    pub kind: Kind,
    pub host: [u8; 16],
    pub ready: bool,
    pub keep_alive_ms: u32,
    pub heard_ns: u64,
    /// Current values of features of the controller, by feature and instance.
    pub features: BTreeMap<(u8, u32), u32>,
    pub host_behavior: Vec<u8>,
    /// Outstanding Asynchronous Event Requests.
    pub requests: VecDeque<u16>,
    pub waiting: VecDeque<AsyncEvent>,
    pub masked: Vec<AsyncEvent>,
    /// Completions that the drive must deliver without a command.
    pub owed: VecDeque<Completion>,
    pub changed_namespaces: BTreeSet<u32>,
    pub announced: u8,
    pub group_announced: u8,
    pub group_event: bool,
    /// Newest first.
    pub errors: VecDeque<Error>,
}

impl Controller {
    pub fn is_io(&self) -> bool {
        self.kind != Kind::Discovery
    }

    /// An event happens.
    pub fn raise(&mut self, event: AsyncEvent) {
        if !self.waiting.contains(&event) {
            self.waiting.push_back(event);
        }
        self.deliver();
    }

    /// Completes requests with events whose type is not masked.
    pub fn deliver(&mut self) {
        while !self.requests.is_empty() {
            let Some(event) = self.take_event() else { return };
            let cid = self.requests.pop_front().expect("not empty");
            self.owed.push_back(Completion { cid, status: 0, do_not_retry: false, result: event.result() });
        }
    }

    /// Takes the oldest event with an unmasked type, and masks the type.
    pub fn take_event(&mut self) -> Option<AsyncEvent> {
        let masked = |event: &AsyncEvent| self.masked.iter().any(|reported| reported.kind == event.kind);
        let index = self.waiting.iter().position(|event| !masked(event))?;
        let event = self.waiting.remove(index)?;
        self.masked.push(event);
        Some(event)
    }

    /// The host reads a log page with RAE = 0.
    pub fn read_log(&mut self, log: u8) {
        self.waiting.retain(|event| event.log != log);
        self.masked.retain(|event| event.log != log);
        match log {
            0x04 => self.changed_namespaces.clear(),
            0x09 => self.group_event = false,
            _ => {}
        }
        self.deliver();
    }
}

impl Model {
    /// Feature values of a controller after creation or reset.
    pub fn initial_features(&self) -> BTreeMap<(u8, u32), u32> {
        let of_controller = |feature: u8| matches!(feature, 0x01 | 0x02 | 0x04 | 0x06 | 0x08 | 0x09 | 0x0a | 0x0b);
        let saved = self.saved_features.iter().filter(|((feature, _), _)| of_controller(*feature));
        saved.map(|(&key, &value)| (key, value)).collect()
    }

    /// A host connects.
    pub fn connect(&mut self, id: u16, kind: Kind, host: [u8; 16]) {
        let controller = Controller {
            kind,
            host,
            ready: false,
            keep_alive_ms: 0,
            heard_ns: self.now,
            features: self.initial_features(),
            host_behavior: vec![0; 512],
            requests: VecDeque::new(),
            waiting: VecDeque::new(),
            masked: Vec::new(),
            owed: VecDeque::new(),
            changed_namespaces: BTreeSet::new(),
            announced: 0,
            group_announced: 0,
            group_event: false,
            errors: VecDeque::new(),
        };
        self.controllers.insert(id, controller);
    }

    /// First other controller of the same host on Fabrics.
    fn peer(&self, id: u16) -> Option<u16> {
        let its = &self.controllers[&id];
        let mut all = self.controllers.iter();
        let found = all.find(|(other, peer)| **other != id && peer.kind == Kind::Fabrics && peer.host == its.host);
        found.filter(|_| its.kind == Kind::Fabrics).map(|(peer, _)| *peer)
    }

    /// The host of a new controller has authenticated.
    pub fn establish(&mut self, id: u16) {
        let its = &self.controllers[&id];
        let holder = (its.kind, its.host);
        if holder.0 == Kind::Discovery {
            return;
        }
        let had = |other: &u16| self.holders.get(other) == Some(&holder) && !self.controllers.contains_key(other);
        for namespace in self.namespaces.values_mut() {
            if holder.0 == Kind::Fabrics && !namespace.shared && namespace.attached.iter().any(had) {
                namespace.attached = [id].into();
            }
        }
        self.holders.insert(id, holder);
        self.attach_as_peer(id);
    }

    /// A new controller begins with the shared namespaces of its host.
    fn attach_as_peer(&mut self, id: u16) {
        let Some(peer) = self.peer(id) else {
            return;
        };
        for namespace in self.namespaces.values_mut() {
            if namespace.shared && namespace.attached.contains(&peer) && namespace.attached.insert(id) {
                namespace.inherited.insert(id);
            }
        }
    }

    /// Handles a lost connection. Private namespaces of its controller move to another controller
    /// of the host.
    pub fn disconnect(&mut self, id: u16) {
        if let Some(peer) = self.peer(id) {
            let mut moved = Vec::new();
            for (&nsid, namespace) in &mut self.namespaces {
                if !namespace.shared && namespace.attached.remove(&id) {
                    namespace.attached.insert(peer);
                    moved.push(nsid);
                }
            }
            for nsid in moved {
                self.note_changed(nsid, &[peer]);
            }
        }
        for namespace in self.namespaces.values_mut() {
            if namespace.inherited.remove(&id) {
                namespace.attached.remove(&id);
            }
        }
        self.controllers.remove(&id);
        self.end_test(2, |test| test.controller == id && test.code == 1);
    }

    /// Controller Level Reset.
    pub fn reset(&mut self, id: u16) {
        self.end_test(2, |test| test.controller == id && test.code == 1);
        let features = self.initial_features();
        let before = self.controllers.remove(&id).expect("a controller that is there");
        // On Fabrics the Connect command sets the host identifier. On PCI Express a reset clears
        // it.
        let host = if before.kind == Kind::Pcie { [0; 16] } else { before.host };
        self.connect(id, before.kind, host);
        let controller = self.controllers.get_mut(&id).expect("just put in");
        controller.features = features;
        controller.heard_ns = before.heard_ns;
        controller.errors = before.errors;
    }
}
