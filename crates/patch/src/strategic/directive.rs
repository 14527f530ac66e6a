//! The `$`-keys of a strategic merge patch.

use std::collections::HashSet;

use serde_json::Value;

use super::{Mode, Tree};
use crate::error::PatchError;
use crate::show;

/// What a map or list element of the patch asks to be done with its counterpart.
pub(super) const MARKER: &str = "$patch";
/// Which keys of a map stay.
pub(super) const RETAIN: &str = "$retainKeys";
/// Which scalars leave a merging list.
pub(super) const DELETE_LIST: &str = "$deleteFromPrimitiveList";
/// In which order a merging list shall be.
pub(super) const ORDER_LIST: &str = "$setElementOrder";

/// Values of [`MARKER`].
#[derive(Copy, Clone, Eq, PartialEq)]
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

impl Directive {
    /// The directive of a map, if it has one.
    pub(super) fn in_map(map: &Tree) -> Result<Option<Self>, PatchError> {
        let Some(value) = map.get(MARKER) else { return Ok(None) };
        match value.as_str() {
            Some("merge") => Ok(Some(Self::Merge)),
            Some("replace") => Ok(Some(Self::Replace)),
            Some("delete") => Ok(Some(Self::Delete)),
            _ => Err(unknown(map)),
        }
    }

    /// Whether a list element asks for its counterpart to be deleted.
    pub(super) fn deletes(item: &Value) -> bool {
        item.get(MARKER).and_then(Value::as_str) == Some("delete")
    }
}

/// The complaint about a directive that is not known here.
pub(super) fn unknown(map: &Tree) -> PatchError {
    let kind = map.get(MARKER).map(show::go).unwrap_or_default();
    PatchError::Mismatch(format!("unknown patch type: {kind} in map: {}", show::go(&Value::Object(map.clone()))))
}

/// The complaint about an unusable `$setElementOrder`.
pub(super) fn bad_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".into())
}

fn bad_retain() -> PatchError {
    PatchError::Malformed("invalid patch format of retainKeys".into())
}

/// The field that `$directive/<field>` is about.
pub(super) fn parallel_field<'n>(name: &'n str, prefix: &str) -> Result<&'n str, PatchError> {
    match name.split_once('/') {
        Some((head, field)) if head == prefix && !field.is_empty() => Ok(field),
        _ if prefix == ORDER_LIST => Err(bad_order()),
        _ => Err(PatchError::Malformed("invalid patch format of primitive list".into())),
    }
}

/// Carries out `$retainKeys`: what it does not name leaves the original, and the patch may
/// set nothing else.
pub(super) fn retain_keys(original: &mut Tree, patch: &mut Tree, mode: Mode) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN) else { return Ok(()) };
    if mode == Mode::Combine {
        return match original.get(RETAIN) {
            Some(known) if *known != retained => Err(PatchError::Mismatch(format!(
                "{} and {} are not deep equal: this may happen when calculating the 3-way diff patch",
                show::go(known),
                show::go(&retained)
            ))),
            Some(_) => Ok(()),
            None => {
                original.insert(RETAIN.to_owned(), retained);
                Ok(())
            }
        };
    }
    let Value::Array(retained) = retained else { return Err(bad_retain()) };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let parallel = |name: &str| name.starts_with(DELETE_LIST) || name.starts_with(ORDER_LIST);
    if patch.iter().any(|(name, value)| !value.is_null() && !parallel(name) && !retained.contains(name.as_str())) {
        return Err(bad_retain());
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// A patch value that has no counterpart, made into a plain value: elements with a directive
/// go, and (when applied) nulls too. `None` when nothing is left.
pub(super) fn settle(mut value: Value, mode: Mode) -> Option<Value> {
    if mode == Mode::Apply {
        discard_nulls(&mut value);
    }
    without_directives(value)
}

/// Removes null fields at every depth.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, item| !item.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(MARKER) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(name, item)| Some((name, without_directives(item)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}
