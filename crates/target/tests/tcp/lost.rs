//! Lost connections, silent hosts, and the end of the server.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use initiator::command::block_command;
use initiator::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue};
use nvme_spec::IoOpcode;
use target::lock;
use target::tcp::{TcpOptions, TcpServer};

use crate::{PATIENCE, Target, eventually, write};

#[test]
fn a_lost_admin_connection_ends_the_association() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut other = RemoteController::connect(&target.host()).unwrap();
    let mut queues: Vec<TcpQueue> = (1..=2).map(|id| controller.io_queue(id, 16).unwrap()).collect();
    let id = controller.id();
    drop(controller);
    eventually("the controller's end", || !lock(&target.shared).is_connected(id));
    for queue in &mut queues {
        let lost = queue.command(block_command(IoOpcode::Flush, 1, 0, 1), CommandData::None);
        assert!(matches!(lost, Err(InitiatorError::Closed | InitiatorError::Io { .. })), "{lost:?}");
    }
    eventually("the connections' end", || target.server.connections() == 1);
    other.keep_alive().unwrap();
    // The new controller gets the same identifier, without the old one's queues.
    let again = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(again.id(), id);
    let mut queue = again.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[3; 4096]);
}

/// On a controller reset or disconnect, Linux first closes its I/O connections, then notifies the
/// admin connection.
#[test]
fn a_lost_io_connection_ends_only_its_queue() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let lost = controller.io_queue(1, 16).unwrap();
    let mut other = controller.io_queue(2, 16).unwrap();
    drop(lost);
    eventually("the connection's end", || target.server.connections() == 2);
    controller.keep_alive().unwrap();
    write(&mut other, 0, &[5; 4096]);
    let mut again = controller.io_queue(1, 16).unwrap();
    write(&mut again, 1, &[6; 4096]);
    assert_eq!(target.controllers(), 1);
}

#[test]
fn a_silent_host_is_ended_and_a_busy_one_is_not() {
    let target = Target::start();
    let start = Instant::now();
    let silent = RemoteController::connect(&HostOptions { keep_alive_ms: 40, ..target.host() });
    let silent = silent.unwrap();
    let patient = RemoteController::connect(&target.host()).unwrap();
    let mut queue = patient.io_queue(1, 16).unwrap();
    let id = silent.id();
    while lock(&target.shared).is_connected(id) {
        assert!(start.elapsed() < PATIENCE, "the silent host is not ended");
        let expired = lock(&target.shared).tick(target.clock.now());
        target.server.end_associations(&expired);
    }
    assert!(start.elapsed() >= Duration::from_millis(40));
    assert_eq!(target.controllers(), 1);
    write(&mut queue, 0, &[1; 4096]);
    // An identifier that now belongs to another host is left alone.
    target.server.end_associations(&[id, patient.id(), 77]);
    write(&mut queue, 0, &[1; 4096]);
}

#[test]
fn stopping_closes_everything_and_gives_the_port_back() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let queue = controller.io_queue(1, 16).unwrap();
    let half_open = TcpStream::connect(target.address()).unwrap();
    eventually("accepting", || target.server.connections() == 3);
    let address = target.address();
    target.server.stop();
    target.server.stop();
    assert_eq!((target.server.connections(), target.controllers()), (0, 0));
    assert!(controller.keep_alive().is_err());
    drop((queue, half_open, controller));
    let again = TcpServer::start(TcpOptions::new(address), Arc::clone(&target.shared), target.clock).unwrap();
    RemoteController::connect(&target.host()).unwrap();
    again.stop();
}
