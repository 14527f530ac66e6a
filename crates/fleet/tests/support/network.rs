//! A bad network between a hub and its members.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use atoll_fleet::NamedMembers;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Transport};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::support::World;

/// Loses requests and answers, delays some and breaks off watches, as a bad network does. What is sent arrives, also when its sender dies.
pub struct Faulty {
    inner: Arc<dyn Transport>,
    home: tokio::runtime::Handle,
    random: Mutex<StdRng>,
    /// How many of a hundred requests fail.
    pub rate: AtomicU32,
    faults: Arc<AtomicU32>,
    /// Whether nothing passes.
    pub cut: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Faulty {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let lost = || {
            self.faults.fetch_add(1, Ordering::Relaxed);
            Err(Status::unavailable("the network lost it"))
        };
        if self.cut.load(Ordering::Relaxed) {
            return lost();
        }
        let (dice, late) = {
            let mut random = self.random.lock();
            (random.random_range(0..200), random.random_range(0..2000_u64))
        };
        let rate = self.rate.load(Ordering::Relaxed);
        if dice < rate {
            return lost();
        }
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let inner = self.inner.clone();
        let sent = self.home.spawn(async move {
            // Lateness is the fault, so there is nothing to wait for.
            if rate > 0 && late < 150 {
                tokio::time::sleep(Duration::from_millis(late)).await;
            }
            inner.send(request).await
        });
        let answer = sent.await.unwrap_or_else(|_| Err(Status::unavailable("the test is over")));
        // The request arrived, the answer does not.
        if dice < rate * 2 {
            return lost();
        }
        // What is followed breaks off in the middle.
        if watches && rate > 0 && late < 1000 {
            self.faults.fetch_add(1, Ordering::Relaxed);
            let pieces = usize::try_from(late % 7).unwrap_or_default();
            return answer.map(|answer| answer.map(|body| -> BodyStream { Box::pin(body.take(pieces)) }));
        }
        answer
    }
}

/// Bad ways to all members of a world, the members by these ways, and the count of faults.
pub fn faulty(world: &World, seed: u64) -> (Vec<Arc<Faulty>>, Vec<(String, Endpoint)>, Arc<AtomicU32>) {
    let faults = Arc::new(AtomicU32::new(0));
    let ways: Vec<Arc<Faulty>> = (0u64..)
        .zip(&world.members)
        .map(|(number, member)| {
            Arc::new(Faulty {
                inner: member.transport().clone(),
                home: tokio::runtime::Handle::current(),
                random: Mutex::new(StdRng::seed_from_u64(seed + number)),
                rate: AtomicU32::new(0),
                faults: faults.clone(),
                cut: AtomicBool::new(false),
            })
        })
        .collect();
    let named = world.members.iter().zip(&ways).map(|(member, way)| {
        let transport: Arc<dyn Transport> = way.clone();
        (member.name().to_owned(), Endpoint::new(member.name(), transport, "atoll-fleet"))
    });
    (ways.clone(), named.collect(), faults)
}

/// Starts controllers that can be killed and see members by these ways.
pub async fn run(world: &mut World, named: &[(String, Endpoint)]) {
    let members = Arc::new(NamedMembers::new(named.to_vec()));
    world
        .run_apart(|options| {
            options.members = members;
            options.probe_interval = Duration::from_millis(300);
            options.probe_threshold = Duration::from_millis(600);
        })
        .await;
}
