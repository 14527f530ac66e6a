//! The rule by which a cluster was refused, with its numbers.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::affinity::AffinityMiss;
use crate::cluster::Taint;

/// Why a cluster takes no part in a decision, or no replicas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rule {
    /// It is being removed.
    Deleting,
    /// It is not in the set the policy chooses from.
    Affinity(AffinityMiss),
    /// It does not serve the kind, given as `apiVersion/Kind`.
    ApiMissing(Arc<str>),
    /// It has a taint that is not tolerated.
    Taint(Arc<Taint>),
    /// It lacks the property that groups are made by.
    NoGroup(Arc<str>),
    /// The workload is leaving it.
    Evicting,
    /// It does not host all that is placed of the workload's group; how many do.
    NotWithGroup(usize),
    /// It hosts something of the group the workload keeps away from.
    WithGroup,
    /// Enough others came before it.
    Rank {
        /// Its place, from 1.
        place: usize,
        /// How many passed all filters.
        of: usize,
        /// How many are taken at most.
        most: usize,
    },
    /// Its group was not among those taken.
    Group {
        /// What groups are made by.
        by: Arc<str>,
        /// Its group.
        name: Arc<str>,
        /// How many groups are taken at most.
        most: usize,
    },
    /// Its static weight is zero because no entry of the list names it.
    NoWeight,
    /// Its share of the replicas is zero.
    NoShare {
        /// How many replicas it has room for, or its weight.
        weight: i64,
        /// How many replicas were shared out.
        replicas: i32,
    },
}

impl Rule {
    /// The name of the step that refused.
    pub fn plugin(&self) -> &'static str {
        match self {
            Rule::Deleting => "ClusterDeletion",
            Rule::Affinity(_) => "ClusterAffinity",
            Rule::ApiMissing(_) => "APIEnablement",
            Rule::Taint(_) => "TaintToleration",
            Rule::NoGroup(_) | Rule::Rank { .. } | Rule::Group { .. } => "SpreadConstraint",
            Rule::Evicting => "ClusterEviction",
            Rule::NotWithGroup(_) => "WorkloadAffinity",
            Rule::WithGroup => "WorkloadAntiAffinity",
            Rule::NoWeight | Rule::NoShare { .. } => "ReplicaAssignment",
        }
    }

    /// The same in words that fit all clusters it refused, for counting them.
    pub fn summary(&self) -> String {
        match self {
            Rule::Deleting => "cluster(s) being deleted".to_owned(),
            Rule::Affinity(_) => "cluster(s) did not match the cluster affinity".to_owned(),
            Rule::ApiMissing(api) => format!("cluster(s) did not serve {api}"),
            Rule::Taint(taint) => format!("cluster(s) had untolerated taint {{{}}}", taint.key),
            Rule::NoGroup(by) => format!("cluster(s) had no {by}"),
            Rule::Evicting => "cluster(s) in the process of eviction".to_owned(),
            Rule::NotWithGroup(_) => "cluster(s) did not host the whole workload affinity group".to_owned(),
            Rule::WithGroup => "cluster(s) hosted the workload anti-affinity group".to_owned(),
            Rule::Rank { .. } | Rule::Group { .. } => "cluster(s) not taken by the spread constraints".to_owned(),
            Rule::NoWeight | Rule::NoShare { .. } => "cluster(s) with no share of the replicas".to_owned(),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Deleting => out.write_str("is being deleted"),
            Rule::Affinity(miss) => write!(out, "{miss}"),
            Rule::ApiMissing(api) => write!(out, "does not serve {api}"),
            Rule::Taint(taint) => write!(out, "untolerated taint {}={}:{}", taint.key, taint.value, taint.effect),
            Rule::NoGroup(by) => write!(out, "has no {by} to spread by"),
            Rule::Evicting => out.write_str("is being evicted from"),
            Rule::NotWithGroup(hosts) => {
                write!(out, "does not host the whole affinity group, {hosts} other(s) do")
            }
            Rule::WithGroup => out.write_str("hosts the anti-affinity group"),
            Rule::Rank { place, of, most } => {
                write!(out, "ranked {place} of {of}, at most {most} taken")
            }
            Rule::Group { by, name, most } if *most == usize::MAX => {
                write!(out, "{by} {name} not taken")
            }
            Rule::Group { by, name, most } => {
                write!(out, "{by} {name} not among the at most {most} taken")
            }
            Rule::NoWeight => out.write_str("no entry of staticWeightList names it"),
            Rule::NoShare { weight, replicas } => {
                write!(out, "weight {weight} gives it none of {replicas} replicas")
            }
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Rule", 2)?;
        out.serialize_field("plugin", self.plugin())?;
        out.serialize_field("message", &self.to_string())?;
        out.end()
    }
}
