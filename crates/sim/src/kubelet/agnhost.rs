//! The test image of Kubernetes, as far as its programs only talk.

use std::time::Duration;

use serde_json::Value;

use super::program::{Program, words};

/// What a container of the test image does; `None` for other images and for programs that do more.
pub fn program(pod: &Value, container: &Value, words: &[String]) -> Option<Program> {
    if !container["image"].as_str().unwrap_or_default().contains("agnhost") {
        return None;
    }
    let said = |lines: Vec<String>| lines.into_iter().map(|line| (Duration::ZERO, line)).collect();
    let Some(first) = words.iter().find(|word| !word.starts_with('/')) else {
        return Some(Program { lines: said(vec!["Paused".into()]), ..Program::default() });
    };
    match first.as_str() {
        "logs-generator" => Some(requests(words)),
        "entrypoint-tester" => {
            let own = if container["command"].is_array() { "" } else { "/agnhost " };
            let lines = said(vec![format!("[{own}{}]", words.join(" "))]);
            Some(Program { end: Some((Duration::ZERO, 0)), lines, ..Program::default() })
        }
        "etc-hosts" => Some(Program { end: Some((Duration::ZERO, 0)), lines: said(hosts(pod)), ..Program::default() }),
        _ => None,
    }
}

/// Which program of the test image a container runs; empty if it only waits. `None` for other images.
pub fn subcommand(container: &Value) -> Option<String> {
    if !container["image"].as_str().unwrap_or_default().contains("agnhost") {
        return None;
    }
    let words = words(container);
    Some(words.into_iter().find(|word| !word.starts_with('/')).unwrap_or_default())
}

/// Ports on which a container of the test image listens, with their protocols; `None` if they are not known.
pub fn ports(container: &Value) -> Option<Vec<(u16, &'static str)>> {
    let words = words(container);
    let number = |name: &str, usual: i32| {
        let joined = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let next = || words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).map(String::as_str);
        joined.or_else(next).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let all = match subcommand(container)?.as_str() {
        "netexec" => vec![(number("--http-port", 8080), "TCP"), (number("--udp-port", 8081), "UDP")],
        "serve-hostname" => vec![(number("--port", 9376), "TCP")],
        "test-webserver" => vec![(number("--port", 80), "TCP")],
        "liveness" => vec![(8080, "TCP")],
        "grpc-health-checking" => vec![(number("--port", 5000), "TCP"), (number("--http-port", 8080), "TCP")],
        "guestbook" => vec![(number("--http-port", 80), "TCP")],
        "" | "pause" => Vec::new(),
        _ => return None,
    };
    // A port that is switched off is negative.
    Some(all.into_iter().filter_map(|(port, protocol)| Some((u16::try_from(port).ok()?, protocol))).collect())
}

/// Lines of a server that is asked again and again.
fn requests(words: &[String]) -> Program {
    let option = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let total: u32 = option("--log-lines-total").and_then(|text| text.parse().ok()).unwrap_or(1).clamp(1, 1000);
    let length = option("--run-duration").and_then(|text| atoll_meta::time::parse_duration(text).ok());
    let length = length.and_then(|time| Duration::try_from(time).ok()).unwrap_or(Duration::from_secs(1));
    let line = |number: u32| {
        let pick = |words: [&'static str; 3]| words[number as usize % 3];
        let (method, namespace) = (pick(["GET", "PUT", "POST"]), pick(["kube-system", "default", "ns"]));
        let size = 200 + number % 300;
        format!("logs_generator.go:76] {number} {method} /api/v1/namespaces/{namespace}/pods/{number:x} {size}")
    };
    let lines = (0..total).map(|number| (length * number / total, line(number))).collect();
    Program { end: Some((length, 0)), lines, ..Program::default() }
}

/// The file that says which name has which address.
fn hosts(pod: &Value) -> Vec<String> {
    let mut lines = vec!["# Kubernetes-managed hosts file.".to_owned(), "127.0.0.1\tlocalhost".to_owned()];
    let (ip, name) = (&pod["status"]["podIP"], &pod["metadata"]["name"]);
    lines.push(format!("{}\t{}", ip.as_str().unwrap_or_default(), name.as_str().unwrap_or_default()));
    for alias in pod["spec"]["hostAliases"].as_array().into_iter().flatten() {
        let names = alias["hostnames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ip = alias["ip"].as_str().unwrap_or_default();
        lines.push([ip].into_iter().chain(names).collect::<Vec<_>>().join("\t"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_listen_where_they_are_told() {
        let table = [
            (json!({"image": "nginx"}), None),
            (json!({"image": "x/agnhost:2"}), Some(vec![])),
            (json!({"image": "x/agnhost:2", "args": ["pause"]}), Some(vec![])),
            (json!({"image": "x/agnhost:2", "args": ["webhook"]}), None),
            (
                json!({"image": "x/agnhost:2", "args": ["netexec", "--http-port", "8090", "--udp-port", "-1"]}),
                Some(vec![(8090, "TCP")]),
            ),
            (
                json!({"image": "x/agnhost:2", "args": ["netexec", "--http-port=80"]}),
                Some(vec![(80, "TCP"), (8081, "UDP")]),
            ),
            (
                json!({"image": "x/agnhost:2", "command": ["/agnhost", "grpc-health-checking"]}),
                Some(vec![(5000, "TCP"), (8080, "TCP")]),
            ),
        ];
        for (container, expected) in table {
            assert_eq!(ports(&container), expected, "{container}");
        }
    }

    #[test]
    fn the_test_image_says_what_it_is_asked_for() {
        let lines = |pod: Value, container: Value| {
            let words = words(&container);
            program(&pod, &container, &words)
                .map(|program| program.lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>())
        };
        let image = "registry.k8s.io/e2e-test-images/agnhost:2.59";
        assert_eq!(lines(json!({}), json!({"image": "busybox"})), None);
        assert_eq!(lines(json!({}), json!({"image": image})), Some(vec!["Paused".to_owned()]));
        let tester = json!({"image": image, "command": ["/agnhost-2", "entrypoint-tester"], "args": ["a"]});
        assert_eq!(lines(json!({}), tester), Some(vec!["[/agnhost-2 entrypoint-tester a]".to_owned()]));
        let talker =
            json!({"image": image, "args": ["logs-generator", "--log-lines-total", "5", "--run-duration", "10s"]});
        assert_eq!(lines(json!({}), talker).map(|lines| lines.len()), Some(5));
        let pod = json!({"spec": {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["foo", "bar"]}]}});
        let told = lines(pod, json!({"image": image, "args": ["etc-hosts"]})).expect("lines");
        assert!(told.contains(&"1.2.3.4\tfoo\tbar".to_owned()), "{told:?}");
    }
}
