//! Commands to the engine of a session.

use std::sync::mpsc::SyncSender;

use toml::Table;

use crate::export::Material;

/// What a page wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// Go on.
    Play,
    /// Stand still.
    Pause,
    /// Go on no faster than this.
    Speed(Option<u64>),
    /// Take so many requests and stand still.
    Step(u64),
    /// Come to the moment at which the hosts have written so much.
    Seek(u64),
    /// Come to the first collection of any lane, wherever the lanes are.
    FirstCollection,
    /// Branch off a lane.
    Fork {
        /// Which.
        lane: usize,
        /// What the branch is called.
        name: String,
        /// What is other.
        set: Table,
    },
    /// Let go of a lane.
    Drop(usize),
}

/// What the engine is told.
pub enum Command {
    /// A page wants something.
    Want(u64, Want),
    /// A page has come: show everything.
    Show,
    /// The session has another name: pages are told.
    Renamed,
    /// Somebody exports.
    Export(SyncSender<Material>),
    /// Statistics of a served drive are to be counted from now on; when that is, in milliseconds since 1970.
    ResetStatistics(SyncSender<u64>),
    /// End.
    Stop,
}
