//! A demonstration in a process of its own, on a free port; it ends when dropped.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use atoll_testkit::peers::{self, Ran};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `atoll up --demo`, usually with one member of three nodes.
pub struct Hub {
    process: Child,
    directory: tempfile::TempDir,
    kubectl: PathBuf,
}

/// `atoll` with arguments split at spaces.
pub fn atoll(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(words.split_whitespace()).env_remove("KUBECONFIG").env("ATOLL_LOG", "error");
    command
}

/// Starts `atoll up --demo` in a directory and waits until it is ready.
pub fn start(directory: &Path, words: &str) -> Child {
    start_with(directory, 1, words)
}

/// Starts `atoll up --demo` with so many members in a directory and waits until it is ready.
fn start_with(directory: &Path, members: u32, words: &str) -> Child {
    let mut process = atoll(&format!("up --demo --members {members} --nodes 3 --listen 127.0.0.1:0"))
        .args(words.split_whitespace())
        .arg("--data-dir")
        .arg(directory)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said = Vec::new();
    for line in lines.by_ref() {
        let ready = line.starts_with("atoll is ready");
        said.push(line);
        if ready {
            // Somebody has to read on, or the process would wait for it.
            std::thread::spawn(move || lines.for_each(drop));
            return process;
        }
    }
    let ended = process.wait().unwrap();
    panic!("the demonstration ended before it was ready, {ended}: {}", said.join("\n"));
}

impl Hub {
    /// Starts one, or returns `None` with a visible note when kubectl is not there.
    pub fn demo() -> Option<Self> {
        Self::demo_of(1)
    }

    /// The same with more members.
    pub fn demo_of(members: u32) -> Option<Self> {
        let kubectl = peers::find("kubectl")?;
        let directory = tempfile::tempdir().unwrap();
        let process = start_with(directory.path(), members, "");
        Some(Self { process, directory, kubectl })
    }

    /// A shell line that runs kubectl in the member, for a terminal.
    pub fn kubectl_line(&self, words: &str) -> String {
        let (program, config) = (self.kubectl.display(), self.file("kubeconfig"));
        format!("KUBECONFIG='{}' '{program}' --context member1 {words}", config.display())
    }

    /// Runs kubectl in a context, with arguments split at spaces.
    pub fn kubectl_in(&self, context: &str, words: &str) -> Ran {
        peers::run(self.command(context).args(words.split_whitespace()))
    }

    /// A place for files of the story.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, context: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", self.file("kubeconfig")).args(["--context", context]);
        command
    }

    /// Runs kubectl in the member, with arguments split at spaces.
    pub fn kubectl(&self, words: &str) -> Ran {
        peers::run(self.command("member1").args(words.split_whitespace()))
    }

    /// Runs kubectl in the member, with arguments as they are.
    pub fn kubectl_with(&self, words: &[&str]) -> Ran {
        peers::run(self.command("member1").args(words))
    }

    /// Runs kubectl in the instance the member is joined to.
    pub fn in_fleet(&self, words: &str) -> Ran {
        peers::run(self.command("fleet").args(words.split_whitespace()))
    }

    /// Runs `atoll` with the kubeconfig of the hub.
    pub fn atoll(&self, words: &str) -> Ran {
        peers::run(atoll(words).env("KUBECONFIG", self.file("kubeconfig")))
    }

    /// Runs kubectl with some input.
    pub fn kubectl_fed(&self, words: &[&str], input: &str) -> Ran {
        let mut command = self.command("member1");
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Ran {
            command: format!("{command:?}"),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Applies a manifest.
    #[track_caller]
    pub fn apply(&self, manifest: &str) {
        self.kubectl_fed(&["apply", "-f", "-"], manifest).ok();
    }

    /// Starts kubectl, which goes on until dropped.
    pub fn follow(&self, words: &str) -> Follow {
        self.follow_in("member1", words, &[])
    }

    /// The same in a context, with variables set.
    pub fn follow_in(&self, context: &str, words: &str, variables: &[(&str, &str)]) -> Follow {
        let mut command = self.command(context);
        command.envs(variables.iter().copied());
        command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let output = process.stdout.take().map(BufReader::new);
        Follow { process, output }
    }

    /// Asks again until it fails with these words.
    #[track_caller]
    pub fn until_fails(&self, words: &str, told: &str) {
        self.until_ran(words, |ran| ran.code != 0 && ran.stderr.contains(told));
    }

    /// Asks again until the answer fits.
    #[track_caller]
    pub fn until(&self, words: &str, fits: impl Fn(&str) -> bool) -> String {
        self.until_ran(words, |ran| ran.code == 0 && fits(&ran.stdout)).stdout
    }

    /// Asks whenever something changes in the hub or a member. A fault of a member is no change, so that it is asked
    /// every second, too.
    #[track_caller]
    fn until_ran(&self, words: &str, fits: impl Fn(&Ran) -> bool) -> Ran {
        let mut changes = self.follow_in("root", "get --raw /manage/v1alpha1/watch", &[]);
        let lines = changes.output.take().unwrap().lines().map_while(Result::ok);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|_| _ = tell.send(())));
        let end = Instant::now() + PATIENCE;
        loop {
            let ran = self.kubectl(words);
            if fits(&ran) {
                return ran;
            }
            assert!(Instant::now() < end, "{words}: never as expected, but {ran:?}");
            let _ = told.recv_timeout(Duration::from_secs(1));
            told.try_iter().for_each(drop);
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program that goes on, and what it prints.
pub struct Follow {
    process: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Follow {
    /// The next line it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// All it prints until it ends by itself.
    pub fn rest(mut self) -> String {
        let mut text = String::new();
        self.output.as_mut().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.process.wait().unwrap().success());
        text
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
