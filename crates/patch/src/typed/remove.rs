//! Taking fields out of an object.

use serde_json::{Map, Value};

use super::kind::{Kind, Shape};
use crate::fields::{FieldSet, Node, PathElement};

/// What becomes of a map or list that loses its last content.
#[derive(Copy, Clone, Eq, PartialEq)]
pub(crate) enum Emptied {
    /// It stays as null, so that it still counts as a field.
    Null,
    /// It goes, but what it was in stays.
    Gone,
}

/// The value without the fields of the set; `None` if nothing is left of it.
pub(crate) fn remove(value: &Value, set: &FieldSet, kind: Kind, emptied: Emptied) -> Option<Value> {
    match (kind.shape(Some(value)), value) {
        (Shape::Scalar, _) => Some(value.clone()),
        (Shape::Map(fields), Value::Object(map)) if !fields.atomic => {
            let mut kept = Map::new();
            let mut any = false;
            for (name, value) in map {
                let node = set.get(&PathElement::field(name));
                if node.is_some_and(|node| node.member) {
                    continue;
                }
                any = true;
                if let Some(value) = keep(value, node, || fields.field_or_deduced(name), emptied) {
                    kept.insert(name.clone(), value);
                }
            }
            any.then_some(Value::Object(kept))
        }
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() => {
            let mut kept = Vec::with_capacity(items.len());
            let mut any = false;
            for item in items {
                let node = list.element(item).ok().and_then(|element| set.get(&element));
                if node.is_some_and(|node| node.member) {
                    continue;
                }
                any = true;
                kept.extend(keep(item, node, || list.items, emptied));
            }
            any.then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn keep<'a>(value: &Value, node: Option<&Node>, kind: impl Fn() -> Kind<'a>, emptied: Emptied) -> Option<Value> {
    let Some(node) = node else { return Some(value.clone()) };
    remove(value, &node.children, kind(), emptied).or_else(|| (emptied == Emptied::Null).then_some(Value::Null))
}
