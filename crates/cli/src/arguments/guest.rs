//! The command line of `warp guest`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{PrintedFormat, ServedDriveArgs, size};

/// Transport of the guest's drive. (A description of each value would put an empty line between all
/// options of the help.)
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestTransport {
    VfioUser,
    Tcp,
    Both,
    None,
}

#[derive(Args)]
pub struct GuestArgs {
    #[command(flatten)]
    pub drive: ServedDriveArgs,
    /// Transport of the guest's drive, as a PCI Express device, over NVMe/TCP, both as two paths to
    /// one drive, or none (only the drives of --qemu)
    #[arg(long, value_enum, default_value = "vfio-user")]
    pub transport: GuestTransport,
    /// Debian packages to install in the guest, such as rocksdb-tools
    #[arg(long, value_name = "PACKAGE,...", value_delimiter = ',', value_parser = package)]
    pub with: Vec<String>,
    /// Folder to mount as /shared in the guest, the working directory of the command
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub share: PathBuf,
    /// Memory of the guest, 512M to 1T
    #[arg(long, value_name = "SIZE", value_parser = guest_memory, default_value = "1G")]
    pub memory: u64,
    /// Give the guest access to the loopback addresses of this machine, at 10.0.2.2
    #[arg(long)]
    pub network: bool,
    /// Stop the guest after this time, boot included, with exit code 124 [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Build missing parts of the guest, print its folders and exit
    #[arg(long, conflicts_with = "command")]
    pub build_only: bool,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Write the kernel's console output to this file
    #[arg(long, value_name = "FILE")]
    pub console: Option<PathBuf>,
    /// Kernel to boot instead of Debian's, such as a bzImage
    #[arg(long, value_name = "FILE")]
    pub kernel_image: Option<PathBuf>,
    /// Folder lib/modules/VERSION with the modules of the kernel. Without it, the kernel must have
    /// the drivers of the guest built in
    #[arg(long, value_name = "FOLDER", requires = "kernel_image")]
    pub modules: Option<PathBuf>,
    /// Initramfs whose files join those of the guest, such as firmware
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Additional kernel arguments, such as nvme_core.multipath=N
    #[arg(long, value_name = "ARGUMENTS", default_value = "", hide_default_value = true)]
    pub kernel: String,
    /// Additional QEMU argument (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub qemu: Vec<String>,
    /// Command to run in the guest [default: a shell on this terminal]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Parses the name of a Debian package, by the rules of Debian Policy.
fn package(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "+-.".contains(letter);
    let begins = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if text.len() > 1 && text.starts_with(begins) && text.chars().all(allowed) {
        return Ok(text.to_string());
    }
    Err("give names of Debian packages, separated by commas, such as rocksdb-tools,jq".to_string())
}

/// Parses the memory of the guest, within the limits of a kernel and its programs.
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
