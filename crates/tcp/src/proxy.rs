//! Performance-enhancing proxies (RFC 3135) as hops of a path.

mod sliding_mode;

pub use sliding_mode::{ParameterError, SlidingMode, SlidingModeSettings};
