//! The socket file. Only the same user can connect. The server replaces a stale file and removes
//! its own file at the end.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use crate::ServeError;

/// Clients that may wait behind the current one.
const BACKLOG: i32 = 16;

/// A listening socket and its file.
pub struct Socket {
    pub listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, so that the server removes only its own file.
    identity: (u64, u64),
}

impl Socket {
    /// Listens on a path.
    pub fn bind(path: &Path) -> Result<Socket, ServeError> {
        remove_stale(path)?;
        let failed = |source| ServeError::Socket { path: path.to_path_buf(), source };
        let listener = listen_at(path).map_err(failed)?;
        let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Socket { listener, path: path.to_path_buf(), identity: (metadata.dev(), metadata.ino()) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| ours(&metadata)) {
            // If this fails, the next server replaces the stale socket.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Set before `bind`, which creates the file with this mode. Other users thus can never connect.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Removes the socket file of a server that has ended.
fn remove_stale(path: &Path) -> Result<(), ServeError> {
    let path_buf = || path.to_path_buf();
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(ServeError::Socket { path: path_buf(), source });
        }
        Ok(metadata) => metadata,
    };
    if !metadata.file_type().is_socket() {
        return Err(ServeError::NotASocket(path_buf()));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ServeError::SocketTaken(path_buf())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|source| ServeError::Socket { path: path_buf(), source })
        }
        Err(source) => Err(ServeError::Socket { path: path_buf(), source }),
    }
}
