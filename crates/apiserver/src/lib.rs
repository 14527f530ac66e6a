//! A Kubernetes API server as a tower service, many isolated instances in one process
