//! `ln` and `pow` with the same result on every machine.
//!
//! fio's skewed distributions need `pow`. The standard library's `powf` is that of the platform,
//! and platforms differ in the last bit. Over a billion requests this changes a few of them, but
//! golden results are compared as integers. These two functions use only additions, multiplications
//! and divisions, which IEEE 754 rounds the same way on all machines. Results are within one unit
//! in the last place of the true value.
//!
//! They do not handle negative, infinite or NaN arguments, which the distributions never use.
//! Results below the smallest normal number become 0.

/// High part of ln 2, short enough that a multiple by any exponent is exact, and the remainder.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Product without rounding error, as a sum of two numbers (Dekker 1971).
#[inline]
fn exact_product(a: f64, b: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0; // 2^27 + 1
    let halves = |x: f64| {
        let high = SPLIT * x - (SPLIT * x - x);
        (high, x - high)
    };
    let product = a * b;
    let (a_high, a_low) = halves(a);
    let (b_high, b_low) = halves(b);
    let error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    (product, error)
}

/// Natural logarithm as a sum of two numbers, accurate to about 2^-60 of the larger of 1 and the
/// result.
#[inline]
fn ln_parts(x: f64) -> (f64, f64) {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172. s has twice the usual precision.
    let numerator = mantissa - 1.0;
    let denominator = mantissa + 1.0;
    let denominator_error = mantissa - (denominator - 1.0);
    let s = numerator / denominator;
    let (product, product_error) = exact_product(s, denominator);
    let s_error = (((numerator - product) - product_error) - s * denominator_error) / denominator;
    // atanh(s) = s + s (z/3 + z^2/5 + z^3/7 + ...), z = s^2, in a tree so that the processor can
    // overlap the terms.
    let z = s * s;
    let (z2, z4) = (z * z, z * z * (z * z));
    let low = (1.0 / 3.0 + z * (1.0 / 5.0)) + z2 * (1.0 / 7.0 + z * (1.0 / 9.0));
    let middle = (1.0 / 11.0 + z * (1.0 / 13.0)) + z2 * (1.0 / 15.0 + z * (1.0 / 17.0));
    let high = (1.0 / 19.0 + z * (1.0 / 21.0)) + z2 * (1.0 / 23.0 + z * (1.0 / 25.0));
    let tail = z * (low + z4 * (middle + z4 * high));
    let exponent = exponent as f64;
    let (whole, fraction) = (exponent * LN_2_HIGH, 2.0 * s);
    let sum = whole + fraction;
    let sum_error = if exponent == 0.0 { 0.0 } else { fraction - (sum - whole) };
    (sum, sum_error + 2.0 * (s_error + s * tail) + exponent * LN_2_LOW)
}

/// Natural logarithm of a positive normal number.
pub fn ln(x: f64) -> f64 {
    let (high, low) = ln_parts(x);
    high + low
}

/// `x` to the power of `y`, for `x` zero or a positive normal number.
#[inline]
pub fn pow(x: f64, y: f64) -> f64 {
    if x == 1.0 || y == 0.0 {
        return 1.0;
    }
    if x == 0.0 {
        return if y > 0.0 { 0.0 } else { f64::INFINITY };
    }
    let (ln_high, ln_low) = ln_parts(x);
    let (high, error) = exact_product(y, ln_high);
    let low = error + y * ln_low;
    // exp(high + low) = 2^k exp(r), |r| < 0.347.
    let k = (high * std::f64::consts::LOG2_E).round_ties_even();
    if k < -1022.0 {
        return 0.0;
    }
    if k > 1023.0 {
        return f64::INFINITY;
    }
    let r_high = high - k * LN_2_HIGH;
    let r_low = low - k * LN_2_LOW;
    let r = r_high + r_low;
    let (r2, r4) = (r * r, r * r * (r * r));
    let a = (1.0 / 2.0 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
    let b = (1.0 / 720.0 + r * (1.0 / 5_040.0)) + r2 * (1.0 / 40_320.0 + r * (1.0 / 362_880.0));
    let c = (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0)) + r2 * (1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0));
    let exponential = 1.0 + (r_high + (r_low + r2 * (a + r4 * (b + r4 * c))));
    exponential * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place.
    fn distance(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn agrees_with_the_platform_within_one_unit_in_the_last_place() {
        for step in 1..2000_u32 {
            let x = f64::from(step) * 0.013;
            assert!(distance(ln(x), x.ln()) <= 1 || (x - 1.0).abs() < 0.02, "ln({x})");
            for y in [-5.0, -0.833, -0.2, 0.5, 1.2, 2.2, 7.212_567_439] {
                assert!(distance(pow(x, y), x.powf(y)) <= 1, "pow({x}, {y}) = {} {}", pow(x, y), x.powf(y));
            }
        }
        for i in 1..100_000_u32 {
            let x = 1.0 / f64::from(i);
            assert!(distance(pow(x, 1.2), x.powf(1.2)) <= 1, "pow(1/{i}, 1.2)");
        }
    }

    #[test]
    fn exact_cases_are_exact() {
        assert_eq!(pow(2.0, 10.0), 1024.0);
        assert_eq!(pow(0.25, 0.5), 0.5);
        assert_eq!(pow(0.0, 7.2), 0.0);
        assert_eq!(pow(1.0, -5.0), 1.0);
        assert_eq!(pow(0.001, 400.0), 0.0);
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn pinned_bits() {
        // The bits must be the same on all platforms, or this test fails. All but the third are the
        // rounded true value. The third is one unit in the last place above it.
        assert_eq!(pow(0.123_456_789, 1.2).to_bits(), 0x3fb4_ccbb_dc2b_3a0e);
        assert_eq!(pow(0.5, 2.2).to_bits(), 0x3fcb_db8c_dadb_e11f);
        assert_eq!(pow(1e-7, 1.2).to_bits(), 0x3e31_193c_10cb_1710);
        assert_eq!(ln(0.2).to_bits(), 0xbff9_c041_f7ed_8d33);
        assert_eq!(ln(0.8).to_bits(), 0xbfcc_8ff7_c79a_9a20);
    }
}
