//! The trace as text.

use std::fmt;

use super::{ClusterTrace, Trace};

impl fmt::Display for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.subject)?;
        if let Some(template) = &self.template
            && let Some(replicas) = template.replicas
        {
            // A template that goes whole to several clusters becomes more than it says.
            let placed: i64 =
                self.binding.iter().flat_map(|binding| binding.clusters.values()).copied().map(i64::from).sum();
            let wanted = if placed > 0 { placed } else { replicas };
            let words = if wanted == 1 { "replica wanted is" } else { "replicas wanted are" };
            writeln!(out, "  {} of {wanted} {words} ready", template.ready.unwrap_or(0))?;
        }
        match &self.policy {
            Some(policy) => writeln!(out, "policy   {}", policy.name)?,
            None => writeln!(out, "policy   none")?,
        }
        if let Some(binding) = &self.binding {
            write!(out, "binding  {}", binding.name)?;
            if let Some(record) = &binding.decision {
                write!(out, ", decided at {}", record.at)?;
                if !record.affinity.is_empty() {
                    write!(out, " with affinity {}", record.affinity)?;
                }
                for (affinity, why) in &record.skipped {
                    write!(out, "; {affinity} would not do: {why}")?;
                }
            }
            writeln!(out)?;
            for (cluster, reason) in &binding.leaving {
                writeln!(out, "  leaving {cluster}: {reason}")?;
            }
        }
        for cluster in &self.clusters {
            show_cluster(cluster, out)?;
        }
        match &self.obstacle {
            Some(obstacle) => writeln!(out, "→ {obstacle}"),
            None => writeln!(out, "→ Nothing stands in the way."),
        }
    }
}

fn show_cluster(cluster: &ClusterTrace, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mark = if cluster.target { "●" } else { "○" };
    write!(out, "{mark} {}", cluster.name)?;
    if !cluster.ready {
        write!(out, " (not ready)")?;
    }
    match (&cluster.decision, cluster.target) {
        (Some(decision), _) => writeln!(out, "  {decision}")?,
        (None, true) => writeln!(out, "  goes along")?,
        (None, false) => writeln!(out)?,
    }
    if let Some(unmade) = &cluster.unmade {
        writeln!(out, "    no copy can be made: {unmade}")?;
    }
    if let Some(work) = &cluster.work {
        let state = match (work.suspended, work.applied.as_str()) {
            (true, _) => "held back",
            (_, "True") => "applied",
            (_, "False") => "refused",
            _ => "waiting",
        };
        let message = if work.applied == "False" { format!(": {}", work.message) } else { String::new() };
        let behind = work.behind.as_ref().map(|behind| format!(", but {behind}")).unwrap_or_default();
        writeln!(out, "    work {} {state}{message}{behind}", work.name)?;
    }
    if let Some(object) = &cluster.object {
        match object.exists {
            None => writeln!(out, "    object unknown: {}", object.error)?,
            Some(false) => writeln!(out, "    object missing")?,
            Some(true) if object.foreign => writeln!(out, "    object of somebody else")?,
            Some(true) => {
                write!(out, "    object {}", object.health.to_lowercase())?;
                if let Some(replicas) = object.replicas {
                    write!(out, ", {} of {replicas} ready", object.ready.unwrap_or(0))?;
                }
                writeln!(out)?;
            }
        }
        for pod in &object.pods {
            writeln!(out, "      pod {} {} {}", pod.name, pod.phase, pod.reason)?;
        }
    }
    Ok(())
}
