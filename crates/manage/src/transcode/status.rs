//! Failures, told to gRPC and to REST.

use atoll_apiserver::{Body, json};
use atoll_meta::{Reason, Status};
use http::{HeaderMap, HeaderValue, Response};

/// The number of a failure in gRPC.
pub fn code(status: &Status) -> i32 {
    match (status.code, status.reason) {
        (400 | 405 | 406 | 413 | 415 | 422, _) => 3,
        (401, _) => 16,
        (403, _) => 7,
        (404, _) => 5,
        (409, Reason::AlreadyExists) => 6,
        (409, _) => 10,
        (410, _) => 11,
        (412, _) => 9,
        (429, _) => 8,
        (501, _) => 12,
        (503, _) => 14,
        (504, _) => 4,
        _ => 13,
    }
}

/// The HTTP status of a failure.
pub fn http(code: i32) -> u16 {
    match code {
        0 => 200,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
    }
}

/// What is not served, and why.
pub fn unimplemented(why: &str) -> Status {
    Status::new(501, Reason::MethodNotAllowed, why)
}

/// What cannot be done in the present state.
pub fn precondition(why: impl Into<String>) -> Status {
    Status::new(412, Reason::Conflict, why)
}

/// The REST answer that reports a failure.
pub fn rest(status: &Status) -> Response<Body> {
    let code = code(status);
    json(http(code), &serde_json::json!({"code": code, "message": status.message, "details": []}))
}

/// Headers or trailers that report how a call ended.
pub fn trailers(result: Result<(), &Status>) -> HeaderMap {
    let mut map = HeaderMap::new();
    match result {
        Ok(()) => {
            map.insert("grpc-status", HeaderValue::from_static("0"));
        }
        Err(status) => {
            map.insert("grpc-status", HeaderValue::from(code(status)));
            if let Ok(value) = HeaderValue::from_str(&escape(&status.message)) {
                map.insert("grpc-message", value);
            }
        }
    }
    map
}

/// Everything but plain visible ASCII is written as `%XX`.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if matches!(byte, b' '..=b'~') && byte != b'%' {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
