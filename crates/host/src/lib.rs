//! What a host does with an NVMe drive: the other side of everything that `transport` serves.
//!
//! ```text
//! initiator: a host over NVMe/TCP, a driver over vfio-user   <- tests, bench, inspect
//! inspect:   FDP of any drive: the kernel's, or one over TCP <- warp inspect, warp advise
//! drive:     a drive that is written                         <- warp run --on
//! capture:   what programs ask of a disk of this machine     <- warp capture
//! guest:     a Linux in QEMU with a drive                    <- warp guest
//! command:   entries of submission queues
//! bench:     how fast a served drive is, beside the machine's limit <- warp bench
//! ```
//!
//! Nothing here is linked into what serves a drive, and nothing of that is used here, so each checks the other. The
//! layouts of the standard are those of `nvme_spec`, the arithmetic of authentication that of `dhchap`. The only unsafe
//! code here are the ioctls of [`inspect::passthrough`] and [`inspect::file_map`].

pub mod bench;
pub mod capture;
pub mod command;
pub mod drive;
pub mod guest;
pub mod initiator;
pub mod inspect;
