//! Requests, sessions and connections that exceed a bound.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use studio::{SESSIONS_MAX, Studio, StudioOptions};
use target::http::CONNECTIONS_MAX;

use crate::common::{
    Message, PATIENCE, Socket, ask, begin, connect, get, lives, options, parse, post, raw, small_order, start,
    upgrade_head,
};

#[test]
fn bodies_are_bounded_in_size_and_time() {
    let studio = start();
    let address = studio.local_address();
    let answer = ask(address, "POST", "/api/check", &vec![b'x'; (1 << 20) + 1]);
    assert_eq!(answer.status, 413, "{}", answer.text());
    let largest = format!("{{\"name\":\"a.fio\",\"text\":\"{}\"}}", ";".repeat((1 << 20) - 26));
    assert_eq!(largest.len(), 1 << 20);
    assert_eq!(ask(address, "POST", "/api/check", largest.as_bytes()).status, 200);
    // A huge length, a missing body, and endless chunks.
    let mut silent = connect(address);
    let head = format!("POST /api/check HTTP/1.1\r\nHost: {address}\r\nContent-Length: 99999999999999\r\n\r\n");
    silent.write_all(head.as_bytes()).expect("it listens");
    let mut endless = connect(address);
    let head = format!("POST /api/check HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n");
    endless.write_all(head.as_bytes()).expect("it listens");
    let chunk = [b"1000\r\n".as_slice(), &[b'x'; 4096], b"\r\n"].concat();
    let sent = (0..10_000).take_while(|_| endless.write_all(&chunk).is_ok()).count();
    assert!(sent < 10_000, "it takes everything");
    lives(&studio);
    let begun = Instant::now();
    let mut answer = Vec::new();
    silent.read_to_end(&mut answer).expect("it is answered");
    assert_eq!(parse(&answer).status, 408);
    assert!(begun.elapsed() < Duration::from_secs(30));
    studio.stop();
}

#[test]
fn heads_are_bounded_in_size_and_time() {
    let studio = start();
    let address = studio.local_address();
    let long = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "x".repeat(9000));
    assert!(!raw(address, long.as_bytes()).starts_with(b"HTTP/1.1 200"));
    let many = format!("GET /api/about HTTP/1.1\r\nHost: {address}\r\n{}\r\n", "A: b\r\n".repeat(100));
    assert!(!raw(address, many.as_bytes()).starts_with(b"HTTP/1.1 200"));
    // A head that arrives at one byte per second.
    let mut slow = connect(address);
    let begun = Instant::now();
    let head = b"GET /api/about HTTP/1.1\r\n";
    for byte in head.iter().cycle() {
        if slow.write_all(&[*byte]).is_err() || begun.elapsed() > PATIENCE {
            break;
        }
        lives(&studio);
        std::thread::sleep(Duration::from_millis(400));
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "it waits for ever");
    studio.stop();
}

#[test]
fn what_is_no_json_and_what_is_deep_is_refused() {
    let studio = start();
    let address = studio.local_address();
    let deep = "[".repeat(900_000);
    let deep_toml = format!("kind = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let wide: Value = json!({ "lanes": [{ "name": "a", "set": (0..100).map(|n| (format!("gc.{n}"), json!(n))).collect::<serde_json::Map<_, _>>() }] });
    for path in ["/api/sessions", "/api/check"] {
        for body in [
            &b"\xff\xfe{}"[..],
            b"{",
            b"null",
            b"[]",
            b"{\"name\":\"\xff\"}",
            deep.as_bytes(),
            wide.to_string().as_bytes(),
            b"{\"name\":1}",
        ] {
            let answer = ask(address, "POST", path, body);
            assert_eq!(answer.status, 400, "{path}: {}", answer.text());
            assert!(answer.error().len() < 1000, "{}", answer.error());
        }
    }
    let check = |name: &str, text: &str| post(address, "/api/check", &json!({ "name": name, "text": text }));
    assert_eq!(check("a.toml", &deep_toml).status, 200);
    assert_eq!(check("a.fio", &"[a]\nrw=wrote\n".repeat(50_000)).status, 200);
    assert_eq!(check("a.fio", "[a]\nnumjobs=999999999\nsize=1\n").status, 200);
    lives(&studio);
    studio.stop();
}

#[test]
fn sessions_lanes_and_connections_have_an_end() {
    let studio = start();
    let address = studio.local_address();
    let ids: Vec<String> = (0..SESSIONS_MAX).map(|_| begin(address, &small_order())).collect();
    let answer = post(address, "/api/sessions", &small_order());
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{}", ids[0]), b"").status, 204);
    let begun = Instant::now();
    while post(address, "/api/sessions", &small_order()).status != 201 {
        assert!(begun.elapsed() < PATIENCE, "its place does not come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    let path = format!("/api/sessions/{}/live", ids[1]);
    let mut page = Socket::open(address, &path);
    for fork in 0..9 {
        page.send(&json!({ "do": "fork", "lane": 0, "name": format!("fork {fork}") }));
    }
    let error = page.text("error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("at most 8 lanes")), "{error}");
    drop(page);
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(address)).collect();
    // The oldest connections are closed.
    let closed = silent.iter().take(200 - CONNECTIONS_MAX).filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        let mut stream: &TcpStream = stream;
        matches!(stream.read(&mut [0]), Ok(0)) || stream.peek(&mut [0]).is_err()
    });
    assert!(closed.count() >= 100, "they are let in");
    drop(silent);
    lives(&studio);
    studio.stop();
}

#[test]
fn memory_for_sessions_has_an_end() {
    let studio = Studio::start(StudioOptions { memory_bytes: 64 << 20, ..options() }).expect("a port");
    let address = studio.local_address();
    let answers: Vec<u16> = (0..10).map(|_| post(address, "/api/sessions", &small_order()).status).collect();
    assert_eq!(answers[0], 201);
    assert_eq!(answers.last(), Some(&400), "{answers:?}");
    assert!(post(address, "/api/sessions", &small_order()).error().contains("smaller scaled model"));
    studio.stop();
}

/// Order of a job file on a large drive at full size.
fn order_of(jobs: &str) -> Value {
    json!({
        "workload": { "name": "a.fio", "text": jobs }, "device": "warp_default", "scale": "1/1", "drive_writes": 1.0, "seed": 1,
        "lanes": [{ "name": "a", "set": { "geometry.capacity_bytes": "2TiB" } }],
    })
}

/// A few bytes of input that would use all memory of the machine, and thus kill a served drive.
#[test]
fn workloads_that_take_too_much_are_refused_before_they_are_built() {
    let studio = start();
    let address = studio.local_address();
    let sections = "[a]\n".repeat(100_000);
    let inherited = format!("[global]\nfilename={}\n{}", "x".repeat(8000), "[a]\n".repeat(4000));
    let zipf: String =
        (0..1000).map(|theta| format!("[{theta}]\nrw=randwrite\nrandom_distribution=zipf:1.{theta:04}1\n")).collect();
    for (jobs, says) in [
        ("[a]\nrw=randwrite\nbsrange=1-64k\n", "memory"),
        ("[a]\nrw=randwrite\nbsrange=1-256m\n", "norandommap"),
        ("[a]\nrw=randwrite\nverify=crc32c\nnorandommap\nbs=512\n", "memory"),
        ("[a]\nfdp=1\nplids=0-65535,0-65535,0-65535\n", "at most 128"),
        (sections.as_str(), "4096 jobs"),
        (inherited.as_str(), "inherit"),
        (zipf.as_str(), "same theta"),
    ] {
        let answer = post(address, "/api/sessions", &order_of(jobs));
        assert_eq!(answer.status, 400, "{}: {}", &jobs[..jobs.len().min(60)], answer.text());
        assert!(answer.error().contains(says), "{says}: {}", answer.error());
        lives(&studio);
    }
    studio.stop();
}

/// Building the distributions takes seconds. The server answers other clients in the meantime.
#[test]
fn an_order_that_takes_long_to_build_holds_nobody_up() {
    let studio = start();
    let address = studio.local_address();
    let zipf: String =
        (0..25).map(|theta| format!("[{theta}]\nrw=randwrite\nrandom_distribution=zipf:1.{theta:04}7\n")).collect();
    let mut order = order_of(&zipf);
    order["lanes"][0]["set"] = json!({ "geometry.capacity_bytes": "512GiB" });
    order["scale"] = json!("1/128");
    std::thread::scope(|scope| {
        let long = scope.spawn(|| post(address, "/api/sessions", &order).status);
        let mut answered = 0;
        while !long.is_finished() {
            let id = begin(address, &small_order());
            answered += u32::from(!long.is_finished());
            assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{id}"), b"").status, 204);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(long.join().expect("it is answered"), 201);
        assert!(answered > 0, "nobody was answered before it");
    });
    studio.stop();
}

/// Requests have gibibytes. An ended session releases its memory at any point of its work.
#[test]
fn a_session_of_large_requests_ends_when_it_is_ended() {
    let studio = start();
    let address = studio.local_address();
    for rw in ["write", "randwrite", "randtrim", "rw"] {
        let jobs = format!("[a]\nrw={rw}\nbsrange=1g-3g\nnorandommap\nruntime=1d\ntime_based\niodepth=64\n");
        let order = json!({
            "workload": { "name": "a.fio", "text": jobs }, "device": "warp_default", "scale": "1/8", "drive_writes": 1000.0,
            "seed": 1, "lanes": [{ "name": "a" }],
        });
        let id = begin(address, &order);
        let mut page = Socket::open(address, &format!("/api/sessions/{id}/live"));
        page.send(&json!({ "do": "play" }));
        page.frame_of(0, "it runs", |head| head.phase == 2);
        assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{id}"), b"").status, 204);
        page.wait("it says that it is over", |message| match message {
            Message::Closed(..) => Some(()),
            _ => None,
        });
    }
    studio.stop();
}

#[test]
fn what_is_no_websocket_is_refused() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let path = format!("/api/sessions/{id}/live");
    assert_eq!(Socket::open_with(address, "/api/sessions/s99/live", "").err().expect("none").status, 404);
    assert_eq!(Socket::open_with(address, "/api/about", "").err().expect("none").status, 404);
    let wrong = [
        upgrade_head(address, &path, "").replace("Version: 13", "Version: 8"),
        upgrade_head(address, &path, "").replace("Sec-WebSocket-Key", "X-Key"),
        upgrade_head(address, &path, "").replace("GET", "POST"),
        upgrade_head(address, &path, "").replace("Connection: Upgrade", "Connection: close"),
    ];
    for head in wrong {
        let answer = parse(&raw(address, head.as_bytes()));
        assert!((400..500).contains(&answer.status), "{head}: {}", answer.text());
    }
    lives(&studio);
    studio.stop();
}

/// Returns the close code of a connection after these bytes.
fn end_of(studio: &Studio, path: &str, bytes: &[u8]) -> Option<u16> {
    let mut page = Socket::open(studio.local_address(), path);
    let _ = page.stream.write_all(bytes);
    loop {
        match page.next()? {
            Message::Closed(code, _) => return Some(code),
            Message::Text(_) | Message::Frame(_) => {}
        }
    }
}

#[test]
fn messages_are_bounded_whole_or_in_parts() {
    let studio = start();
    let id = begin(studio.local_address(), &small_order());
    let path = format!("/api/sessions/{id}/live");
    let large = vec![b'x'; (64 << 10) + 1];
    assert_eq!(end_of(&studio, &path, &Socket::frame(0x81, &large)), Some(1009), "too large");
    let announced = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    assert_ne!(end_of(&studio, &path, &announced), Some(1000), "a length that nobody has");
    let parts: Vec<u8> = [Socket::frame(0x01, &[b'x'; 60_000]), Socket::frame(0x00, &[b'x'; 60_000])].concat();
    assert_eq!(end_of(&studio, &path, &parts), Some(1009), "too large in parts");
    assert_eq!(end_of(&studio, &path, &Socket::frame(0x82, b"bytes")), Some(1003), "a page does not send bytes");
    // Invalid frames: unmasked, with an unknown opcode, a continuation without a start, and invalid
    // UTF-8.
    for broken in
        [&[0x81, 0x01, b'x'][..], &Socket::frame(0x83, b"x"), &Socket::frame(0x80, b"x"), &Socket::frame(0x81, b"\xff")]
    {
        end_of(&studio, &path, broken);
    }
    // An endless sequence of empty fragments must not block the studio.
    let mut page = Socket::open(studio.local_address(), &path);
    page.stream.write_all(&Socket::frame(0x01, b"")).expect("it listens");
    let nothing = Socket::frame(0x00, b"").repeat(10_000);
    for _ in 0..50 {
        if page.stream.write_all(&nothing).is_err() {
            break;
        }
    }
    lives(&studio);
    studio.stop();
}

#[test]
fn it_stops_at_once_whoever_is_there() {
    let studio = start();
    let address = studio.local_address();
    let mut order = small_order();
    order["drive_writes"] = json!(40.0);
    let id = begin(address, &order);
    let path = format!("/api/sessions/{id}/live");
    let mut pages: Vec<Socket> = (0..10).map(|_| Socket::open(address, &path)).collect();
    pages[0].send(&json!({ "do": "play" }));
    for page in &mut pages {
        page.frame_of(0, "it runs", |head| head.host_bytes > 0);
    }
    let half = connect(address);
    let begun = Instant::now();
    studio.stop();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop((pages, half));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn a_session_that_is_ended_says_so_to_its_pages() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let mut page = Socket::open(address, &format!("/api/sessions/{id}/live"));
    page.text("session");
    assert_eq!(ask(address, "DELETE", &format!("/api/sessions/{id}"), b"").status, 204);
    let (code, reason) = page.wait("the end", |message| match message {
        Message::Closed(code, reason) => Some((*code, reason.clone())),
        _ => None,
    });
    assert_eq!((code, reason.as_str()), (1001, "the session has ended"));
    assert_eq!(get(address, &format!("/api/sessions/{id}/order")).status, 404);
    studio.stop();
}
