//! What can be asked about an object.

use atoll_api::config::{CustomizationRules, LuaScript};

/// What can be asked about an object.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub enum Operation {
    /// How many replicas are wanted and what one needs.
    Replicas,
    /// Which components there are and what each needs.
    Components,
    /// Setting the number of replicas.
    Revise,
    /// Keeping what the member decides.
    Retain,
    /// Which part of the status is collected.
    Reflect,
    /// How members' statuses become that of the template.
    Aggregate,
    /// Whether it works.
    Health,
    /// What it refers to.
    Dependencies,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 8] = [
        Operation::Replicas,
        Operation::Components,
        Operation::Revise,
        Operation::Retain,
        Operation::Reflect,
        Operation::Aggregate,
        Operation::Health,
        Operation::Dependencies,
    ];

    /// The function a script defines for it.
    pub fn function(self) -> &'static str {
        match self {
            Operation::Replicas => "GetReplicas",
            Operation::Components => "GetComponents",
            Operation::Revise => "ReviseReplica",
            Operation::Retain => "Retain",
            Operation::Reflect => "ReflectStatus",
            Operation::Aggregate => "AggregateStatus",
            Operation::Health => "InterpretHealth",
            Operation::Dependencies => "GetDependencies",
        }
    }

    /// Its name in requests to webhooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Replicas => "InterpretReplica",
            Operation::Components => "InterpretComponent",
            Operation::Revise => "ReviseReplica",
            Operation::Retain => "Retain",
            Operation::Reflect => "InterpretStatus",
            Operation::Aggregate => "AggregateStatus",
            Operation::Health => "InterpretHealth",
            Operation::Dependencies => "InterpretDependency",
        }
    }

    /// The script for it in a customisation; an empty one is none.
    pub fn script(self, rules: &CustomizationRules) -> Option<&str> {
        let script: &Option<LuaScript> = match self {
            Operation::Replicas => &rules.replica_resource,
            Operation::Components => &rules.component_resource,
            Operation::Revise => &rules.replica_revision,
            Operation::Retain => &rules.retention,
            Operation::Reflect => &rules.status_reflection,
            Operation::Aggregate => &rules.status_aggregation,
            Operation::Health => &rules.health_interpretation,
            Operation::Dependencies => &rules.dependency_interpretation,
        };
        script.as_ref().map(|script| script.lua_script.as_str()).filter(|text| !text.is_empty())
    }
}
