//! The studio: a server for a page in which drives live.
//!
//! ```text
//! page -> Order -> session: Engine (a thread; lanes of simulate::live) -> State -> frames -> page
//!     \-> catalogue, texts, store, exports
//! ```
//!
//! The page itself is in `web/`. Nothing is modelled, measured or judged here: runs, results, reports and names are the lab's.

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
