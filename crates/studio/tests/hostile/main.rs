//! Attacks: whoever reaches the studio must not end it, stall it, or have it take memory without bound.

mod access;
mod actions;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/served.rs"]
mod served;
