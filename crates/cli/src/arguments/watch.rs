//! Options of `warp watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::HostCredentials;
use super::characterize::duration;

#[derive(Args)]
pub struct WatchArgs {
    /// Drive, given as tcp:ADDRESS:PORT, /dev/nvme0n1 or /dev/ng0n1
    pub target: String,
    /// Time between readings, such as 10s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub every: Duration,
    /// Number of readings after the first [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub readings: Option<u64>,
    /// Write all readings to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the last reading to this file for the textfile collector of Prometheus
    #[arg(long, value_name = "FILE.prom")]
    pub prometheus: Option<PathBuf>,
    /// Print a line of JSON for each reading, and all words to standard error
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub host: HostCredentials,
}
