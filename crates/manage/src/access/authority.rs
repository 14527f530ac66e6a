//! Another system decides about grants: it posts signed changes, and is read again on start.

use std::collections::BTreeSet;

use atoll_meta::{Reason, Status};
use atoll_runtime::{Endpoint, Patch};
use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::objects::{AUTHORITY, GRANT};
use crate::context::{AGENT, Core};
use crate::external;
use crate::kinds::SECRET;

/// Marks grants that an authority decided about.
const LABEL: &str = "atoll.io/authority";
/// Holds the number of the last change that was taken.
const SEQUENCE: &str = "atoll.io/sequence";
/// How old a signed change may be, in seconds.
const FRESH: i64 = 300;
/// How often a number is given back when others write at the same time.
const TRIES: usize = 5;
/// The size of the blocks of the hash.
const BLOCK: usize = 64;

/// A change as it came: when it says it was sent, its signature and its text.
pub struct Signed<'a> {
    /// Seconds since 1970.
    pub time: &'a str,
    /// `sha256=` and the signature of time, dot and text in hex.
    pub signature: &'a str,
    /// The text.
    pub body: &'a [u8],
}

/// The signature of a text sent at a time.
pub fn sign(key: &[u8], time: &str, body: &[u8]) -> String {
    let mut block = [0u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |byte: u8| block.map(|own| own ^ byte);
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(time.as_bytes())
        .chain_update(b".")
        .chain_update(body)
        .finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    let hex: String = outer.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// Takes a posted change: signed, fresh, and newer than what was taken before.
pub async fn take(core: &Core, name: &str, signed: &Signed<'_>) -> Result<(), Status> {
    crate::ask::segment("authority", name)?;
    let root = core.own_endpoint("root");
    // The same answer whatever is wrong: who cannot sign learns nothing.
    let authority = root.get_opt(&AUTHORITY.gvr(), None, name).await?.ok_or_else(Status::unauthorized)?;
    let key = secret(&root, &authority, "signing").await?.ok_or_else(Status::unauthorized)?;
    let expected = sign(&key, signed.time, signed.body);
    if key.len() < 16 || !atoll_pki::equal(expected.as_bytes(), signed.signature.as_bytes()) {
        return Err(Status::unauthorized());
    }
    let sent: i64 = signed.time.parse().map_err(|_| Status::unauthorized())?;
    if (core.hub.now().as_second() - sent).abs() > FRESH {
        return Err(Status::unauthorized());
    }
    let change: Value =
        serde_json::from_slice(signed.body).map_err(|error| Status::bad_request(format!("body: {error}")))?;
    mark(&root, &authority, &change).await?;
    let applied = apply(&root, name, &change).await;
    if applied.is_err()
        && let Err(status) = unmark(&root, &authority, &change).await
    {
        tracing::warn!(authority = name, %status, "a change that failed cannot be posted again under its number");
    }
    applied
}

/// Makes grants as a change says: what is taken away first.
async fn apply(root: &Endpoint, name: &str, change: &Value) -> Result<(), Status> {
    for id in change["removed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        remove(root, name, &grant_name(name, id)?).await?;
    }
    for binding in change["bindings"].as_array().into_iter().flatten() {
        put(root, name, binding).await?;
    }
    Ok(())
}

/// Reads everything an authority knows, and makes the grants so.
pub async fn read_again(core: &Core, authority: &Value) -> Result<(), Status> {
    let Some(url) = authority["spec"]["url"].as_str() else { return Ok(()) };
    let root = core.own_endpoint("root");
    let name = authority["metadata"]["name"].as_str().unwrap_or_default();
    let token = secret(&root, authority, "token").await?.and_then(|bytes| String::from_utf8(bytes).ok());
    let (server, path) = split(url);
    let ca = authority["spec"]["caData"].as_str().filter(|text| !text.is_empty());
    let config = external::server(&server, ca, &json!({"token": token})).await?;
    let state = Endpoint::remote(name, config, AGENT)?.get_path(&path).await?;
    let bindings =
        state["bindings"].as_array().ok_or_else(|| Status::unavailable("the authority names no bindings"))?;
    let mut wanted = BTreeSet::new();
    for binding in bindings {
        wanted.insert(put(&root, name, binding).await?);
    }
    let query = format!("labelSelector={}%3D{name}", LABEL.replace('/', "%2F"));
    for grant in root.list(&GRANT.gvr(), None, &query).await?.items {
        let own = grant["metadata"]["name"].as_str().unwrap_or_default();
        if !wanted.contains(own) {
            remove(&root, name, own).await?;
        }
    }
    // Older changes that are still on their way are not taken any more.
    if state["sequence"].is_i64() {
        let _ = mark(&root, authority, &state).await;
    }
    Ok(())
}

fn split(url: &str) -> (String, String) {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let at = rest.find('/').unwrap_or(rest.len());
    let path = if at == rest.len() { "/" } else { &rest[at..] };
    (format!("https://{}", &rest[..at]), path.to_owned())
}

async fn secret(root: &Endpoint, authority: &Value, entry: &str) -> Result<Option<Vec<u8>>, Status> {
    let reference = &authority["spec"]["secretRef"];
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let secret = root.get_opt(&SECRET.gvr(), Some(text("namespace")), text("name")).await?;
    let data = secret.as_ref().and_then(|secret| secret["data"][entry].as_str());
    Ok(data.and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok()))
}

/// Notes the number of a change; one that is not newer is refused, also when two come at once.
async fn mark(root: &Endpoint, authority: &Value, change: &Value) -> Result<(), Status> {
    let number = change["sequence"].as_i64().ok_or_else(|| Status::bad_request("sequence: a number is needed"))?;
    let meta = &authority["metadata"];
    let last = meta["annotations"][SEQUENCE].as_str().and_then(|text| text.parse().ok()).unwrap_or(i64::MIN);
    if number <= last {
        return Err(Status::new(
            409,
            Reason::Conflict,
            format!("change {number} was taken already; the last is {last}"),
        ));
    }
    let patch = json!({"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": {SEQUENCE: number.to_string()}}});
    let name = meta["name"].as_str().unwrap_or_default();
    root.patch(&AUTHORITY.gvr(), None, name, "", Patch::Merge, &patch).await.map(drop)
}

/// Gives the number of a change that was not done back, so that it may be posted again; unless a newer one came
/// meanwhile.
async fn unmark(root: &Endpoint, before: &Value, change: &Value) -> Result<(), Status> {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let mut last = Ok(());
    for _ in 0..TRIES {
        let Some(present) = root.get_opt(&AUTHORITY.gvr(), None, name).await? else { return Ok(()) };
        let meta = &present["metadata"];
        if meta["annotations"][SEQUENCE].as_str() != Some(&change["sequence"].to_string()) {
            return Ok(());
        }
        let number = &before["metadata"]["annotations"][SEQUENCE];
        let patch =
            json!({"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": {SEQUENCE: number}}});
        last = root.patch(&AUTHORITY.gvr(), None, name, "", Patch::Merge, &patch).await.map(drop);
        if !last.as_ref().is_err_and(|status| status.code == 409) {
            break;
        }
    }
    last
}

fn grant_name(authority: &str, id: &str) -> Result<String, Status> {
    crate::ask::segment("id", id)?;
    Ok(format!("{authority}-{}", id.to_lowercase()))
}

async fn remove(root: &Endpoint, authority: &str, name: &str) -> Result<(), Status> {
    let own = root.get_opt(&GRANT.gvr(), None, name).await?;
    match own.filter(|grant| grant["metadata"]["labels"][LABEL] == authority) {
        Some(_) => root.delete(&GRANT.gvr(), None, name, &Value::Null).await,
        None => Ok(()),
    }
}

/// Makes a grant as the authority says; grants of others are not touched.
async fn put(root: &Endpoint, authority: &str, binding: &Value) -> Result<String, Status> {
    let name = grant_name(authority, binding["id"].as_str().unwrap_or_default())?;
    let spec = json!({"role": binding["role"], "subjects": binding["subjects"], "scope": binding["scope"]});
    let grant = json!({
        "apiVersion": GRANT.api_version(), "kind": "Grant", "metadata": {"name": name, "labels": {LABEL: authority}}, "spec": spec,
    });
    match root.get_opt(&GRANT.gvr(), None, &name).await? {
        None => root.create(&GRANT.gvr(), None, &grant).await.map(drop)?,
        Some(own) if own["metadata"]["labels"][LABEL] != authority => {
            return Err(Status::new(409, Reason::Conflict, format!("grant {name} is not of {authority}")));
        }
        Some(own) if own["spec"] == spec => {}
        Some(own) => {
            let mut changed = own.clone();
            changed["spec"] = spec;
            root.update(&GRANT.gvr(), None, &name, &changed).await.map(drop)?;
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        assert_eq!(
            sign(b"key", "1700000000", b"{}"),
            "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
        );
        assert_eq!(
            sign(&[b'k'; 80], "1700000000", b"{}"),
            "sha256=8ab749d9f07be9667ae454e0a94df13da769be99bf5119d7195a5cef845a4fc1"
        );
        assert_ne!(sign(b"key", "1", b"a"), sign(b"key", "2", b"a"));
        assert_ne!(sign(b"key", "1", b"a"), sign(b"kez", "1", b"a"));
    }

    #[test]
    fn urls_are_split() {
        assert_eq!(split("https://a.b/c?d"), ("https://a.b".to_owned(), "/c?d".to_owned()));
        assert_eq!(split("https://a.b"), ("https://a.b".to_owned(), "/".to_owned()));
    }
}
