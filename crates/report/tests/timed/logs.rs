//! Log files in the format of fio.

use simulate::run;

use crate::{READ_NS, cell, settings};

/// Runs jobs whose logs go to a folder. Returns the folder's files.
fn logs(jobs: &str) -> std::collections::BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jobs = jobs.replace("FOLDER", &folder.path().display().to_string());
    let prepared = run::prepare(vec![cell(&jobs, settings())]).unwrap_or_else(|error| panic!("{error}"));
    let options = run::ExecutionOptions { fio_logs: true, ..run::ExecutionOptions::default() };
    run::run_all_with(&prepared, options, &()).expect("the folder can be written");
    let files = folder.path().read_dir().expect("it is there").map(|entry| entry.expect("it is there").path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("it is text"))
    };
    files.map(read).collect()
}

#[test]
fn logs_are_those_of_fio() {
    let all = "write_bw_log=FOLDER/x\nwrite_lat_log=FOLDER/x\nwrite_iops_log=FOLDER/y\n";
    let files = logs(&format!("[a]\nrw=randread\nnorandommap\nnumber_ios=40\nnumjobs=2\n{all}log_offset=1\n"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [1, 2].map(|number| ["bw", "clat", "lat", "slat"].map(|kind| format!("x_{kind}.{number}.log")));
    let mut expected: Vec<String> = expected.into_iter().flatten().collect();
    expected.extend([1, 2].map(|number| format!("y_iops.{number}.log")));
    expected.sort();
    assert_eq!(names, expected);
    let rows = |name: &str| -> Vec<Vec<u64>> {
        let fields = |line: &str| line.split(", ").map(|field| field.parse().expect("a number")).collect();
        files[name].lines().map(fields).collect()
    };
    let latencies = rows("x_lat.1.log");
    assert_eq!(latencies.len(), 40);
    for (index, row) in latencies.iter().enumerate() {
        let [ms, latency_ns, direction, bytes, offset, priority] = row[..] else { panic!("{row:?}") };
        assert!(latency_ns >= READ_NS && ms >= (index as u64 + 1) * READ_NS / 1_000_000);
        assert_eq!((direction, bytes, offset % 4096, priority), (0, 4096, 0, 0));
    }
    assert!(rows("x_slat.1.log").iter().all(|row| row[1] == 0) && files["x_lat.1.log"] == files["x_clat.1.log"]);
    assert!(rows("y_iops.2.log").iter().all(|row| row[1] == 1));
    let bandwidth = rows("x_bw.1.log");
    assert!(bandwidth.iter().zip(&latencies).all(|(row, latency)| row[1] == 4096 * 1_000_000 / latency[1]));
    // Windows contain the requests that were issued in them.
    let windows =
        format!("[a]\nrw=randread\nnorandommap\nrate_iops=1000\nruntime=1\ntime_based\n{all}log_avg_msec=100\n");
    let files = logs(&windows);
    let lines: Vec<&str> = files["y_iops.1.log"].lines().collect();
    assert!((9..=10).contains(&lines.len()), "{lines:?}");
    assert!(lines.iter().all(|line| line.ends_with("00, 1000, 0, 0, 0")), "{lines:?}");
    assert!(files["x_bw.1.log"].lines().all(|line| line.ends_with("00, 4000, 0, 0, 0")));
    assert_eq!(files["x_lat.1.log"].lines().next(), Some(format!("100, {READ_NS}, 0, 0, 0").as_str()));
}

#[test]
fn the_last_line_of_a_latency_log_is_at_the_end_of_the_job() {
    let last = |options: &str| {
        let job = format!("[a]\nrw=randread\nnorandommap\nwrite_lat_log=FOLDER/x\nlog_avg_msec=100\n{options}");
        let files = logs(&job);
        let lines: Vec<String> = files["x_lat.1.log"].lines().map(str::to_string).collect();
        lines[lines.len() - 2..].to_vec()
    };
    let at = |ms: u32| format!("{ms}, {READ_NS}, 0, 0, 0");
    // fio waits for the next request until the time is over, and then writes the remaining entries.
    assert_eq!(last("rate_iops=1000\nruntime=1\ntime_based\n"), [900, 1000].map(at));
    assert_eq!(last("thinktime=30ms\nruntime=1\ntime_based\nlog_avg_msec=900\n"), [901, 1000].map(at));
    // With a limit of requests, the last request ends the job.
    assert_eq!(last("rate_iops=1000\nnumber_ios=251\n"), [200, 250].map(at));
    // Requests in flight at that time have a line of their own, as in fio, even within the
    // millisecond.
    let both = last("iodepth=32\nruntime=1\ntime_based\n");
    assert!(both.iter().all(|line| line.starts_with("1000, ")), "{both:?}");
}
