//! Acting as somebody else, for those who may.

use std::collections::BTreeMap;

use atoll_meta::Status;
use http::HeaderMap;
use http::header::HeaderName;

use super::{Attributes, authorize};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::request::Verb;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Whom a request wants to be.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Wish {
    user: Option<String>,
    groups: Vec<String>,
    uid: Option<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Wish {
    /// Reads the headers; `None` if the caller wants to be themselves.
    pub fn read(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut wish = Self::default();
        let (mut users, mut uids) = (0, 0);
        for (name, value) in headers {
            let Some(what) = name.as_str().strip_prefix("impersonate-") else { continue };
            let text =
                value.to_str().map_err(|_| Status::bad_request(format!("header {name} is not text")))?.to_owned();
            match what {
                "user" => {
                    users += 1;
                    wish.user = Some(text);
                }
                "group" => wish.groups.push(text),
                "uid" => {
                    uids += 1;
                    wish.uid = Some(text);
                }
                _ => match what.strip_prefix("extra-") {
                    Some(key) => wish.extra.entry(decode(key)).or_default().push(text),
                    None => return Err(Status::bad_request(format!("header {name} is not understood"))),
                },
            }
        }
        if users > 1 || uids > 1 {
            return Err(Status::bad_request("impersonation names more than one user or uid"));
        }
        if wish == Self::default() {
            return Ok(None);
        }
        if wish.user.as_ref().is_none_or(String::is_empty) {
            return Err(Status::bad_request(format!(
                "requested [{}] without impersonating a user",
                wish.references().join(" ")
            )));
        }
        Ok(Some(wish))
    }

    /// What is wished besides the user, in the words of the refusal.
    fn references(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            values.iter().map(move |value| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"))
        });
        let uid = self.uid.iter().map(|uid| format!("{{UID  {uid}  {AUTHENTICATION}/v1  }}"));
        groups.chain(extra).chain(uid).collect()
    }

    /// Who the caller becomes.
    fn identity(self) -> Identity {
        let user = self.user.unwrap_or_default();
        let mut groups = self.groups;
        if let (true, Some((namespace, _))) = (groups.is_empty(), account(&user)) {
            groups.push("system:serviceaccounts".into());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let has = |groups: &[String], group: &str| groups.iter().any(|own| own == group);
        if user == "system:anonymous" {
            if !has(&groups, UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.into());
            }
        } else if !has(&groups, AUTHENTICATED) && !has(&groups, UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Identity { user, uid: self.uid.unwrap_or_default(), groups, extra: self.extra }
    }
}

/// Namespace and name of a service account, from its user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let fits = atoll_meta::name::is_dns1123_label(namespace).is_empty()
        && atoll_meta::name::is_dns1123_subdomain(name).is_empty();
    fits.then_some((namespace, name))
}

/// `%xx` in the key of an extra stands for characters that header names cannot have.
fn decode(key: &str) -> String {
    let bytes = key.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| key.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        match escaped {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).to_lowercase()
}

/// Who the caller becomes, if they may.
pub async fn impersonate(hub: &Hub, instance: &Instance, caller: Identity, wish: Wish) -> Result<Identity, Status> {
    let user = wish.user.as_deref().unwrap_or_default();
    match account(user) {
        Some((namespace, name)) => may(hub, instance, &caller, "", "serviceaccounts", "", namespace, name).await?,
        None => may(hub, instance, &caller, "", "users", "", "", user).await?,
    }
    for group in &wish.groups {
        may(hub, instance, &caller, "", "groups", "", "", group).await?;
    }
    if let Some(uid) = &wish.uid {
        may(hub, instance, &caller, AUTHENTICATION, "uids", "", "", uid).await?;
    }
    for (key, values) in &wish.extra {
        for value in values {
            may(hub, instance, &caller, AUTHENTICATION, "userextras", key, "", value).await?;
        }
    }
    Ok(wish.identity())
}

#[allow(clippy::too_many_arguments, reason = "one question, taken apart")]
async fn may(
    hub: &Hub,
    instance: &Instance,
    caller: &Identity,
    group: &str,
    resource: &str,
    subresource: &str,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    let attributes = Attributes {
        verb: Verb::Get,
        verb_word: Some("impersonate"),
        group,
        version: "v1",
        resource,
        subresource,
        namespace,
        name,
        url: None,
    };
    authorize(hub, instance, caller, &attributes).await
}

/// Removes every header that speaks of an identity, in any spelling another server might understand.
pub fn strip(headers: &mut HeaderMap) {
    let told: Vec<HeaderName> = headers.keys().filter(|name| speaks_of_identity(name.as_str())).cloned().collect();
    for name in told {
        headers.remove(name);
    }
}

/// Some servers take `_` for `-`, so both are looked at.
fn speaks_of_identity(name: &str) -> bool {
    let name = name.replace('_', "-");
    name == "x-forwarded-client-cert" || ["impersonate-", "x-remote-"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn wishes_are_read_from_headers_in_any_case() {
        let given = headers(&[
            ("IMPERSONATE-USER", "jane"),
            ("impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-Acme.com%2FProject", "x"),
            ("Impersonate-Uid", "7"),
        ]);
        let identity = Wish::read(&given).unwrap().unwrap().identity();
        assert_eq!(identity.user, "jane");
        assert_eq!(identity.uid, "7");
        assert_eq!(identity.groups, ["a", "b", AUTHENTICATED]);
        assert_eq!(identity.extra["acme.com/project"], ["x"]);
    }

    #[test]
    fn accounts_bring_their_groups_and_the_anonymous_stay_so() {
        let who = |user| Wish::read(&headers(&[("impersonate-user", user)])).unwrap().unwrap().identity().groups;
        assert_eq!(
            who("system:serviceaccount:ns:sa"),
            ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]
        );
        assert_eq!(who("system:anonymous"), [UNAUTHENTICATED]);
    }

    #[test]
    fn ambiguous_wishes_are_refused() {
        for bad in [
            headers(&[("impersonate-group", "a")]),
            headers(&[("impersonate-uid", "a")]),
            headers(&[("impersonate-extra-k", "a")]),
            headers(&[("impersonate-user", ""), ("impersonate-group", "a")]),
            headers(&[("impersonate-user", "a"), ("impersonate-user", "b")]),
            headers(&[("impersonate-user", "a"), ("impersonate-uid", "1"), ("impersonate-uid", "2")]),
            headers(&[("impersonate-user", "a"), ("impersonate-users", "b")]),
        ] {
            assert_eq!(Wish::read(&bad).unwrap_err().code, 400, "{bad:?}");
        }
        assert!(Wish::read(&headers(&[("accept", "x")])).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn no_spelling_of_an_identity_header_survives(
            prefix in prop::sample::select(vec!["impersonate-", "impersonate_", "x-remote-", "x_remote_", "X-Remote_", "IMPERSONATE-", "X_Forwarded-Client_Cert"]),
            rest in "[a-zA-Z_-]{0,12}",
            count in 1usize..3,
        ) {
            let name = if prefix.len() > 15 { prefix.to_owned() } else { format!("{prefix}{rest}") };
            let mut headers = headers(&[("accept", "*/*"), ("connection", &name)]);
            for _ in 0..count {
                headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), "x".parse().unwrap());
            }
            strip(&mut headers);
            prop_assert_eq!(headers.len(), 2);
        }
    }
}
