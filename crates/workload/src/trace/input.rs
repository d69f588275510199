//! Input files of a trace as lines or binary records, decompressed on the fly through one fixed
//! buffer.
//!
//! gzip and zstd are detected by their first bytes, not by the file's name. Positions are those in
//! the file on disk, so that they can be compared with its size.
//!
//! Memory is two buffers of 256 KiB and the decompressor's window, and two further buffers if another
//! thread decompresses ahead.

use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use super::spool;

/// Bytes of the buffer.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Maximum bytes of a line. Longer lines are bad, because no format comes near. The longest lines
/// are Mooncake's, with a number for each 512 tokens.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(LINE_BYTES_MAX < BUFFER_BYTES, "the longest line fits in the buffer");
/// Compressions by their first bytes, supported or not.
const MAGICS: [(&[u8], Compression); 5] = [
    (&[0x1f, 0x8b], Compression::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
    (&[0xfd, b'7', b'z', b'X', b'Z'], Compression::Unknown("xz")),
    (b"BZh", Compression::Unknown("bzip2")),
    (b"PK\x03\x04", Compression::Unknown("zip")),
];
/// Number of bytes that distinguishes all of them.
const MAGIC_BYTES: u64 = 5;
/// Position of the magic of a tar archive.
const TAR_MAGIC_AT: usize = 257;

enum Compression {
    Gzip,
    Zstd,
    Unknown(&'static str),
}

/// Counts the bytes read from a stream.
struct ByteCounter<R> {
    stream: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for ByteCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(buffer)?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOutcome<'a> {
    /// Bytes of the line, without the end of line.
    Text(&'a [u8]),
    /// Beginning of a line that exceeds the maximum.
    TooLong(&'a [u8]),
    /// End of the file.
    End,
}

/// A binary record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawRecord<'a> {
    pub(super) bytes: &'a [u8],
    /// True if the file ends within the record.
    pub(super) is_cut_off: bool,
}

/// Bytes of a file, decompressed.
#[derive(Default)]
struct Block {
    bytes: Cursor<Vec<u8>>,
    /// Bytes of the file that were read for it.
    file_bytes: u64,
    /// Error behind the bytes.
    failed: Option<io::Error>,
    is_last: bool,
}

/// A file that is decompressed in blocks. The bytes of a block count as read when it is begun, so
/// progress does not depend on the thread that decompresses.
struct BlockStream {
    source: BlockSource,
    block: Block,
    bytes_read: Arc<AtomicU64>,
}

enum BlockSource {
    /// This thread reads the blocks. `counted` counts bytes that are read from the file.
    Here { stream: Box<dyn Read + Send>, counted: Arc<AtomicU64> },
    /// Another thread reads ahead.
    Ahead(Receiver<Block>),
}

impl Block {
    fn read(stream: &mut dyn Read, counted: &AtomicU64) -> Block {
        let mut bytes = Vec::with_capacity(BUFFER_BYTES);
        let failed = stream.take(BUFFER_BYTES as u64).read_to_end(&mut bytes).err();
        let is_last = bytes.len() < BUFFER_BYTES;
        assert!(is_last || failed.is_none(), "an error comes before the end of a block");
        Block { bytes: Cursor::new(bytes), file_bytes: counted.swap(0, Ordering::Relaxed), failed, is_last }
    }
}

impl BlockStream {
    /// Reads the remaining blocks on another thread.
    fn read_ahead(&mut self) -> io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let here = std::mem::replace(&mut self.source, BlockSource::Ahead(receiver));
        let BlockSource::Here { mut stream, counted } = here else { unreachable!("one thread is enough") };
        super::start_thread(move || {
            loop {
                let block = Block::read(&mut stream, &counted);
                let is_last = block.is_last;
                // The reader may be gone.
                if sender.send(block).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(())
    }
}

impl Read for BlockStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.block.bytes.position() == self.block.bytes.get_ref().len() as u64 {
            if let Some(error) = self.block.failed.take() {
                return Err(error);
            }
            if self.block.is_last {
                return Ok(0);
            }
            self.block = match &mut self.source {
                BlockSource::Here { stream, counted } => Block::read(stream, counted),
                BlockSource::Ahead(blocks) => {
                    blocks.recv().unwrap_or_else(|_| panic!("the thread that decompresses panicked"))
                }
            };
            self.bytes_read.fetch_add(self.block.file_bytes, Ordering::Relaxed);
        }
        self.block.bytes.read(buffer)
    }
}

/// The lines or records of one file.
pub struct RecordReader {
    stream: BlockStream,
    is_compressed: bool,
    buffer: Box<[u8]>,
    /// Range of the bytes that are read and not yet returned.
    start: usize,
    end: usize,
    ended: bool,
    /// True if the rest of an overlong line comes next.
    inside_long_line: bool,
    number: u64,
}

impl RecordReader {
    /// Opens a file or a stream. Adds all bytes read to `bytes_read`.
    pub fn open(path: &Path, bytes_read: Arc<AtomicU64>) -> io::Result<RecordReader> {
        if spool::is_stream(path) {
            return RecordReader::new(spool::open(path)?, bytes_read);
        }
        RecordReader::new(base::input::open(path)?, bytes_read)
    }

    /// Reads lines of any stream.
    pub fn new(stream: impl Read + Send + 'static, bytes_read: Arc<AtomicU64>) -> io::Result<RecordReader> {
        let counted = Arc::<AtomicU64>::default();
        let (stream, is_compressed) = decompressor(ByteCounter { stream, bytes: Arc::clone(&counted) })?;
        let source = BlockSource::Here { stream, counted };
        let mut lines = RecordReader {
            stream: BlockStream { source, block: Block::default(), bytes_read },
            is_compressed,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            ended: false,
            inside_long_line: false,
            number: 0,
        };
        lines.fill()?;
        if lines.buffer[..lines.end].get(TAR_MAGIC_AT..TAR_MAGIC_AT + 5) == Some(b"ustar") {
            return Err(bad_stream("a tar archive. Unpack it first"));
        }
        Ok(lines)
    }

    /// Decompresses the rest of a compressed file on another thread.
    ///
    /// # Errors
    /// Fails if the system refuses a thread. The rest is then lost.
    pub(super) fn decompress_ahead(&mut self) -> io::Result<()> {
        match self.is_compressed && !self.ended {
            true => self.stream.read_ahead(),
            false => Ok(()),
        }
    }

    /// Number of the last returned line or record, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the first line without consuming it. Empty if the file is empty.
    pub fn first(&self) -> &[u8] {
        assert_eq!(self.number, 0, "the first line is looked at before it is taken");
        let text = &self.buffer[..self.end];
        without_return(&text[..memchr::memchr(b'\n', text).unwrap_or(text.len())])
    }

    /// Returns the beginning of the file, as much as the buffer holds.
    pub(super) fn head(&self) -> &[u8] {
        assert_eq!(self.number, 0, "the beginning is looked at before it is taken");
        &self.buffer[..self.end]
    }

    /// Consumes the next record. `length` computes its total length from its first `header_bytes`
    /// bytes. Returns `None` at the end.
    pub(super) fn take_record(
        &mut self,
        header_bytes: usize,
        length: impl Fn(&[u8]) -> usize,
    ) -> io::Result<Option<RawRecord<'_>>> {
        self.buffer_at_least(header_bytes)?;
        if self.start == self.end {
            return Ok(None);
        }
        let mut bytes = header_bytes;
        if self.end - self.start >= header_bytes {
            bytes = length(&self.buffer[self.start..self.start + header_bytes]);
            assert!((header_bytes..=BUFFER_BYTES).contains(&bytes), "a record fits in the buffer");
            self.buffer_at_least(bytes)?;
        }
        let record = self.start..self.end.min(self.start + bytes);
        self.start = record.end;
        self.number += 1;
        Ok(Some(RawRecord { is_cut_off: record.len() < bytes, bytes: &self.buffer[record] }))
    }

    /// Consumes the next record of `bytes` bytes in the form of a line. A truncated record is "too
    /// long".
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn take_fixed_record(&mut self, bytes: usize) -> io::Result<ReadOutcome<'_>> {
        self.take_record_as_line(bytes, |_| bytes)
    }

    /// Like `take_record_of`, for a record that contains its length.
    pub(super) fn take_record_as_line(
        &mut self,
        header_bytes: usize,
        length: impl Fn(&[u8]) -> usize,
    ) -> io::Result<ReadOutcome<'_>> {
        Ok(match self.take_record(header_bytes, length)? {
            None => ReadOutcome::End,
            Some(record) if record.is_cut_off => ReadOutcome::TooLong(record.bytes),
            Some(record) => ReadOutcome::Text(record.bytes),
        })
    }

    /// Reads until `bytes` bytes are available or the stream ends.
    fn buffer_at_least(&mut self, bytes: usize) -> io::Result<()> {
        if self.end - self.start < bytes && !self.ended {
            self.fill()?;
        }
        Ok(())
    }

    /// Consumes the next line.
    pub fn take_line(&mut self) -> io::Result<ReadOutcome<'_>> {
        // Bytes that were searched before a refill are not searched again.
        let mut searched = 0;
        loop {
            let text = &self.buffer[self.start..self.end];
            let waiting = text.len();
            if let Some(length) = memchr::memchr(b'\n', &text[searched..]) {
                let line = self.start..self.start + searched + length;
                self.start = line.end + 1;
                searched = 0;
                if !std::mem::take(&mut self.inside_long_line) {
                    return Ok(self.emit_line(line));
                }
                continue;
            }
            if self.ended {
                return Ok(self.last_line());
            }
            searched = waiting;
            if waiting > LINE_BYTES_MAX || self.inside_long_line {
                let begins = self.start..self.start + LINE_BYTES_MAX;
                self.start = self.end;
                searched = 0;
                if !std::mem::replace(&mut self.inside_long_line, true) {
                    return Ok(self.emit_line(begins.start..begins.end + 1));
                }
            }
            self.fill()?;
        }
    }

    fn emit_line(&mut self, line: std::ops::Range<usize>) -> ReadOutcome<'_> {
        self.number += 1;
        let line = &self.buffer[line];
        if line.len() > LINE_BYTES_MAX {
            ReadOutcome::TooLong(&line[..LINE_BYTES_MAX])
        } else {
            ReadOutcome::Text(without_return(line))
        }
    }

    /// Returns the remaining text at the end of a stream that does not end with a newline.
    fn last_line(&mut self) -> ReadOutcome<'_> {
        let line = self.start..self.end;
        self.start = self.end;
        if line.is_empty() || std::mem::take(&mut self.inside_long_line) {
            return ReadOutcome::End;
        }
        self.emit_line(line)
    }

    /// Appends more input behind the unreturned bytes.
    fn fill(&mut self) -> io::Result<()> {
        assert!(!self.ended, "the stream ended, and more input is read");
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        assert!(self.end < self.buffer.len(), "{} bytes fill the buffer and are no line or record", self.end);
        while self.end < self.buffer.len() {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(bytes) => self.end += bytes,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Decompresses a stream if necessary.
///
/// # Errors
/// Fails if the stream cannot be read or its compression is not supported.
pub fn decompressed(stream: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(decompressor(stream)?.0)
}

/// Like [`decompressed`], and returns true if the stream is compressed.
fn decompressor(mut stream: impl Read + Send + 'static) -> io::Result<(Box<dyn Read + Send>, bool)> {
    let mut head = Vec::new();
    stream.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
    let compression = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
    let whole = Cursor::new(head).chain(stream);
    Ok(match compression {
        None => (Box::new(whole), false),
        Some((_, Compression::Gzip)) => (Box::new(flate2::read::MultiGzDecoder::new(whole)), true),
        Some((_, Compression::Zstd)) => (Box::new(zstd::stream::read::Decoder::new(whole)?), true),
        Some((_, Compression::Unknown(name))) => {
            return Err(bad_stream(&format!("compressed with {name}. Only gzip and zstd are supported")));
        }
    })
}

/// Removes the suffix of a compressed file's name.
pub(super) fn uncompressed(name: &str) -> &str {
    name.trim_end_matches(".gz").trim_end_matches(".zst")
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn bad_stream(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines_of(bytes: Vec<u8>) -> Vec<String> {
        let mut lines = RecordReader::new(Cursor::new(bytes), Arc::default()).unwrap();
        let mut all = Vec::new();
        loop {
            let line = match lines.take_line().unwrap() {
                ReadOutcome::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                ReadOutcome::TooLong(text) => {
                    assert_eq!(text.len(), LINE_BYTES_MAX);
                    "too long".into()
                }
                ReadOutcome::End => return all,
            };
            all.push(line);
            assert_eq!(lines.number(), all.len() as u64);
        }
    }

    /// Lines of all lengths, several buffers in total.
    fn text() -> String {
        (0..3000).map(|line| format!("{line}{}\n", "x".repeat(line % 400))).collect()
    }

    #[test]
    fn lines_come_whole_whatever_the_compression() {
        let text = text();
        assert!(text.len() > 2 * BUFFER_BYTES);
        let wanted: Vec<&str> = text.lines().collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        // Two concatenated archives are read as one, as created by `cat a.gz b.gz`.
        let twice: Vec<&str> = wanted.iter().chain(&wanted).copied().collect();
        assert_eq!(lines_of(text.clone().into_bytes()), wanted);
        assert_eq!(lines_of([&gzip[..], &gzip].concat()), twice);
        assert_eq!(lines_of([&zstd[..], &zstd].concat()), twice);
    }

    #[test]
    fn the_last_line_needs_no_end_and_returns_are_no_part_of_it() {
        assert_eq!(lines_of(b"a\r\n\nb".to_vec()), ["a", "", "b"]);
        assert_eq!(lines_of(Vec::new()), [""; 0]);
    }

    #[test]
    fn a_long_line_is_one_line() {
        for length in [LINE_BYTES_MAX + 1, BUFFER_BYTES - 3, BUFFER_BYTES, 5 * BUFFER_BYTES] {
            let long = "y".repeat(length);
            assert_eq!(lines_of(format!("a\n{long}\nb\n").into_bytes()), ["a", "too long", "b"]);
            assert_eq!(lines_of(long.into_bytes()), ["too long"], "{length}");
        }
        let longest = "z".repeat(LINE_BYTES_MAX);
        assert_eq!(lines_of(format!("{longest}\nb").into_bytes()), [&longest, "b"]);
    }

    #[test]
    fn what_is_no_text_is_refused_by_name() {
        let mut tar = vec![0; 1024];
        tar[TAR_MAGIC_AT..][..5].copy_from_slice(b"ustar");
        for (bytes, name) in [(tar, "tar"), (b"BZh9abc".to_vec(), "bzip2"), (b"\xfd7zXZ\0".to_vec(), "xz")] {
            let error = RecordReader::new(Cursor::new(bytes), Arc::default()).err().unwrap();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
