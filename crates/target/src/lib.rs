//! Serves one drive to hosts: the sockets, threads, wall clock, guest memory and files around the
//! sans-I/O controller.
//!
//! ```text
//! QEMU  -> vfio_user \                    / storage::backend (memory, file, none)
//!                     > nvme::Subsystem  <
//! hosts -> tcp       /                    \ ssd::Device   <- storage (open, checkpoint, recover)
//! page, metrics <- http <- monitor (units, hosts, counters, status)
//! ```
//!
//! All transports share one subsystem behind a lock ([`SharedSubsystem`]). A thread holds the lock
//! while it executes a command, never while it waits for a peer or for the disk. The crate
//! `guest_memory` accesses guest memory. The crate `initiator` is the host side of the transports.

mod account;
pub mod actions;
pub mod clock;
pub mod error;
mod half_open;
pub mod http;
pub mod monitor;
pub mod server;
pub mod storage;
pub mod tcp;
pub mod vfio_user;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LockResult, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

pub use clock::ServerClock;
pub use error::ServeError;

/// The drive that all transports serve.
pub type SharedSubsystem = Arc<Mutex<nvme::Subsystem>>;

/// Niceness of low-priority threads.
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread only. If the system refuses, the priority stays
/// normal.
fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Locks the drive. Hold the guard for one command.
///
/// # Panics
/// Panics if another thread panicked while it held the lock, because its state may be inconsistent.
pub fn lock(shared: &SharedSubsystem) -> MutexGuard<'_, nvme::Subsystem> {
    lock_result(shared).expect("the lock of the drive is not poisoned")
}

/// Like [`lock`], but returns the poison error of a thread that panicked inside the lock.
pub(crate) fn lock_result(shared: &SharedSubsystem) -> LockResult<MutexGuard<'_, nvme::Subsystem>> {
    match shared.try_lock() {
        Ok(free) => Ok(free),
        Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
        Err(TryLockError::WouldBlock) => {
            WAITING.fetch_add(1, Ordering::AcqRel);
            let locked = shared.lock();
            SERVED.fetch_add(1, Ordering::AcqRel);
            let waiting = WAITING.fetch_sub(1, Ordering::AcqRel);
            assert!(waiting > 0, "a thread that got the drive was counted as waiting");
            locked
        }
    }
}

/// Number of threads that wait for the drive, and number of waits that ended. A process serves one
/// drive.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Lets one waiting thread have the drive, if any waits. A thread that takes the drive repeatedly
/// calls this first. The mutex is not fair, and a thread that must first be woken always loses.
pub(crate) fn yield_to_waiters() {
    let served = SERVED.load(Ordering::Acquire);
    while WAITING.load(Ordering::Acquire) > 0 && SERVED.load(Ordering::Acquire) == served {
        std::thread::yield_now();
    }
}

/// Pause between two parts of a long command. A part takes about as long at most, so the command
/// uses half of a processor and half of the drive's time. Yielding is not enough with fewer
/// processors than threads, because the scheduler gives threads that never sleep milliseconds at a
/// time.
const PAUSE_BETWEEN_PARTS: Duration = Duration::from_micros(100);

/// Leaves the drive and the processor to other threads before the next part of a long command.
pub fn pause_between_parts() {
    std::thread::sleep(PAUSE_BETWEEN_PARTS);
}
