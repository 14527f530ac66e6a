//! Events of a simulated cluster, as the programs of a real one tell them.

use atoll_meta::time;
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

use crate::correlator::{Facts, Telling};
use crate::recorder::Note;
use crate::world::World;

/// Who tells an event.
#[derive(Copy, Clone, Debug)]
pub enum Teller<'a> {
    /// The controller of the object's kind.
    Controller,
    /// The one that throws pods out of tainted nodes.
    TaintEviction,
    /// The scheduler.
    Scheduler,
    /// The kubelet of this node.
    Kubelet(&'a str),
}

impl Teller<'_> {
    fn component(self, kind: &str) -> &'static str {
        match self {
            Self::TaintEviction => "taint-eviction-controller",
            Self::Scheduler => "default-scheduler",
            Self::Kubelet(_) => "kubelet",
            Self::Controller => match kind {
                "Deployment" => "deployment-controller",
                "ReplicaSet" => "replicaset-controller",
                "ReplicationController" => "replication-controller",
                "StatefulSet" => "statefulset-controller",
                "DaemonSet" => "daemonset-controller",
                "Job" => "job-controller",
                "CronJob" => "cronjob-controller",
                "Node" => "node-controller",
                "PersistentVolumeClaim" | "PersistentVolume" => "persistentvolume-controller",
                "PodDisruptionBudget" => "controllermanager",
                "Service" => "service-controller",
                _ => "kube-controller-manager",
            },
        }
    }

    fn endpoint(self, world: &World) -> &Endpoint {
        match self {
            Self::Controller | Self::TaintEviction => &world.manager,
            Self::Scheduler => &world.scheduler,
            Self::Kubelet(_) => &world.kubelet,
        }
    }
}

/// Tells an event about an object; it is written soon. One that cannot be recorded is only logged.
pub async fn tell(world: &World, teller: Teller<'_>, about: &Value, kind: &str, reason: &str, message: &str) {
    let text = |field: &str| about["metadata"][field].as_str().unwrap_or_default();
    let object = about["kind"].as_str().unwrap_or_default();
    let host = if let Teller::Kubelet(node) = teller { node } else { "" };
    let facts = Facts {
        component: teller.component(object),
        host,
        about: [object, text("namespace"), text("name"), text("uid")],
        kind,
        reason,
        message,
    };
    let telling = world.correlator.lock().judge(&facts, world.now());
    let (name, count, message) = match telling {
        Telling::Drop => return,
        Telling::New(name, message) => (name, 1, message),
        Telling::Again(name, count, message) => (name, count, message),
    };
    let namespace = Some(text("namespace")).filter(|name| !name.is_empty()).unwrap_or("default").to_owned();
    let event = object_of(&facts, about, &name, count, &message, world);
    let endpoint = teller.endpoint(world).clone();
    world.recorder.take(Note { endpoint, namespace, event, again: count > 1 }).await;
}

fn object_of(facts: &Facts<'_>, about: &Value, name: &str, count: u32, message: &str, world: &World) -> Value {
    let stamp = time::format(world.now());
    let meta = &about["metadata"];
    let mut source = json!({"component": facts.component});
    if !facts.host.is_empty() {
        source["host"] = facts.host.into();
    }
    json!({
        "kind": "Event", "apiVersion": "v1", "metadata": {"name": name},
        "involvedObject": {
            "kind": about["kind"], "apiVersion": about["apiVersion"], "name": meta["name"],
            "namespace": meta.get("namespace"), "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
        },
        "type": facts.kind, "reason": facts.reason, "message": message, "count": count,
        "firstTimestamp": stamp, "lastTimestamp": stamp, "source": source,
        "reportingComponent": facts.component, "reportingInstance": facts.host,
    })
}
