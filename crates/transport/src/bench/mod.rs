//! Benchmarks of the transports: a server and an initiator in one process, and the figure beside the machine's own limit.

pub mod tcp;
pub mod vfio_user;
