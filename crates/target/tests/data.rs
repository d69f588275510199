//! Storage backends compared with an array of bytes.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use nvme::Media;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use target::storage::backend::file::OpenDataFile;
use target::storage::backend::{FileBackend, MemoryBackend, PatternBackend, pattern};

const MIB: usize = 1 << 20;
/// Not a multiple of the piece size of the memory backend.
const CAPACITY: usize = 5 * MIB + 4096;

fn sparse_file() -> std::fs::File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(CAPACITY as u64).unwrap();
    file
}

fn file_media(file: &std::fs::File) -> (FileBackend, Arc<OpenDataFile>) {
    let storage = OpenDataFile::new(file.try_clone().unwrap());
    let media = FileBackend::new(Arc::clone(&storage), Box::new(|_| Ok(()))).unwrap();
    (media, storage)
}

/// Random reads, writes and discards in units of 512 bytes. The backend must behave like an array
/// of initially zero bytes.
fn behaves_as_an_array(media: &mut dyn Media, seed: u64) {
    println!("seed {seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut array = vec![0u8; CAPACITY];
    for step in 0..3000 {
        let blocks = CAPACITY / 512;
        let first = random.random_range(0..blocks);
        let longest = if random.random_range(0..20) == 0 { blocks } else { 40 };
        let count = random.random_range(1..=longest.min(blocks - first));
        let range = first * 512..(first + count) * 512;
        match random.random_range(0..5) {
            0 => {
                media.discard(range.start as u64, range.len() as u64).unwrap();
                array[range].fill(0);
            }
            1 | 2 => {
                random.fill_bytes(&mut array[range.clone()]);
                media.write(range.start as u64, &array[range]).unwrap();
            }
            _ => {
                let mut data = vec![0xee; range.len()];
                media.read(range.start as u64, &mut data).unwrap();
                assert!(data == array[range.clone()], "seed {seed}, step {step}: bytes {range:?} differ");
            }
        }
    }
    let mut data = vec![0xee; CAPACITY];
    media.read(0, &mut data).unwrap();
    assert!(data == array, "seed {seed}: at the end");
}

#[test]
fn memory_is_an_array_of_bytes() {
    behaves_as_an_array(&mut MemoryBackend::new(CAPACITY as u64), 1);
}

#[test]
fn a_file_is_an_array_of_bytes() {
    let file = sparse_file();
    behaves_as_an_array(&mut file_media(&file).0, 2);
    assert_eq!(file.metadata().unwrap().len(), CAPACITY as u64, "the file kept its length");
}

#[test]
fn memory_is_taken_and_given_back_in_pieces() {
    let mut memory = MemoryBackend::new(CAPACITY as u64);
    let mut data = [0; 4096];
    memory.read(MIB as u64, &mut data).unwrap();
    assert_eq!(memory.resident_bytes(), 0, "reading takes no memory");
    memory.write(MIB as u64, &[1; 4096]).unwrap();
    memory.write(CAPACITY as u64 - 4096, &[2; 4096]).unwrap();
    assert_eq!(memory.resident_bytes(), 4 * MIB as u64);
    memory.discard(0, 2 * MIB as u64 - 512).unwrap();
    assert_eq!(memory.resident_bytes(), 4 * MIB as u64, "a part of a piece stays");
    memory.discard(0, 2 * MIB as u64).unwrap();
    assert_eq!(memory.resident_bytes(), 2 * MIB as u64);
    // The last piece is shorter than the others.
    memory.discard(4 * MIB as u64, (CAPACITY - 4 * MIB) as u64).unwrap();
    assert_eq!(memory.resident_bytes(), 0);
    memory.read(CAPACITY as u64 - 4096, &mut data).unwrap();
    assert_eq!(data, [0; 4096]);
}

#[test]
fn discarding_a_file_gives_its_blocks_back() {
    let file = sparse_file();
    let (mut media, _) = file_media(&file);
    media.write(0, &vec![7; 4 * MIB]).unwrap();
    assert!(file.metadata().unwrap().blocks() * 512 >= 4 * MIB as u64);
    media.discard(100, 3 * MIB as u64).unwrap();
    let allocated = file.metadata().unwrap().blocks() * 512;
    assert!(allocated <= MIB as u64 + 16384, "{allocated} bytes are still allocated");
    let mut ends = [0; 200];
    media.read(0, &mut ends).unwrap();
    assert_eq!((ends[99], ends[100]), (7, 0));
    media.read(3 * MIB as u64, &mut ends).unwrap();
    assert_eq!((ends[99], ends[100]), (0, 7));
}

#[test]
fn a_file_error_says_what_and_where() {
    let file = sparse_file();
    let (mut media, storage) = file_media(&file);
    file.set_len(8192).unwrap();
    let error = media.read(8192, &mut [0; 4096]).unwrap_err().to_string();
    assert!(error.starts_with("reading 4096 bytes at 8192 failed: "), "{error}");
    storage.close();
    let error = media.write(512, &[0; 512]).unwrap_err().to_string();
    assert_eq!(error, "writing 512 bytes at 512 failed: the drive was shut down");
    assert!(media.discard(0, 512).is_err());
    assert!(media.store_state(b"state").is_err());
}

#[test]
fn after_a_failed_sync_nothing_is_promised() {
    let (read_end, _write_end) = std::io::pipe().unwrap();
    // `fdatasync` fails on a pipe.
    let storage = OpenDataFile::new(std::fs::File::from(std::os::fd::OwnedFd::from(read_end)));
    let media = FileBackend::new(storage, Box::new(|_| Ok(()))).unwrap();
    let durable = media.flush_handle().unwrap();
    let first = durable.flush().unwrap_err();
    let second = durable.flush().unwrap_err();
    assert_eq!(first.kind(), second.kind());
    assert!(second.to_string().contains("restart the server"), "{second}");
}

#[test]
fn a_pattern_is_read_back_and_nothing_else() {
    let mut backend = PatternBackend::new(CAPACITY as u64).unwrap();
    let mut data = vec![0; 4 * 4096];
    pattern::fill(8192, 5, &mut data);
    backend.write(8192, &data).unwrap();
    let mut read = vec![0xee; 6 * 4096];
    backend.read(4096, &mut read).unwrap();
    assert!(read[..4096].iter().all(|&byte| byte == 0));
    assert!(read[4096..5 * 4096] == data[..]);
    assert!(read[5 * 4096..].iter().all(|&byte| byte == 0));
    // A part of a page.
    let mut part = [0xee; 1024];
    backend.read(8192 + 512, &mut part).unwrap();
    assert_eq!(part, data[512..1536]);
    // A newer generation, data of another address, other data, a partial page, a discard.
    pattern::fill(8192, 6, &mut data);
    backend.write(8192, &data).unwrap();
    backend.read(8192, &mut read[..4096]).unwrap();
    assert_eq!(pattern::verify(8192, &read[..4096]), Some(6));
    backend.write(8192, &data[4096..8192]).unwrap();
    backend.write(12288, &[1; 4096]).unwrap();
    backend.write(16384, &data[8192..8704]).unwrap();
    backend.discard(20480, 512).unwrap();
    backend.read(8192, &mut read[..4 * 4096]).unwrap();
    assert!(read[..4 * 4096].iter().all(|&byte| byte == 0));
}

/// A drive of seven terabytes needs memory only for written pages.
#[test]
fn pattern_takes_memory_as_it_is_written() {
    let capacity = 7_680_000_000_000;
    let mut backend = PatternBackend::new(capacity).unwrap();
    let address = capacity / 4096 * 4096 - 4096;
    let mut data = [0; 4096];
    pattern::fill(address, 1, &mut data);
    backend.write(address, &data).unwrap();
    data.fill(0);
    backend.read(address, &mut data).unwrap();
    assert_eq!(pattern::verify(address, &data), Some(1));
}
