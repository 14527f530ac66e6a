//! Just enough DER to write a certificate.
//!
//! The certificate library at hand keeps one value per attribute of a name, yet a
//! person's groups are many organizations in one name; so names are written here.

use jiff::Timestamp;

pub(crate) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// One element: tag, length, content.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let len = content.len();
    if len < 0x80 {
        out.push(len as u8);
    } else {
        let bytes = len.to_be_bytes();
        let skip = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - skip) as u8);
        out.extend_from_slice(&bytes[skip..]);
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements.
pub(crate) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A set with one element.
pub(crate) fn set_of_one(part: Vec<u8>) -> Vec<u8> {
    element(SET, &part)
}

/// A non-negative number.
pub(crate) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let skip = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = &bytes[skip.min(bytes.len().saturating_sub(1))..];
    if digits.first().is_some_and(|first| first & 0x80 != 0) {
        return element(INTEGER, &[&[0], digits].concat());
    }
    element(INTEGER, digits)
}

/// An object identifier.
pub(crate) fn oid(arcs: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    let (head, rest) = arcs.split_at(arcs.len().min(2));
    let first = head.first().copied().unwrap_or_default() * 40 + head.get(1).copied().unwrap_or_default();
    for arc in std::iter::once(first).chain(rest.iter().copied()) {
        let mut groups = vec![(arc & 0x7f) as u8];
        let mut left = arc >> 7;
        while left > 0 {
            groups.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        out.extend(groups.iter().rev());
    }
    element(OID, &out)
}

/// A null.
pub(crate) fn null() -> Vec<u8> {
    element(NULL, &[])
}

/// Whole bytes as a bit string.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// Named bits, bit 0 first; trailing zero bits are cut as DER wants it.
pub(crate) fn named_bits(bits: u16) -> Vec<u8> {
    let bytes = bits.reverse_bits().to_be_bytes();
    let used = 16 - bits.leading_zeros();
    let len = used.div_ceil(8) as usize;
    let unused = (len * 8) as u32 - used;
    element(BIT_STRING, &[&[unused as u8], &bytes[..len]].concat())
}

/// Bytes.
pub(crate) fn octets(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, bytes)
}

/// Text.
pub(crate) fn text(text: &str) -> Vec<u8> {
    element(UTF8_STRING, text.as_bytes())
}

/// A boolean that is true; false is a default and never written.
pub(crate) fn truth() -> Vec<u8> {
    element(0x01, &[0xff])
}

/// A point in time, in the short form until 2049 as X.509 demands.
pub(crate) fn time(at: Timestamp) -> Vec<u8> {
    let long = at.strftime("%Y%m%d%H%M%SZ").to_string();
    if long.as_str() < "20500101000000Z" {
        element(UTC_TIME, &long.as_bytes()[2..])
    } else {
        element(GENERALIZED_TIME, long.as_bytes())
    }
}

/// A name of organizations and a common name.
pub(crate) fn name(organizations: &[String], common_name: &str) -> Vec<u8> {
    let attribute = |arc: u32, value: &str| set_of_one(sequence(&[oid(&[2, 5, 4, arc]), text(value)]));
    let mut parts: Vec<Vec<u8>> = organizations.iter().map(|organization| attribute(10, organization)).collect();
    parts.push(attribute(3, common_name));
    sequence(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_encoded_as_the_standard_says() {
        assert_eq!(oid(&[2, 5, 4, 3]), [6, 3, 0x55, 4, 3]);
        assert_eq!(oid(&[1, 2, 840, 10045, 4, 3, 2]), [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        assert_eq!(unsigned(&[0, 0, 0x80]), [2, 2, 0, 0x80]);
        assert_eq!(unsigned(&[0]), [2, 1, 0]);
        assert_eq!(element(4, &[7; 200])[..4], [4, 0x81, 200, 7]);
        assert_eq!(element(4, &[7; 300])[..4], [4, 0x82, 1, 44]);
        // digitalSignature (0) and keyEncipherment (2)
        assert_eq!(named_bits(0b101), [3, 2, 5, 0b1010_0000]);
        assert_eq!(named_bits(0), [3, 1, 0]);
    }
}
