//! A simulated cluster in memory until its input ends; prints the path of its kubeconfig. For trying
//! clients by hand: `cargo run -p atoll-testkit --example sim -- NODES`.

use std::io::Read as _;

fn main() -> anyhow::Result<()> {
    let nodes = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3);
    let sim = Some(atoll_sim::Spec::with_nodes(nodes));
    let server = atoll_testkit::TestServer::start(atoll_testkit::Options { sim, ..Default::default() })?;
    println!("{}", server.kubeconfig().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
