//! Differences that are accepted, and why.

use std::path::Path;

use serde::Deserialize;

/// One accepted difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The story, or `*`.
    story: String,
    /// The case, or `*`.
    case: String,
    /// Places; `*` at the end stands for anything that follows.
    places: Vec<String>,
    /// Why it is accepted.
    why: String,
}

/// All accepted differences.
pub struct Known(Vec<Entry>);

impl Known {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        Self(serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Which entry accepts a difference.
    pub fn find(&self, story: &str, case: &str, place: &str) -> Option<usize> {
        self.0.iter().position(|entry| {
            fits(&entry.story, story) && fits(&entry.case, case) && entry.places.iter().any(|own| fits(own, place))
        })
    }

    /// Fails if an entry is no longer needed.
    pub fn all_used(&self, used: &[usize]) {
        let idle: Vec<&Entry> =
            self.0.iter().enumerate().filter(|(at, _)| !used.contains(at)).map(|(_, entry)| entry).collect();
        assert!(idle.is_empty(), "these differences are gone; strike them from known.yaml: {idle:#?}");
    }

    /// The list as a table.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from("| story | case | where | why |\n| --- | --- | --- | --- |\n");
        for Entry { story, case, places, why } in &self.0 {
            let places: Vec<String> = places.iter().map(|place| format!("`{place}`")).collect();
            out.push_str(&format!("| {story} | {case} | {} | {} |\n", places.join(" "), why.trim().replace('\n', " ")));
        }
        out
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end),
    }
}
