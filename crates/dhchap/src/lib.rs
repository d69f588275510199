//! What both sides of an in-band authentication with DH-HMAC-CHAP need (Base Specification, "DH-HMAC-CHAP Protocol"):
//! secrets as hosts configure them, and the arithmetic.
//!
//! The messages are laid out in `nvme_spec::auth`. How they are put together is not here: `target` does that for the
//! controller and `host` for the host, each on its own from the same description, so that a mistake in one of them
//! makes authentication fail.

pub mod arithmetic;
mod primes;
pub mod secret;

pub use secret::{Secret, SecretError};
