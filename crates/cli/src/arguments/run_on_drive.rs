//! Options for the drive that a command connects to: host credentials, and the drive that a
//! workload runs on instead of a model.

use clap::Args;

#[derive(Args)]
#[command(mut_arg("host_nqn", |argument| argument.requires("drive")))]
pub struct RemoteTargetArgs {
    /// Run a job file, workload or block trace on this drive instead of a model and overwrite its
    /// data (tcp:ADDRESS:PORT, or /dev/nvme0n1 of this machine with --overwrite)
    #[arg(id = "drive", long = "target", value_name = "DRIVE", conflicts_with_all = ["device", "capacity", "scale", "precondition", "seconds", "uncertainty",
        "steady_state", "variant", "single_file", "out", "events", "series", "untimed", "replay", "speed", "queue_depth", "fio_json", "feedback", "array", "handles", "load_snapshot", "save_snapshot"])]
    pub drive: Option<String>,
    /// With --target /dev/..., confirm that all data on the namespace may be destroyed
    #[arg(long, requires = "drive")]
    pub overwrite: bool,
    #[command(flatten)]
    pub host: HostCredentials,
}

/// Host credentials for a drive on NVMe/TCP.
#[derive(Args)]
pub struct HostCredentials {
    /// Host NQN for NVMe/TCP
    #[arg(long, value_name = "NQN")]
    pub host_nqn: Option<String>,
    /// DH-HMAC-CHAP secret of the host, if the drive requires authentication
    #[arg(long, value_name = "DHHC-1:...", requires = "host_nqn")]
    pub secret: Option<String>,
}
