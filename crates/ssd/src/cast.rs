//! Conversions between number types, collected in one file.
//!
//! Each comment says why the value survives. The fallible conversions panic. The compiler removes
//! the checks of conversions that cannot fail on the target.

/// Converts a 32-bit number to an index or a length. Every machine that can hold a drive's maps has
/// indices of at least 32 bits.
#[inline]
pub(crate) fn index(value: u32) -> usize {
    usize::try_from(value).expect("an index has at least 32 bits")
}

/// Converts a length to the 32-bit number of pages, blocks or slices.
#[inline]
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).expect("pages, blocks and slices are numbered in 32 bits")
}

/// Converts a length to 64 bits, for sums.
#[inline]
pub(crate) fn wide(length: usize) -> u64 {
    u64::try_from(length).expect("a length has at most 64 bits")
}

/// Narrows a number of pages, blocks or slices, which the layout keeps below 2^32.
#[inline]
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("the layout keeps pages, blocks and slices below 2^32")
}

/// Upper half of a product, which is the share `factor / 2^64` of `value` and therefore fits.
#[inline]
pub(crate) fn share_of(value: u64, factor: u64) -> u64 {
    let upper = (u128::from(value) * u128::from(factor)) >> 64;
    u64::try_from(upper).expect("the upper half of 128 bits has 64")
}

/// Nearest floating-point number, exact below 2^53. For shares and scores.
#[inline]
pub(crate) fn to_f64(value: u64) -> f64 {
    value as f64
}

/// Whole part of a non-negative number. Saturates at the range of the type.
#[inline]
pub(crate) fn truncate(value: f64) -> u64 {
    assert!(value >= 0.0, "{value} is not a count");
    value as u64
}

/// Same as [`truncate`], for 32-bit numbers.
#[inline]
pub(crate) fn truncate32(value: f64) -> u32 {
    assert!(value >= 0.0, "{value} is not a count");
    value as u32
}
