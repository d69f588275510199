//! Boots QEMU with the drive and the guest's ports, and waits for the end.
//!
//! ```text
//! work folder (start, command, parameters, warp) -> 9p "warp"     guest
//! ports of the guest: control (up, exit, problem), output, error, or a terminal
//!   -> Unix sockets -> events -> caller
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::build::last_line;
use super::group::ProcessGroup;
use super::{GuestError, GuestFiles, shell};

/// Second half of the guest's start script.
const START: &str = include_str!("../../guest/start.sh");
/// Interval of the checks of time limits and of QEMU.
const PAUSE: Duration = Duration::from_millis(20);
/// Boot limit under emulation. A kernel needs 8 s, and a minute on a busy machine.
const UP_WITHIN: Duration = Duration::from_secs(240);
/// Boot limit with KVM, which needs 3 s if it works.
const UP_WITHIN_KVM: Duration = Duration::from_secs(45);
/// Limit for power-off after the command's end.
const OFF_WITHIN: Duration = Duration::from_secs(20);
/// Processors of the guest. With one, a busy command would starve the kernel's own work.
const PROCESSORS: u32 = 2;
/// Maximum output that waits for a reader, in pieces of up to [`PIECE_BYTES`].
const PIECES: usize = 64;
const PIECE_BYTES: usize = 64 << 10;
/// Address of this machine in the guest.
const HOST_ADDRESS: &str = "10.0.2.2";

/// Transports of a drive, one or two.
#[derive(Clone, Debug, Default)]
pub struct DriveTransports {
    pub vfio_user: Option<PathBuf>,
    /// Loopback address of an NVMe/TCP server, and the subsystem's NQN.
    pub tcp: Option<(SocketAddr, String)>,
}

#[derive(Clone, Debug)]
pub enum Task {
    /// Program with arguments, without input.
    Command(Vec<OsString>),
    Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// KVM with a fallback to emulation if the guest is not up in time or dies early. Some virtual
    /// machines offer a KVM that cannot run a stock kernel, and only a trial can detect it.
    Kvm {
        up_within: Duration,
    },
    Emulation,
}

impl Accelerator {
    /// KVM if the processor supports it and this user may open it, emulation if not.
    pub fn of_this_machine() -> Accelerator {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has_support = processor.split_whitespace().any(|word| word == "vmx" || word == "svm");
        let is_allowed = || fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
        if has_support && is_allowed() { Accelerator::Kvm { up_within: UP_WITHIN_KVM } } else { Accelerator::Emulation }
    }

    fn boot_timeout(self) -> Duration {
        match self {
            Accelerator::Kvm { up_within } => up_within,
            Accelerator::Emulation => UP_WITHIN,
        }
    }

    fn arguments(self) -> [&'static str; 4] {
        match self {
            Accelerator::Kvm { .. } => ["-accel", "kvm", "-cpu", "host"],
            Accelerator::Emulation => ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"],
        }
    }
}

#[derive(Clone, Debug)]
pub struct Machine {
    pub built: GuestFiles,
    /// Drives in the order of their numbers.
    pub attached: Vec<DriveTransports>,
    /// Folder of this machine, mounted as /shared in the guest.
    pub share: PathBuf,
    /// Program that is the command `warp` in the guest.
    pub program: Option<PathBuf>,
    pub task: Task,
    pub accelerator: Accelerator,
    pub memory_bytes: u64,
    /// Give the guest access to this machine's loopback addresses. A drive over TCP enables the
    /// access anyway.
    pub network: bool,
    pub limit: Option<Duration>,
    /// Kernel arguments, separated by spaces.
    pub kernel: String,
    pub qemu: Vec<String>,
    pub console: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestStream {
    /// Standard output, or the terminal of a shell.
    Output,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestExit {
    Exited(u8),
    TimedOut,
    Stopped,
}

enum PortEvent {
    Control(String),
    Output(GuestStream, Vec<u8>),
}

/// Boots a guest, forwards its output and returns its end. QEMU is gone afterwards, also if the
/// calling thread ends. `stop` is polled regularly. An error of `on_output` also stops the guest
/// and is returned. `on_notice` gets a sentence if KVM failed and emulation is tried.
pub fn boot(
    machine: &Machine,
    stop: &dyn Fn() -> bool,
    on_notice: &mut dyn FnMut(&str),
    on_output: &mut dyn FnMut(GuestStream, &[u8]) -> std::io::Result<()>,
) -> Result<GuestExit, GuestError> {
    let mut run = RunningGuest { begun: Instant::now(), started: Instant::now(), is_up: false, exited: None };
    match run.attempt(machine, stop, on_output) {
        // Before the guest is up, no part of the command has run.
        Err(error) if machine.accelerator != Accelerator::Emulation && !run.is_up && error.is_of_start() => {
            on_notice(&format!("with KVM {error}. Starting it again with emulation, which is slower"));
            let emulated = Machine { accelerator: Accelerator::Emulation, ..machine.clone() };
            run.attempt(&emulated, stop, on_output)
        }
        outcome => outcome,
    }
}

struct RunningGuest {
    /// Start of the first attempt. The time limit counts from here.
    begun: Instant,
    /// Start of the present attempt. The boot limit counts from here.
    started: Instant,
    is_up: bool,
    exited: Option<(u8, Instant)>,
}

impl RunningGuest {
    fn attempt(
        &mut self,
        machine: &Machine,
        stop: &dyn Fn() -> bool,
        on_output: &mut dyn FnMut(GuestStream, &[u8]) -> std::io::Result<()>,
    ) -> Result<GuestExit, GuestError> {
        let work = tempfile::Builder::new().prefix("warp-guest.").tempdir();
        let work = work.map_err(GuestError::io(std::env::temp_dir()))?;
        let files = BootFiles::prepare(machine, work.path())?;
        let ended = Arc::new(AtomicBool::new(false));
        let exit_requested = Arc::new(AtomicBool::new(false));
        // The threads end after the receiver is dropped.
        let (sender, events) = mpsc::sync_channel(PIECES);
        let is_shell = matches!(machine.task, Task::Shell);
        files.listen("control", &ended, sender.clone(), |guest, sender| {
            for line in BufReader::new(guest).lines().map_while(Result::ok) {
                if sender.send(PortEvent::Control(line)).is_err() {
                    break;
                }
            }
        })?;
        for (port, stream) in files.streams() {
            let (ended_for_keys, exit_requested) = (Arc::clone(&ended), Arc::clone(&exit_requested));
            files.listen(port, &ended, sender.clone(), move |guest, sender| {
                if let (true, Ok(keys)) = (is_shell, guest.try_clone()) {
                    shell::forward_keys(keys, ended_for_keys, exit_requested);
                }
                forward_port(guest, stream, &sender);
            })?;
        }
        drop(sender);
        let qemu_stderr = fs::File::create(&files.words).map_err(GuestError::io(&files.words))?;
        let mut command = files.qemu();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(qemu_stderr);
        let terminal = is_shell.then(shell::RawTerminal::enter).transpose();
        let _terminal = terminal.map_err(GuestError::io("this terminal"))?;
        let mut group = ProcessGroup::start(&mut command, Duration::ZERO).map_err(GuestError::io("QEMU"))?;
        self.started = Instant::now();
        let outcome = self.watch(
            &files,
            &mut group,
            &events,
            &ended,
            &|| stop() || exit_requested.load(Ordering::Acquire),
            on_output,
        );
        ended.store(true, Ordering::Release);
        outcome
    }

    fn watch(
        &mut self,
        files: &BootFiles<'_>,
        group: &mut ProcessGroup,
        events: &mpsc::Receiver<PortEvent>,
        ended: &AtomicBool,
        stop: &dyn Fn() -> bool,
        on_output: &mut dyn FnMut(GuestStream, &[u8]) -> std::io::Result<()>,
    ) -> Result<GuestExit, GuestError> {
        loop {
            match events.recv_timeout(PAUSE) {
                Ok(PortEvent::Output(stream, bytes)) => {
                    on_output(stream, &bytes).map_err(GuestError::io("the guest's output"))?;
                }
                Ok(PortEvent::Control(line)) => self.handle_control_line(&line)?,
                Err(RecvTimeoutError::Timeout) => {}
                // QEMU closed all ports.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stop() {
                return Ok(GuestExit::Stopped);
            }
            if files.machine.limit.is_some_and(|limit| self.begun.elapsed() > limit) && self.exited.is_none() {
                return Ok(GuestExit::TimedOut);
            }
            let after = files.machine.accelerator.boot_timeout();
            if !self.is_up && self.started.elapsed() > after {
                let words = last_line(&files.console).unwrap_or_default();
                return Err(GuestError::NotUp { after, words });
            }
            if self.exited.is_some_and(|(_, since)| since.elapsed() > OFF_WITHIN) {
                break;
            }
            if group.try_wait().map_err(GuestError::io("QEMU"))?.is_some() {
                ended.store(true, Ordering::Release);
            }
        }
        self.outcome(files, group)
    }

    fn handle_control_line(&mut self, line: &str) -> Result<(), GuestError> {
        match line.split_once(' ') {
            Some(("up", _)) => self.is_up = true,
            Some(("exit", code)) => {
                let code = code.trim().parse().unwrap_or(u8::MAX);
                self.exited.get_or_insert((code, Instant::now()));
            }
            Some(("problem", words)) => return Err(GuestError::Incomplete(words.to_string())),
            _ => {}
        }
        Ok(())
    }

    fn outcome(&self, files: &BootFiles<'_>, group: &mut ProcessGroup) -> Result<GuestExit, GuestError> {
        if let Some((code, _)) = self.exited {
            return Ok(GuestExit::Exited(code));
        }
        let status = group.child().wait().map_err(GuestError::io("QEMU"))?;
        if status.success() {
            // QEMU succeeds when the kernel panics or restarts.
            return Err(GuestError::EndedEarly(last_line(&files.console).unwrap_or_default()));
        }
        let words = last_line(&files.words).unwrap_or_else(|| "(nothing)".to_string());
        Err(GuestError::Qemu { status, words })
    }
}

/// Forwards the output of a port until its end or until the receiver is dropped.
fn forward_port(mut guest: UnixStream, stream: GuestStream, sender: &SyncSender<PortEvent>) {
    let mut buffer = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = guest.read(&mut buffer) {
        if sender.send(PortEvent::Output(stream, buffer[..count].to_vec())).is_err() {
            break;
        }
    }
}

struct BootFiles<'a> {
    machine: &'a Machine,
    /// Folder that is /warp in the guest.
    shared: PathBuf,
    sockets: PathBuf,
    console: PathBuf,
    words: PathBuf,
}

impl BootFiles<'_> {
    fn prepare<'a>(machine: &'a Machine, work: &Path) -> Result<BootFiles<'a>, GuestError> {
        let files = BootFiles {
            machine,
            shared: work.join("files"),
            sockets: work.to_path_buf(),
            console: machine.console.clone().unwrap_or_else(|| work.join("console")),
            words: work.join("qemu"),
        };
        let programs = files.shared.join("bin");
        fs::create_dir_all(&programs).map_err(GuestError::io(&programs))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = files.shared.join(name);
            fs::write(&path, bytes).map_err(GuestError::io(path))
        };
        write("start", START.as_bytes())?;
        write("parameters", files.parameters().as_bytes())?;
        if let Task::Command(words) = &machine.task {
            write("command", &script(words))?;
        }
        if let Some(program) = &machine.program {
            let copy = programs.join("warp");
            // A hard link is free. On another file system the program is copied.
            if fs::hard_link(program, &copy).is_err() {
                fs::copy(program, &copy).map_err(GuestError::io(copy))?;
            }
        }
        Ok(files)
    }

    fn parameters(&self) -> String {
        let attached = &self.machine.attached;
        let connect = attached.iter().filter_map(|drive| drive.tcp.as_ref()).map(|(address, nqn)| {
            let port = address.port();
            format!("-t tcp -a {HOST_ADDRESS} -s {port} -n {nqn}\n")
        });
        let size = matches!(self.machine.task, Task::Shell).then(shell::size);
        let lines = [
            ("DRIVES", attached.len().to_string()),
            ("CONNECT", connect.collect()),
            ("SHELL_SIZE", size.unwrap_or_default()),
        ];
        lines.map(|(name, value)| format!("{name}='{value}'\n")).concat()
    }

    fn streams(&self) -> Vec<(&'static str, GuestStream)> {
        match self.machine.task {
            Task::Command(_) => vec![("output", GuestStream::Output), ("error", GuestStream::Error)],
            Task::Shell => vec![("terminal", GuestStream::Output)],
        }
    }

    fn socket(&self, port: &str) -> PathBuf {
        self.sockets.join(format!("{port}.sock"))
    }

    /// Waits in a thread until QEMU opens a port, then calls `work`.
    fn listen(
        &self,
        port: &str,
        ended: &Arc<AtomicBool>,
        sender: SyncSender<PortEvent>,
        work: impl FnOnce(UnixStream, SyncSender<PortEvent>) + Send + 'static,
    ) -> Result<(), GuestError> {
        let path = self.socket(port);
        let listener = UnixListener::bind(&path).map_err(GuestError::io(&path))?;
        listener.set_nonblocking(true).map_err(GuestError::io(&path))?;
        let ended = Arc::clone(ended);
        thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((guest, _)) if guest.set_nonblocking(false).is_ok() => return work(guest, sender),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
                    _ => return,
                }
            }
        });
        Ok(())
    }

    /// Command that starts QEMU from its own tree with its own loader.
    fn qemu(&self) -> Command {
        let system = &self.machine.built.system;
        let mut command = Command::new(system.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(system.join("usr/lib/x86_64-linux-gnu"));
        command.arg(system.join("usr/bin/qemu-system-x86_64"));
        for folder in ["qemu", "seabios"] {
            command.arg("-L").arg(system.join("usr/share").join(folder));
        }
        let memory = self.machine.memory_bytes >> 20;
        // A device in another process can access the guest's memory only in a shared memory file.
        command.args(["-M", "q35,hpet=off,smm=off,vmport=off,memory-backend=ram"]);
        command.args(["-object", &format!("memory-backend-memfd,id=ram,size={memory}M,share=on")]);
        command.args(["-m", &format!("{memory}M"), "-smp", &PROCESSORS.to_string()]);
        command.args(self.machine.accelerator.arguments());
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-run-with", "exit-with-parent=on"]);
        command.arg("-chardev").arg(with_path("file,id=console,path=", &self.console));
        command.args(["-serial", "chardev:console", "-device", "virtio-serial-pci"]);
        self.attach_ports(&mut command);
        self.attach_folders(&mut command);
        self.attach_drives(&mut command);
        command.arg("-kernel").arg(&self.machine.built.kernel);
        command.arg("-initrd").arg(&self.machine.built.initramfs);
        let kernel = &self.machine.kernel;
        let kernel = format!("console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr {kernel}");
        command.args(["-append", kernel.trim_end()]);
        command.args(&self.machine.qemu);
        command
    }

    fn attach_ports(&self, command: &mut Command) {
        let streams = self.streams().into_iter().map(|(port, _)| port);
        for port in std::iter::once("control").chain(streams) {
            let chardev = format!("socket,id={port},path=");
            command.arg("-chardev").arg(with_path(&chardev, &self.socket(port)));
            let device = if port == "terminal" { "virtconsole" } else { "virtserialport" };
            command.args(["-device", &format!("{device},chardev={port},name={port}")]);
        }
    }

    fn attach_folders(&self, command: &mut Command) {
        let machine = self.machine;
        let folders = [
            ("tree", &machine.built.tree, ",readonly=on"),
            ("warp", &self.shared, ",readonly=on"),
            ("shared", &machine.share, ""),
        ];
        for (tag, path, options) in folders {
            let local = format!("local,id={tag},security_model=none,multidevs=remap{options},path=");
            command.arg("-fsdev").arg(with_path(&local, path));
            command.args(["-device", &format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}")]);
        }
    }

    fn attach_drives(&self, command: &mut Command) {
        let attached = &self.machine.attached;
        if self.machine.network || attached.iter().any(|drive| drive.tcp.is_some()) {
            command.args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="]);
        }
        for socket in attached.iter().filter_map(|drive| drive.vfio_user.as_ref()) {
            let socket = socket.display();
            command.args([
                "-device",
                &format!(r#"{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{socket}"}}}}"#),
            ]);
        }
    }
}

/// Builds a QEMU option that ends with a path, with doubled commas in the path.
fn with_path(option: &str, path: &Path) -> OsString {
    let mut bytes = option.as_bytes().to_vec();
    for &byte in path.as_os_str().as_bytes() {
        bytes.push(byte);
        if byte == b',' {
            bytes.push(byte);
        }
    }
    OsString::from_vec(bytes)
}

/// Builds a shell script of one command with these words, quoted.
fn script(words: &[OsString]) -> Vec<u8> {
    let mut script = b"exec".to_vec();
    for word in words {
        script.push(b' ');
        script.extend(quoted(word));
    }
    script.push(b'\n');
    script
}

fn quoted(word: &OsStr) -> Vec<u8> {
    let mut quoted = b"'".to_vec();
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through_a_shell_as_they_are() {
        let words = ["printf", "%s|", "a b", "it's", "$HOME", "", "\"\\\n"].map(OsString::from);
        let output = Command::new("sh").arg("-c").arg(OsString::from_vec(script(&words))).output();
        assert_eq!(output.expect("there is a shell").stdout, b"a b|it's|$HOME||\"\\\n|");
    }

    #[test]
    fn commas_in_paths_are_doubled() {
        assert_eq!(with_path("file,path=", Path::new("/a,b")), "file,path=/a,,b");
    }
}
