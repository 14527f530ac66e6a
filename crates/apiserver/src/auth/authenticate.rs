//! Who makes a request: certificate, token, or nobody.

use atoll_meta::Status;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{Extensions, HeaderMap};

use super::{account, bootstrap_token};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::server::PeerCertificates;

const AUTHENTICATED: &str = "system:authenticated";
/// Browsers cannot set headers on WebSockets, so the token travels as a protocol name.
const PROTOCOL_TOKEN: &str = "base64url.bearer.authorization.k8s.io.";
/// What a token may say about its caller besides the name.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A token that was accepted.
pub struct Accepted {
    /// Whose it is.
    pub identity: Identity,
    /// For which of the asked audiences it is meant.
    pub audiences: Vec<String>,
}

/// What a request offers as a token.
enum Bearer {
    Nothing,
    /// Credentials of a kind nobody here understands.
    Strange,
    Token(String),
}

/// The credentials a request shows.
pub struct Shown {
    certificates: Option<PeerCertificates>,
    bearer: Bearer,
}

impl Shown {
    /// Takes the credentials out of a request.
    pub fn take(headers: &mut HeaderMap, extensions: &Extensions) -> Self {
        let certificates = extensions.get::<PeerCertificates>().filter(|peer| !peer.0.is_empty()).cloned();
        let bearer = bearer(headers);
        strip(headers);
        Self { certificates, bearer }
    }
}

/// Finds out who makes a request. No credentials at all make an anonymous caller; wrong ones make none.
pub async fn authenticate(hub: &Hub, instance: &Instance, shown: &Shown) -> Result<Identity, Status> {
    let mut offered = false;
    if let Some(PeerCertificates(chain)) = &shown.certificates {
        offered = true;
        if let Some(identity) = certificate(hub, instance, chain).await? {
            return Ok(identity);
        }
    }
    match &shown.bearer {
        Bearer::Nothing => {}
        Bearer::Strange => offered = true,
        Bearer::Token(token) => {
            offered = true;
            if let Some(accepted) = token_of(hub, instance, token, &[]).await? {
                return Ok(accepted.identity);
            }
        }
    }
    if offered { Err(Status::unauthorized()) } else { Ok(Identity::anonymous()) }
}

fn bearer(headers: &HeaderMap) -> Bearer {
    if let Some(header) = headers.get(AUTHORIZATION) {
        let parts = header.to_str().ok().and_then(|text| text.split_once(' '));
        return match parts {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Bearer::Token(token.trim().to_owned()),
            _ => Bearer::Strange,
        };
    }
    let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let token = protocols.flat_map(|list| list.split(',')).find_map(|name| name.trim().strip_prefix(PROTOCOL_TOKEN));
    match token.map(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map(String::from_utf8)) {
        None => Bearer::Nothing,
        Some(Ok(Ok(token))) => Bearer::Token(token),
        Some(_) => Bearer::Strange,
    }
}

/// Removes what proved the identity, so that nothing behind this point can repeat or leak it.
fn strip(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    let carries = |name: &str| name.trim().starts_with(PROTOCOL_TOKEN);
    let lists: Vec<String> = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(ToOwned::to_owned)
        .collect();
    if !lists.iter().flat_map(|list| list.split(',')).any(carries) {
        return;
    }
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    let rest: Vec<&str> =
        lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|name| !carries(name)).collect();
    if let (false, Ok(value)) = (rest.is_empty(), rest.join(", ").parse()) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
}

/// Says who shows a certificate: a user of the instance, or an administrator of the whole hub.
async fn certificate(
    hub: &Hub,
    instance: &Instance,
    chain: &[rustls_pki_types::CertificateDer<'static>],
) -> Result<Option<Identity>, Status> {
    let now = hub.now();
    if let Some(holder) = hub.authority(instance).await?.identify(chain, now) {
        return Ok(Some(user_of(&holder)));
    }
    if instance.id == atoll_meta::InstanceId::ROOT {
        return Ok(None);
    }
    let holder = hub.authority(&hub.root()).await?.identify(chain, now);
    // Other users of `root` are nobody in other instances.
    Ok(holder.map(|holder| user_of(&holder)).filter(Identity::is_master))
}

fn user_of(holder: &atoll_pki::Identity) -> Identity {
    let mut groups = holder.groups.clone();
    groups.push(AUTHENTICATED.into());
    let extra = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={}", holder.fingerprint)])];
    Identity { user: holder.user.clone(), uid: String::new(), groups, extra: extra.into() }
}

/// Says whose token this is, if it is meant for one of the audiences (none: for this server).
pub async fn token_of(
    hub: &Hub,
    instance: &Instance,
    token: &str,
    audiences: &[String],
) -> Result<Option<Accepted>, Status> {
    let authority = hub.authority(instance).await?;
    let own = authority.audiences();
    let asked = if audiences.is_empty() { &own } else { audiences };
    // Credentials that name no audience are meant for this server.
    let for_us: Vec<String> = asked.iter().filter(|audience| own.contains(audience)).cloned().collect();
    if let Some(identity) = hub.keys.static_token(token) {
        return Ok((!for_us.is_empty()).then_some(Accepted { identity, audiences: for_us }));
    }
    if let Some(parsed) = atoll_pki::BootstrapToken::parse(token) {
        let identity = bootstrap_token::identify(hub, instance, &parsed).await?;
        return Ok(identity.filter(|_| !for_us.is_empty()).map(|identity| Accepted { identity, audiences: for_us }));
    }
    let Some(claims) = authority.verify(token, hub.now()) else {
        let identity = hub.keys.recognised(token).await?;
        return Ok(identity.filter(|_| !for_us.is_empty()).map(|identity| Accepted { identity, audiences: for_us }));
    };
    if !claims.is_for(asked) {
        return Ok(None);
    }
    let meant: Vec<String> = match claims.expires {
        None => for_us,
        Some(_) => asked.iter().filter(|audience| claims.audiences.contains(audience)).cloned().collect(),
    };
    if meant.is_empty() {
        return Ok(None);
    }
    let identity = account::identify(hub, instance, &claims, token).await?;
    Ok(identity.map(|identity| Accepted { identity, audiences: meant }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_in_a_protocol_name_is_read_and_removed() {
        let mut headers = HeaderMap::new();
        let value = format!("v5.channel.k8s.io, {PROTOCOL_TOKEN}{}", URL_SAFE_NO_PAD.encode("secret"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
        assert!(matches!(bearer(&headers), Bearer::Token(token) if token == "secret"));
        strip(&mut headers);
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io");
        assert!(matches!(bearer(&headers), Bearer::Nothing));
    }

    #[test]
    fn other_schemes_are_credentials_nobody_understands() {
        for text in ["Basic YTpi", "Bearer", "token"] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, text.parse().unwrap());
            assert!(matches!(bearer(&headers), Bearer::Strange), "{text}");
        }
    }
}
