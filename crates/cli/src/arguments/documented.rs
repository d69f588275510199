//! Every command line that README and `docs/` show is one that the program takes.

use std::path::Path;

use clap::Parser;

use super::Arguments;

/// How the command is called in the pages.
const NAMES: [&str; 2] = ["warp ", "cargo run --release -- "];

/// A page's name and its command lines, in blocks of code.
fn command_lines(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let mut lines = Vec::new();
    let mut in_shell = false;
    // A line that ends with a backslash goes on.
    for line in text.replace("\\\n", " ").lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_shell = !in_shell && language == "sh";
        } else if in_shell || line.starts_with("    ") {
            lines.push(line.trim().to_string());
        }
    }
    let is_ours = |line: &String| NAMES.iter().any(|name| line.starts_with(name));
    lines.into_iter().filter(is_ours).collect()
}

/// The words of a command line as a shell divides it: quotes hold together, a comment or a pipe ends it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        let word = words.last_mut().expect("there is always one");
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('#', None) if word.is_empty() => break,
            ('|' | '>' | '&' | ';', None) => break,
            (' ', None) if word.is_empty() => {}
            (' ', None) => words.push(String::new()),
            (letter, _) => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_line_of_the_pages_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("docs")).expect("the manuals");
    let pages = pages.map(|page| page.expect("a manual").path());
    let pages = pages.filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        for line in command_lines(&page) {
            let bare = NAMES
                .iter()
                .find_map(|name| line.strip_prefix(name))
                .expect("one of ours");
            let given = ["warp".to_string()].into_iter().chain(words(bare));
            if let Err(error) = Arguments::try_parse_from(given) {
                assert!(!error.use_stderr(), "{}: {line}\n{error}", page.display());
            }
            count += 1;
        }
    }
    assert!(count >= 16, "only {count} command lines were found");
}
