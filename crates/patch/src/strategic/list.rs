//! Merging lists: scalars as sets, maps by their merge key.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::directive::Directive;
use super::{Mode, Rules, merge_map, order};
use crate::error::PatchError;
use crate::show;

/// What the elements of a list are.
#[derive(Copy, Clone, Eq, PartialEq)]
pub(super) enum Shape {
    Maps,
    Scalars,
}

/// The common sort of all elements; mixed lists and lists of lists cannot be merged.
pub(super) fn element_shape(lists: &[&[Value]]) -> Result<Shape, PatchError> {
    let mut items = lists.iter().flat_map(|list| list.iter());
    let Some(first) = items.next() else {
        return Err(PatchError::Mismatch("no elements in any of the given slices".into()));
    };
    if first.is_array() {
        return Err(PatchError::Failed("lists of lists are not supported".into()));
    }
    if first.is_null() || items.any(|item| show::go_type(item) != show::go_type(first)) {
        let shown = show::go_lists(lists);
        return Err(PatchError::Mismatch(format!("list element types are not identical: {shown}")));
    }
    Ok(if first.is_object() { Shape::Maps } else { Shape::Scalars })
}

/// What tells elements apart: the value of the merge key, or the scalar itself.
pub(super) fn identity(item: &Value, key: &str) -> String {
    let value = if key.is_empty() { Some(item) } else { item.get(key) };
    value.map(ToString::to_string).unwrap_or_default()
}

/// The complaint about an element without its merge key.
pub(super) fn no_merge_key(item: &Value, key: &str) -> PatchError {
    PatchError::Mismatch(format!("map: {} does not contain declared merge key: {key}", show::go(item)))
}

/// Fails if an element lacks its merge key.
pub(super) fn require_keys(items: &[Value], key: &str) -> Result<(), PatchError> {
    items.iter().find(|item| item.get(key).is_none()).map_or(Ok(()), |item| Err(no_merge_key(item, key)))
}

/// Merges `patch` into `original` as the field's rules say.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    rules: &Rules,
    mode: Mode,
) -> Result<Vec<Value>, PatchError> {
    if !rules.merge {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if element_shape(&[&original, &patch])? == Shape::Scalars {
        return merge_scalars(original, patch);
    }
    if rules.key.is_empty() {
        return Err(PatchError::Mismatch("cannot merge lists without merge key for struct".into()));
    }
    let (original, patch) = follow_directives(original, patch, rules.key)?;
    let merged = merge_maps(original.clone(), &patch, rules, mode)?;
    order::arrange(merged, &patch, &original, rules.key, Shape::Maps)
}

fn merge_scalars(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let mut seen = HashSet::new();
    let both = original.iter().chain(&patch).filter(|item| seen.insert(identity(item, ""))).cloned().collect();
    order::arrange(both, &patch, &original, "", Shape::Scalars)
}

/// Deletes what elements of the patch ask to be deleted, and returns the plain elements.
fn follow_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else { continue };
        match Directive::in_map(map)? {
            None => plain.push(item),
            Some(Directive::Delete) if map.contains_key(key) => {
                deleted.insert(identity(&item, key));
            }
            Some(Directive::Delete) => return Err(no_merge_key(&item, key)),
            Some(Directive::Replace) => replace = true,
            Some(Directive::Merge) => {
                return Err(PatchError::Mismatch("merging lists cannot yet be specified in the patch".into()));
            }
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    original.retain(|item| item.get(key).is_none() || !deleted.contains(&identity(item, key)));
    Ok((original, plain))
}

fn merge_maps(mut merged: Vec<Value>, patch: &[Value], rules: &Rules, mode: Mode) -> Result<Vec<Value>, PatchError> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(merged.len());
    for (at, item) in merged.iter().enumerate() {
        if item.get(rules.key).is_some() {
            places.entry(identity(item, rules.key)).or_insert(at);
        }
    }
    for item in patch {
        if item.get(rules.key).is_none() {
            return Err(no_merge_key(item, rules.key));
        }
        let id = identity(item, rules.key);
        match places.get(&id) {
            Some(&at) => {
                if let (Value::Object(old), Value::Object(new)) = (merged[at].take(), item.clone()) {
                    merged[at] = Value::Object(merge_map(old, new, rules.inner, mode)?);
                }
            }
            None => {
                places.insert(id, merged.len());
                merged.push(item.clone());
            }
        }
    }
    Ok(merged)
}

/// Takes scalars out of a list.
pub(super) fn delete_scalars(list: &mut Vec<Value>, unwanted: &[Value]) -> Result<(), PatchError> {
    if list.is_empty() && unwanted.is_empty() {
        return Ok(());
    }
    element_shape(&[list, unwanted])?;
    let unwanted: HashSet<String> = unwanted.iter().map(|item| identity(item, "")).collect();
    list.retain(|item| !unwanted.contains(&identity(item, "")));
    Ok(())
}
