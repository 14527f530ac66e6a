//! Header blocks: names and values, compressed with a dictionary known to both sides.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::StreamError;

/// Names and values of a stream.
pub(crate) type Headers = Vec<(String, String)>;

/// A block may not unpack to more than this: compression must not multiply memory.
const MAX_BLOCK: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;

/// Words of the dictionary, each written after its length.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// The rest of the dictionary, without lengths.
const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized\
403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,\
text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

fn dictionary() -> Vec<u8> {
    let mut out = Vec::with_capacity(1423);
    for word in WORDS {
        out.extend_from_slice(&(word.len() as u32).to_be_bytes());
        out.extend_from_slice(word.as_bytes());
    }
    out.extend_from_slice(TAIL.as_bytes());
    out
}

/// Unpacks the header blocks of one direction; all blocks share one compression state.
pub(crate) struct Unpacker {
    inflate: Decompress,
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self { inflate: Decompress::new(true) }
    }

    /// Unpacks one block.
    pub(crate) fn unpack(&mut self, block: &[u8]) -> Result<Headers, StreamError> {
        let mut out = Vec::with_capacity(1024);
        let mut rest = block;
        loop {
            if out.len() == out.capacity() {
                if out.len() >= MAX_BLOCK {
                    return Err(StreamError::protocol("header block is too large"));
                }
                out.reserve(out.len().min(MAX_BLOCK - out.len()));
            }
            let (read, written) = (self.inflate.total_in(), out.len());
            let result = self.inflate.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            rest = rest.get((self.inflate.total_in() - read) as usize..).unwrap_or_default();
            match result {
                Ok(Status::StreamEnd) => return Err(StreamError::protocol("header compression ended")),
                // Nothing left to read and nothing more came out: the block is complete.
                Ok(_) if rest.is_empty() && out.len() < out.capacity() => break,
                Ok(_) if rest.len() < block.len() || out.len() > written => {}
                Ok(_) => return Err(StreamError::protocol("header compression is stuck")),
                Err(error) if error.needs_dictionary().is_some() => {
                    let set = self.inflate.set_dictionary(&dictionary());
                    set.map_err(|_| StreamError::protocol("header compression uses another dictionary"))?;
                }
                Err(_) => return Err(StreamError::protocol("header compression is broken")),
            }
        }
        parse(&out)
    }
}

/// Packs the header blocks of one direction.
pub(crate) struct Packer {
    deflate: Compress,
}

impl Packer {
    pub(crate) fn new() -> Self {
        let mut deflate = Compress::new(Compression::default(), true);
        // Setting a dictionary fails only after compression began.
        let _ = deflate.set_dictionary(&dictionary());
        Self { deflate }
    }

    /// Packs one block.
    pub(crate) fn pack(&mut self, headers: &Headers) -> Result<Vec<u8>, StreamError> {
        let mut plain = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend_from_slice(&(text.len() as u32).to_be_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
        let mut out = Vec::with_capacity(plain.len() + 128);
        let mut rest = plain.as_slice();
        loop {
            let before = self.deflate.total_in();
            self.deflate
                .compress_vec(rest, &mut out, FlushCompress::Sync)
                .map_err(|_| StreamError::protocol("cannot compress headers"))?;
            rest = &rest[(self.deflate.total_in() - before) as usize..];
            // Room left over means that the flush is complete.
            if rest.is_empty() && out.len() < out.capacity() {
                return Ok(out);
            }
            out.reserve(out.capacity());
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Headers, StreamError> {
    let short = || StreamError::protocol("header block is cut short");
    let mut rest = bytes;
    let number = |rest: &mut &[u8]| -> Result<usize, StreamError> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        *rest = tail;
        Ok(u32::from_be_bytes(*head) as usize)
    };
    let count = number(&mut rest)?;
    if count > MAX_HEADERS {
        return Err(StreamError::protocol("too many headers"));
    }
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut text = || -> Result<String, StreamError> {
            let len = number(&mut rest)?;
            let (head, tail) = rest.split_at_checked(len).ok_or_else(short)?;
            rest = tail;
            String::from_utf8(head.to_vec()).map_err(|_| StreamError::protocol("header is not text"))
        };
        let (name, value) = (text()?.to_ascii_lowercase(), text()?);
        headers.push((name, value));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_dictionary_is_the_one_of_the_protocol() {
        let (mut a, mut b) = (1u32, 0u32);
        for byte in dictionary() {
            a = (a + u32::from(byte)) % 65521;
            b = (b + a) % 65521;
        }
        assert_eq!((dictionary().len(), b << 16 | a), (1423, 0xe3c6_a7c2));
    }

    #[test]
    fn a_block_that_unpacks_to_too_much_is_refused() {
        let mut packer = Packer::new();
        let block = packer.pack(&vec![("a".to_owned(), "x".repeat(10 * MAX_BLOCK))]).unwrap();
        assert!(block.len() < MAX_BLOCK / 10);
        assert!(Unpacker::new().unpack(&block).is_err());
    }

    proptest! {
        #[test]
        fn blocks_read_back_one_after_another(blocks in prop::collection::vec(prop::collection::vec(("[a-z-]{1,20}", ".{0,300}"), 0..10), 1..6)) {
            let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
            for block in blocks {
                let packed = packer.pack(&block).unwrap();
                prop_assert_eq!(unpacker.unpack(&packed).unwrap(), block);
            }
        }

        #[test]
        fn no_bytes_make_unpacking_fail_hard(bytes in prop::collection::vec(any::<u8>(), 0..300), keep in 0usize..40) {
            let _ = Unpacker::new().unpack(&bytes);
            let _ = parse(&bytes);
            let mut block = Packer::new().pack(&vec![("a".to_owned(), "b".to_owned())]).unwrap();
            block.truncate(keep);
            block.extend(bytes);
            let _ = Unpacker::new().unpack(&block);
        }
    }
}
