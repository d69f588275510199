//! `warp guest`: runs a command or a shell in a Linux guest with a drive.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::HumanBytes;
use experiment::LabError;
use host_tools::guest::{
    Accelerator, DriveTransports, GuestError, GuestExit, GuestFiles, GuestStream, Machine, Task, add_initramfs, boot,
    build, cache, use_modules,
};
use indicatif::{ProgressBar, ProgressStyle};
use report::rows::{CellValue, ReportTable};
use ssd::{DeviceStats, OwnerStats};
use target::monitor::status::DriveStatus;
use target::server::{ServeOptions, Server};
use target::storage::DriveOptions;
use target::tcp::TcpOptions;

use crate::arguments::{GuestArgs, GuestTransport, PrintedFormat, ServedDriveArgs};
use crate::output::{print_error, unwritten};
use crate::{AnyError, ExitOutcome, bad_option, print, serve};

/// Exit code after the time limit, the same as that of `timeout`.
const TIMED_OUT: u8 = 124;
/// Exit code if the guest cannot start or dies.
const NO_GUEST: u8 = 125;
/// Default capacity. The drive is in memory, and a guest may fill it.
const CAPACITY_BYTES: u64 = 8 << 30;
/// Serial number of the guest's drive.
const SERIAL: &str = "WARP0001";
/// Refresh interval of the elapsed build time.
const TICK: Duration = Duration::from_millis(200);

pub fn guest(command: &GuestArgs) -> Result<ExitOutcome, AnyError> {
    let is_shell = command.command.is_empty();
    if is_shell && !command.build_only && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let problem = "a shell needs a terminal. Give a command, such as warp guest -- nvme list";
        return Err(bad_option("warp guest", problem).into());
    }
    let share = shared_folder(&command.share)?;
    check_files(command)?;
    let drives = (command.transport != GuestTransport::None).then(|| drives(&command.drive)).transpose()?;
    let stop = stoppable()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    if command.build_only {
        return Ok(match built(&command.with, &is_stopped) {
            Ok(built) => {
                print(&format!("{}\n{}\n", built.system.display(), built.tree.display()));
                ExitOutcome::Done
            }
            Err(error) => no_guest(&error),
        });
    }
    // Errors of the drive and its file appear before the guest is built, which takes minutes.
    let sockets = tempfile::Builder::new().prefix("warp-guest-drive.").tempdir()?;
    let (drives, capacity_note) = drives.unwrap_or_default();
    let serve = |(drive, number)| serve(drive, command.transport, &sockets.path().join(format!("drive{number}.sock")));
    let served: Vec<GuestDrive> = drives.into_iter().zip(1u16..).map(serve).collect::<Result<_, _>>()?;
    let files = built(&command.with, &is_stopped)
        .and_then(|files| with_own_kernel(command, files, sockets.path(), &is_stopped));
    let (outcome, refused) = match files {
        Ok(built) => {
            let attached = served.iter().map(attached).collect();
            capacity_note.iter().for_each(|note| print_error(note));
            run(&machine(command, built, attached, share), &is_stopped)
        }
        Err(error) => {
            let outcome = no_guest(&error);
            for one in served {
                one.server.stop()?;
            }
            return Ok(outcome);
        }
    };
    let mut statuses = Vec::new();
    for one in served {
        statuses.push(one.server.status());
        one.server.stop()?;
    }
    print_statuses(&statuses, &command.output);
    if let Some(error) = refused {
        // `unwritten` ends the program, so this call is the last.
        unwritten(&error);
    }
    Ok(outcome)
}

/// Replaces the kernel, its modules and the initramfs by those of the user. `folder` is for the result.
fn with_own_kernel(
    command: &GuestArgs,
    mut files: GuestFiles,
    folder: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<GuestFiles, GuestError> {
    if let Some(image) = &command.kernel_image {
        files.kernel.clone_from(image);
    }
    if let Some(modules) = &command.modules {
        use_modules(&mut files, modules, folder, is_stopped)?;
    }
    if let Some(initrd) = &command.initrd {
        add_initramfs(&mut files, initrd, folder)?;
    }
    Ok(files)
}

/// Converts the options to a description of the guest.
fn machine(command: &GuestArgs, built: GuestFiles, attached: Vec<DriveTransports>, share: PathBuf) -> Machine {
    Machine {
        built,
        attached,
        share,
        program: this_program(),
        task: if command.command.is_empty() { Task::Shell } else { Task::Command(command.command.clone()) },
        accelerator: Accelerator::of_this_machine(),
        memory_bytes: command.memory,
        network: command.network,
        limit: command.timeout,
        kernel: command.kernel.clone(),
        qemu: command.qemu.clone(),
        console: command.console.clone(),
    }
}

/// Boots the guest. Returns its outcome, and the error if its output could not be written.
fn run(machine: &Machine, is_stopped: &dyn Fn() -> bool) -> (ExitOutcome, Option<io::Error>) {
    let mut refused = None;
    let mut hand_on = |stream: GuestStream, bytes: &[u8]| {
        let written = match stream {
            GuestStream::Output => write_all(&mut io::stdout().lock(), bytes),
            // An error of standard error cannot be reported.
            GuestStream::Error => write_all(&mut io::stderr().lock(), bytes).or(Ok(())),
        };
        written.map_err(|error| {
            let kind = error.kind();
            refused = Some(error);
            kind.into()
        })
    };
    let ended = boot(machine, is_stopped, &mut print_error, &mut hand_on);
    let outcome = match ended {
        Ok(GuestExit::Exited(code)) => ExitOutcome::As(code),
        Ok(GuestExit::Stopped) => ExitOutcome::Stopped,
        Ok(GuestExit::TimedOut) => {
            let limit = machine.limit.unwrap_or_default().as_secs_f64();
            print_error(&format!("the guest was stopped after {limit} s, the limit of --timeout"));
            ExitOutcome::As(TIMED_OUT)
        }
        Err(_) if refused.is_some() => ExitOutcome::Failed,
        Err(error) => no_guest(&error),
    };
    (outcome, refused)
}

fn write_all(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

fn no_guest(error: &GuestError) -> ExitOutcome {
    print_error(&error.to_string());
    match error {
        GuestError::Stopped => ExitOutcome::Stopped,
        _ => ExitOutcome::As(NO_GUEST),
    }
}

/// Rejects files that cannot be written, and drive options without a drive. This check precedes the
/// build, which takes minutes.
fn check_files(command: &GuestArgs) -> Result<(), LabError> {
    let of_drive = [
        ("--data", command.drive.data != "memory"),
        ("--capacity", command.drive.capacity.is_some()),
        ("--set", !command.drive.set.is_empty()),
    ];
    let given = of_drive.iter().find(|(_, is_given)| *is_given);
    if let (GuestTransport::None, Some((option, _))) = (command.transport, given) {
        let problem = "cannot be combined with --transport none, because the guest then has no drive. Remove one of \
                       the two";
        return Err(bad_option(option, problem));
    }
    let own = [("--kernel-image", &command.kernel_image), ("--initrd", &command.initrd)];
    for (option, file) in own {
        if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
            let problem = format!("{} is not a file. Give a file that this user can read", file.display());
            return Err(bad_option(option, problem));
        }
    }
    if let Some(modules) = command.modules.as_ref().filter(|modules| !modules.join("kernel").is_dir()) {
        let problem = format!("{} has no folder kernel. Give the folder lib/modules/VERSION", modules.display());
        return Err(bad_option("--modules", problem));
    }
    match &command.console {
        Some(console) => crate::output::check_file(console),
        None => Ok(()),
    }
}

/// Absolute path of the shared folder.
fn shared_folder(folder: &Path) -> Result<PathBuf, LabError> {
    let problem = |why: &dyn std::fmt::Display| {
        let name = folder.display();
        bad_option("--share", format!("{name} cannot be shared ({why}). Give a folder of this machine"))
    };
    let path = folder.canonicalize().map_err(|error| problem(&error))?;
    if !path.is_dir() {
        return Err(problem(&"not a folder"));
    }
    Ok(path)
}

/// Flag that Ctrl-C or a termination signal sets.
fn stoppable() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&stop);
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// Returns the guest. Builds it on the first use, which takes a minute, and shows the progress.
fn built(packages: &[String], is_stopped: &dyn Fn() -> bool) -> Result<GuestFiles, GuestError> {
    let is_terminal = io::stderr().is_terminal();
    let mut bar: Option<ProgressBar> = None;
    let built = build(&cache()?, packages, is_stopped, &mut |step| {
        if !is_terminal {
            print_error(&format!("building the guest (first use only): {step}"));
            return;
        }
        let bar = bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{spinner} building the guest (first use only): {wide_msg} {elapsed}");
            let bar = ProgressBar::new_spinner().with_style(style.expect("the template is valid"));
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_message(step.to_string());
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    built
}

/// Path of this program for the guest. `None` if an interpreter of Python runs the command.
fn this_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let is_python = program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"));
    (!is_python).then_some(program)
}

// ------------------------------------------------------------------------------------------------------ the drive --

/// The drives, and their reclaim units in a sentence if the user chose the capacity.
fn drives(options: &ServedDriveArgs) -> Result<(Vec<DriveOptions>, Option<String>), LabError> {
    let capacity = options.capacity.unwrap_or(CAPACITY_BYTES);
    let (mut drives, mut note) = (Vec::new(), None);
    for number in 1..=options.drives {
        let (mut options, mut serial) = (options.clone(), SERIAL.to_string());
        if options.drives > 1 {
            serve::add_number(number, &mut options.data, &mut serial);
        }
        let (drive, units) = serve::drive_options(&options, number, Some(capacity), serve::identity(&serial, None)?)?;
        drives.push(drive);
        note = units;
    }
    Ok((drives, note.filter(|_| options.capacity.is_some())))
}

/// Served drive with its socket and NQN.
struct GuestDrive {
    server: Server,
    socket: Option<PathBuf>,
    nqn: String,
}

fn serve(drive: DriveOptions, transport: GuestTransport, socket: &Path) -> Result<GuestDrive, AnyError> {
    let nqn = drive.subsystem.identity.nqn.clone();
    let socket = (transport != GuestTransport::Tcp).then(|| socket.to_path_buf());
    let any_port = ([127, 0, 0, 1], 0).into();
    let options = ServeOptions {
        scrub_every: None,
        drive,
        vfio_user: socket.iter().cloned().collect(),
        tcp: (transport != GuestTransport::VfioUser).then(|| TcpOptions::new(any_port)),
        metrics: None,
        checkpoint_every: None,
        faults: None,
        at_power_loss: None,
    };
    let (server, _) = Server::start(options)?;
    Ok(GuestDrive { server, socket, nqn })
}

fn attached(served: &GuestDrive) -> DriveTransports {
    DriveTransports {
        vfio_user: served.socket.clone(),
        tcp: served.server.tcp_address().map(|address| (address, served.nqn.clone())),
    }
}

/// Prints the drives' counters to standard error, because standard output belongs to the command in
/// the guest.
fn print_statuses(statuses: &[DriveStatus], output: &PrintedFormat) {
    let count = statuses.len() as u16;
    if output.is_json() && count > 0 {
        let mut drives: Vec<_> = statuses.iter().map(|status| counted(&status.stats, status.events)).collect();
        let json = if count > 1 { serde_json::json!({ "drives": drives }) } else { drives.remove(0) };
        // An error of standard error cannot be reported, so the result is ignored.
        let _ = writeln!(io::stderr().lock(), "{json}");
        return;
    }
    for (status, number) in statuses.iter().zip(1..) {
        let (sentence, table) = usage_summary(status);
        print_error(&format!("{}{sentence}", serve::title(number, count)));
        if let Some(table) = table {
            let _ = io::stderr().lock().write_all(table.render(output.tables(&io::stderr())).as_bytes());
        }
    }
}

/// Counters of the drive as JSON.
fn counted(stats: &DeviceStats, [of_host, of_controller]: [u64; 2]) -> serde_json::Value {
    let handles = used_handles(stats).into_iter().map(|(handle, row)| {
        serde_json::json!({
            "handle": handle,
            "host_bytes_written": row.host_bytes_written,
            "copied_bytes": row.gc_pages_copied * stats.page_bytes,
            "waf": row.write_amplification(),
            "units_opened": row.units_opened,
            "units_reclaimed": row.units_reclaimed,
        })
    });
    serde_json::json!({
        "host_bytes_written": stats.host_bytes_written(),
        "media_bytes_written": stats.media_bytes_written(),
        "waf": stats.write_amplification(),
        "host_events": of_host,
        "controller_events": of_controller,
        "handles": handles.collect::<Vec<_>>(),
    })
}

/// Handles that the host wrote to, with their counters.
fn used_handles(stats: &DeviceStats) -> Vec<(usize, &OwnerStats)> {
    let used = |(_, row): &(usize, &OwnerStats)| row.host_pages_written > 0;
    stats.handles.iter().enumerate().filter(used).collect()
}

/// Summary of the drive's counters, with a table of the handles if the host used more than one.
fn usage_summary(status: &DriveStatus) -> (String, Option<ReportTable>) {
    let stats = &status.stats;
    let Some(waf) = stats.write_amplification() else {
        return ("nothing was written to the drive".to_string(), None);
    };
    let [host, media] = [stats.host_bytes_written(), stats.media_bytes_written()].map(HumanBytes);
    let [of_host, of_controller] = status.events;
    let text = format!(
        "the host wrote {host} and the drive {media} to flash, a write amplification of {waf:.3}, with {of_host} \
         host events and {of_controller} controller events"
    );
    let rows = used_handles(stats);
    let table = (status.fdp && rows.len() > 1).then(|| handles(&rows, stats));
    (text, table)
}

fn handles(rows: &[(usize, &OwnerStats)], stats: &DeviceStats) -> ReportTable {
    let columns = ["host", "copied", "own WAF", "units opened", "units reclaimed"];
    let mut table = ReportTable::default().labels(["handle"]).numbers("", columns);
    for (handle, row) in rows {
        table.add([
            format!("RUH {handle}").into(),
            CellValue::Bytes(row.host_bytes_written),
            CellValue::Bytes(row.gc_pages_copied * stats.page_bytes),
            CellValue::optional(row.write_amplification(), CellValue::Amplification),
            CellValue::Count(row.units_opened),
            CellValue::Count(row.units_reclaimed),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use report::rows::TextFormat;

    use super::*;

    #[test]
    fn what_the_drive_counted_is_a_table_in_any_format_and_json() {
        let mut stats = DeviceStats::new(4096, 3);
        for (index, pages) in [(0, 100), (2, 300)] {
            stats.handles[index].host_pages_written = pages;
            stats.handles[index].host_bytes_written = pages * 4096;
        }
        let csv = handles(&used_handles(&stats), &stats).render(TextFormat::Csv);
        assert_eq!(
            csv,
            "handle,host (bytes),copied (bytes),own WAF,units opened,units reclaimed\nRUH 0,409600,0,1,0,0\nRUH 2,1228800,0,1,0,0\n"
        );
        let json = counted(&stats, [1, 2]);
        assert_eq!((&json["waf"], &json["controller_events"]), (&1.0.into(), &2.into()));
        assert_eq!(
            (&json["handles"][1]["handle"], &json["handles"][1]["host_bytes_written"]),
            (&2.into(), &1_228_800.into())
        );
    }
}
