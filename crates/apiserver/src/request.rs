//! From URL and method to what is asked for: instance, resource, verb.

use http::Method;
use percent::decode;

/// What a request wants to do, in RBAC's words.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A URL outside the resource tree; carries the lower-case HTTP method.
    Url(&'static str),
}

impl Verb {
    /// The spelling in roles and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Url(method) => method,
        }
    }

    /// Whether it changes anything.
    pub fn mutates(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }
}

/// A resource request taken apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Target {
    /// API group; empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural resource.
    pub resource: String,
    /// Namespace; empty for cluster scope or all namespaces.
    pub namespace: String,
    /// Object name; empty for collections.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// What follows the subresource, for proxies; with its leading slash.
    pub rest: String,
}

/// What a URL points at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// Something outside the resource tree, such as `/version` or `/apis/apps/v1`.
    Url,
    /// A resource, collection or subresource.
    Resource(Target),
}

/// A request's URL and method, understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestInfo {
    /// What it wants to do.
    pub verb: Verb,
    /// To what.
    pub place: Place,
}

/// Splits `/instances/{name}/rest` into the name and `/rest`; other paths belong to `root`.
pub fn split_instance(path: &str) -> Option<(&str, &str)> {
    let after = path.strip_prefix("/instances/")?;
    Some(match after.find('/') {
        Some(slash) => (&after[..slash], &after[slash..]),
        None => (after, "/"),
    })
}

/// The instance a host name stands for: `fleet` in `fleet.atoll.localhost:7443`, if `atoll.localhost`
/// is the hub's domain. A request names its host; if that is none of ours, such as a bare address,
/// the name asked for in the handshake counts.
pub fn host_instance<B>(request: &http::Request<B>, domain: &str) -> Option<String> {
    // HTTP/2 says the host in the URI, HTTP/1.1 in a header.
    let header = || request.headers().get(http::header::HOST).and_then(|value| value.to_str().ok());
    let host = request.uri().authority().map(http::uri::Authority::as_str).or_else(header);
    let host = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    let asked = request.extensions().get::<crate::server::AskedName>().map(|name| &*name.0);
    [host, asked].into_iter().flatten().find_map(|name| label(name, domain))
}

/// The one label before the domain.
fn label(name: &str, domain: &str) -> Option<String> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let label = name.strip_suffix(&domain.to_ascii_lowercase())?.strip_suffix('.')?;
    (!label.is_empty() && !label.contains('.')).then(|| label.to_owned())
}

impl RequestInfo {
    /// Understands a path (without instance prefix) and a method.
    /// `watch` says whether the query asks for a watch, `named` whether a field selector pins the name.
    pub fn parse(method: &Method, path: &str, watch: bool, named: Option<&str>) -> Self {
        match Target::parse(path) {
            Some((mut target, deprecated_watch)) => {
                let watch = watch || deprecated_watch;
                let verb = resource_verb(method, &target, watch, deprecated_watch);
                if let (true, Some(name)) = (target.name.is_empty() && verb != Verb::Create, named) {
                    // Authorisation by resourceNames also covers lists and watches of one name.
                    name.clone_into(&mut target.name);
                    return Self { verb, place: Place::Resource(target) };
                }
                Self { verb, place: Place::Resource(target) }
            }
            None => Self { verb: Verb::Url(method_word(method)), place: Place::Url },
        }
    }
}

fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "other",
    }
}

fn resource_verb(method: &Method, target: &Target, watch: bool, deprecated: bool) -> Verb {
    let collection = target.name.is_empty();
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if collection => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        _ if deprecated || (collection && watch) => Verb::Watch,
        _ if collection => Verb::List,
        _ => Verb::Get,
    }
}

impl Target {
    /// Understands a resource path; the flag is set for the old `watch/` prefix.
    fn parse(path: &str) -> Option<(Self, bool)> {
        // Two slashes are a part without a name: `namespaces//pods` are those of all namespaces.
        let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, skip) = match *parts.first()? {
            "api" => ("", 1),
            "apis" => (*parts.get(1)?, 2),
            _ => return None,
        };
        let version = *parts.get(skip)?;
        parts.drain(..=skip);
        let mut deprecated_watch = false;
        if parts.first() == Some(&"watch") && parts.len() > 1 {
            deprecated_watch = true;
            parts.remove(0);
        }
        let mut target = Self { group: decode(group)?, version: decode(version)?, ..Self::default() };
        if parts.is_empty() {
            return None;
        }
        if parts[0] == "namespaces" && parts.len() > 2 && !matches!(parts[2], "status" | "finalize") {
            target.namespace = decode(parts[1])?;
            parts.drain(..2);
        }
        target.resource = decode(parts[0])?;
        if let Some(name) = parts.get(1) {
            target.name = decode(name)?;
        }
        if let Some(subresource) = parts.get(2) {
            target.subresource = decode(subresource)?;
        }
        if parts.len() > 3 || (path.ends_with('/') && parts.len() == 3) {
            target.rest = rest_of(path, &parts);
        }
        if target.resource == "namespaces" && !target.name.is_empty() {
            // A namespace lives in itself: rules of that namespace apply to it.
            target.namespace.clone_from(&target.name);
        }
        Some((target, deprecated_watch))
    }
}

/// The raw text behind the subresource, so that a proxied path keeps its escapes and slashes.
fn rest_of(path: &str, parts: &[&str]) -> String {
    let mut at = 0;
    let end_of_subresource = parts[..3].iter().all(|part| match path[at..].find(&format!("/{part}")) {
        Some(found) => {
            at += found + part.len() + 1;
            true
        }
        None => false,
    });
    if end_of_subresource { path[at..].to_owned() } else { String::new() }
}

mod percent {
    /// Decodes `%xx`; `None` for malformed escapes or text that is not UTF-8.
    pub(super) fn decode(text: &str) -> Option<String> {
        if !text.contains('%') {
            return Some(text.to_owned());
        }
        let bytes = text.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'%' {
                let hex = text.get(at + 1..at + 3)?;
                out.push(u8::from_str_radix(hex, 16).ok()?);
                at += 3;
            } else {
                out.push(bytes[at]);
                at += 1;
            }
        }
        String::from_utf8(out).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: Method, path: &str) -> String {
        let info = RequestInfo::parse(&method, path, false, None);
        match info.place {
            Place::Url => format!("{} url", info.verb.as_str()),
            Place::Resource(t) => format!(
                "{} {}/{}/{} ns={} name={} sub={} rest={}",
                info.verb.as_str(),
                t.group,
                t.version,
                t.resource,
                t.namespace,
                t.name,
                t.subresource,
                t.rest
            ),
        }
    }

    #[test]
    fn paths_are_understood() {
        let table = [
            (Method::GET, "/api/v1/pods", "list /v1/pods ns= name= sub= rest="),
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get /v1/pods ns=a name=b sub= rest="),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments",
                "create apps/v1/deployments ns=a name= sub= rest=",
            ),
            (Method::PUT, "/api/v1/namespaces/a/status", "update /v1/namespaces ns=a name=a sub=status rest="),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update /v1/namespaces ns=a name=a sub=finalize rest="),
            (Method::DELETE, "/api/v1/namespaces/a", "delete /v1/namespaces ns=a name=a sub= rest="),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection /v1/pods ns=a name= sub= rest="),
            (Method::GET, "/api/v1/watch/namespaces/a/pods", "watch /v1/pods ns=a name= sub= rest="),
            (Method::GET, "/apis/apps/v1", "get url"),
            (Method::GET, "/api/v1/namespaces//pods", "list /v1/pods ns= name= sub= rest="),
            (Method::GET, "/", "get url"),
            (Method::GET, "/version", "get url"),
            (
                Method::GET,
                "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/nodes",
                "get cluster.karmada.io/v1alpha1/clusters ns= name=m1 sub=proxy rest=/api/v1/nodes",
            ),
            (Method::GET, "/api/v1/nodes/n/proxy/", "get /v1/nodes ns= name=n sub=proxy rest=/"),
        ];
        for (method, path, expected) in table {
            assert_eq!(info(method, path), expected, "{path}");
        }
    }

    #[test]
    fn an_instance_prefix_is_split_off() {
        assert_eq!(split_instance("/instances/a/api/v1"), Some(("a", "/api/v1")));
        assert_eq!(split_instance("/instances/a"), Some(("a", "/")));
        assert_eq!(split_instance("/api/v1"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_parsed_without_panic(path in "(/[a-z%0-9.*?]{0,8}){0,9}/?|/?(api|apis)/.{0,60}|.{0,60}") {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let _ = RequestInfo::parse(&method, &path, true, Some("x"));
            }
            let _ = split_instance(&path);
        }

        #[test]
        fn a_path_says_what_it_was_made_of(group in "[a-z]{1,8}\\.io", namespace in "[a-z]{1,8}", name in "[a-z.:]{1,8}") {
            let path = format!("/apis/{group}/v1/namespaces/{namespace}/things/{name}/status");
            let Place::Resource(target) = RequestInfo::parse(&Method::GET, &path, false, None).place else {
                return Err(proptest::test_runner::TestCaseError::fail("no resource"));
            };
            proptest::prop_assert_eq!(
                (target.group, target.namespace, target.name, target.resource.as_str(), target.subresource.as_str()),
                (group, namespace, name, "things", "status")
            );
        }
    }
}
