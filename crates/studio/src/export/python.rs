//! Exports a session as a Python program that runs the experiment.

use super::{ExportData, experiment};

pub fn text(material: &ExportData) -> String {
    let toml = experiment::text(material);
    format!(
        r#"# Made by `warp studio`. Runs the lanes of a session with the Python package (pip install warp-ssd).
# The integers of the results are the same.
import tomllib

import warp_ssd

EXPERIMENT = tomllib.loads(
    {}
)

result = warp_ssd.run(EXPERIMENT)
print(result.summary())
"#,
        quoted(&toml)
    )
}

/// Quotes a text as Python strings. Python understands JSON's escapes. serde_json writes characters
/// above 16 bits unescaped.
fn quoted(text: &str) -> String {
    let lines: Vec<String> =
        text.split_inclusive('\n').map(|line| serde_json::to_string(line).expect("text is JSON")).collect();
    lines.join("\n    ")
}
