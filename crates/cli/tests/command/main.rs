//! The `warp` command as a shell sees it: exit codes, one sentence on standard error, files.
//!
//! Each test has its own folder. Profiles, jobs and experiments are therefore those of the program,
//! and the test can count the written files. The lab's tests cover the numbers.

#[path = "../common/mod.rs"]
mod common;
mod refusals;
mod results;
