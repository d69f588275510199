//! Commands to the engine of a session.

use std::sync::mpsc::SyncSender;

use serde::Deserialize;
use toml::Table;

use crate::export::ExportData;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum PageCommand {
    Play {},
    Pause {},
    Speed {
        host_bytes_per_second: Option<ByteCount>,
    },
    /// Execute this number of requests and pause.
    Step {
        #[serde(default = "one")]
        requests: u64,
    },
    /// Go to the time at which the hosts have written this number of bytes.
    Seek {
        host_bytes: ByteCount,
    },
    /// Go to the first garbage collection of any lane, from any position.
    FirstCollection {},
    Fork {
        lane: usize,
        name: String,
        #[serde(default)]
        set: Table,
    },
    Drop {
        lane: usize,
    },
}

fn one() -> u64 {
    1
}

/// Byte count from a page. JavaScript numbers are floats.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct ByteCount(pub u64);

impl TryFrom<f64> for ByteCount {
    type Error = String;

    fn try_from(number: f64) -> Result<ByteCount, String> {
        // No drive can have written more.
        let is_count = (0.0..=9e18).contains(&number);
        is_count
            .then_some(ByteCount(number as u64))
            .ok_or_else(|| format!("{number} is not a number of bytes. Give 0 or more"))
    }
}

pub enum EngineCommand {
    Page(u64, PageCommand),
    /// A page connected, so the state must be published.
    Show,
    /// The session was renamed, so pages need a new message.
    Renamed,
    Export(SyncSender<ExportData>),
    /// Reset the statistics of a served drive. The answer is the time of the reset, milliseconds
    /// since 1970.
    ResetStatistics(SyncSender<u64>),
    Stop,
}
