//! Runs a process with its descendants, and ends all of them on drop.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process_group};

const PAUSE: Duration = Duration::from_millis(10);

/// Process in its own process group, so that keys of the terminal do not reach it.
pub struct ProcessGroup {
    child: Child,
    status: Option<ExitStatus>,
    patience: Duration,
}

impl ProcessGroup {
    /// Starts a command. Drop sends a termination signal, and kills the group after `patience`.
    pub fn start(command: &mut Command, patience: Duration) -> io::Result<ProcessGroup> {
        let child = command.process_group(0).spawn()?;
        Ok(ProcessGroup { child, status: None, patience })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        while !matches!(self.try_wait(), Ok(Some(_)) | Err(_)) {
            if begun.elapsed() >= time {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.ends_within(Duration::ZERO) {
            return;
        }
        // The group's number is that of the process, which remains ours until `wait`. A failed
        // signal means that the group is gone.
        let group = Pid::from_child(&self.child);
        if !self.patience.is_zero() {
            let _ = kill_process_group(group, Signal::TERM);
        }
        if !self.ends_within(self.patience) {
            let _ = kill_process_group(group, Signal::KILL);
            drop(self.child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn all_that_a_process_started_ends_with_it() {
        let script = "sleep 1000 & echo $!; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        let mut group = ProcessGroup::start(&mut command, Duration::from_secs(5)).expect("there is a shell");
        let mut line = String::new();
        let output = group.child().stdout.take().expect("it is piped");
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).expect("a number");
        drop(group);
        // A signal ends a process of another processor a moment later.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", line.trim())).unwrap_or_default();
        let has_ended = || state().is_empty() || state().contains(") Z ");
        let ended = (0..1000).any(|_| {
            has_ended() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(ended, "{}", state());
    }
}
