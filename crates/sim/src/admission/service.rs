//! Services get their addresses and ports when they are made.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use atoll_apiserver::{Admission, Instance, Operation, Review};
use atoll_meta::{FieldError, FieldPath, InstanceId, Key, Status};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

/// The network of services: 10.96.0.0/16.
const BASE: u32 = 0x0a60_0000;
const SIZE: u32 = 1 << 16;
/// Addresses below are for those who ask for one.
const STATIC: u32 = 256;
const PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;
/// How long an address given out counts as taken before its service is stored.
const RESERVED: Duration = Duration::from_secs(60);

/// Gives services cluster addresses and node ports, in the instances it is asked to.
pub struct ServiceAddresses {
    serves: Box<dyn Fn(&Instance) -> bool + Send + Sync>,
    reserved: Mutex<HashMap<(InstanceId, Place), Instant>>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
enum Place {
    Address(u32),
    Port(u16),
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    ports: Vec<Port>,
    health_check_node_port: u16,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    node_port: u16,
}

impl ServiceAddresses {
    /// For the instances that `serves` accepts.
    pub fn new(serves: impl Fn(&Instance) -> bool + Send + Sync + 'static) -> Self {
        Self { serves: Box::new(serves), reserved: Mutex::default() }
    }

    /// Everything in use, by stored services or by ones about to be stored.
    async fn taken(&self, review: &Review<'_>) -> Result<HashSet<Place>, Status> {
        let instance = &review.call.instance;
        let own = Key::new("", "services", &review.call.target.namespace, &review.name);
        let snapshot = review.call.hub.snapshot(instance).await?;
        let mut taken = HashSet::new();
        for (key, entry) in snapshot.range(&Key::prefix("", "services", ""), None) {
            if key.as_str() == own.as_str() {
                continue;
            }
            let body: Body = serde_json::from_slice(&entry.object.body).unwrap_or_default();
            taken.extend(
                body.spec
                    .cluster_ips
                    .iter()
                    .filter_map(|ip| ip.parse::<Ipv4Addr>().ok())
                    .map(|ip| Place::Address(ip.into())),
            );
            let ports = body.spec.ports.iter().map(|port| port.node_port).chain([body.spec.health_check_node_port]);
            taken.extend(ports.filter(|port| *port > 0).map(Place::Port));
        }
        let mut reserved = self.reserved.lock();
        reserved.retain(|_, since| since.elapsed() < RESERVED);
        taken.extend(reserved.keys().filter(|(id, _)| *id == instance.id).map(|(_, place)| *place));
        Ok(taken)
    }

    /// Takes a place unless somebody was faster.
    fn reserve(&self, review: &Review<'_>, place: Place) -> bool {
        let key = (review.call.instance.id, place);
        review.dry_run || self.reserved.lock().insert(key, Instant::now()).is_none()
    }

    fn free(&self, review: &Review<'_>, taken: &HashSet<Place>, all: impl Iterator<Item = Place>) -> Option<Place> {
        let mut open = all.filter(|place| !taken.contains(place));
        open.find(|place| self.reserve(review, *place))
    }

    fn address(&self, review: &Review<'_>, taken: &HashSet<Place>) -> Option<Ipv4Addr> {
        let room = SIZE - STATIC - 1;
        let start = rand::random::<u32>() % room;
        let all = (0..room).map(|step| Place::Address(BASE + STATIC + (start + step) % room));
        match self.free(review, taken, all) {
            Some(Place::Address(address)) => Some(address.into()),
            _ => None,
        }
    }

    fn port(&self, review: &Review<'_>, taken: &HashSet<Place>) -> Option<u16> {
        let count = u32::from(PORTS.end() - PORTS.start()) + 1;
        let start = rand::random::<u32>() % count;
        let number = |step: u32| PORTS.start() + u16::try_from((start + step) % count).unwrap_or(0);
        match self.free(review, taken, (0..count).map(|step| Place::Port(number(step)))) {
            Some(Place::Port(port)) => Some(port),
            _ => None,
        }
    }

    fn give_address(&self, review: &Review<'_>, object: &mut Value, taken: &HashSet<Place>) -> Result<(), Status> {
        let spec = &mut object["spec"];
        if spec["type"] == "ExternalName" {
            return Ok(());
        }
        let given = spec["clusterIP"].as_str().or(spec["clusterIPs"][0].as_str()).unwrap_or_default().to_owned();
        if given == "None" {
            return Ok(());
        }
        if given.is_empty() {
            let address = self
                .address(review, taken)
                .ok_or_else(|| Status::internal("failed to allocate a serviceIP: range is full"))?;
            spec["clusterIP"] = address.to_string().into();
            spec["clusterIPs"] = json!([address.to_string()]);
        } else if let Ok(address) = given.parse::<Ipv4Addr>() {
            let place = Place::Address(address.into());
            if !(BASE..BASE + SIZE).contains(&u32::from(address)) {
                let why =
                    format!("failed to allocate IP {given}: the provided network does not match the current range");
                return Err(invalid(review, "spec.clusterIPs", json!([given]), &why));
            }
            if taken.contains(&place) {
                let why = format!("failed to allocate IP {given}: provided IP is already allocated");
                return Err(invalid(review, "spec.clusterIPs", json!([given]), &why));
            }
            self.reserve(review, place);
        }
        Ok(())
    }

    fn give_ports(&self, review: &Review<'_>, object: &mut Value, taken: &HashSet<Place>) -> Result<(), Status> {
        let spec = &mut object["spec"];
        let balanced = spec["type"] == "LoadBalancer";
        let wanted = spec["type"] == "NodePort" || balanced && spec["allocateLoadBalancerNodePorts"] != false;
        let local = balanced && spec["externalTrafficPolicy"] == "Local";
        // One number may serve two protocols.
        let mut own: HashMap<(u64, String), u16> = HashMap::new();
        for (at, port) in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            let given = port["nodePort"].as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or(0);
            if given > 0 {
                let twin = own.values().any(|number| *number == given);
                if taken.contains(&Place::Port(given)) && !twin {
                    let path = format!("spec.ports[{at}].nodePort");
                    return Err(invalid(review, &path, given.into(), "provided port is already allocated"));
                }
                if !PORTS.contains(&given) {
                    let path = format!("spec.ports[{at}].nodePort");
                    let why = format!(
                        "provided port is not in the valid range. The range of valid ports is {}-{}",
                        PORTS.start(),
                        PORTS.end()
                    );
                    return Err(invalid(review, &path, given.into(), &why));
                }
                self.reserve(review, Place::Port(given));
                own.insert((at as u64, port["protocol"].to_string()), given);
            } else if wanted {
                let number = self
                    .port(review, taken)
                    .ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))?;
                port["nodePort"] = number.into();
                own.insert((at as u64, port["protocol"].to_string()), number);
            }
        }
        if local && spec["healthCheckNodePort"].as_u64().unwrap_or(0) == 0 {
            spec["healthCheckNodePort"] = self.port(review, taken).unwrap_or(0).into();
        }
        Ok(())
    }
}

fn invalid(review: &Review<'_>, path: &str, value: Value, why: &str) -> Status {
    Status::invalid("", "Service", &review.name, &[FieldError::invalid(FieldPath::new(path), value, why)])
}

#[async_trait::async_trait]
impl Admission for ServiceAddresses {
    async fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
        if !review.is("", "services") || !(self.serves)(&review.call.instance) {
            return Ok(());
        }
        if review.operation == Operation::Delete {
            // What goes may be taken again at once.
            let freed = places(review.old.unwrap_or(&Value::Null));
            let mut reserved = self.reserved.lock();
            for place in freed {
                reserved.remove(&(review.call.instance.id, place));
            }
            return Ok(());
        }
        if !matches!(review.operation, Operation::Create | Operation::Update) {
            return Ok(());
        }
        let before: HashSet<Place> = places(review.old.unwrap_or(&Value::Null)).collect();
        let mut taken = self.taken(review).await?;
        taken.retain(|place| !before.contains(place));
        self.give_address(review, object, &taken)?;
        self.give_ports(review, object, &taken)
    }
}

/// What a service holds.
fn places(service: &Value) -> impl Iterator<Item = Place> + use<> {
    let body: Body = Body::deserialize(service).unwrap_or_default();
    let addresses: Vec<Place> = body
        .spec
        .cluster_ips
        .iter()
        .filter_map(|ip| ip.parse::<Ipv4Addr>().ok())
        .map(|ip| Place::Address(ip.into()))
        .collect();
    let ports: Vec<Place> =
        body.spec.ports.iter().filter(|port| port.node_port > 0).map(|port| Place::Port(port.node_port)).collect();
    addresses.into_iter().chain(ports)
}
