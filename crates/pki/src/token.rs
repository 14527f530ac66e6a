//! Service account tokens: JWTs signed with ES256.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Map, Value, json};

use crate::PkiError;

const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// A token longer than this is not ours.
const MAX_LEN: usize = 16 * 1024;
/// Clocks differ: a token made elsewhere may seem to come from the near future.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// An object with whose end a token ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bound {
    /// `Pod`, `Secret` or `Node`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Uid of the object; empty in legacy tokens.
    pub uid: String,
}

/// What a token says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claims {
    /// Namespace of the service account.
    pub namespace: String,
    /// Name of the service account.
    pub name: String,
    /// Uid of the service account.
    pub uid: String,
    /// Whom the token is meant for; empty in legacy tokens.
    pub audiences: Vec<String>,
    /// When it ends; `None` in legacy tokens, which end with their Secret.
    pub expires: Option<Timestamp>,
    /// The object it is bound to.
    pub bound: Option<Bound>,
    /// Name and uid of the node the bound pod runs on.
    pub node: Option<(String, String)>,
    /// Unique id of the token.
    pub jti: String,
}

impl Claims {
    /// The user the token stands for.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups of that user.
    pub fn groups(&self) -> [String; 3] {
        [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }

    /// Whether the token is meant for one of these; legacy tokens are meant for everybody.
    pub fn is_for(&self, audiences: &[String]) -> bool {
        self.expires.is_none() && self.audiences.is_empty()
            || self.audiences.iter().any(|audience| audiences.contains(audience))
    }
}

/// A public key that verifies tokens.
struct Verifier {
    id: String,
    point: Vec<u8>,
    key: DecodingKey,
}

impl Verifier {
    fn of(key: &KeyPair) -> Self {
        let hash = digest::digest(&digest::SHA256, &key.subject_public_key_info());
        let point = key.der_bytes().to_vec();
        Self { id: URL_SAFE_NO_PAD.encode(hash), key: DecodingKey::from_ec_der(&point), point }
    }
}

/// Signs and verifies service account tokens of one issuer.
pub struct TokenSigner {
    issuer: String,
    key: KeyPair,
    signing: EncodingKey,
    /// The current key first, then older ones that still verify.
    verifiers: Vec<Verifier>,
}

impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSigner").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl TokenSigner {
    /// Makes a signer with a new key.
    pub fn generate(issuer: &str) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(|error| PkiError::Key(error.to_string()))?;
        Self::of(issuer, key)
    }

    /// Makes a signer from a PEM key on the curve P-256.
    pub fn from_pem(issuer: &str, pem: &str) -> Result<Self, PkiError> {
        Self::of(issuer, read_key(pem)?)
    }

    fn of(issuer: &str, key: KeyPair) -> Result<Self, PkiError> {
        Ok(Self {
            issuer: issuer.to_owned(),
            signing: EncodingKey::from_ec_der(key.serialized_der()),
            verifiers: vec![Verifier::of(&key)],
            key,
        })
    }

    /// Also accepts tokens of an older key, for as long as they last.
    pub fn with_previous(mut self, pem: &str) -> Result<Self, PkiError> {
        self.verifiers.push(Verifier::of(&read_key(pem)?));
        Ok(self)
    }

    /// The private key.
    pub fn to_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Who signs.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Signs a token.
    pub fn sign(&self, claims: &Claims, now: Timestamp) -> Result<String, PkiError> {
        let body = match claims.expires {
            Some(expires) => self.bound_body(claims, expires, now),
            None => legacy_body(claims),
        };
        let mut header = Header::new(Algorithm::ES256);
        header.typ = None;
        header.kid = self.verifiers.first().map(|verifier| verifier.id.clone());
        jsonwebtoken::encode(&header, &body, &self.signing).map_err(|error| PkiError::Token(error.to_string()))
    }

    fn bound_body(&self, claims: &Claims, expires: Timestamp, now: Timestamp) -> Value {
        let mut private = json!({
            "namespace": claims.namespace,
            "serviceaccount": {"name": claims.name, "uid": claims.uid},
        });
        if let Some(bound) = &claims.bound {
            private[bound.kind.to_lowercase()] = json!({"name": bound.name, "uid": bound.uid});
        }
        if let Some((name, uid)) = &claims.node {
            private["node"] = json!({"name": name, "uid": uid});
        }
        json!({
            "iss": self.issuer,
            "sub": claims.user(),
            "aud": claims.audiences,
            "exp": expires.as_second(),
            "iat": now.as_second(),
            "nbf": now.as_second(),
            "jti": claims.jti,
            "kubernetes.io": private,
        })
    }

    /// Verifies signature, issuer and time. The caller checks the audience and that
    /// the service account and the bound object still exist.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, PkiError> {
        let invalid = || PkiError::Token("invalid bearer token".to_owned());
        if token.len() > MAX_LEN {
            return Err(invalid());
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid())?;
        let mut rules = Validation::new(Algorithm::ES256);
        rules.required_spec_claims.clear();
        // Time comes from the caller, audiences are the caller's business.
        rules.validate_exp = false;
        rules.validate_aud = false;
        let body: Map<String, Value> = self
            .verifiers
            .iter()
            .filter(|verifier| header.kid.as_ref().is_none_or(|id| *id == verifier.id))
            .find_map(|verifier| jsonwebtoken::decode(token, &verifier.key, &rules).ok())
            .ok_or_else(invalid)?
            .claims;
        let claims = match body.get("iss").and_then(Value::as_str) {
            Some(LEGACY_ISSUER) => read_legacy(&body),
            Some(issuer) if issuer == self.issuer => read_bound(&body, now)?,
            _ => None,
        };
        let claims = claims.ok_or_else(invalid)?;
        if body.get("sub").and_then(Value::as_str) != Some(claims.user().as_str()) {
            return Err(invalid());
        }
        Ok(claims)
    }

    /// The public keys, as served at `/openid/v1/jwks`.
    pub fn jwks(&self) -> Value {
        let keys: Vec<Value> = self
            .verifiers
            .iter()
            .filter_map(|verifier| {
                // An uncompressed point: 4, then both coordinates.
                let (x, y) = verifier.point.get(1..)?.split_at_checked(32)?;
                let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
                Some(json!({"use": "sig", "kty": "EC", "kid": verifier.id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}))
            })
            .collect();
        json!({ "keys": keys })
    }

    /// What is served at `/.well-known/openid-configuration`.
    pub fn discovery(&self, jwks_uri: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

fn read_key(pem: &str) -> Result<KeyPair, PkiError> {
    let key = KeyPair::from_pem(pem).map_err(|error| PkiError::Key(error.to_string()))?;
    if key.algorithm() != &rcgen::PKCS_ECDSA_P256_SHA256 {
        return Err(PkiError::Key("token keys must be on the curve P-256".to_owned()));
    }
    Ok(key)
}

fn legacy_body(claims: &Claims) -> Value {
    let mut body = json!({
        "iss": LEGACY_ISSUER,
        "sub": claims.user(),
        "kubernetes.io/serviceaccount/namespace": claims.namespace,
        "kubernetes.io/serviceaccount/service-account.name": claims.name,
        "kubernetes.io/serviceaccount/service-account.uid": claims.uid,
    });
    if let Some(bound) = &claims.bound {
        body["kubernetes.io/serviceaccount/secret.name"] = bound.name.clone().into();
    }
    body
}

fn read_legacy(body: &Map<String, Value>) -> Option<Claims> {
    let text = |key: &str| body.get(&format!("kubernetes.io/serviceaccount/{key}")).and_then(Value::as_str);
    Some(Claims {
        namespace: text("namespace")?.to_owned(),
        name: text("service-account.name")?.to_owned(),
        uid: text("service-account.uid")?.to_owned(),
        // Without its Secret such a token could never be taken back.
        bound: Some(Bound { kind: "Secret".to_owned(), name: text("secret.name")?.to_owned(), uid: String::new() }),
        ..Claims::default()
    })
}

/// `None` if something is missing; an error if the time is wrong.
fn read_bound(body: &Map<String, Value>, now: Timestamp) -> Result<Option<Claims>, PkiError> {
    let moment = |key: &str| body.get(key).and_then(Value::as_i64).and_then(|at| Timestamp::from_second(at).ok());
    let Some(expires) = moment("exp") else { return Ok(None) };
    if now >= expires {
        return Err(PkiError::Token("service account token has expired".to_owned()));
    }
    if moment("nbf").is_some_and(|from| from > now.saturating_add(SKEW).unwrap_or(now)) {
        return Err(PkiError::Token("service account token is not valid yet".to_owned()));
    }
    Ok(read_private(body, expires))
}

fn read_private(body: &Map<String, Value>, expires: Timestamp) -> Option<Claims> {
    let private = body.get("kubernetes.io")?;
    let reference = |key: &str| {
        let object = private.get(key)?;
        Some((object.get("name")?.as_str()?.to_owned(), object.get("uid")?.as_str()?.to_owned()))
    };
    let (name, uid) = reference("serviceaccount")?;
    let bound = |key: &str, kind: &str| reference(key).map(|(name, uid)| Bound { kind: kind.to_owned(), name, uid });
    let to_pod = bound("pod", "Pod").or_else(|| bound("secret", "Secret"));
    // Beside a pod the node only says where the pod runs.
    let node = if to_pod.is_some() { reference("node") } else { None };
    let audiences = match body.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Some(Claims {
        namespace: private.get("namespace")?.as_str()?.to_owned(),
        name,
        uid,
        audiences,
        expires: Some(expires),
        bound: to_pod.or_else(|| bound("node", "Node")),
        node,
        jti: body.get("jti").and_then(Value::as_str).unwrap_or_default().to_owned(),
    })
}
