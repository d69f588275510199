//! Translates messages of Rust's libraries about a value into the user's words.

/// Phrases of the libraries and their replacements.
const PHRASES: [(&str, &str); 21] = [
    ("invalid float literal", "give a number, such as 0.5"),
    ("invalid digit found in string", "give a whole number"),
    ("cannot parse integer from empty string", "give a whole number"),
    ("cannot parse float from empty string", "give a number, such as 0.5"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("invalid socket address syntax", "give ADDRESS:PORT, such as 127.0.0.1:4420"),
    ("expected f64", "expected a number"),
    ("expected f32", "expected a number"),
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected usize", "expected a whole number, 0 or more"),
    ("expected i64", "expected a whole number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("invalid type: ", "is "),
    ("invalid value: ", "is "),
    ("invalid length ", "is a list of length "),
];

/// Words after which the libraries name a type of the program. The user knows it as a table.
const TYPE_NAMES: [&str; 3] =
    ["expected struct ", "expected internally tagged enum ", "expected adjacently tagged enum "];

/// Longest number that a message prints in full, letters. A `u64` has at most 20.
const NUMBER_LETTERS_MAX: usize = 20;

/// Translates a library's message about a value, so that it states the expected value.
pub fn translate_message(sentence: &str) -> String {
    let replaced = PHRASES.iter().fold(sentence.to_string(), |text, (phrase, words)| text.replace(phrase, words));
    let replaced = TYPE_NAMES.iter().fold(replaced, |text, phrase| without_type_name(&text, phrase));
    let replaced = missing_field(&replaced).or_else(|| outside_range(&replaced)).unwrap_or(replaced);
    match replaced.starts_with("is ") {
        true => replaced.replacen("is sequence", "is a list", 1).replacen("is map", "is a table", 1).replacen(
            "is string",
            "is the text",
            1,
        ),
        false => replaced,
    }
}

/// Replaces a phrase and the name behind it.
fn without_type_name(text: &str, phrase: &str) -> String {
    let Some((before, rest)) = text.split_once(phrase) else { return text.to_string() };
    let after = rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
    // "with 2 elements" counts the fields of the type.
    let count = after.strip_prefix(" with ").and_then(|count| count.split_once(" element"));
    let after = count.map_or(after, |(_, end)| end.trim_start_matches('s'));
    format!("{before}expected a table{after}")
}

/// Translates "missing field `drives`", also behind a place.
fn missing_field(text: &str) -> Option<String> {
    let (place, rest) = text.split_once("missing field `")?;
    let (name, after) = rest.split_once('`')?;
    Some(format!("{place}{name} is missing{after}"))
}

/// Translates clap's "0 is not in 1..=64", behind the option and its value.
fn outside_range(text: &str) -> Option<String> {
    let (place, rest) = text.split_once(" is not in ")?;
    let (least, most) = rest.split_once("..")?;
    let (option, _) = place.rsplit_once(": ")?;
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let most = most.strip_prefix('=').unwrap_or(most);
    let range = match most.is_empty() {
        true => format!("{least} or more"),
        false if is_number(most) => format!("{least} to {most}"),
        false => return None,
    };
    is_number(least).then(|| format!("{option}: give a whole number, {range}"))
}

/// Writes numbers of very many digits, such as 1e300 printed in full, as powers of ten.
pub fn with_short_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = &rest[begin..];
        let end = digits.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(digits.len());
        // A sentence may end behind the number.
        let number = digits[..end].trim_end_matches('.');
        let short = number.parse::<f64>().ok().filter(|_| number.len() > NUMBER_LETTERS_MAX);
        // Letters before the digits make them a name, such as a hash.
        let is_name = rest[..begin].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        out += &rest[..begin];
        match short.filter(|_| !is_name && !digits[end..].starts_with(char::is_alphanumeric)) {
            Some(short) => out += &format!("{short:e}"),
            None => out += number,
        }
        rest = &digits[number.len()..];
    }
    out + rest
}

pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_libraries_are_translated() {
        for (sentence, expected) in [
            ("invalid type: string \"much\", expected f64", "is the text \"much\", expected a number"),
            ("invalid type: map, expected f64", "is a table, expected a number"),
            ("invalid type: string \"sequence\", expected f64", "is the text \"sequence\", expected a number"),
            ("invalid type: sequence, expected f64", "is a list, expected a number"),
            (
                "invalid value: integer `-1`, expected u32",
                "is integer `-1`, expected a whole number from 0 to 4294967295",
            ),
            (
                "invalid value 'x' for '--drive-writes': invalid float literal",
                "invalid value 'x' for '--drive-writes': give a number, such as 0.5",
            ),
            ("missing field `devices`", "devices is missing"),
            ("array: missing field `drives` at line 1", "array: drives is missing at line 1"),
            ("invalid type: integer `3`, expected struct TimingConfig", "is integer `3`, expected a table"),
            (
                "invalid type: integer `3`, expected struct Order at line 1",
                "is integer `3`, expected a table at line 1",
            ),
            (
                "invalid value '0' for '--drives <N>': 0 is not in 1..=64",
                "invalid value '0' for '--drives <N>': give a whole number, 1 to 64",
            ),
            (
                "invalid value '0' for '--n <N>': 0 is not in 1..",
                "invalid value '0' for '--n <N>': give a whole number, 1 or more",
            ),
            (
                "invalid length 0, expected struct Order with 11 elements at line 1",
                "is a list of length 0, expected a table at line 1",
            ),
            ("the folder is not in a..b", "the folder is not in a..b"),
        ] {
            assert_eq!(translate_message(sentence), expected);
        }
    }

    #[test]
    fn only_numbers_of_very_many_digits_are_shortened() {
        let long = format!("drive_writes = {} (--drive-writes) is 18446744073709551615, {}.0.", 1e300, 2.5e30);
        let short = "drive_writes = 1e300 (--drive-writes) is 18446744073709551615, 2.5e30.";
        assert_eq!(with_short_numbers(&long), short);
        for same in
            ["0.30000000000000004 and 1.2.3", "run 0123456789012345678901234567ab", "hash_0123456789012345678901", ""]
        {
            assert_eq!(with_short_numbers(same), same);
        }
    }
}
