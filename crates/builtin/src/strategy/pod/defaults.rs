//! Defaults of pods and pod templates.

use atoll_meta::quantity::Quantity;
use serde_json::{Map, Value};

use crate::strategy::amount;
use crate::strategy::tree::{
    at, at_mut, fill, fill_map, fill_number, fill_text, flag, has, int, items_mut, keep, map, set, text,
};

/// Defaults of a pod itself, beyond those of its spec.
pub(super) fn pod(object: &mut Value) {
    spec(object, "spec");
    for list in ["spec.containers", "spec.initContainers"] {
        for container in items_mut(object, list) {
            requests_from_limits(container);
        }
    }
    pod_requests(object);
    fill(object, "spec.enableServiceLinks", true);
    if flag(object, "spec.hostNetwork") {
        for list in ["spec.containers", "spec.initContainers"] {
            for container in items_mut(object, list) {
                for port in items_mut(container, "ports") {
                    let number = int(port, "containerPort").unwrap_or(0);
                    fill_number(port, "hostPort", number);
                }
            }
        }
    }
    pod_ips(object);
}

/// Requests of the pod as a whole, where only its limits are given: what its containers ask for, else the limit.
fn pod_requests(object: &mut Value) {
    let limits = at(object, "spec.resources.limits").as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let mut found: Vec<(String, Value)> = Vec::new();
    for resource in ["cpu", "memory"] {
        if let Some(total) = asked(object, resource) {
            found.push((resource.to_owned(), total.to_string().into()));
        }
    }
    found.extend(limits);
    if let Some(requests) = map(object, "spec.resources.requests") {
        for (resource, amount) in found {
            requests.entry(resource).or_insert(amount);
        }
    }
}

/// The most of a resource the containers ask for at one time.
fn asked(object: &Value, resource: &str) -> Option<Quantity> {
    let one = |container: &Value| at(container, "resources.requests").get(resource).and_then(amount::read);
    let (mut running, mut peak) = (None, None);
    for container in crate::strategy::items(object, "spec.initContainers") {
        let Some(wanted) = one(container) else { continue };
        if text(container, "restartPolicy") == "Always" {
            running = Some(running.unwrap_or_default() + wanted);
        } else {
            peak = peak.max(Some(running.unwrap_or_default() + wanted));
        }
    }
    for wanted in crate::strategy::items(object, "spec.containers").iter().filter_map(one) {
        running = Some(running.unwrap_or_default() + wanted);
    }
    running.max(peak)
}

/// The first address stands alone as well as in the list.
fn pod_ips(object: &mut Value) {
    for (one, many) in [("status.podIP", "status.podIPs"), ("status.hostIP", "status.hostIPs")] {
        let first = text(object, one).to_owned();
        if !first.is_empty() && !has(object, many) && one == "status.podIP" {
            set(object, many, vec![serde_json::json!({"ip": first})]);
        }
        let first = crate::strategy::items(object, many).first().map(|entry| text(entry, "ip").to_owned());
        if let Some(first) = first.filter(|first| !first.is_empty()) {
            fill(object, one, first);
        }
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits = at(container, "resources.limits").clone();
    if let (Value::Object(limits), Some(requests)) = (limits, limits_target(container)) {
        for (resource, amount) in limits {
            requests.entry(resource).or_insert(amount);
        }
    }
}

fn limits_target(container: &mut Value) -> Option<&mut Map<String, Value>> {
    if has(container, "resources.limits") { map(container, "resources.requests") } else { None }
}

/// Defaults of a pod spec, wherever it stands.
pub(super) fn spec(object: &mut Value, path: &str) {
    fill_map(object, path);
    let Some(spec) = at_mut(object, path).filter(|spec| spec.is_object()) else { return };
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill_map(spec, "securityContext");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_text(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for each in items_mut(spec, list) {
            container(each);
        }
    }
    for each in items_mut(spec, "volumes") {
        volume(each);
    }
    for part in ["overhead", "resources.limits", "resources.requests"] {
        amount::canonize_map(at_mut(spec, part));
    }
}

/// The old and the new name of one field always agree.
fn service_account(spec: &mut Value) {
    if text(spec, "serviceAccountName").is_empty() {
        let old = text(spec, "serviceAccount").to_owned();
        if !old.is_empty() {
            set(spec, "serviceAccountName", old);
        }
    }
    let copy = spec.clone();
    if !text(spec, "serviceAccountName").is_empty() {
        set(spec, "serviceAccount", at(&copy, "serviceAccountName").clone());
    } else if has(spec, "serviceAccount") {
        keep(spec, &Value::Null, "serviceAccount");
    }
}

fn container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    fill_text(container, "imagePullPolicy", policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    fill_map(container, "resources");
    amount::canonize_map(at_mut(container, "resources.limits"));
    amount::canonize_map(at_mut(container, "resources.requests"));
    for port in items_mut(container, "ports") {
        fill_text(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if let Some(source) = at_mut(variable, "valueFrom.fieldRef") {
            fill_text(source, "apiVersion", "v1");
        }
        resource_divisor(at_mut(variable, "valueFrom.resourceFieldRef"));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = at_mut(container, name) {
            probe(found);
        }
    }
    for name in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        if let Some(found) = at_mut(container, name) {
            http_get(found);
        }
    }
}

fn resource_divisor(source: Option<&mut Value>) {
    if let Some(source) = source {
        fill(source, "divisor", "0");
        if let Some(divisor) = at_mut(source, "divisor") {
            amount::canonize(divisor);
        }
    }
}

fn probe(probe: &mut Value) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    if let Some(found) = at_mut(probe, "httpGet") {
        http_get(found);
    }
    if let Some(found) = at_mut(probe, "grpc") {
        fill(found, "service", "");
    }
}

fn http_get(action: &mut Value) {
    fill_text(action, "path", "/");
    fill_text(action, "scheme", "HTTP");
}

fn volume(volume: &mut Value) {
    let Some(fields) = volume.as_object() else { return };
    if fields.iter().all(|(key, value)| key == "name" || value.is_null()) {
        fill_map(volume, "emptyDir");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(found) = at_mut(volume, source) {
            fill(found, "defaultMode", 0o644);
        }
    }
    for file in items_mut(volume, "downwardAPI.items") {
        downward_file(file);
    }
    for source in items_mut(volume, "projected.sources") {
        if let Some(token) = at_mut(source, "serviceAccountToken") {
            fill(token, "expirationSeconds", 3600);
        }
        for file in items_mut(source, "downwardAPI.items") {
            downward_file(file);
        }
    }
    if let Some(found) = at_mut(volume, "hostPath") {
        fill(found, "type", "");
    }
    if let Some(limit) = at_mut(volume, "emptyDir.sizeLimit") {
        amount::canonize(limit);
    }
    if let Some(found) = at_mut(volume, "iscsi") {
        fill_text(found, "iscsiInterface", "default");
    }
    if let Some(found) = at_mut(volume, "rbd") {
        fill_text(found, "pool", "rbd");
        fill_text(found, "user", "admin");
        fill_text(found, "keyring", "/etc/ceph/keyring");
    }
    if let Some(found) = at_mut(volume, "azureDisk") {
        fill(found, "cachingMode", "ReadWrite");
        fill(found, "kind", "Shared");
        fill(found, "fsType", "ext4");
        fill(found, "readOnly", false);
    }
    if let Some(found) = at_mut(volume, "scaleIO") {
        fill_text(found, "storageMode", "ThinProvisioned");
        fill_text(found, "fsType", "xfs");
    }
    if let Some(found) = at_mut(volume, "ephemeral.volumeClaimTemplate") {
        fill(found, "spec.volumeMode", "Filesystem");
        fill_map(found, "spec.resources");
        amount::canonize_map(at_mut(found, "spec.resources.requests"));
    }
    if let Some(found) = at_mut(volume, "image") {
        let policy = pull_policy(text(found, "reference"));
        fill_text(found, "pullPolicy", policy);
    }
}

fn downward_file(file: &mut Value) {
    if let Some(source) = at_mut(file, "fieldRef") {
        fill_text(source, "apiVersion", "v1");
    }
    resource_divisor(at_mut(file, "resourceFieldRef"));
}

/// `latest`, named or implied, is always pulled again. An image that cannot be read has no tag.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let well_formed =
        !image.is_empty() && image.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@".contains(&byte));
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map(|(_, tag)| tag);
    let path_is_lower = !last.split(':').next().unwrap_or_default().bytes().any(|byte| byte.is_ascii_uppercase());
    match (tag, digest) {
        _ if !well_formed || !path_is_lower => "IfNotPresent",
        (Some("latest"), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

/// Puts quality of service and phase in place when a pod is created.
pub(super) fn fresh_status(object: &mut Value, now: &str) {
    set(object, "status", Map::new());
    set(object, "status.phase", "Pending");
    let class = quality(object);
    set(object, "status.qosClass", class);
    if !crate::strategy::items(object, "spec.schedulingGates").is_empty() {
        set(
            object,
            "status.conditions",
            vec![serde_json::json!({
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "lastProbeTime": null, "lastTransitionTime": now,
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            })],
        );
    }
}

/// Puts quality of service in place again, after others changed what the containers ask for.
pub fn classify(object: &mut Value) {
    let class = quality(object);
    set(object, "status.qosClass", class);
}

/// Guaranteed: every container limits cpu and memory and requests just that. BestEffort: none asks for anything.
pub(super) fn quality(object: &Value) -> &'static str {
    let containers: Vec<&Value> = if has(object, "spec.resources") {
        vec![at(object, "spec")]
    } else {
        crate::strategy::items(object, "spec.containers")
            .iter()
            .chain(crate::strategy::items(object, "spec.initContainers"))
            .collect()
    };
    let wants = |container: &Value, part: &str| -> Vec<(String, Quantity)> {
        crate::strategy::entries(container, part)
            .filter(|(resource, _)| matches!(resource.as_str(), "cpu" | "memory"))
            .filter_map(|(resource, value)| Some((resource.clone(), amount::read(value)?)))
            .filter(|(_, value)| *value > Quantity::default())
            .collect()
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers {
        let limits = wants(container, "resources.limits");
        let requests = wants(container, "resources.requests");
        any |= !limits.is_empty() || !requests.is_empty();
        guaranteed &= limits.len() == 2 && requests == limits;
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
