//! How a member is: what it answers when asked, and how that is told.

use std::time::Duration;

use atoll_api::cluster::ClusterSpec;
use atoll_api::words::reason;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

/// How long a member may think about how it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than any API server says of its health or version; whoever says more is not read on.
const ENOUGH: usize = 16 * 1024;
/// What `rustls` begins with when it does not trust a certificate.
const UNTRUSTED: &str = "invalid peer certificate: ";

/// What a member answers when asked how it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is well, and of this version if it said so.
    Well(String),
    /// It says it is not.
    Ill(String),
    /// It does not answer.
    Silent(String),
    /// It does not know who we are.
    Refused,
    /// It shows a certificate that we do not trust.
    Untrusted(String),
    /// Something else than a Kubernetes API answers in its place.
    Stranger(String),
}

impl Answer {
    /// Whether it is well.
    pub fn is_well(&self) -> bool {
        matches!(self, Self::Well(_))
    }

    /// The status, reason and message of condition Ready of the Cluster that says this of itself.
    pub fn tell(&self, spec: &ClusterSpec) -> (&'static str, &'static str, String) {
        let address = if spec.api_endpoint.is_empty() { "the member" } else { &spec.api_endpoint };
        let secret = spec.secret_ref.as_ref().map(|secret| format!("Secret {}/{}", secret.namespace, secret.name));
        let unready = |why: String| {
            let message = format!("cluster is reachable but health endpoint responded without ok: {why}");
            ("False", reason::CLUSTER_NOT_READY, message)
        };
        let unreachable =
            |why: String| ("False", reason::CLUSTER_NOT_REACHABLE, format!("cluster is not reachable: {why}"));
        match self {
            Self::Well(_) => {
                ("True", reason::CLUSTER_READY, "cluster is healthy and ready to accept workloads".to_owned())
            }
            Self::Ill(why) => unready(why.clone()),
            Self::Silent(why) => unreachable(why.clone()),
            Self::Refused => {
                let whose = secret.map_or("our credentials".to_owned(), |secret| format!("the token in {secret}"));
                unreachable(format!(
                    "{address} does not accept {whose} (401 Unauthorized): it was revoked or has expired and has to be \
                     replaced there"
                ))
            }
            Self::Untrusted(why) => {
                let whose = secret.map_or("its authority".to_owned(), |secret| format!("caBundle in {secret}"));
                unreachable(format!(
                    "the certificate of {address} is not trusted ({why}): {whose} and the certificate have to fit"
                ))
            }
            Self::Stranger(why) => unready(format!(
                "what answers at {address} is no Kubernetes API server ({why}): the address, or what stands before the \
                 member, has to be corrected"
            )),
        }
    }
}

/// Asks a member how it is, and whether it is one.
pub async fn ask(endpoint: &Endpoint) -> Answer {
    let mut last = Answer::Silent("no answer in time".to_owned());
    for path in ["/readyz", "/healthz"] {
        match hear(endpoint, path).await {
            None => return last,
            Some(Err(status)) => return unheard(status),
            Some(Ok((StatusCode::UNAUTHORIZED, _))) => return Answer::Refused,
            Some(Ok((code, said))) if code.is_success() => {
                let mut identity = hear(endpoint, "/version").await;
                if matches!(identity, Some(Ok((StatusCode::NOT_FOUND, _)))) {
                    // What stands before some members lets through only what clients of the API need.
                    identity = hear(endpoint, "/api").await;
                }
                return recognise(path, &said, identity);
            }
            // Servers that do not know the former have the latter.
            Some(Ok((StatusCode::NOT_FOUND, _))) => last = Answer::Ill(format!("{path} answers 404")),
            Some(Ok((code, _))) => return Answer::Ill(format!("{path} answers {}", code.as_u16())),
        }
    }
    last
}

type Heard = Result<(StatusCode, Vec<u8>), Status>;

/// What is answered in time.
async fn hear(endpoint: &Endpoint, path: &str) -> Option<Heard> {
    tokio::time::timeout(PATIENCE, listen(endpoint, path)).await.ok()
}

/// The code of an answer and the beginning of what it says.
async fn listen(endpoint: &Endpoint, path: &str) -> Heard {
    let answer = endpoint.open(Method::GET, path, "application/json", Bytes::new()).await?;
    let (code, mut body, mut said) = (answer.status(), answer.into_body(), Vec::new());
    while let Some(piece) = body.next().await {
        said.extend_from_slice(&piece.map_err(|error| Status::unavailable(error.to_string()))?);
        if said.len() > ENOUGH {
            break;
        }
    }
    Ok((code, said))
}

fn unheard(status: Status) -> Answer {
    if status.code == StatusCode::UNAUTHORIZED.as_u16() {
        return Answer::Refused;
    }
    match status.message.split_once(UNTRUSTED) {
        Some((_, why)) => Answer::Untrusted(why.to_owned()),
        None => Answer::Silent(status.message),
    }
}

/// Whether someone who says that it is well is an API server: sign-in pages and other services answer 200, too. An API
/// server says `ok` and of which version it is, or at least of which versions its API; one that only says the latter may
/// stand behind something that rewrites.
fn recognise(path: &str, said: &[u8], identity: Option<Heard>) -> Answer {
    let is_ok = said.trim_ascii() == b"ok";
    let stranger = |path: &str, said: &[u8]| {
        let said = String::from_utf8_lossy(said);
        let short: String = said.trim().chars().take(60).collect();
        Answer::Stranger(format!("{path} says {short:?}"))
    };
    match identity {
        Some(Ok((code, identity))) if code.is_success() => {
            let tree: Value = serde_json::from_slice(&identity).unwrap_or_default();
            match tree["gitVersion"].as_str().filter(|version| !version.is_empty()) {
                Some(version) => Answer::Well(version.to_owned()),
                None if tree["kind"] == "APIVersions" => Answer::Well(String::new()),
                None if is_ok => stranger("/version", &identity),
                None => stranger(path, said),
            }
        }
        Some(Ok((StatusCode::UNAUTHORIZED, _))) => Answer::Refused,
        Some(Ok((StatusCode::NOT_FOUND, _))) if is_ok => {
            Answer::Stranger("neither /version nor /api is there".to_owned())
        }
        Some(Err(status)) if is_ok => unheard(status),
        Some(Ok(_)) | None if is_ok => Answer::Well(String::new()),
        Some(_) | None => stranger(path, said),
    }
}

/// The state of a member that changes only when an answer persists.
#[derive(Clone, Debug, Default)]
pub struct Steady {
    told: Option<Answer>,
    other_since: Option<Instant>,
}

impl Steady {
    /// Takes an answer and gives the one that counts: the last one told, until another has lasted for `threshold`.
    pub fn take(&mut self, answer: Answer, threshold: Duration, now: Instant) -> Answer {
        match &self.told {
            Some(told) if told.is_well() != answer.is_well() => {
                let since = *self.other_since.get_or_insert(now);
                if now.duration_since(since) < threshold {
                    return told.clone();
                }
            }
            _ => {}
        }
        self.other_since = None;
        self.told = Some(answer.clone());
        answer
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_runtime::{BodyStream, Transport};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_state_changes_only_when_it_lasts() {
        let (start, threshold) = (Instant::now(), Duration::from_secs(30));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut steady = Steady::default();
        let silent = || Answer::Silent("x".to_owned());
        let well = || Answer::Well("v1".to_owned());
        assert_eq!(steady.take(well(), threshold, at(0)), well(), "the first answer counts at once");
        assert_eq!(steady.take(silent(), threshold, at(10)), well());
        assert_eq!(steady.take(well(), threshold, at(20)), well());
        assert_eq!(steady.take(silent(), threshold, at(30)), well(), "an interruption starts anew");
        assert_eq!(steady.take(silent(), threshold, at(60)), silent());
        assert_eq!(steady.take(Answer::Ill("y".to_owned()), threshold, at(61)), Answer::Ill("y".to_owned()));
    }

    #[test]
    fn only_who_says_its_version_or_is_kept_from_it_is_an_api_server() {
        let well = || Answer::Well("v1.30.0".to_owned());
        let version = r#"{"major":"1","gitVersion":"v1.30.0"}"#;
        let stranger = |why: &str| Answer::Stranger(why.to_owned());
        for (said, code, identity, wanted) in [
            ("ok", 200, version, well()),
            ("ok\n", 200, version, well()),
            ("", 200, version, well()),
            ("[+]ping ok\nreadyz check passed\n", 200, version, well()),
            ("ok", 403, "{}", Answer::Well(String::new())),
            ("ok", 503, "", Answer::Well(String::new())),
            ("ok", 401, "", Answer::Refused),
            ("ok", 404, "nothing here", stranger("neither /version nor /api is there")),
            ("ok", 200, r#"{"kind":"APIVersions","versions":["v1"]}"#, Answer::Well(String::new())),
            ("ok", 200, "ok", stranger(r#"/version says "ok""#)),
            ("ok", 200, r#"{"gitVersion":""}"#, stranger(r#"/version says "{\"gitVersion\":\"\"}""#)),
            ("<html>Please sign in</html>", 200, "<html>", stranger(r#"/readyz says "<html>Please sign in</html>""#)),
            ("{}", 200, "{}", stranger(r#"/readyz says "{}""#)),
            ("{}", 403, "{}", stranger(r#"/readyz says "{}""#)),
        ] {
            let identity = Ok((StatusCode::from_u16(code).unwrap(), identity.as_bytes().to_vec()));
            assert_eq!(recognise("/readyz", said.as_bytes(), Some(identity)), wanted, "{said} {code}");
        }
        assert_eq!(recognise("/readyz", b"ok", None), Answer::Well(String::new()), "its version comes late");
        assert_eq!(recognise("/readyz", b"hello", None), stranger(r#"/readyz says "hello""#));
    }

    /// Answers as a member would; what has no answer is not there.
    struct Member(&'static [(&'static str, u16, &'static str)]);

    #[async_trait::async_trait]
    impl Transport for Member {
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Status> {
            let found = self.0.iter().find(|(path, _, _)| *path == request.uri().path());
            let (code, said) = found.map_or((404, "not found"), |(_, code, said)| (*code, *said));
            let body: BodyStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(said.as_bytes()))]));
            Ok(http::Response::builder().status(code).body(body).unwrap())
        }
    }

    #[tokio::test]
    async fn one_that_is_not_ready_is_not_asked_whether_it_lives() {
        let version = ("/version", 200, r#"{"gitVersion":"v1"}"#);
        let cases: [(&[_], Answer); 5] = [
            (&[("/readyz", 200, "ok"), version], Answer::Well("v1".into())),
            (&[("/readyz", 500, "no"), ("/healthz", 200, "ok"), version], Answer::Ill("/readyz answers 500".into())),
            (&[("/healthz", 200, "ok"), version], Answer::Well("v1".into())),
            (&[("/readyz", 200, "ok"), ("/api", 200, r#"{"kind":"APIVersions"}"#)], Answer::Well(String::new())),
            (&[version], Answer::Ill("/healthz answers 404".into())),
        ];
        for (answers, wanted) in cases {
            let answers: &'static [_] = answers.to_vec().leak();
            assert_eq!(ask(&Endpoint::new("m", std::sync::Arc::new(Member(answers)), "test")).await, wanted);
        }
    }

    #[test]
    fn trouble_is_told_with_what_to_correct() {
        let spec = json!({"syncMode": "Push", "apiEndpoint": "https://m1:6443",
                          "secretRef": {"namespace": "karmada-cluster", "name": "m1"}});
        let spec: ClusterSpec = serde_json::from_value(spec).unwrap();
        let pulled: ClusterSpec = serde_json::from_value(json!({"syncMode": "Pull"})).unwrap();
        let lost = unheard(Status::unavailable("error trying to connect: invalid peer certificate: UnknownIssuer"));
        for (answer, spec, reason, parts) in [
            (Answer::Refused, &spec, "ClusterNotReachable", ["401", "token in Secret karmada-cluster/m1"]),
            (Answer::Refused, &pulled, "ClusterNotReachable", ["the member does not accept", "our credentials"]),
            (lost, &spec, "ClusterNotReachable", ["(UnknownIssuer)", "caBundle in Secret karmada-cluster/m1"]),
            (Answer::Silent("refused".into()), &spec, "ClusterNotReachable", ["cluster is not reachable", "refused"]),
            (
                Answer::Ill("/readyz answers 500".into()),
                &spec,
                "ClusterNotReady",
                ["without ok", "/readyz answers 500"],
            ),
            (Answer::Stranger("x".into()), &spec, "ClusterNotReady", ["https://m1:6443 is no Kubernetes", "(x)"]),
        ] {
            let (status, why, message) = answer.tell(spec);
            assert_eq!((status, why), ("False", reason), "{message}");
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }
}
