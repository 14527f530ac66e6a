//! Who calls, and whether they may: asked of the computing cluster for every request.

use std::time::Duration;

use atoll_apiserver::PeerCertificates;
use atoll_meta::{Gvr, Reason, Status};
use atoll_pki::CaBundle;
use atoll_runtime::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{Extensions, HeaderMap, Method};
use serde_json::{Map, Value, json};

use super::Proxier;
use crate::tree;

const PUBLISHED_FRESH: Duration = Duration::from_secs(60);
const PROTOCOL_TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// A caller that proved who it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Caller {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: Value,
}

impl Proxier {
    /// Who makes a request. Nobody is anonymous here.
    pub(crate) async fn caller(
        &self,
        computing: &Endpoint,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Status> {
        if let Some(PeerCertificates(chain)) = extensions.get::<PeerCertificates>().filter(|peer| !peer.0.is_empty()) {
            let authorities = self.authorities(computing).await?;
            let found = authorities.identify(chain, (self.clock)()).map_err(|_| Status::unauthorized())?;
            return Ok(Caller { user: found.user, uid: String::new(), groups: found.groups, extra: json!({}) });
        }
        match token(headers) {
            Some(token) => self.review_token(computing, &token).await,
            None => Err(Status::unauthorized()),
        }
    }

    /// Who vouches for callers with certificates.
    async fn authorities(&self, computing: &Endpoint) -> Result<CaBundle, Status> {
        if let Some(clients) = &self.options.clients {
            return Ok(clients.clone());
        }
        if let Some((at, known)) = &*self.published.lock()
            && at.elapsed() < PUBLISHED_FRESH
        {
            return Ok(known.clone());
        }
        let configs = Gvr::new("", "v1", "configmaps");
        let config = computing.get(&configs, Some("kube-system"), "extension-apiserver-authentication").await?;
        let pem = config["data"]["client-ca-file"].as_str().unwrap_or_default();
        let bundle = CaBundle::from_pem(pem).map_err(|error| Status::unavailable(error.to_string()))?;
        *self.published.lock() = Some((tokio::time::Instant::now(), bundle.clone()));
        Ok(bundle)
    }

    async fn review_token(&self, computing: &Endpoint, token: &str) -> Result<Caller, Status> {
        let audiences = &self.options.audiences;
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": audiences},
        });
        let answer = computing.create(&Gvr::new("authentication.k8s.io", "v1", "tokenreviews"), None, &review).await?;
        read_review(&answer, audiences).ok_or_else(Status::unauthorized)
    }

    /// Whether a caller may do this on a virtual node.
    pub(crate) async fn authorize(
        &self,
        computing: &Endpoint,
        caller: &Caller,
        method: &Method,
        path: &str,
        node: &str,
    ) -> Result<(), Status> {
        let (verb, choices) = attributes(method, path);
        for subresource in choices {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": caller.user, "uid": caller.uid, "groups": caller.groups, "extra": caller.extra,
                    "resourceAttributes": {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": node},
                },
            });
            let answer = computing
                .create(&Gvr::new("authorization.k8s.io", "v1", "subjectaccessreviews"), None, &review)
                .await?;
            if answer["status"]["allowed"] == true {
                return Ok(());
            }
        }
        let why = format!(
            "User {:?} cannot {verb} resource \"nodes/{}\" in API group \"\" at the cluster scope",
            caller.user, choices[0]
        );
        Err(Status::new(
            403,
            Reason::Forbidden,
            format!("Forbidden (user={}, verb={verb}, resource=nodes): {why}", caller.user),
        ))
    }
}

/// What a path of the kubelet means to the authoriser: the verb, and subresources of which one suffices.
pub(crate) fn attributes(method: &Method, path: &str) -> (&'static str, &'static [&'static str]) {
    let under = |prefix: &str| path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    let verb = match *method {
        // Who may only read must not get in by asking for a websocket; a kubelet lets them.
        _ if ["/exec", "/attach", "/portForward"].into_iter().any(under) => "create",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    };
    let subresources: &[&str] = match path {
        _ if under("/stats") => &["stats"],
        _ if under("/metrics") => &["metrics"],
        _ if under("/logs") => &["log"],
        _ if under("/pods") || under("/runningpods") => &["pods", "proxy"],
        _ if under("/healthz") => &["healthz", "proxy"],
        _ => &["proxy"],
    };
    (verb, subresources)
}

/// Whom a review vouches for, if the token is meant for one of the audiences.
fn read_review(answer: &Value, audiences: &[String]) -> Option<Caller> {
    let status = &answer["status"];
    if status["authenticated"] != true {
        return None;
    }
    let meant = tree::list(&status["audiences"]).iter().filter_map(Value::as_str);
    if !audiences.is_empty() && !meant.into_iter().any(|own| audiences.iter().any(|asked| asked == own)) {
        return None;
    }
    let user = &status["user"];
    let text = |field: &str| user[field].as_str().unwrap_or_default().to_owned();
    let groups = tree::list(&user["groups"]).iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    let name = text("username");
    let extra = user["extra"].as_object().cloned().unwrap_or_else(Map::new).into();
    (!name.is_empty()).then(|| Caller { user: name, uid: text("uid"), groups, extra })
}

/// The token of a request: in its header, or as browsers send it with websockets.
fn token(headers: &HeaderMap) -> Option<String> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned())
            .filter(|token| !token.is_empty());
    }
    let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let text = protocols.flat_map(|list| list.split(',')).find_map(|name| name.trim().strip_prefix(PROTOCOL_TOKEN))?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_mean_what_they_mean_to_a_kubelet_and_streams_are_never_only_read() {
        for (method, path, verb, first) in [
            (Method::GET, "/stats/summary", "get", "stats"),
            (Method::GET, "/metrics/resource", "get", "metrics"),
            (Method::GET, "/metrics", "get", "metrics"),
            (Method::GET, "/metricsx", "get", "proxy"),
            (Method::GET, "/pods", "get", "pods"),
            (Method::GET, "/containerLogs/ns/p/c", "get", "proxy"),
            (Method::POST, "/exec/ns/p/c", "create", "proxy"),
            (Method::GET, "/exec/ns/p/c", "create", "proxy"),
            (Method::GET, "/attach/ns/p/c", "create", "proxy"),
            (Method::GET, "/portForward/ns/p", "create", "proxy"),
            (Method::GET, "/", "get", "proxy"),
            (Method::DELETE, "/x", "delete", "proxy"),
        ] {
            let (found, subresources) = attributes(&method, path);
            assert_eq!((found, subresources[0]), (verb, first), "{path}");
        }
    }

    #[test]
    fn a_review_counts_only_for_the_audiences_that_were_asked_for() {
        let answer = json!({"status": {"authenticated": true, "audiences": ["kubelet"], "user": {"username": "u", "groups": ["g"]}}});
        let asked = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(read_review(&answer, &asked(&["kubelet"])).unwrap().user, "u");
        assert_eq!(read_review(&answer, &asked(&["other"])), None);
        assert!(read_review(&answer, &[]).is_some());
        assert_eq!(read_review(&json!({"status": {"authenticated": false, "user": {"username": "u"}}}), &[]), None);
        assert_eq!(read_review(&json!({"status": {"authenticated": true}}), &[]), None);
    }

    #[test]
    fn tokens_are_found_in_headers_and_protocols_and_other_schemes_are_none() {
        let with = |name: http::HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            token(&headers)
        };
        assert_eq!(with(AUTHORIZATION, "Bearer abc").as_deref(), Some("abc"));
        assert_eq!(with(AUTHORIZATION, "Basic abc"), None);
        assert_eq!(with(AUTHORIZATION, "Bearer "), None);
        let protocol = format!("v4.channel.k8s.io, {PROTOCOL_TOKEN}{}", URL_SAFE_NO_PAD.encode("abc"));
        assert_eq!(with(SEC_WEBSOCKET_PROTOCOL, &protocol).as_deref(), Some("abc"));
    }
}
