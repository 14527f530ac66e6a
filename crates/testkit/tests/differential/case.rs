//! A request as the tables describe it.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

/// Requests told in order, in one namespace.
pub struct Story {
    pub name: String,
    pub cases: Vec<Case>,
}

/// One request and what is looked at in its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// Method and path; `$ns` and saved values are filled in, and long texts for `$big`, `$huge` and `$deep`.
    pub send: String,
    /// A JSON body.
    #[serde(default)]
    pub body: Option<Value>,
    /// A body as it stands.
    #[serde(default)]
    pub raw: Option<String>,
    /// A body in YAML.
    #[serde(default)]
    pub yaml: Option<String>,
    /// A body sent as protobuf.
    #[serde(default)]
    pub protobuf: Option<Value>,
    /// The language of a patch: json, merge, strategic or apply.
    #[serde(default)]
    pub patch: Option<String>,
    /// table, metadata, metadatalist, protobuf, yaml, or any header value.
    #[serde(default)]
    pub accept: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The user that is impersonated; `-` sends no credentials, `!` wrong ones.
    #[serde(default, rename = "as")]
    pub user: Option<String>,
    /// Values of the answer kept for later requests, by JSON pointer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// Asked again, for a while, until the code is this one.
    #[serde(default)]
    pub until: Option<u16>,
    /// Asked again, for a while, until there is something at this JSON pointer.
    #[serde(default)]
    pub until_has: Option<String>,
    /// Asked again, for a while, until these texts stand at these JSON pointers.
    #[serde(default)]
    pub until_is: BTreeMap<String, String>,
    /// What is compared; everything unless it says `code` or `headers` (code and headers).
    #[serde(default)]
    pub only: Option<String>,
    /// Whether faults are told in no particular order.
    #[serde(default)]
    pub unordered: bool,
}

impl Story {
    /// All stories of a directory, by name.
    pub fn all(directory: &Path) -> Vec<Self> {
        let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        // Without the old booleans, so that `y` and `on` are texts.
        let options = serde_saphyr::options! { strict_booleans: true };
        let cases: Result<Vec<Case>, _> = serde_saphyr::from_str_with_options(&text, options);
        let cases = cases.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        let repeated: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(repeated.is_empty(), "{name}: these names stand twice: {repeated:?}");
        Self { name, cases }
    }

    /// Whether it makes definitions.
    pub fn defines(&self) -> bool {
        self.cases.iter().any(|case| case.send.ends_with("/customresourcedefinitions"))
    }

    /// Where the story takes place; a new place each time on a server that was there before.
    pub fn namespace(&self) -> String {
        match std::env::var_os("ATOLL_REAL_KUBECONFIG") {
            Some(_) => format!("story-{}-{}", self.name, std::process::id()),
            None => format!("story-{}", self.name),
        }
    }
}

impl Case {
    /// Method and path.
    pub fn request(&self) -> (&str, &str) {
        self.send.split_once(' ').unwrap_or_else(|| panic!("{}: method and path, please", self.name))
    }

    /// The body and its content type.
    pub fn content(&self, fill: &dyn Fn(&str) -> String) -> (Option<&'static str>, Bytes) {
        let language = match self.patch.as_deref() {
            None => None,
            Some("json") => Some("application/json-patch+json"),
            Some("merge") => Some("application/merge-patch+json"),
            Some("strategic") => Some("application/strategic-merge-patch+json"),
            Some("apply") => Some("application/apply-patch+yaml"),
            Some(other) => panic!("{}: no patch language {other}", self.name),
        };
        if let Some(raw) = &self.raw {
            return (language.or(Some("application/json")), fill(raw).into());
        }
        if let Some(yaml) = &self.yaml {
            return (language.or(Some("application/yaml")), fill(yaml).into());
        }
        if let Some(object) = &self.protobuf {
            let object: Value = serde_json::from_str(&fill(&object.to_string())).unwrap();
            let bytes = atoll_builtin::proto::encode(&object).unwrap_or_else(|error| panic!("{}: {error}", self.name));
            return (Some("application/vnd.kubernetes.protobuf"), bytes.into());
        }
        match &self.body {
            Some(body) => (language.or(Some("application/json")), fill(&body.to_string()).into()),
            None => (language, Bytes::new()),
        }
    }

    /// The Accept header.
    pub fn accept(&self) -> String {
        let as_kind = |kind: &str| format!("application/json;as={kind};v=v1;g=meta.k8s.io");
        match self.accept.as_deref() {
            None => "application/json".into(),
            Some("table") => as_kind("Table"),
            Some("metadata") => as_kind("PartialObjectMetadata"),
            Some("metadatalist") => as_kind("PartialObjectMetadataList"),
            Some("protobuf") => "application/vnd.kubernetes.protobuf".into(),
            Some("yaml") => "application/yaml".into(),
            Some(other) => other.into(),
        }
    }
}
