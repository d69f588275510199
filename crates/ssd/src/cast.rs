//! Conversions between widths of numbers; the only place of this crate where a number changes its type by itself.
//!
//! Each name says why the value survives. Those that could fail do so with a panic; on the machines that the model runs
//! on the compiler sees that the infallible ones cannot, and removes the check.

/// A number of 32 bits as an index or a length: no machine that can hold a drive's maps has smaller ones.
#[inline]
pub(crate) fn index(value: u32) -> usize {
    usize::try_from(value).expect("an index has at least 32 bits")
}

/// How many there are of what is numbered in 32 bits (pages, blocks, slices).
#[inline]
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).expect("pages, blocks and slices are numbered in 32 bits")
}

/// How many there are, to be counted with others.
#[inline]
pub(crate) fn wide(length: usize) -> u64 {
    u64::try_from(length).expect("a length has at most 64 bits")
}

/// A number that the layout keeps below 2^32, as it does with every number of pages, blocks and slices of a drive.
#[inline]
pub(crate) fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("the layout keeps pages, blocks and slices below 2^32")
}

/// The upper half of a product: the share `factor / 2^64` of the other one, so it is below that.
#[inline]
pub(crate) fn share_of(value: u64, factor: u64) -> u64 {
    let upper = (u128::from(value) * u128::from(factor)) >> 64;
    u64::try_from(upper).expect("the upper half of 128 bits has 64")
}

/// The nearest floating-point number, exact below 2^53: for shares and scores.
#[inline]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

/// The whole part of a number that is not negative; what is beyond the range becomes its end.
#[inline]
pub(crate) fn whole(value: f64) -> u64 {
    assert!(value >= 0.0, "{value} is no count");
    value as u64
}

/// As [`whole`], of what is numbered in 32 bits.
#[inline]
pub(crate) fn whole32(value: f64) -> u32 {
    assert!(value >= 0.0, "{value} is no count");
    value as u32
}
