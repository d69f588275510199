//! A served drive: the sockets, threads, wall clock, guest memory and files around the sans-I/O controller.
//!
//! ```text
//! QEMU  -> vfio_user \                    / data (memory, file, none)
//!                     > nvme::Subsystem  <
//! hosts -> tcp       /                    \ ssd::Device   <- drive (open, checkpoint, recover)
//! ```
//!
//! All transports share one subsystem behind a lock ([`Shared`]), which is held for the execution of a command and never
//! while waiting for a peer or for the disk. Guest memory is reached through `vm-memory`; the only unsafe code is an
//! ioctl in [`inspect::passthrough`].

pub mod bench;
pub mod clock;
pub mod data;
pub mod drive;
pub mod error;
pub mod initiator;
pub mod inspect;
pub mod metrics;
pub mod server;
pub mod status;
pub mod tcp;
pub mod vfio_user;

use std::sync::{Arc, Mutex, MutexGuard};

pub use clock::Clock;
pub use error::ServeError;

/// The drive that all transports serve.
pub type Shared = Arc<Mutex<nvme::Subsystem>>;

/// The drive, for the time of a command.
///
/// # Panics
/// Another thread panicked inside it: what it left is not to be served.
pub fn locked(shared: &Shared) -> MutexGuard<'_, nvme::Subsystem> {
    shared.lock().expect("the drive is in order")
}
