//! Customisations for tests.

use atoll_interpreter::Interpreter;
use serde_json::{Value, json};

/// A customisation of `example.io/v1 Thing`.
pub fn customization(name: &str, scripts: &[(&str, &str)]) -> Value {
    let scripts = scripts.iter().map(|(field, script)| ((*field).to_owned(), json!({"luaScript": script})));
    json!({
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": name},
        "spec": {
            "target": {"apiVersion": "example.io/v1", "kind": "Thing"},
            "customizations": scripts.collect::<serde_json::Map<_, _>>(),
        },
    })
}

/// An interpreter with these scripts.
pub fn interpreter(scripts: &[(&str, &str)]) -> Interpreter {
    let (interpreter, errors) = Interpreter::new().with_customizations(&[customization("one", scripts)]);
    assert_eq!(errors, []);
    interpreter
}

/// A `Thing` with this body.
pub fn thing(body: Value) -> Value {
    let mut thing =
        json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "it", "namespace": "ns"}});
    for (key, value) in body.as_object().into_iter().flatten() {
        thing[key] = value.clone();
    }
    thing
}
