//! Content of `/metrics`: it is well-formed, agrees with the drive, and has all metrics of the
//! Grafana dashboard.

mod small_drive;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::{CAPACITY_BYTES, Client, MIB, PAGE_BYTES, config, open};
use target::http::{HttpOptions, send_request};
use target::monitor::metrics;
use target::monitor::status::DriveStatus;
use target::storage::CheckpointMonitor;
use target::{ServerClock, SharedSubsystem, lock};

const BOARD: &str = include_str!("../../../docs/grafana.json");
const SEED: u64 = 20;

/// A drive after two full drive writes.
fn used_drive() -> (tempfile::TempDir, SharedSubsystem, target::storage::ServedDrive) {
    let folder = tempfile::tempdir().expect("a folder");
    let (shared, drive, _) = open(&folder.path().join("drive.img"), config(0)).expect("a drive");
    let client = Client::connect(&shared);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let data = vec![0xcd; 256 << 10];
    for _ in 0..2 * CAPACITY_BYTES / data.len() as u64 {
        let place = random.random_range(0..CAPACITY_BYTES / data.len() as u64) * (data.len() as u64 / PAGE_BYTES);
        assert!(client.write(place, PAGE_BYTES, &data, false).is_success());
    }
    client.read(0, MIB / PAGE_BYTES, PAGE_BYTES).expect("data");
    assert!(client.flush().is_success());
    (folder, shared, drive)
}

fn scrape(shared: &SharedSubsystem) -> String {
    scrape_with(shared, Arc::default())
}

fn scrape_with(shared: &SharedSubsystem, checkpoints: Arc<CheckpointMonitor>) -> String {
    let options = HttpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let server = metrics::start(options, Arc::clone(shared), checkpoints, ServerClock::start()).expect("a port");
    let (status, text) = send_request(server.local_address(), "", "/metrics", None).expect("an answer");
    server.stop();
    assert_eq!(status, 200);
    text
}

/// The samples in order: names with their labels as printed, and values.
fn samples(text: &str) -> Vec<(&str, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        (name, value.parse().expect("a number"))
    });
    parsed.collect()
}

#[test]
fn it_says_what_the_drive_counts() {
    let (_folder, shared, _drive) = used_drive();
    let text = scrape(&shared);
    let all: BTreeMap<&str, f64> = samples(&text).into_iter().collect();
    let value = |name: &str| *all.get(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let subsystem = lock(&shared);
    let (device, stats) = (subsystem.device(), subsystem.device().stats());
    let collections = [
        ("background", stats.background_collections),
        ("foreground", stats.foreground_collections),
        ("forced", stats.forced_collections),
    ];
    for (trigger, count) in collections {
        assert_eq!(value(&format!("warp_collections_total{{trigger=\"{trigger}\"}}")), count as f64);
    }
    assert!(stats.background_collections + stats.foreground_collections > 0, "{stats:?}");
    for row in device.occupancy() {
        let ruh = row.owner.handle().map_or("shared".to_string(), |handle| handle.0.to_string());
        let held = |name: &str| value(&format!("warp_handle_{name}{{ruh=\"{ruh}\"}}"));
        assert_eq!(held("reclaim_units"), row.units as f64);
        assert_eq!(held("pages"), row.pages as f64);
        assert_eq!(held("valid_pages"), row.valid_pages as f64);
        let counted = stats.owner(row.owner);
        assert_eq!(held("pages_copied_total"), counted.gc_pages_copied as f64);
        assert_eq!(held("pages_erased_total"), counted.pages_erased as f64);
        assert_eq!(held("host_written_bytes_total"), counted.host_bytes_written as f64);
    }
    let valid: u64 = device.occupancy().iter().map(|row| row.valid_pages).sum();
    assert_eq!(value("warp_logical_pages_mapped"), valid as f64);
    let most = device.block_erase_counts().iter().max().expect("blocks");
    assert_eq!(value("warp_block_erases_max"), f64::from(*most));
    let mean = stats.total().pages_erased as f64 / f64::from(device.layout().physical_pages);
    assert!((value("warp_block_erases_avg") - mean).abs() < 1e-9);
    assert!(value("warp_free_reclaim_units") > 0.0);
    assert!(value("warp_background_watermark_reclaim_units") >= value("warp_foreground_watermark_reclaim_units"));
    assert_eq!(value("warp_page_bytes"), PAGE_BYTES as f64);
}

#[test]
fn it_says_what_came_of_checkpoints() {
    let (_folder, shared, mut drive) = used_drive();
    let checkpoints = drive.checkpoints();
    let looked_at = |name: &str| {
        let text = scrape_with(&shared, Arc::clone(&checkpoints));
        let all: BTreeMap<&str, f64> = samples(&text).into_iter().collect();
        *all.get(name).unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    assert_eq!(looked_at("warp_checkpoint_longest_hold_seconds"), 0.0);
    assert!(drive.checkpoint(|| {}).expect("a checkpoint"));
    checkpoints.stop();
    Client::connect(&shared).read(0, 1, PAGE_BYTES).expect("data");
    assert!(drive.checkpoint(|| {}).expect("a checkpoint"), "the state alone is stored at once");
    assert!(Client::connect(&shared).write(0, PAGE_BYTES, &[1; PAGE_BYTES as usize], false).is_success());
    drive.checkpoint(|| {}).expect_err("the drive is being stopped");
    assert_eq!(looked_at("warp_checkpoints_total"), 2.0);
    assert_eq!(looked_at("warp_checkpoints_failed_total"), 1.0);
    assert!(looked_at("warp_checkpoint_seconds") > 0.0);
    assert!(looked_at("warp_checkpoint_longest_hold_seconds") > 0.0);
    // The status line shows the progress of a checkpoint.
    let mut status = DriveStatus::new(&lock(&shared), 1);
    assert!(!status.line(&status).contains("storing"));
    status.checkpoints.under_way = Some((3, 7));
    assert!(status.line(&status).ends_with("  storing 42 %"), "{}", status.line(&status));
}

#[test]
fn its_histograms_are_those_of_the_standard() {
    let (_folder, shared, _drive) = used_drive();
    let text = scrape(&shared);
    assert!(text.ends_with("# EOF\n"), "it is whole");
    assert!(text.contains("# TYPE warp_command_latency_seconds histogram\n"), "{text}");
    assert!(text.contains("# UNIT warp_command_latency_seconds seconds\n"), "{text}");
    let all = samples(&text);
    let commands = [("read", 1.0), ("write", (2 * CAPACITY_BYTES / (256 << 10)) as f64), ("other", 1.0)];
    for (command, count) in commands {
        let prefix = "warp_command_latency_seconds_bucket{le=\"";
        let suffix = format!("\",command=\"{command}\"}}");
        let bound = |name: &str| Some(name.strip_prefix(prefix)?.strip_suffix(&suffix)?.to_string());
        let buckets: Vec<(String, f64)> = all.iter().filter_map(|(name, value)| Some((bound(name)?, *value))).collect();
        assert_eq!(buckets.len(), 26, "{text}");
        assert!(buckets.is_sorted_by(|one, next| one.1 <= next.1), "{buckets:?}");
        let bounds: Vec<f64> = buckets.iter().map(|(bound, _)| bound.parse().expect("a number")).collect();
        assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
        assert_eq!((bounds[0], bounds[10], bounds[25]), (1e-6, 1.024e-3, f64::INFINITY));
        assert_eq!(buckets[25], ("+Inf".to_string(), count));
        let total = format!("warp_command_latency_seconds_count{{command=\"{command}\"}}");
        assert!(all.contains(&(total.as_str(), count)), "{text}");
    }
}

/// All metric names in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("warp_")).collect()
}

/// Collects all values of a key, anywhere in JSON.
fn values<'a>(json: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    match json {
        serde_json::Value::Array(all) => all.iter().for_each(|inner| values(inner, key, found)),
        serde_json::Value::Object(all) => {
            found.extend(all.get(key).and_then(serde_json::Value::as_str));
            all.values().for_each(|inner| values(inner, key, found));
        }
        _ => {}
    }
}

#[test]
fn the_board_asks_for_what_there_is() {
    let (_folder, shared, _drive) = used_drive();
    let text = scrape(&shared);
    let all = samples(&text);
    let exported: BTreeSet<&str> = all.iter().flat_map(|(name, _)| name.split('{').next()).collect();
    let board: serde_json::Value = serde_json::from_str(BOARD).expect("the board is JSON");
    let (mut expressions, mut variables) = (Vec::new(), Vec::new());
    values(&board["panels"], "expr", &mut expressions);
    values(&board["templating"], "query", &mut variables);
    let asked: BTreeSet<&str> = expressions.iter().chain(&variables).flat_map(|text| names(text)).collect();
    let missing: Vec<_> = asked.difference(&exported).collect();
    assert!(missing.is_empty(), "the board asks for {missing:?}, which is not exported");
    for needed in [
        "warp_command_latency_seconds_bucket",
        "warp_free_reclaim_units",
        "warp_handle_valid_pages",
        "warp_handle_pages_erased_total",
        "warp_collections_total",
    ] {
        assert!(asked.contains(needed), "the board shows {needed}");
    }
    // Grafana identifies panels by their numbers.
    let panels = board["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()), "{panel}");
        assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{panel}");
    }
}
