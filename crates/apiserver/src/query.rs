//! Query parameters of resource requests.

use atoll_meta::selector::{FieldSelector, LabelSelector};
use atoll_meta::{Revision, Status};

/// How strictly unknown and duplicate fields are treated.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum FieldValidation {
    /// Drop silently.
    Ignore,
    /// Drop and warn.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

/// How a resourceVersion is meant.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Match {
    /// At least this fresh.
    NotOlderThan,
    /// Exactly this state.
    Exact,
}

/// All parameters a resource request may carry, parsed and checked.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Splits and decodes a query string.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = text
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(key), decode(value))
            })
            .collect();
        Self { pairs }
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether no parameter was given.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// A flag: present and not `0` or `false`.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !matches!(value, "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }

    /// A whole number.
    pub fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            }),
        }
    }

    /// The label selector.
    pub fn labels(&self) -> Result<LabelSelector, Status> {
        match self.get("labelSelector") {
            None | Some("") => Ok(LabelSelector::everything()),
            Some(text) => LabelSelector::parse(text).map_err(|error| Status::bad_request(error.to_string())),
        }
    }

    /// The field selector.
    pub fn fields(&self) -> Result<FieldSelector, Status> {
        match self.get("fieldSelector") {
            None | Some("") => Ok(FieldSelector::default()),
            Some(text) => FieldSelector::parse(text).map_err(|error| Status::bad_request(error.to_string())),
        }
    }

    /// The resourceVersion: unset, zero or a revision.
    pub fn revision(&self) -> Result<Option<Revision>, Status> {
        match self.get("resourceVersion") {
            None | Some("") => Ok(None),
            Some(text) => Revision::parse(text).map(Some).ok_or_else(|| {
                Status::new(
                    400,
                    atoll_meta::Reason::BadRequest,
                    format!("invalid resource version {text:?}: must be a decimal number"),
                )
            }),
        }
    }

    /// The resourceVersionMatch.
    pub fn matching(&self) -> Result<Option<Match>, Status> {
        match self.get("resourceVersionMatch") {
            None | Some("") => Ok(None),
            Some("NotOlderThan") => Ok(Some(Match::NotOlderThan)),
            Some("Exact") => Ok(Some(Match::Exact)),
            Some(other) => Err(options_invalid(
                "resourceVersionMatch",
                &format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""),
                "FieldValueNotSupported",
            )),
        }
    }

    /// Whether nothing may be stored.
    pub fn dry_run(&self) -> Result<bool, Status> {
        dry_run(self.all("dryRun"))
    }

    /// How strictly to treat unknown fields.
    pub fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.get("fieldValidation") {
            None | Some("" | "Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(options_invalid(
                "fieldValidation",
                &format!("Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""),
                "FieldValueNotSupported",
            )),
        }
    }
}

/// Checks the values of `dryRun`, from the query or a body.
pub fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, Status> {
    let mut dry = false;
    for value in values.filter(|value| !value.is_empty()) {
        if value != "All" {
            let message = format!("Unsupported value: {value:?}: supported values: \"All\"");
            return Err(options_invalid("dryRun", &message, "FieldValueNotSupported"));
        }
        dry = true;
    }
    Ok(dry)
}

/// A 422 about request options rather than about the object.
pub fn options_invalid(field: &str, message: &str, reason: &str) -> Status {
    Status::new(
        422,
        atoll_meta::Reason::Invalid,
        format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {message}"),
    )
    .about("meta.k8s.io", "ListOptions", "")
    .cause(reason, message, field)
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'+' => out.push(b' '),
            b'%' => match text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(byte) => {
                    out.push(byte);
                    at += 2;
                }
                None => out.push(b'%'),
            },
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc&limit=5&watch=true&dryRun=All"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert!(query.flag("watch"));
        assert!(query.dry_run().unwrap());
        assert!(Query::parse(Some("dryRun=maybe")).dry_run().is_err());
        assert!(Query::parse(Some("resourceVersion=x")).revision().is_err());
    }
}
