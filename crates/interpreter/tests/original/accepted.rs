//! Differences that stay, with their reasons.

use atoll_interpreter::{Interpreter, Operation};
use serde_json::{Value, json};

use crate::case::{Accepted, Case, Said, compare};
use crate::random::put;

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

/// What we say if this were the object; nothing for what is not asked of built-in kinds with wrong types.
fn says(case: &Case, mut object: Value) -> Option<Value> {
    let it = Interpreter::new();
    Some(match case.operation {
        Operation::Replicas => {
            let (replicas, needs) = it.replicas(&object).ok()??;
            json!([replicas, needs.map(atoll_api::work::ReplicaRequirements::from)])
        }
        Operation::Retain => {
            it.retain(&mut object, &case.observed).ok()?;
            object
        }
        Operation::Reflect => json!({"status": it.try_reflect(&object).ok()?}),
        Operation::Aggregate => {
            it.try_aggregate(&mut object, &case.items).ok()?;
            json!({"status": object["status"]})
        }
        Operation::Health => json!(it.try_health(&object).ok()?.as_str()),
        Operation::Dependencies => json!(it.try_dependencies(&object).ok()?),
        Operation::Components | Operation::Revise => return None,
    })
}

/// The places of an object where this stands.
fn places(value: &Value, wanted: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, one)| (key.replace('~', "~0").replace('/', "~1"), one)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, one)| (at.to_string(), one)).collect(),
        _ => return,
    };
    for (key, one) in inner {
        let place = format!("{at}/{key}");
        places(one, wanted, &place, found);
        if one == wanted {
            found.push(place);
        }
    }
}

/// Whether there is something of the type that the original complains of, without which we say the same; where
/// it would itself be part of the answer, it stays.
fn counts_as_missing(case: &Case, theirs: &Said) -> bool {
    // What is put in place of an object or a list, of a text and of a number.
    let wrong = [
        (json!(true), "from bool"),
        (json!(true), "from: bool"),
        (json!(true), "unmarshal bool"),
        (json!(true), "of the type bool"),
        (json!(true), "is not a map"),
        (json!(5), "cannot convert int64 to"),
        (json!("many"), "unrecognized type: int32"),
    ];
    let Some((wrong, _)) = wrong.into_iter().find(|(_, words)| fails(theirs, words)) else { return false };
    let mut found = Vec::new();
    places(&case.object, &wrong, "", &mut found);
    found.iter().any(|place| {
        let mut without = case.object.clone();
        put(&mut without, place, Value::Null);
        let mut answers = [case.object.clone(), without].map(|object| says(case, object).unwrap_or_default());
        if answers[0].pointer(place) == Some(&wrong) {
            answers.iter_mut().for_each(|answer| put(answer, place, Value::Null));
        }
        answers.iter_mut().for_each(crate::case::strip);
        !answers[0].is_null() && answers[0] == answers[1]
    })
}

/// Whether a ServiceAccount names what the template's and the member's name, and is the template's otherwise.
fn keeps_all_entries(case: &Case, ours: &Value) -> bool {
    let lists = ["/secrets", "/imagePullSecrets"];
    let same = lists.iter().all(|list| {
        let names = |object: &Value| -> std::collections::BTreeSet<String> {
            let entries = object.pointer(list).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(|entry| entry["name"].as_str()).map(ToOwned::to_owned).collect()
        };
        names(ours) == &names(&case.object) | &names(&case.observed)
    });
    same && only(&Ok(ours.clone()), &Ok(case.object.clone()), &lists)
}

pub const BUILTIN: &[Accepted] = &[
    Accepted {
        why: "a field of a wrong type, which no API server lets pass, counts as missing; the original fails",
        is: |case, ours, theirs| ours.is_ok() && counts_as_missing(case, theirs),
    },
    Accepted {
        why: "an entry without a name stops nothing; the original crashes",
        is: |case, ours, theirs| {
            is(case, "ServiceAccount", Operation::Retain)
                && fails(theirs, "panic: interface conversion: interface {} is nil, not string")
                && ours.as_ref().is_ok_and(|ours| keeps_all_entries(case, ours))
        },
    },
    Accepted {
        why: "a status is collected even where the note of the template's generation was lost",
        is: |case, _, theirs| case.operation == Operation::Reflect && fails(theirs, "strconv.ParseInt"),
    },
    Accepted {
        why: "replicas that nobody states are one, as API servers say, not none",
        is: |case, ours, theirs| {
            let silent = case.at("/spec/replicas").or(case.at("/spec/parallelism")).is_none();
            let count = |said: &Said| said.as_ref().ok().map(|said| said["replicas"].as_i64().unwrap_or_default());
            let one = count(ours) == Some(1) && count(theirs) == Some(0);
            case.operation == Operation::Replicas && silent && one && only(ours, theirs, &["/replicas"])
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

/// The same without empty objects in lists.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, one)| (key.clone(), without_empty(one))).collect(),
        Value::Array(list) => list.iter().filter(|one| **one != json!({})).map(without_empty).collect(),
        other => other.clone(),
    }
}

/// Whether only this field of parts differs.
fn only_of_parts(ours: &Said, theirs: &Said, field: &str) -> bool {
    let fields: Vec<String> = (0..8).map(|at| format!("/{at}/{field}")).collect();
    only(ours, theirs, &fields.iter().map(String::as_str).collect::<Vec<_>>())
}

const GROUPS: &str = "/spec/rayClusterConfig/workerGroupSpecs";

/// The workers of each group of a RayService.
fn workers(said: &Said) -> Vec<i64> {
    let groups = said.as_ref().ok().and_then(|said| said.pointer(GROUPS)).and_then(Value::as_array);
    groups.into_iter().flatten().map(|group| group["replicas"].as_i64().unwrap_or_default()).collect()
}

const RAY: Accepted = Accepted {
    why: "each host of a worker of Ray is a pod of its component; no group gets fewer workers than none, which members would refuse",
    is: |case, ours, theirs| match case.operation {
        Operation::Components => {
            ["RayCluster", "RayJob"].contains(&case.kind())
                && case.object.to_string().contains("numOfHosts")
                && only_of_parts(ours, theirs, "replicas")
        }
        Operation::Revise => {
            let fields: Vec<String> = (0..8).map(|at| format!("{GROUPS}/{at}/replicas")).collect();
            let (us, them) = (workers(ours), workers(theirs));
            case.kind() == "RayService"
                && them.iter().any(|count| *count < 0)
                && us.iter().all(|count| *count >= 0)
                && us.iter().sum::<i64>() == them.iter().sum::<i64>()
                && only(ours, theirs, &fields.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => false,
    },
};

const STUMBLES: Accepted = Accepted {
    why: "a field that is missing or cannot be read is no failure; scripts of the original stumble over it",
    is: |case, ours, theirs| {
        let asked = matches!(case.operation, Operation::Components | Operation::Aggregate);
        asked && ours.is_ok() && fails(theirs, "<string>:") && fails(theirs, "nil")
    },
};

#[test]
fn services_of_ray_are_divided_as_in_the_original_unless_a_group_would_get_less_than_none() {
    let mut cases = Vec::new();
    for (replicas, hosts) in [(vec![2], 4), (vec![2, 3], 2), (vec![1; 5], 1), (vec![1; 4], 3), (vec![0, 0, 0], 1)] {
        let group = |count: &i64| json!({"replicas": count, "numOfHosts": hosts, "template": {"spec": {}}});
        let groups: Vec<Value> = replicas.iter().map(group).collect();
        let service = json!({"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "it"},
            "spec": {"rayClusterConfig": {"headGroupSpec": {"template": {"spec": {}}}, "workerGroupSpecs": groups}}});
        cases.push(Case::new(Operation::Replicas, &service));
        for wanted in 0..10 {
            cases.push(Case { replicas: wanted, ..Case::new(Operation::Revise, &service) });
        }
    }
    compare("services of Ray", &cases, &[RAY]);
}

#[test]
fn memory_of_spark_that_the_original_reads_is_read_the_same() {
    let cases: Vec<Case> = ["512m", "1g", "2GB", "1048576k", "1.5g", "1024", "much"]
        .iter()
        .map(|memory| {
            let spec = json!({"type": "Java", "driver": {"memory": memory}, "executor": {"memoryOverhead": memory}});
            let job = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication",
                "metadata": {"name": "it"}, "spec": spec});
            Case::new(Operation::Components, &job)
        })
        .collect();
    compare("memory of Spark", &cases, &[STUMBLES]);
}

pub const KNOWN: &[Accepted] = &[
    Accepted {
        why: "sidecars run beside the other containers, so both are counted",
        is: |case, ours, theirs| {
            let asked = case.object.to_string().contains(r#""restartPolicy":"Always""#);
            match case.operation {
                Operation::Replicas => asked && only(ours, theirs, &["/requirements/resourceRequest"]),
                Operation::Components => asked && only_of_parts(ours, theirs, "replicaRequirements/resourceRequest"),
                _ => false,
            }
        },
    },
    Accepted {
        why: "the cores that Spark asks for count",
        is: |case, ours, theirs| {
            let asked =
                ["driver", "executor"].iter().any(|part| case.at(&format!("/spec/{part}/coreRequest")).is_some());
            is(case, "SparkApplication", Operation::Components)
                && asked
                && only_of_parts(ours, theirs, "replicaRequirements/resourceRequest/cpu")
        },
    },
    RAY,
    Accepted {
        why: "a share of the nodes on which a BroadcastJob runs counts as one replica, and stays a share in each member",
        is: |case, ours, theirs| {
            let share = case.at("/spec/parallelism").and_then(Value::as_str).is_some_and(|text| text.ends_with('%'));
            let right = match case.operation {
                Operation::Replicas => {
                    fails(theirs, "is not number") && ours.as_ref().is_ok_and(|ours| ours["replicas"] == 1)
                }
                Operation::Revise => only(ours, &Ok(case.object.clone()), &[]),
                _ => false,
            };
            case.kind() == "BroadcastJob" && share && right
        },
    },
    STUMBLES,
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
            let asked = matches!(case.operation, Operation::Replicas | Operation::Dependencies);
            let made = case.at("/spec/template/cloneSetTemplate").is_some();
            case.kind() == "UnitedDeployment" && asked && ours.is_ok() && made
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
        is: |_, ours, theirs| match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => only(&Ok(without_empty(ours)), &Ok(without_empty(theirs)), &[]),
            _ => false,
        },
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

#[test]
fn what_is_accepted_of_one_operation_or_field_is_not_accepted_of_another() {
    let object = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec});
    let crash = || Err("panic: interface conversion: interface {} is nil, not string".to_owned());
    let wrong = || Err("cannot restore struct from: bool".to_owned());
    let deployment = object("apps/v1", "Deployment", json!({"replicas": 2, "paused": true}));
    let group = |replicas: i64| json!({"rayClusterConfig": {"headGroupSpec": {"template": {}}, "workerGroupSpecs": [{"replicas": replicas, "numOfHosts": 4}]}});
    let service = |replicas: i64| object("ray.io/v1", "RayService", group(replicas));
    let spark = object("sparkoperator.k8s.io/v1beta2", "SparkApplication", json!({"driver": {"coreRequest": "1"}}));
    let job = object("apps.kruise.io/v1alpha1", "BroadcastJob", json!({"parallelism": "50%"}));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "it"}, "secrets": [{}, {"name": "a"}]});
    let count = |replicas: i64| Ok(json!({"replicas": replicas}));
    let lost = Ok(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "it"}, "secrets": [{}]}));
    for (operation, object, ours, theirs) in [
        (Operation::Health, &deployment, Ok(json!(true)), crash()),
        (Operation::Retain, &account, lost, crash()),
        (Operation::Revise, &deployment, Ok(deployment.clone()), wrong()),
        (Operation::Health, &object("apps/v1", "Deployment", json!({})), Ok(json!(true)), wrong()),
        (Operation::Replicas, &service(2), count(9), count(3)),
        (Operation::Revise, &service(2), Ok(service(8)), Ok(service(2))),
        (Operation::Health, &spark, Ok(json!(true)), Ok(json!(false))),
        (Operation::Replicas, &job, count(1), count(7)),
    ] {
        let case = Case::new(operation, object);
        for one in BUILTIN.iter().chain(KNOWN) {
            assert!(!(one.is)(&case, &ours, &theirs), "{} {}: {}", case.kind(), operation.as_str(), one.why);
        }
    }
}
