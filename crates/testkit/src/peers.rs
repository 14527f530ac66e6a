//! Real programs by name, built by `tests/peers/build` and kept outside the checkout.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc;
use std::time::Duration;

/// Set to make the absence of a program a failure instead of a skipped test.
const REQUIRED: &str = "ATOLL_REQUIRE_PEERS";

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate is inside the checkout")
}

/// Where peers are kept.
pub fn cache() -> PathBuf {
    if let Some(own) = std::env::var_os("ATOLL_PEERS") {
        return own.into();
    }
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    base.unwrap_or_else(|| ".cache".into()).join("atoll/peers")
}

/// Says that something was not tested, and why; with `ATOLL_REQUIRE_PEERS=1` that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "{why}, and {REQUIRED} is set");
    eprintln!("SKIPPED: {why}");
}

/// A program, or `None` with a visible note when it is not there.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = cache().join("bin").join(name);
    if path.is_file() {
        return Some(path);
    }
    skip(&format!("{name} is missing (tests/peers/build {name})"));
    None
}

/// The manifests of Karmada's definitions as its source has them, or none with a visible note when that is not there.
pub fn karmada_definitions() -> Vec<PathBuf> {
    let groups = cache().join("src/karmada/charts/karmada/_crds/bases");
    let found: Vec<PathBuf> = list(&groups).iter().flat_map(|group| list(group)).filter(|path| is_yaml(path)).collect();
    if found.is_empty() {
        skip("the source of Karmada is missing (tests/peers/build karmadactl)");
    }
    found
}

/// The manifests of cert-manager's definitions, or none with a visible note when they are not there.
pub fn certificate_definitions() -> Vec<PathBuf> {
    let found: Vec<PathBuf> =
        list(&cache().join("crds/cert-manager")).into_iter().filter(|path| is_yaml(path)).collect();
    if found.is_empty() {
        skip("the definitions of cert-manager are missing (tests/peers/build cert-manager-crds)");
    }
    found
}

/// Manifests of definitions that no peer brings, from reference material beside the checkout; none with a visible note
/// where there is no such material.
pub fn reference_definitions(family: &str) -> Vec<PathBuf> {
    let directory = checkout().join("../shared/reference/crds").join(family);
    let found: Vec<PathBuf> = list(&directory).into_iter().filter(|path| is_yaml(path)).collect();
    if found.is_empty() {
        eprintln!("SKIPPED: the definitions of {family} are not beside the checkout");
    }
    found
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml")
}

/// A program that was run to its end.
#[derive(Debug)]
pub struct Ran {
    /// What was run, for messages.
    pub command: String,
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Ran {
    /// What it printed; fails with everything it said unless it succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}\n{}", self.command, self.stdout, self.stderr);
        self.stdout
    }

    /// What it complained about; fails if it succeeded.
    #[track_caller]
    pub fn fails(self) -> String {
        assert_ne!(self.code, 0, "{} was expected to fail\n{}", self.command, self.stdout);
        self.stderr
    }
}

/// The answer to a plain request for `/hello` through a port-forward, whose first line says where it listens.
pub fn through_forward(line: &str) -> String {
    let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.split(" ->").next());
    let mut stream = TcpStream::connect(address.unwrap_or_else(|| panic!("{line}"))).expect("the forward listens");
    stream.write_all(b"GET /hello HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").expect("the forward takes it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the pod answers in words");
    answer
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Ran {
    let shown = format!("{command:?}");
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    Ran {
        command: shown,
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// How a process ends by itself; one that does not in time is killed, and that is a failure.
#[track_caller]
pub fn ended(process: &mut Child, patience: Duration) -> ExitStatus {
    let number = process.id().to_string();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| tell.send(process.wait()));
        let late = told.recv_timeout(patience).map_err(|_| {
            run(Command::new("kill").args(["-KILL", &number]));
            format!("process {number} does not end within {patience:?}")
        });
        late.unwrap_or_else(|why| panic!("{why}")).expect("a child can be waited for")
    })
}

/// Keeps a part of a document equal to what tests know: fails when it is out of date, and writes it
/// instead when `ATOLL_WRITE_DOCS` is set. The part stands between two markers of this name.
pub fn keep_section(document: &str, name: &str, content: &str) {
    let path = checkout().join(document);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (start, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let wanted = match (text.find(&start), text.find(&end)) {
        (Some(from), Some(to)) => format!("{}{content}{}", &text[..from + start.len()], &text[to..]),
        _ => format!("{text}\n{start}{content}{end}\n"),
    };
    if std::env::var_os("ATOLL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        assert!(text == wanted, "{document} is out of date: run the test with ATOLL_WRITE_DOCS=1");
    }
}
