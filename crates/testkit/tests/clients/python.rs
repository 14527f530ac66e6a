//! The Python client, in an environment of its own that `tests/peers/build python` makes.

use std::process::Command;

use atoll_testkit::peers;

#[test]
fn the_python_client_works() {
    let python = peers::cache().join("python/bin/python");
    if !python.is_file() {
        return peers::skip("the Python client is missing (tests/peers/build python)");
    }
    let server = crate::shared();
    let script = peers::checkout().join("crates/testkit/tests/clients/client.py");
    let said = peers::run(Command::new(python).arg(script).arg(server.kubeconfig())).ok();
    assert!(said.contains("all well"), "{said}");
}
