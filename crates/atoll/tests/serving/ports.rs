//! The ports for probes and scrapers, names instead of paths, and who may read the files.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use atoll_testkit::peers;

use crate::hub::{Hub, MAPS, atoll, file, free_port, map};

/// Asks without TLS and without credentials.
fn plain(address: SocketAddr, request: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(address).unwrap();
    write!(socket, "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no answer: {text}")), text.split_once("\r\n\r\n").unwrap_or_default().1.to_owned())
}

#[tokio::test]
async fn health_and_metrics_have_ports_of_their_own_and_nothing_else_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (metrics, health) = (free_port(), free_port());
    let hub = Hub::start(directory.path(), &format!("--metrics-listen {metrics} --health-listen {health}"));
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(plain(health, &format!("GET {path}")), (200, "ok".into()), "{path}");
        assert_eq!(plain(metrics, &format!("GET {path}")).0, 404, "{path}");
    }
    let (code, text) = plain(metrics, "GET /metrics");
    assert_eq!(code, 200);
    for series in
        ["atoll_store_writable 1", "atoll_instances ", "apiserver_request_total{", "process_cpu_seconds_total "]
    {
        assert!(text.lines().any(|line| line.starts_with(series)), "{series}: {text}");
    }
    for request in ["GET /api/v1/secrets", "GET /", "POST /metrics", "DELETE /healthz"] {
        assert_eq!((plain(metrics, request).0, plain(health, request).0), (404, 404), "{request}");
    }
    assert_eq!(plain(health, "GET /metrics").0, 404);
    // On the port of the API the series are for those who may read them.
    assert_eq!(hub.open(None, "GET", "/metrics", None).await.status(), 403);
    assert_eq!(hub.open(Some("wrong"), "GET", "/metrics", None).await.status(), 401);
    assert_eq!(hub.ask("GET", "/metrics", None).await.0, 200);
    for name in ["kubeconfig", "admin.token", "store.redb"] {
        let mode = std::fs::metadata(file(&directory, name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name} is for its owner only");
    }
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (what, option) in [("metrics", "--metrics-listen"), ("health", "--health-listen")] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = atoll(&format!("serve --store memory --listen 127.0.0.1:0 {option} {address}"));
        let errors = peers::run(command.arg("--data-dir").arg(directory.path())).fails();
        assert!(errors.starts_with(&format!("error: cannot serve {what} on {address}")), "{errors}");
    }
}

#[tokio::test]
async fn kubectl_reaches_an_instance_by_the_name_of_its_host() {
    let Some(kubectl) = peers::find("kubectl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let hub = Hub::start(directory.path(), "--metrics-listen off --health-listen off --domain hub.example");
    let config = file(&directory, "kubeconfig");
    peers::run(atoll("instance create tenant").env("KUBECONFIG", &config)).ok();
    let (code, text) = hub.ask("POST", &format!("/instances/tenant{MAPS}"), Some(&map("theirs", 1))).await;
    assert_eq!(code, 201, "{text}");
    let list = |name: &str| {
        let mut command = Command::new(&kubectl);
        command.env("KUBECONFIG", &config).args(["--context", "root", "get", "configmaps", "-o", "name"]);
        peers::run(command.arg("--tls-server-name").arg(name)).ok()
    };
    assert!(list("tenant.hub.example").contains("configmap/theirs"));
    assert!(!list("localhost").contains("configmap/theirs"));
}
