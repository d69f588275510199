//! Prefetching for announced commands, the resulting storage calls, and its safety for arbitrary
//! commands.

mod common;

use common::{CAPACITY_BYTES, Drive, PAGE_BYTES, config, io};
use nvme::{FastIo, IoCommand, SubsystemConfig};
use nvme_spec::{IoOpcode, NSID_ALL, SubmissionEntry};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use zerocopy::FromBytes;

fn drive() -> Drive {
    Drive::of(SubsystemConfig { namespace: true, ..config() })
}

#[test]
fn storage_is_asked_for_what_a_read_begins_with() {
    let mut drive = drive();
    let id = drive.host();
    let block_bytes = drive.block_bytes(1);
    let blocks = CAPACITY_BYTES / block_bytes;
    let prefetched = |entry| {
        drive.subsystem.prefetch_command(&entry);
        std::mem::take(&mut *drive.memory.prefetched.lock().unwrap())
    };
    let of = |bytes| bytes / block_bytes;
    let read = io(IoOpcode::Read, 1, of(3 * PAGE_BYTES), of(2 * PAGE_BYTES));
    assert_eq!(prefetched(read), [(3 * PAGE_BYTES, 2 * PAGE_BYTES)]);
    let last = io(IoOpcode::Read, 1, blocks - 1, 1);
    assert_eq!(prefetched(last), [(CAPACITY_BYTES - block_bytes, block_bytes)]);
    for nothing in [
        io(IoOpcode::Write, 1, 0, 1),
        io(IoOpcode::Flush, 1, 0, 1),
        io(IoOpcode::Read, 0, 0, 1),
        io(IoOpcode::Read, 2, 0, 1),
        io(IoOpcode::Read, NSID_ALL, 0, 1),
        io(IoOpcode::Read, 1, blocks, 1),
        io(IoOpcode::Read, 1, blocks - 1, 2),
        io(IoOpcode::Read, 1, u64::MAX, 1),
    ] {
        assert_eq!(prefetched(nothing), [], "{nothing:?}");
    }
    assert!(drive.read(id, 1, 0, 1).iter().all(|&byte| byte == 0));
}

#[test]
fn behind_a_plain_command_the_beginning_of_one_read_and_the_rest_of_another_are_asked_for() {
    let mut drive = drive();
    let id = drive.host();
    let of = |bytes| bytes / drive.block_bytes(1);
    let [first, second] = [3, 8].map(|page| io(IoOpcode::Read, 1, of(page * PAGE_BYTES), of(PAGE_BYTES)));
    let write = io(IoOpcode::Write, 1, 0, of(PAGE_BYTES));
    let mut prefetched = |entries: &[SubmissionEntry]| {
        let batch = drive.subsystem.begin_fast_path_batch(id, 0, 1).expect("the drive allows the fast path");
        let command = |entry| IoCommand::parse(entry).expect("it is a command");
        let commands = entries.iter().map(|entry| drive.subsystem.classify_fast(&batch, &command(entry)));
        let commands: Vec<FastIo> = commands.map(|command| command.expect("a fast-path command")).collect();
        drive.subsystem.prefetch_fast(commands.iter());
        drive.subsystem.end_fast_path_batch(batch);
        std::mem::take(&mut *drive.memory.prefetched.lock().unwrap())
    };
    let (beginning, rest) = ((8 * PAGE_BYTES, 1024), (3 * PAGE_BYTES + 1024, PAGE_BYTES - 1024));
    assert_eq!(prefetched(&[first, second, first]), [beginning, rest]);
    assert_eq!(prefetched(&[first]), [rest]);
    assert_eq!(prefetched(&[write, second]), [beginning]);
    assert_eq!(prefetched(&[first, write]), [rest]);
    assert_eq!(prefetched(&[]), []);
}

#[test]
fn any_entry_may_be_prefetched() {
    let drive = drive();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..20_000 {
        let mut entry: [u8; 64] = random.random();
        entry[0] = random.random_range(0..4);
        entry[4..8].copy_from_slice(&random.random_range(0..3_u32).to_le_bytes());
        let first = random.random_range(0..2 * CAPACITY_BYTES / drive.block_bytes(1));
        entry[40..48].copy_from_slice(&first.to_le_bytes());
        let entry = SubmissionEntry::read_from_bytes(&entry).expect("64 bytes");
        drive.subsystem.prefetch_command(&entry);
    }
    let prefetched = drive.memory.prefetched.lock().unwrap();
    assert!(!prefetched.is_empty(), "some are reads of what there is");
    assert!(prefetched.iter().all(|(offset, length)| offset + length <= CAPACITY_BYTES));
}
