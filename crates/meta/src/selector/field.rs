//! Field selectors: exact comparisons of a few fields.

use std::fmt;

use super::{MAX_LEN, MAX_TERMS, SelectorError};

/// One comparison of a field selector.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub struct FieldTerm {
    /// Path of the field such as `metadata.name`.
    pub path: String,
    /// Value to compare with.
    pub value: String,
    /// Whether the field must equal the value, or must not.
    pub equal: bool,
}

/// A field selector; the empty one selects everything.
#[derive(Clone, Debug, Eq, PartialEq, Hash, Default)]
pub struct FieldSelector(Vec<FieldTerm>);

impl FieldSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects by exact comparison of one field.
    pub fn exactly(path: &str, value: &str) -> Self {
        Self(vec![FieldTerm { path: path.to_owned(), value: value.to_owned(), equal: true }])
    }

    /// Parses `metadata.name=x,status.phase!=Failed`; a backslash escapes `\`, `,` and `=`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_LEN {
            return Err(SelectorError(format!("selector is longer than {MAX_LEN} bytes")));
        }
        let mut terms = Vec::new();
        for part in split(text) {
            if part.is_empty() {
                continue;
            }
            if terms.len() >= MAX_TERMS {
                return Err(SelectorError(format!("selector has more than {MAX_TERMS} requirements")));
            }
            let (path, value, equal) = operator(part)
                .ok_or_else(|| SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")))?;
            terms.push(FieldTerm { path: path.to_owned(), value: unescape(value)?, equal });
        }
        Ok(Self(terms))
    }

    /// The comparisons, in the order given.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The value a field must have, if the selector says so.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.path == path).map(|term| term.value.as_str())
    }

    /// Whether fields, looked up by path, are selected; a missing field counts as empty.
    pub fn matches(&self, get: impl Fn(&str) -> Option<String>) -> bool {
        self.0.iter().all(|term| (get(&term.path).unwrap_or_default() == term.value) == term.equal)
    }
}

/// Splits at commas that no backslash escapes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Field, raw value and whether they must be equal.
fn operator(term: &str) -> Option<(&str, &str, bool)> {
    term.char_indices().find_map(|(at, _)| {
        let (path, rest) = term.split_at(at);
        let (rest, equal) = if let Some(rest) = rest.strip_prefix("!=") {
            (rest, false)
        } else {
            (rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?, true)
        };
        Some((path, rest, equal))
    })
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => value.push(next),
                next => {
                    let sequence: String = [c].into_iter().chain(next).collect();
                    return Err(SelectorError(format!("invalid field selector: invalid escape sequence: {sequence}")));
                }
            },
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            _ => value.push(c),
        }
    }
    Ok(value)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}{}", term.path, if term.equal { "=" } else { "!=" })?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_compare_exactly_and_missing_fields_are_empty() {
        let get = |path: &str| match path {
            "metadata.name" => Some("a,b".to_owned()),
            "status.phase" => Some("Running".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", true),
            ("metadata.name=a\\,b", true),
            ("metadata.name==a\\,b,status.phase!=Failed", true),
            ("status.phase!=Running", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(get), expected, "{text}");
        }
        let selector = FieldSelector::parse("a!=b,metadata.name=x").unwrap();
        assert_eq!(selector.exact("metadata.name"), Some("x"));
        assert_eq!(selector.exact("a"), None);
    }

    #[test]
    fn faults_are_told_in_the_known_wording() {
        for (text, message) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap_err().0, message);
        }
    }

    proptest! {
        #[test]
        fn a_written_selector_reads_back(path in "[a-z.]{1,10}", value in ".{0,20}", equal in any::<bool>()) {
            let selector = FieldSelector(vec![FieldTerm { path, value, equal }]);
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_text_makes_parsing_fail_hard(text in "[a-c!=\\\\,]{0,30}|.*") {
            let _ = FieldSelector::parse(&text);
        }
    }
}
