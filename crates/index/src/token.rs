//! Where a page ended: the sort key of its last item, bound to the question.

use atoll_meta::{Reason, Status};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::statement::Param;

/// The position behind the last item of a page. It tells nothing that the page did not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    #[serde(rename = "q")]
    pub query: u64,
    /// Key of the shelf: source, group, resource.
    #[serde(rename = "s")]
    pub shelf: (String, String, String),
    #[serde(rename = "n")]
    pub namespace: String,
    #[serde(rename = "o")]
    pub name: String,
    /// Values of the sort columns.
    #[serde(rename = "k", default)]
    pub keys: Vec<Param>,
}

impl Token {
    /// As text for the caller.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// From the caller, for the same question only.
    pub fn decode(text: &str, query: u64) -> Result<Self, Status> {
        let token: Option<Self> =
            URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let token = token.ok_or_else(|| Status::bad_request("continue key is not valid"))?;
        if token.query == query {
            return Ok(token);
        }
        Err(Status::new(400, Reason::BadRequest, "continue key belongs to another query"))
    }
}
