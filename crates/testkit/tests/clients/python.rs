//! The Python client, installed into the cache of peers.

use std::path::PathBuf;
use std::process::Command;

use atoll_testkit::peers;

const VERSION: &str = "kubernetes==35.0.0";

/// A Python that has the client, or `None` with a visible note.
fn python() -> Option<PathBuf> {
    let home = peers::cache().join("python");
    let program = home.join("bin/python");
    let works = || program.is_file() && peers::run(Command::new(&program).args(["-c", "import kubernetes"])).code == 0;
    if works() {
        return Some(program);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&home).status().is_ok_and(|status| status.success())
        && Command::new(home.join("bin/pip"))
            .args(["install", "--quiet", VERSION])
            .status()
            .is_ok_and(|status| status.success());
    if made && works() {
        return Some(program);
    }
    peers::skip(&format!("the Python client is missing (pip install {VERSION} into {})", home.display()));
    None
}

#[test]
fn the_python_client_works() {
    let Some(python) = python() else { return };
    let server = crate::shared();
    let script = peers::checkout().join("crates/testkit/tests/clients/client.py");
    let said = peers::run(Command::new(python).arg(script).arg(server.kubeconfig())).ok();
    assert!(said.contains("all well"), "{said}");
}
