//! Continue tokens: where a list that came in pages goes on.

use atoll_meta::Status;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";

/// Where a paged list goes on.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    v: String,
    /// Revision of the list; -1 to go on with the newest state.
    pub rv: i64,
    /// Last key of the page before, without the resource prefix.
    pub start: String,
}

impl Cursor {
    /// Behind a key, at a revision.
    pub fn new(rv: i64, start: &str) -> Self {
        Self { v: VERSION.into(), rv, start: start.to_owned() }
    }

    /// The token callers send back.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a token; whoever made it up does not get out of the collection it asks for.
    pub fn decode(text: &str) -> Result<Self, Status> {
        let invalid =
            |why: String| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(error.to_string()))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if token.v != VERSION {
            return Err(invalid(format!("server does not recognize this encoded version {:?}", token.v)));
        }
        if token.rv == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()));
        }
        if token.start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)".into()));
        }
        if token.start.split('/').any(|part| part == ".." || part == ".") {
            return Err(invalid(format!("key not under requested prefix: {:?}", token.start)));
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_reads_back(rv in (-1..i64::MAX).prop_filter("none", |rv| *rv != 0), start in "[a-z0-9-]{1,9}(/[a-z0-9-]{1,9})?") {
            let cursor = Cursor::new(rv, &start);
            prop_assert_eq!(Cursor::decode(&cursor.encode()).unwrap(), cursor);
        }

        #[test]
        fn any_text_gives_an_answer(text in ".{0,200}") {
            if let Err(status) = Cursor::decode(&text) {
                prop_assert_eq!(status.code, 400);
            }
        }

        #[test]
        fn any_json_gives_an_answer(v in ".{0,20}", rv in any::<i64>(), start in "[./a-z]{0,20}") {
            let token = URL_SAFE_NO_PAD.encode(serde_json::json!({"v": v, "rv": rv, "start": start}).to_string());
            if let Ok(cursor) = Cursor::decode(&token) {
                prop_assert!(cursor.rv != 0 && !cursor.start.split('/').any(|part| part == ".."));
            }
        }

        #[test]
        fn a_damaged_token_gives_an_answer(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut text = Cursor::new(7, "namespace/name").encode().into_bytes();
            let place = at.index(text.len());
            text[place] = byte;
            text.truncate(cut.index(text.len()) + 1);
            let _ = Cursor::decode(&String::from_utf8_lossy(&text));
        }
    }
}
