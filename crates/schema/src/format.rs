//! String formats that custom resources are checked against; all others mean nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;

/// A format that is checked.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid(Option<u8>),
    Isbn { short: bool, long: bool },
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// The checked format of that name; dashes do not count.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "" => return None,
            "date-time" | "datetime" => Self::DateTime,
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid(None),
            "uuid3" => Self::Uuid(Some(b'3')),
            "uuid4" => Self::Uuid(Some(b'4')),
            "uuid5" => Self::Uuid(Some(b'5')),
            "isbn" => Self::Isbn { short: true, long: true },
            "isbn10" => Self::Isbn { short: true, long: false },
            "isbn13" => Self::Isbn { short: false, long: true },
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "k8s-short-name" | "k8sshortname" => Self::ShortName,
            "k8s-long-name" | "k8slongname" => Self::LongName,
            other if other.contains('-') => return Self::of(&other.replace('-', "")),
            _ => return None,
        })
    }

    /// Whether the text is of this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::Uri => is_uri(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && is_ip(text),
            Self::Ipv6 => text.contains(':') && is_ip(text),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid(version) => is_uuid(text, version),
            Self::Isbn { short, long } => (short && is_isbn10(text)) || (long && is_isbn13(text)),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => is_ssn(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Self::RgbColor => is_rgb(text),
            Self::Byte => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
            Self::Password => true,
            Self::Date => is_date(text),
            Self::Duration => is_duration(text),
            Self::DateTime => is_date_time(text),
            Self::ShortName => atoll_meta::name::is_dns1123_label(text).is_empty(),
            Self::LongName => atoll_meta::name::is_dns1123_subdomain(text).is_empty(),
        }
    }
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    shaped && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let bytes = time.as_bytes();
    let two = |at: usize, most: u8| match bytes.get(at..at + 2) {
        Some([tens, ones]) if tens.is_ascii_digit() && ones.is_ascii_digit() => {
            (tens - b'0') * 10 + (ones - b'0') <= most
        }
        _ => false,
    };
    let shaped = two(0, 23) && bytes.get(2) == Some(&b':') && two(3, 59) && bytes.get(5) == Some(&b':') && two(6, 59);
    if !is_date(date) || !shaped {
        return false;
    }
    let mut rest = &bytes[8..];
    let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    // Any one character may stand before the fraction, but an offset is not one.
    if digits > 0 && !matches!(rest.first(), Some(b'+' | b'-')) {
        rest = &rest[1 + digits..];
    }
    match rest {
        [b'z' | b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

fn is_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    if atoll_meta::time::parse_duration(text).is_ok() {
        return true;
    }
    // Otherwise `<digits> <unit>` must occur somewhere; the long names may have any ending.
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit());
        let word = tail.trim_start();
        let end = word.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(word.len());
        let unit = word[..end].to_lowercase();
        let known = UNITS
            .iter()
            .any(|names| names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last)));
        if known {
            return true;
        }
        rest = &word[end..];
    }
    false
}

fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    let escapes = text
        .match_indices('%')
        .all(|(at, _)| text.as_bytes().get(at + 1..at + 3).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)));
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let absolute = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let rest = if absolute { &text[scheme.len() + 1..] } else { text };
    let host = rest.strip_prefix("//").map_or("", |rest| rest.split(['/', '?']).next().unwrap_or_default());
    escapes && (absolute || text.starts_with('/')) && !host.contains([' ', '<', '>', '"'])
}

fn is_email(text: &str) -> bool {
    let address = match (text.find('<'), text.strip_suffix('>')) {
        (Some(open), Some(inner)) => &inner[open + 1..],
        (None, None) => text.trim(),
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.split('.').all(|piece| {
                !piece.is_empty()
                    && piece.chars().all(|c| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
            })
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || atom(local)) && atom(domain)
}

/// Letters, digits and symbols; a dash only inside. A name without dots is held to be one word
/// that may have a dash behind its first character, as the original does.
fn is_hostname(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "$+<=>^`|~".contains(c) || (!c.is_ascii() && !c.is_whitespace());
    let first = |label: &str| label.chars().next().is_some_and(plain);
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63 || !first(label)) {
        return false;
    }
    let Some((head, last)) = text.rsplit_once('.') else {
        let mut rest = text.chars();
        rest.next();
        let rest = rest.as_str();
        return rest.strip_prefix('-').unwrap_or(rest).chars().all(plain);
    };
    let inner = |label: &str| label.chars().all(|c| plain(c) || c == '-') && !label.ends_with('-');
    last.chars().count() > 1 && !last.contains("--") && inner(last) && head.split('.').all(inner)
}

fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| -> Option<usize> {
        let mut count = 0;
        for group in text.split(separator) {
            if group.len() != width || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            count += width / 2;
        }
        Some(count)
    };
    [(':', 2), ('-', 2), ('.', 4)]
        .into_iter()
        .filter_map(|(separator, width)| groups(separator, width))
        .any(|octets| matches!(octets, 6 | 8 | 20))
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = Vec::with_capacity(32);
    for byte in text.bytes() {
        match byte {
            // Dashes are optional, but only between the groups.
            b'-' if matches!(digits.len(), 8 | 12 | 16 | 20) && !text.contains("--") => {}
            digit if digit.is_ascii_hexdigit() => digits.push(digit.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let versioned = version.is_none_or(|version| {
        digits.get(12) == Some(&version)
            && (version == b'3' || matches!(digits.get(16), Some(b'8' | b'9' | b'a' | b'b')))
    });
    digits.len() == 32 && versioned
}

fn plain_isbn(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = plain_isbn(text);
    let mut sum = 0;
    for (at, byte) in text.bytes().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            b'X' if at == 9 => 10,
            _ => return false,
        };
        sum += digit * (10 - at.min(9) as u32);
    }
    text.len() == 10 && sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let text = plain_isbn(text);
    let digits = text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit());
    let weigh = |(at, byte): (usize, u8)| u32::from(byte - b'0') * if at % 2 == 0 { 1 } else { 3 };
    digits && text.bytes().enumerate().map(weigh).sum::<u32>() % 10 == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let double = |(at, digit): (usize, &u32)| match at % 2 {
        0 => *digit,
        _ => digit * 2 / 10 + digit * 2 % 10,
    };
    (13..=16).contains(&digits.len()) && digits.iter().rev().enumerate().map(double).sum::<u32>() % 10 == 0
}

fn is_ssn(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let separators = |at: usize| text.as_bytes().get(at).is_some_and(|byte| matches!(byte, b'-' | b' '));
    let shaped = match text.len() {
        9 => true,
        10 => separators(3) || separators(5),
        11 => separators(3) && separators(6),
        _ => false,
    };
    shaped && digits.len() == 9 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_rgb(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    parts.len() == 3
        && parts.iter().all(|part| (part.len() == 1 || !part.starts_with(['0', '+'])) && part.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn formats_accept_and_reject() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "date-time",
                &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+01:00"],
                &["", "2014-12-15", "2014-13-15T19:30:20Z", "2014-12-15T24:30:20Z", "2014-12-15T19:30:20"],
            ),
            ("date", &["2006-01-02"], &["2006-1-2", "2006-02-30"]),
            ("duration", &["1h30m", "22 ns", "3 days", "2weeks", "500ms"], &["", "abc", "5 parsecs"]),
            ("uri", &["http://x/y", "/a/b", "mailto:x"], &["", "a/b", "http://a b/", "/%zz"]),
            ("email", &["a@b.c", "A B <a@b>"], &["a", "@b", "a@", "a b@c"]),
            (
                "hostname",
                &["a", "a-b", "a-b.example", "xn--a.example"],
                &["", "-a", "a..b", "a_b", "a.b", "2014-12-15"],
            ),
            ("ipv4", &["1.2.3.4"], &["1.2.3", "1.2.3.256", "::1", "01.2.3.4"]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::g"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/8"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-AB"], &["01:23", "01:23:45:67:89:zz"]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"],
            ),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112"]),
            ("ssn", &["111-22-3333", "111223333"], &["111-22-333"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ff"]),
            ("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2,256)", "1,2,3"]),
            ("byte", &["YWI="], &["", "YWI"]),
            ("password", &["", "x"], &[]),
            ("k8s-short-name", &["a-b"], &["A", "a.b", ""]),
            ("k8s-long-name", &["a-b.c"], &["A", "a_b"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
        ];
        for (name, good, bad) in cases {
            let format = Format::of(name).unwrap();
            for text in *good {
                assert!(format.accepts(text), "{name} should accept {text:?}");
            }
            for text in *bad {
                assert!(!format.accepts(text), "{name} should refuse {text:?}");
            }
        }
        assert_eq!(Format::of("int32"), None);
    }
}
