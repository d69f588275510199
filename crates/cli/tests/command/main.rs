//! The `warp` command as a shell sees it: exit codes, one sentence on standard error, files.
//!
//! Every test works in a folder of its own, so that profiles, jobs and experiments are those built into the program and
//! what is written can be counted. It does not cover what the numbers are: that is the lab's.

#[path = "../common/mod.rs"]
mod common;
mod refusals;
mod results;
