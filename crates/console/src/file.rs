//! What the build script embedded.

use std::borrow::Cow;
use std::io::Read as _;

/// One file of the console. Only compressed forms are kept.
pub(crate) struct File {
    /// Path below `/console/`.
    pub name: &'static str,
    /// Changes with the contents.
    pub tag: &'static str,
    pub gzip: &'static [u8],
    pub brotli: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

impl File {
    /// The embedded file of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let place = FILES.binary_search_by(|file| file.name.cmp(name)).ok()?;
        FILES.get(place)
    }

    /// Whether the name contains a hash of the contents, so that it may be kept forever.
    pub fn is_immutable(&self) -> bool {
        self.name.starts_with("assets/")
    }

    /// The bytes in the best encoding of those accepted, and its name.
    pub fn encoded(&self, accepted: &str) -> (Cow<'static, [u8]>, Option<&'static str>) {
        match self.brotli {
            Some(brotli) if accepts(accepted, "br") => (Cow::Borrowed(brotli), Some("br")),
            _ if accepts(accepted, "gzip") => (Cow::Borrowed(self.gzip), Some("gzip")),
            _ => (Cow::Owned(self.plain()), None),
        }
    }

    fn plain(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The embedded bytes were made by the build, so they decompress.
        let _ = flate2::read::GzDecoder::new(self.gzip).read_to_end(&mut bytes);
        bytes
    }

    pub fn content_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "json" | "map" => "application/json",
            "woff2" => "font/woff2",
            "png" => "image/png",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}

/// Whether an `Accept-Encoding` header takes an encoding. A weight of zero is a refusal.
fn accepts(header: &str, encoding: &str) -> bool {
    header.split(',').any(|item| {
        let mut parts = item.split(';');
        let name = parts.next().unwrap_or("").trim();
        let refused = parts.any(|part| {
            part.trim()
                .strip_prefix("q=")
                .is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0))
        });
        name.eq_ignore_ascii_case(encoding) && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_taken_as_the_header_says() {
        for (header, encoding, wanted) in [
            ("gzip, deflate, br, zstd", "br", true),
            ("gzip", "br", false),
            ("br;q=0, gzip", "br", false),
            ("br;q=0.0", "br", false),
            ("GZIP;q=0.5", "gzip", true),
            ("", "gzip", false),
            ("x-gzip", "gzip", false),
        ] {
            assert_eq!(accepts(header, encoding), wanted, "{header} {encoding}");
        }
    }

    #[test]
    fn files_are_sorted_so_that_they_are_found() {
        assert!(FILES.is_sorted_by_key(|file| file.name));
        for file in FILES {
            assert_eq!(File::find(file.name).map(|found| found.tag), Some(file.tag));
            assert!(!file.plain().is_empty(), "{} does not decompress", file.name);
        }
    }
}
