//! State files with correct checksums and impossible numbers.

use std::sync::{Arc, Mutex};

use nvme::{NonVolatileState, Subsystem};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use target::storage::backend::MemoryBackend;
use target::storage::stored;
use target::{SharedSubsystem, lock};
use zerocopy::FromZeros;

use crate::crash::crash;
use crate::small_drive::{
    CAPACITY_BYTES, Client, PAGE_BYTES, admin, beside, config, folder, open, open_with, write_pages,
};
use crate::{save_error_recovery, stop};

/// Returns a state with one number changed, as a postcard varint or a byte.
fn changed(bytes: &[u8], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    // Behind the version field.
    let at = random.random_range(4..bytes.len());
    let power = 1u64 << random.random_range(0..64);
    let mut number = match random.random_range(0..7) {
        0 => {
            changed[at] = random.random();
            return changed;
        }
        1 => random.random_range(0..40),
        2 => u64::MAX,
        3 => u64::from(u32::MAX),
        4 => power - 1,
        _ => power,
    };
    let mut varint = Vec::new();
    while number >= 0x80 {
        varint.push(number as u8 | 0x80);
        number >>= 7;
    }
    varint.push(number as u8);
    let end = bytes[at..].iter().position(|byte| byte & 0x80 == 0).map_or(at, |last| at + last);
    changed.splice(at..=end, varint);
    changed
}

/// Sends all kinds of host commands, regardless of their results.
fn use_of(shared: &SharedSubsystem) {
    let client = Client::connect(shared);
    let ask = |opcode: u8, nsid: u32, dwords: [u32; 3], data: Vec<u8>| {
        let mut entry = SubmissionEntry::new_zeroed();
        (entry.opcode, entry.nsid) = (opcode, nsid.into());
        (entry.cdw10, entry.cdw11, entry.cdw12) = (dwords[0].into(), dwords[1].into(), dwords[2].into());
        let _ = client.execute(0, &entry, &mut { data });
    };
    for cns in [0, 1, 2, 3, 5, 6, 8, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15] {
        for nsid in [0, 1, 2, 3] {
            ask(AdminOpcode::Identify as u8, nsid, [cns, 0, 0], vec![0; 4096]);
        }
    }
    for log in [1, 2, 3, 4, 5, 6, 9, 0x20, 0x21, 0x22, 0x23, 0x81, 0xc0, 0xc3] {
        ask(AdminOpcode::GetLogPage as u8, 1, [log | 0x3ff << 16, 1 << 16, 0], vec![0; 4096]);
    }
    for feature in 1..=0x20 {
        for select in 0..4 {
            ask(AdminOpcode::GetFeatures as u8, 1, [feature | select << 8, 1, 0], vec![0; 4096]);
        }
    }
    for page in [0, 40, 16000] {
        let _ = client.write(page, PAGE_BYTES, &vec![1; PAGE_BYTES as usize], true);
        let _ = (client.read(page, 1, PAGE_BYTES), client.verify(page, 1), client.deallocate(page, 1));
    }
    // Device Self-test, deletion and creation of a namespace, and a switch of the placement
    // configuration.
    ask(AdminOpcode::DeviceSelfTest as u8, 1, [1, 0, 0], Vec::new());
    for tick in 1..4 {
        lock(shared).tick(tick << 34);
    }
    ask(AdminOpcode::NamespaceManagement as u8, 2, [1, 0, 0], Vec::new());
    let mut wanted = vec![0; 4096];
    (wanted[0], wanted[8]) = (16, 16);
    ask(AdminOpcode::NamespaceManagement as u8, 0, [0, 0, 0], wanted);
    let state = lock(shared).state_for_checkpoint().to_bytes();
    if let Err(error) = NonVolatileState::from_bytes(&state) {
        let said = error.to_string();
        assert!(
            said.contains("which is impossible"),
            "what is stored can be read, but for a counter at its end: {said}"
        );
    }
    lock(shared).device().check().expect("the device is whole");
}

/// A state with entries of every kind, and its device.
fn full_state() -> (Vec<u8>, ssd::Device) {
    let (_folder, data) = folder();
    let mut small = config(1);
    small.namespace = false;
    let (shared, drive, _) = open(&data, small).unwrap();
    let client = Client::connect(&shared);
    for (blocks, format) in [(40_000u64, 1u8), (4096, 1), (64, 1)] {
        let mut entry = SubmissionEntry::new_zeroed();
        entry.opcode = AdminOpcode::NamespaceManagement as u8;
        let mut wanted = vec![0; 4096];
        wanted[..8].copy_from_slice(&blocks.to_le_bytes());
        wanted[8..16].copy_from_slice(&blocks.to_le_bytes());
        (wanted[26], wanted[30]) = (format, 1);
        assert_eq!(client.execute(0, &entry, &mut wanted), Status::SUCCESS);
    }
    for nsid in 1..4 {
        let mut entry = SubmissionEntry::new_zeroed();
        (entry.opcode, entry.nsid) = (AdminOpcode::NamespaceAttachment as u8, nsid.into());
        let mut controllers = vec![0; 4096];
        (controllers[0], controllers[2]) = (1, 1);
        assert_eq!(client.execute(0, &entry, &mut controllers), Status::SUCCESS);
    }
    for block in (0..4000).step_by(8) {
        let _ = client.write(block, 512, &[1; 4096], false);
    }
    let mut entry = SubmissionEntry::new_zeroed();
    (entry.opcode, entry.nsid, entry.cdw10) = (IoOpcode::WriteUncorrectable as u8, 1.into(), 800.into());
    assert_eq!(client.execute(1, &entry, &mut Vec::new()), Status::SUCCESS);
    admin(&client, AdminOpcode::DeviceSelfTest, 1, 1, 0, 0);
    assert_eq!(save_error_recovery(&client), Status::SUCCESS);
    let state = lock(&shared).state_for_checkpoint().to_bytes();
    let device = lock(&shared).device().try_clone().unwrap();
    drop(client);
    stop(shared, drive);
    (state, device)
}

#[test]
fn numbers_of_a_state_that_were_changed_never_end_the_server() {
    let (state, device) = full_state();
    let (mut used, mut refused) = (0, 0);
    for seed in 0..2500 {
        println!("seed {seed}");
        let bytes = changed(&state, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let media = Box::new(MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES)));
        let restored = NonVolatileState::from_bytes(&bytes).map_err(|error| error.to_string());
        let restored = restored.and_then(|state| {
            let device = device.try_clone().unwrap();
            Subsystem::restore(config(1), device, media, state).map_err(|error| error.to_string())
        });
        match restored {
            Ok(subsystem) => {
                use_of(&Arc::new(Mutex::new(subsystem)));
                used += 1;
            }
            Err(said) => {
                assert!(!said.contains('\n'), "{said}");
                refused += 1;
            }
        }
    }
    assert!(used > 300 && refused > 300, "{used} were used, {refused} refused");
}

#[test]
fn a_state_file_with_impossible_numbers_is_refused_or_served() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open_with(&data, config(0), true).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    stop(shared, drive);
    let paths = [".state", ".ftl", ".sums"].map(|extension| beside(&data, extension));
    let before = paths.clone().map(|path| std::fs::read(path).unwrap());
    let section = |at: usize| {
        let length: [u8; 8] = before[0][at..at + 8].try_into().unwrap();
        at + 8..at + 8 + u64::from_le_bytes(length) as usize
    };
    let header = section(12);
    let state = section(header.end + 4);
    for seed in 0..150 {
        println!("seed {seed}");
        for (path, bytes) in paths.iter().zip(&before) {
            std::fs::write(path, bytes).unwrap();
        }
        let wrong = changed(&before[0][state.clone()], &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut bytes = before[0][..header.end + 4].to_vec();
        bytes.extend((wrong.len() as u64).to_le_bytes());
        bytes.extend(&wrong);
        bytes.extend(crc32fast::hash(&wrong).to_le_bytes());
        std::fs::write(&paths[0], bytes).unwrap();
        let looked = stored(&data).map(|drive| drive.to_string());
        match open(&data, config(0)) {
            Ok((shared, drive, _)) => {
                assert!(looked.is_ok());
                use_of(&shared);
                stop(shared, drive);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

/// Counters with a valid checksum but implausible values.
#[test]
fn counters_that_there_cannot_be_are_passed_over() {
    let (_folder, data) = folder();
    let (shared, drive, _) = open(&data, config(0)).unwrap();
    write_pages(&Client::connect(&shared), 0, 100, 1);
    lock(&shared).tick(1 << 30);
    for (number, value) in [(0, 1 << 61), (1, u64::MAX), (1, 1 << 60), (2, 1 << 57), (3, u64::MAX), (6, u64::MAX)] {
        let copy = crash(&data, "copy.img");
        let mut bytes = std::fs::read(beside(&copy, ".counters")).unwrap();
        let at = 24 + 8 * number;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..80]).to_le_bytes();
        bytes[80..].copy_from_slice(&checksum);
        std::fs::write(beside(&copy, ".counters"), bytes).unwrap();
        let (copy_shared, copy_drive, _) = open(&copy, config(0)).unwrap();
        use_of(&copy_shared);
        stop(copy_shared, copy_drive);
        let (copy_shared, copy_drive, opened) = open(&copy, config(0)).unwrap();
        assert!(opened.clean, "{opened}");
        stop(copy_shared, copy_drive);
    }
    stop(shared, drive);
}
