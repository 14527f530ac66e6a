//! Instances by host name and by the name in the TLS handshake.

use serde_json::json;

use crate::port::Port;
use crate::support::Who;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn an_instance_is_reached_by_path_by_host_and_by_the_name_in_the_handshake() {
    let port = Port::open().await;
    for name in ["a", "b"] {
        port.hub.instance(name).await;
    }
    for (base, name) in [("", "root"), ("/instances/a", "a"), ("/instances/b", "b")] {
        let map = json!({"metadata": {"name": "where"}, "data": {"instance": name}});
        port.hub.post(&Who::Master, &format!("{base}{MAPS}"), map).await.expect(201);
    }
    let where_ = format!("{MAPS}/where");
    // Name in the handshake, host of the request, path before the API, and who answers.
    let table = [
        ("127.0.0.1", "127.0.0.1:7443", "", "root"),
        ("localhost", "localhost", "", "root"),
        ("localhost", "elsewhere.example.com", "", "root"),
        ("a.atoll.localhost", "a.atoll.localhost:7443", "", "a"),
        ("localhost", "b.atoll.localhost", "", "b"),
        ("localhost", "B.Atoll.LocalHost.", "", "b"),
        ("a.atoll.localhost", "127.0.0.1:7443", "", "a"),
        // A connection may be shared by several names: the request knows best, and its path above all.
        ("a.atoll.localhost", "b.atoll.localhost", "", "b"),
        ("a.atoll.localhost", "a.atoll.localhost", "/instances/b", "b"),
        ("localhost", "root.atoll.localhost", "", "root"),
        ("localhost", "x.a.atoll.localhost", "", "root"),
        ("localhost", "atoll.localhost", "", "root"),
        ("localhost", "xatoll.localhost", "", "root"),
    ];
    for protocol in ["http/1.1", "h2"] {
        for (name, host, base, expected) in table {
            let (code, map) = port.get(protocol, name, host, &format!("{base}{where_}")).await;
            let found = map["data"]["instance"].as_str().unwrap_or_default();
            assert_eq!((code, found), (200, expected), "{protocol}: handshake {name}, host {host}, path {base}");
        }
        let (code, status) = port.get(protocol, "localhost", "none.atoll.localhost", &where_).await;
        assert_eq!((code, &status["details"]["name"]), (404, &json!("none")), "{protocol}");
    }
    port.stop.cancel();
}
