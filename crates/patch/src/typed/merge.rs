//! Merging an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::kind::{Fields, Kind, List, Shape};
use crate::fields::PathElement;

/// The live value with all fields of the configuration; nothing is removed.
///
/// Keyed lists keep the live order, unless the configuration asks for another one.
pub(crate) fn merge(live: Option<&Value>, config: &Value, kind: Kind) -> Result<Value, String> {
    let Some(live) = live else { return Ok(config.clone()) };
    match kind.shape(Some(config)) {
        Shape::Scalar => Ok(config.clone()),
        Shape::Map(fields) => merge_map(live, config, &fields),
        Shape::List(list) => merge_list(live, config, &list),
    }
}

fn merge_map(live: &Value, config: &Value, fields: &Fields) -> Result<Value, String> {
    let (old, new) = (live.as_object(), config.as_object());
    let empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
    if fields.atomic || (empty(old) && empty(new)) {
        return Ok(config.clone());
    }
    let mut out = old.cloned().unwrap_or_default();
    for (name, value) in new.into_iter().flatten() {
        let merged = merge(old.and_then(|old| old.get(name)), value, fields.field_or_deduced(name));
        out.insert(name.clone(), merged.map_err(|error| format!(".{name}{error}"))?);
    }
    Ok(Value::Object(out))
}

fn merge_list(live: &Value, config: &Value, list: &List) -> Result<Value, String> {
    let old = live.as_array().map(Vec::as_slice).unwrap_or_default();
    let new = config.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_atomic() || (old.is_empty() && new.is_empty()) {
        return Ok(config.clone());
    }
    let run = ListMerge { old: Indexed::of(old, list)?, new: Indexed::of(new, list)?, list };
    run.merge().map(Value::Array)
}

/// A list with the path elements of its items.
struct Indexed<'v> {
    items: Vec<(PathElement, &'v Value)>,
    /// Where each element stands; `None` if it occurs several times.
    places: BTreeMap<PathElement, Option<usize>>,
}

impl<'v> Indexed<'v> {
    fn of(values: &'v [Value], list: &List) -> Result<Self, String> {
        let mut items = Vec::with_capacity(values.len());
        let mut places = BTreeMap::new();
        for (at, value) in values.iter().enumerate() {
            let element = list.element(value).map_err(|error| format!(": element {at}: {error}"))?;
            places.entry(element.clone()).and_modify(|place| *place = None).or_insert(Some(at));
            items.push((element, value));
        }
        Ok(Self { items, places })
    }

    fn has(&self, element: &PathElement) -> bool {
        self.places.contains_key(element)
    }

    /// The value of an element; null stands for one that occurs several times.
    fn value(&self, element: &PathElement) -> Option<&'v Value> {
        static NULL: Value = Value::Null;
        self.places.get(element).map(|place| place.map_or(&NULL, |at| self.items[at].1))
    }
}

struct ListMerge<'v, 'l> {
    old: Indexed<'v>,
    new: Indexed<'v>,
    list: &'l List<'l>,
}

impl ListMerge<'_, '_> {
    /// Walks both lists at once: elements of the live list stay where they are, those of the
    /// configuration come in its order, and shared ones keep both lists in step.
    fn merge(&self) -> Result<Vec<Value>, String> {
        let (old, new) = (&self.old.items, &self.new.items);
        let mut shared = new.iter().map(|(element, _)| element).filter(|element| self.old.has(element));
        let mut next_shared = shared.next();
        let mut done: BTreeSet<&PathElement> = BTreeSet::new();
        let mut out = Vec::with_capacity(old.len().max(new.len()));
        let (mut at, mut to) = (0, 0);
        while at < old.len() || to < new.len() {
            if let (Some((left, _)), Some((right, _))) = (old.get(at), new.get(to)) {
                if left == right {
                    done.insert(right);
                    out.push(self.merged(right)?);
                    (at, to) = (at + 1, to + 1);
                    next_shared = shared.next();
                    continue;
                }
                if self.new.has(left) && next_shared.is_some_and(|next| next != left) {
                    // Shared, but another one comes first.
                    at += 1;
                    continue;
                }
            }
            if let Some((left, value)) = old.get(at) {
                if !self.new.has(left) {
                    out.push((*value).clone());
                    at += 1;
                    continue;
                }
                if done.contains(left) {
                    at += 1;
                }
            }
            if let Some((right, _)) = new.get(to) {
                done.insert(right);
                out.push(self.merged(right)?);
                to += 1;
                if next_shared == Some(right) {
                    next_shared = shared.next();
                }
            }
        }
        Ok(out)
    }

    fn merged(&self, element: &PathElement) -> Result<Value, String> {
        let config = self.new.value(element).unwrap_or(&Value::Null);
        merge(self.old.value(element), config, self.list.items).map_err(|error| format!("{element}{error}"))
    }
}
