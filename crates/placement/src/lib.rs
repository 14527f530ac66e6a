//! Scheduling decisions: which clusters, how many replicas, and why
