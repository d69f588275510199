//! Exports a session as a Python program that runs the experiment.

use super::{Material, experiment};

/// Text of the program.
pub fn text(material: &Material) -> String {
    let toml = experiment::text(material);
    format!(
        r#"# Made by `warp studio`: the lanes of a session with the Python package (pip install warp-ssd). The same integers come out.
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
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .map(|line| serde_json::to_string(line).expect("text is JSON"))
        .collect();
    lines.join("\n    ")
}
