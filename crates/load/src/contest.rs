//! Both servers under the same load, one after the other.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::report::{Figures, table};
use crate::server::{self, Server};
use crate::work::{self, Load};

/// Which servers, and how much load.
#[derive(Args)]
pub struct Contest {
    /// The program to measure
    #[arg(long, default_value = "target/release/atoll")]
    atoll: PathBuf,
    /// The checkout, whose `tests/peers/up` starts the real ones
    #[arg(long, default_value = ".")]
    checkout: PathBuf,
    /// Leave out the real ones
    #[arg(long)]
    alone: bool,
    /// Seconds of rest before memory at idle is read
    #[arg(long, default_value_t = 10)]
    rest: u64,
    #[command(flatten)]
    load: Load,
}

impl Contest {
    /// Measures and prints a table.
    pub async fn run(self) -> anyhow::Result<()> {
        eprintln!("atoll serve");
        let own = self.measure(server::atoll(&self.atoll).await?).await?;
        if self.alone {
            print!("{}", table(&[("Atoll", &own)]));
            return Ok(());
        }
        eprintln!("kube-apiserver and etcd");
        let real = self.measure(server::real(&self.checkout).await?).await?;
        print!("{}", table(&[("Atoll", &own), ("kube-apiserver + etcd", &real)]));
        Ok(())
    }

    async fn measure(&self, server: Server) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        figures.note("start to ready, s", server.start);
        tokio::time::sleep(Duration::from_secs(self.rest)).await;
        work::all(&server.address, &self.load, Some(&server.processes), &mut figures).await?;
        Ok(figures)
    }
}
