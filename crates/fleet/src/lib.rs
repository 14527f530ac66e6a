//! Propagation: detector, scheduler, bindings, works, status, failover
