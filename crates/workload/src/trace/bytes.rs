//! Little-endian numbers in binary records. Callers check a record's length first.

fn array<const BYTES: usize>(record: &[u8], at: usize) -> [u8; BYTES] {
    let bytes = record[at..].first_chunk();
    *bytes.expect("the record is as long as its format says")
}

pub(super) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(record, at))
}

pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(record, at))
}

pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(record, at))
}
