//! `warp serve`: serves a drive to QEMU and NVMe/TCP hosts until Ctrl-C.

use std::fmt::Write;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::input::TEXT_BYTES_MAX;
use experiment::LabError;
use experiment::profile::Profile;
use experiment::scaled_model;
use indicatif::{ProgressBar, ProgressStyle};
use nvme::fault::PowerLoss;
use nvme::{Identity, SubsystemConfig};
use serde::Deserialize;
use ssd::DeviceConfig;
use studio::{Studio, StudioOptions};
use target::http::HttpOptions;
use target::server::{ServeOptions, Server};
use target::storage::DriveOptions;
use target::storage::backend::DataChoice;
use target::tcp::{AllowedHost, DhGroupId, Secret, TcpOptions};

use crate::advise::InterruptFlag;
use crate::arguments::{ServeArgs, ServedDriveArgs};
use crate::faults::plan;
use crate::output::print_error;
use crate::studio::page_address;
use crate::token::{check_private, token};
use crate::{AnyError, ExitOutcome, POWER_LOST, bad_option, print, read_text};

/// Maximum number of controllers, many more than the hosts of a machine.
const CONTROLLERS_MAX: u16 = 256;
/// I/O queue pairs per controller, as many as real drives have and enough for the cores of a large
/// host.
const IO_QUEUES_MAX: u16 = 128;
/// Refresh interval of the status line.
const STATUS_EVERY: Duration = Duration::from_secs(1);

pub fn serve(command: &ServeArgs) -> Result<ExitOutcome, AnyError> {
    if command.vfio_user.is_empty() && command.tcp.is_none() {
        return Err(bad_option(
            "warp serve",
            "the drive has no transport. Give --vfio-user SOCKET, --tcp ADDRESS:PORT or both",
        )
        .into());
    }
    let stop = InterruptFlag::install()?;
    let count = command.drive.drives;
    let commands: Vec<ServeArgs> = match count {
        1 => vec![command.clone()],
        _ => (1..=count).map(|number| of_drive(command, number)).collect::<Result<_, _>>()?,
    };
    check_ports(&commands)?;
    for command in &commands {
        identity(&command.serial, command.nqn.as_deref())?;
    }
    // On an error, dropping the earlier drives closes them cleanly.
    let drives = commands.iter().zip(1..).map(|(command, number)| start(command, number));
    let drives: Vec<RunningDrive> = drives.collect::<Result<_, _>>()?;
    let which = if count > 1 { format!("all {count} drives") } else { "the drive".to_string() };
    print(&format!("\nStop {which} with Ctrl-C.\n"));
    show_status(command, &drives, &stop);
    for (drive, number) in drives.into_iter().zip(1..) {
        let waf = drive.server.status().stats.write_amplification();
        if let Some((studio, _)) = drive.page {
            studio.stop();
        }
        drive.server.stop()?;
        let waf = waf.map_or("nothing written".to_string(), |waf| format!("write amplification {waf:.3}"));
        print(&format!("{}stopped, {waf}\n", title(number, count)));
    }
    Ok(ExitOutcome::Done)
}

/// Rejects drives and options that want the same port, before any of them listens.
fn check_ports(commands: &[ServeArgs]) -> Result<(), LabError> {
    let mut taken: Vec<(SocketAddr, &str, usize)> = Vec::new();
    for (command, number) in commands.iter().zip(1..) {
        for (option, address) in [("--tcp", command.tcp), ("--metrics", command.metrics), ("--studio", command.studio)]
        {
            // Port 0 is any free port.
            let Some(address) = address.filter(|address| address.port() != 0) else { continue };
            let (port, ip) = (address.port(), address.ip());
            let is_same = |other: &SocketAddr| {
                port == other.port() && (ip == other.ip() || ip.is_unspecified() || other.ip().is_unspecified())
            };
            if let Some((_, other, of)) = taken.iter().find(|(other, ..)| is_same(other)) {
                let count = commands.len();
                let problem = match count {
                    1 => format!("port {port} is that of {other} too. Give another port"),
                    _ => format!(
                        "port {port} of drive {number} is that of {other} of drive {of} too. Each drive takes the \
                         next port, so give ports that are {count} or more apart"
                    ),
                };
                return Err(bad_option(option, problem));
            }
            taken.push((address, option, number));
        }
    }
    Ok(())
}

/// A served drive with its page.
struct RunningDrive {
    server: Server,
    page: Option<(Studio, String)>,
}

/// Starts a drive, 1 to `--drives`, and prints how to reach it.
fn start(command: &ServeArgs, number: u16) -> Result<RunningDrive, AnyError> {
    let count = command.drive.drives;
    let (options, capacity_note) = options(command, number)?;
    let config = options.drive.subsystem.clone();
    let studio_token = command.studio_token.as_deref().map(token).transpose()?;
    let (server, opened) = Server::start(options)?;
    let page = command.studio.map(|listen| studio(command, listen, studio_token, &server)).transpose()?;
    let capacity_note = capacity_note.map(|note| format!("{note}\n")).unwrap_or_default();
    let text = introduction(command, &config, &server, page.as_ref());
    print(&format!("{}{opened}\n{capacity_note}{text}", title(number, count)));
    Ok(RunningDrive { server, page })
}

/// Start of a line about one of several drives.
pub fn title(number: u16, count: u16) -> String {
    if count > 1 { format!("drive {number}: ") } else { String::new() }
}

/// Options of one of several drives. Files, sockets and names get its number, and ports increase by
/// one from drive to drive.
fn of_drive(command: &ServeArgs, number: u16) -> Result<ServeArgs, LabError> {
    let mut command = command.clone();
    for (option, address) in
        [("--tcp", &mut command.tcp), ("--metrics", &mut command.metrics), ("--studio", &mut command.studio)]
    {
        let Some(address) = address else { continue };
        // Port 0 is any free port.
        if address.port() != 0 {
            let port = address.port().checked_add(number - 1);
            let problem = || format!("drive {number} has a port above 65535. Give a smaller port");
            address.set_port(port.ok_or_else(|| bad_option(option, problem()))?);
        }
    }
    for socket in &mut command.vfio_user {
        socket.as_mut_os_string().push(format!(".{number}"));
    }
    add_number(number, &mut command.drive.data, &mut command.serial);
    command.nqn = command.nqn.map(|nqn| format!("{nqn}:{number}"));
    Ok(command)
}

/// Starts the page of the drive and returns its address.
fn studio(
    command: &ServeArgs,
    listen: SocketAddr,
    token: Option<String>,
    server: &Server,
) -> Result<(Studio, String), AnyError> {
    let drive = studio::MonitoredDrive {
        monitor: server.monitor(),
        name: command.drive.device.clone(),
        actions: server.actions(),
    };
    let http = HttpOptions { listen, token: token.clone() };
    let studio = Studio::start_with(StudioOptions::new(http), Some(drive))?;
    let address = page_address(&studio, token.as_deref(), "#/drive");
    Ok((studio, address))
}

/// Storage of the option --data.
fn data_choice(data: &str) -> DataChoice {
    match data {
        "memory" => DataChoice::Memory,
        "null" => DataChoice::Null,
        "pattern" => DataChoice::Pattern,
        path => DataChoice::File(PathBuf::from(path)),
    }
}

/// Adds the number of a drive to the name of its data file and to its serial number.
pub fn add_number(number: u16, data: &mut String, serial: &mut String) {
    if matches!(data_choice(data), DataChoice::File(_)) {
        *data += &format!(".{number}");
    }
    *serial += &format!("-{number}");
}

/// Shows a status line of each drive until a signal arrives.
fn show_status(command: &ServeArgs, drives: &[RunningDrive], stop: &InterruptFlag) {
    let line = (!command.quiet && std::io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{msg}").expect("the template is valid");
        ProgressBar::new_spinner().with_style(style)
    });
    let status = || drives.iter().map(|drive| drive.server.status()).collect::<Vec<_>>();
    let mut before = status();
    while !stop.is_pressed_within(STATUS_EVERY) {
        let now = status();
        if let Some(line) = &line {
            let lines: Vec<String> = now.iter().zip(&before).map(|(now, before)| now.line(before)).collect();
            line.set_message(lines.join("\n"));
            line.tick();
        }
        before = now;
    }
    if let Some(line) = line {
        line.finish_and_clear();
    }
}

/// Options of the server, and the reclaim units of a drive with a requested capacity in a sentence.
fn options(command: &ServeArgs, number: u16) -> Result<(ServeOptions, Option<String>), AnyError> {
    let identity = identity(&command.serial, command.nqn.as_deref())?;
    let (drive, capacity_note) = drive_options(&command.drive, number, command.drive.capacity, identity)?;
    let subsystem = SubsystemConfig {
        namespace: !command.no_namespace,
        reclaim_unit_time_limit_s: command.reclaim_unit_time_limit,
        ..drive.subsystem
    };
    let checksums = command.checksums || command.scrub > 0;
    if checksums && !matches!(drive.data, DataChoice::File(_)) {
        let option = if command.checksums { "--checksums" } else { "--scrub" };
        return Err(bad_option(option, "checksums need a data file. Give --data FILE").into());
    }
    let drive = DriveOptions { subsystem, checksums, ..drive };
    let tcp = match (command.tcp, &command.hosts) {
        (None, _) => None,
        (Some(listen), None) => Some(TcpOptions::new(listen)),
        (Some(listen), Some(file)) => Some(TcpOptions { hosts: hosts(file)?, ..TcpOptions::new(listen) }),
    };
    let metrics = command.metrics.map(|listen| {
        let token = command.metrics_token.as_deref().map(token).transpose()?;
        Ok::<_, LabError>(HttpOptions { listen, token })
    });
    let metrics = metrics.transpose()?;
    let faults = command.faults.as_deref().map(plan).transpose()?;
    let options = ServeOptions {
        faults,
        at_power_loss: Some(power_lost),
        drive,
        vfio_user: command.vfio_user.clone(),
        tcp,
        metrics,
        scrub_every: (command.scrub > 0).then(|| Duration::from_secs(command.scrub)),
        checkpoint_every: (command.checkpoint > 0).then(|| Duration::from_secs(command.checkpoint)),
    };
    Ok((options, capacity_note))
}

/// Ends the process after a simulated power loss by the fault plan.
fn power_lost(loss: &PowerLoss) {
    print_error(&format!(
        "the fault plan cut the power of the drive before I/O command {}. Of the unflushed pieces of 4 KiB, {} are \
         lost and {} are kept",
        loss.command, loss.pieces_lost, loss.pieces_kept
    ));
    if let Some(problem) = &loss.problem {
        print_error(&format!("some of the lost pieces could not be restored to their old content ({problem})"));
    }
    std::process::exit(POWER_LOST)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostsFile {
    host: Vec<HostEntry>,
}

/// Host that may connect.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    nqn: String,
    secret: Option<String>,
    controller_secret: Option<String>,
    dh_group: Option<String>,
}

/// Names of the DH groups in a hosts file, weakest first.
const DH_GROUPS: [(&str, DhGroupId); 6] = [
    ("null", DhGroupId::Null),
    ("ffdhe2048", DhGroupId::Ffdhe2048),
    ("ffdhe3072", DhGroupId::Ffdhe3072),
    ("ffdhe4096", DhGroupId::Ffdhe4096),
    ("ffdhe6144", DhGroupId::Ffdhe6144),
    ("ffdhe8192", DhGroupId::Ffdhe8192),
];

/// Weakest DH group that a host may choose. Without the setting, all groups and the null group are
/// allowed.
fn dh_group(host: &HostEntry) -> Result<DhGroupId, String> {
    let Some(wanted) = &host.dh_group else {
        return Ok(DhGroupId::Null);
    };
    let group = DH_GROUPS.iter().find(|(name, _)| name == wanted);
    group.map(|(_, group)| *group).ok_or_else(|| {
        let names = DH_GROUPS.map(|(name, _)| name).join(", ");
        format!("host {}, dh_group is unknown. Give {names}", host.nqn)
    })
}

fn hosts(file: &Path) -> Result<Vec<AllowedHost>, LabError> {
    let name = file.display().to_string();
    let text = read_text(file, TEXT_BYTES_MAX)?;
    let invalid = |problem: String| LabError::invalid(&name, problem);
    // The message omits the line of the file, because the line may be a secret.
    let listed: HostsFile = toml::from_str(&text).map_err(|error| invalid(experiment::find::toml_problem(&error)))?;
    if listed.host.iter().any(|host| host.secret.is_some() || host.controller_secret.is_some()) {
        check_private(file)?;
    }
    let secret = |nqn: &str, field: &str, text: Option<String>| {
        let parsed = text.map(|text| text.parse::<Secret>()).transpose();
        parsed.map_err(|error| invalid(format!("host {nqn}, {field}: {error}")))
    };
    let host = |entry: HostEntry| {
        Ok(AllowedHost {
            group_min: dh_group(&entry).map_err(invalid)?,
            secret: secret(&entry.nqn, "secret", entry.secret)?,
            controller_secret: secret(&entry.nqn, "controller_secret", entry.controller_secret)?,
            nqn: entry.nqn,
        })
    };
    listed.host.into_iter().map(host).collect()
}

pub fn identity(serial: &str, nqn: Option<&str>) -> Result<Identity, LabError> {
    let nqn = nqn.map_or_else(|| Identity::default_nqn(serial), str::to_string);
    let printable = |text: &str| !text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if serial.len() > 20 || !printable(serial) {
        let problem = format!(
            "{serial:?} has {} characters. Give 1 to 20 printable ASCII characters, with the number that --drives adds",
            serial.chars().count()
        );
        return Err(bad_option("--serial", problem));
    }
    if nqn.len() > 223 || !nqn.starts_with("nqn.") || !printable(&nqn) {
        return Err(bad_option(
            "--nqn",
            "give an NVMe qualified name such as nqn.2014-08.com.example:drive1, up to 223 bytes with the number that \
             --drives adds",
        ));
    }
    Ok(Identity {
        serial: serial.to_string(),
        model: "WARP FDP SSD".to_string(),
        firmware: env!("CARGO_PKG_VERSION").to_string(),
        nqn,
    })
}

/// Converts the options to drive `number` (1 to `--drives`) with one namespace over its whole capacity. The second value
/// describes the reclaim units of a drive with a requested capacity.
pub fn drive_options(
    drive: &ServedDriveArgs,
    number: u16,
    capacity_bytes: Option<u64>,
    identity: Identity,
) -> Result<(DriveOptions, Option<String>), LabError> {
    let (mut device, note) = device(drive, capacity_bytes)?;
    // Drives make random choices independently.
    device.seed = device.seed.wrapping_add(u64::from(number - 1));
    let subsystem = SubsystemConfig {
        identity,
        device,
        fdp: drive.fdp,
        namespace: true,
        format: drive.block,
        reclaim_unit_time_limit_s: 0,
        controllers_max: CONTROLLERS_MAX,
        io_queues_max: IO_QUEUES_MAX,
    };
    Ok((DriveOptions { subsystem, data: data_choice(&drive.data), checksums: false }, note))
}

/// Device of the profile with the requested capacity, and its reclaim units in a sentence.
fn device(drive: &ServedDriveArgs, capacity_bytes: Option<u64>) -> Result<(DeviceConfig, Option<String>), LabError> {
    let settings = drive.set.iter().cloned().collect();
    let mut config = Profile::find(&drive.device)?.config(&settings)?;
    if !drive.timing {
        config.timing = None;
    }
    let Some(capacity_bytes) = capacity_bytes else {
        return Ok((config, None));
    };
    let sized = scaled_model::with_capacity(&drive.device, &config, capacity_bytes, &settings)?;
    Ok((sized.config, Some(sized.note)))
}

/// Instructions for attaching to the server.
fn introduction(
    command: &ServeArgs,
    config: &SubsystemConfig,
    server: &Server,
    page: Option<&(Studio, String)>,
) -> String {
    let mut text = String::new();
    for socket in &command.vfio_user {
        let socket = absolute(socket);
        let _ = writeln!(
            text,
            "\nQEMU 10.1 or newer (memory must be shared):\n  qemu-system-x86_64 ... \\\n    \
             -object memory-backend-memfd,id=ram,size=4G,share=on -m 4G -machine memory-backend=ram \\\n    \
             -device '{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}}}'",
            socket.display()
        );
    }
    if let Some(address) = server.tcp_address() {
        let _ = writeln!(
            text,
            "\nLinux over NVMe/TCP (modprobe nvme-tcp):\n  nvme connect -t tcp -a {} -s {} -n {}",
            address.ip(),
            address.port(),
            config.identity.nqn
        );
    }
    if let Some(address) = server.metrics_address() {
        let _ = writeln!(text, "\nPrometheus metrics:\n  http://{address}/metrics");
    }
    if let Some((_, address)) = page {
        let _ = writeln!(text, "\nThe drive in a browser:\n  {address}");
    }
    if let (Some(file), Some(report)) = (&command.faults, server.status().faults) {
        let (count, seed) = (report.faults.len(), report.seed);
        let _ = writeln!(text, "\nFaults: {count} of {}, seed {seed}", file.display());
    }
    text
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
