//! Division by a number that does not change.

use crate::cast::{narrow, share_of};

/// Exact division of a `u32` by an invariant one, by multiplication (Lemire, Kaser & Kurz, "Faster remainder by direct
/// computation", 2019): every write divides a physical page by the pages of a slice, and every place in the flash is a
/// few divisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    divisor: u32,
    /// 0 for 1, which has no reciprocal below 2^64.
    reciprocal: u64,
}

impl Divisor {
    pub(crate) fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0, "nothing is divided by 0");
        Divisor {
            divisor,
            reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1),
        }
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.divisor
    }

    #[inline]
    pub(crate) fn divide(self, value: u32) -> u32 {
        if self.reciprocal == 0 {
            return value;
        }
        narrow(share_of(self.reciprocal, u64::from(value)))
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) fn split(self, value: u32) -> (u32, u32) {
        let quotient = self.divide(value);
        // The quotient is the exact one, so its multiple is at most the value: neither operation can wrap.
        (quotient, value.wrapping_sub(quotient.wrapping_mul(self.divisor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_as_the_processor_does() {
        let divisors = [
            1,
            2,
            3,
            5,
            7,
            12,
            63,
            64,
            65,
            4096,
            65_535,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ];
        for divisor in divisors {
            let around = |value: u32| [value.wrapping_sub(1), value, value.wrapping_add(1)];
            let multiples = (0..40_u32).map(|factor| divisor.wrapping_mul(factor.wrapping_mul(104_729)));
            for value in multiples.flat_map(around).chain([0, u32::MAX]) {
                let expected = (value / divisor, value % divisor);
                assert_eq!(Divisor::new(divisor).split(value), expected, "{value} / {divisor}");
            }
        }
    }
}
