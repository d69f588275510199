//! A running server: one drive, the transports that serve it, and what has to happen from time to time.
//!
//! ```text
//! Server::start -> ServedDrive::open -> VfioUserServer for each socket, TcpServer, metrics
//!               -> a thread that lets time pass (tick every 50 ms), one that makes checkpoints, one that scrubs
//! Server::stop  -> transports end, the drive is closed: data durable, mapping and counters stored
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nvme::fault::{Plan, PowerLoss};

use crate::actions::Actions;
use crate::error::ServeError;
use crate::http::{HttpOptions, HttpServer};
use crate::monitor::metrics;
use crate::monitor::status::Status;
use crate::monitor::units::Watched;
use crate::storage::{Checkpoints, DriveError, DriveOptions, OpenReport, ServedDrive};
use crate::tcp::{TcpOptions, TcpServer};
use crate::vfio_user::{VfioUserOptions, VfioUserServer};
use crate::{Clock, Shared, locked, lower_priority, pause_between_parts};

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub drive: DriveOptions,
    /// Unix sockets for vfio-user clients, a controller for each.
    pub vfio_user: Vec<PathBuf>,
    /// NVMe/TCP.
    pub tcp: Option<TcpOptions>,
    /// Where to serve Prometheus metrics.
    pub metrics: Option<HttpOptions>,
    /// Time between checkpoints; `None`: only at the end.
    pub checkpoint_every: Option<Duration>,
    /// What is to go wrong from the start on.
    pub faults: Option<Plan>,
    /// Called, with the drive held, when a fault plan has taken its power. From then on nothing is stored, and hosts
    /// get no answers; ending the process is the caller's.
    pub at_power_loss: Option<fn(&PowerLoss)>,
    /// Time in which all data is looked through for damage; `None`: never, and only with checksums.
    pub scrub_every: Option<Duration>,
}

/// A running server.
pub struct Server {
    shared: Shared,
    drive: Arc<Mutex<ServedDrive>>,
    checkpoints: Arc<Checkpoints>,
    vfio_user: Vec<VfioUserServer>,
    tcp: Option<Arc<TcpServer>>,
    metrics: Option<HttpServer>,
    stopping: Arc<AtomicBool>,
    /// What goes on beside the transports.
    threads: Vec<JoinHandle<()>>,
    clock: Clock,
}

/// How often background operations go on and limits are checked.
const TICK: Duration = Duration::from_millis(50);
/// How late it may be without anything having stood still.
const STALL: Duration = Duration::from_millis(500);
/// How long a stall is made up for.
const GRACE_MAX: Duration = Duration::from_secs(10);

/// Time in which nobody could be heard is no host's silence: while a process is stopped, or the machine asleep, keep
/// alive commands wait in their sockets. After it hosts have as long again, before timeouts of two seconds end them.
struct Grace {
    looked_at: Instant,
    until: Instant,
}

impl Grace {
    fn new(now: Instant) -> Grace {
        Grace {
            looked_at: now,
            until: now,
        }
    }

    /// Whether hosts have been heard long enough since the last stall.
    fn is_over(&mut self, now: Instant) -> bool {
        let stalled = now.saturating_duration_since(self.looked_at);
        self.looked_at = now;
        if stalled > STALL {
            self.until = now + stalled.min(GRACE_MAX);
        }
        now >= self.until
    }
}

impl Server {
    /// Opens the drive and starts to serve it.
    ///
    /// # Errors
    /// The drive cannot be opened, a socket cannot be had, an option is not allowed: one sentence. Nothing is left
    /// running.
    pub fn start(options: ServeOptions) -> Result<(Server, OpenReport), ServeError> {
        let clock = Clock::start();
        let (shared, drive, opened) = ServedDrive::open(options.drive, clock)?;
        drive.at_power_loss(options.at_power_loss);
        locked(&shared).set_faults(clock.now(), options.faults)?;
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
        // An error below drops the server, which stops what has been started and closes the drive in order.
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

    /// Looks through the data again and again, if there are checksums.
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
                    eprintln!("warp: scrub: the data file cannot be searched for data: {error}; tried again later");
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
            let mut grace = Grace::new(Instant::now());
            while !stopping.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                let expired = locked(&shared).tick(clock.now());
                let is_fair = grace.is_over(Instant::now());
                if let Some(tcp) = tcp.as_ref().filter(|_| is_fair) {
                    tcp.end_associations(&expired);
                }
            }
        };
        self.threads.push(spawn("housekeeping", work)?);
        Ok(())
    }

    /// Makes checkpoints, which takes seconds for a large drive: on a thread of its own.
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
                // One that was asked for is being made: it is as good.
                let checkpoint = match drive.try_lock() {
                    Ok(mut drive) => drive.checkpoint(pause_between_parts).map(drop),
                    Err(TryLockError::WouldBlock) => Ok(()),
                    Err(TryLockError::Poisoned(_)) => panic!("a checkpoint never panics"),
                };
                match checkpoint {
                    Ok(()) | Err(DriveError::Stopping | DriveError::PowerLost) => {}
                    Err(error) => {
                        eprintln!("warp: checkpoint: {error}; the drive goes on, the next one is tried in due time");
                    }
                }
                last = Instant::now();
            }
        };
        self.threads.push(spawn("checkpoints", work)?);
        Ok(())
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Watches the drive from now on.
    pub fn watched(&self) -> Watched {
        Watched::new(Arc::clone(&self.shared), self.clock)
    }

    /// What may be done to the drive beside what its hosts do, for whoever shows a token.
    pub fn actions(&self) -> Actions {
        Actions::new(&self.drive, Arc::clone(&self.shared), self.clock)
    }

    /// Where NVMe/TCP is served; the port is the real one if 0 was asked for.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(|tcp| tcp.local_address())
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(HttpServer::local_address)
    }

    /// The state of the drive now.
    pub fn status(&self) -> Status {
        let checkpoints = self.checkpoints.status();
        Status {
            checkpoints,
            ..Status::of(&locked(&self.shared), self.clock.now())
        }
    }

    /// Ends all connections, then closes the drive: data durable, mapping and counters stored.
    ///
    /// # Errors
    /// The drive could not be stored as it is; the sentence says what will be missing at the next start.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.end_transports();
        let mut drive = self.drive.lock().expect("a checkpoint never panics");
        drive.close()?;
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
        let mut grace = Grace::new(start);
        assert!(grace.is_over(at(50)));
        assert!(!grace.is_over(at(3050)), "three seconds in which nobody was heard");
        assert!((1..60).all(|tick| !grace.is_over(at(3050 + tick * 50))));
        assert!(grace.is_over(at(6050)));
    }
}
