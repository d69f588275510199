//! A sans-I/O NVMe controller with Flexible Data Placement over the WARP device model.
//!
//! ```text
//! host memory, doorbells -> pcie \
//!                                 > Subsystem -> admin, io -> ssd::Device (placement, counters)
//! capsules (transport)           /                         -> Media (bytes)
//! ```
//!
//! One [`Subsystem`] is one drive with an endurance group, namespaces, and a controller for each
//! host. The same controller serves both transports. PCI Express register accesses and Fabrics
//! Property Get and Set end in the same functions.
//!
//! The crate implements NVM Express 2.1 with the NVM command set. It opens no sockets, starts no
//! threads, reads no clock and maps no memory. `warp-target` does all of these.
//!
//! Reservations, zones, key-value, protection information, ANA, NVMe-MI, firmware updates and
//! security protocols are not implemented.

#![warn(missing_docs)]

pub mod admin;
mod background;
mod clock;
mod command;
mod completion;
pub mod completion_lag;
pub mod controller;
mod controller_commands;
pub mod delayed_completions;
pub mod error;
pub mod fault;
pub mod fdp;
pub mod io;
pub mod latency_monitor;
pub mod media;
pub mod namespace;
mod namespaces;
pub mod pcie;
mod setup;
pub mod state;
mod subsystem;
pub mod traffic;
pub mod transfer;

pub use command::AcceptedCommand;
pub use completion::{PendingReply, Reply};
pub use controller::{Controller, ControllerKind, HostIdentity, HostTransport, PropertyEffect};
pub use error::{Failure, Parameter};
pub use io::IoCommand;
pub use io::fast_path::{FastIo, FastPathBatch, PREFETCH_COMMANDS};
pub use media::{FlushHandle, Media, MediaError, MonotonicCounters, ScrubResults};
pub use namespace::Namespace;
pub use namespaces::Namespaces;
pub use setup::{Identity, SetupError, SubsystemConfig};
pub use state::NonVolatileState;
pub use subsystem::Subsystem;
pub use transfer::{Transfer, TransferDirection};
