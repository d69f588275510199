//! Exports of a session give the same integers elsewhere.

mod common;

use std::process::Command;

use common::{Message, Socket, begin, get, order, small_order, start};
use experiment::definition::Experiment;
use experiment::selection::RunOverrides;
use serde_json::{Value, json};
use studio::Studio;

/// Plays a session to its end. Returns its identifier and its results.
fn played(studio: &Studio, order: &Value) -> (String, Vec<Value>) {
    let address = studio.local_address();
    let id = begin(address, order);
    let mut page = Socket::open(address, &format!("/api/sessions/{id}/live"));
    page.send(&json!({ "do": "play" }));
    let lanes = order["lanes"].as_array().expect("lanes").len();
    let mut found = vec![Value::Null; lanes];
    page.wait("all results", |message| {
        if let Message::Text(text) = message
            && text["type"] == "result"
        {
            found[text["lane"].as_u64().expect("a lane") as usize] = text["result"].clone();
        }
        found.iter().all(|result| !result.is_null()).then_some(())
    });
    (id, found)
}

fn export(studio: &Studio, id: &str, file: &str) -> String {
    let answer = get(studio.local_address(), &format!("/api/sessions/{id}/export/{file}"));
    assert_eq!(answer.status, 200, "{file}: {}", answer.text());
    assert!(answer.head.contains(&format!("filename=\"{file}\"")), "{}", answer.head);
    answer.text()
}

/// Runs the text of an experiment as `warp run` does. Returns host and media bytes.
fn run(text: &str) -> Vec<(String, u64, u64)> {
    let experiment = Experiment::parse("mine/experiment.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let cells = experiment.select(&RunOverrides::default()).unwrap_or_else(|error| panic!("{error}\n{text}")).cells;
    let plans = simulate::run::prepare(cells).expect("it can be run");
    let results = simulate::run::run_all(&plans, false, 8 << 30, &()).expect("it runs");
    let row = |result: &simulate::run::RunResult| {
        (result.key.variant.clone(), result.stats.host_bytes_written(), result.stats.media_bytes_written())
    };
    results.iter().map(row).collect()
}

#[track_caller]
fn assert_equal(rows: &[(String, u64, u64)], results: &[Value], names: &[&str]) {
    assert_eq!(rows.len(), results.len());
    for ((row, result), name) in rows.iter().zip(results).zip(names) {
        let number = |key: &str| result[key].as_u64().expect("a number");
        assert_eq!(
            (row.0.as_str(), row.1, row.2),
            (*name, number("host_bytes_written"), number("media_bytes_written"))
        );
    }
}

#[test]
fn an_experiment_of_variants_grid_values_and_settings() {
    let studio = start();
    let mut order = order();
    order["lanes"][1]["set"] = json!({ "gc.victim_policy": "fifo", "geometry.over_provisioning": 0.35 });
    let (id, results) = played(&studio, &order);
    let text = export(&studio, &id, "experiment.toml");
    assert_equal(&run(&text), &results, &["FDP", "NoFDP"]);
    studio.stop();
}

#[test]
fn an_experiment_of_a_job_file_that_was_sent() {
    let studio = start();
    let order = json!({
        "workload": { "name": "mine.fio", "text": "[global]\nrw=randwrite\nbs=16k\n[hot]\nsize=10%\n[cold]\noffset=10%\nsize=80%\nfdp=1\nplids=1\n" },
        "device": "ssd_a", "scale": "1/2048", "drive_writes": 1.5, "precondition_drive_writes": 1.0, "seed": 7,
        "lanes": [{ "name": "as it is" }, { "name": "larger", "set": { "workload.hot.bs": "64k" } }],
    });
    let (id, results) = played(&studio, &order);
    assert_ne!(results[0]["media_bytes_written"], results[1]["media_bytes_written"], "the setting does something");
    let text = export(&studio, &id, "experiment.toml");
    assert_equal(&run(&text), &results, &["as it is", "larger"]);
    studio.stop();
}

#[test]
fn an_experiment_of_a_workload_of_the_catalogue() {
    let studio = start();
    let order = json!({
        "workload": { "name": "kvcache_202206" }, "device": "ssd_a", "scale": "1/2048", "drive_writes": 0.5, "seed": 3, "lanes": [{ "name": "cache" }],
    });
    let (id, results) = played(&studio, &order);
    assert_equal(&run(&export(&studio, &id, "experiment.toml")), &results, &["cache"]);
    studio.stop();
}

/// The exported program is Python and contains the exported experiment.
#[test]
fn a_program_holds_the_experiment() {
    let studio = start();
    let (id, results) = played(&studio, &small_order());
    let program = export(&studio, &id, "run.py");
    let stub = "import sys, types\nstub = types.ModuleType('warp_ssd')\nclass Result:\n    def summary(self):\n        return ''\n\
                def run(experiment):\n    import json\n    print(json.dumps(experiment))\n    return Result()\nstub.run = run\n\
                sys.modules['warp_ssd'] = stub\n";
    let output = Command::new("python3").arg("-c").arg(format!("{stub}{program}")).output();
    let output = output.expect("Python is there, as for the package's own tests");
    assert!(output.status.success(), "{}\n{program}", String::from_utf8_lossy(&output.stderr));
    let experiment: Value = serde_json::from_slice(&output.stdout).expect("the experiment as JSON");
    let text = toml::to_string(&experiment).expect("it is TOML");
    assert_equal(&run(&text), &results, &["FDP"]);
    studio.stop();
}

#[test]
fn results_a_report_and_a_trace() {
    let studio = start();
    let (id, results) = played(&studio, &order());
    let json: Value = serde_json::from_str(&export(&studio, &id, "result.json")).expect("JSON");
    assert_eq!(json["format"], "warp-results");
    for (cell, result) in json["cells"].as_array().expect("cells").iter().zip(&results) {
        for key in ["waf", "tail_waf", "host_bytes_written", "media_bytes_written", "owners"] {
            assert_eq!(cell[key], result[key], "{key}");
        }
        // The page shows the sentences of the server, which name its own fields as remedies.
        let warnings = cell["warnings"].as_array().expect("warnings");
        let sentences = result["warnings"].as_array().expect("sentences");
        assert!(!warnings.is_empty() && warnings.len() == sentences.len(), "{warnings:?} {sentences:?}");
        for (warning, sentence) in warnings.iter().zip(sentences) {
            let name = warning["name"].as_str().expect("a name").replace('_', " ");
            let sentence = sentence.as_str().expect("a sentence");
            assert!(sentence.starts_with(&format!("{name}: ")) && !sentence.contains("--"), "{sentence}");
        }
    }
    let report = export(&studio, &id, "report.html");
    assert!(report.contains("NoFDP") && report.contains("</html>"));
    let trace: Value = serde_json::from_str(&export(&studio, &id, "trace.json")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).count();
    assert!(
        of("X") > 10 && of("i") > 10 && of("C") > 100 && of("M") > 4,
        "{} {} {} {}",
        of("X"),
        of("i"),
        of("C"),
        of("M")
    );
    let axis = trace["otherData"]["lanes"][0]["axis"].as_str().expect("it says what its axis is");
    assert!(axis.contains("host bytes written"), "{axis}");
    // Slices of a track do not overlap.
    let mut ends = std::collections::BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |key: &str| event[key].as_f64().expect("a number");
        let track = (event["pid"].as_u64(), event["tid"].as_u64());
        let end = ends.insert(track, number("ts") + number("dur")).unwrap_or(0.0);
        assert!(number("ts") >= end - 1e-6 || track.1.is_some_and(|track| track % 8 == 7), "{event}");
    }
    studio.stop();
}

/// The trace of a timed lane also has requests, dies and channels. The lane reports latencies while
/// it runs.
#[test]
fn a_trace_of_virtual_time() {
    let studio = start();
    let order = json!({
        "workload": { "name": "mine.fio", "text": "[global]\nbs=16k\niodepth=8\nnumber_ios=20000\n[w]\nrw=randrw\nsize=90%\n" },
        "device": "ssd_a", "scale": "1/2048", "precondition_drive_writes": 1.0, "timed": true, "seed": 7,
        "lanes": [{ "name": "timed" }],
    });
    let (id, results) = played(&studio, &order);
    let trace: Value = serde_json::from_str(&export(&studio, &id, "trace.json")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let named = |event: &&Value| event["ph"] == "M" && event["name"] == "thread_name";
    let tracks: std::collections::BTreeMap<u64, &str> = events
        .iter()
        .filter(named)
        .map(|event| (event["tid"].as_u64().expect("a track"), event["args"]["name"].as_str().expect("a name")))
        .collect();
    let mut ends = std::collections::BTreeMap::new();
    let mut counted = std::collections::BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |key: &str| event[key].as_f64().expect("a number");
        let track = event["tid"].as_u64().expect("a track");
        let name = tracks[&track];
        *counted.entry(name.split(' ').next().expect("a word")).or_insert(0) += 1;
        if name.starts_with("reclaim group") {
            continue; // The event has the duration of the collection on an idle drive.
        }
        let end = ends.insert(track, number("ts") + number("dur")).unwrap_or(0.0);
        assert!(number("ts") >= end - 1e-3, "{name}: {event}");
    }
    assert_eq!(counted["requests"], 20_000, "{counted:?}");
    let of_dies = tracks.values().filter(|name| name.contains(" die ")).count();
    assert!(of_dies > 0 && counted["channel"] > 10_000, "{of_dies} {counted:?}");
    assert_eq!(trace["otherData"]["lanes"][0]["axis"], "virtual time");
    assert!(results[0]["host_bytes_written"].as_u64().expect("bytes") > 0);
    studio.stop();
}
