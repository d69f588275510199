//! Values of fio options, such as numbers with suffixes, percentages, times and lists per
//! direction.
//!
//! The rules are fio's (`parse.c`) as long as fio's result is what a reader expects. Values that
//! fio silently misreads are refused (`1.5g` is 1 to fio, `10x` is 10). This module evaluates no
//! expressions in parentheses and no variables.

use serde::{Deserialize, Serialize};

use super::error::OptionError;

type Parsed<T> = Result<T, OptionError>;

/// A value for reads, writes and trims, in this order.
pub type PerDirection<T> = [T; 3];

/// `kb_base`, the meaning of `k`. By default fio swaps the two families of suffixes, so that `4k`
/// is 4096 and `4kib` is 4000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KbBase {
    /// `k` is 1024, `kib` is 1000 (fio's default).
    #[default]
    Binary,
    /// `k` is 1000, `kib` is 1024.
    Decimal,
}

impl KbBase {
    /// The factor of a lower-case suffix.
    fn factor(self, suffix: &str) -> Option<u64> {
        let power = |letter: &str| Some(1 + "kmgtp".find(letter)? as u32);
        let (short, long) = match self {
            Self::Binary => (1024_u64, 1000_u64),
            Self::Decimal => (1000, 1024),
        };
        match suffix.len() {
            0 => Some(1),
            1 if suffix == "b" => Some(1),
            1 => Some(short.pow(power(suffix)?)),
            2 if suffix.ends_with('b') => Some(short.pow(power(&suffix[..1])?)),
            3 if suffix.ends_with("ib") => Some(long.pow(power(&suffix[..1])?)),
            _ => None,
        }
    }
}

/// An amount of bytes, absolute or as a share of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Absolute size in bytes.
    Bytes(u64),
    /// Percent, 0..=100.
    Percent(u32),
}

impl Default for Amount {
    fn default() -> Amount {
        Amount::Bytes(0)
    }
}

/// Splits a text into the value of its digits and its suffix in lower case.
fn digits_and_suffix(text: &str) -> Parsed<(u64, String)> {
    let text = text.trim();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => (hexadecimal, 16),
        None => (text, 10),
    };
    let end = digits.find(|letter: char| !letter.is_digit(radix)).unwrap_or(digits.len());
    let suffix = digits[end..].trim().to_lowercase();
    if suffix.starts_with('.') && end > 0 {
        return Err(OptionError::new(
            format!("fio reads `{text}` as {}, because it stops at the decimal point", &digits[..end]),
            "Write a whole number, in a smaller unit if necessary, for example 128k",
        ));
    }
    let number = u64::from_str_radix(&digits[..end], radix).map_err(|_| {
        OptionError::new(format!("`{text}` does not start with a whole number"), "Write for example 4096, 4k or 0x1000")
    })?;
    Ok((number, suffix))
}

/// Parses a number or a size, such as 4096, 4k or 0x1000.
pub fn number(text: &str, base: KbBase) -> Parsed<u64> {
    let (number, suffix) = digits_and_suffix(text)?;
    if suffix == "%" {
        return Err(OptionError::new("fio accepts no percentage here", "Write the number itself"));
    }
    base.factor(&suffix).and_then(|factor| number.checked_mul(factor)).ok_or_else(|| {
        OptionError::new(
            format!("`{text}` is not a size"),
            "Write a whole number with the suffix k, m, g, t or p, for example 128k",
        )
    })
}

/// Parses a number of bytes with or without a sign.
pub fn signed(text: &str, base: KbBase) -> Parsed<i64> {
    let (bytes, is_negative) = match text.strip_prefix('-') {
        Some(bytes) => (bytes, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    let bytes = number_in(bytes, base, 0, 1 << 62)? as i64;
    Ok(if is_negative { -bytes } else { bytes })
}

/// Parses a number within limits.
pub fn number_in(text: &str, base: KbBase, least: u64, most: u64) -> Parsed<u64> {
    assert!(least <= most, "no number is from {least} to {most}");
    let value = number(text, base)?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(OptionError::new(format!("{value} is out of range"), format!("Write a number from {least} to {most}")))
}

/// Parses a size or a percentage, such as 10g or 25%.
pub fn amount(text: &str, base: KbBase) -> Parsed<Amount> {
    let (value, suffix) = digits_and_suffix(text)?;
    match suffix.as_str() {
        "%" if value <= 100 => Ok(Amount::Percent(value as u32)),
        "%" => Err(OptionError::new(format!("{value}% is more than the whole"), "Write a percentage from 0% to 100%")),
        _ => Ok(Amount::Bytes(number(text, base)?)),
    }
}

/// Maximum time, microseconds. The sum of a job's delay, ramp and runtime then fits a device's
/// clock, which counts nanoseconds. Sums over several jobs, pauses and rates are checked at run
/// time.
const LONGEST_US: u64 = 18_250 * 86_400_000_000;

/// Parses a time in microseconds. A number without suffix counts seconds or microseconds.
pub fn time_us(text: &str, unit_is_seconds: bool) -> Parsed<u64> {
    let (value, suffix) = digits_and_suffix(text)?;
    let factor = match suffix.as_str() {
        "" if unit_is_seconds => 1_000_000,
        "" | "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => {
            return Err(OptionError::new(
                format!("`{text}` is not a time"),
                "Write a whole number with us, ms, s, m, h or d",
            ));
        }
    };
    value
        .checked_mul(factor)
        .filter(|time_us| *time_us <= LONGEST_US)
        .ok_or_else(|| OptionError::new(format!("the time `{text}` is too long"), "Write at most 18250d (50 years)"))
}

/// Parses a time or a range such as `1-2`. Returns its earliest and latest time in microseconds.
pub fn time_range_us(text: &str, unit_is_seconds: bool) -> Parsed<(u64, u64)> {
    /// Maximum width of a range. fio draws from ranges with signed 32-bit numbers.
    const WIDEST_US: u64 = i32::MAX as u64 - 1;
    let Some((earliest, latest)) = text.split_once(['-', ',', ':']) else {
        return time_us(text, unit_is_seconds).map(|time| (time, time));
    };
    // Before `-`, fio only knows suffixes that it compares by prefix. `1s-2s` is 1 us to 2 s.
    let suffix = earliest.trim().trim_start_matches(|letter: char| letter.is_ascii_digit());
    if !text.contains(',') && !["", "us", "usec", "ms", "msec"].contains(&suffix) {
        return Err(OptionError::new(
            format!("fio reads `{earliest}` as microseconds, because another time follows"),
            "Write both in seconds without a suffix, or both in ms",
        ));
    }
    let range = (time_us(earliest, unit_is_seconds)?, time_us(latest, unit_is_seconds)?);
    match range.1.checked_sub(range.0) {
        Some(0..=WIDEST_US) => Ok(range),
        Some(_) => Err(OptionError::new(
            format!("the range `{text}` is longer than fio supports"),
            "Keep it below 2147 seconds",
        )),
        None => Err(OptionError::new(format!("the range `{text}` runs backwards"), "Write the earlier time first")),
    }
}

/// Parses a floating point number.
pub fn fraction(text: &str) -> Parsed<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| OptionError::new(format!("`{text}` is not a number"), "Write a number, for example 1.2"))
}

/// Parses a switch, `1` or `0`. Empty means 1, as in fio's flags.
pub fn switch(text: &str) -> Parsed<bool> {
    match text {
        "" | "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(OptionError::new(format!("`{text}` is not 0 or 1"), "Write 0 or 1")),
    }
}

/// Parses one of several words.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Parsed<T> {
    choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        OptionError::new(format!("`{text}` is not a value of the option"), format!("Write one of {}", words.join(", ")))
    })
}

/// Parses up to three values for reads, writes and trims, such as `4k`, `4k,8k` or `,8k,16k`. As in
/// fio, the last one also applies to the missing ones. An empty value or a comma at the end leaves
/// old values unchanged.
pub fn per_direction<T: Copy>(
    text: &str,
    values: &mut PerDirection<T>,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Parsed<()> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(OptionError::new("the option has more than three values", "Write at most read,write,trim"));
    }
    for (index, part) in parts.iter().enumerate() {
        if part.is_empty() {
            continue;
        }
        let value = parse(part)?;
        values[index] = value;
        if index + 1 == parts.len() {
            values[index..].fill(value);
        }
    }
    Ok(())
}

/// Like [`per_direction`], but `:` and `-` also separate numbers. As in fio, `4k-8k` is 4k for
/// reads and 8k for writes and trims.
pub fn numbers_per_direction<T: Copy>(
    text: &str,
    values: &mut PerDirection<T>,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Parsed<()> {
    let separator = [',', ':', '-'].into_iter().find(|separator| text.contains(*separator));
    let text = separator.map_or_else(|| text.to_owned(), |separator| text.replace(separator, ","));
    per_direction(&text, values, parse)
}

/// Splits an option with a list per direction into texts for reads, writes and trims. Unlike in
/// [`per_direction`], a second list also applies to trims even if it is empty. fio leaves the old
/// value for an empty list.
pub fn lists_per_direction(text: &str) -> Parsed<PerDirection<&str>> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [all] => Ok([all; 3]),
        [read, others] => Ok([read, others, others]),
        [read, write, trim] => Ok([read, write, trim]),
        _ => Err(OptionError::new("the option has more than three lists", "Write at most read,write,trim")),
    }
}

/// Stores a successfully parsed value.
pub fn set<T>(value: Result<T, OptionError>, place: &mut T) -> Result<(), OptionError> {
    *place = value?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_fios() {
        let binary = |text| number(text, KbBase::Binary).unwrap();
        assert_eq!(binary("4096"), 4096);
        assert_eq!([binary("4k"), binary("4K"), binary("4kb"), binary(" 4 k ")], [4096; 4]);
        assert_eq!([binary("4096b"), binary("4096B"), binary("4096 B")], [4096; 3]);
        assert_eq!(binary("4KiB"), 4000, "fio exchanges the families under kb_base=1024");
        assert_eq!(binary("0x1000"), 4096);
        assert_eq!(binary("2g"), 2 << 30);
        assert_eq!(binary("1p"), 1 << 50);
        let decimal = |text| number(text, KbBase::Decimal).unwrap();
        assert_eq!([decimal("4k"), decimal("4kib"), decimal("3tb")], [4000, 4096, 3_000_000_000_000]);
        for wrong in ["", "k", "1.5g", "4x", "4kk", "-1", "10%", "99999999p"] {
            assert!(number(wrong, KbBase::Binary).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages_and_times() {
        assert_eq!(amount("25%", KbBase::Binary), Ok(Amount::Percent(25)));
        assert_eq!(amount("1m", KbBase::Binary), Ok(Amount::Bytes(1 << 20)));
        assert!(amount("101%", KbBase::Binary).is_err());
        let fraction = amount("50.5%", KbBase::Binary).unwrap_err();
        assert!(fraction.problem.contains("as 50,"), "fio runs it with 50 bytes: {fraction:?}");
        assert_eq!(time_us("30", true), Ok(30_000_000));
        assert_eq!(time_us("30", false), Ok(30));
        assert_eq!(
            [time_us("5ms", true), time_us("2m", false), time_us("1h", true)],
            [Ok(5_000), Ok(120_000_000), Ok(3_600_000_000)]
        );
        assert!(time_us("5 parsecs", true).is_err());
        assert_eq!(time_us("18250d", true), Ok(LONGEST_US));
        assert!(time_us("18251d", true).is_err());
        assert!(time_us("18446744073709551615", false).is_err());
        let seconds = |text| time_range_us(text, true);
        assert_eq!(seconds("3"), Ok((3_000_000, 3_000_000)));
        assert_eq!(seconds("1-2"), Ok((1_000_000, 2_000_000)));
        assert_eq!(seconds("1ms-2s"), Ok((1_000, 2_000_000)));
        assert_eq!(seconds("1s,2s"), Ok((1_000_000, 2_000_000)));
        for wrong in ["1s-2s", "2-1", "0-1h", "1-", "1-2-3"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_per_direction() {
        let parse = |text: &str| {
            let mut values = [1, 2, 3];
            per_direction(text, &mut values, |part| number(part, KbBase::Binary)).map(|()| values)
        };
        assert_eq!(parse("9"), Ok([9, 9, 9]));
        assert_eq!(parse("8,9"), Ok([8, 9, 9]));
        assert_eq!(parse("7,8,9"), Ok([7, 8, 9]));
        assert_eq!(parse(",9"), Ok([1, 9, 9]));
        assert_eq!(parse("9,"), Ok([9, 2, 3]));
        assert!(parse("1,2,3,4").is_err());
        let mut sizes = [0; 3];
        numbers_per_direction("4k-512k", &mut sizes, |part| number(part, KbBase::Binary)).unwrap();
        assert_eq!(sizes, [4096, 512 << 10, 512 << 10]);
        assert_eq!(lists_per_direction("a,b"), Ok(["a", "b", "b"]));
    }
}
