//! Reading an object for the eyes of people.

use serde_json::Value;

use crate::strategy as tree;

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

/// One object and the time at which it is looked at.
pub(super) struct View<'a> {
    pub object: &'a Value,
    pub now: i64,
}

impl<'a> View<'a> {
    pub fn at(&self, path: &str) -> &'a Value {
        tree::at(self.object, path)
    }

    pub fn text(&self, path: &str) -> &'a str {
        tree::text(self.object, path)
    }

    /// The text, or what stands for its absence.
    pub fn text_or(&self, path: &str, absent: &'static str) -> Value {
        match self.text(path) {
            "" => absent.into(),
            found => found.into(),
        }
    }

    /// The number, zero where there is none.
    pub fn int(&self, path: &str) -> i64 {
        tree::int(self.object, path).unwrap_or(0)
    }

    pub fn flag(&self, path: &str) -> bool {
        tree::flag(self.object, path)
    }

    pub fn has(&self, path: &str) -> bool {
        tree::has(self.object, path)
    }

    pub fn items(&self, path: &str) -> &'a [Value] {
        tree::items(self.object, path)
    }

    pub fn count(&self, path: &str) -> usize {
        tree::count(self.object, path)
    }

    pub fn name(&self) -> Value {
        self.text("metadata.name").into()
    }

    /// An annotation or label, whose key may hold dots.
    pub fn entry(&self, map: &str, key: &str) -> &'a str {
        self.at(map).get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// How long ago the time at a path was.
    pub fn since(&self, path: &str) -> String {
        self.since_time(self.text(path))
    }

    pub fn since_time(&self, time: &str) -> String {
        seconds(time).map_or_else(|| UNKNOWN.to_owned(), |then| super::age(self.now - then))
    }

    /// The condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.items("status.conditions").iter().find(|condition| tree::text(condition, "type") == kind)
    }

    /// Does the condition of a type hold?
    pub fn holds(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| tree::text(condition, "status") == "True")
    }

    /// Names and images of the containers at a path, as two cells.
    pub fn containers(&self, path: &str) -> [Value; 2] {
        ["name", "image"].map(|field| {
            let all: Vec<&str> = self.items(path).iter().map(|container| tree::text(container, field)).collect();
            all.join(",").into()
        })
    }

    /// The labels at a path as `a=b,c=d`.
    pub fn labels(&self, path: &str) -> String {
        let all: Vec<String> = tree::entries(self.object, path)
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        if all.is_empty() { NONE.to_owned() } else { all.join(",") }
    }

    /// The label selector at a path in the form a query takes; empty when it has no terms.
    pub fn raw_selector(&self, path: &str) -> String {
        let selector = self.at(path);
        let mut terms: Vec<(String, String)> = tree::entries(selector, "matchLabels")
            .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
            .collect();
        for rule in tree::items(selector, "matchExpressions") {
            let key = tree::text(rule, "key");
            let mut values: Vec<&str> = tree::items(rule, "values").iter().filter_map(Value::as_str).collect();
            values.sort_unstable();
            let values = values.join(",");
            let shown = match tree::text(rule, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            };
            terms.push((key.to_owned(), shown));
        }
        terms.sort_by(|one, other| one.0.cmp(&other.0));
        terms.into_iter().map(|(_, shown)| shown).collect::<Vec<_>>().join(",")
    }

    /// The label selector at a path, `<none>` when it has no terms.
    pub fn selector(&self, path: &str) -> String {
        let shown = self.raw_selector(path);
        if shown.is_empty() { NONE.to_owned() } else { shown }
    }
}

/// A time as seconds since 1970.
pub(super) fn seconds(time: &str) -> Option<i64> {
    atoll_meta::time::parse(time).map(jiff::Timestamp::as_second)
}

/// The first three, and how many more there are.
pub(super) fn first_three(all: &[String], empty: &str) -> String {
    match all {
        [] => empty.to_owned(),
        [one, two, three, rest @ ..] if !rest.is_empty() => format!("{one},{two},{three} + {} more...", rest.len()),
        few => few.join(","),
    }
}

/// A number or text as text.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
