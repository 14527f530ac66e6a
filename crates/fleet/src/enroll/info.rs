//! The `cluster-info` that newcomers read before they trust anybody: whether their token signed it.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Start of the keys under which signatures stand in the ConfigMap.
pub const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";
/// Key of the kubeconfig in the ConfigMap.
pub const KUBECONFIG: &str = "kubeconfig";

/// Whether a JWS without its payload was made with a token over this text.
pub fn is_signed(signature: &str, text: &str, id: &str, secret: &str) -> bool {
    verify(signature, text, id, secret).unwrap_or(false)
}

fn verify(signature: &str, text: &str, id: &str, secret: &str) -> Option<bool> {
    let (header, tag) = signature.split_once("..")?;
    let known: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let input = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let fits = hmac::verify(&key, input.as_bytes(), &URL_SAFE_NO_PAD.decode(tag).ok()?).is_ok();
    Some(fits && known["alg"] == "HS256" && known["kid"] == id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_holds_for_its_text_and_token_only() {
        let header = URL_SAFE_NO_PAD.encode(json!({"kid": "abcdef", "alg": "HS256"}).to_string());
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef");
        let tag = hmac::sign(&key, format!("{header}.{}", URL_SAFE_NO_PAD.encode("text")).as_bytes());
        let made = format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag));
        assert!(is_signed(&made, "text", "abcdef", "0123456789abcdef"));
        assert!(!is_signed(&made, "other", "abcdef", "0123456789abcdef"));
        assert!(!is_signed(&made, "text", "abcdef", "0123456789abcdeX"));
        assert!(!is_signed(&made, "text", "fedcba", "0123456789abcdef"));
        assert!(!is_signed("nonsense", "text", "abcdef", "0123456789abcdef"));
    }
}
