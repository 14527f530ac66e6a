//! What a method does, read from its name.

use crate::kinds::Kind;

/// What is done with objects of a kind.
#[derive(Copy, Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operation {
    List,
    Get,
    /// As it is stored.
    Raw,
    Create,
    Update,
    Patch,
    Delete,
}

/// `ListInstanceDeployments` is a list of deployments, and so on.
pub fn parse(name: &str) -> Option<(Operation, Kind)> {
    if let Some(rest) = name.strip_prefix("List") {
        let rest = rest.strip_suffix("ForMemberCluster").unwrap_or(rest);
        let prefixes = ["MemberClusterAll", "MemberCluster", "Instance", ""];
        return prefixes.iter().find_map(|prefix| Some((Operation::List, Kind::named(rest.strip_prefix(prefix)?)?)));
    }
    let verbs = [
        ("Get", Operation::Get),
        ("Create", Operation::Create),
        ("Update", Operation::Update),
        ("Patch", Operation::Patch),
        ("Delete", Operation::Delete),
    ];
    verbs.iter().find_map(|(verb, operation)| {
        let rest = name.strip_prefix(verb)?;
        match rest.strip_suffix("JSON") {
            Some(rest) if *operation == Operation::Get => Some((Operation::Raw, Kind::named(rest)?)),
            _ => Some((*operation, Kind::named(rest)?)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_operations() {
        let table = [
            ("ListInstanceDeployments", Some((Operation::List, "deployments"))),
            ("ListDeployments", Some((Operation::List, "deployments"))),
            ("ListMemberClusterAllIngresses", Some((Operation::List, "ingresses"))),
            ("ListPodsForMemberCluster", Some((Operation::List, "pods"))),
            ("GetClusterOverridePolicyJSON", Some((Operation::Raw, "clusteroverridepolicies"))),
            ("UpdateCronJob", Some((Operation::Update, "cronjobs"))),
            ("DeleteFederatedHPA", Some((Operation::Delete, "federatedhpas"))),
            ("ListSomething", None),
            ("FooDeployment", None),
        ];
        for (name, expected) in table {
            let found = parse(name);
            assert_eq!(found.as_ref().map(|(operation, kind)| (*operation, &*kind.resource)), expected, "{name}");
        }
    }
}
