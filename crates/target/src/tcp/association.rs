//! Associations: which connections belong to which controller, so that they end together.
//!
//! ```text
//! admin queue connects -> begin      I/O queue connects -> join
//! the admin connection is lost, keep alive expires -> end: the controller is freed, all connections are hung up
//! an I/O connection is lost -> its queue is gone, the others stay: Linux closes them before it resets the controller
//! the controller is reset -> the I/O connections are hung up, the admin connection stays
//! the subsystem is reset -> end
//! ```
//!
//! Controller identifiers are used again. So that no connection ever acts for a controller that is not its own, a
//! [`Link`] ends only while its caller holds the subsystem (hence the `&mut Subsystem` arguments), and a connection
//! looks at its link each time that it has locked the subsystem.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use nvme::{ControllerKind, Host, Subsystem};

use super::Limits;

/// What other threads can do with a connection, without waiting. `()` stands for one without a socket.
pub trait Line: Send + Sync {
    fn hang_up(&self) {}

    /// Whether it was hung up: nothing has to be done for it any more.
    fn is_hung_up(&self) -> bool {
        false
    }

    /// Whether the host has closed its end, which the connection's own thread may not have noticed yet.
    fn has_left(&self) -> bool {
        false
    }
}

impl Line for () {}

/// One connection's part in an association.
pub struct Link {
    queue: u16,
    ended: AtomicBool,
    established: AtomicBool,
    line: Arc<dyn Line>,
}

impl Link {
    /// A connection for `queue`, 0 for the admin queue.
    pub fn new(queue: u16, line: Arc<dyn Line>) -> Arc<Link> {
        Arc::new(Link {
            queue,
            ended: AtomicBool::new(false),
            established: AtomicBool::new(false),
            line,
        })
    }

    /// Whether the connection has to stop. Decisive only while the subsystem is locked.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether its host has proved who it is, or does not need to.
    pub fn is_established(&self) -> bool {
        self.established.load(Ordering::Acquire)
    }

    fn end(&self) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.line.hang_up();
        }
    }
}

/// A controller and the connections of its queues.
pub struct Association {
    controller: u16,
    host: Host,
    /// Grows from one association to the next.
    number: u64,
    /// Connections of a queue whose host has not proved who it is may be several: the first to do so has the queue.
    links: Mutex<Vec<Arc<Link>>>,
}

impl Association {
    /// CNTLID.
    pub fn controller(&self) -> u16 {
        self.controller
    }

    /// The name of its host.
    pub fn host_nqn(&self) -> &str {
        &self.host.nqn
    }

    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().expect("nothing panics while it holds the links")
    }

    /// The host has proved who it is, or does not need to: the connection counts as one of that host, and the queue is
    /// its own. Whoever else has connected the queue and proved nothing is hung up on. If another connection was first,
    /// this one ends.
    pub fn establish(&self, subsystem: &mut Subsystem, link: &Link) {
        if link.has_ended() || link.is_established() {
            return;
        }
        let mut links = self.links();
        let is_rival = |other: &Arc<Link>| other.queue == link.queue && !std::ptr::eq(other.as_ref(), link);
        if links.iter().any(|other| is_rival(other) && other.is_established()) {
            links.retain(|other| !std::ptr::eq(other.as_ref(), link));
            return link.end();
        }
        links
            .iter()
            .filter(|other| is_rival(other))
            .for_each(|other| other.end());
        links.retain(|other| !is_rival(other));
        link.established.store(true, Ordering::Release);
        assert_eq!(
            links.iter().filter(|other| other.queue == link.queue).count(),
            1,
            "a queue has one connection"
        );
        if link.queue == 0 {
            subsystem.establish(self.controller);
        }
    }

    /// Whether the host has connected I/O queues.
    pub fn has_io_queues(&self) -> bool {
        self.links().iter().any(|link| link.queue != 0 && link.is_established())
    }

    /// The connection that the association began with.
    fn admin(&self) -> Option<Arc<Link>> {
        self.links().iter().find(|link| link.queue == 0).cloned()
    }
}

/// Why a queue does not become part of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// There is no such controller, or it is another host's.
    NoController,
    /// The controller was granted fewer queues.
    NoQueue,
    /// That queue is connected.
    QueueInUse,
    /// The controller is not enabled.
    NotReady,
}

#[derive(Default)]
pub struct Associations {
    by_controller: Mutex<HashMap<u16, Arc<Association>>>,
    begun: AtomicU64,
}

impl Associations {
    fn map(&self) -> MutexGuard<'_, HashMap<u16, Arc<Association>>> {
        self.by_controller
            .lock()
            .expect("nothing panics while it holds the map")
    }

    /// Connections that a host has.
    pub fn connections_of(&self, host_nqn: &str) -> usize {
        let map = self.map();
        let associations = map.values().filter(|association| association.host.nqn == host_nqn);
        associations
            .map(|association| association.links().iter().filter(|link| link.is_established()).count())
            .sum()
    }

    /// I/O queues for which there are connections, beside those that other controllers have or were promised.
    pub fn io_queues_left(&self, subsystem: &Subsystem, association: &Association, limits: &Limits) -> u16 {
        let (mut of_host, mut of_all) = (1, 1);
        for other in self
            .map()
            .values()
            .filter(|other| !std::ptr::eq(other.as_ref(), association))
        {
            let granted = subsystem.io_queues_granted(other.controller);
            let promised = 1 + granted.map_or(0, |(queues, _)| usize::from(queues));
            let connections = promised.max(other.links().len());
            of_all += connections;
            of_host += if other.host.nqn == association.host.nqn {
                connections
            } else {
                0
            };
        }
        let left = limits.connections_per_host.saturating_sub(of_host);
        left.min(limits.connections.saturating_sub(of_all))
            .min(usize::from(u16::MAX)) as u16
    }

    /// The association of a controller that was just made, with its admin connection.
    pub fn begin(&self, _subsystem: &mut Subsystem, controller: u16, host: Host, admin: Arc<Link>) -> Arc<Association> {
        assert!(
            admin.queue == 0 && !admin.has_ended(),
            "an association begins with a live admin connection"
        );
        let association = Arc::new(Association {
            controller,
            host,
            number: self.begun.fetch_add(1, Ordering::Relaxed),
            links: Mutex::new(vec![admin]),
        });
        let previous = self.map().insert(controller, Arc::clone(&association));
        assert!(
            previous.is_none(),
            "a controller's association ends before its identifier is used again"
        );
        association
    }

    /// Makes a connection part of the association of a controller.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn join(
        &self,
        subsystem: &mut Subsystem,
        controller: u16,
        host: &Host,
        link: Arc<Link>,
    ) -> Result<Arc<Association>, JoinError> {
        assert!(
            link.queue != 0 && !link.has_ended(),
            "what joins is a live connection of an I/O queue"
        );
        let map = self.map();
        let association = map.get(&controller).filter(|association| association.host == *host);
        let association = association.ok_or(JoinError::NoController)?;
        let state = subsystem.controller(controller);
        if state.kind != ControllerKind::Io {
            return Err(JoinError::NoController);
        }
        if !state.is_ready() {
            return Err(JoinError::NotReady);
        }
        if subsystem
            .io_queues_granted(controller)
            .is_some_and(|(queues, _)| link.queue > queues)
        {
            return Err(JoinError::NoQueue);
        }
        let mut links = association.links();
        if links
            .iter()
            .any(|other| other.queue == link.queue && other.is_established())
        {
            return Err(JoinError::QueueInUse);
        }
        links.push(link);
        Ok(Arc::clone(association))
    }

    /// A connection is lost. With the admin connection the association ends, with another one only its queue. The
    /// connection itself is left to its thread, which may have a last word to say.
    pub fn leave(&self, subsystem: &mut Subsystem, association: &Arc<Association>, link: &Link) {
        if link.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        assert!(
            self.is_current(association),
            "a connection ends no later than its association"
        );
        if link.queue == 0 {
            return self.end(subsystem, association);
        }
        let mut links = association.links();
        let before = links.len();
        links.retain(|other| !std::ptr::eq(other.as_ref(), link));
        assert_eq!(links.len() + 1, before, "a live connection is in its association once");
    }

    /// The connection is one too many of its host: it ends, and with the admin connection the association.
    pub fn refuse(&self, subsystem: &mut Subsystem, association: &Arc<Association>, link: &Link) {
        self.leave(subsystem, association, link);
        link.line.hang_up();
    }

    /// Frees the controller and hangs up all its connections.
    pub fn end(&self, subsystem: &mut Subsystem, association: &Arc<Association>) {
        if self.is_current(association) {
            self.map().remove(&association.controller);
            subsystem.disconnect(association.controller);
            association.links().iter().for_each(|link| link.end());
        }
    }

    /// Ends the associations of a host that has closed their admin connections, as their own threads are about to do:
    /// the host that comes back finds its controller free.
    pub fn end_departed(&self, subsystem: &mut Subsystem, host: &Host) {
        let of_host: Vec<_> = self.map().values().filter(|its| its.host == *host).cloned().collect();
        let departed = |its: &&Arc<Association>| its.admin().is_some_and(|admin| admin.line.has_left());
        for association in of_host.iter().filter(departed) {
            self.end(subsystem, association);
        }
    }

    /// Ends the oldest association whose host has not proved who it is, for another host to have the controller.
    /// Returns whether there was one.
    pub fn end_unproved(&self, subsystem: &mut Subsystem) -> bool {
        let all: Vec<_> = self.map().values().cloned().collect();
        let unproved = |its: &&Arc<Association>| its.admin().is_some_and(|admin| !admin.is_established());
        let oldest = all.iter().filter(unproved).min_by_key(|its| its.number);
        if let Some(oldest) = oldest {
            self.end(subsystem, oldest);
        }
        oldest.is_some()
    }

    /// Whether the controller is still that of this association.
    fn is_current(&self, association: &Arc<Association>) -> bool {
        let map = self.map();
        let current = map.get(&association.controller);
        current.is_some_and(|current| Arc::ptr_eq(current, association))
    }

    /// Ends the association of a controller, if there is one.
    pub fn end_controller(&self, subsystem: &mut Subsystem, controller: u16) {
        let association = self.map().get(&controller).cloned();
        if let Some(association) = association {
            self.end(subsystem, &association);
        }
    }

    /// The controller was reset: its I/O queues are gone.
    pub fn reset(&self, _subsystem: &mut Subsystem, association: &Association) {
        let mut links = association.links();
        links.iter().filter(|link| link.queue != 0).for_each(|link| link.end());
        links.retain(|link| link.queue == 0);
        assert_eq!(links.len(), 1, "the connection that asked for the reset stays");
    }
}
