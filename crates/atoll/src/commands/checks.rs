//! What `atoll doctor` looks at.

use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

use super::access::{Access, told};

/// Certificates that end sooner are told.
const SOON_DAYS: i64 = 14;
/// A disk fuller than this is told, in percent.
const FULL: u64 = 90;
/// Clocks further apart are told, in seconds.
const SKEW: i64 = 5;

/// One thing that was looked at.
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// Whether it is well.
    pub well: bool,
    /// How it is.
    pub detail: String,
    /// What to do if it is not well.
    pub remedy: &'static str,
}

fn finding(what: impl Into<String>, well: bool, detail: impl Into<String>, remedy: &'static str) -> Finding {
    Finding { what: what.into(), well, detail: detail.into(), remedy }
}

/// Whether the server says that it is well, and which version it is.
pub async fn health(root: &Endpoint) -> Vec<Finding> {
    let answer = root.send(http::Method::GET, "/readyz?verbose", "application/json", bytes::Bytes::new()).await;
    let (well, detail) = match answer {
        Ok(bytes) => {
            (true, String::from_utf8_lossy(&bytes).lines().count().saturating_sub(1).to_string() + " checks pass")
        }
        Err(status) => (false, status.to_string()),
    };
    let remedy = "see which check fails with `kubectl get --raw '/readyz?verbose'`; a failing `etcd` check means the store cannot write (full disk, lost etcd)";
    let mut found = vec![finding("server", well, detail, remedy)];
    if let Ok(version) = root.get_path("/version").await {
        found.push(finding("version", true, version["gitVersion"].as_str().unwrap_or_default(), ""));
    }
    found
}

/// Compares our clock with that of the server by an object that is only asked for, never stored.
pub async fn clock(root: &Endpoint) -> Vec<Finding> {
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "doctor-"}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let body = serde_json::to_vec(&probe).unwrap_or_default().into();
    let Ok(bytes) = root.send(http::Method::POST, path, "application/json", body).await else { return Vec::new() };
    let tree: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let server = tree["metadata"]["creationTimestamp"].as_str().and_then(atoll_meta::time::parse);
    let Some(server) = server else { return Vec::new() };
    let skew = (jiff::Timestamp::now().as_second() - server.as_second()).abs();
    let remedy = "synchronise the clocks (NTP): certificates and leases depend on them";
    vec![finding("clock", skew <= SKEW, format!("{skew} s apart from the server"), remedy)]
}

/// What we may do.
pub async fn rights(root: &Endpoint) -> Vec<Finding> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}});
    let gvr = Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
    let Ok(answer) = root.create(&gvr, None, &review).await else { return Vec::new() };
    let all = answer["status"]["allowed"] == true;
    let detail = if all { "you may do everything" } else { "you may do some things only" };
    vec![finding("permissions", true, detail, "")]
}

/// When the certificates of the kubeconfig end.
pub fn certificates(access: &Access, now: jiff::Timestamp) -> Vec<Finding> {
    let Ok(config) = access.read() else { return Vec::new() };
    let tree = serde_json::to_value(&config).unwrap_or_default();
    let remedy = "make it anew: a hub renews its own when it starts, people get a new kubeconfig with `atoll login`";
    let mut found = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for (list, part, key) in
        [("clusters", "cluster", "certificate-authority-data"), ("users", "user", "client-certificate-data")]
    {
        let mut all: Vec<&Value> = tree[list].as_array().into_iter().flatten().collect();
        // Contexts of one hub share most of these: they are told once, of the hub.
        all.sort_by_key(|named| named["name"] != "root");
        for named in all {
            let Some(data) = named[part][key].as_str().filter(|data| known.insert((*data).to_owned())) else {
                continue;
            };
            let what = if list == "users" { "certificate of user" } else { "authority of" };
            let what = format!("{what} {}", named["name"].as_str().unwrap_or_default());
            found.push(match days_left(data, now) {
                Some(days) => finding(what, days > SOON_DAYS, format!("ends in {days} days"), remedy),
                None => finding(what, false, "cannot be read", remedy),
            });
        }
    }
    found
}

fn days_left(data: &str, now: jiff::Timestamp) -> Option<i64> {
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    let validity = atoll_pki::validity_of(std::str::from_utf8(&pem).ok()?).ok()?;
    Some((validity.not_after.as_second() - now.as_second()) / 86_400)
}

/// How full the disk of the store is, if the hub runs here.
pub fn disk(access: &Access) -> Vec<Finding> {
    let directory = access.path().ok().and_then(|path| path.parent().map(ToOwned::to_owned));
    let Some(directory) = directory.filter(|directory| directory.join("format").exists()) else { return Vec::new() };
    let Ok(ran) = std::process::Command::new("df").arg("-P").arg(&directory).output() else { return Vec::new() };
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    let share = told.lines().nth(1).and_then(|line| line.split_whitespace().nth(4)?.trim_end_matches('%').parse().ok());
    let Some(share): Option<u64> = share else { return Vec::new() };
    let remedy = "free some space or move the data directory: a store that cannot write refuses every change";
    vec![finding("disk", share < FULL, format!("{share}% of the store's disk is used"), remedy)]
}

/// Whether instances are ready.
pub async fn instances(root: &Endpoint) -> anyhow::Result<Vec<Finding>> {
    let list = root.list(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, "").await.map_err(told)?;
    let remedy = "see its conditions with `atoll instance get NAME -o yaml`";
    let told = list.items.iter().map(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let phase = item["status"]["phase"].as_str().unwrap_or("unknown");
        finding(format!("instance {name}"), phase == "Ready", phase, remedy)
    });
    Ok(told.collect())
}

/// Whether members answer, and which versions they are.
pub async fn members(fleet: &Endpoint) -> Result<Vec<Finding>, Status> {
    let list = fleet.list(&Gvr::new("cluster.karmada.io", "v1alpha1", "clusters"), None, "").await?;
    let remedy = "check that its API server is reachable and its credentials are valid; nothing is deleted meanwhile";
    let told = list.items.iter().map(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let conditions = item["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let well = ready.is_some_and(|condition| condition["status"] == "True");
        let said = |key: &str| ready.and_then(|condition| condition[key].as_str()).unwrap_or_default();
        let version = item["status"]["kubernetesVersion"].as_str().unwrap_or("of unknown version");
        let detail = match ready {
            None => "no Ready condition yet".to_owned(),
            Some(_) if well => format!("ready, {version}"),
            Some(_) => format!("{}: {}", said("reason"), said("message")),
        };
        finding(format!("member {name}"), well, detail, remedy)
    });
    Ok(told.collect())
}

/// How much of what was decided has not arrived yet.
pub async fn lag(fleet: &Endpoint) -> Result<Vec<Finding>, Status> {
    let works = fleet.list(&Gvr::new("work.karmada.io", "v1alpha1", "works"), None, "").await?;
    let behind: Vec<&str> = works
        .items
        .iter()
        .filter(|work| {
            let mut conditions = work["status"]["conditions"].as_array().into_iter().flatten();
            !conditions.any(|condition| condition["type"] == "Applied" && condition["status"] == "True")
        })
        .filter_map(|work| work["metadata"]["namespace"].as_str())
        .collect();
    let mut places = behind.clone();
    places.sort_unstable();
    places.dedup();
    let detail = match behind.len() {
        0 => format!("{} works are where they belong", works.items.len()),
        count => format!("{count} of {} works have not arrived: {}", works.items.len(), places.join(", ")),
    };
    let remedy =
        "see what the member refuses with `atoll why KIND/NAME`; a member that does not answer is caught up by itself";
    Ok(vec![finding("lag", behind.is_empty(), detail, remedy)])
}
