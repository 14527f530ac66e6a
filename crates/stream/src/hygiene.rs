//! Which headers may travel from one server to the next.

use http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Which of the caller's own claims may travel on.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Keep {
    /// `Authorization`, cookies and tokens in websocket protocols.
    pub credentials: bool,
    /// `Impersonate-*`.
    pub impersonation: bool,
}

/// The protocol an upgrade asks for; `None` if the request is none.
pub fn is_upgrade(headers: &HeaderMap) -> Option<&str> {
    let connection = list(headers, &CONNECTION);
    connection.iter().any(|item| item.eq_ignore_ascii_case("upgrade")).then_some(())?;
    headers.get(UPGRADE)?.to_str().ok()
}

/// Copies the headers that may go on to another server.
///
/// What concerns only this connection is left out, and so is who the caller says it is:
/// the next server must hear that from us. An upgrade is kept.
pub fn clean_request_headers(headers: &HeaderMap, keep: Keep) -> HeaderMap {
    let named = list(headers, &CONNECTION);
    let mut clean = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if is_hop(name) || named.iter().any(|item| item.eq_ignore_ascii_case(name.as_str())) || *name == HOST {
            continue;
        }
        if is_claim(name, keep) {
            continue;
        }
        if *name == SEC_WEBSOCKET_PROTOCOL && !keep.credentials {
            if let Some(value) = without_bearer(value) {
                clean.append(name, value);
            }
            continue;
        }
        clean.append(name, value.clone());
    }
    if let (Some(_), Some(protocol)) = (is_upgrade(headers), headers.get(UPGRADE)) {
        clean.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        clean.insert(UPGRADE, protocol.clone());
    }
    clean
}

/// Whether a header concerns one connection only.
pub(crate) fn is_hop(name: &HeaderName) -> bool {
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE].contains(name)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Whether a header says who the caller is and may not travel on.
fn is_claim(name: &HeaderName, keep: Keep) -> bool {
    let text = name.as_str();
    // These are how a trusted front proxy vouches; nobody else may send them.
    if text.starts_with("x-remote-") {
        return true;
    }
    if text.starts_with("impersonate-") {
        return !keep.impersonation;
    }
    (*name == AUTHORIZATION || *name == COOKIE) && !keep.credentials
}

pub(crate) fn is_bearer_protocol(name: &str) -> bool {
    name.starts_with(BEARER_PROTOCOL)
}

fn without_bearer(value: &HeaderValue) -> Option<HeaderValue> {
    let names = value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty());
    let kept: Vec<&str> = names.filter(|name| !is_bearer_protocol(name)).collect();
    if kept.is_empty() { None } else { HeaderValue::try_from(kept.join(", ")).ok() }
}

/// The items of a comma-separated header that may occur several times.
pub(crate) fn list(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap()))
            .collect()
    }

    #[test]
    fn claims_and_hops_stay_behind_and_the_upgrade_goes_on() {
        let incoming = headers(&[
            ("host", "hub"),
            ("connection", "keep-alive, Upgrade, x-private"),
            ("upgrade", "websocket"),
            ("keep-alive", "5"),
            ("x-private", "1"),
            ("authorization", "Bearer t"),
            ("cookie", "c"),
            ("impersonate-user", "admin"),
            ("impersonate-extra-scopes", "x"),
            ("x-remote-user", "admin"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io"),
            ("sec-websocket-key", "k"),
            ("user-agent", "kubectl"),
        ]);
        let clean = clean_request_headers(&incoming, Keep::default());
        let mut names: Vec<&str> = clean.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["connection", "sec-websocket-key", "sec-websocket-protocol", "upgrade", "user-agent"]);
        assert_eq!(clean["connection"], "Upgrade");
        assert_eq!(clean["sec-websocket-protocol"], "v5.channel.k8s.io");
        let all = clean_request_headers(&incoming, Keep { credentials: true, impersonation: true });
        assert!(all.contains_key("authorization") && all.contains_key("impersonate-user"));
        assert!(!all.contains_key("x-remote-user"), "only a front proxy may vouch");
    }

    #[test]
    fn a_plain_request_is_no_upgrade() {
        assert_eq!(is_upgrade(&headers(&[("upgrade", "websocket")])), None);
        assert_eq!(is_upgrade(&headers(&[("connection", "upgrade"), ("upgrade", "SPDY/3.1")])), Some("SPDY/3.1"));
    }
}
