//! What goes wrong in a served drive.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).args(["file", "clear", "show"]))]
pub struct Faults {
    /// Address and port of the server's --metrics
    #[arg(value_name = "ADDRESS:PORT")]
    pub address: SocketAddr,
    /// TOML file of what is to go wrong from now on, in place of what was planned before
    pub file: Option<PathBuf>,
    /// File with the token that the server was given (--metrics-token)
    #[arg(long, value_name = "FILE")]
    pub token: PathBuf,
    /// Nothing is to go wrong any more
    #[arg(long)]
    pub clear: bool,
    /// Show what is planned, and how often it happened
    #[arg(long)]
    pub show: bool,
}
