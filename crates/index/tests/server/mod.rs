//! A PostgreSQL server for a test, on a free port; it ends when dropped.
#![allow(clippy::unwrap_used, dead_code)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use atoll_pki::{Ca, San, Validity};

/// A running server with its data.
pub struct Postgres {
    process: Option<Child>,
    directory: tempfile::TempDir,
    port: u16,
    /// The authority of its certificate.
    pub ca: std::path::PathBuf,
}

/// Says that something was not tested; with `ATOLL_REQUIRE_PEERS=1` that is a failure.
fn skip(why: &str) {
    assert!(std::env::var_os("ATOLL_REQUIRE_PEERS").is_none(), "{why}, and ATOLL_REQUIRE_PEERS is set");
    eprintln!("SKIPPED: {why}");
}

/// A program that runs as a user who may: PostgreSQL refuses to be run by root.
fn program(name: &str) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0"));
    if !root {
        return Command::new(name);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", name]);
    command
}

impl Postgres {
    /// Starts one, or returns `None` with a visible note when there is no PostgreSQL.
    pub fn start() -> Option<Self> {
        if !program("initdb").arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip("PostgreSQL (initdb, postgres) is missing");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let now = jiff::Timestamp::now();
        let authority = Ca::generate("test", now).unwrap();
        let pair = authority.issue_server(&[San::new("127.0.0.1")], Validity::days(now, 1)).unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("ca.pem"), authority.cert_pem()).unwrap();
        std::fs::write(at("server.pem"), &pair.cert).unwrap();
        std::fs::write(at("server.key"), pair.key.as_bytes()).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(at("server.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let owner = Command::new("chown").args(["-R", "postgres"]).arg(directory.path()).stderr(Stdio::null()).status();
        assert!(owner.is_ok(), "chown is there");
        let made = program("initdb")
            .args(["-U", "atoll", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(at("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ca = at("ca.pem");
        let mut server = Self { process: None, directory, port, ca };
        server.run();
        Some(server)
    }

    fn run(&mut self) {
        let at = |name: &str| self.directory.path().join(name).display().to_string();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            "fsync=off".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", at("server.pem")),
            format!("ssl_key_file={}", at("server.key")),
        ];
        let mut command = program("postgres");
        command.arg("-D").arg(at("data")).args(["-k", "", "-p", &self.port.to_string()]);
        for setting in settings {
            command.args(["-c", &setting]);
        }
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        self.process = Some(process);
        assert!(lines.any(|line| line.contains("ready to accept connections")), "PostgreSQL ended");
        // Somebody has to read on, or the server would wait for it.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Ends the server at once, as a crash does; its data stay.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // Its children end themselves on SIGQUIT; SIGKILL would leave them.
        let _ = Command::new("kill").args(["-QUIT", &process.id().to_string()]).status();
        let _ = process.wait();
    }

    /// Starts it again after it ended.
    pub fn again(&mut self) {
        self.run();
    }

    /// How to reach it.
    pub fn url(&self) -> String {
        format!("postgres://atoll@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}
