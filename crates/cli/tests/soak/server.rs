//! Server process with its fault plans, and the supervisor that changes the plans, kills the
//! server, cuts its power, stops it and starts it again.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nvme::fault::FaultsReport;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::{Pid, Signal, kill_process};
use target::http::{self, ChangeRequest};
use target::monitor::metrics::FAULTS;

use crate::{CAPACITY_BYTES, Ending, HOSTS};

pub const NQN: &str = "nqn.2026-01.io.warp:WARP0001";
pub const TOKEN: &str = "a token of the soak";
/// Exit code of a server whose drive lost its power.
const POWER_LOST: i32 = 3;
/// Running time of a server, milliseconds.
const LIFE_MS: std::ops::Range<u64> = 400..4000;
/// Time limit for a power loss, which does not happen after too few commands.
const POWER_LOSS_MS_MAX: u64 = 8000;
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Shortest undisturbed life whose memory is judged. Hosts and attackers are still connecting
/// before.
const JUDGED_LIFE: Duration = Duration::from_secs(30);
/// Maximum growth of anonymous memory in an undisturbed life, from its first to its last third.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// Address of the drive for a host.
pub enum Place {
    Tcp(SocketAddr),
    Pcie(PathBuf),
}

/// Way in which a server ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Kill,
    PowerLoss,
    Order,
}

/// Counts of events.
#[derive(Default)]
struct Summary {
    ends: [u64; 3],
    plans_changed: u64,
    /// By kind of fault.
    struck: std::collections::BTreeMap<String, u64>,
}

/// Supervisor of the server. See the module documentation.
pub struct Supervisor {
    folder: PathBuf,
    seed: u64,
    pub tcp: SocketAddr,
    pub metrics: SocketAddr,
    pub studio: SocketAddr,
    start: AtomicU64,
    failed: AtomicBool,
    /// Commands of all hosts.
    pub commands: AtomicU64,
    /// The process and its standard output, which must be read.
    server: Mutex<Option<(Child, BufReader<ChildStdout>)>>,
    summary: Mutex<Summary>,
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

impl Supervisor {
    pub fn new(folder: &Path, seed: u64) -> Supervisor {
        std::fs::write(folder.join("token"), TOKEN).expect("the folder is ours");
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(folder.join("token"), owner_only).expect("it is ours");
        Supervisor {
            folder: folder.to_path_buf(),
            seed,
            tcp: free_port(),
            metrics: free_port(),
            studio: free_port(),
            start: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            commands: AtomicU64::new(0),
            server: Mutex::new(None),
            summary: Mutex::default(),
        }
    }

    /// Number of the current start of the server.
    pub fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn place(&self, host: usize) -> Place {
        if host.is_multiple_of(2) { Place::Tcp(self.tcp) } else { Place::Pcie(self.socket(host)) }
    }

    /// Socket of a host on PCI Express. Attackers use the two sockets after those of the hosts.
    pub fn socket(&self, host: usize) -> PathBuf {
        self.folder.join(format!("host{host}.sock"))
    }

    /// Starts a server with a fault plan and waits until it listens.
    pub fn serve(&self, plan: Option<&str>) {
        // The number is increased first, so a client of this server never sees an older number.
        self.start.fetch_add(1, Ordering::AcqRel);
        let program = std::env::var("WARP_SOAK_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_warp").to_string());
        let mut command = Command::new(program);
        let capacity = format!("{}M", CAPACITY_BYTES >> 20);
        command.args([
            "serve",
            "--quiet",
            "--capacity",
            &capacity,
            "--data",
            "drive.img",
            "--checkpoint",
            "2",
            "--nqn",
            NQN,
        ]);
        command.args(["--tcp", &self.tcp.to_string(), "--metrics", &self.metrics.to_string()]);
        command.args(["--metrics-token", "token"]);
        command.args(["--studio", &self.studio.to_string(), "--studio-token", "token"]);
        for host in (1..=HOSTS + 3).step_by(2) {
            command.arg("--vfio-user").arg(self.socket(host));
        }
        if let Some(plan) = plan {
            std::fs::write(self.folder.join("plan.toml"), plan).expect("the folder is ours");
            command.args(["--faults", "plan.toml"]);
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log()).expect("the folder is ours");
        command.current_dir(&self.folder).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the program runs");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut introduction = String::new();
        while !introduction.contains("Ctrl-C") {
            let bytes = said.read_line(&mut introduction).expect("text");
            if bytes == 0 {
                let status = child.wait().expect("it is ours");
                // The drive may lose its power before the server is ready.
                assert!(
                    status.code() == Some(POWER_LOST),
                    "the server ended: {status}\n{introduction}{}",
                    self.last_words()
                );
                break;
            }
        }
        *self.server.lock().expect("no thread panics with the lock") = Some((child, said));
    }

    fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().fold(String::new(), |text, line| text + line + "\n")
    }

    /// Ends servers and starts others for three quarters of the time. The last quarter is one
    /// undisturbed life under attack, in which memory must not grow. Leaves a server without
    /// failures.
    pub fn run(&self, end: Instant, ending: &Ending) {
        let _guard = FailOnPanic(self);
        let begun = Instant::now();
        let undisturbed = end.saturating_duration_since(begun) / 4;
        let mut reported = Instant::now();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        while Instant::now() + undisturbed < end && !ending.has_come() {
            let how = [End::Kill, End::PowerLoss, End::Order][random.random_range(0..3)];
            let seed = random.random();
            self.serve(Some(&plan(how, seed)));
            let life = Duration::from_millis(random.random_range(LIFE_MS));
            let changes = how != End::PowerLoss && random.random_range(0..2) == 0;
            self.live(life, how, changes.then(|| plan(how, !seed)), ending);
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                println!("{:5} s  {}", begun.elapsed().as_secs(), self.line());
            }
        }
        self.serve(None);
        self.watch_memory(undisturbed, ending);
        ending.0.store(true, Ordering::Release);
    }

    /// Samples the server's anonymous memory for a time.
    ///
    /// # Panics
    /// If the memory grows from the first third of a judged life to the last, or the server ends.
    fn watch_memory(&self, life: Duration, ending: &Ending) {
        let begun = Instant::now();
        let mut most_bytes = [0_u64; 3];
        while begun.elapsed() < life && !ending.has_come() {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(self.exited(), None, "the server ended:\n{}", self.last_words());
            let third = (3 * begun.elapsed().as_millis() / life.as_millis().max(1)).min(2) as usize;
            most_bytes[third] = most_bytes[third].max(self.anonymous_bytes());
        }
        println!("anonymous memory of the undisturbed life by thirds, bytes: {most_bytes:?}");
        assert!(
            life < JUDGED_LIFE || ending.has_come() || most_bytes[2] <= most_bytes[0] + GROWTH_BYTES_MAX,
            "the server's memory grows: {most_bytes:?}"
        );
    }

    /// Resident anonymous memory of the server.
    fn anonymous_bytes(&self) -> u64 {
        let server = self.server.lock().expect("no thread panics with the lock");
        let Some((child, _)) = server.as_ref() else {
            return 0;
        };
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.map_or(0, |kib| kib.parse::<u64>().expect("Linux writes a number") << 10)
    }

    /// Lets a server run for a time, and ends it.
    fn live(&self, life: Duration, how: End, mut change: Option<String>, ending: &Ending) {
        let begun = Instant::now();
        let mut report = None;
        let patience = match how {
            End::PowerLoss => Duration::from_millis(POWER_LOSS_MS_MAX),
            End::Kill | End::Order => life,
        };
        loop {
            std::thread::sleep(Duration::from_millis(50));
            if let Some(status) = self.exited() {
                let is_planned = how == End::PowerLoss && status == POWER_LOST;
                assert!(is_planned, "the server ended with {status}:\n{}", self.last_words());
                return self.note(how, report);
            }
            // Attackers may temporarily occupy all places of the HTTP server.
            if let Ok((200, text)) = http::send_request(self.metrics, TOKEN, FAULTS, None) {
                report = serde_json::from_str::<Option<FaultsReport>>(&text).expect("a report");
            }
            if begun.elapsed() > life / 2
                && let Some(plan) = change.take()
            {
                self.note_struck(report.take());
                let answer = http::send_request(self.metrics, TOKEN, FAULTS, Some(ChangeRequest::Put(plan)));
                self.summary.lock().expect("no thread panics with the lock").plans_changed += u64::from(answer.is_ok());
            }
            if begun.elapsed() >= patience || ending.has_come() {
                break;
            }
        }
        self.end(how);
        self.note(if how == End::PowerLoss { End::Kill } else { how }, report);
    }

    fn exited(&self) -> Option<i32> {
        let mut server = self.server.lock().expect("no thread panics with the lock");
        let status = server.as_mut()?.0.try_wait().expect("it is ours")?;
        *server = None;
        Some(status.code().unwrap_or(-1))
    }

    /// Kills the server, or stops it in an orderly way.
    fn end(&self, how: End) {
        let Some((mut server, _said)) = self.server.lock().expect("no thread panics with the lock").take() else {
            return;
        };
        if how == End::Order {
            let process = Pid::from_child(&server);
            kill_process(process, Signal::INT).expect("it is ours");
            let status = server.wait().expect("it is ours");
            let is_well = matches!(status.code(), Some(0 | POWER_LOST));
            assert!(is_well, "the server ended with {status}:\n{}", self.last_words());
        } else {
            server.kill().expect("it is ours");
            server.wait().expect("it is ours");
        }
    }

    fn note(&self, how: End, report: Option<FaultsReport>) {
        self.note_struck(report);
        self.summary.lock().expect("no thread panics with the lock").ends[how as usize] += 1;
    }

    fn note_struck(&self, report: Option<FaultsReport>) {
        let mut summary = self.summary.lock().expect("no thread panics with the lock");
        for fault in report.into_iter().flat_map(|report| report.faults) {
            *summary.struck.entry(fault.kind).or_default() += fault.struck;
        }
    }

    fn line(&self) -> String {
        let summary = self.summary.lock().expect("no thread panics with the lock");
        let [kills, losses, orderly] = summary.ends;
        let commands = self.commands.load(Ordering::Relaxed);
        let struck: u64 = summary.struck.values().sum();
        format!("{commands} commands, {struck} faults; {kills} kills, {losses} power losses, {orderly} orderly ends")
    }

    /// Stops a remaining server in an orderly way.
    pub fn stop(&self) {
        self.end(End::Order);
    }

    /// Summary of the events.
    pub fn summary(&self, time: Duration) -> String {
        let mut text = format!("{} s: {}\n", time.as_secs(), self.line());
        let summary = self.summary.lock().expect("no thread panics with the lock");
        let struck: Vec<String> = summary.struck.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let _ = writeln!(text, "drive faults that were asked about before an end: {}", struck.join(", "));
        let _ = writeln!(text, "plans changed while a server ran: {}", summary.plans_changed);
        text
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Ok(mut server) = self.server.lock()
            && let Some((server, _)) = server.as_mut()
        {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

struct FailOnPanic<'a>(&'a Supervisor);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Release);
        }
    }
}

/// Returns a plan with all kinds of faults.
fn plan(how: End, seed: u64) -> String {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut plan = format!("seed = {}\nsurvivors = 0.{}\n", seed >> 1, random.random_range(0..9));
    let mut fault = |text: String| {
        let _ = write!(plan, "[[fault]]\n{text}\n");
    };
    let at = |random: &mut Xoshiro256PlusPlus| random.random_range(0.1..3.0);
    fault("kind = \"error\"\ncommands = [\"read\"]\nprobability = 0.002".to_string());
    fault("kind = \"error\"\ncommands = [\"write\", \"flush\"]\nprobability = 0.002".to_string());
    fault(
        "kind = \"delay\"\ndistribution = \"exponential\"\ndelay_ms = 3\ndelay_ms_max = 200\nprobability = 0.005"
            .to_string(),
    );
    fault("kind = \"stuck\"\nprobability = 0.0002\ntimes = 2".to_string());
    fault(format!("kind = \"read_only\"\nfrom_seconds = {}\nfor_seconds = 0.1", at(&mut random)));
    fault(format!("kind = \"lost_namespace\"\nnamespace = 1\nfrom_seconds = {}\nfor_seconds = 0.05", at(&mut random)));
    fault(format!("kind = \"temperature\"\ncelsius = 95\nfrom_seconds = {}\nfor_seconds = 0.5", at(&mut random)));
    fault(format!("kind = \"spare\"\npercent = 3\nfrom_seconds = {}", at(&mut random)));
    fault(format!("kind = \"event_overflow\"\nfrom_seconds = {}", at(&mut random)));
    if how == End::PowerLoss {
        let command = random.random_range(1..4000);
        fault(format!("kind = \"power_loss\"\nfrom_command = {command}"));
    }
    plan
}
