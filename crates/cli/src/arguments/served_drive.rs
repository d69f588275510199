//! Options of a served drive, common to `warp serve` and `warp guest`.

use clap::Args;
use toml::Value;

use base::size::parse_capacity;

use super::{assignment, logical_block, on_or_off};

/// Maximum number of drives of one command.
const DRIVES_MAX: i64 = 64;

#[derive(Clone, Args)]
pub struct ServedDriveArgs {
    /// Number of equal drives. Each has its own subsystem, and its own number in files, sockets and
    /// the serial number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=DRIVES_MAX))]
    pub drives: u16,
    /// Device profile
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// Logical capacity, such as 8G (powers of 1024) or 8GB (powers of 1000) [default: the
    /// profile's, 8G in a guest]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<u64>,
    /// Change a setting of the device, such as --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Storage of the data, "memory", "null" (no data, for studies of drives larger than the
    /// machine), "pattern" (only a test pattern) or a file
    #[arg(long, value_name = "FILE", default_value = "memory")]
    pub data: String,
    /// Enable Flexible Data Placement on a new drive
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub fdp: bool,
    /// Delay commands by the times in the device profile, if it has any
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub timing: bool,
    /// Logical block size of a new drive's namespace, bytes
    #[arg(long, value_name = "512|4096", default_value = "4096", value_parser = logical_block)]
    pub block: u8,
}
