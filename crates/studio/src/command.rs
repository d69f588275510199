//! Commands to the engine of a session.

use std::sync::mpsc::SyncSender;

use serde::Deserialize;
use toml::Table;

use crate::export::Material;

/// What a page has a session do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum PageCommand {
    Play {},
    Pause {},
    /// Go on no faster than this.
    Speed {
        /// `None`: as fast as possible.
        host_bytes_per_second: Option<ByteCount>,
    },
    /// Take so many requests and stand still.
    Step {
        /// One if left out.
        #[serde(default = "one")]
        requests: u64,
    },
    /// Come to the moment at which the hosts have written so much.
    Seek {
        /// Bytes that each host has written.
        host_bytes: ByteCount,
    },
    /// Come to the first collection of any lane, wherever the lanes are.
    FirstCollection {},
    /// Branch off a lane.
    Fork {
        lane: usize,
        /// What the branch is called.
        name: String,
        /// What is other.
        #[serde(default)]
        set: Table,
    },
    /// Let go of a lane.
    Drop {
        lane: usize,
    },
}

fn one() -> u64 {
    1
}

/// Bytes as a page sends them. JavaScript has no integers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct ByteCount(pub u64);

impl TryFrom<f64> for ByteCount {
    type Error = String;

    fn try_from(number: f64) -> Result<ByteCount, String> {
        // Nothing has written more.
        let is_count = (0.0..=9e18).contains(&number);
        is_count
            .then_some(ByteCount(number as u64))
            .ok_or_else(|| format!("{number} is no number of bytes; give 0 or more"))
    }
}

/// What the engine is told.
pub enum Command {
    /// A page has it do something.
    Page(u64, PageCommand),
    /// A page has come: show everything.
    Show,
    /// The session has another name: pages are told.
    Renamed,
    Export(SyncSender<Material>),
    /// Statistics of a served drive are to be counted from now on; when that is, in milliseconds since 1970.
    ResetStatistics(SyncSender<u64>),
    Stop,
}
