//! Building blocks of both sides of DH-HMAC-CHAP authentication (Base Specification, "DH-HMAC-CHAP
//! Protocol"): secrets in their configured form, and the arithmetic.
//!
//! `nvme_spec::auth` defines the layouts of the messages. The crates `target` (controller) and
//! `initiator` (host) assemble the messages independently from the same description. An error in
//! one of them therefore makes authentication fail.

pub mod arithmetic;
mod primes;
pub mod secret;

pub use secret::{Secret, SecretError};
