//! A separate studio for each test, and a page without a browser. HTTP and WebSockets are written
//! by hand, so that tests control each byte.

// Each test program uses a part of this module.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use studio::{Studio, StudioOptions};
use target::http::HttpOptions;

/// Generous time limit for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn options() -> StudioOptions {
    let http = HttpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    StudioOptions { memory_bytes: 2 << 30, ..StudioOptions::new(http) }
}

pub fn start() -> Studio {
    Studio::start(options()).expect("a port")
}

/// Order of a small run of two variants, which takes a second.
pub fn order() -> Value {
    json!({
        "experiment": "three_stream", "device": "ssd_a", "scale": "1/2048", "drive_writes": 2.0, "seed": 1,
        "lanes": [{ "name": "FDP", "variants": ["FDP", "80/20"] }, { "name": "NoFDP", "variants": ["NoFDP", "80/20"] }],
    })
}

/// Order of one of these variants.
pub fn small_order() -> Value {
    json!({
        "experiment": "three_stream", "device": "ssd_a", "scale": "1/2048", "drive_writes": 2.0, "seed": 1,
        "lanes": [{ "name": "FDP", "variants": ["FDP", "80/20"] }],
    })
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Returns the answer until the server closes.
pub fn raw(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Error message of a refusal.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().expect("a refusal has a sentence").to_string()
    }
}

pub fn parse(bytes: &[u8]) -> Answer {
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

pub fn ask(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> Answer {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
    parse(&raw(address, &[head.as_bytes(), body].concat()))
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, b"")
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    ask(address, "POST", path, body.to_string().as_bytes())
}

pub fn begin(address: SocketAddr, order: &Value) -> String {
    let answer = post(address, "/api/sessions", order);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().expect("an id").to_string()
}

/// Message of the server.
#[derive(Debug)]
pub enum Message {
    Text(Value),
    Frame(Vec<u8>),
    Closed(u16, String),
}

/// WebSocket of a page.
pub struct Socket {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

pub fn upgrade_head(address: SocketAddr, path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

impl Socket {
    pub fn open(address: SocketAddr, path: &str) -> Socket {
        Socket::open_with(address, path, "").unwrap_or_else(|answer| panic!("{}: {}", answer.status, answer.text()))
    }

    pub fn open_with(address: SocketAddr, path: &str, more: &str) -> Result<Socket, Answer> {
        let mut stream = connect(address);
        stream.write_all(upgrade_head(address, path, more).as_bytes()).expect("it listens");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer");
            head.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        if !text.starts_with("HTTP/1.1 101") {
            let _ = stream.read_to_end(&mut head);
            return Err(parse(&head));
        }
        assert!(text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "the key of RFC 6455, 1.3: {text}");
        Ok(Socket { stream, buffer: Vec::new() })
    }

    /// Frame of a client, masked with zeroes.
    pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        frame
    }

    pub fn send(&mut self, command: &Value) {
        self.send_text(&command.to_string());
    }

    pub fn send_text(&mut self, text: &str) {
        self.stream.write_all(&Socket::frame(0x81, text.as_bytes())).expect("it listens");
    }

    fn fill(&mut self, bytes: usize) -> Option<()> {
        let mut part = vec![0; 64 << 10];
        while self.buffer.len() < bytes {
            match self.stream.read(&mut part) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.buffer.extend(&part[..count]),
            }
        }
        Some(())
    }

    /// Returns the next message, or `None` after the end of the connection.
    pub fn next(&mut self) -> Option<Message> {
        loop {
            self.fill(2)?;
            let (opcode, short) = (self.buffer[0] & 15, self.buffer[1] & 127);
            assert_eq!(self.buffer[0] & 0x80, 0x80, "the server sends messages whole");
            let (head, length) = match short {
                126 => {
                    self.fill(4)?;
                    (4, usize::from(u16::from_be_bytes([self.buffer[2], self.buffer[3]])))
                }
                127 => {
                    self.fill(10)?;
                    let length: [u8; 8] = self.buffer[2..10].try_into().expect("eight bytes");
                    (10, u64::from_be_bytes(length) as usize)
                }
                length => (2, usize::from(length)),
            };
            self.fill(head + length)?;
            let payload = self.buffer[head..head + length].to_vec();
            self.buffer.drain(..head + length);
            match opcode {
                1 => return Some(Message::Text(serde_json::from_slice(&payload).expect("text is JSON"))),
                2 => return Some(Message::Frame(payload)),
                8 if payload.len() >= 2 => {
                    let code = u16::from_be_bytes([payload[0], payload[1]]);
                    return Some(Message::Closed(code, String::from_utf8_lossy(&payload[2..]).into_owned()));
                }
                8 => return Some(Message::Closed(1005, String::new())),
                9 => {
                    let _ = self.stream.write_all(&Socket::frame(0x8a, &payload));
                }
                _ => {}
            }
        }
    }

    /// Waits for the first message in which `find` finds something.
    #[track_caller]
    pub fn wait<T>(&mut self, what: &str, mut find: impl FnMut(&Message) -> Option<T>) -> T {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let message = self.next().unwrap_or_else(|| panic!("the connection ended before: {what}"));
            if let Some(found) = find(&message) {
                return found;
            }
        }
        panic!("it did not come in time: {what}");
    }

    /// Waits for the next text of a type.
    #[track_caller]
    pub fn text(&mut self, kind: &str) -> Value {
        self.wait(kind, |message| match message {
            Message::Text(text) if text["type"] == kind => Some(text.clone()),
            _ => None,
        })
    }

    /// Waits for the next frame of a lane that fulfils a condition.
    #[track_caller]
    pub fn frame_of(&mut self, lane: u8, what: &str, holds: impl Fn(&Head) -> bool) -> Head {
        self.wait(what, |message| match message {
            Message::Frame(frame) if frame[1] == lane => Some(Head::of(frame)).filter(|head| holds(head)),
            _ => None,
        })
    }
}

/// Header of a frame, parsed as by the page.
#[derive(Clone, Debug)]
pub struct Head {
    pub phase: u8,
    pub is_whole: bool,
    pub host_bytes: u64,
    pub media_bytes: u64,
    pub requests: u64,
    pub left_out: u64,
    pub owners: Vec<[u64; 4]>,
    pub units: Vec<(u32, [u32; 4])>,
    pub events: usize,
    pub samples: Vec<(u64, u64)>,
}

impl Head {
    pub fn of(frame: &[u8]) -> Head {
        let u32_at = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        let number = |at: usize| f64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes")) as u64;
        let [owners, units, events, samples] = [4, 8, 12, 16].map(|at| u32_at(at) as usize);
        let units_at = 88 + 40 * owners;
        let samples_at = units_at + 16 * units + 40 * events;
        let sample_bytes = 16 + 16 * owners;
        assert_eq!(frame.len(), samples_at + samples * sample_bytes, "a frame has its length");
        assert_eq!(frame[0], 1);
        let owner = |index: usize| [0, 8, 16, 24].map(|at| number(88 + 40 * index + at));
        let unit = |index: usize| {
            let at = units_at + 16 * index;
            let record = [u32::from(frame[at + 4]), u32::from(frame[at + 5]), u32_at(at + 8), u32_at(at + 12)];
            (u32_at(at), record)
        };
        let sample = |index: usize| {
            let at = samples_at + sample_bytes * index;
            (number(at), number(at + 8))
        };
        Head {
            phase: frame[2],
            is_whole: frame[3] & 1 == 1,
            host_bytes: number(24),
            media_bytes: number(32),
            requests: number(64),
            left_out: number(72),
            owners: (0..owners).map(owner).collect(),
            units: (0..units).map(unit).collect(),
            events,
            samples: (0..samples).map(sample).collect(),
        }
    }
}

/// Asserts that the studio answers soon.
#[track_caller]
pub fn lives(studio: &Studio) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        // Other clients may temporarily occupy all places.
        let address = studio.local_address();
        let request = format!("GET /api/about HTTP/1.1\r\nHost: {address}\r\n\r\n");
        if raw(address, request.as_bytes()).starts_with(b"HTTP/1.1 200") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("nobody is answered any more");
}
