//! Terminals, logs and ports of pods in members, for who may use them in the instance.

use atoll_apiserver::auth::{self, Attributes};
use atoll_apiserver::{Asked, Body, Identity, Incoming, Line, Place, RequestInfo, Target, Verb, failure, handle};
use atoll_meta::Status;
use http::{Request, Response};
use serde_json::json;

use crate::context::member_of;
use crate::guard::{Leash, Shown, hold};
use crate::manage::Manage;

/// What may be opened, and what roles call that.
const PARTS: [(&str, Verb); 4] =
    [("log", Verb::Get), ("exec", Verb::Create), ("attach", Verb::Create), ("portforward", Verb::Create)];

/// A pod of a member and what to open of it.
#[derive(Debug, PartialEq)]
pub struct Terminal {
    instance: String,
    member: String,
    target: Target,
    verb: Verb,
}

impl Terminal {
    /// Understands `/manage/v1alpha1/instances/I/clusters/C/namespaces/N/pods/P/exec` and the like.
    pub fn parse(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/manage/v1alpha1/instances/")?;
        let ["clusters", "namespaces", "pods"] =
            [rest.split('/').nth(1)?, rest.split('/').nth(3)?, rest.split('/').nth(5)?]
        else {
            return None;
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let [instance, _, member, _, namespace, _, name, part] = parts[..] else { return None };
        let (_, verb) = PARTS.iter().find(|(known, _)| *known == part)?;
        for word in [instance, member, namespace, name] {
            crate::ask::segment("path", word).ok()?;
        }
        let target = crate::service::pod_part(namespace, name, part);
        Some(Self { instance: instance.to_owned(), member: member.to_owned(), target, verb: *verb })
    }

    /// Opens it, on a leash, and puts that on record.
    pub async fn open(
        self,
        manage: &Manage,
        request: Request<Incoming>,
        identity: Identity,
        (shown, line): (Shown, Option<Line>),
    ) -> Response<Body> {
        let core = manage.core().clone();
        let opened = self.pass(manage, request, &identity).await;
        let about = json!({"instance": self.instance, "cluster": self.member, "namespace": self.target.namespace, "name": self.target.name});
        let method = format!("Pod.Open{}", self.target.subresource);
        if self.verb != Verb::Get || opened.is_err() {
            core.audit.record(&identity, &method, &about, opened.as_ref().err(), core.hub.now());
        }
        let answer = match opened {
            Ok(answer) => answer,
            Err(status) => return failure(&status),
        };
        let seen = core.hub.instance(&self.instance).map(|instance| Asked {
            instance,
            identity,
            info: RequestInfo { verb: self.verb, place: Place::Resource(self.target) },
            path: String::new(),
        });
        hold(Leash::in_root(core, shown, seen), line, answer)
    }

    async fn pass(
        &self,
        manage: &Manage,
        mut request: Request<Incoming>,
        identity: &Identity,
    ) -> Result<Response<Body>, Status> {
        let core = manage.core().clone();
        let Some(instance) = core.hub.instance(&self.instance) else {
            return Err(Status::new(
                501,
                atoll_meta::Reason::MethodNotAllowed,
                "members of external instances are reached through those",
            ));
        };
        let target = &self.target;
        let attributes = Attributes {
            verb: self.verb,
            verb_word: None,
            group: "",
            version: "v1",
            resource: "pods",
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            url: None,
        };
        auth::authorize(&core.hub, &instance, identity, &attributes).await?;
        let member = member_of(&core, &self.instance, &self.member).await?;
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let inside =
            format!("/api/v1/namespaces/{}/pods/{}/{}{query}", target.namespace, target.name, target.subresource);
        if let Some(client) = member.transport().remote() {
            return atoll_fleet::forward(request, None, client.clone(), &inside).await;
        }
        let path = format!("/instances/{}{inside}", member.name());
        *request.uri_mut() = path.parse().map_err(|error| Status::bad_request(format!("{path}: {error}")))?;
        // What the caller may was decided above, by the roles of the instance.
        request.extensions_mut().insert(Identity::master("system:atoll:manage"));
        Ok(handle(core.hub.clone(), request).await)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_parts_of_pods_are_opened() {
        let found = Terminal::parse("/manage/v1alpha1/instances/i/clusters/c/namespaces/n/pods/p/exec").unwrap();
        assert_eq!((found.instance.as_str(), found.member.as_str(), found.verb), ("i", "c", Verb::Create));
        assert_eq!((found.target.name.as_str(), found.target.subresource.as_str()), ("p", "exec"));
        for other in [
            "/manage/v1alpha1/instances/i/clusters/c/namespaces/n/pods/p",
            "/manage/v1alpha1/instances/i/clusters/c/namespaces/n/pods/p/proxy",
            "/manage/v1alpha1/instances/i/clusters/c/namespaces/n/pods/p/exec/more",
            "/manage/v1alpha1/instances/i/clusters/../namespaces/n/pods/p/exec",
            "/manage/v1alpha1/search",
        ] {
            assert_eq!(Terminal::parse(other), None, "{other}");
        }
    }
}
