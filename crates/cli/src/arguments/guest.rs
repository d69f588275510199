//! The command line of `warp guest`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{PrintedFormat, ServedDrive, size};

/// How the guest's drive is attached. (Words for each value would put an empty line between all options of the help.)
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    VfioUser,
    Tcp,
    Both,
    None,
}

#[derive(Args)]
pub struct Guest {
    #[command(flatten)]
    pub drive: ServedDrive,
    /// How the drive is attached: as a PCI Express drive, over NVMe/TCP, by both as two paths to it, or no drive but those
    /// of --qemu
    #[arg(long, value_enum, default_value = "vfio-user")]
    pub transport: Transport,
    /// Debian packages whose programs are to be in the guest, such as rocksdb-tools
    #[arg(long, value_name = "PACKAGE,...", value_delimiter = ',', value_parser = package)]
    pub with: Vec<String>,
    /// Folder that is /shared in the guest, where the command runs
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub share: PathBuf,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", value_parser = guest_memory, default_value = "1G")]
    pub memory: u64,
    /// Let the guest reach the loopback addresses of this machine, which is 10.0.2.2 there
    #[arg(long)]
    pub network: bool,
    /// End the guest after so long, its start included, with exit code 124 [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Build what is missing of the guest, print its folders, and boot nothing
    #[arg(long, conflicts_with = "command")]
    pub build_only: bool,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Keep what the kernel says on its console in this file
    #[arg(long, value_name = "FILE")]
    pub console: Option<PathBuf>,
    /// Further arguments of the kernel, such as nvme_core.multipath=N
    #[arg(long, value_name = "ARGUMENTS", default_value = "", hide_default_value = true)]
    pub kernel: String,
    /// A further argument of QEMU; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub qemu: Vec<String>,
    /// What to run in the guest [default: a shell on this terminal]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The name of a Debian package, as its policy has it.
fn package(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "+-.".contains(letter);
    let begins = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if text.len() > 1 && text.starts_with(begins) && text.chars().all(allowed) {
        return Ok(text.to_string());
    }
    Err("give names of Debian packages with commas between them, such as rocksdb-tools,jq".to_string())
}

/// Memory that a kernel and its programs get along with.
fn guest_memory(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    let allowed = (512 << 20)..=(1 << 40);
    let bytes = Some(bytes).filter(|bytes| allowed.contains(bytes));
    bytes.ok_or_else(|| "give 512M to 1T".to_string())
}

fn limit(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let seconds = seconds.filter(|seconds| (1.0..=1e7).contains(seconds));
    let limit = seconds.map(Duration::from_secs_f64);
    limit.ok_or_else(|| "give 1 or more seconds".to_string())
}
