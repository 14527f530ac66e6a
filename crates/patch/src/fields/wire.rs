//! `fieldsV1`: a trie as JSON, with `f:`, `k:`, `v:` and `i:` keys.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{FieldSet, Node, PathElement};

impl FieldSet {
    /// Reads `fieldsV1`; keys of sorts not known here are skipped.
    pub fn from_fields_v1(value: &Value) -> Result<Self, String> {
        Ok(read(value)?.0)
    }

    /// Writes `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(write(self, Map::new()))
    }
}

/// The set below a key and whether the key itself is a member.
fn read(value: &Value) -> Result<(FieldSet, bool), String> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok((FieldSet::new(), true)),
        other => return Err(format!("expected an object in fieldsV1, got {other}")),
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(map.len());
    for (key, below) in map {
        if key == "." {
            member = true;
        } else if let Some(element) = parse(key)? {
            let (children, member) = read(below)?;
            nodes.push(Node { element, member, children });
        }
    }
    let set = FieldSet::from_nodes(nodes);
    let member = member || set.is_empty();
    Ok((set, member))
}

fn write(set: &FieldSet, mut out: Map<String, Value>) -> Map<String, Value> {
    for node in set.nodes() {
        let mut below = Map::new();
        if node.member && !node.children.is_empty() {
            below.insert(".".to_owned(), Value::Object(Map::new()));
        }
        out.insert(key(&node.element), Value::Object(write(&node.children, below)));
    }
    out
}

/// The element a key stands for; `None` for sorts that are not known.
fn parse(key: &str) -> Result<Option<PathElement>, String> {
    let (sort, rest) = key.split_once(':').ok_or_else(|| format!("missing colon: {key}"))?;
    let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| format!("{key}: {error}"));
    Ok(match sort {
        "f" => Some(PathElement::field(rest)),
        "v" => Some(PathElement::Value(json(rest)?)),
        "i" => Some(PathElement::Index(rest.parse().map_err(|_| format!("not an index: {key}"))?)),
        "k" => match json(rest)? {
            Value::Object(fields) => {
                Some(PathElement::key(fields.into_iter().map(|(name, value)| (name.into(), value))))
            }
            _ => return Err(format!("not an object: {key}")),
        },
        _ if sort.len() != 1 => return Err(format!("missing colon: {key}")),
        _ => None,
    })
}

fn key(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Index(index) => format!("i:{index}"),
        PathElement::Value(value) => format!("v:{}", escaped(value)),
        PathElement::Key(fields) => {
            let mut out = String::from("k:{");
            for (at, (name, value)) in fields.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                // Writing to a string cannot fail.
                let _ = write!(out, "{comma}{}:{}", escaped(&Value::from(&**name)), escaped(value));
            }
            out.push('}');
            out
        }
    }
}

/// Compact JSON with the characters escaped that the original escapes.
fn escaped(value: &Value) -> String {
    let text = value.to_string();
    if text.contains(['<', '>', '&']) {
        text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    } else {
        text
    }
}
