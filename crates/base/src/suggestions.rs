//! Suggestions for misspelled names, and for settings, keys and values of older builds.

/// Lowest similarity of two names for a suggestion.
const SIMILARITY_MIN: f64 = 0.75;

/// The known name that is most similar to an unknown one, if any is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score > SIMILARITY_MIN).map(|(_, candidate)| candidate)
}

/// Returns " (renamed to X)" for a known name of an older build, " (did you mean X?)" for the most
/// similar name, or an empty string. Belongs behind an unknown name in an error message.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(new) = renamed(name).filter(|new| known.contains(&new.as_str())) {
        return format!(" (renamed to {new})");
    }
    nearest(name, known).map_or_else(String::new, |candidate| format!(" (did you mean {candidate}?)"))
}

/// Up to `count_max` known names that contain an unknown one or are similar to it, the most similar
/// first.
pub fn similar_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, count_max: usize) -> Vec<&'a str> {
    let score = |candidate: &'a str| match candidate.contains(name) {
        true => (1.0, candidate),
        false => (strsim::jaro_winkler(name, candidate), candidate),
    };
    let mut scored: Vec<(f64, &str)> =
        known.into_iter().map(score).filter(|(score, _)| *score > SIMILARITY_MIN).collect();
    // The sort is stable, so equally similar names keep their order.
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.into_iter().take(count_max).map(|(_, candidate)| candidate).collect()
}

/// Adds a suggestion to serde's message about an unknown field or variant, taken from the list in
/// the message. Other messages go through [`translate_message`](crate::translate_message).
pub fn hinted(message: &str) -> String {
    let name = ["unknown field `", "unknown variant `"].iter().find_map(|begins| message.strip_prefix(begins));
    let Some((name, known)) = name.and_then(|rest| rest.split_once("`, expected ")) else {
        return crate::translate_message(message);
    };
    let hint = hint(name, known.split('`').skip(1).step_by(2));
    let end = message.len() - "`, expected ".len() - known.len();
    format!("{}`{hint}{}", &message[..end], &message[end + 1..])
}

/// Old name, new name.
const RENAMED: [(&str, &str); 16] = [
    ("apart", "own_threads"),
    ("background_mark", "background_watermark"),
    ("foreground_mark", "foreground_watermark"),
    ("handle_selection", "source_policy"),
    ("marks_of", "watermark_base"),
    ("only", "variants"),
    ("prefill", "precondition_drive_writes"),
    ("prefill_capacities", "precondition_drive_writes"),
    ("sample_capacities", "sample_drive_writes"),
    ("separation_bytes", "hot_window_bytes"),
    ("tail_capacities", "tail_drive_writes"),
    ("together", "shared_threads"),
    ("unit_selection", "victim_policy"),
    ("until", "steady_state"),
    ("write", "drive_writes"),
    ("write_capacities", "drive_writes"),
];

/// New name of a setting or key, `None` if it was not renamed. A path such as `gc.marks_of` keeps
/// its table.
fn renamed(name: &str) -> Option<String> {
    let (table, key) = name.rsplit_once('.').map_or(("", name), |(table, key)| (table, key));
    let (_, new) = RENAMED.iter().find(|(old, _)| *old == key)?;
    Some(match table {
        "" => (*new).to_string(),
        table => format!("{table}.{new}"),
    })
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
        assert_eq!(hint("gc.marks_of", ["gc.watermark_base", "gc.copies"]), " (renamed to gc.watermark_base)");
        assert_eq!(hint("prefill", ["gc.copies"]), "");
        assert_eq!(hint("prefill", ["precondition_drive_writes"]), " (renamed to precondition_drive_writes)");
        let known = ["kvcache_202206", "one_stream", "kvcache_202401"];
        assert_eq!(similar_names("kvcache", known, 8), ["kvcache_202206", "kvcache_202401"]);
        assert_eq!(similar_names("kvcache", known, 1), ["kvcache_202206"]);
    }

    #[test]
    fn a_name_that_serde_does_not_know_is_told_the_nearest() {
        let message = "unknown field `chanels`, expected one of `channels`, `dies`";
        assert_eq!(
            hinted(message),
            "unknown field `chanels` (did you mean channels?), expected one of `channels`, `dies`"
        );
        let message = "unknown variant `together`, expected `shared_threads` or `own_threads`";
        assert_eq!(
            hinted(message),
            "unknown variant `together` (renamed to shared_threads), expected `shared_threads` or `own_threads`"
        );
        for message in ["unknown field `x`, there are no fields", "unknown field `qqqqqq`, expected `channels`"] {
            assert_eq!(hinted(message), message);
        }
    }
}
