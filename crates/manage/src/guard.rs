//! What lasts is held on a leash: watches, logs and terminals end when the rights they were opened
//! with do. What is written or refused is put on record.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::{self, Attributes};
use atoll_apiserver::{Asked, Body, Identity, Instance, Line, PeerCertificates, Place, Witness};
use atoll_meta::{Reason, Status};
use atoll_store::FeedItem;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::grpc;
use crate::manage::Manage;
use crate::transcode::status;

/// How often credentials are looked at when nothing says that they changed: they may expire.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// After a change, how long until everybody in the process has taken note of it.
const TAKE_NOTE: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
/// What keys of objects that give rights have in them.
const GIVES_RIGHTS: [&str; 4] =
    [".rbac.authorization.k8s.io/", "accounts.atoll.io/", "serviceaccounts./", "identityproviders."];

/// Tells when rights may have changed anywhere in the hub.
#[derive(Clone)]
pub struct Epoch(watch::Sender<u64>);

impl Default for Epoch {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Epoch {
    /// Tells of every change from now on.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    /// Follows the changes of all instances until `stop`.
    pub async fn run(self, core: Arc<Core>, stop: CancellationToken) {
        let mut feed = core.hub.engine().feed();
        loop {
            let item = tokio::select! {
                () = stop.cancelled() => return,
                item = feed.recv() => item,
            };
            let matters = match item {
                Ok(FeedItem::Changed(_, event)) => GIVES_RIGHTS.iter().any(|part| event.key.as_str().contains(part)),
                Ok(FeedItem::Dropped(..)) | Err(RecvError::Lagged(_)) => true,
                Ok(FeedItem::Created(..)) => false,
                Err(RecvError::Closed) => return,
            };
            if matters {
                self.0.send_modify(|epoch| *epoch += 1);
            }
        }
    }
}

/// What a caller showed, to be shown again.
#[derive(Clone)]
pub struct Shown {
    headers: HeaderMap,
    certificates: Option<PeerCertificates>,
    inside: Option<Identity>,
}

impl Shown {
    /// What a request shows.
    pub fn of(parts: &Parts) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &parts.headers {
            let word = name.as_str();
            if word == "authorization" || word == "sec-websocket-protocol" || word.starts_with("impersonate-") {
                headers.append(name.clone(), value.clone());
            }
        }
        let certificates = parts.extensions.get::<PeerCertificates>().cloned();
        Self { headers, certificates, inside: parts.extensions.get::<Identity>().cloned() }
    }

    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.headers_mut() = self.headers.clone();
        if let Some(certificates) = &self.certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        if let Some(inside) = &self.inside {
            request.extensions_mut().insert(inside.clone());
        }
        request
    }
}

/// Holds what was allowed once to what is allowed now.
pub struct Leash {
    core: Arc<Core>,
    shown: Shown,
    /// Where the caller is known.
    home: Arc<Instance>,
    /// What they were allowed; nothing but being known when it is not about an instance.
    seen: Option<Asked>,
}

impl Leash {
    /// For something a caller was allowed in the instance that knows them.
    pub fn new(core: Arc<Core>, shown: Shown, seen: Asked) -> Self {
        Self { core, shown, home: seen.instance.clone(), seen: Some(seen) }
    }

    /// For something a caller known in `root` was allowed, there or in another instance.
    pub fn in_root(core: Arc<Core>, shown: Shown, seen: Option<Asked>) -> Self {
        let home = core.hub.root();
        Self { core, shown, home, seen }
    }

    /// Waits until the caller may no longer do what they do.
    pub async fn ended(self) {
        let mut epoch = self.core.epoch.subscribe();
        loop {
            let pauses = tokio::select! {
                _ = epoch.changed() => &TAKE_NOTE[..],
                () = tokio::time::sleep(LOOK_AGAIN) => &[Duration::ZERO][..],
            };
            for pause in pauses {
                tokio::time::sleep(*pause).await;
                if !self.holds().await {
                    return;
                }
            }
        }
    }

    async fn holds(&self) -> bool {
        let hub = &self.core.hub;
        let mut request = self.shown.request();
        let Ok(identity) = auth::identify(hub, &self.home, &mut request).await else { return false };
        let Some(seen) = &self.seen else { return true };
        if hub.instance(&seen.instance.name).is_none() {
            return false;
        }
        let target = match &seen.info.place {
            Place::Resource(target) => target.clone(),
            Place::Url => atoll_apiserver::Target::default(),
        };
        let attributes = Attributes {
            verb: seen.info.verb,
            verb_word: None,
            group: &target.group,
            version: &target.version,
            resource: &target.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            url: (seen.info.place == Place::Url).then_some(seen.path.as_str()),
        };
        // A store that does not answer takes nobody's rights away.
        !matches!(auth::authorize(hub, &seen.instance, &identity, &attributes).await, Err(status) if status.code == 403)
    }
}

type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The same body until the leash ends it, with a last word if there is one.
pub fn leashed(body: Body, leash: Leash, last: Option<HeaderMap>) -> Body {
    let ended: Ended = Box::pin(leash.ended());
    Body::frames(futures::stream::unfold(Some((body, ended, last)), |state| async move {
        let (mut body, mut ended, last) = state?;
        tokio::select! {
            biased;
            () = &mut ended => last.map(|last| (Ok(Frame::trailers(last)), None)),
            frame = body.frame() => frame.map(|frame| (frame, Some((body, ended, last)))),
        }
    }))
}

/// Whether an answer may last.
fn lasts(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    parts.headers.contains_key("upgrade")
        || query.split('&').any(|pair| pair.starts_with("watch=") || pair.starts_with("follow="))
        || parts.uri.path().contains("/proxy/")
        || parts.uri.path().contains("/watch/")
}

impl Manage {
    /// Answers a request for an instance of this hub: what lasts is held on a leash, what is written or
    /// refused is put on record.
    pub async fn native<S, B>(&self, mut api: S, request: Request<B>) -> Response<Body>
    where
        S: tower::Service<Request<B>, Response = Response<Body>, Error = std::convert::Infallible>,
    {
        let (mut parts, body) = request.into_parts();
        let witness = Witness::default();
        parts.extensions.insert(witness.clone());
        let shown = lasts(&parts).then(|| (Shown::of(&parts), parts.extensions.get::<Line>().cloned()));
        let what = format!("{} {}", parts.method, parts.uri.path());
        let Ok(answer) = api.call(Request::from_parts(parts, body)).await;
        let seen = witness.0.get().cloned();
        self.note(&what, seen.as_ref(), answer.status());
        match (shown, seen) {
            (Some((shown, line)), Some(seen)) => hold(Leash::new(self.core().clone(), shown, seen), line, answer),
            _ => answer,
        }
    }

    /// Puts a write or a refusal on record.
    fn note(&self, what: &str, seen: Option<&Asked>, status: StatusCode) {
        let refused = matches!(status.as_u16(), 401 | 403);
        let target = match seen.map(|seen| &seen.info.place) {
            Some(Place::Resource(target)) => Some(target),
            _ => None,
        };
        // Questions about rights change nothing, although they are posted.
        let asks = |group: &str| matches!(group, "authorization.k8s.io" | "authentication.k8s.io");
        let writes =
            seen.is_some_and(|seen| seen.info.verb.mutates()) && !target.is_some_and(|target| asks(&target.group));
        if !writes && !refused {
            return;
        }
        let about = match (seen, target) {
            (Some(seen), Some(target)) => json!({
                "instance": &*seen.instance.name, "namespace": target.namespace, "name": target.name, "group": target.group,
                "version": target.version, "resource": target.resource,
            }),
            _ => Value::Null,
        };
        let failure = (status.as_u16() >= 400).then(|| Status::new(status.as_u16(), Reason::Unknown, ""));
        let nobody = Identity::anonymous();
        let identity = seen.map_or(&nobody, |seen| &seen.identity);
        self.core().audit.record(identity, what, &about, failure.as_ref(), self.core().hub.now());
    }
}

/// Puts an answer on a leash: its body, or the connection it was upgraded to.
pub fn hold(leash: Leash, line: Option<Line>, answer: Response<Body>) -> Response<Body> {
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        if let Some(line) = line {
            tokio::spawn(async move {
                tokio::select! {
                    () = line.over() => {}
                    () = leash.ended() => line.cut(),
                }
            });
        }
        return answer;
    }
    let streams = matches!(answer.body(), Body::Stream(_) | Body::Frames(_)) && answer.status().is_success();
    if !streams {
        return answer;
    }
    let revoked = Status::new(403, Reason::Forbidden, "the right to this has ended");
    let last = grpc::is_grpc(answer.headers()).then(|| status::trailers(Err(&revoked)));
    answer.map(|body| leashed(body, leash, last))
}
