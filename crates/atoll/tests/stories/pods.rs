//! Pods as people look into them.

use std::io::{Read as _, Write as _};

use crate::hub::Hub;

#[test]
fn logs_are_shown_followed_and_cut() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("run web --image=nginx --port=80").ok();
    hub.kubectl("wait --for=condition=Ready pod/web --timeout=60s").ok();
    let all = hub.kubectl("logs web").ok();
    assert!(!all.is_empty(), "{all}");
    assert_eq!(hub.kubectl("logs web --tail=1").ok().lines().count(), 1);
    assert_eq!(hub.kubectl("logs web --tail=0").ok(), "");
    assert!(hub.kubectl("logs web --since=1h").ok().starts_with(&all));
    assert!(hub.kubectl("logs web --timestamps --tail=1").ok().starts_with("20"));
    assert!(hub.kubectl("logs web -c nosuch").fails().contains("container nosuch is not valid for pod web"));

    let script = "echo one; sleep 1; echo two >&2; sleep 1; echo three";
    hub.kubectl_with(&["run", "talker", "--image=busybox", "--restart=Never", "--", "sh", "-c", script]).ok();
    hub.kubectl("wait --for=jsonpath={.status.containerStatuses[0].state.running} pod/talker --timeout=60s").ok();
    let mut follow = hub.follow("logs -f talker");
    assert_eq!(follow.line(), "one\n");
    assert_eq!(follow.rest(), "two\nthree\n", "it ends with the container");
    hub.kubectl("wait --for=jsonpath={.status.phase}=Succeeded pod/talker --timeout=60s").ok();

    let annotation = "--annotations=sim.atoll.io/crash-loop=true";
    hub.kubectl(&format!("run crasher --image=busybox {annotation}")).ok();
    hub.until("get pod crasher -o jsonpath={.status.containerStatuses[0].restartCount}", |count| {
        count.parse::<u32>().is_ok_and(|count| count > 0)
    });
    hub.kubectl("logs crasher --previous").ok();
    assert!(hub.kubectl("logs web --previous").fails().contains("previous terminated container"));
    hub.kubectl("run lost --image=registry.invalid/nothing").ok();
    hub.until("get pod lost", |text| text.contains("ImagePullBackOff") || text.contains("ErrImagePull"));
    assert!(hub.kubectl("logs lost").fails().contains("trying and failing to pull image"));
    let told = hub.kubectl("describe pod lost").ok();
    assert!(told.contains("Failed to pull image"), "{told}");
}

#[test]
fn commands_run_in_containers() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("run web --image=nginx").ok();
    hub.kubectl("wait --for=condition=Ready pod/web --timeout=60s").ok();
    assert_eq!(hub.kubectl_with(&["exec", "web", "--", "sh", "-c", "echo $((1 + 2))"]).ok(), "3\n");
    assert_eq!(hub.kubectl("exec web -- hostname").ok(), "web\n");
    let ran = hub.kubectl_with(&["exec", "web", "--", "sh", "-c", "echo oh >&2; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(ran.stderr.starts_with("oh\n") && ran.stderr.contains("exit code 3"), "{}", ran.stderr);
    let said = hub.kubectl_fed(&["exec", "-i", "web", "--", "sh"], "cd /tmp\npwd\nexit\n").ok();
    assert!(said.contains("/tmp"), "{said}");
    assert_eq!(hub.kubectl_fed(&["exec", "-i", "web", "--", "cat"], "through\n").ok(), "through\n");
    // A terminal needs one at both ends; `script` of util-linux gives kubectl one when it is there.
    assert!(hub.kubectl("exec web -- nosuchcommand").fails().contains("nosuchcommand"));
    assert!(hub.kubectl("exec nosuch -- true").fails().contains("NotFound"));

    let talk = "while true; do echo tick; sleep 1; done";
    hub.kubectl_with(&["run", "ticker", "--image=busybox", "--", "sh", "-c", talk]).ok();
    hub.kubectl("wait --for=condition=Ready pod/ticker --timeout=60s").ok();
    assert_eq!(hub.follow("attach ticker").line(), "tick\n");
}

#[test]
fn files_are_copied_both_ways() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("run web --image=nginx").ok();
    hub.kubectl("wait --for=condition=Ready pod/web --timeout=60s").ok();
    let (here, back) = (hub.file("here"), hub.file("back"));
    std::fs::write(&here, "some\ntext\n").unwrap();
    hub.kubectl_with(&["cp", here.to_str().unwrap(), "web:/tmp/there"]).ok();
    assert_eq!(hub.kubectl("exec web -- cat /tmp/there").ok(), "some\ntext\n");
    hub.kubectl_with(&["cp", "web:/tmp/there", back.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read_to_string(&back).unwrap(), "some\ntext\n");
}

#[test]
fn ports_are_forwarded() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --port=80").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.kubectl("expose deployment web --port=8080 --target-port=80").ok();
    for target in ["deployment/web :80", "service/web :8080"] {
        let mut forward = hub.follow(&format!("port-forward {target}"));
        let line = forward.line();
        let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.split(" ->").next());
        let mut stream = std::net::TcpStream::connect(address.unwrap_or_else(|| panic!("{line}"))).unwrap();
        stream.write_all(b"GET /hello HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("/hello"), "{answer}");
    }
}
