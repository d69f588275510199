//! Sizes in TOML: an integer of bytes, or a string such as "256MiB" or "7.68TB". For `#[serde(with = ...)]`.

/// For sizes that have a value.
pub(crate) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Reads either form.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Ok(bytesize::ByteSize::deserialize(deserializer)?.as_u64())
    }

    /// Writes an integer, so that nothing is rounded.
    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*bytes)
    }
}

/// For sizes that may be left out.
pub(crate) mod bytes_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Reads either form.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<bytesize::ByteSize>::deserialize(deserializer)?.map(|size| size.as_u64()))
    }

    /// Writes an integer, so that nothing is rounded.
    pub fn serialize<S: Serializer>(bytes: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.serialize(serializer)
    }
}

/// For lists of sizes.
pub(crate) mod bytes_list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Reads either form.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let sizes = Vec::<bytesize::ByteSize>::deserialize(deserializer)?;
        Ok(sizes.into_iter().map(|size| size.as_u64()).collect())
    }

    /// Writes integers, so that nothing is rounded.
    pub fn serialize<S: Serializer>(bytes: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        bytes.serialize(serializer)
    }
}
