//! Signatures by which a joiner that knows a bootstrap token trusts what it reads.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

/// A JWS (HS256) of a text with its payload left out: `header..signature`. `id` and `secret` are the
/// halves of a bootstrap token.
pub fn detached_signature(id: &str, secret: &str, text: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": id}).to_string());
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = hmac::sign(&key, format!("{header}.{}", URL_SAFE_NO_PAD.encode(text)).as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_leaves_out_its_text_but_covers_it() {
        let (secret, text) =
            ("my voice is my passport", "Hello from the other side. I must have called a thousand times.");
        let signature = detached_signature("joshua", secret, text);
        let expected = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..Wvm4lABG2MTCQNvjZK5AJ7th6Qm1ywTmBDAVJNF7IHM";
        // Computed with another implementation.
        assert_eq!(signature, expected);
        assert_ne!(signature, detached_signature("joshua", "another", text));
        assert_ne!(signature, detached_signature("joshua", secret, "Hello!"));
    }
}
