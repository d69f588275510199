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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_named_and_nonsense_is_not() {
        let known = ["three_stream", "one_stream"];
        assert_eq!(nearest("one_strem", known), Some("one_stream"));
        assert_eq!(hint("three_straem", known), " (did you mean three_stream?)");
        assert_eq!((nearest("qqq", known), hint("qqq", known)), (None, String::new()));
    }
}
