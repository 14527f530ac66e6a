//! ConfigMaps, Secrets, claims and volumes: copied for the pods that need them, removed with the last.

mod build;
mod follow;
mod stamp;
mod thing;
mod users;

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::label;
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

pub(crate) use follow::Copies;
pub(crate) use stamp::unstamp;
pub(crate) use thing::{Kind, Thing};
pub(crate) use users::Users;

use crate::binding::Binding;
use crate::pod::{marks, references};
use crate::syncer::{Syncer, is_ours};
use crate::tree;
use build::{copy, is_same, volume_of, volume_secrets};

/// How long an unneeded copy stays: a pod may be replaced by one that needs the same.
const LINGER: Duration = Duration::from_secs(5);
/// How often marking an original is tried against others who write it.
const MARK_TRIES: usize = 5;

impl Syncer {
    /// Has copies of everything a pod needs. `allow` is what the node's policy allows.
    pub(crate) async fn bring_needs(&self, pod: &Value, binding: &Binding, allow: &[String]) -> Result<(), Status> {
        let key = tree::key(tree::namespace(pod), tree::name(pod));
        for reference in references(&pod["spec"]) {
            let thing = Thing::new(reference.kind, tree::namespace(pod), &reference.name);
            if let Some(feature) = reference.kind.feature().filter(|own| self.worker.withheld.contains(own)) {
                return Err(Status::bad_request(format!(
                    "{} cannot be brought: the worker cluster does not grant {feature}",
                    thing.title()
                )));
            }
            self.users.add(&key, &thing);
            let original = match self.original(&thing).await? {
                Some(original) if !tree::is_deleting(&original) => original,
                _ if reference.optional => continue,
                _ => return Err(Status::bad_request(format!("{} does not exist", thing.title()))),
            };
            if thing.kind == Kind::Claim {
                self.bring_volume(&key, &thing, &original, binding, allow).await?;
            }
            self.bring(&thing, original, binding).await?;
        }
        Ok(())
    }

    /// Notes what a pod needs without bringing it, for pods that were there before us.
    pub(crate) fn note_needs(&self, pod: &Value) {
        let key = tree::key(tree::namespace(pod), tree::name(pod));
        for reference in references(&pod["spec"]) {
            let thing = Thing::new(reference.kind, tree::namespace(pod), &reference.name);
            self.users.add(&key, &thing);
            if thing.kind == Kind::Claim
                && let Some(claim) = self.copies.original(&thing)
                && let Ok(volume) = volume_of(&thing, &claim)
            {
                let volume = Thing::new(Kind::Volume, "", &volume);
                self.users.add(&key, &volume);
                let secrets = self.copies.original(&volume).map(|volume| volume_secrets(&volume));
                secrets.iter().flatten().for_each(|secret| self.users.add(&key, secret));
            }
        }
    }

    /// Lets a pod's needs go; copies nobody needs are looked at a little later.
    pub(crate) fn drop_needs(&self, pod: &str) {
        for thing in self.users.remove(pod) {
            self.queues.objects.add_after(thing, LINGER);
        }
    }

    async fn bring_volume(
        &self,
        pod: &str,
        claim: &Thing,
        object: &Value,
        binding: &Binding,
        allow: &[String],
    ) -> Result<(), Status> {
        let thing = Thing::new(Kind::Volume, "", &volume_of(claim, object).map_err(Status::bad_request)?);
        self.users.add(pod, &thing);
        let missing = || Status::bad_request(format!("{} does not exist", thing.title()));
        let volume = self.original(&thing).await?.ok_or_else(missing)?;
        let reaches_host = volume["spec"]["hostPath"].is_object() || volume["spec"]["local"].is_object();
        if reaches_host && !allow.iter().any(|word| word == "HostPath") {
            return Err(Status::bad_request(format!(
                "{} is a path of the node, which its owner does not allow (HostPath)",
                thing.title()
            )));
        }
        self.check_secrets(&thing, &volume, binding)?;
        for secret in volume_secrets(&volume) {
            self.users.add(pod, &secret);
            let missing = || Status::bad_request(format!("{} does not exist", secret.title()));
            let mut original = self.original(&secret).await?.ok_or_else(missing)?;
            if tree::label(&original, label::USED_BY_PV) != "true" {
                let patch = json!({"metadata": {"labels": {label::USED_BY_PV: "true"}}});
                original = self
                    .above()
                    .patch(&secret.kind.gvr(), secret.above(), &secret.name, "", Patch::Merge, &patch)
                    .await?;
            }
            self.bring(&secret, original, binding).await?;
        }
        self.bring(&thing, volume, binding).await
    }

    /// Whether the copy of a volume names Secrets that are copies. Those of earlier versions may name Secrets of the
    /// worker cluster, and what a volume names cannot be changed.
    fn check_secrets(&self, thing: &Thing, volume: &Value, binding: &Binding) -> Result<(), Status> {
        let Some(there) = self.copies.copy(thing) else { return Ok(()) };
        let wanted = copy(thing, volume, &[], &binding.mount_namespace).map_err(Status::bad_request)?;
        if volume_secrets(&there) == volume_secrets(&wanted) {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "the worker cluster's PersistentVolume {} names other Secrets than those copied for {}; it is made again once it is deleted",
            tree::name(&there),
            thing.title()
        )))
    }

    /// The original: as followed, if it has copies already, else as the computing cluster has it.
    async fn original(&self, thing: &Thing) -> Result<Option<Value>, Status> {
        match self.copies.original(thing) {
            Some(original) => Ok(Some(original)),
            None => self.above().get_opt(&thing.kind.gvr(), thing.above(), &thing.name).await,
        }
    }

    /// Has a copy that says what the original says.
    async fn bring(&self, thing: &Thing, original: Value, binding: &Binding) -> Result<(), Status> {
        let there = self.copies.copy(thing);
        if let Some(there) = &there {
            self.check_copy(thing, there)?;
        }
        self.copies.keep(thing);
        // Who made it must not delete it while we use it.
        let theirs = there.as_ref().filter(|there| tree::label(there, label::CLUSTER_BINDING) != binding.name);
        let original = self.mark(thing, original, binding, theirs.map(tree::uid)).await?;
        let marks = marks(binding, &self.computing.owner);
        let wanted = copy(thing, &original, &marks, &binding.mount_namespace).map_err(Status::bad_request)?;
        self.write_copy(thing, &wanted, there, &binding.mount_namespace).await
    }

    /// Has our marks on an original. Several pods, and several workers, may want the same one at once.
    async fn mark(
        &self,
        thing: &Thing,
        mut original: Value,
        binding: &Binding,
        shared: Option<&str>,
    ) -> Result<Value, Status> {
        let gvr = thing.kind.gvr();
        for _ in 0..MARK_TRIES {
            let stamp = stamp::stamp(thing, &original, &binding.cluster_id, &binding.mount_namespace, shared);
            let Some(patch) = stamp.map_err(Status::bad_request)? else { return Ok(original) };
            match self.above().patch(&gvr, thing.above(), &thing.name, "", Patch::Merge, &patch).await {
                Err(status) if status.code == 409 => {
                    original = self.above().get(&gvr, thing.above(), &thing.name).await?;
                }
                result => return result,
            }
        }
        Err(Status::unavailable(format!("{} changes too often to be marked", thing.title())))
    }

    fn check_copy(&self, thing: &Thing, there: &Value) -> Result<(), Status> {
        if is_ours(there, &self.computing.owner) && Thing::of_copy(thing.kind, there).as_ref() == Some(thing) {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "the worker cluster has a {} {} that is not ours",
            thing.kind.name(),
            tree::name(there)
        )))
    }

    async fn write_copy(&self, thing: &Thing, wanted: &Value, there: Option<Value>, mount: &str) -> Result<(), Status> {
        let (gvr, namespace, name) = (thing.kind.gvr(), thing.kind.below(mount), thing.physical());
        let there = match there {
            Some(there) => there,
            None => match self.below().create(&gvr, namespace, wanted).await {
                Ok(_) => return Ok(()),
                Err(status) if status.code == 409 => {
                    let there = self.below().get(&gvr, namespace, &name).await?;
                    self.check_copy(thing, &there)?;
                    there
                }
                Err(status) if status.code == 404 => {
                    self.make_namespace(mount).await?;
                    return self.below().create(&gvr, namespace, wanted).await.map(drop);
                }
                Err(status) => return Err(status),
            },
        };
        let mut wanted = wanted.clone();
        // Another binding to the same namespace needs the same copy: it stays the one's who made it.
        wanted["metadata"]["labels"][label::CLUSTER_BINDING] =
            there["metadata"]["labels"][label::CLUSTER_BINDING].clone();
        if is_same(&wanted, &there, thing.kind) {
            return Ok(());
        }
        wanted["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
        if thing.kind == Kind::Secret {
            wanted["type"] = there["type"].clone();
        }
        self.below().update(&gvr, namespace, &name, &wanted).await.map(drop)
    }

    /// Brings one original and its copy in line.
    pub(crate) async fn object(self: Arc<Self>, thing: Thing) -> Result<Option<Duration>, Status> {
        let binding = self.binding();
        let original = self.original(&thing).await?;
        let Some(original) = original else {
            return self.remove_copy(&thing, None, &binding).await.map(|()| None);
        };
        let needed = self.users.need(&thing) && !binding.deleting;
        if !needed || stamp::is_leaving(&original, &binding.cluster_id) {
            self.remove_copy(&thing, Some(&original), &binding).await?;
            if let Some(patch) = unstamp(&original, &binding.cluster_id) {
                let gvr = thing.kind.gvr();
                match self.above().patch(&gvr, thing.above(), &thing.name, "", Patch::Merge, &patch).await {
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
            return Ok(None);
        }
        self.bring(&thing, original, &binding).await.map(|()| None)
    }

    /// Removes a copy, unless another binding has it or uses it too. What it is marked with cannot be changed, for we may
    /// not write claims and volumes: whoever uses it last removes it, whosever it was.
    async fn remove_copy(&self, thing: &Thing, original: Option<&Value>, binding: &Binding) -> Result<(), Status> {
        let (gvr, namespace, name) = (thing.kind.gvr(), thing.kind.below(&binding.mount_namespace), thing.physical());
        let there = match self.copies.copy(thing) {
            Some(there) => Some(there),
            None => self.below().get_opt(&gvr, namespace, &name).await?,
        };
        let Some(there) = there.filter(|there| !tree::is_deleting(there)) else { return Ok(()) };
        if tree::label(&there, crate::binding::OWNER) != self.computing.owner || self.check_copy(thing, &there).is_err()
        {
            return Ok(());
        }
        let elsewhere = original.is_some_and(|original| stamp::is_copied_by_others(original, &binding.cluster_id));
        if elsewhere && tree::label(&there, label::CLUSTER_BINDING) != binding.name {
            return Ok(());
        }
        let used = |own: &Value| !tree::is_deleting(own) && stamp::is_shared(own, &there, &binding.cluster_id);
        if original.is_some_and(used) {
            self.copies.cede(thing);
            return Ok(());
        }
        self.below().delete(&gvr, namespace, &name, &tree::only(tree::uid(&there))).await
    }
}
