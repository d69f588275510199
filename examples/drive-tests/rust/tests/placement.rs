//! The store keeps its log and its index apart.

use std::path::Path;

use drive_tests::{ServedDrive, warp};

#[test]
fn the_log_causes_no_copies() {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store.fio");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("the_log_causes_no_copies");
    let drive = ServedDrive::start(&folder, "32M").expect("the drive is served");
    let run = warp().arg("run").arg(store).args(["--target", drive.target(), "--no-keep"]).status();
    assert!(run.expect("the store runs").success());
    drive.check(&["--waf-at-most", "1.15", "--handle", "0:1.01"]).expect("the placement holds");
}
