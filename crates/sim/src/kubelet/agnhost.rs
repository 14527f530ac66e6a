//! The test image of Kubernetes, as far as its programs only talk.

use std::time::Duration;

use serde_json::Value;

use super::program::Program;

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
    fn the_test_image_says_what_it_is_asked_for() {
        let lines = |pod: Value, container: Value| {
            let words = super::super::program::words(&container);
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
