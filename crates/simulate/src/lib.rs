//! Runs: a cell of an experiment on the device model, as fast as memory allows or in virtual time.
//!
//! ```text
//! Cell -> run::prepare -> RunPlan -> run (untimed loop) | timed (virtual time) -> CellResult
//!                                     \-> live: the same in steps, with checkpoints and forks
//! ```
//!
//! `finding` and `steady` judge a run while it goes on and when it ends, so their answers travel with its result.
//! Nothing is printed, exported or drawn here.

pub mod bench;
pub mod clocked;
pub mod feedback;
pub mod finding;
pub mod live;
mod mapper;
pub mod policy;
mod recorder;
pub mod run;
pub mod steady;
#[doc(hidden)]
pub mod testing;
pub mod timed;
