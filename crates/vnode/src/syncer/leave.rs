//! Leaving a worker cluster: nothing of ours stays there, nothing of it here.

use std::sync::Arc;

use atoll_api::kubeocean_names::{finalizer, label};
use atoll_meta::Status;

use super::{Syncer, one_by_one};
use crate::binding::OWNER;
use crate::copy::{Kind, Thing};
use crate::tree;

impl Syncer {
    /// Goes on with leaving, once all virtual nodes are gone; says what is still there.
    pub(crate) async fn leave(self: &Arc<Self>) -> Result<Vec<String>, Status> {
        let mut left = Vec::new();
        self.leave_pods(&mut left);
        self.sweep_tokens().await?;
        for kind in Kind::ALL {
            self.leave_kind(kind, &mut left);
        }
        self.leave_services(&mut left);
        let binding = self.binding();
        for item in self.policies.list() {
            let policy = item.tree();
            if policy["spec"]["cluster"] == *binding.name && tree::has_finalizer(&policy, finalizer::POLICY) {
                self.queues.policies.add(tree::name(&policy).to_owned());
                left.push(format!("ResourceLeasingPolicy {}", tree::name(&policy)));
            }
        }
        Ok(left)
    }

    fn leave_pods(&self, left: &mut Vec<String>) {
        self.sweep();
        let binding = self.binding();
        for item in one_by_one(&self.pods) {
            let head = &item.object.head;
            if head.label(OWNER) == Some(&self.computing.owner)
                && head.label(label::CLUSTER_BINDING) == Some(&binding.name)
            {
                left.push(format!("Pod {}", item.key()));
            }
        }
    }

    fn leave_kind(&self, kind: Kind, left: &mut Vec<String>) {
        let binding = self.binding();
        for item in self.copies.above(kind).into_iter().flat_map(|cache| cache.list()) {
            let thing = Thing::new(kind, &item.object.head.namespace, &item.object.head.name);
            left.push(format!("marks on {}", thing.title()));
            self.queues.objects.add(thing);
        }
        for item in self.copies.below(kind).into_iter().flat_map(|cache| cache.list()) {
            let head = &item.object.head;
            // What goes already is up to the worker cluster.
            if head.label(label::CLUSTER_BINDING) != Some(&binding.name) || head.deleting {
                continue;
            }
            let thing = Thing::of_copy(kind, &item.tree());
            if thing.as_ref().is_some_and(|thing| self.copies.is_ceded(thing)) {
                continue;
            }
            left.push(format!("{} {} in the worker cluster", kind.name(), item.key()));
            thing.into_iter().for_each(|thing| self.queues.objects.add(thing));
        }
    }
}
