//! PATCH in its four languages.

use atoll_meta::Status;
use atoll_patch::managed;
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::write::{meta_text, metadata};
use crate::body::Body;
use crate::call::Call;
use crate::decode;

/// The language of a patch.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Call {
    fn patch_language(&self) -> Result<Language, Status> {
        let header = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let essence = header.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let custom = self.kind.custom().is_some();
        match essence.as_str() {
            "application/json-patch+json" => Ok(Language::Json),
            "application/merge-patch+json" => Ok(Language::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Language::Strategic),
            "application/apply-patch+yaml" => Ok(Language::Apply),
            _ => {
                let mut known = vec!["application/json-patch+json", "application/merge-patch+json"];
                if !custom {
                    known.push("application/strategic-merge-patch+json");
                }
                known.push("application/apply-patch+yaml");
                Err(match custom {
                    true => crate::negotiate::unsupported(&known, header),
                    false => Status::new(415, atoll_meta::Reason::UnsupportedMediaType, "415: Unsupported Media Type")
                        .about("", "", ""),
                })
            }
        }
    }

    /// Changes an object by a patch.
    pub async fn patch(&self, sub: &str, body: &[u8]) -> Result<Response<Body>, Status> {
        self.accept(false)?;
        let dry_run = self.query.dry_run()?;
        let language = self.patch_language()?;
        if language == Language::Apply {
            return self.apply(sub, body, dry_run).await;
        }
        if self.query.get("force").is_some_and(|value| !value.is_empty()) {
            let error = atoll_meta::FieldError::forbidden(
                atoll_meta::FieldPath::new("force"),
                "may not be specified for non-apply patch",
            );
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        let undecodable = |why: String| Status::bad_request(format!("error decoding patch: {why}"));
        let (patch, duplicates) = decode::read_json(body).map_err(undecodable)?;
        let (fits, wanted) = match language {
            Language::Json => (patch.is_array(), "[]handlers.jsonPatchOp"),
            _ => (patch.is_object(), "map[string]interface {}"),
        };
        if !fits {
            return Err(undecodable(format!(
                "json: cannot unmarshal {} into Go value of type {wanted}",
                decode::json_type(&patch)
            )));
        }
        let stored = self
            .modify(sub, dry_run, |old| {
                let mut new = self.patched(language, old, &patch)?;
                self.patched_type(&mut new)?;
                self.conform(&mut new, duplicates.clone(), None, true)?;
                let uid = new["metadata"]["uid"].clone();
                if uid.is_string() && uid != old["metadata"]["uid"] {
                    return Err(self.kind.invalid_field(&self.target.name, "metadata.uid", uid, "field is immutable"));
                }
                if !patch_sets_revision(&patch) {
                    metadata(&mut new).insert("resourceVersion".into(), "".into());
                }
                Ok(new)
            })
            .await?;
        self.object(200, &stored.entry, stored.revision)
    }

    fn patched(&self, language: Language, old: &Value, patch: &Value) -> Result<Value, Status> {
        match language {
            Language::Json => atoll_patch::json_patch(old, patch).map_err(Status::from),
            Language::Merge => {
                let mut new = old.clone(); // the patch is applied to a copy: a lost race starts over
                atoll_patch::merge_patch(&mut new, patch);
                Ok(new)
            }
            Language::Strategic => atoll_patch::strategic(old, patch, self.kind.typed()).map_err(Status::from),
            Language::Apply => unreachable!("apply has its own path"),
        }
    }

    /// A patch cannot turn an object into another kind.
    fn patched_type(&self, new: &mut Value) -> Result<(), Status> {
        if !new.is_object() {
            return Err(Status::bad_request("the patch does not leave an object"));
        }
        self.check_type(new, &[]).map_err(|status| self.unfit_patch(new, &status.message))
    }

    /// Server-side apply: the body is what the manager wants, no more.
    async fn apply(&self, sub: &str, body: &[u8], dry_run: bool) -> Result<Response<Body>, Status> {
        if self.query.get("fieldManager").unwrap_or_default().is_empty() {
            let error = atoll_meta::FieldError::required(
                atoll_meta::FieldPath::new("fieldManager"),
                "is required for apply patch",
            );
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        let (mut config, fault) = match decode::parse_json(body) {
            // Most clients send JSON, which is much faster to read.
            Ok((config, faults)) if faults.is_empty() => (config, None),
            _ => decode::yaml(body)
                .map_err(|status| Status::bad_request(format!("error decoding YAML: {}", status.message)))?,
        };
        self.check_config(&mut config)?;
        if let Some(fault) = fault {
            use crate::query::FieldValidation::{Ignore, Strict, Warn};
            match self.query.field_validation()? {
                Ignore => {}
                Warn => self.warn(decode::told(&fault)),
                Strict => {
                    return Err(Status::bad_request(format!(
                        "error strict decoding YAML: error converting YAML to JSON: {fault}"
                    )));
                }
            }
        }
        let manager = self.manager()?;
        let force = self.query.flag("force");
        let now = self.timestamp();
        let storage = if self.kind.converts() { self.kind.storage_api_version() } else { self.kind.api_version() };
        config["apiVersion"] = storage.clone().into();
        let name_given = meta_text(&config, "name") == self.target.name;
        let merge = |live: Option<&Value>| -> Result<Value, Status> {
            let request = managed::Request {
                manager: &manager,
                api_version: &storage,
                subresource: sub,
                now: &now,
                schema: self.kind.typed(),
                reset: self.reset_fields(sub),
                versions: &|_| true,
            };
            let mut new = managed::apply(&request, live, &config, force).map_err(Status::from)?;
            if !name_given {
                let name = &self.target.name;
                let why =
                    format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
                return Err(Status::bad_request(why));
            }
            self.default(&mut new);
            Ok(new)
        };
        let changed = self
            .modify_applied(sub, dry_run, |old| {
                let mut new = merge(Some(old))?;
                if config["metadata"].get("resourceVersion").is_none_or(Value::is_null) {
                    metadata(&mut new).insert("resourceVersion".into(), "".into());
                }
                Ok(new)
            })
            .await?;
        if let Some(stored) = changed {
            return self.object(200, &stored.entry, stored.revision);
        }
        if !sub.is_empty() {
            return Err(self.not_found());
        }
        let new = merge(None)?;
        let uid = meta_text(&config, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&self.kind.group, &self.kind.plural, &self.target.name, why));
        }
        let stored = self.insert_as(new, dry_run, true).await?;
        self.object(201, &stored.entry, stored.revision)
    }

    fn check_config(&self, config: &mut Value) -> Result<(), Status> {
        let expected = self.kind.api_version();
        let Value::Object(map) = &*config else {
            return Err(Status::bad_request("error decoding YAML: the body is not an object"));
        };
        let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let (given, kind) = (text("apiVersion"), text("kind"));
        if given != expected || *kind != *self.kind.kind {
            let (group, version) = atoll_meta::split_api_version(given);
            return Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        let meta = metadata(config);
        if meta.get("managedFields").is_some_and(|fields| fields.as_array().is_none_or(|list| !list.is_empty())) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let name = meta.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && name != self.target.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.target.name
            )));
        }
        // The namespace of the URL is not put in: it is not what the manager applies.
        let mut copy = meta.clone();
        self.check_namespace(&mut copy, &self.target.namespace)
    }
}

/// A patch that names a resourceVersion asks for a precondition; any other is applied to whatever is there.
fn patch_sets_revision(patch: &Value) -> bool {
    match patch {
        Value::Object(map) => map.get("metadata").and_then(|meta| meta.get("resourceVersion")).is_some(),
        Value::Array(operations) => operations.iter().any(|operation| {
            operation["path"] == "/metadata/resourceVersion"
                && matches!(operation["op"].as_str(), Some("replace" | "add"))
        }),
        _ => false,
    }
}
