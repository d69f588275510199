//! Fields of a line, parsed byte by byte as numbers and words without allocation.

use std::fmt;

/// Expected content of a missing field.
const MISSING: &str = "";

/// Error in a line, with the field and its expected content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldProblem {
    field: &'static str,
    wanted: &'static str,
    /// True if skipping the line does not help.
    pub(super) of_file: bool,
}

impl FieldProblem {
    /// Creates the error of a missing field.
    pub(super) const fn missing(field: &'static str) -> FieldProblem {
        FieldProblem::new(field, MISSING)
    }

    /// Creates the error of an invalid field, which "is not" the expected content.
    pub(super) const fn new(field: &'static str, wanted: &'static str) -> FieldProblem {
        FieldProblem { field, wanted, of_file: false }
    }

    /// Creates an error that makes the whole file unreadable.
    pub(super) const fn whole_file(field: &'static str, wanted: &'static str) -> FieldProblem {
        FieldProblem { field, wanted, of_file: true }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted {
            MISSING => write!(formatter, "{} is missing", self.field),
            wanted => write!(formatter, "{} is not {wanted}", self.field),
        }
    }
}

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Bytes in a sector, as block layers count them.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Number of decimal digits that always fits in a u64.
const SAFE_DIGITS: usize = 19;

/// Remaining text of a line.
pub(super) struct Fields<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Starts with the whole line.
    pub(super) fn new(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: line }
    }

    /// Consumes the next digits as a number. Consumes no text if the digits are missing or too
    /// many.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, digits) = leading_number(self.rest)?;
        self.rest = &self.rest[digits..];
        Some(number)
    }

    /// Consumes this byte if it comes next.
    #[inline]
    pub(super) fn consume(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Consumes a number and the delimiter behind it.
    #[inline]
    pub(super) fn number_before(&mut self, delimiter: u8) -> Option<u64> {
        let number = self.number()?;
        self.consume(delimiter).then_some(number)
    }

    /// Consumes a number that ends the line.
    #[inline]
    pub(super) fn last_number(&mut self) -> Option<u64> {
        let number = self.number()?;
        self.rest.is_empty().then_some(number)
    }

    /// Consumes the text before this delimiter, and the delimiter.
    #[inline]
    pub(super) fn text_before(&mut self, delimiter: u8) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == delimiter)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(text)
    }

    /// Consumes the next run of non-blank bytes.
    #[inline]
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !is_blank(*byte))?;
        let rest = &self.rest[start..];
        let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Removes the blanks around a text.
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

/// Parses the digits at the start of a text. Returns the number and the count of digits.
#[inline]
fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    let mut digits = 0;
    // Eight digits at a time take no branch for each digit, which the processor cannot predict.
    while let Some(word) = text[digits..].first_chunk() {
        let (value, count) = leading_digits(u64::from_le_bytes(*word));
        digits += count;
        number = match digits <= SAFE_DIGITS {
            true => number * POWERS_OF_TEN[count] + value,
            false => number.checked_mul(POWERS_OF_TEN[count])?.checked_add(value)?,
        };
        if count < 8 {
            return (digits > 0).then_some((number, digits));
        }
    }
    for byte in &text[digits..] {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = if digits < SAFE_DIGITS {
            number * 10 + u64::from(digit)
        } else {
            number.checked_mul(10)?.checked_add(digit.into())?
        };
        digits += 1;
    }
    (digits > 0).then_some((number, digits))
}

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Value and count of the digits at the start of eight bytes, the first byte lowest. The
/// multiplications are those of Lemire, "Quickly parsing eight digits" (2022).
#[inline]
fn leading_digits(word: u64) -> (u64, usize) {
    const LOW_BITS: u64 = 0x7676_7676_7676_7676;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let digits = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 sets its high bit. A carry only reaches the bytes behind it.
    let others = (digits | digits.wrapping_add(LOW_BITS)) & HIGH_BITS;
    let count = (others.trailing_zeros() / 8) as usize;
    // Leading zeros move the digits to the end. Without a digit nothing is left.
    let digits = digits.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000 << 32 | 1) >> 32, count)
}

/// Parses a text that is only a number.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    Fields::new(text).last_number()
}

/// Parses a decimal number in multiples of `unit`, with or without a fraction. Excess digits are
/// cut off.
pub(super) fn decimal(text: &[u8], unit: u64) -> Option<u64> {
    let (whole, digits) = leading_number(text)?;
    let whole = whole.checked_mul(unit)?;
    let Some((point, fraction)) = text[digits..].split_first() else {
        return Some(whole);
    };
    if *point != b'.' {
        return None;
    }
    let mut place = unit;
    let mut part = 0;
    for byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // The unit is a power of ten, so each digit's weight is whole until it is too small to
        // matter.
        place /= 10;
        part += u64::from(digit) * place;
    }
    whole.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_digits_end_and_never_overflow() {
        let mut fields = Fields::new(b"12,0x,18446744073709551615");
        assert_eq!(fields.number_before(b','), Some(12));
        assert_eq!(fields.number_before(b','), None);
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b"000000000000000000000000007"), Some(7));
        for text in [&b""[..], b"-1", b"1 ", b" 1", b"1e3", b"+1"] {
            assert_eq!(number(text), None, "{}", text.escape_ascii());
        }
    }

    /// Compares with the standard library for all counts of digits and all bytes behind them.
    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let digits = "18446744073709551615_00000000000000000000000012345678901234567890";
        for (start, end) in (0..40).flat_map(|start| (start..=digits.len()).map(move |end| (start, end))) {
            let text = &digits[start..end];
            let count = text.find('_').unwrap_or(text.len());
            let wanted = text[..count].parse::<u64>().ok();
            for next in 0..=u8::MAX {
                let line = [&text.as_bytes()[..count], &[next], b"1234567"].concat();
                let mut fields = Fields::new(&line);
                if !next.is_ascii_digit() {
                    assert_eq!(fields.number(), wanted, "{}", line.escape_ascii());
                    assert_eq!(fields.rest.len(), if wanted.is_some() { 8 } else { line.len() });
                }
            }
            assert_eq!(number(&text.as_bytes()[..count]), wanted, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact_down_to_the_nanosecond() {
        assert_eq!(decimal(b"0.000000697", SECOND_NS), Some(697));
        assert_eq!(decimal(b"1577808000.5", SECOND_NS), Some(1_577_808_000_500_000_000));
        assert_eq!(decimal(b"3.0001239999", SECOND_NS), Some(3_000_123_999));
        assert_eq!(decimal(b"7.", 1_000), Some(7_000));
        assert_eq!(decimal(b"2.5", 1), Some(2));
        for text in [&b""[..], b".5", b"1.2.3", b"1,2", b"99999999999999999999", b"18446744073.8"] {
            assert_eq!(decimal(text, SECOND_NS), None, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn words_are_what_stands_between_blanks() {
        let mut fields = Fields::new(b"  8,0\t 3  W ");
        assert_eq!(fields.word(), Some(&b"8,0"[..]));
        assert_eq!(fields.word(), Some(&b"3"[..]));
        assert_eq!(fields.word(), Some(&b"W"[..]));
        assert_eq!(fields.word(), None);
        assert_eq!(trim(b" \ta b "), b"a b");
    }
}
