//! Server-side apply.

use atoll_meta::split_api_version;
use serde_json::{Map, Value};

use super::conflict::{ApplyError, Conflict};
use super::entry::{self, Identity, Operation};
use super::owners::{Owners, untracked};
use super::update::{managed_fields, put};
use super::{Request, last_applied};
use crate::fields::{FieldSet, same};
use crate::typed::{Emptied, Kind, compare, field_set, merge, remove, validate, with_named_fields};

/// Who owns what was there before the first apply to an untracked object.
const BEFORE: &str = "before-first-apply";

/// Applies a configuration: the live object with all its fields, without those the manager
/// applied before and nobody wants any more, and with up-to-date `managedFields`.
///
/// Fails with conflicts if fields of others would change, unless `force` takes them over.
pub fn apply(request: &Request, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, ApplyError> {
    check(request, live, config)?;
    let recorded = live.and_then(managed_fields).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut owners = Owners(
        entry::decode(recorded)
            .map_err(|error| ApplyError::Invalid(format!("failed to decode managed fields: {error}")))?,
    );
    if let (true, Some(live)) = (owners.is_empty(), live) {
        owners.record(compare(None, live, request.kind()).without(&request.reset_fields()), BEFORE, request);
    }
    owners.prepare(request);
    let (mut object, owners) = match attempt(request, live, config, owners.clone(), force) {
        Err(ApplyError::Conflicts(conflicts)) if request.manager == last_applied::MANAGER => {
            let conflicts = last_applied::without_allowed(conflicts, live, request);
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflicts(conflicts));
            }
            attempt(request, live, config, owners, true)?
        }
        other => other?,
    };
    if request.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    put(&mut object, entry::encode(owners.0));
    Ok(object)
}

/// Refuses what is not a configuration for this endpoint or does not fit the schema.
fn check(request: &Request, live: Option<&Value>, config: &Value) -> Result<(), ApplyError> {
    let text = |object: &Value, name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text(config, "apiVersion"), text(config, "kind"));
    let (group, version) = split_api_version(&api_version);
    let shown = format!("{group}/{version}, Kind={kind}");
    if api_version != request.api_version
        || live.is_some_and(|live| live.get("kind").is_some() && text(live, "kind") != kind)
    {
        return Err(ApplyError::BadRequest(format!("invalid object type: {shown}")));
    }
    let meta = config.get("metadata");
    if meta.and_then(|meta| meta.get("managedFields")).is_some_and(|list| !list.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    validate(config, request.kind()).map_err(|error| {
        let meta = |name: &str| meta.map(|meta| text(meta, name)).unwrap_or_default();
        let name = format!("{}/{}; {shown}", meta("namespace"), meta("name"));
        ApplyError::Invalid(format!("failed to create typed patch object ({name}): {error}"))
    })
}

/// One try: the new object and its owners.
fn attempt(
    request: &Request,
    live: Option<&Value>,
    config: &Value,
    mut owners: Owners,
    force: bool,
) -> Result<(Value, Owners), ApplyError> {
    let kind = request.kind();
    let own = Identity {
        manager: request.manager_name(),
        operation: Operation::Apply,
        api_version: "",
        subresource: request.subresource,
    };
    let merged =
        merge(live, config, kind).map_err(|error| ApplyError::Invalid(format!("failed to merge config: {error}")))?;
    let reset = request.reset_fields();
    let set = field_set(config, kind).recursive_difference(&reset);
    let (at, last) = claim(&mut owners, &own, set, request);
    let pruned = prune(merged, last, &owners, kind);
    let diff = compare(live, &pruned.compared, kind).without(&reset);
    if !force {
        let conflicts = conflicts(&owners, at, &diff.modified.clone().union(diff.added.clone()), request);
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    let set = std::mem::take(&mut owners.0[at].set).difference(untracked());
    owners.0[at].change(set);
    // An apply that changes nothing leaves no time behind.
    let unchanged = live.is_some_and(|live| same(live, &pruned.compared));
    if !unchanged {
        owners.0[at].touch(request.now);
    }
    owners.disown(&diff, Some(&own), request);
    Ok((pruned.stored.unwrap_or(pruned.compared), owners))
}

/// Makes the configuration's fields the manager's; returns its place and its fields so far.
fn claim(owners: &mut Owners, own: &Identity, set: FieldSet, request: &Request) -> (usize, FieldSet) {
    match owners.find(own) {
        Some(at) => {
            let entry = &mut owners.0[at];
            let last = std::mem::take(&mut entry.set);
            let comparable = request.comparable(&entry.api_version);
            request.api_version.clone_into(&mut entry.api_version);
            entry.change(set);
            (at, if comparable { last } else { FieldSet::new() })
        }
        None => {
            owners.0.push(own.entry(request.api_version, set));
            (owners.0.len() - 1, FieldSet::new())
        }
    }
}

/// The merged object without what nobody wants any more.
struct Pruned {
    /// With nulls where maps and lists became empty, which others may own as such.
    compared: Value,
    /// As it is stored.
    stored: Option<Value>,
}

/// Removes what the manager applied last time, but not this time, and nobody else owns.
fn prune(merged: Value, last: FieldSet, owners: &Owners, kind: Kind) -> Pruned {
    if last.is_empty() {
        return Pruned { compared: merged, stored: None };
    }
    let named = |set: FieldSet| with_named_fields(set, kind);
    let without = |fields: &FieldSet, emptied| {
        remove(&merged, fields, kind, emptied).unwrap_or_else(|| Value::Object(Map::new()))
    };
    let last = named(last);
    let all = named(field_set(&merged, kind));
    // Everything of the last time goes, then what is still owned comes back ...
    let bare = without(&last, Emptied::Null);
    let owned = owners.0.iter().fold(FieldSet::new(), |owned, entry| owned.union(entry.set.clone()));
    let wanted = named(field_set(&bare, kind)).union(named(owned));
    let pruned = without(&all.clone().difference(&wanted), Emptied::Null);
    // ... and then whatever else went along with it, but was never applied.
    let gone = all.difference(&named(field_set(&pruned, kind))).intersection(&last);
    if gone.is_empty() {
        return Pruned { compared: merged, stored: None };
    }
    Pruned { compared: without(&gone, Emptied::Null), stored: Some(without(&gone, Emptied::Gone)) }
}

fn conflicts(owners: &Owners, own: usize, changed: &FieldSet, request: &Request) -> Vec<Conflict> {
    let others = owners.0.iter().enumerate().filter(|(at, entry)| *at != own && request.comparable(&entry.api_version));
    let mut found: Vec<Conflict> = others
        .flat_map(|(_, entry)| {
            let paths = entry.set.intersection(changed).paths();
            paths.into_iter().map(|path| Conflict::new(entry, path))
        })
        .collect();
    // Owners in a fixed order; the sort is stable, so paths stay as they are.
    found.sort_by_cached_key(Conflict::owner_text);
    found
}
