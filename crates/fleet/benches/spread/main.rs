//! How fast copies reach members, and what that costs.
//!
//! ```text
//! cargo bench -p atoll-fleet --bench spread -- demo --atoll target/release/atoll
//! cargo bench -p atoll-fleet --bench spread -- real --atoll target/release/atoll
//! cargo bench -p atoll-fleet --bench spread -- beside --atoll target/release/atoll
//! cargo bench -p atoll-fleet --bench spread -- schedule | restart
//! ```
//!
//! `demo` and `real` start a hub as a process of its own, with simulated members and with real API servers (etcd with
//! fsync); `karmada` measures Karmada with members of that kind in the same way, and `beside` both of them, one after
//! the other. Options: `--rounds` (50), `--count` (1000), `--idle` seconds (30) after `--warm-up` seconds (20),
//! `--workloads` (10000).
#![allow(clippy::unwrap_used)]

mod driver;
mod figures;
mod process;
mod scale;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::HashMap;

/// As the program has it: a good third of the work is with memory.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The words of the command line.
pub struct Words(HashMap<String, String>);

impl Words {
    fn read() -> (Option<String>, Self) {
        let mut given = std::env::args().skip(1).filter(|word| word != "--bench").peekable();
        let mode = given.next_if(|word| !word.starts_with("--"));
        let mut words = HashMap::new();
        while let Some(word) = given.next() {
            let value = given.next_if(|next| !next.starts_with("--")).unwrap_or_default();
            words.insert(word.trim_start_matches('-').to_owned(), value);
        }
        (mode, Self(words))
    }

    /// The value of an option.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number, or the usual one.
    pub fn number(&self, name: &str, usual: usize) -> usize {
        self.text(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("--{name} {text} is no number")))
    }
}

fn main() {
    let (mode, words) = Words::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match mode.as_deref() {
        Some("demo") => runtime.block_on(driver::demo(&words)),
        Some("real") => drop(runtime.block_on(driver::real(&words))),
        Some("karmada") => drop(runtime.block_on(driver::karmada(&words))),
        Some("beside") => runtime.block_on(driver::beside(&words)),
        Some("schedule") => scale::schedule(&words),
        Some("restart") => runtime.block_on(scale::restart(&words)),
        // `cargo test --benches` and a bare `cargo bench` only show that it can run.
        _ => scale::schedule(&words),
    }
}
