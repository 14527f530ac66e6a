#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn good() -> Trace {
    let object = ObjectTrace {
        exists: Some(true),
        health: "Healthy".into(),
        replicas: Some(2),
        ready: Some(2),
        ..ObjectTrace::default()
    };
    let work = WorkTrace { name: "w".into(), applied: "True".into(), ..WorkTrace::default() };
    Trace {
        subject: "Deployment default/web".into(),
        template: Some(TemplateTrace { replicas: Some(2), ready: Some(2), ..TemplateTrace::default() }),
        policy: Some(PolicyTrace {
            name: "PropagationPolicy default/p".into(),
            exists: true,
            ..PolicyTrace::default()
        }),
        binding: Some(BindingTrace {
            name: "web-deployment".into(),
            clusters: BTreeMap::from([("m1".to_owned(), 2)]),
            ..BindingTrace::default()
        }),
        clusters: vec![ClusterTrace {
            name: "m1".into(),
            ready: true,
            target: true,
            work: Some(work),
            object: Some(object),
            ..ClusterTrace::default()
        }],
        obstacle: None,
    }
}

#[test]
fn the_first_obstacle_is_named() {
    type Break = fn(&mut Trace);
    let cases: Vec<(Break, Option<&str>)> = vec![
        (|_| {}, None),
        (|t| t.template = None, Some("Deployment default/web does not exist")),
        (
            |t| {
                t.policy = None;
                t.binding = None;
                t.template.as_mut().unwrap().near_policies = 2;
            },
            Some("No policy selects Deployment default/web; 2 policies"),
        ),
        (
            |t| {
                t.policy = None;
                t.binding = None;
                let template = t.template.as_mut().unwrap();
                (template.near_policies, template.skipped) = (2, Some("namespace lab is left out".into()));
            },
            Some("Deployment default/web is never propagated: namespace lab is left out."),
        ),
        (|t| t.policy.as_mut().unwrap().exists = false, Some("does not exist any more")),
        (
            |t| t.policy.as_mut().unwrap().missing_priority_class = Some("gold".into()),
            Some("PropagationPolicy default/p names PriorityClass gold, which does not exist."),
        ),
        (
            |t| {
                t.template.as_mut().unwrap().unreadable = Some("script failed in GetReplicas: no idea".into());
                t.binding = None;
            },
            Some("The interpreter cannot read Deployment default/web: script failed in GetReplicas: no idea."),
        ),
        (
            |t| {
                t.template.as_mut().unwrap().unreadable = Some("no idea".into());
                t.policy = None;
            },
            Some("The interpreter cannot read Deployment default/web: no idea."),
        ),
        (
            |t| {
                t.clusters.insert(0, ClusterTrace { name: "m0".into(), target: true, ..ClusterTrace::default() });
                t.clusters[1].unmade = Some("override policy o: no such path".into());
            },
            Some("The copy for cluster m1 cannot be made: override policy o: no such path."),
        ),
        (
            |t| t.clusters[0].work.as_mut().unwrap().behind = Some("generation 1 of the work is applied".into()),
            Some("The last change has not reached cluster m1: generation 1 of the work is applied."),
        ),
        (|t| t.policy.as_mut().unwrap().missing_overrides = vec!["o".into()], Some("waits for override policy o")),
        (
            |t| {
                t.binding = None;
                t.policy.as_mut().unwrap().lazy = true;
            },
            Some("is lazy"),
        ),
        (|t| t.binding.as_mut().unwrap().suspended = true, Some("Scheduling is suspended")),
        (|t| t.binding.as_mut().unwrap().scheduler = "other".into(), Some("Scheduler other")),
        (
            |t| {
                t.binding.as_mut().unwrap().decision =
                    Some(Record { error: Some(("NoClusterFit".into(), "0/3 clusters".into())), ..Record::default() })
            },
            Some("No place was found (NoClusterFit): 0/3 clusters."),
        ),
        (|t| t.clusters[0].ready = false, Some("Cluster m1 is not ready")),
        (|t| t.clusters[0].work = None, Some("There is no work for cluster m1")),
        (|t| t.clusters[0].work.as_mut().unwrap().suspended = true, Some("Dispatching to cluster m1 is suspended")),
        (
            |t| {
                let work = t.clusters[0].work.as_mut().unwrap();
                work.applied = "False".into();
                work.message = "already exists".into();
            },
            Some("Cluster m1 did not accept it: already exists."),
        ),
        (|t| t.clusters[0].object.as_mut().unwrap().exists = None, Some("Cluster m1 cannot be asked")),
        (|t| t.clusters[0].object.as_mut().unwrap().exists = Some(false), Some("missing in cluster m1")),
        (
            |t| {
                let object = t.clusters[0].object.as_mut().unwrap();
                object.health = "Unhealthy".into();
                object.ready = Some(1);
            },
            Some("1 of 2 replicas are ready"),
        ),
        (
            |t| {
                let object = t.clusters[0].object.as_mut().unwrap();
                object.health = "Unhealthy".into();
                object.pods = vec![PodTrace { name: "p".into(), phase: "Pending".into(), reason: "no room".into() }];
            },
            Some("pod p is Pending: no room."),
        ),
    ];
    for (breaking, expected) in cases {
        let mut trace = good();
        breaking(&mut trace);
        trace.obstacle = obstacle(&trace);
        match (&trace.obstacle, expected) {
            (None, None) => assert!(trace.to_string().contains("Nothing stands in the way")),
            (Some(found), Some(part)) => assert!(found.contains(part), "{found} / {part}"),
            (found, expected) => panic!("{found:?} / {expected:?}"),
        }
    }
}

#[test]
fn a_work_that_has_not_caught_up_is_told() {
    let work = |made_from: &str, generation: i64, applied: serde_json::Value| {
        serde_json::from_value(json!({"metadata": {"generation": generation},
            "spec": {"workload": {"manifests": [{"metadata": {"annotations": {"resourcetemplate.karmada.io/generation": made_from}}}]}},
            "status": {"conditions": [{"type": "Applied", "status": "True", "reason": "R", "message": "",
                "observedGeneration": applied, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
        .unwrap()
    };
    let template = json!({"metadata": {"generation": 4}});
    for (work, template, expected) in [
        (work("4", 2, json!(2)), Some(&template), None),
        (
            work("3", 2, json!(2)),
            Some(&template),
            Some("the work is made from generation 3 of the template, which is at 4"),
        ),
        (work("3", 2, json!(2)), None, None),
        (work("4", 2, json!(1)), Some(&template), Some("generation 1 of the work is applied, which is at 2")),
        // The original's agent does not say which.
        (work("4", 2, json!(null)), Some(&template), None),
    ] {
        assert_eq!(gather::behind(&work, template).as_deref(), expected);
    }
}

#[test]
fn pods_tell_what_keeps_them() {
    for (status, expected) in [
        (json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), None),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]}),
            Some("0/1 nodes"),
        ),
        (
            json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}),
            Some("ImagePullBackOff no such image"),
        ),
    ] {
        let pod = json!({"metadata": {"name": "p"}, "status": status});
        assert_eq!(gather::pod_trace(&pod).map(|pod| pod.reason).as_deref(), expected);
    }
}

#[test]
fn replicas_are_counted_over_all_clusters() {
    let mut trace = good();
    assert!(trace.to_string().contains("  2 of 2 replicas wanted are ready\n"), "{trace}");
    trace.template.as_mut().unwrap().ready = Some(4);
    trace.binding.as_mut().unwrap().clusters.insert("m2".to_owned(), 2);
    assert!(trace.to_string().contains("  4 of 4 replicas wanted are ready\n"), "{trace}");
    trace.binding = None;
    trace.template.as_mut().unwrap().replicas = Some(1);
    trace.template.as_mut().unwrap().ready = None;
    assert!(trace.to_string().contains("  0 of 1 replica wanted is ready\n"), "{trace}");
}
