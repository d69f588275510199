//! `warp guest` on a machine where no guest can be built: one sentence, exit code 125, and no
//! remains. `tests/host` tests real guests, and `crates/host_tools/tests/guest.rs` replaces QEMU by
//! another program.

mod common;

use std::path::Path;
use std::process::Command;

use common::{files, folder, refused};

/// Exit code if no guest can be built.
const NO_GUEST: i32 = 125;

/// Returns the message of `warp guest -- true` with this cache and mirror.
fn refusal(cache: &Path, mirror: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_warp"))
        .args(["guest", "--capacity", "64M", "--", "true"])
        .envs([("WARP_GUEST_CACHE", cache.as_os_str()), ("WARP_DEBIAN_MIRROR", mirror.as_ref())])
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stderr).expect("words");
    assert_eq!(output.status.code(), Some(NO_GUEST), "{text}");
    assert!(output.stdout.is_empty());
    let last = text.lines().last().expect("a sentence");
    assert!(last.starts_with("warp: the guest is not available, because "), "{text}");
    last.to_string()
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let text = refusal(Path::new("/dev/null/guest"), "");
    assert!(text.contains("/dev/null/guest"), "{text}");
}

#[test]
fn a_kernel_that_is_not_there_is_refused_before_a_build() {
    let folder = folder();
    refused(&folder, &["guest", "--kernel-image", "none", "--", "true"], &["--kernel-image", "none is not a file"]);
    refused(&folder, &["guest", "--initrd", "none", "--", "true"], &["--initrd", "none is not a file"]);
    common::write(&folder, "image", "");
    let modules = ["guest", "--kernel-image", "image", "--modules", ".", "--", "true"];
    refused(&folder, &modules, &["--modules", "no folder kernel", "lib/modules/VERSION"]);
    refused(&folder, &["guest", "--modules", ".", "--", "true"], &["--kernel-image"]);
    refused(&folder, &["guest", "--drives", "65", "--", "true"], &["--drives"]);
}

#[test]
fn without_a_network_nothing_is_left_of_a_build() {
    let folder = folder();
    // The discard port has no server. Without root, the message about root comes first.
    let text = refusal(folder.path(), "http://127.0.0.1:9/debian");
    let known = ["Check the network", "needs root", "free. Set", "needs Linux on x86-64"];
    assert!(known.iter().any(|words| text.contains(words)), "{text}");
    let left = files(folder.path());
    assert!(left.iter().all(|path| path.ends_with("lock")), "{left:?}");
}
