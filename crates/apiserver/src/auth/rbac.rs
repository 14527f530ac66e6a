//! Kubernetes' role-based access control: roles grant, bindings say to whom, nothing denies.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_meta::{Revision, Status};
use atoll_store::{Entry, Snapshot};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::request::Verb;

/// Group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// One rule of a role.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Rule {
    pub verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// What a request wants, in the words rules use.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Attributes<'a> {
    pub verb: Verb,
    /// Overrides the verb's word for virtual verbs such as `impersonate` or `bind`.
    pub verb_word: Option<&'a str>,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// For requests outside the resource tree.
    pub url: Option<&'a str>,
}

impl Attributes<'_> {
    /// The verb as roles spell it.
    pub fn word(&self) -> &str {
        self.verb_word.unwrap_or(self.verb.as_str())
    }

    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal, in the words scripts match on.
    pub fn denied(&self, identity: &Identity) -> Status {
        let user = &identity.user;
        if let Some(url) = self.url {
            let message = format!("forbidden: User \"{user}\" cannot {} path \"{url}\"", self.word());
            let mut status = Status::new(403, atoll_meta::Reason::Forbidden, message);
            status.details = Some(Box::default());
            return status;
        }
        let resource = self.full_resource();
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        let why = format!(
            "User \"{user}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
            self.word(),
            self.group
        );
        let mut status = Status::forbidden(self.group, &resource, self.name, why);
        if let Some(details) = &mut status.details {
            self.resource.clone_into(&mut details.kind);
        }
        status
    }
}

impl Rule {
    /// Whether the rule grants what is asked.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.word()) {
            return false;
        }
        if let Some(url) = asked.url {
            return self.urls.iter().any(|own| url_matches(own, url));
        }
        has(&self.api_groups, asked.group)
            && self.allows_resource(asked)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == asked.name))
    }

    fn allows_resource(&self, asked: &Attributes<'_>) -> bool {
        self.resources.iter().any(|own| match own.split_once('/') {
            None if own == "*" => true,
            None => asked.subresource.is_empty() && own == asked.resource,
            Some(("*", sub)) => sub == asked.subresource,
            Some((resource, sub)) => resource == asked.resource && sub == asked.subresource,
        })
    }
}

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|own| own == "*" || own == item)
}

/// `*` matches all; a trailing `*` matches what begins so.
pub fn url_matches(own: &str, url: &str) -> bool {
    own == "*" || own == url || own.strip_suffix('*').is_some_and(|start| url.starts_with(start))
}

/// What one binding grants.
#[derive(Clone)]
struct Grant {
    rules: Arc<[Rule]>,
    /// Binding and role, in the words reviews use.
    source: Arc<str>,
}

/// Rules granted to users and groups in one scope.
#[derive(Default)]
struct Grants {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

impl Grants {
    fn rules<'a>(&'a self, identity: &'a Identity) -> impl Iterator<Item = &'a Rule> {
        let own = self.users.get(&identity.user);
        let through = identity.groups.iter().filter_map(|group| self.groups.get(group));
        own.into_iter().chain(through).flatten().flat_map(|grant| grant.rules.iter())
    }

    fn reason(&self, identity: &Identity, asked: &Attributes<'_>) -> Option<String> {
        let find = |grants: &Vec<Grant>| {
            grants
                .iter()
                .find(|grant| grant.rules.iter().any(|rule| rule.allows(asked)))
                .map(|grant| grant.source.clone())
        };
        if let Some(source) = self.users.get(&identity.user).and_then(find) {
            let account = identity.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
            return Some(match account {
                Some((namespace, name)) => format!("{source} to ServiceAccount \"{name}/{namespace}\""),
                None => format!("{source} to User {:?}", identity.user),
            });
        }
        identity.groups.iter().find_map(|group| {
            self.groups.get(group).and_then(find).map(|source| format!("{source} to Group {group:?}"))
        })
    }
}

/// All grants of an instance, indexed by who has them.
#[derive(Default)]
pub struct Roles {
    everywhere: Grants,
    namespaces: HashMap<String, Grants>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    #[serde(default)]
    subjects: Vec<Subject>,
    role_ref: RoleRef,
}

#[derive(Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct RoleRef {
    kind: String,
    name: String,
}

impl Roles {
    /// Parses the roles and bindings of an instance.
    pub fn read(snapshot: &Snapshot) -> Self {
        let mut roles = Self::default();
        let mut parsed: HashMap<String, Arc<[Rule]>> = HashMap::new();
        let cluster = format!("clusterrolebindings.{GROUP}/");
        for (_, entry) in snapshot.range(&cluster, None) {
            if let Some((binding, rules)) = bound(snapshot, entry, &mut parsed) {
                let (name, role) = (&entry.object.head.name, &binding.role_ref);
                let source = format!("ClusterRoleBinding \"{name}\" of {} \"{}\"", role.kind, role.name);
                grant(&mut roles.everywhere, binding, "", &Grant { rules, source: source.into() });
            }
        }
        let namespaced = format!("rolebindings.{GROUP}/");
        for (_, entry) in snapshot.range(&namespaced, None) {
            if let Some((binding, rules)) = bound(snapshot, entry, &mut parsed) {
                let grants = roles.namespaces.entry(entry.object.head.namespace.to_string()).or_default();
                let (head, role) = (&entry.object.head, &binding.role_ref);
                let source =
                    format!("RoleBinding \"{}/{}\" of {} \"{}\"", head.name, head.namespace, role.kind, role.name);
                grant(grants, binding, &entry.object.head.namespace, &Grant { rules, source: source.into() });
            }
        }
        roles
    }

    /// Whether any grant allows what is asked.
    pub fn allow(&self, identity: &Identity, asked: &Attributes<'_>) -> bool {
        self.rules(identity, asked.namespace).any(|rule| rule.allows(asked))
    }

    /// Why what is asked is allowed, if it is.
    pub fn reason(&self, identity: &Identity, asked: &Attributes<'_>) -> Option<String> {
        let local = self.namespaces.get(asked.namespace).filter(|_| !asked.namespace.is_empty());
        self.everywhere.reason(identity, asked).or_else(|| local.and_then(|grants| grants.reason(identity, asked)))
    }

    /// All rules a caller has in a namespace (and everywhere).
    pub fn rules<'a>(&'a self, identity: &'a Identity, namespace: &str) -> impl Iterator<Item = &'a Rule> {
        let local = self.namespaces.get(namespace).filter(|_| !namespace.is_empty());
        self.everywhere.rules(identity).chain(local.into_iter().flat_map(move |grants| grants.rules(identity)))
    }
}

fn bound(
    snapshot: &Snapshot,
    entry: &Entry,
    parsed: &mut HashMap<String, Arc<[Rule]>>,
) -> Option<(Binding, Arc<[Rule]>)> {
    let binding: Binding = serde_json::from_slice(&entry.object.body).ok()?;
    let key = match binding.role_ref.kind.as_str() {
        "ClusterRole" => format!("clusterroles.{GROUP}/{}", binding.role_ref.name),
        _ => format!("roles.{GROUP}/{}/{}", entry.object.head.namespace, binding.role_ref.name),
    };
    if let Some(rules) = parsed.get(&key) {
        return Some((binding, rules.clone()));
    }
    let role = snapshot.get(&key)?.object.tree(Revision(0));
    let rules: Vec<Rule> = serde_json::from_value(role.get("rules")?.clone()).ok()?;
    let rules: Arc<[Rule]> = rules.into();
    parsed.insert(key, rules.clone());
    Some((binding, rules))
}

/// Hands out what a binding grants; `home` is its namespace, where accounts live that name none.
fn grant(grants: &mut Grants, binding: Binding, home: &str, given: &Grant) {
    for subject in binding.subjects {
        let (map, name) = match subject.kind.as_str() {
            "User" => (&mut grants.users, subject.name),
            "Group" => (&mut grants.groups, subject.name),
            "ServiceAccount" => {
                let namespace = if subject.namespace.is_empty() { home } else { &subject.namespace };
                (&mut grants.users, format!("system:serviceaccount:{namespace}:{}", subject.name))
            }
            _ => continue,
        };
        map.entry(name).or_default().push(given.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(verb: Verb, group: &'a str, resource: &'a str, subresource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes {
            verb,
            verb_word: None,
            group,
            version: "v1",
            resource,
            subresource,
            namespace: "a",
            name,
            url: None,
        }
    }

    #[test]
    fn rules_grant_exactly_what_they_say() {
        let rule: Rule = serde_json::from_str(
            r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods","*/status"],"resourceNames":["x"]}"#,
        )
        .unwrap();
        assert!(rule.allows(&asked(Verb::Get, "", "pods", "", "x")));
        assert!(rule.allows(&asked(Verb::Get, "", "nodes", "status", "x")));
        assert!(!rule.allows(&asked(Verb::Get, "", "pods", "", "y")));
        assert!(!rule.allows(&asked(Verb::Get, "", "pods", "log", "x")));
        assert!(!rule.allows(&asked(Verb::Get, "apps", "pods", "", "x")));
        assert!(!rule.allows(&asked(Verb::List, "", "pods", "", "x")));
    }

    #[test]
    fn urls_match_by_prefix_only_with_a_star() {
        assert!(url_matches("/healthz*", "/healthz/ping"));
        assert!(!url_matches("/healthz", "/healthz/ping"));
        assert!(url_matches("*", "/anything"));
    }
}
