//! Queries of a kubelet, in the words of an API server.

/// The pairs of a query, as they are written.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn is_set(value: &str) -> bool {
    matches!(value, "true" | "1")
}

/// Options for logs, checked; the container is part of the path of a kubelet.
pub(crate) fn logs(query: &str, container: &str) -> Result<String, String> {
    let mut out = format!("container={container}");
    let mut since = false;
    for (name, value) in pairs(query) {
        let least = |least: i64| match value.parse::<i64>() {
            Ok(number) if number >= least => Ok(()),
            _ => Err(format!("{name} must be a number of at least {least}")),
        };
        match name {
            "tailLines" => least(0)?,
            "limitBytes" | "sinceSeconds" => least(1)?,
            "follow" | "previous" | "timestamps" => {
                if !matches!(value, "true" | "false" | "1" | "0" | "") {
                    return Err(format!("{name} must be true or false"));
                }
            }
            "sinceTime" => {
                let plain = value.replace("%3A", ":").replace("%3a", ":").replace("%2B", "+");
                atoll_meta::time::parse(&plain).ok_or("sinceTime must be a time")?;
            }
            "stream" => {}
            _ => continue,
        }
        if matches!(name, "sinceSeconds" | "sinceTime") && std::mem::replace(&mut since, true) {
            return Err("at most one of sinceTime or sinceSeconds may be specified".to_owned());
        }
        out.push_str(&format!("&{name}={value}"));
    }
    Ok(out)
}

/// Options for exec and attach.
pub(crate) fn exec(query: &str, container: &str, with_command: bool) -> Result<String, String> {
    let flag = |names: [&str; 2]| pairs(query).any(|(name, value)| names.contains(&name) && is_set(value));
    let (stdin, stdout, stderr) = (flag(["input", "stdin"]), flag(["output", "stdout"]), flag(["error", "stderr"]));
    let tty = flag(["tty", "tty"]);
    if tty && stderr {
        return Err("tty and stderr cannot both be true".to_owned());
    }
    if !(stdin || stdout || stderr) {
        return Err("you must specify at least 1 of stdin, stdout, stderr".to_owned());
    }
    let mut out = format!("container={container}");
    for (name, set) in [("stdin", stdin), ("stdout", stdout), ("stderr", stderr), ("tty", tty)] {
        if set {
            out.push_str(&format!("&{name}=true"));
        }
    }
    if with_command {
        for (_, value) in pairs(query).filter(|(name, _)| *name == "command") {
            out.push_str(&format!("&command={value}"));
        }
    }
    Ok(out)
}

/// Options for port-forward: the ports, where the caller must name them up front.
pub(crate) fn port_forward(query: &str) -> String {
    let ports = pairs(query).filter(|(name, _)| matches!(*name, "port" | "ports"));
    ports.map(|(_, value)| format!("ports={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_options_are_checked_and_passed_on() {
        assert_eq!(logs("tailLines=0&follow=true", "c").as_deref(), Ok("container=c&tailLines=0&follow=true"));
        assert_eq!(
            logs("sinceTime=2026-01-05T12%3A00%3A00Z", "c").as_deref(),
            Ok("container=c&sinceTime=2026-01-05T12%3A00%3A00Z")
        );
        assert_eq!(
            logs("insecureSkipTLSVerifyBackend=true&container=other", "c").as_deref(),
            Ok("container=c"),
            "nothing else"
        );
        for bad in [
            "tailLines=-1",
            "tailLines=x",
            "limitBytes=0",
            "sinceSeconds=0",
            "follow=maybe",
            "sinceTime=yesterday",
            "sinceSeconds=1&sinceTime=2026-01-05T12:00:00Z",
        ] {
            assert!(logs(bad, "c").is_err(), "{bad}");
        }
    }

    #[test]
    fn streams_are_named_as_the_api_server_names_them() {
        assert_eq!(
            exec("command=sh&command=-c&input=1&output=1&tty=1", "c", true).as_deref(),
            Ok("container=c&stdin=true&stdout=true&tty=true&command=sh&command=-c")
        );
        assert_eq!(
            exec("output=1&error=1&command=x", "c", false).as_deref(),
            Ok("container=c&stdout=true&stderr=true")
        );
        assert!(exec("tty=1&error=1", "c", true).is_err());
        assert!(exec("command=sh", "c", true).is_err());
        assert_eq!(port_forward("port=80&port=81"), "ports=80&ports=81");
    }
}
