//! The studio: a web server for sessions with simulated drives.
//!
//! ```text
//! page -> Order -> session: Engine (a thread; lanes of simulate::live) -> State -> frames -> page
//!     \-> catalogue, texts, store, exports
//! ```
//!
//! The page itself is in `web/`. This crate does not model, measure or judge. Runs, results,
//! reports and names come from the same crates that `warp run` uses.

mod actions;
mod answers;
pub mod assets;
mod catalogue;
mod command;
mod drive;
mod engine;
mod export;
pub mod frames;
mod lane;
mod memory;
pub mod order;
mod page;
mod records;
pub mod request;
mod results;
mod series;
mod session;
mod shared;
mod state;
mod studio;
pub mod texts;

pub use actions::ACTIONS_A_SECOND;
pub use drive::LOOK_TIME;
pub use order::Order;
pub use studio::{SESSIONS_MAX, ServedDrive, Studio, StudioOptions};
