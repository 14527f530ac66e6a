//! Certificates that are replaced long before they end.

use jiff::Timestamp;

use crate::{PemPair, PkiError, Validity, needs_renewal, validity_of};

/// A certificate and how to get the next one. Time is passed in.
pub struct Renewing<F> {
    issue: F,
    pair: PemPair,
    validity: Validity,
}

impl<F: FnMut(Timestamp) -> Result<PemPair, PkiError>> Renewing<F> {
    /// Issues the first one.
    pub fn new(now: Timestamp, mut issue: F) -> Result<Self, PkiError> {
        let pair = issue(now)?;
        Ok(Self { validity: validity_of(&pair.cert)?, pair, issue })
    }

    /// The one in use.
    pub fn pair(&self) -> &PemPair {
        &self.pair
    }

    /// Issues the next one if it is time. When that fails the present one stays in use: ask again soon.
    pub fn renew(&mut self, now: Timestamp) -> Result<Option<&PemPair>, PkiError> {
        if !needs_renewal(self.validity.not_before, self.validity.not_after, now) {
            return Ok(None);
        }
        let pair = (self.issue)(now)?;
        self.validity = validity_of(&pair.cert)?;
        self.pair = pair;
        Ok(Some(&self.pair))
    }
}
