//! A question, what we say and what the original says to it.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::work::{AggregatedStatusItem, ReplicaRequirements, ResourceHealth};
use atoll_interpreter::{Health, Interpreter, Operation};
use atoll_testkit::ask_original;
use serde_json::{Value, json};

/// A question to both.
#[derive(Clone, Debug)]
pub struct Case {
    pub operation: Operation,
    pub object: Value,
    pub observed: Value,
    pub items: Vec<(String, Value)>,
    pub replicas: i64,
    pub lua: Option<String>,
}

/// A difference that stays, and why.
pub struct Accepted {
    /// Whether a case with this answer of ours and of the original is meant.
    pub is: fn(&Case, &Said, &Said) -> bool,
    /// Why it stays.
    pub why: &'static str,
}

/// An answer or why there is none.
pub type Said = Result<Value, String>;

impl Case {
    pub fn new(operation: Operation, object: &Value) -> Self {
        Case { operation, object: object.clone(), observed: json!({}), items: Vec::new(), replicas: 0, lua: None }
    }

    /// Something of its object.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.object.pointer(pointer)
    }

    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    fn question(&self) -> Value {
        let items: Vec<Value> = self
            .items
            .iter()
            .map(|(member, status)| match status {
                Value::Null => json!({"clusterName": member}),
                status => json!({"clusterName": member, "status": status, "applied": true, "health": "Healthy"}),
            })
            .collect();
        let mut observed = self.observed.clone();
        if observed["kind"].is_null() {
            // The original wants an object with a kind.
            observed["apiVersion"] = self.object["apiVersion"].clone();
            observed["kind"] = self.object["kind"].clone();
        }
        let mut question = json!({"ask": "interpret", "operation": self.operation.as_str(), "object": self.object,
            "observed": observed, "replicas": self.replicas, "lua": self.lua.clone().unwrap_or_default()});
        // An empty list is not stored, so the original never sees one.
        if !items.is_empty() {
            question["items"] = items.into();
        }
        question
    }

    fn interpreter(&self) -> Result<Interpreter, String> {
        let plain = Interpreter::new();
        let Some(lua) = &self.lua else { return Ok(plain) };
        let field = match self.operation {
            Operation::Replicas => "replicaResource",
            Operation::Components => "componentResource",
            Operation::Revise => "replicaRevision",
            Operation::Retain => "retention",
            Operation::Reflect => "statusReflection",
            Operation::Aggregate => "statusAggregation",
            Operation::Health => "healthInterpretation",
            Operation::Dependencies => "dependencyInterpretation",
        };
        let target = json!({"apiVersion": self.object["apiVersion"], "kind": self.object["kind"]});
        let custom = json!({"metadata": {"name": "one"},
            "spec": {"target": target, "customizations": {field: {"luaScript": lua}}}});
        let (made, errors) = plain.with_customizations(&[custom]);
        match errors.into_iter().next() {
            Some((_, error)) => Err(error.to_string()),
            None => Ok(made),
        }
    }

    /// What we say, when there is time for it.
    fn patiently(&self) -> Said {
        (0..10).map(|_| self.ours()).find(|said| !said.as_ref().is_err_and(|why| why.contains("time limit"))).unwrap()
    }

    /// What we say.
    fn ours(&self) -> Said {
        let it = self.interpreter()?;
        let (api_version, kind) = (self.object["apiVersion"].as_str().unwrap_or_default(), self.kind());
        // Without a rule of its own the status is taken as it is.
        if self.operation != Operation::Reflect && !it.handles(api_version, kind, self.operation) {
            return Err("no hook".to_owned());
        }
        self.answer(&it).map_err(|error| error.to_string())
    }

    fn answer(&self, it: &Interpreter) -> Result<Value, atoll_interpreter::Error> {
        let mut object = self.object.clone();
        Ok(match self.operation {
            Operation::Replicas => {
                let (replicas, needs) = it.replicas(&object)?.unwrap_or_default();
                json!({"replicas": replicas, "requirements": needs.map(ReplicaRequirements::from)})
            }
            Operation::Components => json!(it.components(&object)?),
            Operation::Revise => {
                it.revise(&mut object, self.replicas)?;
                object
            }
            Operation::Retain => {
                it.retain(&mut object, &self.observed)?;
                object
            }
            Operation::Reflect => it.try_reflect(&object)?.unwrap_or_default(),
            Operation::Aggregate => {
                let item = |(member, status): &(String, Value)| {
                    let item = AggregatedStatusItem {
                        cluster_name: member.clone(),
                        status: Some(status.clone()),
                        applied: true,
                        health: Some(ResourceHealth::Healthy),
                        ..AggregatedStatusItem::default()
                    };
                    (member.clone(), Some(item).filter(|_| !status.is_null()))
                };
                let items: Vec<_> = self.items.iter().map(item).collect();
                it.try_aggregate(&mut object, &items)?;
                object
            }
            Operation::Health => json!(it.try_health(&object)? == Health::Healthy),
            Operation::Dependencies => json!(it.try_dependencies(&object)?),
        })
    }

    /// What of an answer counts.
    fn counts(&self, said: Value) -> Value {
        let mut said = match self.operation {
            // Nothing but the status of the answer is used.
            Operation::Aggregate => said["status"].clone(),
            _ => said,
        };
        match self.operation {
            // The detector of the original adds the namespace.
            Operation::Replicas if self.lua.is_none() => {
                if let Some(needs) = said["requirements"].as_object_mut() {
                    needs.remove("namespace");
                }
            }
            Operation::Dependencies => {
                if let Some(list) = said.as_array_mut() {
                    list.sort_by_key(Value::to_string);
                    list.dedup();
                }
            }
            // Where the original goes through a table, the order is any.
            Operation::Components => {
                if let Some(list) = said.as_array_mut() {
                    list.sort_by_key(|part| part["name"].to_string());
                }
            }
            Operation::Aggregate if self.lua.is_none() => {
                if let Some(list) = said.pointer_mut("/conditions").and_then(Value::as_array_mut) {
                    list.sort_by_key(|one| one["type"].to_string());
                }
                // The original writes when it was asked.
                if let Some(state) = said.pointer_mut("/state").and_then(Value::as_object_mut) {
                    state.remove("lastTransitionTime");
                }
                let conditions = said.pointer_mut("/conditions").and_then(Value::as_array_mut);
                for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
                    condition.retain(|key, _| !matches!(key.as_str(), "lastProbeTime" | "lastTransitionTime"));
                }
            }
            _ => {}
        }
        // What a script returns as an object has the empty fields that it was given.
        if self.lua.is_some() && matches!(self.operation, Operation::Revise | Operation::Retain) {
            drop_nulls(&mut said);
            return said;
        }
        strip(&mut said);
        match self.operation {
            Operation::Aggregate => {
                drop_zeros(&mut said);
                strip(&mut said);
            }
            Operation::Retain if self.kind() == "Pod" => drop_zeros(&mut said),
            _ => {}
        }
        said
    }
}

/// Removes what says nothing: typed objects have no empty fields, or have them all.
pub fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(strip);
            map.retain(|_, inner| match inner {
                Value::Null => false,
                Value::Object(map) => !map.is_empty(),
                Value::Array(list) => !list.is_empty(),
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        Value::Number(number) => {
            // 1.0 is 1.
            if let Some(whole) = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15) {
                *value = json!(whole as i64);
            }
        }
        _ => {}
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// In typed objects 0, an empty text and nothing are the same.
fn drop_zeros(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_zeros);
            map.retain(|_, value| *value != json!(0) && *value != json!(""));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_zeros),
        _ => {}
    }
}

/// Whether both say the same.
fn same(ours: &Said, theirs: &Said) -> bool {
    let empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs || (empty(ours) && empty(theirs)),
        // How it is said is our own affair, except that nothing is known of the kind.
        (Err(ours), Err(theirs)) => (ours == "no hook") == (theirs == "no hook"),
        _ => false,
    }
}

/// What the original says. On a busy machine its scripts may run out of time: those are asked again.
fn ask(cases: &[Case]) -> Option<Vec<Said>> {
    let questions: Vec<Value> = cases.iter().map(Case::question).collect();
    let mut answers = ask_original(&questions)?;
    for _ in 0..10 {
        let is_late = |said: &Said| said.as_ref().is_err_and(|why| why.contains("deadline exceeded"));
        let late: Vec<usize> = (0..answers.len()).filter(|at| is_late(&answers[*at])).collect();
        if late.is_empty() {
            break;
        }
        let again: Vec<Value> = late.iter().map(|at| questions[*at].clone()).collect();
        for (at, answer) in late.into_iter().zip(ask_original(&again)?) {
            answers[at] = answer;
        }
    }
    Some(answers)
}

/// Puts all questions to both; fails on a difference that is not accepted, and on one accepted that is none.
pub fn compare(what: &str, cases: &[Case], accepted: &[Accepted]) {
    let Some(answers) = ask(cases) else { return };
    let (mut used, mut wrong) = (vec![0; accepted.len()], BTreeMap::<String, Vec<String>>::new());
    let mut equal = 0;
    for (case, theirs) in cases.iter().zip(answers) {
        let ours = case.patiently().map(|said| case.counts(said));
        let theirs = theirs.map(|said| case.counts(said));
        if same(&ours, &theirs) {
            equal += 1;
            continue;
        }
        match accepted.iter().position(|one| (one.is)(case, &ours, &theirs)) {
            Some(at) => used[at] += 1,
            None => {
                let group = format!("{} {}", case.kind(), case.operation.as_str());
                wrong.entry(group).or_default().push(difference(case, &ours, &theirs));
            }
        }
    }
    let total: usize = wrong.values().map(Vec::len).sum();
    eprintln!(
        "{what}: {} asked, {equal} equal, {} accepted, {total} different",
        cases.len(),
        used.iter().sum::<usize>()
    );
    for (one, used) in accepted.iter().zip(&used) {
        eprintln!("  {used} accepted: {}", one.why);
    }
    let shown: usize = std::env::var("ATOLL_SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for (group, all) in &wrong {
        eprintln!("{group}: {}", all.len());
        all.iter().take(shown).for_each(|one| eprintln!("{one}"));
    }
    assert_eq!(total, 0, "{what} differ from the original");
    for (one, used) in accepted.iter().zip(used) {
        assert!(used > 0, "accepted, but no case differs so: {}", one.why);
    }
}

fn difference(case: &Case, ours: &Said, theirs: &Said) -> String {
    let mut text = format!("  object   {:.900}\n", case.object.to_string());
    match case.operation {
        Operation::Retain => text += &format!("  observed {:.900}\n", case.observed.to_string()),
        Operation::Aggregate => text += &format!("  items    {}\n", json!(case.items)),
        _ => {}
    }
    if let Some(lua) = &case.lua {
        // Of a script's object only the script matters.
        let shown: Vec<&str> = lua.lines().filter(|line| line.contains(' ')).collect();
        text = format!("  lua      {}\n", shown.join(" | "));
    }
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            let mut lines = Vec::new();
            leaves(ours, theirs, "", &mut lines);
            text + &lines.join("\n")
        }
        (ours, theirs) => text + &format!("  ours     {ours:?}\n  theirs   {theirs:?}"),
    }
}

/// The places where two values differ.
fn leaves(ours: &Value, theirs: &Value, at: &str, lines: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                leaves(&ours[key], &theirs[key], &format!("{at}/{key}"), lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                leaves(a, b, &format!("{at}/{index}"), lines);
            }
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => lines.push(format!("  {at}: ours {ours} theirs {theirs}")),
    }
}
