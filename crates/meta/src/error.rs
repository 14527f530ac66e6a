//! The one error of the API: Kubernetes' `Status`.

use serde::{Deserialize, Serialize};

use crate::field::FieldError;

/// Machine-readable reason of a failure.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are Kubernetes' own and say it all")]
pub enum Reason {
    #[serde(rename = "")]
    Unknown,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
}

/// One detail of a failure, usually about one field.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// Machine-readable type of the cause.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Sentence for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What a failure is about.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// Object name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource, or Kind for validation errors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single faults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// A failed request: HTTP code, reason, message and details.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: Reason,
    /// Sentence for a person.
    pub message: String,
    /// What it is about; boxed because successful paths carry it around too.
    pub details: Option<Box<Details>>,
    /// A fresh continue token, only with an expired one.
    pub continue_token: Option<String>,
}

impl std::error::Error for Status {}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Status {
    /// A failure without details.
    pub fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    /// Says what object the failure is about.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.into(),
            message: message.into(),
            field: field.into(),
        });
        self
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 400: the request itself is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    /// 401: no or invalid credentials.
    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    /// 403 with Kubernetes' prefix `plural.group "name" is forbidden: `.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl AsRef<str>) -> Self {
        // The name of the resource stands without its part.
        let what = qualified(group, resource.split('/').next().unwrap_or(resource));
        let why = why.as_ref();
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, Reason::Forbidden, message).about(group, resource, name)
    }

    /// 404 for one object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(group, resource));
        Self::new(404, Reason::NotFound, message).about(group, resource, name)
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed(group: &str, resource: &str, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", qualified(group, resource));
        Self::new(405, Reason::MethodNotAllowed, message).about(group, resource, "")
    }

    /// 409: the name is taken.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, resource));
        Self::new(409, Reason::AlreadyExists, message).about(group, resource, name)
    }

    /// 409: somebody else was faster, or a precondition failed.
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl AsRef<str>) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {}", qualified(group, resource), why.as_ref());
        Self::new(409, Reason::Conflict, message).about(group, resource, name)
    }

    /// 409: the optimistic lock failed.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410: the asked-for history is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message)
    }

    /// 413: the body is too large.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, Reason::RequestEntityTooLarge, message)
    }

    /// 422 with one cause per field; `kind` is the Kind, not the plural.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::with_capacity(errors.len());
        for text in errors.iter().map(ToString::to_string) {
            // The message tells each fault once, the causes tell all.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let what = qualified(group, kind);
        let message = match texts.as_slice() {
            [] => format!("{what} \"{name}\" is invalid"),
            [one] => format!("{what} \"{name}\" is invalid: {one}"),
            many => format!("{what} \"{name}\" is invalid: [{}]", many.join(", ")),
        };
        let mut status = Self::new(422, Reason::Invalid, message).about(group, kind, name);
        for error in errors {
            let field = if error.path.as_str().is_empty() { "<nil>" } else { error.path.as_str() };
            status = status.cause(error.kind.reason(), error.body(), field);
        }
        status
    }

    /// 429: try again later.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Self {
        Self::new(429, Reason::TooManyRequests, message).retry_after(seconds)
    }

    /// 500: our fault.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(500, Reason::InternalError, format!("Internal error occurred: {message}")).cause(
            "",
            message.to_string(),
            "",
        )
    }

    /// 503: a part we need is not there now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, Reason::ServiceUnavailable, message)
    }

    /// 504: it took too long.
    pub fn timeout(message: impl Into<String>, seconds: u32) -> Self {
        Self::new(504, Reason::Timeout, message).retry_after(seconds)
    }

    /// The JSON value of the Status object.
    pub fn to_value(&self) -> serde_json::Value {
        let mut meta = serde_json::Map::new();
        if let Some(token) = &self.continue_token {
            meta.insert("continue".into(), token.clone().into());
        }
        let mut value = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": meta,
            "status": "Failure", "message": self.message, "code": self.code,
        });
        if self.reason != Reason::Unknown {
            value["reason"] = serde_json::to_value(self.reason).unwrap_or_default();
        }
        if let Some(details) = &self.details {
            value["details"] = serde_json::to_value(details).unwrap_or_default();
        }
        value
    }

    /// Reads a Status object a server sent; `code` is used when the body has none.
    pub fn from_json(code: u16, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            message: String,
            #[serde(default)]
            reason: String,
            details: Option<Details>,
            code: Option<u16>,
        }
        match serde_json::from_slice::<Wire>(body) {
            Ok(wire) => Self {
                code: wire.code.unwrap_or(code),
                reason: serde_json::from_value(wire.reason.into()).unwrap_or(Reason::Unknown),
                message: wire.message,
                details: wire.details.map(Box::new),
                continue_token: None,
            },
            Err(_) => Self::new(code, Reason::Unknown, String::from_utf8_lossy(&body[..body.len().min(500)])),
        }
    }
}

fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
