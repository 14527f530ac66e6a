//! Lua's patterns, matched within bounds.
//!
//! The library's own matcher cannot be interrupted and overflows the stack on long patterns;
//! this one asks a clock as it goes and refuses to go too deep.

use super::clock::Clock;

/// How deep alternatives may nest.
const DEPTH: usize = 200;

/// How many captures a pattern may have.
const CAPTURES: usize = 32;

/// How many steps are made before the clock is asked.
const STEPS: u32 = 1024;

/// Why matching ended without an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The pattern is malformed.
    Malformed(&'static str),
    /// The time is over.
    Time,
}

type Answer<T> = Result<T, Fault>;

/// A part of the text that was captured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// A place in the text, from 0.
    Position(usize),
    /// From one place to another; `None` while it is open.
    Span(usize, Option<usize>),
}

/// A pattern being matched against a text.
pub struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    clock: &'a Clock,
    captures: Vec<Capture>,
    depth: usize,
    steps: u32,
}

impl<'a> Matcher<'a> {
    /// Prepares to match; an anchor is the caller's business.
    pub fn new(text: &'a [u8], pattern: &'a [u8], clock: &'a Clock) -> Self {
        Matcher { text, pattern, clock, captures: Vec::new(), depth: 0, steps: 0 }
    }

    /// Where a match that begins at `start` ends.
    pub fn at(&mut self, start: usize) -> Answer<Option<usize>> {
        self.captures.clear();
        self.depth = 0;
        self.run(start, 0)
    }

    /// What was captured by the last match, the whole match if nothing was.
    pub fn captures(&self, start: usize, end: usize) -> Vec<Capture> {
        if self.has_captures() { self.captures.clone() } else { vec![Capture::Span(start, Some(end))] }
    }

    /// Whether something was captured by the last match.
    pub fn has_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    fn tick(&mut self) -> Answer<()> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STEPS) && self.clock.is_over() { Err(Fault::Time) } else { Ok(()) }
    }

    fn run(&mut self, at: usize, pattern: usize) -> Answer<Option<usize>> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Fault::Malformed("pattern too complex"));
        }
        let answer = self.step(at, pattern);
        self.depth -= 1;
        answer
    }

    fn step(&mut self, mut at: usize, mut p: usize) -> Answer<Option<usize>> {
        loop {
            self.tick()?;
            let Some(&first) = self.pattern.get(p) else { return Ok(Some(at)) };
            let second = self.pattern.get(p + 1).copied();
            match (first, second) {
                (b'(', Some(b')')) => return self.open(Capture::Position(at), at, p + 2),
                (b'(', _) => return self.open(Capture::Span(at, None), at, p + 1),
                (b')', _) => return self.close(at, p + 1),
                (b'$', None) => return Ok((at == self.text.len()).then_some(at)),
                (b'%', Some(b'b')) => match self.balance(at, p + 2)? {
                    Some(end) => (at, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => match self.frontier(at, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (b'%', Some(digit @ b'0'..=b'9')) => match self.repeated(at, digit)? {
                    Some(end) => (at, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.class_end(p)?;
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if self.single(at, p, end)
                                && let Some(done) = self.run(at + 1, end + 1)?
                            {
                                return Ok(Some(done));
                            }
                            p = end + 1;
                        }
                        Some(b'*') => return self.most(at, p, end),
                        Some(b'+') if self.single(at, p, end) => return self.most(at + 1, p, end),
                        Some(b'+') => return Ok(None),
                        Some(b'-') => return self.least(at, p, end),
                        _ if self.single(at, p, end) => (at, p) = (at + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn open(&mut self, capture: Capture, at: usize, p: usize) -> Answer<Option<usize>> {
        if self.captures.len() >= CAPTURES {
            return Err(Fault::Malformed("too many captures"));
        }
        let level = self.captures.len();
        self.captures.push(capture);
        let done = self.run(at, p)?;
        if done.is_none() {
            self.captures.truncate(level);
        }
        Ok(done)
    }

    fn close(&mut self, at: usize, p: usize) -> Answer<Option<usize>> {
        let open = self.captures.iter().rposition(|capture| matches!(capture, Capture::Span(_, None)));
        let Some(level) = open else { return Err(Fault::Malformed("invalid pattern capture")) };
        let Capture::Span(start, _) = self.captures[level] else { return Ok(None) };
        self.captures[level] = Capture::Span(start, Some(at));
        let done = self.run(at, p)?;
        if done.is_none() {
            self.captures[level] = Capture::Span(start, None);
        }
        Ok(done)
    }

    /// `%bxy`: where the text between balanced `x` and `y` ends.
    fn balance(&mut self, at: usize, p: usize) -> Answer<Option<usize>> {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Fault::Malformed("unbalanced pattern"));
        };
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1usize;
        for index in at + 1..self.text.len() {
            self.tick()?;
            let byte = self.text[index];
            if byte == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(index + 1));
                }
            } else if byte == open {
                level += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: whether the text enters the set here; where the pattern goes on.
    fn frontier(&mut self, at: usize, p: usize) -> Answer<Option<usize>> {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(Fault::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        let before = at.checked_sub(1).and_then(|before| self.text.get(before)).copied().unwrap_or(0);
        let here = self.text.get(at).copied().unwrap_or(0);
        Ok((!self.in_set(before, p, end) && self.in_set(here, p, end)).then_some(end))
    }

    /// `%1`: where a repetition of a capture ends.
    fn repeated(&mut self, at: usize, digit: u8) -> Answer<Option<usize>> {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let (start, end) = match self.captures.get(index) {
            Some(Capture::Span(start, Some(end))) => (*start, *end),
            Some(Capture::Position(_)) => return Ok(None),
            _ => return Err(Fault::Malformed("invalid capture index")),
        };
        let wanted = &self.text[start..end];
        Ok(self.text[at..].starts_with(wanted).then(|| at + wanted.len()))
    }

    /// As many as possible, then the rest.
    fn most(&mut self, at: usize, p: usize, end: usize) -> Answer<Option<usize>> {
        let mut count = 0;
        while self.single(at + count, p, end) {
            self.tick()?;
            count += 1;
        }
        loop {
            if let Some(done) = self.run(at + count, end + 1)? {
                return Ok(Some(done));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// As few as possible, then the rest.
    fn least(&mut self, mut at: usize, p: usize, end: usize) -> Answer<Option<usize>> {
        loop {
            if let Some(done) = self.run(at, end + 1)? {
                return Ok(Some(done));
            }
            if !self.single(at, p, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    /// Where the class that begins at `p` ends.
    fn class_end(&self, p: usize) -> Answer<usize> {
        match self.pattern[p] {
            b'%' if p + 1 >= self.pattern.len() => Err(Fault::Malformed("malformed pattern (ends with '%')")),
            b'%' => Ok(p + 2),
            b'[' => {
                let mut next = p + 1;
                if self.pattern.get(next) == Some(&b'^') {
                    next += 1;
                }
                // A bracket in the first place stands for itself.
                loop {
                    match self.pattern.get(next) {
                        None => return Err(Fault::Malformed("malformed pattern (missing ']')")),
                        Some(b'%') => next += 2,
                        Some(_) => next += 1,
                    }
                    if self.pattern.get(next) == Some(&b']') {
                        return Ok(next + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the byte at `at` is of the class between `p` and `end`.
    fn single(&self, at: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(at) else { return false };
        match self.pattern[p] {
            b'.' => true,
            b'%' => is_class(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set `[...]` between `p` and `end`.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let negated = self.pattern.get(p + 1) == Some(&b'^');
        let set = &self.pattern[p + 1 + usize::from(negated)..end - 1];
        let mut index = 0;
        while index < set.len() {
            let (found, width) = match &set[index..] {
                [b'%', class, ..] => (is_class(byte, *class), 2),
                [low, b'-', high, ..] => ((*low..=*high).contains(&byte), 3),
                [literal, ..] => (*literal == byte, 1),
                [] => break,
            };
            if found {
                return !negated;
            }
            index += width;
        }
        negated
    }
}

fn is_class(byte: u8, class: u8) -> bool {
    let inside = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    inside != class.is_ascii_uppercase()
}
