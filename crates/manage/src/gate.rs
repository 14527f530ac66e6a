//! The gate: who asks, before anything is done for them.

use atoll_apiserver::auth::{self, Authenticator};
use atoll_apiserver::{Body, Identity, Incoming, Line, handle};
use atoll_meta::Status;
use futures::future::BoxFuture;
use http::{Request, Response};
use serde_json::Value;

use crate::guard::{Leash, Shown, hold};
use crate::manage::{LOGIN, Manage, authority_of};
use crate::terminal::Terminal;
use crate::transcode::status;
use crate::{exec, grpc};

/// What anybody may ask: to log in, whether the server is alive, and what is proven by a signature.
fn is_open(path: &str) -> bool {
    path == LOGIN || authority_of(path).is_some() || path.starts_with("/grpc.health.v1.Health/")
}

/// The instance a path leads into, and the path inside.
pub fn instance_of(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/instances/")?;
    let (name, inside) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!name.is_empty()).then_some((name, if inside.is_empty() { "/" } else { inside }))
}

/// Who somebody known in `root` is elsewhere. Accounts of the system in `root` are not those of the
/// same name in other instances, so they are nobody there.
pub fn travelling(mut identity: Identity) -> Option<Identity> {
    if identity.is_master() {
        return Some(identity);
    }
    if identity.user.is_empty() || identity.user.starts_with("system:") {
        return None;
    }
    identity.groups.retain(|group| group == "system:authenticated" || !group.starts_with("system:"));
    Some(identity)
}

/// Answers a request once it is known who asks.
pub async fn answer(manage: &Manage, mut request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if is_open(&path) {
        return manage.call(request, Identity::anonymous()).await;
    }
    let hub = manage.core().hub.clone();
    let (parts, body) = request.into_parts();
    let (shown, line) = (Shown::of(&parts), parts.extensions.get::<Line>().cloned());
    request = Request::from_parts(parts, body);
    let identity = auth::identify(&hub, &hub.root(), &mut request).await;
    let elsewhere = instance_of(&path).filter(|_| !grpc::is_grpc(request.headers()));
    let identity = match identity.map(|identity| (travelling(identity.clone()), identity)) {
        Ok((Some(identity), _)) => identity,
        Ok((None, nobody)) => return refused(manage, &request, &path, &nobody, &Status::unauthorized()),
        Err(status) => return refused(manage, &request, &path, &Identity::anonymous(), &status),
    };
    if let Some(terminal) = Terminal::parse(&path) {
        return terminal.open(manage, request, identity, (shown, line)).await;
    }
    if exec::is_exec(&request) {
        return exec::open(manage, request, identity, (shown, line)).await;
    }
    let leash = Leash::in_root(manage.core().clone(), shown, None);
    let answer = match elsewhere {
        Some((name, inside)) => pass(manage, request, identity, name, inside).await,
        None => manage.call(request, identity).await,
    };
    hold(leash, line, answer)
}

/// Writes a refusal down and tells it in the language of the request.
fn refused(
    manage: &Manage,
    request: &Request<Incoming>,
    path: &str,
    identity: &Identity,
    status: &Status,
) -> Response<Body> {
    let core = manage.core();
    core.audit.record(identity, &format!("{} {path}", request.method()), &Value::Null, Some(status), core.hub.now());
    if grpc::is_grpc(request.headers()) { grpc::failed(status) } else { status::rest(status) }
}

/// Passes a request on to an instance that is not of this hub, in the caller's name.
async fn pass(
    manage: &Manage,
    mut request: Request<Incoming>,
    identity: Identity,
    name: &str,
    inside: &str,
) -> Response<Body> {
    let core = manage.core().clone();
    let client = match core.externals.client(&core, name).await {
        Ok(Some(client)) => client,
        Ok(None) => {
            // The API says that there is none, to who may know.
            request.extensions_mut().insert(identity);
            return handle(core.hub.clone(), request).await;
        }
        Err(failure) => return atoll_apiserver::failure(&failure),
    };
    let path = match request.uri().query() {
        Some(query) => format!("{inside}?{query}"),
        None => inside.to_owned(),
    };
    let what = format!("{} {}", request.method(), request.uri().path());
    let reads = matches!(request.method().as_str(), "GET" | "HEAD" | "OPTIONS");
    let caller = (!identity.is_master()).then_some(&identity);
    let allowed = match reads || inside.starts_with("/apis/authorization.k8s.io/") {
        true => Ok(()),
        false => core.externals.may_write(&core, name).await,
    };
    let answered = match allowed {
        Ok(()) => atoll_fleet::forward(request, caller, client, &path).await,
        Err(refusal) => Err(refusal),
    };
    let code = answered.as_ref().map_or_else(|failure| failure.code, |answer| answer.status().as_u16());
    if !reads || matches!(code, 401 | 403) {
        let failure = (code >= 400).then(|| Status::new(code, atoll_meta::Reason::Unknown, ""));
        core.audit.record(&identity, &what, &Value::Null, failure.as_ref(), core.hub.now());
    }
    answered.unwrap_or_else(|failure| atoll_apiserver::failure(&failure))
}

/// Tokens of sessions are good wherever the hub asks for one.
#[async_trait::async_trait]
impl Authenticator for Manage {
    async fn identify(&self, token: &str) -> Result<Option<Identity>, Status> {
        let (own, token) = (self.clone(), token.to_owned());
        let known: BoxFuture<'static, _> = Box::pin(async move { Manage::identify(&own, &token).await });
        known.await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_tell_the_instance() {
        let table = [
            ("/instances/a/api/v1", Some(("a", "/api/v1"))),
            ("/instances/a", Some(("a", "/"))),
            ("/instances/", None),
            ("/api/v1", None),
        ];
        for (path, expected) in table {
            assert_eq!(instance_of(path), expected, "{path}");
        }
    }

    #[test]
    fn accounts_of_the_system_stay_where_they_are() {
        let who = |user: &str, groups: &[&str]| Identity {
            user: user.into(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..Identity::default()
        };
        assert_eq!(travelling(who("system:serviceaccount:a:b", &["system:authenticated"])), None);
        assert_eq!(travelling(Identity::anonymous()), None);
        let ann = travelling(who("ann", &["team", "system:nodes", "system:authenticated"])).unwrap();
        assert_eq!(ann.groups, ["team", "system:authenticated"]);
        assert!(travelling(Identity::master("m")).unwrap().is_master());
    }
}
