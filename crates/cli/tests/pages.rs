//! README's errors are those of `docs/claims.md`, which `warp reproduce --claims docs/claims.md` writes.

const README: &str = include_str!("../../../README.md");
const CLAIMS: &str = include_str!("../../../docs/claims.md");

/// The part of a page below a heading, up to the next one like it.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let mut sections = page.split("\n## ");
    let found = sections.find(|section| section.lines().next() == Some(heading));
    found.unwrap_or_else(|| panic!("there is no section {heading:?}"))
}

/// Mean errors that were found for an experiment: the numbers before "over N cells".
fn mean_errors(experiment: &str) -> Vec<&'static str> {
    let words: Vec<_> = section(CLAIMS, experiment).split_whitespace().collect();
    let before_over = words.windows(2).filter(|pair| pair[1] == "over");
    before_over.map(|pair| pair[0]).collect()
}

#[test]
fn readme_prints_the_errors_that_were_found() {
    let mut compared = 0;
    for row in section(README, "How close it is").lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, what, ours, ..] = cells[..] else { continue };
        let Some(experiment) = what.split('`').nth(1) else {
            continue;
        };
        let found = mean_errors(experiment);
        let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        for number in ours.split([' ', ',']).filter(is_number) {
            assert!(
                found.contains(&number),
                "README says {number} of {experiment}, docs/claims.md has {found:?}: write it anew, then README"
            );
            compared += 1;
        }
    }
    assert!(
        compared >= 7,
        "README compares {compared} errors: have its tables changed?"
    );
}
