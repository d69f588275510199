//! Command line of `warp drive faults`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).args(["file", "clear", "show"]))]
pub struct FaultsArgs {
    /// Address and port of the server's --metrics
    #[arg(value_name = "ADDRESS:PORT")]
    pub address: SocketAddr,
    /// TOML file of faults to inject from now on, which replaces the previous plan
    pub file: Option<PathBuf>,
    /// File with the token of the server (--metrics-token)
    #[arg(long, value_name = "FILE")]
    pub token: PathBuf,
    /// Clear all faults
    #[arg(long)]
    pub clear: bool,
    /// Show the planned faults and the number of times each occurred
    #[arg(long)]
    pub show: bool,
}
