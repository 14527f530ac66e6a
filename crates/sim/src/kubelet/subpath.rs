//! Parts of volumes that containers see instead of the whole.

use serde_json::Value;

/// Why a container cannot be made for a part of a volume it asks for, if so.
pub fn fault(container: &Value) -> Option<String> {
    let mut paths = container["volumeMounts"].as_array()?.iter().filter_map(|mount| mount["subPath"].as_str());
    paths.find_map(|path| {
        if path.starts_with('/') {
            Some(format!("error SubPath `{path}` must not be an absolute path"))
        } else if path.split('/').any(|part| part == "..") {
            Some(format!("unable to provision SubPath `{path}`: must not contain '..'"))
        } else {
            None
        }
    })
}

/// The part of a volume that a mount shows, as a path from the root of the volume.
pub fn of(mount: &Value) -> String {
    let parts = mount["subPath"].as_str().unwrap_or_default().split('/');
    let parts: Vec<&str> = parts.filter(|part| !matches!(*part, "" | "." | "..")).collect();
    if parts.is_empty() { String::new() } else { format!("/{}", parts.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_stay_inside_their_volume() {
        let table = [("a/b", None), ("/a", Some("absolute")), ("a/../b", Some("'..'")), ("", None), ("..a", None)];
        for (path, expected) in table {
            let fault = fault(&json!({"volumeMounts": [{"subPath": path}]}));
            assert_eq!(fault.is_some(), expected.is_some(), "{path}");
            assert!(fault.unwrap_or_default().contains(expected.unwrap_or_default()), "{path}");
        }
        assert_eq!(of(&json!({"subPath": "a//./b/"})), "/a/b");
        assert_eq!(of(&json!({})), "");
    }
}
