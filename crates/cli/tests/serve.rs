//! `warp serve` and `warp drive inspect` as a shell sees them: refusals in one sentence without
//! damage, the printed output, and drives that outlive their server.

mod common;

use std::net::TcpListener;

use common::{BAD_INPUT, ServerProcess, chmod, files, folder, json, prints, refused, warp, write, write_secret};
use initiator::command::block_command;
use initiator::tcp::{CommandData, HostOptions, RemoteController};
use nvme_spec::{IoOpcode, Status};
use tempfile::TempDir;

const SMALL: [&str; 4] = ["--capacity", "64M", "--data", "drive.img"];

#[test]
fn options_that_make_no_sense_are_refused() {
    let folder = folder();
    refused(&folder, &["serve"], &["the drive has no transport", "--vfio-user", "--tcp"]);
    refused(&folder, &["serve", "--tcp", "here"], &["--tcp"]);
    refused(&folder, &["serve", "--tcp", "127.0.0.1:0", "--capacity", "much"], &["--capacity", "8G"]);
    refused(&folder, &["serve", "--tcp", "127.0.0.1:0", "--block", "520"], &["512 or 4096"]);
    refused(
        &folder,
        &["serve", "--tcp", "127.0.0.1:0", "--serial", "more than twenty characters"],
        &["--serial", "20"],
    );
    let several = ["serve", "--tcp", "127.0.0.1:0", "--capacity", "64M", "--drives", "10"];
    let serial = [&several[..], &["--serial", "SERIALOF18CHARACTE"]].concat();
    refused(&folder, &serial, &["--serial", "SERIALOF18CHARACTE-10", "21 characters", "--drives adds"]);
    let ports = ["--metrics", "127.0.0.1:4530", "--studio", "127.0.0.1:4532"];
    let ports = [&several[..], &ports].concat();
    refused(&folder, &ports, &["--metrics", "port 4532 of drive 3 is that of --studio of drive 1", "10 or more apart"]);
    let same = ["serve", "--tcp", "127.0.0.1:4530", "--metrics", "0.0.0.0:4530", "--metrics-token", "file"];
    refused(&folder, &same, &["--metrics", "port 4530 is that of --tcp too"]);
    refused(&folder, &["serve", "--tcp", "127.0.0.1:0", "--nqn", "drive"], &["--nqn", "nqn."]);
    refused(&folder, &["serve", "--capacity", "64M", "--tcp", "0.0.0.0:0"], &["0.0.0.0", "DH-HMAC-CHAP", "127.0.0.1"]);
    refused(&folder, &["serve", "--tcp", "127.0.0.1:0", "--device", "ssd_z"], &["no device ssd_z"]);
    let too_large = ["serve", "--tcp", "127.0.0.1:0", "--device", "ssd_a"];
    refused(&folder, &too_large, &["the drive needs", "of memory", "smaller capacity"]);
}

#[test]
fn hosts_files_that_make_no_sense_are_refused() {
    let folder = folder();
    let serve = ["serve", "--tcp", "0.0.0.0:0", "--hosts", "hosts.toml", "--capacity", "64M"];
    refused(&folder, &serve, &["hosts.toml"]);
    write(&folder, "hosts.toml", "[[host]]\nnqn = \"nqn.2026-01.test:a\"\n");
    refused(&folder, &serve, &["nqn.2026-01.test:a", "no DH-HMAC-CHAP secret"]);
    write_secret(&folder, "hosts.toml", "[[host]]\nnqn = \"nqn.2026-01.test:a\"\nsecret = \"DHHC-1:00:AAAA:\"\n");
    refused(&folder, &serve, &["hosts.toml", "nqn.2026-01.test:a", "secret"]);
    write(&folder, "hosts.toml", "[[host]]\nname = \"a\"\n");
    refused(&folder, &serve, &["hosts.toml", "name"]);
    // The message does not show a wrong line, which may be a secret.
    write(&folder, "hosts.toml", "[[host]]\nnqn = \"a\"\nsecret = \"DHHC-1:00:hidden\n");
    refused(&folder, &serve, &["hosts.toml", "line 3"]);
    let told = warp(&folder, &serve);
    assert!(!String::from_utf8_lossy(&told.stderr).contains("hidden"), "{told:?}");
}

#[test]
fn secrets_that_every_user_can_read_are_refused() {
    let folder = folder();
    let with_token = ["studio", "--no-open", "--token", "token"];
    let with_hosts = ["serve", "--tcp", "127.0.0.1:0", "--hosts", "hosts.toml", "--capacity", "64M"];
    write(&folder, "token", "0123456789abcdef\n");
    write(&folder, "hosts.toml", "[[host]]\nnqn = \"nqn.2026-01.test:a\"\nsecret = \"DHHC-1:00:AAAA:\"\n");
    for mode in [0o644, 0o602, 0o604] {
        for (name, arguments) in [("token", &with_token[..]), ("hosts.toml", &with_hosts)] {
            chmod(&folder, name, mode);
            refused(&folder, arguments, &[name, &format!("mode {mode:o}"), &format!("chmod 600 {name}")]);
        }
    }
}

#[test]
fn what_others_use_is_left_alone() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    refused(&folder, &["serve", "--capacity", "64M", "--tcp", &address], &[&address, "in use"]);

    write(&folder, "notes.txt", "mine");
    refused(&folder, &["serve", "--capacity", "64M", "--vfio-user", "notes.txt"], &["notes.txt", "not a socket"]);
    refused(&folder, &["serve", "--capacity", "64M", "--tcp", "127.0.0.1:0", "--data", "notes.txt"], &["notes.txt"]);
    assert_eq!(std::fs::read(folder.path().join("notes.txt")).expect("still there"), b"mine");

    let first = ServerProcess::start(&folder, &[&SMALL[..], &["--vfio-user", "drive.sock"]].concat());
    let second = warp(&folder, &[&["serve"], &SMALL[..], &["--tcp", "127.0.0.1:0"]].concat());
    let error = String::from_utf8_lossy(&second.stderr).to_string();
    assert_eq!(second.status.code(), Some(BAD_INPUT), "{error}");
    assert!(error.contains("another server uses") && error.trim_end().lines().count() == 1, "{error}");
    refused(&folder, &["serve", "--capacity", "64M", "--vfio-user", "drive.sock"], &["drive.sock", "another server"]);
    first.stop();
    assert!(!folder.path().join("drive.sock").exists(), "the socket is removed");
}

#[test]
fn a_drive_of_another_shape_is_refused_and_stays() {
    let folder = folder();
    ServerProcess::start(&folder, &[&SMALL[..], &["--tcp", "127.0.0.1:0"]].concat()).stop();
    let before: Vec<(std::path::PathBuf, Vec<u8>)> =
        files(folder.path()).into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    let serve = ["serve", "--tcp", "127.0.0.1:0", "--data", "drive.img", "--capacity"];
    refused(&folder, &[&serve[..], &["128M"]].concat(), &["drive.img"]);
    let other = ["64M", "--set", "geometry.over_provisioning=0.3"];
    refused(&folder, &[&serve[..], &other].concat(), &["drive.img", "over_provisioning"]);
    for (path, bytes) in before {
        assert!(std::fs::read(&path).expect("still there") == bytes, "{} changed", path.display());
    }
    // The command also reports damage.
    std::fs::write(folder.path().join("drive.img.state"), b"no state").expect("written");
    refused(&folder, &[&serve[..], &["64M"]].concat(), &["drive.img.state"]);
}

#[test]
fn a_drive_outlives_its_server() {
    let folder = folder();
    let arguments = [&SMALL[..], &["--tcp", "127.0.0.1:0"]].concat();
    let served = ServerProcess::start(&folder, &arguments);
    assert!(served.introduction.starts_with("new drive of 64 MiB"), "{}", served.introduction);
    let write = |served: &ServerProcess, block: u64, byte: u8| {
        let mut controller =
            RemoteController::connect(&HostOptions::new(served.address(), &served.nqn())).expect("a drive");
        controller.set_queue_count(1).expect("a queue");
        let mut queue = controller.io_queue(1, 16).expect("a queue");
        let data = CommandData::ToController(vec![byte; 4096]);
        let done = queue.command(block_command(IoOpcode::Write, 1, block, 1), data).expect("a completion");
        assert_eq!(done.status(), Status::SUCCESS);
    };
    write(&served, 3, 7);
    let inspected = json(&prints(&folder, &["drive", "inspect", &format!("tcp:{}", served.address()), "--json"]));
    assert_eq!(inspected["enabled"]["statistics"]["host_bytes_written"], 4096);
    assert!(served.stop().contains("write amplification 1.000"));

    let stored = prints(&folder, &["drive", "inspect", "drive.img"]);
    assert!(stored.contains("shut down cleanly") && stored.contains("HBMW 4096 bytes"), "{stored}");

    let served = ServerProcess::start(&folder, &arguments);
    assert!(served.introduction.contains("shut down cleanly"), "{}", served.introduction);
    let mut controller =
        RemoteController::connect(&HostOptions::new(served.address(), &served.nqn())).expect("a drive");
    controller.set_queue_count(1).expect("a queue");
    let mut queue = controller.io_queue(1, 16).expect("a queue");
    let read = queue
        .command(block_command(IoOpcode::Read, 1, 3, 1), CommandData::ToHost(vec![0; 4096]))
        .expect("a completion");
    assert_eq!((read.status(), read.data), (Status::SUCCESS, vec![7; 4096]));
}

#[test]
fn several_drives_have_files_addresses_and_counters_of_their_own() {
    let folder = folder();
    let arguments = [&SMALL[..], &["--tcp", "127.0.0.1:0", "--drives", "2"]].concat();
    let served = ServerProcess::start(&folder, &arguments);
    let introduction = served.introduction.clone();
    for number in 1..=2 {
        assert!(introduction.contains(&format!("drive {number}: new drive of 64 MiB")), "{introduction}");
    }
    let second = introduction.split("drive 2: ").nth(1).expect("the second drive");
    let after = |word: &str| second.split(word).nth(1).expect(word).split_whitespace().next().expect("a value");
    let address = format!("tcp:{}:{}", after(" -a "), after(" -s "));
    common::write(&folder, "job.fio", "[a]\nrw=write\nbs=64k\n");
    prints(&folder, &["run", "job.fio", "--target", &address, "--drive-writes", "1", "--no-keep"]);
    let inspected = json(&prints(&folder, &["drive", "inspect", &address, "--json"]));
    assert_eq!(inspected["enabled"]["statistics"]["host_bytes_written"], 64 << 20);
    let printed = served.stop();
    assert!(printed.contains("drive 1: stopped, nothing written"), "{printed}");
    assert!(printed.contains("drive 2: stopped, write amplification 1.000"), "{printed}");
    for number in 1..=2 {
        let stored = prints(&folder, &["drive", "inspect", &format!("drive.img.{number}")]);
        assert!(stored.contains("shut down cleanly"), "{stored}");
    }
    let ports = [&SMALL[..], &["--tcp", "127.0.0.1:65535", "--drives", "2"]].concat();
    refused(&folder, &[&["serve"], &ports[..]].concat(), &["--tcp", "drive 2", "65535"]);
    assert!(!folder.path().join("drive.img").exists(), "each file has a number");
}

#[test]
fn a_drive_without_placement_says_so() {
    let folder = folder();
    let served = ServerProcess::start(&folder, &["--capacity", "64M", "--fdp", "off", "--tcp", "127.0.0.1:0"]);
    let target = format!("tcp:{}", served.address());
    assert!(prints(&folder, &["drive", "inspect", &target]).contains("Flexible Data Placement is not enabled"));
    let inspected = json(&prints(&folder, &["drive", "inspect", &target, "--json"]));
    assert_eq!((&inspected["supported"], &inspected["enabled"]), (&true.into(), &serde_json::Value::Null));
    assert!(served.stop().contains("nothing written"));
    refused(&folder, &["serve", "--tcp", "127.0.0.1:0", "--fdp", "perhaps"], &["--fdp", "on or off"]);
}

#[test]
fn inspect_says_what_it_cannot_look_into() {
    let folder = folder();
    refused(&folder, &["drive", "inspect", "nothing.img"], &["nothing.img"]);
    refused(&folder, &["drive", "inspect", "tcp:here"], &["tcp:ADDRESS:PORT"]);
    refused(&folder, &["drive", "inspect", "/dev/null"], &["/dev/null", "not an NVMe device"]);
    write(&folder, "log.bin", [0; 32]);
    refused(&folder, &["drive", "inspect", "log.bin"], &["log.bin"]);
    refused(&folder, &["drive", "inspect", "log.bin", "--log", "0x22"], &["FDP Statistics", "64 bytes"]);
    refused(&folder, &["drive", "inspect", "log.bin", "--log", "0x02"], &["--log", "0x23"]);
    // Statistics of a drive that wrote 2 bytes for each byte of the host.
    let mut page = [0; 64];
    page[0] = 100;
    page[16] = 200;
    write(&folder, "statistics.bin", page);
    assert!(
        prints(&folder, &["drive", "inspect", "statistics.bin", "--log", "22h"]).contains("write amplification 2.000")
    );
}

/// Returns the output or the error message of `warp drive check` with this exit code.
#[track_caller]
fn asserted(folder: &TempDir, arguments: &[&str], code: i32) -> String {
    let output = warp(folder, &[&["drive", "check"], arguments].concat());
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("words");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn promises_about_a_drive_are_kept_or_not() {
    let folder = folder();
    write(
        &folder,
        "churn.fio",
        "[global]\nrw=randwrite\nbs=4k\nnorandommap\ndataplacement=fdp\n[a]\nio_size=192m\nplids=1\n",
    );
    let server = ServerProcess::start(&folder, &[&SMALL[..], &["--tcp", "127.0.0.1:0"]].concat());
    let target = format!("tcp:{}", server.address());
    let nothing = asserted(&folder, &[&target, "--waf-at-most", "2"], 1);
    assert!(nothing.contains("nothing was written"), "{nothing}");
    prints(&folder, &["run", "churn.fio", "--target", &target]);
    let kept = asserted(&folder, &[&target, "--waf-at-most", "50"], 0);
    assert!(kept.contains(&target) && kept.contains("at most 50"), "{kept}");
    let broken = asserted(&folder, &[&target, "--waf-at-most", "1"], 1);
    assert!(broken.contains("above 1"), "{broken}");
    refused(&folder, &["drive", "check", &target, "--handle", "1:2"], &["--handle", "--data FILE"]);
    refused(&folder, &["drive", "check", "drive.img", "--handle", "1:2"], &["drive.img", "Stop the server"]);
    server.stop();
    let kept = asserted(&folder, &["drive.img", "--waf-at-most", "50", "--handle", "1:50"], 0);
    assert!(kept.contains("reclaim unit handle 1 is"), "{kept}");
    let broken = asserted(&folder, &["drive.img", "--waf-at-most", "50", "--handle", "1:1"], 1);
    assert!(broken.contains("reclaim unit handle 1 is") && !broken.contains("at most"), "{broken}");
    let unused = asserted(&folder, &["drive.img", "--handle", "0:1"], 1);
    assert!(unused.contains("nothing was written"), "{unused}");
    refused(&folder, &["drive", "check", "drive.img", "--handle", "99:2"], &["--handle", "99", "Give 0 to"]);
}
