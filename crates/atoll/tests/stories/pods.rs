//! Pods as people look into them.

use std::io::{Read as _, Write as _};

use atoll_testkit::peers;

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
    assert!(hub.kubectl("exec web -- nosuchcommand").fails().contains("nosuchcommand"));
    assert!(hub.kubectl("exec nosuch -- true").fails().contains("NotFound"));

    let talk = "while true; do echo tick; sleep 1; done";
    hub.kubectl_with(&["run", "ticker", "--image=busybox", "--", "sh", "-c", talk]).ok();
    hub.kubectl("wait --for=condition=Ready pod/ticker --timeout=60s").ok();
    assert_eq!(hub.follow("attach ticker").line(), "tick\n");
}

#[test]
fn a_terminal_is_one_at_both_ends() {
    let Some(hub) = Hub::demo() else { return };
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: util-linux' script, which gives kubectl a terminal, is not there");
    }
    hub.kubectl("run web --image=nginx").ok();
    hub.kubectl("wait --for=condition=Ready pod/web --timeout=60s").ok();
    let line = format!("tty; stty rows 33 cols 99; exec env {}", hub.kubectl_line("exec -it web -- sh"));
    let mut terminal = Terminal::open(&line);
    let device = terminal.until(|text| text.contains("/dev/pts/") && text.contains('\n'));
    let device = device.split_whitespace().find(|word| word.starts_with("/dev/pts/")).unwrap().to_owned();
    terminal.until(|text| text.ends_with("# "));
    terminal.ask("stty size\n", |text| text.contains("33 99"));
    let ran = peers::run(std::process::Command::new("stty").args(["-F", &device, "rows", "40", "cols", "120"]));
    ran.ok();
    terminal.ask("stty size\n", |text| text.contains("40 120"));
    let shown = terminal.ask("echo $HOSTNAM\u{7f}ME\n", |text| text.contains("web\r\n"));
    assert!(shown.contains("echo $HOSTNA"), "what is typed is shown: {shown:?}");
    assert!(terminal.ends_with("exit\n"));
}

/// A program on a terminal of its own.
struct Terminal {
    process: std::process::Child,
    input: std::process::ChildStdin,
    output: std::sync::mpsc::Receiver<Vec<u8>>,
}

impl Terminal {
    fn open(line: &str) -> Self {
        use std::process::{Command, Stdio};
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, mut stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, output) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = stdout.read(&mut buffer)
                && count > 0
                && sender.send(buffer[..count].to_vec()).is_ok()
            {}
        });
        Self { process, input, output }
    }

    /// Reads until the text fits.
    fn until(&mut self, fits: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        while !fits(&text) {
            match self.output.recv_timeout(std::time::Duration::from_secs(60)) {
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error}; so far: {text:?}"),
            }
        }
        text
    }

    /// Types a line until what comes back fits: news of the terminal's size travel beside what is typed.
    fn ask(&mut self, line: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        for _ in 0..100 {
            self.input.write_all(line.as_bytes()).unwrap();
            last = self.until(|text| text.ends_with("# "));
            if fits(&last) {
                return last;
            }
        }
        panic!("never as expected: {last:?}");
    }

    /// Types the last line; returns whether the program ended well.
    fn ends_with(mut self, line: &str) -> bool {
        self.input.write_all(line.as_bytes()).unwrap();
        self.process.wait().unwrap().success()
    }
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
        let answer = peers::through_forward(&forward.line());
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("/hello"), "{answer}");
    }
}

#[test]
fn ports_are_forwarded_through_the_instance_a_member_is_joined_to() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --port=80").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    let server = hub.in_fleet("config view --minify -o jsonpath={.clusters[0].cluster.server}").ok();
    let through = format!("--server {server}/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy");
    // Over a WebSocket, and in the older way of kubectl.
    for sockets in ["true", "false"] {
        let words = format!("{through} port-forward deployment/web :80");
        let mut forward = hub.follow_in("fleet", &words, &[("KUBECTL_PORT_FORWARD_WEBSOCKETS", sockets)]);
        let answer = peers::through_forward(&forward.line());
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("/hello"), "{sockets}: {answer}");
    }
}

#[test]
fn a_container_asks_a_service() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --port=80").ok();
    hub.kubectl("expose deployment web --port=8080 --target-port=80").ok();
    hub.kubectl("run shell --image=busybox --restart=Never -- sleep 3600").ok();
    hub.kubectl("wait --for=condition=Ready pod/shell --timeout=60s").ok();
    hub.until("exec shell -- wget -qO- http://web:8080/hello", |page| page.contains("/hello"));
    hub.until("exec shell -- nslookup web.default", |found| found.contains("Address: 10."));
    hub.until_fails("exec shell -- wget -qO- http://web:81/", "Connection refused");
    hub.until_fails("exec shell -- wget -qO- http://nosuch/", "bad address");
    hub.kubectl("scale deployment/web --replicas=0").ok();
    hub.until_fails("exec shell -- wget -qO- http://web:8080/", "Connection refused");
}
