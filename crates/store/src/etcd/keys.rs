//! Where things are in etcd, under `/atoll/{prefix}/`:
//!
//! | key | value |
//! | --- | --- |
//! | `format` | version of this layout |
//! | `next` | number of the next instance |
//! | `instances/{number}` | name of an instance; it exists as long as this key |
//! | `names/{name}` | number of an instance |
//! | `last/{number}` | last states of what the newest removal removed, for its watchers |
//! | `{number}/{key}` | body of an object |

use atoll_meta::{InstanceId, Key};
use bytes::Bytes;

/// Makes and reads keys.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    root: String,
}

/// What a key is about.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Place {
    Instance(InstanceId),
    Last(InstanceId),
    Object(InstanceId, Key),
    Other,
}

impl Keys {
    pub fn new(prefix: &str) -> Self {
        Self { root: format!("/atoll/{prefix}/") }
    }

    fn key(&self, rest: std::fmt::Arguments<'_>) -> Bytes {
        format!("{}{rest}", self.root).into()
    }

    pub fn all(&self) -> (Bytes, Bytes) {
        range(&self.root)
    }

    pub fn format(&self) -> Bytes {
        self.key(format_args!("format"))
    }

    pub fn next(&self) -> Bytes {
        self.key(format_args!("next"))
    }

    pub fn instance(&self, id: InstanceId) -> Bytes {
        self.key(format_args!("instances/{id}"))
    }

    pub fn name(&self, name: &str) -> Bytes {
        self.key(format_args!("names/{name}"))
    }

    pub fn last(&self, id: InstanceId) -> Bytes {
        self.key(format_args!("last/{id}"))
    }

    pub fn object(&self, id: InstanceId, key: &Key) -> Bytes {
        self.key(format_args!("{id}/{key}"))
    }

    pub fn objects(&self, id: InstanceId) -> (Bytes, Bytes) {
        range(&format!("{}{id}/", self.root))
    }

    pub fn place(&self, key: &[u8]) -> Place {
        let parsed = || {
            let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.root)?;
            let (first, rest) = rest.split_once('/')?;
            let id = |text: &str| text.parse().ok().map(InstanceId);
            match first {
                "instances" => id(rest).map(Place::Instance),
                "last" => id(rest).map(Place::Last),
                _ => Some(Place::Object(id(first)?, Key::from_text(rest))),
            }
        };
        parsed().unwrap_or(Place::Other)
    }
}

/// All keys that begin with a text ending in `/`.
fn range(prefix: &str) -> (Bytes, Bytes) {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        // `0` follows `/`.
        *last += 1;
    }
    (prefix.as_bytes().to_vec().into(), end.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_made() {
        let keys = Keys::new("hub");
        let id = InstanceId(7);
        let object = Key::new("apps", "deployments", "d", "web");
        assert_eq!(keys.object(id, &object), "/atoll/hub/7/deployments.apps/d/web");
        assert_eq!(keys.place(&keys.object(id, &object)), Place::Object(id, object));
        assert_eq!(keys.place(&keys.instance(id)), Place::Instance(id));
        assert_eq!(keys.place(&keys.last(id)), Place::Last(id));
        for other in [keys.format(), keys.next(), keys.name("x"), "/atoll/hubris/7/x".into(), "/x".into()] {
            assert_eq!(keys.place(&other), Place::Other, "{other:?}");
        }
        assert_eq!(keys.objects(id), ("/atoll/hub/7/".into(), "/atoll/hub/70".into()));
    }
}
