//! From text to pieces: what stands as it is, and the words of actions.

use serde_json::Value;

/// A piece of a template.
#[derive(Debug)]
pub enum Piece {
    /// Text that stands as it is.
    Text(String),
    /// The words between braces.
    Action(Vec<Token>),
}

/// A word of an action, and whether it follows the one before without a space.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The word.
    pub word: Word,
    /// No space before it.
    pub glued: bool,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Word {
    /// A keyword or the name of a function.
    Name(String),
    /// `.` alone.
    Dot,
    /// `.name`
    Field(String),
    /// `$name`; `$` has no name.
    Variable(String),
    Literal(Value),
    Pipe,
    Open,
    Close,
    Comma,
    /// `:=` declares, `=` changes.
    Assign {
        declares: bool,
    },
}

/// Cuts a template into pieces.
pub fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let (mut rest, mut trim) = (text, false);
    while let Some(at) = rest.find("{{") {
        let inside = &rest[at + 2..];
        let left = inside.starts_with("- ") || inside.starts_with("-\n") || inside.starts_with("-\t");
        push(&mut pieces, &rest[..at], trim, left);
        let inside = if left { &inside[1..] } else { inside };
        let (tokens, used) = action(inside)?;
        let body = inside[..used].trim_end();
        trim = body.ends_with('-') && (body.len() == 1 || body[..body.len() - 1].ends_with(char::is_whitespace));
        if let Some(tokens) = tokens {
            pieces.push(Piece::Action(tokens));
        }
        rest = &inside[used + 2..];
    }
    push(&mut pieces, rest, trim, false);
    Ok(pieces)
}

fn push(pieces: &mut Vec<Piece>, text: &str, start: bool, end: bool) {
    let text = if start { text.trim_start() } else { text };
    let text = if end { text.trim_end() } else { text };
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// The words up to the closing braces, and where those are; no words for a comment.
fn action(text: &str) -> Result<(Option<Vec<Token>>, usize), String> {
    let unclosed = || "an action is not closed".to_owned();
    let start = text.len() - text.trim_start().len();
    if text[start..].starts_with("/*") {
        let end = start + text[start..].find("*/").ok_or_else(unclosed)? + 2;
        let close = end + text[end..].find("}}").ok_or_else(unclosed)?;
        return Ok((None, close));
    }
    let (mut tokens, mut at, mut glued) = (Vec::new(), 0, false);
    loop {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else { return Err(unclosed()) };
        if rest.starts_with("}}") {
            return Ok((Some(tokens), at));
        }
        let closes = rest.strip_prefix('-').is_some_and(|after| after.starts_with("}}"));
        if closes && !glued {
            return Ok((Some(tokens), at + 1));
        }
        if first.is_whitespace() {
            (at, glued) = (at + first.len_utf8(), false);
            continue;
        }
        let (word, length) = word(rest, first)?;
        tokens.push(Token { word, glued });
        (at, glued) = (at + length, true);
    }
}

fn word(rest: &str, first: char) -> Result<(Word, usize), String> {
    let name = |from: usize| -> usize {
        let part = &rest[from..];
        part.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(part.len())
    };
    Ok(match first {
        '|' => (Word::Pipe, 1),
        '(' => (Word::Open, 1),
        ')' => (Word::Close, 1),
        ',' => (Word::Comma, 1),
        '=' => (Word::Assign { declares: false }, 1),
        ':' if rest.starts_with(":=") => (Word::Assign { declares: true }, 2),
        '.' => match name(1) {
            0 => (Word::Dot, 1),
            length => (Word::Field(rest[1..=length].to_owned()), length + 1),
        },
        '$' => {
            let length = name(1);
            (Word::Variable(rest[1..=length].to_owned()), length + 1)
        }
        '"' => quoted(rest)?,
        '`' => {
            let end = rest[1..].find('`').ok_or("a text is not closed")?;
            (Word::Literal(rest[1..=end].into()), end + 2)
        }
        '0'..='9' | '-' | '+' => number(rest)?,
        letter if letter.is_alphabetic() || letter == '_' => {
            let length = name(0);
            (named(&rest[..length]), length)
        }
        other => return Err(format!("{other:?} is not understood")),
    })
}

fn named(name: &str) -> Word {
    match name {
        "true" => Word::Literal(true.into()),
        "false" => Word::Literal(false.into()),
        "nil" => Word::Literal(Value::Null),
        _ => Word::Name(name.to_owned()),
    }
}

fn quoted(rest: &str) -> Result<(Word, usize), String> {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped => {
                let text = &rest[..=at];
                let value = serde_json::from_str::<Value>(text).map_err(|error| format!("{text}: {error}"))?;
                return Ok((Word::Literal(value), at + 1));
            }
            '\\' => escaped = !escaped,
            '\n' => break,
            _ => escaped = false,
        }
    }
    Err("a text is not closed".to_owned())
}

fn number(rest: &str) -> Result<(Word, usize), String> {
    let sign = usize::from(rest.starts_with(['-', '+']));
    let digits = |letter: char| !letter.is_ascii_digit() && letter != '.';
    let length = sign + rest[sign..].find(digits).unwrap_or(rest.len() - sign);
    let text = rest[..length].trim_start_matches('+');
    let value = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from));
    value.map(|value| (Word::Literal(value), length)).map_err(|_| format!("{text:?} is no number"))
}
