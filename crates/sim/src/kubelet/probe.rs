//! Readiness probes, as far as what they ask for can be known of a simulated container.

use serde_json::Value;

use super::program::{environment, words};
use crate::shell::{Ending, Files, Shell};

/// Well-known servers: a page each of them has, and the directory it is in.
const PAGES: [(&str, &str, &str); 3] = [
    ("httpd", "/usr/local/apache2/htdocs", "/index.html"),
    ("nginx", "/usr/share/nginx/html", "/index.html"),
    ("agnhost", "", "/localhost.crt"),
];

/// The directory from which an image serves pages, and one of them, if it is known.
pub fn page_of(image: &str) -> Option<(&'static str, &'static str)> {
    let name = image.rsplit('/').next().unwrap_or_default().split([':', '@']).next().unwrap_or_default();
    PAGES.iter().find(|(server, ..)| *server == name).map(|(_, root, page)| (*root, *page))
}

/// Whether the readiness probe of a container fails; `files` are there if somebody wrote some.
pub fn fails(pod: &Value, container: &Value, files: Option<&Files>) -> bool {
    let probe = &container["readinessProbe"];
    if let Some(path) = probe["httpGet"]["path"].as_str() {
        let known = page_of(container["image"].as_str().unwrap_or_default());
        let asked = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        return match (known, files) {
            (Some((root, page)), Some(files)) if page == asked => files.read(&format!("{root}{page}")).is_none(),
            // A server is there and answers, unless somebody took its page away.
            _ => false,
        };
    }
    let command: Vec<String> =
        probe["exec"]["command"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
    let Some(last) = command.last() else { return false };
    // What the container itself or an earlier one may have written is believed.
    let own = last.split_whitespace().last().unwrap_or_default().to_owned();
    let prefix = own.split('$').next().unwrap_or_default().to_owned();
    if !prefix.starts_with('/') || words(container).iter().any(|word| word.contains(&prefix)) {
        return false;
    }
    let mut files = files.cloned().unwrap_or_default();
    let variables = environment(pod, container);
    let ending = Shell::new(&variables, &mut files, jiff::Timestamp::UNIX_EPOCH).run(&command, Vec::new()).1;
    matches!(ending, Ending::Exit(_, code) if code != 0 && code != 127)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_without_its_page_is_not_ready() {
        let container = json!({"image": "registry.k8s.io/httpd:2.4", "readinessProbe": {"httpGet": {"path": "/index.html", "port": 80}}});
        assert!(!fails(&json!({}), &container, None));
        let mut files = Files::default();
        assert!(fails(&json!({}), &container, Some(&files)));
        files.write("/usr/local/apache2/htdocs/index.html", b"x", false);
        assert!(!fails(&json!({}), &container, Some(&files)));
        let other = json!({"image": "web", "readinessProbe": {"httpGet": {"path": "/", "port": 80}}});
        assert!(!fails(&json!({}), &other, Some(&Files::default())), "nothing is known of its pages");
    }

    #[test]
    fn commands_of_probes_look_at_files() {
        let with = |command: Value, own: Value| json!({"image": "web", "args": own, "readinessProbe": {"exec": {"command": command}}});
        let waits = with(json!(["test", "-f", "/data/go"]), json!([]));
        assert!(fails(&json!({}), &waits, None));
        let mut files = Files::default();
        files.write("/data/go", b"", false);
        assert!(!fails(&json!({}), &waits, Some(&files)));
        let table = [
            with(json!(["cat", "/tmp/healthy"]), json!(["sh", "-c", "touch /tmp/healthy; sleep 600"])),
            with(json!(["pg_isready"]), json!([])),
            with(json!(["sh", "-c", "cat /data/foo-$INDEX"]), json!(["touch /data/foo-$INDEX"])),
        ];
        for container in table {
            assert!(!fails(&json!({}), &container, None), "{container}");
        }
    }
}
