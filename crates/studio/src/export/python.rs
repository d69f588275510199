//! A session as a program: the experiment's text in Python, which runs it.

use super::{Material, experiment};

/// The text of the program.
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

/// A text as Python writes it: JSON's escapes are Python's too, but for what lies beyond 16 bits, which is written as it is.
fn quoted(text: &str) -> String {
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .map(|line| serde_json::to_string(line).expect("text is JSON"))
        .collect();
    lines.join("\n    ")
}
