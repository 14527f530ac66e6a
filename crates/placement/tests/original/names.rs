//! Names of what propagation makes: other programs compute the same ones.

use atoll_api::names;
use atoll_testkit::ask_original;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

const KINDS: [(&str, &str); 5] = [
    ("apps/v1", "Deployment"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("v1", "ConfigMap"),
    ("Example.com/v1", "HTTPRoute"),
    ("example.com/v1alpha1", "x"),
];

/// A name as Kubernetes takes them for one kind or another: colons, capitals, up to 253 characters.
fn odd_name(random: &mut StdRng) -> String {
    let letters: Vec<char> = "abcxyz0189-.:ABXYZ".chars().collect();
    let length = if random.random_bool(0.1) { 253 } else { random.random_range(1..24) };
    (0..length).map(|_| letters[random.random_range(0..letters.len())]).collect()
}

fn ours(question: &Value) -> Value {
    let text = |field: &str| question[field].as_str().unwrap_or_default();
    let (kind, namespace, name, member) = (text("kind"), text("namespace"), text("name"), text("cluster"));
    let label = names::depended_by_label(namespace, name);
    json!({
        "binding": names::binding(kind, name),
        "work": names::work(kind, name, namespace),
        "execution": names::execution_namespace(member),
        "dependedBy": label.rsplit_once("depended-by-").map_or(&*label, |(_, key)| key),
        "policy": names::generated_policy(name, namespace, text("gvk")),
        "serviceAccount": names::service_account(member),
        "role": names::member_role(member),
        "estimator": names::estimator_service(member),
        "impersonator": names::impersonator_secret(member),
        "derived": names::derived_service(name),
        "imported": names::imported_endpoint_slice(member, name),
    })
}

#[test]
fn names_are_those_of_the_original() {
    let mut random = StdRng::seed_from_u64(3);
    let question = |_| {
        let (version, kind) = KINDS[random.random_range(0..KINDS.len())];
        let namespace = if random.random_bool(0.3) { String::new() } else { odd_name(&mut random) };
        let (name, cluster) = (odd_name(&mut random), odd_name(&mut random));
        json!({
            "ask": "names", "kind": kind, "namespace": namespace, "name": name, "cluster": cluster,
            "gvk": format!("{version}, Kind={kind}"),
        })
    };
    let questions: Vec<Value> = (0..1000).map(question).collect();
    let Some(answers) = ask_original(&questions) else {
        return;
    };
    for (question, answer) in questions.iter().zip(answers) {
        assert_eq!(Ok(ours(question)), answer, "{question}");
    }
}
