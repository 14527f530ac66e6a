//! The commands of karmadactl, one test each.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use atoll_testkit::peers;
use serde_json::{Value, json};

use crate::fleet::{Fleet, Running, config_map, deployment, policy};

/// A Deployment of two replicas whose pods run in both members; its pod in member1 is given.
fn running(fleet: &Fleet, name: &str) -> String {
    fleet.apply("fleet", &deployment(name, 2));
    let selector = format!("app={name}");
    for member in ["member1", "member2"] {
        fleet.until(member, &["pods", "-l", &selector], |pod| pod["status"]["phase"] == "Running");
    }
    let pods = fleet.get("member1", &["pods", "-l", &selector]).unwrap();
    pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn taints(fleet: &Fleet, cluster: &str) -> Vec<Value> {
    fleet.get("fleet", &["clusters", cluster]).unwrap()["spec"]["taints"].as_array().cloned().unwrap_or_default()
}

#[test]
fn get_shows_templates_and_copies_with_cluster_and_adoption() {
    let Some(fleet) = Fleet::shared() else { return };
    running(&fleet, "getter");
    let text = fleet
        .karmadactl(&["get"], &["deployments", "getter", "--operation-scope", "all", "-C", "member1,member2"])
        .ok();
    assert!(text.lines().next().unwrap().contains("CLUSTER") && text.contains("ADOPTION"), "{text}");
    for (cluster, adopted) in [("Karmada", "-"), ("member1", "Y"), ("member2", "Y")] {
        let line =
            text.lines().find(|line| line.contains(cluster)).unwrap_or_else(|| panic!("no {cluster} in\n{text}"));
        assert!(line.trim_end().ends_with(adopted), "{line}");
    }
    let pods = fleet.karmadactl(&["get"], &["pods", "-C", "member2", "--operation-scope", "members"]).ok();
    assert!(pods.contains("getter-") && pods.contains("member2") && !pods.contains("member1"), "{pods}");
    let clusters = fleet.karmadactl(&["get"], &["clusters", "-o", "wide"]).ok();
    assert!(clusters.contains("REGION") && clusters.contains("member1"), "{clusters}");
}

#[test]
fn describe_tells_of_templates_and_of_copies() {
    let Some(fleet) = Fleet::shared() else { return };
    running(&fleet, "described");
    let template = fleet.karmadactl(&["describe"], &["deployment", "described"]).ok();
    assert!(template.contains("propagationpolicy.karmada.io/name: everywhere"), "{template}");
    let copy = fleet
        .karmadactl(&["describe"], &["deployment", "described", "--operation-scope", "members", "-C", "member1"])
        .ok();
    assert!(copy.contains("karmada.io/managed=true"), "{copy}");
    let cluster = fleet.karmadactl(&["describe"], &["cluster", "member1"]).ok();
    assert!(cluster.contains("Cluster is Ready") || cluster.contains("ClusterReady"), "{cluster}");
}

#[test]
fn join_makes_a_member_and_unjoin_leaves_no_trace() {
    let Some(fleet) = Fleet::shared() else { return };
    let kubeconfig = fleet.simulate("joiner");
    let way = format!("--cluster-kubeconfig={}", kubeconfig.display());
    let arguments = ["joiner", &way, "--cluster-context=joiner", "--cluster-region=south"];
    let joined = fleet.karmadactl(&["join"], &arguments).ok();
    assert!(joined.contains("cluster(joiner) is joined successfully"), "{joined}");
    fleet.ready("joiner");
    let cluster = fleet.get("fleet", &["clusters", "joiner"]).unwrap();
    assert_eq!((&cluster["spec"]["syncMode"], &cluster["spec"]["region"]), (&json!("Push"), &json!("south")));
    let twice = fleet.karmadactl(&["join"], &["second", &way, "--cluster-context=joiner"]).fails();
    assert!(twice.contains("same cluster") || twice.contains("already") || twice.contains("registered"), "{twice}");
    fleet.apply("fleet", &config_map("visitor", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "visitor", &["joiner"]));
    let kube = kubeconfig.display().to_string();
    fleet.there("joiner", &["--kubeconfig", &kube, "configmap/visitor"]);
    fleet.karmadactl(&["unjoin"], &["joiner", &way, "--cluster-context=joiner"]).ok();
    assert!(fleet.get("fleet", &["clusters", "joiner"]).is_none());
    assert!(
        fleet
            .get("fleet", &["namespaces", "karmada-es-joiner"])
            .is_none_or(|left| !left["metadata"]["deletionTimestamp"].is_null())
    );
    let left = fleet.kubectl("joiner", &["--kubeconfig", &kube, "get", "configmap", "visitor"]);
    assert_ne!(left.code, 0, "the copy went with the member: {}", left.stdout);
    let rights = fleet.kubectl("joiner", &["--kubeconfig", &kube, "get", "clusterroles", "-o", "name"]).ok();
    assert!(!rights.contains("karmada-controller-manager:"), "{rights}");
}

#[test]
fn cordon_keeps_new_workloads_away_until_uncordon() {
    let Some(fleet) = Fleet::shared() else { return };
    let kubeconfig = fleet.simulate("cordoned");
    let way = format!("--cluster-kubeconfig={}", kubeconfig.display());
    fleet.karmadactl(&["join"], &["cordoned", &way, "--cluster-context=cordoned"]).ok();
    fleet.ready("cordoned");
    fleet.karmadactl(&["cordon"], &["cordoned"]).ok();
    let marked = taints(&fleet, "cordoned");
    assert!(marked.iter().any(|taint| taint["key"] == "cluster.karmada.io/unschedulable"), "{marked:?}");
    fleet.apply("fleet", &config_map("cordon", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "cordon", &["cordoned"]));
    let binding = ["resourcebindings", "--field-selector=metadata.name=cordon-configmap"];
    // The refusal is told.
    fleet.until("fleet", &binding, |binding| {
        let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Scheduled" && c["reason"] == "NoClusterFit")
    });
    fleet.karmadactl(&["uncordon"], &["cordoned"]).ok();
    fleet.until("fleet", &binding, |binding| binding["spec"]["clusters"][0]["name"] == "cordoned");
    fleet.karmadactl(&["unjoin"], &["cordoned", &way, "--cluster-context=cordoned"]).ok();
}

#[test]
fn taint_marks_and_unmarks_a_cluster() {
    let Some(fleet) = Fleet::shared() else { return };
    fleet.karmadactl(&["taint"], &["clusters", "member2", "team=blue:PreferNoSchedule"]).ok();
    assert!(taints(&fleet, "member2").iter().any(|taint| taint["key"] == "team" && taint["value"] == "blue"));
    fleet.karmadactl(&["taint"], &["clusters", "member2", "team:PreferNoSchedule-"]).ok();
    assert!(!taints(&fleet, "member2").iter().any(|taint| taint["key"] == "team"));
}

#[test]
fn promote_makes_a_template_of_what_a_member_has() {
    let Some(fleet) = Fleet::shared() else { return };
    fleet.apply("member1", &config_map("promoted", "first"));
    let text = fleet.karmadactl(&["promote"], &["configmap", "promoted", "-C", "member1", "-n", "default"]).ok();
    assert!(text.contains("promoted successfully"), "{text}");
    let copy = ["configmaps", "--field-selector=metadata.name=promoted"];
    fleet.until("member1", &copy, |copy| copy["metadata"]["labels"]["karmada.io/managed"] == "true");
    fleet.apply("fleet", &config_map("promoted", "second"));
    fleet.until("member1", &copy, |copy| copy["data"]["key"] == "second");
}

#[test]
fn apply_spreads_to_all_or_to_named_clusters() {
    let Some(fleet) = Fleet::shared() else { return };
    let file = fleet.file("applied.json", &config_map("applied", "1").to_string()).display().to_string();
    let said = fleet.karmadactl(&["apply"], &["-f", &file, "--all-clusters"]).ok();
    assert!(said.contains("configmap/applied created") && said.contains("propagationpolicy"), "{said}");
    for member in ["member1", "member2"] {
        fleet.there(member, &["configmap/applied"]);
    }
    fleet.karmadactl(&["apply"], &["-f", &file, "-C", "member2"]).ok();
    fleet.gone("member1", &["configmap/applied"]);
    assert!(fleet.get("member2", &["configmap", "applied"]).is_some());
}

#[test]
fn logs_and_exec_reach_pods_through_the_instance() {
    let Some(fleet) = Fleet::shared() else { return };
    let pod = running(&fleet, "talker");
    let logs = fleet.karmadactl(&["logs"], &[&pod, "-C", "member1"]).ok();
    assert!(!logs.trim().is_empty(), "logs");
    let said = fleet
        .karmadactl(&["exec"], &[&pod, "--operation-scope", "members", "--cluster", "member1", "--", "echo", "here"])
        .ok();
    assert_eq!(said.trim(), "here");
}

#[test]
fn attach_shows_what_a_container_of_a_member_says() {
    let Some(fleet) = Fleet::shared() else { return };
    let mut ticker = deployment("ticker", 2);
    ticker["spec"]["template"]["spec"]["containers"][0]["command"] =
        json!(["sh", "-c", "while true; do echo tick; sleep 1; done"]);
    fleet.apply("fleet", &ticker);
    let pod = fleet.until("member1", &["pods", "-l", "app=ticker"], |pod| pod["status"]["phase"] == "Running");
    let pod = pod["metadata"]["name"].as_str().unwrap();
    let mut attach = fleet.karmadactl_command(&["attach"]);
    attach.args([pod, "--operation-scope", "members", "--cluster", "member1", "--quiet"]);
    let mut process = attach.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let told = BufReader::new(process.stdout.take().unwrap());
    let _running = Running(process);
    assert_eq!(told.lines().next().unwrap().unwrap(), "tick");
}

#[test]
fn patch_label_annotate_and_edit_change_templates_and_their_copies() {
    let Some(fleet) = Fleet::shared() else { return };
    fleet.apply("fleet", &config_map("edited", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "edited", &["member1"]));
    let patch = json!({"data": {"patched": "yes"}}).to_string();
    fleet.karmadactl(&["patch"], &["configmap", "edited", "--type", "merge", "-p", &patch]).ok();
    fleet.karmadactl(&["label"], &["configmap", "edited", "team=blue"]).ok();
    fleet.karmadactl(&["annotate"], &["configmap", "edited", "note=seen"]).ok();
    let twice = fleet.karmadactl(&["label"], &["configmap", "edited", "team=red"]).fails();
    assert!(twice.contains("--overwrite"), "{twice}");
    let script = fleet.file("editor", "#!/bin/sh\nsed -i 's/patched: \"*yes\"*/patched: edited/' \"$1\"\n");
    let mut edit = fleet.karmadactl_command(&["edit"]);
    edit.env("EDITOR", format!("sh {}", script.display())).args(["configmap", "edited"]);
    let said = peers::run(&mut edit).ok();
    assert!(said.contains("configmap/edited edited"), "{said}");
    fleet.until("member1", &["configmaps", "--field-selector=metadata.name=edited"], |copy| {
        let meta = &copy["metadata"];
        copy["data"]["patched"] == "edited" && meta["labels"]["team"] == "blue" && meta["annotations"]["note"] == "seen"
    });
}

#[test]
fn create_and_delete_reach_members_and_resources_are_listed() {
    let Some(fleet) = Fleet::shared() else { return };
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "made", &["member1"]));
    let file = fleet.file("made.json", &config_map("made", "1").to_string()).display().to_string();
    fleet.karmadactl(&["create"], &["-f", &file]).ok();
    fleet.there("member1", &["configmap/made"]);
    fleet.karmadactl(&["delete"], &["configmap", "made"]).ok();
    fleet.gone("member1", &["configmap/made"]);
    let resources = fleet.karmadactl(&["api-resources"], &[]).ok();
    assert!(resources.contains("propagationpolicies") && resources.contains("resourcebindings"), "{resources}");
    let versions = fleet.karmadactl(&["api-versions"], &[]).ok();
    assert!(versions.contains("cluster.karmada.io/v1alpha1"), "{versions}");
}

#[test]
fn edit_can_change_a_policy() {
    let Some(fleet) = Fleet::shared() else { return };
    fleet.apply("fleet", &config_map("moved", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "moved", &["member1"]));
    fleet.there("member1", &["configmap/moved"]);
    let script = fleet.file("mover", "#!/bin/sh\nsed -i 's/- member1/- member2/' \"$1\"\n");
    let mut edit = fleet.karmadactl_command(&["edit"]);
    edit.env("EDITOR", format!("sh {}", script.display())).args(["propagationpolicy", "moved"]);
    peers::run(&mut edit).ok();
    fleet.there("member2", &["configmap/moved"]);
    fleet.gone("member1", &["configmap/moved"]);
}

#[test]
fn explain_knows_the_kinds_of_the_instance_and_of_members() {
    let Some(fleet) = Fleet::shared() else { return };
    let policy = fleet.karmadactl(&["explain"], &["propagationpolicies.spec.placement"]).ok();
    assert!(policy.contains("clusterAffinity") && policy.contains("spreadConstraints"), "{policy}");
    let older = fleet.karmadactl(&["explain"], &["resourcebindings", "--api-version=work.karmada.io/v1alpha1"]).ok();
    assert!(older.contains("v1alpha1"), "{older}");
    let cluster = fleet.karmadactl(&["explain"], &["clusters.spec"]).ok();
    assert!(cluster.contains("syncMode"), "{cluster}");
    let members = ["pods.spec.containers", "--operation-scope=members", "--cluster=member1"];
    let pods = fleet.karmadactl(&["explain"], &members).ok();
    assert!(pods.contains("image"), "{pods}");
}

#[test]
fn top_measures_pods_and_nodes_of_members() {
    let Some(fleet) = Fleet::shared() else { return };
    let pod = running(&fleet, "measured");
    let measured = fleet.karmadactl(&["top", "pods"], &["-C", "member1"]).ok();
    assert!(measured.contains(&pod) && measured.contains("CPU(cores)"), "{measured}");
    let nodes = fleet.karmadactl(&["top", "nodes"], &[]).ok();
    assert!(nodes.contains("member1-node-1") && nodes.contains("member2-node-1"), "{nodes}");
}

#[test]
fn interpret_checks_and_runs_what_the_hub_accepts() {
    let Some(fleet) = Fleet::shared() else { return };
    let custom = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "interpreted"}, "spec": {"target": {"apiVersion": "example.io/v1", "kind": "Gear"},
        "customizations": {"replicaResource": {"luaScript": "function GetReplicas(obj) return obj.spec.teeth, nil end"},
            "replicaRevision": {"luaScript": "function ReviseReplica(obj, n) obj.spec.teeth = n return obj end"}}}});
    let file = fleet.file("custom.json", &custom.to_string()).display().to_string();
    let checked = fleet.karmadactl(&["interpret"], &["-f", &file, "--check"]).ok();
    let passed = |rule: &str| checked.lines().any(|line| line.split_whitespace().eq([rule, "PASS"]));
    assert!(passed("InterpretReplica:") && passed("ReviseReplica:"), "{checked}");
    assert_eq!(checked.matches("PASS").count(), 2, "{checked}");
    let gear = json!({"apiVersion": "example.io/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"teeth": 8}});
    let observed = fleet.file("gear.json", &gear.to_string()).display().to_string();
    let run = |more: &[&str]| {
        let words = [&["-f", &file, "--observed-file", &observed, "--operation"], more].concat();
        fleet.karmadactl(&["interpret"], &words).ok()
    };
    assert_eq!(run(&["interpretReplica"]).trim(), "---\n# [1/2] replica:\n8\n---\n# [2/2] requires:\nnull");
    let revised =
        "---\n# [1/1] revised:\napiVersion: example.io/v1\nkind: Gear\nmetadata:\n  name: g\nspec:\n  teeth: 3";
    assert_eq!(run(&["reviseReplica", "--desired-replica", "3"]).trim(), revised);
    fleet.apply("fleet", &custom);
    fleet.kubectl("fleet", &["delete", "resourceinterpretercustomization", "interpreted"]).ok();
}

#[test]
fn tokens_are_made_listed_and_deleted() {
    let Some(fleet) = Fleet::shared() else { return };
    let token = fleet.karmadactl(&["token", "create"], &["--description", "for a test"]).ok().trim().to_owned();
    let id = token.split('.').next().unwrap();
    let list = fleet.karmadactl(&["token", "list"], &[]).ok();
    assert!(list.contains(&token) && list.contains("for a test"), "{list}");
    fleet.karmadactl(&["token", "delete"], &[id]).ok();
    assert!(!fleet.karmadactl(&["token", "list"], &[]).ok().contains(&token));
}

#[test]
fn the_plugin_of_kubectl_works_as_well() {
    let Some(fleet) = Fleet::shared() else { return };
    let (Some(plugin), Some(kubectl)) = (peers::find("kubectl-karmada"), peers::find("kubectl")) else { return };
    let kubeconfig = fleet.kubeconfig().display().to_string();
    let karmada = |arguments: &[&str]| {
        let mut command = fleet.program(&kubectl);
        command.env("PATH", plugin.parent().unwrap()).arg("karmada").args(arguments);
        peers::run(command.args(["--kubeconfig", &kubeconfig, "--karmada-context", "fleet"])).ok()
    };
    let text = karmada(&["get", "clusters"]);
    assert!(text.contains("member1") && text.contains("Push"), "{text}");
    running(&fleet, "plugged");
    let copies = karmada(&["get", "deployments", "plugged", "--operation-scope", "members", "-C", "member1,member2"]);
    for member in ["member1", "member2"] {
        let line = copies.lines().find(|line| line.contains(member)).unwrap_or_else(|| panic!("{copies}"));
        assert!(line.starts_with("plugged") && line.trim_end().ends_with('Y'), "{line}");
    }
    let cluster = karmada(&["describe", "cluster", "member1"]);
    assert!(cluster.contains("Sync Mode:") && cluster.contains("ClusterReady"), "{cluster}");
    let copy = karmada(&["describe", "deployment", "plugged", "--operation-scope", "members", "-C", "member2"]);
    assert!(copy.contains("karmada.io/managed=true"), "{copy}");
    karmada(&["cordon", "member2", "--dry-run"]);
    assert!(taints(&fleet, "member2").iter().all(|taint| taint["key"] != "cluster.karmada.io/unschedulable"));
}

#[test]
fn services_are_spread_and_those_of_the_servers_themselves_are_not() {
    let Some(fleet) = Fleet::shared() else { return };
    let own = fleet.get("member1", &["service", "kubernetes"]).unwrap();
    fleet.kubectl("fleet", &["create", "service", "clusterip", "shop", "--tcp=80"]).ok();
    for member in ["member1", "member2"] {
        fleet.there(member, &["service/shop"]);
    }
    assert!(fleet.get("fleet", &["resourcebindings", "kubernetes-service"]).is_none());
    assert_eq!(fleet.get("member1", &["service", "kubernetes"]).unwrap(), own);
}
