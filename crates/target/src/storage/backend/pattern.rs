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

/// Bytes of a block, the size of the smallest logical block.
pub const BLOCK_BYTES: usize = 512;
/// First bytes of a block.
pub const MAGIC: [u8; 4] = *b"WARP";
const HEADER_BYTES: usize = 24;
const _: () = assert!(
    HEADER_BYTES < BLOCK_BYTES && (BLOCK_BYTES - HEADER_BYTES).is_multiple_of(8),
    "whole words follow the header of a block"
);

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

/// Verifies whole blocks from `address` on and returns their common generation, 0 for zeroes. `None`
/// if they are not of the pattern, belong to another address or differ in generation.
///
/// # Panics
/// Panics if `data` is empty or not a whole number of blocks.
pub fn verify(address: u64, data: &[u8]) -> Option<u32> {
    assert!(
        !data.is_empty() && data.len().is_multiple_of(BLOCK_BYTES),
        "the pattern is read in blocks of {BLOCK_BYTES} bytes"
    );
    let generation = match data[0..4] == MAGIC {
        true => u32::from_le_bytes(*data[4..].first_chunk().expect("a block has a header")),
        false => 0,
    };
    let mut expected = [0; BLOCK_BYTES];
    let mut blocks = data.chunks_exact(BLOCK_BYTES).zip((address..).step_by(BLOCK_BYTES));
    let are_valid = blocks.all(|(block, address)| {
        fill(address, generation, &mut expected);
        block == expected
    });
    are_valid.then_some(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_verifies_and_nothing_else_does() {
        let mut page = [0xaa; 4096];
        fill(8192, 7, &mut page);
        assert_eq!(verify(8192, &page), Some(7));
        assert_eq!(verify(4096, &page), None);
        for byte in [0, 5, 9, 17, 24, 511, 512, 4095] {
            let mut wrong = page;
            wrong[byte] ^= 0x10;
            assert!(verify(8192, &wrong).is_none(), "a flipped bit in byte {byte} was not seen");
        }
        fill(8192 + 2048, 8, &mut page[2048..]);
        assert_eq!(verify(8192, &page), None);
    }

    #[test]
    fn generation_zero_is_zeroes() {
        let mut block = [1; BLOCK_BYTES];
        fill(512, 0, &mut block);
        assert_eq!(block, [0; BLOCK_BYTES]);
        assert_eq!(verify(512, &block), Some(0));
        block[100] = 1;
        assert_eq!(verify(512, &block), None);
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
