//! `atoll logs`: the logs of many pods in many members, line by line.

use atoll_meta::{Gvr, selector::LabelSelector};
use atoll_runtime::Endpoint;
use clap::Args;
use futures::StreamExt as _;
use http::Method;

use super::access::{Access, block_on, told};
use super::get::{encode, find, members};
use super::output;

/// Print the logs of a workload's pods in all members.
#[derive(Args)]
#[command(after_help = "Examples:\n  atoll logs deployment/web -f\n  atoll logs web-7957885594-gskvn --tail 20")]
pub struct Logs {
    /// `KIND/NAME` of a workload, or the name of a pod
    target: String,
    /// Namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Container
    #[arg(short, long, default_value = "")]
    container: String,
    /// Keep printing
    #[arg(short, long)]
    follow: bool,
    /// Lines from the end
    #[arg(long)]
    tail: Option<u64>,
    #[command(flatten)]
    access: Access,
}

impl Logs {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.access.endpoint("fleet").await?;
            let query = self.pod_query(&fleet).await?;
            let mut pods = Vec::new();
            for member in members(&fleet).await? {
                let way = member_path(&member);
                let path = format!("{way}{}{query}", Gvr::new("", "v1", "pods").path(Some(&self.namespace), None));
                let list = fleet.get_path(&path).await.map_err(told)?;
                for item in list["items"].as_array().into_iter().flatten() {
                    pods.push((member.clone(), item["metadata"]["name"].as_str().unwrap_or_default().to_owned()));
                }
            }
            anyhow::ensure!(!pods.is_empty(), "no pods of {} in namespace {}", self.target, self.namespace);
            futures::future::join_all(pods.iter().map(|(member, pod)| self.print(&fleet, member, pod))).await;
            Ok(())
        })
    }

    /// The selector of the workload, or the name of the pod.
    async fn pod_query(&self, fleet: &Endpoint) -> anyhow::Result<String> {
        let Some((kind, name)) = self.target.split_once('/') else {
            return Ok(format!("?fieldSelector=metadata.name%3D{}", encode(&self.target)));
        };
        let resource = find(fleet, kind).await?;
        let object = fleet.get(&resource.gvr, Some(&self.namespace), name).await.map_err(told)?;
        let selector =
            LabelSelector::from_value(&object["spec"]["selector"]).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(format!("?labelSelector={}", encode(&selector.to_string())))
    }

    async fn print(&self, fleet: &Endpoint, member: &str, pod: &str) {
        let mut path = format!(
            "{}{}/log?follow={}",
            member_path(member),
            Gvr::new("", "v1", "pods").path(Some(&self.namespace), Some(pod)),
            self.follow
        );
        if !self.container.is_empty() {
            path.push_str(&format!("&container={}", encode(&self.container)));
        }
        if let Some(lines) = self.tail {
            path.push_str(&format!("&tailLines={lines}"));
        }
        let answer = match fleet.open(Method::GET, &path, "application/json", bytes::Bytes::new()).await {
            Ok(answer) if answer.status().is_success() => answer,
            Ok(answer) => return eprintln!("{member}/{pod}: {}", answer.status()),
            Err(status) => return eprintln!("{member}/{pod}: {status}"),
        };
        let mut body = answer.into_body();
        let mut rest = Vec::new();
        while let Some(Ok(piece)) = body.next().await {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                output::line(&format!("{member}/{pod} {}", String::from_utf8_lossy(&line).trim_end()));
            }
        }
        if !rest.is_empty() {
            output::line(&format!("{member}/{pod} {}", String::from_utf8_lossy(&rest)));
        }
    }
}

/// The way to a member through its instance.
fn member_path(member: &str) -> String {
    format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy")
}
