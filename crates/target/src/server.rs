//! A running server: one drive, the transports that serve it, and its periodic work.
//!
//! ```text
//! Server::start -> ServedDrive::open -> VfioUserServer for each socket, TcpServer, metrics
//!               -> threads: housekeeping (tick every 50 ms), checkpoints, scrub
//! Server::stop  -> transports end, the drive is closed: data durable, mapping and counters stored
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nvme::fault::{FaultPlan, PowerLoss};

use crate::actions::Actions;
use crate::error::ServeError;
use crate::http::{HttpOptions, HttpServer};
use crate::monitor::drive_monitor::DriveMonitor;
use crate::monitor::metrics;
use crate::monitor::status::DriveStatus;
use crate::storage::{CheckpointMonitor, DriveError, DriveOptions, OpenReport, ServedDrive};
use crate::tcp::{TcpOptions, TcpServer};
use crate::vfio_user::{VfioUserOptions, VfioUserServer};
use crate::{ServerClock, SharedSubsystem, lock, lower_priority, pause_between_parts};

/// The drive to serve, its transports and its periodic work.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub drive: DriveOptions,
    /// Unix sockets for vfio-user clients, one controller per socket.
    pub vfio_user: Vec<PathBuf>,
    pub tcp: Option<TcpOptions>,
    /// Address and token for Prometheus metrics.
    pub metrics: Option<HttpOptions>,
    /// Time between checkpoints. With `None` the only checkpoint is the final one.
    pub checkpoint_every: Option<Duration>,
    /// Fault plan that applies from the start.
    pub faults: Option<FaultPlan>,
    /// Called with the drive locked when a fault plan cuts the power. Afterwards the server stores
    /// no data and answers no host. The caller must end the process.
    pub at_power_loss: Option<fn(&PowerLoss)>,
    /// Period of a full scrub of the data. `None` disables the scrub, as does a drive without
    /// checksums.
    pub scrub_every: Option<Duration>,
}

pub struct Server {
    shared: SharedSubsystem,
    drive: Arc<Mutex<ServedDrive>>,
    checkpoints: Arc<CheckpointMonitor>,
    vfio_user: Vec<VfioUserServer>,
    tcp: Option<Arc<TcpServer>>,
    metrics: Option<HttpServer>,
    stopping: Arc<AtomicBool>,
    /// Threads other than those of the transports.
    threads: Vec<JoinHandle<()>>,
    clock: ServerClock,
}

/// Period in which background operations advance and limits are checked.
const TICK: Duration = Duration::from_millis(50);
/// A tick that is later than this counts as a stall.
const STALL: Duration = Duration::from_millis(500);
/// Longest grace period after a stall.
const GRACE_MAX: Duration = Duration::from_secs(10);

/// Grace period after a stall of the process or machine. During a stall, keep alive commands wait
/// in their sockets, so silence is not the hosts' fault. After the stall hosts get as long again
/// before keep alive timeouts, which may be two seconds, end them.
struct StallGrace {
    checked_at: Instant,
    until: Instant,
}

impl StallGrace {
    fn new(now: Instant) -> StallGrace {
        StallGrace { checked_at: now, until: now }
    }

    /// Returns whether the grace period after the last stall is over.
    fn is_over(&mut self, now: Instant) -> bool {
        let stalled = now.saturating_duration_since(self.checked_at);
        self.checked_at = now;
        if stalled > STALL {
            self.until = now + stalled.min(GRACE_MAX);
        }
        assert!(self.until <= now + GRACE_MAX, "a grace period ends within {GRACE_MAX:?}");
        now >= self.until
    }
}

impl Server {
    /// Opens the drive and starts to serve it.
    ///
    /// # Errors
    /// The drive or a socket cannot be opened, or an option is not allowed. No thread or socket is
    /// left.
    pub fn start(options: ServeOptions) -> Result<(Server, OpenReport), ServeError> {
        let clock = ServerClock::start();
        let (shared, drive, opened) = ServedDrive::open(options.drive, clock)?;
        drive.on_power_loss(options.at_power_loss);
        lock(&shared).set_faults(clock.now(), options.faults)?;
        let mut server = Server {
            shared: Arc::clone(&shared),
            checkpoints: drive.checkpoints(),
            drive: Arc::new(Mutex::new(drive)),
            vfio_user: Vec::new(),
            tcp: None,
            metrics: None,
            stopping: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
            clock,
        };
        // An error below drops the server, which stops all started parts and closes the drive in
        // order.
        for path in &options.vfio_user {
            let started = VfioUserServer::start(path, Arc::clone(&shared), clock, VfioUserOptions::default())?;
            server.vfio_user.push(started);
        }
        if let Some(tcp) = options.tcp {
            server.tcp = Some(Arc::new(TcpServer::start(tcp, Arc::clone(&shared), clock)?));
        }
        if let Some(metrics) = options.metrics {
            let checkpoints = Arc::clone(&server.checkpoints);
            server.metrics = Some(metrics::start(metrics, Arc::clone(&shared), checkpoints, clock)?);
        }
        server.start_housekeeping()?;
        if let Some(every) = options.checkpoint_every {
            server.start_checkpoints(every)?;
        }
        if let Some(every) = options.scrub_every {
            server.start_scrub(every)?;
        }
        Ok((server, opened))
    }

    /// Scrubs the data repeatedly on a separate thread, if the drive has checksums.
    fn start_scrub(&mut self, every: Duration) -> Result<(), ServeError> {
        let scrubber = self.drive.lock().expect("a checkpoint never panics").scrubber();
        let Some(mut scrubber) = scrubber else {
            return Ok(());
        };
        let stopping = Arc::clone(&self.stopping);
        let work = move || {
            lower_priority();
            while !stopping.load(Ordering::Acquire) {
                let wait = scrubber.slice(every, &mut |found| eprintln!("warp: {found}"));
                let wait = wait.unwrap_or_else(|error| {
                    eprintln!(
                        "warp: the scrub failed, because the data file cannot be searched for data: {error}. It is \
                         tried again later"
                    );
                    every
                });
                let until = Instant::now() + wait;
                while Instant::now() < until && !stopping.load(Ordering::Acquire) {
                    std::thread::park_timeout(until - Instant::now());
                }
            }
        };
        self.threads.push(spawn("scrub", work)?);
        Ok(())
    }

    fn start_housekeeping(&mut self) -> Result<(), ServeError> {
        let (shared, clock, stopping) = (Arc::clone(&self.shared), self.clock, Arc::clone(&self.stopping));
        let tcp = self.tcp.clone();
        let work = move || {
            let mut grace = StallGrace::new(Instant::now());
            while !stopping.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                let expired = lock(&shared).tick(clock.now());
                let is_fair = grace.is_over(Instant::now());
                if let Some(tcp) = tcp.as_ref().filter(|_| is_fair) {
                    tcp.end_associations(&expired);
                }
            }
        };
        self.threads.push(spawn("housekeeping", work)?);
        Ok(())
    }

    /// Makes checkpoints on a separate thread, because one takes seconds for a large drive.
    fn start_checkpoints(&mut self, every: Duration) -> Result<(), ServeError> {
        let (drive, stopping) = (Arc::clone(&self.drive), Arc::clone(&self.stopping));
        let work = move || {
            let mut last = Instant::now();
            while !stopping.load(Ordering::Acquire) {
                let wait = every.saturating_sub(last.elapsed());
                if !wait.is_zero() {
                    std::thread::park_timeout(wait);
                    continue;
                }
                // If a requested checkpoint holds the drive, it serves the same purpose.
                let checkpoint = match drive.try_lock() {
                    Ok(mut drive) => drive.checkpoint(pause_between_parts).map(drop),
                    Err(TryLockError::WouldBlock) => Ok(()),
                    Err(TryLockError::Poisoned(_)) => panic!("a checkpoint never panics"),
                };
                match checkpoint {
                    Ok(()) | Err(DriveError::Stopping | DriveError::PowerLost) => {}
                    Err(error) => {
                        eprintln!(
                            "warp: the checkpoint failed: {error}. The drive keeps working, and the next checkpoint is \
                             tried at its regular time"
                        );
                    }
                }
                last = Instant::now();
            }
        };
        self.threads.push(spawn("checkpoints", work)?);
        Ok(())
    }

    pub fn shared(&self) -> &SharedSubsystem {
        &self.shared
    }

    pub fn monitor(&self) -> DriveMonitor {
        DriveMonitor::new(Arc::clone(&self.shared), self.clock)
    }

    /// Actions on the drive for clients with a token, separate from host commands.
    pub fn actions(&self) -> Actions {
        Actions::new(&self.drive, Arc::clone(&self.shared), self.clock)
    }

    /// Address of NVMe/TCP, with the real port if port 0 was requested.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(|tcp| tcp.local_address())
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(HttpServer::local_address)
    }

    pub fn status(&self) -> DriveStatus {
        let checkpoints = self.checkpoints.status();
        DriveStatus { checkpoints, ..DriveStatus::new(&lock(&self.shared), self.clock.now()) }
    }

    /// Ends all connections, then closes the drive: data durable, mapping and counters stored.
    ///
    /// # Errors
    /// The drive could not be stored completely. The message names the part that will be missing at the
    /// next start.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.end_transports();
        let mut drive = self.drive.lock().expect("a checkpoint never panics");
        drive.close()?;
        assert!(drive.is_closed() || !drive.has_files(), "a drive with files is closed when its server stops");
        Ok(())
    }

    fn end_transports(&mut self) {
        self.stopping.store(true, Ordering::Release);
        self.checkpoints.stop();
        for server in self.vfio_user.drain(..) {
            server.stop();
        }
        if let Some(tcp) = self.tcp.take() {
            tcp.stop();
        }
        if let Some(metrics) = self.metrics.take() {
            metrics.stop();
        }
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ServeError> {
    let thread = std::thread::Builder::new().name(name.to_string()).spawn(work);
    let action = "starting a thread";
    thread.map_err(|source| ServeError::System { action, source })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_transports();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_made_up_for() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut grace = StallGrace::new(start);
        assert!(grace.is_over(at(50)));
        assert!(!grace.is_over(at(3050)), "three seconds in which nobody was heard");
        assert!((1..60).all(|tick| !grace.is_over(at(3050 + tick * 50))));
        assert!(grace.is_over(at(6050)));
    }
}
