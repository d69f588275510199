//! Snapshots with arbitrary content and correct checksums.
//!
//! The input has a byte that chooses the section, and edits of it (`support/edits.rs`). A loaded
//! device is used and must be consistent afterwards. An error has one line.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/ssd/tests/common/mod.rs"]
mod common;

#[path = "../support/edits.rs"]
mod edits;

use std::sync::LazyLock;

use common::{Uniform, everything, silent, work};
use libfuzzer_sys::{Corpus, fuzz_target};
use ssd::Device;

/// Bytes before the first section.
const HEADER_BYTES: usize = 12;

/// Snapshot of a used device, as its header and its sections.
static WHOLE: LazyLock<(Vec<u8>, Vec<Vec<u8>>)> = LazyLock::new(|| {
    let mut device = silent(&everything());
    work(&mut device, &mut Uniform::new(1), 6_000);
    let bytes = device.to_bytes();
    let (header, mut rest) = bytes.split_at(HEADER_BYTES);
    let mut sections = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (section, behind) = behind.split_at(u64::from_le_bytes(*length) as usize);
        sections.push(section.to_vec());
        rest = &behind[4..];
    }
    (header.to_vec(), sections)
});

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((chosen, edits)) = input.split_first() else {
        return Corpus::Reject;
    };
    let (header, sections) = &*WHOLE;
    let chosen = usize::from(*chosen) % sections.len();
    let mut bytes = header.clone();
    for (number, whole) in sections.iter().enumerate() {
        let section = if number == chosen { edits::edited(whole, edits) } else { whole.clone() };
        bytes.extend((section.len() as u64).to_le_bytes());
        bytes.extend(&section);
        bytes.extend(crc32fast::hash(&section).to_le_bytes());
    }
    match Device::from_bytes("input", &bytes) {
        Ok(mut device) => {
            work(&mut device, &mut Uniform::new(2), 300);
            match device.check() {
                // The counter was at its maximum before.
                Err(problem) if problem.contains("has an impossible value") => return Corpus::Keep,
                checked => checked.expect("what was loaded is whole, and stays so"),
            }
            let again = Device::from_bytes("again", &device.to_bytes());
            assert!(again.is_ok(), "what is used can be saved and loaded");
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
    Corpus::Keep
});
