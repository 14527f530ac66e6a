//! The `fieldPath` of a rule: which field below the schema is to be blamed.

use crate::Schema;

/// Reads `.a.b['c']`, checks it against the schema and returns it as `a.b[c]`.
pub(crate) fn normalise(text: &str, schema: &Schema) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut schema = schema;
    while !rest.is_empty() {
        let name;
        if let Some(tail) = rest.strip_prefix("['") {
            let (key, after) = quoted(tail)?;
            rest = after.strip_prefix(']')?;
            name = key;
        } else {
            let tail = rest.strip_prefix('.')?;
            let end = tail.find(['.', '[', ']']).unwrap_or(tail.len());
            name = tail[..end].to_owned();
            rest = &tail[end..];
        }
        if name.is_empty() {
            return None;
        }
        if schema.properties.is_empty() {
            schema = schema.additional.as_deref()?;
            out.push_str(&format!("[{name}]"));
        } else {
            schema = schema.properties.get(name.as_str())?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        }
    }
    Some(out)
}

/// The text up to the closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match chars.next()?.1 {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                same @ ('\'' | '\\') => same,
                _ => return None,
            }),
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_against_the_schema() {
        let schema = Schema::from_json(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}, "m": {
                "type": "object", "additionalProperties": {"type": "string"}}}}}}))
        .unwrap();
        let cases = [
            (".a", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            (".a.m['k\\'x']", Some("a.m[k'x]")),
            (".a.m.k", Some("a.m[k]")),
            ("a", None),
            (".b", None),
            (".a[0]", None),
            (".a.", None),
            (".a['b.c", None),
        ];
        for (text, expected) in cases {
            assert_eq!(normalise(text, &schema).as_deref(), expected, "{text}");
        }
    }
}
