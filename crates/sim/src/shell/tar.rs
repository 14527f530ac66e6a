//! The tar format, as far as copying files in and out of containers needs it.

use bytes::Bytes;

const BLOCK: usize = 512;

/// A member of an archive: path, and content unless it is a directory.
pub type Member = (String, Option<Bytes>);

/// Writes an archive.
pub fn write(members: &[Member]) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, content) in members {
        let path = path.trim_start_matches('/');
        let name = if content.is_none() { format!("{path}/") } else { path.to_owned() };
        if name.len() > 100 {
            // Long names go before the member, in one of their own.
            let mut long = name.clone().into_bytes();
            long.push(0);
            header(&mut out, "././@LongLink", long.len(), b'L');
            pad(&mut out, &long);
        }
        let content = content.clone().unwrap_or_default();
        header(&mut out, &name, content.len(), if name.ends_with('/') { b'5' } else { b'0' });
        pad(&mut out, &content);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

fn pad(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

fn header(out: &mut Vec<u8>, name: &str, size: usize, kind: u8) {
    let mut block = [0u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, if kind == b'5' { b"0000755\0" } else { b"0000644\0" });
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&block);
}

/// Reads an archive; ends at the first thing it does not understand.
pub fn read(bytes: &[u8]) -> Vec<Member> {
    let mut members = Vec::new();
    let mut long: Option<String> = None;
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK) {
        if block.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = octal(&block[124..136]);
        let content = bytes.get(at + BLOCK..at + BLOCK + size).unwrap_or_default();
        let prefix = text(&block[345..500]);
        let short = if prefix.is_empty() || !block[257..].starts_with(b"ustar\0") {
            text(&block[..100])
        } else {
            format!("{prefix}/{}", text(&block[..100]))
        };
        match block[156] {
            b'L' => long = Some(text(content)),
            b'x' | b'g' => long = pax_path(content).or(long),
            b'5' => members.push((long.take().unwrap_or(short), None)),
            0 | b'0' => members.push((long.take().unwrap_or(short), Some(Bytes::copy_from_slice(content)))),
            _ => drop(long.take()),
        }
        at += BLOCK + size.next_multiple_of(BLOCK);
    }
    members
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> usize {
    usize::from_str_radix(text(bytes).trim(), 8).unwrap_or(0)
}

/// The path among the extended attributes, `LENGTH path=VALUE` in lines.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|line| line.split_once(" path=").map(|(_, path)| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_as_it_was_written() {
        let long = "d/".repeat(80) + "file";
        let members = vec![
            ("dir".to_owned(), None),
            ("dir/a".to_owned(), Some(Bytes::from_static(b"hello"))),
            ("empty".to_owned(), Some(Bytes::new())),
            (long.clone(), Some(Bytes::from(vec![7; 1000]))),
        ];
        let mut expected = members.clone();
        expected[0].0 = "dir/".into();
        assert_eq!(read(&write(&members)), expected);
        assert_eq!(read(b"nonsense"), []);
    }
}
