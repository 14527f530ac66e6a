//! Query parameters of resource requests.

use atoll_meta::selector::{FieldSelector, LabelSelector};
use atoll_meta::{FieldError, FieldPath, Revision, Status};

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
    /// What the parameters are called together: ListOptions, CreateOptions …
    options: &'static str,
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
        Self { pairs, options: "ListOptions" }
    }

    /// The same parameters under the name they have for a verb.
    #[must_use]
    pub fn of(mut self, verb: crate::request::Verb) -> Self {
        use crate::request::Verb;
        self.options = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
            _ => "ListOptions",
        };
        self
    }

    /// 422 about these parameters.
    pub fn invalid(&self, faults: &[FieldError]) -> Status {
        Status::invalid("meta.k8s.io", self.options, "", faults)
    }

    /// The field manager, if one is named.
    pub fn field_manager(&self) -> Result<Option<&str>, Status> {
        let Some(name) = self.get("fieldManager").filter(|name| !name.is_empty()) else { return Ok(None) };
        let path = FieldPath::new("fieldManager");
        if name.len() > 128 {
            return Err(self.invalid(&[FieldError::too_long(path, 128)]));
        }
        if let Some((at, bad)) = name.char_indices().find(|(_, c)| c.is_control()) {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(bad));
            return Err(self.invalid(&[FieldError::invalid(path, name, why)]));
        }
        Ok(Some(name))
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
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {}", fault_of(text)))),
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
                // The original's own answer; lists turn it into a 400.
                let why = format!(
                    "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {}",
                    fault_of(text)
                );
                Status::new(500, atoll_meta::Reason::Unknown, why)
            }),
        }
    }

    /// The resourceVersionMatch.
    pub fn matching(&self) -> Result<Option<Match>, Status> {
        match self.get("resourceVersionMatch") {
            None | Some("") => Ok(None),
            Some("NotOlderThan") => Ok(Some(Match::NotOlderThan)),
            Some("Exact") => Ok(Some(Match::Exact)),
            Some(_) => Ok(None), // refused by the checks below
        }
    }

    /// Refuses combinations of list parameters that make no sense.
    pub fn check_list(&self) -> Result<(), Status> {
        let text = |key: &str| self.get(key).unwrap_or_default();
        let (wanted, revision) = (text("resourceVersionMatch"), text("resourceVersion"));
        let path = || FieldPath::new("resourceVersionMatch");
        let mut faults = Vec::new();
        if !wanted.is_empty() {
            if revision.is_empty() {
                faults.push(FieldError::forbidden(
                    path(),
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !text("continue").is_empty() {
                faults
                    .push(FieldError::forbidden(path(), "resourceVersionMatch is forbidden when continue is provided"));
            }
            if !matches!(wanted, "Exact" | "NotOlderThan") {
                let mut fault = FieldError::not_supported(path(), wanted, &[]);
                fault.detail = "supported values: \"Exact\", \"NotOlderThan\", \"\"".into();
                faults.push(fault);
            }
            if wanted == "Exact" && revision == "0" {
                faults.push(FieldError::forbidden(
                    path(),
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if !text("sendInitialEvents").is_empty() {
            faults.push(FieldError::forbidden(
                FieldPath::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        if faults.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", &faults)) }
    }

    /// Refuses combinations of watch parameters that make no sense.
    pub fn check_watch(&self) -> Result<(), Status> {
        let text = |key: &str| self.get(key).unwrap_or_default();
        let (wanted, initial) = (text("resourceVersionMatch"), !text("sendInitialEvents").is_empty());
        let path = || FieldPath::new("resourceVersionMatch");
        let mut faults = Vec::new();
        if initial && wanted != "NotOlderThan" {
            faults.push(FieldError::forbidden(
                path(),
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !wanted.is_empty() {
            if !initial {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                faults.push(FieldError::forbidden(path(), why));
            }
            if wanted != "NotOlderThan" {
                faults.push(FieldError::not_supported(path(), wanted, &["NotOlderThan"]));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(self.invalid(&faults)) }
    }

    /// Whether nothing may be stored.
    pub fn dry_run(&self) -> Result<bool, Status> {
        dry_run(self.options, self.all("dryRun"))
    }

    /// How strictly to treat unknown fields.
    pub fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.get("fieldValidation") {
            None | Some("" | "Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => {
                let path = FieldPath::new("fieldValidation");
                Err(self.invalid(&[FieldError::not_supported(path, other, &["", "Ignore", "Strict", "Warn"])]))
            }
        }
    }
}

/// What is wrong with a text that is no number here.
pub fn fault_of(text: &str) -> &'static str {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if number && digits.len() > 18 { "value out of range" } else { "invalid syntax" }
}

/// Checks the values of `dryRun`, from the query or a body.
pub fn dry_run<'a>(options: &str, values: impl Iterator<Item = &'a str>) -> Result<bool, Status> {
    let mut dry = false;
    let values: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    for value in &values {
        if *value != "All" {
            let error = FieldError::not_supported(FieldPath::new("dryRun"), values, &["All"]);
            return Err(Status::invalid("meta.k8s.io", options, "", &[error]));
        }
        dry = true;
    }
    Ok(dry)
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
        assert!(Query::parse(Some("dryRun=maybe")).of(crate::request::Verb::Create).dry_run().is_err());
        assert!(Query::parse(Some("resourceVersion=x")).revision().is_err());
    }
}
