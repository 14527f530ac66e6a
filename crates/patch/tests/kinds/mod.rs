//! Kinds the tests work with.
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::sync::LazyLock;

use atoll_patch::managed::{self, ApplyError, Request};
use atoll_schema::{Schema, Typed, Types};
use serde_json::{Value, json};

/// A built-in kind.
pub fn built_in(group: &str, version: &str, kind: &str) -> Typed<'static> {
    let info = atoll_builtin::find_kind(group, version, kind).expect("the kind is built in");
    Typed::new(atoll_builtin::types(), atoll_builtin::schema_of(info))
}

pub fn pod() -> Typed<'static> {
    built_in("", "v1", "Pod")
}

pub fn deployment() -> Typed<'static> {
    built_in("apps", "v1", "Deployment")
}

pub fn config_map() -> Typed<'static> {
    built_in("", "v1", "ConfigMap")
}

static NO_TYPES: LazyLock<Types> = LazyLock::new(Types::default);

/// A custom kind with one field of every sort.
pub static CUSTOM: LazyLock<Schema> = LazyLock::new(|| {
    let item = json!({"type": "object", "properties": {
        "id": {"type": "string"}, "zone": {"type": "string", "default": "z"}, "v": {"type": "integer"},
        "inner": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                  "items": {"type": "object", "properties": {"id": {"type": "string"}, "v": {"type": "integer"}}}}}});
    let schema = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "status": {"type": "object", "properties": {"s": {"type": "integer"}}},
        "spec": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "zone"], "items": item},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "structs": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "v": {"type": "integer"}, "w": {"type": "integer"}}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "either": {"x-kubernetes-int-or-string": true},
            "array": {"type": "array", "items": {"type": "integer"}}}}}});
    Schema::from_json(&schema).expect("the schema above is well-formed")
});

pub fn custom() -> Typed<'static> {
    Typed::new(&NO_TYPES, &CUSTOM)
}

/// An object of the custom kind.
pub fn object(spec: Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "n", "namespace": "d"}, "spec": spec})
}

/// Writers of custom objects, with a clock that only moves when told.
#[derive(Default)]
pub struct World {
    pub live: Option<Value>,
    pub minute: u32,
}

impl World {
    fn request<T>(&self, manager: &str, subresource: &str, run: impl FnOnce(&Request, Option<&Value>) -> T) -> T {
        let now = format!("2024-01-01T00:{:02}:00Z", self.minute);
        let reset: &[&str] = if subresource == "status" { &["spec"] } else { &["status"] };
        let request = Request {
            manager,
            api_version: "x.io/v1",
            subresource,
            now: &now,
            schema: Some(custom()),
            reset,
            versions: &|version| version != "x.io/v0",
        };
        run(&request, self.live.as_ref())
    }

    /// Creates or updates; says whether ownership changed.
    pub fn update_at(&mut self, manager: &str, subresource: &str, mut new: Value) -> bool {
        if self.live.is_some() {
            new["metadata"]["uid"] = "u".into();
        }
        let changed = self.request(manager, subresource, |request, live| managed::update(request, live, &mut new));
        new["metadata"]["uid"] = "u".into();
        self.live = Some(new);
        changed
    }

    pub fn update(&mut self, manager: &str, spec: Value) -> bool {
        self.update_at(manager, "", object(spec))
    }

    pub fn apply_object(&mut self, manager: &str, config: &Value, force: bool) -> Result<(), ApplyError> {
        let mut new = self.request(manager, "", |request, live| managed::apply(request, live, config, force))?;
        new["metadata"]["uid"] = "u".into();
        self.live = Some(new);
        Ok(())
    }

    pub fn apply(&mut self, manager: &str, spec: Value) -> Result<(), ApplyError> {
        self.apply_object(manager, &object(spec), false)
    }

    pub fn force(&mut self, manager: &str, spec: Value) {
        self.apply_object(manager, &object(spec), true).expect("force knows no conflicts");
    }

    pub fn spec(&self) -> Value {
        self.live.as_ref().map(|live| live["spec"].clone()).unwrap_or_default()
    }

    pub fn entries(&self) -> Vec<Value> {
        let list = self.live.as_ref().and_then(|live| live["metadata"]["managedFields"].as_array());
        list.cloned().unwrap_or_default()
    }

    /// The paths a manager owns below spec, by any operation.
    pub fn owned(&self, manager: &str) -> Vec<String> {
        let mut paths = Vec::new();
        for entry in self.entries().iter().filter(|entry| entry["manager"] == manager) {
            let set = atoll_patch::fields::FieldSet::from_fields_v1(&entry["fieldsV1"]).expect("written by ourselves");
            paths.extend(set.paths().iter().map(ToString::to_string));
        }
        paths.into_iter().map(|path| path.strip_prefix(".spec").map_or(path.clone(), str::to_owned)).collect()
    }
}
