//! A Linux with a drive: a stock kernel in a stock QEMU, built from Debian packages, that runs one command.
//!
//! ```text
//! build  Debian packages -> cache: QEMU, kernel, root file system          (once; `guest/build.sh`)
//! boot   cache, a drive's socket or port, a folder, a command -> QEMU      (each time; `init.sh`, then `start.sh` in the guest)
//!        ports of QEMU -> output, how it ended
//! shell  this terminal <-> a terminal of the guest
//! ```
//!
//! The guest's root file system is the cache's, read-only, below one in its memory: nothing stays of a boot but what was
//! written to the drive and to the shared folder. Both come to it by 9p. It can be reached by nobody, and reaches nothing but
//! the loopback addresses of this machine (10.0.2.2 to it), and those only where it has a network.
//!
//! No drive is served here: that is for whoever calls, so that nothing of the host's side depends on what serves.
//! QEMU ends with the thread that started it, however that ends.

mod boot;
mod build;
mod group;
mod shell;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use boot::{Accelerator, Attached, Ended, Machine, Stream, Task, boot};
pub use build::{Built, build, cache};

/// There is no guest, or it did not come as far as the command's end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// It cannot be built on this machine, or not now.
    #[error("the guest cannot be had: {0}")]
    Unavailable(String),
    /// The build failed in a way that nobody thought of.
    #[error("building the guest failed: {0}; --build-only tries it again")]
    Build(String),
    /// Somebody stopped the build.
    #[error("stopped while the guest was built; what is there already is kept")]
    Stopped,
    /// Something of this machine cannot be read, written or started.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// QEMU refused its arguments, or was ended by somebody.
    #[error("QEMU ended before the guest was done ({status}): {words}")]
    Qemu {
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last that it said.
        words: String,
    },
    /// The kernel ended without a word on how the command did.
    #[error("the guest died before it was done; its last words: {0:?} (--console FILE keeps all of them)")]
    Died(String),
    /// The kernel does not come up.
    #[error("the guest was not up after {} s; its last words: {words:?} (--console FILE keeps all of them)", after.as_secs())]
    NotUp {
        /// So long was waited.
        after: Duration,
        /// The last line of its console.
        words: String,
    },
    /// What the guest found missing when it was up.
    #[error("the guest is up, but {0}")]
    Incomplete(String),
}

impl GuestError {
    /// Whether it is about a guest that does not start, as it is where KVM cannot run its kernel.
    fn is_of_start(&self) -> bool {
        matches!(
            self,
            GuestError::Qemu { .. } | GuestError::Died(_) | GuestError::NotUp { .. }
        )
    }

    fn io(what: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> GuestError {
        let what = what.into().display().to_string();
        move |source| GuestError::Io { what, source }
    }
}
