//! The parts of a running hub, and how they are started.

use std::sync::Arc;

use atoll_api::cluster::Cluster;
use atoll_apiserver::{ApiService, Hub, Identity};
use atoll_background::Background;
use atoll_fleet::RemoteMembers;
use atoll_index::Index;
use atoll_manage::Manage;
use atoll_runtime::{Denied, Endpoint};
use atoll_sim::Gate;
use tokio_util::sync::CancellationToken;

use super::instances::Instances;

/// What runs in the process. Cheap to clone.
#[derive(Clone)]
pub struct Parts {
    /// The hub.
    pub hub: Arc<Hub>,
    /// Its API.
    pub service: ApiService,
    /// Ends everything.
    pub stop: CancellationToken,
    /// The instances and what runs in them.
    pub instances: Arc<Instances>,
    /// The management plane over the index.
    pub manage: Manage,
    /// Where no way to a member leads.
    pub denied: Denied,
}

impl Parts {
    /// Parts around a hub; nothing runs yet. A store that is `shared` may have other hubs.
    pub fn new(hub: Arc<Hub>, index: Index, denied: Denied, shared: bool, stop: CancellationToken) -> Self {
        let service = ApiService::new(hub.clone());
        let remote = RemoteMembers { denied: denied.clone() };
        let instances = Arc::new(Instances::new(hub.clone(), service.clone(), remote, shared, stop.clone()));
        let manage = Manage::new(hub.clone(), index, service.clone(), denied.clone());
        Self { hub, service, stop, instances, manage, denied }
    }

    /// Starts what every hub has.
    pub async fn start(&self) -> anyhow::Result<()> {
        self.hub.add_native(|instance| &*instance.name == "root", atoll_api::crds(atoll_api::CrdSet::Atoll)).await?;
        self.hub.add_conversions(&atoll_api::work::conversions());
        self.hub.add_native(|instance| &*instance.name != "root", atoll_api::crds(atoll_api::CrdSet::Karmada)).await?;
        self.hub
            .add_native(|instance| &*instance.name != "root", atoll_api::crds(atoll_api::CrdSet::Kubeocean))
            .await?;
        self.hub.add_admission(Arc::new(atoll_sim::ServiceAddresses::new(|_| true)));
        atoll_sim::install(&self.hub);
        self.hub.add_admission(atoll_fleet::admission());
        self.hub.add_admission(atoll_vnode::admission());
        atoll_sim::install(&self.hub);
        let (hub, members) = (self.hub.clone(), members(&self.hub));
        let own = self.hub.clone();
        // A simulated member that is broken is asked over the network, where its faults are felt.
        let neighbour = move |url: &str| members(url).filter(|name| Gate::is_open(&own, name));
        let neighbours = Arc::new(move |cluster: &Cluster| neighbour(cluster.spec.api_endpoint.as_str()));
        let proxy = atoll_fleet::cluster_proxy(neighbours, self.denied.clone());
        hub.add_connector("cluster.karmada.io", "clusters", "proxy", proxy);
        Background::start(self.hub.clone(), &self.hub.keys().own().serving.cert_pem(), self.stop.clone());
        atoll_manage::controllers::start(&self.manage, Arc::new(self.instances.members()), self.stop.clone()).await?;
        let core = self.manage.core().clone();
        let rights = move |identity: &Identity| -> Arc<dyn atoll_index::Rights> {
            Arc::new(atoll_manage::access::rights::CallerRights::new(core.clone(), identity.clone()))
        };
        self.hub.add_mount(Arc::new(atoll_index::Pedia::new(self.manage.core().index.clone(), Arc::new(rights))));
        self.instances.clone().start().await
    }

    /// A way to an instance with all rights, for parts of the hub itself.
    pub fn endpoint(&self, instance: &str, agent: &str) -> Endpoint {
        endpoint(&self.service, instance, agent)
    }
}

/// Tells which instance of this hub a URL leads to.
pub fn members(hub: &Arc<Hub>) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    let hub = hub.clone();
    move |url| {
        let root = hub.url(&hub.root());
        let name = url.strip_prefix(&root)?.strip_prefix("/instances/")?.trim_end_matches('/');
        hub.instance(name).map(|instance| instance.name.to_string())
    }
}

/// A way to an instance with all rights, for parts of the hub itself.
pub fn endpoint(service: &ApiService, instance: &str, agent: &str) -> Endpoint {
    let identity = Identity::master(&format!("system:atoll:{agent}"));
    Endpoint::in_process(service.clone(), instance, agent, move |extensions| {
        extensions.insert(identity.clone());
    })
}
