//! What a node may lend, to whom and when
