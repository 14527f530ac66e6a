//! Which policy has claimed an object, written in its metadata.

use std::sync::Arc;

use atoll_api::words::{annotation, label};
use serde_json::{Map, Value, json};

/// The policy that claims an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// Namespace of the policy; empty for one of the whole instance.
    pub namespace: Arc<str>,
    /// Name of the policy.
    pub name: Arc<str>,
    /// Its permanent id.
    pub id: Arc<str>,
}

impl Claim {
    /// The label that carries the id.
    pub fn label(&self) -> &'static str {
        if self.namespace.is_empty() { label::CLUSTER_POLICY_ID } else { label::POLICY_ID }
    }

    /// The annotations that name the policy.
    pub fn annotations(&self) -> Vec<(&'static str, &str)> {
        if self.namespace.is_empty() {
            vec![(annotation::CLUSTER_POLICY_NAME, &self.name)]
        } else {
            vec![(annotation::POLICY_NAMESPACE, &self.namespace), (annotation::POLICY_NAME, &self.name)]
        }
    }

    /// Writes the claim into metadata, in place of any other.
    pub fn write(&self, labels: &mut Map<String, Value>, annotations: &mut Map<String, Value>) {
        remove(labels, annotations);
        labels.insert(self.label().to_owned(), (*self.id).into());
        for (key, value) in self.annotations() {
            annotations.insert(key.to_owned(), value.into());
        }
    }
}

const LABELS: [&str; 2] = [label::POLICY_ID, label::CLUSTER_POLICY_ID];
const ANNOTATIONS: [&str; 3] = [annotation::POLICY_NAMESPACE, annotation::POLICY_NAME, annotation::CLUSTER_POLICY_NAME];

/// Removes any claim from metadata.
pub fn remove(labels: &mut Map<String, Value>, annotations: &mut Map<String, Value>) {
    for key in LABELS {
        labels.remove(key);
    }
    for key in ANNOTATIONS {
        annotations.remove(key);
    }
}

/// The claim in an object's metadata.
pub fn read(object: &Value) -> Option<Claim> {
    let (labels, annotations) = (&object["metadata"]["labels"], &object["metadata"]["annotations"]);
    let text = |map: &Value, key: &str| map[key].as_str().filter(|text| !text.is_empty()).map(Arc::<str>::from);
    if let Some(name) = text(annotations, annotation::POLICY_NAME) {
        let namespace = text(annotations, annotation::POLICY_NAMESPACE)?;
        return Some(Claim { namespace, name, id: text(labels, label::POLICY_ID)? });
    }
    let name = text(annotations, annotation::CLUSTER_POLICY_NAME)?;
    Some(Claim { namespace: "".into(), name, id: text(labels, label::CLUSTER_POLICY_ID)? })
}

/// The merge patch that changes the claim of an object; `None` when there is nothing to change.
pub fn patch(object: &Value, claim: Option<&Claim>) -> Option<Value> {
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    if let Some(claim) = claim {
        claim.write(&mut labels, &mut annotations);
    }
    let differ = |wanted: &mut Map<String, Value>, keys: &[&str], field: &str| {
        let present = &object["metadata"][field];
        for key in keys {
            if !wanted.contains_key(*key) && present.get(*key).is_some() {
                wanted.insert((*key).to_owned(), Value::Null);
            }
        }
        wanted.retain(|key, value| present.get(key).unwrap_or(&Value::Null) != value);
    };
    differ(&mut labels, &LABELS, "labels");
    differ(&mut annotations, &ANNOTATIONS, "annotations");
    if labels.is_empty() && annotations.is_empty() {
        return None;
    }
    let mut patch = json!({"metadata": {"labels": labels, "annotations": annotations}});
    if let Some(uid) = object["metadata"]["uid"].as_str() {
        // Another object of this name is another's.
        patch["metadata"]["uid"] = uid.into();
    }
    Some(patch)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn claim(namespace: &str, name: &str) -> Claim {
        Claim { namespace: namespace.into(), name: name.into(), id: "id-1".into() }
    }

    #[test]
    fn a_claim_is_read_back_and_changes_nothing_twice() {
        for wanted in [claim("default", "p"), claim("", "p")] {
            let mut object = json!({"metadata": {"name": "x", "labels": {"app": "web"}}});
            let patch_one = patch(&object, Some(&wanted)).unwrap();
            atoll_patch::merge_patch(&mut object, &patch_one);
            assert_eq!(read(&object), Some(wanted.clone()));
            assert_eq!(patch(&object, Some(&wanted)), None);
            let removal = patch(&object, None).unwrap();
            atoll_patch::merge_patch(&mut object, &removal);
            assert_eq!(read(&object), None);
            assert_eq!(object["metadata"]["labels"], json!({"app": "web"}));
        }
    }

    #[test]
    fn a_claim_takes_the_place_of_another() {
        let mut object = json!({"metadata": {}});
        for wanted in [claim("", "c"), claim("default", "p")] {
            let patch = patch(&object, Some(&wanted)).unwrap();
            atoll_patch::merge_patch(&mut object, &patch);
        }
        assert_eq!(read(&object), Some(claim("default", "p")));
        assert!(object["metadata"]["labels"].get(label::CLUSTER_POLICY_ID).is_none());
    }
}
