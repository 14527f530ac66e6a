//! Services of type LoadBalancer get an address.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Again, parent, write_status};
use crate::kind::Kind;
use crate::world::{Work, World};

/// The outer address of a service: as unique as its inner one.
fn address(service: &Value) -> Option<String> {
    let wanted = service["spec"]["loadBalancerIP"].as_str().filter(|ip| !ip.is_empty());
    if let Some(ip) = wanted {
        return Some(ip.to_owned());
    }
    let inner: Ipv4Addr = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    let [.., high, low] = inner.octets();
    Some(Ipv4Addr::new(172, 19, high, low).to_string())
}

fn status(service: &Value) -> Value {
    let mut status = service["status"].clone();
    let ours = service["spec"]["loadBalancerClass"].is_null();
    if service["spec"]["type"] != "LoadBalancer" {
        status["loadBalancer"] = json!({});
    } else if ours && let Some(ip) = address(service) {
        status["loadBalancer"] = json!({"ingress": [{"ip": ip, "ipMode": "VIP"}]});
    }
    status
}

/// Looks after one Service.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(service) = parent(world, Kind::Service, work) else { return Ok(None) };
    if service["metadata"]["deletionTimestamp"].is_null() {
        write_status(world, work, Kind::Service, &service, &status(&service)).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_load_balancers_have_an_outer_address() {
        let service = |kind: &str| json!({"spec": {"type": kind, "clusterIP": "10.96.3.4"}});
        assert_eq!(status(&service("LoadBalancer"))["loadBalancer"]["ingress"][0]["ip"], "172.19.3.4");
        assert_eq!(status(&service("ClusterIP"))["loadBalancer"], json!({}));
    }
}
