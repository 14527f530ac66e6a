//! Requests for the console.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

use crate::file::{File, MISSING};
use crate::page;

const PREFIX: &str = "/console/";

/// Only our own files run and are shown, nothing may frame the page, no form leaves it. Style
/// attributes stay allowed because the terminal sets colours with them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src-elem 'self'; style-src-attr 'unsafe-inline'; \
    img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const SAFETY: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Whether a request for `/` comes from a browser and is better answered by the console.
pub fn wants_console(path: &str, headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    path == "/" && accepted.split(',').any(|item| item.trim().starts_with("text/html"))
}

/// The answer to a GET or HEAD of the console; `None` for paths that are not the console's.
///
/// A browser at `/` is sent to the console.
pub fn answer(path: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
    if path == "/console" || wants_console(path, headers) {
        return Some(redirect());
    }
    let name = path.strip_prefix(PREFIX)?;
    if let Some(reason) = MISSING {
        return Some(plain(StatusCode::OK, "text/html; charset=utf-8", page::without_console(reason)));
    }
    let found = match File::find(name) {
        Some(file) => Some(file),
        // Every page of the console has its own path; files with an ending do not fall back.
        None if name.starts_with("assets/") => None,
        None => File::find("index.html"),
    };
    Some(match found {
        Some(file) => serve(file, headers),
        None => plain(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "no such file\n".into()),
    })
}

fn serve(file: &'static File, headers: &HeaderMap) -> Response<Bytes> {
    let tag = format!("W/\"{}\"", file.tag);
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut response = Response::new(Bytes::new());
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let (bytes, encoding) = file.encoded(accepted);
        *response.body_mut() = match bytes {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
        };
        if let Some(encoding) = encoding {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type()));
    }
    let keep = if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    safe(response)
}

fn redirect() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(PREFIX));
    safe(response)
}

fn plain(status: StatusCode, content_type: &'static str, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    safe(response)
}

fn safe(mut response: Response<Bytes>) -> Response<Bytes> {
    for (name, value) in SAFETY {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_paths_of_the_console_are_answered() {
        for path in ["/", "/api/v1/pods", "/consoles/", "/instances/a/console/", ""] {
            assert!(answer(path, &HeaderMap::new()).is_none(), "{path}");
        }
        for path in ["/console", "/console/", "/console/i/fleet/clusters", "/console/assets/none.js"] {
            assert!(answer(path, &HeaderMap::new()).is_some(), "{path}");
        }
    }

    #[test]
    fn browsers_at_the_root_are_sent_to_the_console_and_programs_are_not() {
        let browser = headers(&[("accept", "text/html,application/xhtml+xml,*/*;q=0.8")]);
        let response = answer("/", &browser).unwrap();
        assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(response.headers()[header::LOCATION], "/console/");
        assert!(answer("/", &headers(&[("accept", "application/json, */*")])).is_none());
    }

    #[test]
    fn every_answer_carries_the_policy() {
        for path in ["/console", "/console/", "/console/any/page", "/console/assets/none.js"] {
            let response = answer(path, &HeaderMap::new()).unwrap();
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"), "{policy}");
            assert!(!policy.contains("unsafe-eval") && !policy.contains("script-src 'self' '"), "{policy}");
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        }
    }

    #[test]
    fn pages_fall_back_to_the_index_and_assets_do_not() {
        let index = answer("/console/", &HeaderMap::new()).unwrap();
        assert_eq!(index.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(index.headers()[header::CACHE_CONTROL], "no-cache");
        let page = answer("/console/i/fleet/o/apps/v1/deployments/default/web.example", &HeaderMap::new()).unwrap();
        assert_eq!(page.body(), index.body());
        if MISSING.is_none() {
            assert_eq!(answer("/console/assets/none.js", &HeaderMap::new()).unwrap().status(), StatusCode::NOT_FOUND);
        }
    }

    #[test]
    fn a_build_without_the_console_says_how_to_add_it_on_every_page() {
        let Some(reason) = MISSING else {
            println!("SKIPPED: this build has a console");
            return;
        };
        for path in ["/console/", "/console/i/fleet/clusters"] {
            let response = answer(path, &HeaderMap::new()).unwrap();
            let page = String::from_utf8(response.body().to_vec()).unwrap();
            for wanted in [reason, "install Node.js 20", "cargo build --release"] {
                assert!(page.contains(wanted), "{wanted} is not in {page}");
            }
        }
    }

    #[test]
    fn hashed_files_are_kept_forever_and_compressed_as_asked() {
        let Some(script) = crate::file::FILES.iter().find(|file| file.name.ends_with(".js")) else {
            println!("SKIPPED: this build has no console");
            return;
        };
        let path = format!("/console/{}", script.name);
        let packed = answer(&path, &headers(&[("accept-encoding", "gzip, br")])).unwrap();
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "br");
        assert!(packed.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        let plain = answer(&path, &HeaderMap::new()).unwrap();
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        assert!(plain.body().len() > packed.body().len());
        let tag = packed.headers()[header::ETAG].to_str().unwrap().to_owned();
        let again = answer(&path, &headers(&[("if-none-match", &tag)])).unwrap();
        assert_eq!((again.status(), again.body().len()), (StatusCode::NOT_MODIFIED, 0));
    }
}
