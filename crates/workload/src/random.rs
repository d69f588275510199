//! Random numbers that all models share. They use no mathematical function of the system, so all
//! machines draw the same numbers.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Spreads the bits of a number over all 64 with the finalizer of SplitMix64 (Steele, Lea, Flood:
/// "Fast Splittable Pseudorandom Number Generators", 2014). Different inputs give different
/// outputs.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Draws a uniform number below a limit.
#[inline]
pub fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}
