//! What the pods of a template need and refer to.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::Quantity;
use atoll_api::work::NodeClaim;
use atoll_meta::quantity::Quantity as Amount;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::field::{get, list, text};
use crate::{Error, ObjectRef, Requirements};

type Amounts = BTreeMap<String, Amount>;

/// What one pod of a template needs; nothing if that cannot be read.
pub fn requirements(template: &Value) -> Requirements {
    try_requirements(template).unwrap_or_default()
}

/// What one pod of a template needs.
pub fn try_requirements(template: &Value) -> Result<Requirements, Error> {
    let spec = &template["spec"];
    let requests = requests(spec)?.into_iter().filter(|(_, amount)| !amount.is_zero());
    Ok(Requirements {
        node_claim: node_claim(spec)?,
        requests: requests.map(|(name, amount)| (name, Quantity(amount.to_string()))).collect(),
        namespace: String::new(),
        priority_class: text(spec, "priorityClassName").unwrap_or_default().to_owned(),
    })
}

fn node_claim(spec: &Value) -> Result<Option<NodeClaim>, Error> {
    let affinity = get(spec, &["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]);
    let claim = NodeClaim {
        hard_node_affinity: affinity.map(|affinity| read(affinity, "node affinity")).transpose()?,
        node_selector: get(spec, &["nodeSelector"]).map_or(Ok(BTreeMap::new()), |value| read(value, "nodeSelector"))?,
        tolerations: get(spec, &["tolerations"]).map_or(Ok(Vec::new()), |value| read(value, "tolerations"))?,
    };
    Ok((claim != NodeClaim::default()).then_some(claim))
}

fn read<T: DeserializeOwned>(value: &Value, what: &str) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| Error::Shape(format!("{what} of the pod template: {error}")))
}

/// The most that a pod asks for at any time of its life.
///
/// Containers run together with the sidecars; an init container only with the sidecars before it.
fn requests(spec: &Value) -> Result<Amounts, Error> {
    let mut steady = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut steady, &container_requests(container)?)?;
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut own = container_requests(container)?;
        if container["restartPolicy"] == "Always" {
            add(&mut steady, &own)?;
            add(&mut sidecars, &own)?;
            raise(&mut starting, sidecars.clone());
        } else {
            add(&mut own, &sidecars)?;
            raise(&mut starting, own);
        }
    }
    raise(&mut steady, starting);
    add(&mut steady, &amounts(&spec["overhead"])?)?;
    Ok(steady.into_iter().map(|(name, amount)| canonical(name, amount)).collect())
}

/// What is not requested but limited is requested up to the limit, as API servers default it.
fn container_requests(container: &Value) -> Result<Amounts, Error> {
    let resources = &container["resources"];
    let mut all = amounts(&resources["limits"])?;
    all.extend(amounts(&resources["requests"])?);
    Ok(all)
}

fn amounts(list: &Value) -> Result<Amounts, Error> {
    let entries = list.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let read = |(name, value): (&String, &Value)| {
        let parsed = match value {
            Value::String(text) => Amount::parse(text),
            other => Amount::parse(&other.to_string()),
        };
        let amount = parsed.map_err(|error| Error::Shape(format!("amount of {name}: {error}")))?;
        Ok((name.clone(), amount))
    };
    entries.map(read).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) -> Result<(), Error> {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_insert(Amount::ZERO);
        let too_much = || Error::Shape(format!("amount of {name}: too large"));
        *entry = entry.checked_add(*amount).ok_or_else(too_much)?;
    }
    Ok(())
}

fn raise(most: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let entry = most.entry(name).or_insert(Amount::ZERO);
        if amount > *entry {
            *entry = amount;
        }
    }
}

/// One way to write each amount, so that equal needs give equal bindings.
fn canonical(name: String, amount: Amount) -> (String, Amount) {
    let amount = match name.as_str() {
        "cpu" => Amount::from_milli(amount.milli_value()),
        "memory" | "ephemeral-storage" => Amount::from_bytes(amount.value()),
        other if other.starts_with("hugepages-") => Amount::from_bytes(amount.value()),
        _ => Amount::from_value(amount.value()),
    };
    (name, amount)
}

/// The objects that pods of a template refer to.
pub fn pod_dependencies(template: &Value, namespace: &str) -> BTreeSet<ObjectRef> {
    let spec = &template["spec"];
    let mut found = Found { namespace, refs: BTreeSet::new() };
    for volume in list(spec, "volumes") {
        found.volume(volume);
    }
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(spec, field) {
            found.container(container);
        }
    }
    for secret in list(spec, "imagePullSecrets") {
        found.add("Secret", &secret["name"]);
    }
    if spec["serviceAccountName"] != "default" {
        found.add("ServiceAccount", &spec["serviceAccountName"]);
    }
    found.refs
}

struct Found<'a> {
    namespace: &'a str,
    refs: BTreeSet<ObjectRef>,
}

impl Found<'_> {
    fn add(&mut self, kind: &str, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.refs.insert(ObjectRef::named("v1", kind, self.namespace, name));
        }
    }

    fn volume(&mut self, volume: &Value) {
        self.add("ConfigMap", &volume["configMap"]["name"]);
        self.add("Secret", &volume["secret"]["secretName"]);
        self.add("Secret", &volume["azureFile"]["secretName"]);
        self.add("Secret", &volume["csi"]["nodePublishSecretRef"]["name"]);
        for source in ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] {
            self.add("Secret", &volume[source]["secretRef"]["name"]);
        }
        self.add("PersistentVolumeClaim", &volume["persistentVolumeClaim"]["claimName"]);
        for source in list(&volume["projected"], "sources") {
            self.add("ConfigMap", &source["configMap"]["name"]);
            self.add("Secret", &source["secret"]["name"]);
        }
    }

    fn container(&mut self, container: &Value) {
        for variable in list(container, "env") {
            self.add("ConfigMap", &variable["valueFrom"]["configMapKeyRef"]["name"]);
            self.add("Secret", &variable["valueFrom"]["secretKeyRef"]["name"]);
        }
        for source in list(container, "envFrom") {
            self.add("ConfigMap", &source["configMapRef"]["name"]);
            self.add("Secret", &source["secretRef"]["name"]);
        }
    }
}
