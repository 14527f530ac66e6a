//! The paths of a kubelet.

/// What a path asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Route<'a> {
    Logs { namespace: &'a str, pod: &'a str, container: &'a str },
    Exec { namespace: &'a str, pod: &'a str, container: &'a str },
    Attach { namespace: &'a str, pod: &'a str, container: &'a str },
    PortForward { namespace: &'a str, pod: &'a str },
    Pods,
    RunningPods,
    ResourceMetrics,
    Summary,
    Health,
}

/// Reads a path.
pub(crate) fn route(path: &str) -> Option<Route<'_>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match parts.as_slice() {
        ["containerLogs", namespace, pod, container] => Route::Logs { namespace, pod, container },
        ["exec", namespace, pod, container] | ["exec", namespace, pod, _, container] => {
            Route::Exec { namespace, pod, container }
        }
        ["attach", namespace, pod, container] | ["attach", namespace, pod, _, container] => {
            Route::Attach { namespace, pod, container }
        }
        ["portForward", namespace, pod] | ["portForward", namespace, pod, _] => Route::PortForward { namespace, pod },
        ["pods"] => Route::Pods,
        ["runningpods"] => Route::RunningPods,
        ["metrics", "resource"] => Route::ResourceMetrics,
        ["stats", "summary"] => Route::Summary,
        ["healthz"] => Route::Health,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_with_and_without_the_uid() {
        let exec = Route::Exec { namespace: "n", pod: "p", container: "c" };
        assert_eq!(route("/exec/n/p/c"), Some(exec.clone()));
        assert_eq!(route("/exec/n/p/uid/c"), Some(exec));
        assert_eq!(route("/portForward/n/p/uid"), Some(Route::PortForward { namespace: "n", pod: "p" }));
        assert_eq!(route("/runningpods/"), Some(Route::RunningPods));
        for unknown in ["/", "/run/n/p/c", "/configz", "/logs/", "/exec/n/p", "/metrics/cadvisor"] {
            assert_eq!(route(unknown), None, "{unknown}");
        }
    }
}
