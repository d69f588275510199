//! DH-HMAC-CHAP secrets in their configured form: `DHHC-1:hh:base64:` (Base Specification, "Secret
//! Representation"). The base64 part is the key and its CRC-32, little-endian.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nvme_spec::auth::HashId;
use thiserror::Error;

use crate::arithmetic;

/// End of the HMAC input that transforms a key. The NQN of the owner precedes it.
const TRANSFORM_SUFFIX: &[u8] = b"NVMe-over-Fabrics";

/// A secret that a host and a controller share. Its debug output never contains the key.
#[derive(Clone)]
pub struct Secret {
    key: Vec<u8>,
    /// Hash that makes the key specific to its owner. `None` uses the key unchanged.
    transform: Option<HashId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    #[error(
        "the secret does not have the form `DHHC-1:hh:base64:` of DH-HMAC-CHAP. Generate one with `nvme gen-dhchap-key`"
    )]
    Form,
    #[error("the second part of the secret is {0:?}, but must be 00, 01, 02 or 03 (the hash)")]
    Hash(String),
    #[error("the third part of the secret is not base64. Copy the whole secret again")]
    Base64,
    #[error(
        "the base64 part of the secret has {0} bytes. It must have a key of 32, 48 or 64 bytes, depending on the hash, and \
         a CRC of 4 bytes. Copy the whole secret again"
    )]
    Length(usize),
    #[error("the CRC of the secret does not match, so it is incomplete or mistyped. Copy the whole secret again")]
    Checksum,
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Secret, SecretError> {
        let parts: Vec<&str> = text.trim().split(':').collect();
        let ["DHHC-1", hash, base64, ""] = parts[..] else {
            return Err(SecretError::Form);
        };
        let transform = match hash {
            "00" => None,
            "01" => Some(HashId::Sha256),
            "02" => Some(HashId::Sha384),
            "03" => Some(HashId::Sha512),
            _ => return Err(SecretError::Hash(hash.to_string())),
        };
        let mut key = STANDARD.decode(base64).map_err(|_| SecretError::Base64)?;
        let bytes = key.len();
        let expected = |key_bytes: usize| match transform {
            None => matches!(key_bytes, 32 | 48 | 64),
            Some(hash) => key_bytes == usize::from(hash.digest_length()),
        };
        let Some(key_bytes) = bytes.checked_sub(4).filter(|&key_bytes| expected(key_bytes)) else {
            return Err(SecretError::Length(bytes));
        };
        let checksum = key.split_off(key_bytes);
        if checksum != crc32fast::hash(&key).to_le_bytes() {
            return Err(SecretError::Checksum);
        }
        Ok(Secret { key, transform })
    }
}

impl Secret {
    /// Key that the owner uses in its responses. With a hash, the key is specific to the owner's
    /// NQN.
    pub fn key_of(&self, owner_nqn: &str) -> Vec<u8> {
        match self.transform {
            None => self.key.clone(),
            Some(hash) => arithmetic::hmac(hash, &self.key, &[owner_nqn.as_bytes(), TRANSFORM_SUFFIX]),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another implementation made this secret from the bytes 0 to 31.
    const PLAIN: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const WITH_SHA_256: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    #[test]
    fn secrets_are_read() {
        let key: Vec<u8> = (0..32).collect();
        let plain: Secret = PLAIN.parse().unwrap();
        assert_eq!(plain.key_of("nqn.2014-08.org.example:host"), key);
        let transformed: Secret = WITH_SHA_256.parse().unwrap();
        let expected = [
            0x78, 0x63, 0xa3, 0x39, 0x22, 0x40, 0x10, 0xef, 0xc7, 0xe5, 0xb0, 0xe1, 0x58, 0xcc, 0xc7, 0x74, 0xc0, 0x33,
            0xe6, 0x4c, 0xa1, 0x1d, 0x99, 0x5b, 0xa9, 0x4d, 0x47, 0x58, 0x19, 0x74, 0xe6, 0x25,
        ];
        assert_eq!(transformed.key_of("nqn.2014-08.org.example:host"), expected);
        assert_eq!(format!("{plain:?}"), "Secret(..)");
    }

    #[test]
    fn mistakes_are_named() {
        let parse = |text: &str| text.parse::<Secret>().map(|_| ());
        assert_eq!(parse("hello"), Err(SecretError::Form));
        assert_eq!(parse(PLAIN.trim_end_matches(':')), Err(SecretError::Form));
        assert_eq!(parse(&PLAIN.replace(":00:", ":04:")), Err(SecretError::Hash("04".to_string())));
        assert_eq!(parse(&PLAIN.replace(":00:", ":03:")), Err(SecretError::Length(36)));
        assert_eq!(parse(&PLAIN.replace("AAEC", "AAED")), Err(SecretError::Checksum));
        assert_eq!(parse(&PLAIN.replace("AAEC", "A*EC")), Err(SecretError::Base64));
        assert_eq!(parse("DHHC-1:00:AAEC:"), Err(SecretError::Length(3)));
    }
}
