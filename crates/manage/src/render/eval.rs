//! From nodes and a tree to text.

use serde_json::Value;

use super::function::{self, shown, truth};
use super::parse::{Base, Node, Operand, Pipe};
use super::{LONGEST, MISSING};

/// Renders nodes over a tree.
pub fn render(nodes: &[Node], data: &Value) -> Result<String, String> {
    let mut state = State { out: String::new(), variables: vec![(String::new(), data.clone())] };
    state.all(nodes, data)?;
    Ok(state.out)
}

struct State {
    out: String,
    /// By name, the innermost last; `$` has no name.
    variables: Vec<(String, Value)>,
}

impl State {
    fn all(&mut self, nodes: &[Node], dot: &Value) -> Result<(), String> {
        let outer = self.variables.len();
        for node in nodes {
            self.one(node, dot)?;
            if self.out.len() > LONGEST {
                return Err(format!("the text is longer than {LONGEST} bytes"));
            }
        }
        self.variables.truncate(outer);
        Ok(())
    }

    fn one(&mut self, node: &Node, dot: &Value) -> Result<(), String> {
        match node {
            Node::Text(text) => self.out.push_str(text),
            Node::Put(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.names.is_empty() {
                    self.out.push_str(&if value.is_null() { MISSING.to_owned() } else { shown(&value) });
                }
            }
            Node::If(condition, body, otherwise) => {
                let holds = truth(&self.pipe(condition, dot)?);
                return self.all(if holds { body } else { otherwise }, dot);
            }
            Node::With(condition, body, otherwise) => {
                let value = self.pipe(condition, dot)?;
                return if truth(&value) { self.all(body, &value) } else { self.all(otherwise, dot) };
            }
            Node::Range(over, body, otherwise) => return self.range(over, body, otherwise, dot),
        }
        Ok(())
    }

    fn range(&mut self, over: &Pipe, body: &[Node], otherwise: &[Node], dot: &Value) -> Result<(), String> {
        let outer = self.variables.len();
        let entries: Vec<(Value, Value)> = match self.commands(over, dot)? {
            Value::Array(list) => list.into_iter().enumerate().map(|(at, value)| (at.into(), value)).collect(),
            Value::Object(map) => {
                let mut entries: Vec<_> = map.into_iter().collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
            }
            Value::Null => Vec::new(),
            other => return Err(format!("range cannot go over {}", shown(&other))),
        };
        if entries.is_empty() {
            return self.all(otherwise, dot);
        }
        for (key, value) in entries {
            match over.names.as_slice() {
                [one] => self.variables.push((one.clone(), value.clone())),
                [first, second] => {
                    self.variables.push((first.clone(), key));
                    self.variables.push((second.clone(), value.clone()));
                }
                _ => {}
            }
            self.all(body, &value)?;
            self.variables.truncate(outer);
        }
        Ok(())
    }

    /// The result of a pipe, which its variables then have.
    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let value = self.commands(pipe, dot)?;
        let [name] = pipe.names.as_slice() else {
            return if pipe.names.is_empty() { Ok(value) } else { Err("only range sets two variables".to_owned()) };
        };
        if pipe.declares {
            self.variables.push((name.clone(), value.clone()));
        } else {
            *self.variable(name)? = value.clone();
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, last, dot)?);
        }
        last.ok_or_else(|| "a command is empty".to_owned())
    }

    fn command(&mut self, command: &[Operand], piped: Option<Value>, dot: &Value) -> Result<Value, String> {
        let Base::Function(name) = &command[0].base else { return self.operand(&command[0], dot) };
        let mut arguments = Vec::with_capacity(command.len());
        for operand in &command[1..] {
            arguments.push(self.operand(operand, dot)?);
        }
        arguments.extend(piped);
        let value = function::call(name, &arguments).map_err(|why| format!("{name}: {why}"))?;
        Ok(down(value, &command[0].fields))
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        let base = match &operand.base {
            Base::Dot => return Ok(field(dot, &operand.fields)),
            Base::Variable(name) => self.variable(name)?.clone(),
            Base::Literal(value) => value.clone(),
            Base::Group(pipe) => self.pipe(pipe, dot)?,
            Base::Function(name) => function::call(name, &[]).map_err(|why| format!("{name}: {why}"))?,
        };
        Ok(down(base, &operand.fields))
    }

    fn variable(&mut self, name: &str) -> Result<&mut Value, String> {
        let found = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value).ok_or_else(|| format!("variable ${name} is not known"))
    }
}

fn field(value: &Value, fields: &[String]) -> Value {
    fields.iter().try_fold(value, |value, name| value.get(name)).cloned().unwrap_or_default()
}

fn down(value: Value, fields: &[String]) -> Value {
    if fields.is_empty() { value } else { field(&value, fields) }
}
