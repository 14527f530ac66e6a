//! PATCH in its four languages.

use atoll_meta::Status;
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::metadata::metadata;
use crate::body::Body;
use crate::call::Call;
use crate::decode::{self, Origin};

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

    /// Whether the body is a configuration to apply.
    pub fn is_apply(&self) -> bool {
        self.patch_language().is_ok_and(|language| language == Language::Apply)
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
                let keeps_spec = sub == "status" && self.keeps_spec(&new, old);
                self.conform(&mut new, duplicates.clone(), Origin::Patch { keeps_spec })?;
                let uid = new["metadata"]["uid"].clone();
                if uid.is_string() && uid != old["metadata"]["uid"] {
                    let path = atoll_meta::FieldPath::new("metadata.uid");
                    let error = atoll_meta::FieldError::invalid(path, uid, "field is immutable");
                    return Err(self.kind.invalid(&self.target.name, &[error.clone(), error]));
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

    /// Whether a patch of a status left the spec alone. The stored one stays in any case, so of an untouched one
    /// there is nothing to find out.
    fn keeps_spec(&self, new: &Value, old: &Value) -> bool {
        self.kind.custom().is_none() && !self.kind.converts() && new.get("spec") == old.get("spec")
    }

    /// A patch cannot turn an object into another kind.
    fn patched_type(&self, new: &mut Value) -> Result<(), Status> {
        if !new.is_object() {
            return Err(Status::bad_request("the patch does not leave an object"));
        }
        self.check_type(new, &[]).map_err(|status| self.unfit_patch(new, &status.message))
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
