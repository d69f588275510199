//! Memory that peers can use is bounded. Tests measure the memory of the whole process, so they run
//! one after the other.

mod common;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{Message, Socket, begin, lives, post, small_order, start};
use serde_json::{Value, json};

/// Lock of the test that is being measured.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resident memory of this process, bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux says it");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

/// Absurd numbers are refused before any allocation.
#[test]
fn drives_and_work_without_bound_are_refused() {
    let _alone = alone();
    let studio = start();
    let address = studio.local_address();
    let before = resident_bytes();
    let with = |set: Value, more: Value| {
        let mut order = small_order();
        order["lanes"][0]["set"] = set;
        for (key, value) in more.as_object().expect("an object") {
            order[key] = value.clone();
        }
        post(address, "/api/sessions", &order)
    };
    for (set, more) in [
        (json!({ "geometry.capacity_bytes": "900PB" }), json!({})),
        (json!({ "geometry.capacity_bytes": -1 }), json!({})),
        (json!({ "geometry.channels": 4_000_000_000u64 }), json!({})),
        (json!({ "geometry.dies_per_channel": 1e300 }), json!({})),
        (json!({ "handles.count": 65535 }), json!({})),
        (json!({}), json!({ "scale": "1/1" })),
        (json!({}), json!({ "scale": "1/4294967295" })),
        (json!({}), json!({ "drive_writes": 1e300 })),
        (json!({}), json!({ "precondition_drive_writes": -5.0 })),
        (json!({}), json!({ "seed": -1 })),
    ] {
        let answer = with(set.clone(), more.clone());
        assert_eq!(answer.status, 400, "{set} {more}: {}", answer.text());
        assert!(!answer.error().is_empty());
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes for what was refused");
    lives(&studio);
    studio.stop();
}

/// Histograms and pending requests of timed jobs count towards the memory limit before a lane is
/// built.
#[test]
fn jobs_count_in_the_memory_of_sessions() {
    let _alone = alone();
    let studio = start();
    let address = studio.local_address();
    let jobs: String = (0..4000).map(|job| format!("[{job}]\nrw=randwrite\niodepth=1000\n")).collect();
    let order = json!({
        "workload": { "name": "a.fio", "text": jobs }, "device": "ssd_a", "scale": "1/64", "drive_writes": 1.0, "seed": 1,
        "timed": true, "lanes": [{ "name": "a" }],
    });
    let before = resident_bytes();
    let answer = post(address, "/api/sessions", &order);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.error().contains("but the sessions have"), "{}", answer.error());
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes for what was refused");
    lives(&studio);
    studio.stop();
}

#[test]
fn a_flood_of_commands_waits_in_its_own_socket() {
    let _alone = alone();
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let path = format!("/api/sessions/{id}/live");
    let mut flood = Socket::open(address, &path);
    flood.stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let commands = Socket::frame(0x81, br#"{"do":"dance"}"#).repeat(1000);
    let before = resident_bytes();
    let begun = Instant::now();
    let mut sent = 0;
    while begun.elapsed() < Duration::from_secs(3) {
        sent += flood.stream.write(&commands).unwrap_or(0);
        lives(&studio);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for {sent} that were sent");
    // Another page gets its answers at once.
    let mut other = Socket::open(address, &path);
    other.send(&json!({ "do": "play" }));
    other.wait("it plays", |message| match message {
        Message::Text(text) if text["running"] == json!(true) => Some(()),
        Message::Frame(frame) if frame[2] >= 2 => Some(()),
        _ => None,
    });
    studio.stop();
}

/// A slow or silent page receives the newest frames and uses no memory.
#[test]
fn who_does_not_read_holds_nobody_up() {
    let _alone = alone();
    let studio = start();
    let address = studio.local_address();
    let mut order = small_order();
    order["drive_writes"] = json!(40.0);
    let id = begin(address, &order);
    let path = format!("/api/sessions/{id}/live");
    let silent: Vec<Socket> = (0..8).map(|_| Socket::open(address, &path)).collect();
    let mut slow = Socket::open(address, &path);
    let mut page = Socket::open(address, &path);
    page.send(&json!({ "do": "play" }));
    let first = page.frame_of(0, "it runs", |head| head.host_bytes > 0).host_bytes;
    let before = resident_bytes();
    let begun = Instant::now();
    let mut newest = first;
    while begun.elapsed() < Duration::from_secs(4) && newest < first + (40u64 << 30) {
        newest = page.frame_of(0, "it goes on", |_| true).host_bytes;
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes");
    assert!(newest > first, "it runs on");
    page.send(&json!({ "do": "pause" }));
    let stands = page.frame_of(0, "it stands", |head| head.phase >= 3).host_bytes;
    // The slow page does not receive all frames.
    let mut frames = 0;
    slow.wait("the newest", |message| match message {
        Message::Frame(frame) => {
            frames += 1;
            (common::Head::of(frame).host_bytes == stands).then_some(())
        }
        _ => None,
    });
    drop(silent);
    lives(&studio);
    studio.stop();
}
