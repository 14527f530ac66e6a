//! Taking fields out of an object.

use serde_json::Value;

use super::kind::{Kind, Shape};
use crate::fields::{FieldSet, PathElement};

/// The value without the fields of the set; `None` if nothing is left of it.
pub(crate) fn remove(value: &Value, set: &FieldSet, kind: Kind) -> Option<Value> {
    match (kind.shape(Some(value)), value) {
        (Shape::Scalar, _) => Some(value.clone()),
        (Shape::Map(fields), Value::Object(map)) if !fields.atomic => {
            let kept = map.iter().filter_map(|(name, value)| {
                let kept = keep(value, set, &PathElement::field(name), || fields.field_or_deduced(name))?;
                Some((name.clone(), kept))
            });
            let kept: serde_json::Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Shape::List(list), Value::Array(items)) if !list.is_atomic() => {
            let kept = items.iter().filter_map(|item| match list.element(item) {
                Ok(element) => keep(item, set, &element, || list.items),
                Err(_) => Some(item.clone()),
            });
            let kept: Vec<Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn keep<'a>(value: &Value, set: &FieldSet, element: &PathElement, kind: impl Fn() -> Kind<'a>) -> Option<Value> {
    match set.get(element) {
        None => Some(value.clone()),
        Some(node) if node.member => None,
        Some(node) => remove(value, &node.children, kind()),
    }
}
