//! Starting, stopping and starting again.

use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::Duration;

use atoll_testkit::peers;

use crate::hub::{atoll, start};

#[track_caller]
fn ends(mut process: Child) -> i32 {
    peers::ended(&mut process, Duration::from_secs(30)).code().unwrap_or(-1)
}

/// One line that says what is wrong, and nothing else.
#[track_caller]
fn one_clear_error(ran: peers::Ran, told: &str) {
    let errors = ran.fails();
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    assert!(errors.starts_with("error: ") && errors.contains(told), "{errors}");
}

fn up(directory: &std::path::Path, listen: &str) -> peers::Ran {
    peers::run(atoll("up --demo --listen").arg(listen).arg("--data-dir").arg(directory))
}

#[test]
fn a_taken_port_is_told_before_anything_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    one_clear_error(up(directory.path(), &address), &format!("cannot listen on {address}"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_of_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("format"), "99\n").unwrap();
    one_clear_error(up(directory.path(), "127.0.0.1:0"), "belongs to another version");
}

#[test]
fn a_second_start_resumes_and_nothing_is_left_running() {
    let Some(kubectl) = peers::find("kubectl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let kubectl = |words: &str| {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(directory.path().join("kubeconfig"));
        peers::run(command.args(words.split_whitespace()))
    };
    let first = start(directory.path(), "");
    kubectl("--context member1 create deployment web --image=nginx --replicas=2").ok();
    kubectl("--context member1 rollout status deployment/web --timeout=60s").ok();
    let pods = kubectl("--context member1 get pods -o jsonpath={.items[*].metadata.uid}").ok();
    one_clear_error(up(directory.path(), "127.0.0.1:0"), "in use");
    peers::run(atoll("down --data-dir").arg(directory.path())).ok();
    assert_eq!(ends(first), 0);
    assert!(!directory.path().join("atoll.pid").exists());
    assert!(peers::run(atoll("down --data-dir").arg(directory.path())).fails().contains("no hub runs in"));

    let second = start(directory.path(), "");
    assert_eq!(kubectl("--context member1 get pods -o jsonpath={.items[*].metadata.uid}").ok(), pods);
    kubectl("--context fleet wait --for=condition=Ready cluster/member1 --timeout=60s").ok();
    kubectl("--context member1 scale deployment/web --replicas=3").ok();
    kubectl("--context member1 rollout status deployment/web --timeout=60s").ok();
    let interrupted = Command::new("kill").args(["-INT", &second.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(ends(second), 0);
}
