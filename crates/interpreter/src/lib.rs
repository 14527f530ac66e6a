//! What a resource means: replicas, health, status, dependencies
