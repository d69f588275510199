//! Runs one command in a Linux guest with a drive: a stock kernel in a stock QEMU, built from
//! Debian packages.
//!
//! ```text
//! build  Debian packages -> cache: QEMU, kernel, root file system          (once, `guest/build.sh`)
//! boot   cache, a drive's socket or port, a folder, a command -> QEMU      (each time)
//!        in the guest: `guest/init.sh`, then `guest/start.sh`
//!        ports of QEMU -> output, exit code
//! shell  this terminal <-> a terminal of the guest
//! ```
//!
//! The guest's root file system is the read-only tree of the cache below a file system in memory.
//! After a boot, only the data on the drive and in the shared folder remains. The tree and the
//! shared folder are mounted over 9p. The guest cannot be reached from outside. It reaches only the
//! loopback addresses of this machine (10.0.2.2 in the guest), and only with a network.
//!
//! The caller serves the drive, so that this module does not depend on the server. QEMU ends with
//! the thread that started it, even after a crash.

mod boot;
mod build;
mod group;
mod shell;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use boot::{Accelerator, DriveTransports, GuestExit, GuestStream, Machine, Task, boot};
pub use build::{GuestFiles, add_initramfs, build, cache, use_modules};

#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("the guest is not available, because {0}")]
    Unavailable(String),
    #[error("the build of the guest failed with {0:?}. Try again with --build-only")]
    Build(String),
    #[error("the build of the guest was stopped. The next build continues from there")]
    Stopped,
    #[error("cannot use {what} ({source})")]
    Io { what: String, source: io::Error },
    #[error("QEMU ended before the command of the guest ended ({status}). Its last message was {words:?}")]
    Qemu { status: std::process::ExitStatus, words: String },
    #[error(
        "the guest ended before its command ended. Its last message was {0:?} (--console FILE stores all messages)"
    )]
    EndedEarly(String),
    #[error(
        "the guest was not up after {} s. Its last message was {words:?} (--console FILE stores all messages)",
        after.as_secs()
    )]
    NotUp { after: Duration, words: String },
    #[error("the guest started, but {0}")]
    Incomplete(String),
}

impl GuestError {
    /// Returns true for errors of the start, which KVM may cause if it cannot run the kernel.
    fn is_of_start(&self) -> bool {
        matches!(self, GuestError::Qemu { .. } | GuestError::EndedEarly(_) | GuestError::NotUp { .. })
    }

    fn io(what: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> GuestError {
        let what = what.into().display().to_string();
        move |source| GuestError::Io { what, source }
    }
}
