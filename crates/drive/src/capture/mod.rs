//! What taps see, as capture files.

pub mod addresses;
pub mod clock;
pub mod coalescing;
pub mod content;
pub mod file;
pub mod frame;
pub mod pcapng;
pub mod prepared;
mod sink;
pub mod tap;
mod template;
mod usual;
