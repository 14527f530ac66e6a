//! ResourceQuotas: what is made is charged to its namespace, in the transaction that makes it.
//!
//! `usage` says what an object costs, `scope` which objects a quota is about.

mod scope;
mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_meta::{Key, Object, Quantity, Status};
use atoll_store::{Entry, Expect, Op, Snapshot, StoreError, Write};
use serde_json::{Map, Value, json};

use super::pod::{Amounts, add, amounts};
use super::{Operation, Review};
use crate::hub::Hub;
use crate::instance::{Instance, store_status};

/// Charges a write to the quotas of its namespace; the returned writes are the charge.
pub async fn charge(review: &Review<'_>, object: &mut Value) -> Result<Vec<Write>, Status> {
    let call = review.call;
    if review.is("", "resourcequotas") && matches!(review.operation, Operation::Create | Operation::Update) {
        return refresh(review, object).await.map(|()| Vec::new());
    }
    if !call.kind.namespaced || !charges(review) {
        return Ok(Vec::new());
    }
    if !any(&call.hub.snapshot(&call.instance).await?, &call.target.namespace) {
        return Ok(Vec::new());
    }
    // Requests of this replica take turns, so that they do not spoil each other's charge.
    call.hold(&call.instance.charging).await;
    let snapshot = call.hub.snapshot(&call.instance).await?;
    let prefix = Key::prefix("", "resourcequotas", &call.target.namespace);
    let mut writes = Vec::new();
    for (key, entry) in snapshot.range(&prefix, None) {
        if let Some(quota) = charge_one(review, object, entry, &snapshot)? {
            let quota = Arc::new(Object::encode(&quota).map_err(Status::internal)?);
            writes.push(Write { key: key.clone(), expect: Expect::At(entry.modified), op: Op::Put(quota) });
        }
    }
    Ok(writes)
}

fn any(snapshot: &Snapshot, namespace: &str) -> bool {
    snapshot.range(&Key::prefix("", "resourcequotas", namespace), None).next().is_some()
}

/// Which writes can cost something.
fn charges(review: &Review<'_>) -> bool {
    match (review.operation, review.subresource) {
        (Operation::Create, "") => true,
        (Operation::Update, "") => review.is("", "services") || review.is("", "persistentvolumeclaims"),
        (Operation::Update, "resize") => *review.call.kind.plural == *"pods",
        _ => false,
    }
}

/// A quota shows what it allows, and what is used of it, from its first moment.
async fn refresh(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    let changed = review.old.is_none_or(|old| old["spec"] != object["spec"]);
    if !review.subresource.is_empty() || !changed {
        return Ok(());
    }
    let snapshot = review.call.hub.snapshot(&review.call.instance).await?;
    let mut status = status_of(object, &snapshot, &review.call.target.namespace, review.call.now);
    if review.operation == Operation::Create {
        // A quota of quotas counts itself.
        let own = usage::of("resourcequotas", "", object, review.call.now);
        let mut used = amounts(&status["used"]);
        add(&mut used, &masked(&own, &amounts(&object["spec"]["hard"])));
        status["used"] = written(&used);
    }
    object["status"] = status;
    Ok(())
}

/// The quota after the charge; `None` if it is not about this object.
fn charge_one(
    review: &Review<'_>,
    object: &Value,
    entry: &Entry,
    snapshot: &Snapshot,
) -> Result<Option<Value>, Status> {
    let call = review.call;
    let (plural, group) = (&*call.kind.plural, &*call.kind.group);
    let mut quota = entry.object.tree(entry.modified);
    let name = quota["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let hard = amounts(&quota["status"]["hard"]);
    let concerned: BTreeSet<&String> =
        hard.keys().filter(|resource| usage::can_cost(plural, group, resource)).collect();
    if concerned.is_empty() || !scope::covers(&quota, plural, group, object) {
        return Ok(None);
    }
    let refuse = |why: String| Status::forbidden(group, plural, &review.name, why);
    if (plural, group) == ("pods", "")
        && let Some(why) = usage::unspecified(object, &concerned)
    {
        return Err(refuse(format!("failed quota: {name}: {why}")));
    }
    let mut used = amounts(&quota["status"]["used"]);
    let unknown: Vec<&str> =
        concerned.iter().filter(|resource| !used.contains_key(**resource)).map(|resource| resource.as_str()).collect();
    if !unknown.is_empty() {
        return Err(refuse(format!("status unknown for quota: {name}, resources: {}", unknown.join(","))));
    }
    let mut cost = usage::of(plural, group, object, call.now);
    if let Some(old) = review.old {
        let before = usage::of(plural, group, old, call.now);
        for (resource, amount) in &mut cost {
            let less = before.get(resource).copied().unwrap_or_default();
            *amount = amount.checked_sub(less).filter(|rest| !rest.is_negative()).unwrap_or(Quantity::ZERO);
        }
    }
    let mut cost = masked(&cost, &hard);
    cost.retain(|_, amount| !amount.is_zero());
    if cost.is_empty() {
        return Ok(None);
    }
    if !exceeded(&used, &cost, &hard).is_empty() {
        // What was deleted since the last count no longer counts.
        used = amounts(&status_of(&quota, snapshot, &call.target.namespace, call.now)["used"]);
    }
    let over = exceeded(&used, &cost, &hard);
    if !over.is_empty() {
        let show = |amounts: &Amounts| -> String {
            over.iter()
                .map(|resource| format!("{resource}={}", amounts.get(resource).copied().unwrap_or_default()))
                .collect::<Vec<_>>()
                .join(",")
        };
        return Err(refuse(format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            show(&cost),
            show(&used),
            show(&hard)
        )));
    }
    add(&mut used, &cost);
    quota["status"]["used"] = written(&used);
    Ok(Some(quota))
}

fn exceeded(used: &Amounts, cost: &Amounts, hard: &Amounts) -> Vec<String> {
    let over = |(resource, amount): &(&String, &Quantity)| {
        let sum = used.get(*resource).copied().unwrap_or_default().checked_add(**amount);
        sum.is_none_or(|sum| hard.get(*resource).is_some_and(|most| sum > *most))
    };
    cost.iter().filter(over).map(|(resource, _)| resource.clone()).collect()
}

fn masked(amounts: &Amounts, mask: &Amounts) -> Amounts {
    amounts.iter().filter(|(name, _)| mask.contains_key(*name)).map(|(name, amount)| (name.clone(), *amount)).collect()
}

fn written(amounts: &Amounts) -> Value {
    let map: Map<String, Value> =
        amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect();
    Value::Object(map)
}

/// The status of a quota, counted anew.
fn status_of(quota: &Value, snapshot: &Snapshot, namespace: &str, now: jiff::Timestamp) -> Value {
    let hard = amounts(&quota["spec"]["hard"]);
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Quantity::ZERO)).collect();
    for (plural, group) in usage::sources(hard.keys()) {
        for (_, entry) in snapshot.range(&Key::prefix(&group, &plural, namespace), None) {
            let object = entry.object.tree(entry.modified);
            if scope::covers(quota, &plural, &group, &object) {
                add(&mut used, &masked(&usage::of(&plural, &group, &object, now), &hard));
            }
        }
    }
    json!({"hard": quota["spec"]["hard"], "used": written(&used)})
}

/// Counts the usage of all quotas of a namespace anew, for instance after something was deleted.
pub async fn recount(hub: &Hub, instance: &Instance, namespace: &str) -> Result<(), Status> {
    let snapshot = hub.snapshot(instance).await?;
    for (key, entry) in snapshot.range(&Key::prefix("", "resourcequotas", namespace), None) {
        let mut quota = entry.object.tree(entry.modified);
        let status = status_of(&quota, &snapshot, namespace, hub.now());
        let same = |field: &str| amounts(&quota["status"][field]) == amounts(&status[field]);
        if same("hard") && same("used") {
            continue;
        }
        quota["status"] = status;
        let object = Arc::new(Object::encode(&quota).map_err(Status::internal)?);
        let write = Write { key: key.clone(), expect: Expect::At(entry.modified), op: Op::Put(object) };
        match hub.engine.commit(instance.id, vec![write]).await {
            // Charged meanwhile: the change that did so is followed by another count.
            Ok(_) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(store_status(&error)),
        }
    }
    Ok(())
}
