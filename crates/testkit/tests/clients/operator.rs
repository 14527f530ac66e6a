//! An operator built with controller-runtime: leader election, finalizers, an owned object.

use std::process::Command;

use atoll_meta::Gvr;
use atoll_testkit::peers;
use serde_json::{Value, json};

use crate::process::Process;

#[test]
fn a_controller_runtime_manager_leads_reconciles_and_lets_go() {
    let Some(program) = peers::find("operator") else { return };
    let server = crate::shared();
    let mut operator = Process::start(
        Command::new(program).arg("--kubeconfig").arg(server.kubeconfig()).args(["--namespace", "default"]),
    );
    let said = |word: &'static str| move |line: &str| line.contains(word);
    operator.until("leadership", said("leading"));
    let configmaps = Gvr::new("", "v1", "configmaps");
    let (endpoint, gvr) = (server.endpoint("root"), configmaps.clone());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "managed", "labels": {"atoll.peers/managed": "true"}}, "data": {"a": "b"}});
    server.wait(async move { endpoint.create(&gvr, Some("default"), &object).await }).unwrap().unwrap();
    operator.until("its finalizer", said("finalizer-added"));
    operator.until("the owned secret", said("secret-created"));
    let (endpoint, gvr) = (server.endpoint("root"), configmaps.clone());
    server.wait(async move { endpoint.delete(&gvr, Some("default"), "managed", &Value::Null).await }).unwrap().unwrap();
    operator.until("the end", said("released"));
    let endpoint = server.endpoint("root");
    let gone = server.wait(async move {
        for _ in 0..500 {
            if matches!(endpoint.get_opt(&configmaps, Some("default"), "managed").await, Ok(None)) {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        false
    });
    assert!(gone.unwrap(), "the object goes when its finalizer does");
}
