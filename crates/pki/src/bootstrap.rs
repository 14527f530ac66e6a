//! Bootstrap tokens: `abcdef.0123456789abcdef`.

use std::fmt;

use crate::{PkiError, secret};

const ID_LEN: usize = 6;
const SECRET_LEN: usize = 16;

/// A short-lived token with which something new joins.
#[derive(Clone)]
pub struct BootstrapToken {
    /// Public half; names the Secret `bootstrap-token-<id>`.
    pub id: String,
    /// Secret half.
    pub secret: String,
}

impl BootstrapToken {
    /// Parses a token; `None` if the text is not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let fine = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        (fine(id, ID_LEN) && fine(secret, SECRET_LEN)).then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// Makes a new token.
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self { id: secret::random_text(ID_LEN)?, secret: secret::random_text(SECRET_LEN)? })
    }

    /// Whether the secret half is this one.
    pub fn accepts(&self, secret: &[u8]) -> bool {
        secret::equal(self.secret.as_bytes(), secret)
    }

    /// The whole token; a method so that no log prints it by accident.
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BootstrapToken({}.…)", self.id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_six_and_sixteen_letters() {
        let token = BootstrapToken::parse("abcdef.0123456789abcdef").unwrap();
        assert!(token.accepts(b"0123456789abcdef"));
        assert!(!token.accepts(b"0123456789abcdeg"));
        assert!(!format!("{token:?}").contains("0123456789"));
        for bad in ["", "abcdef", "abcde.0123456789abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef"] {
            assert!(BootstrapToken::parse(bad).is_none(), "{bad}");
        }
        let fresh = BootstrapToken::generate().unwrap();
        assert!(BootstrapToken::parse(&fresh.expose()).is_some());
    }
}
