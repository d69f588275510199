//! Reads answers of `warp whatif` as sides of a comparison.

use serde_json::Value;

use super::run::{ModelRange, SeedRun, WAF, placement_value};
use base::distinct;

/// True if a document is an output of `warp whatif --json`.
pub(super) fn is_answer(json: &Value) -> bool {
    json["headline"].is_string() && json["placements"].is_array()
}

/// The answers about a folder's files. `None` if the text is another document.
pub(super) fn of_folder(text: &str) -> Option<Vec<Value>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let answers: Vec<Value> = serde_json::from_str(text).ok()?;
    (!answers.is_empty() && answers.iter().all(is_answer)).then_some(answers)
}

/// A run for each placement of an answer. With several answers, names begin with the workload.
pub(super) fn runs(answer: &Value, is_one_of_several: bool) -> impl Iterator<Item = SeedRun> {
    let workload = answer["workload"].as_str().filter(|_| is_one_of_several);
    let workload = workload.map_or_else(String::new, |workload| format!("{workload} | "));
    let placements = answer["placements"].as_array().into_iter().flatten();
    placements.filter_map(move |placement| {
        let name = placement["name"].as_str()?;
        let waf = placement["write_amplification"].as_f64()?;
        Some(SeedRun {
            device: answer["device"].as_str().unwrap_or_default().to_string(),
            place: format!("{workload}{name}"),
            metrics: vec![(WAF.to_string(), waf)],
            range: Some(ModelRange::new(placement, waf)),
            is_doubtful: placement["is_doubtful"] == true,
            ..SeedRun::default()
        })
    })
}

/// A note on placements whose numbers do not measure the placement.
pub(super) fn not_comparable(answer: &Value) -> Option<String> {
    let placements = answer["placements"].as_array().into_iter().flatten();
    let names = placements
        .filter(|placement| placement["is_comparable"] == false)
        .filter_map(|placement| placement["name"].as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "the results of {} show a drive with too little free space, not the effect of placement",
            names.join(", ")
        )
    })
}

/// A note on placements with doubtful numbers, with the names of their warnings.
pub(super) fn warning_note(answer: &Value) -> Option<String> {
    let placements = answer["placements"].as_array().into_iter().flatten();
    let placements = placements.filter(|placement| placement["is_doubtful"] == true);
    let words = placements.filter_map(|placement| {
        let warnings = placement_value(placement, ["warnings", "findings"]).as_array().into_iter().flatten();
        let warnings: Vec<String> = warnings.filter_map(|name| Some(name.as_str()?.replace('_', " "))).collect();
        Some(format!("{} ({})", placement["name"].as_str()?, warnings.join(", ")))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("* doubtful: {}", words.join(", ")))
}

/// Variable parts of a question: display name, and path in an answer.
const QUESTION: [(&str, &str); 10] = [
    ("workload", "/workload"),
    ("device", "/device"),
    ("capacity", "/drive_bytes"),
    ("spare", "/question/over_provisioning"),
    ("fill", "/question/fill"),
    ("drive-writes a day", "/drive_writes_per_day"),
    ("scale", "/question/scale"),
    ("drive-writes of a run", "/question/drive_writes"),
    ("settings", "/question/overrides"),
    ("seed", "/question/seed"),
];

/// Maximum number of values of one side in a note. Above it, the note has only their number.
const VALUES_SHOWN: usize = 3;

/// The question of an answer, by display names.
pub(super) fn question(answer: &Value) -> Value {
    let part = |(name, place): (&str, &str)| {
        let value = answer.pointer(place).cloned().unwrap_or_default();
        (name.to_string(), value)
    };
    Value::Object(QUESTION.map(part).into_iter().collect())
}

/// Describes the differences between the questions of two sides with one or more answers. `None` if
/// they are equal.
pub(super) fn differing_questions([a, b]: [&Value; 2]) -> Option<String> {
    let format_value = |name: &str, value: &Value| match value {
        Value::Null => "by default".to_string(),
        Value::Number(bytes) if name == "capacity" => format!("{} GB", bytes.as_f64().unwrap_or(0.0) / 1e9),
        Value::String(text) => text.clone(),
        Value::Object(settings) if settings.is_empty() => "none".to_string(),
        other => other.to_string(),
    };
    // A value that all workloads of a folder share appears once.
    let values_of = |side: &Value, name: &str| {
        let answers = side.as_array().into_iter().flatten();
        distinct(answers.map(|answer| answer[name].clone()))
    };
    let words = |name: &str, values: &[Value]| match values.len() {
        0..=VALUES_SHOWN => {
            let words: Vec<String> = values.iter().map(|value| format_value(name, value)).collect();
            words.join(" and ")
        }
        many => format!("{many} of them"),
    };
    let differs = |(name, _): (&str, &str)| {
        let [of_a, of_b] = [a, b].map(|side| values_of(side, name));
        let label = name.replace("drive-writes", "drive writes");
        (of_a != of_b).then(|| format!("{label} ({} in A, {} in B)", words(name, &of_a), words(name, &of_b)))
    };
    let parts: Vec<String> = QUESTION.into_iter().filter_map(differs).collect();
    (!parts.is_empty()).then(|| format!("the questions differ in {}", parts.join(", ")))
}
