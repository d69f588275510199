use std::collections::HashSet;

use super::*;

#[test]
fn names_are_unique() {
    let mut seen = HashSet::new();
    for name in options().iter().flat_map(|option| option.names()) {
        assert!(seen.insert(name), "{name} stands in the table twice");
    }
}

#[test]
fn the_manual_shows_the_table() {
    let manual_page = include_str!("../../../../../docs/reference/job-files.md");
    for line in manual().lines() {
        assert!(
            manual_page.contains(line),
            "docs/reference/job-files.md lacks this line of fio::manual():\n{line}"
        );
    }
    for option in options() {
        assert!(
            manual_page.contains(&format!("`{}`", option.name)),
            "docs/reference/job-files.md does not mention {}",
            option.name
        );
    }
}

#[test]
fn an_unknown_name_finds_its_neighbour() {
    assert_eq!(nearest("blocksiez"), Some("blocksize"));
    assert_eq!(nearest("io_dpeth"), Some("iodepth"));
    assert_eq!(nearest("qqqqqqqq"), None);
}
