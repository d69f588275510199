//! A small served drive with its studio and a host without a network.

// Each test program uses a part of this module.
#![allow(dead_code)]

#[path = "../../../target/tests/small_drive/mod.rs"]
mod small_drive;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use studio::{MonitoredDrive, Studio};
use target::server::{ServeOptions, Server};
use target::storage::{DataChoice, DriveOptions};
use tempfile::TempDir;

use crate::common::{Answer, options, parse, raw};
pub use small_drive::{Client, PAGE_BYTES};

/// Token of the studio.
pub const TOKEN: &str = "0123456789abcdef";

/// A served drive, its studio, and a host.
pub struct Served {
    pub studio: Studio,
    pub server: Server,
    pub host: Client,
    pub folder: TempDir,
    token: Option<&'static str>,
}

impl Served {
    /// Starts a drive with its data in a file or in memory, and with or without a token.
    pub fn start(has_files: bool, token: Option<&'static str>) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let data = match has_files {
            true => DataChoice::File(folder.path().join("drive.img")),
            false => DataChoice::Memory,
        };
        let drive = DriveOptions { subsystem: small_drive::config(0), data, checksums: false };
        let (server, _) = Server::start(ServeOptions {
            drive,
            vfio_user: Vec::new(),
            tcp: None,
            metrics: None,
            checkpoint_every: None,
            faults: None,
            at_power_loss: None,
            scrub_every: None,
        })
        .expect("a served drive");
        let drive = MonitoredDrive { monitor: server.monitor(), name: "small".to_string(), actions: server.actions() };
        let mut options = options();
        options.http.token = token.map(str::to_string);
        let studio = Studio::start_with(options, Some(drive)).expect("a port");
        let host = Client::connect(server.shared());
        Served { studio, server, host, folder, token }
    }

    pub fn address(&self) -> SocketAddr {
        self.studio.local_address()
    }

    /// Path of the drive's file with this extension.
    pub fn file(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("drive.img{ending}"))
    }

    /// Header field with the token, if there is one.
    pub fn bearer(&self) -> String {
        self.token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default()
    }

    /// Sends a request with the token.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(method, path, body, &self.bearer())
    }

    pub fn ask_with(&self, method: &str, path: &str, body: &str, fields: &str) -> Answer {
        let address = self.address();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{fields}Content-Length: {length}\r\n\r\n");
        parse(&raw(address, &[head.as_bytes(), body.as_bytes()].concat()))
    }

    /// Sends an action, and repeats it while it comes too often.
    pub fn act(&self, method: &str, action: &str, body: &str) -> Answer {
        loop {
            let answer = self.ask(method, &format!("/api/drive/{action}"), body);
            if answer.status != 429 {
                return answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// Encodes a fault plan as a body.
    pub fn plan(text: &str) -> String {
        serde_json::json!({ "text": text }).to_string()
    }

    /// Returns the current fault plan.
    pub fn faults(&self) -> Value {
        self.ask("GET", "/api/drive/faults", "").json()["faults"].clone()
    }

    /// Writes pages one after the other.
    pub fn write(&self, first: u64, pages: u64) {
        let data = vec![7; (pages * PAGE_BYTES) as usize];
        let status = self.host.write(first, PAGE_BYTES, &data, false);
        assert_eq!(status, nvme_spec::Status::SUCCESS);
    }

    pub fn stop(self) {
        self.studio.stop();
        self.server.stop().expect("it closes");
    }
}
