//! Bootstrap tokens: Secrets in `kube-system` with which something new joins.

use atoll_meta::{Key, Status};
use atoll_pki::BootstrapToken;

use super::vault::{self, Fields};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;

const GROUP: &str = "system:bootstrappers";

/// Who shows a bootstrap token, if it is stored, meant for authentication and not over.
pub async fn identify(hub: &Hub, instance: &Instance, token: &BootstrapToken) -> Result<Option<Identity>, Status> {
    let key = Key::new("", "secrets", "kube-system", &format!("bootstrap-token-{}", token.id));
    let Some(entry) = hub.read(instance, key.as_str()).await? else { return Ok(None) };
    let secret = entry.object.tree(entry.modified);
    if entry.object.head.deleting || secret["type"] != "bootstrap.kubernetes.io/token" {
        return Ok(None);
    }
    Ok(accept(&vault::fields(&secret), token, hub.now()))
}

fn accept(fields: &Fields, token: &BootstrapToken, now: jiff::Timestamp) -> Option<Identity> {
    let text = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let secret = text("token-secret");
    if secret.is_empty() || !token.accepts(secret.as_bytes()) || text("token-id") != token.id {
        return None;
    }
    if text("usage-bootstrap-authentication") != "true" {
        return None;
    }
    if let Some(end) = fields.get("expiration")
        && atoll_meta::time::parse(end).is_none_or(|end| now >= end)
    {
        return None;
    }
    let mut groups = vec![GROUP.to_owned(), "system:authenticated".to_owned()];
    for group in text("auth-extra-groups").split(',').map(str::trim).filter(|group| !group.is_empty()) {
        if !is_bootstrap_group(group) {
            return None;
        }
        groups.push(group.to_owned());
    }
    Some(Identity { user: format!("system:bootstrap:{}", token.id), groups, ..Identity::default() })
}

/// Only groups of this family, so that who may write such a Secret cannot become anybody.
fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    rest.len() <= 256 && rest.ends_with(fine) && rest.chars().all(|c| fine(c) || c == ':' || c == '-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_bootstrap_token_counts_only_while_its_secret_says_so() {
        let token = BootstrapToken::parse("abcdef.0123456789abcdef").unwrap();
        let now: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let good = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("expiration", "2026-01-01T00:00:01Z"),
            ("auth-extra-groups", "system:bootstrappers:nodes"),
        ];
        let fields = |change: Option<(&str, &str)>| -> Fields {
            let mut fields: Fields = good.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            fields.extend(change.map(|(k, v)| (k.to_owned(), v.to_owned())));
            fields
        };
        let identity = accept(&fields(None), &token, now).unwrap();
        assert_eq!(identity.user, "system:bootstrap:abcdef");
        assert!(identity.in_group("system:bootstrappers:nodes") && identity.in_group(GROUP));
        for wrong in [
            ("token-id", "abcdeg"),
            ("token-secret", "0123456789abcdee"),
            ("token-secret", ""),
            ("usage-bootstrap-authentication", "false"),
            ("expiration", "2026-01-01T00:00:00Z"),
            ("expiration", "soon"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:nodes,system:masters"),
        ] {
            assert!(accept(&fields(Some(wrong)), &token, now).is_none(), "{wrong:?}");
        }
    }
}
