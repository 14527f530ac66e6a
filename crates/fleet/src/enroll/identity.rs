//! Who an agent is: a certificate that is renewed before it ends, while it is in use.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_pki::Access;
use atoll_runtime::{Endpoint, ReplaceableTransport};

use super::ask;
use crate::options::Clock;

/// The name under which the hub sees the requests of agents.
const AGENT: &str = "atoll-agent";

/// The way of an agent to its hub, with credentials that can be renewed.
pub struct Identity {
    member: String,
    access: Access,
    clock: Clock,
    transport: Arc<ReplaceableTransport>,
}

impl Identity {
    /// The agent of a member with these credentials.
    pub async fn new(member: &str, access: Access, clock: Clock) -> Result<Self, Status> {
        let first = ask::endpoint(&access, AGENT).await?.transport().clone();
        let transport = Arc::new(ReplaceableTransport::new(first));
        Ok(Self { member: member.to_owned(), access, clock, transport })
    }

    /// The hub, as this agent. It stays good when the credentials are renewed.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new("hub", self.transport.clone(), AGENT)
    }

    /// Asks for a new certificate if the present one is old, and gives it if so. Requests under way go on with
    /// the old one; it still counts for a third of its life.
    pub async fn renew(&mut self, patience: Duration) -> Result<Option<&Access>, Status> {
        if !self.access.auth.is_old((self.clock)()) {
            return Ok(None);
        }
        let fresh = ask::certificate(&self.access, &self.member, patience).await?;
        self.transport.replace(ask::endpoint(&fresh, AGENT).await?.transport().clone());
        self.access = fresh;
        Ok(Some(&self.access))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_meta::Gvr;
    use atoll_pki::{Auth, BootstrapToken};
    use atoll_runtime::WatchEvent;
    use atoll_testkit::TestServer;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    use super::super::ask::Invitation;
    use super::super::{Enrolment, rights};
    use super::*;
    use crate::gvr;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// The certificate with which the hub sees the agent.
    async fn shown(hub: &Endpoint) -> Value {
        let reviews = Gvr::new("authentication.k8s.io", "v1", "selfsubjectreviews");
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let info = hub.create(&reviews, None, &review).await.unwrap()["status"]["userInfo"].take();
        assert_eq!(info["username"], "system:karmada:agent:m1");
        info["extra"]["authentication.kubernetes.io/credential-id"][0].clone()
    }

    async fn enrolled(server: &TestServer) -> Access {
        let token = BootstrapToken::generate().unwrap();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": format!("bootstrap-token-{}", token.id), "namespace": "kube-system"},
            "stringData": {"token-id": token.id, "token-secret": token.secret,
                "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
                "auth-extra-groups": rights::TOKENS}});
        let instance = server.endpoint("root");
        instance.create(&gvr::core("secrets"), Some("kube-system"), &secret).await.unwrap();
        let invitation = Invitation { server: server.url(), token, ca_hash: None };
        let invited = tokio::time::timeout(PATIENCE, async {
            loop {
                match ask::discover(&invitation).await {
                    Ok(invited) => return invited,
                    // The map for joiners is signed a moment after the token was made.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        ask::certificate(&invited.await.unwrap(), "m1", PATIENCE).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_agent_renews_its_certificate_while_its_watches_go_on() {
        let server = TestServer::memory().unwrap();
        server.hub().add_native(|_| true, atoll_api::crds(atoll_api::CrdSet::Karmada)).await.unwrap();
        let instance = server.endpoint("root");
        let stop = CancellationToken::new();
        let real: Clock = Arc::new(jiff::Timestamp::now);
        let _enrolment = Enrolment::start(instance.clone(), real, stop.clone()).await.unwrap();
        let access = enrolled(&server).await;
        let clock = Arc::new(Mutex::new(jiff::Timestamp::now()));
        let hands = clock.clone();
        let mut identity = Identity::new("m1", access.clone(), Arc::new(move || *hands.lock())).await.unwrap();
        let hub = identity.endpoint();
        let first = shown(&hub).await;
        assert!(identity.renew(PATIENCE).await.unwrap().is_none(), "it is new");
        let works = atoll_api::names::execution_namespace("m1");
        let mut watch = hub.watch(&gvr::works(), Some(&works), "", "").await.unwrap();

        *clock.lock() += jiff::SignedDuration::from_hours(24 * 250);
        let fresh = identity.renew(PATIENCE).await.unwrap().expect("two thirds of a year have passed").clone();
        let (Auth::Certificate(old), Auth::Certificate(new)) = (&access.auth, &fresh.auth) else { panic!("no pairs") };
        assert!(old.cert != new.cert && old.key != new.key);
        assert_ne!(shown(&hub).await, first, "new requests show the new certificate");
        let work = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": {"name": "w", "namespace": works}, "spec": {"workload": {"manifests": []}}});
        instance.create(&gvr::works(), Some(&works), &work).await.unwrap();
        let seen = tokio::time::timeout(PATIENCE, async {
            loop {
                match watch.next().await.expect("the watch goes on").unwrap() {
                    WatchEvent::Added(object) => return object,
                    WatchEvent::Error(status) => panic!("{status}"),
                    _ => {}
                }
            }
        });
        assert_eq!(seen.await.unwrap()["metadata"]["name"], "w", "what began with the old one goes on");
        stop.cancel();
    }
}
