//! The scale subresource: replicas of anything that has them.

use atoll_meta::Status;
use http::Response;
use serde_json::{Value, json};

use super::metadata::{meta_text, metadata};
use crate::body::Body;
use crate::call::Call;
use crate::kind::Source;

/// Where a kind keeps its replicas.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

impl Call {
    fn scale_paths(&self) -> Result<Paths, Status> {
        match &self.kind.source {
            Source::Builtin(_) => Ok(Paths {
                spec: ".spec.replicas".into(),
                status: ".status.replicas".into(),
                selector: Some(".spec.selector".into()),
            }),
            Source::Custom(custom) => {
                let scale = custom.scale().ok_or_else(|| self.not_found())?;
                Ok(Paths { spec: scale.spec.clone(), status: scale.status.clone(), selector: scale.selector.clone() })
            }
        }
    }

    fn scale_of(&self, object: &Value) -> Result<Value, Status> {
        let paths = self.scale_paths()?;
        let meta = &object["metadata"];
        let mut status = json!({"replicas": at(object, &paths.status).as_i64().unwrap_or_default()});
        if let Some(selector) = paths.selector.as_deref().map(|path| at(object, path)) {
            let text = match selector {
                Value::String(text) => text.clone(),
                Value::Object(map) if map.contains_key("matchLabels") || map.contains_key("matchExpressions") => {
                    atoll_meta::selector::LabelSelector::from_value(selector).map(|s| s.to_string()).unwrap_or_default()
                }
                Value::Object(map) => {
                    let pairs: Vec<String> =
                        map.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
                    pairs.join(",")
                }
                _ => String::new(),
            };
            if !text.is_empty() {
                status["selector"] = text.into();
            }
        }
        let mut scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
            },
            "spec": {}, "status": status,
        });
        if let Some(replicas) = at(object, &paths.spec).as_i64() {
            scale["spec"]["replicas"] = replicas.into();
        } else if self.kind.custom().is_some() {
            return Err(Status::internal(format!("the spec replicas field {:?} does not exist", paths.spec)));
        }
        Ok(scale)
    }

    /// Reads the scale.
    pub async fn get_scale(&self) -> Result<Response<Body>, Status> {
        let entry = self.fetch().await?;
        let scale = self.scale_of(&self.kind.tree(&entry, entry.modified))?;
        crate::respond::tree(200, self.accept(false)?.media, &scale)
    }

    /// Changes the scale by PUT (`patch` is `None`) or PATCH.
    pub async fn set_scale(&self, body: &[u8], patching: bool) -> Result<Response<Body>, Status> {
        let dry_run = self.query.dry_run()?;
        if patching && self.is_apply() {
            let stored = self.apply_scale(body, &self.scale_paths()?.spec, dry_run).await?;
            let scale = self.scale_of(&self.kind.tree(&stored.entry, stored.revision))?;
            return crate::respond::tree(200, self.accept(false)?.media, &scale);
        }
        let media = if patching { crate::negotiate::Media::Json } else { crate::negotiate::content(&self.headers)? };
        let (given, _) = crate::decode::parse(media, body)?;
        let paths = self.scale_paths()?;
        let json_patch = given.is_array();
        let named = meta_text(&given, "name");
        if !patching && !named.is_empty() && named != self.target.name {
            let why =
                format!("the name of the object ({named}) does not match the name on the URL ({})", self.target.name);
            return Err(Status::bad_request(why));
        }
        let stored = self
            .modify("scale", dry_run, |old| {
                let mut scale = self.scale_of(old)?;
                let precondition = if !patching {
                    scale = given.clone(); // each attempt starts from what the client sent
                    meta_text(&given, "resourceVersion").to_owned()
                } else if json_patch {
                    scale = atoll_patch::json_patch(&scale, &given)
                        .map_err(|error| Status::bad_request(error.to_string()))?;
                    String::new()
                } else {
                    atoll_patch::merge_patch(&mut scale, &given);
                    meta_text(&given, "resourceVersion").to_owned()
                };
                let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
                if replicas < 0 {
                    let error = atoll_meta::FieldError::invalid(
                        atoll_meta::FieldPath::new("spec.replicas"),
                        replicas,
                        "must be greater than or equal to 0",
                    );
                    return Err(Status::invalid("autoscaling", "Scale", &self.target.name, &[error]));
                }
                let mut new = old.clone(); // the old tree is needed for comparison
                set(&mut new, &paths.spec, replicas.into());
                metadata(&mut new).insert("resourceVersion".into(), precondition.into());
                Ok(new)
            })
            .await?;
        let scale = self.scale_of(&self.kind.tree(&stored.entry, stored.revision))?;
        crate::respond::tree(200, self.accept(false)?.media, &scale)
    }
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|part| !part.is_empty()).fold(object, |value, part| &value[part])
}

/// Puts a value where a path leads.
pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}
