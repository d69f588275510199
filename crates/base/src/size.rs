//! Sizes in settings: an integer of bytes, or a string such as "256MiB" or "7.68TB". For `#[serde(with = "base::size")]`.
//!
//! They are written as integers, so that nothing is rounded. Formats that are not for people hold integers only.

use bytesize::ByteSize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size, one that may be left out, or a list of sizes.
pub trait Size: DeserializeOwned {
    /// The same, as people write it.
    type Written: DeserializeOwned;

    /// In bytes.
    fn in_bytes(written: Self::Written) -> Self;
}

impl Size for u64 {
    type Written = ByteSize;

    fn in_bytes(written: ByteSize) -> u64 {
        written.as_u64()
    }
}

impl Size for Option<u64> {
    type Written = Option<ByteSize>;

    fn in_bytes(written: Option<ByteSize>) -> Option<u64> {
        written.map(u64::in_bytes)
    }
}

impl Size for Vec<u64> {
    type Written = Vec<ByteSize>;

    fn in_bytes(written: Vec<ByteSize>) -> Vec<u64> {
        written.into_iter().map(u64::in_bytes).collect()
    }
}

/// Reads either form.
///
/// # Errors
/// It is neither.
pub fn deserialize<'de, S: Size, D: Deserializer<'de>>(deserializer: D) -> Result<S, D::Error> {
    if deserializer.is_human_readable() {
        S::Written::deserialize(deserializer).map(S::in_bytes)
    } else {
        S::deserialize(deserializer)
    }
}

/// Writes integers.
///
/// # Errors
/// The format refuses them.
pub fn serialize<S: Size + Serialize, T: Serializer>(size: &S, serializer: T) -> Result<T::Ok, T::Error> {
    size.serialize(serializer)
}
