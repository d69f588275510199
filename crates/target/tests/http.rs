//! Attacks on the HTTP server: no client can stop it or the rest of the process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};
use target::ServeError;
use target::http::{
    Audience, BODY_BYTES_MAX, CONNECTIONS_MAX, ChangeRequest, HttpOptions, HttpServer, RequestBody,
    send_request as request,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn start(token: Option<&str>) -> HttpServer {
    let options = HttpOptions {
        token: token.map(str::to_string),
        ..HttpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    };
    // Larger than socket buffers, so that a client that does not read is detected.
    let large = "x".repeat(64 << 20);
    let put = async |RequestBody(body): RequestBody| match body.as_str() {
        "wrong" => Err((StatusCode::BAD_REQUEST, "line 1: it is wrong\n")),
        _ => Ok(body),
    };
    let changes = match token {
        Some(_) => MethodRouter::new().put(put).delete("gone"),
        None => get("nothing"),
    };
    let routes = Router::new()
        .route("/metrics", get("fine\n"))
        .route("/large", get(async move || large.clone()))
        .route("/faults", changes);
    HttpServer::start("test", options, Audience::Programs, routes).expect("a port")
}

fn connect(server: &HttpServer) -> TcpStream {
    let stream = TcpStream::connect(server.local_address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Returns all output until the server closes. Ignores failed sends.
fn ask(server: &HttpServer, request: &[u8]) -> String {
    let mut stream = connect(server);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asserts that a scrape succeeds within the time limit, although other clients may briefly take
/// all places.
fn scrape(server: &HttpServer) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let answer = ask(server, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        if answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine\n") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("nobody is answered any more");
}

#[test]
fn a_length_that_nobody_has_is_not_allocated() {
    let server = start(None);
    let answer = ask(&server, b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET,HEAD"), "{answer}");
    let answer = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    scrape(&server);
    server.stop();
}

#[test]
fn an_endless_head_is_refused() {
    let server = start(None);
    for part in [&b"X: y\r\n"[..], b"xxxxxxxxxxxxxxxx"] {
        let mut stream = connect(&server);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").expect("it listens");
        let mut sent = 0;
        while sent < 8 << 20 && stream.write_all(&part.repeat(1000)).is_ok() {
            sent += part.len() * 1000;
        }
        assert!(sent < 8 << 20, "it takes everything");
    }
    scrape(&server);
    server.stop();
}

#[test]
fn who_does_not_read_holds_nobody_up_and_the_server_stops_at_once() {
    let server = start(None);
    let silent: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
            stream
        })
        .collect();
    scrape(&server);
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn requests_that_do_not_come_to_an_end_keep_nobody_out() {
    const TOKEN: &str = "0123456789abcdef";
    let server = start(Some(TOKEN));
    let right = format!("Host: a\r\nAuthorization: Bearer {TOKEN}\r\n");
    for half in [
        String::new(),
        "GET /metrics HT".to_string(),
        format!("GET /metrics HTTP/1.1\r\n{right}"),
        format!("PUT /faults HTTP/1.1\r\n{right}Content-Length: 100\r\n\r\nhalf a plan"),
    ] {
        let half_open = |_| {
            let mut stream = connect(&server);
            stream.write_all(half.as_bytes()).expect("it listens");
            stream
        };
        let mut half_open: Vec<TcpStream> = (0..3 * CONNECTIONS_MAX).map(half_open).collect();
        let answer = ask(&server, format!("GET /metrics HTTP/1.1\r\n{right}\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "beside {half:?}: {answer:?}");
        let plan = Some(ChangeRequest::Put("a plan".to_string()));
        let put = request(server.local_address(), TOKEN, "/faults", plan).expect("an answer");
        assert_eq!(put.0, 200, "beside {half:?}");
        // The oldest connections have been closed.
        for stream in &mut half_open[..CONNECTIONS_MAX] {
            assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
        }
    }
    server.stop();
}

#[test]
fn a_token_is_asked_for_and_others_are_refused() {
    let server = start(Some("0123456789abcdef"));
    for field in ["", "Authorization: Bearer 0123456789abcdeX\r\n", "Authorization: Bearer 0123456789abcde\r\n"] {
        let answer = ask(&server, format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{field}\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("fine"), "{answer}");
    }
    let right = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n";
    assert!(ask(&server, right).ends_with("fine\n"));
    server.stop();
}

#[test]
fn other_machines_need_a_token() {
    let start = |token: Option<&str>| {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let options = HttpOptions { listen, token: token.map(str::to_string) };
        HttpServer::start("test", options, Audience::Programs, Router::new())
    };
    assert!(matches!(start(None), Err(ServeError::TokenRequired(_))));
    assert!(matches!(start(Some("short")), Err(ServeError::TokenTooShort { .. })));
    start(Some("0123456789abcdef")).expect("a port").stop();
}

#[test]
fn changes_need_the_token_and_are_small() {
    const TOKEN: &str = "0123456789abcdef";
    let put = |server: &HttpServer, token: &str, body: &str| {
        request(server.local_address(), token, "/faults", Some(ChangeRequest::Put(body.to_string())))
            .expect("an answer")
    };
    let server = start(Some(TOKEN));
    assert_eq!(put(&server, TOKEN, "a plan"), (200, "a plan".to_string()));
    assert_eq!(put(&server, TOKEN, "wrong"), (400, "line 1: it is wrong\n".to_string()));
    assert_eq!(put(&server, "0123456789abcdeX", "a plan").0, 401);
    let largest = "x".repeat(BODY_BYTES_MAX);
    assert_eq!(put(&server, TOKEN, &largest).0, 200);
    assert_eq!(put(&server, TOKEN, &(largest + "x")).0, 413);
    let gone = request(server.local_address(), TOKEN, "/faults", Some(ChangeRequest::Delete)).expect("an answer");
    assert_eq!(gone, (200, "gone".to_string()));
    assert_eq!(request(server.local_address(), TOKEN, "/elsewhere", Some(ChangeRequest::Delete)).unwrap().0, 404);
    // A missing body occupies a place for a limited time, without other effects.
    let mut silent = connect(&server);
    let head = format!(
        "PUT /faults HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 99999999999999\r\n\r\n"
    );
    silent.write_all(head.as_bytes()).expect("it listens");
    assert_eq!(put(&server, TOKEN, "a plan").0, 200);
    server.stop();
    // Without a token no client can make changes, even on loopback.
    let server = start(None);
    assert_eq!(put(&server, TOKEN, "a plan").0, 405);
    server.stop();
}
