//! The protobuf wire format: varints, tags, length-delimited values.

use super::ProtoError;

/// How a value is laid out.
pub(crate) const VARINT: u8 = 0;
/// Eight bytes.
pub(crate) const FIXED64: u8 = 1;
/// A length and that many bytes.
pub(crate) const LENGTH: u8 = 2;
/// Four bytes.
pub(crate) const FIXED32: u8 = 5;

/// One value as it stands on the wire.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> Raw<'a> {
    /// The bytes of a length-delimited value.
    pub(crate) fn bytes(self) -> Result<&'a [u8], ProtoError> {
        match self {
            Raw::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtoError::WireType),
        }
    }

    /// The bytes as text.
    pub(crate) fn text(self) -> Result<&'a str, ProtoError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtoError::Utf8)
    }

    /// The number of a varint.
    pub(crate) fn varint(self) -> Result<u64, ProtoError> {
        match self {
            Raw::Varint(number) => Ok(number),
            _ => Err(ProtoError::WireType),
        }
    }
}

/// Reads the fields of one message.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next varint.
    pub(crate) fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0u64;
        for index in 0..10 {
            let (&byte, rest) = self.rest.split_first().ok_or(ProtoError::Truncated)?;
            self.rest = rest;
            // The tenth byte has room for one bit only.
            if index == 9 && byte > 1 {
                return Err(ProtoError::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoError::Varint)
    }

    /// The next `N` bytes as an array.
    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ProtoError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(ProtoError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next field: its number and value; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, ProtoError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0).ok_or(ProtoError::Tag)?;
        let value = match (tag & 7) as u8 {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => Raw::Fixed64(u64::from_le_bytes(self.fixed()?)),
            LENGTH => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtoError::Truncated)?;
                let (head, rest) = self.rest.split_at_checked(length).ok_or(ProtoError::Truncated)?;
                self.rest = rest;
                Raw::Bytes(head)
            }
            FIXED32 => self.fixed::<4>().map(|_| Raw::Fixed32)?,
            // Groups are not used by any Kubernetes type.
            _ => return Err(ProtoError::WireType),
        };
        Ok(Some((number, value)))
    }
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a tag.
pub(crate) fn put_tag(out: &mut Vec<u8>, number: u32, layout: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(layout));
}

/// Appends a field with a varint.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, VARINT);
    put_varint(out, value);
}

/// Appends a field with bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_tag(out, number, LENGTH);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a length-delimited field whose content `fill` writes.
///
/// The content is written in place and its length slipped in before it: messages nest only a
/// few levels, so moving the bytes is cheaper than measuring them first.
pub(crate) fn put_nested<E>(
    out: &mut Vec<u8>,
    number: u32,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(out, number, LENGTH);
    let start = out.len();
    fill(out)?;
    let length = out.len() - start;
    let mut prefix = Vec::with_capacity(5);
    put_varint(&mut prefix, length as u64);
    out.splice(start..start, prefix);
    Ok(())
}
