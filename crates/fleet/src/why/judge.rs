//! Finds what stands in the way first.

use super::{ClusterTrace, Trace};

/// What stands in the way first, in one sentence; `None` when nothing does.
pub fn obstacle(trace: &Trace) -> Option<String> {
    let subject = &trace.subject;
    let Some(template) = &trace.template else { return Some(format!("{subject} does not exist in the instance.")) };
    if template.deleting {
        return Some(format!("{subject} is being deleted."));
    }
    if let Some(why) = &template.skipped {
        return Some(format!("{subject} is never propagated: {why}."));
    }
    let Some(policy) = &trace.policy else {
        let near = match template.near_policies {
            0 => String::new(),
            1 => "; 1 policy selects its kind but not it".to_owned(),
            many => format!("; {many} policies select its kind but not it"),
        };
        return if trace.binding.is_some() {
            unreadable(trace).or_else(|| goes_along(trace))
        } else {
            Some(format!("No policy selects {subject}{near}."))
        };
    };
    if !policy.exists {
        return Some(format!("{} holds it but does not exist any more.", policy.name));
    }
    if let Some(missing) = policy.missing_overrides.first() {
        return Some(format!("{} waits for override policy {missing}, which does not exist.", policy.name));
    }
    if let Some(class) = &policy.missing_priority_class {
        return Some(format!("{} names PriorityClass {class}, which does not exist.", policy.name));
    }
    if let Some(why) = unreadable(trace) {
        return Some(why);
    }
    let Some(binding) = &trace.binding else {
        let why = if policy.lazy {
            "is lazy and waits for the next change of the template"
        } else {
            "has not made a binding yet"
        };
        return Some(format!("{} {why}.", policy.name));
    };
    if binding.suspended {
        return Some("Scheduling is suspended on the binding.".to_owned());
    }
    if !(binding.scheduler.is_empty() || binding.scheduler == atoll_api::words::DEFAULT_SCHEDULER) {
        return Some(format!("Scheduler {} is to decide, which is not this one.", binding.scheduler));
    }
    if let Some((reason, message)) = binding.decision.as_ref().and_then(|record| record.error.as_ref()) {
        return Some(format!("No place was found ({reason}): {message}."));
    }
    in_clusters(trace)
}

/// What cannot be read gets no binding, and an old binding does not follow it.
fn unreadable(trace: &Trace) -> Option<String> {
    let why = trace.template.as_ref()?.unreadable.as_ref()?;
    Some(format!("The interpreter cannot read {}: {}", trace.subject, sentence(why)))
}

/// What goes along with others has no policy and no decision of its own.
fn goes_along(trace: &Trace) -> Option<String> {
    if trace.binding.as_ref().is_some_and(|binding| binding.clusters.is_empty()) {
        return Some("It goes along with others that go nowhere.".to_owned());
    }
    in_clusters(trace)
}

fn in_clusters(trace: &Trace) -> Option<String> {
    if trace.binding.as_ref().is_some_and(|binding| binding.clusters.is_empty()) {
        return Some("No cluster has been chosen yet.".to_owned());
    }
    let targets = || trace.clusters.iter().filter(|cluster| cluster.target);
    // Works of a binding are made together: one that cannot be made holds all of them up.
    let unmade = targets().find_map(|cluster| {
        let why = cluster.unmade.as_ref()?;
        Some(format!("The copy for cluster {} cannot be made: {}", cluster.name, sentence(why)))
    });
    unmade.or_else(|| targets().find_map(in_cluster))
}

fn in_cluster(cluster: &ClusterTrace) -> Option<String> {
    let name = &cluster.name;
    if !cluster.ready {
        return Some(format!(
            "Cluster {name} is not ready: {}.",
            if cluster.trouble.is_empty() { "it has not reported yet" } else { &cluster.trouble }
        ));
    }
    let Some(work) = &cluster.work else { return Some(format!("There is no work for cluster {name} yet.")) };
    if work.suspended {
        return Some(format!("Dispatching to cluster {name} is suspended."));
    }
    match work.applied.as_str() {
        "True" => {
            if let Some(behind) = &work.behind {
                return Some(format!("The last change has not reached cluster {name}: {behind}."));
            }
        }
        "False" => return Some(format!("Cluster {name} did not accept it: {}", sentence(&work.message))),
        _ => return Some(format!("Cluster {name} has not been sent it yet.")),
    }
    let object = cluster.object.as_ref()?;
    match object.exists {
        None => return Some(format!("Cluster {name} cannot be asked: {}", sentence(&object.error))),
        Some(false) => return Some(format!("It is missing in cluster {name}, though it was applied.")),
        Some(true) if object.foreign => return Some(format!("In cluster {name} somebody else has taken it over.")),
        Some(true) => {}
    }
    if object.health == "Healthy" {
        return None;
    }
    if let Some(pod) = object.pods.first() {
        let more = if object.pods.len() > 1 { format!(" (and {} more)", object.pods.len() - 1) } else { String::new() };
        return Some(format!(
            "In cluster {name} pod {} is {}{}{more}.",
            pod.name,
            pod.phase,
            if pod.reason.is_empty() { String::new() } else { format!(": {}", pod.reason) }
        ));
    }
    match (object.replicas, object.ready) {
        (Some(wanted), ready) => Some(format!(
            "In cluster {name} {} of {wanted} replicas are ready and no pod explains why.",
            ready.unwrap_or(0)
        )),
        _ => Some(format!("It is unhealthy in cluster {name}.")),
    }
}

fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    format!("{text}.")
}
