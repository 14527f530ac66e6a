//! Series about requests and the store, named as the original names them.
//!
//! Their number does not grow with instances or with what users define: kinds that are not built in
//! are counted together.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use atoll_telemetry::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;

use crate::body::Body;
use crate::hub::Hub;
use crate::kind::builtin;
use crate::request::{Target, Verb};

/// What a request turned out to be while it was served.
#[derive(Default)]
pub struct Seen {
    /// What it wants to do.
    pub verb: Option<Verb>,
    /// Group, version and plural of the kind; empty for URLs outside the resource tree.
    resource: [&'static str; 3],
}

impl Seen {
    /// Notes the kind asked for. Only kinds that exist are told apart: nobody can make series by asking.
    pub fn target(&mut self, target: &Target) {
        self.resource = match builtin().get(&target.group, &target.version, &target.resource) {
            Some(kind) => [&kind.group, &kind.version, &kind.plural],
            None => ["", "", "(other)"],
        };
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct Method {
    verb: &'static str,
}

/// The series of the request path. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Requests {
    total: Family<Request, Counter>,
    duration: Family<Method, Histogram, fn() -> Histogram>,
    watches: Gauge,
}

impl Requests {
    /// Adds the series to a registry.
    pub fn new(metrics: &Metrics) -> Self {
        let new = Self {
            total: Family::default(),
            duration: Family::new_with_constructor(buckets),
            watches: Gauge::default(),
        };
        metrics.register("apiserver_request", "Requests by verb, resource and code", new.total.clone());
        metrics.register("apiserver_request_duration_seconds", "Time to the answer", new.duration.clone());
        metrics.register("apiserver_longrunning_requests", "Watches and streams being served", new.watches.clone());
        new
    }

    /// Counts an answered request; a watch counts as running until its body is let go of.
    pub fn count(&self, seen: &Seen, mut answer: http::Response<Body>, took: Duration) -> http::Response<Body> {
        let verb = seen.verb.map_or("", word);
        let [group, version, resource] = seen.resource;
        let labels = Request { verb, group, version, resource, code: answer.status().as_u16() };
        self.total.get_or_create(&labels).inc();
        if seen.verb != Some(Verb::Watch) {
            self.duration.get_or_create(&Method { verb }).observe(took.as_secs_f64());
        } else {
            let body = std::mem::replace(answer.body_mut(), Body::empty());
            *answer.body_mut() = match body {
                Body::Stream(stream) => Body::Stream(Box::pin(Running::new(stream, self.watches.clone()))),
                // A refusal.
                other => other,
            };
        }
        answer
    }
}

/// Spellings of the original's label.
fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
        Verb::Url(_) => "URL",
    }
}

fn buckets() -> Histogram {
    Histogram::new([0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0])
}

/// A stream that is counted while it lives.
struct Running<S> {
    stream: S,
    count: Gauge,
}

impl<S> Running<S> {
    fn new(stream: S, count: Gauge) -> Self {
        count.inc();
        Self { stream, count }
    }
}

impl<S> Drop for Running<S> {
    fn drop(&mut self) {
        self.count.dec();
    }
}

impl<S: futures::Stream + Unpin> futures::Stream for Running<S> {
    type Item = S::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        std::pin::Pin::new(&mut self.stream).poll_next(cx)
    }
}

/// What the hub knows when it is asked.
#[derive(Debug)]
pub struct State(pub Weak<Hub>);

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(hub) = self.0.upgrade() else { return Ok(()) };
        let mut show = |name: &str, help: &str, value: usize| {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        show("atoll_instances", "Instances of the hub", hub.instance_count())?;
        show("atoll_store_writable", "1 while the store takes writes", usize::from(hub.engine.health().is_ok()))?;
        let running = hub.options.max_in_flight - hub.in_flight.available_permits();
        show("apiserver_current_inflight_requests", "Requests being served, watches not counted", running)
    }
}
