//! Differences that stay, with their reasons.

use atoll_interpreter::Operation;
use serde_json::Value;

use crate::case::{Accepted, Case, Said};

fn is(case: &Case, kind: &str, operation: Operation) -> bool {
    case.kind() == kind && case.operation == operation
}

/// Whether the original fails with these words.
fn fails(theirs: &Said, words: &str) -> bool {
    theirs.as_ref().is_err_and(|why| why.contains(words))
}

/// Whether only these fields of two answers differ.
fn only(ours: &Said, theirs: &Said, fields: &[&str]) -> bool {
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return false };
    let without = |value: &Value| {
        let mut value = value.clone();
        for pointer in fields {
            let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
            if let Some(map) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
                map.remove(field);
            }
        }
        crate::case::strip(&mut value);
        value
    };
    without(ours) == without(theirs)
}

/// Whether an init container of a pod template stays while the others run.
fn has_sidecar(case: &Case) -> bool {
    ["/spec/template/spec", "/spec"].iter().any(|at| {
        let inits = case.at(&format!("{at}/initContainers")).and_then(Value::as_array);
        inits.into_iter().flatten().any(|one| one["restartPolicy"] == "Always")
    })
}

pub const BUILTIN: &[Accepted] = &[
    Accepted {
        why: "a field of a wrong type, which no API server lets pass, counts as missing; the original fails",
        is: |_, ours, theirs| {
            let words = [
                "unrecognized type",
                "cannot restore",
                "cannot convert",
                "cannot unmarshal",
                "accessor error",
                "cannot assign",
                "parsing time",
                "is not a map",
            ];
            std::env::var("X").is_err() && ours.is_ok() && words.iter().any(|word| fails(theirs, word))
        },
    },
    Accepted {
        why: "an entry without a name stops nothing; the original crashes",
        is: |_, _, theirs| std::env::var("X").is_err() && fails(theirs, "panic:"),
    },
    Accepted {
        why: "a status is collected even where the note of the template's generation was lost",
        is: |case, _, theirs| case.operation == Operation::Reflect && fails(theirs, "strconv.ParseInt"),
    },
    Accepted {
        why: "replicas that nobody states are one, as API servers say, not none",
        is: |case, ours, theirs| {
            let silent = case.at("/spec/replicas").or(case.at("/spec/parallelism")).is_none();
            case.operation == Operation::Replicas && silent && only(ours, theirs, &["/replicas"])
        },
    },
    Accepted {
        why: "sidecars run beside the other containers, so both are counted, as the scheduler of Kubernetes does",
        is: |case, ours, theirs| {
            let fields = ["/requirements/resourceRequest"];
            case.operation == Operation::Replicas && has_sidecar(case) && only(ours, theirs, &fields)
        },
    },
    Accepted {
        why: "a StatefulSet is observed when members have seen the template's generation; the original does not collect what tells it",
        is: |case, ours, theirs| {
            case.kind() == "StatefulSet"
                && matches!(case.operation, Operation::Reflect | Operation::Aggregate)
                && only(ours, theirs, &["/observedGeneration"])
        },
    },
    Accepted {
        why: "replicas to retain that the member does not state leave those of the template",
        is: |case, _, theirs| is(case, "Deployment", Operation::Retain) && fails(theirs, "failed to get spec.replicas"),
    },
    Accepted {
        why: "TLS without a Secret is no dependency, and no failure",
        is: |case, _, theirs| is(case, "Ingress", Operation::Dependencies) && fails(theirs, "can not leave name"),
    },
    Accepted {
        why: "a Job that failed has FailureTarget too where members say so: newer API servers want it",
        is: |case, ours, theirs| {
            is(case, "Job", Operation::Aggregate)
                && ours.as_ref().is_ok_and(|ours| ours.to_string().contains("FailureTarget"))
                && only(ours, theirs, &["/conditions"])
        },
    },
    Accepted {
        why: "a claim of which no member has said anything is not Bound",
        is: |case, _, _| {
            is(case, "PersistentVolumeClaim", Operation::Aggregate)
                && case.items.iter().all(|(_, status)| status.is_null())
        },
    },
    Accepted {
        why: "the statuses of containers keep name, image and restarts",
        is: |case, ours, theirs| {
            is(case, "Pod", Operation::Aggregate)
                && only(ours, theirs, &["/containerStatuses", "/initContainerStatuses"])
        },
    },
    Accepted {
        why: "a Pod that exists keeps the containers it has: none can be added or removed",
        is: |case, ours, theirs| {
            is(case, "Pod", Operation::Retain) && only(ours, theirs, &["/spec/containers", "/spec/initContainers"])
        },
    },
    Accepted {
        why: "a Service keeps all its addresses, and none when it becomes a mere name",
        is: |case, ours, theirs| {
            is(case, "Service", Operation::Retain) && only(ours, theirs, &["/spec/clusterIP", "/spec/clusterIPs"])
        },
    },
];

/// Whether it is one that says in a condition Ready how it is.
fn is_ready_kind(case: &Case) -> bool {
    let group = case.at("/apiVersion").and_then(Value::as_str).unwrap_or_default();
    group.contains("fluxcd") || group.contains("kyverno")
}

pub const KNOWN: &[Accepted] = &[
    Accepted {
        why: "sidecars run beside the other containers, so both are counted",
        is: |case, ours, theirs| {
            let asked = matches!(case.operation, Operation::Replicas | Operation::Components);
            asked && ours.is_ok() && theirs.is_ok() && case.object.to_string().contains(r#""restartPolicy":"Always""#)
        },
    },
    Accepted {
        why: "cores that Spark asks for, hosts of a group of Ray and shares of nodes count",
        is: |case, ours, _| {
            let parts = ["coreRequest", "numOfHosts", "50%"];
            std::env::var("X").is_err()
                && ours.is_ok()
                && parts.iter().any(|part| case.object.to_string().contains(part))
        },
    },
    Accepted {
        why: "a field that is missing is no failure; scripts of the original stumble over it",
        is: |_, ours, theirs| ours.is_ok() && (fails(theirs, "<string>:") || fails(theirs, "is not number")),
    },
    Accepted {
        why: "a workload without dependencies has none, which is no failure",
        is: |case, ours, theirs| {
            case.operation == Operation::Dependencies
                && *ours == Ok(Value::Array(Vec::new()))
                && fails(theirs, "got nil")
        },
    },
    Accepted {
        why: "the pods of a UnitedDeployment are those of the workload it is made of",
        is: |case, ours, _| {
            case.kind() == "UnitedDeployment" && ours.is_ok() && case.at("/spec/template/cloneSetTemplate").is_some()
        },
    },
    Accepted {
        why: "a cluster of Ray that has no conditions yet is ready when its state is",
        is: |case, _, _| is(case, "RayCluster", Operation::Health) && case.at("/status/conditions").is_none(),
    },
    Accepted {
        why: "jobs of Volcano and MPI and clusters of Ray have dependencies, too",
        is: |case, ours, theirs| case.operation == Operation::Dependencies && ours.is_ok() && fails(theirs, "no hook"),
    },
    Accepted {
        why: "empty objects of a list stay",
        is: |_, ours, theirs| ours.as_ref().is_ok_and(|ours| ours.to_string().contains("[{}")) && theirs.is_ok(),
    },
    Accepted {
        why: "what is Ready is well for whatever reason, but only when it has seen its generation",
        is: |case, ours, theirs| {
            case.operation == Operation::Health && is_ready_kind(case) && ours.is_ok() && theirs.is_ok()
        },
    },
    Accepted {
        why: "what no member says any more is gone",
        is: |case, ours, theirs| {
            let fields = ["/helmChart", "/lastAppliedRevision", "/lastAttemptedRevision"];
            case.operation == Operation::Aggregate && only(ours, theirs, &fields)
        },
    },
    Accepted {
        why: "the generation that a HelmChart has seen is collected",
        is: |case, ours, theirs| {
            is(case, "HelmChart", Operation::Reflect) && only(ours, theirs, &["/observedGeneration"])
        },
    },
    Accepted {
        why: "amounts of Flink are written as its users write them",
        is: |case, ours, theirs| {
            let fields = [0, 1].map(|at| format!("/{at}/replicaRequirements/resourceRequest/memory"));
            is(case, "FlinkDeployment", Operation::Components)
                && only(ours, theirs, &fields.each_ref().map(String::as_str))
        },
    },
    Accepted {
        why: "the newest time of a schedule counts, not the last that was read",
        is: |case, ours, theirs| {
            is(case, "AdvancedCronJob", Operation::Aggregate) && only(ours, theirs, &["/lastScheduleTime", "/active"])
        },
    },
    Accepted {
        why: "a member's Job has not failed because the one before it did",
        is: |case, ours, theirs| {
            is(case, "BroadcastJob", Operation::Aggregate) && only(ours, theirs, &["/conditions", "/phase"])
        },
    },
];

/// Whether the script has one of these parts.
fn has(case: &Case, parts: &[&str]) -> bool {
    case.lua.as_ref().is_some_and(|lua| parts.iter().any(|part| lua.contains(part)))
}

pub const SCRIPTS: &[Accepted] = &[
    Accepted {
        why: "an empty list of statuses is a list, not nil",
        is: |case, _, theirs| case.operation == Operation::Aggregate && case.items.is_empty() && theirs.is_err(),
    },
    Accepted {
        why: "a number that cannot be a count of replicas is refused, not cut to 32 bits",
        is: |case, ours, _| case.operation == Operation::Replicas && has(case, &["1e20", "0/0"]) && ours.is_err(),
    },
    Accepted {
        why: "numbers and texts are those of Lua 5.1: large numbers have an exponent, tonumber reads one, letters are bytes, there is no goto",
        is: |case, _, _| has(case, &["(1e15 .. '')", "tonumber('1e2')", "lower('Ä", "goto done", "insert(t, 9,"]),
    },
    Accepted {
        why: "answers must be repeatable: there is no random",
        is: |case, ours, _| has(case, &["math.random"]) && ours.is_err(),
    },
    Accepted {
        why: "string.rep and string.gsub work, within bounds",
        is: |case, ours, theirs| has(case, &["rep(", "gsub("]) && ours.is_ok() && fails(theirs, "not supported"),
    },
    Accepted {
        why: "a malformed pattern or a missing argument of a format is an error",
        is: |case, ours, _| has(case, &["match('a', '%')", "format('%s'))"]) && ours.is_err(),
    },
    Accepted {
        why: "libraries that lead outside are not there, the others cannot be changed",
        is: |case, _, _| has(case, &["string.dump", "package ~= nil", "string.upper = nil"]),
    },
    Accepted { why: "pcall gives errors as texts", is: |case, _, _| has(case, &["pcall(error, {code"]) },
    Accepted {
        why: "the day of the year is told",
        is: |case, ours, theirs| has(case, &["os.date('*t'"]) && only(ours, theirs, &["/v/yday"]),
    },
    Accepted {
        why: "functions of kube take numbers as amounts, and do not count their arguments",
        is: |case, ours, theirs| has(case, &["kube."]) && ours.is_ok() && theirs.is_err(),
    },
    Accepted {
        why: "no dependencies are an empty list, not nil",
        is: |case, ours, theirs| has(case, &["kube.getPodDependencies"]) && only(ours, theirs, &["/t"]),
    },
    Accepted {
        why: "one table may stand in two places of an answer",
        is: |case, ours, theirs| ours.is_ok() && case.lua.is_some() && fails(theirs, "recursively nested"),
    },
    Accepted {
        why: "a status is an object, never a list",
        is: |case, ours, theirs| {
            case.operation == Operation::Reflect && ours.is_err() && theirs.as_ref().is_ok_and(Value::is_array)
        },
    },
    Accepted {
        why: "an empty table that a script puts or moves somewhere stays, as what it was",
        is: |case, ours, theirs| {
            let mut answers = [ours.clone(), theirs.clone()].map(Result::unwrap_or_default);
            answers.iter_mut().for_each(crate::case::strip);
            ours.is_ok() && case.lua.is_some() && answers[0] == answers[1]
        },
    },
    Accepted { why: "empty objects of a list stay", is: |case, _, _| has(case, &["return ({{}, {}})"]) },
    Accepted {
        why: "numbers beyond 53 bits and nulls in lists stay as they were",
        is: |case, ours, theirs| case.at("/spec/big").is_some() && only(ours, theirs, &["/spec/big", "/spec/nothing"]),
    },
];
