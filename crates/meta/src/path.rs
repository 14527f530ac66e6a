//! Kubernetes' dialect of JSONPath, as printer columns and selectable fields use it.

use std::fmt;

use serde_json::Value;

const MAX_LEN: usize = 4096;
const MAX_STEPS: usize = 64;
/// More hits than this are cut off: no column and no selector needs them.
const MAX_HITS: usize = 10_000;

/// Why a text is not a path.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(pub String);

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Any,
    /// Everything below, at any depth.
    Deep,
    Filter(Vec<Step>, Option<(Compare, Value)>),
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl JsonPath {
    /// Parses `.spec.x`, `.a['b.c'][0]`, `.a[*].b` or `.conditions[?(@.type=="Ready")].status`;
    /// surrounding braces and a leading `$` are accepted.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_LEN {
            return Err(PathError(format!("path is longer than {MAX_LEN} bytes")));
        }
        let inner = text.trim();
        let inner = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(inner).trim();
        let inner = inner.strip_prefix('$').unwrap_or(inner);
        Ok(Self { text: text.to_owned(), steps: parse_steps(inner, 0)? })
    }

    /// All values at the path, in document order; none if a part of it is missing.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        walk(&self.steps, root)
    }

    /// The first value at the path.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }

    /// The names of the fields, if the path consists of nothing else; such a path has at most one hit.
    pub fn fields(&self) -> Option<Vec<&str>> {
        let field = |step: &'_ Step| matches!(step, Step::Field(_));
        self.steps.iter().all(field).then(|| {
            self.steps
                .iter()
                .filter_map(|step| match step {
                    Step::Field(name) => Some(name.as_str()),
                    _ => None,
                })
                .collect()
        })
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn walk<'a>(steps: &[Step], root: &'a Value) -> Vec<&'a Value> {
    let mut hits = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in hits {
            apply(step, value, &mut next);
            if next.len() >= MAX_HITS {
                next.truncate(MAX_HITS);
                break;
            }
        }
        hits = next;
    }
    hits
}

fn apply<'a>(step: &Step, value: &'a Value, out: &mut Vec<&'a Value>) {
    match step {
        Step::Field(name) => out.extend(value.get(name)),
        Step::Index(at) => {
            if let Value::Array(list) = value {
                out.extend(position(*at, list.len()).and_then(|at| list.get(at)));
            }
        }
        Step::Slice(from, to) => {
            if let Value::Array(list) = value {
                let bound = |at: i64| position(at, list.len()).unwrap_or(0).min(list.len());
                let (from, to) = (from.map_or(0, bound), to.map_or(list.len(), bound));
                out.extend(list.get(from..to).unwrap_or_default());
            }
        }
        Step::Any => children(value, out),
        Step::Deep => {
            if out.len() < MAX_HITS {
                out.push(value);
                let mut below = Vec::new();
                children(value, &mut below);
                for child in below {
                    apply(step, child, out);
                }
            }
        }
        Step::Filter(path, condition) => {
            let mut items = Vec::new();
            children(value, &mut items);
            out.extend(items.into_iter().filter(|item| {
                let found = walk(path, item);
                match condition {
                    None => !found.is_empty(),
                    Some((compare, wanted)) => found.first().is_some_and(|found| holds(found, *compare, wanted)),
                }
            }));
        }
    }
}

fn position(at: i64, len: usize) -> Option<usize> {
    usize::try_from(if at < 0 { at + i64::try_from(len).ok()? } else { at }).ok()
}

fn children<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    match value {
        Value::Array(list) => out.extend(list),
        Value::Object(map) => out.extend(map.values()),
        _ => {}
    }
}

fn holds(left: &Value, compare: Compare, right: &Value) -> bool {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right)),
        },
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    };
    match compare {
        Compare::Equal => order == Some(Ordering::Equal),
        Compare::NotEqual => order != Some(Ordering::Equal),
        Compare::Less => order == Some(Ordering::Less),
        Compare::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Compare::Greater => order == Some(Ordering::Greater),
        Compare::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn parse_steps(text: &str, depth: usize) -> Result<Vec<Step>, PathError> {
    if depth > 4 {
        return Err(PathError("filters are nested too deeply".to_owned()));
    }
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if steps.len() >= MAX_STEPS {
            return Err(PathError(format!("path has more than {MAX_STEPS} steps")));
        }
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing(inside).ok_or_else(|| PathError("unterminated array".to_owned()))?;
            steps.push(bracket(inside[..end].trim(), depth)?);
            rest = &inside[end + 1..];
        } else if let Some(tail) = rest.strip_prefix("..") {
            steps.push(Step::Deep);
            // `..name` goes on as if written `.name`, `..['x']` as it stands.
            rest = if tail.starts_with('[') { tail } else { &rest[1..] };
            if tail.is_empty() {
                return Err(PathError("path ends in '..'".to_owned()));
            }
        } else {
            let tail = rest.strip_prefix('.').unwrap_or(rest);
            if !rest.starts_with('.') && !steps.is_empty() {
                return Err(PathError(format!("unexpected text in path: {rest}")));
            }
            // A lone dot is the value itself.
            if tail.is_empty() {
                break;
            }
            let (name, tail) = field_name(tail);
            match name.as_str() {
                "" if tail.starts_with('[') => {}
                "" => return Err(PathError(format!("field name expected in path: {text}"))),
                "*" => steps.push(Step::Any),
                _ => steps.push(Step::Field(name)),
            }
            rest = tail;
        }
    }
    Ok(steps)
}

/// Reads a name up to the next `.` or `[`; a backslash takes the next character as it is.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// Offset of the bracket that closes this one, past quoted text and inner brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str, depth: usize) -> Result<Step, PathError> {
    if inside == "*" {
        return Ok(Step::Any);
    }
    if let Some(name) = unquote(inside) {
        return Ok(Step::Field(name));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter.trim(), depth);
    }
    let number =
        |text: &str| text.trim().parse::<i64>().map_err(|_| PathError(format!("invalid array index {inside}")));
    if let Some((from, to)) = inside.split_once(':') {
        let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        return Ok(Step::Slice(bound(from)?, bound(to)?));
    }
    number(inside).map(Step::Index)
}

fn parse_filter(text: &str, depth: usize) -> Result<Step, PathError> {
    const OPERATORS: [(&str, Compare); 6] = [
        ("==", Compare::Equal),
        ("!=", Compare::NotEqual),
        ("<=", Compare::LessEqual),
        (">=", Compare::GreaterEqual),
        ("<", Compare::Less),
        (">", Compare::Greater),
    ];
    let path = |text: &str| {
        let inner =
            text.trim().strip_prefix('@').ok_or_else(|| PathError(format!("filter must begin with @: {text}")))?;
        parse_steps(inner, depth + 1)
    };
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {
                if let Some((name, compare)) = OPERATORS.iter().find(|(name, _)| text[at..].starts_with(name)) {
                    let value = literal(text[at + name.len()..].trim())?;
                    return Ok(Step::Filter(path(&text[..at])?, Some((*compare, value))));
                }
            }
        }
    }
    Ok(Step::Filter(path(text)?, None))
}

fn literal(text: &str) -> Result<Value, PathError> {
    if let Some(text) = unquote(text) {
        return Ok(Value::String(text));
    }
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value),
        _ => Err(PathError(format!("unrecognized value in filter: {text}"))),
    }
}

fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?),
            _ if c == quote => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        json!({
            "metadata": {"name": "x", "annotations": {"a.b/c": "dotted"}},
            "spec": {"list": [{"n": 1}, {"n": 2}, {"n": 3}], "m": {"p": 1, "q": 2}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}
        })
    }

    #[test]
    fn paths_lead_where_printer_columns_expect() {
        let tree = sample();
        for (path, expected) in [
            (".metadata.name", json!(["x"])),
            ("{.metadata.name}", json!(["x"])),
            ("$.metadata.name", json!(["x"])),
            ("metadata.name", json!(["x"])),
            (".metadata.annotations['a.b/c']", json!(["dotted"])),
            (r".metadata.annotations.a\.b/c", json!(["dotted"])),
            (".spec.list[0].n", json!([1])),
            (".spec.list[-1].n", json!([3])),
            (".spec.list[9].n", json!([])),
            (".spec.list[*].n", json!([1, 2, 3])),
            (".spec.list[1:].n", json!([2, 3])),
            (".spec.list[:2].n", json!([1, 2])),
            (".spec.m.*", json!([1, 2])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type != 'Ready')].status", json!(["False"])),
            (".spec.list[?(@.n>=2)].n", json!([2, 3])),
            (".spec.list[?(@.n)].n", json!([1, 2, 3])),
            ("..n", json!([1, 2, 3])),
            (".missing.name", json!([])),
        ] {
            let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&tree).into_iter().cloned().collect();
            assert_eq!(Value::from(found), expected, "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        for bad in [".a[", ".a[x]", ".a[?(b)]", ".a[?(@.b==)]", "..", ".a..", ".a[0]b", ".a['b]", ".."] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
        assert!(JsonPath::parse(&".a".repeat(65)).is_err());
        assert!(JsonPath::parse(&"a".repeat(5000)).is_err());
    }

    #[test]
    fn plain_paths_name_their_fields() {
        assert_eq!(JsonPath::parse(".spec['a.b'].c").unwrap().fields(), Some(vec!["spec", "a.b", "c"]));
        assert_eq!(JsonPath::parse(".spec[0]").unwrap().fields(), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_or_walking_fail_hard(text in r#"[.a-c\[\]0-9:*?()@=<>'"\\{}$ -]{0,40}|.*"#) {
            if let Ok(path) = JsonPath::parse(&text) {
                path.find(&sample());
            }
        }
    }
}
