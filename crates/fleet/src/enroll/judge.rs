//! Whether a certificate request is one of an agent and may be granted without a person.

use atoll_pki::Request;
use serde_json::Value;

use super::rights::{AGENT_PREFIX, AGENTS, GENERATOR};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The part of certificate requests that newcomers must be allowed to create.
const NEW: &str = "clusteragent";

/// What a request comes down to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// It is not about agents, or already decided; others look after it.
    NotOurs,
    /// It may be granted to those who may create this part of certificate requests; for the agent of a
    /// member, or for whoever prepares its rights.
    Grant(Option<String>, &'static str),
    /// A person must decide, for this reason.
    Ask(String),
}

/// Judges a request; `exists` says whether a Cluster of a name exists.
pub fn judge(request: &Value, exists: impl Fn(&str) -> bool) -> Judgement {
    let (spec, status) = (&request["spec"], &request["status"]);
    let decided = status["conditions"].as_array().is_some_and(|list| !list.is_empty());
    if spec["signerName"] != SIGNER || decided || !request["metadata"]["deletionTimestamp"].is_null() {
        return Judgement::NotOurs;
    }
    let Some(parsed) = parse(spec) else { return Judgement::NotOurs };
    let Some(member) = parsed.common_name.strip_prefix(AGENT_PREFIX) else { return Judgement::NotOurs };
    if parsed.organizations != [AGENTS] {
        return Judgement::NotOurs;
    }
    if !parsed.names().is_empty() {
        return Judgement::Ask("subjectAltNames are not allowed".to_owned());
    }
    if !usages_fit(spec) {
        return Judgement::Ask("usages must be \"digital signature\" and \"client auth\"".to_owned());
    }
    let asker = spec["username"].as_str().unwrap_or_default();
    if asker == parsed.common_name && asker != GENERATOR {
        return Judgement::Grant(Some(member.to_owned()), "selfclusteragent");
    }
    if parsed.common_name == GENERATOR {
        return Judgement::Grant(None, NEW);
    }
    let faults = atoll_meta::name::is_dns1123_label(member);
    if let Some(fault) = faults.first() {
        return Judgement::Ask(format!("cluster name {member:?}: {fault}"));
    }
    // Else anybody with a token could take the place of a member that has joined.
    if exists(member) {
        return Judgement::Ask(format!("cluster {member} has joined already"));
    }
    Judgement::Grant(Some(member.to_owned()), NEW)
}

fn parse(spec: &Value) -> Option<Request> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(spec["request"].as_str()?).ok()?;
    Request::parse(&String::from_utf8(bytes).ok()?).ok()
}

fn usages_fit(spec: &Value) -> bool {
    let mut usages: Vec<&str> = spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    usages.retain(|usage| *usage != "key encipherment");
    usages.sort_unstable();
    usages == ["client auth", "digital signature"]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use base64::Engine as _;
    use serde_json::json;

    use super::*;
    use crate::enroll::ask::new_request;

    fn request(name: &str, organization: &str, user: &str) -> Value {
        let made = new_request(name, organization).unwrap();
        let encoded = base64::engine::general_purpose::STANDARD.encode(made.cert);
        json!({"metadata": {"name": "r"}, "spec": {"signerName": SIGNER, "request": encoded, "username": user,
               "usages": ["digital signature", "key encipherment", "client auth"]}})
    }

    #[test]
    fn only_newcomers_and_agents_themselves_are_granted() {
        let (agent, token) = ("system:karmada:agent:m1", "system:bootstrap:abcdef");
        let grant = |part| Judgement::Grant(Some("m1".to_owned()), part);
        let exists = |name: &str| name == "taken";
        assert_eq!(judge(&request(agent, AGENTS, token), exists), grant(NEW));
        assert_eq!(judge(&request(agent, AGENTS, agent), exists), grant("selfclusteragent"), "renewal");
        assert_eq!(judge(&request(GENERATOR, AGENTS, token), exists), Judgement::Grant(None, NEW));
        for (name, user) in [("system:karmada:agent:taken", token), ("system:karmada:agent:Not_A_Name", token)] {
            let judged = judge(&request(name, AGENTS, user), exists);
            assert!(matches!(judged, Judgement::Ask(_)), "{name} by {user}: {judged:?}");
        }
        for (name, organization) in [("jane", AGENTS), (agent, "system:masters"), ("system:node:n", "system:nodes")] {
            assert_eq!(judge(&request(name, organization, token), exists), Judgement::NotOurs, "{name}");
        }
        let mut wide = request(agent, AGENTS, token);
        wide["spec"]["usages"] = json!(["server auth", "client auth", "digital signature"]);
        assert!(matches!(judge(&wide, exists), Judgement::Ask(_)));
        let mut done = request(agent, AGENTS, token);
        done["status"] = json!({"conditions": [{"type": "Denied"}]});
        assert_eq!(judge(&done, exists), Judgement::NotOurs);
    }
}
