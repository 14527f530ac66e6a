//! Words with variables, quotes and commands in them.

use super::{Shell, Stop, parse};

/// A word while it is put together: fields, and whether the last one is open.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    open: Option<String>,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.open.get_or_insert_with(String::new).push_str(text);
    }

    /// Text of an expansion outside quotes is split at spaces.
    fn push_split(&mut self, text: &str) {
        let mut parts = text.split_whitespace().peekable();
        if text.starts_with(char::is_whitespace) {
            self.done.extend(self.open.take());
        }
        while let Some(part) = parts.next() {
            self.push(part);
            if parts.peek().is_some() || text.ends_with(char::is_whitespace) {
                self.done.extend(self.open.take());
            }
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.done.extend(self.open.take());
        self.done
    }
}

impl Shell<'_> {
    /// The fields a word stands for.
    pub(super) fn expand(&mut self, word: &str) -> Result<Vec<String>, Stop> {
        let mut fields = Fields::default();
        let mut at = 0;
        while at < word.len() {
            let rest = &word[at..];
            match rest.as_bytes()[0] {
                b'\'' => {
                    let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 1);
                    fields.push(&rest[1..end]);
                    at += end + 1;
                }
                b'"' => {
                    let end = parse::quoted_end(rest).unwrap_or(rest.len());
                    let text = self.inside_quotes(&rest[1..end.saturating_sub(1).max(1)])?;
                    fields.push(&text);
                    at += end;
                }
                b'\\' => {
                    let next = rest[1..].chars().next();
                    fields.push(&next.map(String::from).unwrap_or_default());
                    at += 1 + next.map_or(0, char::len_utf8);
                }
                b'$' | b'`' => {
                    let (text, used) = self.dollar(rest)?;
                    fields.push_split(&text);
                    at += used;
                }
                b'~' if at == 0 && (rest.len() == 1 || rest.starts_with("~/")) => {
                    let home = self.variables.get("HOME").cloned().unwrap_or_else(|| "/root".into());
                    fields.push(&home);
                    at += 1;
                }
                _ => {
                    let end = rest.find(['\'', '"', '\\', '$', '`']).filter(|end| *end > 0).unwrap_or(rest.len());
                    fields.push(&rest[..end]);
                    at += end;
                }
            }
        }
        Ok(fields.finish())
    }

    fn inside_quotes(&mut self, text: &str) -> Result<String, Stop> {
        let mut out = String::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            match rest.as_bytes()[0] {
                b'\\' => {
                    let next = rest[1..].chars().next().unwrap_or('\\');
                    if !matches!(next, '"' | '\\' | '$' | '`' | '\n') {
                        out.push('\\');
                    }
                    if next != '\n' {
                        out.push(next);
                    }
                    at += 1 + next.len_utf8().min(rest.len() - 1).max(usize::from(rest.len() > 1));
                }
                b'$' | b'`' => {
                    let (value, used) = self.dollar(rest)?;
                    out.push_str(&value);
                    at += used;
                }
                _ => {
                    let end = rest.find(['\\', '$', '`']).unwrap_or(rest.len());
                    out.push_str(&rest[..end]);
                    at += end;
                }
            }
        }
        Ok(out)
    }

    /// What a `$…` or backquoted command stands for, and how long it is.
    fn dollar(&mut self, text: &str) -> Result<(String, usize), Stop> {
        if let Some(inner) = text.strip_prefix('`') {
            let end = inner.find('`').unwrap_or(inner.len());
            return Ok((self.captured(&inner[..end])?, (end + 2).min(text.len())));
        }
        if text.starts_with("$((") {
            let end = parse::closing(&text[1..], b'(', b')').unwrap_or(text.len() - 1) + 1;
            let inner = text.get(3..end.saturating_sub(2)).unwrap_or_default();
            let inner = self.inside_quotes(inner)?;
            return Ok((arithmetic(&inner, &self.variables).to_string(), end));
        }
        if text.starts_with("$(") {
            let end = parse::closing(&text[1..], b'(', b')').unwrap_or(text.len() - 1) + 1;
            return Ok((self.captured(text.get(2..end - 1).unwrap_or_default())?, end));
        }
        if text.starts_with("${") {
            let end = parse::closing(&text[1..], b'{', b'}').unwrap_or(text.len() - 1) + 1;
            return Ok((self.parameter(text.get(2..end - 1).unwrap_or_default())?, end));
        }
        let name: &str = &text[1..];
        let special = name.starts_with(['?', '$', '#', '!', '@', '*']);
        let end =
            if special { 1 } else { name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len()) };
        if end == 0 {
            return Ok(("$".into(), 1));
        }
        Ok((self.variable(&name[..end]), end + 1))
    }

    fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "$" => "1".into(),
            "#" => "0".into(),
            "RANDOM" => (self.now().as_second() % 32768).to_string(),
            _ => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    fn parameter(&mut self, text: &str) -> Result<String, Stop> {
        if let Some(name) = text.strip_prefix('#') {
            return Ok(self.variable(name).chars().count().to_string());
        }
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '?').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let value = self.variable(name);
        Ok(match rest.trim_start_matches(':').split_at_checked(1) {
            Some(("-" | "=", default)) if value.is_empty() => self.inside_quotes(default)?,
            Some(("+", other)) if !value.is_empty() => self.inside_quotes(other)?,
            Some(("+", _)) => String::new(),
            Some(("#", prefix)) => value.strip_prefix(prefix.trim_start_matches('*')).unwrap_or(&value).to_owned(),
            Some(("%", suffix)) => value.strip_suffix(suffix).unwrap_or(&value).to_owned(),
            _ => value,
        })
    }

    fn captured(&mut self, script: &str) -> Result<String, Stop> {
        self.captures.push(Vec::new());
        let result = self.script(script);
        let bytes = self.captures.pop().unwrap_or_default();
        match result {
            Ok(_) | Err(Stop::Exit(_)) => {}
            Err(other) => return Err(other),
        }
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }
}

/// Whole numbers with `+ - * / %` and brackets; what cannot be read is zero.
fn arithmetic(text: &str, variables: &std::collections::BTreeMap<String, String>) -> i64 {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()).max(1);
        let (token, after) = rest.split_at(end.min(rest.len()));
        if !token.trim().is_empty() {
            tokens.push(token.trim());
        }
        rest = after.trim_start();
    }
    let mut at = 0;
    sum(&tokens, &mut at, variables)
}

fn sum(tokens: &[&str], at: &mut usize, variables: &std::collections::BTreeMap<String, String>) -> i64 {
    let mut value = product(tokens, at, variables);
    while let Some(operator @ ("+" | "-")) = tokens.get(*at).copied() {
        *at += 1;
        let right = product(tokens, at, variables);
        value = if operator == "+" { value.wrapping_add(right) } else { value.wrapping_sub(right) };
    }
    value
}

fn product(tokens: &[&str], at: &mut usize, variables: &std::collections::BTreeMap<String, String>) -> i64 {
    let mut value = atom(tokens, at, variables);
    while let Some(operator @ ("*" | "/" | "%")) = tokens.get(*at).copied() {
        *at += 1;
        let right = atom(tokens, at, variables);
        value = match operator {
            "*" => value.wrapping_mul(right),
            "/" => value.checked_div(right).unwrap_or(0),
            _ => value.checked_rem(right).unwrap_or(0),
        };
    }
    value
}

fn atom(tokens: &[&str], at: &mut usize, variables: &std::collections::BTreeMap<String, String>) -> i64 {
    let Some(token) = tokens.get(*at).copied() else { return 0 };
    *at += 1;
    match token {
        "(" => {
            let value = sum(tokens, at, variables);
            *at += 1;
            value
        }
        "-" => atom(tokens, at, variables).wrapping_neg(),
        "$" => atom(tokens, at, variables),
        name => name.parse().ok().or_else(|| variables.get(name)?.parse().ok()).unwrap_or(0),
    }
}
