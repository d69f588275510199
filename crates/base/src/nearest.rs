//! Names that are nearly right.

/// How alike two names must be: below that, a suggestion is a guess.
const LIKENESS_MIN: f64 = 0.75;

/// The known name that is nearest to an unknown one, if any is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score > LIKENESS_MIN)
        .map(|(_, candidate)| candidate)
}

/// " (did you mean X?)" for the nearest name, or nothing: stands behind an unknown one in an error's sentence.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |candidate| format!(" (did you mean {candidate}?)"))
}

/// The known names that are like an unknown one, or of which it is a part: the nearest first, at most as many.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let score = |candidate: &'a str| match candidate.contains(name) {
        true => (1.0, candidate),
        false => (strsim::jaro_winkler(name, candidate), candidate),
    };
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(score)
        .filter(|(score, _)| *score > LIKENESS_MIN)
        .collect();
    // Stable: those that are as near stay in their order.
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// serde's sentence about a field or variant that is not known, with the nearest of those that it lists behind the name. Any other sentence
/// is given in plain words.
pub fn hinted(message: &str) -> String {
    let name = ["unknown field `", "unknown variant `"]
        .iter()
        .find_map(|begins| message.strip_prefix(begins));
    let Some((name, known)) = name.and_then(|rest| rest.split_once("`, expected ")) else {
        return crate::plain_words(message);
    };
    let hint = hint(name, known.split('`').skip(1).step_by(2));
    let end = message.len() - "`, expected ".len() - known.len();
    format!("{}`{hint}{}", &message[..end], &message[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_named_and_nonsense_is_not() {
        let known = ["three_stream", "one_stream"];
        assert_eq!(nearest("one_strem", known), Some("one_stream"));
        assert_eq!(hint("three_straem", known), " (did you mean three_stream?)");
        assert_eq!((nearest("qqq", known), hint("qqq", known)), (None, String::new()));
        let known = ["kvcache_202206", "one_stream", "kvcache_202401"];
        assert_eq!(near("kvcache", known, 8), ["kvcache_202206", "kvcache_202401"]);
        assert_eq!(near("kvcache", known, 1), ["kvcache_202206"]);
    }

    #[test]
    fn a_name_that_serde_does_not_know_is_told_the_nearest() {
        let message = "unknown field `chanels`, expected one of `channels`, `dies`";
        assert_eq!(
            hinted(message),
            "unknown field `chanels` (did you mean channels?), expected one of `channels`, `dies`"
        );
        for message in [
            "unknown field `x`, there are no fields",
            "missing field `x`",
            "unknown field `qqqqqq`, expected `channels`",
        ] {
            assert_eq!(hinted(message), message);
        }
    }
}
