//! What peers do to a drive that they wish ill: cheap ones of docs/serving.md's table, again and again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ::host::command::block_command;
use ::host::initiator::tcp::{Controller, Data, HostOptions};
use nvme_spec::IoOpcode;

use crate::server::{NQN, Supervisor};
use crate::{Ending, HOSTS};

pub type Attack = fn(&Supervisor, &Ending);

pub const ALL: [Attack; 5] = [half_open, nonsense, http, vfio_user, long_commands];

/// Between two attempts: attackers share the machine's processors with the drive here.
const PAUSE: Duration = Duration::from_millis(5);

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
    Some(stream)
}

/// More connections that say nothing than there are places for.
fn half_open(supervisor: &Supervisor, ending: &Ending) {
    while !ending.has_come() {
        let silent: Vec<_> = (0..40).map_while(|_| connect(supervisor.tcp)).collect();
        std::thread::sleep(40 * PAUSE);
        drop(silent);
    }
}

/// Bytes that are no NVMe/TCP.
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

/// Lengths that nobody has, heads without an end, changes without the token.
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

/// Messages that are none, on a socket of their own: one client has it at a time.
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

/// A host that has everything verified, for ever.
fn long_commands(supervisor: &Supervisor, ending: &Ending) {
    let options = HostOptions {
        host_nqn: "nqn.2026-01.io.warp:soak-attacker".to_string(),
        host_id: [0xff; 16],
        timeout: Duration::from_secs(2),
        ..HostOptions::new(supervisor.tcp, NQN)
    };
    while !ending.has_come() {
        std::thread::sleep(PAUSE);
        let Ok(controller) = Controller::connect(&options) else {
            continue;
        };
        let Ok(mut queue) = controller.io_queue(1, 16) else {
            continue;
        };
        let verify = || block_command(IoOpcode::Verify, 1, 0, 65536);
        while !ending.has_come() && queue.command(verify(), Data::None).is_ok() {
            std::thread::sleep(PAUSE);
        }
    }
}
