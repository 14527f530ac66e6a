//! What a simulated cluster looks like.

/// Size and shape of a simulated cluster.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of zones the nodes are spread over.
    pub zones: usize,
    /// Region, for the `topology.kubernetes.io/region` label.
    pub region: String,
    /// Provider, as in `provider://…` of a node's `providerID`.
    pub provider: String,
    /// Processors of a node, as a quantity.
    pub cpu: String,
    /// Memory of a node, as a quantity.
    pub memory: String,
    /// Pods a node takes.
    pub pods: u32,
    /// Further resources of every node, such as `nvidia.com/gpu`.
    pub extended: Vec<(String, String)>,
    /// Further labels of every node.
    pub labels: Vec<(String, String)>,
    /// Whether ordinary steps of pods (scheduled, pulled, started) are told as events, too.
    /// Problems always are.
    pub verbose_events: bool,
    /// Whether kubelets tell ordinary steps (pulled, created, started) as events, where others do.
    pub kubelet_events: bool,
    /// The version nodes report.
    pub kubelet_version: String,
    /// How many controllers work at once.
    pub workers: usize,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            nodes: 3,
            zones: 1,
            region: "sim-1".into(),
            provider: "sim".into(),
            cpu: "8".into(),
            memory: "32Gi".into(),
            pods: 110,
            extended: Vec::new(),
            labels: Vec::new(),
            verbose_events: true,
            kubelet_events: true,
            kubelet_version: "v1.35.8".into(),
            workers: 16,
        }
    }
}

impl Spec {
    /// A cluster with this many nodes, else as usual.
    pub fn with_nodes(nodes: usize) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// With as many events as a word asks for: `all`, `controllers` (kubelets tell problems only) or `problems`.
    #[must_use]
    pub fn with_events(self, word: &str) -> Self {
        Self { verbose_events: word != "problems", kubelet_events: word == "all", ..self }
    }

    /// The zone of a node.
    pub fn zone(&self, index: usize) -> String {
        let letter = char::from(b'a' + u8::try_from(index % self.zones.clamp(1, 26)).unwrap_or(0));
        format!("{}{letter}", self.region)
    }
}
