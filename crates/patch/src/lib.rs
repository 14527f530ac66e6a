//! JSON, merge and strategic patches, and server-side apply
