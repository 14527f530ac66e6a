//! Tokens of service accounts, kept as Secrets beside the physical pods.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_api::kubeocean_names::{annotation, label};
use atoll_meta::{Gvr, Status, time};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::build::marks;
use super::rewrite::{TokenWish, token_wishes};
use crate::binding::Binding;
use crate::copy::Kind;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

/// On Secrets with tokens: when they are to be renewed.
const REFRESH: &str = "atoll.io/token-refresh";
/// On Secrets with tokens: of which pod, so that they are found when only the uid is left.
const POD_UID: &str = "kubeocean.io/virtual-pod-uid";
/// How often leftovers are looked for.
pub(crate) const SWEEP: Duration = Duration::from_secs(300);

/// When a token is renewed: after four fifths of its life, or a day.
pub(crate) fn refresh_at(issued: Timestamp, expires: Option<Timestamp>) -> Option<Timestamp> {
    let life = expires?.duration_since(issued);
    issued.checked_add((life * 4 / 5).min(SignedDuration::from_hours(24))).ok()
}

impl Syncer {
    /// Has all tokens a pod wants; says when the next is due.
    pub(crate) async fn bring_tokens(&self, pod: &Value, binding: &Binding) -> Result<Option<Duration>, Status> {
        let mut by_secret: BTreeMap<String, Vec<TokenWish>> = BTreeMap::new();
        for wish in token_wishes(pod) {
            by_secret.entry(wish.secret.clone()).or_default().push(wish);
        }
        let mut due = None;
        for (name, wishes) in by_secret {
            let at = match self.token_due(&name, binding) {
                Some(at) if at > self.now() => Some(at),
                _ => self.renew_token(pod, binding, &name, &wishes).await?,
            };
            due = [due, at].into_iter().flatten().min();
        }
        Ok(due.map(|at| self.until(at)))
    }

    /// When a Secret with tokens is to be renewed, as it says.
    fn token_due(&self, name: &str, binding: &Binding) -> Option<Timestamp> {
        let secret = self.copies.below(Kind::Secret)?.get(&binding.mount_namespace, name)?.tree();
        time::parse(tree::annotation(&secret, REFRESH))
    }

    async fn renew_token(
        &self,
        pod: &Value,
        binding: &Binding,
        name: &str,
        wishes: &[TokenWish],
    ) -> Result<Option<Timestamp>, Status> {
        let account = pod["spec"]["serviceAccountName"].as_str().filter(|name| !name.is_empty()).unwrap_or("default");
        let now = self.now();
        let mut data = Map::new();
        let mut due = None;
        for wish in wishes {
            let (token, expires) = self.request_token(pod, account, wish).await?;
            data.insert(wish.key.clone(), STANDARD.encode(token).into());
            due = [due, refresh_at(now, expires)].into_iter().flatten().min();
        }
        let mut labels: tree::Strings = marks(binding, &self.computing.owner).into();
        labels.insert(label::SERVICE_ACCOUNT_TOKEN.to_owned(), "true".to_owned());
        labels.insert(POD_UID.to_owned(), tree::uid(pod).to_owned());
        let annotations = json!({
            annotation::VIRTUAL_POD_NAME: tree::name(pod),
            annotation::VIRTUAL_POD_NAMESPACE: tree::namespace(pod),
            annotation::VIRTUAL_POD_UID: tree::uid(pod),
            annotation::SERVICE_ACCOUNT: account,
            REFRESH: due.map(time::format).unwrap_or_default(),
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
            "metadata": {"name": name, "namespace": binding.mount_namespace, "labels": labels, "annotations": annotations},
        });
        self.put_token(&secret).await.map(|()| due)
    }

    async fn put_token(&self, secret: &Value) -> Result<(), Status> {
        let (namespace, name) = (tree::namespace(secret), tree::name(secret));
        match self.below().create(&resource::secrets(), Some(namespace), secret).await {
            Err(status) if status.code == 404 => {
                self.make_namespace(namespace).await?;
                self.below().create(&resource::secrets(), Some(namespace), secret).await.map(drop)
            }
            Err(status) if status.code == 409 => {
                let there = self.below().get(&resource::secrets(), Some(namespace), name).await?;
                if tree::label(&there, label::SERVICE_ACCOUNT_TOKEN) != "true"
                    || !crate::syncer::is_ours(&there, &self.computing.owner)
                {
                    return Err(Status::bad_request(format!(
                        "the worker cluster has a Secret {name} that is not ours"
                    )));
                }
                let patch = json!({"metadata": {"labels": secret["metadata"]["labels"], "annotations": secret["metadata"]["annotations"]}, "data": secret["data"]});
                self.below()
                    .patch(&resource::secrets(), Some(namespace), name, "", atoll_runtime::Patch::Merge, &patch)
                    .await
                    .map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Asks the computing cluster for a token that ends with the pod.
    async fn request_token(
        &self,
        pod: &Value,
        account: &str,
        wish: &TokenWish,
    ) -> Result<(String, Option<Timestamp>), Status> {
        let mut spec = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": tree::name(pod), "uid": tree::uid(pod)}});
        if !wish.audience.is_empty() {
            spec["audiences"] = json!([wish.audience]);
        }
        if let Some(seconds) = wish.seconds {
            spec["expirationSeconds"] = seconds.into();
        }
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let accounts = Gvr::new("", "v1", "serviceaccounts");
        let answer = self.above().create_sub(&accounts, Some(tree::namespace(pod)), account, "token", &request).await?;
        let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            return Err(Status::internal("the computing cluster gave no token"));
        }
        Ok((token, answer["status"]["expirationTimestamp"].as_str().and_then(time::parse)))
    }

    /// Removes the tokens of a pod that goes.
    pub(crate) async fn drop_tokens(&self, pod: &Value, binding: &Binding) -> Result<(), Status> {
        let mut names: Vec<String> = token_wishes(pod).into_iter().map(|wish| wish.secret).collect();
        names.sort();
        names.dedup();
        for name in names {
            let known = self.copies.below(Kind::Secret).and_then(|cache| cache.get(&binding.mount_namespace, &name));
            if let Some(known) = known {
                let options = tree::only(&known.object.head.uid);
                self.below().delete(&resource::secrets(), Some(&binding.mount_namespace), &name, &options).await?;
            }
        }
        Ok(())
    }

    /// Removes tokens whose pod is gone.
    pub(crate) async fn sweep_tokens(&self) -> Result<(), Status> {
        let Some(cache) = self.copies.below(Kind::Secret) else { return Ok(()) };
        let binding = self.binding();
        for item in cache.list() {
            let head = &item.object.head;
            if head.label(label::SERVICE_ACCOUNT_TOKEN) != Some("true")
                || head.label(label::CLUSTER_BINDING) != Some(&binding.name)
            {
                continue;
            }
            let secret = item.tree();
            let (namespace, name) = (
                tree::annotation(&secret, annotation::VIRTUAL_POD_NAMESPACE),
                tree::annotation(&secret, annotation::VIRTUAL_POD_NAME),
            );
            let pod = self.computing.pods.get(namespace, name);
            let uid = tree::annotation(&secret, annotation::VIRTUAL_POD_UID);
            if pod.is_none_or(|pod| *pod.object.head.uid != *uid) {
                self.below()
                    .delete(&resource::secrets(), Some(&head.namespace), &head.name, &tree::only(&head.uid))
                    .await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_renewed_before_they_end_and_at_least_daily() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let due = |life: i64, passed: i64| refresh_at(at(0), Some(at(life))).is_some_and(|due| due <= at(passed));
        assert!(!due(60, 30), "half of an hour is left");
        assert!(due(60, 55), "five minutes are left");
        assert!(due(60 * 24 * 365, 60 * 24), "a day old");
        assert_eq!(refresh_at(at(0), None), None, "it never ends");
    }
}
