//! The command line of `warp assert`.

use clap::{ArgGroup, Args};

use super::AsHost;

#[derive(Args)]
#[command(group = ArgGroup::new("promise").required(true).multiple(true).args(["waf_at_most", "handle"]))]
pub struct Assert {
    /// The drive: tcp:ADDRESS:PORT of a served one, /dev/nvme0 of this machine, the data file of one that was served, or a snapshot
    pub target: String,
    /// Write amplification of the drive since it was made, at most
    #[arg(long, value_name = "WAF", value_parser = amplification, allow_negative_numbers = true)]
    pub waf_at_most: Option<f64>,
    /// Write amplification of a reclaim unit handle, at most, such as 2:1.02 (data files only); may be given several times
    #[arg(long, value_name = "RUH:WAF", value_parser = of_handle)]
    pub handle: Vec<OfHandle>,
    /// Endurance group of the drive [default: 1]
    #[arg(long, value_name = "N")]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: AsHost,
}

/// What is promised of a handle.
#[derive(Clone, Copy)]
pub struct OfHandle {
    /// The reclaim unit handle.
    pub handle: u16,
    /// Its own write amplification, at most.
    pub at_most: f64,
}

fn amplification(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (1.0..=1000.0).contains(value));
    value.ok_or_else(|| "give 1 or more, such as 1.1".to_string())
}

fn of_handle(text: &str) -> Result<OfHandle, String> {
    let parsed = text.split_once(':').and_then(|(handle, at_most)| {
        Some(OfHandle {
            handle: handle.parse().ok()?,
            at_most: amplification(at_most).ok()?,
        })
    });
    parsed.ok_or_else(|| "give a handle and 1 or more, such as 2:1.02".to_string())
}
