//! Input files: opens only regular files, and limits their size by kind.
//!
//! ```text
//! path -> open: refuses a folder, a device or a named pipe without waiting
//!      -> read, read_text: refuse files above a limit
//! ```
//!
//! The program may read its inherited pipes by path (`/dev/stdin`, `/dev/fd/63` of a shell's
//! `<(...)`), because another process is at their other end. A named pipe in the file system may
//! have no writer, so it is refused.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::HumanBytes;

/// Maximum size of a text written by people: jobs, workloads, profiles, experiments, plans, lists
/// of hosts.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of a text written by programs: results, stored runs, log pages.
pub const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Returns true if a path names a descriptor that the program has inherited.
pub fn is_inherited(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// Opens a file for reading. Refuses other kinds of files without waiting, except inherited pipes
/// and sockets.
///
/// # Errors
/// A system call failed, or the file is of another kind.
pub fn open(path: &Path) -> Result<File> {
    if is_inherited(path) {
        let file = File::open(path)?;
        let file_type = file.metadata()?.file_type();
        return if file_type.is_fifo() || file_type.is_socket() { Ok(file) } else { regular(file) };
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let opened = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    regular(opened)
}

pub(crate) fn regular(file: File) -> Result<File> {
    let file_type = file.metadata()?.file_type();
    let kind = if file_type.is_file() {
        return Ok(file);
    } else if file_type.is_dir() {
        "a folder"
    } else if file_type.is_fifo() {
        "a named pipe, which may never receive data"
    } else if file_type.is_char_device() || file_type.is_block_device() {
        "a device"
    } else {
        "a socket"
    };
    let error = if file_type.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    Err(Error::new(error, format!("this is {kind}. Give a regular file")))
}

/// Reads a file of `bytes_max` bytes at most.
///
/// # Errors
/// As [`open`], or the file is longer.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    read_all(open(path)?, bytes_max)
}

/// Reads a text of `bytes_max` bytes at most.
///
/// # Errors
/// As [`read`], or the text is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    read_all_text(open(path)?, bytes_max)
}

/// Reads the rest of a stream, `bytes_max` bytes at most.
///
/// # Errors
/// A system call failed, or the stream is longer.
pub fn read_all(stream: impl Read, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= bytes_max) {
        return Ok(bytes);
    }
    let problem = format!("the content is longer than {}, the maximum for such a file", HumanBytes(bytes_max));
    Err(Error::new(ErrorKind::FileTooLarge, problem))
}

/// Reads the rest of a stream as text, `bytes_max` bytes at most.
///
/// # Errors
/// As [`read_all`], or the text is not UTF-8.
pub fn read_all_text(stream: impl Read, bytes_max: u64) -> Result<String> {
    String::from_utf8(read_all(stream, bytes_max)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "the content is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_of_files_are_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        for (path, expected) in [
            (pipe.as_path(), "this is a named pipe, which may never receive data. Give a regular file"),
            (folder.path(), "this is a folder. Give a regular file"),
            (Path::new("/dev/zero"), "this is a device. Give a regular file"),
        ] {
            let error = read_text(path, 100).expect_err("it is refused");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "four").expect("it is written");
        assert_eq!(read_text(&file, 4).expect("it is short enough"), "four");
        let error = read_text(&file, 3).expect_err("it is refused").to_string();
        assert_eq!(error, "the content is longer than 3 B, the maximum for such a file");
        std::fs::write(&file, [0xff]).expect("it is written");
        assert_eq!(read_text(&file, 3).expect_err("it is refused").kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_pipe_that_the_program_was_started_with_is_read() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(b"text").expect("a pipe has space for four bytes");
        drop(writer);
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(read_text(Path::new(&path), 4).expect("it is read"), "text");
    }
}
