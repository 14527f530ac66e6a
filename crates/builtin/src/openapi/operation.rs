//! One operation under construction, and how operations share parameters in a path.

use serde_json::{Map, Value, json};

use super::paths::capital;
use super::schema::reference;

/// Which media types a kind speaks.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Content {
    /// All of them.
    BuiltIn,
    /// JSON and YAML.
    Custom,
}

const OBJECT: [&str; 4] =
    ["application/cbor", "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAM: [&str; 7] = [
    "application/cbor",
    "application/cbor-seq",
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];
const PATCH: [&str; 5] = [
    "application/apply-patch+cbor",
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
const CUSTOM_PATCH: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

/// Options of a list or watch.
const LIST_OPTIONS: [(&str, &str); 8] = [
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];
/// Options of a delete.
const DELETE_OPTIONS: [(&str, &str); 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// One operation.
pub(crate) struct Operation {
    method: &'static str,
    content: Content,
    /// Whether it takes `pretty`.
    pretty: bool,
    query: Vec<(String, &'static str)>,
    object: Map<String, Value>,
    responses: Map<String, Value>,
}

impl Operation {
    /// A new operation; its id is made of verb, group-version and noun.
    pub(crate) fn new(
        method: &'static str,
        verb: &str,
        (group, version): (&str, &str),
        noun: &str,
        content: Content,
    ) -> Self {
        let name = group_name(group);
        let connected = if verb == "connect" { capital(method) } else { String::new() };
        let mut object = Map::new();
        object.insert(
            "operationId".to_owned(),
            format!("{verb}{}{}{connected}{noun}", capital(&name), capital(version)).into(),
        );
        object.insert("tags".to_owned(), json!([format!("{name}_{version}")]));
        let mut responses = Map::new();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Self { method, content, pretty: true, query: Vec::new(), object, responses }
    }

    /// What it does, and to which kind.
    pub(crate) fn action(mut self, action: &str, (group, version, kind): (&str, &str, &str)) -> Self {
        self.object.insert("x-kubernetes-action".to_owned(), action.into());
        let gvk = json!({"group": group, "version": version, "kind": kind});
        self.object.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
        self
    }

    /// Takes no parameters at all.
    pub(crate) fn plain(mut self) -> Self {
        self.pretty = false;
        self
    }

    /// A connection: no object goes in or out.
    pub(crate) fn connection(mut self) -> Self {
        self.pretty = false;
        self.responses
            .insert("200".to_owned(), json!({"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}));
        self
    }

    /// Takes these query parameters.
    pub(crate) fn options<S: AsRef<str>>(mut self, options: &[(S, &'static str)]) -> Self {
        self.query.extend(options.iter().map(|(name, ty)| (name.as_ref().to_owned(), *ty)));
        self
    }

    /// Parameters of list and watch.
    pub(crate) fn list_options(self) -> Self {
        self.options(&LIST_OPTIONS).options(&[("allowWatchBookmarks", "boolean"), ("watch", "boolean")])
    }

    /// Parameters of create, update and patch.
    pub(crate) fn write_options(self, force: bool) -> Self {
        let out = self.options(&[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")]);
        if force { out.options(&[("force", "boolean")]) } else { out }
    }

    /// Parameters of delete.
    pub(crate) fn delete_options(self) -> Self {
        self.options(&DELETE_OPTIONS)
    }

    /// Parameters of delete on a collection.
    pub(crate) fn delete_collection_options(self) -> Self {
        self.options(&LIST_OPTIONS).options(&DELETE_OPTIONS)
    }

    /// Wants an object.
    pub(crate) fn body(self, component: &str) -> Self {
        let types: &[&str] = if self.content == Content::BuiltIn { &["*/*"] } else { &CUSTOM };
        self.request(types, component, true)
    }

    /// Wants a patch.
    pub(crate) fn patch_body(self) -> Self {
        let types: &[&str] = if self.content == Content::BuiltIn { &PATCH } else { &CUSTOM_PATCH };
        self.request(types, "io.k8s.apimachinery.pkg.apis.meta.v1.Patch", true)
    }

    /// Takes delete options.
    pub(crate) fn delete_body(self) -> Self {
        let types: &[&str] = if self.content == Content::BuiltIn { &["*/*"] } else { &CUSTOM };
        self.request(types, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", false)
    }

    fn request(mut self, types: &[&str], component: &str, required: bool) -> Self {
        let mut body = json!({"content": content(types, &reference(component))});
        if required {
            body["required"] = true.into();
        }
        self.object.insert("requestBody".to_owned(), body);
        self
    }

    /// Answers these codes with a component.
    pub(crate) fn answers(mut self, codes: &[&str], component: &str) -> Self {
        let types: &[&str] = if self.content == Content::BuiltIn { &OBJECT } else { &CUSTOM };
        for code in codes {
            self.answer(code, types, &reference(component));
        }
        self
    }

    /// Answers a list or a stream of events.
    pub(crate) fn stream_answer(mut self, component: &str) -> Self {
        let types: &[&str] = if self.content == Content::BuiltIn { &STREAM } else { &CUSTOM };
        self.answer("200", types, &reference(component));
        self
    }

    /// Answers text.
    pub(crate) fn text_answer(mut self) -> Self {
        let types: Vec<&str> = OBJECT.into_iter().chain(["text/plain"]).collect();
        self.answer("200", &types, &json!({"type": "string"}));
        self
    }

    fn answer(&mut self, code: &str, types: &[&str], schema: &Value) {
        let description = match code {
            "201" => "Created",
            "202" => "Accepted",
            _ => "OK",
        };
        self.responses.insert(code.to_owned(), json!({"description": description, "content": content(types, schema)}));
    }

    /// All its parameters, those of the path included, by name.
    fn parameters(&self, path: &str) -> Vec<Value> {
        let mut all: Vec<(&str, &str, &str)> =
            self.query.iter().map(|(name, ty)| (name.as_str(), "query", *ty)).collect();
        if self.pretty {
            all.push(("pretty", "query", "string"));
        }
        for name in ["name", "namespace", "path"] {
            if path.contains(&format!("{{{name}}}")) {
                all.push((name, "path", "string"));
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(name, place, ty)| parameter(name, place, ty)).collect()
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    Value::Object(types.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect())
}

fn parameter(name: &str, place: &str, ty: &str) -> Value {
    let mut out = json!({"name": name, "in": place, "schema": {"type": ty, "uniqueItems": true}});
    if place == "path" {
        out["required"] = true.into();
    }
    out
}

/// The group as it stands in operation ids and tags: `rbacAuthorization`, `core`.
pub(crate) fn group_name(group: &str) -> String {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    if short.is_empty() {
        return "core".to_owned();
    }
    let mut words = short.split(['.', '-']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

/// Adds a path; parameters that all its operations take move up to the path.
pub(crate) fn put_path(out: &mut Map<String, Value>, path: String, operations: Vec<Operation>) {
    if operations.is_empty() {
        return;
    }
    let own: Vec<Vec<Value>> = operations.iter().map(|operation| operation.parameters(&path)).collect();
    let shared: Vec<Value> =
        own[0].iter().filter(|parameter| own.iter().all(|list| list.contains(parameter))).cloned().collect();
    let mut item = Map::new();
    for (mut operation, parameters) in operations.into_iter().zip(own) {
        let rest: Vec<Value> = parameters.into_iter().filter(|parameter| !shared.contains(parameter)).collect();
        if !rest.is_empty() {
            operation.object.insert("parameters".to_owned(), rest.into());
        }
        operation.object.insert("responses".to_owned(), Value::Object(operation.responses));
        item.insert(operation.method.to_owned(), Value::Object(operation.object));
    }
    if !shared.is_empty() {
        item.insert("parameters".to_owned(), shared.into());
    }
    out.insert(path, Value::Object(item));
}
