//! The studio.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use experiment::twin::ScaleChoice;
use toml::Value;

use super::assignment;

#[derive(Args)]
pub struct Studio {
    /// What to begin with: an experiment, a job file, a workload or a block trace, as for `warp run` [default: the page
    /// asks]
    pub target: Option<String>,
    /// Device profile; a workload needs one
    #[arg(long, requires = "target")]
    pub device: Option<String>,
    /// Run on a twin of the drive, 1/N of its size; auto: the smallest that behaves like it [default: the
    /// experiment's; of a workload auto]
    #[arg(long, value_name = "1/N", requires = "target")]
    pub scale: Option<ScaleChoice>,
    /// Bytes for the host to write, in multiples of the capacity
    #[arg(long, value_name = "CAPACITIES", requires = "target")]
    pub write: Option<f64>,
    /// Variants and grid values to run side by side; several with commas, or repeated [default: all variants, with the
    /// first value of each axis]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "target")]
    pub only: Vec<String>,
    /// Change a setting of the device or of the workload, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment, requires = "target")]
    pub set: Vec<(String, Value)>,
    /// Seed of device and workload
    #[arg(long, default_value_t = 1, requires = "target")]
    pub seed: u64,
    /// Address and port to serve the page on; other than loopback needs --token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    pub listen: SocketAddr,
    /// File with the token that pages have to show; its first line, 16 bytes or more
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
}
