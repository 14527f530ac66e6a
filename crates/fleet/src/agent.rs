//! The agent of a member that pulls: it carries out works and tells how the member is.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use atoll_api::names;
use atoll_interpreter::Interpreter;
use atoll_meta::Status;
use atoll_runtime::{Change, Endpoint, Informer, Item, Patch, Selection, work};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::execute::Executor;
use crate::gvr;
use crate::index::Index;
use crate::member::{self, Member};
use crate::options::Clock;
use crate::probe::Prober;

/// How long a lease lasts, and the part of that after which it is renewed.
const LEASE: Duration = Duration::from_secs(40);

/// What an agent needs to know.
#[derive(Clone)]
pub struct AgentOptions {
    /// The instance, as this agent.
    pub instance: Endpoint,
    /// The member it is for.
    pub member: Endpoint,
    /// The name of the member in the instance.
    pub name: String,
    /// What the Cluster says of the member: provider, region, zones and the like.
    pub spec: Value,
    /// What tells the time.
    pub clock: Clock,
    /// How many works are carried out at once.
    pub workers: usize,
    /// How often the member is asked how it is.
    pub probe_interval: Duration,
    /// How long a new state must last.
    pub probe_threshold: Duration,
}

/// A running agent. It ends with its stop token.
pub struct Agent {
    member: Arc<Member>,
    _works: Informer,
    _customizations: Informer,
}

impl Agent {
    /// Registers the member, if it is not, and starts.
    pub async fn start(options: AgentOptions, stop: CancellationToken) -> Result<Self, Status> {
        register(&options).await?;
        let index = Arc::new(Index::default());
        let by_id = index.clone();
        let find = Arc::new(move |id: &str| by_id.work(id).map(|(_, name)| name));
        let member = Member::new(&options.name, options.member.clone(), String::new(), find, stop.child_token());
        let interpreter = Arc::new(ArcSwap::from_pointee(Interpreter::default()));
        let customizations = customizations(&options.instance, &interpreter, &member);
        let works = works(&options, &index, &member);
        let executor = Arc::new(Executor {
            instance: options.instance.clone(),
            works: works.cache.clone(),
            interpreter,
            clock: options.clock.clone(),
        });
        run(&options, &member, executor, &works);
        tokio::spawn(renew(options, member.stopped()));
        Ok(Self { member, _works: works, _customizations: customizations })
    }

    /// The member it serves.
    pub fn member(&self) -> &Arc<Member> {
        &self.member
    }
}

async fn register(options: &AgentOptions) -> Result<(), Status> {
    if options.instance.get_opt(&gvr::clusters(), None, &options.name).await?.is_some() {
        return Ok(());
    }
    let id = options.member.get(&gvr::core("namespaces"), None, "kube-system").await?["metadata"]["uid"].clone();
    let mut cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": options.name},
                             "spec": {"syncMode": "Pull", "id": id}});
    atoll_patch::merge_patch(&mut cluster["spec"], &options.spec);
    options.instance.ensure(&gvr::clusters(), None, &cluster).await?;
    Ok(())
}

fn works(options: &AgentOptions, index: &Arc<Index>, member: &Arc<Member>) -> Informer {
    let selection = Selection { namespace: Some(names::execution_namespace(&options.name)), query: String::new() };
    let (index, member) = (index.clone(), Arc::downgrade(member));
    Informer::start_light(options.instance.clone(), gvr::works(), selection, move |change| {
        let concerns = index.take_work(&change);
        let Some(member) = member.upgrade() else { return };
        member.heard(&change.item().object.head.name, &change.item().revision);
        if concerns {
            member.order(change.item());
        }
    })
}

fn customizations(instance: &Endpoint, interpreter: &Arc<ArcSwap<Interpreter>>, member: &Arc<Member>) -> Informer {
    let (interpreter, member) = (interpreter.clone(), Arc::downgrade(member));
    let known = parking_lot::Mutex::new(std::collections::BTreeMap::<String, Value>::new());
    Informer::start_light(instance.clone(), gvr::customizations(), Selection::default(), move |change| {
        let mut known = known.lock();
        let item: &Item = change.item();
        match &change {
            Change::Deleted(_) => known.remove(&item.key()),
            _ => known.insert(item.key(), item.tree()),
        };
        let list: Vec<Value> = known.values().cloned().collect();
        let (new, _) = interpreter.load().with_customizations(&list);
        interpreter.store(Arc::new(new));
        if let Some(member) = member.upgrade() {
            member.forget_all();
        }
    })
}

fn run(options: &AgentOptions, member: &Arc<Member>, executor: Arc<Executor>, works: &Informer) {
    let weak = Arc::downgrade(member);
    let carry_out = move |name: Arc<str>| {
        let (executor, member) = (executor.clone(), weak.upgrade());
        async move {
            match member {
                Some(member) => executor.execute(member, name).await,
                None => Ok(None),
            }
        }
    };
    tokio::spawn(work(member.queue.clone(), options.workers, member.stopped(), carry_out));
    let (queue, cache) = (member.queue.clone(), works.cache.clone());
    let back = move || {
        for item in cache.list() {
            queue.add_ranked((*item.object.head.name).into(), member::rank(&item) - 1);
        }
    };
    let prober = Prober {
        instance: options.instance.clone(),
        member: member.clone(),
        clock: options.clock.clone(),
        interval: options.probe_interval,
        threshold: options.probe_threshold,
        back: Arc::new(back),
    };
    tokio::spawn(prober.run());
}

/// Renews the lease that tells the instance the agent lives.
async fn renew(options: AgentOptions, stop: CancellationToken) {
    loop {
        if let Err(status) = renew_once(&options).await {
            tracing::debug!(member = options.name, %status, "lease not renewed");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LEASE.min(options.probe_interval * 4) / 4) => {}
        }
    }
}

async fn renew_once(options: &AgentOptions) -> Result<(), Status> {
    let namespace = Some(names::CLUSTER_NAMESPACE);
    let spec = json!({"holderIdentity": options.name, "leaseDurationSeconds": LEASE.as_secs(),
                      "renewTime": atoll_meta::time::format_micro((options.clock)())});
    let patch = json!({"spec": spec});
    match options.instance.patch(&gvr::leases(), namespace, &options.name, "", Patch::Merge, &patch).await {
        Err(status) if status.code == 404 => {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": options.name, "namespace": names::CLUSTER_NAMESPACE}, "spec": spec});
            options.instance.create(&gvr::leases(), namespace, &lease).await.map(|_| ())
        }
        other => other.map(|_| ()),
    }
}
