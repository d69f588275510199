//! vfio-user.
use std::time::Duration;

use transport::bench::vfio_user::{Workload, run};

#[test]
#[ignore = "a benchmark: run with --release --ignored --nocapture"]
fn benchmark() {
    let directory = tempfile::tempdir().unwrap();
    for (write, map_doorbells) in [(true, true), (false, true), (true, false)] {
        let workload = Workload { write, map_doorbells, duration: Duration::from_secs(3), ..Workload::default() };
        println!("write {write}, mapped doorbells {map_doorbells}: {}", run(&directory.path().join("s"), &workload).unwrap());
    }
}
