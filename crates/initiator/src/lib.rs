//! A host's side of NVMe: the other end of everything that `target` serves.
//!
//! ```text
//! tcp, pcie: a host over NVMe/TCP, a driver over vfio-user   <- tests, bench, inspect
//! inspect:   FDP of any drive: the kernel's, or one over TCP <- warp inspect, warp advise
//! drive:     a drive that is written                         <- warp run --on
//! command:   entries of submission queues
//! bench:     how fast a served drive is, beside the machine's limit <- warp bench
//! ```
//!
//! This crate and `target` share no code, so each checks the other. The layouts of the standard are those of
//! `nvme_spec`, the arithmetic of authentication that of `dhchap`. The only unsafe code here are the ioctls of
//! [`inspect::passthrough`] and [`inspect::file_map`].

pub mod bench;
pub mod command;
pub mod drive;
pub mod inspect;
pub mod pcie;
pub mod tcp;
