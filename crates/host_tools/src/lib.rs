//! Tools for a machine with an NVMe drive.
//!
//! ```text
//! capture: records the requests that programs send to a disk of this machine  <- warp capture
//! guest:   boots a Linux in QEMU with a drive                                 <- warp guest
//! ```
//!
//! The server of a drive does not link this crate.

pub mod capture;
pub mod guest;
