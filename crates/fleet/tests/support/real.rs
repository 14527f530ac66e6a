//! Real API servers as members, without controllers; the last one is some releases older than the others.
#![allow(clippy::unwrap_used)]

use atoll_runtime::Endpoint;
use atoll_testkit::{Cluster, Parts, peers};

/// Starts one for each name, or returns `None` with a visible note when their programs are not there.
pub async fn start(names: &[&str]) -> Option<(Vec<Cluster>, Vec<Endpoint>)> {
    if ["etcd", "kube-apiserver", "kube-apiserver-old", "certs"].into_iter().any(|name| peers::find(name).is_none()) {
        return None;
    }
    let start = |old| tokio::task::spawn_blocking(move || Cluster::start(Parts { old, ..Parts::default() }).unwrap());
    let starting: Vec<_> = names.iter().map(|name| start(Some(name) == names.last())).collect();
    let (mut clusters, mut members) = (Vec::new(), Vec::new());
    for (name, one) in names.iter().zip(starting) {
        let cluster = one.await.unwrap()?;
        members.push(atoll_testkit::remote(name, cluster.kubeconfig()).await.unwrap());
        clusters.push(cluster);
    }
    Some((clusters, members))
}
