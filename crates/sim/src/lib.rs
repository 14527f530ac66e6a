//! Simulated clusters: workload controllers, a scheduler and fake kubelets
