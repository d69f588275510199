//! The arithmetic of DH-HMAC-CHAP: hash functions, HMAC, and Diffie-Hellman over the groups of RFC
//! 7919.
//!
//! Controller and host share this module. `target::tcp::auth` and `initiator::tcp` combine its
//! functions independently, so that each side checks the other. Exponentiation takes the same time
//! for all exponents.

use std::sync::OnceLock;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use hmac::{Hmac, KeyInit, Mac};
use nvme_spec::auth::{DhGroupId, HashId};
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

use crate::primes::{self, GROUPS};

pub fn digest(hash: HashId, data: &[u8]) -> Vec<u8> {
    match hash {
        HashId::Sha256 => Sha256::digest(data).to_vec(),
        HashId::Sha384 => Sha384::digest(data).to_vec(),
        HashId::Sha512 => Sha512::digest(data).to_vec(),
    }
}

/// The HMAC of the concatenated `parts`.
pub fn hmac(hash: HashId, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn of<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        HashId::Sha256 => of::<Hmac<Sha256>>(key, parts),
        HashId::Sha384 => of::<Hmac<Sha384>>(key, parts),
        HashId::Sha512 => of::<Hmac<Sha512>>(key, parts),
    }
}

/// Compares two values in a time that does not reveal where they differ.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

pub fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has a source of randomness");
}

/// Bytes of a secret exponent. RFC 7919 requires 400 bits for its largest group, fewer for others.
const EXPONENT_BYTES: usize = 64;

/// One side's half of a Diffie-Hellman exchange.
pub struct KeyPair {
    group: DhGroupId,
    exponent: BoxedUint,
    public: Vec<u8>,
}

impl KeyPair {
    /// Creates a key pair with a random exponent, `None` for the NULL group.
    pub fn new(group: DhGroupId) -> Option<KeyPair> {
        let parameters = parameters(group)?;
        let mut bytes = [0; EXPONENT_BYTES];
        random(&mut bytes);
        let exponent =
            BoxedUint::from_be_slice(&bytes, EXPONENT_BYTES as u32 * 8).expect("the length is the precision");
        let generator = BoxedUint::from_be_slice(&[2], parameters.bits_precision()).expect("every group is larger");
        let power = BoxedMontyForm::new(generator, parameters).pow(&exponent);
        Some(KeyPair { group, exponent, public: power.retrieve().to_be_bytes().to_vec() })
    }

    /// Public value for the other side, big-endian, as long as the group's prime.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Shared secret of the exchange, from the other side's public value. The standard hashes it to
    /// the session key. `None` if the public value has the wrong length or would reveal the secret.
    /// The latter holds for 0, 1, p - 1 and all values from p on (RFC 7919, section 5.1).
    pub fn shared_secret(&self, public: &[u8]) -> Option<Vec<u8>> {
        let parameters = parameters(self.group)?;
        let mut largest = parameters.modulus().to_be_bytes().to_vec();
        // The prime is odd, so p - 1 differs in the last bit.
        *largest.last_mut()? -= 1;
        let mut one = vec![0; largest.len()];
        *one.last_mut()? = 1;
        if public.len() != largest.len() || public <= one.as_slice() || public >= largest.as_slice() {
            return None;
        }
        let public = BoxedUint::from_be_slice(public, parameters.bits_precision()).ok()?;
        let power = BoxedMontyForm::new(public, parameters).pow(&self.exponent);
        Some(power.retrieve().to_be_bytes().to_vec())
    }
}

/// Parameters for exponentiation in a group, computed once. `None` for the NULL group.
fn parameters(group: DhGroupId) -> Option<&'static BoxedMontyParams> {
    static PARAMETERS: [OnceLock<BoxedMontyParams>; GROUPS] = [const { OnceLock::new() }; GROUPS];
    let (index, digits) = primes::prime(group)?;
    Some(PARAMETERS[index].get_or_init(|| {
        let prime = BoxedUint::from_be_hex(&digits, digits.len() as u32 * 4);
        let prime = prime.into_option().expect("hexadecimal digits");
        BoxedMontyParams::new_vartime(Odd::new(prime).expect("primes of this size are odd"))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS_WITH_PRIME: [DhGroupId; GROUPS] =
        [DhGroupId::Ffdhe2048, DhGroupId::Ffdhe3072, DhGroupId::Ffdhe4096, DhGroupId::Ffdhe6144, DhGroupId::Ffdhe8192];

    fn prime(group: DhGroupId) -> Vec<u8> {
        parameters(group).unwrap().modulus().to_be_bytes().to_vec()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// SHA-256 of the primes in another implementation.
    #[test]
    fn primes_are_those_of_rfc_7919() {
        let fingerprints = [
            "9cd3b7f336872f46c09428d1bbc19877a4d440512cda8d1c1cf0cd6e33698966",
            "0eaf67db3a839156d5013494a5318a772b5697d270d721f37f092efc69ea5a17",
            "4648414224ac881b3d0dc59b466f96d06a558278776807797ecf1f66ff397b3e",
            "227ac9066b3ddd9e193670cda2388fa884f65ba0cf98b742d1fe77a6687c79c7",
            "770b14efaf6f049929c523113b3fa99a8d11dab1b18af3609590122075d19833",
        ];
        for (group, expected) in GROUPS_WITH_PRIME.into_iter().zip(fingerprints) {
            let prime = prime(group);
            assert_eq!(prime.len(), usize::from(group.public_value_length()));
            assert_eq!(hex(&digest(HashId::Sha256, &prime)), expected, "{group}");
        }
    }

    #[test]
    fn both_sides_get_the_same_secret() {
        for group in GROUPS_WITH_PRIME {
            let (host, controller) = (KeyPair::new(group).unwrap(), KeyPair::new(group).unwrap());
            assert_ne!(host.public(), controller.public());
            let secret = host.shared_secret(controller.public()).unwrap();
            assert_eq!(secret.len(), usize::from(group.public_value_length()));
            assert_eq!(controller.shared_secret(host.public()), Some(secret), "{group}");
        }
        assert!(KeyPair::new(DhGroupId::Null).is_none());
    }

    /// 2 to a small exponent needs no modular arithmetic.
    #[test]
    fn powers_are_powers() {
        let mut pair = KeyPair::new(DhGroupId::Ffdhe2048).unwrap();
        pair.exponent = BoxedUint::from_be_slice(&[10], 512).unwrap();
        let mut two = vec![0; 256];
        two[255] = 2;
        let secret = pair.shared_secret(&two).unwrap();
        assert_eq!((secret[253], secret[254], secret[255]), (0, 4, 0), "2^10");
    }

    #[test]
    fn public_values_that_give_the_key_away_are_refused() {
        let pair = KeyPair::new(DhGroupId::Ffdhe2048).unwrap();
        let prime = prime(DhGroupId::Ffdhe2048);
        let number = |last: u8| [vec![0; 255], vec![last]].concat();
        let below = |less: u8| {
            let mut value = prime.clone();
            value[255] -= less;
            value
        };
        assert_eq!(pair.shared_secret(&number(0)), None);
        assert_eq!(pair.shared_secret(&number(1)), None);
        assert_eq!(pair.shared_secret(&below(1)), None);
        assert_eq!(pair.shared_secret(&prime), None);
        assert_eq!(pair.shared_secret(&[0xff; 256]), None);
        assert_eq!(pair.shared_secret(&[2; 255]), None);
        assert!(pair.shared_secret(&number(2)).is_some());
        assert!(pair.shared_secret(&below(2)).is_some());
    }

    /// RFC 4231, test case 2.
    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac(HashId::Sha256, b"Jefe", &parts)), expected);
        assert!(hex(&hmac(HashId::Sha384, b"Jefe", &parts)).starts_with("af45d2e376484031617f78d2b58a6b1b"));
        assert!(hex(&hmac(HashId::Sha512, b"Jefe", &parts)).starts_with("164b7a7bfcf819e2e395fbe73b56e0a3"));
    }
}
