//! What changed between two versions of an object, as sets of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::kind::{Fields, Kind, List, Missing, Shape};
use crate::fields::{FieldSet, Node, PathElement, same};

/// The fields that differ between two objects.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Only in the old object.
    pub(crate) removed: FieldSet,
    /// In both, with different values.
    pub(crate) modified: FieldSet,
    /// Only in the new object.
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub(crate) fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Leaves out fields and all below them.
    pub(crate) fn without(self, fields: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

/// Compares two objects of one kind; a missing old object counts as an empty one.
pub(crate) fn compare<'v>(old: Option<&'v Value>, new: &'v Value, kind: Kind<'v>) -> Comparison {
    let old = old.map_or(Side::Empty, Side::Value);
    let diff = visit(old, Side::Value(new), kind);
    Comparison { removed: diff.removed.children, modified: diff.modified.children, added: diff.added.children }
}

/// What stands at a place in one of the two objects.
#[derive(Copy, Clone)]
enum Side<'v> {
    Absent,
    /// An empty struct that a built-in kind always has.
    Empty,
    Value(&'v Value),
}

impl<'v> Side<'v> {
    fn value(self) -> Option<&'v Value> {
        match self {
            Side::Value(value) => Some(value),
            _ => None,
        }
    }

    fn is_absent(self) -> bool {
        matches!(self, Side::Absent)
    }

    fn map(self) -> Option<&'v Map<String, Value>> {
        self.value().and_then(Value::as_object)
    }

    fn list(self) -> Option<&'v [Value]> {
        self.value().and_then(Value::as_array).map(Vec::as_slice)
    }
}

/// One place of one of the three sets.
#[derive(Default)]
struct Mark {
    member: bool,
    children: FieldSet,
}

/// What differs at one place and below.
#[derive(Default)]
struct Diff {
    removed: Mark,
    modified: Mark,
    added: Mark,
}

/// The differences below a place while they are being gathered.
#[derive(Default)]
struct Gathered {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Gathered {
    fn add(&mut self, diff: Diff, element: impl Fn() -> PathElement) {
        for (nodes, mark) in
            [(&mut self.removed, diff.removed), (&mut self.modified, diff.modified), (&mut self.added, diff.added)]
        {
            if mark.member || !mark.children.is_empty() {
                nodes.push(Node { element: element(), member: mark.member, children: mark.children });
            }
        }
    }

    /// Closes a map or list, which itself is added or removed with its first or last content.
    fn finish(self, old: Side, new: Side) -> Diff {
        let mark = |nodes, member| Mark { member, children: FieldSet::from_nodes(nodes) };
        Diff {
            removed: mark(self.removed, new.is_absent() && !old.is_absent()),
            modified: mark(self.modified, false),
            added: mark(self.added, old.is_absent()),
        }
    }
}

fn visit<'v>(old: Side<'v>, new: Side<'v>, kind: Kind<'v>) -> Diff {
    // Most of an object stays as it is; to see that takes much less than to go through it.
    if let (Side::Value(old), Side::Value(new)) = (old, new)
        && old == new
    {
        return Diff::default();
    }
    let new_shape = kind.shape(new.value());
    let old_shape = kind.shape(old.value());
    if new.is_absent() {
        return visit_shape(old, new, &old_shape);
    }
    let changed_shape = std::mem::discriminant(&old_shape) != std::mem::discriminant(&new_shape);
    if old.value().is_none() || !changed_shape {
        return visit_shape(old, new, &new_shape);
    }
    // The value became something else altogether: the old content goes, the new one comes.
    let gone = visit_shape(old, new, &old_shape);
    let come = visit_shape(old, new, &new_shape);
    let both = |left: Mark, right: Mark| Mark {
        member: left.member || right.member,
        children: left.children.union(right.children),
    };
    Diff {
        removed: both(gone.removed, come.removed),
        modified: both(gone.modified, come.modified),
        added: both(gone.added, come.added),
    }
}

fn visit_shape<'v>(old: Side<'v>, new: Side<'v>, shape: &Shape<'v>) -> Diff {
    match shape {
        Shape::Scalar => leaf(old, new),
        Shape::Map(fields) => visit_map(old, new, fields),
        Shape::List(list) => visit_list(old, new, list),
    }
}

/// A place with one owner.
fn leaf(old: Side, new: Side) -> Diff {
    let mut diff = Diff::default();
    match (old, new) {
        (Side::Absent, Side::Absent) | (Side::Empty, Side::Empty) => {}
        (Side::Absent, _) => diff.added.member = true,
        (_, Side::Absent) => diff.removed.member = true,
        (Side::Value(old), Side::Value(new)) => diff.modified.member = !same(old, new),
        (Side::Empty, Side::Value(value)) | (Side::Value(value), Side::Empty) => {
            diff.modified.member = !(value.is_null() || value.as_object().is_some_and(Map::is_empty));
        }
    }
    diff
}

fn visit_map<'v>(old: Side<'v>, new: Side<'v>, fields: &Fields<'v>) -> Diff {
    let (old_map, new_map) = (old.map(), new.map());
    let empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
    if fields.atomic || (empty(old_map) && empty(new_map)) {
        return leaf(old, new);
    }
    let mut gathered = Gathered::default();
    for (name, value) in new_map.into_iter().flatten() {
        let before = field_side(old, old_map, name, fields, Some(value));
        gathered.add(field_diff(before, Side::Value(value), name, fields), || PathElement::field(name));
    }
    for (name, value) in old_map.into_iter().flatten() {
        if new_map.is_none_or(|map| !map.contains_key(name)) {
            let after = field_side(new, new_map, name, fields, None);
            gathered.add(field_diff(Side::Value(value), after, name, fields), || PathElement::field(name));
        }
    }
    gathered.finish(old, new)
}

fn field_diff<'v>(old: Side<'v>, new: Side<'v>, name: &str, fields: &Fields<'v>) -> Diff {
    visit(old, new, fields.field_or_deduced(name))
}

/// What one object has under a name; built-in structs have some fields even when they are not written.
fn field_side<'v>(
    side: Side<'v>,
    map: Option<&'v Map<String, Value>>,
    name: &str,
    fields: &Fields<'v>,
    other: Option<&'v Value>,
) -> Side<'v> {
    static NULL: Value = Value::Null;
    if side.is_absent() {
        return Side::Absent;
    }
    if let Some(value) = map.and_then(|map| map.get(name)) {
        return Side::Value(value);
    }
    match fields.missing(name) {
        Missing::Struct => Side::Empty,
        Missing::Null => Side::Value(&NULL),
        // A zero that is only written out now has not been set by anybody.
        Missing::Scalar(zero) if other.is_some_and(|other| same(other, zero)) => Side::Value(zero),
        _ => Side::Absent,
    }
}

fn visit_list<'v>(old: Side<'v>, new: Side<'v>, list: &List<'v>) -> Diff {
    let (old_list, new_list) = (old.list().unwrap_or_default(), new.list().unwrap_or_default());
    if list.is_atomic() || (old_list.is_empty() && new_list.is_empty()) {
        return leaf(old, new);
    }
    let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (values, is_new) in [(old_list, false), (new_list, true)] {
        for value in values {
            // Elements that cannot be told apart make the list one value.
            let Ok(element) = list.element(value) else { return leaf(old, new) };
            let (before, after) = items.entry(element).or_default();
            if is_new { after.push(value) } else { before.push(value) }
        }
    }
    let mut gathered = Gathered::default();
    for (element, (before, after)) in items {
        let diff = visit_element(&before, &after, list.items);
        gathered.add(diff, || element.clone());
    }
    gathered.finish(old, new)
}

/// One element; where a key occurs several times, all its occurrences are one value.
fn visit_element<'v>(old: &[&'v Value], new: &[&'v Value], items: Kind<'v>) -> Diff {
    let side = |values: &[&'v Value]| values.first().map_or(Side::Absent, |value| Side::Value(value));
    match (old.len() > 1, new.len() > 1) {
        (true, true) => {
            let mut diff = Diff::default();
            diff.modified.member = old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !same(old, new));
            diff
        }
        (true, false) => {
            let mut diff = visit(Side::Absent, side(new), items);
            diff.removed.member = true;
            diff
        }
        (false, true) => {
            let mut diff = visit(side(old), Side::Absent, items);
            diff.added.member = true;
            diff
        }
        (false, false) => visit(side(old), side(new), items),
    }
}
