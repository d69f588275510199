//! Command line of `warp drive check`.

use clap::{ArgGroup, Args};

use super::HostCredentials;

#[derive(Args)]
#[command(group = ArgGroup::new("limit").required(true).multiple(true).args(["waf_at_most", "handle"]))]
pub struct CheckArgs {
    /// Served drive (tcp:ADDRESS:PORT), drive of this machine (/dev/nvme0), data file of a stopped
    /// server, or device snapshot
    pub target: String,
    /// Maximum write amplification of the drive since its creation
    #[arg(long, value_name = "WAF", value_parser = amplification, allow_negative_numbers = true)]
    pub waf_at_most: Option<f64>,
    /// Maximum write amplification of a reclaim unit handle, such as 2:1.02 (repeatable, data files
    /// and snapshots only)
    #[arg(long, value_name = "RUH:WAF", value_parser = of_handle)]
    pub handle: Vec<HandleLimit>,
    /// Endurance group of the drive [default: 1]
    #[arg(long, value_name = "N")]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: HostCredentials,
}

/// Limit for a reclaim unit handle.
#[derive(Clone, Copy)]
pub struct HandleLimit {
    /// Reclaim unit handle.
    pub handle: u16,
    /// Maximum write amplification of the handle.
    pub at_most: f64,
}

fn amplification(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (1.0..=1000.0).contains(value));
    value.ok_or_else(|| "give 1 or more, such as 1.1".to_string())
}

fn of_handle(text: &str) -> Result<HandleLimit, String> {
    let parsed = text.split_once(':').and_then(|(handle, at_most)| {
        Some(HandleLimit { handle: handle.parse().ok()?, at_most: amplification(at_most).ok()? })
    });
    parsed.ok_or_else(|| "give a handle and 1 or more, such as 2:1.02".to_string())
}
