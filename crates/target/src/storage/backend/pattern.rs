//! A test pattern that encodes address and age of each block, so that a reader can verify the data.
//!
//! A block of 512 bytes, all integers little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 3 | [`MAGIC`] |
//! | 4 to 7 | generation, at least 1 |
//! | 8 to 15 | byte address in the drive |
//! | 16 to 23 | checksum: a hash of address and generation |
//! | 24 to 511 | 61 words of a generator whose seed is the checksum |
//!
//! Address and generation determine every byte. A page of 4 KiB is eight such blocks of one
//! generation. Generation 0 stands for unwritten data, which is all zeroes. The address is that of
//! the drive. It equals the logical block times its size, if the namespace begins at the drive's
//! start.

use thiserror::Error;

/// Bytes of a block, the size of the smallest logical block.
pub const BLOCK_BYTES: usize = 512;
/// First bytes of a block.
pub const MAGIC: [u8; 4] = *b"WARP";
const HEADER_BYTES: usize = 24;
const _: () = assert!(
    HEADER_BYTES < BLOCK_BYTES && (BLOCK_BYTES - HEADER_BYTES).is_multiple_of(8),
    "whole words follow the header of a block"
);

/// A deviation from the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// The block is neither of the pattern nor zeroes.
    #[error("the block at {address} does not have the pattern")]
    Foreign {
        /// Byte address of the block.
        address: u64,
    },
    /// The block belongs to another address.
    #[error("the block at {address} contains the block of address {found}")]
    Misplaced {
        /// Byte address of the block.
        address: u64,
        /// Address in the block's header.
        found: u64,
    },
    /// The header is valid, but a later byte is not.
    #[error("byte {byte} of the block at {address} does not match its generation {generation}")]
    Corrupt {
        /// Byte address of the block.
        address: u64,
        /// Generation in the block's header.
        generation: u32,
        /// Offset of the first wrong word of 8 bytes.
        byte: usize,
    },
    /// The blocks are valid, but of different generations.
    #[error("the block at {address} has generation {found}, but earlier blocks have {expected}")]
    Torn {
        /// Byte address of the block.
        address: u64,
        /// Generation of the first block.
        expected: u32,
        found: u32,
    },
}

/// Mixes the bits of a word (the finalizer of a 64-bit multiplicative hash).
#[inline]
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

#[inline]
fn checksum(address: u64, generation: u32) -> u64 {
    mix(mix(address).wrapping_add(u64::from(generation)))
}

/// The word at `index` behind the header.
#[inline]
fn word(checksum: u64, index: u64) -> u64 {
    let word = checksum ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Fills whole blocks from `address` on.
///
/// # Panics
/// Panics if `data` is not a whole number of blocks.
pub fn fill(address: u64, generation: u32, data: &mut [u8]) {
    assert_eq!(data.len() % BLOCK_BYTES, 0, "the pattern is made in blocks of {BLOCK_BYTES} bytes");
    if generation == 0 {
        return data.fill(0);
    }
    for (block, address) in data.chunks_exact_mut(BLOCK_BYTES).zip((address..).step_by(BLOCK_BYTES)) {
        let checksum = checksum(address, generation);
        block[0..4].copy_from_slice(&MAGIC);
        block[4..8].copy_from_slice(&generation.to_le_bytes());
        block[8..16].copy_from_slice(&address.to_le_bytes());
        block[16..24].copy_from_slice(&checksum.to_le_bytes());
        for (bytes, index) in block[HEADER_BYTES..].chunks_exact_mut(8).zip(0..) {
            bytes.copy_from_slice(&word(checksum, index).to_le_bytes());
        }
    }
}

/// Verifies whole blocks from `address` on and returns their common generation, 0 for zeroes.
///
/// # Errors
/// The first block that is not of the pattern, or differs in generation from the previous ones.
///
/// # Panics
/// Panics if `data` is empty or not a whole number of blocks.
pub fn verify(address: u64, data: &[u8]) -> Result<u32, Mismatch> {
    assert!(
        !data.is_empty() && data.len().is_multiple_of(BLOCK_BYTES),
        "the pattern is read in blocks of {BLOCK_BYTES} bytes"
    );
    let mut expected = None;
    for (block, address) in data.chunks_exact(BLOCK_BYTES).zip((address..).step_by(BLOCK_BYTES)) {
        let found = verify_block(address, block)?;
        match expected {
            None => expected = Some(found),
            Some(expected) if expected == found => {}
            Some(expected) => {
                return Err(Mismatch::Torn { address, expected, found });
            }
        }
    }
    Ok(expected.expect("there is a block"))
}

fn verify_block(address: u64, block: &[u8]) -> Result<u32, Mismatch> {
    let integer = |at: usize| u64::from_le_bytes(*block[at..].first_chunk().expect("a block has a header"));
    let generation = (integer(0) >> 32) as u32;
    let (found, stored) = (integer(8), integer(16));
    if block[0..4] != MAGIC || generation == 0 || stored != checksum(found, generation) {
        // Avoids a branch for each byte, because hosts that study write amplification write
        // terabytes of zeroes.
        let any = block.iter().fold(0, |any, &byte| any | byte);
        return if any == 0 { Ok(0) } else { Err(Mismatch::Foreign { address }) };
    }
    if found != address {
        return Err(Mismatch::Misplaced { address, found });
    }
    let words = block[HEADER_BYTES..].chunks_exact(8).zip(0..);
    let mut differs = 0;
    for (bytes, index) in words.clone() {
        differs |= word(stored, index) ^ u64::from_le_bytes(*bytes.first_chunk().expect("8 bytes"));
    }
    if differs == 0 {
        return Ok(generation);
    }
    let wrong = words.into_iter().position(|(bytes, index)| bytes != word(stored, index).to_le_bytes());
    Err(Mismatch::Corrupt { address, generation, byte: HEADER_BYTES + 8 * wrong.expect("a word differs") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_verifies_and_nothing_else_does() {
        let mut page = [0xaa; 4096];
        fill(8192, 7, &mut page);
        assert_eq!(verify(8192, &page), Ok(7));
        assert_eq!(verify(4096, &page), Err(Mismatch::Misplaced { address: 4096, found: 8192 }));
        for byte in [0, 5, 9, 17, 24, 511, 512, 4095] {
            let mut wrong = page;
            wrong[byte] ^= 0x10;
            assert!(verify(8192, &wrong).is_err(), "a flipped bit in byte {byte} was not seen");
        }
        fill(8192 + 2048, 8, &mut page[2048..]);
        assert_eq!(verify(8192, &page), Err(Mismatch::Torn { address: 8192 + 2048, expected: 7, found: 8 }));
    }

    #[test]
    fn generation_zero_is_zeroes() {
        let mut block = [1; BLOCK_BYTES];
        fill(512, 0, &mut block);
        assert_eq!(block, [0; BLOCK_BYTES]);
        assert_eq!(verify(512, &block), Ok(0));
        block[100] = 1;
        assert_eq!(verify(512, &block), Err(Mismatch::Foreign { address: 512 }));
    }

    /// Checks the documented layout byte by byte, because hosts generate the pattern themselves.
    #[test]
    fn layout_is_as_documented() {
        let mut block = [0; BLOCK_BYTES];
        fill(0x1000, 3, &mut block);
        assert_eq!(&block[..4], b"WARP");
        assert_eq!(&block[4..16], &[3, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]);
        assert_eq!(u64::from_le_bytes(block[16..24].try_into().unwrap()), checksum(0x1000, 3));
    }
}
