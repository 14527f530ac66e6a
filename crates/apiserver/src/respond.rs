//! From stored objects to response bytes, in the form and encoding the client asked for.

use atoll_meta::{Revision, Status};
use atoll_store::Entry;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::body::Body;
use crate::call::Call;
use crate::negotiate::{Accept, Form, Media};
use crate::table;

/// A response with the headers every answer has.
pub fn response(code: u16, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A JSON answer from a tree.
pub fn json(code: u16, tree: &Value) -> Response<Body> {
    response(code, "application/json", serde_json::to_vec(tree).unwrap_or_default())
}

/// An answer in the negotiated encoding from a tree that has `kind` and `apiVersion`.
pub fn tree(code: u16, media: Media, tree: &Value) -> Result<Response<Body>, Status> {
    let bytes = encode(media, tree)?;
    Ok(response(code, media.content_type(), bytes))
}

/// Encodes a tree.
pub fn encode(media: Media, tree: &Value) -> Result<Vec<u8>, Status> {
    match media {
        Media::Json => serde_json::to_vec(tree).map_err(Status::internal),
        Media::Yaml => serde_saphyr::to_string(tree).map(String::into_bytes).map_err(Status::internal),
        Media::Protobuf => atoll_builtin::proto::encode(tree).map_err(Status::internal),
    }
}

/// A text that browsers must not take for anything else.
pub fn text(code: u16, body: impl Into<Body>) -> Response<Body> {
    let mut answer = response(code, "text/plain; charset=utf-8", body);
    answer.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    answer
}

/// The answer that reports a failure in JSON.
pub fn failure(status: &Status) -> Response<Body> {
    failure_as(status, Media::Json)
}

/// The answer that reports a failure in the encoding the client asked for.
pub fn failure_as(status: &Status, media: Media) -> Response<Body> {
    let value = status.to_value();
    let mut answer = tree(status.code, media, &value).unwrap_or_else(|_| json(status.code, &value));
    if let Some(details) = &status.details
        && details.retry_after_seconds > 0
    {
        answer.headers_mut().insert("retry-after", HeaderValue::from(details.retry_after_seconds));
    }
    answer
}

/// Only the metadata of an object.
pub fn partial(object: &Value, beta: bool) -> Value {
    let version = if beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" };
    serde_json::json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": object["metadata"]})
}

impl Call {
    /// Answers with one object.
    pub fn object(&self, code: u16, entry: &Entry, revision: Revision) -> Result<Response<Body>, Status> {
        let accept = self.accept(false)?;
        let mut answer = match (accept.form, accept.media) {
            (Form::Object, Media::Json) => {
                let mut bytes = Vec::with_capacity(entry.object.body.len() + 64);
                self.kind.write(entry, revision, &mut bytes);
                response(code, Media::Json.content_type(), bytes)
            }
            _ => self.shaped(code, accept, &self.kind.tree(entry, revision))?,
        };
        self.add_warnings(&mut answer);
        Ok(answer)
    }

    /// Answers with an object tree in this kind's version.
    pub fn tree(&self, code: u16, object: &Value) -> Result<Response<Body>, Status> {
        let accept = self.accept(false)?;
        let mut answer = self.shaped(code, accept, object)?;
        self.add_warnings(&mut answer);
        Ok(answer)
    }

    fn shaped(&self, code: u16, accept: Accept, object: &Value) -> Result<Response<Body>, Status> {
        match accept.form {
            Form::Object => tree(code, accept.media, object),
            Form::Metadata => tree(code, accept.media, &partial(object, accept.beta)),
            Form::Table => tree(code, accept.media, &table::of_one(self, object, accept.beta)?),
        }
    }

    /// Puts the collected warnings into the headers.
    pub fn add_warnings(&self, answer: &mut Response<Body>) {
        for text in self.warnings.lock().iter() {
            let clean: String = text.chars().filter(|c| !c.is_control()).take(256).collect();
            if let Ok(value) = HeaderValue::from_str(&format!("299 - {clean:?}")) {
                answer.headers_mut().append("warning", value);
            }
        }
    }
}
