//! Requests to the server with their answers, and all refusals.

mod common;

use common::{Message, Socket, ask, begin, get, options, order, post, raw, small_order, start};
use serde_json::{Value, json};
use studio::{Studio, StudioOptions};

#[test]
fn what_there_is() {
    let studio = start();
    let address = studio.local_address();
    let about = get(address, "/api/about").json();
    assert_eq!(about, json!({ "version": env!("CARGO_PKG_VERSION"), "drive": false, "actions": false }));
    let catalogue = get(address, "/api/catalogue").json();
    let named = |kind: &str, name: &str| -> Value {
        let entries = catalogue[kind].as_array().expect("a list");
        entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let experiment = named("experiments", "three_stream");
    assert!(experiment["variants"].as_array().is_some_and(|variants| variants.contains(&json!("NoFDP"))));
    assert!(experiment["axes"][0]["values"].as_array().is_some_and(|values| values.contains(&json!("80/20"))));
    let device = named("devices", "ssd_a");
    assert!(device["capacity_bytes"].as_u64().is_some_and(|bytes| bytes > 7_000_000_000_000), "{device}");
    assert!(named("jobs", "three_stream")["title"].is_string());
    assert!(named("workloads", "kvcache_202206")["title"].is_string());
    for (kind, name, says) in [
        ("jobs", "three_stream", "rw="),
        ("workloads", "kvcache_202206", "kind ="),
        ("devices", "ssd_a", "[geometry]"),
        ("experiments", "three_stream", "[[variants]]"),
    ] {
        let text = get(address, &format!("/api/text/{kind}/{name}"));
        assert!(text.status == 200 && text.text().contains(says), "{kind} {name}: {}", text.text());
    }
    let options = get(address, "/api/options").json();
    let names: Vec<&str> =
        options.as_array().expect("a list").iter().filter_map(|option| option["name"].as_str()).collect();
    assert!(names.contains(&"rw") && names.contains(&"iodepth") && names.len() > 100);
    assert!(!names.contains(&"verify_backlog_batch_nothing"));
    studio.stop();
}

#[test]
fn a_text_is_checked_line_by_line() {
    let studio = start();
    let address = studio.local_address();
    let check = |name: &str, text: &str| {
        let answer = post(address, "/api/check", &json!({ "name": name, "text": text }));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["problems"].clone()
    };
    assert_eq!(check("x.fio", "[one]\nrw=write\n"), json!([]));
    let problems = check("x.fio", "[one]\nrw=write\nbs=much\n");
    assert_eq!(problems[0]["line"], json!(3));
    assert!(problems[0]["message"].as_str().is_some_and(|message| message.starts_with("in bs=much")), "{problems}");
    assert_eq!(check("x.toml", "kind = \n")[0]["line"], json!(1));
    studio.stop();
}

#[test]
fn a_session_from_its_beginning_to_its_end() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &order());
    let sessions = get(address, "/api/sessions").json();
    assert_eq!(sessions[0]["id"], id.as_str());
    assert_eq!((&sessions[0]["lanes"], &sessions[0]["phase"]), (&json!(2), &json!("waiting")));
    let again = get(address, &format!("/api/sessions/{id}/order")).json();
    assert_eq!(again["lanes"][1]["variants"], json!(["NoFDP", "80/20"]));
    assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{id}"), b"").status, 204);
    assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{id}"), b"").status, 404);
    assert_eq!(get(address, "/api/sessions").json(), json!([]));
    studio.stop();
}

/// The studio uses half of 20 GiB of free memory. Sessions do not reserve memory for future
/// checkpoints.
#[test]
fn twelve_sessions_of_an_experiment_as_it_is_begin() {
    let options = StudioOptions { memory_bytes: 10 << 30, ..options() };
    let studio = Studio::start(options).expect("a port");
    let address = studio.local_address();
    let lanes = ["FDP", "Mixed", "NoFDP"].map(|name| json!({ "name": name, "variants": [name, "zipf 2.2"] }));
    let order = json!({ "experiment": "three_stream", "device": "ssd_a", "lanes": lanes });
    for _ in 0..12 {
        begin(address, &order);
    }
    studio.stop();
}

#[test]
fn a_session_has_a_name_which_can_be_changed() {
    let studio = start();
    let address = studio.local_address();
    let names = || -> Vec<String> {
        let sessions = get(address, "/api/sessions").json();
        let sessions = sessions.as_array().expect("a list").iter();
        sessions.map(|session| session["name"].as_str().expect("a name").to_string()).collect()
    };
    let id = begin(address, &order());
    begin(address, &order());
    let mut named = order();
    named["name"] = json!("more room");
    let other = begin(address, &named);
    let known = "three_stream on ssd_a: FDP, NoFDP";
    assert_eq!(names(), [known, &format!("{known} (2)"), "more room"]);
    let order_of = |id: &str| get(address, &format!("/api/sessions/{id}/order")).json();
    assert_eq!(order_of(&id)["name"], Value::Null, "only what was given is in a link");
    assert_eq!(order_of(&other)["name"], "more room");

    let mut page = Socket::open(address, &format!("/api/sessions/{id}/live"));
    let rename = |id: &str, body: &Value| post(address, &format!("/api/sessions/{id}/name"), body);
    assert_eq!(page.text("session")["name"], known);
    assert_eq!(rename(&id, &json!({ "name": "before" })).status, 204);
    page.wait("its name", |message| match message {
        Message::Text(text) if text["name"] == "before" => Some(()),
        _ => None,
    });
    assert_eq!(names()[0], "before");
    assert_eq!(order_of(&id)["name"], "before");
    for (name, says) in [
        (json!({ "name": "" }), "name: \"\" is not a valid name"),
        (json!({ "name": "x".repeat(81) }), "1 to 80 bytes"),
        (json!({ "name": "a\nb" }), "1 to 80 bytes"),
        (json!({ "title": "x" }), "unknown field"),
    ] {
        let answer = rename(&id, &name);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.error().contains(says), "{}", answer.error());
        let mut order = order();
        order["name"] = name["name"].clone();
        if !name["name"].is_null() {
            assert_eq!(post(address, "/api/sessions", &order).status, 400);
        }
    }
    assert_eq!(rename("s99", &json!({ "name": "x" })).status, 404);
    studio.stop();
}

#[test]
fn a_workload_may_be_sent_as_text() {
    let studio = start();
    let address = studio.local_address();
    let lanes = json!([{ "name": "a" }, { "name": "b", "set": { "workload.hot.rw": "write" } }]);
    let fio = json!({
        "workload": { "name": "mine.fio", "text": "[hot]\nrw=randwrite\nbs=4k\nsize=50%\n" },
        "device": "ssd_a", "scale": "1/2048", "drive_writes": 0.1, "lanes": lanes,
    });
    begin(address, &fio);
    let writes: String = (0..1000).map(|line| format!("/dev/nvme0n1 write {} 4096\n", line * 4096)).collect();
    let trace = format!("fio version 2 iolog\n/dev/nvme0n1 add\n/dev/nvme0n1 open\n{writes}/dev/nvme0n1 close\n");
    let trace = json!({
        "workload": { "name": "mine.log", "text": trace }, "device": "ssd_a", "scale": "1/2048", "drive_writes": 0.1, "lanes": [{ "name": "a" }],
    });
    let answer = post(address, "/api/sessions", &trace);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let wrong = json!({
        "workload": { "name": "mine.log", "text": "this is no trace\n" }, "device": "ssd_a", "scale": "1/2048", "drive_writes": 0.1, "lanes": [{ "name": "a" }],
    });
    let answer = post(address, "/api/sessions", &wrong);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(!answer.error().contains("/warp-studio-"), "the place is nobody's business: {}", answer.error());
    studio.stop();
}

#[test]
fn refusals_have_a_status_and_a_sentence() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let unmeasured = format!("/api/sessions/{id}/export/nothing.txt");
    for (method, path, status, says) in [
        ("GET", "/api", 404, "nothing at this address"),
        ("GET", "/api/nothing", 404, "nothing at this address"),
        ("GET", "/nothing", 404, "nothing at this address"),
        ("POST", "/", 404, "nothing at this address"),
        ("GET", "/../../etc/passwd", 404, "nothing at this address"),
        ("GET", "/api/text/jobs/nothing", 404, "there is no workload nothing"),
        ("GET", "/api/text/jobs/..%2F..%2Fetc", 404, "there is no workload"),
        ("GET", "/api/text/secrets/x", 404, "no texts of this kind"),
        ("GET", "/api/sessions/s99/order", 404, "there is no session s99"),
        ("GET", "/api/sessions/1/order", 404, "there is no session 1"),
        ("GET", "/api/sessions/s01/order", 404, "there is no session s01"),
        ("GET", &unmeasured, 404, "report.html, result.json"),
        ("GET", "/api/drive", 404, "no drive to monitor"),
        ("GET", "/api/check", 405, "POST"),
        ("GET", "/api/compare/none/none", 400, "run none: there is no such run"),
        ("GET", "/api/compare/none", 404, "nothing at this address"),
        ("POST", "/api/catalogue", 405, "GET"),
        ("PUT", "/api/about", 405, "Use GET"),
        ("POST", "/api/check", 400, "check: EOF"),
        ("POST", "/api/sessions", 400, "order: EOF"),
    ] {
        let answer = ask(address, method, path, b"");
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert!(answer.error().contains(says), "{method} {path}: {}", answer.error());
    }
    studio.stop();
}

#[test]
fn answers_are_guarded_compressed_and_never_kept() {
    let studio = start();
    let address = studio.local_address();
    let answer = get(address, "/api/about");
    for field in
        ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "cache-control: no-store"]
    {
        assert!(answer.head.contains(field), "{field}: {}", answer.head);
    }
    // HTTP/1.0 has no chunks, so the body comes without encoding.
    let request = format!("GET /api/catalogue HTTP/1.0\r\nHost: {address}\r\nAccept-Encoding: br, gzip\r\n\r\n");
    let compressed = common::parse(&raw(address, request.as_bytes()));
    assert!(compressed.head.contains("content-encoding: gzip"), "{}", compressed.head);
    assert_eq!(compressed.body[..2], [0x1f, 0x8b]);
    assert!(compressed.body.len() * 2 < get(address, "/api/catalogue").body.len());
    let page = get(address, "/");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("text/html"), "{}", page.head);
    let head = format!("HEAD / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert!(common::parse(&raw(address, head.as_bytes())).body.is_empty());
    studio.stop();
}
