//! Rules in CEL: compiled when a CRD is created, run when an object is written.

mod budget;
mod check;
mod engine;
mod escape;
mod estimate;
mod expand;
mod function;
mod shape;
mod size;
mod tree;
mod value;

use serde_json::Value;

use crate::Schema;

pub(crate) use budget::check_costs;
pub use engine::{Bound, Cel, Program};
pub(crate) use tree::{RuleTree, check_defaults, compile, run};

/// What an expression must yield.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Expected {
    /// A rule: true or false.
    Bool,
    /// A message.
    Text,
}

/// What an expression yielded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// True or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// Something no rule may yield.
    Other,
}

/// Why an expression yielded nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// It went wrong.
    Error(String),
    /// It alone cost too much.
    Cost,
    /// All rules of the object together cost too much.
    Budget,
}

/// A language for rules. Everything about one evaluator is behind this.
pub trait Rules {
    /// A compiled expression.
    type Program: Send + Sync;
    /// `self` and `oldSelf` of one place.
    type Bound;

    /// Compiles an expression over values of `schema`, or says why it makes no sense.
    fn compile(
        &self,
        source: &str,
        schema: &Schema,
        resource: bool,
        optional_old: bool,
        expected: Expected,
    ) -> Result<Self::Program, String>;

    /// What the expression can cost at most.
    fn estimate(&self, program: &Self::Program) -> u64;

    /// Whether the expression looks at the old value.
    fn uses_old(&self, program: &Self::Program) -> bool;

    /// Makes values visible to expressions; the old one only if any wants it.
    fn bind(&self, value: &Value, old: Option<&Value>, wants_old: bool, schema: &Schema, resource: bool)
    -> Self::Bound;

    /// Evaluates an expression and takes its cost off the budget.
    fn eval(
        &self,
        program: &Self::Program,
        bound: &Self::Bound,
        optional_old: bool,
        budget: &mut i64,
    ) -> Result<Answer, Failure>;
}
