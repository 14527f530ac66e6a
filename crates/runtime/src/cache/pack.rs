//! Objects at rest, packed: most of one object is like the others of its kind, so a few of them make a dictionary
//! in which the rest are written.

use std::sync::Arc;

use atoll_meta::Object;
use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Item;

/// How many objects make a dictionary, and how long it gets at most.
const SAMPLES: usize = 4;
const LONGEST: usize = 16 * 1024;

/// A packed object.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    length: u32,
    dictionary: Arc<[u8]>,
}

/// What objects are packed with.
pub(super) struct Packer {
    dictionary: Arc<[u8]>,
    deflate: Compress,
}

/// The dictionary for these objects: the known one, unless one made of some of them serves another of them much better.
pub(super) fn dictionary(known: Arc<[u8]>, items: &[Item]) -> Arc<[u8]> {
    let (Some(last), fresh) = (items.last(), made_of(items)) else { return known };
    let size =
        |words: &Arc<[u8]>| Packer::new(words.clone()).pack(last).map_or(usize::MAX, |packed| packed.bytes.len());
    let better = || items.len() > 2 * SAMPLES && size(&fresh).saturating_mul(4) < size(&known).saturating_mul(3);
    if known.is_empty() || better() { fresh } else { known }
}

/// A dictionary made of some of these objects.
fn made_of(items: &[Item]) -> Arc<[u8]> {
    let mut words = Vec::new();
    for item in items.iter().step_by((items.len() / SAMPLES).max(1)).take(SAMPLES) {
        words.extend_from_slice(&item.object.body);
    }
    words.truncate(LONGEST);
    words.into()
}

impl Packer {
    pub(super) fn new(dictionary: Arc<[u8]>) -> Self {
        Self { dictionary, deflate: Compress::new(Compression::default(), false) }
    }

    /// Packs an object; `None` when that saves nothing.
    pub(super) fn pack(&mut self, item: &Item) -> Option<Packed> {
        let (revision, body) = (item.revision.as_bytes(), &item.object.body[..]);
        let text = [revision, b"\n", body].concat();
        self.deflate.reset();
        self.deflate.set_dictionary(&self.dictionary).ok()?;
        let mut out = Vec::with_capacity(text.len());
        let done = self.deflate.compress_vec(&text, &mut out, FlushCompress::Finish).ok()?;
        let length = u32::try_from(text.len()).ok()?;
        (done == Status::StreamEnd).then(|| Packed {
            bytes: out.into_boxed_slice(),
            length,
            dictionary: self.dictionary.clone(),
        })
    }
}

impl Packed {
    /// The object as it was.
    pub(super) fn item(&self) -> Item {
        self.open().expect("what was packed here can be unpacked")
    }

    fn open(&self) -> Option<Item> {
        let mut inflate = Decompress::new(false);
        inflate.set_dictionary(&self.dictionary).ok()?;
        let mut text = Vec::with_capacity(self.length as usize);
        inflate.decompress_vec(&self.bytes, &mut text, FlushDecompress::Finish).ok()?;
        let mut text = Bytes::from(text);
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let revision = std::str::from_utf8(&text[..end]).ok()?.into();
        let body = text.split_off(end + 1);
        Some(Item { object: Arc::new(Object::decode(body).ok()?), revision })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}
