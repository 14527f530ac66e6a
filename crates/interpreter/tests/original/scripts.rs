//! Questions to scripts that users write.

use atoll_interpreter::Operation;
use serde_json::{Value, json};

use crate::case::Case;
use crate::expressions::{BODIES, EXPRESSIONS};
use crate::random::Dice;

fn thing() -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
        "envFrom": [{"configMapRef": {"name": "config"}}], "ports": [], "securityContext": {}});
    json!({"apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {"name": "it", "namespace": "ns", "generation": 2, "labels": {"app": "it"}, "annotations": {}, "creationTimestamp": null},
        "spec": {"replicas": 3, "ratio": 0.5, "list": [1, 2, 3], "map": {"a.b/c": "x", "d": "y"}, "flag": true,
            "empty": {}, "emptylist": [], "null": null, "nested": {"deep": {"value": "v", "empty": {}, "list": []}},
            "template": {"metadata": {"labels": {}}, "spec": {"serviceAccountName": "robot", "containers": [container],
                "volumes": [{"name": "e", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "secret"}}]}}},
        "status": {"ready": 2, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "False"}], "empty": {}}})
}

fn scripted(operation: Operation, lua: &str) -> Case {
    let mut case = Case::new(operation, &thing());
    case.lua = Some(lua.to_owned());
    case.replicas = 7;
    case
}

/// A value as a field of a status.
fn expressions() -> Vec<Case> {
    let bodies =
        EXPRESSIONS.iter().map(|one| format!("return ({one})")).chain(BODIES.iter().map(|one| (*one).to_owned()));
    let script = |body: String| {
        format!(
            "local kube = require('kube')\nlocal function value(o)\n{body}\nend\nfunction ReflectStatus(o)\nlocal v = value(o)\nreturn {{v = v, t = type(v)}}\nend"
        )
    };
    bodies.map(|body| scripted(Operation::Reflect, &script(body))).collect()
}

/// What each function may give, right and wrong.
fn results() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "3",
        "2.9",
        "-1",
        "'3'",
        "nil",
        "true",
        "{}",
        "3, nil",
        "3, {}",
        "3, 'x'",
        "3, {resourceRequest = {cpu = '1'}}",
        "3, {resourceRequest = {cpu = 1}}",
        "3, {resourceRequest = {memory = '1Gi', ['example.io/gpu'] = '2'}, namespace = 'ns', priorityClassName = 'p'}",
        "3, {nodeClaim = {nodeSelector = {a = 'b'}}}",
        "3, {resourceRequest = 'x'}",
        "3, {resourceRequest = {cpu = 'x'}}",
        "3, {unknown = 1}",
        "3, kube.accuratePodRequirements(o.spec.template)",
        "1e20",
        "0/0",
        "3, {nodeClaim = {tolerations = {{key = 'k', operator = 'Exists'}}}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Replicas,
            &format!("local kube = require('kube')\nfunction GetReplicas(o) return {value} end"),
        ));
    }
    for value in [
        "true",
        "false",
        "nil",
        "1",
        "'true'",
        "{}",
        "o.status.ready == 2",
        "o.none == 1",
        "o.none.x",
        "o.status.phase == 'Running' and true",
        "not nil",
        "",
    ] {
        cases.push(scripted(Operation::Health, &format!("function InterpretHealth(o) return {value} end")));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "{{name = 'a', replicas = 2}}",
        "{{name = 'a', replicas = 2, replicaRequirements = {resourceRequest = {cpu = '1'}}}}",
        "{{replicas = 1}}",
        "{{name = 'a'}}",
        "{name = 'a'}",
        "{{name = 'a', replicas = 1.5}}",
        "{{name = 'a', replicas = '2'}}",
        "{{name = 'a', replicas = 1, replicaRequirements = kube.accuratePodRequirements(o.spec.template)}}",
        "{1}",
        "{{name = 1, replicas = 1}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Components,
            &format!("local kube = require('kube')\nfunction GetComponents(o) return {value} end"),
        ));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "{{apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 's'}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's'}}",
        "{{kind = 'Secret', name = 's'}}",
        "{{apiVersion = 'v1', name = 's'}}",
        "{{apiVersion = 'v1', kind = 'Secret'}}",
        "{{apiVersion = 'v1', kind = 'Secret', labelSelector = {matchLabels = {a = 'b'}}}}",
        "{{apiVersion = 'v1', kind = 'Secret', labelSelector = {}}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 5}}",
        "kube.getPodDependencies(o.spec.template, o.metadata.namespace)",
        "{apiVersion = 'v1'}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's', namespace = ''}}",
        "{'x'}",
        "{{apiVersion = 'v1', kind = 'A', name = 'b'}, {apiVersion = 'v1', kind = 'A', name = 'a'}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchLabels = {a = 'not a label'}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchLabels = {['not a key'] = 'b'}}}}",
        "{{apiVersion = 'v1', kind = 'A', name = 'a', labelSelector = {matchLabels = {a = '-'}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'Odd'}}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'In'}}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'In', values = {'a', 'b'}}}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'Exists', values = {'a'}}}}}}",
        "{{apiVersion = '', kind = 'A', name = 'b'}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's', labelSelector = {matchLabels = {a = 'b'}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'Exists'}}}}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Dependencies,
            &format!("local kube = require('kube')\nfunction GetDependencies(o) return {value} end"),
        ));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "o.status",
        "{a = 1}",
        "o.spec",
        "{1, 2}",
        "o",
        "o.status.conditions",
        "{conditions = o.status.conditions}",
        "",
    ] {
        cases.push(scripted(Operation::Reflect, &format!("function ReflectStatus(o) return {value} end")));
    }
    cases
}

/// Objects that scripts change.
fn changes() -> Vec<Case> {
    let mut cases = Vec::new();
    let bodies = [
        "return o",
        "o.spec.replicas = r return o",
        "o.spec.added = {} return o",
        "o.spec.added = {1} return o",
        "o.spec.empty = nil return o",
        "o.spec.list = {} return o",
        "o.spec.map = {} return o",
        "o.spec.ratio = 1 return o",
        "o.spec.replicas = r / 2 return o",
        "o.spec.nested.deep = {} return o",
        "o.spec = nil return o",
        "return nil",
        "return 'x'",
        "return {}",
        "return {a = 1}",
        "o.metadata.labels = nil return o",
        "o.spec.list[2] = nil return o",
        "o.spec.list[5] = 1 return o",
        "table.remove(o.spec.list) return o",
        "o.spec.x = {y = {}} return o",
        "o.spec.copy = o.spec.map return o",
        "o.spec.self = o return o",
        "o.kind = nil return o",
        "o.spec.template.spec.containers[1].image = 'new' return o",
        "o.spec.template.spec.volumes = {} return o",
        "table.insert(o.spec.template.spec.containers, {name = 'more', args = {}}) return o",
        "return {apiVersion = o.apiVersion, kind = o.kind}",
        "o[1] = 'x' return o",
        "o.metadata.annotations['a/b'] = 'c' return o",
        "o.spec.text = '' return o",
        "return",
        "error('no')",
        "o.spec.none.x = 1 return o",
    ];
    for body in bodies {
        cases.push(scripted(Operation::Revise, &format!("function ReviseReplica(o, r) {body} end")));
        let mut retain = scripted(Operation::Retain, &format!("function Retain(o, r) {body} end"));
        retain.observed = thing();
        retain.observed["spec"]["observed"] = json!({"empty": {}, "list": [], "value": 1});
        cases.push(retain);
    }
    for body in [
        "o.spec.observed = r.spec.observed return o",
        "o.spec.list = r.spec.observed.list return o",
        "o.spec.empty = r.spec.emptylist return o",
        "o.status = r.status return o",
        "return r",
        "o.metadata = r.metadata return o",
    ] {
        let mut retain = scripted(Operation::Retain, &format!("function Retain(o, r) {body} end"));
        retain.observed = thing();
        retain.observed["spec"]["observed"] = json!({"empty": {}, "list": [], "value": 1});
        cases.push(retain);
    }
    cases
}

/// Statuses that scripts put together.
fn sums() -> Vec<Case> {
    let bodies = [
        "local sum = 0 for i = 1, #items do sum = sum + (items[i].status and items[i].status.ready or 0) end o.status = {ready = sum} return o",
        "o.status = o.status or {} for _, item in ipairs(items) do o.status[item.clusterName] = item.status end return o",
        "o.status = {count = #items} return o",
        "for _, item in ipairs(items) do o.status = item.status end return o",
        "o.status = {items = items} return o",
        "o.status = {} return o",
        "o.status = nil return o",
        "if items == nil then o.status = {none = true} end return o",
        "local t = {} for _, item in ipairs(items) do t[#t + 1] = item.clusterName end o.status = {names = table.concat(t, ',')} return o",
        "local all = {} for _, item in ipairs(items) do for _, c in ipairs((item.status or {}).conditions or {}) do c.message = item.clusterName .. ': ' .. (c.message or '') table.insert(all, c) end end o.status = {conditions = all} return o",
        "return items[1].status.ready",
        "o.status.health = items[1] and items[1].health o.status.applied = items[1] and items[1].applied return o",
        "return {status = {x = 1}}",
    ];
    let whole = json!({"ready": 2, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "empty": {}, "list": []});
    let statuses = [Value::Null, json!({"ready": 1}), whole, json!({}), json!({"ready": 1.5})];
    let mut dice = Dice::new(7);
    let mut cases = Vec::new();
    for body in bodies {
        for _ in 0..6 {
            let mut case = scripted(Operation::Aggregate, &format!("function AggregateStatus(o, items) {body} end"));
            case.items = (0..dice.below(4))
                .map(|number| {
                    let status = dice.pick(&statuses);
                    (format!("member{number}"), status.clone())
                })
                .collect();
            cases.push(case);
        }
    }
    cases
}

/// Scripts that are none.
fn broken() -> Vec<Case> {
    [
        "",
        "x",
        "function Other() end",
        "InterpretHealth = 5",
        "function InterpretHealth(o) return true",
        "local function InterpretHealth(o) return true end",
        "return function() end",
        "error('at once')",
        "InterpretHealth = function(o) return true end",
        "function InterpretHealth() return true end",
        "function InterpretHealth(a, b) return b == nil end",
        "-- only a comment",
        "local x <const> = 5",
    ]
    .iter()
    .filter(|lua| !lua.is_empty())
    .map(|lua| scripted(Operation::Health, lua))
    .collect()
}

/// Values that Lua cannot hold.
fn odd() -> Vec<Case> {
    ["return o", "o.spec.replicas = r return o"]
        .iter()
        .map(|body| {
            let mut case = scripted(Operation::Revise, &format!("function ReviseReplica(o, r) {body} end"));
            case.object["spec"]["big"] = json!(9_007_199_254_740_993_u64);
            case.object["spec"]["nothing"] = json!([null, 1]);
            case
        })
        .collect()
}

pub fn cases() -> Vec<Case> {
    [expressions(), results(), changes(), sums(), broken(), odd()].concat()
}
