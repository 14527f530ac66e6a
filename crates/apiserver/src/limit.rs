//! What one instance may use of the hub, so that a noisy one cannot starve the others.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use atoll_meta::Status;
use atoll_store::{Expect, Op, Write};

use crate::call::Call;
use crate::hub::Hub;
use crate::instance::{Instance, store_status};

/// Requests every instance may run although the hub is full.
const GUARANTEED: usize = 8;
const SECOND: i64 = 1_000_000;

/// What an instance may use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Objects it may hold.
    pub objects: u64,
    /// Bytes of objects it may hold.
    pub bytes: u64,
    /// Watches that may be open at once.
    pub watches: usize,
    /// Requests that may run at once, watches not counted.
    pub in_flight: usize,
    /// Requests it may make each second, if that is limited at all.
    pub requests_per_second: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { objects: 1_000_000, bytes: 8 << 30, watches: 20_000, in_flight: 600, requests_per_second: None }
    }
}

impl Limits {
    /// The limits an Instance object asks for in `spec.limits`; what it leaves out is as usual.
    pub fn of(limits: &serde_json::Value) -> Self {
        let usual = Self::default();
        let number = |field: &str| limits[field].as_u64();
        let size = |field: &str| number(field).and_then(|most| usize::try_from(most).ok());
        Self {
            objects: number("objects").unwrap_or(usual.objects),
            bytes: number("bytes").unwrap_or(usual.bytes),
            watches: size("watches").unwrap_or(usual.watches),
            requests_per_second: number("requestsPerSecond").and_then(|most| u32::try_from(most).ok()),
            ..usual
        }
    }

    /// The limits of instances that have none of their own; all of them share it.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Limits>> = LazyLock::new(Arc::default);
        SHARED.clone()
    }
}

/// What an instance uses at present.
#[derive(Default)]
pub(crate) struct Load {
    requests: Counter,
    watches: Counter,
    /// When, in microseconds, the next request comes if they come as slowly as the limit asks for.
    pace: AtomicI64,
}

#[derive(Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn enter(&self, most: usize) -> Option<Entered> {
        let entered = Entered { at: self.0.fetch_add(1, Ordering::AcqRel), counter: self.0.clone() };
        (entered.at < most).then_some(entered)
    }
}

/// One place taken; it is free again when dropped.
pub(crate) struct Entered {
    at: usize,
    counter: Arc<AtomicUsize>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The right to run a request.
pub(crate) struct Slot {
    _own: Entered,
    _shared: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Load {
    /// Whether a request now keeps the pace; a second's worth of requests may come at once.
    fn keeps_pace(&self, per_second: u32, now: i64) -> bool {
        let step = SECOND / i64::from(per_second.max(1));
        let next = self.pace.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            let start = next.max(now);
            (per_second > 0 && start - now < SECOND).then_some(start + step)
        });
        next.is_ok()
    }
}

impl Hub {
    /// Lets a request in, or says why not.
    pub(crate) fn enter(&self, instance: &Instance) -> Result<Slot, Status> {
        let limits = instance.limits();
        let busy = |why: String| Err(Status::too_many_requests(why, 1));
        if let Some(most) = limits.requests_per_second
            && !instance.load.keeps_pace(most, self.now().as_microsecond())
        {
            return busy(format!("instance {:?} makes more than {most} requests per second, its limit", instance.name));
        }
        let Some(own) = instance.load.requests.enter(limits.in_flight) else {
            let most = limits.in_flight;
            return busy(format!("instance {:?} has {most} requests in flight, its limit", instance.name));
        };
        match self.in_flight.clone().try_acquire_owned() {
            Ok(shared) => Ok(Slot { _own: own, _shared: Some(shared) }),
            Err(_) if own.at < GUARANTEED => Ok(Slot { _own: own, _shared: None }),
            Err(_) => busy("the server has received too many requests and has asked us to try again later".into()),
        }
    }

    /// Lets a watch in, or says why not.
    pub(crate) fn enter_watch(&self, instance: &Instance) -> Result<Entered, Status> {
        let most = instance.limits().watches;
        instance.load.watches.enter(most).ok_or_else(|| {
            Status::too_many_requests(format!("instance {:?} has {most} watches open, its limit", instance.name), 1)
        })
    }
}

impl Call {
    /// Refuses writes for which the instance has no room. Those that need no more are never refused.
    pub(crate) async fn check_room(&self, writes: &[Write]) -> Result<(), Status> {
        let limits = self.instance.limits();
        let (objects, bytes) = self.hub.engine.usage(self.instance.id).map_err(|error| store_status(&error))?;
        let puts = || {
            writes.iter().filter_map(|write| match &write.op {
                Op::Put(object) => Some((write, object.body.len() as u64)),
                _ => None,
            })
        };
        let new = puts().filter(|(write, _)| write.expect == Expect::Absent).count() as u64;
        let why = |what: &str, most: u64| {
            let why = format!("instance {:?} has no room for it: it may hold {most} {what}", self.instance.name);
            Err(Status::forbidden(&self.kind.group, &self.kind.plural, &self.target.name, why))
        };
        if new > 0 && objects + new > limits.objects {
            return why("objects", limits.objects);
        }
        let more: u64 = puts().map(|(_, size)| size).sum();
        if bytes + more <= limits.bytes {
            return Ok(());
        }
        let mut less = 0;
        for (write, _) in puts() {
            let old = self.hub.read(&self.instance, write.key.as_str()).await?;
            less += old.map_or(0, |entry| entry.object.body.len() as u64);
        }
        if more > less { why("bytes", limits.bytes) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_object_says_what_differs_from_the_usual() {
        let asked = serde_json::json!({"objects": 5, "requestsPerSecond": 7, "watches": null});
        let expected = Limits { objects: 5, requests_per_second: Some(7), ..Limits::default() };
        assert_eq!(Limits::of(&asked), expected);
        assert_eq!(Limits::of(&serde_json::Value::Null), Limits::default());
    }

    #[test]
    fn places_are_free_again_when_left() {
        let counter = Counter::default();
        let first = counter.enter(1);
        assert!(first.is_some() && counter.enter(1).is_none());
        drop(first);
        assert!(counter.enter(1).is_some());
    }

    #[test]
    fn a_second_of_requests_may_come_at_once_and_then_one_at_a_time() {
        let load = Load::default();
        let start = 1_000 * SECOND;
        assert_eq!((0..100).filter(|_| load.keeps_pace(10, start)).count(), 10);
        assert!(load.keeps_pace(10, start + SECOND / 10) && !load.keeps_pace(10, start + SECOND / 10));
        assert_eq!((0..100).filter(|_| load.keeps_pace(10, start + 60 * SECOND)).count(), 10);
        assert!(!load.keeps_pace(0, start + 90 * SECOND));
    }
}
