//! The registry of all series.

use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::{Metric, Registry};

/// What `/metrics` answers with.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All series of the process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<RwLock<Registry>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(crate::process::Process));
        Self { registry: Arc::new(RwLock::new(registry)) }
    }
}

impl Metrics {
    /// Adds a series. Counters get their `_total` from the format.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.registry.write().register(name, help, metric);
    }

    /// Adds series that are computed when they are asked for.
    pub fn collect(&self, collector: Box<dyn Collector>) {
        self.registry.write().register_collector(collector);
    }

    /// Everything, as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry.read()).expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn series_show_with_their_help_and_the_process_with_its_memory() {
        let metrics = Metrics::default();
        let writes: Counter = Counter::default();
        metrics.register("writes", "Writes done", writes.clone());
        writes.inc_by(3);
        let text = metrics.text();
        assert!(text.contains("# HELP writes Writes done.\n"), "{text}");
        assert!(text.contains("writes_total 3\n"), "{text}");
        let resident = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
        assert!(resident.is_some_and(|bytes| bytes.parse::<u64>().is_ok_and(|bytes| bytes > 100_000)), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
