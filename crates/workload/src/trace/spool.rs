//! Spools of traces that can be read only once, such as standard input and pipes of `<(...)`.
//!
//! A trace is opened several times, to find its touched units, for each run, and for each copy that
//! looks ahead. The contents of a stream are therefore copied to an unnamed temporary file as they
//! arrive, compressed or not. The disk limits its size. The file exists as long as the program and
//! vanishes however the program ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// File name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// Bytes per copy operation.
const COPY_BYTES: usize = 1 << 20;

/// Reader of a stream's contents, from the beginning. Each copy has its own position.
#[derive(Debug, Clone)]
pub struct Spool {
    file: Arc<File>,
    at: u64,
}

/// True if a file is a stream, which can be read only once. Named pipes do not count and are
/// refused as input.
pub fn is_stream(path: &Path) -> bool {
    let is_pipe = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    path.as_os_str() == STANDARD_INPUT || (base::input::is_inherited(path) && is_pipe())
}

/// Returns the contents of a stream. The first call reads the stream to its end.
///
/// # Errors
/// Fails if the stream cannot be read, is a terminal, or exceeds the disk. The last error names the
/// folder and how to choose another one.
pub fn open(path: &Path) -> io::Result<Spool> {
    static SPOOLS: Mutex<BTreeMap<PathBuf, Arc<File>>> = Mutex::new(BTreeMap::new());
    let mut spools = SPOOLS.lock().expect("nobody panics while spooling");
    let file = match spools.get(path) {
        Some(file) => Arc::clone(file),
        None => {
            let file = Arc::new(read_stream(path)?);
            spools.insert(path.to_path_buf(), Arc::clone(&file));
            file
        }
    };
    Ok(Spool { file, at: 0 })
}

/// Name of a file in messages.
pub fn display_name(path: &Path) -> String {
    if path.as_os_str() == STANDARD_INPUT {
        return "standard input".to_string();
    }
    path.display().to_string()
}

fn read_stream(path: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile().map_err(|error| no_room(0, &error))?;
    if path.as_os_str() != STANDARD_INPUT {
        copy(&mut base::input::open(path)?, &mut file)?;
        return Ok(file);
    }
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is a terminal. Pipe a trace into it, for example `zstd -dc trace.zst | warp whatif -`",
        ));
    }
    copy(&mut input, &mut file)?;
    Ok(file)
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut copied = 0;
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return to.flush().map_err(|error| no_room(copied, &error)),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..bytes]).map_err(|error| no_room(copied, &error))?;
        copied += bytes as u64;
    }
}

fn no_room(copied: u64, error: &io::Error) -> io::Error {
    let problem = format!(
        "the temporary copy of the stream in {} failed after {} ({error}). Free some space, or set TMPDIR to \
         another folder",
        std::env::temp_dir().display(),
        base::HumanBytes(copied)
    );
    io::Error::new(error.kind(), problem)
}

impl Spool {
    /// Total bytes of the stream.
    ///
    /// # Errors
    /// Fails if the system cannot return the size.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl Read for Spool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_can_be_read_again_and_by_several() {
        let mut file = tempfile::tempfile().unwrap();
        copy(&mut &b"one two"[..], &mut file).unwrap();
        let mut first = Spool { file: Arc::new(file), at: 0 };
        let mut second = first.clone();
        let (mut four, mut all, mut rest) = ([0; 4], String::new(), String::new());
        first.read_exact(&mut four).unwrap();
        second.read_to_string(&mut all).unwrap();
        first.read_to_string(&mut rest).unwrap();
        assert_eq!((&four, all.as_str(), rest.as_str()), (b"one ", "one two", "two"));
        assert_eq!(first.length().unwrap(), 7);
    }

    #[test]
    fn a_disk_without_room_is_one_sentence_with_the_folder() {
        let mut full = File::create("/dev/full").unwrap();
        let error = copy(&mut &b"data"[..], &mut full).unwrap_err().to_string();
        let folder = std::env::temp_dir().display().to_string();
        assert!(error.contains("No space left") && error.contains(&folder), "{error}");
        assert!(error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn only_streams_are_streams() {
        assert!(is_stream(Path::new("-")));
        assert!(!is_stream(Path::new("Cargo.toml")) && !is_stream(Path::new("no/such/file")));
    }
}
