//! What leased pods may ask of the lessor's nodes.

use serde_json::Value;

use crate::tree::{self, list};

/// Capabilities every pod may add: what Pod Security's baseline allows.
const HARMLESS: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel settings every pod may have: what Pod Security's baseline allows.
const SAFE_SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
];
/// Types of SELinux every pod may have.
const CONTAINER_TYPES: [&str; 6] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", "container_file_t"];

/// What a security context, of a pod or a container, asks for beyond the baseline.
fn beyond(context: &Value, place: &str, wishes: &mut Vec<(&'static str, String)>) {
    for profile in ["seccompProfile", "appArmorProfile"] {
        if context[profile]["type"] == "Unconfined" {
            wishes.push(("Unconfined", format!("{place}.{profile}")));
        }
    }
    let labels = &context["seLinuxOptions"];
    let text = |field: &str| labels[field].as_str().unwrap_or_default();
    if !CONTAINER_TYPES.contains(&text("type")) || !text("user").is_empty() || !text("role").is_empty() {
        wishes.push(("SELinux", format!("{place}.seLinuxOptions")));
    }
    if context["windowsOptions"]["hostProcess"] == true {
        wishes.push(("Privileged", format!("{place}.windowsOptions.hostProcess")));
    }
    let settings = list(&context["sysctls"]).iter().filter_map(|own| own["name"].as_str());
    if settings.clone().any(|name| !SAFE_SYSCTLS.contains(&name)) {
        wishes.push(("Sysctls", format!("{place}.sysctls")));
    }
}

/// Where profiles were named before they were fields; servers and kubelets still heed it.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What a whole pod asks for that the policy does not allow, each with its place.
pub(crate) fn refused_pod(pod: &Value, priority: Option<i64>, allow: &[String]) -> Vec<String> {
    let mut out = refused(&pod["spec"], priority, allow);
    if !allow.iter().any(|word| word == "Unconfined") {
        let annotations = tree::annotations(pod).into_iter();
        let unconfined = annotations.filter(|(key, value)| key.starts_with(APP_ARMOR) && value == "unconfined");
        out.extend(unconfined.map(|(key, _)| format!("metadata.annotations[{key}] (Unconfined)")));
    }
    out
}

/// What a spec asks for that the policy does not allow, each with its place.
pub(crate) fn refused(spec: &Value, priority: Option<i64>, allow: &[String]) -> Vec<String> {
    let mut wishes: Vec<(&str, String)> = Vec::new();
    for (word, field) in [("HostNetwork", "hostNetwork"), ("HostPID", "hostPID"), ("HostIPC", "hostIPC")] {
        if spec[field] == true {
            wishes.push((word, format!("spec.{field}")));
        }
    }
    for (index, volume) in list(&spec["volumes"]).iter().enumerate() {
        if volume["hostPath"].is_object() {
            wishes.push(("HostPath", format!("spec.volumes[{index}].hostPath")));
        }
    }
    beyond(&spec["securityContext"], "spec.securityContext", &mut wishes);
    for group in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in list(&spec[group]).iter().enumerate() {
            let context = &container["securityContext"];
            let place = format!("spec.{group}[{index}].securityContext");
            beyond(context, &place, &mut wishes);
            if context["privileged"] == true {
                wishes.push(("Privileged", format!("{place}.privileged")));
            }
            let added = list(&context["capabilities"]["add"]).iter().filter_map(Value::as_str);
            if added.clone().any(|name| !HARMLESS.contains(&name)) {
                wishes.push(("Capabilities", format!("{place}.capabilities.add")));
            }
            if context["procMount"].as_str().is_some_and(|mount| mount != "Default") {
                wishes.push(("Privileged", format!("{place}.procMount")));
            }
        }
    }
    // Pods of the lessor have priority 0 unless they say otherwise; leased ones must not push them out.
    if priority.is_some_and(|priority| priority > 0) {
        wishes.push(("Priority", "spec.podPriorityClassName of the binding".to_owned()));
    }
    wishes.retain(|(word, _)| !allow.iter().any(|allowed| allowed == word));
    wishes.into_iter().map(|(word, place)| format!("{place} ({word})")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_reaches_the_node_is_refused_unless_the_lessor_allows_it() {
        let container = |context: Value| json!({"containers": [{"securityContext": context}]});
        for (spec, priority, word) in [
            (container(json!({"privileged": true})), None, "Privileged"),
            (container(json!({"procMount": "Unmasked"})), None, "Privileged"),
            (container(json!({"capabilities": {"add": ["SYS_ADMIN"]}})), None, "Capabilities"),
            (json!({"initContainers": [{"securityContext": {"privileged": true}}]}), None, "Privileged"),
            (json!({"ephemeralContainers": [{"securityContext": {"privileged": true}}]}), None, "Privileged"),
            (json!({"volumes": [{"emptyDir": {}}, {"hostPath": {"path": "/"}}]}), None, "HostPath"),
            (json!({"hostNetwork": true}), None, "HostNetwork"),
            (json!({"hostPID": true}), None, "HostPID"),
            (json!({"hostIPC": true}), None, "HostIPC"),
            (json!({}), Some(1000), "Priority"),
            (container(json!({"seccompProfile": {"type": "Unconfined"}})), None, "Unconfined"),
            (json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}), None, "Unconfined"),
            (json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}), None, "Sysctls"),
            (container(json!({"seLinuxOptions": {"type": "spc_t"}})), None, "SELinux"),
            (container(json!({"windowsOptions": {"hostProcess": true}})), None, "Privileged"),
        ] {
            let found = refused(&spec, priority, &[]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(word), "{found:?}");
            assert!(refused(&spec, priority, &[word.to_owned()]).is_empty(), "{word} allowed");
        }
        let hidden = json!({"spec": {}, "metadata": {"annotations": {format!("{APP_ARMOR}c"): "unconfined", format!("{APP_ARMOR}d"): "runtime/default"}}});
        assert_eq!(refused_pod(&hidden, None, &[]), [format!("metadata.annotations[{APP_ARMOR}c] (Unconfined)")]);
        assert!(refused_pod(&hidden, None, &["Unconfined".to_owned()]).is_empty());
        let ordinary = json!({"containers": [{"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}}]});
        assert!(refused(&ordinary, Some(-10_000), &[]).is_empty());
        let confined = json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "seLinuxOptions": {"type": "container_t"},
                              "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}});
        assert!(refused(&confined, None, &[]).is_empty());
    }
}
