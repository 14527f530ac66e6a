//! Making strategic merge patches out of two or three versions of an object.

use std::collections::{BTreeMap, HashSet};

use atoll_schema::Typed;
use serde_json::Value;

use super::directive::{DELETE_LIST, MARKER, ORDER_LIST, RETAIN};
use super::list::{self, Shape};
use super::{Mode, Rules, Tree, merge_map, order};
use crate::error::PatchError;
use crate::show;

/// Which differences a patch shall hold.
#[derive(Copy, Clone)]
struct Wanted {
    changes: bool,
    deletions: bool,
}

/// The patch that makes `modified` out of `original`.
pub fn create_strategic(original: &Value, modified: &Value, schema: Option<Typed>) -> Result<Value, PatchError> {
    let wanted = Wanted { changes: true, deletions: true };
    diff_maps(object(original)?, object(modified)?, schema, wanted, false).map(Value::Object)
}

/// The patch that takes `current` to `modified`, deleting only what `original` had: what
/// client-side apply sends, with `original` being what was applied last.
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: Option<Typed>,
) -> Result<Value, PatchError> {
    let modified = object(modified)?;
    let changes = Wanted { changes: true, deletions: false };
    let deletions = Wanted { changes: false, deletions: true };
    let delta = diff_maps(object(current)?, modified, schema, changes, false)?;
    let gone = diff_maps(object(original)?, modified, schema, deletions, false)?;
    merge_map(gone, delta, schema, Mode::Combine).map(Value::Object)
}

fn object(value: &Value) -> Result<&Tree, PatchError> {
    value.as_object().ok_or_else(|| PatchError::Malformed("invalid JSON document".into()))
}

fn diff_maps(
    original: &Tree,
    modified: &Tree,
    schema: Option<Typed>,
    wanted: Wanted,
    retain: bool,
) -> Result<Tree, PatchError> {
    let mut patch = Tree::new();
    for (name, new) in modified {
        match (original.get(name), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                diff_map_field(name, old, new, &mut patch, schema, wanted)?;
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                diff_list_field(name, old, new, &mut patch, schema, wanted)?;
            }
            (Some(old), new) if old == new => {}
            (_, new) if wanted.changes => {
                patch.insert(name.clone(), new.clone());
            }
            _ => {}
        }
    }
    let gone = || original.iter().filter(|(name, _)| !modified.contains_key(*name));
    if wanted.deletions {
        patch.extend(gone().map(|(name, _)| (name.clone(), Value::Null)));
    }
    if retain {
        let mut kept: Vec<&String> =
            modified.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect();
        if !kept.is_empty() && (!patch.is_empty() || gone().any(|(_, value)| !value.is_null())) {
            kept.sort();
            patch.insert(RETAIN.to_owned(), kept.into_iter().map(|name| Value::from(name.as_str())).collect());
        }
    }
    Ok(patch)
}

fn diff_map_field(
    name: &str,
    old: &Tree,
    new: &Tree,
    patch: &mut Tree,
    schema: Option<Typed>,
    wanted: Wanted,
) -> Result<(), PatchError> {
    let rules = Rules::of_map(schema, name);
    if rules.replace {
        if wanted.changes && old != new {
            patch.insert(name.to_owned(), Value::Object(new.clone()));
        }
        return Ok(());
    }
    let inner = diff_maps(old, new, rules.inner, wanted, rules.retain_keys)?;
    if !inner.is_empty() {
        patch.insert(name.to_owned(), Value::Object(inner));
    }
    Ok(())
}

fn diff_list_field(
    name: &str,
    old: &[Value],
    new: &[Value],
    patch: &mut Tree,
    schema: Option<Typed>,
    wanted: Wanted,
) -> Result<(), PatchError> {
    let rules = Rules::of_list(schema, name);
    if !rules.merge || old.is_empty() {
        if wanted.changes && old != new {
            patch.insert(name.to_owned(), Value::Array(new.to_vec()));
        }
        return Ok(());
    }
    let lists = match list::element_shape(&[old, new])? {
        Shape::Maps => diff_lists_of_maps(old, new, &rules, wanted)?,
        Shape::Scalars => diff_lists_of_scalars(old, new, wanted),
    };
    let parallel = [(name.to_owned(), lists.items), (format!("{DELETE_LIST}/{name}"), lists.deleted)];
    let order = (format!("{ORDER_LIST}/{name}"), lists.order);
    for (name, list) in parallel.into_iter().chain([order]) {
        if !list.is_empty() {
            patch.insert(name, Value::Array(list));
        }
    }
    Ok(())
}

/// The up to three lists that one list's difference takes in a patch.
#[derive(Default)]
struct Lists {
    items: Vec<Value>,
    deleted: Vec<Value>,
    order: Vec<Value>,
}

fn diff_lists_of_scalars(old: &[Value], new: &[Value], wanted: Wanted) -> Lists {
    let ids = |items: &[Value]| -> HashSet<String> { items.iter().map(|item| list::identity(item, "")).collect() };
    let (had, has) = (ids(old), ids(new));
    let unique = |items: &[Value], known: &HashSet<String>| -> Vec<Value> {
        let mut seen = HashSet::new();
        let fresh = |item: &&Value| {
            let id = list::identity(item, "");
            !known.contains(&id) && seen.insert(id)
        };
        items.iter().filter(fresh).cloned().collect()
    };
    let items = if wanted.changes { unique(new, &had) } else { Vec::new() };
    let mut deleted = if wanted.deletions { unique(old, &has) } else { Vec::new() };
    deleted.sort_by_cached_key(show::go);
    let ordered = (wanted.deletions && !deleted.is_empty()) || (wanted.changes && old != new);
    let order = if ordered { new.to_vec() } else { Vec::new() };
    Lists { items, deleted, order }
}

fn diff_lists_of_maps(old: &[Value], new: &[Value], rules: &Rules, wanted: Wanted) -> Result<Lists, PatchError> {
    let key = rules.key;
    list::require_keys(old, key)?;
    list::require_keys(new, key)?;
    // The text form decides whether two keys are the same, as it does in the original.
    let text = |item: &Value| show::go(&item[key]);
    let before: BTreeMap<String, &Value> = old.iter().map(|item| (text(item), item)).collect();
    let after: BTreeMap<String, &Value> = new.iter().map(|item| (text(item), item)).collect();
    let mut items = Vec::new();
    for (id, item) in &after {
        match (before.get(id).and_then(|old| old.as_object()), item.as_object()) {
            (Some(old), Some(new)) => {
                let mut inner = diff_maps(old, new, rules.inner, wanted, rules.retain_keys)?;
                if !inner.is_empty() {
                    inner.insert(key.to_owned(), item[key].clone());
                    items.push(Value::Object(inner));
                }
            }
            _ if wanted.changes => items.push((*item).clone()),
            _ => {}
        }
    }
    let mut items = order::sort_like(items, new, key);
    if wanted.deletions {
        let gone = before.iter().filter(|(id, _)| !after.contains_key(*id));
        items.extend(gone.map(|(_, item)| deletion(key, &item[key])));
    }
    let same_order = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old[key] == new[key]);
    let ordered = (wanted.changes && (!items.is_empty() || !same_order)) || (wanted.deletions && !items.is_empty());
    let order = if ordered {
        new.iter().map(|item| Tree::from_iter([(key.to_owned(), item[key].clone())]).into()).collect()
    } else {
        Vec::new()
    };
    Ok(Lists { items, order, ..Lists::default() })
}

fn deletion(key: &str, value: &Value) -> Value {
    Value::Object(Tree::from_iter([(key.to_owned(), value.clone()), (MARKER.to_owned(), "delete".into())]))
}
