//! The drive that is served, over whatever.

use clap::Args;
use toml::Value;

use base::size::parse_capacity;

use super::{assignment, logical_block, on_or_off};

#[derive(Args)]
pub struct ServedDrive {
    /// Device profile
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// Logical capacity, such as 8G (powers of 1024) or 8GB (of 1000) [default: the profile's; in a guest 8G]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<u64>,
    /// Change a setting of the device, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Where the data is: "memory", "null" (none: for studies of drives larger than the machine) or a file
    #[arg(long, value_name = "FILE", default_value = "memory")]
    pub data: String,
    /// Whether a new drive has Flexible Data Placement enabled
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub fdp: bool,
    /// Whether commands take the time that the device's profile says, if it says one
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub timing: bool,
    /// Bytes of a logical block of a new drive's namespace
    #[arg(long, value_name = "512|4096", default_value = "4096", value_parser = logical_block)]
    pub block: u8,
}
