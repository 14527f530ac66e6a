//! Regular expressions of schemas: the original's dialect (RE2 with ASCII classes), compiled
//! once per pattern and shared by all schemas that use it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use parking_lot::Mutex;
use regex::Regex;

/// A compiled pattern that is filled on first use; equal and cheap to clone whatever it holds.
#[derive(Clone, Debug, Default)]
pub struct Cell(OnceLock<Result<Arc<Regex>, String>>);

impl PartialEq for Cell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Cell {
    /// The compiled form of `pattern`, which must always be the same text for one cell.
    pub fn get(&self, pattern: &str) -> Result<&Regex, &str> {
        match self.0.get_or_init(|| compile(pattern)) {
            Ok(regex) => Ok(regex),
            Err(why) => Err(why),
        }
    }
}

/// Compiled patterns in use anywhere; weak, so that they go with the last schema that has them.
static SHARED: LazyLock<Mutex<HashMap<String, Weak<Regex>>>> = LazyLock::new(Mutex::default);

/// Compiles a pattern, or finds it already compiled.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(regex) = SHARED.lock().get(pattern).and_then(Weak::upgrade) {
        return Ok(regex);
    }
    let regex =
        regex::RegexBuilder::new(&translate(pattern)).size_limit(1 << 20).build().map_err(|error| error.to_string())?;
    let regex = Arc::new(regex);
    let mut shared = SHARED.lock();
    if shared.len() >= 64 && shared.len().is_power_of_two() {
        shared.retain(|_, weak| weak.strong_count() > 0);
    }
    shared.insert(pattern.to_owned(), Arc::downgrade(&regex));
    Ok(regex)
}

/// Rewrites what means something else here than in RE2: `\d`, `\w`, `\s` and `\b` are ASCII,
/// `\Q..\E` is literal, `\z` exists everywhere, and a class has neither nested classes nor
/// set operators.
pub fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    let mut last = ' ';
    while let Some(c) = chars.next() {
        let at_start = std::mem::take(&mut class_start);
        match c {
            '\\' => match chars.next() {
                Some('Q') if !in_class => literal(&mut chars, &mut out),
                Some(escaped) => escape(escaped, in_class, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => posix(&mut chars, &mut out),
            '[' => out.push_str("\\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            // Two dashes in a row would be a set difference.
            '-' if in_class && (at_start || last == '-') => {
                out.push_str("\\-");
                last = ' ';
                continue;
            }
            other => out.push(other),
        }
        last = c;
    }
    out
}

fn escape(c: char, in_class: bool, out: &mut String) {
    let text = match (c, in_class) {
        ('d', false) => "[0-9]",
        ('d', true) => "0-9",
        ('w', false) => "[0-9A-Za-z_]",
        ('w', true) => "0-9A-Za-z_",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('D', _) => "[^0-9]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        // A literal backspace may not stand in a class of ours by this name.
        ('b', true) => "\\x08",
        _ => {
            out.push('\\');
            out.push(c);
            return;
        }
    };
    out.push_str(text);
}

fn literal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next_if_eq(&'E').is_some() {
            return;
        }
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}

/// Copies a `[:name:]` class, or escapes the bracket when it is none.
fn posix(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let rest: String = chars.clone().collect();
    let Some(end) = rest.find(":]") else {
        out.push_str("\\[");
        return;
    };
    out.push('[');
    for _ in 0..rest[..end + 2].chars().count() {
        out.extend(chars.next());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_the_original() {
        let cases: &[(&str, &str, bool)] = &[
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢٣", false),
            (r"^[\w.-]+$", "a_b.c-d", true),
            (r"^[\w]+$", "é", false),
            (r"^[[a]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "bc", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^a\z", "a", true),
            (r"^[+--]$", "-", true),
            (r"^[--/]$", ".", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\S+$", "a b", false),
            (r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$", "100Mi", true),
        ];
        for (pattern, text, matches) in cases {
            let regex = compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert_eq!(regex.is_match(text), *matches, "{pattern} on {text}");
        }
        assert!(compile("(").is_err());
    }

    #[test]
    fn equal_patterns_share_one_regex() {
        let one = compile("^shared$").unwrap();
        let two = compile("^shared$").unwrap();
        assert!(Arc::ptr_eq(&one, &two));
    }
}
