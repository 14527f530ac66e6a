//! Roles, certificates and leases.

use serde_json::Value;

use super::view::{NONE, View};
use super::{AGE, NAME, Printer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "RoleBinding" | "ClusterRoleBinding" => &BINDING,
        "CertificateSigningRequest" => &REQUEST,
        "ClusterTrustBundle" => &BUNDLE,
        "PodCertificateRequest" => &POD_REQUEST,
        "Lease" => &LEASE,
        "LeaseCandidate" => &CANDIDATE,
        _ => return None,
    })
}

const BINDING: Printer = Printer {
    columns: &[
        NAME,
        text("Role", "Role that is granted."),
        AGE,
        text("Users", "Users it is granted to.").wide(),
        text("Groups", "Groups it is granted to.").wide(),
        text("ServiceAccounts", "Service accounts it is granted to.").wide(),
    ],
    cells: |view| {
        let of = |kind: &str| -> Value {
            let all: Vec<String> = view
                .items("subjects")
                .iter()
                .filter(|subject| tree::text(subject, "kind") == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => format!("{}/{}", tree::text(subject, "namespace"), tree::text(subject, "name")),
                    _ => tree::text(subject, "name").to_owned(),
                })
                .collect();
            all.join(", ").into()
        };
        let role = format!("{}/{}", view.text("roleRef.kind"), view.text("roleRef.name"));
        vec![view.name(), role.into(), view.age(), of("User"), of("Group"), of("ServiceAccount")]
    },
};

const REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        text("SignerName", "Signer that is asked."),
        text("Requestor", "Who asks."),
        text("RequestedDuration", "How long the certificate should be valid."),
        text("Condition", "Whether it was approved, denied or issued."),
    ],
    cells: |view| {
        let duration = tree::int(view.object, "spec.expirationSeconds").map_or(NONE.to_owned(), super::age);
        let mut state = if view.condition("Denied").is_some() {
            "Denied"
        } else if view.condition("Approved").is_some() {
            "Approved"
        } else {
            "Pending"
        }
        .to_owned();
        if view.condition("Failed").is_some() {
            state.push_str(",Failed");
        }
        if !view.text("status.certificate").is_empty() {
            state.push_str(",Issued");
        }
        vec![
            view.name(),
            view.age(),
            view.text_or("spec.signerName", NONE),
            view.text("spec.username").into(),
            duration.into(),
            state.into(),
        ]
    },
};

const BUNDLE: Printer = Printer {
    columns: &[NAME, text("SignerName", "Signer whose certificates it anchors.")],
    cells: |view| vec![view.name(), view.text_or("spec.signerName", NONE)],
};

const POD_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        text("PodName", "Pod the certificate is for."),
        text("ServiceAccountName", "Service account of the pod."),
        text("NodeName", "Node of the pod."),
        text("SignerName", "Signer that is asked."),
        text("State", "Whether it was issued or denied."),
        text("UnverifiedUserAnnotations", "What the pod asks for beyond its identity.").wide(),
    ],
    cells: |view| {
        let known = |view: &View| {
            let mut kinds = view.items("status.conditions").iter().map(|condition| tree::text(condition, "type"));
            kinds.rfind(|kind| matches!(*kind, "Issued" | "Denied" | "Failed")).unwrap_or("Pending").to_owned()
        };
        vec![
            view.name(),
            view.text("spec.podName").into(),
            view.text("spec.serviceAccountName").into(),
            view.text("spec.nodeName").into(),
            view.text("spec.signerName").into(),
            known(view).into(),
            view.labels("spec.unverifiedUserAnnotations").into(),
        ]
    },
};

const LEASE: Printer = Printer {
    columns: &[NAME, text("Holder", "Who holds the lease."), AGE],
    cells: |view| vec![view.name(), view.text("spec.holderIdentity").into(), view.age()],
};

const CANDIDATE: Printer = Printer {
    columns: &[
        NAME,
        text("LeaseName", "Lease it wants to hold."),
        text("BinaryVersion", "Version of the program."),
        text("EmulationVersion", "Version the program behaves like."),
        AGE,
    ],
    cells: |view| {
        vec![
            view.name(),
            view.text("spec.leaseName").into(),
            view.text("spec.binaryVersion").into(),
            view.text("spec.emulationVersion").into(),
            view.age(),
        ]
    },
};
