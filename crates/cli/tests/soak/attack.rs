//! Attackers of the drive. They repeat the cheap attacks of the table in
//! docs/reference/served-drive.md.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ::initiator::command::block_command;
use ::initiator::pcie::{DriverOptions, NvmeDriver};
use ::initiator::tcp::{CommandData, HostOptions, RemoteController};
use nvme_spec::IoOpcode;
use serde_json::json;

use crate::server::{NQN, Supervisor, TOKEN};
use crate::{Ending, HOSTS};

pub type Attack = fn(&Supervisor, &Ending);

pub const ALL: [Attack; 8] = [half_open, nonsense, http, half_requests, orders, vfio_user, guest_memory, long_commands];

/// Pause between two attempts, because attackers share the processors with the drive here.
const PAUSE: Duration = Duration::from_millis(5);

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
    Some(stream)
}

/// Opens more silent connections than the server has places.
fn half_open(supervisor: &Supervisor, ending: &Ending) {
    while !ending.has_come() {
        let silent: Vec<_> = (0..40).map_while(|_| connect(supervisor.tcp)).collect();
        std::thread::sleep(40 * PAUSE);
        drop(silent);
    }
}

/// Sends bytes that are not NVMe/TCP.
fn nonsense(supervisor: &Supervisor, ending: &Ending) {
    let mut byte = 0_u8;
    while !ending.has_come() {
        if let Some(mut stream) = connect(supervisor.tcp) {
            byte = byte.wrapping_mul(37).wrapping_add(11);
            let _ = stream.write_all(&[byte; 1024]);
            let _ = stream.read(&mut [0; 256]);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends huge lengths, endless heads, and changes without the token.
fn http(supervisor: &Supervisor, ending: &Ending) {
    let requests: [&[u8]; 3] = [
        b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n",
        &[b'x'; 16 << 10],
        b"PUT /faults HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\n",
    ];
    for request in requests.iter().cycle() {
        if ending.has_come() {
            return;
        }
        if let Some(mut stream) = connect(supervisor.metrics) {
            let _ = stream.write_all(request);
            let _ = stream.read(&mut [0; 256]);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends more endless requests than the HTTP servers have places.
fn half_requests(supervisor: &Supervisor, ending: &Ending) {
    while !ending.has_come() {
        for address in [supervisor.metrics, supervisor.studio] {
            let half: Vec<_> = (0..80)
                .map_while(|_| {
                    let mut stream = connect(address)?;
                    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").ok()?;
                    Some(stream)
                })
                .collect();
            std::thread::sleep(40 * PAUSE);
            drop(half);
        }
    }
}

/// Starts sessions that need far more memory than the machine has.
fn orders(supervisor: &Supervisor, ending: &Ending) {
    let job = |text: &str| {
        json!({
            "workload": { "name": "a.fio", "text": text }, "device": "ssd_a", "scale": "1/1", "lanes": [{ "name": "a" }],
        })
        .to_string()
    };
    let sections: String = (0..2000).map(|number| format!("[a{number}]\nrw=randwrite\n")).collect();
    let bodies = [job("[a]\nrw=randwrite\nbsrange=1-64k\n"), job(&sections)];
    for body in bodies.iter().cycle() {
        if ending.has_come() {
            return;
        }
        if let Some(mut stream) = connect(supervisor.studio) {
            let head = format!(
                "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n",
                supervisor.studio,
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            let _ = stream.read(&mut [0; 256]);
        }
        std::thread::sleep(20 * PAUSE);
    }
}

/// Sends invalid messages on a separate socket, because a socket serves one client at a time.
fn vfio_user(supervisor: &Supervisor, ending: &Ending) {
    while !ending.has_come() {
        if let Ok(mut stream) = UnixStream::connect(supervisor.socket(HOSTS + 1)) {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
            let _ = stream.write_all(&[0xff; 64]);
            let _ = stream.read(&mut [0; 64]);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Maps as many regions of sparse memory as possible, of 1 TiB each.
fn guest_memory(supervisor: &Supervisor, ending: &Ending) {
    let options = DriverOptions { ram_bytes: 1 << 20, ..DriverOptions::default() };
    let sparse = tempfile::tempfile().expect("a temporary file");
    // Some file systems limit files to smaller sizes.
    let region_bytes = [1 << 40, 1 << 34, 1 << 30]
        .into_iter()
        .find(|bytes| sparse.set_len(*bytes).is_ok())
        .expect("a sparse file of 1 GiB");
    for bytes in [region_bytes, 4096].iter().cycle() {
        if ending.has_come() {
            return;
        }
        if let Ok(mut driver) = NvmeDriver::connect(&supervisor.socket(HOSTS + 3), options) {
            let address = |region: u64| (1 << 46) + region * region_bytes;
            let mapped = (0..20_000).take_while(|region| {
                let client = driver.client();
                client.dma_map(0, address(*region), *bytes, sparse.as_raw_fd()).is_ok() && !ending.has_come()
            });
            let _ = mapped.count();
        }
        std::thread::sleep(20 * PAUSE);
    }
}

/// Host that sends Verify of the whole drive without end.
fn long_commands(supervisor: &Supervisor, ending: &Ending) {
    let options = HostOptions {
        host_nqn: "nqn.2026-01.io.warp:soak-attacker".to_string(),
        host_id: [0xff; 16],
        timeout: Duration::from_secs(2),
        ..HostOptions::new(supervisor.tcp, NQN)
    };
    while !ending.has_come() {
        std::thread::sleep(PAUSE);
        let Ok(controller) = RemoteController::connect(&options) else {
            continue;
        };
        let Ok(mut queue) = controller.io_queue(1, 16) else {
            continue;
        };
        let verify = || block_command(IoOpcode::Verify, 1, 0, 65536);
        while !ending.has_come() && queue.command(verify(), CommandData::None).is_ok() {
            std::thread::sleep(PAUSE);
        }
    }
}
