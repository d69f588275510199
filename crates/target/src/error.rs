//! Reasons why a drive cannot be served. Each message names the problem and its remedy.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// An error when the server starts or stops.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The drive cannot be opened or closed.
    #[error(transparent)]
    Drive(#[from] crate::storage::DriveError),
    /// This drive cannot execute the fault plan.
    #[error(transparent)]
    Faults(#[from] nvme::fault::UnsupportedFault),
    #[error("another server listens on the socket {}. Stop it or choose another path", .0.display())]
    SocketTaken(PathBuf),
    #[error("{} exists and is not a socket. Choose another path or remove it", .0.display())]
    NotASocket(PathBuf),
    #[error("cannot create the socket {} ({source})", path.display())]
    Socket { path: PathBuf, source: std::io::Error },
    #[error("the port of {0} is in use. Stop the other server or choose another port (0 for any free one)")]
    PortInUse(SocketAddr),
    #[error("no network interface of this machine has the address {0}. Use an address of this machine, or 127.0.0.1")]
    AddressNotLocal(SocketAddr),
    #[error("this user may not listen on port {port} of {0}. Choose a port above 1023", port = .0.port())]
    PortNotPermitted(SocketAddr),
    #[error("cannot listen on {address} ({source})")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(
        "other machines can reach {0}, so each allowed host must be listed with a DH-HMAC-CHAP secret. List them \
         (--hosts FILE), or listen on 127.0.0.1"
    )]
    HostsRequired(SocketAddr),
    #[error(
        "{0} is not a loopback address, so other machines could read from it. Give a token (warp serve --metrics-token \
         FILE, warp studio --token FILE)"
    )]
    TokenRequired(SocketAddr),
    #[error("the token is too short. Give {bytes} bytes or more")]
    TokenTooShort { bytes: usize },
    #[error(
        "other machines can reach {address}, but host {host} has no DH-HMAC-CHAP secret. Generate one with `nvme \
         gen-dhchap-key`, or listen on 127.0.0.1"
    )]
    SecretRequired { address: SocketAddr, host: String },
    #[error("an NVMe/TCP option is invalid, because {0}")]
    TcpOption(String),
    /// The system has no thread, file descriptor or timer left.
    #[error("{action} failed: {source}")]
    System {
        /// Attempted action, as a present participle.
        action: &'static str,
        source: std::io::Error,
    },
}

impl ServeError {
    pub(crate) fn listening(address: SocketAddr, source: std::io::Error) -> ServeError {
        match source.kind() {
            ErrorKind::AddrInUse => ServeError::PortInUse(address),
            ErrorKind::AddrNotAvailable => ServeError::AddressNotLocal(address),
            ErrorKind::PermissionDenied => ServeError::PortNotPermitted(address),
            _ => ServeError::Listen { address, source },
        }
    }
}
