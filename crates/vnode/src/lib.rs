//! Virtual nodes: manager, syncers and kubelet proxies
