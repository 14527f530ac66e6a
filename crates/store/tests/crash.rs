//! Kills a writing process at random moments and looks at what is left.
//!
//! The test starts itself again as the process to be killed, told so by a variable.
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{InstanceId, Revision};
use atoll_store::{Engine, Expect, Options, RedbEngine};
use rand::Rng as _;
use suite::{key, put, value};

const ROOT: InstanceId = InstanceId::ROOT;
const VARIABLE: &str = "ATOLL_STORE_CRASH_DIR";
const ROUNDS: usize = 60;
const WRITERS: usize = 8;

/// What the killed processes said they had been promised.
#[derive(Default)]
struct Promises {
    /// Writer → number and revision of its last acknowledged transaction.
    written: HashMap<usize, (u64, Revision)>,
    /// Revision → who was promised it.
    revisions: BTreeMap<Revision, (usize, u64)>,
    created: BTreeSet<String>,
    dropped: BTreeSet<String>,
    ids: HashMap<u32, String>,
}

impl Promises {
    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["wrote", writer, number, revision, "."] => {
                let (writer, number) = (writer.parse().unwrap(), number.parse().unwrap());
                let revision = Revision(revision.parse().unwrap());
                let reused = self.revisions.insert(revision, (writer, number));
                assert!(reused.is_none(), "revision {revision} was given to {reused:?} and to {writer} {number}");
                self.written.insert(writer, (number, revision));
            }
            ["created", name, id, "."] => {
                let reused = self.ids.insert(id.parse().unwrap(), (*name).to_owned());
                assert!(reused.is_none(), "instance number {id} was given twice");
                self.created.insert((*name).to_owned());
            }
            ["dropped", name, "."] => drop(self.dropped.insert((*name).to_owned())),
            // A line cut off by the kill promises nothing that we could know of.
            _ => {}
        }
    }
}

#[test]
fn what_was_acknowledged_survives_sigkill_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let mut promises = Promises::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..ROUNDS {
        let lines = run_and_kill(dir.path(), Duration::from_millis(rand::rng().random_range(20..220)));
        for line in &lines {
            promises.note(line);
        }
        let left = runtime.block_on(verify(dir.path(), &promises, round));
        // A write that nobody was told of may be there or not; from now on it is known.
        promises.written.extend(left);
    }
    println!(
        "{} acknowledged transactions, {} instances survived {ROUNDS} kills",
        promises.revisions.len(),
        promises.created.len()
    );
    assert!(promises.revisions.len() > 10 * ROUNDS, "too little was written to show anything");
}

/// Starts the writer, kills it after a while of writing, and returns what it said.
fn run_and_kill(dir: &Path, life: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer_to_be_killed", "--nocapture"])
        .env(VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (ready, is_ready) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in output.lines().map_while(Result::ok) {
            if line == "ready" {
                let _ = ready.send(());
            }
            lines.push(line);
        }
        lines
    });
    is_ready.recv_timeout(Duration::from_secs(30)).expect("the writer did not open the store");
    // At any moment: a kill after a line it said would always come just behind a commit.
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Not a test of its own: the process that is killed.
#[test]
fn writer_to_be_killed() {
    let Some(dir) = std::env::var_os(VARIABLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Arc::new(RedbEngine::open(&dir, Options::default()).unwrap());
        say("\nready".into());
        let writers = (0..WRITERS).map(|writer| tokio::spawn(write_pairs(engine.clone(), writer)));
        let writers: Vec<_> = writers.collect();
        tokio::spawn(come_and_go(engine));
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

fn say(line: String) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

fn pair(writer: usize) -> [atoll_meta::Key; 2] {
    ["left", "right"].map(|side| key(&format!("w{writer}-{side}")))
}

/// Writes the same number under two keys, again and again.
async fn write_pairs(engine: Arc<RedbEngine>, writer: usize) {
    let entry = engine.get(ROOT, pair(writer)[0].as_str()).await.unwrap();
    let mut number: u64 = entry.map_or(0, |entry| value(&entry).parse().unwrap());
    loop {
        number += 1;
        let writes = pair(writer).map(|key| put(key, Expect::Any, &number.to_string()));
        let revision = engine.commit(ROOT, writes.into()).await.unwrap().revision;
        say(format!("wrote {writer} {number} {revision} ."));
    }
}

/// Makes instances, fills them, and drops every second.
async fn come_and_go(engine: Arc<RedbEngine>) {
    for number in 0.. {
        let name = format!("{}-{number}", std::process::id());
        let id = engine.create_instance(&name).await.unwrap();
        say(format!("created {name} {id} ."));
        let writes = (0..20).map(|n| put(key(&format!("k{n}")), Expect::Absent, "x")).collect();
        engine.commit(id, writes).await.unwrap();
        if number % 2 == 0 {
            engine.drop_instance(id).await.unwrap();
            say(format!("dropped {name} ."));
        }
    }
}

/// Compares the store with the promises; returns the last number and revision of each writer.
async fn verify(dir: &Path, promises: &Promises, round: usize) -> HashMap<usize, (u64, Revision)> {
    let engine = RedbEngine::open(dir, Options::default()).unwrap();
    let newest = engine.revision(ROOT).unwrap();
    let mut left = HashMap::new();
    for writer in 0..WRITERS {
        let [a, b] = pair(writer);
        let a = engine.get(ROOT, a.as_str()).await.unwrap();
        let b = engine.get(ROOT, b.as_str()).await.unwrap();
        let seen = |entry: &atoll_store::Entry| (value(entry).parse::<u64>().unwrap(), entry.modified);
        let (a, b) = (a.as_ref().map(seen), b.as_ref().map(seen));
        assert_eq!(a, b, "round {round}: half a transaction of writer {writer}");
        let promised = promises.written.get(&writer).copied();
        if let Some((number, revision)) = promised {
            let (found, at) = a.unwrap_or_else(|| panic!("round {round}: writer {writer} lost everything"));
            assert!(found >= number, "round {round}: writer {writer} was promised {number} but {found} is there");
            assert!(found > number || at == revision, "round {round}: {number} is at {at} instead of {revision}");
        }
        left.extend(a.map(|seen| (writer, seen)));
    }
    let highest = promises.revisions.last_key_value().map(|(revision, _)| *revision);
    assert!(highest.is_none_or(|highest| newest >= highest), "round {round}: revisions went back");
    let names: BTreeSet<String> = engine.instances().iter().map(|(_, name)| name.to_string()).collect();
    for name in &promises.created {
        let dropped = promises.dropped.contains(name);
        // A drop that was not acknowledged may have happened.
        let certain = dropped || name.rsplit('-').next().unwrap().parse::<u32>().unwrap() % 2 == 1;
        assert!(!certain || names.contains(name) != dropped, "round {round}: instance {name}, dropped: {dropped}");
    }
    left
}
