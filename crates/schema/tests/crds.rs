//! CRDs of programs nobody here wrote.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use atoll_meta::FieldPath;
use atoll_schema::{Interner, Schema, check_structural};
use atoll_testkit::peers;
use serde_json::{Value, json};

/// All schemas of CRDs, with a name for messages.
fn schemas(paths: Vec<PathBuf>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for path in paths {
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let name = format!("{} {}", path.file_name().unwrap().to_string_lossy(), version["name"]);
            found.push((name, version["schema"]["openAPIV3Schema"].clone()));
        }
    }
    found
}

#[test]
fn real_schemas_are_accepted_and_written_as_they_were_read() {
    let interner = Interner::default();
    let others = ["kubeocean", "clusterpedia"].map(peers::reference_definitions).concat();
    for (name, json) in schemas([peers::karmada_definitions(), others].concat()) {
        let schema = Schema::from_json(&json).unwrap();
        assert_eq!(schema.to_json(), json, "{name}");
        let errors = check_structural(&schema, &FieldPath::new("s"));
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let compiled = interner.compile(&json, &FieldPath::new("s"));
        assert!(compiled.is_ok(), "{name}: {:?}", compiled.unwrap_err());
    }
}

#[test]
fn a_policy_is_pruned_defaulted_and_checked() {
    let schemas = schemas(peers::karmada_definitions());
    if schemas.is_empty() {
        return; // said already
    }
    let policies = |(name, _): &&(String, Value)| name.starts_with("policy.karmada.io_propagationpolicies");
    let (_, json) = schemas.iter().find(policies).unwrap();
    let compiled = Interner::default().compile(json, &FieldPath::root()).unwrap();
    let mut policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "bogus": 1}],
                 "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}}});
    assert_eq!(compiled.prune(&mut policy), ["spec.resourceSelectors[0].bogus"]);
    compiled.default(&mut policy);
    assert_eq!(policy["spec"]["conflictResolution"], "Abort");
    assert_eq!(policy["spec"]["priority"], 0);
    assert!(compiled.validate(&policy, None).is_empty());
    policy["spec"]["conflictResolution"] = "Maybe".into();
    policy["spec"].as_object_mut().unwrap().remove("resourceSelectors");
    let errors: Vec<String> = compiled.validate(&policy, None).iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "spec.conflictResolution: Unsupported value: \"Maybe\": supported values: \"Abort\", \"Overwrite\"",
            "spec.resourceSelectors: Required value"
        ]
    );
}
