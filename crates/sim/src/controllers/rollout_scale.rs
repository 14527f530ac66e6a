//! How replicas move between the sets of a Deployment.

use serde_json::Value;

use super::rollout::{DESIRED, MAXIMUM, Rollout, annotated, name, number, replicas};

/// Takes replicas from old sets as far as enough pods stay available; returns whether any.
pub(super) fn old_down(rollout: &mut Rollout<'_>) -> bool {
    if rollout.old.iter().map(replicas).sum::<i64>() == 0 {
        return false;
    }
    let total: i64 = rollout.all().map(replicas).sum();
    let least = rollout.wanted() - rollout.max_unavailable();
    let Some(new) = &rollout.new else { return false };
    let new_missing = replicas(new) - number(new, "status", "availableReplicas");
    let most = total - least - new_missing;
    if most <= 0 {
        return false;
    }
    let cleaned = unhealthy_first(rollout, most);
    let healthy = healthy_down(rollout, least);
    cleaned || healthy
}

/// Pods that do not serve can go without harm.
fn unhealthy_first(rollout: &mut Rollout<'_>, most: i64) -> bool {
    let mut gone = 0;
    let mut changed = false;
    for (set_name, has, available) in snapshot(&rollout.old) {
        let left = most - gone;
        if left <= 0 {
            break;
        }
        if has == 0 || has == available {
            continue;
        }
        let down = left.min(has - available);
        gone += down;
        changed |= rollout.scale_set(&set_name, has - down);
    }
    changed
}

fn healthy_down(rollout: &mut Rollout<'_>, least: i64) -> bool {
    let available: i64 = rollout.all().map(|set| number(set, "status", "availableReplicas")).sum();
    let mut left = available - least;
    let mut changed = false;
    for (set_name, has, _) in snapshot(&rollout.old) {
        if left <= 0 {
            break;
        }
        let down = left.min(has);
        left -= down;
        if down > 0 {
            changed |= rollout.scale_set(&set_name, has - down);
        }
    }
    changed
}

fn snapshot(sets: &[Value]) -> Vec<(String, i64, i64)> {
    sets.iter().map(|set| (name(set).to_owned(), replicas(set), number(set, "status", "availableReplicas"))).collect()
}

/// Follows a change of the wanted number; in the middle of a rollout every set gets its share.
pub(super) fn proportionally(rollout: &mut Rollout<'_>) {
    let wanted = rollout.wanted();
    if let Some(only) = active_or_latest(rollout) {
        rollout.scale_set(&only, wanted);
        return;
    }
    if rollout.new.as_ref().is_some_and(|new| is_saturated(new, wanted)) {
        for (set_name, has, _) in snapshot(&rollout.old) {
            if has > 0 {
                rollout.scale_set(&set_name, 0);
            }
        }
        return;
    }
    if rollout.deployment["spec"]["strategy"]["type"] == "Recreate" {
        return;
    }
    share_out(rollout, wanted);
}

fn share_out(rollout: &mut Rollout<'_>, wanted: i64) {
    let mut active: Vec<(String, i64, i64, i64)> = rollout
        .all()
        .enumerate()
        .filter(|(_, set)| replicas(set) > 0)
        .map(|(age, set)| {
            let most = annotated(set, MAXIMUM).filter(|most| *most > 0);
            let before = most.unwrap_or_else(|| number(rollout.deployment, "status", "replicas").max(1));
            (name(set).to_owned(), replicas(set), before, i64::try_from(age).unwrap_or(i64::MAX))
        })
        .collect();
    let total: i64 = active.iter().map(|set| set.1).sum();
    let allowed = if wanted > 0 { wanted + rollout.max_surge() } else { 0 };
    let change = allowed - total;
    // Larger sets first; among equals the newest gains first and the oldest loses first.
    active.sort_by_key(|set| (std::cmp::Reverse(set.1), if change > 0 { -set.3 } else { set.3 }));
    let mut given = 0;
    let mut targets: Vec<(String, i64)> = Vec::new();
    for (set_name, has, before, _) in &active {
        let part = if change == 0 { 0 } else { share(*has, wanted + rollout.max_surge(), *before, wanted) };
        let left = change - given;
        let part = if change > 0 { part.min(left).max(0) } else { part.max(left).min(0) };
        given += part;
        targets.push((set_name.clone(), (has + part).max(0)));
    }
    if let Some(first) = targets.first_mut() {
        first.1 = (first.1 + change - given).max(0);
    }
    for (set_name, count) in targets {
        rollout.scale_set(&set_name, count);
    }
}

/// How much a set grows when the whole grows from `before` to `after`.
fn share(has: i64, after: i64, before: i64, wanted: i64) -> i64 {
    if wanted == 0 {
        return -has;
    }
    let exact = (has as f64) * (after as f64) / (before as f64);
    (exact.round() as i64) - has
}

/// The only set with replicas, or the newest when none has any.
fn active_or_latest(rollout: &Rollout<'_>) -> Option<String> {
    let active: Vec<&Value> = rollout.all().filter(|set| replicas(set) > 0).collect();
    match active.as_slice() {
        [] => rollout.new.as_ref().or(rollout.old.last()).map(|set| name(set).to_owned()),
        [only] => Some(name(only).to_owned()),
        _ => None,
    }
}

fn is_saturated(new: &Value, wanted: i64) -> bool {
    replicas(new) == wanted
        && annotated(new, DESIRED) == Some(wanted)
        && number(new, "status", "availableReplicas") == wanted
}
