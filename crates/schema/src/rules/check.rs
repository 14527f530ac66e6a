//! Checks an expression before it ever runs: names, fields, functions, operators, result.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel;

use super::expand::OPT_SELECT;
use super::function;
use super::shape::Shape;

/// Names of types, as in `type(self.x) == string`.
pub(crate) const TYPES: [&str; 11] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"];

/// The names an expression may use, innermost last.
pub(crate) struct Checker<'a> {
    names: Vec<(&'a str, Shape<'a>)>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(names: Vec<(&'a str, Shape<'a>)>) -> Self {
        Self { names }
    }

    /// What the expression yields, or why it makes no sense.
    pub(crate) fn shape(&mut self, expr: &'a IdedExpr) -> Result<Shape<'a>, String> {
        match &expr.expr {
            Expr::Literal(literal) => Ok(literal_shape(literal)),
            Expr::Ident(name) => self.name(name).ok_or_else(|| undeclared(name)),
            Expr::Select(select) => {
                let operand = self.shape(&select.operand)?;
                if !operand.has_fields() {
                    return Err(format!("type '{operand}' does not support field selection"));
                }
                let field =
                    operand.field(&select.field).ok_or_else(|| format!("undefined field '{}'", select.field))?;
                Ok(if select.test { Shape::Bool } else { field })
            }
            Expr::List(list) => {
                let mut items = None;
                for element in &list.elements {
                    let shape = self.shape(element)?;
                    items = Some(match items {
                        None => shape,
                        Some(same) if same == shape => same,
                        Some(_) => Shape::Dyn,
                    });
                }
                Ok(Shape::List(Box::new(items.unwrap_or(Shape::Dyn))))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.shape(&entry.key)?;
                        self.shape(&entry.value)?;
                    }
                }
                Ok(Shape::Map(Box::new(Shape::Dyn)))
            }
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Call(call) => self.call(call),
            Expr::Struct(literal) => Err(undeclared(&literal.type_name)),
            Expr::Unspecified => Err("the expression is incomplete".to_owned()),
        }
    }

    fn name(&self, name: &str) -> Option<Shape<'a>> {
        let own = self.names.iter().rev().find(|(own, _)| *own == name).map(|(_, shape)| shape.clone());
        own.or_else(|| TYPES.contains(&name).then_some(Shape::Type))
    }

    fn comprehension(&mut self, loops: &'a ComprehensionExpr) -> Result<Shape<'a>, String> {
        let element = match self.shape(&loops.iter_range)? {
            Shape::Dyn => Shape::Dyn,
            Shape::List(items) => *items,
            Shape::Map(_) => Shape::Text,
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ));
            }
        };
        let init = self.shape(&loops.accu_init)?;
        let depth = self.names.len();
        self.names.push((&loops.accu_var, init));
        self.names.push((&loops.iter_var, element));
        let checked = self.shape(&loops.loop_cond).and_then(|_| self.shape(&loops.loop_step)).and_then(|step| {
            self.names[depth].1 = step;
            self.shape(&loops.result)
        });
        self.names.truncate(depth);
        checked
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Shape<'a>, String> {
        let name = call.func_name.as_str();
        // `math.abs(x)` looks like a method of `math`.
        if let Some(IdedExpr { expr: Expr::Ident(space), .. }) = call.target.as_deref()
            && self.name(space).is_none()
        {
            let full = format!("{space}.{name}");
            let shapes = self.all(&call.args)?;
            return apply(&full, &shapes)
                .map_err(|why| if function::find(&full).is_none() { undeclared(space) } else { why });
        }
        // `a.?b` is a call with the name of the field.
        if let (OPT_SELECT, [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) =
            (name, call.args.as_slice())
        {
            let operand = self.shape(operand)?;
            let found = operand.has_fields().then(|| operand.field(field.inner())).flatten();
            return found.map(|_| Shape::Dyn).ok_or_else(|| format!("undefined field '{}'", field.inner()));
        }
        let target = call.target.as_deref().map(|target| self.shape(target)).transpose()?;
        let mut shapes = self.all(&call.args)?;
        if let Some(target) = target {
            shapes.insert(0, target);
            return apply(name, &shapes);
        }
        operator(name, &shapes).unwrap_or_else(|| apply(name, &shapes))
    }

    fn all(&mut self, args: &'a [IdedExpr]) -> Result<Vec<Shape<'a>>, String> {
        args.iter().map(|arg| self.shape(arg)).collect()
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn no_overload<'a>(name: &str, shapes: &[Shape<'a>]) -> Result<Shape<'a>, String> {
    let shapes: Vec<String> = shapes.iter().map(ToString::to_string).collect();
    Err(format!("found no matching overload for '{name}' applied to '({})'", shapes.join(", ")))
}

fn apply<'a>(name: &str, shapes: &[Shape<'a>]) -> Result<Shape<'a>, String> {
    let Some((least, most, yields)) = function::find(name) else { return Err(undeclared(name)) };
    if shapes.len() < least || shapes.len() > most {
        return no_overload(name, shapes);
    }
    let fits = match (name, shapes) {
        ("size", [one]) => matches!(one, Shape::Dyn | Shape::Text | Shape::Bytes | Shape::List(_) | Shape::Map(_)),
        ("startsWith" | "endsWith" | "matches" | "contains", [one, other]) => {
            matches!(one, Shape::Dyn | Shape::Text) && matches!(other, Shape::Dyn | Shape::Text)
        }
        (
            "lowerAscii" | "upperAscii" | "trim" | "url" | "isURL" | "isIP" | "isCIDR" | "quantity" | "isQuantity",
            [one],
        ) => {
            matches!(one, Shape::Dyn | Shape::Text)
        }
        _ => true,
    };
    if fits { Ok(yields.shape(shapes.first())) } else { no_overload(name, shapes) }
}

fn operator<'a>(name: &str, shapes: &[Shape<'a>]) -> Option<Result<Shape<'a>, String>> {
    let boolean = |shape: &Shape<'_>| matches!(shape, Shape::Dyn | Shape::Bool);
    let (fits, shape) = match (name, shapes) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [one, other]) => (boolean(one) && boolean(other), Shape::Bool),
        (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [one]) => (boolean(one), Shape::Bool),
        (operators::CONDITIONAL, [cond, one, other]) => {
            let shape = if one == other { one.clone() } else { Shape::Dyn };
            (boolean(cond) && one.agrees(other), shape)
        }
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => (one.agrees(other), Shape::Bool),
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [one, other]) => {
            let ordered = |shape: &Shape<'_>| {
                shape.is_number()
                    || matches!(
                        shape,
                        Shape::Dyn | Shape::Bool | Shape::Text | Shape::Bytes | Shape::Time | Shape::Span
                    )
            };
            let alike = one.agrees(other) || (one.is_number() && other.is_number());
            (ordered(one) && ordered(other) && alike, Shape::Bool)
        }
        (operators::IN, [one, Shape::List(items)]) => (one.agrees(items), Shape::Bool),
        (operators::IN, [_, range]) => (matches!(range, Shape::Dyn | Shape::Map(_)), Shape::Bool),
        (operators::NEGATE, [one]) => (one.is_number() || *one == Shape::Dyn, one.clone()),
        (operators::INDEX, [range, key]) => return Some(index(name, range, key)),
        (operators::OPT_INDEX, [_, _]) => (true, Shape::Dyn),
        (
            operators::ADD | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
            [one, other],
        ) => {
            return Some(arithmetic(name, one, other));
        }
        _ => return None,
    };
    Some(if fits { Ok(shape) } else { no_overload(name, shapes) })
}

fn index<'a>(name: &str, range: &Shape<'a>, key: &Shape<'a>) -> Result<Shape<'a>, String> {
    match (range, key) {
        (Shape::Dyn, _) => Ok(Shape::Dyn),
        (Shape::List(items), Shape::Dyn | Shape::Int | Shape::UInt | Shape::Double) => Ok((**items).clone()),
        (Shape::Map(values), _) => Ok((**values).clone()),
        _ => no_overload(name, &[range.clone(), key.clone()]),
    }
}

fn arithmetic<'a>(name: &str, one: &Shape<'a>, other: &Shape<'a>) -> Result<Shape<'a>, String> {
    let adds = name == operators::ADD;
    match (one, other) {
        (Shape::Dyn, _) | (_, Shape::Dyn) => Ok(Shape::Dyn),
        (Shape::Text, Shape::Text) | (Shape::Bytes, Shape::Bytes) if adds => Ok(one.clone()),
        (Shape::List(left), Shape::List(right)) if adds => Ok(match (&**left, &**right) {
            (Shape::Dyn, _) => other.clone(),
            (left, right) if left == right => one.clone(),
            _ => Shape::List(Box::new(Shape::Dyn)),
        }),
        (Shape::Span, Shape::Span) => Ok(Shape::Span),
        (Shape::Time, Shape::Span) | (Shape::Span, Shape::Time) => Ok(Shape::Time),
        (Shape::Time, Shape::Time) if name == operators::SUBSTRACT => Ok(Shape::Span),
        _ if one == other && one.is_number() => Ok(one.clone()),
        _ => no_overload(name, &[one.clone(), other.clone()]),
    }
}

fn literal_shape<'a>(literal: &LiteralValue) -> Shape<'a> {
    match literal {
        LiteralValue::Boolean(_) => Shape::Bool,
        LiteralValue::Bytes(_) => Shape::Bytes,
        LiteralValue::Double(_) => Shape::Double,
        LiteralValue::Int(_) => Shape::Int,
        LiteralValue::Null => Shape::Null,
        LiteralValue::String(_) => Shape::Text,
        LiteralValue::UInt(_) => Shape::UInt,
    }
}
