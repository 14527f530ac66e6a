//! What the tenant of one instance cannot get of another's.

use crate::hub::Hub;

/// A Cluster names where its member is. Naming somebody else's instance must not open it.
#[test]
fn a_member_that_is_another_tenants_instance_stays_closed() {
    let Some(hub) = Hub::demo() else { return };
    let url = hub.in_fleet("get cluster member1 -o jsonpath={.spec.apiEndpoint}").ok();
    let stolen = url.replace("/instances/member1", "/instances/compute");
    assert_ne!(url, stolen);
    let cluster = format!(
        "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: thief}}\n\
         spec: {{apiEndpoint: \"{stolen}\", syncMode: Push, insecureSkipTLSVerification: false}}\n"
    );
    std::fs::write(hub.file("thief.yaml"), cluster).unwrap();
    hub.in_fleet(&format!("create -f {}", hub.file("thief.yaml").display())).ok();
    // The administrator of the fleet may use its proxy, and the member behind it knows nobody.
    let way =
        |cluster: &str| format!("get --raw /apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy/api/v1/nodes");
    hub.in_fleet(&way("thief")).fails();
    assert!(hub.in_fleet(&way("member1")).ok().contains("NodeList"));
    // Health is told to everyone, what is inside is not.
    assert_eq!(hub.in_fleet("get cluster thief -o jsonpath={.status.nodeSummary.totalNum}").ok(), "");
}
