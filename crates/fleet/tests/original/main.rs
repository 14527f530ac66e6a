//! What overriders and pruning make of objects beside what Karmada's own code makes of them.
#![allow(clippy::unwrap_used, missing_docs)]

mod cases;
mod overrides;
mod prune;

use serde_json::Value;

/// An answer or why there is none.
type Said = Result<Value, String>;

/// A difference that stays, and why.
struct Accepted<C> {
    is: fn(&C, &Said, &Said) -> bool,
    why: &'static str,
}

/// Fails on a difference that is not accepted, and on one accepted that is none.
fn judge<C: std::fmt::Debug>(what: &str, all: &[(C, Said, Said)], accepted: &[Accepted<C>]) {
    let (mut used, mut different) = (vec![0; accepted.len()], 0);
    for (case, ours, theirs) in all {
        let same = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            (ours, theirs) => ours.is_err() && theirs.is_err(),
        };
        if same {
            continue;
        }
        match accepted.iter().position(|one| (one.is)(case, ours, theirs)) {
            Some(at) => used[at] += 1,
            None => {
                different += 1;
                eprintln!("{case:?}\n  ours   {ours:?}\n  theirs {theirs:?}");
            }
        }
    }
    eprintln!("{what}: {} asked, {} accepted, {different} different", all.len(), used.iter().sum::<usize>());
    for (one, used) in accepted.iter().zip(&used) {
        eprintln!("  {used} accepted: {}", one.why);
    }
    assert_eq!(different, 0, "{what} differ from the original");
    for (one, used) in accepted.iter().zip(used) {
        assert!(used > 0, "accepted, but no case differs so: {}", one.why);
    }
}

#[test]
fn what_differs_is_told_in_the_documents() {
    let overriders = overrides::ACCEPTED.iter().map(|one| ("overriders", one.why));
    let pruned = prune::ACCEPTED.iter().map(|one| ("what goes to a member", one.why));
    let rows = overriders.chain(pruned).map(|(of, why)| format!("| {of} | {why} |\n"));
    let table: String = ["| of | here |\n".to_owned(), "| --- | --- |\n".to_owned()].into_iter().chain(rows).collect();
    atoll_testkit::peers::keep_section("docs/karmada.md", "overriders", &table);
}

/// Removes what says nothing.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(strip);
            map.retain(|_, inner| match inner {
                Value::Null => false,
                Value::Object(map) => !map.is_empty(),
                Value::Array(list) => !list.is_empty(),
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}
