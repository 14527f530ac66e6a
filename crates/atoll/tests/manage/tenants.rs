//! Tenants stay within the bounds their administrator drew.

use serde_json::{Map, Value, json};

use crate::hub::{Hub, until};

/// Labels and annotations that mean something to the parts that place objects.
const KNOWN: [&str; 39] = [
    "propagationpolicy.karmada.io/permanent-id",
    "propagationpolicy.karmada.io/namespace",
    "propagationpolicy.karmada.io/name",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/name",
    "resourcebinding.karmada.io/permanent-id",
    "resourcebinding.karmada.io/namespace",
    "resourcebinding.karmada.io/name",
    "resourcebinding.karmada.io/dependencies",
    "resourcebinding.karmada.io/depended-by-x",
    "clusterresourcebinding.karmada.io/permanent-id",
    "clusterresourcebinding.karmada.io/name",
    "work.karmada.io/permanent-id",
    "work.karmada.io/namespace",
    "work.karmada.io/name",
    "work.karmada.io/conflict-resolution",
    "policy.karmada.io/applied-placement",
    "policy.karmada.io/applied-overrides",
    "policy.karmada.io/applied-cluster-overrides",
    "resourcetemplate.karmada.io/uid",
    "resourcetemplate.karmada.io/generation",
    "resourcetemplate.karmada.io/managed-labels",
    "resourcetemplate.karmada.io/managed-annotations",
    "resourcetemplate.karmada.io/retain-replicas",
    "resource.karmada.io/query-from-cluster",
    "resource.karmada.io/cached-from-cluster",
    "multiclusterservice.karmada.io/permanent-id",
    "multiclusterservice.karmada.io/namespace",
    "multiclusterservice.karmada.io/name",
    "namespace.karmada.io/skip-auto-propagation",
    "binding.karmada.io/managed-by",
    "endpointslice.karmada.io/provision-cluster",
    "endpointslice.karmada.io/managed-by",
    "federatedresourcequota.karmada.io/namespace",
    "federatedresourcequota.karmada.io/name",
    "karmada.io/managed",
    "karmada.io/system",
    "atoll.io/granted",
    "atoll.io/force-delete",
];

/// The label that keeps an object here.
const CLAIMED: &str = "resourcetemplate.karmada.io/claimed-by";

/// What a tenant would like such words to do: everything for the other member.
fn wishes() -> (Value, Value) {
    let mut labels: Map<String, Value> = KNOWN.iter().map(|key| ((*key).to_owned(), Value::from("member2"))).collect();
    labels.insert("app".into(), "w".into());
    let mut annotations = labels.clone();
    let placement = json!({"clusterAffinity": {"clusterNames": ["member2"]}}).to_string();
    annotations.insert("policy.karmada.io/applied-placement".into(), placement.into());
    (labels.into(), annotations.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn s18_no_label_or_annotation_of_a_tenant_moves_an_object_out_of_its_bounds() {
    let hub = Hub::run(&["up", "--demo", "--members", "2", "--nodes", "1"]);
    let admin = Some(hub.token.as_str());
    let fleet = "/instances/fleet";
    let space = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}});
    assert_eq!(hub.rest(admin, "POST", &format!("{fleet}/api/v1/namespaces"), Some(space)).await.0, 201);
    let policies = format!("{fleet}/apis/policy.karmada.io/v1alpha1/namespaces/team/propagationpolicies");
    let policy = |name: &str, member: &str| {
        json!({"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": name},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {"clusterAffinity": {"clusterNames": [member]}}}})
    };
    assert_eq!(hub.rest(admin, "POST", &policies, Some(policy("bounds", "member1"))).await.0, 201);
    let role = json!({"kind": "AccessRole", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "deployer"},
        "spec": {"rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}]}});
    assert_eq!(hub.rest(admin, "POST", "/apis/atoll.io/v1alpha1/accessroles", Some(role)).await.0, 201);
    let ann = hub.account("ann");
    hub.grant("ann", "deployer", "ann", "fleet", "team").await;
    let deployments = format!("{fleet}/apis/apps/v1/namespaces/team/deployments");
    until(&hub, "the grant holds", async || hub.rest(Some(&ann), "GET", &deployments, None).await.0 == 200).await;

    // What places objects is not for the tenant, and neither are the members.
    assert_eq!(hub.rest(Some(&ann), "POST", &policies, Some(policy("mine", "member2"))).await.0, 403);
    let bindings = format!("{fleet}/apis/work.karmada.io/v1alpha2/namespaces/team/resourcebindings");
    assert_eq!(hub.rest(Some(&ann), "GET", &bindings, None).await.0, 403);
    let works = format!("{fleet}/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member2/works");
    assert_eq!(hub.rest(Some(&ann), "POST", &works, Some(json!({}))).await.0, 403);
    let through = format!("{fleet}/apis/cluster.karmada.io/v1alpha1/clusters/member2/proxy/api/v1/namespaces");
    assert_eq!(hub.rest(Some(&ann), "GET", &through, None).await.0, 403);

    let (labels, annotations) = wishes();
    let workload = |name: &str| {
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": {"metadata": {"labels": labels, "annotations": annotations},
                 "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
    };
    // Claimed for something else, it stays where it is.
    let mut claimed = workload("claimed");
    claimed["metadata"]["labels"][CLAIMED] = "member2".into();
    assert_eq!(hub.rest(Some(&ann), "POST", &deployments, Some(claimed)).await.0, 201);
    let (code, made) = hub.rest(Some(&ann), "POST", &deployments, Some(workload("w"))).await;
    assert_eq!(code, 201, "{made}");
    let place = |member: &str| format!("/instances/{member}/apis/apps/v1/namespaces/team/deployments/w");
    until(&hub, "it runs in its bounds", async || hub.rest(admin, "GET", &place("member1"), None).await.0 == 200).await;

    // Once more, now that it is placed: what is written over must not move it either.
    let again = json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"paused": true}});
    let patch = hub
        .request(Some(&ann), "PATCH", &format!("{deployments}/w"))
        .header("content-type", "application/merge-patch+json");
    let (parts, _) = hub.send(patch.body(http_body_util::Full::new(again.to_string().into())).unwrap()).await;
    assert_eq!(parts.status, 200);
    let arrived = async || hub.rest(admin, "GET", &place("member1"), None).await.1["spec"]["paused"] == true;
    until(&hub, "the change arrives", arrived).await;
    assert_eq!(hub.rest(admin, "GET", &place("member2"), None).await.0, 404);
    for member in ["member1", "member2"] {
        let path = format!("/instances/{member}/apis/apps/v1/namespaces/team/deployments/claimed");
        assert_eq!(hub.rest(admin, "GET", &path, None).await.0, 404, "{member}");
    }
    let (_, binding) = hub.rest(admin, "GET", &format!("{bindings}/w-deployment"), None).await;
    let names: Vec<&str> =
        binding["spec"]["clusters"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["member1"], "{binding}");
}

#[tokio::test(flavor = "multi_thread")]
async fn through_the_proxy_of_a_member_the_roles_of_the_member_decide() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let ann = hub.account("ann");
    hub.grant("ann", "admin", "ann", "fleet", "default").await;
    let maps = "/instances/fleet/api/v1/namespaces/default/configmaps";
    until(&hub, "the grant holds", async || hub.rest(Some(&ann), "GET", maps, None).await.0 == 200).await;
    let proxied = |what: &str| {
        format!(
            "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api/v1/namespaces/default/{what}"
        )
    };
    // A grant for a namespace does not open the proxy of a member, whatever its role.
    assert_eq!(hub.rest(Some(&ann), "GET", &proxied("configmaps"), None).await.0, 403);
    // One for the instance opens the way; in the member the caller is who they are, and has what they have there.
    let wide = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "wide"}, "spec": {
        "role": "viewer", "subjects": [{"kind": "User", "name": "ann"}], "scope": {"instance": "fleet"}}});
    assert_eq!(hub.rest(admin, "POST", "/apis/atoll.io/v1alpha1/grants", Some(wide)).await.0, 201);
    let clusters = "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters";
    until(&hub, "the grant holds", async || hub.rest(Some(&ann), "GET", clusters, None).await.0 == 200).await;
    let (code, refusal) = hub.rest(Some(&ann), "GET", &proxied("configmaps"), None).await;
    assert_eq!(code, 403, "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("\"ann\""), "the member refuses ann: {refusal}");
    hub.grant("inside", "viewer", "ann", "member1", "default").await;
    until(&hub, "the member knows ann", async || {
        hub.rest(Some(&ann), "GET", &proxied("configmaps"), None).await.0 == 200
    })
    .await;
    assert_eq!(hub.rest(Some(&ann), "GET", &proxied("secrets"), None).await.0, 403);
    assert_eq!(hub.rest(Some(&ann), "DELETE", &proxied("configmaps/kube-root-ca.crt"), None).await.0, 403);
}
