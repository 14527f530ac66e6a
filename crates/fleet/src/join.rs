//! Joining and unjoining members, as the command line does it.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_api::names;
use atoll_meta::Status;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::gvr;

/// How a member is described when it joins.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The address under which the instance reaches it.
    pub api_endpoint: String,
    /// The authority of its certificate, as PEM; taken from its token secret when missing.
    pub ca_bundle: Option<Vec<u8>>,
    /// Whether its certificate is not checked.
    pub insecure: bool,
    /// Its provider.
    pub provider: String,
    /// Its region.
    pub region: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// Labels of the Cluster.
    pub labels: BTreeMap<String, String>,
}

/// How often to look whether a Cluster is gone.
const STEP: Duration = Duration::from_millis(50);
/// How long a member may take to fill a token in.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where nothing shows that anybody does such things. A member may be so young that nothing does yet, and the
/// tokens that are asked for instead end one day.
const IMPATIENCE: Duration = Duration::from_millis(500);

/// Makes accounts in the member and a Cluster with its credentials in the instance.
pub async fn join(instance: &Endpoint, member: &Endpoint, name: &str, options: JoinOptions) -> Result<(), Status> {
    let mut faults = atoll_meta::name::is_dns1123_label(name);
    if name.len() > 48 {
        faults.push("must be no more than 48 characters".to_owned());
    }
    if let Some(fault) = faults.first() {
        return Err(Status::bad_request(format!("cluster name {name:?}: {fault}")));
    }
    let id = member.get(&gvr::core("namespaces"), None, "kube-system").await?["metadata"]["uid"].clone();
    refuse_twice(instance, name, &id).await?;
    let credentials = accounts(member, name).await?;
    let ca = options.ca_bundle.clone().or(credentials.ca);
    let namespace = Some(names::CLUSTER_NAMESPACE);
    ensure_namespace(instance).await?;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut data = json!({"token": encode(credentials.token.as_bytes())});
    if let Some(ca) = &ca {
        data["caBundle"] = encode(ca).into();
    }
    let main = put_secret(instance, name, &data).await?;
    let impersonator = names::impersonator_secret(name);
    let second =
        put_secret(instance, &impersonator, &json!({"token": encode(credentials.impersonator.as_bytes())})).await?;
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "labels": options.labels},
        "spec": {
            "syncMode": "Push", "id": id, "apiEndpoint": options.api_endpoint,
            "secretRef": {"namespace": names::CLUSTER_NAMESPACE, "name": name},
            "impersonatorSecretRef": {"namespace": names::CLUSTER_NAMESPACE, "name": impersonator},
            "insecureSkipTLSVerification": options.insecure,
            "provider": options.provider, "region": options.region, "zones": options.zones,
        },
    });
    let made = instance.ensure(&gvr::clusters(), None, &cluster).await?;
    for secret in [main, second] {
        let owner = json!([{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": name, "uid": made["metadata"]["uid"]}]);
        let secret_name = secret["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({"metadata": {"ownerReferences": owner}});
        instance.patch(&gvr::core("secrets"), namespace, secret_name, "", Patch::Merge, &patch).await?;
    }
    Ok(())
}

/// The same cluster must not join under two names, nor another under a taken one.
async fn refuse_twice(instance: &Endpoint, name: &str, id: &Value) -> Result<(), Status> {
    for cluster in instance.list(&gvr::clusters(), None, "").await?.items {
        let other = cluster["metadata"]["name"].as_str().unwrap_or_default();
        if other == name {
            return Err(Status::already_exists("cluster.karmada.io", "clusters", name));
        }
        if cluster["spec"]["id"] == *id && id.is_string() {
            return Err(Status::conflict(
                "cluster.karmada.io",
                "clusters",
                name,
                format!("the same cluster has joined as {other}"),
            ));
        }
    }
    Ok(())
}

struct Credentials {
    token: String,
    impersonator: String,
    ca: Option<Vec<u8>>,
}

async fn ensure_namespace(endpoint: &Endpoint) -> Result<(), Status> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::CLUSTER_NAMESPACE}});
    endpoint.ensure(&gvr::core("namespaces"), None, &namespace).await?;
    Ok(())
}

async fn put_secret(instance: &Endpoint, name: &str, data: &Value) -> Result<Value, Status> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": names::CLUSTER_NAMESPACE}, "data": data});
    let namespace = Some(names::CLUSTER_NAMESPACE);
    let present = instance.ensure(&gvr::core("secrets"), namespace, &secret).await?;
    if present["data"] == *data {
        return Ok(present);
    }
    instance.patch(&gvr::core("secrets"), namespace, name, "", Patch::Merge, &json!({"data": data})).await
}

/// Accounts, their rights and their tokens in the member.
async fn accounts(member: &Endpoint, name: &str) -> Result<Credentials, Status> {
    ensure_namespace(member).await?;
    let (account, namespace) = (names::service_account(name), Some(names::CLUSTER_NAMESPACE));
    for account in [account.as_str(), names::IMPERSONATOR] {
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": names::CLUSTER_NAMESPACE}});
        member.ensure(&gvr::core("serviceaccounts"), namespace, &object).await?;
    }
    let role = names::member_role(&account);
    let rules = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]);
    let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules});
    member.ensure(&gvr::rbac("clusterroles"), None, &object).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": names::CLUSTER_NAMESPACE}],
    });
    member.ensure(&gvr::rbac("clusterrolebindings"), None, &binding).await?;
    let patience = if is_tended(member).await? { PATIENCE } else { IMPATIENCE };
    let ((token, ca), (impersonator, _)) =
        tokio::try_join!(token(member, &account, patience), token(member, names::IMPERSONATOR, patience))?;
    Ok(Credentials { token, impersonator, ca })
}

/// Whether a member has the controllers that look after accounts: they give one to every namespace.
async fn is_tended(member: &Endpoint) -> Result<bool, Status> {
    Ok(member.get_opt(&gvr::core("serviceaccounts"), Some("kube-system"), "default").await?.is_some())
}

/// The token of an account: from a secret that the member fills, or asked for directly.
async fn token(member: &Endpoint, account: &str, patience: Duration) -> Result<(String, Option<Vec<u8>>), Status> {
    let namespace = Some(names::CLUSTER_NAMESPACE);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": account, "namespace": names::CLUSTER_NAMESPACE, "annotations": {"kubernetes.io/service-account.name": account}},
    });
    let mut known = member.ensure(&gvr::core("secrets"), namespace, &secret).await?;
    let found = async {
        loop {
            match filled(member, &known).await {
                Ok(Some(found)) => return Some(found),
                Ok(None) => {}
                // Who may not look has nothing to wait for.
                Err(status) if matches!(status.code, 403 | 405) => return None,
                Err(status) => tracing::debug!(account, %status, "its secret cannot be followed"),
            }
            // A way that breaks is tried again: tokens of the secret do not end, those below do.
            tokio::time::sleep(STEP).await;
            known = member.get(&gvr::core("secrets"), namespace, account).await.unwrap_or(known);
        }
    };
    if let Ok(Some(found)) = tokio::time::timeout(patience, found).await {
        return Ok(found);
    }
    tracing::warn!(account, member = member.name(), "the member fills no token in; the one it gives instead will end");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 31_536_000}});
    let answer = member.create_sub(&gvr::core("serviceaccounts"), namespace, account, "token", &request).await?;
    let token = answer["status"]["token"]
        .as_str()
        .ok_or_else(|| Status::unavailable(format!("the member gives no token to {account}")))?;
    Ok((token.to_owned(), None))
}

/// What the member puts into the secret of an account, as soon as it does; `None` if it stops telling.
async fn filled(member: &Endpoint, made: &Value) -> Result<Option<(String, Option<Vec<u8>>)>, Status> {
    let held = |secret: &Value| {
        Some((crate::options::secret_text(secret, "token")?, crate::options::secret_bytes(secret, "ca.crt")))
    };
    if let Some(found) = held(made) {
        return Ok(Some(found));
    }
    let text = |field: &str| made["metadata"][field].as_str().unwrap_or_default();
    let query = format!("fieldSelector=metadata.name%3D{}", text("name"));
    let namespace = Some(names::CLUSTER_NAMESPACE);
    let mut news = member.watch(&gvr::core("secrets"), namespace, &query, text("resourceVersion")).await?;
    while let Some(event) = news.next().await {
        if let WatchEvent::Added(secret) | WatchEvent::Modified(secret) = event?
            && let Some(found) = held(&secret)
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Removes the Cluster, waits until it is gone, and removes the accounts from the member if that can be reached.
pub async fn unjoin(instance: &Endpoint, member: Option<&Endpoint>, name: &str, wait: Duration) -> Result<(), Status> {
    instance.delete(&gvr::clusters(), None, name, &Value::Null).await?;
    let deadline = tokio::time::Instant::now() + wait;
    while instance.get_opt(&gvr::clusters(), None, name).await?.is_some() {
        if tokio::time::Instant::now() > deadline {
            return Err(Status::timeout(format!("cluster {name} is still being removed"), 5));
        }
        tokio::time::sleep(STEP).await;
    }
    for secret in [name.to_owned(), names::impersonator_secret(name)] {
        instance.delete(&gvr::core("secrets"), Some(names::CLUSTER_NAMESPACE), &secret, &Value::Null).await?;
    }
    let Some(member) = member else { return Ok(()) };
    let role = names::member_role(&names::service_account(name));
    member.delete(&gvr::rbac("clusterrolebindings"), None, &role, &Value::Null).await?;
    member.delete(&gvr::rbac("clusterroles"), None, &role, &Value::Null).await?;
    for account in [names::service_account(name), names::IMPERSONATOR.to_owned()] {
        let namespace = Some(names::CLUSTER_NAMESPACE);
        member.delete(&gvr::core("secrets"), namespace, &account, &Value::Null).await?;
        member.delete(&gvr::core("serviceaccounts"), namespace, &account, &Value::Null).await?;
    }
    member.delete(&gvr::core("namespaces"), None, names::CLUSTER_NAMESPACE, &Value::Null).await
}
