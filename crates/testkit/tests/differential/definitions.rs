//! Definitions of programs nobody here wrote, with objects made up from their schemas.

use std::path::{Path, PathBuf};

use atoll_testkit::peers;
use serde_json::{Map, Value, json};

use crate::case::{Case, Story};

/// Objects made up for each version of each definition.
const OBJECTS: u64 = 8;

/// The original takes its time until it serves a definition; meanwhile others can be made.
const PARTS: usize = 6;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides.max(1)
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.roll(100) < chance
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }
}

/// A value that more or less fits a schema.
fn make(schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    if dice.percent(3) {
        return dice.pick(&[json!("odd"), json!(7), json!(true), json!([]), json!({}), Value::Null]).clone();
    }
    if let Some(choices) = schema["enum"].as_array().filter(|_| !dice.percent(5)) {
        return dice.pick(choices).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return dice.pick(&[json!(80), json!("50%"), json!("http")]).clone();
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "date-time" => "2024-05-06T07:08:09Z".into(),
        "string" => (*dice.pick(&["a", "a-b", "Some text.", "", "v1"])).into(),
        "integer" => (*dice.pick(&[0, 1, 5, 100, -1])).into(),
        "number" => json!(*dice.pick(&[0.5, 1.0])),
        "boolean" => dice.percent(50).into(),
        "array" => (0..dice.roll(3)).map(|_| make(&schema["items"], dice, depth + 1)).collect(),
        "object" => object(schema, dice, depth).into(),
        _ => json!({"anything": 1}),
    }
}

fn object(schema: &Value, dice: &mut Dice, depth: usize) -> Map<String, Value> {
    let mut map = Map::new();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, own) in schema["properties"].as_object().into_iter().flatten() {
        let wanted = if required.contains(&name.as_str()) { 95 } else { 55_usize.saturating_sub(6 * depth) };
        if dice.percent(wanted) {
            map.insert(name.clone(), make(own, dice, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() {
        map.insert("key".into(), make(&schema["additionalProperties"], dice, depth + 1));
    }
    if dice.percent(4) {
        map.insert("unheardOf".into(), 1.into());
    }
    map
}

fn case(name: String, send: String, body: Option<Value>) -> Case {
    let mut case: Case = serde_json::from_value(json!({"name": name, "send": send})).unwrap();
    case.body = body;
    // The original looks at fields in no particular order.
    case.unordered = true;
    case
}

fn files() -> Vec<PathBuf> {
    let mut all = peers::karmada_definitions();
    all.extend(["kubeocean", "clusterpedia"].map(peers::reference_definitions).concat());
    all
}

/// Requests that make, fill and remove the definition in a file.
fn cases(path: &Path) -> Vec<Case> {
    let definition: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (name, spec) = (definition["metadata"]["name"].as_str().unwrap(), &definition["spec"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut define = case(format!("{name}: define"), format!("POST {all}"), Some(definition.clone()));
    define.only = Some("code".into());
    let mut ready = case(format!("{name}: ready"), format!("GET {all}/{name}"), None);
    ready.until_is.insert("/status/conditions/1/status".into(), "True".into());
    ready.only = Some("code".into());
    let mut cases = vec![define, ready];
    for version in spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true) {
        let served = text(&version["name"]);
        let place = if spec["scope"] == "Namespaced" { "namespaces/$ns/" } else { "" };
        let url = format!("/apis/{}/{served}/{place}{}", text(&spec["group"]), text(&spec["names"]["plural"]));
        let mut found = case(format!("{name}: {served} is there"), format!("GET {url}"), None);
        (found.until, found.only) = (Some(200), Some("code".into()));
        cases.push(found);
        for number in 0..OBJECTS {
            let mut dice = Dice(number * 7919 + name.len() as u64);
            let mut object = object(&version["schema"]["openAPIV3Schema"], &mut dice, 0);
            object.insert("apiVersion".into(), format!("{}/{served}", text(&spec["group"])).into());
            object.insert("kind".into(), spec["names"]["kind"].clone());
            object.insert("metadata".into(), json!({"name": format!("made-up-{number}")}));
            cases.push(case(format!("{name}: {served} {number}"), format!("POST {url}"), Some(object.into())));
        }
    }
    let mut remove = case(format!("{name}: remove"), format!("DELETE {all}/{name}"), None);
    remove.only = Some("code".into());
    cases.push(remove);
    cases
}

/// Stories of all definitions, several so that they can be told at the same time.
pub fn stories() -> Vec<Story> {
    let files = files();
    let mut parts: Vec<Vec<Case>> = vec![Vec::new(); PARTS];
    for (at, path) in files.iter().enumerate() {
        parts[at % PARTS].extend(cases(path));
    }
    let told = parts.into_iter().enumerate().filter(|(_, cases)| !cases.is_empty());
    told.map(|(at, cases)| Story { name: format!("definitions-{at}"), cases }).collect()
}
