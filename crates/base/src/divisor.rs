//! The greatest common divisor.

use std::ops::Rem;

/// Greatest common divisor of two numbers, after Euclid. Every number divides 0.
pub fn gcd<N: Copy + Default + PartialEq + Rem<Output = N>>(mut one: N, mut other: N) -> N {
    while other != N::default() {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::gcd;

    #[test]
    fn it_divides_both_and_zero_has_every_divisor() {
        assert_eq!([gcd(12_u32, 18), gcd(18, 12), gcd(7, 9)], [6, 6, 1]);
        assert_eq!([gcd(0_u64, 12), gcd(7, 0), gcd(0, 0)], [12, 7, 0]);
    }
}
