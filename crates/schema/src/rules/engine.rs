//! The evaluator: one shared set of functions, metered loops, cached patterns.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::extractors::{Arguments, This};
use cel::objects::{Key, Map, OptionalValue};
use cel::parser::Parser;
use cel::{Context, ExecutionError};
use kube_cel::{KubeCelExt as _, cel};
use regex::Regex;
use serde_json::Value;

use super::check::{Checker, TYPES};
use super::shape::Shape;
use super::{Answer, Expected, Failure, Rules, estimate, expand, value};
use crate::{Schema, pattern};

/// CEL through the community interpreter.
#[derive(Copy, Clone, Debug, Default)]
pub struct Cel;

/// One expression, ready to run.
#[derive(Debug)]
pub struct Program {
    expr: IdedExpr,
    uses_old: bool,
    cost: i64,
    estimate: u64,
    /// Patterns written in the expression, kept compiled as long as it lives.
    _patterns: Vec<Arc<Regex>>,
}

/// `self` and `oldSelf` for the rules of one place.
pub struct Bound {
    plain: Context<'static>,
    optional: Option<Context<'static>>,
}

impl Rules for Cel {
    type Program = Program;
    type Bound = Bound;

    fn compile(
        &self,
        source: &str,
        schema: &Schema,
        resource: bool,
        optional_old: bool,
        expected: Expected,
    ) -> Result<Program, String> {
        let parser = Parser::new().enable_optional_syntax(true);
        // The generated parser panics on some malformed texts.
        let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse(source)));
        let expr = match parsed {
            Ok(Ok(expr)) => expr,
            Ok(Err(errors)) => return Err(format!("compilation failed: {errors}")),
            Err(_) => return Err("compilation failed: ERROR: <input>:1:1: Syntax error".to_owned()),
        };
        let expr = expand::expand(expr).map_err(|why| format!("compilation failed: {why}"))?;
        let own = Shape::of(schema, resource).ok_or("failed to convert to declType for CEL validation rules")?;
        let old = if optional_old { Shape::Dyn } else { own.clone() };
        let mut checker = Checker::new(vec![("self", own), ("oldSelf", old)]);
        let shape = checker.shape(&expr).map_err(|why| format!("compilation failed: {why}"))?;
        match (expected, shape) {
            (_, Shape::Dyn) | (Expected::Bool, Shape::Bool) | (Expected::Text, Shape::Text) => {}
            (Expected::Bool, _) => return Err("cel expression must evaluate to a bool".to_owned()),
            (Expected::Text, _) => return Err("messageExpression must evaluate to a string".to_owned()),
        }
        let mut uses_old = false;
        let mut patterns = Vec::new();
        expand::visit(&expr, &mut |node| match node {
            Expr::Ident(name) => uses_old |= name == "oldSelf",
            Expr::Call(call) if matches!(call.func_name.as_str(), "matches" | "find" | "findAll") => {
                for arg in &call.args {
                    if let Expr::Literal(LiteralValue::String(text)) = &arg.expr {
                        patterns.push(pattern::compile(text.inner()));
                    }
                }
            }
            _ => {}
        });
        let patterns: Result<Vec<Arc<Regex>>, String> = patterns.into_iter().collect();
        let patterns = patterns.map_err(|why| format!("compilation failed: invalid matches argument: {why}"))?;
        let (cost, estimate) = (expand::count(&expr), estimate::cost(&expr, schema));
        let expr = expand::meter(expr, &mut 0)?;
        Ok(Program { expr, uses_old, cost, estimate, _patterns: patterns })
    }

    fn estimate(&self, program: &Program) -> u64 {
        program.estimate
    }

    fn uses_old(&self, program: &Program) -> bool {
        program.uses_old
    }

    fn bind(&self, value: &Value, old: Option<&Value>, wants_old: bool, schema: &Schema, resource: bool) -> Bound {
        let own = value::visible(value, schema, resource).unwrap_or(cel::Value::Null);
        let mut plain = ROOT.new_inner_scope();
        plain.add_variable_from_value("self", own.clone());
        if !wants_old {
            return Bound { plain, optional: None };
        }
        let old = old.and_then(|old| value::visible(old, schema, resource));
        let mut optional = ROOT.new_inner_scope();
        optional.add_variable_from_value("self", own);
        let wrapped = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
        optional.add_variable_from_value("oldSelf", cel::Value::Opaque(Arc::new(wrapped)));
        if let Some(old) = old {
            plain.add_variable_from_value("oldSelf", old);
        }
        Bound { plain, optional: Some(optional) }
    }

    fn eval(&self, program: &Program, bound: &Bound, optional_old: bool, budget: &mut i64) -> Result<Answer, Failure> {
        const PER_EXPRESSION: i64 = 1_000_000;
        let context = bound.optional.as_ref().filter(|_| optional_old).unwrap_or(&bound.plain);
        let allowed = PER_EXPRESSION.min(*budget);
        METER.with_borrow_mut(|meter| *meter = Meter { left: allowed - program.cost, steps: HashMap::new() });
        // A bug of the evaluator must not take the server down: it counts as a failed rule.
        let result = catch_unwind(AssertUnwindSafe(|| cel::Value::resolve(&program.expr, context)));
        let left = METER.with_borrow(|meter| meter.left);
        *budget -= allowed - left.max(0);
        if left < 0 {
            return Err(if allowed < PER_EXPRESSION { Failure::Budget } else { Failure::Cost });
        }
        match result {
            Ok(Ok(cel::Value::Bool(flag))) => Ok(Answer::Bool(flag)),
            Ok(Ok(cel::Value::String(text))) => Ok(Answer::Text(text.to_string())),
            Ok(Ok(_)) => Ok(Answer::Other),
            Ok(Err(error)) => Err(Failure::Error(describe(&error))),
            Err(_) => Err(Failure::Error("internal error".to_owned())),
        }
    }
}

/// What an evaluation may still cost, and how often each loop has turned.
#[derive(Default)]
struct Meter {
    left: i64,
    steps: HashMap<i64, i64>,
}

thread_local! {
    static METER: RefCell<Meter> = RefCell::default();
}

fn charge(cost: i64) -> Result<(), ExecutionError> {
    METER.with_borrow_mut(|meter| {
        meter.left = meter.left.saturating_sub(cost);
        if meter.left < 0 { Err(ExecutionError::function_error("", "actual cost limit exceeded")) } else { Ok(()) }
    })
}

fn enter(init: cel::Value, id: i64) -> Result<cel::Value, ExecutionError> {
    METER.with_borrow_mut(|meter| meter.steps.insert(id, 0));
    Ok(init)
}

fn tick(cond: bool, id: i64, weight: i64, grows: i64) -> Result<bool, ExecutionError> {
    let steps = METER.with_borrow_mut(|meter| {
        let steps = meter.steps.entry(id).or_insert(0);
        *steps += 1;
        *steps
    });
    charge(weight + grows * steps)?;
    Ok(cond)
}

/// All functions, and the names of types as values.
static ROOT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    context.add_function("type", type_of);
    context.add_function("dyn", |value: cel::Value| -> Result<cel::Value, ExecutionError> { Ok(value) });
    context.add_function("@enter", enter);
    context.add_function("@tick", tick);
    context.add_function("@entries", entries);
    context.add_function(expand::OPT_SELECT, opt_select);
    context.add_function("@sortBy", sort_by);
    for name in TYPES {
        context.add_variable_from_value(name, type_value(name));
    }
    context
});

fn type_value(name: &str) -> cel::Value {
    cel::Value::String(Arc::new(format!("type({name})")))
}

fn type_of(This(value): This<cel::Value>) -> Result<cel::Value, ExecutionError> {
    Ok(type_value(match value {
        cel::Value::Bool(_) => "bool",
        cel::Value::Int(_) => "int",
        cel::Value::UInt(_) => "uint",
        cel::Value::Float(_) => "double",
        cel::Value::String(_) => "string",
        cel::Value::Bytes(_) => "bytes",
        cel::Value::List(_) => "list",
        cel::Value::Map(_) => "map",
        cel::Value::Null => "null_type",
        _ => "type",
    }))
}

/// The length in characters, elements or entries.
fn size(This(value): This<cel::Value>) -> Result<i64, ExecutionError> {
    let size = match &value {
        cel::Value::String(text) => {
            charge(text.len() as i64 / 10)?;
            text.chars().count()
        }
        cel::Value::Bytes(bytes) => bytes.len(),
        cel::Value::List(items) => items.len(),
        cel::Value::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(size as i64)
}

fn regex(text: &str, pattern: &str) -> Result<Arc<Regex>, ExecutionError> {
    charge(1 + (text.len() as i64 / 10 + 1) * (pattern.len() as i64 / 4 + 1) / 10)?;
    pattern::compile(pattern).map_err(|why| ExecutionError::function_error("matches", why))
}

fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    Ok(regex(&text, &pattern)?.is_match(&text))
}

fn find(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<cel::Value, ExecutionError> {
    let found = regex(&text, &pattern)?.find(&text).map_or("", |found| found.as_str()).to_owned();
    Ok(cel::Value::String(Arc::new(found)))
}

fn find_all(This(text): This<Arc<String>>, Arguments(args): Arguments) -> Result<cel::Value, ExecutionError> {
    let (pattern, most) = match args.as_slice() {
        [cel::Value::String(pattern)] => (pattern, usize::MAX),
        [cel::Value::String(pattern), cel::Value::Int(most)] => (pattern, usize::try_from(*most).unwrap_or(usize::MAX)),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let regex = regex(&text, pattern)?;
    let found = regex.find_iter(&text).take(most).map(|found| cel::Value::String(Arc::new(found.as_str().to_owned())));
    Ok(cel::Value::List(Arc::new(found.collect())))
}

/// Index and element of a list, or key and value of a map, as `{k, v}`.
fn entries(value: cel::Value) -> Result<cel::Value, ExecutionError> {
    let name = |name: &str| Key::String(Arc::new(name.to_owned()));
    let entry = |key: cel::Value, value: &cel::Value| {
        let fields = HashMap::from([(name("k"), key), (name("v"), value.clone())]);
        cel::Value::Map(Map { map: Arc::new(fields) })
    };
    let pairs: Vec<cel::Value> = match &value {
        cel::Value::List(items) => {
            items.iter().enumerate().map(|(at, item)| entry(cel::Value::Int(at as i64), item)).collect()
        }
        cel::Value::Map(map) => map.map.iter().map(|(key, value)| entry(key_value(key), value)).collect(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    charge(pairs.len() as i64)?;
    Ok(cel::Value::List(Arc::new(pairs)))
}

/// A field that may be missing, of a value that may be missing.
fn opt_select(value: cel::Value, field: Arc<String>) -> Result<cel::Value, ExecutionError> {
    let inner = match <&OptionalValue>::try_from(&value) {
        Ok(optional) => optional.value().cloned(),
        Err(_) => Some(value),
    };
    let found = match inner {
        Some(cel::Value::Map(map)) => map.map.get(&Key::String(field)).cloned(),
        None => None,
        Some(_) => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(cel::Value::Opaque(Arc::new(found.map_or_else(OptionalValue::none, OptionalValue::of))))
}

fn key_value(key: &Key) -> cel::Value {
    match key {
        Key::Int(number) => cel::Value::Int(*number),
        Key::Uint(number) => cel::Value::UInt(*number),
        Key::Bool(flag) => cel::Value::Bool(*flag),
        Key::String(text) => cel::Value::String(text.clone()),
    }
}

fn sort_by(items: Arc<Vec<cel::Value>>, keys: Arc<Vec<cel::Value>>) -> Result<cel::Value, ExecutionError> {
    let mut order: Vec<usize> = (0..items.len().min(keys.len())).collect();
    let comparable = keys.windows(2).all(|pair| pair[0].partial_cmp(&pair[1]).is_some());
    if !comparable {
        return Err(ExecutionError::NoSuchOverload);
    }
    charge(items.len() as i64 * 4)?;
    order.sort_by(|one, other| keys[*one].partial_cmp(&keys[*other]).unwrap_or(std::cmp::Ordering::Equal));
    Ok(cel::Value::List(Arc::new(order.into_iter().map(|at| items[at].clone()).collect())))
}

/// The words of the original for what went wrong.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload | ExecutionError::UnexpectedType { .. } => "no such overload".to_owned(),
        ExecutionError::UnsupportedBinaryOperator(..) | ExecutionError::ValuesNotComparable(..) => {
            "no such overload".to_owned()
        }
        ExecutionError::IndexOutOfBounds(cel::Value::Int(at)) => format!("index out of bounds: {at}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => shorten(message),
        other => shorten(&other.to_string()),
    }
}

/// Errors may show whole values.
fn shorten(text: &str) -> String {
    if text.len() <= 200 {
        return text.to_owned();
    }
    text.chars().take(200).chain("...".chars()).collect()
}
