//! The built-in Kubernetes kinds as data, with their protobuf wire format
