//! A drive that a command goes to: as whom, and for a workload that runs on it instead of a model.

use clap::Args;

#[derive(Args)]
#[command(mut_arg("host_nqn", |argument| argument.requires("on")))]
pub struct OnDrive {
    /// Run a job file, workload or block trace on this drive instead of a model of one, and overwrite what is on it:
    /// tcp:ADDRESS:PORT of a served one, or /dev/nvme0n1 of this machine with --overwrite
    #[arg(long, value_name = "DRIVE", conflicts_with_all = ["device", "capacity", "scale", "prefill", "seconds", "interval",
        "until", "only", "single_file", "out", "events", "series", "untimed", "replay", "speed", "queue_depth", "fio_json", "feedback", "handles", "from", "save"])]
    pub on: Option<String>,
    /// With --on /dev/...: yes, destroy all data on that namespace
    #[arg(long, requires = "on")]
    pub overwrite: bool,
    #[command(flatten)]
    pub host: AsHost,
}

/// As whom a drive on NVMe/TCP is visited.
#[derive(Args)]
pub struct AsHost {
    /// NQN to give as host over NVMe/TCP
    #[arg(long, value_name = "NQN")]
    pub host_nqn: Option<String>,
    /// DH-HMAC-CHAP secret of that host, where the drive demands one
    #[arg(long, value_name = "DHHC-1:...", requires = "host_nqn")]
    pub secret: Option<String>,
}
