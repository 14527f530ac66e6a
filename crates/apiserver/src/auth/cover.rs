//! Whether some rules grant everything that others grant: nobody gives away more than they have.

use std::collections::BTreeMap;

use super::rbac::{Rule, url_matches};

/// The parts of `wanted` that `owned` does not grant; verbs on the same resource are joined.
pub fn missing(owned: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(atoms);
    compact(parts.filter(|part| !owned.iter().any(|own| covers(own, part))))
}

/// A rule taken apart: one verb on one group's one resource, or on one URL.
fn atoms(rule: &Rule) -> Vec<Rule> {
    let mut parts = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let one = Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(one);
                } else {
                    parts.extend(
                        rule.resource_names
                            .iter()
                            .map(|name| Rule { resource_names: vec![name.clone()], ..one.clone() }),
                    );
                }
            }
        }
        parts.extend(rule.urls.iter().map(|url| Rule {
            verbs: vec![verb.clone()],
            urls: vec![url.clone()],
            ..Rule::default()
        }));
    }
    parts
}

fn covers(own: &Rule, part: &Rule) -> bool {
    let has = |own: &[String], part: &[String]| {
        own.iter().any(|word| word == "*") || part.iter().all(|word| own.contains(word))
    };
    if !has(&own.verbs, &part.verbs) {
        return false;
    }
    if !part.urls.is_empty() {
        return part.urls.iter().all(|url| own.urls.iter().any(|given| url_covers(given, url)));
    }
    let names = own.resource_names.is_empty()
        || (!part.resource_names.is_empty()
            && part.resource_names.iter().all(|name| own.resource_names.contains(name)));
    names
        && has(&own.api_groups, &part.api_groups)
        && part.resources.iter().all(|resource| resource_covered(&own.resources, resource))
}

fn resource_covered(own: &[String], resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    own.iter().any(|given| given == "*" || given == resource || Some(given) == subresource.as_ref())
}

/// A pattern covers what it matches, and patterns with a longer beginning.
fn url_covers(given: &str, url: &str) -> bool {
    url_matches(given, url)
}

fn compact(parts: impl Iterator<Item = Rule>) -> Vec<Rule> {
    let (urls, parts): (Vec<Rule>, Vec<Rule>) = parts.partition(|part| !part.urls.is_empty());
    let mut joined: BTreeMap<(Vec<String>, Vec<String>, Vec<String>), Vec<String>> = BTreeMap::new();
    for part in parts {
        let verbs = joined.entry((part.api_groups, part.resources, part.resource_names)).or_default();
        verbs.extend(part.verbs.into_iter().filter(|verb| !verbs.contains(verb)).collect::<Vec<_>>());
    }
    let resources = joined.into_iter().map(|((api_groups, resources, resource_names), verbs)| Rule {
        verbs,
        api_groups,
        resources,
        resource_names,
        urls: Vec::new(),
    });
    let mut all: Vec<Rule> = resources.chain(urls).collect();
    all.sort_by_cached_key(describe);
    all.dedup();
    all
}

/// A rule in the words of the refusal.
pub fn describe(rule: &Rule) -> String {
    let list =
        |words: &[String]| format!("[{}]", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" "));
    let mut parts = Vec::new();
    for (name, words) in [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("ResourceNames", &rule.resource_names),
        ("NonResourceURLs", &rule.urls),
        ("Verbs", &rule.verbs),
    ] {
        if !words.is_empty() {
            parts.push(format!("{name}:{}", list(words)));
        }
    }
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn rule(value: Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rules_cover_exactly_what_they_grant() {
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        let named = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]});
        let sub = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/status"]});
        let url = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]});
        let table = [
            (vec![&all], &pods, true),
            (vec![&pods], &all, false),
            (vec![&pods], &named, true),
            (vec![&named], &pods, false),
            (vec![&sub], &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}), true),
            (vec![&pods], &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}), false),
            (vec![&all], &url, false),
            (vec![&url], &json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/ping"]}), true),
            (vec![&url], &json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/a/*"]}), true),
            (vec![&url], &json!({"verbs": ["get"], "nonResourceURLs": ["*"]}), false),
            (
                vec![&pods, &sub],
                &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/status"]}),
                true,
            ),
            (vec![], &json!({"verbs": [], "apiGroups": [""], "resources": ["pods"]}), true),
        ];
        for (owned, wanted, covered) in table {
            let owned: Vec<Rule> = owned.into_iter().map(|value| rule(value.clone())).collect();
            let owned: Vec<&Rule> = owned.iter().collect();
            assert_eq!(missing(&owned, &[rule(wanted.clone())]).is_empty(), covered, "{wanted}");
        }
    }

    #[test]
    fn what_is_missing_is_told_compactly() {
        let wanted = rule(json!({"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"]}));
        let told: Vec<String> = missing(&[], &[wanted]).iter().map(describe).collect();
        assert_eq!(told, [r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}"#]);
    }

    proptest::proptest! {
        #[test]
        fn what_is_covered_is_never_more_than_what_was_owned(
            verbs in proptest::collection::vec("[ab*]", 0..3),
            groups in proptest::collection::vec("[gh*]", 0..3),
            resources in proptest::collection::vec("(x|y|\\*|x/s|\\*/s)", 0..3),
            names in proptest::collection::vec("[nm]", 0..2),
        ) {
            let wanted = Rule { verbs, api_groups: groups, resources, resource_names: names, urls: vec![] };
            proptest::prop_assert!(missing(&[&wanted], std::slice::from_ref(&wanted)).is_empty());
        }
    }
}
