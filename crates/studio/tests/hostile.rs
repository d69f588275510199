//! Attacks: whoever reaches the studio must not end it, stall it, or have it take memory without bound.

mod common;
#[path = "common/served.rs"]
mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{
    Message, PATIENCE, Socket, ask, begin, connect, get, lives, options, parse, post, raw, small_order, start,
    upgrade_head,
};
use serde_json::{Value, json};
use served::{Served, TOKEN};
use studio::{ACTIONS_A_SECOND, SESSIONS_MAX, Studio, StudioOptions};
use target::http::CONNECTIONS_MAX;

#[test]
fn bodies_are_bounded_in_size_and_time() {
    let studio = start();
    let address = studio.local_address();
    let answer = ask(address, "POST", "/api/check", &vec![b'x'; (1 << 20) + 1]);
    assert_eq!(answer.status, 413, "{}", answer.text());
    let largest = format!("{{\"name\":\"a.fio\",\"text\":\"{}\"}}", ";".repeat((1 << 20) - 26));
    assert_eq!(largest.len(), 1 << 20);
    assert_eq!(ask(address, "POST", "/api/check", largest.as_bytes()).status, 200);
    // A length that nobody has, a body that does not come, chunks without an end.
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
    let many = format!(
        "GET /api/about HTTP/1.1\r\nHost: {address}\r\n{}\r\n",
        "A: b\r\n".repeat(100)
    );
    assert!(!raw(address, many.as_bytes()).starts_with(b"HTTP/1.1 200"));
    // A head that comes a byte a second.
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
fn other_sites_are_refused() {
    let studio = start();
    let address = studio.local_address();
    let id = begin(address, &small_order());
    let head = |method: &str, path: &str, host: &str, more: &str| {
        parse(&raw(
            address,
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n{more}\r\n{{}}").as_bytes(),
        ))
    };
    let port = address.port();
    let own = format!("127.0.0.1:{port}");
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
        "a@127.0.0.1",
        "10.0.0.1",
        "",
        "127.0.0.1\r\nHost: x",
    ] {
        for (method, path) in [("GET", "/"), ("GET", "/api/about"), ("POST", "/api/check")] {
            let answer = head(method, path, host, "");
            // Without a Host, or with two, it may be no HTTP at all.
            assert!(
                matches!(answer.status, 400 | 403),
                "{method} {path} {host:?}: {}",
                answer.text()
            );
        }
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "file://",
        "http://localhost",
    ] {
        let answer = head("POST", "/api/check", &own, &format!("Origin: {origin}\r\n"));
        assert_eq!(answer.status, 403, "{origin}: {}", answer.text());
        let more = format!("Origin: {origin}\r\n");
        let refused = Socket::open_with(address, &format!("/api/sessions/{id}/live"), &more)
            .err()
            .expect("no conversation");
        assert_eq!(refused.status, 403, "{origin}");
    }
    for host in [own.as_str(), &format!("localhost:{port}"), "[::1]", "127.0.0.1"] {
        let answer = head("GET", "/api/about", host, &format!("Origin: http://{host}\r\n"));
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    studio.stop();
}

#[test]
fn a_token_is_asked_for() {
    let (studio, token) = start_with_token();
    let address = studio.local_address();
    let with = |path: &str, more: &str| {
        parse(&raw(
            address,
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n").as_bytes(),
        ))
    };
    assert_eq!(
        with("/?token=anything", "").status,
        200,
        "the page itself holds nothing"
    );
    for more in [
        "",
        "Authorization: Bearer 0123456789abcdef/X\r\n",
        "Authorization: Basic 0123456789abcdef/+\r\n",
    ] {
        let answer = with("/api/about", more);
        assert_eq!(answer.status, 401, "{more}");
        assert!(answer.head.contains("www-authenticate: Bearer"), "{}", answer.head);
    }
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(with("/api/about", &bearer).status, 200);
    let body = small_order().to_string();
    let begun = raw(
        address,
        format!(
            "POST /api/sessions HTTP/1.1\r\nHost: {address}\r\n{bearer}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    let id = parse(&begun).json()["id"].as_str().expect("an id").to_string();
    let path = format!("/api/sessions/{id}/live");
    for wrong in [String::new(), protocol("0123456789abcdef/X")] {
        assert_eq!(
            Socket::open_with(address, &path, &wrong)
                .err()
                .expect("no conversation")
                .status,
            401
        );
    }
    let mut page =
        Socket::open_with(address, &path, &protocol(token)).unwrap_or_else(|answer| panic!("{}", answer.text()));
    page.text("session");
    studio.stop();
}

/// A token, and a studio that asks for it.
fn start_with_token() -> (Studio, &'static str) {
    const TOKEN: &str = "0123456789abcdef/+";
    let mut options = options();
    options.http.token = Some(TOKEN.to_string());
    (Studio::start(options).expect("a port"), TOKEN)
}

fn protocol(token: &str) -> String {
    use base64::Engine as _;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token);
    format!("Sec-WebSocket-Protocol: warp.token.{token}\r\n")
}

/// Fields of an answer that let a page of another site read it.
fn leave(head: &str) -> Vec<&str> {
    let fields = head.lines().map(str::trim);
    fields.filter(|line| line.starts_with("access-control-")).collect()
}

/// Origins of notebooks and of anybody else, who tells nobody from a notebook.
const ELSEWHERE: [&str; 5] = [
    "http://localhost:8888",
    "https://hub.example",
    "vscode-webview://0a1b2c",
    "null",
    "http://evil.example",
];

#[test]
fn another_site_reads_what_it_shows_the_token_for() {
    let (studio, token) = start_with_token();
    let address = studio.local_address();
    let say = |method: &str, path: &str, more: &str, body: &str| {
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{more}\r\n{body}");
        parse(&raw(address, head.as_bytes()))
    };
    for origin in ELSEWHERE {
        let right = format!("Origin: {origin}\r\nAuthorization: Bearer {token}\r\n");
        let answer = say("GET", "/api/about", &right, "");
        assert_eq!(
            (answer.status, leave(&answer.head)),
            (200, vec!["access-control-allow-origin: *"]),
            "{origin}"
        );
        let begun = say("POST", "/api/sessions", &right, &small_order().to_string());
        assert_eq!((begun.status, leave(&begun.head).len()), (201, 1), "{}", begun.text());
        let id = begun.json()["id"].as_str().expect("an id").to_string();
        // What is refused is read too: it says what there is to do.
        for (method, path, body, status) in [
            ("GET", "/api/sessions/s99/order", "", 404),
            ("POST", "/api/sessions", "{", 400),
            ("PUT", "/api/about", "", 405),
        ] {
            let answer = say(method, path, &right, body);
            assert_eq!(
                (answer.status, leave(&answer.head).len()),
                (status, 1),
                "{method} {path}"
            );
            answer.error();
        }
        let live = format!("/api/sessions/{id}/live");
        let more = format!("Origin: {origin}\r\n{}", protocol(token));
        let mut page = Socket::open_with(address, &live, &more).unwrap_or_else(|answer| panic!("{}", answer.text()));
        page.text("session");
        let ended = say("DELETE", &format!("/api/sessions/{id}"), &right, "");
        assert_eq!((ended.status, leave(&ended.head).len()), (204, 1));
    }
    studio.stop();
}

#[test]
fn another_site_without_the_token_reads_nothing() {
    let (studio, token) = start_with_token();
    let address = studio.local_address();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let body = small_order().to_string();
    let say = |method: &str, path: &str, more: &str| {
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{more}\r\n{body}");
        parse(&raw(address, head.as_bytes()))
    };
    let begun = say("POST", "/api/sessions", &bearer);
    let id = begun.json()["id"].as_str().expect("an id").to_string();
    let live = format!("/api/sessions/{id}/live");
    let wrong = [
        String::new(),
        "Authorization: Bearer 0123456789abcdef/X\r\n".to_string(),
        format!("Authorization: Bearer {token}x\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        "Authorization: Bearer \r\n".to_string(),
        // A cookie is sent along without the site's doing, so it is none. A protocol is one of WebSockets only.
        format!("Cookie: token={token}\r\n"),
        protocol(token),
    ];
    for origin in ELSEWHERE {
        for shown in &wrong {
            for (method, path) in [
                ("GET", "/"),
                ("GET", "/widget.js"),
                ("GET", "/api/about"),
                ("GET", "/api/about?token=0123456789abcdef/+"),
                ("POST", "/api/sessions"),
                ("DELETE", &format!("/api/sessions/{id}")),
            ] {
                let answer = say(method, path, &format!("Origin: {origin}\r\n{shown}"));
                assert_eq!(
                    (answer.status, leave(&answer.head)),
                    (403, vec![]),
                    "{origin} {shown:?} {method} {path}"
                );
                assert!(!answer.text().contains(token), "{}", answer.text());
            }
        }
        for shown in [
            "",
            &protocol("0123456789abcdef/X"),
            "Sec-WebSocket-Protocol: warp.token.!!!\r\n",
        ] {
            let more = format!("Origin: {origin}\r\n{shown}");
            let refused = Socket::open_with(address, &live, &more).err().expect("no conversation");
            assert_eq!(
                (refused.status, leave(&refused.head)),
                (403, vec![]),
                "{origin} {shown:?}"
            );
        }
    }
    let own = say("GET", &format!("/api/sessions/{id}/order"), &bearer);
    assert_eq!(
        (own.status, leave(&own.head)),
        (200, vec![]),
        "it was not ended, and its own page needs no leave"
    );
    studio.stop();
}

#[test]
fn a_preflight_gives_nothing_away() {
    let (studio, token) = start_with_token();
    let address = studio.local_address();
    let ask_leave = |path: &str, host: &str, more: &str| {
        let head =
            format!("OPTIONS {path} HTTP/1.1\r\nHost: {host}\r\nAccess-Control-Request-Method: POST\r\n{more}\r\n");
        parse(&raw(address, head.as_bytes()))
    };
    let own = address.to_string();
    let first = ask_leave("/api/sessions", &own, "Origin: http://localhost:8888\r\n");
    assert_eq!((first.status, first.body.len()), (204, 0));
    assert_eq!(
        leave(&first.head),
        [
            "access-control-allow-origin: *",
            "access-control-allow-methods: GET, POST, DELETE",
            "access-control-allow-headers: authorization, content-type",
            "access-control-max-age: 600",
        ],
        "and nothing of cookies"
    );
    let without_date = |head: &str| {
        head.lines()
            .filter(|line| !line.starts_with("date:"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    for origin in ELSEWHERE {
        for path in [
            "/api/sessions",
            "/api/sessions/s1/order",
            "/api/nothing",
            "/",
            "/../../etc/passwd",
        ] {
            for shown in [
                String::new(),
                format!("Authorization: Bearer {token}\r\n"),
                "Authorization: Bearer x\r\n".to_string(),
            ] {
                let answer = ask_leave(path, &own, &format!("Origin: {origin}\r\n{shown}"));
                assert_eq!(
                    without_date(&answer.head),
                    without_date(&first.head),
                    "{origin} {path} {shown}"
                );
            }
        }
    }
    // A name that leads here (DNS rebinding), two origins, none, no request that follows: no leave.
    for (host, more, status) in [
        ("evil.example", "Origin: http://evil.example\r\n", 403),
        ("evil.example", "Origin: http://localhost:8888\r\n", 403),
        (&own, "Origin: http://a.example\r\nOrigin: http://b.example\r\n", 403),
        (&own, "", 405),
    ] {
        let answer = ask_leave("/api/sessions", host, more);
        assert_eq!((answer.status, leave(&answer.head)), (status, vec![]), "{host} {more}");
    }
    let plain = format!("OPTIONS /api/about HTTP/1.1\r\nHost: {own}\r\nOrigin: http://localhost:8888\r\n\r\n");
    assert_eq!(parse(&raw(address, plain.as_bytes())).status, 403);
    studio.stop();
}

#[test]
fn the_token_does_not_help_a_name_that_leads_here() {
    let (studio, token) = start_with_token();
    let address = studio.local_address();
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        for origin in ["http://evil.example", "http://localhost:8888"] {
            let shown = format!("Origin: {origin}\r\nAuthorization: Bearer {token}\r\n");
            let head = format!("GET /api/about HTTP/1.1\r\nHost: {host}\r\n{shown}\r\n");
            let answer = parse(&raw(address, head.as_bytes()));
            assert_eq!((answer.status, leave(&answer.head)), (403, vec![]), "{host} {origin}");
        }
    }
    studio.stop();
}

#[test]
fn without_a_token_no_other_site_is_answered() {
    let studio = start();
    let address = studio.local_address();
    for shown in [
        String::new(),
        "Authorization: Bearer \r\n".to_string(),
        "Authorization: Bearer 0123456789abcdef\r\n".to_string(),
    ] {
        for method in ["GET", "OPTIONS"] {
            let asked = "Access-Control-Request-Method: GET\r\n";
            let head = format!(
                "{method} /api/about HTTP/1.1\r\nHost: {address}\r\nOrigin: http://localhost:8888\r\n{asked}{shown}\r\n"
            );
            let answer = parse(&raw(address, head.as_bytes()));
            assert_eq!(
                (answer.status, leave(&answer.head)),
                (403, vec![]),
                "{method} {shown:?}"
            );
        }
    }
    studio.stop();
}

#[test]
fn sessions_lanes_and_connections_have_an_end() {
    let studio = start();
    let address = studio.local_address();
    let ids: Vec<String> = (0..SESSIONS_MAX).map(|_| begin(address, &small_order())).collect();
    let answer = post(address, "/api/sessions", &small_order());
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(
        ask(address, "DELETE", &format!("/api/sessions/{}", ids[0]), b"").status,
        204
    );
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
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("at most 8 lanes")),
        "{error}"
    );
    drop(page);
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(address)).collect();
    // The oldest give way.
    let closed = silent.iter().take(200 - CONNECTIONS_MAX).filter(|stream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .expect("a timeout");
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
    let studio = Studio::start(StudioOptions {
        memory_bytes: 64 << 20,
        ..options()
    })
    .expect("a port");
    let address = studio.local_address();
    let answers: Vec<u16> = (0..10)
        .map(|_| post(address, "/api/sessions", &small_order()).status)
        .collect();
    assert_eq!(answers[0], 201);
    assert_eq!(answers.last(), Some(&400), "{answers:?}");
    assert!(
        post(address, "/api/sessions", &small_order())
            .error()
            .contains("smaller scaled model")
    );
    studio.stop();
}

/// An order of a job file on a large drive at full size.
fn order_of(jobs: &str) -> Value {
    json!({
        "workload": { "name": "a.fio", "text": jobs }, "device": "warp_default", "scale": "1/1", "drive_writes": 1.0, "seed": 1,
        "lanes": [{ "name": "a", "set": { "geometry.capacity_bytes": "2TiB" } }],
    })
}

/// Numbers in a few bytes that would take the memory of the machine, and with it a served drive.
#[test]
fn workloads_that_take_too_much_are_refused_before_they_are_built() {
    let studio = start();
    let address = studio.local_address();
    let sections = "[a]\n".repeat(100_000);
    let inherited = format!("[global]\nfilename={}\n{}", "x".repeat(8000), "[a]\n".repeat(4000));
    let zipf: String = (0..1000)
        .map(|theta| format!("[{theta}]\nrw=randwrite\nrandom_distribution=zipf:1.{theta:04}1\n"))
        .collect();
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

/// The sums of their distributions take seconds. Meanwhile others are answered.
#[test]
fn an_order_that_takes_long_to_build_holds_nobody_up() {
    let studio = start();
    let address = studio.local_address();
    let zipf: String = (0..25)
        .map(|theta| format!("[{theta}]\nrw=randwrite\nrandom_distribution=zipf:1.{theta:04}7\n"))
        .collect();
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

/// Requests of gibibytes: a session that is ended gives its memory back, whatever it was doing.
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
    assert_eq!(
        Socket::open_with(address, "/api/sessions/s99/live", "")
            .err()
            .expect("none")
            .status,
        404
    );
    assert_eq!(
        Socket::open_with(address, "/api/about", "").err().expect("none").status,
        404
    );
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

/// How a conversation ends that sends these bytes.
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
    assert_eq!(
        end_of(&studio, &path, &Socket::frame(0x81, &large)),
        Some(1009),
        "too large"
    );
    let announced = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    assert_ne!(
        end_of(&studio, &path, &announced),
        Some(1000),
        "a length that nobody has"
    );
    let parts: Vec<u8> = [
        Socket::frame(0x01, &[b'x'; 60_000]),
        Socket::frame(0x00, &[b'x'; 60_000]),
    ]
    .concat();
    assert_eq!(end_of(&studio, &path, &parts), Some(1009), "too large in parts");
    assert_eq!(
        end_of(&studio, &path, &Socket::frame(0x82, b"bytes")),
        Some(1003),
        "a page does not send bytes"
    );
    // Broken frames: not masked, an unknown opcode, a continuation of nothing, no UTF-8.
    for broken in [
        &[0x81, 0x01, b'x'][..],
        &Socket::frame(0x83, b"x"),
        &Socket::frame(0x80, b"x"),
        &Socket::frame(0x81, b"\xff"),
    ] {
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

/// What may be asked of a served drive by who has its token.
const ACTIONS: [(&str, &str); 4] = [
    ("POST", "snapshot"),
    ("POST", "reset-statistics"),
    ("POST", "faults"),
    ("DELETE", "faults"),
];

/// A plan that would be noticed.
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
    // Clients that may watch receive the fault plan.
    assert_eq!(served.faults(), Value::Null);
    assert!(!served.file(".ftl").exists(), "no checkpoint was made");
    assert_eq!(
        served.ask("GET", "/api/drive", "").json()["lanes"][0]["since_unix_ms"],
        Value::Null
    );
    served.stop();

    let served = Served::start(true, Some(TOKEN));
    served.write(0, 10);
    let wrong = [
        String::new(),
        format!("Authorization: Bearer {TOKEN}x\r\n"),
        format!("Cookie: token={TOKEN}\r\n"),
    ];
    // Another site has to show the token as everybody has; it is in no cookie that a browser would send along.
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
            assert!(
                [401, 403].contains(&answer.status),
                "{method} {action} {fields}: {}",
                answer.status
            );
        }
        let in_address = format!("{path}?token={TOKEN}");
        assert_eq!(
            served.ask_with(method, &in_address, "", "").status,
            401,
            "{method} {action}"
        );
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
    assert_eq!(
        served
            .act("POST", &format!("snapshot?path={}", elsewhere.display()), "")
            .status,
        200
    );
    assert!(!elsewhere.exists() && served.file(".ftl").exists());
    assert_eq!(served.act("POST", "faults", &Served::plan(PLAN)).status, 200);
    let deep = format!("seed = {}1{}", "[".repeat(30_000), "]".repeat(30_000));
    for (what, body) in [
        ("nothing", String::new()),
        ("no JSON", "{".to_string()),
        ("no plan", "{}".to_string()),
        (
            "another field",
            json!({ "text": PLAN, "file": "/etc/passwd" }).to_string(),
        ),
        ("a number", json!({ "text": 1 }).to_string()),
        ("deep JSON", "[".repeat(500_000)),
        ("deep TOML", Served::plan(&deep)),
        ("too long", Served::plan(&"#".repeat((64 << 10) + 1))),
        ("too many", Served::plan(&PLAN.repeat(65))),
        (
            "no end",
            Served::plan("[[fault]]\nkind = \"delay\"\ndelay_ms = 1e300\n"),
        ),
    ] {
        let answer = served.act("POST", "faults", &body);
        assert_eq!(answer.status, 400, "{what}: {}", answer.text());
        assert!(answer.error().len() < 1000, "{what}: {}", answer.error());
    }
    let answer = served.act("POST", "faults", &"x".repeat((1 << 20) + 1));
    assert_eq!(answer.status, 413);
    let report = served.faults();
    assert_eq!(
        report["faults"][0]["kind"], "degraded",
        "what was planned before goes on"
    );
    assert_eq!(
        served.act("POST", "faults", &Served::plan(&PLAN.repeat(64))).status,
        200
    );
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
        askers
            .into_iter()
            .flat_map(|asker| asker.join().expect("it is answered"))
            .collect()
    });
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let count = |status: u16| statuses.iter().filter(|one| **one == status).count();
    // A checkpoint that is being made refuses another one.
    assert_eq!(count(200) + count(409) + count(429), statuses.len(), "{statuses:?}");
    assert!(count(200) > 0 && count(429) > 0, "{statuses:?}");
    assert!(
        count(200) + count(409) <= ACTIONS_A_SECOND * (seconds + 1),
        "{seconds} s: {statuses:?}"
    );
    assert_eq!(
        served.act("DELETE", "faults", "").status,
        200,
        "and then there are some again"
    );
    served.stop();
}
