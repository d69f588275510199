//! Initiators: the host side of the transports, small and honest, for tests, benchmarks and checks against a running
//! server.

pub mod pcie;
pub mod tcp;
