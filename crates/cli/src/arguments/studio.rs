//! The studio.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use experiment::run_options::RunOptions;
use toml::Value;

use super::assignment;

#[derive(Args)]
#[command(mut_group("RunOptions", |options| options.requires("target")))]
#[command(mut_arg("only", |only| only.value_delimiter(',')))]
pub struct Studio {
    /// What to begin with: an experiment, a job file, a workload or a block trace, as for `warp run` [default: the page
    /// asks]
    pub target: Option<String>,
    /// Device profile; a workload needs one
    #[arg(long, requires = "target")]
    pub device: Option<String>,
    #[command(flatten)]
    pub run: RunOptions,
    /// Change a setting of the device or of the workload, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment, requires = "target")]
    pub set: Vec<(String, Value)>,
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
