//! A hub in memory until its input ends; prints the path of its kubeconfig. For trying clients by hand.

use std::io::Read as _;

fn main() -> anyhow::Result<()> {
    let server = atoll_testkit::TestServer::memory()?;
    println!("{}", server.kubeconfig().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
