//! Durability, clients that leave or say nothing, and sockets of servers.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use initiator::pcie::{DriverOptions, NvmeDriver};
use nvme::FlushHandle;
use nvme_spec::register;
use target::ServeError;
use target::vfio_user::VfioUserOptions;

use crate::small_drive::{Disk, MIB};
use crate::{BLOCK, Setup, assert_reads, flood, flush, pattern, write_and_read};

/// A sync that blocks until the test releases it.
struct Gate {
    begun: SyncSender<()>,
    open: Mutex<Receiver<()>>,
}

impl FlushHandle for Gate {
    fn flush(&self) -> std::io::Result<()> {
        self.begun.send(()).expect("the test waits");
        self.open.lock().unwrap().recv().expect("the test opens");
        Ok(())
    }
}

#[test]
fn while_data_is_made_durable_everything_else_goes_on() {
    let (begun, has_begun) = sync_channel(16);
    let (opener, open) = sync_channel(16);
    let gate = Arc::new(Gate { begun, open: Mutex::new(open) });
    let setup = Setup::with(Box::new(Disk::new(gate)), VfioUserOptions::default());
    let mut driver = setup.driver();
    driver.create_queues(1, 64, None).unwrap();
    driver.create_queues(2, 64, None).unwrap();
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    has_begun.recv().unwrap();
    // Registers, other commands, and a second flush, which must wait for its own sync.
    assert!(driver.status().unwrap().rdy());
    write_and_read(&mut driver, 0, BLOCK, 1);
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 2);
    assert!(driver.take_completion(2).is_none(), "nothing is durable yet");
    opener.send(()).unwrap();
    driver.wait_completion(2).unwrap();
    has_begun.recv().unwrap();
    assert!(driver.take_completion(2).is_none());
    opener.send(()).unwrap();
    driver.wait_completion(2).unwrap();

    // A client may leave during a sync.
    driver.submit(2, flush());
    driver.ring(2).unwrap();
    has_begun.recv().unwrap();
    drop(driver);
    let mut driver = setup.driver();
    opener.send(()).unwrap();
    driver.create_queues(1, 64, None).unwrap();
    write_and_read(&mut driver, 0, BLOCK, 3);
}

// --------------------------------------------------------------------------------------------- clients and servers --

#[test]
fn clients_leave_and_others_come() {
    let setup = Setup::new();
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 77, MIB, 5);
    for round in 0..10 {
        let buffer = driver.allocate_with(&pattern(BLOCK, round));
        flood(&mut driver, buffer);
        drop(driver); // in the middle of I/O
        driver = NvmeDriver::connect(&setup.socket(), DriverOptions::default()).unwrap();
        assert!(!driver.status().unwrap().rdy(), "the function was reset");
        assert_eq!(driver.read_register(register::AQA).unwrap(), 0);
        driver.enable().unwrap();
        driver.create_queues(1, 64, Some(1)).unwrap();
        assert_reads(&mut driver, 77, &pattern(MIB, 5));
    }
}

#[test]
fn a_client_that_says_nothing_does_not_keep_the_socket() {
    let setup = Setup::new();
    let options = VfioUserOptions { greeting: Duration::from_millis(200), ..VfioUserOptions::default() };
    let server = setup.serve("greeting.sock", options).unwrap();
    let mut silent = UnixStream::connect(setup.path("greeting.sock")).unwrap();
    let mut driver = NvmeDriver::start(&setup.path("greeting.sock"), DriverOptions::default()).unwrap();
    driver.create_queues(1, 64, None).unwrap();
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0, "the connection has ended");
    // After its version a client may be silent.
    std::thread::sleep(3 * options.greeting);
    write_and_read(&mut driver, 0, BLOCK, 1);
    drop(driver);
    server.stop();
}

#[test]
fn a_server_stops_with_and_without_clients() {
    let mut setup = Setup::new();
    let mode = std::fs::metadata(setup.socket()).unwrap();
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let mut driver = setup.driver_with_queue();
    write_and_read(&mut driver, 0, BLOCK, 1);
    let buffer = driver.allocate_with(&pattern(BLOCK, 2));
    flood(&mut driver, buffer);
    setup.server.take().unwrap().stop();
    assert!(!setup.socket().exists());
    assert!(driver.status().is_err(), "the connection was ended");

    for _ in 0..20 {
        setup.serve("nvme.sock", VfioUserOptions::default()).unwrap().stop();
    }
    assert!(!setup.socket().exists());
    assert_eq!(setup.shared.lock().unwrap().controllers().count(), 0);
}

#[test]
fn a_socket_is_taken_only_from_the_dead() {
    let setup = Setup::new();
    let taken = setup.serve("nvme.sock", VfioUserOptions::default()).err().unwrap();
    assert!(matches!(taken, ServeError::SocketTaken(_)), "{taken}");
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);

    std::fs::write(setup.path("file"), "text").unwrap();
    let file = setup.serve("file", VfioUserOptions::default()).err().unwrap();
    assert!(matches!(file, ServeError::NotASocket(_)), "{file}");
    assert_eq!(std::fs::read(setup.path("file")).unwrap(), b"text", "left as it was");

    drop(UnixListener::bind(setup.path("stale.sock")).unwrap());
    assert!(setup.path("stale.sock").exists());
    let server = setup.serve("stale.sock", VfioUserOptions::default()).unwrap();
    let none_left = setup.serve("fourth.sock", VfioUserOptions::default()).err().unwrap();
    assert!(none_left.to_string().contains("controllers are in use"), "{none_left}");
    assert!(!setup.path("fourth.sock").exists());
    server.stop();

    let nowhere = setup.serve("no/such/directory.sock", VfioUserOptions::default()).err().unwrap();
    assert!(matches!(nowhere, ServeError::Socket { .. }), "{nowhere}");
    let long = "x".repeat(200);
    assert!(matches!(setup.serve(&long, VfioUserOptions::default()).err().unwrap(), ServeError::Socket { .. }));
}
