//! What taps see, as capture files.

pub mod addresses;
mod background;
pub mod clock;
pub mod coalescing;
pub mod content;
pub mod frame;
pub mod pcapng;
pub mod tap;
