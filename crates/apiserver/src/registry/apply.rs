//! Server-side apply: the body is what its manager wants, no more.

use atoll_meta::Status;
use atoll_patch::managed;
use http::Response;
use serde_json::{Value, json};

use super::metadata::{meta_text, metadata};
use super::write::Stored;
use crate::body::Body;
use crate::call::Call;
use crate::decode;

impl Call {
    /// Applies a configuration to an object or a part of it.
    pub async fn apply(&self, sub: &str, body: &[u8], dry_run: bool) -> Result<Response<Body>, Status> {
        let mut config = self.configuration(body)?;
        self.check_config(&mut config)?;
        if let Some(stored) = self.applied(sub, &config, dry_run).await? {
            return self.object(200, &stored.entry, stored.revision);
        }
        if !sub.is_empty() {
            return Err(self.not_found());
        }
        let uid = meta_text(&config, "uid");
        let make = || {
            let new = self.merged(sub, None, &config)?;
            if !uid.is_empty() {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Status::conflict(&self.kind.group, &self.kind.plural, &self.target.name, why));
            }
            Ok(new)
        };
        let stored = self.insert_as(dry_run, true, make).await?;
        self.object(201, &stored.entry, stored.revision)
    }

    /// Applies a scale: a configuration that says nothing but how many.
    pub async fn apply_scale(&self, body: &[u8], path: &str, dry_run: bool) -> Result<Stored, Status> {
        let given = self.configuration(body)?;
        if given["kind"] != "Scale" || given["apiVersion"] != "autoscaling/v1" {
            let (group, version) = atoll_meta::split_api_version(given["apiVersion"].as_str().unwrap_or_default());
            let kind = given["kind"].as_str().unwrap_or_default();
            return Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        let mut config = json!({
            "apiVersion": self.kind.api_version(), "kind": &*self.kind.kind, "metadata": {"name": self.target.name},
        });
        if given["spec"]["replicas"].is_number() {
            super::scale::set(&mut config, path, given["spec"]["replicas"].clone());
        }
        self.applied("scale", &config, dry_run).await?.ok_or_else(|| self.not_found())
    }

    /// Reads the body of an apply and says what is wrong with it.
    fn configuration(&self, body: &[u8]) -> Result<Value, Status> {
        if self.query.get("fieldManager").unwrap_or_default().is_empty() {
            let error = atoll_meta::FieldError::required(
                atoll_meta::FieldPath::new("fieldManager"),
                "is required for apply patch",
            );
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        let (config, fault) = match decode::parse_json(body) {
            // Most clients send JSON, which is much faster to read.
            Ok((config, faults)) if faults.is_empty() => (config, None),
            _ => decode::yaml(body)
                .map_err(|status| Status::bad_request(format!("error decoding YAML: {}", status.message)))?,
        };
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
        Ok(config)
    }

    /// The object with the configuration merged in; `live` is what is there now, in the version of the request.
    fn merged(&self, sub: &str, live: Option<&Value>, config: &Value) -> Result<Value, Status> {
        let request = managed::Request {
            manager: &self.manager()?,
            api_version: &self.kind.api_version(),
            subresource: sub,
            now: &self.timestamp(),
            schema: self.kind.typed(),
            reset: self.reset_fields(sub),
            versions: &|_| true,
        };
        let mut new = managed::apply(&request, live, config, self.query.flag("force")).map_err(Status::from)?;
        // What is there has a name; what is to be made must say its own.
        if live.is_none() && meta_text(config, "name") != self.target.name {
            let name = &self.target.name;
            let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
            return Err(Status::bad_request(why));
        }
        self.default(&mut new);
        Ok(new)
    }

    /// Merges the configuration into what is there; `None` if nothing is.
    async fn applied(&self, sub: &str, config: &Value, dry_run: bool) -> Result<Option<Stored>, Status> {
        self.modify_applied(sub, dry_run, |old| {
            let mut new = self.merged(sub, Some(old), config)?;
            if config["metadata"].get("resourceVersion").is_none_or(Value::is_null) {
                metadata(&mut new).insert("resourceVersion".into(), "".into());
            }
            Ok(new)
        })
        .await
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
