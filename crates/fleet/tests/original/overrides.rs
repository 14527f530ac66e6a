//! Overriders.

use atoll_fleet::overrides::{OverridePolicy, Overrides, apply};
use atoll_meta::{Gvk, Head};
use atoll_placement::Cluster;
use atoll_runtime::Item;
use atoll_testkit::ask_original;
use serde_json::{Value, json};

use crate::cases::{Case, all};
use crate::{Accepted, Said, judge, strip};

impl Case {
    fn question(&self) -> Value {
        json!({"ask": "override", "object": self.object, "cluster": self.cluster, "clusterPolicies": self.cluster_policies,
            "policies": self.policies})
    }

    fn ours(&self) -> Said {
        let overrides = Overrides::default();
        for policy in self.cluster_policies.iter().chain(&self.policies) {
            let item = Item::of(policy).ok_or("a policy that is no object")?;
            overrides.put(OverridePolicy::of(&item).ok_or("a policy that cannot be read")?);
        }
        let (api_version, kind) = (self.object["apiVersion"].as_str().unwrap(), self.object["kind"].as_str().unwrap());
        let (group, version) = atoll_meta::split_api_version(api_version);
        let head = Head::of(self.object["metadata"].as_object().unwrap());
        let order = overrides.for_object(&Gvk::new(group, version, kind), &head);
        let cluster: atoll_api::cluster::Cluster = serde_json::from_value(self.cluster.clone()).unwrap();
        let mut object = self.object.clone();
        let applied = apply(&mut object, &Cluster::from(&cluster), &order).map_err(|error| error.to_string())?;
        Ok(json!({"object": object, "clusterPolicies": applied.cluster, "policies": applied.namespaced}))
    }

    fn counts(&self, mut said: Value) -> Value {
        strip(&mut said);
        said
    }
}

/// Whether one of its overriders is of this kind.
fn has(case: &Case, overrider: &str) -> bool {
    case.policies.iter().any(|policy| policy.to_string().contains(overrider))
}

fn fails(theirs: &Said, words: &str) -> bool {
    theirs.as_ref().is_err_and(|why| why.contains(words))
}

pub const ACCEPTED: &[Accepted<Case>] = &[
    Accepted {
        why: "pods of CronJobs are pods like others",
        is: |case, ours, theirs| case.object["kind"] == "CronJob" && ours.is_ok() && theirs.is_ok(),
    },
    Accepted {
        why: "an image that is no proper name is changed all the same",
        is: |_, ours, theirs| ours.is_ok() && fails(theirs, "failed to parse image value"),
    },
    Accepted {
        why: "paths of images are JSON pointers, with their escapes",
        is: |case, ours, theirs| ours.is_ok() && has(case, "~1") && fails(theirs, "failed to obtain imageValue"),
    },
    Accepted {
        why: "what is not there cannot be replaced, even under an empty name",
        is: |case, ours, theirs| has(case, r#""operator":"replace","path":"/"#) && ours.is_err() && theirs.is_ok(),
    },
    Accepted {
        why: "an empty text is no JSON document",
        is: |case, ours, _| has(case, r#""fieldPath":"/data/empty","json""#) && ours.is_err(),
    },
    Accepted {
        why: "an overrider of a field without changes changes nothing; the original empties the field",
        is: |case, ours, theirs| has(case, r#"[{"fieldPath":"/data/json"}]"#) && ours.is_ok() && theirs.is_ok(),
    },
    Accepted {
        why: "a key on stays on; the original makes it true",
        is: |case, ours, theirs| case.object["data"]["yaml"] == "on: push\nz: 1\n" && ours.is_ok() && theirs.is_ok(),
    },
];

/// The documents inside of fields say the same, however they are written; the original reads both.
fn documents(cases: &[Case], ours: &mut [Said], theirs: &mut [Said]) {
    let mut questions = Vec::new();
    let mut places = Vec::new();
    for (at, case) in cases.iter().enumerate().filter(|(_, case)| has(case, "fieldOverrider")) {
        for (side, said) in [&ours[at], &theirs[at]].into_iter().enumerate() {
            let Ok(said) = said else { continue };
            for key in case.object["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
                questions.push(json!({"ask": "yaml", "text": said["object"]["data"][key]}));
                places.push((at, side, key.clone()));
            }
        }
    }
    let Some(answers) = ask_original(&questions) else { return };
    for ((at, side, key), answer) in places.into_iter().zip(answers) {
        let said = if side == 0 { &mut ours[at] } else { &mut theirs[at] };
        if let (Ok(said), Ok(answer)) = (said, answer) {
            said["object"]["data"][key] = answer;
        }
    }
}

#[test]
fn overriders_change_what_they_change_in_the_original() {
    let cases = all();
    let questions: Vec<Value> = cases.iter().map(Case::question).collect();
    let Some(mut theirs) = ask_original(&questions) else { return };
    let mut ours: Vec<Said> = cases.iter().map(Case::ours).collect();
    documents(&cases, &mut ours, &mut theirs);
    let compared: Vec<(Case, Said, Said)> = cases
        .into_iter()
        .zip(ours.into_iter().zip(theirs))
        .map(|(case, (ours, theirs))| {
            let (ours, theirs) = (ours.map(|said| case.counts(said)), theirs.map(|said| case.counts(said)));
            (case, ours, theirs)
        })
        .collect();
    assert!(compared.len() >= 500, "only {}", compared.len());
    judge("overriders", &compared, ACCEPTED);
}
