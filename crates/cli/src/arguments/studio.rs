//! Command line of `warp studio`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use experiment::run_options::RunOptions;
use toml::Value;

use super::assignment;

#[derive(Args)]
#[command(mut_group("RunOptions", |options| options.requires("target")))]
#[command(mut_arg("variant", |variant| variant.value_delimiter(',')))]
pub struct StudioArgs {
    /// Experiment, job file, workload or block trace to start with, as for `warp run` [default:
    /// choose on the page]
    pub target: Option<String>,
    /// Device profile (required for a workload)
    #[arg(long, requires = "target")]
    pub device: Option<String>,
    #[command(flatten)]
    pub run: RunOptions,
    /// Change a setting of the device or the workload, such as --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment, requires = "target")]
    pub set: Vec<(String, Value)>,
    /// Show the drives of an array of the device side by side, such as raid5,drives=4
    /// (docs/reference/arrays.md)
    #[arg(long, value_name = "LEVEL,NAME=VALUE", requires = "target")]
    pub array: Option<String>,
    /// Address and port on which to serve the page (addresses other than loopback need --token)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    pub listen: SocketAddr,
    /// File whose first line is the token that browsers must send, 16 bytes or more
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
}
