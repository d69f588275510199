//! Runs the `warp` command in a folder of its own.

// Each test program uses a part of this module.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Exit code of bad input.
pub const BAD_INPUT: i32 = 2;

pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Folder of the kept runs of a test.
pub fn kept_in(folder: &TempDir) -> PathBuf {
    let name = folder.path().file_name().expect("it has a name");
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("runs").join(name)
}

pub fn warp(folder: &TempDir, arguments: &[&str]) -> Output {
    warp_fed(folder, arguments, Stdio::null())
}

/// Runs the command with this standard input.
pub fn warp_fed(folder: &TempDir, arguments: &[&str], input: impl Into<Stdio>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    // The developer's environment must have no effect. With this variable a panic prints
    // differently.
    command.env_remove("RUST_BACKTRACE").current_dir(folder).args(arguments);
    // The store is beside the folder, whose files are counted.
    command.env("WARP_RUNS", kept_in(folder));
    command.stdin(input).output().expect("the program runs")
}

/// Returns all files and folders in a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

pub fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(folder.path().join(name), text).expect("the file is written");
}

/// Writes a file that only its owner can read.
pub fn write_secret(folder: &TempDir, name: &str, text: &str) {
    write(folder, name, text);
    chmod(folder, name, 0o600);
}

/// Sets the mode of a file.
pub fn chmod(folder: &TempDir, name: &str, mode: u32) {
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(folder.path().join(name), permissions).expect("it is ours");
}

/// Asserts that the command is refused in one sentence with all of these words, and writes nothing.
#[track_caller]
pub fn refused(folder: &TempDir, arguments: &[&str], says: &[&str]) {
    let before = files(folder.path());
    let output = warp(folder, arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(BAD_INPUT), "{arguments:?}: {error}{printed}");
    assert!(error.starts_with("warp: "), "{arguments:?}: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{arguments:?}: {error}");
    assert!(error.ends_with('\n'), "{arguments:?}: {error}");
    for never in ["panicked", "backtrace", "stack", "unwrap"] {
        assert!(!error.contains(never), "{arguments:?}: {error}");
    }
    assert!(printed.is_empty(), "{arguments:?} printed {printed}");
    for part in says {
        assert!(error.contains(part), "{arguments:?} does not say {part:?}: {error}");
    }
    assert_eq!(files(folder.path()), before, "{arguments:?} wrote something");
}

/// Asserts that the command succeeds. Returns its output.
#[track_caller]
pub fn prints(folder: &TempDir, arguments: &[&str]) -> String {
    let output = warp(folder, arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    assert!(error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
pub fn json(text: &str) -> serde_json::Value {
    assert_eq!(text.trim_end().lines().count(), 1, "JSON is one line");
    serde_json::from_str(text).expect("JSON")
}

/// Running server. `stop` ends it in an orderly way, and a failing test kills it.
pub struct ServerProcess {
    pub process: Child,
    /// Output until the server was ready.
    pub introduction: String,
    output: BufReader<std::process::ChildStdout>,
}

impl ServerProcess {
    pub fn start(folder: &TempDir, arguments: &[&str]) -> ServerProcess {
        ServerProcess::start_command(folder, "serve", arguments)
    }

    /// Starts a command that serves until Ctrl-C.
    pub fn start_command(folder: &TempDir, name: &str, arguments: &[&str]) -> ServerProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
        command.arg(name).args(arguments).current_dir(folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program runs");
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut introduction = String::new();
        while !introduction.contains("Ctrl-C") {
            let bytes = output.read_line(&mut introduction).expect("text");
            assert!(bytes > 0, "the server ended: {introduction}{}", errors(&mut process));
        }
        ServerProcess { process, introduction, output }
    }

    pub fn address(&self) -> SocketAddr {
        let line = self.introduction.lines().find(|line| line.contains("nvme connect"));
        let words: Vec<&str> = line.expect("NVMe/TCP is served").split_whitespace().collect();
        let after = |flag: &str| words[words.iter().position(|word| *word == flag).expect("a flag") + 1];
        format!("{}:{}", after("-a"), after("-s")).parse().expect("an address")
    }

    pub fn nqn(&self) -> String {
        self.introduction.split(" -n ").nth(1).expect("an NQN").split_whitespace().next().expect("an NQN").to_string()
    }

    /// Sends Ctrl-C. Returns the output at the end.
    pub fn stop(mut self) -> String {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
        let mut last = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut last).expect("text");
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "{last}{}", errors(&mut self.process));
        last
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn errors(process: &mut Child) -> String {
    let mut text = String::new();
    if let Some(stderr) = &mut process.stderr {
        let _ = std::io::Read::read_to_string(stderr, &mut text);
    }
    text
}
