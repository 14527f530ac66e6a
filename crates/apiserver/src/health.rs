//! `/version`, `/healthz`, `/livez`, `/readyz`.

use http::Response;
use serde_json::json;

use crate::body::Body;
use crate::hub::Hub;
use crate::query::Query;
use crate::respond::{response, text};

/// Answers a health or version path, or `None` if it is none.
pub fn answer(hub: &Hub, path: &str, query: Option<&str>) -> Option<Response<Body>> {
    let mut parts = path.trim_matches('/').splitn(2, '/');
    let endpoint = parts.next()?;
    match endpoint {
        "version" => Some(version(hub)),
        "healthz" | "livez" | "readyz" => checks(hub, endpoint, parts.next(), &Query::parse(query)),
        _ => None,
    }
}

fn version(hub: &Hub) -> Response<Body> {
    let (major, minor, patch) = hub.options.kubernetes_version;
    let tree = json!({
        "major": major.to_string(), "minor": minor.to_string(),
        "emulationMajor": major.to_string(), "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": major.to_string(), "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": format!("v{major}.{minor}.{patch}+atoll{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
    });
    crate::respond::json(200, &tree)
}

/// Whether a check such as `readyz` passes, and what it says; for probes that come without TLS.
pub fn probe(hub: &Hub, endpoint: &str) -> Option<(bool, String)> {
    if !["healthz", "livez", "readyz"].contains(&endpoint) {
        return None;
    }
    let all = states(hub, endpoint);
    let failed: Vec<&str> = all.iter().filter(|(_, ok)| !ok).map(|(name, _)| *name).collect();
    let text = if failed.is_empty() { "ok".to_owned() } else { format!("failed: {}\n", failed.join(", ")) };
    Some((failed.is_empty(), text))
}

fn states(hub: &Hub, endpoint: &str) -> Vec<(&'static str, bool)> {
    let mut all = vec![("ping", true), ("log", true), ("etcd", hub.engine.health().is_ok())];
    if endpoint == "readyz" {
        all.push(("informer-sync", true));
        all.push(("shutdown", !hub.shutdown.is_cancelled()));
    }
    all
}

fn checks(hub: &Hub, endpoint: &str, one: Option<&str>, query: &Query) -> Option<Response<Body>> {
    if let Some(one) = one {
        let (_, ok) = states(hub, endpoint).into_iter().find(|(name, _)| *name == one)?;
        return Some(response(
            if ok { 200 } else { 500 },
            "text/plain; charset=utf-8",
            if ok { "ok".to_owned() } else { format!("internal server error: {one} failed\n") },
        ));
    }
    let mut unknown: Vec<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    let mut lines = String::new();
    let mut failed = false;
    for (name, ok) in states(hub, endpoint) {
        let excluded = unknown.contains(&name);
        unknown.retain(|other| *other != name);
        failed |= !ok && !excluded;
        lines.push_str(&match (excluded, ok) {
            (true, _) => format!("[+]{name} excluded: ok\n"),
            (false, true) => format!("[+]{name} ok\n"),
            (false, false) => format!("[-]{name} failed: reason withheld\n"),
        });
    }
    if !failed && query.get("verbose").is_none() {
        return Some(text(200, "ok"));
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(", ")));
    }
    lines.push_str(&format!("{endpoint} check {}\n", if failed { "failed" } else { "passed" }));
    Some(text(if failed { 500 } else { 200 }, lines))
}
