//! Customisations answer in place of the built-in rules.
#![allow(clippy::unwrap_used, missing_docs)]

mod customized;

use atoll_api::work::{AggregatedStatusItem, ResourceHealth};
use atoll_interpreter::{Error, Health, Interpreter, check};
use customized::{customization, interpreter, thing};
use serde_json::{Value, json};

#[test]
fn a_script_says_how_many_replicas_there_are_and_what_one_needs() {
    let it = interpreter(&[(
        "replicaResource",
        r#"
        local kube = require("kube")
        function GetReplicas(obj)
          local needs = kube.accuratePodRequirements(obj.spec.pod)
          needs.resourceRequest.memory = kube.resourceAdd("64Mi", "64Mi", nil)
          return obj.spec.count, needs
        end"#,
    )]);
    let pod = json!({"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"resources": {"requests": {"cpu": "250m"}}}]}});
    let (replicas, needs) = it.replicas(&thing(json!({"spec": {"count": 3, "pod": pod}}))).unwrap().unwrap();
    let needs = needs.unwrap();
    assert_eq!(replicas, 3);
    assert_eq!(serde_json::to_value(&needs.requests).unwrap(), json!({"cpu": "250m", "memory": "128Mi"}));
    assert_eq!(needs.node_claim.unwrap().node_selector["disk"], "ssd");
}

#[test]
fn needs_may_be_left_out_and_amounts_may_be_numbers() {
    let it = interpreter(&[("replicaResource", "function GetReplicas(obj) return obj.spec.count, obj.spec.needs end")]);
    let ask = |spec: Value| it.replicas(&thing(json!({"spec": spec}))).unwrap().unwrap();
    assert_eq!(ask(json!({"count": 2})), (2, None));
    let (_, needs) = ask(json!({"count": 2, "needs": {"resourceRequest": {"cpu": 2}, "nodeClaim": {}}}));
    assert_eq!(needs.unwrap().requests["cpu"].0, "2");
    assert!(ask(json!({"count": 1, "needs": {}})).1.is_some());
    let wrong = it.replicas(&thing(json!({"spec": {"count": "two"}}))).unwrap_err();
    assert_eq!(wrong.to_string(), "GetReplicas gave string, wanted a number");
}

#[test]
fn a_script_names_components() {
    let it = interpreter(&[(
        "componentResource",
        r#"function GetComponents(obj)
          local all = {}
          for name, count in pairs(obj.spec.parts) do
            table.insert(all, 1, { name = name, replicas = count, replicaRequirements = { resourceRequest = { cpu = "1" } } })
          end
          table.sort(all, function(a, b) return a.name < b.name end)
          return all
        end"#,
    )]);
    let parts = it.components(&thing(json!({"spec": {"parts": {"b": 2, "a": 1}}}))).unwrap().unwrap();
    let found: Vec<(&str, i32)> = parts.iter().map(|part| (part.name.as_str(), part.replicas)).collect();
    assert_eq!(found, [("a", 1), ("b", 2)]);
    assert_eq!(it.components(&thing(json!({"spec": {"parts": {}}}))).unwrap(), Some(Vec::new()));
    assert_eq!(it.components(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})).unwrap(), None);
}

#[test]
fn a_script_sets_replicas_and_leaves_the_rest_as_it_was() {
    let it = interpreter(&[(
        "replicaRevision",
        "function ReviseReplica(obj, desired) obj.spec.count = desired return obj end",
    )]);
    let body = |count: i64| json!({"spec": {"count": count, "list": [], "object": {}, "none": null, "items": [{}, [], null, 1], "big": 9_007_199_254_740_993i64, "float": 1.0, "text": "ä\u{1F600}", "no": false}});
    let mut object = thing(body(9));
    it.revise(&mut object, 4).unwrap();
    assert_eq!(object, thing(body(4)));
    assert_eq!(object["spec"]["float"].to_string(), "1.0");
}

#[test]
fn a_script_retains_what_the_member_has() {
    let it = interpreter(&[(
        "retention",
        "function Retain(desired, observed) desired.spec.address = observed.spec.address desired.spec.made = {} return desired end",
    )]);
    let mut desired = thing(json!({"spec": {"a": 1}}));
    it.retain(&mut desired, &thing(json!({"spec": {"address": {"ports": []}, "made": []}}))).unwrap();
    assert_eq!(desired["spec"], json!({"a": 1, "address": {"ports": []}, "made": []}));
}

#[test]
fn empty_tables_that_nothing_is_known_of_are_left_out() {
    let it = interpreter(&[(
        "statusReflection",
        "function ReflectStatus(obj) return { a = {}, b = { c = {}, d = 1 }, phase = obj.status.phase } end",
    )]);
    assert_eq!(it.reflect(&thing(json!({"status": {"phase": "Up"}}))), Some(json!({"b": {"d": 1}, "phase": "Up"})));
    assert_eq!(it.reflect(&thing(json!({"status": {"phase": "Up", "a": [1]}}))).unwrap()["a"], json!([]));
    let nothing = interpreter(&[("statusReflection", "function ReflectStatus(obj) return {} end")]);
    assert_eq!(nothing.reflect(&thing(json!({}))), Some(json!({})));
}

#[test]
fn a_script_aggregates_statuses() {
    let it = interpreter(&[(
        "statusAggregation",
        r#"function AggregateStatus(desired, items)
          desired.status = desired.status or {}
          desired.status.ready, desired.status.where = 0, {}
          for i = 1, #items do
            if items[i].status ~= nil then
              desired.status.ready = desired.status.ready + items[i].status.ready
              table.insert(desired.status.where, items[i].clusterName)
            end
          end
          return desired
        end"#,
    )]);
    let items = [
        ("m1".to_owned(), Some(json!({"ready": 2}))),
        ("m2".to_owned(), None),
        ("m3".to_owned(), Some(json!({"ready": 1}))),
    ];
    let mut template = thing(json!({"spec": {}}));
    assert!(it.try_aggregate(&mut template, &items).unwrap());
    assert_eq!(template, thing(json!({"spec": {}, "status": {"ready": 3, "where": ["m1", "m3"]}})));
    assert!(!it.try_aggregate(&mut template, &items).unwrap(), "nothing new");
}

#[test]
fn a_script_judges_health() {
    let it = interpreter(&[("healthInterpretation", "function InterpretHealth(obj) return obj.status.ok end")]);
    assert_eq!(it.health(&thing(json!({"status": {"ok": true}}))), Health::Healthy);
    assert_eq!(it.health(&thing(json!({"status": {"ok": false}}))), Health::Unhealthy);
    assert_eq!(it.health(&thing(json!({"status": {"ok": "yes"}}))), Health::Unknown);
    let error = it.try_health(&thing(json!({}))).unwrap_err();
    assert!(error.to_string().starts_with("script failed in InterpretHealth: script:1: attempt to index"), "{error}");
}

#[test]
fn scripts_together_name_dependencies() {
    let pods = r#"
        local kube = require("kube")
        function GetDependencies(obj) return kube.getPodDependencies(obj.spec.template, obj.metadata.namespace) end"#;
    let labels = r#"function GetDependencies(obj)
          return { { apiVersion = "v1", kind = "Secret", namespace = "ns", name = "a" },
                   { apiVersion = "v1", kind = "ConfigMap", labelSelector = { matchLabels = { app = "x" } } } }
        end"#;
    let list = [
        customization("two", &[("dependencyInterpretation", labels)]),
        customization("one", &[("dependencyInterpretation", pods)]),
    ];
    let (it, errors) = Interpreter::new().with_customizations(&list);
    assert_eq!(errors, []);
    let object = thing(
        json!({"spec": {"template": {"spec": {"containers": [{"envFrom": [{"secretRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}]}}}}),
    );
    let found = it.try_dependencies(&object).unwrap();
    let short: Vec<String> =
        found.iter().map(|found| format!("{} {} {}", found.kind, found.namespace, found.name)).collect();
    assert_eq!(short, ["ConfigMap  ", "Secret ns a", "Secret ns b"]);
    assert_eq!(found[0].label_selector.as_ref().unwrap().to_text(), "app=x");
}

#[test]
fn dependencies_must_say_what_they_mean() {
    for (table, missing) in [
        ("{ kind = 'Secret', name = 'a' }", "apiVersion"),
        ("{ apiVersion = 'v1', name = 'a' }", "kind"),
        ("{ apiVersion = 'v1', kind = 'Secret' }", "name or labelSelector"),
    ] {
        let it = interpreter(&[(
            "dependencyInterpretation",
            &format!("function GetDependencies(obj) return {{ {table} }} end"),
        )]);
        let error = it.try_dependencies(&thing(json!({}))).unwrap_err();
        assert_eq!(error.to_string(), format!("a dependency lacks {missing}"));
        assert!(it.dependencies(&thing(json!({}))).is_empty());
    }
    let none = interpreter(&[("dependencyInterpretation", "function GetDependencies(obj) return {} end")]);
    assert_eq!(none.try_dependencies(&thing(json!({}))), Ok(Vec::new()));
}

#[test]
fn customisations_come_before_built_in_rules_even_when_they_fail() {
    let script = |text: &str| {
        let mut custom = customization("web", &[("healthInterpretation", text)]);
        custom["spec"]["target"] = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        Interpreter::new().with_customizations(&[custom])
    };
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 1}});
    assert_eq!(Interpreter::new().health(&deployment), Health::Healthy);
    let (it, _) = script("function InterpretHealth(obj) return false end");
    assert_eq!(it.health(&deployment), Health::Unhealthy);
    assert_eq!(it.reflect(&deployment), Some(json!({"replicas": 1})), "other operations are as before");
    let (it, _) = script("function InterpretHealth(obj) error('no idea') end");
    assert_eq!(it.health(&deployment), Health::Unknown);
    let (it, errors) = script("function InterpretHealth(obj) return end end");
    assert!(matches!(errors.as_slice(), [(name, Error::Compile(_))] if name == "web"), "{errors:?}");
    assert!(matches!(it.try_health(&deployment), Err(Error::Compile(_))));
    let other_version = json!({"apiVersion": "apps/v1beta1", "kind": "Deployment"});
    assert_eq!(it.health(&other_version), Health::Healthy, "a customisation is for one version");
}

#[test]
fn of_two_customisations_the_first_by_name_counts() {
    let says = |answer: &str| format!("function InterpretHealth(obj) return {answer} end");
    let list = [
        customization(
            "b",
            &[
                ("healthInterpretation", &says("true")),
                ("statusReflection", "function ReflectStatus(o) return { from = 'b' } end"),
            ],
        ),
        customization("a", &[("healthInterpretation", &says("false"))]),
    ];
    let (it, _) = Interpreter::new().with_customizations(&list);
    assert_eq!(it.health(&thing(json!({}))), Health::Unhealthy);
    assert_eq!(it.reflect(&thing(json!({}))), Some(json!({"from": "b"})));
    let (none, _) = it.with_customizations::<Value>(&[]);
    assert_eq!(none.reflect(&thing(json!({}))), None, "new customisations replace the old ones");
}

#[test]
fn customisations_that_are_none_are_named() {
    let bad = json!({"metadata": {"name": "bad"}, "spec": {"target": 1}});
    let (_, errors) = Interpreter::new().with_customizations(&[bad]);
    assert!(matches!(errors.as_slice(), [(name, Error::Shape(_))] if name == "bad"), "{errors:?}");
}

#[test]
fn scripts_are_checked_before_they_are_stored() {
    let custom = customization(
        "x",
        &[
            ("retention", "function Retain(a b) end"),
            ("healthInterpretation", "function InterpretHealth(o) return true end"),
            ("statusReflection", "\u{1b}Lua"),
        ],
    );
    let found: Vec<String> = check(&serde_json::from_value(custom).unwrap())
        .iter()
        .map(|(operation, error)| format!("{operation:?}: {error}"))
        .collect();
    let wanted = [
        "Retain: script does not compile: script:1: ')' expected near 'b'",
        "Reflect: script does not compile: it is compiled code",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_script_without_the_function_is_an_error() {
    let it = interpreter(&[("healthInterpretation", "function Health(obj) return true end")]);
    assert_eq!(it.try_health(&thing(json!({}))), Err(Error::NoFunction("InterpretHealth")));
}

#[test]
fn calls_know_nothing_of_earlier_calls() {
    let it = interpreter(&[(
        "statusReflection",
        "function ReflectStatus(obj) seen = (seen or 0) + 1 error = 1 return { seen = seen } end",
    )]);
    for _ in 0..3 {
        assert_eq!(it.reflect(&thing(json!({}))), Some(json!({"seen": 1})));
    }
}

#[test]
fn many_threads_share_an_interpreter() {
    let it = interpreter(&[("statusReflection", "function ReflectStatus(obj) return { n = obj.status.n } end")]);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let it = it.clone();
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(it.reflect(&thing(json!({"status": {"n": n}}))), Some(json!({"n": n})));
                }
            });
        }
    });
}

#[test]
fn the_kube_module_counts_quantities() {
    let it = interpreter(&[(
        "statusReflection",
        r#"
        local kube = require("kube")
        function ReflectStatus(obj)
          local ok, why = pcall(kube.resourceAdd, "much")
          return { sum = kube.resourceAdd("1", "500m"), cpu = kube.getResourceQuantity("1500m"), none = kube.getResourceQuantity(nil),
                   bytes = kube.getResourceQuantity("2Ki"), ok = ok, negative = pcall(kube.getResourceQuantity, "-1"),
                   bad = pcall(kube.accuratePodRequirements, 5), default = kube.getPodDependencies({ spec = { serviceAccountName = "x" } }, nil)[1].namespace }
        end"#,
    )]);
    let wanted = json!({"sum": "1500m", "cpu": 1.5, "none": 0, "bytes": 2048, "ok": false, "negative": false, "bad": false, "default": "default"});
    assert_eq!(it.try_reflect(&thing(json!({}))), Ok(Some(wanted)));
}

/// What an expression is in a script.
fn value(expression: &str) -> Result<Value, Error> {
    let script = format!("local kube = require('kube') function ReflectStatus(obj) return {{ v = {expression} }} end");
    let it = interpreter(&[("statusReflection", &script)]);
    Ok(it.try_reflect(&thing(json!({})))?.unwrap_or_default()["v"].clone())
}

#[test]
fn scripts_know_the_time_and_write_anything() {
    for (expression, wanted) in [
        ("os.time({year = 2026, month = 1, day = 2, hour = 3, min = 4, sec = 5})", json!(1_767_323_045)),
        ("os.time({year = 2026, month = 1, day = 2})", json!(1_767_355_200)),
        ("os.time({year = 2024, month = 14, day = -3})", json!(1_738_065_600)),
        ("os.time() > 1700000000", json!(true)),
        ("os.date('!%Y-%m-%dT%H:%M:%SZ', 1700000000)", json!("2023-11-14T22:13:20Z")),
        ("os.date('*t', 1700000000).day", json!(14)),
        ("os.date('%A %b %I%p %% %j', 1700000000)", json!("Tuesday Nov 10PM % %j")),
        ("type(os.execute)", json!("nil")),
        ("string.format('%s %s %d %s', nil, true, 3, 'x')", json!("nil true 3 x")),
        ("string.format('%%s %5.1f|%s', 2, false)", json!("%s   2.0|false")),
        ("type(kube.accuratePodRequirements({ spec = {} }))", json!("nil")),
    ] {
        assert_eq!(value(expression), Ok(wanted), "{expression}");
    }
    assert!(value("os.time('x')").is_err());
}

#[test]
fn answers_must_be_what_is_asked_for() {
    let revise = |body: &str| {
        let it = interpreter(&[("replicaRevision", &format!("function ReviseReplica(o, r) {body} end"))]);
        it.revise(&mut thing(json!({})), 1).map_err(|error| error.to_string())
    };
    let without = "ReviseReplica gave one without a kind or with wrong metadata, wanted an object";
    assert_eq!(revise("return {}"), Err(without.to_owned()));
    assert_eq!(revise("o.kind = nil return o"), Err(without.to_owned()));
    assert_eq!(revise("o.metadata = 'x' return o"), Err(without.to_owned()));
    assert_eq!(revise("return o"), Ok(()));
    let replicas = |answer: &str| {
        let it = interpreter(&[("replicaResource", &format!("function GetReplicas(o) return {answer} end"))]);
        it.replicas(&thing(json!({}))).map(|found| found.map(|(count, _)| count))
    };
    assert_eq!(replicas("2.9"), Ok(Some(2)));
    assert!(replicas("1e20").is_err() && replicas("0/0").is_err());
    assert!(replicas("1, { resourceRequest = { cpu = 'much' } }").is_err());
    let components = |answer: &str| {
        let it = interpreter(&[("componentResource", &format!("function GetComponents(o) return {answer} end"))]);
        it.components(&thing(json!({}))).map(|found| found.map(|found| found.len()))
    };
    let dependencies = |selector: &str| {
        let answer = format!("{{ {{ apiVersion = 'v1', kind = 'Secret', labelSelector = {selector} }} }}");
        let it =
            interpreter(&[("dependencyInterpretation", &format!("function GetDependencies(o) return {answer} end"))]);
        it.try_dependencies(&thing(json!({}))).map(|found| found.len())
    };
    assert_eq!(dependencies("{ matchLabels = { a = 'b' } }"), Ok(1));
    assert!(dependencies("{ matchLabels = { a = 'not a label' } }").is_err());
    assert!(dependencies("{ matchExpressions = { { key = 'k', operator = 'Odd' } } }").is_err());
    assert_eq!(components("nil"), Ok(Some(0)));
    assert_eq!(components("{ { replicas = 1 }, { name = 'x' } }"), Ok(Some(2)));
    assert!(components("{ { replicaRequirements = { resourceRequest = { cpu = 'much' } } } }").is_err());
}

#[test]
fn scripts_see_whether_copies_are_applied_and_healthy() {
    let it = interpreter(&[(
        "statusAggregation",
        "function AggregateStatus(o, items) o.status = { health = items[1].health, applied = items[1].applied, other = items[2].clusterName } return o end",
    )]);
    let item = AggregatedStatusItem {
        cluster_name: "a".to_owned(),
        status: Some(json!({})),
        applied: true,
        health: Some(ResourceHealth::Healthy),
        ..AggregatedStatusItem::default()
    };
    let mut object = thing(json!({}));
    assert_eq!(it.try_aggregate(&mut object, &[("a".to_owned(), Some(&item)), ("b".to_owned(), None)]), Ok(true));
    assert_eq!(object["status"], json!({"health": "Healthy", "applied": true, "other": "b"}));
}
