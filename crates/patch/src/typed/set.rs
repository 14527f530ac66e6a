//! All fields an object has.

use atoll_schema::Typed;
use serde_json::{Map, Value};

use super::kind::{Fields, Kind, List, Shape};
use crate::fields::{FieldSet, Node, PathElement};

impl FieldSet {
    /// Every leaf and list element of an object; without a schema its types are deduced.
    pub fn of(object: &Value, typed: Option<Typed>) -> Self {
        field_set(object, Kind::root(typed))
    }
}

/// Every leaf and list element of a value.
pub(crate) fn field_set(value: &Value, kind: Kind) -> FieldSet {
    visit(value, kind).children
}

/// A place: whether it is a field of its own, and what is below.
#[derive(Default)]
struct Place {
    member: bool,
    children: FieldSet,
}

const LEAF: fn() -> Place = || Place { member: true, children: FieldSet::default() };

fn visit(value: &Value, kind: Kind) -> Place {
    match (kind.shape(Some(value)), value) {
        (Shape::Scalar, _) => LEAF(),
        (Shape::Map(fields), _) if fields.atomic => LEAF(),
        (Shape::List(list), _) if list.is_atomic() => LEAF(),
        (Shape::Map(fields), Value::Object(map)) => visit_map(map, &fields),
        (Shape::List(list), Value::Array(items)) => visit_list(items, &list),
        _ => Place::default(),
    }
}

fn visit_map(map: &Map<String, Value>, fields: &Fields) -> Place {
    let nodes = map.iter().map(|(name, value)| {
        let below = visit(value, fields.field_or_deduced(name));
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        // Fields of structs are owned through their content, entries of maps also by themselves.
        let member = below.member || empty || !fields.declares(name);
        Node { element: PathElement::field(name), member, children: below.children }
    });
    Place { member: false, children: FieldSet::from_nodes(nodes.collect()) }
}

fn visit_list(items: &[Value], list: &List) -> Place {
    let mut nodes: Vec<Node> = Vec::with_capacity(items.len());
    let mut elements = Vec::with_capacity(items.len());
    for item in items {
        let Ok(element) = list.element(item) else { return LEAF() };
        elements.push(element);
    }
    let mut sorted: Vec<&PathElement> = elements.iter().collect();
    sorted.sort();
    let repeated = |element: &PathElement| {
        let at = sorted.partition_point(|other| *other < element);
        sorted.get(at + 1).is_some_and(|next| *next == element)
    };
    for (item, element) in items.iter().zip(&elements) {
        // A key that occurs several times is owned as a whole.
        let children = if repeated(element) { FieldSet::new() } else { visit(item, list.items).children };
        nodes.push(Node { element: element.clone(), member: true, children });
    }
    Place { member: false, children: FieldSet::from_nodes(nodes) }
}
