//! A hub with an instance, a member and the management plane, all in one process.
#![allow(clippy::unwrap_used, dead_code)]

pub mod issuer;

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Body, Connect, Hub, Identity, Instance, Options, Visit};
use atoll_fleet::MemberResolver;
use atoll_index::{Choice, Index};
use atoll_manage::{Manage, controllers};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Change, Endpoint, Informer, Selection};
use atoll_store::MemoryEngine;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until an object is as wanted: every change of it is looked at. It is `Null` while it is not there.
pub async fn becomes(endpoint: &Endpoint, gvr: &Gvr, name: &str, so: impl Fn(&Value) -> bool) -> Value {
    let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let selection = Selection { namespace: None, query: format!("fieldSelector=metadata.name%3D{name}") };
    let _informer = Informer::start(endpoint.clone(), gvr.clone(), selection, move |change: Change| {
        let gone = matches!(change, Change::Deleted(_));
        let _ = sender.send(if gone { Value::Null } else { change.item().tree() });
    });
    let mut last = Value::Null;
    let waiting = async {
        while let Some(tree) = changes.recv().await {
            last = tree;
            if so(&last) {
                return true;
            }
        }
        false
    };
    let so = tokio::time::timeout(PATIENCE, waiting).await.unwrap_or(false);
    assert!(so, "{gvr:?} {name} did not become so: {last}");
    last
}

/// Members are instances of the same hub.
struct Inside(ApiService);

#[async_trait::async_trait]
impl MemberResolver for Inside {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        // Members of instances elsewhere have an address.
        if cluster["spec"]["apiEndpoint"].is_string() {
            return atoll_fleet::RemoteMembers::default().resolve(cluster, secret).await;
        }
        Ok(endpoint(&self.0, cluster["metadata"]["name"].as_str().unwrap_or_default(), Identity::master("member")))
    }
}

/// The way through an instance to its members.
#[async_trait::async_trait]
impl Connect for Inside {
    async fn connect(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let member = endpoint(&self.0, &visit.target.name, Identity::master("proxy"));
        let bytes =
            member.send(visit.request.method().clone(), &visit.target.rest, "application/json", Bytes::new()).await?;
        Ok(atoll_apiserver::response(200, "application/json", bytes))
    }

    fn serves(&self, instance: &Instance) -> bool {
        instance.kind("cluster.karmada.io", "v1alpha1", "clusters").is_some()
    }
}

fn endpoint(service: &ApiService, instance: &str, identity: Identity) -> Endpoint {
    Endpoint::in_process(service.clone(), instance, "test", move |extensions| {
        extensions.insert(identity.clone());
    })
}

pub struct World {
    pub hub: Arc<Hub>,
    pub manage: Manage,
    pub index: Index,
    pub stop: CancellationToken,
    service: ApiService,
}

pub fn user(name: &str) -> Identity {
    Identity { user: name.into(), groups: vec!["system:authenticated".into()], ..Identity::default() }
}

pub fn master() -> Identity {
    Identity::master("admin")
}

impl World {
    /// Instance `fleet` with member `m1`, followed and known.
    pub async fn new() -> Self {
        Self::with(&[("fleet", &["m1"])]).await
    }

    /// Instances with their members, followed and known.
    pub async fn with(plan: &[(&str, &[&str])]) -> Self {
        let hub = Hub::open(
            Arc::new(MemoryEngine::new()),
            Keys::default(),
            Arc::new(jiff::Timestamp::now),
            Options::default(),
        )
        .await
        .unwrap();
        hub.add_native(|instance| &*instance.name == "root", atoll_api::crds(atoll_api::CrdSet::Atoll)).await.unwrap();
        let members: Vec<String> = plan.iter().flat_map(|(_, names)| names.iter().map(ToString::to_string)).collect();
        hub.add_native(
            move |instance| &*instance.name != "root" && !members.iter().any(|name| **name == *instance.name),
            atoll_api::crds(atoll_api::CrdSet::Karmada),
        )
        .await
        .unwrap();
        let service = ApiService::new(hub.clone());
        hub.add_connector("cluster.karmada.io", "clusters", "proxy", Arc::new(Inside(service.clone())));
        let index = Index::open(&Choice::Memory).await.unwrap();
        let manage = Manage::new(hub.clone(), index.clone(), service.clone(), atoll_runtime::Denied::default());
        let world = Self { hub, manage, index, stop: CancellationToken::new(), service };
        for (instance, members) in plan {
            world.add(instance, members).await;
        }
        controllers::start(&world.manage, Arc::new(Inside(world.service.clone())), world.stop.clone()).await.unwrap();
        for (instance, members) in plan {
            world.index.synced(instance, PATIENCE).await.unwrap();
            for member in *members {
                world.index.synced(&format!("{instance}/{member}"), PATIENCE).await.unwrap();
            }
        }
        world
    }

    /// Makes an instance whose members are other instances of the hub.
    async fn add(&self, instance: &str, members: &[&str]) {
        let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
        let root = self.endpoint("root");
        self.hub.create_instance(instance).await.unwrap();
        let hosted = hub_object("Instance", json!({"metadata": {"name": instance}, "spec": {"type": "Hosted"}}));
        root.create(&instances, None, &hosted).await.unwrap();
        for (at, name) in members.iter().enumerate() {
            self.hub.create_instance(name).await.unwrap();
            let meta = json!({"name": name, "annotations": {"sim.atoll.io/nodes": "3"}});
            let marked = hub_object("Instance", json!({"metadata": meta, "spec": {"type": "Hosted"}}));
            root.create(&instances, None, &marked).await.unwrap();
            let region = if at % 2 == 0 { "north" } else { "south" };
            let cluster = json!({"kind": "Cluster", "apiVersion": "cluster.karmada.io/v1alpha1", "metadata": {"name": name, "labels": {"env": "test"}},
                                 "spec": {"syncMode": "Push", "region": region}});
            let clusters = Gvr::new("cluster.karmada.io", "v1alpha1", "clusters");
            self.endpoint(instance).create(&clusters, None, &cluster).await.unwrap();
        }
    }

    /// A way into an instance with all rights.
    pub fn endpoint(&self, instance: &str) -> Endpoint {
        endpoint(&self.service, instance, master())
    }

    /// Waits until something is so; it is looked at whenever an object or the index changes.
    pub async fn until(&self, what: &str, done: impl AsyncFn() -> bool) {
        let (mut objects, mut index) = (self.hub.engine().feed(), self.index.changes());
        let end = tokio::time::Instant::now() + PATIENCE;
        while !done().await {
            assert!(tokio::time::Instant::now() < end, "it did not become so: {what}");
            let change = async {
                tokio::select! {
                    _ = objects.recv() => {}
                    _ = index.recv() => {}
                }
            };
            // What others remember of a change may come a little later than the change.
            let _ = tokio::time::timeout(Duration::from_secs(1), change).await;
        }
    }

    /// Waits until the index has a write.
    pub async fn settled(&self, source: &str, gvr: &Gvr, written: &Value) {
        let revision = written["metadata"]["resourceVersion"].as_str().unwrap();
        self.index.wait_for(source, &gvr.group, &gvr.resource, revision, PATIENCE).await.unwrap();
    }

    pub async fn raw(&self, who: &Identity, request: Request<Full<Bytes>>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        assert!(self.manage.handles(&parts), "{} is for the management plane", parts.uri);
        let body = body.map_err(|never| match never {}).boxed_unsync();
        self.manage.call(Request::from_parts(parts, body), who.clone()).await
    }

    /// A REST call; `path` behind the prefix of the contract.
    pub async fn rest(&self, who: &Identity, verb: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let path =
            if path.starts_with("/manage/") { path.to_owned() } else { format!("/apis/kairship.io/v1alpha1{path}") };
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let answer =
            self.raw(who, Request::builder().method(verb).uri(path).body(Full::new(bytes.into())).unwrap()).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// A gRPC call: the number of its status, and its message as REST would show it.
    pub async fn grpc(&self, who: &Identity, path: &str, input: Value) -> (i32, Value) {
        let pool =
            DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin")).as_slice()).unwrap();
        let (service, method) = path.split_once('/').unwrap();
        let service = pool.get_service_by_name(&format!("atoll.v1alpha1.{service}")).unwrap();
        let method = service.methods().find(|own| own.name() == method).unwrap();
        let message = DynamicMessage::deserialize(method.input(), input).unwrap();
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(message.encoded_len() as u32);
        message.encode(&mut body).unwrap();
        let request = Request::builder()
            .method("POST")
            .uri(format!("/atoll.v1alpha1.{path}"))
            .header("content-type", "application/grpc");
        let answer = self.raw(who, request.body(Full::new(body.freeze())).unwrap()).await;
        let headers = answer.headers().clone();
        let collected = answer.into_body().collect().await.unwrap();
        let status = collected.trailers().unwrap_or(&headers)["grpc-status"].to_str().unwrap().parse().unwrap();
        let mut bytes = collected.to_bytes();
        if bytes.len() < 5 {
            return (status, Value::Null);
        }
        bytes.advance(5);
        let options = prost_reflect::SerializeOptions::new().skip_default_fields(false);
        let answer = DynamicMessage::decode(method.output(), bytes).unwrap();
        (status, answer.serialize_with_options(serde_json::value::Serializer, &options).unwrap())
    }

    /// A request to the port of the hub, as somebody: for the management plane or for an instance.
    pub async fn open(&self, who: &Identity, verb: &str, path: &str, body: Option<Value>) -> Response<Body> {
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder().method(verb).uri(path).header("content-type", "application/json");
        let mut request = request.body(Full::<Bytes>::new(bytes.into())).unwrap();
        request.extensions_mut().insert(who.clone());
        let (parts, body) = request.into_parts();
        if self.manage.handles(&parts) {
            let body = body.map_err(|never| match never {}).boxed_unsync();
            return self.manage.answer(Request::from_parts(parts, body)).await;
        }
        self.manage.native(self.service.clone(), Request::from_parts(parts, body)).await
    }

    /// The same, read to its end.
    pub async fn native(&self, who: &Identity, verb: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.open(who, verb, path, body).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// A REST call that must succeed.
    pub async fn ok(&self, who: &Identity, verb: &str, path: &str, body: Option<Value>) -> Value {
        let (code, tree) = self.rest(who, verb, path, body).await;
        assert_eq!(code, 200, "{verb} {path}: {tree}");
        tree
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// An object of the hub's own kinds.
pub fn hub_object(kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = "atoll.io/v1alpha1".into();
    object["kind"] = kind.into();
    object
}

pub fn deployment(name: &str) -> Value {
    json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name, "labels": {"app": name}},
           "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
                    "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}}}})
}
