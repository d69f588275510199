//! Schedules the exponentiations of authentication. They run without the drive's lock, on a few
//! threads of low priority, and at a limited rate for unauthenticated peers.
//!
//! An exponentiation with the largest group takes some ten milliseconds of a core. Every peer that
//! knows the name of a listed host can request one. Each address therefore has an allowance. A
//! transaction takes one unit of it, a successful transaction returns the unit, and time refills
//! it. Without an allowance, or without a free place, a host waits until its handshake time is
//! over. A host that can authenticate never waits for its own allowance, however many queues it
//! connects one after the other. Peers with an allowance get places in the order of their requests.
//! Their wait is thus limited by the allowances granted before them. An address stands for a
//! machine, for IPv6 its first 64 bits.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::auth::DhJob;
use super::fabrics::ConnectionInfo;
use crate::half_open::machine;
use crate::lower_priority;

/// Transactions that an address may begin in a burst without a successful one.
const ALLOWANCE: u32 = 8;
/// Time in which the allowance grows by one.
const ALLOWANCE_INTERVAL: Duration = Duration::from_millis(500);
/// One computation at a time for this many processors, at least one in total.
const PROCESSORS_PER_PLACE: usize = 2;
/// Period in which waiting threads check whether their connection was hung up.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Most addresses remembered. Forgetting an address restores its whole allowance, which permits one
/// more burst from it.
const ADDRESSES_MAX: usize = 4096;

/// Scheduler of exponentiations.
#[derive(Debug)]
pub struct DhWorkerPool {
    state: Mutex<PoolState>,
    changed: Condvar,
    workers: usize,
}

#[derive(Debug, Default)]
struct PoolState {
    /// Computations in progress.
    computing: usize,
    /// Tickets of threads that only wait for a place, and the next ticket.
    waiting: BTreeSet<u64>,
    next_number: u64,
    /// True after the server has stopped.
    stopped: bool,
    by_address: HashMap<IpAddr, AddressAllowance>,
}

#[derive(Clone, Copy, Debug)]
struct AddressAllowance {
    left: u32,
    /// Time of the last addition to `left`.
    at: Instant,
}

impl AddressAllowance {
    fn whole(now: Instant) -> AddressAllowance {
        AddressAllowance { left: ALLOWANCE, at: now }
    }

    fn fill(&mut self, now: Instant) {
        while self.left < ALLOWANCE && now.saturating_duration_since(self.at) >= ALLOWANCE_INTERVAL {
            self.left += 1;
            self.at += ALLOWANCE_INTERVAL;
        }
        assert!(self.left <= ALLOWANCE, "an address may begin {} transactions, at most {ALLOWANCE}", self.left);
        if self.left == ALLOWANCE {
            self.at = now;
        }
    }
}

impl Default for DhWorkerPool {
    fn default() -> DhWorkerPool {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        DhWorkerPool {
            state: Mutex::default(),
            changed: Condvar::new(),
            workers: (processors / PROCESSORS_PER_PLACE).max(1),
        }
    }
}

impl DhWorkerPool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    /// Runs the computation when the peer's turn comes. Returns `None` if `until` passes first, the
    /// connection or server ends, or no thread can start.
    pub fn run(&self, surroundings: &ConnectionInfo, until: Instant, mut work: DhJob) -> Option<DhJob> {
        if !work.is_expensive() {
            work.run_dh();
            return Some(work);
        }
        let is_wanted = || !surroundings.connection.is_disconnected();
        self.acquire_worker(machine(surroundings.peer), until, work.begins_transaction(), is_wanted)?;
        let thread = std::thread::Builder::new().name("nvme-auth".to_string());
        let computing = thread.spawn(move || {
            lower_priority();
            work.run_dh();
            work
        });
        let done = computing.ok().and_then(|thread| thread.join().ok());
        let mut state = self.state();
        assert!(state.computing > 0, "this computation was counted");
        state.computing -= 1;
        self.changed.notify_all();
        done
    }

    /// Waits for a place, and for an allowance if `with_allowance` is set.
    fn acquire_worker(
        &self,
        address: IpAddr,
        until: Instant,
        with_allowance: bool,
        is_wanted: impl Fn() -> bool,
    ) -> Option<()> {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        assert!(state.waiting.last().is_none_or(|last| *last < number), "ticket {number} is newer than all that wait");
        loop {
            let now = Instant::now();
            if state.stopped || now >= until || !is_wanted() {
                state.waiting.remove(&number);
                self.changed.notify_all();
                return None;
            }
            let allowed_at = if with_allowance { state.allowed_at(address, now) } else { now };
            if allowed_at <= now {
                state.waiting.insert(number);
                if state.computing < self.workers && state.waiting.first() == Some(&number) {
                    break;
                }
            } else {
                // Another connection of the address took the allowance. Leave the queue, so that
                // peers with an allowance can proceed.
                state.waiting.remove(&number);
            }
            let wake_at = if allowed_at > now { allowed_at.min(until) } else { until };
            let waited = self.changed.wait_timeout(state, (wake_at - now).min(LOOK_AGAIN));
            state = waited.expect("nothing panics while it holds the state").0;
        }
        let was_waiting = state.waiting.remove(&number);
        assert!(was_waiting, "ticket {number} waits until it gets its place");
        // The next waiting thread may find a place, too.
        self.changed.notify_all();
        if with_allowance {
            let allowance = state.by_address.get_mut(&address).expect("the entry was checked before");
            assert!(allowance.left > 0, "an allowed computation exists");
            allowance.left -= 1;
        }
        state.computing += 1;
        assert!(state.computing <= self.workers, "no more computations than places");
        Some(())
    }

    /// Returns the allowance of a transaction whose peer has authenticated.
    pub fn restore_allowance(&self, peer: IpAddr) {
        if let Some(allowance) = self.state().by_address.get_mut(&machine(peer)) {
            allowance.left = (allowance.left + 1).min(ALLOWANCE);
        }
        self.changed.notify_all();
    }

    /// Ends all waits.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}

impl PoolState {
    /// Time at which an address has an allowance.
    fn allowed_at(&mut self, address: IpAddr, now: Instant) -> Instant {
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&address) {
            self.by_address.retain(|_, allowance| {
                allowance.fill(now);
                allowance.left < ALLOWANCE
            });
            if self.by_address.len() >= ADDRESSES_MAX {
                self.by_address.clear();
            }
        }
        let allowance = self.by_address.entry(address).or_insert(AddressAllowance::whole(now));
        allowance.fill(now);
        let allowed_at = match allowance.left {
            0 => allowance.at + ALLOWANCE_INTERVAL,
            _ => now,
        };
        assert!(
            self.by_address.len() <= ADDRESSES_MAX,
            "the server remembers {} addresses, at most {ADDRESSES_MAX}",
            self.by_address.len()
        );
        allowed_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn an_allowance_is_used_up_given_back_and_filled() {
        let exponents = DhWorkerPool { workers: 100, ..DhWorkerPool::default() };
        let soon = || Instant::now() + Duration::from_millis(20);
        for _ in 0..ALLOWANCE {
            exponents.acquire_worker(address(1), soon(), true, || true).unwrap();
        }
        assert_eq!(exponents.acquire_worker(address(1), soon(), true, || true), None, "used up");
        assert_eq!(exponents.acquire_worker(address(1), soon(), false, || true), Some(()), "goes on");
        assert_eq!(exponents.acquire_worker(address(2), soon(), true, || true), Some(()), "another's");
        exponents.restore_allowance(address(1));
        assert_eq!(exponents.acquire_worker(address(1), soon(), true, || true), Some(()), "given back");
        let later = Instant::now() + 4 * ALLOWANCE_INTERVAL;
        assert_eq!(exponents.acquire_worker(address(1), later, true, || true), Some(()), "filled");
    }

    #[test]
    fn places_are_few_and_stopping_ends_the_wait() {
        let exponents = DhWorkerPool { workers: 1, ..DhWorkerPool::default() };
        let soon = Instant::now() + Duration::from_millis(20);
        let late = Instant::now() + Duration::from_secs(60);
        exponents.acquire_worker(address(1), soon, true, || true).unwrap();
        assert_eq!(exponents.acquire_worker(address(2), soon, true, || true), None, "the place is taken");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| exponents.acquire_worker(address(2), late, true, || true));
            exponents.stop();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }

    #[test]
    fn places_are_given_in_the_order_in_which_they_are_asked_for() {
        let exponents = DhWorkerPool { workers: 1, ..DhWorkerPool::default() };
        let late = Instant::now() + Duration::from_secs(60);
        exponents.acquire_worker(address(0), late, true, || true).unwrap();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 1..=4 {
                let (exponents, order) = (&exponents, &order);
                scope.spawn(move || {
                    exponents.acquire_worker(address(number), late, true, || true).unwrap();
                    order.lock().unwrap().push(number);
                    exponents.state().computing -= 1;
                    exponents.changed.notify_all();
                });
                while exponents.state().waiting.len() < usize::from(number) {
                    std::thread::yield_now();
                }
            }
            exponents.state().computing -= 1;
            exponents.changed.notify_all();
        });
        assert_eq!(order.into_inner().unwrap(), [1, 2, 3, 4]);
        assert!(exponents.state().waiting.is_empty());
    }

    #[test]
    fn an_address_is_a_machine() {
        let same = machine("2001:db8::1".parse().unwrap());
        assert_eq!(same, machine("2001:db8::ffff".parse().unwrap()));
        assert_ne!(same, machine("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(machine("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }

    #[test]
    fn addresses_are_forgotten_rather_than_remembered_without_end() {
        let mut state = PoolState::default();
        let now = Instant::now();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            assert_eq!(state.allowed_at(IpAddr::from(number.to_be_bytes()), now), now);
            assert!(state.by_address.len() <= ADDRESSES_MAX);
        }
    }
}
