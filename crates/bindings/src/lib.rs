//! Python bindings: conversions only.
