//! The table of cases in the documentation names every case, and only tests that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, out: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|kind| kind == "rs") {
            out.push_str(&std::fs::read_to_string(&entry).unwrap());
        }
    }
}

/// Names between backticks that look like tests.
fn tests(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_case_is_in_the_table_and_every_test_of_the_table_exists() {
    let page = std::fs::read_to_string(root().join("docs/compatibility/virtual-nodes.md")).unwrap();
    let mut code = String::new();
    for folder in [
        "crates/vnode/src",
        "crates/vnode/tests",
        "crates/lease/src",
        "crates/api/src",
        "crates/atoll/tests",
        "crates/runtime/src",
    ] {
        sources(&root().join(folder), &mut code);
    }
    let mut cases = BTreeSet::new();
    let (table, beyond) = page.split_once("## Beyond the original").unwrap();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if cells[0] == "---" {
            continue;
        }
        assert!(cases.insert(cells[0].to_owned()), "{} is there twice", cells[0]);
        assert!(["same", "better", "different"].contains(&cells[2]), "{row}");
        assert!(cells[2] == "same" || !cells[3].is_empty(), "{}: how?", cells[0]);
        assert!(tests(cells[1]).count() > 0, "{} has no test", cells[0]);
    }
    for (letter, last) in [("A", 11), ("B", 9), ("C", 22), ("D", 24), ("E", 4)] {
        for number in 1..=last {
            assert!(cases.contains(&format!("{letter}{number}")), "{letter}{number} is missing");
        }
    }
    let beyond = beyond.split("## Not there").next().unwrap();
    let rows = table.lines().chain(beyond.lines()).filter(|line| line.starts_with("| "));
    for name in rows.filter_map(|row| row.split('|').nth(2)).flat_map(tests) {
        assert!(code.contains(&format!("fn {name}(")), "there is no test {name}");
    }
    for number in ["S10", "S11", "S19", "S23"] {
        assert!(beyond.contains(&format!("| {number} ")), "{number} is missing");
    }
}
