//! Documents of custom resources: the same shapes as for built-in kinds.

use std::sync::LazyLock;

use atoll_schema::{Schema, Type};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::paths::{PathKind, PathSub, paths_for};
use super::prose::Prose;
use super::schema::{reference, schema_json};
use super::{META, assemble};

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub struct CustomKind<'a> {
    /// API group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kind of one object.
    pub kind: &'a str,
    /// Kind of a list.
    pub list_kind: &'a str,
    /// Plural name.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Schema of the version.
    pub schema: &'a Schema,
    /// Whether it has a status subresource.
    pub status: bool,
    /// Whether it has a scale subresource.
    pub scale: bool,
}

impl CustomKind<'_> {
    /// `com.example.v1.Foo` for kind `Foo` of `example.com/v1`.
    pub fn component(&self, kind: &str) -> String {
        let reversed: Vec<&str> = self.group.split('.').rev().collect();
        format!("{}.{}.{kind}", reversed.join("."), self.version)
    }

    fn path_kind(&self) -> PathKind {
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let mut subresources = Vec::new();
        if self.status {
            subresources.push(self.subresource(
                "status",
                (self.group, self.version, self.kind),
                self.component(self.kind),
            ));
        }
        if self.scale {
            let scale = "io.k8s.api.autoscaling.v1.Scale".to_owned();
            subresources.push(self.subresource("scale", ("autoscaling", "v1", "Scale"), scale));
        }
        PathKind {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
            namespaced: self.namespaced,
            verbs: verbs.map(str::to_owned).into(),
            component: self.component(self.kind),
            list_component: self.component(self.list_kind),
            delete_returns_object: false,
            custom: true,
            subresources,
        }
    }

    fn subresource(&self, name: &str, (group, version, kind): (&str, &str, &str), component: String) -> PathSub {
        PathSub {
            name: name.to_owned(),
            verbs: ["get", "patch", "update"].map(str::to_owned).into(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            component,
            ..PathSub::default()
        }
    }

    fn gvk(&self, kind: &str) -> Value {
        json!([{"group": self.group, "version": self.version, "kind": kind}])
    }

    fn object(&self) -> Value {
        let mut out = schema_json(&with_embedded(self.schema));
        if let Some(object) = out.as_object_mut() {
            put_object_fields(object);
            object.insert("type".to_owned(), "object".into());
            object.insert("x-kubernetes-group-version-kind".to_owned(), self.gvk(self.kind));
        }
        out
    }

    fn list(&self) -> Value {
        json!({
            "description": format!("{} is a list of {}", self.list_kind, self.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string", "description": common("apiVersion")},
                "kind": {"type": "string", "description": common("kind")},
                "metadata": described("ListMeta", "Metadata of the list: its resourceVersion and how to continue it."),
                "items": {"type": "array", "items": reference(&self.component(self.kind)), "description": "The objects of the list."},
            },
            "x-kubernetes-group-version-kind": self.gvk(self.list_kind),
        })
    }
}

fn described(kind: &str, description: &str) -> Value {
    json!({"allOf": [reference(&format!("{META}{kind}"))], "description": description})
}

/// What the fields every object has are, in the words of a small built-in kind.
fn common(field: &str) -> &'static str {
    static PROSE: LazyLock<Prose> = LazyLock::new(|| Prose::of("scheduling.k8s.io", "v1"));
    PROSE.of_field("io.k8s.api.scheduling.v1.PriorityClass", field).unwrap_or_default()
}

/// Adds what every object has.
fn put_object_fields(object: &mut Map<String, Value>) {
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    for field in ["apiVersion", "kind"] {
        properties[field] = json!({"type": "string", "description": common(field)});
    }
    properties["metadata"] = described("ObjectMeta", common("metadata"));
}

/// The schema with apiVersion, kind and metadata where a whole object is embedded.
fn with_embedded(schema: &Schema) -> Schema {
    let mut out = schema.clone();
    embed(&mut out);
    out
}

fn embed(schema: &mut Schema) {
    for property in schema.properties.values_mut() {
        embed(property);
        if property.embedded_resource {
            let prose = |field: &str| Some(common(field).into());
            for field in ["apiVersion", "kind"] {
                let text = Schema { ty: Type::String, description: prose(field), ..Schema::default() };
                property.properties.insert(field.into(), text);
            }
            let reference = Some(format!("{META}ObjectMeta").into());
            let metadata = Schema { reference, description: prose("metadata"), ..Schema::default() };
            property.properties.insert("metadata".into(), metadata);
            for field in ["kind", "apiVersion"] {
                if !property.required.iter().any(|known| **known == *field) {
                    property.required.push(field.into());
                }
            }
        }
    }
    schema.items.iter_mut().chain(schema.additional.iter_mut()).for_each(|inner| embed(inner));
}

/// The document of the custom resources of one group-version.
pub fn custom_document(kinds: &[CustomKind]) -> Bytes {
    let (mut paths, mut components) = (Map::new(), Map::new());
    for kind in kinds {
        paths.extend(paths_for(&kind.path_kind()));
        components.insert(kind.component(kind.kind), kind.object());
        components.insert(kind.component(kind.list_kind), kind.list());
    }
    // The apps group brings the prose of Scale.
    assemble(paths, components, &Prose::of("apps", ""))
}
