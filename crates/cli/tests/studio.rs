//! `warp studio` as a process. It prints its address, starts with the given target, and ends
//! cleanly.

mod common;

use std::net::SocketAddr;

use common::{ServerProcess, folder, refused, write, write_secret};
use target::http::{ChangeRequest, send_request};

/// Returns the address that the server prints.
fn address(server: &ServerProcess) -> SocketAddr {
    let url = server.introduction.lines().next().expect("an address");
    let place = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    place.expect("an address").parse().expect("an address")
}

fn studio(folder: &tempfile::TempDir, arguments: &[&str]) -> ServerProcess {
    let arguments = [&["--listen", "127.0.0.1:0", "--no-open"], arguments].concat();
    ServerProcess::start_command(folder, "studio", &arguments)
}

fn get(server: &ServerProcess, token: &str, path: &str) -> (u16, String) {
    send_request(address(server), token, path, None).expect("an answer")
}

#[test]
fn it_serves_until_it_is_stopped() {
    let folder = folder();
    let server = studio(&folder, &[]);
    assert_eq!(get(&server, "", "/").0, 200);
    let (status, about) = get(&server, "", "/api/about");
    assert!(status == 200 && about.contains("\"drive\":false"), "{about}");
    assert_eq!(get(&server, "", "/api/sessions"), (200, "[]".to_string()));
    assert_eq!(server.stop(), "stopped\n");
}

#[test]
fn it_begins_with_what_it_is_told() {
    let folder = folder();
    write(&folder, "mine.fio", "[hot]\nrw=randwrite\nbs=16k\nsize=20%\n[cold]\nrw=write\noffset=20%\nsize=80%\n");
    for (arguments, lanes) in [
        (&["three_stream", "--scale", "1/2048", "--variant", "80/20"][..], ["NoFDP", "80/20"].as_slice()),
        (&["three_stream", "--device", "ssd_b", "--scale", "1/2048", "--variant", "FDP"], &["FDP"]),
        (&["mine.fio", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "1"], &["mine"]),
        (
            &["kvcache_202206", "--device", "ssd_a", "--drive-writes", "1", "--set", "workload.soc_percent=20"],
            &["kvcache_202206"],
        ),
    ] {
        let server = studio(&folder, arguments);
        let url = server.introduction.lines().next().expect("an address");
        assert!(url.ends_with("/#/session/s1"), "{url}");
        let (status, order) = get(&server, "", "/api/sessions/s1/order");
        assert_eq!(status, 200, "{arguments:?}: {order}");
        for name in lanes {
            assert!(order.contains(name), "{arguments:?}: {order}");
        }
        server.stop();
    }
}

#[test]
fn a_token_goes_with_the_address_and_is_asked_for() {
    let folder = folder();
    write_secret(&folder, "token", "0123456789abcdef+\n");
    let server = studio(&folder, &["--token", "token"]);
    let url = server.introduction.lines().next().expect("an address");
    assert!(url.ends_with("/?token=0123456789abcdef%2B"), "{url}");
    assert_eq!(get(&server, "0123456789abcdef+", "/api/sessions").0, 200);
    assert_eq!(get(&server, "0123456789abcdef", "/api/sessions").0, 401);
    server.stop();
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = folder();
    write_secret(&folder, "token", "short\n");
    refused(
        &folder,
        &["studio", "--no-open", "--listen", "0.0.0.0:0"],
        &["0.0.0.0:0 is not a loopback address", "--token"],
    );
    refused(&folder, &["studio", "--no-open", "--token", "token"], &["the token is too short"]);
    refused(&folder, &["studio", "--no-open", "--token", "nothing"], &["nothing"]);
    let port = ["--listen", "127.0.0.1:0", "--no-open"];
    let with = |more: &[&'static str]| [&["studio"], &port[..], more].concat();
    refused(&folder, &with(&["three_streams"]), &["did you mean three_stream?"]);
    refused(
        &folder,
        &with(&["three_stream", "--variant", "NoFPD"]),
        &["NoFPD is not a variant or value of three_stream"],
    );
    refused(&folder, &with(&["three_stream", "--device", "ssd_z"]), &["there is no device ssd_z"]);
    refused(&folder, &with(&["kvcache_202206"]), &["device: is missing"]);
    refused(&folder, &with(&["--device", "ssd_a"]), &["TARGET"]);
}

#[test]
fn a_served_drive_has_a_page() {
    let folder = folder();
    let arguments =
        ["--device", "warp_default", "--capacity", "64M", "--tcp", "127.0.0.1:0", "--studio", "127.0.0.1:0", "--quiet"];
    let server = ServerProcess::start_command(&folder, "serve", &arguments);
    let line = server.introduction.lines().find(|line| line.ends_with("/#/drive"));
    let place = line.and_then(|line| line.trim().strip_prefix("http://")?.split('/').next());
    let page: SocketAddr = place.expect("an address").parse().expect("an address");
    let asked = |path: &str| send_request(page, "", path, None).expect("an answer");
    let (status, about) = asked("/api/about");
    assert!(status == 200 && about.contains("\"drive\":true"), "{about}");
    let (status, drive) = asked("/api/drive");
    assert!(
        status == 200 && drive.contains("\"device\":\"warp_default\"") && drive.contains("\"name\":\"RUH 0\""),
        "{drive}"
    );
    let acted = send_request(page, "", "/api/drive/faults", Some(ChangeRequest::Delete)).expect("an answer");
    assert_eq!(acted.0, 403, "it is watched, not steered");
    assert!(server.stop().contains("stopped"));
}
