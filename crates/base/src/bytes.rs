//! Sizes in bytes and other numbers, printed for people.

use std::fmt;

/// A size, printed in the largest binary unit (KiB, MiB, ...) that leaves a digit before the point.
/// Multiples of the unit have no point, other sizes have three significant digits.
///
/// Binary units suit configured sizes (mapping units, reclaim units, block sizes), which stay whole
/// numbers in print. Rates are in MB/s of 10^6 bytes, as in data sheets and papers.
///
/// ```
/// use base::HumanBytes;
/// assert_eq!(HumanBytes(4096).to_string(), "4 KiB");
/// assert_eq!(HumanBytes(7_680_000_000_000).to_string(), "6.98 TiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanBytes(pub u64);

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl fmt::Display for HumanBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut unit = self.0.max(1).ilog2() / 10;
        let unit_bytes = 1_u64 << (10 * unit);
        if self.0.is_multiple_of(unit_bytes) {
            return formatter.pad(&format!("{} {}", self.0 / unit_bytes, UNITS[unit as usize]));
        }
        let mut value = self.0 as f64 / unit_bytes as f64;
        // A value that would round to 1024 is 1 of the next unit.
        if value.round() >= 1024.0 && value > 1023.0 {
            value /= 1024.0;
            unit += 1;
        }
        let digits = match value {
            value if value >= 99.95 => 0,
            value if value >= 9.995 => 1,
            _ => 2,
        };
        formatter.pad(&format!("{value:.digits$} {}", UNITS[unit as usize]))
    }
}

/// A number in four significant digits. Larger numbers keep all digits before the point.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_point_and_others_three_digits() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.50 KiB"),
            (102_348, "99.9 KiB"),
            (102_399, "100 KiB"),
            (64 << 20, "64 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            ((1023 << 30) + 1, "1023 GiB"),
            (119_999_999_488, "112 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(HumanBytes(bytes).to_string(), text, "{bytes}");
        }
    }
}
