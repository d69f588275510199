//! Sizes in settings, for `#[serde(with = "base::size")]`: an integer of bytes, or a string such as
//! "256MiB" or "7.68TB".
//!
//! Sizes are written as integers, so that no size is rounded. Binary formats contain only integers.

use bytesize::ByteSize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Smallest drive, in bytes, that a bare number can mean.
const CAPACITY_BYTES_MIN: u64 = 1 << 20;

/// Parses a size in bytes or with a unit. A bare K, M, G or T is a power of 1024, as in QEMU and
/// fio.
///
/// # Errors
/// The text is not a size above 0. The message gives examples.
pub fn parse(text: &str) -> Result<u64, String> {
    let bare = text.ends_with(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']);
    let full = if bare { format!("{text}iB") } else { text.to_string() };
    match full.parse::<ByteSize>() {
        Ok(size) if size.as_u64() > 0 => Ok(size.as_u64()),
        _ => Err("give a size such as 8G, 512MiB or 7.68TB".to_string()),
    }
}

/// Like [`parse`], for the size of a drive. A few bytes indicate a forgotten unit.
///
/// # Errors
/// As [`parse`], or the size is smaller than any drive.
pub fn parse_capacity(text: &str) -> Result<u64, String> {
    match parse(text)? {
        bytes if bytes < CAPACITY_BYTES_MIN && text.bytes().all(|letter| letter.is_ascii_digit()) => {
            let unit = if bytes < 100 { "TB" } else { "GB" };
            Err(format!("{text} means {text} bytes. Give a unit, for example {text}{unit}"))
        }
        bytes => Ok(bytes),
    }
}

/// A size, an optional size, or a list of sizes.
pub trait SizeValue: DeserializeOwned {
    /// Type that text formats are parsed into, a number of bytes or a number with a unit.
    type Written: DeserializeOwned;

    fn in_bytes(written: Self::Written) -> Self;
}

impl SizeValue for u64 {
    type Written = ByteSize;

    fn in_bytes(written: ByteSize) -> u64 {
        written.as_u64()
    }
}

impl SizeValue for Option<u64> {
    type Written = Option<ByteSize>;

    fn in_bytes(written: Option<ByteSize>) -> Option<u64> {
        written.map(u64::in_bytes)
    }
}

impl SizeValue for Vec<u64> {
    type Written = Vec<ByteSize>;

    fn in_bytes(written: Vec<ByteSize>) -> Vec<u64> {
        written.into_iter().map(u64::in_bytes).collect()
    }
}

/// Reads a size. Text formats may contain an integer or a string with a unit, binary formats only
/// an integer.
pub fn deserialize<'de, S: SizeValue, D: Deserializer<'de>>(deserializer: D) -> Result<S, D::Error> {
    if deserializer.is_human_readable() {
        S::Written::deserialize(deserializer).map(S::in_bytes)
    } else {
        S::deserialize(deserializer)
    }
}

/// Writes a size as an integer.
pub fn serialize<S: SizeValue + Serialize, T: Serializer>(size: &S, serializer: T) -> Result<T::Ok, T::Error> {
    size.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_bytes_or_a_number_with_a_unit() {
        assert_eq!(parse("8G"), Ok(8 << 30));
        assert_eq!(parse("7.68TB"), Ok(7_680_000_000_000));
        assert_eq!(parse("4096"), Ok(4096));
        for text in ["", "0", "big", "-1TB"] {
            assert!(parse(text).is_err_and(|problem| problem.contains("7.68TB")), "{text}");
        }
    }

    #[test]
    fn the_message_suggests_a_unit_for_a_bare_capacity() {
        assert_eq!(parse_capacity("5"), Err("5 means 5 bytes. Give a unit, for example 5TB".to_string()));
        assert_eq!(parse_capacity("480"), Err("480 means 480 bytes. Give a unit, for example 480GB".to_string()));
        assert_eq!(parse_capacity("8589934592"), Ok(8 << 30));
        assert_eq!(parse_capacity("512KiB"), Ok(512 << 10));
    }
}
