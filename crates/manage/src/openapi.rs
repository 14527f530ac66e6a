//! The OpenAPI document, generated from the descriptors, and a page to read it.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use crate::api::{Api, PACKAGE};

/// Where the document is.
pub const PATH: &str = "/manage/openapi.json";
/// Where the page is.
pub const PAGE: &str = "/manage/docs";

/// The document as text.
pub fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| build().to_string());
    &TEXT
}

fn build() -> Value {
    let api = Api::get();
    let comments = comments(api.pool.files());
    let mut paths: Map<String, Value> = Map::new();
    for route in api.router.routes() {
        let method = &route.method;
        let service = method.parent_service().name().trim_end_matches("Service").to_owned();
        let from_path: Vec<&str> = route.template.fields().collect();
        let input = method.input();
        let mut parameters: Vec<Value> = from_path
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        let mut operation = json!({
            "operationId": format!("{service}_{}", method.name()), "tags": [service],
            "summary": comments.get(method.full_name()).cloned().unwrap_or_default(),
            "responses": {
                "200": {"description": "done", "content": {"application/json": {"schema": reference(&method.output())}}},
                "default": {"description": "failed", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}},
            },
        });
        if route.body == "*" {
            operation["requestBody"] = json!({"content": {"application/json": {"schema": reference(&input)}}});
        } else {
            let left = input
                .fields()
                .filter(|field| !from_path.contains(&field.name()) && !matches!(field.kind(), Kind::Message(_)));
            parameters
                .extend(left.map(|field| json!({"name": field.json_name(), "in": "query", "schema": schema(&field)})));
        }
        operation["parameters"] = parameters.into();
        let entry = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        entry[route.verb.as_str().to_lowercase()] = operation;
    }
    let messages =
        api.pool.all_messages().filter(|message| message.package_name() == PACKAGE && !message.is_map_entry());
    let mut schemas: Map<String, Value> =
        messages.map(|message| (message.name().to_owned(), object(&message, &comments))).collect();
    schemas.insert("Status".into(), json!({"type": "object", "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "details": {"type": "array", "items": {}}}}));
    json!({
        "openapi": "3.0.3", "info": {"title": "Atoll management", "version": "v1alpha1"},
        "paths": paths, "components": {"schemas": schemas},
    })
}

fn reference(message: &MessageDescriptor) -> Value {
    if message.package_name() == PACKAGE {
        json!({"$ref": format!("#/components/schemas/{}", message.name())})
    } else {
        json!({"type": "object"})
    }
}

fn object(message: &MessageDescriptor, comments: &HashMap<String, String>) -> Value {
    let properties: Map<String, Value> = message
        .fields()
        .map(|field| {
            let mut schema = schema(&field);
            if let Some(text) = comments.get(field.full_name()).filter(|_| schema.get("$ref").is_none()) {
                schema["description"] = text.as_str().into();
            }
            (field.json_name().to_owned(), schema)
        })
        .collect();
    json!({"type": "object", "description": comments.get(message.full_name()), "properties": properties})
}

fn schema(field: &FieldDescriptor) -> Value {
    if field.is_map() {
        let inner = field.kind().as_message().map(|entry| schema_of(&entry.map_entry_value_field().kind()));
        return json!({"type": "object", "additionalProperties": inner});
    }
    let one = schema_of(&field.kind());
    if field.is_list() { json!({"type": "array", "items": one}) } else { one }
}

fn schema_of(kind: &Kind) -> Value {
    match kind {
        Kind::Message(message) => reference(message),
        Kind::Enum(words) => {
            json!({"type": "string", "enum": words.values().map(|word| word.name().to_owned()).collect::<Vec<_>>()})
        }
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        Kind::Double | Kind::Float => json!({"type": "number", "format": "double"}),
        Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32 => {
            json!({"type": "integer", "format": "int32"})
        }
        Kind::String => json!({"type": "string"}),
        _ => json!({"type": "string", "format": "int64"}),
    }
}

/// Comments before messages, fields and methods, by full name.
fn comments(files: impl Iterator<Item = FileDescriptor>) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for file in files.filter(|file| file.package_name() == PACKAGE) {
        let proto = file.file_descriptor_proto();
        for place in proto.source_code_info.iter().flat_map(|info| &info.location) {
            let text = place.leading_comments().trim();
            let name = match place.path.as_slice() {
                [4, message] => proto.message_type.get(*message as usize).map(|message| message.name().to_owned()),
                [4, message, 2, field] => proto.message_type.get(*message as usize).and_then(|message| {
                    Some(format!("{}.{}", message.name(), message.field.get(*field as usize)?.name()))
                }),
                [6, service, 2, method] => proto.service.get(*service as usize).and_then(|service| {
                    Some(format!("{}.{}", service.name(), service.method.get(*method as usize)?.name()))
                }),
                _ => None,
            };
            if let Some(name) = name.filter(|_| !text.is_empty()) {
                found.insert(format!("{PACKAGE}.{name}"), text.to_owned());
            }
        }
    }
    found
}

/// A page that shows the document; it loads nothing from elsewhere.
pub fn page() -> &'static str {
    r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>Atoll management API</title>
<style>body{font:14px system-ui;margin:2em auto;max-width:70em;padding:0 1em}code{background:#eee;padding:1px 4px}
summary{cursor:pointer;padding:3px 0}b{display:inline-block;min-width:5em}h2{margin-top:2em}pre{background:#f6f6f6;padding:1em;overflow:auto}</style>
<h1>Atoll management API</h1><p>One API, by gRPC (with reflection) and by REST. The document is <a href="openapi.json">openapi.json</a>.</p>
<input id="f" placeholder="filter" autofocus><div id="d"></div><script>
fetch('openapi.json').then(r=>r.json()).then(doc=>{const d=document.getElementById('d'),f=document.getElementById('f');
const ops=[];for(const[p,vs]of Object.entries(doc.paths))for(const[v,o]of Object.entries(vs))ops.push([o.tags[0],v.toUpperCase(),p,o]);
ops.sort((a,b)=>(a[0]+a[2]).localeCompare(b[0]+b[2]));
const show=()=>{d.textContent='';let t='';for(const[g,v,p,o]of ops){if(!(g+v+p+o.operationId).toLowerCase().includes(f.value.toLowerCase()))continue;
if(g!==t){t=g;const h=document.createElement('h2');h.textContent=g;d.append(h)}
const e=document.createElement('details'),s=document.createElement('summary'),b=document.createElement('b'),c=document.createElement('code');
b.textContent=v;c.textContent=p;s.append(b,c,' '+o.summary);const x=document.createElement('pre');x.textContent=JSON.stringify(o,null,1);e.append(s,x);d.append(e)}};
f.oninput=show;show()});</script></html>"#
}
