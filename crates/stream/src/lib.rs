//! Websocket and SPDY channels, and splicing of upgraded connections
