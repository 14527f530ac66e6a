//! Comparing and making secrets.

use crate::PkiError;

/// Compares secrets in a time that does not depend on where they differ.
pub fn equal(left: &[u8], right: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(left, right).is_ok()
}

/// Random lower-case letters and digits.
pub fn random_text(len: usize) -> Result<String, PkiError> {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // The largest multiple of the alphabet's size; bytes above would favour some letters.
    const FAIR: u8 = 252;
    let mut text = String::with_capacity(len);
    let mut bytes = [0u8; 64];
    while text.len() < len {
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| PkiError::Key("no randomness".to_owned()))?;
        let letters =
            bytes.iter().filter(|byte| **byte < FAIR).map(|byte| char::from(ALPHABET[usize::from(byte % 36)]));
        text.extend(letters.take(len - text.len()));
    }
    Ok(text)
}
