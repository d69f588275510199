//! Translates messages of Rust's libraries about a value into the user's words.

/// Phrases of the libraries and their replacements.
const PHRASES: [(&str, &str); 20] = [
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
];

/// Translates a library's message about a value, so that it states the expected value.
pub fn translate_message(sentence: &str) -> String {
    let replaced = PHRASES.iter().fold(sentence.to_string(), |text, (phrase, words)| text.replace(phrase, words));
    match replaced.starts_with("is ") {
        true => replaced.replacen("is sequence", "is a list", 1).replacen("is map", "is a table", 1).replacen(
            "is string",
            "is the text",
            1,
        ),
        false => replaced,
    }
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
            ("missing field `devices`", "missing field `devices`"),
        ] {
            assert_eq!(translate_message(sentence), expected);
        }
    }
}
