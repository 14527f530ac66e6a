//! `atoll lease`: lend nodes of one cluster to another, and see what that means.

mod bind;
mod show;
mod unbind;

use atoll_vnode::Feature;
use clap::{Args, Subcommand};

use super::access::{Access, block_on};
use super::output::Format;

/// Lend nodes of worker clusters to a computing cluster.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll lease bind gpu --worker-kubeconfig ~/.kube/gpu --mount-namespace leased
  atoll lease preview -f policy.yaml --context gpu
  atoll lease policies --context gpu
  atoll lease list
  atoll lease unbind gpu --force")]
pub struct Lease {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    access: Access,
    /// Form of the output
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Format,
}

#[derive(Subcommand)]
enum Action {
    /// Bind a worker cluster to the computing cluster
    Bind(bind::Bind),
    /// Take all leased nodes of a worker cluster back and remove its binding
    Unbind(unbind::Unbind),
    /// List the policies of a worker cluster and what each lends
    Policies,
    /// Say what a policy lends, or would lend, in a worker cluster
    Preview(show::Wanted),
    /// List the bindings of the computing cluster and what they lease
    List,
    /// Print the roles an account needs in a worker cluster, and no more; `bind` makes those by itself
    Roles {
        /// Name of the roles
        #[arg(default_value = "atoll-lessee")]
        name: String,
        /// Namespace of the worker cluster that leased pods run in
        #[arg(long, default_value = "kubeocean-worker")]
        mount_namespace: String,
        /// Leave out what these features need: volumes, services, events, logs, exec, port-forward, debug, metrics
        #[arg(long, value_delimiter = ',')]
        without: Vec<Feature>,
        /// Those of a vnode-manager in its computing cluster instead
        #[arg(long)]
        computing: bool,
        /// And those it needs besides to run syncers and proxiers as Deployments
        #[arg(long, requires = "computing")]
        deployments: bool,
    },
}

impl Lease {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        if let Action::Roles { name, mount_namespace, without, computing, deployments } = &self.action {
            let mut roles = if *computing {
                atoll_vnode::computing_roles(name).to_vec()
            } else {
                atoll_vnode::worker_roles(name, mount_namespace, &without.iter().copied().collect()).to_vec()
            };
            if *deployments {
                roles.extend(atoll_vnode::deploying_roles(name));
            }
            return show::roles(&roles);
        }
        block_on(async move {
            let cluster = self.access.endpoint("compute").await?;
            match &self.action {
                Action::Bind(bind) => bind.run(&cluster).await,
                Action::Unbind(unbind) => unbind.run(&cluster).await,
                Action::Policies => show::policies(&cluster, self.output).await,
                Action::Preview(wanted) => wanted.run(&cluster, self.output).await,
                Action::List => show::bindings(&cluster, self.output).await,
                Action::Roles { .. } => Ok(()),
            }
        })
    }
}

/// Where bindings are.
fn bindings() -> atoll_meta::Gvr {
    atoll_meta::Gvr::new("cloud.tencent.com", "v1beta1", "clusterbindings")
}

/// Where policies are.
fn policies() -> atoll_meta::Gvr {
    atoll_meta::Gvr::new("cloud.tencent.com", "v1beta1", "resourceleasingpolicies")
}
