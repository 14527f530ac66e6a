//! `clusters/{name}/proxy`: requests to a member under the caller's own name.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_api::cluster::Cluster;
use atoll_apiserver::{Body, Connect, Hub, Identity, Instance, PeerCertificates, Visit, handle};
use atoll_meta::{Key, Revision, Status};
use atoll_runtime::Denied;
use atoll_stream::{Keep, clean_request_headers, is_upgrade, splice};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, LOCATION, SET_COOKIE, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;

use crate::everywhere;
use crate::options::{client, secret_text};

/// Largest request body that is passed on.
const LARGEST: usize = 16 * 1024 * 1024;

/// More ways than this are not remembered.
const REMEMBERED: usize = 1024;

/// Says which members are instances of the same hub: the name of the instance for a Cluster object.
pub type Neighbours = Arc<dyn Fn(&Cluster) -> Option<String> + Send + Sync>;

/// Serves `clusters/{name}/proxy` in every instance that serves Clusters; no way leads into a denied network.
pub fn cluster_proxy(neighbours: Neighbours, denied: Denied) -> Arc<dyn Connect> {
    Arc::new(ClusterProxy { neighbours, denied, ways: Arc::default() })
}

/// Ways to members, by instance and member, with what each was made of.
#[derive(Default)]
struct Ways(Mutex<HashMap<(String, String), (String, kube::Client)>>);

impl Ways {
    /// The way to a member, unless it was made of something else.
    fn find(&self, member: &(String, String), origin: &str) -> Option<kube::Client> {
        let known = self.0.lock();
        known.get(member).filter(|(made_of, _)| made_of == origin).map(|(_, client)| client.clone())
    }

    fn keep(&self, member: (String, String), origin: String, client: kube::Client) {
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED && !known.contains_key(&member) {
            known.clear();
        }
        known.insert(member, (origin, client));
    }
}

/// All that the way to a member is made of.
fn origin(cluster: &Value, credentials: &Value) -> String {
    let (spec, data) = (&cluster["spec"], &credentials["data"]);
    format!(
        "{} {} {} {} {} {}",
        spec["apiEndpoint"],
        spec["insecureSkipTLSVerification"],
        spec["proxyURL"],
        spec["proxyHeader"],
        data["caBundle"],
        data["token"]
    )
}

struct ClusterProxy {
    neighbours: Neighbours,
    denied: Denied,
    /// Connections are kept and shared by all callers; who calls is said in each request.
    ways: Arc<Ways>,
}

#[async_trait::async_trait]
impl Connect for ClusterProxy {
    fn serves(&self, instance: &Instance) -> bool {
        instance.kind("cluster.karmada.io", "v1alpha1", "clusters").is_some()
    }

    async fn connect(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let name = visit.target.name.clone();
        if name == "*" {
            return everywhere::ask(self, visit).await;
        }
        let (hub, instance) = (visit.hub.clone(), visit.instance.clone());
        let tree = stored(&hub, &instance, Key::new("cluster.karmada.io", "clusters", "", &name)).await?;
        let tree = tree.ok_or_else(|| Status::not_found("cluster.karmada.io", "clusters", &name))?;
        let cluster: Cluster = serde_json::from_value(tree.clone()).map_err(Status::internal)?;
        let path = onward_path(&visit.target.rest, visit.request.uri().query());
        if let Some(neighbour) = (self.neighbours)(&cluster) {
            let answer: BoxFuture<'static, _> = Box::pin(async move {
                let token = impersonator(&hub, &instance, &cluster).await?.1;
                next_door(visit, &neighbour, &path, &token).await
            });
            return answer.await;
        }
        let (ways, denied) = (self.ways.clone(), self.denied.clone());
        let answer: BoxFuture<'static, _> = Box::pin(async move {
            // A connection whose upgrade is refused must serve nobody else: each has its own.
            let shared = is_upgrade(visit.request.headers()).is_none().then_some(&*ways);
            let client = way(shared, &denied, &hub, &instance, &cluster, &tree).await?;
            forward(visit.request, Some(&visit.identity), client, &path).await
        });
        answer.await
    }
}

fn stored(hub: &Arc<Hub>, instance: &Arc<Instance>, key: Key) -> BoxFuture<'static, Result<Option<Value>, Status>> {
    let (hub, instance) = (hub.clone(), instance.clone());
    Box::pin(async move { Ok(hub.read(&instance, key.as_str()).await?.map(|entry| entry.object.tree(Revision(0)))) })
}

/// The path in the member, with the caller's query.
fn onward_path(rest: &str, query: Option<&str>) -> String {
    let path = if rest.is_empty() { "/" } else { rest };
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// The member is an instance of the same hub: the way is shorter, the caller is the same as over the
/// network. A caller's own name would be worth as much there as here, whoever the instance belongs to.
async fn next_door(visit: Visit, neighbour: &str, path: &str, token: &str) -> Result<Response<Body>, Status> {
    let mut request = visit.request;
    let mut headers = travelling_headers(request.headers());
    impersonate(&mut headers, &visit.identity)?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| Status::unavailable("the impersonator secret has no usable token"))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    *request.headers_mut() = headers;
    let target = format!("/instances/{neighbour}{path}");
    *request.uri_mut() = target.parse().map_err(|error| Status::bad_request(format!("{path}: {error}")))?;
    request.extensions_mut().remove::<Identity>();
    request.extensions_mut().remove::<PeerCertificates>();
    Ok(handle(visit.hub, request).await)
}

/// The secret with the token that may only impersonate, and the token.
async fn impersonator(hub: &Arc<Hub>, instance: &Arc<Instance>, cluster: &Cluster) -> Result<(Value, String), Status> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let reference = cluster
        .spec
        .impersonator_secret_ref
        .as_ref()
        .ok_or_else(|| Status::unavailable(format!("the impersonatorSecretRef of cluster {name} is empty")))?;
    let secret = stored(hub, instance, Key::new("", "secrets", &reference.namespace, &reference.name)).await?;
    let secret = secret
        .ok_or_else(|| Status::unavailable(format!("secret {}/{} is missing", reference.namespace, reference.name)))?;
    let token =
        secret_text(&secret, "token").ok_or_else(|| Status::unavailable("the impersonator secret has no token"))?;
    Ok((secret, token))
}

/// The way to a member with the token that may only impersonate; one of its own if there are none to share.
async fn way(
    ways: Option<&Ways>,
    denied: &Denied,
    hub: &Arc<Hub>,
    instance: &Arc<Instance>,
    cluster: &Cluster,
    tree: &Value,
) -> Result<kube::Client, Status> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let (mut credentials, _) = impersonator(hub, instance, cluster).await?;
    if credentials["data"]["caBundle"].is_null()
        && let Some(main) = &cluster.spec.secret_ref
    {
        let main = stored(hub, instance, Key::new("", "secrets", &main.namespace, &main.name)).await?;
        credentials["data"]["caBundle"] = main.map(|main| main["data"]["caBundle"].clone()).unwrap_or_default();
    }
    let (member, origin) = ((instance.name.to_string(), name.to_owned()), origin(tree, &credentials));
    if let Some(client) = ways.and_then(|ways| ways.find(&member, &origin)) {
        return Ok(client);
    }
    let client = client(tree, &credentials, denied)?;
    if let Some(ways) = ways {
        ways.keep(member, origin, client.clone());
    }
    Ok(client)
}

/// Sends a request to an API server elsewhere in somebody's name, or in that of the client; upgraded
/// connections are joined.
pub async fn forward(
    mut request: Request<atoll_apiserver::Incoming>,
    identity: Option<&Identity>,
    client: kube::Client,
    path: &str,
) -> Result<Response<Body>, Status> {
    let mut headers = travelling_headers(request.headers());
    if let Some(identity) = identity {
        impersonate(&mut headers, identity)?;
    }
    let upgrade = is_upgrade(request.headers()).is_some();
    let uri: Uri = path.parse().map_err(|error| Status::bad_request(format!("{path}: {error}")))?;
    let mut onward = Request::builder().method(request.method().clone()).uri(uri);
    let body = if upgrade { Bytes::new() } else { collect(std::mem::take(request.body_mut())).await? };
    if let Some(map) = onward.headers_mut() {
        headers.remove(CONTENT_LENGTH);
        *map = headers;
    }
    let onward = onward.body(kube::client::Body::from(body)).map_err(|error| Status::bad_request(error.to_string()))?;
    let answer = client
        .send(onward)
        .await
        .map_err(|error| Status::unavailable(format!("the server cannot be reached: {error}")))?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS && upgrade {
        return Ok(join_streams(request, answer));
    }
    Ok(pass_back(answer, upgrade))
}

async fn collect(mut body: atoll_apiserver::Incoming) -> Result<Bytes, Status> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        if all.len() + piece.len() > LARGEST {
            return Err(Status::too_large(format!("limit is {LARGEST}")));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// The headers that may travel on: nothing that says who the caller is, in any spelling.
fn travelling_headers(headers: &HeaderMap) -> HeaderMap {
    let clean = clean_request_headers(headers, Keep::default());
    clean.iter().filter(|(name, _)| !is_claim(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_claim(name: &HeaderName) -> bool {
    // Some servers read underscores as dashes.
    let text = name.as_str().replace('_', "-");
    ["x-remote-", "impersonate-", "x-forwarded-"].iter().any(|prefix| text.starts_with(prefix))
        || text == "proxy-authorization"
        || *name == AUTHORIZATION
}

/// Says in whose name the member is asked. What every member knows by itself is left out.
fn impersonate(headers: &mut HeaderMap, identity: &Identity) -> Result<(), Status> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Status::bad_request(format!("{text:?} cannot be sent as a header")))
    };
    headers.insert("impersonate-user", value(&identity.user)?);
    for group in identity
        .groups
        .iter()
        .filter(|group| !matches!(group.as_str(), "system:authenticated" | "system:unauthenticated"))
    {
        headers.append("impersonate-group", value(group)?);
    }
    Ok(())
}

/// Joins both connections after the member agreed to an upgrade.
fn join_streams(
    mut request: Request<atoll_apiserver::Incoming>,
    mut answer: Response<kube::client::Body>,
) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in answer.headers() {
        if *name == CONNECTION
            || *name == UPGRADE
            || name.as_str().starts_with("sec-websocket-")
            || name.as_str().starts_with("x-stream-protocol")
        {
            response.headers_mut().append(name, value.clone());
        }
    }
    let (ours, theirs) = (hyper::upgrade::on(&mut request), hyper::upgrade::on(&mut answer));
    tokio::spawn(async move {
        match tokio::try_join!(ours, theirs) {
            Ok((ours, theirs)) => {
                if let Err(error) = splice(TokioIo::new(ours), TokioIo::new(theirs), None).await {
                    tracing::debug!(%error, "proxied stream ended");
                }
            }
            Err(error) => tracing::debug!(%error, "upgrade did not come about"),
        }
    });
    response
}

/// The member's answer, without what concerns only its own connection or leads elsewhere.
fn pass_back(answer: Response<kube::client::Body>, upgrade: bool) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let stream = futures::StreamExt::map(body.into_data_stream(), |piece| {
        piece.map_err(|error| -> atoll_apiserver::BodyError { Box::new(error) })
    });
    let mut response = Response::new(Body::stream(stream));
    *response.status_mut() = parts.status;
    for (name, value) in &parts.headers {
        let hop = [CONNECTION, UPGRADE, SET_COOKIE].contains(name)
            || matches!(name.as_str(), "keep-alive" | "transfer-encoding" | "trailer" | "proxy-authenticate");
        let elsewhere =
            *name == LOCATION && !value.to_str().is_ok_and(|text| text.starts_with('/') && !text.starts_with("//"));
        if !hop && !elsewhere {
            response.headers_mut().append(name, value.clone());
        }
    }
    if upgrade {
        // A refused upgrade leaves both sides unsure of the connection: it ends here.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_runtime::guarded_client;

    use super::*;

    #[test]
    fn only_the_derived_identity_travels() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("impersonate-user", "admin"),
            ("Impersonate-Group", "system:masters"),
            ("impersonate_user", "admin"),
            ("x-remote-user", "admin"),
            ("X_Remote_Group", "system:masters"),
            ("x-forwarded-client-cert", "x"),
            ("connection", "x-hidden"),
            ("x-hidden", "1"),
            ("accept", "application/json"),
        ] {
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let identity = Identity {
            user: "jane".into(),
            groups: vec!["devs".into(), "system:authenticated".into()],
            ..Identity::default()
        };
        let mut clean = travelling_headers(&headers);
        impersonate(&mut clean, &identity).unwrap();
        let mut seen: Vec<(String, String)> =
            clean.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        seen.sort();
        let expected = [("accept", "application/json"), ("impersonate-group", "devs"), ("impersonate-user", "jane")];
        assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn names_that_break_headers_are_refused() {
        let identity = Identity { user: "a\r\nImpersonate-Group: system:masters".into(), ..Identity::default() };
        assert!(impersonate(&mut HeaderMap::new(), &identity).is_err());
    }

    #[test]
    fn a_way_is_another_one_as_soon_as_anything_it_is_made_of_changes() {
        let spec = serde_json::json!({"apiEndpoint": "a", "proxyURL": "b", "proxyHeader": {"c": "d"}, "insecureSkipTLSVerification": true});
        let data = serde_json::json!({"token": "e", "caBundle": "f"});
        let origin =
            |spec: &Value, data: &Value| origin(&serde_json::json!({"spec": spec}), &serde_json::json!({"data": data}));
        let first = origin(&spec, &data);
        for key in spec.as_object().unwrap().keys() {
            let mut changed = spec.clone();
            changed[key] = Value::Null;
            assert_ne!(origin(&changed, &data), first, "{key}");
        }
        for key in data.as_object().unwrap().keys() {
            let mut changed = data.clone();
            changed[key] = "other".into();
            assert_ne!(origin(&spec, &changed), first, "{key}");
        }
    }

    #[tokio::test]
    async fn ways_are_replaced_and_never_more_than_are_remembered() {
        let (ways, denied) = (Ways::default(), Denied::default());
        let made = guarded_client(kube::Config::new("http://127.0.0.1:1".parse().unwrap()), &denied, HeaderMap::new());
        let (made, member) = (made.unwrap(), |number: usize| ("fleet".to_owned(), format!("m{number}")));
        for number in 0..REMEMBERED {
            ways.keep(member(number), "old".to_owned(), made.clone());
        }
        ways.keep(member(0), "new".to_owned(), made.clone());
        let held = |number: usize, origin: &str| ways.find(&member(number), origin).is_some();
        assert!(held(0, "new") && !held(0, "old") && held(1, "old"));
        ways.keep(member(REMEMBERED), "new".to_owned(), made);
        assert!(held(REMEMBERED, "new"));
        assert!(ways.0.lock().len() <= REMEMBERED);
    }

    #[test]
    fn redirects_to_other_hosts_do_not_come_back() {
        for (location, kept) in [("https://169.254.169.254/x", false), ("//evil/x", false), ("/api/v1", true)] {
            let answer =
                Response::builder().status(302).header("location", location).body(kube::client::Body::empty()).unwrap();
            assert_eq!(pass_back(answer, false).headers().contains_key("location"), kept, "{location}");
        }
        let refused = Response::builder().status(403).body(kube::client::Body::empty()).unwrap();
        assert_eq!(pass_back(refused, true).headers()["connection"], "close");
    }

    #[test]
    fn the_path_and_the_query_go_on_unchanged() {
        assert_eq!(onward_path("", None), "/");
        assert_eq!(onward_path("/api/v1/pods", Some("limit=5&a=%2F")), "/api/v1/pods?limit=5&a=%2F");
    }
}

#[cfg(test)]
mod smuggling {
    #![allow(clippy::unwrap_used)]
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::*;

    /// What says who somebody is.
    const CLAIMS: [&str; 13] = [
        "impersonate-user",
        "impersonate-group",
        "impersonate-uid",
        "impersonate-extra-scopes",
        "x-remote-user",
        "x-remote-group",
        "x-remote-uid",
        "x-remote-extra-scopes",
        "x-forwarded-client-cert",
        "x-forwarded-for",
        "authorization",
        "proxy-authorization",
        "cookie",
    ];
    const HARMLESS: [&str; 4] = ["accept", "x-request-id", "user-agent", "content-type"];

    /// A name with each letter in either case and, if asked for, any dash as an underscore.
    fn spelled(name: &'static str, underscores: bool) -> impl Strategy<Value = String> {
        vec(any::<(bool, bool)>(), name.len()).prop_map(move |choices| {
            let letters = name.chars().zip(choices).map(|(letter, (upper, under))| match letter {
                '-' if under && underscores => '_',
                letter if upper => letter.to_ascii_uppercase(),
                letter => letter,
            });
            letters.collect()
        })
    }

    fn harmless() -> impl Strategy<Value = String> {
        select(&HARMLESS[..]).prop_flat_map(|name| spelled(name, false))
    }

    fn claim() -> impl Strategy<Value = String> {
        select(&CLAIMS[..]).prop_flat_map(|name| spelled(name, true))
    }

    proptest! {
        #[test]
        fn only_the_derived_identity_travels_however_others_are_spelled(
            sent in vec((any::<bool>(), claim(), harmless()), 0..16),
            named in vec((any::<bool>(), claim(), harmless()), 0..4),
            apart in any::<bool>(),
        ) {
            let choose = |(claims, claim, harmless): (bool, String, String)| if claims { claim } else { harmless };
            let named: Vec<String> = named.into_iter().map(choose).collect();
            let (mut headers, mut wanted) = (HeaderMap::new(), Vec::new());
            for (number, (claims, claim, harmless)) in sent.into_iter().enumerate() {
                let value = format!("sent-{number}");
                let name = choose((claims, claim, harmless));
                headers.append(HeaderName::try_from(&name).unwrap(), HeaderValue::try_from(&value).unwrap());
                if !claims && !named.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
                    wanted.push((name.to_lowercase(), value));
                }
            }
            // What a connection is said to be about ends with it, and so does what says it.
            for list in if apart { named } else { vec![named.join(", ")] } {
                for name in ["connection", "trailer"] {
                    headers.append(name, HeaderValue::try_from(&list).unwrap());
                }
            }
            let identity = Identity { user: "jane".into(), groups: vec!["devs".into()], ..Identity::default() };
            let mut clean = travelling_headers(&headers);
            impersonate(&mut clean, &identity).unwrap();
            wanted.push(("impersonate-user".into(), "jane".into()));
            wanted.push(("impersonate-group".into(), "devs".into()));
            let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
            let mut travelled: Vec<_> = clean.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            travelled.sort();
            wanted.sort();
            prop_assert_eq!(travelled, wanted);
        }
    }
}
