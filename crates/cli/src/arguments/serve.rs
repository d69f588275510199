//! Options of a served drive, and the command lines of `warp guest` and `warp studio`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base::size::parse_capacity;
use clap::{Args, ValueEnum};
use experiment::run_options::RunOptions;
use toml::Value;

use super::{PrintedFormat, assignment, logical_block, on_or_off, seconds_in, size};

/// Maximum number of drives of one command.
const DRIVES_MAX: i64 = 64;

#[derive(Clone, Args)]
pub struct ServedDriveArgs {
    /// Number of equal drives. Each has its own subsystem, and its own number in files, sockets and
    /// the serial number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=DRIVES_MAX))]
    pub drives: u16,
    /// Device profile
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// Logical capacity, such as 8G (powers of 1024) or 8GB (powers of 1000) [default: the
    /// profile's, 8G in a guest]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<u64>,
    /// Change a setting of the device, such as --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Storage of the data, "memory", "null" (no data, for studies of drives larger than the
    /// machine), "pattern" (only a test pattern) or a file
    #[arg(long, value_name = "FILE", default_value = "memory")]
    pub data: String,
    /// Enable Flexible Data Placement on a new drive
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub fdp: bool,
    /// Delay commands by the times in the device profile, if it has any
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    pub timing: bool,
    /// Logical block size of a new drive's namespace, bytes
    #[arg(long, value_name = "512|4096", default_value = "4096", value_parser = logical_block)]
    pub block: u8,
}

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
    #[arg(long, value_name = "SECONDS", value_parser = |text: &str| seconds_in(1.0..=1e7, text, "give 1 or more seconds"))]
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
