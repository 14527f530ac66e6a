//! Paths and operations of a kind, built-in or custom.

use serde_json::{Map, Value, json};

use super::operation::{Content, Operation, put_path};

/// What the paths of a kind depend on.
#[derive(Clone, Debug, Default)]
pub struct PathKind {
    /// API group; empty for the core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind of one object.
    pub kind: String,
    /// Plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs offered.
    pub verbs: Vec<String>,
    /// Component of one object.
    pub component: String,
    /// Component of a list.
    pub list_component: String,
    /// Whether a delete answers with the object and not with a Status.
    pub delete_returns_object: bool,
    /// Custom resources know neither strategic merge patch nor protobuf nor the old watch paths.
    pub custom: bool,
    /// Subresources.
    pub subresources: Vec<PathSub>,
}

/// What the paths of a subresource depend on.
#[derive(Clone, Debug, Default)]
pub struct PathSub {
    /// Name.
    pub name: String,
    /// Verbs offered.
    pub verbs: Vec<String>,
    /// Group of its kind.
    pub group: String,
    /// Version of its kind.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Component of its kind; empty when it answers plain text.
    pub component: String,
    /// Query parameters: name and OpenAPI type.
    pub options: Vec<(String, &'static str)>,
    /// Whether it is a connection (exec, proxy) and not a resource.
    pub connect: bool,
}

impl PathKind {
    fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    /// `/apis/apps/v1`.
    pub(crate) fn root(group: &str, version: &str) -> String {
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
    }

    pub(crate) fn content(&self) -> Content {
        if self.custom { Content::Custom } else { Content::BuiltIn }
    }

    /// A new operation on this kind; `noun` follows verb and group-version in its id.
    fn operation(&self, method: &'static str, action: &'static str, id: (&str, &str)) -> Operation {
        let operation = Operation::new(method, id.0, (&self.group, &self.version), id.1, self.content());
        operation.action(action, (&self.group, &self.version, &self.kind))
    }
}

/// All paths of a kind with their operations.
pub fn paths_for(kind: &PathKind) -> Map<String, Value> {
    let mut out = Map::new();
    let root = PathKind::root(&kind.group, &kind.version);
    let (space, prefix) = if kind.namespaced { ("/namespaces/{namespace}", "Namespaced") } else { ("", "") };
    let collection = format!("{root}{space}/{}", kind.plural);
    let noun = format!("{prefix}{}", kind.kind);
    put_path(&mut out, collection.clone(), collection_operations(kind, &noun));
    put_path(&mut out, format!("{collection}/{{name}}"), item_operations(kind, &noun));
    if kind.namespaced && kind.allows("list") {
        let all = list(kind, &format!("{}ForAllNamespaces", kind.kind));
        put_path(&mut out, format!("{root}/{}", kind.plural), vec![all]);
    }
    if kind.allows("watch") && !kind.custom {
        put_watch_paths(kind, &root, space, &noun, &mut out);
    }
    for sub in &kind.subresources {
        put_sub_paths(kind, sub, &collection, &noun, &mut out);
    }
    out
}

fn list(kind: &PathKind, noun: &str) -> Operation {
    kind.operation("get", "list", ("list", noun)).list_options().stream_answer(&kind.list_component)
}

fn collection_operations(kind: &PathKind, noun: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    if kind.allows("list") {
        operations.push(list(kind, noun));
    }
    if kind.allows("create") {
        let create = kind.operation("post", "post", ("create", noun)).write_options(false);
        operations.push(create.body(&kind.component).answers(&["200", "201", "202"], &kind.component));
    }
    if kind.allows("deletecollection") {
        let delete = kind.operation("delete", "deletecollection", ("delete", &format!("Collection{noun}")));
        operations.push(delete.delete_collection_options().delete_body().answers(&["200"], STATUS));
    }
    operations
}

/// The component of a Status.
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
/// The component of a watch event.
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

fn item_operations(kind: &PathKind, noun: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    if kind.allows("get") {
        operations.push(kind.operation("get", "get", ("read", noun)).answers(&["200"], &kind.component));
    }
    if kind.allows("update") {
        let replace = kind.operation("put", "put", ("replace", noun)).write_options(false);
        operations.push(replace.body(&kind.component).answers(&["200", "201"], &kind.component));
    }
    if kind.allows("patch") {
        operations.push(patch(kind, kind.operation("patch", "patch", ("patch", noun)), &kind.component));
    }
    if kind.allows("delete") {
        let answer = if kind.delete_returns_object { kind.component.as_str() } else { STATUS };
        let delete = kind.operation("delete", "delete", ("delete", noun)).delete_options();
        operations.push(delete.delete_body().answers(&["200", "202"], answer));
    }
    operations
}

fn patch(kind: &PathKind, operation: Operation, component: &str) -> Operation {
    let codes: &[&str] = if kind.custom { &["200"] } else { &["200", "201"] };
    operation.write_options(true).patch_body().answers(codes, component)
}

fn put_watch_paths(kind: &PathKind, root: &str, space: &str, noun: &str, out: &mut Map<String, Value>) {
    let watch =
        |action, noun: &str| kind.operation("get", action, ("watch", noun)).list_options().stream_answer(WATCH_EVENT);
    let collection = format!("{root}/watch{space}/{}", kind.plural);
    put_path(out, format!("{collection}/{{name}}"), vec![watch("watch", noun)]);
    put_path(out, collection, vec![watch("watchlist", &format!("{noun}List"))]);
    if kind.namespaced {
        let all = watch("watchlist", &format!("{}ListForAllNamespaces", kind.kind));
        put_path(out, format!("{root}/watch/{}", kind.plural), vec![all]);
    }
}

fn put_sub_paths(kind: &PathKind, sub: &PathSub, collection: &str, noun: &str, out: &mut Map<String, Value>) {
    let path = format!("{collection}/{{name}}/{}", sub.name);
    let noun = format!("{noun}{}", capital(&sub.name));
    if sub.connect {
        put_path(out, path.clone(), connections(kind, sub, &noun));
        if sub.name == "proxy" {
            put_path(out, format!("{path}/{{path}}"), connections(kind, sub, &format!("{noun}WithPath")));
        }
        return;
    }
    let operation = |method, action, verb| {
        let operation = Operation::new(method, verb, (&kind.group, &kind.version), &noun, kind.content());
        operation.action(action, (&sub.group, &sub.version, &sub.kind)).options(&sub.options)
    };
    let mut operations = Vec::new();
    for verb in &sub.verbs {
        operations.push(match verb.as_str() {
            "get" if sub.component.is_empty() => operation("get", "get", "read").text_answer(),
            "get" => operation("get", "get", "read").answers(&["200"], &sub.component),
            "update" => operation("put", "put", "replace")
                .write_options(false)
                .body(&sub.component)
                .answers(&["200", "201"], &sub.component),
            "patch" => patch(kind, operation("patch", "patch", "patch"), &sub.component),
            "create" => {
                let codes = ["200", "201", "202"];
                operation("post", "post", "create")
                    .write_options(false)
                    .body(&sub.component)
                    .answers(&codes, &sub.component)
            }
            _ => continue,
        });
    }
    put_path(out, path, operations);
}

/// Connections answer on every method that HTTP upgrades and proxies use.
fn connections(kind: &PathKind, sub: &PathSub, noun: &str) -> Vec<Operation> {
    let methods: &[&'static str] = if sub.name == "proxy" {
        &["get", "put", "post", "delete", "options", "head", "patch"]
    } else {
        &["get", "post"]
    };
    let operation = |method: &'static str| {
        let operation =
            Operation::new(method, "connect", (&kind.group, &kind.version), noun, kind.content()).connection();
        operation.action("connect", (&sub.group, &sub.version, &sub.kind)).options(&sub.options)
    };
    methods.iter().map(|method| operation(method)).collect()
}

/// The path that lists the resources of a group-version.
pub(crate) fn put_resource_list(out: &mut Map<String, Value>, group: &str, version: &str, content: Content) {
    let operation = Operation::new("get", "get", (group, version), "APIResources", content).plain();
    let operation = operation.answers(&["200"], "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList");
    put_path(out, format!("{}/", PathKind::root(group, version)), vec![operation]);
}

/// `status` as `Status`.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A path item with one operation that only answers a component.
pub(crate) fn plain_get(id: &str, tag: &str, types: &[&str], component: &str) -> Value {
    let content: Map<String, Value> = types
        .iter()
        .map(|media| ((*media).to_owned(), json!({"schema": super::schema::reference(component)})))
        .collect();
    json!({"get": {
        "operationId": id,
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        "tags": [tag],
    }})
}
