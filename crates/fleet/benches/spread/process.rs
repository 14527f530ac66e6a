//! Processes that are measured: started here, or given by their number.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What processes have used so far.
#[derive(Copy, Clone, Debug, Default)]
pub struct Usage {
    /// Seconds of processor time.
    pub cpu: f64,
    /// Resident memory in MiB.
    pub memory: f64,
}

/// What these processes use, together.
pub fn usage(processes: &[u32]) -> Usage {
    let mut sum = Usage::default();
    for process in processes {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name may hold anything; the fields that count come after its closing bracket.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        sum.cpu += (ticks(11) + ticks(12)) / 100.0;
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        sum.memory += resident.unwrap_or_default() / 1024.0;
    }
    sum
}

/// A hub in a process of its own; it ends when dropped.
pub struct Hub {
    process: Child,
    /// Its data.
    pub directory: tempfile::TempDir,
}

impl Hub {
    /// Starts `atoll` with these words and waits until it says that it is ready.
    pub fn start(program: &str, words: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args(words)
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "off", "--health-listen", "off", "--data-dir"])
            .arg(directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("atoll is ready"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        assert!(ready, "the hub ended before it was ready");
        Self { process, directory }
    }

    /// The number of the process.
    pub fn number(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A real API server with its etcd, which syncs its files, and what else a script starts with them; it ends when
/// dropped.
pub struct Server {
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts a member with `tests/peers/up`.
    pub fn start() -> Self {
        Self::by("up")
    }

    /// Starts a Karmada control plane with `tests/peers/up-karmada`.
    pub fn karmada() -> Self {
        Self::by("up-karmada")
    }

    fn by(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ran = atoll_testkit::peers::run(Command::new(script(name)).arg(directory.path().join("cluster")));
        ran.ok();
        Self { directory }
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> std::path::PathBuf {
        self.directory.path().join("cluster/kubeconfig")
    }

    /// The numbers of its processes.
    pub fn numbers(&self) -> Vec<u32> {
        let files = std::fs::read_dir(self.directory.path().join("cluster/pids")).unwrap();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        // The number comes first, then when the process started.
        texts.filter_map(|text| text.split_whitespace().next()?.parse().ok()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut down = Command::new(script("down"));
        let _ = down.arg("--rm").arg(self.directory.path().join("cluster")).status();
    }
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(name)
}
