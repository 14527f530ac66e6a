//! From words to nodes.

use serde_json::Value;

use super::function;
use super::lex::{Piece, Token, Word};

/// Deeper ones are refused.
const DEEPEST: usize = 50;

/// A part of a template.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Node {
    Text(String),
    Put(Pipe),
    If(Pipe, Vec<Node>, Vec<Node>),
    Range(Pipe, Vec<Node>, Vec<Node>),
    With(Pipe, Vec<Node>, Vec<Node>),
}

/// Commands, each with the result of the one before as its last argument.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Variables that are set instead of showing the result.
    pub names: Vec<String>,
    /// Whether they are new.
    pub declares: bool,
    /// The commands.
    pub commands: Vec<Vec<Operand>>,
}

/// A value, and the fields to go down to.
#[derive(Debug)]
pub struct Operand {
    /// Where it begins.
    pub base: Base,
    /// The way down.
    pub fields: Vec<String>,
}

/// Where a value comes from.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Base {
    Dot,
    Variable(String),
    Literal(Value),
    Function(String),
    Group(Pipe),
}

/// Reads all nodes of a template.
pub fn nodes(pieces: Vec<Piece>) -> Result<Vec<Node>, String> {
    let mut parser = Parser { pieces: pieces.into_iter(), depth: 0 };
    let (nodes, end) = parser.body()?;
    match end {
        End::Text => Ok(nodes),
        End::Closed => Err("there is nothing to end".to_owned()),
        End::Else(_) => Err("there is an else without an if".to_owned()),
    }
}

struct Parser {
    pieces: std::vec::IntoIter<Piece>,
    depth: usize,
}

/// What ended a body.
enum End {
    /// The template itself.
    Text,
    Closed,
    /// With the condition of an `else if`.
    Else(Vec<Token>),
}

impl Parser {
    fn body(&mut self) -> Result<(Vec<Node>, End), String> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let tokens = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(tokens) => tokens,
            };
            let keyword = match tokens.first().map(|token| &token.word) {
                Some(Word::Name(name)) => name.as_str(),
                Some(_) => "",
                None => return Err("an action is empty".to_owned()),
            };
            match keyword {
                "end" => return Ok((nodes, End::Closed)),
                "else" => return Ok((nodes, End::Else(tokens[1..].to_vec()))),
                "if" | "range" | "with" => nodes.push(self.block(keyword, &tokens[1..])?),
                "template" | "define" | "block" | "break" | "continue" => {
                    return Err(format!("{keyword} is not understood"));
                }
                _ => nodes.push(Node::Put(pipe(&tokens)?)),
            }
        }
        Ok((nodes, End::Text))
    }

    fn block(&mut self, keyword: &str, tokens: &[Token]) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the template is too deep".to_owned());
        }
        let condition = pipe(tokens)?;
        let (body, end) = self.body()?;
        let otherwise = match end {
            End::Closed => Vec::new(),
            End::Text => return Err(format!("{keyword} has no end")),
            End::Else(more) => match more.first().map(|token| &token.word) {
                None => match self.body()? {
                    (nodes, End::Closed) => nodes,
                    _ => return Err(format!("{keyword} has no end after its else")),
                },
                // An `else if` is an `if` inside the else; both have the same end.
                Some(Word::Name(name)) if name == "if" || name == "with" => {
                    let name = name.clone();
                    vec![self.block(&name, &more[1..])?]
                }
                Some(_) => return Err("what follows else is not understood".to_owned()),
            },
        };
        self.depth -= 1;
        Ok(match keyword {
            "if" => Node::If(condition, body, otherwise),
            "range" => Node::Range(condition, body, otherwise),
            _ => Node::With(condition, body, otherwise),
        })
    }
}

fn pipe(tokens: &[Token]) -> Result<Pipe, String> {
    let mut at = 0;
    let pipe = commands(tokens, &mut at, 0)?;
    if at < tokens.len() { Err("a bracket is closed that was not open".to_owned()) } else { Ok(pipe) }
}

fn commands(tokens: &[Token], at: &mut usize, depth: usize) -> Result<Pipe, String> {
    if depth > DEEPEST {
        return Err("the template is too deep".to_owned());
    }
    let mut pipe = Pipe::default();
    declared(tokens, at, &mut pipe);
    let mut command = Vec::new();
    while let Some(token) = tokens.get(*at) {
        match &token.word {
            Word::Close => break,
            Word::Pipe => {
                finish(&mut pipe, std::mem::take(&mut command))?;
                *at += 1;
            }
            _ => command.push(operand(tokens, at, depth)?),
        }
    }
    finish(&mut pipe, command)?;
    Ok(pipe)
}

/// `$a :=`, `$a, $b :=` and `$a =` in front of a pipe.
fn declared(tokens: &[Token], at: &mut usize, pipe: &mut Pipe) {
    let word = |at: usize| tokens.get(at).map(|token| &token.word);
    let (mut names, mut next) = (Vec::new(), *at);
    while let Some(Word::Variable(name)) = word(next) {
        names.push(name.clone());
        match word(next + 1) {
            Some(Word::Comma) => next += 2,
            Some(Word::Assign { declares }) => {
                (pipe.names, pipe.declares, *at) = (names, *declares, next + 2);
                return;
            }
            _ => return,
        }
    }
}

fn finish(pipe: &mut Pipe, command: Vec<Operand>) -> Result<(), String> {
    if command.is_empty() {
        return Err("a command is empty".to_owned());
    }
    let is_function = |operand: &Operand| matches!(operand.base, Base::Function(_));
    let called = is_function(&command[0]);
    if !called && (command.len() > 1 || !pipe.commands.is_empty()) {
        return Err("only a function takes arguments".to_owned());
    }
    if command.iter().skip(1).any(is_function) {
        return Err("a function among arguments needs brackets".to_owned());
    }
    pipe.commands.push(command);
    Ok(())
}

fn operand(tokens: &[Token], at: &mut usize, depth: usize) -> Result<Operand, String> {
    let mut fields = Vec::new();
    let base = match &tokens[*at].word {
        Word::Dot => Base::Dot,
        Word::Field(name) => {
            fields.push(name.clone());
            Base::Dot
        }
        Word::Variable(name) => Base::Variable(name.clone()),
        Word::Literal(value) => Base::Literal(value.clone()),
        Word::Name(name) if function::is_known(name) => Base::Function(name.clone()),
        Word::Name(name) => return Err(format!("function {name:?} is not known")),
        Word::Open => {
            *at += 1;
            let inner = commands(tokens, at, depth + 1)?;
            if tokens.get(*at).map(|token| &token.word) != Some(&Word::Close) {
                return Err("a bracket is not closed".to_owned());
            }
            Base::Group(inner)
        }
        other => return Err(format!("{other:?} is not understood here")),
    };
    *at += 1;
    while let Some(Token { word: Word::Field(name), glued: true }) = tokens.get(*at) {
        fields.push(name.clone());
        *at += 1;
    }
    Ok(Operand { base, fields })
}
