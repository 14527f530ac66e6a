//! What was measured of a control plane, and how two of them compare.

/// Everything that was measured of one.
pub struct Figures {
    /// An idle time with members and nothing else.
    pub idle_before: Idle,
    /// The first rounds, of a program that has not done this before.
    pub first: Latency,
    /// As many rounds more.
    pub second: Latency,
    /// Many at once.
    pub mass: Mass,
    /// The time just after them.
    pub idle_after: Idle,
}

/// A time in which nobody asks for anything.
pub struct Idle {
    /// Percent of a core.
    pub share: f64,
    /// Resident memory at its end, MiB.
    pub memory: f64,
}

/// From the create to the last copy, one at a time.
pub struct Latency {
    /// Milliseconds, the shortest first.
    sorted: Vec<f64>,
    /// Processor time of the control plane for each, pauses included.
    pub cpu: f64,
}

/// Many Deployments until all copies exist.
pub struct Mass {
    /// How long that took.
    pub seconds: f64,
    /// Processor time of the control plane.
    pub cpu: f64,
    /// Resident memory of the control plane when it was done, MiB.
    pub memory: f64,
}

impl Latency {
    pub fn of(mut times: Vec<f64>, cpu: f64) -> Self {
        times.sort_by(f64::total_cmp);
        Self { sorted: times, cpu }
    }

    fn quantile(&self, part: f64) -> f64 {
        let at = ((self.sorted.len() as f64 * part).ceil() as usize).clamp(1, self.sorted.len());
        self.sorted[at - 1]
    }

    pub fn tell(&self, name: &str) {
        let (p50, p99, most) = (self.quantile(0.5), self.quantile(0.99), self.quantile(1.0));
        println!("{name}: p50 {p50:.1} ms, p99 {p99:.1} ms, max {most:.1} ms ({} runs)", self.sorted.len());
    }
}

/// A figure of both sides, by name and unit.
type Row = (&'static str, &'static str, fn(&Figures) -> f64);

/// Prints both sides and their ratios as a table for docs/benchmarks.md.
pub fn compare(ours: &Figures, theirs: &Figures) {
    let rows: [Row; 12] = [
        ("apply to the last of three members, first rounds, p50", "ms", |side| side.first.quantile(0.5)),
        ("the same, p99", "ms", |side| side.first.quantile(0.99)),
        ("the same, further rounds, p50", "ms", |side| side.second.quantile(0.5)),
        ("the same, p99", "ms", |side| side.second.quantile(0.99)),
        ("control plane for one of these, pauses included", "CPU s", |side| side.second.cpu),
        ("many Deployments until all copies exist", "s", |side| side.mass.seconds),
        ("control plane for that, CPU", "CPU s", |side| side.mass.cpu),
        ("control plane for that, memory", "MiB", |side| side.mass.memory),
        ("idle before, memory", "MiB", |side| side.idle_before.memory),
        ("idle with three members", "% of a core", |side| side.idle_before.share),
        ("just after the many", "% of a core", |side| side.idle_after.share),
        ("just after the many, memory", "MiB", |side| side.idle_after.memory),
    ];
    println!("\n| | Atoll | Karmada | ratio |\n| --- | --- | --- | --- |");
    for (name, unit, figure) in rows {
        let (own, other) = (figure(ours), figure(theirs));
        println!("| {name} | {own:.2} {unit} | {other:.2} {unit} | 1/{:.1} |", other / own);
    }
}
