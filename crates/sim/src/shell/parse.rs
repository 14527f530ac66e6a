//! From the text of a script to what is to be run.

/// Part of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A command: words as written, and where its streams go.
    Simple(Vec<String>, Vec<Redirect>),
    /// `a | b`
    Pipe(Vec<Node>),
    /// `! a`
    Not(Box<Node>),
    /// `a && b`
    And(Box<Node>, Box<Node>),
    /// `a || b`
    Or(Box<Node>, Box<Node>),
    /// `a; b`
    Sequence(Vec<Node>),
    /// `a &`
    Background(Box<Node>),
    /// `if a; then b; else c; fi`
    If(Box<Node>, Box<Node>, Option<Box<Node>>),
    /// `while a; do b; done`; the flag stands for `until`.
    While(Box<Node>, bool, Box<Node>),
    /// `for x in a b; do c; done`
    For(String, Vec<String>, Box<Node>),
}

impl Node {
    /// Whether it always succeeds and does nothing, as in `while true`.
    pub fn is_constant_true(&self) -> bool {
        match self {
            Self::Simple(words, _) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                matches!(words.as_slice(), ["true" | ":"] | ["[", "1", "]"] | ["test", "1"])
            }
            Self::Sequence(list) => list.last().is_some_and(Self::is_constant_true),
            _ => false,
        }
    }
}

/// Where a stream of a command goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    /// Which stream.
    pub descriptor: u8,
    /// Whether it is read.
    pub input: bool,
    /// Whether it is added to what is there.
    pub append: bool,
    /// File, or `&1` and the like.
    pub target: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Operator(&'static str),
    Redirect(u8, &'static str),
}

const OPERATORS: [&str; 9] = ["&&", "||", ";;", ";", "\n", "|", "&", "(", ")"];
const REDIRECTS: [&str; 4] = [">>", ">&", ">", "<"];

/// Splits `NAME=value`.
pub fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((name, value))
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("\\\n") {
            rest = after;
        } else if rest.starts_with([' ', '\t', '\r']) {
            rest = &rest[1..];
        } else if rest.starts_with('#') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some((token, after)) = redirect(rest) {
            all.push(token);
            rest = after;
        } else if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            all.push(Token::Operator(operator));
            rest = &rest[operator.len()..];
        } else {
            let end = word_end(rest)?;
            all.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    Ok(all)
}

fn redirect(text: &str) -> Option<(Token, &str)> {
    let (descriptor, rest) = match text.as_bytes() {
        [digit @ b'0'..=b'2', b'<' | b'>', ..] => (digit - b'0', &text[1..]),
        [b'<' | b'>', ..] => (u8::from(text.starts_with('>')), text),
        _ => return None,
    };
    let operator = REDIRECTS.iter().find(|operator| rest.starts_with(**operator))?;
    Some((Token::Redirect(descriptor, operator), &rest[operator.len()..]))
}

/// Where a word ends: quotes and `$(…)` belong to it.
pub fn word_end(text: &str) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b')' => break,
            b'(' if at == 0 => break,
            b'\\' => at += 2,
            b'\'' => at += 2 + text[at + 1..].find('\'').ok_or("unterminated quoted string")?,
            b'"' => at += quoted_end(&text[at..])?,
            b'`' => at += 2 + text[at + 1..].find('`').ok_or("unterminated backquote")?,
            b'$' if bytes.get(at + 1) == Some(&b'(') => at += 1 + closing(&text[at + 1..], b'(', b')')?,
            b'$' if bytes.get(at + 1) == Some(&b'{') => at += 1 + closing(&text[at + 1..], b'{', b'}')?,
            _ => at += 1,
        }
    }
    Ok(at.min(text.len()))
}

/// The end of a text in double quotes, quotes included.
pub fn quoted_end(text: &str) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' => at += 2,
            b'$' if bytes.get(at + 1) == Some(&b'(') => at += 1 + closing(&text[at + 1..], b'(', b')')?,
            _ => at += 1,
        }
    }
    Err("unterminated quoted string".into())
}

/// The end of a bracketed text, brackets included.
pub fn closing(text: &str, open: u8, close: u8) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at += 1 + text[at + 1..].find('\'').ok_or("unterminated quoted string")?,
            b'"' if at > 0 => at += quoted_end(&text[at..])? - 1,
            byte if byte == open => depth += 1,
            byte if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    Err(format!("missing {:?}", char::from(close)))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

/// Reads a script.
pub fn parse(text: &str) -> Result<Node, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let node = parser.list(&[])?;
    match parser.tokens.get(parser.at) {
        None => Ok(node),
        Some(token) => Err(format!("unexpected {token:?}")),
    }
}

impl Parser {
    fn operator(&self) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Operator(operator)) => Some(operator),
            _ => None,
        }
    }

    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn skip_breaks(&mut self) {
        while matches!(self.operator(), Some(";" | "\n")) {
            self.at += 1;
        }
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        self.skip_breaks();
        if self.word() == Some(word) {
            self.at += 1;
            return Ok(());
        }
        Err(format!("expected {word:?}"))
    }

    /// Commands up to one of these words, or to a closing bracket.
    fn list(&mut self, ends: &[&str]) -> Result<Node, String> {
        let mut all = Vec::new();
        loop {
            self.skip_breaks();
            if self.at >= self.tokens.len()
                || self.word().is_some_and(|word| ends.contains(&word))
                || self.operator() == Some(")")
            {
                break;
            }
            let one = self.chain()?;
            if self.operator() == Some("&") {
                self.at += 1;
                all.push(Node::Background(Box::new(one)));
            } else {
                all.push(one);
            }
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Sequence(all) })
    }

    fn chain(&mut self) -> Result<Node, String> {
        let mut left = self.pipe()?;
        while let Some(operator @ ("&&" | "||")) = self.operator() {
            self.at += 1;
            while self.operator() == Some("\n") {
                self.at += 1;
            }
            let right = Box::new(self.pipe()?);
            left = if operator == "&&" { Node::And(Box::new(left), right) } else { Node::Or(Box::new(left), right) };
        }
        Ok(left)
    }

    fn pipe(&mut self) -> Result<Node, String> {
        if self.word() == Some("!") {
            self.at += 1;
            return Ok(Node::Not(Box::new(self.pipe()?)));
        }
        let mut parts = vec![self.command()?];
        while self.operator() == Some("|") {
            self.at += 1;
            parts.push(self.command()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Pipe(parts) })
    }

    fn command(&mut self) -> Result<Node, String> {
        if self.operator() == Some("(") {
            self.at += 1;
            let inner = self.list(&[])?;
            if self.operator() != Some(")") {
                return Err("missing ')'".into());
            }
            self.at += 1;
            return Ok(inner);
        }
        let node = match self.word() {
            Some("{") => {
                self.at += 1;
                let inner = self.list(&["}"])?;
                self.expect("}")?;
                inner
            }
            Some("if") => self.branch()?,
            Some(word @ ("while" | "until")) => {
                let until = word == "until";
                self.at += 1;
                let condition = self.list(&["do"])?;
                Node::While(Box::new(condition), until, Box::new(self.body()?))
            }
            Some("for") => self.for_each()?,
            _ => return self.simple(),
        };
        // Streams of whole blocks are not led anywhere.
        while matches!(self.tokens.get(self.at), Some(Token::Redirect(..))) {
            self.at += 2;
        }
        Ok(node)
    }

    fn body(&mut self) -> Result<Node, String> {
        self.expect("do")?;
        let body = self.list(&["done"])?;
        self.expect("done")?;
        Ok(body)
    }

    fn branch(&mut self) -> Result<Node, String> {
        self.at += 1;
        let condition = self.list(&["then"])?;
        self.expect("then")?;
        let then = self.list(&["elif", "else", "fi"])?;
        let otherwise = match self.word() {
            Some("elif") => Some(Box::new(self.branch()?)),
            Some("else") => {
                self.at += 1;
                let inner = self.list(&["fi"])?;
                self.expect("fi")?;
                Some(Box::new(inner))
            }
            _ => {
                self.expect("fi")?;
                None
            }
        };
        Ok(Node::If(Box::new(condition), Box::new(then), otherwise))
    }

    fn for_each(&mut self) -> Result<Node, String> {
        self.at += 1;
        let name = self.word().ok_or("expected a name")?.to_owned();
        self.at += 1;
        let mut words = Vec::new();
        if self.word() == Some("in") {
            self.at += 1;
            while let Some(word) = self.word() {
                words.push(word.to_owned());
                self.at += 1;
            }
        }
        Ok(Node::For(name, words, Box::new(self.body()?)))
    }

    fn simple(&mut self) -> Result<Node, String> {
        let (mut words, mut redirects) = (Vec::new(), Vec::new());
        loop {
            match self.tokens.get(self.at).cloned() {
                Some(Token::Word(word)) => words.push(word),
                Some(Token::Redirect(descriptor, operator)) => {
                    self.at += 1;
                    let target = self.word().ok_or("expected a file")?.to_owned();
                    let target = if operator == ">&" { format!("&{target}") } else { target };
                    redirects.push(Redirect { descriptor, input: operator == "<", append: operator == ">>", target });
                }
                _ => break,
            }
            self.at += 1;
        }
        if words.is_empty() && redirects.is_empty() {
            return Err(format!("unexpected {:?}", self.operator().unwrap_or("end of script")));
        }
        Ok(Node::Simple(words, redirects))
    }
}
