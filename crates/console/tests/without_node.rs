//! The program is built wherever there is no Node; it then knows why it has no console.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../build.rs"]
mod script;

use std::fs;

#[test]
fn without_node_there_is_a_reason_instead_of_files() {
    let console = std::env::temp_dir().join(format!("atoll-console-{}", std::process::id()));
    fs::create_dir_all(&console).unwrap();
    assert_eq!(script::build(&console, "node"), Err("its sources are not here".into()));
    fs::write(console.join("package.json"), "{}").unwrap();
    let reason = script::build(&console, "a-node-that-nobody-installed").unwrap_err();
    assert_eq!(reason, "Node.js was not found when it was built");
    let table = script::table(&console, &script::compressed(&console), Some(&reason));
    assert!(table.contains("Some(\"Node.js was not found when it was built\")"), "{table}");
    assert!(table.contains("FILES: &[File] = &[\n];"), "{table}");
    fs::remove_dir_all(&console).unwrap();
}
