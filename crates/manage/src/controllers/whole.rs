//! Controllers that compare everything whenever something of `root` changed.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::{Change, Informer, Queue, Selection, work};
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::kinds::Kind;

/// Changes come in groups.
pub const GATHER: Duration = Duration::from_millis(50);

/// Compares once, and again after changes of these kinds that `matter` and whenever the queue says so, until `stop`.
pub async fn run<R>(
    core: &Arc<Core>,
    queue: Queue<()>,
    kinds: &[&Kind],
    matter: fn(&Change) -> bool,
    stop: CancellationToken,
    compare: impl Fn(Arc<Core>) -> R + Clone + Send + Sync + 'static,
) where
    R: Future<Output = Result<Option<Duration>, Status>> + Send,
{
    let root = core.own_endpoint("root");
    let follow = |kind: &&Kind| {
        let queue = queue.clone();
        Informer::start(root.clone(), kind.gvr(), Selection::default(), move |change: Change| {
            if matter(&change) {
                queue.add_after((), GATHER);
            }
        })
    };
    let informers: Vec<Informer> = kinds.iter().map(follow).collect();
    queue.add(());
    let core = core.clone();
    work(queue, 1, stop, move |()| compare(core.clone())).await;
    drop(informers);
}
