//! The controllers every instance has: namespaces, garbage collection, tokens, quota
