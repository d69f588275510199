//! Builds the files of a guest once into a cache with the script `guest/build.sh` of this crate.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::GuestError;
use super::group::ProcessGroup;

const SCRIPT: &str = include_str!("../../guest/build.sh");
/// First half of the guest's start script, part of its initramfs.
const INIT: &str = include_str!("../../guest/init.sh");
/// Exit status of the script if the machine cannot have a guest.
const UNAVAILABLE: i32 = 77;
const PAUSE: Duration = Duration::from_millis(100);
/// Time for the package manager to end cleanly.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct GuestFiles {
    /// Folder with QEMU, `vmlinux` and `initramfs`.
    pub system: PathBuf,
    pub tree: PathBuf,
}

/// Cache folder of guests, `WARP_GUEST_CACHE` or `warp-guest` in this user's cache folder.
///
/// # Errors
/// The environment names no folder.
pub fn cache() -> Result<PathBuf, GuestError> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let found = folder("WARP_GUEST_CACHE").or_else(|| of_user().map(|folder| folder.join("warp-guest")));
    let found = found.ok_or_else(|| {
        GuestError::Unavailable(
            "HOME is not set, so there is no cache folder. Set WARP_GUEST_CACHE to a folder".to_string(),
        )
    })?;
    std::path::absolute(&found).map_err(GuestError::io(found))
}

/// Returns the files of a guest with these Debian packages, and builds missing parts. `on_step`
/// gets a description of each step. `stop` is polled regularly.
///
/// # Errors
/// The guest cannot be built, for example without root, network or disk space, with an unknown
/// package, or on another architecture.
pub fn build(
    cache: &Path,
    packages: &[String],
    stop: &dyn Fn() -> bool,
    on_step: &mut dyn FnMut(&str),
) -> Result<GuestFiles, GuestError> {
    let scripts = tempfile::tempdir().map_err(GuestError::io(env::temp_dir()))?;
    let [script, init, errors] = ["build.sh", "init.sh", "errors"].map(|name| scripts.path().join(name));
    for (path, text) in [(&script, SCRIPT), (&init, INIT)] {
        fs::write(path, text).map_err(GuestError::io(path))?;
    }
    let errors_file = fs::File::create(&errors).map_err(GuestError::io(&errors))?;
    let mut command = Command::new("bash");
    command.arg(&script).arg(cache).arg(&init).args(packages);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors_file);
    let mut group = ProcessGroup::start(&mut command, PATIENCE).map_err(GuestError::io("bash"))?;
    let output = group.child().stdout.take().expect("it is piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let (mut system, mut tree, mut problem) = (None, None, None);
    loop {
        if stop() {
            return Err(GuestError::Stopped);
        }
        let line = match lines.recv_timeout(PAUSE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match line.split_once(' ') {
            Some(("step", words)) => on_step(words),
            Some(("problem", sentence)) => problem = Some(sentence.to_string()),
            Some(("system", path)) => system = Some(PathBuf::from(path)),
            Some(("tree", path)) => tree = Some(PathBuf::from(path)),
            _ => {}
        }
    }
    let status = group.child().wait().map_err(GuestError::io("bash"))?;
    match (status.success(), system, tree) {
        (true, Some(system), Some(tree)) => Ok(GuestFiles { system, tree }),
        _ if status.code() == Some(UNAVAILABLE) => Err(GuestError::Unavailable(problem.unwrap_or_default())),
        _ => Err(GuestError::Build(last_line(&errors).unwrap_or(status.to_string()))),
    }
}

/// Last line of a file that is not blank.
pub(super) fn last_line(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_string)
}
