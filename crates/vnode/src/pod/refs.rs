//! The ConfigMaps, Secrets and claims a pod refers to.

use serde_json::Value;

use crate::copy::Kind;

/// A reference of a pod, in its own namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Whether the pod can do without.
    pub(crate) optional: bool,
}

/// Everything a pod refers to, each thing once; needed by one, it is not optional.
pub(crate) fn references(spec: &Value) -> Vec<Reference> {
    let mut out: std::collections::BTreeMap<(Kind, String), bool> = Default::default();
    // The visitor may change names, so it gets a copy.
    visit(&mut spec.clone(), &mut |kind, name, optional| {
        let known = out.entry((kind, name.clone())).or_insert(optional);
        *known &= optional;
    });
    out.into_iter().map(|((kind, name), optional)| Reference { kind, name, optional }).collect()
}

type Visitor<'a> = dyn FnMut(Kind, &mut String, bool) + 'a;

/// Shows every reference of a spec to `visitor`, which may change the name.
pub(crate) fn visit(spec: &mut Value, visitor: &mut Visitor<'_>) {
    for group in ["containers", "initContainers", "ephemeralContainers"] {
        for container in elements(spec, group) {
            for env in elements(container, "env") {
                at(env.pointer_mut("/valueFrom/configMapKeyRef"), "name", Kind::ConfigMap, visitor);
                at(env.pointer_mut("/valueFrom/secretKeyRef"), "name", Kind::Secret, visitor);
            }
            for source in elements(container, "envFrom") {
                at(source.get_mut("configMapRef"), "name", Kind::ConfigMap, visitor);
                at(source.get_mut("secretRef"), "name", Kind::Secret, visitor);
            }
        }
    }
    for secret in elements(spec, "imagePullSecrets") {
        // The kubelet pulls without a secret that is missing.
        if let Some(Value::String(name)) = secret.get_mut("name") {
            visitor(Kind::Secret, name, true);
        }
    }
    for volume in elements(spec, "volumes") {
        at(volume.get_mut("configMap"), "name", Kind::ConfigMap, visitor);
        at(volume.get_mut("secret"), "secretName", Kind::Secret, visitor);
        at(volume.get_mut("persistentVolumeClaim"), "claimName", Kind::Claim, visitor);
        at(volume.pointer_mut("/csi/nodePublishSecretRef"), "name", Kind::Secret, visitor);
        at(volume.get_mut("azureFile"), "secretName", Kind::Secret, visitor);
        for kind in ["cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"] {
            at(volume.pointer_mut(&format!("/{kind}/secretRef")), "name", Kind::Secret, visitor);
        }
        for source in volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut).into_iter().flatten() {
            at(source.get_mut("configMap"), "name", Kind::ConfigMap, visitor);
            at(source.get_mut("secret"), "name", Kind::Secret, visitor);
        }
    }
}

fn elements<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn at(reference: Option<&mut Value>, field: &str, kind: Kind, visitor: &mut Visitor<'_>) {
    let Some(reference) = reference else { return };
    let optional = reference["optional"] == true;
    if let Some(Value::String(name)) = reference.get_mut(field) {
        visitor(kind, name, optional);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_found_wherever_they_hide() {
        let spec = json!({
            "containers": [{"env": [
                {"valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k"}}},
                {"valueFrom": {"secretKeyRef": {"name": "s1", "key": "k", "optional": true}}},
            ]}],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "c2"}}, {"secretRef": {"name": "s2"}}]}],
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"configMap": {"name": "c3", "optional": true}}, {"secret": {"secretName": "s3"}},
                {"persistentVolumeClaim": {"claimName": "v1"}}, {"azureFile": {"secretName": "s5"}},
                {"iscsi": {"secretRef": {"name": "s6"}}}, {"csi": {"nodePublishSecretRef": {"name": "s7"}}},
                {"projected": {"sources": [{"configMap": {"name": "c3"}}, {"secret": {"name": "s4"}}]}},
            ],
        });
        let found: Vec<String> = references(&spec)
            .iter()
            .map(|reference| {
                format!("{:?} {}{}", reference.kind, reference.name, if reference.optional { "?" } else { "" })
            })
            .collect();
        assert_eq!(
            found,
            [
                "ConfigMap c1",
                "ConfigMap c2",
                "ConfigMap c3",
                "Secret pull?",
                "Secret s1?",
                "Secret s2",
                "Secret s3",
                "Secret s4",
                "Secret s5",
                "Secret s6",
                "Secret s7",
                "Claim v1"
            ]
        );
    }
}
