//! The layers of the workspace: a crate may use only crates of its own layer or above.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// From words to products; the last two may be used in tests by everyone.
const LAYERS: [&[&str]; 6] = [
    &["meta", "api", "schema", "patch", "builtin", "placement", "interpreter", "lease"],
    &["store", "stream", "pki", "telemetry"],
    &["apiserver"],
    &["runtime", "background", "fleet", "vnode", "index"],
    &["manage", "console", "sim", "atoll"],
    &["testkit", "load", "xtask"],
];

/// What pure crates must not use: time, tasks, sockets.
const IMPURE: [&str; 5] = ["tokio", "hyper", "redb", "tonic", "rusqlite"];

/// Checks the workspace graph.
pub fn check() -> anyhow::Result<()> {
    let output = std::process::Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("running cargo metadata")?;
    let graph: Value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let faults = faults(&graph);
    if faults.is_empty() {
        println!("layers: in order");
        return Ok(());
    }
    bail!("layers:\n  {}", faults.join("\n  "))
}

fn faults(graph: &Value) -> Vec<String> {
    let layer_of: HashMap<&str, usize> =
        LAYERS.iter().enumerate().flat_map(|(layer, names)| names.iter().map(move |name| (*name, layer))).collect();
    let mut faults = Vec::new();
    for package in graph["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        let Some(layer) = layer_of.get(name) else {
            faults.push(format!("{name} is in no layer"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten().filter(|d| d["kind"].is_null()) {
            let used = dependency["name"].as_str().unwrap_or_default();
            if *layer == 0 && IMPURE.contains(&used) {
                faults.push(format!("{name} is pure and may not use {used}"));
            }
            if dependency["path"].is_null() {
                continue;
            }
            if layer_of.get(short(used)).is_none_or(|other| other > layer) {
                faults.push(format!("{name} (layer {layer}) may not use {}", short(used)));
            }
        }
    }
    faults
}

fn short(package: &str) -> &str {
    package.strip_prefix("atoll-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        check().unwrap();
    }

    #[test]
    fn a_crate_that_reaches_down_is_found() {
        let graph = serde_json::json!({"packages": [
            {"name": "atoll-meta", "dependencies": [
                {"name": "atoll-store", "path": "x", "kind": null}, {"name": "tokio", "path": null, "kind": null}]},
            {"name": "atoll-odd", "dependencies": []},
        ]});
        assert_eq!(faults(&graph).len(), 3);
    }
}
