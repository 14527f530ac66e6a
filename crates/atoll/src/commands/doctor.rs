//! `atoll doctor`: is the hub well, and what to do if not.

use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use clap::Args;
use serde_json::{Value, json};

use super::access::{Access, block_on, told};
use super::output::{self, Format};

/// Check a hub and its members; each finding comes with its remedy.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll doctor")]
pub struct Doctor {
    #[command(flatten)]
    access: Access,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// One thing that was looked at.
struct Finding {
    what: String,
    well: bool,
    detail: String,
    remedy: &'static str,
}

impl Doctor {
    /// Runs it; findings that are not well make the exit code 1.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let root = self.access.endpoint("root").await?;
            let mut findings = Vec::new();
            health(&root, &mut findings).await;
            clock(&root, &mut findings).await;
            rights(&root, &mut findings).await;
            instances(&root, &mut findings).await?;
            if let Ok(fleet) = self.access.endpoint("fleet").await {
                members(&fleet, &mut findings).await;
            }
            self.print(&findings)?;
            let bad = findings.iter().filter(|finding| !finding.well).count();
            if bad > 0 { anyhow::bail!("{bad} findings need attention") } else { Ok(()) }
        })
    }

    fn print(&self, findings: &[Finding]) -> anyhow::Result<()> {
        let value: Vec<Value> = findings
            .iter()
            .map(|f| json!({"check": f.what, "ok": f.well, "detail": f.detail, "remedy": if f.well { "" } else { f.remedy }}))
            .collect();
        if output::tree(self.output, &Value::Array(value))? {
            return Ok(());
        }
        for finding in findings {
            output::line(&format!(
                "{} {}: {}",
                if finding.well { "ok  " } else { "FAIL" },
                finding.what,
                finding.detail
            ));
            if !finding.well {
                output::line(&format!("       → {}", finding.remedy));
            }
        }
        Ok(())
    }
}

async fn health(root: &Endpoint, findings: &mut Vec<Finding>) {
    let answer = root.send(http::Method::GET, "/readyz?verbose", "application/json", bytes::Bytes::new()).await;
    let (well, detail) = match answer {
        Ok(bytes) => {
            (true, String::from_utf8_lossy(&bytes).lines().count().saturating_sub(1).to_string() + " checks pass")
        }
        Err(status) => (false, status.to_string()),
    };
    let remedy = "see which check fails with `kubectl get --raw '/readyz?verbose'`; a failing `etcd` check means the store cannot write (full disk, lost etcd)";
    findings.push(Finding { what: "server".into(), well, detail, remedy });
    if let Ok(version) = root.get_path("/version").await {
        let detail = version["gitVersion"].as_str().unwrap_or_default().to_owned();
        findings.push(Finding { what: "version".into(), well: true, detail, remedy: "" });
    }
}

/// Compares our clock with that of the server by an object that is only asked for, never stored.
async fn clock(root: &Endpoint, findings: &mut Vec<Finding>) {
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "doctor-"}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let body = serde_json::to_vec(&probe).unwrap_or_default().into();
    let Ok(bytes) = root.send(http::Method::POST, path, "application/json", body).await else { return };
    let tree: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let Some(server) = tree["metadata"]["creationTimestamp"].as_str().and_then(atoll_meta::time::parse) else { return };
    let skew = (jiff::Timestamp::now().as_second() - server.as_second()).abs();
    findings.push(Finding {
        what: "clock".into(),
        well: skew <= 5,
        detail: format!("{skew} s apart from the server"),
        remedy: "synchronise the clocks (NTP): certificates and leases depend on them",
    });
}

async fn rights(root: &Endpoint, findings: &mut Vec<Finding>) {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}});
    let gvr = Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
    if let Ok(answer) = root.create(&gvr, None, &review).await {
        let all = answer["status"]["allowed"] == true;
        let detail = if all { "you may do everything" } else { "you may do some things only" };
        findings.push(Finding { what: "permissions".into(), well: true, detail: detail.into(), remedy: "" });
    }
}

async fn instances(root: &Endpoint, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let list = root.list(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, "").await.map_err(told)?;
    for item in &list.items {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let phase = item["status"]["phase"].as_str().unwrap_or("unknown");
        findings.push(Finding {
            what: format!("instance {name}"),
            well: phase == "Ready",
            detail: phase.to_owned(),
            remedy: "see its conditions with `atoll instance get NAME -o yaml`",
        });
    }
    Ok(())
}

async fn members(fleet: &Endpoint, findings: &mut Vec<Finding>) {
    let clusters = Gvr::new("cluster.karmada.io", "v1alpha1", "clusters");
    let Ok(list) = fleet.list(&clusters, None, "").await else { return };
    for item in &list.items {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let conditions = item["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let well = ready.is_some_and(|condition| condition["status"] == "True");
        let detail = ready.map_or("no Ready condition yet".to_owned(), |condition| {
            format!(
                "{}: {}",
                condition["reason"].as_str().unwrap_or_default(),
                condition["message"].as_str().unwrap_or_default()
            )
        });
        findings.push(Finding {
            what: format!("member {name}"),
            well,
            detail,
            remedy: "check that its API server is reachable and its credentials are valid; nothing is deleted meanwhile",
        });
    }
}
