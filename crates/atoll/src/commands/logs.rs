//! `atoll logs`: the logs of many pods in many members, line by line.

use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use clap::Args;
use futures::StreamExt as _;
use http::Method;

use super::access::{Access, block_on};
use super::get::encode;
use super::output;
use super::pods::{self, Found, member_path};

/// Print the logs of a workload's pods in all members.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll logs deployment/web -f\n  atoll logs deployment/web --clusters member1 --tail 20\n  atoll logs web-7957885594-gskvn --since 10m"
)]
pub struct Logs {
    /// `KIND/NAME` of a workload, or the name of a pod
    target: String,
    /// Namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Container
    #[arg(short, long, default_value = "", hide_default_value = true)]
    container: String,
    /// Keep printing
    #[arg(short, long)]
    follow: bool,
    /// Lines from the end
    #[arg(long)]
    tail: Option<u64>,
    /// Only what was said lately: seconds, or such as 90s, 5m, 2h
    #[arg(long, value_parser = seconds)]
    since: Option<u64>,
    /// Only these members, separated by commas
    #[arg(long, value_delimiter = ',')]
    clusters: Vec<String>,
    #[command(flatten)]
    access: Access,
}

impl Logs {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.access.endpoint("fleet").await?;
            let found = pods::of(&fleet, &self.target, &self.namespace, &self.clusters).await?;
            let whole = futures::future::join_all(found.iter().map(|one| self.print(&fleet, one))).await;
            anyhow::ensure!(whole.into_iter().all(|whole| whole), "some pods did not give their logs");
            Ok(())
        })
    }

    fn path(&self, one: &Found) -> String {
        let pod = Gvr::new("", "v1", "pods").path(Some(&self.namespace), Some(one.name()));
        let mut path = format!("{}{pod}/log?follow={}", member_path(&one.member), self.follow);
        if !self.container.is_empty() {
            path.push_str(&format!("&container={}", encode(&self.container)));
        }
        if let Some(lines) = self.tail {
            path.push_str(&format!("&tailLines={lines}"));
        }
        if let Some(seconds) = self.since {
            path.push_str(&format!("&sinceSeconds={seconds}"));
        }
        path
    }

    /// Prints the lines of one pod; `false` when it gave none because something is wrong.
    async fn print(&self, fleet: &Endpoint, one: &Found) -> bool {
        let whose = format!("{}/{}", one.member, one.name());
        let opened = fleet.open(Method::GET, &self.path(one), "application/json", bytes::Bytes::new()).await;
        let answer = match opened {
            Ok(answer) if answer.status().is_success() => answer,
            failed => {
                let why = failed.map_or_else(|status| status.to_string(), |answer| answer.status().to_string());
                eprintln!("{whose}: {why}");
                return false;
            }
        };
        let mut body = answer.into_body();
        let mut rest = Vec::new();
        while let Some(Ok(piece)) = body.next().await {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                output::line(&format!("{whose} {}", String::from_utf8_lossy(&line).trim_end()));
            }
        }
        if !rest.is_empty() {
            output::line(&format!("{whose} {}", String::from_utf8_lossy(&rest)));
        }
        true
    }
}

/// A number of seconds, plain or as Go writes durations.
fn seconds(text: &str) -> Result<u64, String> {
    if let Ok(plain) = text.parse() {
        return Ok(plain);
    }
    let read = atoll_meta::time::parse_duration(text)?;
    u64::try_from(read.as_secs()).map_err(|_| "it lies in the future".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_durations() {
        for (text, expected) in
            [("600", Some(600)), ("10m", Some(600)), ("1h30m", Some(5400)), ("-5m", None), ("soon", None)]
        {
            assert_eq!(seconds(text).ok(), expected, "{text}");
        }
    }
}
