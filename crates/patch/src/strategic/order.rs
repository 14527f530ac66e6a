//! The order of merged lists: what the patch names comes in the patch's order, what only the
//! live object has keeps its place among them as well as possible.

use std::collections::HashMap;

use serde_json::Value;

use super::directive::{self, Directive};
use super::list::{self, Shape, identity};
use crate::error::PatchError;
use crate::show;

/// Where each identity stands first.
struct Places(HashMap<String, usize>);

impl Places {
    fn of(items: &[Value], key: &str) -> Self {
        let mut places = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            places.entry(identity(item, key)).or_insert(at);
        }
        Self(places)
    }

    fn get(&self, item: &Value, key: &str) -> Option<usize> {
        self.0.get(&identity(item, key)).copied()
    }
}

/// Orders `merged`: elements in `wanted` in that order, others by `live`, interleaved by `live`.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: &str,
    shape: Shape,
) -> Result<Vec<Value>, PatchError> {
    if shape == Shape::Maps {
        for items in [&merged, wanted, live] {
            list::require_keys(items, key)?;
        }
    }
    let wanted = Places::of(wanted, key);
    let live = Places::of(live, key);
    let (named, rest): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(|item| wanted.get(item, key).is_some());
    let named = sorted(named, &wanted, key);
    let rest = sorted(rest, &live, key);
    Ok(interleave(rest, named, &live, key))
}

/// The live order that a merge leaves behind: new elements move into the places of deleted ones.
pub(super) fn after_merge(live: &[Value], patch: &[Value], key: &str) -> Vec<Value> {
    let deleted = Places::of(&patch.iter().filter(|item| Directive::deletes(item)).cloned().collect::<Vec<_>>(), key);
    let known = Places::of(live, key);
    let kept = live.iter().filter(|item| deleted.get(item, key).is_none());
    let plain = patch.iter().filter(|item| item.get(directive::MARKER).is_none());
    let added = plain.filter(|item| known.get(item, key).is_none());
    kept.chain(added).take(live.len()).cloned().collect()
}

/// Sorts by place; elements that ask for deletion go last.
pub(super) fn sort_like(items: Vec<Value>, wanted: &[Value], key: &str) -> Vec<Value> {
    sorted(items, &Places::of(wanted, key), key)
}

fn sorted(items: Vec<Value>, places: &Places, key: &str) -> Vec<Value> {
    let (deletions, mut items): (Vec<Value>, Vec<Value>) = items.into_iter().partition(Directive::deletes);
    items.sort_by_cached_key(|item| places.get(item, key).unwrap_or(usize::MAX));
    items.extend(deletions);
    items
}

/// Merges two ordered lists; a live element comes first only if it stood before in the live list.
fn interleave(rest: Vec<Value>, named: Vec<Value>, live: &Places, key: &str) -> Vec<Value> {
    let mut out = Vec::with_capacity(rest.len() + named.len());
    let mut rest = rest.into_iter().peekable();
    let mut named = named.into_iter().peekable();
    while let (Some(left), Some(right)) = (rest.peek(), named.peek()) {
        let before = match (live.get(left, key), live.get(right, key)) {
            (Some(left), Some(right)) => left < right,
            _ => false,
        };
        out.extend(if before { rest.next() } else { named.next() });
    }
    out.extend(rest);
    out.extend(named);
    out
}

/// Fails unless the elements of the patch (other than deletions) appear in `order` in the same order.
pub(super) fn check_against(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter().peekable();
    for item in patch.iter().filter(|item| !Directive::deletes(item)) {
        // Elements with another directive have no place of their own.
        let special = item.get(directive::MARKER).is_some();
        if !key.is_empty() && !special {
            list::require_keys(std::slice::from_ref(item), key)?;
        }
        let id = identity(item, key);
        let found =
            if special { wanted.peek().is_some() } else { wanted.any(|candidate| identity(candidate, key) == id) };
        if !found {
            return Err(PatchError::Mismatch(format!(
                "The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                show::go_list(patch),
                directive::ORDER_LIST,
                show::go_list(order)
            )));
        }
    }
    Ok(())
}
