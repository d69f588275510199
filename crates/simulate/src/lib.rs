//! Execution of experiment cells on the device model, at full speed or in virtual time.
//!
//! ```text
//! RunSpec -> run::prepare -> RunPlan -> run (untimed loop) | timed (virtual time) -> RunResult
//!                                    \-> live: the same in steps, with checkpoints and forks
//! ```
//!
//! `warning` and `steady` assess a run during and after its execution. Their verdicts are part of
//! its result. This crate neither prints, exports nor draws.

pub mod bench;
pub mod clocked;
pub mod feedback;
pub mod live;
pub mod policy;
mod request_mapper;
pub mod run;
mod run_recorder;
pub mod steady;
#[doc(hidden)]
pub mod testing;
pub mod timed;
pub mod warning;
