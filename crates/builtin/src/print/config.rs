//! Configuration, namespaces, quotas and events.

use serde_json::Value;

use super::view::{UNKNOWN, View, shown};
use super::{AGE, Column, NAME, NAME_AND_AGE, Printer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "ConfigMap" => &CONFIG_MAP,
        "Secret" => &SECRET,
        "ServiceAccount" => &NAME_AND_AGE,
        "Namespace" => &NAMESPACE,
        "ResourceQuota" => &QUOTA,
        "Event" => &EVENT,
        "ComponentStatus" => &COMPONENT,
        _ => return None,
    })
}

const CONFIG_MAP: Printer = Printer {
    columns: &[NAME, text("Data", "Number of entries."), AGE],
    cells: |view| vec![view.name(), (view.count("data") + view.count("binaryData")).into(), view.age()],
};

const SECRET: Printer = Printer {
    columns: &[NAME, text("Type", "What the secret is for."), text("Data", "Number of entries."), AGE],
    cells: |view| vec![view.name(), view.text("type").into(), view.count("data").into(), view.age()],
};

const NAMESPACE: Printer = Printer {
    columns: &[NAME, text("Status", "Whether the namespace is in use or going away."), AGE],
    cells: |view| vec![view.name(), view.text("status.phase").into(), view.age()],
};

const QUOTA: Printer = Printer {
    columns: &[
        NAME,
        text("Request", "What is used of the quota, limits aside."),
        text("Limit", "What is used of the quota of limits."),
        AGE,
    ],
    cells: |view| {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (resource, hard) in tree::entries(view.object, "status.hard") {
            let used = match view.at("status.used").get(resource) {
                Some(used) => shown(used),
                None => "0".to_owned(),
            };
            let line = format!("{resource}: {used}/{}", shown(hard));
            if resource.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
        }
        vec![view.name(), requests.join(", ").into(), limits.join(", ").into(), view.age()]
    },
};

const EVENT: Printer = Printer {
    columns: &[
        text("Last Seen", "Time since it last happened."),
        text("Type", "Normal or Warning."),
        text("Reason", "Why it happened, in one word."),
        text("Object", "Object it is about."),
        text("Subobject", "Part of the object it is about.").wide(),
        text("Source", "Who reported it.").wide(),
        text("Message", "What happened."),
        text("First Seen", "Time since it first happened.").wide(),
        text("Count", "How often it happened.").wide(),
        Column { priority: 1, ..NAME },
    ],
    cells: event,
};

/// One event is served in two groups under different field names.
fn event(view: &View) -> Vec<Value> {
    let either = |one: &str, other: &str| match view.text(one) {
        "" => view.text(other).to_owned(),
        found => found.to_owned(),
    };
    let time = |one: &str, other: &str| match either(one, other).as_str() {
        "" => UNKNOWN.to_owned(),
        found => view.since_time(found),
    };
    let mut first = time("firstTimestamp", "deprecatedFirstTimestamp");
    if first == UNKNOWN {
        first = view.since("eventTime");
    }
    let mut last = time("lastTimestamp", "deprecatedLastTimestamp");
    if last == UNKNOWN {
        last.clone_from(&first);
    }
    let mut count = view.int("count").max(view.int("deprecatedCount"));
    if view.has("series") {
        last = view.since("series.lastObservedTime");
        count = view.int("series.count");
    } else if count == 0 {
        count = 1;
    }
    let kind = either("involvedObject.kind", "regarding.kind").to_lowercase();
    let target = match either("involvedObject.name", "regarding.name").as_str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let reporter = either("reportingComponent", "reportingController");
    let component = either("source.component", "deprecatedSource.component");
    let host = either("source.host", "deprecatedSource.host");
    let component = if component.is_empty() { reporter } else { component };
    let host = if host.is_empty() { view.text("reportingInstance").to_owned() } else { host };
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    vec![
        last.into(),
        view.text("type").into(),
        view.text("reason").into(),
        target.into(),
        either("involvedObject.fieldPath", "regarding.fieldPath").into(),
        source.into(),
        either("message", "note").trim().into(),
        first.into(),
        count.into(),
        view.name(),
    ]
}

const COMPONENT: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether the component is healthy."),
        text("Message", "What the component says."),
        text("Error", "What is wrong."),
    ],
    cells: |view| {
        let found = view.items("conditions").iter().find(|condition| tree::text(condition, "type") == "Healthy");
        let status = match found {
            Some(condition) if tree::text(condition, "status") == "True" => "Healthy",
            Some(_) => "Unhealthy",
            None => "Unknown",
        };
        let part = |field: &str| found.map_or("", |condition| tree::text(condition, field));
        vec![view.name(), status.into(), part("message").into(), part("error").into()]
    },
};
