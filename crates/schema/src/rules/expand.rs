//! Macros the parser does not know, written out with those it does; and meters in loops.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, SelectExpr, operators,
};
use kube_cel::cel;

const RESULT: &str = "@result";
const ENTRY: &str = "@entry";
/// `a.?b`, which yields nothing instead of failing.
pub(crate) const OPT_SELECT: &str = "@optSelect";

/// Writes out loops with two variables, `sortBy`, `optMap` and `optFlatMap`.
///
/// Fails for what the evaluator cannot do at all.
pub(crate) fn expand(expr: IdedExpr) -> Result<IdedExpr, String> {
    let expr = chained(children(expr, &mut expand)?);
    let Expr::Call(call) = &expr.expr else { return Ok(expr) };
    let names = |count: usize| -> Option<Vec<String>> {
        call.args
            .get(..count)?
            .iter()
            .map(|arg| if let Expr::Ident(name) = &arg.expr { Some(name.clone()) } else { None })
            .collect()
    };
    let target = call.target.as_deref();
    let args = &call.args;
    let written = match (call.func_name.as_str(), args.len(), target) {
        (name @ ("all" | "exists" | "exists_one" | "existsOne" | "transformList"), 3, Some(target)) => {
            names(2).map(|names| pairs(name, target.clone(), &names, None, args[2].clone()))
        }
        ("transformList", 4, Some(target)) => {
            names(2).map(|names| pairs("transformList", target.clone(), &names, Some(args[2].clone()), args[3].clone()))
        }
        (operators::OPT_SELECT, 2, None) => Some(function(OPT_SELECT, args.clone())),
        // As methods these report what is wrong with their argument.
        (name @ ("size" | "string" | "int" | "uint" | "double" | "type"), 1, None) => {
            Some(method(args[0].clone(), name, vec![]))
        }
        ("sortBy", 2, Some(target)) => names(1).map(|names| {
            let keys = collect(target.clone(), &names[0], None, args[1].clone());
            function("@sortBy", vec![target.clone(), keys])
        }),
        (name @ ("optMap" | "optFlatMap"), 2, Some(target)) => names(1).map(|names| {
            let inner = bind(&names[0], method(target.clone(), "value", vec![]), args[1].clone());
            let some = if name == "optMap" { method(ident("optional"), "of", vec![inner]) } else { inner };
            let none = method(ident("optional"), "none", vec![]);
            function(operators::CONDITIONAL, vec![method(target.clone(), "hasValue", vec![]), some, none])
        }),
        _ => None,
    };
    Ok(written.unwrap_or(expr))
}

/// What follows `a.?b` is asked of the value inside, if there is one.
fn chained(expr: IdedExpr) -> IdedExpr {
    let Expr::Select(select) = &expr.expr else { return expr };
    if !matches!(&select.operand.expr, Expr::Call(call) if call.func_name == OPT_SELECT) {
        return expr;
    }
    let field = node(Expr::Literal(LiteralValue::String(select.field.as_str().into())));
    let inner = function(OPT_SELECT, vec![(*select.operand).clone(), field]);
    if select.test { method(inner, "hasValue", vec![]) } else { inner }
}

/// Puts a meter into every loop, so that no expression runs without bound.
pub(crate) fn meter(expr: IdedExpr, next: &mut i64) -> Result<IdedExpr, String> {
    let mut expr = children(expr, &mut |child| meter(child, next))?;
    if let Expr::Comprehension(loops) = &mut expr.expr
        && !matches!(&loops.iter_range.expr, Expr::List(list) if list.elements.is_empty())
    {
        *next += 1;
        let id = number(*next);
        let weight = number(5 + count(&loops.loop_step) + count(&loops.loop_cond));
        // A list that grows is copied at every step.
        let grows = number(i64::from(matches!(loops.accu_init.expr, Expr::List(_))));
        let init = std::mem::take(&mut loops.accu_init);
        loops.accu_init = function("@enter", vec![init, id.clone()]);
        let cond = std::mem::take(&mut loops.loop_cond);
        loops.loop_cond = function("@tick", vec![cond, id, weight, grows]);
    }
    Ok(expr)
}

/// How many nodes an expression has; about what it costs to evaluate once.
pub(crate) fn count(expr: &IdedExpr) -> i64 {
    let mut total = 1;
    visit(expr, &mut |_| total += 1);
    total
}

/// Calls `see` for all nodes.
pub(crate) fn visit<'a>(expr: &'a IdedExpr, see: &mut dyn FnMut(&'a Expr)) {
    see(&expr.expr);
    let mut below = |child: &'a IdedExpr| visit(child, see);
    match &expr.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(below),
        Expr::Comprehension(loops) => {
            [&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result]
                .into_iter()
                .for_each(below);
        }
        Expr::List(list) => list.elements.iter().for_each(below),
        Expr::Select(select) => below(&select.operand),
        Expr::Map(map) => {
            for entry in &map.entries {
                match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        below(&entry.key);
                        below(&entry.value);
                    }
                    EntryExpr::StructField(field) => below(&field.value),
                }
            }
        }
        _ => {}
    }
}

type Change<'a> = dyn FnMut(IdedExpr) -> Result<IdedExpr, String> + 'a;

/// Applies a change to all nodes directly below.
fn children(mut expr: IdedExpr, change: &mut Change<'_>) -> Result<IdedExpr, String> {
    let mut replace = |place: &mut IdedExpr| -> Result<(), String> {
        *place = change(std::mem::take(place))?;
        Ok(())
    };
    match &mut expr.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                replace(target)?;
            }
            call.args.iter_mut().try_for_each(replace)?;
        }
        Expr::Comprehension(loops) => {
            replace(&mut loops.iter_range)?;
            replace(&mut loops.accu_init)?;
            replace(&mut loops.loop_cond)?;
            replace(&mut loops.loop_step)?;
            replace(&mut loops.result)?;
        }
        Expr::List(list) => list.elements.iter_mut().try_for_each(replace)?,
        Expr::Select(select) => replace(&mut select.operand)?,
        Expr::Map(map) => {
            for entry in &mut map.entries {
                match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        replace(&mut entry.key)?;
                        replace(&mut entry.value)?;
                    }
                    EntryExpr::StructField(field) => replace(&mut field.value)?,
                }
            }
        }
        Expr::Struct(literal) => {
            return Err(format!("undeclared reference to '{}' (in container '')", literal.type_name));
        }
        Expr::Unspecified => return Err("the expression is incomplete".to_owned()),
        Expr::Ident(_) | Expr::Literal(_) => {}
    }
    Ok(expr)
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn ident(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

fn number(value: i64) -> IdedExpr {
    node(Expr::Literal(LiteralValue::Int(value.into())))
}

fn boolean(value: bool) -> IdedExpr {
    node(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn list(elements: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::List(ListExpr::new(elements)))
}

fn function(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

fn method(target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr { func_name: name.to_owned(), target: Some(Box::new(target)), args }))
}

fn select(operand: IdedExpr, field: &str) -> IdedExpr {
    node(Expr::Select(SelectExpr { operand: Box::new(operand), field: field.to_owned(), test: false }))
}

fn repeat(
    range: IdedExpr,
    variable: &str,
    init: IdedExpr,
    cond: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
) -> IdedExpr {
    node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: variable.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: init,
        loop_cond: cond,
        loop_step: step,
        result,
    })))
}

/// A name for a value: a loop over nothing whose result is the body.
fn bind(name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list(vec![]),
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: boolean(false),
        loop_step: ident(name),
        result: body,
    })))
}

/// `range.map(variable, filter, value)`.
fn collect(range: IdedExpr, variable: &str, filter: Option<IdedExpr>, value: IdedExpr) -> IdedExpr {
    let longer = function(operators::ADD, vec![ident(RESULT), list(vec![value])]);
    let step = match filter {
        Some(filter) => function(operators::CONDITIONAL, vec![filter, longer, ident(RESULT)]),
        None => longer,
    };
    repeat(range, variable, list(vec![]), boolean(true), step, ident(RESULT))
}

/// A loop over index and element of a list, or key and value of a map.
fn pairs(name: &str, range: IdedExpr, names: &[String], filter: Option<IdedExpr>, body: IdedExpr) -> IdedExpr {
    let range = function("@entries", vec![range]);
    let named = |body: IdedExpr| {
        let inner = bind(&names[1], select(ident(ENTRY), "v"), body);
        bind(&names[0], select(ident(ENTRY), "k"), inner)
    };
    let body = named(body);
    let result = || ident(RESULT);
    let settled = |expr| function(operators::NOT_STRICTLY_FALSE, vec![expr]);
    match name {
        "all" => {
            let step = function(operators::LOGICAL_AND, vec![result(), body]);
            repeat(range, ENTRY, boolean(true), settled(result()), step, result())
        }
        "exists" => {
            let step = function(operators::LOGICAL_OR, vec![result(), body]);
            let cond = settled(function(operators::LOGICAL_NOT, vec![result()]));
            repeat(range, ENTRY, boolean(false), cond, step, result())
        }
        "transformList" => collect(range, ENTRY, filter.map(named), body),
        _ => {
            let more = function(operators::ADD, vec![result(), number(1)]);
            let step = function(operators::CONDITIONAL, vec![body, more, result()]);
            let one = function(operators::EQUALS, vec![result(), number(1)]);
            repeat(range, ENTRY, number(0), boolean(true), step, one)
        }
    }
}
