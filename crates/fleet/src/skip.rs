//! What is never spread, whatever policies say.

use atoll_api::names;
use atoll_api::words::{TRUE, label};
use atoll_meta::{Gvk, Head};
use regex::Regex;

/// Groups whose objects are never templates.
const OWN_GROUPS: [&str; 8] = [
    "cluster.karmada.io",
    "policy.karmada.io",
    "work.karmada.io",
    "config.karmada.io",
    "networking.karmada.io",
    "autoscaling.karmada.io",
    "remedy.karmada.io",
    "apps.karmada.io",
];

/// Objects that servers and their controllers make in every cluster; a copy would take the place of the member's own.
const NATIVE: [(&str, &str, &str, &str); 6] = [
    ("", "Service", "default", "kubernetes"),
    ("", "Endpoints", "default", "kubernetes"),
    ("discovery.k8s.io", "EndpointSlice", "default", "kubernetes"),
    ("", "ConfigMap", "kube-system", "extension-apiserver-authentication"),
    ("", "ConfigMap", "", "kube-root-ca.crt"),
    ("", "ServiceAccount", "", "default"),
];

/// An API, or a part of one, that is left alone: group, version, kind; empty ones stand for all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Api {
    group: String,
    version: String,
    kind: String,
}

/// What an operator wants left alone, beyond what never is a template.
#[derive(Clone, Debug)]
pub struct Skip {
    namespaces: Vec<Regex>,
    apis: Vec<Api>,
}

impl Default for Skip {
    fn default() -> Self {
        Self::new(&["kube-.*".to_owned()], "").expect("the usual settings are well-formed")
    }
}

impl Skip {
    /// From patterns of namespaces, each of which must match a whole name, and a list of APIs:
    /// `group`, `group/version` or `group/version/kind,kind`, with `;` between them. The core group has
    /// no name of its own, so its entries are `version` or `version/kind,kind`.
    pub fn new(namespaces: &[String], apis: &str) -> Result<Self, String> {
        let pattern = |text: &String| {
            Regex::new(&format!("^(?:{text})$")).map_err(|error| format!("pattern of namespaces {text:?}: {error}"))
        };
        let namespaces = namespaces.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
        let entries = apis.split(';').map(str::trim).filter(|entry| !entry.is_empty());
        let mut all = Vec::new();
        for entry in entries {
            all.extend(read(entry)?);
        }
        Ok(Self { namespaces, apis: all })
    }

    /// Whether objects of a kind are never spread.
    pub fn kind(&self, gvk: &Gvk) -> bool {
        let fits = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
        OWN_GROUPS.contains(&gvk.group.as_str())
            || (gvk.kind == "Event" && matches!(gvk.group.as_str(), "" | "events.k8s.io"))
            || (gvk.group == "coordination.k8s.io" && gvk.kind == "Lease")
            || self
                .apis
                .iter()
                .any(|api| api.group == gvk.group && fits(&api.version, &gvk.version) && fits(&api.kind, &gvk.kind))
    }

    /// Whether an object is never spread.
    pub fn object(&self, gvk: &Gvk, head: &Head) -> bool {
        let native = NATIVE.iter().any(|(group, kind, namespace, name)| {
            gvk.group == *group
                && gvk.kind == *kind
                && *head.name == **name
                && (namespace.is_empty() || *head.namespace == **namespace)
        });
        native || self.reserves(&head.namespace) || head.label(label::CLAIMED_BY).is_some()
    }

    /// Why an object is never spread, if it is not.
    pub fn reason(&self, gvk: &Gvk, head: &Head) -> Option<String> {
        if self.kind(gvk) {
            let usual = Self { namespaces: Vec::new(), apis: Vec::new() };
            let by = if usual.kind(gvk) { "" } else { " by fleet.atoll.io/skipped-propagating-apis" };
            return Some(format!("kind {} is left out{by}", gvk.kind));
        }
        if self.reserves(&head.namespace) {
            let reserved = names::is_reserved_namespace(&head.namespace);
            let by = if reserved { "" } else { " by fleet.atoll.io/skipped-propagating-namespaces" };
            return Some(format!("namespace {} is left out{by}", head.namespace));
        }
        if let Some(owner) = head.label(label::CLAIMED_BY) {
            return Some(format!("a {owner} has taken charge of it"));
        }
        self.object(gvk, head).then(|| "every cluster has its own".to_owned())
    }

    /// Whether a namespace stays here, with everything in it.
    fn reserves(&self, namespace: &str) -> bool {
        names::is_reserved_namespace(namespace) || self.namespaces.iter().any(|pattern| pattern.is_match(namespace))
    }

    /// Whether a namespace is not made in members.
    pub fn namespace(&self, head: &Head) -> bool {
        *head.name == *"default" || self.reserves(&head.name) || head.label(label::SKIP_AUTO_PROPAGATION) == Some(TRUE)
    }
}

fn read(entry: &str) -> Result<Vec<Api>, String> {
    let bad = || format!("{entry:?} is not group, group/version or group/version/kind,kind");
    let api = |group: &str, version: &str, kind: &str| Api {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    };
    // A first part like a version is one of the core group.
    let core =
        |text: &str| text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let parts: Vec<&str> = entry.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(bad());
    }
    let kinds = |group: &str, version: &str, list: &str| {
        list.split(',').map(|kind| api(group, version, kind.trim())).collect::<Vec<_>>()
    };
    match parts.as_slice() {
        [version] if core(version) => Ok(vec![api("", version, "")]),
        [group] => Ok(vec![api(group, "", "")]),
        [version, list] if core(version) => Ok(kinds("", version, list)),
        [group, version] => Ok(vec![api(group, version, "")]),
        [group, version, list] => Ok(kinds(group, version, list)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn head(namespace: &str, name: &str, labels: Value) -> Head {
        let meta = json!({"name": name, "namespace": namespace, "labels": labels});
        Head::of(meta.as_object().unwrap_or(&serde_json::Map::new()))
    }

    #[test]
    fn what_belongs_to_each_cluster_itself_is_never_spread() {
        let skip = Skip::default();
        let kind = |group: &str, kind: &str| Gvk::new(group, "v1", kind);
        for (gvk, namespace, name, skipped) in [
            (kind("", "Service"), "default", "kubernetes", true),
            (kind("", "Service"), "shop", "kubernetes", false),
            (kind("", "Service"), "default", "web", false),
            (kind("discovery.k8s.io", "EndpointSlice"), "default", "kubernetes", true),
            (kind("", "ConfigMap"), "shop", "kube-root-ca.crt", true),
            (kind("", "ServiceAccount"), "shop", "default", true),
            (kind("", "ServiceAccount"), "shop", "robot", false),
            (kind("", "ConfigMap"), "kube-system", "anything", true),
            (kind("", "ConfigMap"), "karmada-es-m1", "anything", true),
            (kind("", "ConfigMap"), "karmada-system", "anything", true),
            (kind("", "ConfigMap"), "my-kube-x", "anything", false),
        ] {
            assert_eq!(skip.object(&gvk, &head(namespace, name, json!({}))), skipped, "{gvk} {namespace}/{name}");
        }
        let claimed = head("default", "web", json!({label::CLAIMED_BY: "MultiClusterService"}));
        assert!(skip.object(&kind("", "Service"), &claimed));
        assert!(skip.kind(&Gvk::new("work.karmada.io", "v1alpha1", "Work")));
        assert!(skip.kind(&kind("", "Event")) && skip.kind(&kind("coordination.k8s.io", "Lease")));
        assert!(!skip.kind(&kind("apps", "Deployment")));
    }

    #[test]
    fn operators_leave_out_apis_and_namespaces() -> Result<(), String> {
        let skip = Skip::new(&["team-.*".into(), "lab".into()], "a.io; b.io/v1 ;c.io/v1/One,Two;v1/Pod")?;
        for (gvk, skipped) in [
            (Gvk::new("a.io", "v2", "X"), true),
            (Gvk::new("b.io", "v1", "X"), true),
            (Gvk::new("b.io", "v2", "X"), false),
            (Gvk::new("c.io", "v1", "Two"), true),
            (Gvk::new("c.io", "v1", "Three"), false),
            (Gvk::new("", "v1", "Pod"), true),
            (Gvk::new("", "v1", "Secret"), false),
        ] {
            assert_eq!(skip.kind(&gvk), skipped, "{gvk}");
        }
        for (namespace, skipped) in [("team-a", true), ("lab", true), ("lab2", false), ("kube-system", false)] {
            assert_eq!(skip.object(&Gvk::new("", "v1", "Secret"), &head(namespace, "s", json!({}))), skipped);
        }
        assert!(Skip::new(&["(".into()], "").is_err());
        assert!(Skip::new(&[], "a/b/c/d").is_err() && Skip::new(&[], "a//c").is_err());
        Ok(())
    }

    #[test]
    fn why_something_is_never_spread_can_be_told() -> Result<(), String> {
        let skip = Skip::new(&["lab".into()], "a.io")?;
        let core = |kind: &str| Gvk::new("", "v1", kind);
        for (gvk, namespace, name, labels, expected) in [
            (core("Secret"), "shop", "s", json!({}), None),
            (core("Event"), "shop", "e", json!({}), Some("kind Event is left out")),
            (
                Gvk::new("a.io", "v1", "X"),
                "shop",
                "x",
                json!({}),
                Some("kind X is left out by fleet.atoll.io/skipped-propagating-apis"),
            ),
            (
                core("Secret"),
                "lab",
                "s",
                json!({}),
                Some("namespace lab is left out by fleet.atoll.io/skipped-propagating-namespaces"),
            ),
            (core("Secret"), "karmada-system", "s", json!({}), Some("namespace karmada-system is left out")),
            (core("ServiceAccount"), "shop", "default", json!({}), Some("every cluster has its own")),
            (
                core("Service"),
                "shop",
                "web",
                json!({label::CLAIMED_BY: "MultiClusterService"}),
                Some("a MultiClusterService has taken charge of it"),
            ),
        ] {
            assert_eq!(skip.reason(&gvk, &head(namespace, name, labels)).as_deref(), expected);
        }
        Ok(())
    }

    #[test]
    fn system_namespaces_and_marked_ones_stay_here() {
        for (name, labels, stays) in [
            ("shop", json!({}), false),
            ("default", json!({}), true),
            ("kube-system", json!({}), true),
            ("karmada-es-m1", json!({}), true),
            ("shop", json!({label::SKIP_AUTO_PROPAGATION: "true"}), true),
        ] {
            assert_eq!(Skip::default().namespace(&head("", name, labels)), stays, "{name}");
        }
    }
}
