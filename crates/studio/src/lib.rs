//! The studio: a web server for sessions with simulated drives.
//!
//! ```text
//! page -> SessionSpec -> StudioSession: SessionEngine (a thread; lanes of simulate::live) -> SessionState -> frames -> page
//!     \-> catalogue, texts, store, exports
//! ```
//!
//! The page itself is in `web/`. This crate does not simulate, measure or check claims itself.
//! Runs, results, reports and names come from the same crates that `warp run` uses.

mod actions;
mod api_error;
pub mod assets;
mod catalogue;
mod command;
mod drive;
mod engine;
mod export;
mod frames;
mod lane;
mod page_connection;
mod records;
mod results;
pub mod run_query;
mod series;
mod session;
pub mod session_spec;
mod shared_session;
mod state;
mod studio;
pub mod text_check;

pub use actions::ACTIONS_A_SECOND;
pub use drive::{MonitoredDrive, POLL_INTERVAL};
pub use session_spec::SessionSpec;
pub use studio::{SESSIONS_MAX, Studio, StudioOptions};
