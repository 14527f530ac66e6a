//! What names, label keys and label values may look like, in the wording Kubernetes users know.
//!
//! Every check returns all complaints; an empty list means the text is fine.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

const SUFFIX_LEN: usize = 5;
const GENERATED_BASE_MAX: usize = LABEL_MAX - SUFFIX_LEN;
/// No vowels and no look-alikes, so that a suffix neither spells a word nor is misread.
const SUFFIX_CHARS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Checks an RFC 1123 label, such as a namespace name.
pub fn is_dns1123_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, LABEL_MAX);
    if !label(text) {
        faults.push(if subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            explain(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                 and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    faults
}

/// Checks an RFC 1123 subdomain, the rule for most object names.
pub fn is_dns1123_subdomain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, SUBDOMAIN_MAX);
    if !subdomain(text) {
        faults.push(explain(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    faults
}

/// Checks a subdomain that begins with `*.`, as in an Ingress host.
pub fn is_wildcard_subdomain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, SUBDOMAIN_MAX);
    if !text.strip_prefix("*.").is_some_and(subdomain) {
        faults.push(explain(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
             which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
             alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    faults
}

/// Checks an RFC 1035 label, the rule for Service names.
pub fn is_dns1035_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, LABEL_MAX);
    if !label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        faults.push(explain(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// Checks a qualified name such as a label key: an optional DNS prefix, `/` and a name.
pub fn is_qualified_name(text: &str) -> Vec<String> {
    let wording = || {
        explain(
            "must consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            QUALIFIED,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut faults = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                wording()
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(is_dns1123_subdomain(prefix).iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else {
        faults.extend(too_long(name, LABEL_MAX).iter().map(|fault| format!("name part {fault}")));
    }
    if !qualified(name) {
        faults.push(format!("name part {}", wording()));
    }
    faults
}

/// Checks a label value; empty is fine.
pub fn is_label_value(text: &str) -> Vec<String> {
    let mut faults = too_long(text, LABEL_MAX);
    if !text.is_empty() && !qualified(text) {
        faults.push(explain(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// Checks a name that only has to be usable as one segment of a URL path, as in RBAC.
pub fn is_path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    is_path_segment_prefix(text)
}

/// Like [`is_path_segment`] for a `generateName`, to which more will be added.
pub fn is_path_segment_prefix(text: &str) -> Vec<String> {
    ['/', '%'].into_iter().filter(|bad| text.contains(*bad)).map(|bad| format!("may not contain '{bad}'")).collect()
}

/// Checks a key of a ConfigMap or Secret.
pub fn is_config_key(text: &str) -> Vec<String> {
    let mut faults = too_long(text, SUBDOMAIN_MAX);
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(fine) {
        faults.push(explain(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => faults.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// Checks the name of a port.
pub fn is_port_name(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 15);
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(fine) {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// Makes a `generateName` checkable as a name: a trailing dash is fine there, since more follows.
pub fn without_trailing_dash(base: &str) -> String {
    match base.strip_suffix('-') {
        Some(stem) if stem.is_ascii() && !stem.is_empty() => format!("{}a", &stem[..stem.len() - 1]),
        _ => base.to_owned(),
    }
}

/// Makes a name out of a `generateName`: the base, cut if need be, and five random characters.
pub fn generate(base: &str, random: &mut dyn FnMut() -> u32) -> String {
    let mut end = base.len().min(GENERATED_BASE_MAX);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    for _ in 0..SUFFIX_LEN {
        name.push(char::from(SUFFIX_CHARS[random() as usize % SUFFIX_CHARS.len()]));
    }
    name
}

fn label(text: &str) -> bool {
    let alnum = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(text, alnum, |byte| alnum(byte) || byte == b'-')
}

fn subdomain(text: &str) -> bool {
    text.split('.').all(label)
}

fn qualified(text: &str) -> bool {
    let alnum = |byte: u8| byte.is_ascii_alphanumeric();
    framed(text, alnum, |byte| alnum(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

/// Not empty, with `edge` characters at both ends and `inner` ones in between.
fn framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => edge(first) && edge(last) && bytes.iter().all(|&byte| inner(byte)),
        _ => false,
    }
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} bytes")] } else { Vec::new() }
}

fn explain(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn subdomains_are_lower_case_dotted_labels() {
        for good in ["a", "a.b", "1", "a-b.c0", "example.com"] {
            assert_eq!(is_dns1123_subdomain(good), Vec::<String>::new(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "ä", "a b"] {
            assert_eq!(is_dns1123_subdomain(bad).len(), 1, "{bad}");
        }
        assert_eq!(is_dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 bytes"]);
        assert_eq!(
            is_dns1123_subdomain("A"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
    }

    #[test]
    fn labels_have_no_dots_and_services_no_leading_digit() {
        assert_eq!(is_dns1123_label("a.b"), ["must not contain dots"]);
        assert!(is_dns1123_label("1a").is_empty());
        assert!(!is_dns1035_label("1a").is_empty());
        assert!(is_dns1035_label("a1").is_empty());
        assert!(is_wildcard_subdomain("*.a.b").is_empty());
        assert!(!is_wildcard_subdomain("a.b").is_empty());
    }

    #[test]
    fn label_keys_and_values_are_checked_part_by_part() {
        for good in ["a", "A_b.c", "example.com/Name", "kubernetes.io/os"] {
            assert_eq!(is_qualified_name(good), Vec::<String>::new(), "{good}");
        }
        assert_eq!(is_qualified_name("/x"), ["prefix part must be non-empty"]);
        assert_eq!(is_qualified_name("a/").len(), 2);
        assert!(is_qualified_name("a/b/c")[0].starts_with("a valid label key must consist"));
        assert!(is_qualified_name("UP/x")[0].starts_with("prefix part a lowercase RFC 1123"));
        assert!(is_qualified_name(&"a".repeat(64))[0].starts_with("name part must be no more than 63"));
        assert!(is_label_value("").is_empty());
        assert!(is_label_value("a.B_c-1").is_empty());
        assert!(is_label_value("-")[0].contains("(e.g. 'MyValue',  or 'my_value',  or '12345', regex used"));
    }

    #[test]
    fn path_segments_ports_and_config_keys_follow_their_own_rules() {
        assert!(is_path_segment("system:node:x").is_empty());
        assert_eq!(is_path_segment(".."), ["may not be '..'"]);
        assert_eq!(is_path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert!(is_config_key("KEY_a.b-c").is_empty());
        assert_eq!(is_config_key("..a"), ["must not start with '..'"]);
        assert!(is_port_name("http-1").is_empty());
        assert_eq!(is_port_name("80"), ["must contain at least one letter (a-z)"]);
    }

    #[test]
    fn a_generated_name_keeps_the_base_and_fits_a_label() {
        let mut count = 0;
        let mut random = || {
            count += 1;
            count
        };
        assert_eq!(generate("web-", &mut random), "web-cdfgh");
        assert_eq!(generate(&"a".repeat(100), &mut random).len(), 63);
        assert_eq!(without_trailing_dash("web-"), "wea");
    }

    proptest! {
        #[test]
        fn a_name_made_from_a_valid_base_is_valid(base in "[a-z]([a-z0-9-]{0,80}[a-z0-9])?", seed in any::<u32>()) {
            let mut state = seed;
            let name = generate(&base, &mut || { state = state.wrapping_mul(1_664_525).wrapping_add(1); state });
            prop_assert!(is_dns1123_label(&name).is_empty());
        }

        #[test]
        fn no_text_makes_a_check_fail_hard(text in ".*") {
            let _ = is_qualified_name(&text);
            let _ = is_label_value(&text);
            let _ = without_trailing_dash(&text);
            let _ = generate(&text, &mut || 7);
        }
    }
}
