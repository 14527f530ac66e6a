//! What a decision is asked for.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use atoll_api::policy::{Placement, ReplicaDivisionPreference, ReplicaSchedulingType, SpreadConstraint, SpreadField};
use atoll_api::work::{ResourceBindingSpec, ResourceBindingStatus, TargetCluster, TargetComponent};

use crate::capacity::Requirements;
use crate::decision::{Decision, Target};

/// Whether the last decision counts.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Replicas that are placed stay where they are, as far as possible.
    #[default]
    Steady,
    /// All replicas are placed anew.
    Fresh,
}

/// How replicas are shared out.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Strategy {
    Duplicated,
    Static,
    Dynamic,
    Aggregated,
}

/// One of several pod templates of a workload.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// How many replicas of it one set has.
    pub replicas: i32,
    /// What one replica asks for.
    pub requirements: Option<Requirements>,
}

/// Switches of the whole scheduler.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Options {
    /// Chosen clusters without a share get the workload with no replicas.
    pub empty_workloads: bool,
    /// Workloads with several components are placed by the room for whole sets.
    pub components: bool,
}

/// One template for which clusters are wanted.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Group, version and kind of the template, as `apiVersion/Kind`.
    pub api: Arc<str>,
    /// Uid of the template; breaks ties.
    pub uid: &'a str,
    /// What the policy says.
    pub placement: &'a Placement,
    /// How many replicas are wanted; 0 for what is not a workload.
    pub replicas: i32,
    /// What one replica asks for.
    pub requirements: Option<Requirements>,
    /// The components of a workload with several pod templates.
    pub components: Vec<Component>,
    /// The last decision.
    pub previous: &'a [TargetCluster],
    /// Clusters the workload is leaving.
    pub evicting: Vec<&'a str>,
    /// Name of the affinity term of the last decision.
    pub observed_affinity: &'a str,
    /// Whether the last decision counts.
    pub mode: Mode,
    /// Room by cluster as counted inside of it; negative is unknown.
    pub estimates: Option<&'a HashMap<Arc<str>, i32>>,
    /// Clusters that host all of the group the workload wants to be with, if any of it is placed; see [`together`].
    ///
    /// [`together`]: crate::together
    pub affinity_hosts: Option<&'a BTreeSet<String>>,
    /// Clusters that host any of the group the workload keeps away from.
    pub anti_affinity_hosts: Option<&'a BTreeSet<String>>,
    /// Switches of the scheduler.
    pub options: Options,
}

static NO_PLACEMENT: LazyLock<Placement> = LazyLock::new(Placement::default);

impl<'a> Request<'a> {
    /// The request of a binding; estimates and groups are added by the caller.
    pub fn of(spec: &'a ResourceBindingSpec, status: Option<&'a ResourceBindingStatus>) -> Self {
        let components = spec.components.iter().map(|component| Component {
            name: component.name.clone(),
            replicas: component.replicas,
            requirements: component.replica_requirements.as_ref().map(Requirements::from),
        });
        Request {
            api: format!("{}/{}", spec.resource.api_version, spec.resource.kind).into(),
            uid: &spec.resource.uid,
            placement: spec.placement.as_ref().unwrap_or(&NO_PLACEMENT),
            replicas: spec.replicas,
            requirements: spec.replica_requirements.as_ref().map(Requirements::from),
            components: components.collect(),
            previous: &spec.clusters,
            evicting: spec.graceful_eviction_tasks.iter().map(|task| task.from_cluster.as_str()).collect(),
            observed_affinity: status.map_or("", |status| &status.scheduler_observing_affinity_name),
            mode: if is_triggered(spec, status) { Mode::Fresh } else { Mode::Steady },
            estimates: None,
            affinity_hosts: None,
            anti_affinity_hosts: None,
            options: Options::default(),
        }
    }

    /// Whether there is anything to run.
    pub fn is_workload(&self) -> bool {
        self.replicas > 0 || !self.components.is_empty()
    }

    /// Whether the workload is placed in whole sets of its components, which needs a single cluster.
    pub(crate) fn is_set(&self) -> bool {
        let one_cluster = |constraint: &SpreadConstraint| {
            matches!(constraint.spread_by_field, Some(SpreadField::Cluster))
                && constraint.min_groups == 1
                && constraint.max_groups == 1
        };
        self.options.components
            && self.replicas == 0
            && !self.components.is_empty()
            && self.placement.spread_constraints.iter().any(one_cluster)
    }

    /// A decision as it is written into the binding.
    pub fn targets(&self, decision: &Decision) -> Vec<TargetCluster> {
        let components = || {
            let of_one =
                |component: &Component| TargetComponent { name: component.name.clone(), replicas: component.replicas };
            if self.is_set() { self.components.iter().map(of_one).collect() } else { Vec::new() }
        };
        let target = |target: &Target| TargetCluster {
            name: target.name.to_string(),
            replicas: target.replicas,
            components: components(),
        };
        decision.clusters.iter().map(target).collect()
    }

    /// Whether spread constraints have no say: static weights name the clusters themselves.
    pub(crate) fn ignores_spread(&self) -> bool {
        let strategy = self.placement.replica_scheduling.as_ref();
        let preference = strategy.and_then(|strategy| strategy.weight_preference.as_ref());
        self.strategy() == Strategy::Static && preference.is_none_or(|it| !it.static_weight_list.is_empty())
    }

    pub(crate) fn strategy(&self) -> Strategy {
        let Some(strategy) = &self.placement.replica_scheduling else {
            return Strategy::Duplicated;
        };
        if strategy.replica_scheduling_type == ReplicaSchedulingType::Duplicated {
            return Strategy::Duplicated;
        }
        if strategy.replica_division_preference == Some(ReplicaDivisionPreference::Aggregated) {
            return Strategy::Aggregated;
        }
        match &strategy.weight_preference {
            Some(preference) if preference.dynamic_weight.is_some() => Strategy::Dynamic,
            _ => Strategy::Static,
        }
    }
}

/// Whether a new decision was asked for after the last one.
pub(crate) fn is_triggered(spec: &ResourceBindingSpec, status: Option<&ResourceBindingStatus>) -> bool {
    let last = status.and_then(|status| status.last_scheduled_time.as_ref());
    matches!((&spec.reschedule_triggered_at, last), (Some(asked), Some(last)) if asked > last)
}
