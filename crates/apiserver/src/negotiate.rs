//! Which encoding and which form of the object a client wants.

use atoll_meta::{Reason, Status};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// How bytes are encoded.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Media {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

impl Media {
    /// The Content-Type of a response.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn of(essence: &str) -> Option<Self> {
        match essence {
            "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}

/// In which form an object is wanted.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Form {
    /// As it is.
    #[default]
    Object,
    /// As a table for people.
    Table,
    /// Only its metadata.
    Metadata,
}

/// The outcome of negotiation.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Accept {
    /// Encoding.
    pub media: Media,
    /// Form.
    pub form: Form,
    /// `v1` or `v1beta1` of meta.k8s.io, for tables and metadata.
    pub beta: bool,
}

/// What may be answered here.
#[derive(Copy, Clone, Debug)]
pub struct Offer {
    /// Whether protobuf can be produced (not for custom resources).
    pub protobuf: bool,
    /// Whether the answer is a list, for the metadata form.
    pub list: bool,
    /// Whether the answer is a watch, which takes the metadata form of one or of many.
    pub watch: bool,
    /// Whether other forms than the object exist (not for reviews).
    pub forms: bool,
}

/// The encoding a failure is told in; there is always one.
pub fn media(headers: &HeaderMap) -> Media {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = |clause: &str| clause.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    // A failure has no other form than its own.
    let plain = header.split(',').filter(|clause| !clause.split(';').any(|part| part.trim().starts_with("as=")));
    plain.into_iter().find_map(|clause| Media::of(&essence(clause))).unwrap_or_default()
}

/// The 406 of metadata of one object where there are many, or the other way round; `kind` is that of one.
pub fn wrong_number(headers: &HeaderMap, list: bool, kind: &str) -> Option<Status> {
    let header = headers.get(ACCEPT)?.to_str().ok()?;
    let asked = header.split(',').flat_map(|clause| clause.split(';')).find_map(|part| part.trim().strip_prefix("as="));
    let message = match (asked?, list) {
        ("PartialObjectMetadata", true) => {
            format!("you requested PartialObjectMetadata, but the requested object is a list (*{kind}List)")
        }
        ("PartialObjectMetadataList", false) => {
            format!("you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})")
        }
        _ => return None,
    };
    Some(Status::new(406, Reason::NotAcceptable, message))
}

/// Picks the first acceptable clause.
pub fn accept(headers: &HeaderMap, offer: Offer) -> Result<Accept, Status> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    if header.trim().is_empty() {
        return Ok(Accept::default());
    }
    for clause in header.split(',') {
        if let Some(found) = clause_accepts(clause, offer) {
            return Ok(found);
        }
    }
    let essence = |clause: &str| clause.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let known = header.split(',').any(|clause| Media::of(&essence(clause)).is_some());
    // Encodings are told apart before forms, and by another voice.
    Err(if known || !offer.protobuf { not_acceptable() } else { no_representation(offer.list) })
}

const ENCODINGS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The 406 of a form nothing can satisfy.
pub fn not_acceptable() -> Status {
    Status::new(406, Reason::NotAcceptable, format!("only the following media types are accepted: {ENCODINGS}"))
}

/// What collections are watched in.
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The 406 of an encoding we do not write; collections can also be watched.
pub fn no_representation(collection: bool) -> Status {
    let streams = if collection { format!(", {STREAMS}") } else { String::new() };
    let message = format!("406: Not Acceptable\n\nAvailable representations: {ENCODINGS}{streams}");
    Status::new(406, Reason::NotAcceptable, message).about("", "", "")
}

/// Refuses a request whose answer could be written in none of the encodings asked for, before it does anything.
pub fn check_encoding(headers: &HeaderMap, protobuf: bool) -> Result<(), Status> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = |clause: &str| clause.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let known = |name: &str| matches!(name, "*/*" | "application/*") || Media::of(name).is_some();
    if header.trim().is_empty() || header.split(',').any(|clause| known(&essence(clause))) {
        return Ok(());
    }
    Err(if protobuf { no_representation(false) } else { not_acceptable() })
}

/// Whether a document that exists only as it is may be sent.
pub fn accepts_plain(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    header.trim().is_empty()
        || header.split(',').any(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
            let known = matches!(essence.as_str(), "*/*" | "application/*") || Media::of(&essence).is_some();
            known && !parts.any(|part| part.starts_with("as="))
        })
}

fn clause_accepts(clause: &str, offer: Offer) -> Option<Accept> {
    let mut parts = clause.split(';').map(str::trim);
    let essence = parts.next()?.to_ascii_lowercase();
    let (mut form, mut group, mut version) = ("", "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => form = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let media = match essence.as_str() {
        "*/*" | "application/*" => Media::Json,
        "text/yaml" => return None,
        other => Media::of(other)?,
    };
    if media == Media::Protobuf && !offer.protobuf && form.is_empty() {
        return None;
    }
    if form.is_empty() {
        return Some(Accept { media, form: Form::Object, beta: false });
    }
    if !offer.forms || group != "meta.k8s.io" || !matches!(version, "v1" | "v1beta1") {
        return None;
    }
    let form = match form {
        "Table" if media != Media::Protobuf => Form::Table,
        "PartialObjectMetadata" | "PartialObjectMetadataList" if offer.watch => Form::Metadata,
        "PartialObjectMetadata" if !offer.list => Form::Metadata,
        "PartialObjectMetadataList" if offer.list => Form::Metadata,
        _ => return None,
    };
    Some(Accept { media, form, beta: version == "v1beta1" })
}

/// The encoding of a request body; a missing Content-Type means JSON.
pub fn content(headers: &HeaderMap) -> Result<Media, Status> {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = header.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if header.is_empty() {
        return Ok(Media::Json);
    }
    Media::of(&essence).ok_or_else(|| {
        unsupported(&["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"], header)
    })
}

/// The 415 of a body in a language we do not read.
pub fn unsupported(accepted: &[&str], _given: &str) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(415, Reason::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(accept_header: &str, offer: Offer) -> Option<Accept> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept_header.parse().unwrap());
        accept(&headers, offer).ok()
    }

    #[test]
    fn the_first_acceptable_clause_wins() {
        let built_in = Offer { protobuf: true, list: true, watch: false, forms: true };
        let custom = Offer { protobuf: false, ..built_in };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(pick(kubectl, built_in).unwrap().form, Form::Table);
        assert_eq!(pick("application/vnd.kubernetes.protobuf,application/json", custom).unwrap().media, Media::Json);
        assert_eq!(pick("application/vnd.kubernetes.protobuf", custom), None);
        assert_eq!(pick("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", built_in), None);
        assert_eq!(pick("*/*", custom).unwrap().media, Media::Json);
        assert_eq!(pick("text/html", custom), None);
    }
}
