//! Splits the query-string form of a label selector into tokens and parses them.

use super::label::{Operator, Requirement, check_key};
use super::{MAX_LEN, MAX_TERMS, SelectorError};
use crate::FieldPath;

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Kind {
    End,
    Word,
    In,
    NotIn,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
}

type Token<'a> = (Kind, &'a str);

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let (kind, len) = match first {
            ',' => (Kind::Comma, 1),
            '(' => (Kind::Open, 1),
            ')' => (Kind::Close, 1),
            '>' => (Kind::Greater, 1),
            '<' => (Kind::Less, 1),
            '!' if rest.starts_with("!=") => (Kind::NotEquals, 2),
            '!' => (Kind::Not, 1),
            '=' if rest.starts_with("==") => (Kind::DoubleEquals, 2),
            '=' => (Kind::Equals, 1),
            _ => {
                let end = rest.find(|c| is_special(c) || is_space(c)).unwrap_or(rest.len());
                let kind = match &rest[..end] {
                    "in" => Kind::In,
                    "notin" => Kind::NotIn,
                    _ => Kind::Word,
                };
                (kind, end)
            }
        };
        let (word, tail) = rest.split_at(len);
        found.push((kind, word));
        rest = tail.trim_start_matches(is_space);
    }
    found
}

/// Parses a whole selector.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    if text.len() > MAX_LEN {
        return Err(SelectorError(format!("selector is longer than {MAX_LEN} bytes")));
    }
    Parser { tokens: tokens(text), at: 0 }.selector()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next token where an operator may stand.
    fn operator_token(&mut self) -> Token<'a> {
        let token = self.tokens.get(self.at).copied().unwrap_or((Kind::End, ""));
        self.at += 1;
        token
    }

    /// The next token where a key or value must stand: `in` and `notin` are plain words there.
    fn peek(&self) -> Token<'a> {
        match self.tokens.get(self.at).copied() {
            Some((Kind::In | Kind::NotIn, word)) => (Kind::Word, word),
            Some(token) => token,
            None => (Kind::End, ""),
        }
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut found = Vec::new();
        loop {
            match self.peek() {
                (Kind::Word | Kind::Not, _) => {}
                (Kind::End, _) => return Ok(found),
                (_, other) => {
                    return Err(SelectorError(format!("found '{other}', expected: !, identifier, or 'end of string'")));
                }
            }
            let requirement = self.requirement();
            found.push(requirement.map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?);
            if found.len() > MAX_TERMS {
                return Err(SelectorError(format!("selector has more than {MAX_TERMS} requirements")));
            }
            match self.take() {
                (Kind::End, _) => return Ok(found),
                (Kind::Comma, _) => match self.peek() {
                    (Kind::Word | Kind::Not, _) => {}
                    (_, other) => {
                        return Err(SelectorError(format!("found '{other}', expected: identifier after ','")));
                    }
                },
                (_, other) => {
                    return Err(SelectorError(format!("found '{other}', expected: ',' or 'end of string'")));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek().0 == Kind::Not;
        if absent {
            self.at += 1;
        }
        let (kind, key) = self.take();
        if kind != Kind::Word {
            return Err(SelectorError(format!("found '{key}', expected: identifier")));
        }
        if let Some(fault) = check_key(key, FieldPath::root()) {
            return Err(SelectorError::new(fault.to_string()));
        }
        if absent {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Kind::End | Kind::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        match self.operator_token() {
            (Kind::In, _) => Ok(Operator::In),
            (Kind::NotIn, _) => Ok(Operator::NotIn),
            (Kind::Equals, _) => Ok(Operator::Equals),
            (Kind::DoubleEquals, _) => Ok(Operator::DoubleEquals),
            (Kind::NotEquals, _) => Ok(Operator::NotEquals),
            (Kind::Greater, _) => Ok(Operator::GreaterThan),
            (Kind::Less, _) => Ok(Operator::LessThan),
            (_, other) => Err(SelectorError(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"))),
        }
    }

    fn exact_value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            (Kind::End | Kind::Comma, _) => Ok(String::new()),
            (Kind::Word, word) => {
                self.at += 1;
                Ok(word.to_owned())
            }
            (_, other) => Err(SelectorError(format!("found '{other}', expected: identifier"))),
        }
    }

    /// A list in parentheses; nothing between two commas means the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.take() {
            (Kind::Open, _) => {}
            (_, other) => return Err(SelectorError(format!("found '{other}' expected: '('"))),
        }
        match self.peek() {
            (Kind::Word | Kind::Comma, _) => {}
            (Kind::Close, _) => {
                self.at += 1;
                return Ok(Vec::new());
            }
            (_, other) => return Err(SelectorError(format!("found '{other}', expected: ',', ')' or identifier"))),
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                (Kind::Word, word) => {
                    values.push(word.to_owned());
                    self.at += 1;
                }
                (Kind::Comma | Kind::Close, _) => values.push(String::new()),
                (_, other) => return Err(SelectorError(format!("found '{other}', expected: ',', or identifier"))),
            }
            match self.take() {
                (Kind::Comma, _) => {}
                (Kind::Close, _) => return Ok(values),
                (_, other) => return Err(SelectorError(format!("found '{other}', expected: ',' or ')'"))),
            }
        }
    }
}
