//! Strategic merge patch: maps merge, lists merge by key where the schema says so, and
//! directives inside the patch say what else to do.

mod diff;
mod directive;
mod list;
mod order;

use atoll_schema::Typed;
use serde_json::{Map, Value};

use crate::error::PatchError;
use crate::show;
use directive::{DELETE_LIST, Directive, ORDER_LIST};

pub use diff::{create_strategic, three_way};

/// A JSON object being patched.
type Tree = Map<String, Value>;

/// Whether a patch is applied to an object, or combined with another patch.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Mode {
    /// Directives are carried out, nulls delete.
    Apply,
    /// Directives and nulls are kept, because the result is a patch again.
    Combine,
}

/// Applies a strategic merge patch to a copy of `target`.
///
/// Without a schema no list has a merge strategy, so all lists are replaced.
pub fn strategic(target: &Value, patch: &Value, schema: Option<Typed>) -> Result<Value, PatchError> {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            let mut patched = Value::Object(merge_map(target.clone(), patch.clone(), schema, Mode::Apply)?);
            // New list elements are taken as they are; a null field in them is no field.
            directive::discard_nulls(&mut patched);
            Ok(patched)
        }
        _ => Err(PatchError::Malformed("invalid JSON document".into())),
    }
}

/// What the schema says about patching one field.
struct Rules<'a> {
    /// Schema of the field, or of the elements if it is a list.
    inner: Option<Typed<'a>>,
    merge: bool,
    replace: bool,
    retain_keys: bool,
    /// Merge key of a list of maps; empty when there is none.
    key: &'a str,
}

impl<'a> Rules<'a> {
    fn of_map(schema: Option<Typed<'a>>, field: &str) -> Self {
        let field = schema.and_then(|schema| schema.property(field));
        Self::of(field, field)
    }

    fn of_list(schema: Option<Typed<'a>>, field: &str) -> Self {
        let field = schema.and_then(|schema| schema.property(field));
        Self::of(field, field.and_then(|field| field.items()))
    }

    fn of(field: Option<Typed<'a>>, inner: Option<Typed<'a>>) -> Self {
        let strategy = field.map(|field| field.field.patch_strategy).unwrap_or_default();
        Self {
            inner,
            merge: strategy.merge,
            replace: strategy.replace,
            retain_keys: strategy.retain_keys,
            key: field.and_then(|field| field.field.patch_merge_key.as_deref()).unwrap_or_default(),
        }
    }
}

fn merge_map(mut original: Tree, mut patch: Tree, schema: Option<Typed>, mode: Mode) -> Result<Tree, PatchError> {
    match Directive::in_map(&patch)? {
        Some(Directive::Replace) => {
            patch.remove(directive::MARKER);
            return Ok(patch);
        }
        Some(Directive::Delete) => return Ok(Tree::new()),
        Some(Directive::Merge) => return Err(directive::unknown(&patch)),
        None => {}
    }
    directive::retain_keys(&mut original, &mut patch, mode)?;
    merge_ordered(&mut original, &mut patch, schema, mode)?;
    for (name, value) in patch {
        merge_field(&mut original, name, value, schema, mode)?;
    }
    Ok(original)
}

/// Merges one field that has no `$setElementOrder`.
fn merge_field(
    original: &mut Tree,
    name: String,
    value: Value,
    schema: Option<Typed>,
    mode: Mode,
) -> Result<(), PatchError> {
    if name.starts_with(DELETE_LIST) {
        if mode == Mode::Combine {
            original.insert(name, value);
            return Ok(());
        }
        let field = directive::parallel_field(&name, DELETE_LIST)?;
        return delete_from_list(original, field, value);
    }
    if value.is_null() && mode == Mode::Apply {
        original.remove(&name);
        return Ok(());
    }
    let merged = match (original.remove(&name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let rules = Rules::of_map(schema, &name);
            Some(Value::Object(if rules.replace { new } else { merge_map(old, new, rules.inner, mode)? }))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            Some(Value::Array(list::merge(old, new, &Rules::of_list(schema, &name), mode)?))
        }
        (_, new) => directive::settle(new, mode),
    };
    if let Some(merged) = merged {
        original.insert(name, merged);
    }
    Ok(())
}

/// Carries out `$deleteFromPrimitiveList/<field>`.
fn delete_from_list(original: &mut Tree, field: &str, unwanted: Value) -> Result<(), PatchError> {
    match (original.get_mut(field), unwanted) {
        (_, Value::Null) => {
            original.remove(field);
        }
        (Some(Value::Array(list)), Value::Array(unwanted)) => list::delete_scalars(list, &unwanted)?,
        _ => {}
    }
    Ok(())
}

/// Merges every list that has a `$setElementOrder/<field>` and takes both out of the patch.
fn merge_ordered(original: &mut Tree, patch: &mut Tree, schema: Option<Typed>, mode: Mode) -> Result<(), PatchError> {
    let names: Vec<String> = patch.keys().filter(|name| name.starts_with(ORDER_LIST)).cloned().collect();
    for name in names {
        let Some(order) = patch.remove(&name) else { continue };
        if mode == Mode::Combine {
            match original.get(&name) {
                Some(known) if *known != order => return Err(directive::bad_order()),
                Some(_) => {}
                None => {
                    original.insert(name.clone(), order.clone());
                }
            }
        }
        let Value::Array(order) = order else { return Err(expected_list(&order)) };
        let field = directive::parallel_field(&name, ORDER_LIST)?;
        let old = take_list(original, field)?;
        let new = take_list(patch, field)?;
        if let Some(merged) = merge_in_order(old, new, &order, &Rules::of_list(schema, field), mode)? {
            original.insert(field.to_owned(), Value::Array(merged));
        }
    }
    Ok(())
}

fn merge_in_order(
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    order: &[Value],
    rules: &Rules,
    mode: Mode,
) -> Result<Option<Vec<Value>>, PatchError> {
    order::check_against(new.as_deref().unwrap_or_default(), order, rules.key)?;
    let shape = list::element_shape(&[old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default()]);
    let live_order =
        order::after_merge(old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default(), rules.key);
    let merged = match (old, new) {
        (None, None) => return Ok(None),
        (Some(old), None) => old,
        (None, Some(new)) => new.into_iter().filter_map(|item| directive::settle(item, Mode::Combine)).collect(),
        (Some(old), Some(new)) => list::merge(old, new, rules, mode)?,
    };
    order::arrange(merged, order, &live_order, rules.key, shape?).map(Some)
}

fn take_list(map: &mut Tree, field: &str) -> Result<Option<Vec<Value>>, PatchError> {
    match map.remove(field) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(expected_list(&other)),
    }
}

fn expected_list(found: &Value) -> PatchError {
    PatchError::Mismatch(format!("expected a []interface {{}}, but received a {}", show::go_type(found)))
}
