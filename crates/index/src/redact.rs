//! What must not enter the index: secret values, and what repeats them.

use serde_json::{Map, Value};

/// The annotation in which kubectl repeats the whole object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A ConfigMap with this label or annotation set to `true` is treated like a Secret.
const SENSITIVE: &str = "atoll.io/sensitive";

/// Words in the name of an environment variable that make its literal value a secret.
const SECRET_WORDS: [&str; 7] = ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY", "PRIVATE_KEY"];

/// Credentials that some kinds carry in their spec.
const SPEC_CREDENTIALS: [&str; 5] = ["kubeconfig", "caData", "tokenData", "certData", "keyData"];

/// What the JSON of an object has in it if [`redact`] may take something away, or if anything in it is spelled in a way
/// that this list would not recognise. Each begins with a character that is rare in JSON, so that it is looked for fast.
const MARKS: [&str; 8] = [
    "Secret\"",
    "PediaCluster\"",
    "/sensitive",
    "-applied-configuration",
    // An object embedded as text.
    "\\\"kind\\\"",
    // Characters by number and slashes behind a backslash: anything may be spelled with them, the character zero too.
    "\\u",
    "\\/",
    // Written for people, with white space anywhere.
    "\n",
];

/// Whether [`redact`] may change more of an object than the record of managed fields; says so rather too often than not.
/// `kind` is what the object is if it does not say so itself.
pub fn may_change(text: &str, kind: &str) -> bool {
    let has_variable = || {
        let text = text.to_ascii_uppercase();
        SECRET_WORDS.iter().any(|word| text.contains(word))
    };
    matches!(kind, "Secret" | "PediaCluster")
        || MARKS.iter().any(|mark| text.contains(mark))
        || (text.contains("env\"") && has_variable())
}

/// Removes secret values from an object and from all objects embedded in it, and what PostgreSQL cannot keep.
pub fn redact(tree: &mut Value) {
    // First: what is a Secret without it is one.
    drop_zero(tree);
    if let Some(meta) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
    walk(tree);
}

/// Takes the character zero out of all texts: no sane object has it, and no text of PostgreSQL may.
fn drop_zero(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.keys().any(|key| key.contains('\0')) {
                let old = std::mem::take(map);
                map.extend(old.into_iter().map(|(key, value)| (key.replace('\0', ""), value)));
            }
            map.values_mut().for_each(drop_zero);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_zero),
        Value::String(text) if text.contains('\0') => text.retain(|letter| letter != '\0'),
        _ => {}
    }
}

fn walk(value: &mut Value) {
    match value {
        Value::Object(map) => {
            clean(map);
            map.values_mut().for_each(walk);
        }
        Value::Array(list) => list.iter_mut().for_each(walk),
        Value::String(text) => {
            // Some kinds embed objects as text; a Secret is one there too.
            if let Some(mut inner) = embedded(text) {
                let before = inner.clone();
                walk(&mut inner);
                if inner != before {
                    *text = inner.to_string();
                }
            }
        }
        _ => {}
    }
}

/// An object written as JSON text inside another.
fn embedded(text: &str) -> Option<Value> {
    let start = text.trim_start();
    if start.starts_with('{') && text.contains("\"kind\"") { serde_json::from_str(text).ok() } else { None }
}

fn clean(map: &mut Map<String, Value>) {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "Secret" => drop_data(map),
        "ConfigMap" if is_sensitive(map) => drop_data(map),
        "PediaCluster" => {
            if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
                SPEC_CREDENTIALS.iter().for_each(|field| drop(spec.remove(*field)));
            }
        }
        _ => {}
    }
    if let Some(annotations) = map.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    if let Some(Value::Array(list)) = map.get_mut("env") {
        list.iter_mut().for_each(clean_variable);
    }
}

fn drop_data(map: &mut Map<String, Value>) {
    for field in ["data", "stringData", "binaryData"] {
        map.remove(field);
    }
}

fn is_sensitive(map: &Map<String, Value>) -> bool {
    let meta = map.get("metadata");
    let marked = |part: &str| {
        meta.and_then(|meta| meta.get(part)).and_then(|words| words.get(SENSITIVE)) == Some(&"true".into())
    };
    marked("labels") || marked("annotations")
}

fn clean_variable(variable: &mut Value) {
    let name = variable["name"].as_str().unwrap_or_default().to_ascii_uppercase();
    if SECRET_WORDS.iter().any(|word| name.contains(word))
        && let Some(map) = variable.as_object_mut()
    {
        map.remove("value");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn leaks(mut tree: Value) -> bool {
        redact(&mut tree);
        tree.to_string().contains("canary")
    }

    #[test]
    fn no_form_of_a_secret_gets_through() {
        let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "canary"},
                            "stringData": {"b": "canary"}});
        let forms = [
            secret.clone(),
            json!({"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: "canary"}}}),
            json!({"kind": "Work", "spec": {"workload": {"manifests": [secret.clone()]}}}),
            json!({"kind": "List", "items": [{"kind": "List", "items": [secret.clone()]}]}),
            json!({"kind": "ConfigMap", "metadata": {"labels": {SENSITIVE: "true"}}, "data": {"a": "canary"}}),
            json!({"kind": "ConfigMap", "data": {"object": secret.to_string()}}),
            json!({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": "canary"}]}]}}),
            json!({"kind": "PediaCluster", "spec": {"kubeconfig": "canary", "tokenData": "canary"}}),
            json!({"kind": "Deployment", "metadata": {"managedFields": ["canary"]}}),
            json!({"kind": "Sec\u{0}ret", "da\u{0}ta": {"a": "canary"}}),
        ];
        for form in forms {
            assert!(!leaks(form.clone()), "{form}");
            let managed = !form["metadata"]["managedFields"].is_null();
            assert!(managed || may_change(&form.to_string(), ""), "{form}");
        }
        assert!(may_change("{}", "Secret"), "an item of a list does not say what it is");
    }

    #[test]
    fn everything_else_stays() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "annotations": {"a": "b"}},
                         "spec": {"containers": [{"env": [{"name": "MODE", "value": "x"}]}]}});
        let mut kept = pod.clone();
        redact(&mut kept);
        assert_eq!(kept, pod);
    }
}
