//! Associations: the connections that belong to a controller and end together with it.
//!
//! ```text
//! admin queue connects -> begin      I/O queue connects -> join
//! the admin connection is lost, keep alive expires -> end: free the controller, hang up all
//! an I/O connection is lost -> only its queue ends: Linux closes these before a controller reset
//! the controller is reset -> the I/O connections are hung up, the admin connection stays
//! the subsystem is reset -> end
//! ```
//!
//! Controller identifiers are used again. No connection may act for a controller other than its
//! own. Therefore a [`Link`] ends only while its caller holds the subsystem (hence the `&mut
//! Subsystem` arguments). A connection checks its link each time that it has locked the subsystem.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use nvme::{ControllerKind, HostIdentity, Subsystem};

use super::Limits;

/// Operations that other threads may perform on a connection without waiting. `()` stands for a
/// connection without a socket.
pub trait ConnectionHandle: Send + Sync {
    fn disconnect(&self) {}

    /// Returns whether the connection was hung up and thus needs no more work.
    fn is_disconnected(&self) -> bool {
        false
    }

    /// Returns whether the host has closed its end. The connection's thread may not have noticed
    /// yet.
    fn is_closed_by_host(&self) -> bool {
        false
    }
}

impl ConnectionHandle for () {}

/// Membership of one connection in an association.
pub struct Link {
    queue: u16,
    ended: AtomicBool,
    established: AtomicBool,
    connection: Arc<dyn ConnectionHandle>,
}

impl Link {
    /// A connection for `queue`, 0 for the admin queue.
    pub fn new(queue: u16, line: Arc<dyn ConnectionHandle>) -> Arc<Link> {
        Arc::new(Link { queue, ended: AtomicBool::new(false), established: AtomicBool::new(false), connection: line })
    }

    /// Returns whether the connection must stop. The result is reliable only while the subsystem is
    /// locked.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns whether the host has authenticated or need not authenticate.
    pub fn is_established(&self) -> bool {
        self.established.load(Ordering::Acquire)
    }

    fn end(&self) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.connection.disconnect();
        }
    }
}

/// A controller and the connections of its queues.
pub struct Association {
    controller: u16,
    host: HostIdentity,
    /// Increases from one association to the next.
    number: u64,
    /// Before authentication a queue may have several connections. The first that authenticates
    /// keeps the queue.
    members: Mutex<Vec<Arc<Link>>>,
}

impl Association {
    /// Controller identifier (CNTLID).
    pub fn controller(&self) -> u16 {
        self.controller
    }

    pub fn host_nqn(&self) -> &str {
        &self.host.nqn
    }

    fn members(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.members.lock().expect("nothing panics while it holds the links")
    }

    /// Establishes the connection after its host has authenticated or need not authenticate. The
    /// connection now counts for that host and owns the queue. Unauthenticated connections of the
    /// same queue are hung up. If another connection has established itself first, this one ends.
    pub fn establish(&self, subsystem: &mut Subsystem, link: &Link) {
        if link.has_ended() || link.is_established() {
            return;
        }
        let mut links = self.members();
        let is_rival = |other: &Arc<Link>| other.queue == link.queue && !std::ptr::eq(other.as_ref(), link);
        if links.iter().any(|other| is_rival(other) && other.is_established()) {
            links.retain(|other| !std::ptr::eq(other.as_ref(), link));
            return link.end();
        }
        links.iter().filter(|other| is_rival(other)).for_each(|other| other.end());
        links.retain(|other| !is_rival(other));
        link.established.store(true, Ordering::Release);
        assert_eq!(links.iter().filter(|other| other.queue == link.queue).count(), 1, "a queue has one connection");
        if link.queue == 0 {
            subsystem.establish(self.controller);
        }
    }

    /// Returns whether the host has connected I/O queues.
    pub fn has_io_queues(&self) -> bool {
        self.members().iter().any(|link| link.queue != 0 && link.is_established())
    }

    /// The connection with which the association began.
    fn admin(&self) -> Option<Arc<Link>> {
        self.members().iter().find(|link| link.queue == 0).cloned()
    }
}

/// Reasons why a queue cannot join an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The controller does not exist or belongs to another host.
    NoController,
    /// The controller was granted fewer queues.
    NoQueue,
    /// The queue is already connected.
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
        self.by_controller.lock().expect("nothing panics while it holds the map")
    }

    pub fn connections_of(&self, host_nqn: &str) -> usize {
        let map = self.map();
        let associations = map.values().filter(|association| association.host.nqn == host_nqn);
        associations.map(|association| association.members().iter().filter(|link| link.is_established()).count()).sum()
    }

    /// Number of I/O queues that the connection limits allow, after the queues that other
    /// controllers have or were granted.
    pub fn io_queues_left(&self, subsystem: &Subsystem, association: &Association, limits: &Limits) -> u16 {
        let (mut of_host, mut of_all) = (1, 1);
        for other in self.map().values().filter(|other| !std::ptr::eq(other.as_ref(), association)) {
            let granted = subsystem.io_queues_granted(other.controller);
            let promised = 1 + granted.map_or(0, |(queues, _)| usize::from(queues));
            let connections = promised.max(other.members().len());
            of_all += connections;
            of_host += if other.host.nqn == association.host.nqn { connections } else { 0 };
        }
        assert!(of_host <= of_all, "a host has {of_host} of the {of_all} connections of all hosts");
        let left = limits.connections_per_host.saturating_sub(of_host);
        left.min(limits.connections.saturating_sub(of_all)).min(usize::from(u16::MAX)) as u16
    }

    pub fn begin(
        &self,
        _subsystem: &mut Subsystem,
        controller: u16,
        host: HostIdentity,
        admin: Arc<Link>,
    ) -> Arc<Association> {
        assert!(admin.queue == 0 && !admin.has_ended(), "an association begins with a live admin connection");
        let association = Arc::new(Association {
            controller,
            host,
            number: self.begun.fetch_add(1, Ordering::Relaxed),
            members: Mutex::new(vec![admin]),
        });
        let previous = self.map().insert(controller, Arc::clone(&association));
        assert!(previous.is_none(), "a controller's association ends before its identifier is used again");
        association
    }

    pub fn join(
        &self,
        subsystem: &mut Subsystem,
        controller: u16,
        host: &HostIdentity,
        link: Arc<Link>,
    ) -> Result<Arc<Association>, JoinError> {
        assert!(link.queue != 0 && !link.has_ended(), "a joining connection is a live I/O queue");
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
        if subsystem.io_queues_granted(controller).is_some_and(|(queues, _)| link.queue > queues) {
            return Err(JoinError::NoQueue);
        }
        let mut links = association.members();
        assert!(
            links.iter().any(|other| other.queue == 0 && !other.has_ended()),
            "queue {} joins controller {controller} while its admin connection is live",
            link.queue
        );
        if links.iter().any(|other| other.queue == link.queue && other.is_established()) {
            return Err(JoinError::QueueInUse);
        }
        links.push(link);
        Ok(Arc::clone(association))
    }

    /// Handles the loss of a connection. The admin connection ends the association, another one
    /// only its queue. The thread of the connection closes the socket, after a last message if
    /// necessary.
    pub fn leave(&self, subsystem: &mut Subsystem, association: &Arc<Association>, link: &Link) {
        if link.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        assert!(self.is_current(association), "a connection ends no later than its association");
        if link.queue == 0 {
            return self.end(subsystem, association);
        }
        let mut links = association.members();
        let before = links.len();
        links.retain(|other| !std::ptr::eq(other.as_ref(), link));
        assert_eq!(links.len() + 1, before, "a live connection is in its association once");
    }

    /// Refuses a connection beyond the limit of its host. A refused admin connection ends the
    /// association.
    pub fn refuse(&self, subsystem: &mut Subsystem, association: &Arc<Association>, link: &Link) {
        self.leave(subsystem, association, link);
        link.connection.disconnect();
    }

    /// Frees the controller and hangs up all its connections.
    pub fn end(&self, subsystem: &mut Subsystem, association: &Arc<Association>) {
        if self.is_current(association) {
            self.map().remove(&association.controller);
            subsystem.disconnect(association.controller);
            association.members().iter().for_each(|link| link.end());
        }
    }

    /// Ends a host's associations whose admin connections the host has closed, before their own
    /// threads do so. A host that reconnects thus finds its controller free.
    pub fn end_departed(&self, subsystem: &mut Subsystem, host: &HostIdentity) {
        let of_host: Vec<_> = self.map().values().filter(|its| its.host == *host).cloned().collect();
        let departed = |its: &&Arc<Association>| its.admin().is_some_and(|admin| admin.connection.is_closed_by_host());
        for association in of_host.iter().filter(departed) {
            self.end(subsystem, association);
        }
    }

    /// Ends the oldest association whose host has not authenticated, so that another host can have
    /// the controller. Returns whether such an association existed.
    pub fn end_unauthenticated(&self, subsystem: &mut Subsystem) -> bool {
        let all: Vec<_> = self.map().values().cloned().collect();
        let unproved = |its: &&Arc<Association>| its.admin().is_some_and(|admin| !admin.is_established());
        let oldest = all.iter().filter(unproved).min_by_key(|its| its.number);
        if let Some(oldest) = oldest {
            self.end(subsystem, oldest);
        }
        oldest.is_some()
    }

    /// Returns whether the controller still belongs to this association.
    fn is_current(&self, association: &Arc<Association>) -> bool {
        let map = self.map();
        let current = map.get(&association.controller);
        current.is_some_and(|current| Arc::ptr_eq(current, association))
    }

    pub fn end_controller(&self, subsystem: &mut Subsystem, controller: u16) {
        let association = self.map().get(&controller).cloned();
        if let Some(association) = association {
            self.end(subsystem, &association);
        }
    }

    /// Ends the I/O queues after a controller reset.
    pub fn reset(&self, _subsystem: &mut Subsystem, association: &Association) {
        let mut links = association.members();
        links.iter().filter(|link| link.queue != 0).for_each(|link| link.end());
        links.retain(|link| link.queue == 0);
        assert_eq!(links.len(), 1, "the connection that requested the reset stays");
    }
}
