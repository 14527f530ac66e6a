//! Karmada's feature gates, as far as they mean something here.

use crate::options::Options;

/// What becomes of a gate.
enum Gate {
    /// A setting of the instance.
    Setting(fn(&mut Options) -> &mut bool),
    /// Always so.
    Fixed(bool),
}

fn find(name: &str) -> Option<Gate> {
    Some(match name {
        "Failover" => Gate::Setting(|options| &mut options.failover),
        "PropagationPolicyPreemption" => Gate::Setting(|options| &mut options.preemption),
        "MultiplePodTemplatesScheduling" => Gate::Setting(|options| &mut options.components),
        "GracefulEviction"
        | "PropagateDeps"
        | "CustomizedClusterResourceModeling"
        | "StatefulFailoverInjection"
        | "PriorityBasedScheduling"
        | "ControllerPriorityQueue"
        | "WorkloadAffinity" => Gate::Fixed(true),
        "MultiClusterService"
        | "ResourceQuotaEstimate"
        | "FederatedQuotaEnforcement"
        | "SchedulingOvercommitProtection" => Gate::Fixed(false),
        _ => return None,
    })
}

/// A truth value in any of the spellings that Karmada's flag takes.
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Switches gates as Karmada's flag does: `Name=true,Name=false`. What cannot be as wanted is told.
pub fn switch(options: &mut Options, text: &str) -> Result<(), String> {
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let parts = one.split_once('=').and_then(|(name, value)| Some((name.trim(), truth(value.trim())?)));
        let (name, wanted) = parts.ok_or_else(|| format!("feature gate {one:?}: Name=true or Name=false is needed"))?;
        match find(name).ok_or_else(|| format!("there is no feature gate {name}"))? {
            Gate::Setting(field) => *field(options) = wanted,
            Gate::Fixed(so) if so == wanted => {}
            Gate::Fixed(so) => return Err(format!("feature gate {name} is always {so}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options::tests::fresh;

    #[test]
    fn gates_are_settings_or_fixed_and_what_cannot_be_is_told() {
        let mut options = fresh();
        switch(&mut options, "Failover=true, PropagationPolicyPreemption=false,WorkloadAffinity=true,").unwrap();
        assert!(options.failover && !options.preemption);
        for (text, on) in [
            ("Failover=1", true),
            ("Failover = T", true),
            (" Failover =TRUE , PropagateDeps= t", true),
            ("Failover=True,Failover=0", false),
            ("Failover=f", false),
        ] {
            let mut options = fresh();
            options.failover = !on;
            switch(&mut options, text).unwrap();
            assert_eq!(options.failover, on, "{text}");
        }
        for (text, why) in [
            ("Failover=tRUE", "Name=true"),
            ("=true", "no feature gate"),
            ("PropagateDeps=false", "always true"),
            ("MultiClusterService=true", "always false"),
            ("Failover", "Name=true"),
            ("Failover=maybe", "Name=true"),
            ("Failovers=true", "no feature gate"),
        ] {
            let said = switch(&mut fresh(), text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
