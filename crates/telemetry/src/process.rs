//! What the operating system says of this process.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks per second in `/proc`; fixed by the kernel's user interface.
const TICKS: f64 = 100.0;
/// Bytes of a page on every platform the binary is built for.
const PAGE: i64 = 4096;

/// Reads `/proc/self` when asked; where there is none, nothing is shown.
#[derive(Debug)]
pub struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(stat) = std::fs::read_to_string("/proc/self/stat").ok() else { return Ok(()) };
        // The second field is the name, which may hold blanks; what follows its bracket does not.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
        let seconds = (number(11) + number(12)) as f64 / TICKS;
        counter(&mut encoder, "process_cpu_seconds", "CPU time used", seconds)?;
        gauge(&mut encoder, "process_resident_memory_bytes", "Memory in use", number(21) * PAGE)?;
        gauge(&mut encoder, "process_threads", "Threads", number(17))?;
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        gauge(&mut encoder, "process_open_fds", "Open file descriptors", i64::try_from(open).unwrap_or(i64::MAX))
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: i64) -> fmt::Result {
    let metric = ConstGauge::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let metric = ConstCounter::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
