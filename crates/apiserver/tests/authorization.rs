//! Who may do what: rules, escalation, aggregation, reviews, signing.
#![allow(clippy::unwrap_used)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{TestHub, Who};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const AUTHZ: &str = "/apis/authorization.k8s.io/v1";
const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources})
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}]})
}

#[tokio::test]
async fn rights_hold_where_they_are_given_and_nowhere_else() {
    let hub = TestHub::new().await;
    hub.instance("a").await;
    hub.post(&Who::Master, &format!("{RBAC}/namespaces/default/rolebindings"), binding("b", "view", "jane"))
        .await
        .expect(201);
    let jane = Who::User("jane");
    let table = [
        ("/api/v1/namespaces/default/configmaps", 200),
        ("/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=x", 200),
        ("/api/v1/namespaces/default/secrets", 403),
        ("/api/v1/namespaces/kube-system/configmaps", 403),
        ("/api/v1/configmaps", 403),
        ("/api/v1/nodes", 403),
        ("/api", 200),
        ("/metrics", 403),
        ("/instances/a/api/v1/namespaces/default/configmaps", 403),
    ];
    for (path, code) in table {
        assert_eq!(hub.get(&jane, path).await.code, code, "{path}");
    }
    hub.call(&Who::Master, "DELETE", &format!("{RBAC}/namespaces/default/rolebindings/b"), Value::Null)
        .await
        .expect(200);
    assert_eq!(
        hub.get(&jane, "/api/v1/namespaces/default/configmaps").await.code,
        403,
        "gone with the binding, at once"
    );
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let hub = TestHub::new().await;
    let manage =
        rule(&["*"], "rbac.authorization.k8s.io", &["roles", "rolebindings", "clusterroles", "clusterrolebindings"]);
    // Everything about roles, but neither escalate nor bind.
    let mut manage = manage;
    manage["verbs"] = json!(["get", "list", "create", "update", "patch", "delete"]);
    hub.grant("", "manager", "jane", json!([manage, rule(&["get"], "", &["pods"])])).await;
    let jane = Who::User("jane");
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    hub.post(&jane, &roles, role("fine", json!([rule(&["get"], "", &["pods"])]))).await.expect(201);
    let refused =
        hub.post(&jane, &roles, role("more", json!([rule(&["get", "list"], "", &["pods", "secrets"])]))).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message(),
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}"
    );
    let wider = json!({"rules": [rule(&["*"], "*", &["*"])]});
    let fine = format!("{roles}/fine");
    let mut whole = hub.get(&jane, &fine).await.expect(200);
    whole["rules"] = wider["rules"].clone();
    assert_eq!(hub.call(&jane, "PUT", &fine, whole.clone()).await.code, 403, "update");
    assert_eq!(hub.call(&jane, "PATCH", &fine, wider.clone()).await.code, 403, "merge patch");
    let json_patch = json!([{"op": "replace", "path": "/rules/0/verbs", "value": ["*"]}]);
    let headers = [("content-type", "application/json-patch+json")];
    assert_eq!(hub.call_as(&jane, "PATCH", &fine, json_patch, &headers).await.code, 403, "JSON patch");
    let mut applied = whole;
    applied["metadata"] = json!({"name": "fine", "namespace": "default"});
    applied["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    applied["kind"] = "Role".into();
    let headers = [("content-type", "application/apply-patch+yaml")];
    let forced = hub.call_as(&jane, "PATCH", &format!("{fine}?fieldManager=x&force=true"), applied, &headers).await;
    assert_eq!(forced.code, 403, "apply: {}", forced.text);
    for name in ["cluster-admin", "edit"] {
        assert_eq!(
            hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding("x", name, "jane")).await.code,
            403,
            "{name}"
        );
        assert_eq!(
            hub.post(&jane, &format!("{RBAC}/namespaces/default/rolebindings"), binding("x", name, "jane")).await.code,
            403,
            "{name}"
        );
    }
    hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding("own", "manager", "joe")).await.expect(201);
    assert_eq!(
        hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding("none", "no-such-role", "joe")).await.code,
        404
    );
    let gather = json!({"metadata": {"name": "g"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let refused = hub.post(&jane, &format!("{RBAC}/clusterroles"), gather).await;
    assert!(
        refused.message().ends_with("must have cluster-admin privileges to use the aggregationRule"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn the_verbs_escalate_and_bind_lift_the_bar() {
    let hub = TestHub::new().await;
    let rbac = "rbac.authorization.k8s.io";
    hub.grant(
        "",
        "powers",
        "jane",
        json!([
            rule(&["create", "escalate"], rbac, &["clusterroles"]),
            {"verbs": ["bind"], "apiGroups": [rbac], "resources": ["clusterroles"], "resourceNames": ["wide"]},
            rule(&["create"], rbac, &["clusterrolebindings"]),
        ]),
    )
    .await;
    let jane = Who::User("jane");
    let wide = json!({"metadata": {"name": "wide"}, "rules": [rule(&["*"], "*", &["*"])]});
    hub.post(&jane, &format!("{RBAC}/clusterroles"), wide).await.expect(201);
    hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding("b", "wide", "joe")).await.expect(201);
    assert_eq!(
        hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding("c", "cluster-admin", "joe")).await.code,
        403
    );
}

#[tokio::test]
async fn aggregated_roles_change_with_their_parts() {
    let hub = TestHub::new().await;
    hub.bind("", "view", "jane").await;
    let (jane, widgets) = (Who::User("jane"), "/api/v1/nodes");
    let part = json!({"metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule(&["list"], "", &["nodes"])]});
    assert_eq!(hub.get(&jane, widgets).await.code, 403);
    hub.post(&Who::Master, &format!("{RBAC}/clusterroles"), part).await.expect(201);
    assert_eq!(hub.get(&jane, widgets).await.code, 200);
    let has = |role: Value| role["rules"].as_array().unwrap().contains(&rule(&["list"], "", &["nodes"]));
    for name in ["view", "edit", "admin"] {
        assert!(has(hub.get(&Who::Master, &format!("{RBAC}/clusterroles/{name}")).await.expect(200)), "{name}");
    }
    hub.call(&Who::Master, "PATCH", &format!("{RBAC}/clusterroles/view"), json!({"rules": []})).await.expect(200);
    assert_eq!(hub.get(&jane, widgets).await.code, 200, "rules of aggregated roles are not set by hand");
    hub.call(&Who::Master, "DELETE", &format!("{RBAC}/clusterroles/widgets"), Value::Null).await.expect(200);
    assert_eq!(hub.get(&jane, widgets).await.code, 403);
    assert!(!has(hub.get(&Who::Master, &format!("{RBAC}/clusterroles/admin")).await.expect(200)));
}

#[tokio::test]
async fn reviews_say_what_requests_would_meet() {
    let hub = TestHub::new().await;
    hub.post(&Who::Master, &format!("{RBAC}/namespaces/default/rolebindings"), binding("b", "view", "jane"))
        .await
        .expect(201);
    let ask = |attributes: Value| json!({"spec": {"user": "jane", "groups": [], "resourceAttributes": attributes}});
    let table = [
        (json!({"verb": "get", "resource": "pods", "namespace": "default"}), true),
        (json!({"verb": "get", "resource": "pods", "namespace": "other"}), false),
        (json!({"verb": "get", "resource": "pods"}), false),
        (json!({"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"}), true),
        (json!({"verb": "create", "resource": "pods", "namespace": "default"}), false),
        (json!({"verb": "get", "resource": "secrets", "namespace": "default"}), false),
    ];
    for (attributes, allowed) in table {
        let status =
            hub.post(&Who::Master, &format!("{AUTHZ}/subjectaccessreviews"), ask(attributes.clone())).await.expect(201)
                ["status"]
                .clone();
        assert_eq!(status["allowed"], allowed, "{attributes}");
        if allowed {
            assert_eq!(
                status["reason"],
                "RBAC: allowed by RoleBinding \"b/default\" of ClusterRole \"view\" to User \"jane\""
            );
        }
        let own = json!({"spec": {"resourceAttributes": attributes}});
        let own = hub.post(&Who::User("jane"), &format!("{AUTHZ}/selfsubjectaccessreviews"), own).await.expect(201);
        assert_eq!(own["status"]["allowed"], allowed, "{attributes}");
    }
    let url = json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/version"}}});
    let status = hub.post(&Who::User("jane"), &format!("{AUTHZ}/selfsubjectaccessreviews"), url).await.expect(201);
    assert_eq!(status["status"]["allowed"], true);
    let local = format!("{AUTHZ}/namespaces/default/localsubjectaccessreviews");
    hub.post(&Who::Master, &local, ask(json!({"verb": "get", "resource": "pods", "namespace": "default"})))
        .await
        .expect(201);
    assert_eq!(
        hub.post(&Who::Master, &local, ask(json!({"verb": "get", "resource": "pods", "namespace": "x"}))).await.code,
        422
    );
    assert_eq!(
        hub.post(&Who::Master, &format!("{AUTHZ}/subjectaccessreviews"), json!({"spec": {"user": "x"}})).await.code,
        422
    );
    let neither = ask(json!({"verb": "get"}));
    let nobody = json!({"spec": {"resourceAttributes": neither["spec"]["resourceAttributes"]}});
    assert_eq!(hub.post(&Who::Master, &format!("{AUTHZ}/subjectaccessreviews"), nobody).await.code, 422);
    assert_eq!(hub.post(&Who::User("jane"), &format!("{AUTHZ}/subjectaccessreviews"), ask(json!({}))).await.code, 403);
    let rules = hub
        .post(
            &Who::User("jane"),
            &format!("{AUTHZ}/selfsubjectrulesreviews"),
            json!({"spec": {"namespace": "default"}}),
        )
        .await
        .expect(201);
    let listed = rules["status"]["resourceRules"].as_array().unwrap();
    assert!(listed.iter().any(|rule| rule["resources"].as_array().unwrap().contains(&json!("configmaps"))));
    assert!(
        rules["status"]["nonResourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["nonResourceURLs"].as_array().unwrap().contains(&json!("/version")))
    );
    assert_eq!(rules["status"]["incomplete"], false);
}

fn request(user: &str, groups: &[&str]) -> String {
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, user);
    for group in groups {
        parameters.distinguished_name.push(rcgen::DnType::OrganizationName, *group);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    STANDARD.encode(parameters.serialize_request(&key).unwrap().pem().unwrap())
}

fn csr(name: &str, pem: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"request": pem, "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth", "digital signature"], "username": "forged", "groups": ["system:masters"]}})
}

#[tokio::test]
async fn signing_requests_bear_the_name_of_who_asks_and_are_signed_when_approved() {
    let hub = TestHub::new().await;
    hub.grant(
        "",
        "asker",
        "jane",
        json!([rule(
            &["*"],
            "certificates.k8s.io",
            &["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"]
        )]),
    )
    .await;
    let jane = Who::User("jane");
    let made = hub.post(&jane, CSRS, csr("one", &request("joe", &["dev"]))).await.expect(201);
    assert_eq!(made["spec"]["username"], "jane");
    assert_eq!(made["spec"]["groups"], json!(["system:authenticated"]));
    let mut changed = made.clone();
    changed["spec"]["username"] = "forged".into();
    changed["spec"]["request"] = request("admin", &["dev"]).into();
    let after = hub.call(&Who::Master, "PUT", &format!("{CSRS}/one"), changed).await;
    assert!(after.code == 422 || after.body["spec"] == made["spec"], "{}", after.text);
    let approve = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "ok", "message": "", "lastUpdateTime": null}]}});
    let refused = hub.call(&jane, "PATCH", &format!("{CSRS}/one/approval"), approve.clone()).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        refused.message().ends_with(
            "user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""
        )
    );
    let refused = hub
        .call(&jane, "PATCH", &format!("{CSRS}/one/status"), json!({"status": {"certificate": STANDARD.encode("x")}}))
        .await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let forged = hub
        .hub
        .credentials(&hub.hub.root())
        .await
        .unwrap()
        .certificate("x", &[], jiff::SignedDuration::from_hours(1))
        .unwrap();
    let refused = hub
        .call(
            &jane,
            "PATCH",
            &format!("{CSRS}/one/status"),
            json!({"status": {"certificate": STANDARD.encode(forged.cert)}}),
        )
        .await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    let sneaky = hub.call(&Who::Master, "PATCH", &format!("{CSRS}/one/status"), approve.clone()).await;
    assert_eq!(sneaky.code, 422, "approval has its own endpoint");
    assert!(sneaky.message().ends_with("updates may not add a condition of type \"Approved\""), "{}", sneaky.text);
    let signed = hub.call(&Who::Master, "PATCH", &format!("{CSRS}/one/approval"), approve).await.expect(200);
    let pem = String::from_utf8(STANDARD.decode(signed["status"]["certificate"].as_str().unwrap()).unwrap()).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
    assert!(signed["status"]["conditions"][0]["lastUpdateTime"].is_string());
    let denied = json!({"status": {"conditions": [{"type": "Denied", "status": "True"}]}});
    assert_eq!(
        hub.call(&Who::Master, "PATCH", &format!("{CSRS}/one/approval"), denied).await.code,
        422,
        "an approval stays"
    );
    let masters = hub.post(&jane, CSRS, csr("two", &request("joe", &["system:masters"]))).await;
    assert_eq!(masters.code, 403);
    assert_eq!(hub.post(&jane, CSRS, csr("three", &STANDARD.encode("nonsense"))).await.code, 422);
}

#[tokio::test]
async fn a_viewer_finds_no_credentials_anywhere() {
    let hub = TestHub::new().await;
    let a = hub.instance("a").await;
    hub.hub.authority(&a).await.unwrap();
    hub.hub.authority(&hub.hub.root()).await.unwrap();
    hub.hub.add_token("admin", "canary-token", support::user("x")).await.unwrap();
    hub.post(
        &Who::Master,
        "/api/v1/namespaces/default/secrets",
        json!({"metadata": {"name": "s"}, "stringData": {"k": "canary-secret"}}),
    )
    .await
    .expect(201);
    hub.bind("", "view", "jane").await;
    hub.bind("/instances/a", "cluster-admin", "ann").await;
    let encoded = STANDARD.encode("canary-secret");
    for (base, who) in [("", Who::User("jane")), ("/instances/a", Who::User("ann"))] {
        let instance = if base.is_empty() { hub.hub.root() } else { a.clone() };
        for kind in instance.kinds().iter().filter(|kind| kind.has_verb("list")) {
            let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
            let answer = hub.get(&who, &format!("{base}{group}/{}/{}", kind.version, kind.plural)).await;
            assert!(answer.code == 403 || answer.code == 200, "{} {}", kind.plural, answer.code);
            for canary in
                ["PRIVATE KEY", "LS0tLS1CRUdJTiBQUklWQVRF", "canary-token", "canary-secret", encoded.as_str(), "sa.key"]
            {
                assert!(!answer.text.contains(canary), "{base} {} shows {canary}", kind.plural);
            }
        }
    }
    let stored = hub.get(&Who::Master, "/api/v1/namespaces/atoll-system/secrets/tokens").await.expect(200);
    assert!(
        !String::from_utf8(STANDARD.decode(stored["data"]["admin"].as_str().unwrap()).unwrap())
            .unwrap()
            .contains("canary-token")
    );
}
