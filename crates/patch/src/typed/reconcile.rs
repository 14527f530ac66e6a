//! Field sets seen through a schema.

use super::kind::{Fields, Kind, List};
use crate::fields::{FieldSet, Node, PathElement};
use atoll_schema::Type;

/// Adjusts a set that was recorded when the schema was another one: what has become atomic
/// is owned as a whole. Says whether anything changed.
pub(crate) fn reconcile(set: FieldSet, kind: Kind) -> (FieldSet, bool) {
    if !needs(&set, kind) {
        return (set, false);
    }
    (collapse(set, kind), true)
}

/// What a kind without a value is; only described maps and lists matter here.
enum Container<'a> {
    Map(Fields<'a>),
    List(List<'a>),
    Other,
}

fn container(kind: Kind) -> Container {
    match (kind, kind.scalar().0) {
        (Kind::Typed(_), Type::Object | Type::Any) => Container::Map(kind.fields()),
        (Kind::Typed(_), Type::Array) => Container::List(kind.list()),
        _ => Container::Other,
    }
}

fn below<'a>(container: &Container<'a>, element: &PathElement) -> Option<Kind<'a>> {
    match (container, element) {
        (Container::Map(fields), PathElement::Field(name)) => fields.field(name),
        (Container::List(list), _) => Some(list.items),
        _ => None,
    }
}

fn is_atomic(container: &Container) -> bool {
    match container {
        Container::Map(fields) => fields.atomic && !fields.is_deduced(),
        Container::List(list) => list.is_atomic(),
        Container::Other => false,
    }
}

fn needs(set: &FieldSet, kind: Kind) -> bool {
    let here = container(kind);
    set.nodes().iter().filter(|node| !node.children.is_empty()).any(|node| {
        below(&here, &node.element).is_some_and(|kind| is_atomic(&container(kind)) || needs(&node.children, kind))
    })
}

fn collapse(set: FieldSet, kind: Kind) -> FieldSet {
    let here = container(kind);
    let nodes = set.into_nodes().into_iter().map(|node| match below(&here, &node.element) {
        Some(kind) if !node.children.is_empty() && is_atomic(&container(kind)) => {
            Node { member: true, children: FieldSet::new(), ..node }
        }
        Some(kind) => Node { children: collapse(node.children, kind), ..node },
        None => node,
    });
    FieldSet::from_nodes(nodes.collect())
}

/// The set with all fields of structs on the way to its members.
pub(crate) fn with_named_fields(set: FieldSet, kind: Kind) -> FieldSet {
    let here = container(kind);
    let nodes = set.into_nodes().into_iter().map(|mut node| {
        if node.children.is_empty() {
            return node;
        }
        if let (Container::Map(fields), PathElement::Field(name)) = (&here, &node.element) {
            node.member |= fields.declares(name);
        }
        let kind = below(&here, &node.element).unwrap_or(Kind::Untyped);
        node.children = with_named_fields(node.children, kind);
        node
    });
    FieldSet::from_nodes(nodes.collect())
}
