//! From request bytes to an object tree of the right kind.

use atoll_builtin::proto;
use atoll_meta::Status;
use atoll_schema::duplicate;
use serde_json::Value;

use crate::call::Call;
use crate::negotiate::Media;
use crate::query::FieldValidation;

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
    let (value, duplicates) = duplicate::parse_strict(body).map_err(|error| {
        Status::bad_request(format!("the object provided is unrecognized (must be of type object): couldn't get version/kind; json parse error: {error}"))
    })?;
    Ok((value, duplicates.into_iter().map(|path| format!("duplicate field {path:?}")).collect()))
}

/// Parses YAML; the last of equal keys wins, and the first repeated one is named.
pub fn yaml(body: &[u8]) -> Result<(Value, Option<String>), Status> {
    use serde_saphyr::{DuplicateKeyPolicy, Error};
    let text = std::str::from_utf8(body).map_err(|error| Status::bad_request(format!("yaml: {error}")))?;
    let read = |policy| serde_saphyr::from_str_with_options::<Value>(text, serde_saphyr::options! { duplicate_keys: policy });
    let unreadable = |error: Error| Status::bad_request(format!("error converting YAML to JSON: yaml: {}", error.without_snippet()));
    match read(DuplicateKeyPolicy::Error) {
        Ok(value) => Ok((value, None)),
        Err(error) => match error.without_snippet() {
            Error::DuplicateMappingKey { key, location } => {
                let key = key.as_deref().unwrap_or_default();
                let fault = format!("yaml: unmarshal errors:\n  line {}: key {key:?} already set in map", location.line());
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
        let (mut object, faults) = parse(media, body)?;
        self.check_type(&mut object)?;
        let ordered = media == Media::Json && self.kind.custom().is_none();
        self.conform(&mut object, faults, ordered.then_some(body), "")?;
        Ok(object)
    }

    /// Fills in or checks `apiVersion` and `kind`.
    pub fn check_type(&self, object: &mut Value) -> Result<(), Status> {
        let Value::Object(map) = object else {
            return Err(Status::bad_request(
                "the object provided is unrecognized (must be of type object): couldn't get version/kind",
            ));
        };
        let expected = self.kind.api_version();
        match map.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "" => drop(map.insert("kind".into(), (*self.kind.kind).into())),
            kind if *kind == *self.kind.kind => {}
            kind => {
                let given = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
                return Err(Status::bad_request(format!(
                    "{kind} in version \"{}\" cannot be handled as a {}: no kind {kind:?} is registered for version {given:?}",
                    given.rsplit('/').next().unwrap_or_default(),
                    self.kind.kind,
                )));
            }
        }
        match map.get("apiVersion").and_then(Value::as_str).unwrap_or_default() {
            "" => drop(map.insert("apiVersion".into(), expected.into())),
            given if given == expected => {}
            given => {
                return Err(Status::bad_request(format!(
                    "the API version in the data ({given}) does not match the expected API version ({expected})"
                )));
            }
        }
        Ok(())
    }

    /// Checks types, deals with unknown and repeated fields, applies defaults. `text` is given where
    /// faults are told in the order of the text, `from` is the patch the object comes from.
    pub fn conform(&self, object: &mut Value, faults: Vec<String>, text: Option<&[u8]>, from: &str) -> Result<(), Status> {
        let validation = self.query.field_validation()?;
        let mut problems = faults;
        let unknown = match self.kind.custom() {
            Some(custom) => custom.prune(object),
            None => {
                let typed = self.kind.typed().ok_or_else(|| Status::internal("kind without schema"))?;
                if let Some(error) = atoll_schema::type_errors(object, typed) {
                    return Err(Status::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: {error}",
                        self.kind.kind, self.kind.version, self.kind.kind
                    )));
                }
                atoll_schema::drop_unknown(object, typed)
            }
        };
        problems.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        if let (Some(text), true) = (text, problems.len() > 1) {
            duplicate::in_order_of(text, &mut problems);
        }
        if !problems.is_empty() {
            match validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => problems.into_iter().for_each(|problem| self.warn(problem)),
                FieldValidation::Strict if from.is_empty() => {
                    return Err(Status::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                        self.kind.kind,
                        self.kind.version,
                        self.kind.kind,
                        problems.join(", ")
                    )));
                }
                FieldValidation::Strict => {
                    let value = format!("{from}");
                    return Err(self.kind.invalid_field(
                        &self.target.name,
                        "patch",
                        value,
                        &format!("strict decoding error: {}", problems.join(", ")),
                    ));
                }
            }
        }
        self.default(object);
        Ok(())
    }

    /// Applies the defaults of the kind.
    pub fn default(&self, object: &mut Value) {
        if self.kind.converts() {
            *object = crate::convert::from(&self.kind, std::mem::take(object));
        }
        match self.kind.custom() {
            Some(custom) => custom.default(object),
            None => {
                let now = self.timestamp();
                atoll_builtin::strategy::default(&self.strategy(&now), object);
                if let crate::kind::Source::Builtin(info) = &self.kind.source {
                    // Equal objects must have equal bytes, whichever client wrote them.
                    atoll_builtin::canonical(&atoll_builtin::storage_kind(info).type_name, object);
                }
            }
        }
    }
}
