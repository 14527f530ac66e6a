//! What the interpreter says beside what Karmada's own code says, question by question.
#![allow(clippy::unwrap_used, missing_docs)]

mod accepted;
mod builtin;
mod case;
mod expressions;
mod flux;
mod jobs;
mod known;
mod random;
mod scripts;

use case::{Case, compare};

#[test]
fn built_in_kinds_mean_what_they_mean_to_the_original() {
    compare("built-in kinds", &builtin::cases(), accepted::BUILTIN);
}

#[test]
fn kinds_of_well_known_projects_mean_what_they_mean_to_the_original() {
    compare("well-known kinds", &known::cases(), accepted::KNOWN);
}

#[test]
fn scripts_answer_as_in_the_original() {
    compare("scripts", &scripts::cases(), accepted::SCRIPTS);
}

#[test]
fn what_differs_is_told_in_the_documents() {
    let groups =
        [("built-in kinds", accepted::BUILTIN), ("well-known kinds", accepted::KNOWN), ("scripts", accepted::SCRIPTS)];
    let rows = groups.iter().flat_map(|(of, all)| all.iter().map(move |one| format!("| {of} | {} |\n", one.why)));
    let table: String = ["| of | here |\n".to_owned(), "| --- | --- |\n".to_owned()].into_iter().chain(rows).collect();
    atoll_testkit::peers::keep_section("docs/karmada.md", "interpreter", &table);
}

#[test]
fn there_are_enough_cases() {
    let all: [Vec<Case>; 3] = [builtin::cases(), known::cases(), scripts::cases()];
    let count: usize = all.iter().map(Vec::len).sum();
    assert!(count >= 2_000, "only {count}");
}
