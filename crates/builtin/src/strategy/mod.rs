//! What the server does to built-in kinds: defaults, preparation of writes, validation.
//!
//! Everything is pure over JSON trees. A write goes through [`default`], one of the
//! `prepare_*` functions, [`validate_metadata`] (or [`validate_metadata_update`]) and the
//! kind's own `validate_*`; the latter judge only what is special to the kind.

mod access;
mod amount;
mod apps;
mod autoscaling;
mod batch;
mod classes;
mod core;
mod errors;
mod extension;
mod fields;
mod metadata;
mod name;
mod networking;
mod pod;
mod storage;
mod traits;
mod tree;

use atoll_meta::{FieldError, FieldPath};
use serde_json::Value;

pub use fields::{field, selectable};
pub use metadata::{validate_metadata, validate_metadata_update};
pub use pod::{classify as classify_pod, prepare_ephemeral, prepare_resize, validate_ephemeral, validate_resize};
pub use traits::{
    allows_create_on_update, allows_unconditional_update, default_grace, delete_default_policy, has_status, name_rule,
    tracks_generation,
};

pub(crate) use errors::Errors;
pub(crate) use tree::{at, count, entries, flag, has, int, items, text};

/// Which kind a rule is applied to, and when.
#[derive(Copy, Clone, Debug)]
pub struct Context<'a> {
    /// API group, empty for the core.
    pub group: &'a str,
    /// Version of the tree.
    pub version: &'a str,
    /// Kind of the tree.
    pub kind: &'a str,
    /// Time of the request, RFC 3339.
    pub now: &'a str,
}

/// How objects of a kind may be named.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum NameRule {
    /// DNS subdomain, at most 253 characters.
    Subdomain,
    /// DNS label, at most 63 characters.
    Label,
    /// DNS label that starts with a letter.
    Label1035,
    /// Anything that fits one segment of a path.
    PathSegment,
}

/// The rules of one kind; what a kind does not name stays as in [`PLAIN`].
pub(crate) struct Rules {
    default: fn(&Context, &mut Value),
    create: fn(&Context, &mut Value),
    update: fn(&Context, &mut Value, &Value),
    status: fn(&Context, &mut Value, &Value),
    validate: fn(&Value, &mut Errors),
    validate_update: fn(&Value, &Value, &mut Errors),
    validate_status: fn(&Value, &Value, &mut Errors),
}

/// A kind without rules of its own.
pub(crate) const PLAIN: Rules = Rules {
    default: |_, _| {},
    create: |_, _| {},
    update: |_, _, _| {},
    status: |_, _, _| {},
    validate: |_, _| {},
    validate_update: |_, _, _| {},
    validate_status: |_, _, _| {},
};

fn rules(group: &str, kind: &str) -> &'static Rules {
    match group {
        "" => core::rules(kind),
        "apps" => apps::rules(kind),
        "batch" => batch::rules(kind),
        "events.k8s.io" => &core::NEW_EVENT,
        "autoscaling" => autoscaling::rules(kind),
        "policy" => autoscaling::policy_rules(kind),
        "networking.k8s.io" => networking::rules(kind),
        "discovery.k8s.io" => networking::discovery_rules(kind),
        "storage.k8s.io" => storage::rules(kind),
        "rbac.authorization.k8s.io" => access::rbac_rules(kind),
        "certificates.k8s.io" => access::certificate_rules(kind),
        "coordination.k8s.io" => access::lease_rules(kind),
        "scheduling.k8s.io" => classes::scheduling_rules(kind),
        "node.k8s.io" => classes::node_rules(kind),
        "resource.k8s.io" => classes::resource_rules(kind),
        "admissionregistration.k8s.io" => extension::admission_rules(kind),
        "apiregistration.k8s.io" => extension::registration_rules(kind),
        "flowcontrol.apiserver.k8s.io" => extension::flow_rules(kind),
        _ => &PLAIN,
    }
}

/// Fills in what the user left out; running it again changes nothing.
pub fn default(ctx: &Context, object: &mut Value) {
    if !object.is_object() {
        return;
    }
    if has_status(ctx.group, ctx.kind) {
        tree::fill_map(object, "status");
    }
    (rules(ctx.group, ctx.kind).default)(ctx, object);
}

/// Prepares a new object: no status from outside, server-owned fields set.
pub fn prepare_create(ctx: &Context, object: &mut Value) {
    // A node reports its own status together with its registration.
    if has_status(ctx.group, ctx.kind) && (ctx.group, ctx.kind) != ("", "Node") {
        tree::set(object, "status", serde_json::Map::new());
    }
    (rules(ctx.group, ctx.kind).create)(ctx, object);
    default(ctx, object);
}

/// Prepares an update of the main resource: the status stays what it was.
pub fn prepare_update(ctx: &Context, new: &mut Value, old: &Value) {
    if has_status(ctx.group, ctx.kind) {
        tree::keep(new, old, "status");
    }
    (rules(ctx.group, ctx.kind).update)(ctx, new, old);
}

/// Prepares an update of `/status`: everything but the status and some metadata stays.
pub fn prepare_status(ctx: &Context, new: &mut Value, old: &Value) {
    tree::keep(new, old, "spec");
    if has(old, "metadata.deletionTimestamp") {
        tree::keep(new, old, "metadata.deletionTimestamp");
        tree::keep(new, old, "metadata.deletionGracePeriodSeconds");
    }
    (rules(ctx.group, ctx.kind).status)(ctx, new, old);
}

/// Judges a new object, metadata aside.
pub fn validate_create(ctx: &Context, object: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    finalizers(ctx, object, &mut out);
    (rules(ctx.group, ctx.kind).validate)(object, &mut out);
    out.0
}

/// Judges a changed object, metadata aside.
pub fn validate_update(ctx: &Context, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    finalizers(ctx, new, &mut out);
    (rules(ctx.group, ctx.kind).validate_update)(new, old, &mut out);
    out.0
}

/// Most kinds take only well-known finalizers and ones with a domain.
fn finalizers(ctx: &Context, object: &Value, out: &mut Errors) {
    let free = matches!(
        ctx.group,
        "policy"
            | "admissionregistration.k8s.io"
            | "coordination.k8s.io"
            | "node.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io"
    );
    if free {
        return;
    }
    let path = FieldPath::new("metadata.finalizers");
    for (index, finalizer) in items(object, "metadata.finalizers").iter().enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            out.invalid(&path.index(index), finalizer, detail);
        }
    }
}

/// Judges a changed status, metadata aside.
pub fn validate_status(ctx: &Context, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    (rules(ctx.group, ctx.kind).validate_status)(new, old, &mut out);
    out.0
}

#[cfg(test)]
mod tests;
