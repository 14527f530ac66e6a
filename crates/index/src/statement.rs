//! Statements: text from constants, every value bound.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A bound value. Lists travel as JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

/// What a column of a result holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl Cell {
    pub fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Int(number) => number.to_string(),
        }
    }
}

/// Which database speaks.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// A statement being written. Only constants of this crate are ever pushed as text.
#[derive(Clone, Debug)]
pub struct Statement {
    pub dialect: Dialect,
    pub sql: String,
    pub params: Vec<Param>,
}

impl Statement {
    pub fn new(dialect: Dialect, sql: &'static str) -> Self {
        Self { dialect, sql: sql.to_owned(), params: Vec::new() }
    }

    /// Adds constant text.
    pub fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// Adds a bound number.
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.params.push(Param::Int(value));
        self.place("bigint")
    }

    /// Adds a bound text.
    pub fn text(&mut self, value: impl Into<String>) -> &mut Self {
        self.params.push(Param::Text(value.into()));
        self.place("text")
    }

    /// Adds a bound value.
    pub fn param(&mut self, value: &Param) -> &mut Self {
        match value {
            Param::Int(number) => self.int(*number),
            Param::Text(text) => self.text(text.clone()),
        }
    }

    fn place(&mut self, ty: &'static str) -> &mut Self {
        let at = self.params.len();
        // Writing to a string cannot fail.
        let _ = match self.dialect {
            Dialect::Sqlite => write!(self.sql, "?{at}"),
            Dialect::Postgres => write!(self.sql, "${at}::{ty}"),
        };
        self
    }

    /// `column IN (numbers)`.
    pub fn among_ints(&mut self, column: &'static str, values: &[i64]) -> &mut Self {
        let list = serde_json::to_string(values).unwrap_or_default();
        self.push(column);
        match self.dialect {
            Dialect::Sqlite => self.push(" IN (SELECT value FROM json_each(").text(list).push("))"),
            Dialect::Postgres => self
                .push(" = ANY(ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(")
                .text(list)
                .push("::jsonb) v))"),
        }
    }

    /// `column IN (texts)`.
    pub fn among_texts(&mut self, column: &'static str, values: &[String]) -> &mut Self {
        if let [one] = values {
            return self.push(column).push(" = ").text(one.clone());
        }
        let list = serde_json::to_string(values).unwrap_or_default();
        self.push(column);
        match self.dialect {
            Dialect::Sqlite => self.push(" IN (SELECT value FROM json_each(").text(list).push("))"),
            Dialect::Postgres => {
                self.push(" = ANY(ARRAY(SELECT v FROM jsonb_array_elements_text(").text(list).push("::jsonb) v))")
            }
        }
    }

    /// `(o.shelf, o.namespace) IN (pairs)`.
    pub fn among_pairs(&mut self, pairs: &[(i64, String)]) -> &mut Self {
        let list = serde_json::to_string(pairs).unwrap_or_default();
        self.push("(o.shelf, o.namespace) IN (SELECT ");
        match self.dialect {
            Dialect::Sqlite => self.push("value ->> 0, value ->> 1 FROM json_each(").text(list).push("))"),
            Dialect::Postgres => {
                self.push("(v ->> 0)::bigint, v ->> 1 FROM jsonb_array_elements(").text(list).push("::jsonb) v)")
            }
        }
    }

    /// Whether a text occurs in a column.
    pub fn contains(&mut self, column: &'static str, part: &str) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => self.push("instr(").push(column).push(", ").text(part).push(") > 0"),
            Dialect::Postgres => self.push("position(").text(part).push(" in ").push(column).push(") > 0"),
        }
    }

    /// The JSON text of the value at a path inside the object, `null` when there is none.
    pub fn json_at(&mut self, steps: &[String]) -> &mut Self {
        match self.dialect {
            Dialect::Sqlite => {
                let path = steps.iter().fold("$".to_owned(), |path, step| format!("{path}.\"{step}\""));
                self.push("coalesce(o.body -> ").text(path).push(", 'null')")
            }
            Dialect::Postgres => {
                let list = serde_json::to_string(steps).unwrap_or_default();
                self.push("coalesce((o.body #> ARRAY(SELECT jsonb_array_elements_text(")
                    .text(list)
                    .push("::jsonb)))::text, 'null')")
            }
        }
    }
}
