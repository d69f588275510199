//! A served drive: the sockets, threads, wall clock, guest memory and files around the sans-I/O controller.
//!
//! ```text
//! QEMU  -> vfio_user \                    / storage::backend (memory, file, none)
//!                     > nvme::Subsystem  <
//! hosts -> tcp       /                    \ ssd::Device   <- storage (open, checkpoint, recover)
//! page, metrics <- http <- monitor (units, hosts, counters, status)
//! ```
//!
//! All transports share one subsystem behind a lock ([`Shared`]), which is held for the execution of a command and
//! never while waiting for a peer or for the disk. Guest memory is reached through `guest_memory`. The other side of the
//! transports, a host, is the crate `initiator`.

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

pub use clock::Clock;
pub use error::ServeError;

/// The drive that all transports serve.
pub type Shared = Arc<Mutex<nvme::Subsystem>>;

/// Niceness of threads whose work can wait.
const NICENESS: i32 = 10;

/// Makes this thread, and no other, one whose work can wait. Where that is refused it is as important as everything
/// else.
fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// The drive, for the time of a command.
///
/// # Panics
/// Another thread panicked inside it: what it left is not to be served.
pub fn locked(shared: &Shared) -> MutexGuard<'_, nvme::Subsystem> {
    waited_for(shared).expect("the drive is in order")
}

/// As [`locked`], for those who can say what it means that another thread panicked inside it.
pub(crate) fn waited_for(shared: &Shared) -> LockResult<MutexGuard<'_, nvme::Subsystem>> {
    match shared.try_lock() {
        Ok(free) => Ok(free),
        Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
        Err(TryLockError::WouldBlock) => {
            WAITING.fetch_add(1, Ordering::AcqRel);
            let locked = shared.lock();
            SERVED.fetch_add(1, Ordering::AcqRel);
            WAITING.fetch_sub(1, Ordering::AcqRel);
            locked
        }
    }
}

/// Threads that wait for a drive now, and how many have had it after a wait. A process serves one drive.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Lets one of those who wait for the drive have it, if there are any. Who takes the drive again and again calls this
/// before: the lock goes to whoever comes first, and a thread that has to be woken is always late.
pub(crate) fn give_way() {
    let served = SERVED.load(Ordering::Acquire);
    while WAITING.load(Ordering::Acquire) > 0 && SERVED.load(Ordering::Acquire) == served {
        std::thread::yield_now();
    }
}

/// Between two parts of a long command: about as long as a part takes at most, so that such a command has half of a
/// processor, and half of the drive's time, and the others the rest. Yielding is not enough where there are fewer
/// processors than threads: the scheduler gives whoever never sleeps milliseconds at a time.
const PAUSE_BETWEEN_PARTS: Duration = Duration::from_micros(100);

/// Lets everybody else have the drive and the processor before the next part of a long command.
pub fn pause_between_parts() {
    std::thread::sleep(PAUSE_BETWEEN_PARTS);
}
