//! Tools for a machine with an NVMe drive.
//!
//! ```text
//! capture: records the requests that programs send to a disk of this machine  <- warp capture
//! guest:   boots a Linux in QEMU with a drive                                 <- warp guest
//! ```
//!
//! Nothing here is linked into the server of a drive.

pub mod capture;
pub mod guest;
