//! Why a drive cannot be served: one sentence that says what is in the way and what to do about it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// A server that does not start, or does not end as it should. See the module.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The drive cannot be opened or closed.
    #[error(transparent)]
    Drive(#[from] crate::storage::DriveError),
    /// The drive cannot fail as it is to.
    #[error(transparent)]
    Faults(#[from] nvme::fault::CannotFail),
    /// Somebody serves this socket.
    #[error("{}: another server listens on this socket; stop it or choose another path", .0.display())]
    SocketTaken(PathBuf),
    /// There is a file that is not a socket.
    #[error("{}: there is a file that is not a socket; choose another path or remove it", .0.display())]
    NotASocket(PathBuf),
    /// A Unix socket cannot be made.
    #[error("{}: the socket cannot be made: {source}", path.display())]
    Socket {
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Somebody listens on this port.
    #[error("{0}: the port is in use; stop the other server or choose another port (0 for any free one)")]
    PortInUse(SocketAddr),
    /// The machine does not have this address.
    #[error("{0}: no network interface of this machine has this address; use one that it has, or 127.0.0.1")]
    AddressNotLocal(SocketAddr),
    /// Ports below 1024 usually.
    #[error("{0}: this user may not listen on port {port}; choose one above 1023", port = .0.port())]
    PortNotPermitted(SocketAddr),
    /// The system refuses for another reason.
    #[error("{address}: it is not possible to listen here: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Others could reach the drive.
    #[error(
        "{0}: other machines can reach this address, so the hosts that may connect must be listed, each with a \
         DH-HMAC-CHAP secret; list them, or listen on 127.0.0.1"
    )]
    HostsRequired(SocketAddr),
    /// Whoever is not on this machine has to show a token.
    #[error(
        "{0} is not loopback, so whoever reaches it could read from it; give a token (warp serve --metrics-token FILE, \
         warp studio --token FILE)"
    )]
    TokenRequired(SocketAddr),
    /// A token that could be guessed.
    #[error("the token is too short; give {bytes} bytes or more")]
    TokenTooShort {
        /// Bytes that are enough.
        bytes: usize,
    },
    /// Others could reach the drive with only a name.
    #[error(
        "{address}: other machines can reach this address, but host {host} has no DH-HMAC-CHAP secret; give it one \
         (`nvme gen-dhchap-key` makes it), or listen on 127.0.0.1"
    )]
    SecretRequired {
        /// The address asked for.
        address: SocketAddr,
        /// NQN of the host without a secret.
        host: String,
    },
    /// An option of NVMe/TCP says something impossible.
    #[error("NVMe/TCP: {0}")]
    TcpOption(String),
    /// The system has no thread, no file descriptor, no timer left for us.
    #[error("{action}: {source}")]
    System {
        /// What was attempted, as a present participle.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl ServeError {
    /// Why it is not possible to listen on an address.
    pub(crate) fn listening(address: SocketAddr, source: std::io::Error) -> ServeError {
        match source.kind() {
            ErrorKind::AddrInUse => ServeError::PortInUse(address),
            ErrorKind::AddrNotAvailable => ServeError::AddressNotLocal(address),
            ErrorKind::PermissionDenied => ServeError::PortNotPermitted(address),
            _ => ServeError::Listen { address, source },
        }
    }
}
