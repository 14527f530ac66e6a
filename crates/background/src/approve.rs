//! Client certificates of kubelets: granted without a person to those who may have them.
//!
//! Certificates with which kubelets serve are never granted so: only a person can know which addresses are theirs.

use std::time::Duration;

use atoll_meta::{Gvr, Key, Status};
use atoll_pki::{Request, Signer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::hands::Hands;

/// The signer of client certificates for kubelets.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// When a request nobody may have granted is looked at again: the right may be given later.
const AGAIN: Duration = Duration::from_secs(60);

/// One reason to grant a request.
#[derive(Debug, Eq, PartialEq)]
struct Reason {
    /// The part of requests that the asker must be allowed to create.
    part: &'static str,
    message: &'static str,
}

/// A node renews its own certificate.
const OWN: Reason = Reason {
    part: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
/// Somebody who may fetches the first certificate of a node.
const FIRST: Reason =
    Reason { part: "nodeclient", message: "Auto approving kubelet client certificate after SubjectAccessReview." };

/// Grants a request if its asker may have it granted; `Some` asks for another look.
pub async fn approve(hands: &Hands, name: &str) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let key = Key::new("certificates.k8s.io", "certificatesigningrequests", "", name);
    let Some(entry) = snapshot.get(key.as_str()).filter(|entry| !entry.object.head.deleting) else { return Ok(None) };
    let mut request = entry.object.tree(entry.modified);
    let reasons = reasons(&request);
    for reason in reasons {
        if !hands.endpoint.may_be_certified(&request["spec"], reason.part).await? {
            continue;
        }
        request["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "AutoApproved",
            "message": reason.message}]);
        let requests = Gvr::new("certificates.k8s.io", "v1", "certificatesigningrequests");
        return match hands.endpoint.update_sub(&requests, None, name, "approval", &request).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(None),
        };
    }
    Ok((!reasons.is_empty()).then_some(AGAIN))
}

/// Why a request can be granted, if the asker has the right; nothing if it is not one of a kubelet, or decided.
fn reasons(request: &Value) -> &'static [Reason] {
    static BOTH: [Reason; 2] = [OWN, FIRST];
    let decided = request["status"]["conditions"].as_array().is_some_and(|list| !list.is_empty());
    let spec = &request["spec"];
    if decided || spec["signerName"] != SIGNER {
        return &[];
    }
    let usages = spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let usages: Vec<String> = usages.map(ToOwned::to_owned).collect();
    match parse(spec).filter(|parsed| parsed.check(&Signer::ApiserverClientKubelet, &usages).is_ok()) {
        None => &[],
        Some(parsed) if spec["username"] == parsed.common_name => &BOTH,
        Some(_) => &BOTH[1..],
    }
}

fn parse(spec: &Value) -> Option<Request> {
    let text = STANDARD.decode(spec["request"].as_str()?).ok()?;
    Request::parse(&String::from_utf8(text).ok()?).ok()
}
