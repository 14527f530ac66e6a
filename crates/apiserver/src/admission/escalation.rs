//! Nobody gives away more rights than they have.

use atoll_meta::{Key, Status};
use serde_json::{Value, json};

use super::{Operation, Review};
use crate::auth::rbac::{GROUP, Rule};
use crate::auth::{Attributes, authorize, cover};
use crate::request::Verb;

/// Refuses roles and bindings that would grant what the caller does not hold.
pub async fn check(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    let kind = &review.call.kind;
    let writes = matches!(review.operation, Operation::Create | Operation::Update);
    if *kind.group != *GROUP || !writes || review.call.identity.is_master() {
        return Ok(());
    }
    if review.old.is_some_and(|old| only_collectable_changed(old, object)) {
        return Ok(());
    }
    match &*kind.plural {
        "roles" | "clusterroles" => role(review, object).await,
        "rolebindings" | "clusterrolebindings" => binding(review, object).await,
        _ => Ok(()),
    }
}

async fn role(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    if may(review, "escalate", &review.call.kind.plural, &review.name).await {
        return Ok(());
    }
    confirm(review, &rules_of(object)).await?;
    let aggregated = |role: &Value| role["aggregationRule"].is_object();
    if aggregated(object) || review.old.is_some_and(aggregated) {
        // It can gather anything, so only who has everything may set it.
        let everything = json!([
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]);
        let everything: Vec<Rule> = serde_json::from_value(everything).map_err(Status::internal)?;
        if confirm(review, &everything).await.is_err() {
            return Err(forbidden(review, "must have cluster-admin privileges to use the aggregationRule"));
        }
    }
    Ok(())
}

async fn binding(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object["roleRef"][field].as_str().unwrap_or_default();
    let (plural, namespace) = match text("kind") {
        "Role" => ("roles", review.call.target.namespace.as_str()),
        _ => ("clusterroles", ""),
    };
    if may(review, "bind", plural, text("name")).await {
        return Ok(());
    }
    let key = Key::new(GROUP, plural, namespace, text("name"));
    let entry = review.call.hub.read(&review.call.instance, key.as_str()).await?;
    let role = entry.ok_or_else(|| Status::not_found(GROUP, &review.call.kind.plural, text("name")))?;
    confirm(review, &rules_of(&role.object.tree(role.modified))).await
}

fn rules_of(role: &Value) -> Vec<Rule> {
    serde_json::from_value(role["rules"].clone()).unwrap_or_default()
}

async fn may(review: &Review<'_>, word: &str, resource: &str, name: &str) -> bool {
    let call = review.call;
    let asked = Attributes {
        verb: Verb::Get,
        verb_word: Some(word),
        group: GROUP,
        version: "v1",
        resource,
        subresource: "",
        namespace: if call.kind.namespaced { &call.target.namespace } else { "" },
        name,
        url: None,
    };
    authorize(&call.hub, &call.instance, &call.identity, &asked).await.is_ok()
}

async fn confirm(review: &Review<'_>, wanted: &[Rule]) -> Result<(), Status> {
    let call = review.call;
    let roles = call.instance.roles.get(&call.hub, &call.instance).await?;
    let namespace = if call.kind.namespaced { call.target.namespace.as_str() } else { "" };
    let owned: Vec<&Rule> = roles.rules(&call.identity, namespace).collect();
    let missing = cover::missing(&owned, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = call.identity.groups.iter().map(|group| format!("{group:?}")).collect();
    let missing: Vec<String> = missing.iter().map(cover::describe).collect();
    Err(forbidden(
        review,
        &format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            call.identity.user,
            groups.join(" "),
            missing.join("\n")
        ),
    ))
}

fn forbidden(review: &Review<'_>, why: &str) -> Status {
    Status::forbidden(GROUP, &review.call.kind.plural, &review.name, why)
}

/// Owners and finalizers change when an object is collected; that grants nothing.
fn only_collectable_changed(old: &Value, new: &Value) -> bool {
    let rest = |tree: &Value| {
        let mut tree = tree.clone();
        if let Some(meta) = tree["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                meta.remove(field);
            }
        }
        tree
    };
    rest(old) == rest(new)
}
