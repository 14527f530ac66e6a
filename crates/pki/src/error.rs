//! What can go wrong with keys, certificates and tokens.

/// Why something could not be issued, read or trusted.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The text is not the PEM, DER or YAML it should be.
    #[error("malformed {0}")]
    Malformed(String),
    /// A key is unusable or does not belong to its certificate.
    #[error("unusable key: {0}")]
    Key(String),
    /// A certificate is not trusted: unknown issuer, expired, or for another use.
    #[error("certificate not trusted: {0}")]
    Untrusted(String),
    /// A request breaks the rules of its signer.
    #[error("{0}")]
    Refused(String),
    /// A token is not ours, was changed or is over.
    #[error("{0}")]
    Token(String),
    /// TLS cannot be set up like this.
    #[error("tls: {0}")]
    Tls(#[from] rustls::Error),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl PkiError {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }

    pub(crate) fn file(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }
}
