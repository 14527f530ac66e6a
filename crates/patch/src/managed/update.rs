//! Bookkeeping of create, update and patch.

use serde_json::Value;

use super::Request;
use super::entry;
use super::owners::Owners;
use crate::typed::compare;

/// Recomputes `managedFields` in `new` after a create (`live` is `None`), update or patch.
///
/// Says whether ownership changed; if not, the entries of `live` are kept with their times.
/// Entries a client sends along replace those of `live`, unless they are malformed or come
/// through a subresource; an empty list forgets all ownership.
pub fn update(request: &Request, live: Option<&Value>, new: &mut Value) -> bool {
    let Some(sent) = new.get_mut("metadata").and_then(Value::as_object_mut).map(|meta| meta.remove("managedFields"))
    else {
        return false;
    };
    let known = live.and_then(managed_fields);
    let exists = live
        .is_some_and(|live| live.pointer("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty()));
    let source = Source::choose(sent, known, request.subresource);
    if exists && source.is_empty() {
        // Tracking was switched off for this object.
        return known.is_some();
    }
    let diff = compare(live, new, request.kind());
    let diff = if request.reset.is_empty() { diff } else { diff.without(&request.reset_fields()) };
    if diff.is_same() && source.all_served(request) {
        let changed = source.is_other();
        put(new, source.into_list());
        return changed;
    }
    let mut owners = Owners(entry::decode(source.into_entries()).unwrap_or_default());
    owners.prepare(request);
    owners.record(diff, request.manager_name(), request);
    owners.cap();
    let list = entry::encode(owners.0);
    let changed = list.as_ref() != known;
    put(new, list);
    changed
}

/// The entries of an object.
pub(super) fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
}

/// Writes the entries into an object's metadata.
pub(super) fn put(object: &mut Value, list: Option<Value>) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match list {
        Some(list) => meta.insert("managedFields".to_owned(), list),
        None => meta.remove("managedFields"),
    };
}

/// Whose entries count: those the client sent, or those of the live object.
enum Source<'v> {
    None,
    /// What the client sent differs from what is known.
    Sent(Value),
    /// What the client sent is what is known.
    Returned(Value),
    Live(&'v Value),
}

impl<'v> Source<'v> {
    fn choose(sent: Option<Value>, known: Option<&'v Value>, subresource: &str) -> Self {
        let live = known.map_or(Self::None, Self::Live);
        let Some(sent) = sent.filter(|sent| !sent.is_null()) else { return live };
        let reset = entry::is_reset(&sent);
        if known == Some(&sent) && !reset {
            return Self::Returned(sent);
        }
        if !subresource.is_empty() {
            return live;
        }
        if reset {
            return Self::None;
        }
        let valid = |list: &Value| {
            entry::decode(list.as_array().cloned().unwrap_or_default()).is_ok_and(|list| !list.is_empty())
        };
        if valid(&sent) { Self::Sent(sent) } else { live }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    fn is_other(&self) -> bool {
        matches!(self, Self::Sent(_))
    }

    fn list(&self) -> &[Value] {
        let list = match self {
            Self::None => None,
            Self::Sent(list) | Self::Returned(list) => list.as_array(),
            Self::Live(list) => list.as_array(),
        };
        list.map(Vec::as_slice).unwrap_or_default()
    }

    fn all_served(&self, request: &Request) -> bool {
        self.list().iter().all(|entry| {
            let version = entry.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            version == request.api_version || (request.versions)(version)
        })
    }

    fn into_list(self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Sent(list) | Self::Returned(list) => Some(list),
            Self::Live(list) => Some(list.clone()),
        }
    }

    fn into_entries(self) -> Vec<Value> {
        match self.into_list() {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        }
    }
}
