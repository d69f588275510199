//! Attacks on the studio. No peer can end it, stall it, or make its memory grow without bound.

mod access;
mod actions;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/served.rs"]
mod served;
