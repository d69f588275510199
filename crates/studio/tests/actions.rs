//! Actions on a served drive: their effects, their answers, and the state that they do not change.

mod common;
#[path = "common/served.rs"]
mod served;

use common::{Head, Message, Socket};
use nvme::{ControllerKind, HostIdentity, HostTransport};
use nvme_spec::Status;
use nvme_spec::register::{Cc, Property};
use serde_json::{Value, json};
use served::{PAGE_BYTES, Served, TOKEN};

/// Connects a page of the drive.
fn page(served: &Served) -> Socket {
    let more = served.bearer().replace("Authorization: Bearer ", "Sec-WebSocket-Protocol: warp.token.");
    use base64::Engine as _;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(TOKEN);
    let socket = Socket::open_with(served.address(), "/api/drive/live", &more.replace(TOKEN, &token));
    socket.unwrap_or_else(|answer| panic!("{}", answer.text()))
}

#[test]
fn a_snapshot_is_stored_beside_the_data_and_says_so() {
    let served = Served::start(true, Some(TOKEN));
    assert_eq!(served.ask("GET", "/api/about", "").json()["actions"], true);
    let names = |answer: &Value| -> Vec<(String, u64)> {
        let files = answer["files"].as_array().expect("files").iter();
        files
            .map(|file| {
                let name = file["name"].as_str().expect("a name").to_string();
                (name, file["bytes"].as_u64().expect("bytes"))
            })
            .collect()
    };
    let length = |ending: &str| std::fs::metadata(served.file(ending)).expect("it is there").len();
    // An unwritten drive has no snapshot and nothing to store.
    let answer = served.act("POST", "snapshot", "").json();
    assert_eq!(
        (&answer["written"], names(&answer)),
        (&json!(false), vec![("drive.img.state".to_string(), length(".state"))])
    );
    served.write(0, 100);
    let answer = served.act("POST", "snapshot", "").json();
    let files = vec![("drive.img.ftl".to_string(), length(".ftl")), ("drive.img.state".to_string(), length(".state"))];
    assert_eq!(answer["written"], json!(true));
    assert_eq!(names(&answer), files);
    let again = served.act("POST", "snapshot", "").json();
    assert_eq!((&again["written"], &again["files"]), (&json!(false), &answer["files"]), "nothing has changed");
    let stored = ssd::Device::load(&served.file(".ftl")).expect("it can be read");
    assert_eq!(stored.stats().host_bytes_written(), 100 * PAGE_BYTES);
    served.stop();
}

fn holds_data(head: &Head) -> bool {
    head.owners.iter().any(|[.., valid]| *valid > 0)
}

#[test]
fn statistics_are_counted_anew_for_all_pages_and_nowhere_else() {
    let served = Served::start(false, Some(TOKEN));
    for round in 0..40 {
        served.write(64 * (round * 7 % 200), 64);
    }
    let mut pages = [page(&served), page(&served)];
    let written = 40 * 64 * PAGE_BYTES;
    for page in &mut pages {
        assert_eq!(page.text("session")["lanes"][0]["since_unix_ms"], Value::Null);
        // The scan of the units may follow the counters.
        page.frame_of(0, "what was written", |head| head.host_bytes == written && holds_data(head));
    }
    let before = served.server.status();
    let since = served.act("POST", "reset-statistics", "").json()["since_unix_ms"].clone();
    assert!(since.as_u64().is_some_and(|ms| ms > 1_700_000_000_000), "{since}");
    let whole = |head: &Head| head.is_whole && head.host_bytes == 0;
    for page in &mut pages {
        assert_eq!(page.text("session")["lanes"][0]["since_unix_ms"], since);
        let head = page.frame_of(0, "the beginning", whole);
        assert_eq!((head.media_bytes, head.requests), (0, 0));
        assert!(head.owners.iter().all(|[host, out, received, _]| host + out + received == 0));
        assert!(holds_data(&head), "the drive holds what it held");
        assert!(!head.units.is_empty(), "{head:?}");
        assert_eq!(head.samples, [(0, 0)]);
    }
    let now = served.server.status();
    assert_eq!(now.stats, before.stats, "the drive's own counters know nothing of it");
    served.write(0, 32);
    let other = page(&served);
    for mut page in pages.into_iter().chain([other]) {
        let head = page.frame_of(0, "what was written since", |head| head.host_bytes > 0);
        assert_eq!((head.host_bytes, head.requests), (32 * PAGE_BYTES, 1));
    }
    assert_eq!(served.server.status().stats.host_bytes_written(), written + 32 * PAGE_BYTES);
    assert_eq!(served.ask("GET", "/api/drive", "").json()["lanes"][0]["since_unix_ms"], since);
    served.stop();
}

/// A page that received many events also receives the events after a reset of the statistics.
#[test]
fn events_go_on_after_statistics_were_reset() {
    let served = Served::start(false, Some(TOKEN));
    let mut page = page(&served);
    page.text("session");
    // Each opened and closed unit causes an event.
    (0..100).for_each(|round| served.write(128 * (round % 100), 128));
    page.frame_of(0, "events", |head| head.events > 0);
    served.act("POST", "reset-statistics", "");
    page.frame_of(0, "the beginning", |head| head.is_whole && head.host_bytes == 0);
    (0..20).for_each(|round| served.write(128 * round, 128));
    page.frame_of(0, "events again", |head| head.events > 0);
    served.stop();
}

/// Waits until the page receives periods with unobserved writes, and returns them.
fn unwatched(page: &mut Socket) -> Vec<Value> {
    page.wait("what was not watched", |message| match message {
        Message::Text(text) if text["type"] == "session" => {
            let told = text["lanes"][0]["unwatched"].as_array().expect("a list").clone();
            (!told.is_empty()).then_some(told)
        }
        _ => None,
    })
}

#[test]
fn a_page_that_comes_late_is_told_what_was_written_before() {
    let served = Served::start(false, None);
    // More events than a page receives at a time.
    (0..1000).for_each(|round| served.write(128 * (round % 100), 128));
    let written = 1000 * 128 * PAGE_BYTES;
    let part = written / 10;
    let mut first = page(&served);
    let told = unwatched(&mut first);
    let number = |of: &Value, key: &str| of[key].as_u64().expect("a number");
    assert_eq!((number(&told[0], "from_host_bytes"), number(&told[0], "to_host_bytes")), (0, written));
    let stats = served.server.status().stats;
    assert_eq!(number(&told[0], "media_bytes"), stats.media_bytes_written());
    assert!(number(&told[0], "until_unix_ms") > 1_700_000_000_000);
    // Curves begin at the first connection, and no event was left out.
    let head = first.frame_of(0, "what was written", |head| head.host_bytes == written);
    assert_eq!(head.left_out, 0);

    // Writes during a connection are in no gap. Later writes are, no matter when the server notices
    // the disconnection.
    (0..100).for_each(|round| served.write(128 * round, 128));
    first.frame_of(0, "what was written", |head| head.host_bytes == written + part);
    drop(first);
    let begun = std::time::Instant::now();
    let told = loop {
        std::thread::sleep(std::time::Duration::from_millis(300));
        (0..100).for_each(|round| served.write(128 * round, 128));
        let mut later = page(&served);
        later.frame_of(0, "a look", |_| true);
        let told = served.ask("GET", "/api/drive", "").json()["lanes"][0]["unwatched"].clone();
        let told = told.as_array().expect("a list").clone();
        if told.len() > 1 {
            break told;
        }
        assert!(begun.elapsed() < common::PATIENCE, "{told:?}");
    };
    assert_eq!(number(&told[0], "to_host_bytes"), written);
    assert!(number(&told[1], "from_host_bytes") >= written + part, "{told:?}");
    assert!(number(&told[1], "to_host_bytes") > number(&told[1], "from_host_bytes"));
    served.stop();
}

/// The socket for a guest has a controller even without a guest.
#[test]
fn a_controller_that_no_guest_has_enabled_is_no_host() {
    let served = Served::start(false, None);
    let guest = {
        let mut subsystem = target::lock(served.server.shared());
        let now = served.host.clock.now();
        let guest = subsystem.connect(now, HostTransport::Pcie, ControllerKind::Io, HostIdentity::default());
        guest.expect("a controller")
    };
    let enable = |is_enabled: bool| {
        let cc = Cc::new().with_en(is_enabled).with_iosqes(6).with_iocqes(4);
        let now = served.host.clock.now();
        target::lock(served.server.shared()).property_set(now, guest, Property::Cc, u64::from(cc.into_bits()));
    };
    let mut page = page(&served);
    let mut hosts = |transports: &[&str]| {
        page.wait("its hosts", |message| match message {
            Message::Text(text) if text["type"] == "hosts" => {
                let hosts = text["hosts"].as_array().expect("a list").iter();
                hosts.map(|host| host["transport"].as_str()).eq(transports.iter().copied().map(Some)).then_some(())
            }
            _ => None,
        });
    };
    // The tests' own host has no transport, so it is not listed either.
    hosts(&[]);
    enable(true);
    hosts(&["vfio-user"]);
    enable(false);
    hosts(&[]);
    served.stop();
}

#[test]
fn a_plan_of_faults_reaches_hosts_and_is_counted() {
    let served = Served::start(true, Some(TOKEN));
    assert_eq!(served.faults(), Value::Null);
    let plan = "seed = 9\n[[fault]]\nname = \"no reads\"\nkind = \"error\"\ncommands = [\"read\"]\ntimes = 2\n";
    let answer = served.act("POST", "faults", &Served::plan(plan)).json();
    assert_eq!(answer["faults"]["seed"], 9);
    assert_eq!(
        answer["faults"]["faults"],
        json!([{ "name": "no reads", "kind": "error", "active": true, "struck": 0 }])
    );
    served.write(0, 1);
    for _ in 0..2 {
        assert_eq!(served.host.read(0, 1, PAGE_BYTES), Err(Status::UNRECOVERED_READ_ERROR));
    }
    assert!(served.host.read(0, 1, PAGE_BYTES).is_ok());
    assert_eq!((&served.faults()["faults"][0]["struck"], &served.faults()["commands"]), (&json!(2), &json!(4)));
    let mut page = page(&served);
    // The hosts message changes once a second, so the first one may be older.
    let told = page.wait("its faults", |message| match message {
        Message::Text(text) if text["type"] == "hosts" => Some(text["faults"].clone()).filter(|told| !told.is_null()),
        _ => None,
    });
    assert_eq!(told, served.faults(), "pages receive the same");
    // The answer names the line of the error, and nothing changes.
    let wrong = format!("{plan}\n[[fault]]\nkind = \"eror\"\n");
    let answer = served.act("POST", "faults", &Served::plan(&wrong));
    assert_eq!((answer.status, &answer.json()["line"]), (400, &json!(8)));
    assert!(answer.error().starts_with("line 8: in fault 2"), "{}", answer.error());
    let check = json!({ "name": "faults.toml", "text": wrong, "kind": "faults" }).to_string();
    let problems = served.ask("POST", "/api/check", &check).json()["problems"].clone();
    assert_eq!((&problems[0]["line"], problems.as_array().map(Vec::len)), (&json!(8), Some(1)));
    assert_eq!(served.faults()["faults"][0]["struck"], 2);
    assert_eq!(served.act("DELETE", "faults", "").json()["faults"], Value::Null);
    assert_eq!(served.faults(), Value::Null);
    served.stop();
}

#[test]
fn what_a_drive_cannot_do_is_said_with_what_to_do() {
    let served = Served::start(false, Some(TOKEN));
    let answer = served.act("POST", "snapshot", "");
    assert_eq!(answer.status, 409);
    assert!(answer.error().contains("Serve it with --data FILE"), "{}", answer.error());
    let answer = served.act("POST", "faults", &Served::plan("[[fault]]\nkind = \"power_loss\"\n"));
    assert_eq!((answer.status, &answer.json()["line"]), (400, &Value::Null));
    assert!(answer.error().contains("--data FILE"), "{}", answer.error());
    for (method, action, status) in [
        ("GET", "snapshot", 405),
        ("DELETE", "reset-statistics", 405),
        ("POST", "nothing", 404),
        ("GET", "faults/x", 404),
    ] {
        assert_eq!(served.act(method, action, "").status, status, "{method} {action}");
    }
    served.stop();
}
