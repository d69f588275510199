//! The `warp` command on workloads other than job files: models, tenants, traces, and traces
//! exported from them.

mod common;

use common::{folder, json, prints, refused, warp_fed, write};
use std::path::Path;

use tempfile::TempDir;

const SMALL: [&str; 6] = ["--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "0.2"];

fn of_json(folder: &TempDir, arguments: &[&str]) -> serde_json::Value {
    json(&prints(folder, arguments))
}

fn run<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", target], &SMALL[..], more].concat()
}

#[test]
fn a_cache_is_run_and_measured() {
    let folder = folder();
    assert!(prints(&folder, &["list", "workloads"]).contains(" kvcache_202206 "));
    let text = prints(&folder, &run("kvcache_202206", &["--untimed"]));
    assert!(text.contains("hit ratio") && text.contains("application write amplification"), "{text}");
    let result = of_json(&folder, &run("kvcache_202206", &["--json", "--untimed", "--set", "workload.soc_percent=40"]));
    let measures = &result["cells"][0]["measures"];
    let soc = measures["soc.written_bytes"].as_f64().expect("a cache counts");
    let loc = measures["loc.written_bytes"].as_f64().expect("a cache counts");
    // The last region or bucket may be incomplete.
    let host = result["cells"][0]["host_bytes_written"].as_f64().expect("bytes");
    assert!((soc + loc - host).abs() <= f64::from(17 << 20), "{soc} + {loc} is not {host}");
}

#[test]
fn the_same_cache_runs_in_virtual_time() {
    let folder = folder();
    let result = of_json(&folder, &run("kvcache_202206", &["--json", "--seconds", "0.2"]));
    let jobs = result["cells"][0]["fio"]["jobs"].as_array().expect("jobs");
    let names: Vec<&str> = jobs.iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert_eq!(names, ["soc", "loc"]);
    assert!(jobs[0]["write"]["clat_ns"]["mean"].as_f64() > Some(1000.0));
}

#[test]
fn tenants_have_a_write_amplification_each() {
    let folder = folder();
    write(
        &folder,
        "two.toml",
        r#"
        kind = "tenants"
        [tenants.cache]
        share_percent = 60
        placement_indices = [0, 1, 2]
        workload = { kind = "cachelib", soc_percent = 20 }
        [tenants.noisy]
        share_percent = 40
        placement_indices = [3]
        workload = { kind = "fio", file = "noisy_neighbour" }
        "#,
    );
    let long =
        ["run", "two.toml", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "2", "--json", "--untimed"];
    let result = of_json(&folder, &long);
    let cell = &result["cells"][0];
    let measure = |name: &str| cell["measures"][name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!((measure("noisy.write_share") - 0.5).abs() < 0.05);
    let copied = measure("cache.bytes_copied") + measure("noisy.bytes_copied");
    let media = cell["media_bytes_written"].as_f64().expect("bytes");
    let host = cell["host_bytes_written"].as_f64().expect("bytes");
    assert!(copied > 0.0 && copied == media - host, "{copied} of {}", media - host);
    assert!(measure("noisy.write_amplification") > 1.0);
}

#[test]
fn what_is_exported_is_replayed() {
    let folder = folder();
    let export = ["export", "three_stream", "trace.log", "--device", "warp_default", "--requests", "5000"];
    let text = prints(&folder, &export);
    let bytes: u64 =
        text.split_whitespace().rev().nth(3).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(text.starts_with("wrote 5000 requests, "), "{text}");
    let replay = ["run", "trace.log", "--device", "warp_default", "--json"];
    let placed = [&replay[..], &["--set", "workload.placement=column", "--set", "workload.mapping=modulo"]].concat();
    let result = of_json(&folder, &placed);
    let cell = &result["cells"][0];
    assert_eq!(cell["host_bytes_written"].as_u64(), Some(bytes));
    let owners = cell["owners"].as_array().expect("owners");
    let used = owners.iter().filter(|owner| owner["host_bytes_written"].as_u64() > Some(0));
    assert_eq!(used.count(), 2, "the jobs fill the drive through two handles first");
    prints(&folder, &["export", "three_stream", "per_handle", "--requests", "100", "--per-placement"]);
    assert!(folder.path().join("per_handle/three_stream.fio").exists());
    let to_standard_output = export.map(|argument| if argument == "trace.log" { "-" } else { argument });
    let written = std::fs::read_to_string(folder.path().join("trace.log")).expect("the iolog");
    assert_eq!(prints(&folder, &to_standard_output), written);
}

#[test]
fn a_trace_is_exported_with_its_recorded_times() {
    let folder = folder();
    let text = "7000000,srv,0,Write,0,4096,0\n7000010,srv,0,Read,0,4096,0\n7012345,srv,0,Write,8192,8192,0\n";
    std::fs::write(folder.path().join("day.csv"), text).expect("the trace");
    let export = |workload: &'static str, more: &[&'static str]| {
        let command = ["export", workload, "to.iolog", "--capacity", "1G", "--iolog-version"];
        prints(&folder, &[&command[..], more].concat());
        let iolog = std::fs::read_to_string(folder.path().join("to.iolog")).expect("the iolog");
        let of_requests = iolog.lines().filter(|line| line.contains(" read ") || line.contains(" write "));
        of_requests.map(str::to_string).collect::<Vec<_>>()
    };
    // MSR counts 100 ns, fio whole microseconds.
    let times: Vec<u64> = export("day.csv", &["3"])
        .iter()
        .map(|line| line.split(' ').next().and_then(|time| time.parse().ok()).expect("a time"))
        .collect();
    assert_eq!(times, [0, 1, 1234]);
    assert!(export("day.csv", &["2"]).iter().all(|line| line.starts_with("/dev/ng0n1 ")));
    let without_times = export("three_stream", &["3", "--requests", "3"]);
    assert!(without_times.iter().all(|line| line.starts_with("0 /dev/ng0n1 ")));
}

#[test]
fn mistakes_are_one_sentence() {
    let folder = folder();
    write(&folder, "bad.csv", "1,128,W\n2,oh,W\n");
    write(&folder, "kind.toml", "kind = \"cachlib\"\n");
    let never = ["run", "kvcache_202206", "--device", "ssd_a", "--scale", "1/2048", "--untimed"];
    refused(&folder, &never, &["never ends", "--drive-writes"]);
    refused(&folder, &run("kvcache_202206", &["--set", "workload.soc_percent=200"]), &["soc_percent", "200"]);
    refused(&folder, &run("kvcache_202206", &["--set", "workload.sok_percent=20"]), &["sok_percent"]);
    refused(&folder, &run("three_stream.fio", &["--set", "workload.bs=4096"]), &["three_stream.fio"]);
    refused(&folder, &run("kind.toml", &[]), &["kind.toml", "did you mean cachelib?"]);
    refused(&folder, &run("bad.csv", &[]), &["bad.csv"]);
    refused(&folder, &["run", "kvcache_202206"], &["a workload needs a device"]);
    refused(&folder, &["export", "three_stream", "missing/trace.log", "--requests", "10"], &["missing/trace.log"]);
}

/// Standard input gives the same workload as the file, compressed or not, for all runs of an
/// answer.
#[test]
fn a_trace_comes_through_standard_input() {
    let folder = folder();
    let mut trace = "time,process,file,operation,offset,length\n".to_string();
    for number in 0..40_000u64 {
        let (file, unit) = match number % 2 {
            0 => ("wal", number / 2 % 1000),
            _ => ("data", 1000 + number * 7919 % 5000),
        };
        let part = unit / 500;
        trace += &format!("{}.5,db,{file}/{part},W,{},4096\n", number / 100, unit * 4096);
    }
    write(&folder, "trace.csv", &trace);
    let question = |name| ["whatif", name, "--no-uncertainty", "--json"];
    let parse = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
    let of_file = parse(prints(&folder, &question("trace.csv")).as_bytes());
    let input = std::fs::File::open(folder.path().join("trace.csv")).expect("the trace");
    let output = warp_fed(&folder, &question("-"), input);
    let of_stream = parse(&output.stdout);
    assert_eq!(of_file["placements"], of_stream["placements"]);
    let rows = of_file["placements"].as_array().expect("placements");
    let reaches = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["write_amplification"].as_f64()).expect("it is compared")
    };
    // The log and the data are in twelve files of two kinds.
    assert!(reaches("by kind of file") < 0.99 * reaches("none"), "{of_file}");
    assert!(reaches("by kind of file") <= reaches("by file"), "{of_file}");
    assert!(folder.path().join("out/whatif-standard-input/report.html").is_file());
    let refusal = warp_fed(&folder, &["run", "-", "--device", "ssd_a"], std::process::Stdio::null());
    let refusal = String::from_utf8(refusal.stderr).expect("text");
    assert!(refusal.starts_with("warp: standard input:1: the trace is empty"), "{refusal}");
}

/// Trace of small random writes to this many units, in an unknown format.
fn odd_trace(lines: u64, units: u64) -> String {
    let line = |number: u64| {
        let unit = number * 7919 % units;
        format!("host;{number};{};8;{}\n", unit * 8, ["WR", "WR", "RD"][(number % 3) as usize])
    };
    "# recorded by a program of our own\n".to_string() + &(0..lines).map(line).collect::<String>()
}

/// Runs a trace on a drive of 64 MiB without timing. Returns the JSON.
fn on_64_mib(folder: &TempDir, trace: &'static str, more: &[&'static str]) -> serde_json::Value {
    let arguments = ["run", trace, "--device", "ssd_a", "--capacity", "64M", "--untimed", "--no-keep", "--json"];
    of_json(folder, &[&arguments[..], more].concat())
}

const ODD_COLUMNS: [&str; 2] = ["--columns", "-,time:ms,offset:sectors,bytes:sectors,op:RD/WR"];

#[test]
fn any_csv_is_a_trace_when_its_columns_are_named() {
    let folder = folder();
    write(&folder, "odd.csv", odd_trace(60_000, 6_000));
    let zstd = zstd::encode_all(odd_trace(60_000, 6_000).as_bytes(), 1).expect("it is in memory");
    write(&folder, "odd.csv.zst", zstd);
    refused(
        &folder,
        &["whatif", "odd.csv"],
        &["odd.csv:1: the format of the trace is not known", "--columns, for example time,op,offset,bytes"],
    );
    let run = |name| on_64_mib(&folder, name, &ODD_COLUMNS);
    let plain = run("odd.csv");
    assert_eq!(plain["cells"][0]["host_bytes_written"], 40_000 * 4096);
    assert_eq!(run("odd.csv.zst")["cells"][0]["media_bytes_written"], plain["cells"][0]["media_bytes_written"]);
    let question = ["whatif", "odd.csv.zst", "--no-uncertainty", "--no-keep"];
    let answer = prints(&folder, &[&question[..], &ODD_COLUMNS].concat());
    assert!(answer.contains("The trace touches"), "{answer}");
    let export = ["export", "odd.csv", "odd.log", "--capacity", "64M", "--requests", "10"];
    prints(&folder, &[&export[..], &ODD_COLUMNS].concat());
    assert!(folder.path().join("odd.log").is_file());
}

#[test]
fn lifetimes_are_those_of_any_csv_whose_columns_are_named() {
    let folder = folder();
    write(&folder, "odd.csv", odd_trace(6_000, 600));
    write(&folder, "job.fio", "[job]\nrw=randwrite\nbs=4k\nsize=1m\n");
    let lifetimes = |names: &[&'static str]| {
        let asked = ["lifetimes", "--device", "ssd_a", "--capacity", "64M", "--json"];
        of_json(&folder, &[&asked[..], names, &ODD_COLUMNS].concat())
    };
    let alone = lifetimes(&["odd.csv"]);
    // Two of three requests write, so each of 600 units is written again after 400 writes.
    let half = alone["workloads"][0]["lifetimes"]["end_within"][2]["bytes"].as_f64();
    assert!(half.is_some_and(|bytes| (bytes / (400.0 * 4096.0) - 1.0).abs() < 0.02), "{alone}");
    // A job file has no columns, which does not disturb the trace beside it.
    assert_eq!(lifetimes(&["odd.csv", "job.fio"])["workloads"][0], alone["workloads"][0]);
    let refusal = [&["lifetimes", "job.fio"][..], &ODD_COLUMNS].concat();
    refused(&folder, &refusal, &["--columns", "job.fio is not a trace"]);
}

#[test]
fn a_job_file_may_be_compressed_as_traces_are() {
    let folder = folder();
    let job = "# a comment\n[job]\nrw=randwrite\nbs=4k\nsize=10%\n";
    write(&folder, "job.fio", job);
    write(&folder, "job.fio.zst", zstd::encode_all(job.as_bytes(), 1).expect("it is in memory"));
    let streams = |name| of_json(&folder, &["show", "job", name, "--json"])["streams"].clone();
    assert_eq!(streams("job.fio.zst"), streams("job.fio"));
    let run = |name| {
        let asked = ["run", name, "--device", "warp_default", "--scale", "1/1024", "--untimed", "--no-keep", "--json"];
        of_json(&folder, &asked)["cells"][0]["host_bytes_written"].clone()
    };
    assert_eq!(run("job.fio.zst"), run("job.fio"));
    write(&folder, "wrong.fio.zst", zstd::encode_all(&b"[job]\nrw=randwrit\n"[..], 1).expect("it is in memory"));
    refused(&folder, &["show", "job", "wrong.fio.zst"], &["wrong.fio.zst:2", "randwrit"]);
}

#[test]
fn a_folder_of_traces_is_taken_where_a_file_is() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("day")).expect("a folder");
    let (first, second) = ("1,W,0,4096,0\n".repeat(300), "1,W,8192,4096,5\n".repeat(200));
    write(&folder, "day/1.csv", &first);
    write(&folder, "day/2.csv.zst", zstd::encode_all(second.as_bytes(), 1).expect("it is in memory"));
    write(&folder, "whole.csv", first + &second);
    let run = |name| on_64_mib(&folder, name, &[])["cells"][0]["host_bytes_written"].clone();
    assert_eq!(run("day"), 500 * 4096);
    assert_eq!(run("day"), run("whole.csv"));
    let export = prints(&folder, &["export", "day", "day.log", "--capacity", "64M"]);
    assert!(export.starts_with("wrote 500 requests"), "{export}");
    write(&folder, "trace.toml", "kind = \"trace\"\nfiles = [\"day\", \"whole.csv\"]\n");
    assert_eq!(run("trace.toml"), 1000 * 4096);
    refused(&folder, &["whatif", "day/1.cvs"], &["day/1.cvs: there is no such file (did you mean day/1.csv?)"]);
    write(&folder, "day/jobs.fio", "[a]\nrw=write\n");
    refused(
        &folder,
        &["run", "day", "--device", "ssd_a"],
        &["day: the folder contains day/jobs.fio, which is not a trace", "Name one of its files"],
    );
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    refused(&folder, &["run", "empty", "--device", "ssd_a"], &["empty: the folder is empty"]);
}

/// Gets and sets of a cache, in the format of Twitter's traces.
fn twitter_trace(lines: u64) -> String {
    let line = |number: u64| {
        let key = number * number % 4_001;
        let operation = if number.is_multiple_of(3) { "set" } else { "get" };
        format!("{},key{key},7,{},1,{operation},0\n", number / 50, 300 + key % 700)
    };
    (0..lines).map(line).collect()
}

/// A cache request is not a write to a drive. Such a trace runs through a cache, whose size and
/// kind appear in the first line.
#[test]
fn a_trace_of_a_cache_goes_through_a_cache() {
    let folder = folder();
    write(&folder, "twitter.csv", twitter_trace(20_000));
    let small = ["--device", "ssd_a", "--scale", "1/2048", "--untimed", "--no-keep"];
    let text = prints(&folder, &[&["run", "twitter.csv", "--drive-writes", "0.2"], &small[..]].concat());
    let first = text.lines().next().expect("a line");
    for words in [
        "twitter.csv is a trace of requests to a cache",
        "CacheLib on all of the drive, 6.98 TiB",
        "DRAM",
        "workload.kind=trace",
    ] {
        assert!(first.contains(words), "{words}: {text}");
    }
    assert!(text.contains("hit ratio"), "{text}");
    // The trace repeats, so its length is not reported.
    let named = of_json(&folder, &[&["run", "twitter.csv", "--drive-writes", "0.2", "--json"], &small[..]].concat());
    let table = "kind = \"cachelib\"\ntrace = [\"twitter.csv\"]\ntrace_format = \"twitter\"\ntrace_working_set_percent = 400.0\n";
    write(&folder, "cache.toml", table);
    let by_table = of_json(&folder, &[&["run", "cache.toml", "--drive-writes", "0.2", "--json"], &small[..]].concat());
    assert_eq!(named["cells"][0]["media_bytes_written"], by_table["cells"][0]["media_bytes_written"]);
    refused(
        &folder,
        &[&["run", "twitter.csv", "--set", "workload.kind=trace"], &small[..]].concat(),
        &["twitter.csv:1: the format of the trace is not known"],
    );
    let mooncake = "{\"timestamp\": 0, \"hash_ids\": [1, 2, 3]}\n{\"timestamp\": 9, \"hash_ids\": [1, 2, 9]}\n";
    write(&folder, "kv.jsonl", mooncake);
    let text = prints(&folder, &[&["run", "kv.jsonl", "--drive-writes", "0.05"], &small[..]].concat());
    assert!(text.contains("a key-value cache of a language model on"), "{text}");
    let blocks = of_json(
        &folder,
        &[
            "run",
            "kv.jsonl",
            "--device",
            "ssd_a",
            "--capacity",
            "64M",
            "--untimed",
            "--no-keep",
            "--json",
            "--set",
            "workload.kind=trace",
        ],
    );
    assert_eq!(blocks["cells"][0]["host_bytes_written"], 4 << 20);
}

#[test]
fn a_trace_that_is_larger_than_the_drive_says_how_large_that_has_to_be() {
    let folder = folder();
    write(&folder, "wide.csv", (0..40_000).map(|unit| format!("1,W,{},4096,0\n", unit * 4096)).collect::<String>());
    refused(
        &folder,
        &["run", "wide.csv", "--device", "ssd_a", "--capacity", "64M", "--untimed"],
        &["wide.csv touches 156", "of the drive", "--capacity 184MiB", "mapping = \"modulo\""],
    );
}

/// If the machine cannot capture requests, one sentence gives the reason. The command does not run
/// and no file is written.
#[test]
fn a_trace_is_replayed_at_its_own_times() {
    let folder = folder();
    let mut trace = String::new();
    for request in 0..2000_u64 {
        let (volume, kind) = if request % 3 == 0 { (1, "Write") } else { (0, "Read") };
        let (time, offset) = (request * 5000, request * 40_503 % 3000 * 4096);
        trace += &format!("{time},usr,{volume},{kind},{offset},8192,{}\n", request % 900 + 100);
    }
    write(&folder, "usr.csv", &trace);
    let drive = ["--device", "ssd_a", "--scale", "1/2048", "--precondition", "1"];
    let run = |more: &[&'static str]| [&["run", "usr.csv"], &drive[..], more].concat();
    let text = prints(&folder, &run(&["--replay", "timed", "--speed", "2x"]));
    for says in [
        "open loop at the recorded times, 2x as fast, queue depth 1023",
        "volume usr,1",
        "waited in host",
        "recorded p99",
        "most arrivals in",
        "garbage collection delayed ",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let report = std::fs::read_to_string(folder.path().join("out/usr/report.html")).expect("a report");
    assert!(report.contains("Replay at the recorded times") && report.contains("2x as fast"));
    let json = of_json(&folder, &run(&["--replay", "timed", "--speed", "2", "--json"]));
    let replay = &json["cells"][0]["replay"];
    assert_eq!((&replay["speed"], &replay["queue_depth"]), (&2.0.into(), &1023.into()));
    assert_eq!(replay["last_due_ns"], 1999_u64 * 250_000);
    assert_eq!(replay["groups"][0]["requests"], 1333);
    // Without `--replay timed` the latencies come with a note that recorded times are ignored.
    let said = "closed loop, queue depth 32, recorded times ignored";
    assert!(prints(&folder, &run(&[])).contains(said));
    let report = std::fs::read_to_string(folder.path().join("out/usr/report.html")).expect("a report");
    assert!(report.contains(said));
    assert_eq!(of_json(&folder, &run(&["--json"]))["cells"][0]["replay"]["pace"], said);
}

#[test]
fn a_replay_that_cannot_be_had_is_refused_with_a_remedy() {
    let folder = folder();
    write(&folder, "timeless.log", "fio version 2 iolog\na write 0 4096\na write 4096 4096\n");
    write(&folder, "usr.csv", "0,usr,0,Write,0,4096,1\n9,usr,0,Write,0,4096,1\n");
    let run = |target: &'static str, more: &[&'static str]| {
        [&["run", target, "--device", "ssd_a", "--scale", "1/2048"], more].concat()
    };
    let timed = ["--replay", "timed"];
    refused(&folder, &run("timeless.log", &timed), &["timeless.log has no times", "--replay"]);
    refused(&folder, &run("three_stream", &timed), &["needs a block trace", "Remove the option"]);
    refused(&folder, &run("kvcache_202206", &timed), &["needs a block trace"]);
    refused(&folder, &run("usr.csv", &["--speed", "2"]), &["--speed", "needs replay = \"timed\" (--replay timed)"]);
    let untimed = ["run", "usr.csv", "--device", "warp_default", "--replay", "timed"];
    refused(&folder, &untimed, &["(--replay timed) needs [timing]", "device warp_default does not have"]);
}

#[test]
fn a_capture_that_cannot_be_had_is_refused() {
    let folder = folder();
    let root = Path::new("/sys/kernel/tracing");
    let reason = match std::fs::read_dir(root.join("instances")) {
        Ok(_) => "/dev/null is not a block device. Give a disk or a partition, such as /dev/nvme0n1",
        Err(_) if std::fs::read_dir(root).is_ok() => "this kernel has no tracing at /sys/kernel/tracing",
        Err(_) => "only root may trace requests",
    };
    refused(&folder, &["capture", "/dev/null", "--", "touch", "it_ran"], &[reason]);
    refused(&folder, &["capture", "/dev/null"], &["COMMAND"]);
}

#[test]
fn lifetimes_are_those_of_the_workload_and_their_distance_is_between_two() {
    let folder = folder();
    let same = json(&prints(&folder, &["lifetimes", "innodb", "innodb", "--scale", "1/1024", "--json"]));
    assert_eq!(same["kolmogorov_smirnov"]["distance"], 0.0);
    let measured = json(&prints(
        &folder,
        &["lifetimes", "innodb", "rocksdb", "--scale", "1/1024", "--drive-writes", "3", "--json"],
    ));
    let distance = measured["kolmogorov_smirnov"]["distance"].as_f64();
    assert!(distance > Some(0.2) && distance < Some(1.0), "{measured}");
    let innodb = &measured["workloads"][0];
    let streams = innodb["streams"].as_array().expect("its streams");
    let of = |name: &str| {
        let stream = streams.iter().find(|stream| stream["name"] == name);
        stream.expect("it writes")["lifetimes"].clone()
    };
    let written: u64 = streams.iter().filter_map(|one| one["lifetimes"]["written_bytes"].as_u64()).sum();
    assert_eq!(Some(written), innodb["lifetimes"]["written_bytes"].as_u64());
    let half = |of: &serde_json::Value| of["end_within"][2]["bytes"].as_u64();
    assert!(half(&of("doublewrite")) < half(&of("pages")).or(Some(u64::MAX)));
    let table = prints(&folder, &["lifetimes", "innodb", "rocksdb", "--scale", "1/1024", "--drive-writes", "1"]);
    assert!(table.contains("Kolmogorov-Smirnov") && table.contains("  doublewrite"), "{table}");
    refused(&folder, &["lifetimes", "random_read"], &["random_read", "its data has no lifetimes"]);
    refused(&folder, &["lifetimes", "innodb", "--drive-writes", "0"], &["--drive-writes", "above 0"]);
}
