//! Requests from other sites and requests without the token.

use studio::Studio;

use crate::common::{Socket, begin, options, parse, raw, small_order, start};

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
            // A request without Host, or with two, may count as invalid HTTP.
            assert!(matches!(answer.status, 400 | 403), "{method} {path} {host:?}: {}", answer.text());
        }
    }
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "http://localhost"] {
        let answer = head("POST", "/api/check", &own, &format!("Origin: {origin}\r\n"));
        assert_eq!(answer.status, 403, "{origin}: {}", answer.text());
        let more = format!("Origin: {origin}\r\n");
        let refused =
            Socket::open_with(address, &format!("/api/sessions/{id}/live"), &more).err().expect("no conversation");
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
        parse(&raw(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n").as_bytes()))
    };
    assert_eq!(with("/?token=anything", "").status, 200, "the page itself holds nothing");
    for more in ["", "Authorization: Bearer 0123456789abcdef/X\r\n", "Authorization: Basic 0123456789abcdef/+\r\n"] {
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
        assert_eq!(Socket::open_with(address, &path, &wrong).err().expect("no conversation").status, 401);
    }
    let mut page =
        Socket::open_with(address, &path, &protocol(token)).unwrap_or_else(|answer| panic!("{}", answer.text()));
    page.text("session");
    studio.stop();
}

/// Starts a studio with a token.
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

/// Fields of an answer that allow a page of another site to read it.
fn leave(head: &str) -> Vec<&str> {
    let fields = head.lines().map(str::trim);
    fields.filter(|line| line.starts_with("access-control-")).collect()
}

/// Origins of notebooks and of an attacker, which the server cannot distinguish.
const ELSEWHERE: [&str; 5] =
    ["http://localhost:8888", "https://hub.example", "vscode-webview://0a1b2c", "null", "http://evil.example"];

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
        assert_eq!((answer.status, leave(&answer.head)), (200, vec!["access-control-allow-origin: *"]), "{origin}");
        let begun = say("POST", "/api/sessions", &right, &small_order().to_string());
        assert_eq!((begun.status, leave(&begun.head).len()), (201, 1), "{}", begun.text());
        let id = begun.json()["id"].as_str().expect("an id").to_string();
        // The page can also read refusals, which contain the remedy.
        for (method, path, body, status) in [
            ("GET", "/api/sessions/s99/order", "", 404),
            ("POST", "/api/sessions", "{", 400),
            ("PUT", "/api/about", "", 405),
        ] {
            let answer = say(method, path, &right, body);
            assert_eq!((answer.status, leave(&answer.head).len()), (status, 1), "{method} {path}");
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
        // A browser sends cookies by itself, so a cookie does not count as a token. Only WebSockets
        // use the protocol field.
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
                assert_eq!((answer.status, leave(&answer.head)), (403, vec![]), "{origin} {shown:?} {method} {path}");
                assert!(!answer.text().contains(token), "{}", answer.text());
            }
        }
        for shown in ["", &protocol("0123456789abcdef/X"), "Sec-WebSocket-Protocol: warp.token.!!!\r\n"] {
            let more = format!("Origin: {origin}\r\n{shown}");
            let refused = Socket::open_with(address, &live, &more).err().expect("no conversation");
            assert_eq!((refused.status, leave(&refused.head)), (403, vec![]), "{origin} {shown:?}");
        }
    }
    let own = say("GET", &format!("/api/sessions/{id}/order"), &bearer);
    assert_eq!((own.status, leave(&own.head)), (200, vec![]), "it was not ended, and its own page needs no leave");
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
    let without_date =
        |head: &str| head.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n");
    for origin in ELSEWHERE {
        for path in ["/api/sessions", "/api/sessions/s1/order", "/api/nothing", "/", "/../../etc/passwd"] {
            for shown in
                [String::new(), format!("Authorization: Bearer {token}\r\n"), "Authorization: Bearer x\r\n".to_string()]
            {
                let answer = ask_leave(path, &own, &format!("Origin: {origin}\r\n{shown}"));
                assert_eq!(without_date(&answer.head), without_date(&first.head), "{origin} {path} {shown}");
            }
        }
    }
    // Refused requests: a name that resolves to this server (DNS rebinding), two origins, and a
    // preflight without an origin.
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
            assert_eq!((answer.status, leave(&answer.head)), (403, vec![]), "{method} {shown:?}");
        }
    }
    studio.stop();
}
