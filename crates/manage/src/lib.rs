//! The management plane: gRPC and REST over one set of descriptors
