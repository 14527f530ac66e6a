//! What a manager may do in its clusters: as roles to hand out, and as questions to ask.

use atoll_api::kubeocean_names::SYSTEM_NAMESPACE;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::feature::{Feature, Features};
use crate::proxier::AUTHORITY;

/// Some verbs on a resource, everywhere or only in the mount namespace.
struct Rule {
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    /// What a binding cannot do without it; otherwise it cannot do at all.
    feature: Option<Feature>,
}

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Rule {
    Rule { group, resource, verbs, feature: None }
}

impl Rule {
    const fn of(mut self, feature: Feature) -> Self {
        self.feature = Some(feature);
        self
    }
}

/// In the whole worker cluster. No Secrets here.
const CLUSTER: [Rule; 7] = [
    rule("", "nodes", &["list", "watch", "patch"]),
    rule("", "pods", &["list", "watch"]),
    rule("cloud.tencent.com", "resourceleasingpolicies", &["list", "watch", "patch"]),
    rule("cloud.tencent.com", "resourceleasingpolicies/status", &["patch"]),
    rule("scheduling.k8s.io", "priorityclasses", &["get", "create"]),
    rule("storage.k8s.io", "csinodes", &["list", "watch"]).of(Feature::Volumes),
    rule("", "persistentvolumes", &["get", "list", "watch", "create", "delete"]).of(Feature::Volumes),
];

/// In the mount namespace.
const MOUNT: [Rule; 13] = [
    rule("", "pods", &["get", "create", "patch", "delete"]),
    rule("", "configmaps", &["get", "list", "watch", "create", "update", "delete"]),
    rule("", "secrets", &["get", "list", "watch", "create", "update", "patch", "delete"]),
    rule("", "persistentvolumeclaims", &["get", "list", "watch", "create", "delete"]).of(Feature::Volumes),
    rule("", "services", &["get", "list", "watch", "create", "update", "delete"]).of(Feature::Services),
    rule("discovery.k8s.io", "endpointslices", &["get", "list", "watch", "create", "update", "delete"])
        .of(Feature::Services),
    rule("", "events", &["list", "watch"]).of(Feature::Events),
    rule("", "pods/ephemeralcontainers", &["patch"]).of(Feature::Debug),
    rule("", "pods/log", &["get"]).of(Feature::Logs),
    rule("", "pods/exec", &["get", "create"]).of(Feature::Exec),
    rule("", "pods/attach", &["get", "create"]).of(Feature::Exec),
    rule("", "pods/portforward", &["get", "create"]).of(Feature::PortForward),
    rule("metrics.k8s.io", "pods", &["list"]).of(Feature::Metrics),
];

/// In the whole computing cluster. Secrets are read, and marked when they are copied; never made here.
const COMPUTING: [Rule; 19] = [
    rule("", "namespaces", &["get", "create"]),
    rule("", "nodes", &["list", "watch", "create", "update", "patch", "delete"]),
    rule("", "nodes/status", &["update", "patch"]),
    rule("", "pods", &["get", "list", "watch", "create", "delete"]),
    rule("", "pods/status", &["patch"]),
    rule("storage.k8s.io", "csinodes", &["list", "watch", "create", "update", "delete"]),
    rule("", "configmaps", &["get", "list", "watch", "patch"]),
    rule("", "secrets", &["get", "list", "watch", "patch"]),
    rule("", "persistentvolumeclaims", &["get", "list", "watch", "patch"]),
    rule("", "persistentvolumes", &["get", "list", "watch", "patch"]),
    rule("", "services", &["get", "list", "watch"]),
    rule("discovery.k8s.io", "endpointslices", &["list", "watch"]),
    rule("apps", "replicasets", &["get"]),
    rule("", "serviceaccounts/token", &["create"]),
    rule("", "events", &["create", "patch"]),
    rule("cloud.tencent.com", "clusterbindings", &["get", "list", "watch", "patch"]),
    rule("cloud.tencent.com", "clusterbindings/status", &["patch"]),
    // Who calls the kubelet API, and may they.
    rule("authentication.k8s.io", "tokenreviews", &["create"]),
    rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];
/// In the namespace of the system: which manager works, and the authority of the kubelet API.
const SYSTEM: [Rule; 2] =
    [rule("coordination.k8s.io", "leases", &["get", "create", "update"]), rule("", "secrets", &["create"])];
/// Where nodes say that they live.
const LIVING: [Rule; 1] = [rule("coordination.k8s.io", "leases", &["create", "patch", "delete"])];

fn written(rules: &[Rule]) -> Vec<Value> {
    rules.iter().map(one).collect()
}

fn one(rule: &Rule) -> Value {
    json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs})
}

fn cluster_role(name: &str, rules: &[Rule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": written(rules),
    })
}

fn role(name: &str, namespace: &str, rules: &[Rule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": namespace},
        "rules": written(rules),
    })
}

/// The ClusterRole and the Role of the mount namespace that a syncer needs, and no more, for all features but some.
pub fn worker_roles(name: &str, mount_namespace: &str, without: &Features) -> [Value; 2] {
    let kept = |rules: &[Rule]| -> Vec<Value> {
        let wanted = |rule: &&Rule| rule.feature.is_none_or(|feature| !without.contains(&feature));
        rules.iter().filter(wanted).map(one).collect()
    };
    let (mut everywhere, mut here) = (cluster_role(name, &[]), role(name, mount_namespace, &[]));
    everywhere["rules"] = kept(&CLUSTER).into();
    here["rules"] = kept(&MOUNT).into();
    [everywhere, here]
}

/// The ClusterRole and the Roles that a manager needs in its computing cluster, and no more.
pub fn computing_roles(name: &str) -> [Value; 3] {
    [cluster_role(name, &COMPUTING), role(name, SYSTEM_NAMESPACE, &SYSTEM), role(name, "kube-node-lease", &LIVING)]
}

/// The roles of one binding's syncer in its computing cluster, where it runs apart from its manager: as those of a
/// manager, but it writes no other binding, holds no other lease and answers no calls.
pub fn syncer_roles(name: &str, binding: &str) -> [Value; 3] {
    let lease = crate::manager::lease_of(binding);
    let [mut everywhere, mut system, living] = computing_roles(name);
    narrow(&mut everywhere, "clusterbindings", &["patch"], binding);
    narrow(&mut everywhere, "clusterbindings/status", &["patch"], binding);
    narrow(&mut system, "leases", &["get", "update"], &lease);
    // Who calls the kubelet API is asked by the proxier; its authority is made by the manager.
    remove(&mut everywhere, &["tokenreviews", "subjectaccessreviews"]);
    remove(&mut system, &["secrets"]);
    [everywhere, system, living]
}

/// What a proxier may do in the whole computing cluster; with a name, only with the object of that name.
const ANSWERING: [(Rule, Option<&str>); 6] = [
    (rule("", "nodes", &["list", "watch"]), None),
    (rule("", "pods", &["get", "list"]), None),
    (rule("authentication.k8s.io", "tokenreviews", &["create"]), None),
    (rule("authorization.k8s.io", "subjectaccessreviews", &["create"]), None),
    // Whose the physical pods are, and who vouches for callers.
    (rule("", "namespaces", &["get"]), Some("kube-system")),
    (rule("", "configmaps", &["get"]), Some("extension-apiserver-authentication")),
];

/// To read an object and hear of its changes; with a name, only of the object of that name.
const FOLLOW: &[&str] = &["get", "list", "watch"];

/// The roles of one binding's proxier in its computing cluster: it writes nothing, and reads two Secrets: the
/// binding's kubeconfig, by namespace and name, and the authority of the kubelet API.
pub fn proxier_roles(name: &str, binding: &str, kubeconfig: (&str, &str)) -> Vec<Value> {
    let only = |rule: &Rule, names: &[&str]| {
        let mut rule = one(rule);
        rule["resourceNames"] = json!(names);
        rule
    };
    let mut rules: Vec<Value> = ANSWERING
        .iter()
        .map(|(rule, object)| match object {
            Some(object) => only(rule, &[object]),
            None => one(rule),
        })
        .collect();
    rules.push(only(&rule("cloud.tencent.com", "clusterbindings", FOLLOW), &[binding]));
    let mut everywhere = cluster_role(name, &[]);
    everywhere["rules"] = rules.into();
    let authority = only(&rule("", "secrets", &["get"]), &[AUTHORITY]);
    let key = only(&rule("", "secrets", FOLLOW), &[kubeconfig.1]);
    let (mut system, mut there) = (role(name, SYSTEM_NAMESPACE, &[]), role(name, kubeconfig.0, &[]));
    if kubeconfig.0 == SYSTEM_NAMESPACE {
        system["rules"] = json!([authority, key]);
        return vec![everywhere, system];
    }
    system["rules"] = json!([authority]);
    there["rules"] = json!([key]);
    vec![everywhere, system, there]
}

/// Takes the rules on some resources away.
fn remove(role: &mut Value, resources: &[&str]) {
    if let Some(rules) = role["rules"].as_array_mut() {
        rules.retain(|rule| !resources.iter().any(|resource| rule["resources"][0] == *resource));
    }
}

/// Restricts some verbs of a rule to the object of one name.
fn narrow(role: &mut Value, resource: &str, verbs: &[&str], name: &str) {
    let Some(rules) = role["rules"].as_array_mut() else { return };
    let Some(at) = rules.iter().position(|rule| rule["resources"][0] == resource) else { return };
    let mut own = rules[at].clone();
    let (some, rest): (Vec<Value>, Vec<Value>) = own["verbs"]
        .as_array()
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .partition(|verb| verbs.iter().any(|narrowed| verb == narrowed));
    own["verbs"] = some.into();
    own["resourceNames"] = json!([name]);
    if rest.is_empty() {
        rules[at] = own;
    } else {
        rules[at]["verbs"] = rest.into();
        rules.insert(at + 1, own);
    }
}

/// What a manager needs besides to run syncers and proxiers as Deployments: to make them, their accounts and their
/// roles. It can hand out only what it may do itself.
pub fn deploying_roles(name: &str) -> [Value; 2] {
    const ALL: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
    const RBAC: &str = "rbac.authorization.k8s.io";
    // Roles are wherever a kubeconfig is.
    let everywhere = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map(|kind| rule(RBAC, kind, ALL));
    let system = [
        rule("", "serviceaccounts", ALL),
        rule("", "services", &["create", "patch", "delete"]),
        rule("apps", "deployments", ALL),
    ];
    let name = &format!("{name}-deployments");
    [cluster_role(name, &everywhere), role(name, SYSTEM_NAMESPACE, &system)]
}

/// What a worker cluster grants.
pub(crate) struct Rights {
    /// What a syncer needs and may not do, in words.
    pub(crate) missing: Vec<String>,
    /// Features of which at least one right is not granted.
    pub(crate) withheld: Features,
}

/// Asks a worker cluster for our rights there; `needed` are features that the binding cannot do without.
pub(crate) async fn rights(worker: &Endpoint, mount_namespace: &str, needed: &Features) -> Result<Rights, Status> {
    let mut questions = Vec::new();
    for (rules, namespace) in [(CLUSTER.as_slice(), ""), (MOUNT.as_slice(), mount_namespace)] {
        for rule in rules {
            questions.extend(rule.verbs.iter().map(|verb| ask(worker, rule, namespace, verb)));
        }
    }
    let mut out = Rights { missing: Vec::new(), withheld: Features::new() };
    // A connection for each at once would be a burden on both sides.
    let mut answers = futures::stream::iter(questions).buffered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        match answer? {
            Some((Some(feature), _)) if !needed.contains(&feature) => drop(out.withheld.insert(feature)),
            Some((_, words)) => out.missing.push(words),
            None => {}
        }
    }
    Ok(out)
}

/// How often a question is asked that gets no answer: with many questions, asking all of them again would take long.
const TRIES: usize = 4;
/// How many questions are asked at once.
const AT_ONCE: usize = 8;

/// Asks whether we may; returns what we may not.
async fn ask(
    worker: &Endpoint,
    rule: &Rule,
    namespace: &str,
    verb: &str,
) -> Result<Option<(Option<Feature>, String)>, Status> {
    let (resource, subresource) = rule.resource.split_once('/').unwrap_or((rule.resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"group": rule.group, "resource": resource, "subresource": subresource, "namespace": namespace, "verb": verb}},
    });
    let reviews = Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
    let mut answer = worker.create(&reviews, None, &review).await;
    for _ in 1..TRIES {
        if answer.as_ref().is_err_and(|status| status.code >= 500) {
            answer = worker.create(&reviews, None, &review).await;
        }
    }
    if answer?["status"]["allowed"] == true {
        return Ok(None);
    }
    let group = if rule.group.is_empty() { String::new() } else { format!(".{}", rule.group) };
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    Ok(Some((rule.feature, format!("{verb} {}{group}{place}", rule.resource))))
}
