//! URLs behind `/apis/clusterpedia.io/v1beta1`.

use atoll_meta::{Reason, Status};

/// What a URL asks for.
#[derive(Debug, PartialEq)]
pub enum Ask {
    /// The list of collections.
    Collections,
    /// One collection.
    Collection(String),
    /// What there is, of one cluster or all; with the path inside.
    Discovery(Option<String>, String),
    /// Objects.
    Resource(Objects),
}

/// Which objects.
#[derive(Debug, Default, PartialEq)]
pub struct Objects {
    pub cluster: Option<String>,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

fn nothing() -> Status {
    Status::new(404, Reason::NotFound, "the server could not find the requested resource")
}

/// Understands a path that begins with `/resources` or `/collectionresources`.
pub fn parse(tail: &str) -> Result<Ask, Status> {
    let parts: Vec<&str> = tail.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["collectionresources"] => Ok(Ask::Collections),
        ["collectionresources", name] => Ok(Ask::Collection((*name).to_owned())),
        ["resources", "clusters", cluster, rest @ ..] => inside(Some((*cluster).to_owned()), rest),
        ["resources", rest @ ..] => inside(None, rest),
        _ => Err(nothing()),
    }
}

fn inside(cluster: Option<String>, rest: &[&str]) -> Result<Ask, Status> {
    let (group, version, tail) = match rest {
        ["api", version, tail @ ..] if !tail.is_empty() => ("", *version, tail),
        ["apis", group, version, tail @ ..] if !tail.is_empty() => (*group, *version, tail),
        _ => return Ok(Ask::Discovery(cluster, format!("/{}", rest.join("/")))),
    };
    let own = |text: &str| Some(text.to_owned());
    let (namespace, resource, name) = match tail {
        ["namespaces", namespace, resource] => (own(namespace), *resource, None),
        ["namespaces", namespace, resource, name] => (own(namespace), *resource, own(name)),
        [resource] => (None, *resource, None),
        [resource, name] => (None, *resource, own(name)),
        _ => return Err(nothing()),
    };
    let (group, version, resource) = (group.to_owned(), version.to_owned(), resource.to_owned());
    Ok(Ask::Resource(Objects { cluster, group, version, resource, namespace, name }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_are_understood() {
        let table = [
            ("/resources/api/v1/pods", "None  v1 pods None None"),
            ("/resources/apis/apps/v1/namespaces/a/deployments/b", "None apps v1 deployments Some(\"a\") Some(\"b\")"),
            ("/resources/clusters/m/api/v1/namespaces", "Some(\"m\")  v1 namespaces None None"),
            ("/resources/clusters/m/api/v1/namespaces/x", "Some(\"m\")  v1 namespaces None Some(\"x\")"),
            ("/resources/clusters/m/api/v1/namespaces/x/pods", "Some(\"m\")  v1 pods Some(\"x\") None"),
        ];
        for (path, expected) in table {
            let Ask::Resource(ask) = parse(path).unwrap() else { panic!("{path}") };
            let shown = format!(
                "{:?} {} {} {} {:?} {:?}",
                ask.cluster, ask.group, ask.version, ask.resource, ask.namespace, ask.name
            );
            assert_eq!(shown, expected, "{path}");
        }
        assert_eq!(parse("/resources/clusters/m/apis").unwrap(), Ask::Discovery(Some("m".into()), "/apis".into()));
        assert_eq!(parse("/collectionresources/any").unwrap(), Ask::Collection("any".into()));
        assert!(parse("/other").is_err());
        assert!(parse("/resources/api/v1/namespaces/a/pods/b/log").is_err());
    }
}
