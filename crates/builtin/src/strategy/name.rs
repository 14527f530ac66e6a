//! Syntax of names and other short texts, with the explanations users know.

use atoll_meta::name;

use super::NameRule;

pub(crate) use atoll_meta::name::{
    is_config_key as config_key, is_dns1035_label as label_1035, is_dns1123_label as label,
    is_dns1123_subdomain as subdomain, is_label_value as label_value, is_port_name as port_name,
    is_qualified_name as qualified, is_wildcard_subdomain as wildcard,
};

pub(crate) fn range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// An explanation with examples and the pattern a value must match.
pub(crate) fn pattern(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let shown: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", shown.join(" or "))
}

/// Checks a name; a prefix (generateName) may end in a dash.
pub(crate) fn check(rule: NameRule, value: &str, prefix: bool) -> Vec<String> {
    let masked;
    let shown = if prefix {
        masked = name::without_trailing_dash(value);
        masked.as_str()
    } else {
        value
    };
    match rule {
        NameRule::Subdomain => subdomain(shown),
        NameRule::Label => label(shown),
        NameRule::Label1035 => label_1035(shown),
        NameRule::PathSegment if prefix => name::is_path_segment_prefix(value),
        NameRule::PathSegment => name::is_path_segment(value),
    }
}

/// The name of an environment variable: printable ASCII but `=`.
pub(crate) fn env_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if value.bytes().any(|byte| !(0x20..0x7f).contains(&byte) || byte == b'=') {
        return vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ];
    }
    Vec::new()
}

/// A percentage such as `25%`.
pub(crate) fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of an HTTP header.
pub(crate) fn header(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    vec![pattern(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// A prefixed path such as `example.com/controller`.
pub(crate) fn domain_path(value: &str) -> Vec<String> {
    let Some((host, path)) = value.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty()) else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let mut found = subdomain(host);
    if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        found.push(pattern("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]));
    }
    found
}

/// An IP address; the old parser takes leading zeros, ours does not.
pub(crate) fn ip(value: &str) -> Vec<String> {
    if value.parse::<std::net::IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// What is said of a text that is no network.
pub(crate) const NOT_A_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// A network such as `10.0.0.0/8`; returns its address and prefix length.
pub(crate) fn cidr(value: &str) -> Option<(std::net::IpAddr, u8)> {
    let (address, bits) = value.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    let bits: u8 = bits.parse().ok()?;
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_rule() {
        let cases: &[(NameRule, &str, bool)] = &[
            (NameRule::Subdomain, "a.b-c.1", true),
            (NameRule::Subdomain, "A", false),
            (NameRule::Label, "a-1", true),
            (NameRule::Label, "a.b", false),
            (NameRule::Label1035, "1a", false),
            (NameRule::Label1035, "a1", true),
            (NameRule::PathSegment, "system:a b", true),
            (NameRule::PathSegment, "a/b", false),
            (NameRule::PathSegment, "..", false),
        ];
        for (rule, name, good) in cases {
            assert_eq!(check(*rule, name, false).is_empty(), *good, "{rule:?} {name}");
        }
        assert!(check(NameRule::Subdomain, "web-", true).is_empty());
        assert!(!check(NameRule::Subdomain, "web-", false).is_empty());
    }

    #[test]
    fn short_texts_are_judged() {
        assert!(percent("25%").is_empty());
        assert!(!percent("%").is_empty());
        assert!(env_name("a b").is_empty());
        assert!(!env_name("a=b").is_empty());
        assert!(domain_path("example.com/x").is_empty());
        assert!(!domain_path("example.com").is_empty());
        assert!(cidr("10.0.0.0/33").is_none());
        assert!(cidr("fd00::/64").is_some());
    }
}
