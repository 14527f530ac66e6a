//! What changes the API itself: webhooks, policies, aggregated services, flow control.

use serde_json::Value;

use super::view::{NONE, UNSET, View, first_three, shown};
use super::{AGE, Column, NAME, Printer, integer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => &WEBHOOKS,
        "ValidatingAdmissionPolicy" => &VALIDATING,
        "MutatingAdmissionPolicy" => &MUTATING,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => &BINDING,
        "APIService" => &API_SERVICE,
        "FlowSchema" => &FLOW,
        "PriorityLevelConfiguration" => &LEVEL,
        "StorageVersion" => &VERSION,
        "StorageVersionMigration" => &MIGRATION,
        _ => return None,
    })
}

const WEBHOOKS: Printer = Printer {
    columns: &[NAME, integer("Webhooks", "Number of webhooks."), AGE],
    cells: |view| vec![view.name(), view.items("webhooks").len().into(), view.age()],
};

const KIND: Column = text("ParamKind", "Kind of the objects that hold the policy's parameters.");

const VALIDATING: Printer = Printer {
    columns: &[NAME, integer("Validations", "Number of rules."), KIND, AGE],
    cells: |view| vec![view.name(), view.items("spec.validations").len().into(), param_kind(view), view.age()],
};

const MUTATING: Printer = Printer {
    columns: &[NAME, integer("Mutations", "Number of changes."), KIND, AGE],
    cells: |view| vec![view.name(), view.items("spec.mutations").len().into(), param_kind(view), view.age()],
};

fn param_kind(view: &View) -> Value {
    if !view.has("spec.paramKind") {
        return UNSET.into();
    }
    format!("{}/{}", view.text("spec.paramKind.apiVersion"), view.text("spec.paramKind.kind")).into()
}

const BINDING: Printer = Printer {
    columns: &[
        NAME,
        text("PolicyName", "Policy that is put in force."),
        text("ParamRef", "Objects with its parameters."),
        AGE,
    ],
    cells: |view| {
        let (namespace, name) = (view.text("spec.paramRef.namespace"), view.text("spec.paramRef.name"));
        let parameters = match (namespace, name) {
            (_, "") if view.has("spec.paramRef.selector") => view.selector("spec.paramRef.selector"),
            (_, "") => UNSET.to_owned(),
            ("", name) => format!("*/{name}"),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        vec![view.name(), view.text("spec.policyName").into(), parameters.into(), view.age()]
    },
};

const API_SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text("Service", "Service behind this part of the API."),
        text("Available", "Whether it can be reached."),
        AGE,
    ],
    cells: |view| {
        let service = if view.has("spec.service") {
            format!("{}/{}", view.text("spec.service.namespace"), view.text("spec.service.name"))
        } else {
            "Local".to_owned()
        };
        let available = view.condition("Available").map_or_else(
            || "Unknown".to_owned(),
            |condition| match (tree::text(condition, "status"), tree::text(condition, "reason")) {
                ("True", _) => "True".to_owned(),
                (status, "") => status.to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            },
        );
        vec![view.name(), service.into(), available.into(), view.age()]
    },
};

const FLOW: Printer = Printer {
    columns: &[
        NAME,
        text("PriorityLevel", "Level that serves the matching requests."),
        text("MatchingPrecedence", "Order in which schemas are tried."),
        text("DistinguisherMethod", "How flows are told apart."),
        AGE,
        text("MissingPL", "Whether the level does not exist."),
    ],
    cells: |view| {
        let missing = view.condition("Dangling").map_or("?", |condition| tree::text(condition, "status"));
        vec![
            view.name(),
            view.text("spec.priorityLevelConfiguration.name").into(),
            view.int("spec.matchingPrecedence").into(),
            if view.has("spec.distinguisherMethod") {
                view.text("spec.distinguisherMethod.type").into()
            } else {
                NONE.into()
            },
            view.age(),
            missing.into(),
        ]
    },
};

const LEVEL: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "Whether requests are limited."),
        text("NominalConcurrencyShares", "Share of the server's capacity."),
        text("Queues", "Number of queues."),
        text("HandSize", "Queues one flow may use."),
        text("QueueLengthLimit", "Greatest length of a queue."),
        AGE,
    ],
    cells: |view| {
        let number = |parent: &str, field: &str| -> Value {
            if view.has(parent) { view.int(&format!("{parent}.{field}")).into() } else { NONE.into() }
        };
        let queuing = "spec.limited.limitResponse.queuing";
        vec![
            view.name(),
            view.text("spec.type").into(),
            number("spec.limited", "nominalConcurrencyShares"),
            number(queuing, "queues"),
            number(queuing, "handSize"),
            number(queuing, "queueLengthLimit"),
            view.age(),
        ]
    },
};

const VERSION: Printer = Printer {
    columns: &[
        NAME,
        text("CommonEncodingVersion", "Version every server writes."),
        text("StorageVersions", "Version each server writes."),
        AGE,
    ],
    cells: |view| {
        let each: Vec<String> = view
            .items("status.storageVersions")
            .iter()
            .map(|version| format!("{}={}", tree::text(version, "apiServerID"), tree::text(version, "encodingVersion")))
            .collect();
        let common = view.at("status.commonEncodingVersion").as_str().unwrap_or(UNSET);
        vec![view.name(), common.into(), first_three(&each, UNSET).into(), view.age()]
    },
};

const MIGRATION: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        text("Resource", "Resource that is rewritten."),
        text("Status", "How far the migration is."),
    ],
    cells: |view| {
        let known = ["Running", "Failed", "Succeeded"];
        let holding =
            view.items("status.conditions").iter().filter(|condition| tree::text(condition, "status") == "True");
        let status = holding.map(|condition| tree::text(condition, "type")).rfind(|kind| known.contains(kind));
        let (group, resource) = (shown(view.at("spec.resource.group")), view.text("spec.resource.resource"));
        let what = if view.text("spec.resource.group").is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        vec![view.name(), what.into(), status.unwrap_or("Unknown").into()]
    },
};
