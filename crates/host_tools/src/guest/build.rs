//! Builds the files of a guest once into a cache with the script `guest/build.sh` of this crate.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
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
/// Its name, relative to the folder in which the script of this crate runs.
const INIT_FILE: &str = "init.sh";
/// Exit status of the script if the machine cannot have a guest.
const UNAVAILABLE: i32 = 77;
const PAUSE: Duration = Duration::from_millis(100);
/// Time for the package manager to end cleanly.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct GuestFiles {
    /// Folder with QEMU.
    pub system: PathBuf,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    /// The guest's root file system.
    pub tree: PathBuf,
}

/// Cache folder of guests, `WARP_GUEST_CACHE` or `warp-guest` in this user's cache folder.
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
    let mut arguments = vec![cache.into(), INIT_FILE.into()];
    arguments.extend(packages.iter().map(OsString::from));
    let (mut system, mut tree) = (None, None);
    run_script(&arguments, stop, &mut |name, value| match name {
        "step" => on_step(value),
        "system" => system = Some(PathBuf::from(value)),
        "tree" => tree = Some(PathBuf::from(value)),
        _ => {}
    })?;
    match (system, tree) {
        (Some(system), Some(tree)) => {
            Ok(GuestFiles { kernel: system.join("vmlinux"), initramfs: system.join("initramfs"), system, tree })
        }
        _ => Err(GuestError::Build("the script named no folders".to_string())),
    }
}

/// Replaces the initramfs by one in `folder` with the modules of another kernel. They are in
/// `modules`, the folder `lib/modules/VERSION`.
pub fn use_modules(
    files: &mut GuestFiles,
    modules: &Path,
    folder: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), GuestError> {
    let modules = modules.canonicalize().map_err(GuestError::io(modules))?;
    let initramfs = folder.join("initramfs");
    let busybox = files.system.join("usr/bin/busybox");
    let arguments = ["--initramfs".into(), modules.into(), busybox.into(), INIT_FILE.into(), initramfs.clone().into()];
    run_script(&arguments, stop, &mut |_, _| ())?;
    files.initramfs = initramfs;
    Ok(())
}

/// Adds the contents of another initramfs. Files of the guest take precedence over it.
pub fn add_initramfs(files: &mut GuestFiles, other: &Path, folder: &Path) -> Result<(), GuestError> {
    let joined = folder.join("initramfs.joined");
    let join = || {
        let mut out = fs::File::create(&joined)?;
        let bytes = io::copy(&mut fs::File::open(other)?, &mut out)?;
        // An archive begins at a multiple of four bytes.
        out.write_all(&[0; 4][..bytes.next_multiple_of(4).abs_diff(bytes) as usize])?;
        io::copy(&mut fs::File::open(&files.initramfs)?, &mut out)
    };
    join().map_err(GuestError::io(other))?;
    files.initramfs = joined;
    Ok(())
}

/// Runs the script in a folder with the first program, and passes on the lines of its output as names
/// and values.
fn run_script(
    arguments: &[OsString],
    stop: &dyn Fn() -> bool,
    on_line: &mut dyn FnMut(&str, &str),
) -> Result<(), GuestError> {
    let scripts = tempfile::tempdir().map_err(GuestError::io(env::temp_dir()))?;
    let [script, init, errors] = ["build.sh", INIT_FILE, "errors"].map(|name| scripts.path().join(name));
    for (path, text) in [(&script, SCRIPT), (&init, INIT)] {
        fs::write(path, text).map_err(GuestError::io(path))?;
    }
    let errors_file = fs::File::create(&errors).map_err(GuestError::io(&errors))?;
    let mut command = Command::new("bash");
    command.arg(&script).args(arguments).current_dir(&scripts);
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
    let mut problem = None;
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
            Some(("problem", sentence)) => problem = Some(sentence.to_string()),
            Some((name, value)) => on_line(name, value),
            None => {}
        }
    }
    let status = group.child().wait().map_err(GuestError::io("bash"))?;
    match status.code() {
        _ if status.success() => Ok(()),
        Some(UNAVAILABLE) => Err(GuestError::Unavailable(problem.unwrap_or_default())),
        _ => Err(GuestError::Build(last_line(&errors).unwrap_or(status.to_string()))),
    }
}

pub(super) fn last_line(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_string)
}
