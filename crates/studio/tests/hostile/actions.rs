//! Actions on a drive: the token, bounded inputs, and the rate.

use std::time::Instant;

use serde_json::{Value, json};
use studio::ACTIONS_A_SECOND;

use crate::served::{Served, TOKEN};

/// Actions that need the token of the served drive.
const ACTIONS: [(&str, &str); 4] =
    [("POST", "snapshot"), ("POST", "reset-statistics"), ("POST", "faults"), ("DELETE", "faults")];

/// Fault plan with a visible effect.
const PLAN: &str = "[[fault]]\nkind = \"degraded\"\n";

#[test]
fn nobody_acts_on_a_drive_without_a_token() {
    let served = Served::start(true, None);
    served.write(0, 10);
    assert_eq!(served.ask("GET", "/api/about", "").json()["actions"], false);
    for (method, action) in ACTIONS {
        let answer = served.ask(method, &format!("/api/drive/{action}"), &Served::plan(PLAN));
        assert_eq!(answer.status, 403, "{method} {action}");
        assert!(answer.error().contains("--studio-token FILE"), "{}", answer.error());
    }
    // Clients without the token may monitor the drive, and receive the fault plan.
    assert_eq!(served.faults(), Value::Null);
    assert!(!served.file(".ftl").exists(), "no checkpoint was made");
    assert_eq!(served.ask("GET", "/api/drive", "").json()["lanes"][0]["since_unix_ms"], Value::Null);
    served.stop();

    let served = Served::start(true, Some(TOKEN));
    served.write(0, 10);
    let wrong = [String::new(), format!("Authorization: Bearer {TOKEN}x\r\n"), format!("Cookie: token={TOKEN}\r\n")];
    // Another site needs the token like all clients. No cookie contains it, so a browser cannot
    // send it by itself.
    let foreign =
        ["http://evil.example", "null"].map(|origin| format!("Cookie: token={TOKEN}\r\nOrigin: {origin}\r\n"));
    for (method, action) in ACTIONS.into_iter().chain([("GET", "faults")]) {
        let path = format!("/api/drive/{action}");
        for fields in &wrong {
            let answer = served.ask_with(method, &path, &Served::plan(PLAN), fields);
            assert_eq!(answer.status, 401, "{method} {action} {fields}");
        }
        for fields in &foreign {
            let answer = served.ask_with(method, &path, &Served::plan(PLAN), fields);
            assert!([401, 403].contains(&answer.status), "{method} {action} {fields}: {}", answer.status);
        }
        let in_address = format!("{path}?token={TOKEN}");
        assert_eq!(served.ask_with(method, &in_address, "", "").status, 401, "{method} {action}");
    }
    assert_eq!(served.faults(), Value::Null);
    assert!(!served.file(".ftl").exists(), "no checkpoint was made");
    served.stop();
}

#[test]
fn what_is_sent_with_an_action_is_bounded_and_names_no_file() {
    let served = Served::start(true, Some(TOKEN));
    served.write(0, 10);
    let elsewhere = served.folder.path().join("elsewhere");
    let body = json!({ "path": elsewhere, "file": elsewhere, "data": elsewhere }).to_string();
    assert_eq!(served.act("POST", "snapshot", &body).status, 200);
    assert_eq!(served.act("POST", &format!("snapshot?path={}", elsewhere.display()), "").status, 200);
    assert!(!elsewhere.exists() && served.file(".ftl").exists());
    assert_eq!(served.act("POST", "faults", &Served::plan(PLAN)).status, 200);
    let deep = format!("seed = {}1{}", "[".repeat(30_000), "]".repeat(30_000));
    for (what, body) in [
        ("nothing", String::new()),
        ("no JSON", "{".to_string()),
        ("no plan", "{}".to_string()),
        ("another field", json!({ "text": PLAN, "file": "/etc/passwd" }).to_string()),
        ("a number", json!({ "text": 1 }).to_string()),
        ("deep JSON", "[".repeat(500_000)),
        ("deep TOML", Served::plan(&deep)),
        ("too long", Served::plan(&"#".repeat((64 << 10) + 1))),
        ("too many", Served::plan(&PLAN.repeat(65))),
        ("no end", Served::plan("[[fault]]\nkind = \"delay\"\ndelay_ms = 1e300\n")),
    ] {
        let answer = served.act("POST", "faults", &body);
        assert_eq!(answer.status, 400, "{what}: {}", answer.text());
        assert!(answer.error().len() < 1000, "{what}: {}", answer.error());
    }
    let answer = served.act("POST", "faults", &"x".repeat((1 << 20) + 1));
    assert_eq!(answer.status, 413);
    let report = served.faults();
    assert_eq!(report["faults"][0]["kind"], "degraded", "what was planned before goes on");
    assert_eq!(served.act("POST", "faults", &Served::plan(&PLAN.repeat(64))).status, 200);
    served.stop();
}

#[test]
fn actions_have_a_pace_and_hosts_go_on() {
    let served = Served::start(true, Some(TOKEN));
    let begun = Instant::now();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let served = &served;
            let (method, action) = ACTIONS[number % ACTIONS.len()];
            scope.spawn(move || {
                let path = format!("/api/drive/{action}");
                let ask = || served.ask(method, &path, &Served::plan(PLAN)).status;
                (0..20).map(|_| ask()).collect::<Vec<u16>>()
            })
        };
        let askers: Vec<_> = (0..8).map(ask).collect();
        let mut page = 0;
        while askers.iter().any(|asker| !asker.is_finished()) {
            served.write(page % 1000, 1);
            page += 1;
        }
        assert!(page > 0, "hosts are still served");
        askers.into_iter().flat_map(|asker| asker.join().expect("it is answered")).collect()
    });
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let count = |status: u16| statuses.iter().filter(|one| **one == status).count();
    // A checkpoint in progress refuses another one.
    assert_eq!(count(200) + count(409) + count(429), statuses.len(), "{statuses:?}");
    assert!(count(200) > 0 && count(429) > 0, "{statuses:?}");
    assert!(count(200) + count(409) <= ACTIONS_A_SECOND * (seconds + 1), "{seconds} s: {statuses:?}");
    assert_eq!(served.act("DELETE", "faults", "").status, 200, "and then there are some again");
    served.stop();
}
