//! TCP segments to connections.
