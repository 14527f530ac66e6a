//! What an expression can cost at most, told from its text and the sizes its schema allows.
//!
//! The unit and the way of counting are those of the original, so that the same rules are refused.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel;

use super::escape::escape;
use super::expand::OPT_SELECT;
use super::{function, size};
use crate::{Schema, Type};

/// Making a list or a map.
const LIST: u64 = 10;
const MAP: u64 = 30;
/// For looking at each character of a text, and for each character of a pattern.
const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;
/// The size of what can have any.
const ANY: u64 = u64::MAX;

/// What is known of a value.
#[derive(Copy, Clone)]
enum Place<'a> {
    Unknown,
    /// Of a schema.
    Of(&'a Schema),
    /// A name and what it stands for, in a list or map of this schema.
    Entry(&'a Schema),
}

impl<'a> Place<'a> {
    fn field(self, name: &str) -> Self {
        match self {
            Self::Of(schema) => {
                let named = || schema.properties.iter().find(|(own, _)| escape(own).as_deref() == Some(name));
                let found = schema.additional.as_deref().or_else(|| named().map(|(_, property)| property));
                found.map_or(Self::Unknown, Self::Of)
            }
            Self::Entry(schema) if name == "v" => Self::Of(schema).indexed(),
            _ => Self::Unknown,
        }
    }

    /// What a list has.
    fn element(self) -> Self {
        match self {
            Self::Of(Schema { items: Some(items), .. }) => Self::Of(items),
            _ => Self::Unknown,
        }
    }

    /// What an index into it gives.
    fn indexed(self) -> Self {
        match self {
            Self::Of(Schema { additional: Some(values), .. }) => Self::Of(values),
            other => other.element(),
        }
    }

    fn is_list(self) -> bool {
        matches!(self, Self::Of(schema) if schema.ty == Type::Array)
    }

    /// Whether it is compared character by character.
    fn is_text(self) -> bool {
        let times = ["date", "date-time", "duration"];
        matches!(self, Self::Of(schema) if schema.ty == Type::String && !times.contains(&&*schema.format))
    }
}

/// Cost, size and place of a part of an expression.
#[derive(Copy, Clone)]
struct Guess<'a> {
    cost: u64,
    size: u64,
    /// The size it has at least; known of literals only.
    least: u64,
    text: bool,
    place: Place<'a>,
}

impl Guess<'_> {
    /// A number or the like.
    fn plain(cost: u64) -> Self {
        Self::sized(cost, 1)
    }

    fn sized(cost: u64, size: u64) -> Self {
        Self { cost, size, least: 0, text: false, place: Place::Unknown }
    }

    fn text(cost: u64, size: u64) -> Self {
        Self { text: true, ..Self::sized(cost, size) }
    }
}

/// What an expression over a value of this schema can cost.
pub(crate) fn cost(expr: &IdedExpr, schema: &Schema) -> u64 {
    let own = (size::most(schema), Place::Of(schema));
    let mut names = vec![("self", own.0, own.1), ("oldSelf", own.0, own.1)];
    guess(expr, &mut names).cost
}

type Names<'a> = Vec<(&'a str, u64, Place<'a>)>;

fn guess<'a>(expr: &'a IdedExpr, names: &mut Names<'a>) -> Guess<'a> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => {
            let size = text.inner().chars().count() as u64;
            Guess { least: size, ..Guess::text(0, size) }
        }
        Expr::Literal(LiteralValue::Bytes(bytes)) => Guess::text(0, bytes.inner().len() as u64),
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Guess::plain(0),
        Expr::Ident(name) => match names.iter().rev().find(|(own, ..)| own == name) {
            Some((_, size, place)) => Guess { size: *size, ..at(1, *place) },
            None => Guess::plain(1),
        },
        Expr::Select(select) => {
            let operand = guess(&select.operand, names);
            if select.test {
                return Guess::plain(operand.cost);
            }
            if let Place::Entry(schema) = operand.place {
                // A second variable of a loop: naming it is all it costs. Keys of maps have no size.
                let key = Guess::sized(0, u64::from(schema.items.is_some()));
                return if select.field == "k" { key } else { at(0, operand.place.field("v")) };
            }
            at(operand.cost.saturating_add(1), operand.place.field(&select.field))
        }
        Expr::List(list) => {
            let cost = list.elements.iter().fold(LIST, |sum, one| sum.saturating_add(guess(one, names).cost));
            Guess::sized(cost, list.elements.len() as u64)
        }
        Expr::Map(map) => {
            let cost = map.entries.iter().fold(MAP, |sum, entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    sum.saturating_add(guess(&entry.key, names).cost).saturating_add(guess(&entry.value, names).cost)
                }
                EntryExpr::StructField(field) => sum.saturating_add(guess(&field.value, names).cost),
            });
            Guess::sized(cost, map.entries.len() as u64)
        }
        Expr::Comprehension(loops) => repeated(loops, names),
        Expr::Call(call) => called(call, names),
    }
}

/// A value of a place, at a cost.
fn at(cost: u64, place: Place<'_>) -> Guess<'_> {
    let size = if let Place::Of(schema) = place { size::most(schema) } else { 1 };
    Guess { place, text: place.is_text(), ..Guess::sized(cost, size) }
}

fn repeated<'a>(loops: &'a ComprehensionExpr, names: &mut Names<'a>) -> Guess<'a> {
    let range = guess(&loops.iter_range, names);
    let init = guess(&loops.accu_init, names);
    let depth = names.len();
    names.push((&loops.accu_var, init.size, init.place));
    if matches!(&loops.iter_range.expr, Expr::List(list) if list.elements.is_empty()) {
        // Only a name for a value.
        let result = guess(&loops.result, names);
        names.truncate(depth);
        return Guess { cost: init.cost.saturating_add(result.cost), ..result };
    }
    let element = match range.place {
        Place::Entry(_) => at(0, range.place),
        // Elements of what was made on the way are taken to be as large as all of it.
        Place::Unknown => Guess::sized(0, range.size),
        // Keys of maps have no size.
        Place::Of(schema) if schema.items.is_none() => Guess::sized(0, 0),
        place @ Place::Of(_) => at(0, place.element()),
    };
    names.push((&loops.iter_var, element.size, element.place));
    let turn = guess(&loops.loop_cond, names).cost.saturating_add(guess(&loops.loop_step, names).cost);
    names.pop();
    let result = guess(&loops.result, names);
    names.truncate(depth);
    let once = range.cost.saturating_add(init.cost).saturating_add(result.cost);
    let grows = matches!(loops.accu_init.expr, Expr::List(_) | Expr::Map(_));
    let size = if grows { range.size } else { 1 };
    Guess::sized(once.saturating_add(range.size.saturating_mul(turn)), size)
}

fn called<'a>(call: &'a CallExpr, names: &mut Names<'a>) -> Guess<'a> {
    if let (OPT_SELECT, [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) =
        (call.func_name.as_str(), call.args.as_slice())
    {
        let operand = guess(operand, names);
        return at(operand.cost.saturating_add(1), operand.place.field(field.inner()));
    }
    // `sets.contains(a, b)` looks like a method of `sets`.
    let full = match call.target.as_deref().map(|target| &target.expr) {
        Some(Expr::Ident(space)) if !names.iter().any(|(own, ..)| own == space) => {
            Some(format!("{space}.{}", call.func_name)).filter(|full| function::find(full).is_some())
        }
        _ => None,
    };
    let target = call.target.as_deref().filter(|_| full.is_none());
    let parts: Vec<Guess<'a>> = target.into_iter().chain(&call.args).map(|part| guess(part, names)).collect();
    if let (operators::CONDITIONAL, [cond, yes, no]) = (call.func_name.as_str(), parts.as_slice()) {
        // Only one of them is evaluated.
        let place = if let Place::Of(_) = yes.place { yes.place } else { no.place };
        let (cost, size) = (cond.cost.saturating_add(yes.cost.max(no.cost)), yes.size.max(no.size));
        return Guess { place, text: yes.text || no.text, ..Guess::sized(cost, size) };
    }
    let before = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.cost));
    let own = own_cost(full.as_ref().unwrap_or(&call.func_name), &parts);
    Guess { cost: own.cost.saturating_add(before), ..own }
}

fn part(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What a call itself costs, and what it gives; its parts are counted elsewhere.
fn own_cost<'a>(name: &str, parts: &[Guess<'a>]) -> Guess<'a> {
    match (name, parts) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => Guess::plain(0),
        // Numbers and times.
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [one, other])
            if !one.text && !other.text =>
        {
            Guess::plain(1)
        }
        (
            operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [one, other],
        ) => Guess::plain(part(one.size.min(other.size), TRAVERSAL)),
        (operators::IN, [_, range]) => Guess::plain(if range.place.is_list() { range.size } else { 1 }),
        (operators::INDEX | operators::OPT_INDEX, [range, _]) => at(1, range.place.indexed()),
        (operators::ADD, [one, other]) => {
            let together = one.size.saturating_add(other.size);
            let lists = one.place.is_list() || other.place.is_list();
            let text = one.text || other.text;
            let cost = if lists || !text { 1 } else { part(together, TRAVERSAL) };
            Guess { text, ..Guess::sized(cost, if lists || text { together } else { 1 }) }
        }
        ("@entries", [range]) => match range.place {
            Place::Of(schema) => Guess { place: Place::Entry(schema), ..Guess::sized(0, range.size) },
            _ => Guess::sized(0, range.size),
        },
        ("matches" | "find" | "findAll", [text, pattern, ..]) => {
            let cost = part(text.size.saturating_add(1), TRAVERSAL).saturating_mul(part(pattern.size, PATTERN));
            Guess::text(cost, text.size)
        }
        ("contains", [text, piece]) => {
            Guess::plain(part(text.size, TRAVERSAL).saturating_mul(part(piece.size, TRAVERSAL)))
        }
        ("startsWith" | "endsWith", [_, piece]) => Guess::plain(part(piece.size, TRAVERSAL)),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", [text, ..]) => {
            Guess::text(part(text.size, TRAVERSAL), text.size)
        }
        ("split", [text, ..]) => Guess::sized(part(text.size, 2.0 * TRAVERSAL), text.size),
        ("replace", [text, from, to, ..]) => {
            Guess::text(part(text.size, 2.0 * TRAVERSAL), replaced(text.size, from.least, to.size))
        }
        // What was made on the way can have elements of any length.
        ("join", [list, ..]) if !list.place.is_list() => Guess::text(ANY, ANY),
        ("join", [list, rest @ ..]) => {
            let each = at(0, list.place.element()).size + rest.first().map_or(0, |between| between.size);
            let size = list.size.saturating_mul(each);
            Guess::text(part(size, TRAVERSAL), size)
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "distinct" | "sort", [list, ..]) => {
            let each = at(0, list.place.element()).size;
            let cost = if list.place.is_list() {
                list.size.saturating_mul(1 + part(each, TRAVERSAL))
            } else {
                part(list.size, TRAVERSAL)
            };
            Guess::sized(cost, list.size)
        }
        ("url" | "ip" | "isIP" | "cidr" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver", [text, ..]) => {
            Guess::plain(part(text.size, TRAVERSAL))
        }
        ("sets.contains" | "sets.intersects", [one, other]) => Guess::plain(one.size.saturating_mul(other.size)),
        ("sets.equivalent", [one, other]) => Guess::plain(one.size.saturating_mul(other.size).saturating_mul(2)),
        ("string" | "format", _) => Guess::text(1, ANY),
        ("or" | "orValue" | "value" | "optional.of" | "dyn", _) => Guess::sized(1, ANY),
        // Most others take about as long as looking up a field.
        _ => Guess::plain(1),
    }
}

/// How long a text can become when pieces of at least `from` characters are replaced by `to` characters.
fn replaced(size: u64, from: u64, to: u64) -> u64 {
    match from {
        // Nothing is found between all characters.
        0 => size.saturating_add(1).saturating_mul(to).saturating_add(size),
        _ if to <= from => size,
        _ => size.div_ceil(from).saturating_mul(to),
    }
}
