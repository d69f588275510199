//! Soak test of a served drive. Eight hosts on both transports use the drive, while fault plans,
//! kills, power losses and restarts disturb it and peers attack it. No flushed data is lost, no
//! block is torn, and attacks do not slow down an honest host.
//!
//! ```text
//! supervisor: warp serve --faults plan -> other plans over HTTP -> kill, power loss or orderly end
//!             -> again
//! host 0 - 7 (host):  batches of writes and reads, flushes -> lost connection
//!                     -> connect, verify all blocks
//! attackers (attack): half-open connections, nonsense, long commands
//! ```
//!
//! `./test` runs it for a few seconds. `WARP_SOAK_SECONDS=3600` runs for an hour and prints a line
//! every 10 s. `WARP_SOAK_SEED` determines the commands of hosts and the failures of the drive, but
//! not their interleaving. `WARP_SOAK_PROGRAM` names another `warp` to serve with, such as a
//! release build.

mod attack;
mod connection;
mod host;
mod latency;
mod server;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use host::Host;
use server::Supervisor;

/// Number of hosts, half of them on each transport.
const HOSTS: usize = 8;
/// Capacity of the drive.
const CAPACITY_BYTES: u64 = 256 << 20;
const BLOCK_BYTES: u64 = 4096;
/// Seconds of the form in `./test`.
const SHORT_SECONDS: u64 = 4;
/// Maximum slowdown of an honest host by attackers, at its 99.9th percentile on an idle machine.
const SLOWER_MAX: f64 = 3.0;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Flag that is set when the time is over or a thread has failed.
struct Ending(AtomicBool);

impl Ending {
    fn has_come(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Sets the flag when a thread fails.
struct EndOnFailure<'a>(&'a Ending);

impl Drop for EndOnFailure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.0.store(true, Ordering::Release);
        }
    }
}

#[test]
fn nothing_that_was_flushed_is_lost() {
    let seconds = setting("WARP_SOAK_SECONDS", SHORT_SECONDS);
    let seed = setting("WARP_SOAK_SEED", 20_260_101);
    println!("to replay: WARP_SOAK_SEED={seed} WARP_SOAK_SECONDS={seconds}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let supervisor = Supervisor::new(folder.path(), seed);
    let ending = Ending(AtomicBool::new(false));
    let hosts: Vec<Host> = (0..HOSTS).map(|number| Host::new(number, seed)).collect();
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let hosts: Vec<Host> = std::thread::scope(|scope| {
        let guarded = |work: Box<dyn FnOnce() + Send + '_>| {
            let guard = EndOnFailure(&ending);
            work();
            drop(guard);
        };
        let (ending, supervisor) = (&ending, &supervisor);
        scope.spawn(move || guarded(Box::new(|| supervisor.run(end, ending))));
        for attack in attack::ALL {
            scope.spawn(move || guarded(Box::new(|| attack(supervisor, ending))));
        }
        let running: Vec<_> = hosts
            .into_iter()
            .map(|mut host| {
                scope.spawn(move || {
                    let _guard = EndOnFailure(ending);
                    host.run(supervisor, ending);
                    host
                })
            })
            .collect();
        running
            .into_iter()
            .map(|host| host.join().unwrap_or_else(|_| panic!("see above; WARP_SOAK_SEED={seed}")))
            .collect()
    });
    supervisor.stop();
    let table = host::table(&hosts);
    println!("{table}{}", supervisor.summary(begun.elapsed()));
    let (commands, reconnects) =
        hosts.iter().fold((0, 0), |sum, host| (sum.0 + host.done.commands, sum.1 + host.done.reconnects));
    assert!(commands > 1000 && reconnects >= HOSTS as u64, "the soak did not do anything");
}

/// `WARP_SOAK_LATENCY` sets the seconds of each of both measurements.
#[test]
#[ignore = "it means something only where nothing else runs"]
fn an_honest_host_is_not_slowed_down_by_attackers() {
    let seconds = setting("WARP_SOAK_LATENCY", 10);
    let seed = setting("WARP_SOAK_SEED", 20_260_101);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let supervisor = Supervisor::new(folder.path(), seed);
    let random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load of the machine before: {}", load.trim());
    for slower in latency::alone_and_beside_attackers(&supervisor, random, Duration::from_secs(seconds)) {
        assert!(slower <= SLOWER_MAX, "{slower:.1} times as slow as alone");
    }
}
