//! Finds JSON documents in the output of a program that also prints other text.
//!
//! fio prints notes and errors around its JSON, and with `--status-interval` a document for each
//! interval. A document begins with a brace at the start of a line, the format of fio.

use serde_json::{Deserializer, Value};

/// The last JSON object of a text.
pub(super) struct LastDocument {
    pub(super) json: Value,
    /// Number of JSON objects in the text.
    pub(super) count: usize,
    pub(super) skipped_lines: usize,
}

/// Finds the last JSON object. `None` if the text has none.
pub(super) fn find_last(text: &str) -> Result<Option<LastDocument>, String> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    let mut last: Option<LastDocument> = None;
    let mut skipped_lines = 0;
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default();
        let brace = line.find('{').filter(|_| !line.starts_with(char::is_whitespace));
        if let Some(brace) = brace {
            let mut documents = Deserializer::from_str(&rest[brace..]).into_iter::<Value>();
            match documents.next() {
                Some(Ok(json)) => {
                    skipped_lines += usize::from(brace > 0);
                    let count = last.map_or(1, |last| last.count + 1);
                    last = Some(LastDocument { json, count, skipped_lines });
                    rest = &rest[brace + documents.byte_offset()..];
                    continue;
                }
                Some(Err(error)) if error.is_eof() => {
                    let before = &text[..text.len() - rest.len()];
                    let number = before.matches('\n').count() + 1;
                    let remedy = "Give the whole output, or remove this part";
                    return Err(format!("line {number}: the JSON that begins here has no end. {remedy}"));
                }
                _ => {}
            }
        }
        skipped_lines += usize::from(!line.trim().is_empty());
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    Ok(last.map(|last| LastDocument { skipped_lines, ..last }))
}
