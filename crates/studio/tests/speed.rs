//! Measures the speed of the engine with connected pages and without. It asserts only generous
//! bounds. `cargo test -p warp-studio --test speed -- --ignored --nocapture` runs it.

mod common;

use std::time::{Duration, Instant};

use common::{Message, Socket, begin, get, options};
use serde_json::{Value, json};
use studio::{Studio, StudioOptions};

/// Order of a drive with reclaim units of this size and this number of drive writes.
fn order(reclaim_unit_bytes: u64, scale: &str, write: f64) -> Value {
    json!({
        "workload": { "name": "mine.fio", "text": "[global]\nrw=randwrite\nbs=16k\n[hot]\nsize=20%\nfdp=1\nplids=1\n[cold]\noffset=20%\nsize=80%\n" },
        "device": "ssd_a", "scale": scale, "drive_writes": write, "precondition_drive_writes": 1.0,
        "lanes": [{ "name": "a", "set": { "geometry.reclaim_unit_bytes": reclaim_unit_bytes } }],
    })
}

/// Processor time of the engine, seconds. Other load of the machine does not count.
fn engine_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux has them");
    let of = |thread: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let ns = read("schedstat").split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
        (read("comm").trim() == "studio s1").then_some(ns?).map(|ns| ns / 1e9)
    };
    threads.flatten().find_map(of).expect("an engine runs")
}

/// Returns the engine's seconds with this number of pages, pages programmed per second, and frames
/// per second of one page.
fn run(order: &Value, pages: usize) -> (f64, f64, f64) {
    let studio = Studio::start(StudioOptions { memory_bytes: 8 << 30, ..options() }).expect("a port");
    let address = studio.local_address();
    let id = begin(address, order);
    let path = format!("/api/sessions/{id}/live");
    let mut first = Socket::open(address, &path);
    let lane = first.text("session")["lanes"][0].clone();
    first.send(&json!({ "do": "play" }));
    let begun = Instant::now();
    let mut frames = 0;
    if pages == 0 {
        first.frame_of(0, "it runs", |head| head.phase == 1 || head.phase == 2);
        drop(first);
        while get(address, "/api/sessions").json()[0]["phase"] != "ended" {
            std::thread::sleep(Duration::from_millis(20));
        }
    } else {
        let others: Vec<_> = (1..pages)
            .map(|_| {
                let mut page = Socket::open(address, &path);
                std::thread::spawn(move || page.text("result"))
            })
            .collect();
        first.wait("the end", |message| match message {
            Message::Frame(_) => {
                frames += 1;
                None
            }
            Message::Text(text) => (text["type"] == "result").then_some(()),
            Message::Closed(..) => None,
        });
        others.into_iter().for_each(|page| drop(page.join()));
    }
    let (seconds, elapsed) = (engine_seconds(), begun.elapsed().as_secs_f64());
    let mut page = Socket::open(address, &path);
    let end = page.frame_of(0, "the end", |head| head.phase == 4);
    let programmed = end.media_bytes as f64 / 4096.0 + lane["capacity_bytes"].as_f64().expect("a number") / 4096.0;
    studio.stop();
    (seconds, programmed / seconds, f64::from(frames) / elapsed)
}

#[test]
#[ignore = "it measures the machine"]
fn with_and_without_pages() {
    for (name, order) in
        [("1000 units", order(8 << 30, "1/512", 3.0)), ("65 536 units and more", order(128 << 20, "1/64", 0.3))]
    {
        println!("{name}");
        for pair in 0..2 {
            let (alone, speed, _) = run(&order, 0);
            let (watched, _, frames) = run(&order, 1);
            let (ten, _, _) = run(&order, 10);
            println!(
                "  pair {pair}: alone {alone:.2} s ({:.1} million pages/s); one page {watched:.2} s ({:.0} %), {frames:.0} frames/s; ten pages {ten:.2} s ({:.0} %)",
                speed / 1e6,
                100.0 * alone / watched,
                100.0 * alone / ten,
            );
            assert!(alone / watched > 0.5, "a page takes half of the speed");
        }
    }
}
