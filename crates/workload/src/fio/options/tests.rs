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
fn the_pages_show_the_table() {
    let manual = manual();
    let (other, _) = manual.split_once("### Options without effect").expect("its last table");
    let page = include_str!("../../../../../docs/reference/job-files.md");
    let missing: Vec<&str> = other.lines().filter(|line| !page.contains(line)).collect();
    assert!(missing.is_empty(), "docs/reference/job-files.md lacks:\n{}", missing.join("\n"));

    let silent = options().iter().filter(|option| option.is_silent());
    let rows = silent.flat_map(|option| option.names().map(|name| format!("| `{name}` | {} |", option.help)));
    let page = include_str!("../../../../../docs/reference/fio-options-without-effect.md");
    let missing: Vec<String> = rows.filter(|row| !page.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/reference/fio-options-without-effect.md lacks:\n{}", missing.join("\n"));
}

#[test]
fn an_unknown_name_finds_its_neighbour() {
    assert_eq!(nearest("blocksiez"), Some("blocksize"));
    assert_eq!(nearest("io_dpeth"), Some("iodepth"));
    assert_eq!(nearest("qqqqqqqq"), None);
}
