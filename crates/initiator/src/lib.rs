//! Host side of NVMe, the peer of all servers in `target`.
//!
//! ```text
//! tcp, pcie: a host over NVMe/TCP, a driver over vfio-user  <- tests, bench, inspect
//! inspect:   FDP state of any drive (kernel or TCP)         <- warp drive inspect and advise
//! drive:     writes to a drive                              <- warp run --target
//! command:   submission queue entries
//! bench:     speed of a served drive and of the machine     <- warp bench
//! ```
//!
//! This crate and `target` share no code, so each checks the other. Layouts of the standard come
//! from `nvme_spec`, and the arithmetic of authentication from `dhchap`. The only unsafe code is in
//! the ioctls of [`inspect::passthrough`] and [`inspect::file_map`].

pub mod bench;
pub mod command;
pub mod drive;
pub mod inspect;
pub mod pcie;
pub mod tcp;
