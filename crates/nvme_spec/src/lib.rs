//! Byte layouts of the NVMe 2.1 family of standards. The crate covers Base Specification 2.1, NVM
//! Command Set 1.1, PCIe transport 1.1 and TCP transport 1.1, with flexible data placement (FDP).
//!
//! The crate has two kinds of types.
//!
//! * **Structures** are data in memory or on the wire. They are `repr(C)`, have alignment 1 and
//!   store their integers little-endian. Compile-time asserts prove their size and the offsets of
//!   their fields. `zerocopy` reads and writes all of them as bytes. Reserved bytes are fields
//!   named `_reserved…` or `reserved…`, and `Default` is all zeroes. Bit fields inside a structure
//!   are typed.
//! * **Words** are numbers that travel by value, which are controller properties and command
//!   dwords. They are bit fields over `u32` or `u64` with conversions `from_bits` and `into_bits`.
//!   `from_bits` keeps reserved bits, so `T::from_bits(x).into_bits() == x` always holds.
//!
//! The field names are the standard's abbreviations, and the documentation spells them out.
//! Zeroes-based values ("0's based" in the standard) are marked and *not* converted. The field
//! holds the value on the wire.
//!
//! The crate has no logic. It parses no commands, checks no values and implements no controller
//! behavior.
//!
//! The Zoned Namespace and Key Value command sets and the management interface are missing. So are
//! the RDMA and Fibre Channel transports and the persistent event, predictable latency and lockdown
//! logs.

#![expect(clippy::result_unit_err, reason = "the checked setters of bit fields are made by bitfield_struct")]

#[macro_use]
mod macros;

pub mod auth;
pub mod command;
pub mod directive;
pub mod fabrics;
pub mod fdp;
pub mod feature;
pub mod identify;
pub mod log;
pub mod ocp;
pub mod pci;
pub mod register;
pub mod status;
pub mod tcp;

pub use command::{AdminOpcode, CompletionEntry, IoOpcode, SglDescriptor, StatusField, SubmissionEntry};
pub use feature::FeatureId;
pub use identify::{Cns, IdentifyController, IdentifyNamespace};
pub use log::LogId;
pub use status::Status;

/// Namespace identifier that stands for all namespaces.
pub const NSID_ALL: u32 = 0xffff_ffff;

/// Size in bytes of an Identify data structure, and of most lists.
pub const IDENTIFY_SIZE: usize = 4096;

/// The identifier of the administration submission and completion queue.
pub const ADMIN_QUEUE_ID: u16 = 0;
