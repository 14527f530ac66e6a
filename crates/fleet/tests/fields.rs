//! Every field of every policy has a test that shows its effect, or is named as a gap.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use atoll_api::{CrdSet, crds};
use atoll_testkit::peers;
use serde_json::Value;

const CHOICE: &str = "placement/tests/choice.rs";
const DIVISION: &str = "placement/tests/division.rs";
const LUA: &str = "interpreter/tests/lua.rs";
const STORY: &str = "fleet/tests/story.rs";
const BREADTH: &str = "fleet/tests/breadth.rs";
const EFFECTS: &str = "fleet/tests/effects.rs";
const POLICY: &str = "fleet/src/policy.rs";
const OVERRIDES: &str = "fleet/src/overrides/tests.rs";
const AFFINITY: (&str, &str) = (CHOICE, "affinity_looks_at_labels_and_fields");
const SELECTORS: (&str, &str) = (EFFECTS, "selectors_choose_by_name_label_expression_and_namespace");
const EVERY_OVERRIDER: (&str, &str) = (OVERRIDES, "every_overrider_changes_what_it_names");
const OLD_FORM: (&str, &str) = (EFFECTS, "overrides_of_the_instance_and_the_old_form_of_rules_still_count");

/// A field, with all below it, and the test that shows its effect: file below `crates` and name.
type Shown = (&'static str, (&'static str, &'static str));

/// Fields of PropagationPolicy and ClusterPropagationPolicy.
const PROPAGATION: &[Shown] = &[
    ("activationPreference", (BREADTH, "a_lazy_policy_waits_for_a_change_of_the_template")),
    ("conflictResolution", (STORY, "an_object_that_is_not_ours_is_left_alone_unless_we_may_take_it")),
    ("dependentOverrides", (EFFECTS, "a_policy_waits_for_the_overrides_it_depends_on")),
    ("failover.application", (BREADTH, "an_unhealthy_application_moves_with_its_state")),
    (
        "failover.application.gracePeriodSeconds",
        ("fleet/src/evict.rs", "a_gentle_eviction_lasts_until_the_others_are_well_or_time_is_up"),
    ),
    ("failover.application.purgeMode", (EFFECTS, "application_failover_never_purges_unless_told_to")),
    ("failover.cluster", (EFFECTS, "cluster_failover_purges_directly_and_hands_over_state")),
    ("placement.clusterAffinities", (CHOICE, "affinity_terms_are_tried_in_order_and_not_gone_back_to")),
    (
        "placement.clusterAffinities.affinityName",
        (BREADTH, "the_next_affinity_group_is_used_when_the_first_does_not_fit"),
    ),
    (
        "placement.clusterAffinities.overflowAffinities",
        (DIVISION, "overflow_is_used_only_when_what_comes_before_is_full"),
    ),
    ("placement.clusterAffinity", AFFINITY),
    ("placement.clusterTolerations", (CHOICE, "tolerations_are_those_of_pods")),
    ("placement.clusterTolerations.tolerationSeconds", (EFFECTS, "a_taint_is_borne_as_long_as_tolerations_say")),
    (
        "placement.replicaScheduling.replicaDivisionPreference",
        (DIVISION, "aggregated_takes_as_few_clusters_as_have_room"),
    ),
    ("placement.replicaScheduling.replicaSchedulingType", (DIVISION, "duplicated_gives_every_cluster_all_replicas")),
    ("placement.replicaScheduling.weightPreference.dynamicWeight", (DIVISION, "dynamic_weights_divide_by_room")),
    (
        "placement.replicaScheduling.weightPreference.staticWeightList",
        (DIVISION, "static_weights_divide_in_proportion"),
    ),
    ("placement.replicaScheduling.weightPreference.staticWeightList.targetCluster", AFFINITY),
    ("placement.spreadConstraints", (CHOICE, "spread_by_cluster_takes_the_best_and_changes_for_room")),
    (
        "placement.spreadConstraints.spreadByField",
        (CHOICE, "spread_by_region_takes_the_worthiest_regions_and_the_best_clusters"),
    ),
    ("placement.spreadConstraints.spreadByLabel", (CHOICE, "zones_providers_and_labels_spread_like_regions")),
    ("placement.workloadAffinity", (CHOICE, "workload_groups_stay_together_or_apart")),
    ("preemption", (BREADTH, "a_better_policy_takes_over_only_if_it_says_so")),
    ("preserveResourcesOnDeletion", (STORY, "deletions_follow_the_template_or_stop_where_they_are_told_to")),
    ("priority", (POLICY, "priority_then_closeness_then_name_decide")),
    ("propagateDeps", (BREADTH, "what_a_template_refers_to_goes_along_and_leaves_with_it")),
    ("resourceSelectors", SELECTORS),
    ("schedulePriority", (EFFECTS, "the_most_important_are_decided_on_first")),
    ("schedulerName", (EFFECTS, "a_priority_class_orders_bindings_and_another_scheduler_decides_alone")),
    ("suspension.dispatching", (EFFECTS, "dispatching_is_suspended_everywhere_or_in_named_clusters")),
    ("suspension.dispatchingOnClusters", (BREADTH, "a_suspended_policy_sends_nothing_until_it_is_resumed")),
];

/// Fields of OverridePolicy and ClusterOverridePolicy.
const OVERRIDE: &[Shown] = &[
    ("overrideRules.overriders", EVERY_OVERRIDER),
    (
        "overrideRules.overriders.fieldOverrider",
        (OVERRIDES, "documents_inside_fields_are_changed_in_their_own_language"),
    ),
    (
        "overrideRules.overriders.imageOverrider",
        ("fleet/src/overrides/image.rs", "each_part_can_be_added_to_replaced_and_removed"),
    ),
    ("overrideRules.targetCluster", (OVERRIDES, "a_rule_is_only_for_the_clusters_it_names")),
    ("overriders", OLD_FORM),
    ("targetCluster", OLD_FORM),
    ("resourceSelectors", (OVERRIDES, "the_most_specific_policy_is_applied_last_and_those_of_the_instance_first")),
];

/// Fields of ClusterTaintPolicy.
const TAINT: &[Shown] = &[
    ("addOnConditions", (BREADTH, "a_taint_policy_follows_conditions")),
    ("removeOnConditions", ("fleet/src/taints.rs", "a_policy_adds_and_removes_its_taints_as_conditions_come_and_go")),
    ("taints", ("fleet/src/taints.rs", "a_policy_adds_and_removes_its_taints_as_conditions_come_and_go")),
    ("targetClusters", AFFINITY),
];

/// Fields of WorkloadRebalancer.
const REBALANCER: &[Shown] = &[
    ("ttlSecondsAfterFinished", (BREADTH, "a_rebalancer_asks_for_a_new_decision")),
    ("workloads", (BREADTH, "a_rebalancer_asks_for_a_new_decision")),
];

/// Fields of ResourceInterpreterCustomization.
const CUSTOMIZATION: &[Shown] = &[
    ("customizations.componentResource", (LUA, "a_script_names_components")),
    ("customizations.dependencyInterpretation", (LUA, "scripts_together_name_dependencies")),
    ("customizations.healthInterpretation", (LUA, "a_script_judges_health")),
    ("customizations.replicaResource", (LUA, "a_script_says_how_many_replicas_there_are_and_what_one_needs")),
    ("customizations.replicaRevision", (LUA, "a_script_sets_replicas_and_leaves_the_rest_as_it_was")),
    ("customizations.retention", (LUA, "a_script_retains_what_the_member_has")),
    ("customizations.statusAggregation", (LUA, "a_script_aggregates_statuses")),
    ("customizations.statusReflection", (LUA, "empty_tables_that_nothing_is_known_of_are_left_out")),
    ("target", (BREADTH, "a_customisation_teaches_a_new_kind")),
];

/// Definitions with the fields that are shown and those that are not, with the reason.
const POLICIES: &[(&str, &[Shown], &[(&str, &str)])] = &[
    ("propagationpolicies.policy.karmada.io", PROPAGATION, ASSOCIATION),
    ("clusterpropagationpolicies.policy.karmada.io", PROPAGATION, ASSOCIATION),
    ("overridepolicies.policy.karmada.io", OVERRIDE, &[]),
    ("clusteroverridepolicies.policy.karmada.io", OVERRIDE, &[]),
    ("clustertaintpolicies.policy.karmada.io", TAINT, &[]),
    ("workloadrebalancers.apps.karmada.io", REBALANCER, &[]),
    ("resourceinterpretercustomizations.config.karmada.io", CUSTOMIZATION, &[]),
];

const ASSOCIATION: &[(&str, &str)] =
    &[("association", "deprecated there in favour of propagateDeps; accepted and without effect, as there")];

/// The fields of a schema that hold something themselves.
fn leaves(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    match inner["properties"].as_object().filter(|properties| !properties.is_empty()) {
        Some(properties) => {
            for (name, property) in properties {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(property, &below, found);
            }
        }
        None => drop(found.insert(path.to_owned())),
    }
}

fn fields(definition: &str) -> BTreeSet<String> {
    let all = crds(CrdSet::Karmada);
    let definition = all.iter().find(|one| one["metadata"]["name"] == definition).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|version| version["storage"] == true).unwrap();
    let mut found = BTreeSet::new();
    leaves(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], "", &mut found);
    found
}

fn covers(prefix: &str, field: &str) -> bool {
    field == prefix || field.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

#[test]
fn every_field_of_every_policy_is_shown_by_a_test_or_named_as_a_gap() {
    let mut missing = Vec::new();
    for (definition, shown, gaps) in POLICIES {
        let all = fields(definition);
        assert!(all.len() >= shown.len(), "{definition}");
        for field in &all {
            let known = shown.iter().map(|(prefix, _)| prefix).chain(gaps.iter().map(|(prefix, _)| prefix));
            if !known.into_iter().any(|prefix| covers(prefix, field)) {
                missing.push(format!("{definition} {field}"));
            }
        }
        for prefix in shown.iter().map(|(prefix, _)| prefix).chain(gaps.iter().map(|(prefix, _)| prefix)) {
            assert!(all.iter().any(|field| covers(prefix, field)), "{definition} has no field {prefix}");
        }
    }
    assert!(missing.is_empty(), "no test shows:\n{}", missing.join("\n"));
}

/// The text of all tests below a directory; of other files only what follows their first test module.
fn tests_below(directory: &Path, found: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests/fields.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
            let begin = if is_test { Some(0) } else { text.find("#[cfg(test)]") };
            found.push_str(begin.map_or("", |begin| &text[begin..]));
        }
    }
}

/// The name of a field as Rust writes it.
fn snake(name: &str) -> String {
    let parts = name.chars().map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() });
    parts.collect()
}

#[test]
fn every_single_field_is_set_by_some_test() {
    let mut text = String::new();
    for directory in ["fleet/tests", "fleet/src", "placement/tests", "interpreter/tests"] {
        tests_below(&peers::checkout().join("crates").join(directory), &mut text);
    }
    for (definition, _, gaps) in POLICIES {
        for field in fields(definition) {
            let name = field.rsplit('.').next().unwrap_or(&field);
            let gap = gaps.iter().any(|(prefix, _)| covers(prefix, &field));
            let set = text.contains(&format!("\"{name}\"")) || text.contains(&format!("{}:", snake(name)));
            assert!(gap || set, "{definition}: no test sets {field}");
        }
    }
}

#[test]
fn every_test_that_shows_a_field_exists() {
    for (definition, shown, _) in POLICIES {
        for (field, (file, name)) in *shown {
            let path = peers::checkout().join("crates").join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(text.contains(&format!("fn {name}(")), "{definition} {field}: {file} has no test {name}");
        }
    }
}

#[test]
fn the_table_of_fields_in_the_documentation_is_current() {
    let mut table = String::from("| kind | field | shown by |\n| --- | --- | --- |\n");
    for (definition, shown, gaps) in POLICIES {
        let kind = definition.split('.').next().unwrap();
        for (field, (file, name)) in *shown {
            writeln!(table, "| {kind} | `{field}` | `{file}` {} |", name.replace('_', " ")).unwrap();
        }
        for (field, why) in *gaps {
            writeln!(table, "| {kind} | `{field}` | **gap**: {why} |").unwrap();
        }
    }
    peers::keep_section("docs/karmada.md", "fields", &table);
}
