//! Shared fixtures: in-process hubs, peers, builders
