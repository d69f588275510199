//! Log pages, asynchronous events, Abort and Keep Alive as hosts see them. The tests check bytes at
//! the standard's offsets, pages in pieces, the statuses of refused commands, and the commands of
//! real clients.

#[path = "../common/mod.rs"]
mod common;
mod contents;
mod events;
mod form;
