//! Measures Atoll and the real programs side by side: same machine, same load, one after the other.
//!
//! `contest` starts and measures servers, `link` is one connection, `work` the loads,
//! `process` what the operating system says of a server, `report` the table.

mod contest;
mod link;
mod process;
mod report;
mod server;
mod work;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measures Atoll beside the programs it replaces.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// One API server: Atoll and kube-apiserver with etcd
    Apiserver(contest::Contest),
    /// Load on a server that runs already
    On {
        /// Its URL
        #[arg(long)]
        server: String,
        /// PEM file of the authority that vouches for it
        #[arg(long)]
        authority: PathBuf,
        /// File with a bearer token
        #[arg(long)]
        token: PathBuf,
        #[command(flatten)]
        load: work::Load,
    },
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match cli.what {
        What::Apiserver(contest) => runtime.block_on(contest.run()),
        What::On { server, authority, token, load } => runtime.block_on(async {
            let token = std::fs::read_to_string(token)?;
            let address = link::Address::new(&server, &std::fs::read_to_string(authority)?, token.trim())?;
            let mut figures = report::Figures::default();
            work::all(&address, &load, None, &mut figures).await?;
            print!("{}", report::table(&[("server", &figures)]));
            Ok(())
        }),
    }
}
