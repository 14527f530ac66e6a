//! Access to many clusters: endpoints, informers, queues, leader election
