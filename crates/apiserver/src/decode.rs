//! From request bytes to an object tree of the right kind.

use atoll_builtin::proto;
use atoll_meta::Status;
use atoll_schema::duplicate;
use serde_json::Value;

use crate::call::Call;
use crate::negotiate::Media;
use crate::query::FieldValidation;

/// Where an object comes from that is to conform to its kind.
pub enum Origin<'a> {
    /// From a body, which is given where faults are told in the order of the text.
    Body(Option<&'a [u8]>),
    /// From a patch; `keeps_spec` where the spec is and stays as stored, whatever comes of it here.
    Patch {
        /// Whether the spec stays.
        keeps_spec: bool,
    },
}

/// Parses a body in any language we read. The second part lists what is wrong with it all the same, such as
/// duplicate fields.
pub fn parse(media: Media, body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    match media {
        Media::Json => parse_json(body),
        Media::Yaml => yaml(body).map(|(value, fault)| (value, fault.into_iter().collect())),
        Media::Protobuf => {
            let decoded = proto::decode(body).map_err(|error| Status::bad_request(error.to_string()))?;
            let mut object = decoded.object;
            if let Value::Object(map) = &mut object {
                map.insert("apiVersion".into(), decoded.api_version.into());
                map.insert("kind".into(), decoded.kind.into());
            }
            Ok((object, Vec::new()))
        }
    }
}

/// Parses JSON and names duplicate fields.
pub fn parse_json(body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    read_json(body).map_err(|why| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}")))
}

/// Parses JSON and names duplicate fields; fails in the original's words where they are few.
pub fn read_json(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let (value, duplicates) = duplicate::parse_strict(body).map_err(|error| said(&error, body))?;
    Ok((value, duplicates.into_iter().map(|path| format!("duplicate field {path:?}")).collect()))
}

/// A fault of JSON in the original's words where they are few.
fn said(error: &serde_json::Error, body: &[u8]) -> String {
    let text = error.to_string();
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    match line.get(error.column().saturating_sub(1)) {
        Some(byte) if text.starts_with("expected value") && byte.is_ascii_graphic() => {
            format!("invalid character '{}' looking for beginning of value", char::from(*byte))
        }
        _ => text,
    }
}

/// What a JSON value is called in messages.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body, as messages show it.
fn summary(body: &[u8]) -> String {
    const MOST: usize = 30;
    let cut = &body[..body.len().min(MOST)];
    let end = if body.len() > MOST { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{end}", String::from_utf8_lossy(cut)),
        Some(_) => format!("{}{end}", cut.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// What aliases may repeat. More is no manifest, but a few bytes that unfold to a memory full.
const MAX_REPEATED: usize = 20_000;

/// Parses YAML; the last of equal keys wins, and the first repeated one is named.
pub fn yaml(body: &[u8]) -> Result<(Value, Option<String>), Status> {
    use serde_saphyr::{DuplicateKeyPolicy, Error};
    let text = std::str::from_utf8(body).map_err(|error| Status::bad_request(format!("yaml: {error}")))?;
    let read = |policy| {
        let limits = serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED };
        // Modes of files are written 0644.
        let options =
            serde_saphyr::options! { duplicate_keys: policy, alias_limits: limits, legacy_octal_numbers: true };
        serde_saphyr::from_str_with_options::<Value>(text, options)
    };
    let unreadable =
        |error: Error| Status::bad_request(format!("error converting YAML to JSON: yaml: {}", error.without_snippet()));
    match read(DuplicateKeyPolicy::Error) {
        Ok(value) => Ok((value, None)),
        Err(error) => match error.without_snippet() {
            Error::DuplicateMappingKey { key, location } => {
                let key = key.as_deref().unwrap_or_default();
                let fault =
                    format!("yaml: unmarshal errors:\n  line {}: key {key:?} already set in map", location.line());
                Ok((read(DuplicateKeyPolicy::LastWins).map_err(unreadable)?, Some(fault)))
            }
            _ => Err(unreadable(error)),
        },
    }
}

impl Call {
    /// Reads the object of a create or update: parsed, of the right kind, unknown fields dealt with, defaulted.
    pub fn decode(&self, body: &[u8]) -> Result<Value, Status> {
        let media = crate::negotiate::content(&self.headers)?;
        if media == Media::Protobuf && self.kind.custom().is_some() {
            return Err(crate::negotiate::unsupported(&["application/json", "application/yaml"], ""));
        }
        if media == Media::Protobuf
            && let Err(proto::ProtoError::UnknownKind { api_version, kind }) = proto::decode(body)
        {
            return Err(self.unfit(&kind, &api_version));
        }
        let (mut object, faults) = parse(media, body).map_err(|status| self.unrecognized(&status.message, body))?;
        self.check_type(&mut object, body)?;
        let ordered = media == Media::Json && self.kind.custom().is_none();
        self.conform(&mut object, faults, Origin::Body(ordered.then_some(body)))?;
        Ok(object)
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> Status {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            self.kind.kind,
            summary(body)
        ))
    }

    /// Fills in or checks `apiVersion` and `kind`.
    pub fn check_type(&self, object: &mut Value, body: &[u8]) -> Result<(), Status> {
        if object.is_null() {
            *object = serde_json::json!({});
        }
        let Value::Object(map) = object else {
            let wanted = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
            let why = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type {wanted}",
                json_type(object)
            );
            return Err(self.unrecognized(&why, body));
        };
        if self.kind.custom().is_some() && !map.contains_key("kind") {
            let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body));
            return Err(self.unrecognized(&why, body));
        }
        let expected = self.kind.api_version();
        match map.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "" => drop(map.insert("kind".into(), (*self.kind.kind).into())),
            kind if *kind == *self.kind.kind => {}
            kind => {
                let given = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
                return Err(self.unfit(kind, given));
            }
        }
        match map.get("apiVersion").and_then(Value::as_str).unwrap_or_default() {
            "" => drop(map.insert("apiVersion".into(), expected.into())),
            given if given == expected => {}
            given
                if self.kind.custom().is_some()
                    || atoll_builtin::kinds()
                        .iter()
                        .any(|info| atoll_meta::api_version(info.group, info.version) == given) =>
            {
                return Err(Status::bad_request(format!(
                    "the API version in the data ({given}) does not match the expected API version ({expected})"
                )));
            }
            given if given.matches('/').count() > 1 => {
                return Err(self.unrecognized(&format!("unexpected GroupVersion string: {given}"), body));
            }
            given => return Err(self.unfit(&self.kind.kind, given)),
        }
        Ok(())
    }

    /// 400 of an object that is of another kind.
    fn unfit(&self, kind: &str, api_version: &str) -> Status {
        let (group, version) = atoll_meta::split_api_version(api_version);
        let why = if atoll_builtin::find_kind(group, version, kind).is_some()
            && group.is_empty()
            && self.kind.group.is_empty()
        {
            format!("converting ({version}.{kind}) to (core.{}): unknown conversion", self.kind.kind)
        } else {
            format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {}: {why}", self.kind.kind))
    }

    /// 422 of a patch that does not leave an object of the kind.
    pub fn unfit_patch(&self, object: &Value, why: &str) -> Status {
        let error = atoll_meta::FieldError::invalid(atoll_meta::FieldPath::new("patch"), object.to_string(), why);
        Status::invalid("", "", "", &[error])
    }

    /// Checks types, deals with unknown and repeated fields, applies defaults.
    pub fn conform(&self, object: &mut Value, faults: Vec<String>, origin: Origin<'_>) -> Result<(), Status> {
        let validation = self.query.field_validation()?;
        let mut problems = faults;
        let (text, patched, keeps_spec) = match origin {
            Origin::Body(text) => (text, false, false),
            Origin::Patch { keeps_spec } => (None, true, keeps_spec),
        };
        let mistyped = |object: &Value, error: String| {
            if patched {
                return self.unfit_patch(object, &error);
            }
            let (kind, version) = (&self.kind.kind, &self.kind.version);
            Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"))
        };
        let unknown = match self.kind.custom() {
            Some(custom) => {
                if let Some(error) = metadata_fault(object) {
                    return Err(mistyped(object, error));
                }
                custom.prune(object)
            }
            None => {
                let typed = self.kind.typed().ok_or_else(|| Status::internal("kind without schema"))?;
                let known = |object: &mut Value| match atoll_schema::type_errors(object, typed) {
                    Some(error) => Err(error),
                    None => Ok(atoll_schema::drop_unknown(object, typed)),
                };
                sparing_spec(keeps_spec, object, known).map_err(|error| mistyped(object, error))?
            }
        };
        problems.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        if let (Some(text), true) = (text, problems.len() > 1) {
            duplicate::in_order_of(text, &mut problems);
        }
        if !problems.is_empty() {
            match validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => problems.into_iter().for_each(|problem| self.warn(told(&problem))),
                FieldValidation::Strict if !patched => {
                    return Err(Status::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                        self.kind.kind,
                        self.kind.version,
                        self.kind.kind,
                        problems.join(", ")
                    )));
                }
                FieldValidation::Strict => {
                    return Err(self.unfit_patch(object, &format!("strict decoding error: {}", problems.join(", "))));
                }
            }
        }
        self.default_sparing(keeps_spec, object);
        Ok(())
    }

    /// Applies the defaults of the kind.
    pub fn default(&self, object: &mut Value) {
        self.default_sparing(false, object);
    }

    fn default_sparing(&self, keeps_spec: bool, object: &mut Value) {
        // Custom kinds have defaults in each version, built-in ones in that in which they are stored.
        if let Some(custom) = self.kind.custom() {
            custom.default(object);
        }
        if self.kind.converts() {
            *object = crate::convert::from(&self.kind, std::mem::take(object));
        }
        let crate::kind::Source::Builtin(info) = &self.kind.source else { return };
        if self.is_definition() {
            crate::crd::default_names(object);
        }
        let now = self.timestamp();
        atoll_builtin::strategy::default(&self.strategy(&now), object);
        // Equal objects must have equal bytes, whichever client wrote them.
        let type_name = &crate::kind::stored(info).type_name;
        sparing_spec(keeps_spec, object, |object| atoll_builtin::canonical(type_name, object));
    }
}

/// A fault as a warning tells it: without the parser's own heading.
pub fn told(fault: &str) -> String {
    fault.strip_prefix("yaml: unmarshal errors:\n  ").unwrap_or(fault).to_owned()
}

/// Looks at an object, or at all of it but its spec.
fn sparing_spec<T>(spare: bool, object: &mut Value, look: impl FnOnce(&mut Value) -> T) -> T {
    let spec = if spare { object.get_mut("spec").map(Value::take) } else { None };
    let seen = look(object);
    if let Some(spec) = spec {
        object["spec"] = spec;
    }
    seen
}

/// What is wrong with the types of an object's metadata, which no schema of a custom kind describes.
fn metadata_fault(object: &Value) -> Option<String> {
    let types = atoll_builtin::types();
    let schema = types.get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")?;
    let fault = atoll_schema::type_errors(object.get("metadata")?, atoll_schema::Typed::new(types, schema))?;
    Some(fault.replace("Go struct field .", "Go struct field ObjectMeta."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_means_what_manifests_mean() {
        let text = "mode: 0644\nzero: 0\nplain: 644\ntext: \"0644\"\nversion: 1.10\n";
        let (tree, repeated) = yaml(text.as_bytes()).expect("it is YAML");
        assert_eq!(tree, serde_json::json!({"mode": 420, "zero": 0, "plain": 644, "text": "0644", "version": 1.1}));
        assert_eq!(repeated, None);
        let (tree, repeated) = yaml(b"a: 1\na: 2\n").expect("it is YAML");
        assert_eq!(tree, serde_json::json!({"a": 2}));
        assert!(repeated.expect("a key is repeated").contains("\"a\" already set"));
    }
}
