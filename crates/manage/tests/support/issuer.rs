//! Identity providers and authorities that exist only in tests: a server that knows its answers, a key that signs.

use std::convert::Infallible;
use std::sync::Arc;

use atoll_apiserver::{Body, Server, response};
use atoll_pki::{Ca, San, ServerCerts, Validity};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Request, Response};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What is answered at which path.
pub type Answers = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that answers paths with JSON; it ends when dropped.
pub struct Fake {
    pub url: String,
    pub ca: String,
    stop: CancellationToken,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub async fn serve(answers: Answers) -> Fake {
    let now = jiff::Timestamp::now();
    let authority = Ca::generate("fake", now).unwrap();
    let certs = Arc::new(ServerCerts::default());
    certs.set(None, &authority.issue_server(&[San::new("127.0.0.1")], Validity::days(now, 1)).unwrap()).unwrap();
    let tls = atoll_pki::server_config(certs, &[b"http/1.1"]).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::new(tls)).await.unwrap();
    let url = format!("https://{}", server.address().unwrap());
    let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let known =
            answers.lock().iter().find(|(path, _)| path == request.uri().path()).map(|(_, answer)| answer.clone());
        async move {
            Ok::<Response<Body>, Infallible>(match known {
                Some(answer) => response(200, "application/json", answer.to_string()),
                None => response(404, "text/plain", "no"),
            })
        }
    });
    let stop = CancellationToken::new();
    tokio::spawn(server.run(service, stop.clone()));
    Fake { url, ca: STANDARD.encode(authority.cert_pem()), stop }
}

/// A key that signs tokens, and what others know of it.
pub struct Signer {
    key: EncodingKey,
    pub public: Value,
}

impl Signer {
    pub fn new(kid: &str) -> Self {
        let pair = Ca::generate("signer", jiff::Timestamp::now()).unwrap().to_pem();
        let bytes = |pem: &str| {
            let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
            STANDARD.decode(lines).unwrap()
        };
        let der = bytes(&pair.cert);
        // The public key of a P-256 certificate: a bit string with an uncompressed point.
        let at = der.windows(4).position(|part| part == [0x03, 0x42, 0x00, 0x04]).unwrap() + 4;
        let text = |from: usize| URL_SAFE_NO_PAD.encode(&der[from..from + 32]);
        let public = json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid, "x": text(at), "y": text(at + 32)});
        Self { key: EncodingKey::from_ec_der(&bytes(&pair.key)), public }
    }

    pub fn token(&self, claims: &Value) -> String {
        let header =
            Header { kid: self.public["kid"].as_str().map(ToOwned::to_owned), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }
}
