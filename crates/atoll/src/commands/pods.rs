//! Pods of one workload in many members, and the way to each.

use atoll_meta::{Gvr, Status, selector::LabelSelector};
use atoll_runtime::Endpoint;
use serde_json::Value;

use super::access::{Fault, told};
use super::get::{encode, find, members};

/// A pod and the member it runs in.
pub struct Found {
    /// The member.
    pub member: String,
    /// The pod as the member tells it.
    pub pod: Value,
}

impl Found {
    /// Name of the pod.
    pub fn name(&self) -> &str {
        self.pod["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Whether its containers run.
    pub fn is_running(&self) -> bool {
        self.pod["status"]["phase"] == "Running"
    }
}

/// The pods of `KIND/NAME`, or the pod of that name, in all members or in some; silent members are told on stderr.
pub async fn of(fleet: &Endpoint, target: &str, namespace: &str, only: &[String]) -> anyhow::Result<Vec<Found>> {
    let query = query(fleet, target, namespace).await?;
    let names = members(fleet, only).await?;
    let list = Gvr::new("", "v1", "pods").path(Some(namespace), None);
    let ask = |member: String| {
        let path = format!("{}{list}{query}", member_path(&member));
        async move { (fleet.get_path(&path).await, member) }
    };
    let (mut found, mut failed) = (Vec::new(), None);
    for (answer, member) in futures::future::join_all(names.into_iter().map(ask)).await {
        match answer {
            Ok(list) => found.extend(
                list["items"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|pod| Found { member: member.clone(), pod: pod.clone() }),
            ),
            Err(status) => {
                eprintln!("{member}: {status}");
                failed = Some(status);
            }
        }
    }
    match failed {
        _ if !found.is_empty() => Ok(found),
        // They may be in a member that does not answer, or does not let look.
        Some(status) => {
            let message =
                format!("found no pods of {target} in namespace {namespace}, and some members did not answer");
            Err(told(Status { message, ..status }))
        }
        None => Err(Fault::Missing(format!("no pods of {target} in namespace {namespace}")).into()),
    }
}

/// The selector of the workload, or the name of the pod.
async fn query(fleet: &Endpoint, target: &str, namespace: &str) -> anyhow::Result<String> {
    let by_name = |name: &str| Ok(format!("?fieldSelector=metadata.name%3D{}", encode(name)));
    let Some((kind, name)) = target.split_once('/') else { return by_name(target) };
    if matches!(kind, "pod" | "pods" | "po") {
        return by_name(name);
    }
    let resource = find(fleet, kind).await?;
    let object = fleet.get(&resource.gvr, Some(namespace), name).await.map_err(told)?;
    let selector =
        LabelSelector::from_value(&object["spec"]["selector"]).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(format!("?labelSelector={}", encode(&selector.to_string())))
}

/// The way to a member through its instance.
pub fn member_path(member: &str) -> String {
    format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy")
}
