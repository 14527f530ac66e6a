//! Changes parts of image names.

use atoll_api::policy::{ImageComponent, ImageOverrider, OverriderOperator};
use serde_json::Value;

/// An image name taken apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Image {
    registry: String,
    repository: String,
    tag: String,
    digest: String,
}

impl Image {
    fn parse(text: &str) -> Self {
        let (text, digest) = text.split_once('@').unwrap_or((text, ""));
        // A first part with a dot or a port, or `localhost`, is a host.
        let (registry, rest) = match text.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
            _ => ("", text),
        };
        let (repository, tag) = rest.split_once(':').unwrap_or((rest, ""));
        Self { registry: registry.into(), repository: repository.into(), tag: tag.into(), digest: digest.into() }
    }

    fn render(&self) -> String {
        let mut text = self.registry.clone();
        if !text.is_empty() {
            text.push('/');
        }
        text.push_str(&self.repository);
        if !self.tag.is_empty() {
            text.push(':');
            text.push_str(&self.tag);
        } else if !self.digest.is_empty() {
            text.push('@');
            text.push_str(&self.digest);
        }
        text
    }

    fn change(&mut self, overrider: &ImageOverrider) {
        let changed = |part: &str| match overrider.operator {
            OverriderOperator::Add => format!("{part}{}", overrider.value),
            OverriderOperator::Replace => overrider.value.clone(),
            OverriderOperator::Remove => String::new(),
        };
        match overrider.component {
            ImageComponent::Registry => self.registry = changed(&self.registry),
            ImageComponent::Repository => self.repository = changed(&self.repository),
            // Tag and digest are one part: whichever is there is changed.
            ImageComponent::Tag => {
                let old = if self.tag.is_empty() { &self.digest } else { &self.tag };
                self.set_tag(changed(old), overrider.operator == OverriderOperator::Remove);
            }
        }
    }

    /// What is neither tag nor digest changes nothing.
    fn set_tag(&mut self, value: String, empty: bool) {
        if empty || is_tag(&value) {
            (self.tag, self.digest) = (value, String::new());
        } else if is_digest(&value) {
            (self.tag, self.digest) = (String::new(), value);
        }
    }
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = |byte: u8| word(byte) || byte == b'.' || byte == b'-';
    text.len() <= 128 && text.bytes().next().is_some_and(word) && text.bytes().all(rest)
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, sum)| {
        algorithm.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte))
            && sum.len() >= 32
            && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn change(place: &mut Value, overrider: &ImageOverrider) {
    let mut image = Image::parse(place.as_str().unwrap_or_default());
    image.change(overrider);
    *place = image.render().into();
}

/// Changes the image a predicate points to or, without one, those of all containers.
pub fn apply(manifest: &mut Value, overrider: &ImageOverrider) -> Result<(), String> {
    if let Some(predicate) = &overrider.predicate {
        let place = manifest.pointer_mut(&predicate.path).filter(|value| value.is_string());
        let place = place.ok_or_else(|| format!("no image at {}", predicate.path))?;
        change(place, overrider);
        return Ok(());
    }
    for container in super::text::containers(manifest) {
        if container["image"].is_string() {
            change(&mut container["image"], overrider);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_taken_apart_and_put_together_again() {
        for text in [
            "nginx",
            "nginx:1",
            "library/nginx",
            "reg.io/a/b:1",
            "reg:5000/a",
            "localhost/a:x",
            "a@sha256:0f",
            "fictional.registry.us/a/b",
        ] {
            assert_eq!(Image::parse(text).render(), text);
        }
    }

    #[test]
    fn each_part_can_be_added_to_replaced_and_removed() {
        use ImageComponent::{Registry, Repository, Tag};
        use OverriderOperator::{Add, Remove, Replace};
        for (text, component, operator, value, expected) in [
            ("nginx:1", Registry, Add, "reg.io", "reg.io/nginx:1"),
            ("old.io/nginx", Registry, Replace, "new.io", "new.io/nginx"),
            ("old.io/nginx", Registry, Remove, "", "nginx"),
            ("a/b:1", Repository, Replace, "c", "c:1"),
            ("a/b:1", Repository, Add, "/c", "a/b/c:1"),
            ("nginx", Tag, Add, "1", "nginx:1"),
            ("nginx:1", Tag, Replace, "2", "nginx:2"),
            ("nginx:1", Tag, Remove, "", "nginx"),
            ("nginx@sha256:0f", Tag, Replace, "2", "nginx:2"),
            (
                "nginx:1",
                Tag,
                Replace,
                "sha256:0123456789abcdef0123456789abcdef",
                "nginx@sha256:0123456789abcdef0123456789abcdef",
            ),
            ("nginx:1", Tag, Replace, "sha256:0f", "nginx:1"),
            ("nginx:1", Tag, Replace, "", "nginx:1"),
            ("nginx:1", Tag, Add, ":2", "nginx:1"),
            ("nginx:1", Tag, Add, "-alpine", "nginx:1-alpine"),
            ("reg.io/a:1", Repository, Remove, "", "reg.io/:1"),
        ] {
            let mut place = Value::from(text);
            change(&mut place, &ImageOverrider { predicate: None, component, operator, value: value.into() });
            assert_eq!(place, expected, "{text} {component:?} {operator:?} {value}");
        }
    }
}
