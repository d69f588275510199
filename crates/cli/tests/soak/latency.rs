//! Measures an honest host's writes of 4 KiB, one at a time, alone and beside attackers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::connection::{Connection, Work};
use crate::server::Supervisor;
use crate::{BLOCK_BYTES, CAPACITY_BYTES, Ending, attack};

/// Latencies of writes, ascending, in nanoseconds.
struct Latencies(Vec<u64>);

impl Latencies {
    fn us(&self, share: f64) -> f64 {
        let index = ((self.0.len() - 1) as f64 * share).round() as usize;
        self.0[index] as f64 / 1e3
    }
}

fn write(supervisor: &Supervisor, host: usize, random: &mut Xoshiro256PlusPlus, time: Duration) -> Latencies {
    let connection = Connection::open(&supervisor.place(host), host);
    let mut connection = connection.unwrap_or_else(|error| panic!("the honest host: {error}"));
    let begun = Instant::now();
    let mut latencies = Vec::new();
    while begun.elapsed() < time {
        let work = Work::Write {
            first: random.random_range(0..CAPACITY_BYTES / BLOCK_BYTES),
            count: 1,
            generation: latencies.len() as u32 + 1,
            through: false,
        };
        let sent = Instant::now();
        let done = connection.run(&[work]).unwrap_or_else(|error| panic!("the honest host: {error}"));
        latencies.push(sent.elapsed().as_nanos() as u64);
        assert!(done[0].status.is_success(), "{}", done[0].status);
    }
    latencies.sort_unstable();
    Latencies(latencies)
}

/// Sets the lowest priority for this thread. Real attackers have their own machines, but here they
/// share the drive's processors. The test measures their cost inside the drive, not the scheduling
/// of Linux.
fn yield_to_others() {
    rustix::process::nice(19).expect("a lower priority");
}

/// Returns the ratio of the 99.9th percentiles beside attackers and alone, over NVMe/TCP and over
/// vfio-user.
pub fn alone_and_beside_attackers(supervisor: &Supervisor, mut random: Xoshiro256PlusPlus, time: Duration) -> [f64; 2] {
    supervisor.serve(None);
    let slower = [("NVMe/TCP", 0), ("vfio-user", 1)].map(|(transport, host)| {
        let alone = write(supervisor, host, &mut random, time);
        let ending = Ending(AtomicBool::new(false));
        let beside = std::thread::scope(|scope| {
            for attack in attack::ALL {
                let ending = &ending;
                scope.spawn(move || {
                    yield_to_others();
                    attack(supervisor, ending);
                });
            }
            let beside = write(supervisor, host, &mut random, time);
            ending.0.store(true, Ordering::Release);
            beside
        });
        for (name, latencies) in [("alone", &alone), ("beside attackers", &beside)] {
            let [median, high, highest] = [0.5, 0.99, 0.999].map(|share| latencies.us(share));
            println!(
                "{transport:9}  {name:16}  p50 {median:7.1}  p99 {high:7.1}  p99.9 {highest:7.1} us  {} writes",
                latencies.0.len()
            );
        }
        beside.us(0.999) / alone.us(0.999)
    });
    supervisor.stop();
    slower
}
