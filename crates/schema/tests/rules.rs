//! Rules in CEL: which are refused, what they say, and when they run.
#![allow(clippy::unwrap_used)]

use atoll_meta::FieldPath;
use atoll_schema::{Compiled, Interner};
use serde_json::{Value, json};
use std::sync::Arc;

/// A schema with rules on `spec`.
fn schema(rules: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": rules, "properties": {
        "replicas": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string"}, "ratio": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": true}, "when": {"type": "string", "format": "date-time"},
        "lease": {"type": "string", "format": "duration"}, "data": {"type": "string", "format": "byte"},
        "namespace": {"type": "string"}, "a-b": {"type": "string"}, "on": {"type": "boolean"},
        "memory": {"type": "string"}, "free": {"x-kubernetes-preserve-unknown-fields": true},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}}})
}

fn compile(rule: &str) -> Result<Arc<Compiled>, Vec<String>> {
    Compiled::new(&schema(json!([{"rule": rule, "message": "broken"}])))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn run(rule: Value, new: Value, old: Option<Value>) -> Vec<String> {
    let compiled = Compiled::new(&schema(json!([rule]))).unwrap();
    let wrap = |spec: Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec});
    compiled.validate(&wrap(new), old.map(wrap).as_ref()).iter().map(ToString::to_string).collect()
}

#[test]
fn rules_that_make_no_sense_are_refused_when_the_crd_is_created() {
    let cases = [
        ("self.replicas >", "Syntax error"),
        ("self.replica > 1", "undefined field 'replica'"),
        ("other.replicas > 1", "undeclared reference to 'other' (in container '')"),
        ("self.?replica.hasValue()", "undefined field 'replica'"),
        ("self.replicas.foo()", "undeclared reference to 'foo' (in container '')"),
        ("frobnicate(self.name)", "undeclared reference to 'frobnicate' (in container '')"),
        ("self.replicas == self.name", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.replicas + 'x' == 'y'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.name", "cel expression must evaluate to a bool"),
        ("self.replicas", "cel expression must evaluate to a bool"),
        ("self.name.first.second == 'x'", "type 'string' does not support field selection"),
        ("self.free.x == 1", "undefined field 'free'"),
        (
            "self.replicas.all(x, x > 1)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("self.items.all(x, x.nme == '')", "undefined field 'nme'"),
        ("Foo{a: 1} == 1", "undeclared reference to 'Foo' (in container '')"),
        ("cel.bind(n, self.replicas, n == 1)", "undeclared reference to"),
        ("self.name.matches()", "found no matching overload for 'matches' applied to '(string)'"),
        ("self.name.matches('(')", "compilation failed: invalid matches argument"),
        ("self.replicas && self.on", "found no matching overload for '_&&_' applied to '(int, bool)'"),
        ("", "rule is not specified"),
    ];
    for (rule, why) in cases {
        let errors = compile(rule).err().unwrap_or_else(|| panic!("{rule} was accepted"));
        assert!(errors[0].starts_with("properties[spec].x-kubernetes-validations[0].rule: "), "{errors:?}");
        assert!(errors[0].contains(why), "{rule}: {errors:?}");
    }
    let bad_message = json!([{"rule": "true", "messageExpression": "self.replicas"}]);
    let errors = Compiled::new(&schema(bad_message)).unwrap_err();
    assert!(errors[0].to_string().ends_with("messageExpression must evaluate to a string"), "{}", errors[0]);
}

#[test]
fn old_values_may_only_be_used_where_they_can_be_found() {
    let json = json!({"type": "object", "properties": {"list": {"type": "array", "items": {
        "type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}});
    let errors = Compiled::new(&json).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[list]"
    );
    let errors = Compiled::new(&schema(json!([{"rule": "true", "optionalOldSelf": true}]))).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
    );
}

#[test]
fn expressions_mean_what_they_mean_in_the_original() {
    let spec = json!({"replicas": 3, "max": 5, "name": "wörld-7", "ratio": 1, "port": "25%", "when": "2026-01-02T03:04:05Z",
        "lease": "90s", "data": "YWJj", "namespace": "ns", "a-b": "dash", "on": true, "memory": "1Gi", "free": {"x": 1},
        "tags": ["b", "a", "c"], "labels": {"k-1": "v", "namespace": "x"},
        "items": [{"name": "x", "size": 2}, {"name": "y"}]});
    let good = [
        "self.replicas <= self.max",
        "self.ratio == 1.0",
        "has(self.replicas) && !has(self.items[1].size)",
        "self.name.size() == 7",
        "self.name.matches('^w.*-[0-9]$')",
        "type(self.port) == string",
        "type(self.replicas) == int",
        "self.when < timestamp('2027-01-01T00:00:00Z')",
        "self.lease == duration('1m30s')",
        "self.data == b'abc'",
        "self.__namespace__ == 'ns'",
        "self.a__dash__b == 'dash'",
        "self.labels['k-1'] == 'v'",
        "'namespace' in self.labels",
        "self.labels.all(k, self.labels[k].size() > 0)",
        "quantity(self.memory).isGreaterThan(quantity('512Mi'))",
        "self.items.exists(i, i.name == 'x' && i.size == 2)",
        "self.items.map(i, i.name) == ['x', 'y']",
        "self.items.filter(i, has(i.size)).size() == 1",
        "self.tags.exists_one(t, t == 'a')",
        "self.tags.all(i, t, i < 3 && t.size() == 1)",
        "self.tags.transformList(i, t, t + string(i)) == ['b0', 'a1', 'c2']",
        "self.tags.sortBy(t, t) == ['a', 'b', 'c']",
        "self.labels.exists(k, v, k == 'k-1' && v == 'v')",
        "self.tags.isSorted() == false",
        "self.?replicas.orValue(0) == 3",
        "self.?max.optMap(m, m + 1).orValue(0) == 6",
        "!self.items[1].?size.hasValue() && self.items[1].?size.orValue(7) == 7",
        "has(self.?labels.k) == false",
        "[1, 2].sum() == 3",
        "isURL('https://x/y')",
        "ip('10.0.0.1').family() == 4",
        "self.name.startsWith('w') ? true : false",
        "dyn(self.replicas) == 3",
        "self.items.all(i, i.name in ['x', 'y'])",
        "'%s-%d'.format([self.__namespace__, self.replicas]) == 'ns-3'",
        "(has(self.replicas) ? 1 : 0) + (has(self.max) ? 1 : 0) == 2",
    ];
    for rule in good {
        assert_eq!(run(json!({"rule": rule}), spec.clone(), None), [""; 0], "{rule}");
    }
}

#[test]
fn complaints_carry_message_reason_and_path() {
    let cases: Vec<(Value, Value, &str)> = vec![
        (
            json!({"rule": "self.replicas < 3"}),
            json!({"replicas": 3}),
            "spec: Invalid value: failed rule: self.replicas < 3",
        ),
        (
            json!({"rule": "self.replicas < 3", "message": " too many "}),
            json!({"replicas": 3}),
            "spec: Invalid value: too many",
        ),
        (
            json!({"rule": "self.replicas < 3", "fieldPath": ".replicas", "message": "m"}),
            json!({"replicas": 3}),
            "spec.replicas: Invalid value: m",
        ),
        (
            json!({"rule": "self.replicas < 3", "reason": "FieldValueForbidden", "message": "m"}),
            json!({"replicas": 3}),
            "spec: Forbidden: m",
        ),
        (
            json!({"rule": "self.replicas < 3", "reason": "FieldValueRequired", "message": "m"}),
            json!({"replicas": 3}),
            "spec: Required value: m",
        ),
        (
            json!({"rule": "self.replicas < 3", "reason": "FieldValueDuplicate", "message": "m"}),
            json!({"replicas": 3}),
            "spec: Duplicate value",
        ),
        (
            json!({"rule": "self.replicas < 3", "messageExpression": "'have ' + string(self.replicas)", "message": "m"}),
            json!({"replicas": 3}),
            "spec: Invalid value: have 3",
        ),
        (
            json!({"rule": "self.replicas < 3", "messageExpression": "string(self.max)", "message": "m"}),
            json!({"replicas": 3}),
            "spec: Invalid value: m",
        ),
        (
            json!({"rule": "self.max > 1"}),
            json!({"replicas": 3}),
            "spec: Invalid value: \"object\": no such key: max evaluating rule: self.max > 1",
        ),
        (
            json!({"rule": "self.tags[5] == 'x'"}),
            json!({"tags": []}),
            "spec: Invalid value: \"object\": index out of bounds: 5 evaluating rule: self.tags[5] == 'x'",
        ),
        (
            json!({"rule": "self.replicas / self.max > 0"}),
            json!({"replicas": 3, "max": 0}),
            "spec: Invalid value: \"object\": division by zero evaluating rule: self.replicas / self.max > 0",
        ),
        (
            json!({"rule": "self.port > 5"}),
            json!({"port": "x"}),
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.port > 5",
        ),
    ];
    for (rule, spec, expected) in cases {
        assert_eq!(run(rule.clone(), spec, None), [expected], "{rule}");
    }
}

#[test]
fn scalars_show_their_value() {
    let json = json!({"type": "object", "properties": {"x": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 2", "message": "m"}]}}});
    let compiled = Compiled::new(&json).unwrap();
    assert_eq!(compiled.validate(&json!({"x": 1}), None)[0].to_string(), "x: Invalid value: 1: m");
}

#[test]
fn transition_rules_run_when_there_is_something_to_compare() {
    let immutable = json!({"rule": "self.name == oldSelf.name", "message": "immutable"});
    assert!(run(immutable.clone(), json!({"name": "a"}), None).is_empty());
    assert!(run(immutable.clone(), json!({"name": "a"}), Some(json!({"name": "a"}))).is_empty());
    assert_eq!(run(immutable, json!({"name": "b"}), Some(json!({"name": "a"}))), ["spec: Invalid value: immutable"]);
    let optional = json!({"rule": "oldSelf.hasValue() || self.replicas == 1", "optionalOldSelf": true, "message": "start with one"});
    assert_eq!(run(optional.clone(), json!({"replicas": 2}), None), ["spec: Invalid value: start with one"]);
    assert!(run(optional, json!({"replicas": 2}), Some(json!({"replicas": 1}))).is_empty());
    let json = json!({"type": "object", "properties": {"items": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"},
        "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "no shrinking"}]}}}}}});
    let compiled = Compiled::new(&json).unwrap();
    let old = json!({"items": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]});
    let new = json!({"items": [{"k": "b", "v": 2}, {"k": "a", "v": 4}, {"k": "c", "v": 0}]});
    let errors: Vec<String> = compiled.validate(&new, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["items[1].v: Invalid value: 4: no shrinking"]);
}

#[test]
fn rules_forgive_what_did_not_change() {
    let json = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() < 2", "message": "m"}]}, "b": {"type": "string"}}}}});
    let compiled = Compiled::new(&json).unwrap();
    let old = json!({"spec": {"a": "long"}});
    let mut forgiven = Vec::new();
    let new = json!({"spec": {"a": "long", "b": "x"}});
    assert!(compiled.check(&new, Some(&old), |error| forgiven.push(error.to_string())).is_empty());
    assert_eq!(forgiven, ["spec.a: Invalid value: \"long\": m"], "it is told all the same");
    assert_eq!(compiled.validate(&json!({"spec": {"a": "other"}}), Some(&old)).len(), 1);
    assert_eq!(compiled.validate(&old, None).len(), 1);
}

#[test]
fn rules_are_not_asked_about_objects_that_break_the_schema() {
    let errors = run(json!({"rule": "self.replicas > 1"}), json!({"replicas": "many"}), None);
    assert_eq!(errors.len(), 2);
    assert_eq!(
        errors[1],
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    );
}

#[test]
fn expensive_rules_are_stopped() {
    let tags: Vec<String> = (0..600).map(|at| format!("t{at}")).collect();
    let nested =
        json!({"rule": "self.tags.all(a, self.tags.all(b, self.tags.all(c, a != b + c + 'x')))", "message": "slow"});
    let errors = run(nested, json!({"tags": tags}), None);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("actual cost limit exceeded"), "{errors:?}");
    let growing = json!({"rule": "self.tags.map(a, a).size() > 0"});
    let many: Vec<String> = (0..20_000).map(|at| at.to_string()).collect();
    assert!(run(growing, json!({"tags": many}), None)[0].contains("actual cost limit exceeded"));
}

fn costs(spec: Value) -> Vec<String> {
    let json = json!({"type": "object", "properties": {"spec": spec}});
    let complaints = Compiled::new(&json).unwrap().check_costs(&FieldPath::root());
    complaints.iter().map(ToString::to_string).collect()
}

fn list(max: Option<u64>, items: Value, rule: &str) -> Value {
    let mut list = json!({"type": "array", "items": items, "x-kubernetes-validations": [{"rule": rule}]});
    if let Some(max) = max {
        list["maxItems"] = max.into();
    }
    json!({"type": "object", "properties": {"list": list}})
}

#[test]
fn rules_that_could_cost_too_much_are_told_when_the_crd_is_created() {
    let (text, short) = (json!({"type": "string"}), json!({"type": "string", "maxLength": 10}));
    let pairs = "self.all(a, self.exists_one(b, a == b))";
    for fine in [
        list(None, text.clone(), "self.size() < 5"),
        list(None, text.clone(), "self == oldSelf"),
        list(Some(100), short.clone(), pairs),
        list(Some(10), text.clone(), "self.all(a, a.startsWith('x'))"),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]}),
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
    ] {
        assert!(costs(fine.clone()).is_empty(), "{fine}: {:?}", costs(fine.clone()));
    }
    let at = "properties[spec].properties[list].x-kubernetes-validations[0].rule";
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
    let far = format!("{at}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {hint}");
    assert_eq!(costs(list(None, text, pairs))[0], far);
    let complaints = costs(list(Some(2000), short, pairs));
    assert!(complaints[0].starts_with(&format!("{at}: Forbidden: estimated rule cost exceeds budget by factor of ")));
    assert!(!complaints[0].contains("more than"), "{complaints:?}");
}

#[test]
fn a_rule_counts_as_often_as_its_place_can_occur() {
    let inner = |max: u64| {
        json!({"type": "object", "properties": {"outer": {"type": "array", "maxItems": max, "items": {
            "type": "string", "maxLength": 1000, "x-kubernetes-validations": [{"rule": "self.contains('abc')"}]}}}})
    };
    assert!(costs(inner(1000)).is_empty());
    let complaints = costs(inner(1_000_000));
    let at = "properties[spec].properties[outer].items.x-kubernetes-validations[0].rule";
    assert!(
        complaints[0].starts_with(&format!("{at}: Forbidden: estimated rule cost exceeds budget")),
        "{complaints:?}"
    );
    assert!(
        complaints
            .last()
            .unwrap()
            .contains("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema")
    );
}

#[test]
fn defaults_must_pass_their_rules() {
    let json = json!({"type": "object", "properties": {"x": {"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 2", "message": "m"}]}}});
    assert_eq!(Compiled::new(&json).unwrap_err()[0].to_string(), "properties[x].default: Invalid value: 1: m");
}

#[test]
fn the_root_sees_kind_and_name() {
    let json = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.kind == 'K' && self.metadata.name.startsWith('a')", "message": "m"}]});
    let compiled = Compiled::new(&json).unwrap();
    assert!(compiled.validate(&json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "ab"}}), None).is_empty());
    let errors = compiled.validate(&json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "b"}}), None);
    assert_eq!(errors[0].to_string(), "<nil>: Invalid value: m");
    let labels = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.labels.size() > 0"}]});
    assert!(Compiled::new(&labels).unwrap_err()[0].to_string().contains("undefined field 'labels'"));
}

#[test]
fn equal_schemas_are_compiled_once_and_forgotten_when_unused() {
    let interner = Interner::default();
    let path = FieldPath::root();
    let one = interner.compile(&schema(json!([])), &path).unwrap();
    let two = interner.compile(&schema(json!([])), &path).unwrap();
    assert!(Arc::ptr_eq(&one, &two));
    assert_eq!(interner.live(), 1);
    drop((one, two));
    assert_eq!(interner.live(), 0);
    assert!(interner.compile(&json!({}), &path).is_err());
}

#[test]
fn times_are_compared_at_once() {
    let of = |items: Value| costs(list(Some(1000), items, "self.all(x, self.exists(y, y > x))"));
    let (time, text) = (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "maxLength": 100}));
    assert!(of(time.clone()).is_empty(), "{:?}", of(time));
    assert!(!of(text).is_empty());
}
