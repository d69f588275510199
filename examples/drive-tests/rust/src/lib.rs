//! A served drive for tests in Rust, with the standard library only. Copy this file to your project.
//!
//! The program is `warp`, or the path in the environment variable `WARP`.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A new drive that a process of its own serves over NVMe/TCP on loopback.
pub struct ServedDrive {
    process: Child,
    folder: PathBuf,
    target: String,
}

/// Returns a command line of `warp`.
pub fn warp() -> Command {
    Command::new(std::env::var_os("WARP").unwrap_or_else(|| "warp".into()))
}

impl ServedDrive {
    /// Serves a new drive of a capacity such as `64M`. Its folder replaces one of an interrupted test.
    pub fn start(folder: &Path, capacity: &str) -> io::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir(folder)?;
        let mut process = warp()
            .args(["serve", "--quiet", "--timing", "off", "--tcp", "127.0.0.1:0", "--capacity", capacity])
            .arg("--data")
            .arg(folder.join("drive.img"))
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(process.stdout.take().expect("the output is piped"));
        let mut lines = output.lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let words: Vec<_> = line.split_whitespace().map(str::to_string).collect();
            let at = words.iter().position(|word| word == "-s")?;
            words.get(at + 1).cloned()
        });
        // The server must not wait for a reader of its further output.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(port) = port else {
            let status = process.wait()?;
            return Err(io::Error::other(format!("warp serve ended with {status}")));
        };
        Ok(Self { process, folder: folder.to_path_buf(), target: format!("tcp:127.0.0.1:{port}") })
    }

    /// Address of the drive, such as `tcp:127.0.0.1:4420`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Stops the drive and checks its counters with options of `warp drive check`. Returns the
    /// exceeded limits as an error.
    pub fn check(mut self, limits: &[&str]) -> Result<(), String> {
        let stopped = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
        stopped.map_err(|problem| problem.to_string())?;
        let status = self.process.wait().map_err(|problem| problem.to_string())?;
        if !status.success() {
            return Err(format!("warp serve ended with {status}"));
        }
        let checked = warp().args(["drive", "check"]).arg(self.folder.join("drive.img")).args(limits).output();
        let checked = checked.map_err(|problem| problem.to_string())?;
        match checked.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&checked.stderr).into_owned()),
        }
    }
}

impl Drop for ServedDrive {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
