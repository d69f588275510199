//! A page receives the results of a run without a page, in spite of pauses, seeks and forks.

mod common;

use std::time::{Duration, Instant};

use common::{Head, Message, Socket, begin, get, options, order, small_order, start};
use experiment::change::RunChange;
use experiment::definition::Experiment;
use experiment::run_options::RunOptions;
use experiment::scaled_model::{Scale, ScaleChoice};
use experiment::selection::RunOverrides;
use serde_json::{Value, json};
use simulate::run::RunResult;
use studio::Studio;
use toml::Table;

const PAUSED: u8 = 3;
const ENDED: u8 = 4;

/// Runs the same cell without a studio, as `warp run` does.
fn unwatched(variant: &str, set: &[(&str, toml::Value)]) -> RunResult {
    let experiment = Experiment::find("three_stream").expect("it is built in");
    let set = set.iter();
    let selection = RunOverrides {
        device: Some("ssd_a".to_string()),
        run: RunOptions {
            variants: Some(vec![variant.to_string(), "80/20".to_string()]),
            scale: Some(ScaleChoice::Fixed(Scale(2048))),
            drive_writes: Some(2.0),
            ..RunOptions::default()
        },
        change: RunChange::from_settings(
            &set.map(|(path, value)| (path.to_string(), value.clone())).collect::<Table>(),
        ),
        ..RunOverrides::default()
    };
    let plans = simulate::run::prepare(experiment.select(&selection).expect("a selection").cells).expect("a run");
    let results = simulate::run::run_all(&plans, false, 8 << 30, &()).expect("it runs");
    results.into_iter().next().expect("one run")
}

/// Asserts that the result of a session equals that of a run.
#[track_caller]
fn assert_equal(cell: &Value, run: &RunResult) {
    let number = |key: &str| cell[key].as_u64().unwrap_or_else(|| panic!("{key}: {cell}"));
    assert_eq!(number("host_bytes_written"), run.stats.host_bytes_written());
    assert_eq!(number("media_bytes_written"), run.stats.media_bytes_written());
    assert_eq!(number("media_bytes_erased"), run.stats.media_bytes_erased());
    let copied = |index: usize| cell["owners"][index]["gc_pages_copied"].as_u64();
    let rows = run.stats.handles.iter().chain([&run.stats.shared]);
    for (index, row) in rows.enumerate() {
        assert_eq!(copied(index), Some(row.gc_pages_copied), "owner {index}");
    }
    assert_eq!(cell["complete"], json!(true));
}

fn watch(studio: &Studio, id: &str) -> Socket {
    Socket::open(studio.local_address(), &format!("/api/sessions/{id}/live"))
}

/// Waits for the results of this many lanes.
fn results(page: &mut Socket, lanes: usize) -> Vec<Value> {
    let mut found: Vec<Option<Value>> = vec![None; lanes];
    page.wait("all results", |message| {
        if let Message::Text(text) = message
            && text["type"] == "result"
        {
            let lane = text["lane"].as_u64().expect("a lane") as usize;
            found[lane] = Some(text["result"].clone());
        }
        found.iter().all(Option::is_some).then_some(())
    });
    found.into_iter().flatten().collect()
}

#[test]
fn lanes_side_by_side_end_as_runs_that_nobody_watched() {
    let studio = start();
    let id = begin(studio.local_address(), &order());
    let mut page = watch(&studio, &id);
    let session = page.text("session");
    assert_eq!(session["id"], id.as_str());
    assert_eq!(session["running"], json!(false));
    let lane = &session["lanes"][1];
    assert_eq!((lane["name"].as_str(), lane["device"].as_str()), (Some("NoFDP"), Some("ssd_a")));
    assert_eq!(lane["scale"], "1/2048");
    let owners = lane["owners"].as_array().expect("owners");
    assert_eq!(owners.last().expect("a pool")["name"], "shared pool");
    let first = page.frame_of(0, "a first frame", |_| true);
    assert!(first.is_whole);
    assert_eq!(first.units.len() as u64, lane["units"].as_u64().expect("units"));
    page.send(&json!({ "do": "play" }));
    let found = results(&mut page, 2);
    for (cell, variant) in found.iter().zip(["FDP", "NoFDP"]) {
        let run = unwatched(variant, &[]);
        assert_equal(cell, &run);
        assert_eq!(cell["waf"].as_f64(), run.stats.write_amplification());
    }
    // A page that connects later receives the same.
    let mut other = watch(&studio, &id);
    assert_eq!(results(&mut other, 2), found);
    studio.stop();
}

#[test]
fn the_drives_of_an_array_are_lanes_and_end_as_in_its_run() {
    let studio = start();
    let mut order = small_order();
    order["array"] = "raid5,drives=3".into();
    let id = begin(studio.local_address(), &order);
    let mut page = watch(&studio, &id);
    let session = page.text("session");
    let names: Vec<&str> =
        session["lanes"].as_array().expect("lanes").iter().filter_map(|lane| lane["name"].as_str()).collect();
    assert_eq!(names, ["FDP, drive 0", "FDP, drive 1", "FDP, drive 2"]);
    page.send(&json!({ "do": "play" }));
    let found = results(&mut page, 3);
    let array: Vec<(&str, toml::Value)> = vec![("array.level", "raid5".into()), ("array.drives", 3.into())];
    let drives = unwatched("FDP", &array).array.expect("the run has an array").drives;
    for (cell, drive) in found.iter().zip(&drives) {
        assert_eq!(cell["host_bytes_written"].as_u64(), Some(drive.stats.host_bytes_written()));
        assert_eq!(cell["media_bytes_written"].as_u64(), Some(drive.stats.media_bytes_written()));
    }
    let toml = get(studio.local_address(), &format!("/api/sessions/{id}/export/experiment.toml")).text();
    assert_eq!(toml.matches("[[variants]]").count(), 1, "the drives are one run: {toml}");
    assert!(toml.contains("level = \"raid5\""), "{toml}");
    studio.stop();
}

/// Frames add up to the state, and series grow.
#[test]
fn frames_add_up_to_what_a_page_that_comes_later_is_told() {
    let studio = start();
    let id = begin(studio.local_address(), &small_order());
    let mut page = watch(&studio, &id);
    page.send(&json!({ "do": "play" }));
    let (mut units, mut samples, mut frames) = (std::collections::BTreeMap::new(), Vec::new(), 0);
    let last = page.wait("the end", |message| match message {
        Message::Frame(frame) => {
            let head = common::Head::of(frame);
            if head.is_whole {
                units.clear();
                samples.clear();
            }
            units.extend(head.units.iter().copied());
            samples.extend(head.samples.iter().copied());
            frames += 1;
            (head.phase == ENDED).then_some(head)
        }
        _ => None,
    });
    let mut other = watch(&studio, &id);
    let whole = other.frame_of(0, "a whole frame", |head| head.is_whole);
    assert_eq!(whole.units.into_iter().collect::<std::collections::BTreeMap<_, _>>(), units);
    assert_eq!(whole.samples, samples);
    assert_eq!((whole.host_bytes, whole.owners), (last.host_bytes, last.owners));
    assert!(frames > 1 && samples.len() > 50, "{frames} frames, {} samples", samples.len());
    assert!(samples.windows(2).all(|pair| pair[0] < pair[1]), "in their order");
    studio.stop();
}

#[test]
fn going_back_and_on_again_changes_no_integer() {
    let studio = start();
    let id = begin(studio.local_address(), &small_order());
    let mut page = watch(&studio, &id);
    page.send(&json!({ "do": "play" }));
    let before = results(&mut page, 1).remove(0);
    let end = before["host_bytes_written"].as_u64().expect("a number");
    let half = end / 2;
    let stand = |page: &mut Socket, host_bytes: u64| {
        page.send(&json!({ "do": "seek", "host_bytes": host_bytes }));
        page.frame_of(0, "it stands there", |head| {
            head.phase == PAUSED && head.host_bytes >= host_bytes && head.host_bytes < host_bytes + (64 << 20)
        })
    };
    let first = stand(&mut page, half);
    stand(&mut page, half / 3);
    let again = stand(&mut page, half);
    assert_eq!((first.host_bytes, first.media_bytes), (again.host_bytes, again.media_bytes));
    assert_eq!(first.owners, again.owners, "seen from before and from behind");
    page.send(&json!({ "do": "play" }));
    assert_eq!(results(&mut page, 1).remove(0), before);
    assert_equal(&before, &unwatched("FDP", &[]));
    studio.stop();
}

/// The first collection is at the same position, no matter where the run is at the time of the
/// request.
#[test]
fn the_first_collection_is_found_from_before_and_from_behind() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &order());
    let mut page = watch(&studio, &id);
    let find = |page: &mut Socket| {
        page.send(&json!({ "do": "first_collection" }));
        let stands = |head: &Head| head.phase == PAUSED && head.media_bytes > 0;
        // The run passes other positions, at which only one lane has stopped.
        let mut places = [0, 0];
        page.wait("both lanes stand", |message| {
            if let Message::Frame(frame) = message {
                let head = Head::of(frame);
                places[usize::from(frame[1])] = if stands(&head) { head.host_bytes } else { 0 };
            }
            (places[0] > 0 && places[1] > 0).then_some(())
        });
        places
    };
    let from_before = find(&mut page);
    let trace = get(address, &format!("/api/sessions/{id}/export/trace.json")).text();
    assert!(trace.contains("\"ph\":\"X\""), "a collection has happened");
    page.send(&json!({ "do": "play" }));
    let ended = results(&mut page, 2);
    let from_behind = find(&mut page);
    assert_eq!(from_before, from_behind);
    // Well before this position, no lane has collected.
    let first = from_before.iter().min().expect("two lanes");
    page.send(&json!({ "do": "seek", "host_bytes": first / 2 }));
    page.frame_of(0, "it stands before", |head| {
        head.phase == PAUSED && head.host_bytes >= first / 2 && head.host_bytes < *first
    });
    page.send(&json!({ "do": "play" }));
    assert_eq!(results(&mut page, 2), ended, "looking changes no integer");
    studio.stop();
}

#[test]
fn a_run_without_a_collection_says_so() {
    let studio = start();
    let mut order = small_order();
    order["drive_writes"] = json!(0.1);
    let id = begin(studio.local_address(), &order);
    let mut page = watch(&studio, &id);
    page.send(&json!({ "do": "first_collection" }));
    let error = page.text("error")["message"].as_str().expect("a sentence").to_string();
    assert!(error.contains("ends without a garbage collection"), "{error}");
    studio.stop();
}

#[test]
fn a_branch_of_another_drive_is_a_run_of_it_from_the_start() {
    let studio = start();
    let id = begin(studio.local_address(), &small_order());
    let mut page = watch(&studio, &id);
    page.send(&json!({ "do": "seek", "host_bytes": 1e9 }));
    page.frame_of(0, "it stands there", |head| head.phase == PAUSED && head.host_bytes >= 1_000_000_000);
    page.send(&json!({ "do": "fork", "lane": 0, "name": "more spare", "set": { "geometry.over_provisioning": 0.4 } }));
    let session = page.wait("the branch", |message| match message {
        Message::Text(text) if text["type"] == "session" && text["lanes"].as_array().map(Vec::len) == Some(2) => {
            text["lanes"][1]["forked"].as_str().map(|_| text.clone())
        }
        _ => None,
    });
    assert_eq!(session["lanes"][1]["of"], json!(0));
    assert_eq!(session["lanes"][1]["forked"], "start");
    page.send(&json!({ "do": "play" }));
    let found = results(&mut page, 2);
    assert_equal(&found[0], &unwatched("FDP", &[]));
    assert_equal(&found[1], &unwatched("FDP", &[("geometry.over_provisioning", 0.4.into())]));
    studio.stop();
}

/// The order of a session with a fork, in another session.
#[test]
fn the_order_of_a_session_makes_it_again() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let mut page = watch(&studio, &id);
    page.send(&json!({ "do": "seek", "host_bytes": 2e9 }));
    page.frame_of(0, "it stands there", |head| head.phase == PAUSED && head.host_bytes >= 2_000_000_000);
    page.send(&json!({ "do": "fork", "lane": 0, "name": "fifo", "set": { "gc.victim_policy": "fifo" } }));
    page.wait("the branch", |message| match message {
        Message::Text(text) if text["type"] == "session" => text["lanes"][1]["forked"].as_str().map(str::to_string),
        _ => None,
    });
    page.send(&json!({ "do": "play" }));
    let found = results(&mut page, 2);
    let link = get(address, &format!("/api/sessions/{id}/order")).json();
    assert_eq!(link["forks"][0]["set"], json!({ "gc.victim_policy": "fifo" }));
    let again = begin(address, &link);
    let mut page = watch(&studio, &again);
    page.send(&json!({ "do": "play" }));
    assert_eq!(results(&mut page, 2), found);
    assert_eq!(get(address, &format!("/api/sessions/{again}/order")).json(), link);
    // The run seeks to a position before the fork and plays again.
    page.send(&json!({ "do": "seek", "host_bytes": 1e9 }));
    page.frame_of(0, "it stands there", |head| head.phase == PAUSED && head.host_bytes >= 1_000_000_000);
    page.send(&json!({ "do": "play" }));
    assert_eq!(results(&mut page, 2), found);
    studio.stop();
}

#[test]
fn speed_step_drop_and_refusals() {
    let studio = start();
    let id = begin(studio.local_address(), &order());
    let mut page = watch(&studio, &id);
    for _ in 0..3 {
        page.send(&json!({ "do": "step", "requests": 10 }));
    }
    page.frame_of(0, "three steps", |head| head.requests >= 30);
    page.send(&json!({ "do": "speed", "host_bytes_per_second": 8 << 20 }));
    page.send(&json!({ "do": "play" }));
    let begun = Instant::now();
    let from = page.frame_of(0, "it goes on", |head| head.phase == 2).host_bytes;
    let to = page.frame_of(0, "two seconds of it", |head| head.host_bytes >= from + (16 << 20)).host_bytes;
    let expected = Duration::from_secs_f64((to - from) as f64 / f64::from(8 << 20));
    assert!(begun.elapsed() > expected.mul_f64(0.6), "{:?} for {expected:?}", begun.elapsed());
    for (command, says) in [
        (json!({ "do": "drop", "lane": 7 }), "lane 7 does not exist"),
        (json!({ "do": "fork", "lane": 7, "name": "x" }), "lane 7 does not exist"),
        (json!({ "do": "fork", "lane": 0, "name": "FDP" }), "is taken"),
        (json!({ "do": "fork", "lane": 0, "name": "x", "set": { "gc.victim_policy": "best" } }), "lane x"),
        (json!({ "do": "fork", "lane": 0, "name": "x", "set": { "workload.file": "/dev/zero" } }), "names a file"),
        (json!({ "do": "dance" }), "unknown variant"),
        (json!({ "do": "seek", "host_bytes": -1 }), "not a number of bytes"),
        (json!({ "do": "play", "now": true }), "unknown field"),
        (json!(7), "command: "),
    ] {
        page.send(&command);
        let error = page.text("error")["message"].as_str().expect("a sentence").to_string();
        assert!(error.contains(says), "{command}: {error}");
    }
    page.send(&json!({ "do": "drop", "lane": 0 }));
    let session = page.wait("one lane", |message| match message {
        Message::Text(text) if text["type"] == "session" && text["lanes"].as_array().map(Vec::len) == Some(1) => {
            Some(text.clone())
        }
        _ => None,
    });
    assert_eq!(session["lanes"][0]["name"], "NoFDP");
    page.send(&json!({ "do": "drop", "lane": 0 }));
    assert!(page.text("error")["message"].as_str().is_some_and(|text| text.contains("needs one lane")));
    studio.stop();
}

#[test]
fn a_session_ends_when_nobody_asks_for_it() {
    let idle = StudioIdle::start();
    let address = idle.0.local_address();
    let id = begin(address, &small_order());
    let page = Socket::open(address, &format!("/api/sessions/{id}/live"));
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(get(address, "/api/sessions").json().as_array().map(Vec::len), Some(1), "a page is there");
    drop(page);
    let begun = Instant::now();
    while get(address, "/api/sessions").json() != json!([]) {
        assert!(begun.elapsed() < common::PATIENCE, "it is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    let gone = get(address, &format!("/api/sessions/{id}/order"));
    assert_eq!(gone.status, 404);
    idle.0.stop();
}

struct StudioIdle(Studio);

impl StudioIdle {
    fn start() -> StudioIdle {
        let options = studio::StudioOptions { idle_max: Duration::from_millis(400), ..options() };
        StudioIdle(Studio::start(options).expect("a port"))
    }
}

/// Pages receive latencies of a running lane at intervals and of a paused lane at once, with
/// percentiles over time.
#[test]
fn latencies_are_told_on_the_way() {
    let studio = start();
    let order = json!({
        "workload": { "name": "mine.fio", "text": "[global]\nbs=16k\niodepth=8\nnumber_ios=20000\n[w]\nrw=randrw\nsize=90%\n" },
        "device": "ssd_a", "scale": "1/2048", "precondition_drive_writes": 0.0, "timed": true, "seed": 7,
        "lanes": [{ "name": "timed" }],
    });
    let id = begin(studio.local_address(), &order);
    let mut page = Socket::open(studio.local_address(), &format!("/api/sessions/{id}/live"));
    let mut requests = 0;
    while requests < 500 {
        page.send(&json!({ "do": "step", "requests": 250 }));
        let told = page.wait("latencies", |message| match message {
            Message::Text(text) if text["type"] == "latency" => Some(text.clone()),
            Message::Text(text) => {
                assert_ne!(text["type"], "result", "it has not ended");
                None
            }
            _ => None,
        });
        let directions: Vec<&str> =
            told["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["direction"].as_str()).collect();
        assert_eq!(directions, ["read", "write"], "{told}");
        let over_time = &told["latencies"];
        for direction in over_time["directions"].as_array().expect("directions") {
            let last = |key: &str| {
                let values = direction[key].as_array().expect("values");
                assert_eq!(values.len(), over_time["seconds"].as_array().expect("seconds").len());
                values.iter().rev().find_map(Value::as_u64).expect("a latency")
            };
            assert!(0 < last("p50_ns") && last("p50_ns") <= last("p99_ns"), "{direction}");
            assert!(last("p99_ns") <= last("p999_ns"), "{direction}");
        }
        requests += 250;
    }
    studio.stop();
}

/// The error of an unreadable trace has the name that the page sent, not the path on the server.
#[test]
fn what_fails_on_the_way_is_told_by_its_own_name() {
    let studio = start();
    let lines = (0..6000).map(|line| format!("/dev/a write {} 4096\n", line * 4096));
    let text: String = lines.chain(["/dev/a write nonsense 4096\n".to_string()]).collect();
    let order = json!({
        "workload": { "name": "broken.log", "text": format!("fio version 2 iolog\n/dev/a add\n/dev/a open\n{text}") },
        "device": "ssd_a", "scale": "1/2048", "precondition_drive_writes": 0.0, "seed": 7, "lanes": [{ "name": "trace" }],
    });
    let id = begin(studio.local_address(), &order);
    let mut page = Socket::open(studio.local_address(), &format!("/api/sessions/{id}/live"));
    page.send(&json!({ "do": "play" }));
    let error = page.wait("its failure", |message| match message {
        Message::Text(text) => text["lanes"][0]["error"].as_str().map(str::to_string),
        _ => None,
    });
    assert!(error.contains("broken.log:") && !error.contains("warp-studio-"), "{error}");
    studio.stop();
}

/// Pages receive the wear of a running lane, and at its end the wear equals that of its result.
#[test]
fn wear_is_told_on_the_way() {
    let studio = start();
    let id = begin(studio.local_address(), &small_order());
    let mut page = Socket::open(studio.local_address(), &format!("/api/sessions/{id}/live"));
    page.send(&json!({ "do": "play" }));
    let (mut wear, mut result) = (Value::Null, Value::Null);
    page.wait("the end", |message| {
        if let Message::Text(text) = message {
            match text["type"].as_str() {
                Some("wear") => wear = text["wear"].clone(),
                Some("result") => result = text["result"].clone(),
                _ => {}
            }
        }
        let erases = &result["block_erases"];
        let is_same = ["min", "avg", "max"].iter().all(|key| erases[key] == wear[key]);
        (!result.is_null() && is_same).then_some(())
    });
    let told: u64 = wear["blocks"].as_array().expect("bars").iter().filter_map(Value::as_u64).sum();
    assert!(told > 100 && wear["max"].as_u64() > wear["min"].as_u64(), "{wear}");
    studio.stop();
}
